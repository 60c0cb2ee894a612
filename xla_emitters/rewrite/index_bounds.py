"""Whether the index arithmetic of a program's kernel fits in 32 bits, at the sizes of a launch.

    bounds = IndexBounds(function)
    bounds.exceed_32_bits(LaunchDimensions((8388608, 1, 1), (256, 1, 1)), [x, y, 2**31])
        -> True: %i = block * 256 + thread, to 2**31 - 1 + 255

Finds an interval for every `index` value from the launch's arguments: block ids are below the number of blocks, an integer argument is
itself. Values of an operation without a rule here, and values carried around a loop, are unbounded: then the answer is True, which
costs time but is never wrong. A loaded number has the range of its type; kernels clamp it before they use it as an index.
Source: docs/reference/4 3.6, trap 4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul, sub
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, gpu, scf
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp, LinearizeIndexOp
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.program import Extents, LaunchDimensions
from xla_emitters.rewrite.kernel_entry import DIMENSIONS

LIMIT = 1 << 31
MOST_ANSWERS = 1024
ANYTHING = Interval()
ONE = Interval(1, 1)


class IndexBounds:
    """The index arithmetic of one kernel."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._answers = dict[tuple[LaunchDimensions, tuple[int, ...]], bool]()

    def exceed_32_bits(self, launch: LaunchDimensions, values: Sequence[Any]) -> bool:
        """Whether an index may not fit in a signed 32-bit integer. values: of the arguments; arrays for buffers"""
        key = launch, tuple(value if isinstance(value, int) else getattr(value, "size", 0) for value in values)
        if (answer := self._answers.get(key)) is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[key] = self._exceed(*key)
        return answer

    def safe_up_to(self, block: Extents) -> int:
        """A number n: 32 bits are enough if all numbers, and the blocks along each dimension, are between 0 and n; 0 if none is found.

        Coarser than `exceed_32_bits`, which knows the launch; for callers without the kernel's IR. All rules are monotonic, so that the
        largest number of bits is found by bisection.
        block  threads of a block
        """
        arguments = self._function.body.blocks[0].args

        def exceed(bits: int) -> bool:
            most = (1 << bits) - 1
            return self._exceed_within(
                LaunchDimensions((most, most, most), block), [Interval(0, most)] * len(arguments)
            )

        return (1 << bisect_left(range(1, 32), True, key=exceed)) - 1

    def _exceed(self, launch: LaunchDimensions, numbers: Sequence[int]) -> bool:
        if max(numbers, default=0) >= LIMIT:
            return True
        return self._exceed_within(launch, [*map(Interval.point, numbers)])

    def _exceed_within(self, launch: LaunchDimensions, numbers: Sequence[Interval]) -> bool:
        arguments = zip(self._function.body.blocks[0].args, numbers, strict=False)
        visit = _Visit(launch, dict(arguments))
        for block in self._function.body.blocks:
            for op in block.ops:
                visit.op(op)
        return any(
            isinstance(value.type, IndexType) and not (-LIMIT <= found.lower and found.upper < LIMIT)
            for value, found in visit.known.items()
        )


