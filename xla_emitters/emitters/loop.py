"""The loop emitter, for fusions without a hero: each thread computes a few neighbouring elements of the result.

    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1) in #map
        iter_args(%iter = %output) -> (tensor<64x4096xf32>) {
      %pure_call = xla_gpu.pure_call @f_add(%input, %dim0, %dim1) : (tensor<64x4096xf32>, index, index) -> f32
      %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1] : tensor<64x4096xf32>
      xla_gpu.yield %inserted : tensor<64x4096xf32>
    }

The map covers the first result; results of other shapes are written at the same place in memory. All values of an iteration are computed
before the first is written, because a result may be in the buffer of a parameter. Results of one element, beside larger ones, are written
by the first thread, in a loop of their own; in XLA all threads write them.
Source: seed document, "MLIR Conversion"; docs/reference/2 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.shape_ops import same_place
from xla_emitters.dialects.hlo.types import dims_of, elements_of, leaf_types, minor_to_major
from xla_emitters.dialects.xla_gpu import LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder
from xla_emitters.emitters.emitter import Way, ways_of_works
from xla_emitters.emitters.entry_function import KernelEntry, entry_function
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, Subgraph, partition
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.scatters import is_scatter, scatter_of
from xla_emitters.graph.thread_work import UNROLL, ThreadWork, elements_per_thread, thread_works, unroll_reason
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.kernel_entry import UNROLL_FACTOR
from xla_emitters.rewrite.notes import decide
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class LoopEmitter:
    """See the file's head.

    work  elements per thread; None: XLA's choice
    """

    work: ThreadWork | None = None
    name = "loop"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: the loop covers the first result, so the others must have as many elements, or one."""
        first = view.elements
        for i, result_type in enumerate(view.result_types):
            if math.prod(dims_of(result_type)) not in (first, 1):
                return f"result 0 has {first} elements, result {i} has {math.prod(dims_of(result_type))}"
        return None

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions into the root's function (or two: for results of the first's size, and for results of one element) and its callees."""
        return partition(view.computation, epilogues=_ends(view))

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the elements per thread; XLA's choice is the first."""
        own = elements_per_thread(view, device)
        return ways_of_works(thread_works(view, device, own), view.elements, device, view.place, self._with)

    def _with(self, work: ThreadWork) -> Self:
        return replace(self, work=work)

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        partitioned = self.partition(view, device)
        work = self.work or ThreadWork(elements_per_thread(view, device))
        launch = launch_for(view.elements, work.total, device, view.place)
        reason = unroll_reason(view, device) if self.work is None else "chosen among candidates"
        decide("launch", str(launch), grid=list(launch.grid), block=list(launch.block))
        decide("unroll", f"{work} a thread: {reason}", elements_per_thread=work.total)
        for op in view.with_opcode("scatter"):
            assert is_scatter(op)
            name, count, why = op.instruction_name.data, op.windows, scatter_of(view)
            reason = f": {why}" if isinstance(why, str) else ""
            decide("scatter", f"%{name}: each element looks at all {count} windows{reason}", hero=name, windows=count)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        results = list(entry.outputs)
        for numbers, root in zip(_by_size(view), partitioned.epilogues or (partitioned.root,), strict=False):
            first = view.result_types[numbers[0]]
            is_first = not numbers[0]
            visited = work_item_map(launch, dims_of(first), minor_to_major(first), work.elements if is_first else 1)
            for number, result in zip(numbers, _emit_loop(view, entry, visited, root, numbers), strict=True):
                results[number] = result
        entry.finish(results)
        module = entry.module(view, partitioned)
        if work.elements > UNROLL:
            for function in module.ops:
                function.attributes[UNROLL_FACTOR] = IntegerAttr.from_index_int_value(work.elements)
        return module


def _by_size(view: FusionView) -> tuple[Sequence[int], Sequence[int]]:
    """The numbers of the results with the first's size, and the numbers of those with one element."""
    large = [
        number
        for number, result_type in enumerate(view.result_types)
        if math.prod(dims_of(result_type)) == view.elements
    ]
    return large, [number for number in range(len(view.result_types)) if number not in large]


def _ends(view: FusionView) -> Sequence[Epilogue]:
    """The epilogues that compute the results of each size, if there are two sizes."""
    _, single = _by_size(view)
    if not single:
        return ()
    found = list[Epilogue]()
    for is_single in (False, True):
        roots = [root for root in view.roots if (elements_of(root) != view.elements) == is_single]
        first = leaf_types(roots[0].result.type)[0]
        maps = tuple(same_place(first, leaf_types(root.result.type)[0]) for root in roots)
        found.append(Epilogue(tuple(roots), (), maps))
    return found


def _emit_loop(
    view: FusionView, entry: KernelEntry, visited: IndexingMap, root: Subgraph, numbers: Sequence[int]
) -> Sequence[SSAValue]:
    """The loop that calls `root`'s function for each index of `visited` and inserts its values into the results `numbers`."""
    loop = LoopOp(entry.ids, [entry.outputs[number] for number in numbers], visited)
    body = FunctionBuilder(loop.body.block, view.location)
    indices = loop.map_results
    values = body.call(root, [*entry.inputs, *indices])
    first, *_ = types = [view.result_types[number] for number in numbers]
    places = (build.apply_indexing(body, same_place(first, result_type), indices) for result_type in types)
    body.insert(YieldOp(*body.write(values, loop.iter_args, places)))
    entry.builder.insert(loop)
    return loop.results
