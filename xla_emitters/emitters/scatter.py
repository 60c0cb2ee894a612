"""The scatter emitter: the grid covers the updates; each is combined with the result's element at window start + offset.

    %row = xla_gpu.pure_call @f_rows(%input, ..., %window, %c0) : (...) -> i32
    %start = arith.index_cast %row : i32 to index
    %inside = arith.cmpi ule, %start, %c999                                  unsigned, so negative starts are outside too
    %0 = scf.if %inside -> (tensor<1000x128xf32>) {
      %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x) -> (%dim0, %dim1, %dim2) in #map iter_args(%iter = %output) {
        %pure_call = xla_gpu.pure_call @f_updates(%input, ..., %dim0, %dim1, %dim2)
        %1 = xla_gpu.atomic_rmw %iter[%start + %dim1, %dim2] : tensor<1000x128xf32> {
        ^bb0(%current: f32):
          %2 = arith.addf %current, %pure_call : f32
          xla_gpu.yield %2 : f32
    ...

The result is in the array's buffer, so elements without updates keep their values (`graph/scatters.py`). If the program promises
unique indices, an element is read, combined and written by plain accesses; otherwise the update is atomic.

With distributed indices a warp processes a run of windows, and each lane the same few offsets in every window:

    starts of the run   7  7  7  9  9  -1  12        sum of the updates of windows 0, 1 and 2               combined with memory at 7
                                                     sum of the updates of windows 3 and 4                  combined with memory at 9 ...
Source: seed document, "Scatter emitter"; docs/reference/2 2.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    UnitAttr,
    VectorType,
)
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import delinearize_in_bounds, identity_map
from xla_emitters.device import Device
from xla_emitters.dialects import build
from xla_emitters.dialects.hlo.base import owner_of
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, minor_to_major
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, tensor, vector
from xla_emitters.dialects.xla_gpu import PACKED, AtomicRMWOp, LoopOp, YieldOp
from xla_emitters.emitters.elemental import FunctionBuilder, declare, emit_subgraph
from xla_emitters.emitters.emitter import Way, expected
from xla_emitters.emitters.entry_function import KernelEntry, entry_function
from xla_emitters.emitters.launch_ids import LaunchIds
from xla_emitters.emitters.partitioner import Epilogue, PartitionedComputation, partition, partition_called
from xla_emitters.graph.buffers import why_not_in_buffers
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.scatters import (
    VECTOR_BITS,
    WARPS,
    DistributedIndices,
    DistributedUpdates,
    arrays_in_place,
    combining_opcode,
    distribution_of,
    scatter_of,
)
from xla_emitters.graph.thread_work import ThreadWork, blocks_of_same_work
from xla_emitters.graph.view import FusionView
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.notes import decide


@dataclass(frozen=True)
class ScatterEmitter:
    """See the file's head.

    elements  updates per thread, where updates are distributed; None: XLA's choice
    packed    whether neighbouring 16-bit updates may be packed into words
    """

    elements: int | None = None
    packed: bool = False
    name = "scatter"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: the root is not a scatter, or is not in the buffer of the array that it updates."""
        arrays = arrays_in_place(view)
        return arrays if isinstance(arrays, str) else why_not_in_buffers(view, arrays)

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """Partitions into a function for each operand of indices and updates."""
        return _partition(view, _scatter(view))

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """Emitters that differ in the updates per thread and in how they are packed; XLA's choice is the first."""
        scatter = _scatter(view)
        own = distribution_of(view, scatter, device)
        if not isinstance(own, DistributedUpdates):
            return [Way(str(own), self)]
        bits = element_of(scatter.updates[0]).bits
        found = [Way(f"{own.elements_per_thread} updates a thread", self)]
        # Before sm_90 the widest atomic add is a word of two elements. Fewer updates per thread than XLA's choice need more instructions.
        counts = [count for count in (2, 4, 8) if count >= own.elements_per_thread and count * bits <= VECTOR_BITS]
        for count in counts:
            wide = distribution_of(view, scatter, device, count)
            if wide != DistributedUpdates(count):
                continue
            launches = [_launch(view, scatter, each, device) for each in (wide, own)]
            works = [ThreadWork(each.elements_per_thread) for each in (wide, own)]
            same = partial(_same_blocks, works, launches)
            for packed in (False, True) if bits == 16 else (False,):
                name = f"{count} updates a thread{', words of two' if packed else ''}"
                if packed or wide != own:
                    found.append(Way(name, replace(self, elements=count, packed=packed), same))
        return found

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        scatter = _scatter(view)
        partitioned = _partition(view, scatter)
        distribution = distribution_of(view, scatter, device, self.elements)
        name = scatter.instruction_name.data
        launch = _launch(view, scatter, distribution, device)
        decide("hero", f"%{name}", instructions=[name])
        decide("launch", f"{launch}, over the updates", grid=list(launch.grid), block=list(launch.block))
        decide("unroll", str(distribution), elements_per_thread=distribution.elements_per_thread)
        decide("partition", partitioned.summary, functions=partitioned.sizes)
        entry = entry_function(view, launch)
        called = partition_called(view.called)
        kernel = _Kernel(scatter, partitioned, called, entry, launch, self.packed)
        if isinstance(distribution, DistributedUpdates):
            results = kernel.distribute_updates(distribution)
        else:
            results = kernel.distribute_indices(distribution, device.threads_per_warp)
        entry.finish(results)
        return entry.module(view, partitioned, called)


