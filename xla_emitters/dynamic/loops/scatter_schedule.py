"""The schedules of a scatter. On a CPU one update after the other; on a GPU all updates of different elements at once.

    scatter %x, %i, %u -> %y              parallel: %y[...] = %x[...], unless the result is the array itself

    CPU                                   parallel of one: for each update, in row-major order:
                                            %at = starts of its window + place in it
                                            if the window is inside: %y[%at] = body(%y[%at], update)
    GPU, indices said to be unique        parallel for each update: the same
    GPU, body is s32 or s64 sum,          parallel for each update: the same by one atomic instruction, whose order changes nothing
      extremum, bits; float extremum
    GPU, otherwise                        parallel for each window: %keys = the element at which it begins, -1 if it is not inside
                                          sort %keys and the windows' numbers together (`merge_passes`), stably
                                          parallel for each window whose key is not that of the one before, and each place in it:
                                            a = %y[%at];  for all windows with this key, in their order: a = body(a, update);  %y[%at] = a

So a sum of floats has one order, that of a CPU, run after run. If windows that begin elsewhere may overlap, each element of the updates
counts as a window. `disc.atomics` on the fusion permits atomic sums of floats. Several arrays are updated together. An update whose
window is not inside the array is left out.
Source: StableHLO specification, "scatter"; docs/decisions/16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import starmap
from operator import eq

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.column_reduction_schedule import ATOMICS, atomic_kind_of
from xla_emitters.dynamic.loops.element_context import BufferElement
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.merge_passes import S64, MergePasses, bisected
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.graph.reduction_starts import combining_opcodes

NAME = "loop"
BITS_OF_PLACES = 32
"""Steps of a bisection among the windows."""


def has_scatter_schedule(op: BufferOp) -> bool:
    """Whether its computation has code, and the sizes of its updates are known to be those that it needs.

    Loops do not check sizes, the runtime does. Windows whose sizes have names are checked before a run (`sizes`).
    """
    made = op.as_hlo()
    assert isinstance(made, ScatterOp)
    count = len(op.outputs)
    sizes = BufferSizes()
    array, *others = map(sizes.of, op.inputs[:count])
    rows = sizes.of(op.inputs[count])
    updates, *more = map(sizes.of, op.inputs[count + 1 :])
    windows = integers(made.update_window_dims)
    dropped = {*integers(made.inserted_window_dims), *integers(made.input_batching_dims)}
    limits = (size for dim, size in enumerate(array) if dim not in dropped)
    of_rows = (size for dim, size in enumerate(rows) if dim != made.index_vector_dim.value.data)
    kept = (size for dim, size in enumerate(updates) if dim not in windows)
    return (
        has_scalar_code(_computation(op))
        and all(other == array for other in others)
        and all(other == updates for other in more)
        and all(starmap(eq, zip(kept, of_rows, strict=True)))
        and all(
            updates[dim] == limit or (sizes.is_named(updates[dim]) and sizes.is_named(limit))
            for dim, limit in zip(windows, limits, strict=True)
        )
    )


def _computation(op: BufferOp) -> ComputationOp:
    made = op.as_hlo()
    assert isinstance(made, ScatterOp)
    return find_computation(op, made.to_apply)


def emit_scatter(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one scatter."""
    scatter = _Scatter(fusion)
    for number, buffer in enumerate(scatter.arrays):
        fill(fusion, buffer, scatter.op.inputs[number], is_scalar=False)
    if fusion.is_cpu:
        one_after_the_other(fusion, scatter.updates[0], scatter.update)
    elif scatter.hlo.has_unique_indices:
        scatter.in_any_order(scatter.update)
    elif scatter.atomic_kind is not None:
        scatter.in_any_order(scatter.update_atomically)
    else:
        scatter.in_sorted_order()


def fill(fusion: FusionLoops, buffer: SSAValue, source: SSAValue, *, is_scalar: bool) -> None:
    """The loop that initializes a result with the elements of an operand, unless it is the operand."""
    if buffer is source:
        return

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        indices = code.index.delinearize(variables[0], fusion.numbers.sizes(buffer))
        code.store(code.load(source, () if is_scalar else indices), buffer, indices)

    fusion.parallel(NAME, [fusion.numbers.count(buffer)], [1], body)


def one_after_the_other(
    fusion: FusionLoops, visited: SSAValue, visit: Callable[[KernelCode, list[SSAValue]], None]
) -> None:
    """Loops in one block, over all indices of a buffer in row-major order."""
    sizes = fusion.numbers.sizes(visited)

    def nest(code: KernelCode, at: list[SSAValue]) -> None:
        if len(at) == len(sizes):
            return visit(code, at)
        with code.each(0, sizes[len(at)]) as (inner, index):
            nest(inner, [*at, index])
        return None

    fusion.parallel(NAME, [1], [1], lambda code, _: nest(code, []))