@dataclass
class _Visit:
    """Finds the bounds of each value, operands first."""

    launch: LaunchDimensions
    known: dict[SSAValue, Interval]

    def of(self, value: SSAValue) -> Interval:
        return self.known.get(value) or _of_type(value.type)

    def op(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                low, high, step = map(self.of, (op.lb, op.ub, op.step))
                self.known[op.body.block.args[0]] = low.union((high - 1).maximum(low) + step.upper)
                for carried in (*op.body.block.args[1:], *op.results):
                    self.known[carried] = _of_type(carried.type)
                self.inside(op)
            case scf.IfOp():
                self.inside(op)
                for number, result in enumerate(op.results):
                    ends = [region.block.last_op for region in op.regions if region.blocks]
                    self.known[result] = reduce(Interval.union, [self.of(end.operands[number]) for end in ends if end])
            case arith.IndexCastOp() if (width := _width(op.input.type)) is not None:
                signed, known = Interval(-1 << width - 1, (1 << width - 1) - 1), self.of(op.input)
                self.known[op.result] = known if signed.contains(known) else signed
            case DelinearizeIndexOp():
                self.coordinates(op)
            case LinearizeIndexOp():
                self.known[op.linear_index] = self.number(op)
            case gpu.BlockIdOp() | gpu.ThreadIdOp() | gpu.BlockDimOp() | gpu.GridDimOp():
                is_grid = isinstance(op, gpu.BlockIdOp | gpu.GridDimOp)
                axis = DIMENSIONS.index(op.dimension.data)
                extent = (self.launch.grid if is_grid else self.launch.block)[axis]
                self.known[op.result] = Interval(0, max(extent, 1))
            case _:
                self.inside(op)
                rule = RULES.get(type(op))
                for result in op.results:
                    is_number = isinstance(result.type, IndexType | IntegerType)
                    found = rule(*map(self.of, op.operands)) if rule and is_number else None
                    if (number := constant_of(result)) is not None:
                        found = Interval.point(number)
                    self.known[result] = found or _of_type(result.type)

    def inside(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    self.known.setdefault(argument, _of_type(argument.type))
                for inner in block.ops:
                    self.op(inner)

    def sizes(self, op: DelinearizeIndexOp | LinearizeIndexOp) -> list[Interval]:
        """The sizes of all dimensions but the first."""
        inner = op.basis[len(op.basis) - len(op.multi_index) + 1 :]
        return [Interval.point(size) if isinstance(size, int) else self.of(size) for size in inner]

    def coordinates(self, op: DelinearizeIndexOp) -> None:
        number = self.of(op.linear_index)
        sizes = self.sizes(op)
        for value, size in zip(reversed(op.multi_index[1:]), reversed(sizes), strict=True):
            self.known[value] = Interval(0, max(0, min(size.upper - 1, number.upper)))
            number = _quotient(number, size)
        self.known[op.multi_index[0]] = number

    def number(self, op: LinearizeIndexOp) -> Interval:
        first, *rest = map(self.of, op.multi_index)
        for coordinate, size in zip(rest, self.sizes(op), strict=True):
            first = first * size + coordinate
        return first


def _of_type(ir_type: Attribute) -> Interval:
    """The bounds of a value that is not computed here: the range of its type, signed or unsigned."""
    width = _width(ir_type)
    return ANYTHING if width is None or width > 63 else Interval(-1 << width - 1, (1 << width) - 1)


def _width(ir_type: Attribute) -> int | None:
    """Bits of an integer type; None for other types."""
    return ir_type.width.data if isa(ir_type, IntegerType) else None


def _quotient(a: Interval, b: Interval) -> Interval:
    """The range for nonnegative numbers; anything for others, because an unsigned division sees them as large."""
    return a // b.maximum(ONE) if a.lower >= 0 and b.lower >= 0 else ANYTHING


def _remainder(a: Interval, b: Interval) -> Interval:
    return a % b.maximum(ONE) if a.lower >= 0 and b.lower >= 0 else ANYTHING


def _same(a: Interval) -> Interval:
    return a


def _at_most_either(a: Interval, b: Interval) -> Interval:
    """From 0 to the nonnegative operand: some of its bits, or the smaller as an unsigned number, for which a negative one is large."""
    ends = [operand.upper for operand in (a, b) if operand.lower >= 0]
    return Interval(0, min(ends)) if ends else ANYTHING


def _either(_: Interval, a: Interval, b: Interval) -> Interval:
    return a.union(b)


RULES: Mapping[type[Operation], Callable[..., Interval]] = {
    arith.AddiOp: add,
    arith.AndIOp: _at_most_either,
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _quotient,
    arith.FloorDivSIOp: _quotient,
    arith.IndexCastOp: _same,
    IndexCastUIOp: _same,
    arith.MaxSIOp: Interval.maximum,
    arith.MinSIOp: Interval.minimum,
    arith.MinUIOp: _at_most_either,
    arith.MuliOp: mul,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    arith.SelectOp: _either,
    arith.SubiOp: sub,
}
"""Op -> the function from the bounds of its operands to the bounds of its result."""
