"""The loop emitter, for fusions without a hero: each thread computes a few neighbouring elements of the result.

    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1) in #map
        iter_args(%iter = %output) -> (tensor<64x4096xf32>) {
      %pure_call = xla_gpu.pure_call @f_add(%input, %dim0, %dim1) : (tensor<64x4096xf32>, index, index) -> f32
      %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1] : tensor<64x4096xf32>
      xla_gpu.yield %inserted : tensor<64x4096xf32>
    }

The map runs over the first result; results of other shapes are written at the same place in memory. All values of an iteration are
computed before the first is written: a result may lie in the buffer of a parameter.
Source: seed document, "MLIR Conversion"; spec/2 2.1.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.analysis.fusion import FusionView
from xla_emitters.analysis.launch import launch_for, work_item_map
from xla_emitters.analysis.unroll import unroll_factor, unroll_reason
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.shape_ops import same_place
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.dialects.xla_gpu import LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder, emit_functions
from xla_emitters.emitters.entry import Entry, entry_function, kernel_module
from xla_emitters.emitters.partitioner import PartitionedComputation, Subgraph, partition, partition_called
from xla_emitters.indexing import IndexingMap
from xla_emitters.rewrite.notes import decide


class LoopEmitter:
    """See the file's head."""

    name = "loop"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: the loop runs over the first result, so all must have as many elements, and code for one."""
        if (scatter := next(iter(view.with_opcode("scatter")), None)) is not None:
            return f"which updates go to an element of %{scatter.instruction_name.data} only the run knows"
        first = view.elements
        for i, type in enumerate(view.result_types):
            if math.prod(dims_of(type)) != first:
                return f"result 0 has {first} elements, result {i} has {math.prod(dims_of(type))}"
        return None

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """The root's function and those that it calls."""
        return partition(view.computation)

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        """The kernel module.

        raises   Unsupported, with its place, for an instruction without code
        """
        partitioned = self.partition(view, device)
        unroll = unroll_factor(view, device)
        launch = launch_for(view.elements, unroll, device, view.place)
        decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
        decide("unroll", f"{unroll} a thread: {unroll_reason(view, device)}", elements_per_thread=unroll)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        called = partition_called(view.called)
        first = view.result_types[0]
        visited = work_item_map(launch, dims_of(first), minor_to_major(first), unroll)
        _emit_loop(view, entry, visited, partitioned.root)
        return kernel_module(view, entry.function, emit_functions(entry.function, partitioned, called))


def _emit_loop(view: FusionView, entry: Entry, visited: IndexingMap, root: Subgraph) -> None:
    """The body of the entry: `root`'s function called and its results inserted for every index that `visited` gives."""
    loop = LoopOp(entry.ids, entry.outputs, visited)
    body = FunctionBuilder(loop.body.block, view.location)
    indices = loop.map_results
    values = body.call(root, [*entry.inputs, *indices])
    first, *_ = view.result_types
    places = (build.apply_indexing(body, same_place(first, type), indices) for type in view.result_types)
    body.insert(YieldOp(*body.write(values, loop.iter_args, places)))
    entry.builder.insert(loop)
    entry.finish(loop.results)
