"""The schedules of a sort: a stable merge sort by the op's own comparator, row by row on a CPU, pass by pass on a GPU (`merge_passes`).

    lmhlo.sort %x, %i -> %y, %j {dimensions = 1, to_apply = @before}

      %a, %b = alloc: as the results
      parallel for each row:
        %y, %j [...] = %x, %i [...]
        for width = 1; width < n; width *= 4:
          merge runs of width         from %y, %j to %a, %b
          merge runs of 2 * width     from %a, %b to %y, %j

    merge:  for each pair of runs, [first, middle) and [middle, end):   left = first, right = middle
              for place in first .. end:
                is_right = right < end and (left >= middle or @before(from[right], from[left]))
                to[place] = from[is_right ? right : left];  increment the index that was taken

If all readers use the first k elements alone, k at most MOST_FIRST, and the comparator is an order (`first_read`), nothing is sorted:

      parallel for each row:
        for place = 0; place < n:
          if place < k or @before(%x[place], %y[k - 1]):
            shift the elements of %y that come after %x[place];  %y, %j [there] = %x, %i [place]

The sort is stable: a right element is taken first only if it is strictly before the left one. With a comparator that is not an order the
result is still a permutation: each element is taken once. A row is all elements along the sorted dimension.
Source: D. E. Knuth, "The Art of Computer Programming" vol. 3, 5.2.4 (merge sort from the bottom up); StableHLO specification, "sort".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.dynamic_shape_ops import RealDynamicSliceOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import SliceOp, rows
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Kind
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.buffer_uses import asks_size, frees, uses_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.buffer_numbers import constant_in
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.merge_passes import Before, MergePasses
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.dynamic.loops.schedule import FusionLoops

NAME = "loop"
ROUNDS = 31
"""How often a run's width can be multiplied by 4."""
FIRST = "disc.first"
"""Attribute of a sort: how many of the first elements along its dimension are read."""
RUNS = "disc.sorted_runs"
"""Attribute of a fusion that is a sort, for a GPU: it only sorts runs of so many elements, whose halves are sorted (`merge_passes`)."""
MOST_FIRST = 32
"""Limit of k: an element that enters the list shifts up to k others."""


def has_sort_schedule(op: BufferOp) -> bool:
    """Whether the comparator has code, and all arrays are known to have one shape: loops do not check this, the runtime does."""
    sizes = BufferSizes()
    first, *others = map(sizes.of, (*op.inputs, *op.outputs))
    return has_scalar_code(_comparator(op)) and all(other == first for other in others)


def has_library_sort(op: BufferOp) -> bool:
    """Whether a library sorts by the comparator: operands compared one after the other."""
    return keys_of(_comparator(op)) is not None


def first_read(op: BufferOp) -> int | None:
    """An upper bound of the first elements of a sort that are read; None: unknown, more than MOST_FIRST, or the comparator is not an order.

    With a comparator that is not an order for some values, such as `<` for NaN, the first elements may differ from those of the whole sort.
    """
    keys = keys_of(_comparator(op))
    if keys is None:
        return None
    operands = list[SSAValue](op.as_hlo().operands)
    for key in keys:
        number: int = key["operand"]
        if element_of(operands[number]).kind in (Kind.FLOAT, Kind.COMPLEX) and key["order"] == "numeric":
            return None
    (along,) = integers(op.properties.get("dimensions"))
    most = 0
    for buffer in op.outputs:
        for use in uses_of(buffer):
            if use.operation is op or frees(use) or asks_size(use):
                continue
            limit = _limit(use.operation, along) if use.index == 0 else None
            if limit is None or limit > MOST_FIRST:
                return None
            most = max(most, limit)
    return most or None


def _limit(reader: Operation, along: int) -> int | None:
    """An upper bound of the first elements along a dimension that a slice reads; None: unknown, or no slice."""
    made = reader.as_hlo() if isinstance(reader, BufferOp) else None
    if isinstance(made, SliceOp):
        return rows(made.ranges)[along][1]
    if not (isinstance(made, RealDynamicSliceOp) and isinstance(reader, BufferOp)):
        return None
    start, stride = (constant_in(reader.inputs[number]) for number in (1, 3))
    count = dims_of(made.result)[along]
    if start is None or stride is None or start.array()[along] != 0 or stride.array()[along] != 1:
        return None
    return count if count >= 0 else None


def _comparator(op: BufferOp) -> ComputationOp:
    made = op.as_hlo()
    assert isinstance(made, RuleOp)
    return find_computation(op, made.symbols("to_apply")[0])