def _launch(
    view: FusionView, scatter: ScatterOp, distribution: DistributedUpdates | DistributedIndices, device: Device
) -> LaunchDimensions:
    if isinstance(distribution, DistributedIndices):
        return LaunchDimensions((distribution.blocks, 1, 1), (WARPS * device.threads_per_warp, 1, 1))
    exact = launch_for(math.prod(dims_of(scatter.updates[0])), distribution.elements_per_thread, device, view.place)
    warps = -(-exact.threads // device.threads_per_warp)
    return LaunchDimensions(exact.grid, (warps * device.threads_per_warp, 1, 1))


def _same_blocks(
    works: Sequence[ThreadWork], launches: Sequence[LaunchDimensions], blocks: Sequence[int]
) -> Sequence[int]:
    """The blocks of the second work and launch that process the updates of `blocks` of the first."""
    return blocks_of_same_work(blocks, works[0], launches[0], works[1], launches[1])


def _scatter(view: FusionView) -> ScatterOp:
    return expected(scatter_of(view), view, "scatter emitter")


def _partition(view: FusionView, scatter: ScatterOp) -> PartitionedComputation:
    # The results have no users: this epilogue only prevents a function for the scatter's own code.
    end = Epilogue((scatter,), (scatter,), (identity_map(dims_of(scatter.arrays[0])),))
    return partition(view.computation, epilogues=[end])


@dataclass(frozen=True, eq=False)
class _Kernel:
    """The body of the entry."""

    scatter: ScatterOp
    partitioned: PartitionedComputation
    called: Mapping[str, PartitionedComputation]
    entry: KernelEntry
    launch: LaunchDimensions
    packed: bool

    @property
    def builder(self) -> FunctionBuilder:
        return self.entry.builder

    # ---- distributed updates

    def distribute_updates(self, distribution: DistributedUpdates) -> Sequence[SSAValue]:
        """Emits the loop over the updates; returns the outputs after it."""
        update = self.scatter.updates[0]
        order = minor_to_major(update.type)
        visited = work_item_map(self.launch, dims_of(update), order, distribution.elements_per_thread)
        if visited.is_known_empty:
            return self.entry.outputs

        def run() -> Sequence[SSAValue]:
            rows = build.apply_indexing(self.builder, self._of_ids(visited, self.scatter.scatter_dims), self.entry.ids)
            starts = self._starts(rows)
            return self._where_inside(starts, self.entry.outputs, lambda: self._update(visited, starts))

        # Beyond the last update there is no row of indices to read.
        sizes = dims_of(update)
        if not sizes:
            return run()
        slowest = next((dim for dim in reversed(order) if sizes[dim] > 1), order[-1])
        last = self._of_ids(visited, [slowest])
        covered = self.launch.blocks * self.launch.threads * distribution.elements_per_thread
        if covered <= math.prod(dims_of(update)) or last.num_symbols:
            return run()
        (major,) = build.apply_indexing(self.builder, last, self.entry.ids)
        count = build.constant_index(self.builder, sizes[slowest])
        return self._if(self._insert(arith.CmpiOp(major, count, "ult")), self.entry.outputs, run)

    def _of_ids(self, visited: IndexingMap, dims: Sequence[int]) -> IndexingMap:
        """The results `dims` of a map, without its constraints (so for all threads) and without symbols that they do not use."""
        results = tuple(visited.results[dim] for dim in dims)
        return IndexingMap(results, LaunchIds(self.launch).dims, visited.range_vars).remove_unused_symbols()[0]

    def _update(self, visited: IndexingMap, starts: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Combines the updates at `visited`, whose windows begin at `starts`, with the outputs; returns the new outputs."""

        def body(loop: LoopOp) -> Sequence[SSAValue]:
            values = [self._element(update, loop.map_results) for update in self.scatter.updates]
            place = build.apply_indexing(self.builder, self.scatter.update_to_result(), [*loop.map_results, *starts])
            return self._combined(loop.iter_args, place, values)

        return self._loop(self.entry.outputs, visited, body)

    # ---- distributed indices

    def distribute_indices(self, distribution: DistributedIndices, lanes: int) -> Sequence[SSAValue]:
        """Emits the distributed indices' loops; returns the output after all updates."""
        (update,) = self.scatter.updates
        (output,) = self.entry.outputs
        run, positions = self._run_map(distribution, lanes), self._position_map(distribution, lanes)
        outside = build.constant_index(self.builder, -1)
        never = self._insert(arith.ConstantOp(IntegerAttr.from_bool(False)))
        vector_type = VectorType(
            element_of(update).storage_type, [distribution.steps * distribution.elements_per_thread]
        )
        nothing = self._insert(arith.ConstantOp(_zeros(vector_type)))
        known = [outside] * len(self.scatter.mapped)

        def flush(starts: Sequence[SSAValue], sums: SSAValue, target: SSAValue) -> Sequence[SSAValue]:
            def body(loop: LoopOp) -> Sequence[SSAValue]:
                *place, slot = loop.map_results
                value = self._insert(vector.ExtractOp(sums, [slot], vector_type.element_type))
                zero = build.constant_index(self.builder, 0)
                at = build.apply_indexing(self.builder, self.scatter.update_to_result(), [zero, *place, *starts])
                return self._combined(loop.iter_args, at, [value])

            return self._loop([target], positions, body)

        def gather(window: SSAValue, sums: SSAValue, is_first: bool) -> Sequence[SSAValue]:
            def body(loop: LoopOp) -> Sequence[SSAValue]:
                *place, slot = loop.map_results
                (sums_so_far,) = loop.iter_args
                value = self._element(update, [window, *place])
                if not is_first:
                    old = self._insert(vector.ExtractOp(sums_so_far, [slot], vector_type.element_type))
                    (value,) = self._new_elements([old, value])
                return [self._insert(vector.InsertOp(value, sums_so_far, [slot]))]

            return self._loop([sums], positions, body)

        def body(loop: LoopOp) -> Sequence[SSAValue]:
            *before, was_inside, sums, target = loop.iter_args
            (window,) = loop.map_results
            starts = self._starts([window])
            changes = [self._insert(arith.CmpiOp(old, new, "ne")) for old, new in zip(before, starts, strict=True)]
            changed = self._all(changes, arith.OrIOp)
            is_end = self._insert(arith.AndIOp(changed, was_inside))
            target = self._if(is_end, [target], lambda: flush(before, sums, target))[0]
            is_inside = self._inside(starts)

            def combine() -> Sequence[SSAValue]:
                return self._if(
                    changed, [sums], lambda: gather(window, sums, True), lambda: gather(window, sums, False)
                )

            sums = self._if(is_inside, [sums], combine)[0]
            return [*starts, is_inside, sums, target]

        *starts, is_inside, sums, target = self._loop([*known, never, nothing, output], run, body)
        return self._if(is_inside, [target], lambda: flush(starts, sums, target))

    def _run_map(self, distribution: DistributedIndices, lanes: int) -> IndexingMap:
        """The map from ids and two symbols, which count the windows of a run, to the window's number."""
        ids = LaunchIds(self.launch)
        loads = distribution.windows_per_warp // distribution.starts_per_load
        number = ids.symbol(0) * distribution.starts_per_load + ids.symbol(1)
        warp = ids.block * WARPS + ids.thread // lanes
        window = warp * distribution.windows_per_warp + number
        symbols = (
            Variable(Interval(0, loads - 1), "index_id_loop"),
            Variable(Interval(0, distribution.starts_per_load - 1), "index_vector_id"),
        )
        bounds = ((window, Interval(0, distribution.windows - 1)),)
        return IndexingMap((window,), ids.dims, symbols, constraints=bounds).simplify().remove_unused_symbols()[0]

    def _position_map(self, distribution: DistributedIndices, lanes: int) -> IndexingMap:
        """The map from ids and two symbols, which count a lane's elements in a window, to their index in the window and their number."""
        ids = LaunchIds(self.launch)
        step, place = ids.symbol(0), ids.symbol(1)
        at_once = distribution.elements_per_thread
        position = ids.thread % lanes * at_once + step * (lanes * at_once) + place
        results = delinearize_in_bounds(position, dims_of(self.scatter.updates[0])[1:])
        symbols = (
            Variable(Interval(0, distribution.steps - 1), "update_loop"),
            Variable(Interval(0, at_once - 1), "vector_id"),
        )
        bounds = ((position, Interval(0, distribution.elements - 1)),)
        full = IndexingMap((*results, step * at_once + place), ids.dims, symbols, constraints=bounds)
        return full.simplify().remove_unused_symbols()[0]

    # ---- windows

    def _starts(self, rows: Sequence[SSAValue]) -> list[SSAValue]:
        """The start of the window that a row of indices gives, in each of the mapped dimensions, as `index` values."""
        indices, along = self.scatter.indices, self.scatter.index_vector_dim.value.data
        starts = list[SSAValue]()
        for number in range(len(self.scatter.mapped)):
            place = list(rows)
            if along < len(dims_of(indices)):
                place.insert(along, build.constant_index(self.builder, number))
            starts.append(self.scatter.start_as_index(self.builder, self._element(indices, place)))
        return starts

    def _inside(self, starts: Sequence[SSAValue]) -> SSAValue:
        """i1: whether windows that begin at `starts` are inside the array."""
        checks = list[SSAValue]()
        for start, last in zip(starts, self.scatter.last_starts, strict=True):
            checks.append(self._insert(arith.CmpiOp(start, build.constant_index(self.builder, last), "ule")))
        return self._all(checks, arith.AndIOp)

    def _where_inside(
        self, starts: Sequence[SSAValue], before: Sequence[SSAValue], body: Callable[[], Sequence[SSAValue]]
    ) -> Sequence[SSAValue]:
        return self._if(self._inside(starts), before, body) if starts else body()

    # ---- elements

    def _element(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """An element of the operand `value`."""
        callee = self.partitioned.subgraph_of[owner_of(value)]
        return self.builder.call(callee, [*self.entry.inputs, *indices])[0]

    def _combined(
        self, targets: Sequence[SSAValue], place: Sequence[SSAValue], values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The tensors `targets` after combining their elements at `place` with `values`."""
        if self.scatter.has_unique_indices and not self._reads_shared_bytes:
            # Reads the parameter, which shares the result's buffer, before the writing loop, so that several elements are loaded at once.
            old = [self._element(array, place) for array in self.scatter.arrays]
            combined = self._new_elements([*old, *values])
            return [
                self._insert(tensor.InsertOp(value, target, list(place)))
                for value, target in zip(combined, targets, strict=True)
            ]
        (target,) = targets
        joins = {PACKED: UnitAttr()} if self.packed else None
        update = self.builder.insert(AtomicRMWOp(target, place, attributes=joins))
        with self.builder.inside(InsertPoint.at_end(update.body.block)):
            self.builder.insert(YieldOp(*self._new_elements([update.current, *values])))
        return [update.result]

    @property
    def _reads_shared_bytes(self) -> bool:
        """Whether an update reads a byte that also holds elements which other threads may change."""
        (array, *others), body = self.scatter.arrays, self.called[self.scatter.to_apply.root_reference.data].computation
        return not others and element_of(array).bits < 8 and combining_opcode(body) != "parameter"

    def _new_elements(self, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """The new elements: the scatter's computation, inlined, applied to the old elements and the updates."""
        combiner = self.called[self.scatter.to_apply.root_reference.data]
        function = declare(combiner.root, combiner.computation.parameters, scalars=True)
        emit_subgraph(combiner.root, combiner, function, self.called)
        block = function.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
        *ops, end = block.ops
        for op in ops:
            # The builder may return an equal constant that was emitted before.
            inserted = self.builder.insert(op.clone(value_mapper=values))
            values.update(zip(op.results, inserted.results, strict=True))
        return [values[value] for value in end.operands]

    # ---- structure

    def _insert(
        self,
        op: arith.CmpiOp
        | arith.AndIOp
        | arith.OrIOp
        | arith.ConstantOp
        | tensor.InsertOp
        | vector.ExtractOp
        | vector.InsertOp,
    ) -> SSAValue:
        return self.builder.insert(op).results[0]

    def _all(self, parts: Sequence[SSAValue], combine: type[arith.AndIOp | arith.OrIOp]) -> SSAValue:
        """Joins one or more conditions by `combine`."""
        whole, *others = parts
        for part in others:
            whole = self._insert(combine(whole, part))
        return whole

    def _if(
        self,
        condition: SSAValue,
        before: Sequence[SSAValue],
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]] | None = None,
    ) -> Sequence[SSAValue]:
        """scf.if: `then(before)` if `condition` holds, else `otherwise(before)`; without `otherwise`, the values unchanged."""
        types = [value.type for value in before]
        return self.builder.branch(condition, types, then, otherwise or (lambda: before))

    def _loop(
        self, inits: Sequence[SSAValue], indexing_map: IndexingMap, body: Callable[[LoopOp], Sequence[SSAValue]]
    ) -> Sequence[SSAValue]:
        """A loop that runs `body` for all points of `indexing_map` over the ids."""
        loop = self.builder.insert(LoopOp(self.entry.ids, inits, indexing_map))
        with self.builder.inside(InsertPoint.at_end(loop.body.block)):
            self.builder.insert(YieldOp(*body(loop)))
        return loop.results


def _zeros(vector_type: VectorType) -> DenseIntOrFPElementsAttr:
    if isa(vector_type, VectorType[AnyFloat]):
        return DenseIntOrFPElementsAttr.from_list(vector_type, [0.0])
    assert isa(vector_type, VectorType[IntegerType])
    return DenseIntOrFPElementsAttr.from_list(vector_type, [0])