class _Scatter:
    """One scatter.

    arrays   the results
    updates  the updates of each
    combine  the computation: old elements, then updates
    """

    def __init__(self, fusion: FusionLoops) -> None:
        self.fusion, (self.op,) = fusion, fusion.roots
        made = self.op.as_hlo()
        assert isinstance(made, ScatterOp)
        self.hlo, self.arrays = made, self.op.outputs
        self.updates = self.op.inputs[len(self.arrays) + 1 :]
        self.combine = _computation(self.op)
        self.sizes = fusion.numbers.sizes(self.arrays[0])
        self.of_updates = fusion.numbers.sizes(self.updates[0])
        self.windows = integers(made.update_window_dims)
        self.dropped = {*integers(made.inserted_window_dims), *integers(made.input_batching_dims)}

    @property
    def atomic_kind(self) -> str | None:
        """The kind of an atomic update that has the computation's meaning, and the same result in any order."""
        if len(self.arrays) != 1:
            return None
        (opcode,) = combining_opcodes(self.combine)
        kind = atomic_kind_of(opcode, tensor_of(self.arrays[0].type).element_type)
        return None if kind == "addf" and ATOMICS not in self.fusion.op.attributes else kind

    # --------------------------------------------------------------------------------------------------- update by update

    def update(self, code: KernelCode, at: Sequence[SSAValue]) -> None:
        """Updates what the element of the updates at these indices updates."""

        def change(inner: KernelCode, indices: Sequence[SSAValue]) -> None:
            old = [inner.load(buffer, indices) for buffer in self.arrays]
            self._store(inner, self._combined(inner, old, at), indices)

        self._where_inside(code, at, change)

    def update_atomically(self, code: KernelCode, at: Sequence[SSAValue]) -> None:
        """The same by an atomic instruction."""
        kind = self.atomic_kind
        assert kind is not None
        (buffer,), (updates,) = self.arrays, self.updates

        def change(inner: KernelCode, indices: Sequence[SSAValue]) -> None:
            inner.update(kind, inner.load(updates, at), buffer, indices)

        self._where_inside(code, at, change)

    def in_any_order(self, visit: Callable[[KernelCode, Sequence[SSAValue]], None]) -> None:
        """A thread for each element of the updates."""
        self.fusion.parallel(
            NAME,
            [self.fusion.numbers.count(self.updates[0])],
            [1],
            lambda code, ids: visit(code, code.index.delinearize(ids[0], self.of_updates)),
        )

    def _where_inside(
        self, code: KernelCode, at: Sequence[SSAValue], change: Callable[[KernelCode, Sequence[SSAValue]], None]
    ) -> None:
        checks, place = self.target(code, at)
        with code.where(code.index.every(checks)) if checks else nullcontext(code) as inner:
            change(inner, [inner.index.value(index) for index in place])

    def _combined(self, code: KernelCode, old: Sequence[SSAValue], at: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return emit_scalars(code, self.combine, [*old, *(code.load(updates, at) for updates in self.updates)])

    def _store(self, code: KernelCode, values: Sequence[SSAValue], indices: Sequence[SSAValue]) -> None:
        for value, buffer in zip(values, self.arrays, strict=True):
            code.store(value, buffer, indices)

    def target(self, code: KernelCode, at: Sequence[SSAValue]) -> tuple[list[SSAValue], list[Number]]:
        """Conditions under which the element of the updates at these indices updates the arrays, and the index that it updates."""
        e = BufferElement(code, self.op, at)
        rows, along = len(self.arrays), self.hlo.index_vector_dim.value.data
        rank = len(e.sizes(rows))
        batching, batched = e.lists("input_batching_dims"), e.lists("scatter_indices_batching_dims")
        mapped = e.lists("scatter_dims_to_operand_dims")
        kept = (dim for dim in range(len(self.of_updates)) if dim not in self.windows)
        row_of = dict(zip((dim for dim in range(rank) if dim != along), kept, strict=True))
        window, checks, place = iter(self.windows), list[SSAValue](), list[Number]()
        for dim, size in enumerate(self.sizes):
            index: Number = 0
            extent: Number = 1
            if dim not in self.dropped:
                in_updates = next(window)
                index, extent = at[in_updates], self.of_updates[in_updates]
            if dim in batching:
                index = at[row_of[batched[batching.index(dim)]]]
            if dim in mapped:
                number = e.index.value(mapped.index(dim))
                row = [number if i == along else at[row_of[i]] for i in range(rank)]
                start, last = e.operand(rows, row), e.index.subtract(size, extent)
                clamped = e.index.clamp(start, element_of(self.hlo.operands[rows]), e.index.maximum(last, 0))
                # A start that is inside is what clamping leaves; an array without elements has no last start.
                back = code.insert(arith.IndexCastOp(e.index.value(clamped), start.type)).result
                checks.append(code.insert(arith.CmpiOp(back, start, "eq")).result)
                if not isinstance(last, int) or last < 0:
                    checks.append(e.index.compare("sge", last, 0))
                index = e.index.add(index, clamped)
            place.append(index)
        return checks, place

    # ------------------------------------------------------------------------------------------------ in the order of keys

    def in_sorted_order(self) -> None:
        """Sorts the windows by the elements at which they begin, and gives each of these a thread for each place in the window."""
        fusion, host = self.fusion, self.fusion.numbers.code
        is_apart = all(dim in self.dropped for dim in self.hlo.mapped)
        of_window = self.windows if is_apart else ()
        of_rows = [dim for dim in range(len(self.of_updates)) if dim not in of_window]
        rows = [self.of_updates[dim] for dim in of_rows]
        count, places = host.product(rows), [self.of_updates[dim] for dim in of_window]
        arrays, runs, copies = (
            [fusion.scratch([count], i64, "runs"), fusion.scratch([count], i64, "runs")] for _ in range(3)
        )

        def indices(code: KernelCode, row: SSAValue, place: Sequence[SSAValue]) -> list[SSAValue]:
            by_dim = dict(zip(of_rows, code.index.delinearize(row, rows), strict=True))
            by_dim |= dict(zip(of_window, place, strict=True))
            return [by_dim[dim] for dim in range(len(self.of_updates))]

        def key(code: KernelCode, ids: Sequence[SSAValue]) -> None:
            (row,) = ids
            checks, at = self.target(code, indices(code, row, [code.index.value(0)] * len(of_window)))
            begin = code.index.linearize([code.index.value(index) for index in at], self.sizes)
            found = code.insert(arith.IndexCastOp(begin, i64)).result
            if checks:
                found = code.insert(arith.SelectOp(code.index.every(checks), found, constant(code, -1, i64))).result
            code.store(found, arrays[0], [row])
            code.store(code.insert(arith.IndexCastOp(row, i64)).result, arrays[1], [row])

        fusion.parallel(NAME, [count], [1], key)

        def before(code: KernelCode, arguments: Sequence[SSAValue]) -> SSAValue:
            return code.insert(arith.CmpiOp(arguments[0], arguments[1], "slt")).result

        MergePasses(fusion, [count], 0, before).sort(arrays, runs, copies)
        keys, order = runs

        def visit(code: KernelCode, ids: Sequence[SSAValue]) -> None:
            number, *place = code.index.delinearize(ids[0], [count, *places])
            own = code.load(keys, [number])
            above = code.index.select(code.index.compare("sgt", number, 0), code.index.subtract(number, 1), 0)
            is_new = code.insert(arith.CmpiOp(code.load(keys, [above]), own, "ne")).result
            is_first = code.insert(arith.OrIOp(is_new, code.index.compare("eq", number, 0))).result
            is_inside = code.insert(arith.CmpiOp(own, constant(code, 0, i64), "sge")).result
            with code.where(code.index.every([is_first, is_inside])) as inner:
                update(inner, number, own, place)

        last = host.subtract(host.product(self.sizes), 1)

        def update(code: KernelCode, first: SSAValue, own: SSAValue, place: Sequence[SSAValue]) -> None:
            begin = code.index.delinearize(code.index.value(code.index.clamp(own, S64, last)), self.sizes)
            inner_dims = iter(place if is_apart else ())
            at = [
                code.index.value(code.index.add(index, next(inner_dims)))
                if is_apart and dim not in self.dropped
                else index
                for dim, index in enumerate(begin)
            ]

            def has_key(inner: KernelCode, number: SSAValue) -> SSAValue:
                return inner.insert(arith.CmpiOp(inner.load(keys, [number]), own, "eq")).result

            def combine(inner: KernelCode, number: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
                row = inner.index.clamp(inner.load(order, [number]), S64, inner.index.subtract(count, 1))
                return self._combined(inner, old, indices(inner, inner.index.value(row), place))

            end = bisected(code, code.index.add(first, 1), count, count, BITS_OF_PLACES, has_key)
            found = code.loop(first, end, 1, [code.load(buffer, at) for buffer in self.arrays], combine)
            self._store(code, found, at)

        fusion.parallel(NAME, [host.product([count, *places])], [1], visit)
