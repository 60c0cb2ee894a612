"""The in-place dynamic-update-slice emitter: the grid covers the update; the rest of the result is in the buffer already.

    %start = xla_gpu.pure_call @f_start(%input, %input_0) : (...) -> i32          clamped, so that the update is inside
    %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x) -> (%dim0, %dim1) in #map iter_args(%iter = %output) -> (tensor<1024x64xf32>) {
      %pure_call = xla_gpu.pure_call @f_update(%input, %input_0, %dim0, %dim1)
      %inserted = tensor.insert %pure_call into %iter[%dim0 + %start, %dim1]
      xla_gpu.yield %inserted
    }

Several results must have updates of one shape and share the loop; all elements are computed before the first is written.
Source: seed document, "In-place dynamic-update-slice emitter"; docs/reference/2 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.dynamic_slices import DynamicUpdateSliceOp
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.dialects.xla_gpu import LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder
from xla_emitters.emitters.emitter import Way, expected, ways_of_works
from xla_emitters.emitters.entry_function import KernelEntry, entry_function
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, partition
from xla_emitters.graph.buffers import why_not_in_buffers
from xla_emitters.graph.heroes import place_map
from xla_emitters.graph.in_place_updates import InPlaceUpdate, find_in_place_updates
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.thread_work import ThreadWork, elements_per_thread, thread_works
from xla_emitters.graph.view import FusionView
from xla_emitters.rewrite.notes import decide


@dataclass(frozen=True)
class DynamicUpdateSliceEmitter:
    """See the file's head.

    work  elements per thread; None: XLA's choice
    """

    work: ThreadWork | None = None
    name = "dynamic_update_slice"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: a result is not an update, cannot be written in place, or is not in the buffer of its operand."""
        found = find_in_place_updates(view)
        return found if isinstance(found, str) else why_not_in_buffers(view, [update.parameter for update in found])

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions the computation into a function for each update and each start index."""
        return _partition(view, _updates(view))

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the elements per thread; XLA's choice is the first."""
        updates = _updates(view)
        elements, own = math.prod(dims_of(updates[0].op.operands[1])), _unroll(view, updates, device)
        works = thread_works(view, device, own, elements)
        separate = [work for work in works if work.elements == own or _reads_are_separate(view, updates, work.elements)]
        return ways_of_works(separate, elements, device, view.place, lambda work: replace(self, work=work))

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        updates = _updates(view)
        partitioned = _partition(view, updates)
        window = updates[0].op.operands[1]
        elements = math.prod(dims_of(window))
        work = self.work or ThreadWork(_unroll(view, updates, device))
        launch = launch_for(elements, work.total, device, view.place)
        names = [update.op.instruction_name.data for update in updates]
        decide("hero", ", ".join(f"%{name}" for name in names), instructions=names)
        decide("launch", f"{launch}, over the update", grid=list(launch.grid), block=list(launch.block))
        decide("unroll", f"{work} a thread", elements_per_thread=work.total)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        visited = work_item_map(launch, dims_of(window), minor_to_major(window.type), work.elements)
        loop = LoopOp(entry.ids, entry.outputs, visited)
        # Before the loop, so that later passes know that all elements of a thread have the same start.
        before = _Body(entry, partitioned, entry.builder)
        starts = [before.starts(update.op) for update in updates]
        _Body(entry, partitioned, FunctionBuilder(loop.body.block, view.location)).write(loop, updates, starts)
        entry.builder.insert(loop)
        entry.finish(loop.results)
        return entry.module(view, partitioned)


def _unroll(view: FusionView, updates: tuple[InPlaceUpdate, ...], device: Device) -> int:
    """Elements per thread, by XLA's choice."""
    unroll = elements_per_thread(view, device, math.prod(dims_of(updates[0].op.operands[1])))
    return unroll if _reads_are_separate(view, updates, unroll) else 1


def _reads_are_separate(view: FusionView, updates: tuple[InPlaceUpdate, ...], unroll: int) -> bool:
    """Whether the vectorizer can prove a thread's elements distinct: they are in one row, or no update reads what it replaces."""
    window = updates[0].op.operands[1]
    dims, order = dims_of(window), minor_to_major(window.type)
    if not dims or math.prod(dims) == dims[order[0]] or dims[order[0]] % unroll == 0:
        return True
    return all(user is u.op or isinstance(user, TupleOp) for u in updates for user in view.users[u.parameter])


def _updates(view: FusionView) -> tuple[InPlaceUpdate, ...]:
    return expected(find_in_place_updates(view), view, "in-place update")


def _partition(view: FusionView, updates: tuple[InPlaceUpdate, ...]) -> PartitionedComputation:
    # The updates have no users: these epilogues only prevent a function for the updates' own code.
    ends = [Epilogue((u.root,), (u.op,), (identity_map(dims_of(u.root.result)),)) for u in updates]
    return partition(view.computation, epilogues=ends)


@dataclass(frozen=True, eq=False)
class _Body:
    """Emits into the entry function: before the loop over the updates, or in its body."""

    entry: KernelEntry
    partitioned: PartitionedComputation
    builder: FunctionBuilder

    def starts(self, op: DynamicUpdateSliceOp) -> list[SSAValue]:
        """The first index of an update's window."""
        return op.clamped_starts(self.builder, lambda number: self._element(op, number, []), dims_of(op.operands[1]))

    def write(self, loop: LoopOp, updates: tuple[InPlaceUpdate, ...], starts: list[list[SSAValue]]) -> None:
        indices: list[SSAValue] = [*loop.map_results]
        values = [self._element(update.op, 1, indices) for update in updates]
        places = [self._place(update, [*indices, *start]) for update, start in zip(updates, starts, strict=True)]
        self.builder.insert(YieldOp(*self.builder.write(values, loop.iter_args, places)))

    def _place(self, update: InPlaceUpdate, indices: list[SSAValue]) -> list[SSAValue]:
        """Maps an index of the update to the result. `indices` are the element's indices, followed by the window's start."""
        place = build.apply_indexing(self.builder, update.op.update_to_result(), indices)
        return list(build.apply_indexing(self.builder, place_map(update.op, update.root), place))

    def _element(self, op: HloOp, number: int, indices: list[SSAValue]) -> SSAValue:
        """An element of operand `number` of `op`."""
        callee = self.partitioned.subgraph_of[owner_of(op.operands[number])]
        return self.builder.call(callee, [*self.entry.inputs, *indices])[0]
