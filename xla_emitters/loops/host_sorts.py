"""The schedule of a sort on a CPU: a stable merge sort by the op's own comparator.

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
                to[place] = from[is_right ? right : left];  the one that was taken counts up

What the comparator calls equal stays in order, since only what is before its left one is taken first. By a comparator that is no order the
result is still a permutation: each element is taken once. A row is all elements along the dimension that is sorted.
Source: D. E. Knuth, "The Art of Computer Programming" vol. 3, 5.2.4 (merge sort from the bottom up); StableHLO specification, "sort".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from xla_emitters.buffers.buffer_sizes import BufferSizes
from xla_emitters.buffers.index_code import Number
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.scalar_code import emit_scalars, has_scalar_code
from xla_emitters.loops.schedule import FusionLoops

NAME = "loop"
ROUNDS = 31
"""Times that a run's width can be multiplied by 4."""


def has_sort_schedule(op: BufferOp) -> bool:
    """Whether the comparator has code, and all arrays are known to be of one shape: loops do not check it, the runtime does."""
    sizes = BufferSizes()
    first, *others = map(sizes.of, (*op.inputs, *op.outputs))
    return has_scalar_code(_comparator(op)) and all(other == first for other in others)


def _comparator(op: BufferOp) -> ComputationOp:
    made = op.as_hlo()
    assert isinstance(made, RuleOp)
    return find_computation(op, made.symbols("to_apply")[0])


def emit_sort(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one sort."""
    (root,) = fusion.roots
    (along,) = integers(root.properties.get("dimensions"))  # pyright: ignore[reportArgumentType]
    sizes = fusion.numbers.sizes(root.outputs[0])
    others = [size for dim, size in enumerate(sizes) if dim != along]
    copies = [_buffer_like(fusion, buffer) for buffer in root.outputs]
    row = _Row(root, sizes[along], along)

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        row.others = code.index.delinearize(variables[0], others)
        code.written |= {*root.outputs, *copies}

        def copy(inner: KernelCode, place: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            row.move(inner, root.inputs, place, root.outputs, place)
            return ()

        code.loop(0, row.size, 1, (), copy)

        def round_(inner: KernelCode, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (width,) = carried

            def merge(branch: KernelCode) -> Sequence[SSAValue]:
                row.merge(branch, root.outputs, copies, width)
                row.merge(branch, copies, root.outputs, branch.index.multiply(width, 2))
                return ()

            inner.branch(inner.index.compare("slt", width, row.size), (), merge)
            return (inner.index.value(inner.index.multiply(width, 4)),)

        code.loop(0, ROUNDS, 1, [code.index.value(1)], round_)

    fusion.parallel(NAME, [fusion.numbers.code.product(others)], [1], body)


def _buffer_like(fusion: FusionLoops, buffer: SSAValue) -> SSAValue:
    """A buffer of the same sizes: allocated before the fusion, freed after it."""
    assert isa(buffer.type, MemRefType[Attribute])
    sizes, host = fusion.numbers.sizes(buffer), fusion.numbers.code
    unknown = [
        host.value(size) for size, dim in zip(sizes, buffer.type.get_shape(), strict=True) if dim == DYNAMIC_INDEX
    ]
    made = host.insert(memref.AllocOp(unknown, [], buffer.type))
    made.name_hint = "runs"
    free = memref.DeallocOp.get(made)
    free.location = fusion.op.location
    Builder(InsertPoint.after(fusion.op)).insert(free)
    return made


class _Row:
    """The elements along the dimension that is sorted, at `others` along all others.

    root   the sort
    size   how many
    along  the dimension
    """

    def __init__(self, root: BufferOp, size: Number, along: int) -> None:
        self.size = size
        self.others: Sequence[SSAValue] = ()
        self._along = along
        self._comparator = _comparator(root)

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

    def merge(self, code: KernelCode, sources: Sequence[SSAValue], targets: Sequence[SSAValue], width: Number) -> None:
        """Merges runs of this width, in pairs."""

        def pair(outer: KernelCode, first: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            index = outer.index
            middle = index.minimum(index.add(first, width), self.size)
            end = index.minimum(index.add(middle, width), self.size)
            last = index.value(index.subtract(self.size, 1))

            def take(inner: KernelCode, place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                left, right = carried
                index = inner.index
                # A run that has ended is not looked at, but its place may be behind the row.
                inside = index.value(index.minimum(right, last))
                is_before = self._is_before(inner, sources, inside, left)
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
            return ()

        code.loop(0, self.size, code.index.multiply(width, 2), (), pair)

    def _is_before(self, code: KernelCode, arrays: Sequence[SSAValue], one: SSAValue, other: SSAValue) -> SSAValue:
        """i1: what the comparator says of two elements."""
        arguments = [code.load(array, self.at(place)) for array in arrays for place in (one, other)]
        (holds,) = emit_scalars(code, self._comparator, arguments)
        return code.insert(arith.CmpiOp(holds, constant(code, 0, holds.type), "ne")).result