def emit_sort(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one sort."""
    (root,) = fusion.roots
    (along,) = integers(root.properties.get("dimensions"))
    sizes = fusion.numbers.sizes(root.outputs[0])
    others = [size for dim, size in enumerate(sizes) if dim != along]
    comparator = _comparator(root)

    def before(code: KernelCode, arguments: Sequence[SSAValue]) -> SSAValue:
        (holds,) = emit_scalars(code, comparator, arguments)
        return code.insert(arith.CmpiOp(holds, constant(code, 0, holds.type), "ne")).result

    if not fusion.is_cpu:
        passes, runs = MergePasses(fusion, sizes, along, before), fusion.op.attributes.get(RUNS)
        if isinstance(runs, IntegerAttr):
            return passes.sort_runs(runs.value.data, root.inputs, root.outputs)
        return passes.sort(root.inputs, root.outputs, [buffer_like(fusion, buffer) for buffer in root.outputs])
    row = SortedRow(sizes[along], along, before)
    first = root.attributes.get(FIRST)
    if isinstance(first, IntegerAttr):
        return _emit_first(fusion, row, first.value.data, others)
    copies = [buffer_like(fusion, buffer) for buffer in root.outputs]

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        row.others = code.index.delinearize(variables[0], others)
        code.written |= {*root.outputs, *copies}
        with code.each(0, row.size) as (inner, place):
            row.move(inner, root.inputs, place, root.outputs, place)

        row.sort(code, root.outputs, copies)

    fusion.parallel(NAME, [fusion.numbers.code.product(others)], [1], body)
    return None


def _emit_first(fusion: FusionLoops, row: SortedRow, count: int, others: Sequence[Number]) -> None:
    """The loops that find the first `count` of each row."""
    (root,) = fusion.roots

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        row.others = code.index.delinearize(variables[0], others)
        code.written |= set(root.outputs)

        with code.each(0, row.size) as (inner, place):
            index = inner.index
            # Before the list is full its last element is undefined, but its index is inside the row.
            last = index.value(index.minimum(index.subtract(row.size, 1), count - 1))
            is_before = row.is_before(inner, root.inputs, place, root.outputs, last)
            has_room = index.compare("slt", place, count)
            with inner.where(inner.insert(arith.OrIOp(has_room, is_before)).result) as branch:

                def step(code: KernelCode, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                    (hole,) = carried
                    index = code.index
                    above = index.select(index.compare("sgt", hole, 0), index.subtract(hole, 1), 0)
                    comes_after = row.is_before(code, root.inputs, place, root.outputs, above)
                    moves = index.every([index.compare("sgt", hole, 0), comes_after])
                    with code.where(moves) as inside:
                        row.move(inside, root.outputs, above, root.outputs, hole)
                    return (index.select(moves, above, hole),)

                start = branch.index.value(branch.index.minimum(place, count - 1))
                (hole,) = branch.loop(0, count - 1, 1, [start], step) if count > 1 else (start,)
                row.move(branch, root.inputs, place, root.outputs, hole)

    fusion.parallel(NAME, [fusion.numbers.code.product(others)], [1], body)


def buffer_like(fusion: FusionLoops, buffer: SSAValue, element: Attribute | None = None) -> SSAValue:
    """A buffer of the same sizes, of another element type if one is given: allocated before the fusion, freed after it."""
    return fusion.scratch(fusion.numbers.sizes(buffer), element or tensor_of(buffer.type).element_type, "runs")


class SortedRow:
    """The elements along the dimension that is sorted, at `others` along all others.

    size    how many
    along   the dimension
    before  the order
    """

    def __init__(self, size: Number, along: int, before: Before) -> None:
        self.size = size
        self.others: Sequence[SSAValue] = ()
        self._along = along
        self._before = before

    def at(self, place: SSAValue) -> list[SSAValue]:
        """The indices of an element."""
        return [*self.others[: self._along], place, *self.others[self._along :]]

    def move(
        self,
        code: KernelCode,
        sources: Sequence[SSAValue],
        source: SSAValue,
        targets: Sequence[SSAValue],
        target: SSAValue,
    ) -> None:
        """Copies one element of each array."""
        for array, to in zip(sources, targets, strict=True):
            code.store(code.load(array, self.at(source)), to, self.at(target))

    def sort(self, code: KernelCode, arrays: Sequence[SSAValue], copies: Sequence[SSAValue]) -> None:
        """Sorts the arrays together; the copies have any elements, before and after."""

        def round_(inner: KernelCode, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (width,) = carried
            with inner.where(inner.index.compare("slt", width, self.size)) as branch:
                self.merge(branch, arrays, copies, width)
                self.merge(branch, copies, arrays, branch.index.multiply(width, 2))
            return (inner.index.value(inner.index.multiply(width, 4)),)

        code.loop(0, ROUNDS, 1, [code.index.value(1)], round_)

    def merge(self, code: KernelCode, sources: Sequence[SSAValue], targets: Sequence[SSAValue], width: Number) -> None:
        """Merges runs of this width, in pairs."""
        with code.each(0, self.size, code.index.multiply(width, 2)) as (outer, first):
            index = outer.index
            middle = index.minimum(index.add(first, width), self.size)
            end = index.minimum(index.add(middle, width), self.size)
            last = index.value(index.subtract(self.size, 1))

            def take(inner: KernelCode, place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                left, right = carried
                index = inner.index
                # A run that has ended is not read, but its index may be beyond the row.
                inside = index.value(index.minimum(right, last))
                is_before = self.is_before(inner, sources, inside, sources, left)
                has_right = index.compare("slt", right, end)
                is_last = index.compare("sge", left, middle)
                wins = inner.insert(arith.OrIOp(is_last, is_before)).result
                is_right = inner.insert(arith.AndIOp(has_right, wins)).result
                self.move(inner, sources, index.select(is_right, right, left), targets, place)
                return (
                    index.select(is_right, left, index.add(left, 1)),
                    index.select(is_right, index.add(right, 1), right),
                )

            outer.loop(first, end, 1, [first, index.value(middle)], take)

    def is_before(
        self, code: KernelCode, arrays: Sequence[SSAValue], one: SSAValue, others: Sequence[SSAValue], other: SSAValue
    ) -> SSAValue:
        """i1: what the order says of an element of some arrays, and one of others."""
        arguments = [
            code.load(array, self.at(place))
            for pair in zip(arrays, others, strict=True)
            for array, place in zip(pair, (one, other), strict=True)
        ]
        return self._before(code, arguments)
