"""The input slices emitter: all results are slices of arrays of one shape, and the grid covers that shape once.

    %xla_loop:2 = xla_gpu.loop (%thread_id_x, %block_id_x) -> (%dim0) in #map iter_args(%iter = %output, %iter_0 = %output_1) {
      %pure_call = xla_gpu.pure_call @f_exp(%input, %dim0)                         once, for all slices of it
      %0 = scf.if (%dim0 in [0, 511]) { tensor.insert %pure_call into %iter[%dim0] } else { %iter }
      %1 = scf.if (%dim0 in [256, 1023]) { tensor.insert %pure_call into %iter_0[%dim0 - 256] } else { %iter_0 }
      xla_gpu.yield %0, %1
    }

Useful where the slices overlap and cover most of their operands. Used only by the rules of the seed document (`--hero-rules=seed`); by
today's rules the loop emitter takes such fusions, if their results have one size.
Source: seed document, "Input slices emitter"; docs/reference/2 2.8.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import owner_of
from xla_emitters.dialects.hlo.shape_ops import SliceOp, rows
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major, type_text
from xla_emitters.dialects.xla_gpu import LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder
from xla_emitters.emitters.emitter import expected
from xla_emitters.emitters.entry_function import entry_function, kernel_module
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, partition
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.notes import decide


class InputSlicesEmitter:
    """See the file's head."""

    name = "input_slices"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: there is only one result, a result is not a slice with stride 1, or the sliced arrays differ in shape."""
        found = _slices(view)
        return found if isinstance(found, str) else None

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions the computation into a function for each sliced operand."""
        return _partition(view, _slices_of(view))

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        slices = _slices_of(view)
        partitioned = _partition(view, slices)
        whole = slices[0].operands[0]
        unroll = -(-8 // view.smallest_output_bits)
        launch = launch_for(math.prod(dims_of(whole)), unroll, device, view.place)
        names = list(dict.fromkeys(op.instruction_name.data for op in slices))
        decide("hero", ", ".join(f"%{name}" for name in names), instructions=names)
        decide("launch", f"{launch}, over what is sliced", grid=list(launch.grid), block=list(launch.block))
        decide("unroll", f"{unroll} a thread", elements_per_thread=unroll)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        visited = work_item_map(launch, dims_of(whole), minor_to_major(whole.type), unroll)
        if visited.is_known_empty:
            entry.finish(entry.outputs)
            return kernel_module(view, entry.function, ())
        loop = LoopOp(entry.ids, entry.outputs, visited)
        entry.builder.insert(loop)
        with entry.builder.inside(InsertPoint.at_end(loop.body.block)):
            elements = dict[SSAValue, SSAValue]()
            for operand in dict.fromkeys(op.operands[0] for op in slices):
                callee = partitioned.subgraph_of[owner_of(operand)]
                (elements[operand],) = entry.builder.call(callee, [*entry.inputs, *loop.map_results])
            written = [
                _insert(entry.builder, op, elements[op.operands[0]], loop, target)
                for op, target in zip(slices, loop.iter_args, strict=True)
            ]
            entry.builder.insert(YieldOp(*written))
        entry.finish(loop.results)
        return entry.module(view, partitioned)


def _slices(view: FusionView) -> tuple[SliceOp, ...] | str:
    roots = view.roots
    if len(roots) == 1:
        return "1 result"
    found = list[SliceOp]()
    for root in roots:
        name = f"%{root.instruction_name.data}"
        if not isinstance(root, SliceOp):
            return f"{name} is not a slice"
        if any(stride != 1 for _, _, stride in rows(root.ranges)):
            return f"{name} has a stride other than 1"
        if found and dims_of(root.operands[0]) != dims_of(found[0].operands[0]):
            return f"slices of {type_text(found[0].operands[0].type)} and of {type_text(root.operands[0].type)}"
        found.append(root)
    return tuple(found)


def _slices_of(view: FusionView) -> tuple[SliceOp, ...]:
    return expected(_slices(view), view, "input slices")


def _partition(view: FusionView, slices: tuple[SliceOp, ...]) -> PartitionedComputation:
    # The slices have no users: these epilogues only prevent a function for the slices' own code.
    ends = [Epilogue((op,), (op,), (identity_map(dims_of(op.result)),)) for op in dict.fromkeys(slices)]
    return partition(view.computation, epilogues=ends)


def _insert(builder: FunctionBuilder, op: SliceOp, value: SSAValue, loop: LoopOp, target: SSAValue) -> SSAValue:
    """`target` after inserting `value`, an element of the sliced array, if the slice contains it."""
    (place,) = op.input_to_output()
    if place.is_known_empty:
        return target
    inside = build.constraints_check(builder, place, list(loop.map_results), ())

    def written() -> list[SSAValue]:
        return builder.write([value], [target], [build.apply_indexing(builder, place, loop.map_results)])

    return builder.branch(inside, [target.type], written, lambda: [target])[0]
