"""Numbers that data decide, and windows of an axis whose size depends on data, are checked by the host before the op runs. On HLO.

    y = real_dynamic_slice(x[3], start, limit, step)     a, b, s = the elements of start, limit, step
                                                   ->    holds = 0 <= a and a <= b and b <= 3 and 1 <= s
                                                         shape_assertion(holds, a, b, s)
                                                         y = real_dynamic_slice(x, start, limit, step)

    y = gather(x[?], at), slice_sizes={1}                n = get_dimension_size(x), dimensions={0}
                                                   ->    shape_assertion(n >= 1, n, 1)
                                                         y = gather(x, at), slice_sizes={1}

Kernels do not check numbers: a slice or a reshape that does not fit would read memory outside. Gathers, dynamic slices and updates clamp
where a window begins, but in an array that is smaller than the window there is no such place. What follows from the arguments' shapes is
checked before a run (`dynamic/sizes/program`); of what data decide, as by `set_dimension_size`, nothing is known before.

An assertion is left out if the facts about sizes imply it, if the program's guards check it, or if its computation has it already: a second
run adds nothing. JAX clamps the start of a slice, so that it is inside. Paddings and numbers of windows are at most MOST, so that no size
that is computed from several of them wraps around.
What an op requires, and the sizes of its result, are its shape rule's, run over numbers that are instructions here.
Not one of the seed's passes. Source: docs/reference/4 3.1; StableHLO specification, the constraints of each op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import SSAValue

from xla_emitters.algebra.size import Size, floordiv, maximum, minimum
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import RealDynamicSliceOp, ShapeAssertionOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.shape_rule import Broken, Number, Sizing, Unknown
from xla_emitters.dialects.hlo.shape_rule import Condition as Ordered
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, has_dynamic_dims, leaf_types, tuple_type
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.passes.shape_code import SCALAR, ShapeCode
from xla_emitters.dynamic.passes.shape_code import Number as Coded
from xla_emitters.dynamic.sizes import Sizes, sizes_of
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

PRED = array_type(dtype("pred").ir_type, ())


@dataclass(frozen=True, eq=False)
class HostNumber:
    """A number that an op takes, or that its shape rule computes.

    size   what is known about it; None if data decide it
    made   inserts the code that computes it
    place  (operand, position) of an element of an operand
    axis   whether it is the size of an operand's axis
    parts  (a, b) of a difference a - b
    """

    size: Size | None
    made: Callable[[ShapeCode], Coded]
    place: tuple[int, int] | None = None
    is_axis: bool = False
    parts: tuple[HostNumber, HostNumber] | None = None

    def __add__(self, other: Number) -> HostNumber:
        return computed("add", lambda a, b: a + b, self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> HostNumber:
        return computed("subtract", lambda a, b: a - b, self, other)

    def __rsub__(self, other: int) -> HostNumber:
        return computed("subtract", lambda a, b: a - b, other, self)

    def __mul__(self, other: Number) -> HostNumber:
        return computed("multiply", lambda a, b: a * b, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> HostNumber:
        """HLO's division rounds toward zero: a // b is max(a, 0) / b - max(b - 1 - a, 0) / b."""
        if other == 1:
            return self

        def made(code: ShapeCode) -> Coded:
            a, b = self.made(code), host(other).made(code)
            under = code.binary("subtract", code.binary("subtract", b, 1), a)
            parts = [code.binary("divide", code.binary("maximum", part, 0), b) for part in (a, under)]
            return code.binary("subtract", *parts)

        size = None if self.size is None or host(other).size is None or host(other).size == 0 else host(other).size
        return HostNumber(None if self.size is None or size is None else floordiv(self.size, size), made)


def host(number: Number) -> HostNumber:
    """The number as instructions."""
    if isinstance(number, int):
        return _constant(number)
    assert isinstance(number, HostNumber)
    return number


@lru_cache(maxsize=1024)
def _constant(number: int) -> HostNumber:
    """One object for each constant: its code is inserted once in an assertion."""
    return HostNumber(Size.constant(number), lambda code: number)


def computed(opcode: str, of_sizes: Callable[[Size, Size], Size], a: Number, b: Number) -> HostNumber:
    """The number that an instruction computes from two; numbers that are too large may wrap around: another condition refuses them."""
    x, y = host(a), host(b)
    size = None if x.size is None or y.size is None else of_sizes(x.size, y.size)
    parts = (x, y) if opcode == "subtract" else None
    return HostNumber(size, lambda code: code.binary(opcode, x.made(code), y.made(code)), parts=parts)


Condition: TypeAlias = tuple[HostNumber, HostNumber]
"""(a, b): a <= b."""


@dataclass(frozen=True)
class Check:
    """What an op requires along one axis.

    message     with {0}, {1} ... for `shown`
    guarded     whether the program's guards check it if all numbers are known and the op always runs
    product     of these numbers is the last one of `shown`; no such requirement for ()
    """

    message: str
    shown: Sequence[HostNumber]
    conditions: Sequence[Condition]
    guarded: bool = False
    product: Sequence[HostNumber] = ()


class DiscCheckNumbersPass(KernelPass):
    name = "disc-check-numbers"

    def apply_to(self, op: ModuleOp) -> None:
        found = [inner for inner in op.walk() if isinstance(inner, HloOp) and _may_need_checks(inner)]
        entries = [inner for inner in op.ops if isinstance(inner, ComputationOp) and inner.is_entry]
        if not found or not entries:
            return
        names, sizes = Names(op), sizes_of(op)
        asserted = {
            (each.parent, each.message.data) for each in op.walk() if isinstance(each, ShapeAssertionOp)
        }  # before this run: a message has the op's name in it
        for inner in found:
            code = ShapeCode(names, inner)
            for check in CheckSizing(inner, sizes).checks():
                is_known = all(number.size is not None for number in check.shown)
                is_guarded = check.guarded and is_known and inner.parent_op() in entries
                said = f"%{inner.instruction_name.data} = {inner.opcode}: {check.message}"
                if is_guarded or (inner.parent, said) in asserted:
                    continue
                if (left := _open(check.conditions, sizes)) or check.product:
                    _assert(check, left, said, code)


def _may_need_checks(op: HloOp) -> bool:
    """Whether an op takes numbers, or has unknown sizes and a shape rule that says more than that its operands have one shape."""
    if op.number_operands or not op.has_shape_rule() or is_elementwise(op):
        return bool(op.number_operands)
    return any(has_dynamic_dims(value.type) for value in (*op.operands, op.result))


def _open(conditions: Sequence[Condition], sizes: Sizes) -> list[Condition]:
    """The conditions that the facts do not imply."""
    return [
        (a, b)
        for a, b in conditions
        if a.size is None or b.size is None or sizes.facts.at_least(b.size, a.size) is not True
    ]


def _assert(check: Check, conditions: Sequence[Condition], said: str, code: ShapeCode) -> None:
    scalars = dict[HostNumber, SSAValue]()

    def scalar(number: HostNumber) -> SSAValue:
        if number not in scalars:
            scalars[number] = code.scalar(number.made(code))
        return scalars[number]

    def compare(a: SSAValue, direction: str, b: SSAValue) -> SSAValue:
        return code.add("compare", [a, b], PRED, {"direction": StringAttr(direction)}, of_sizes=True)

    shown = [scalar(number) for number in check.shown]
    holds = [compare(scalar(b), "GE", scalar(a)) for a, b in conditions]
    if check.product:
        # Each factor and each product is cut to one more than what is wanted, so that none wraps around.
        wanted = shown[-1]
        limit = code.binary("add", wanted, 1)
        total = code.scalar(1)
        for number in check.product:
            factor = code.binary("minimum", scalar(number), limit)
            total = code.binary("minimum", code.binary("multiply", total, factor), limit)
        holds.append(compare(total, "EQ", wanted))
    whole = holds[0]
    for one in holds[1:]:
        whole = code.add("and", [whole, one], PRED, of_sizes=True)
    code.add("shape-assertion", [whole, *shown], tuple_type([]), {"message": StringAttr(said)}, of_sizes=True)


# -------------------------------------------------------------------------------------------------------------- numbers

ZERO = host(0)


class CheckSizing(Sizing):
    """The numbers that `op` takes, and what it requires of those that data decide."""

    def __init__(self, op: HloOp, sizes: Sizes) -> None:
        super().__init__(op.operands)
        self.op, self.sizes = op, sizes
        self._lists = dict[SSAValue, list[HostNumber]]()
        self._found = list[Check]()

    def checks(self) -> list[Check]:
        """What the op requires, in the order of its shape rule; last that the result has the sizes that its type says."""
        shapes = self.op.shapes(self)
        types = leaf_types(self.op.result.type)
        for axis, number in enumerate(shapes[-1] if shapes is not None else ()):
            static = dims_of(types[-1])[axis]
            if static >= 0 and isinstance(number, HostNumber) and not number.is_axis:
                message = f"the size of axis {axis} is {{0}}, where the result's type says {{1}}"
                wanted = host(static)
                self._found.append(Check(message, [number, wanted], [(number, wanted), (wanted, number)], guarded=True))
        return self._found

    # ------------------------------------------------------------------------------------------------------- questions

    def axis(self, operand: int, dim: int) -> Number:
        value = self.op.operands[operand]
        known = self.sizes.of(value)
        size = known[dim] if dim < len(known) else None
        return HostNumber(size, lambda code: code.size(value, dim), is_axis=True)

    def held(self, operand: int, *indices: int) -> Number:
        value = self.op.operands[operand]
        dims = dims_of(value)
        at, count = 0, 1
        for index, size in zip(indices, dims, strict=True):
            at, count = at * size + index, count * size
        known = self.sizes.numbers(value)
        return HostNumber(known[at] if known else None, lambda code: _element(value, at, count, code), (operand, at))

    def known(self, number: Number) -> int | None:
        if isinstance(number, Unknown):
            return None
        size = host(number).size
        return None if size is None else size.value

    def maximum(self, a: Number, b: Number) -> Number:
        return computed("maximum", maximum, a, b)

    def minimum(self, a: Number, b: Number) -> Number:
        return computed("minimum", minimum, a, b)

    def ceildiv(self, a: Number, b: Number) -> Number:
        """For a >= 0 and b >= 1, which the op requires."""
        whole, stride = host(a), host(b)

        def made(code: ShapeCode) -> Coded:
            before_last = code.binary("subtract", whole.made(code), 1)
            # HLO's division rounds toward zero: -1 / 1 is -1, and -1 / 2 is 0, but one element needs a start before the limit.
            steps = code.binary("divide", code.binary("maximum", before_last, 0), stride.made(code))
            return code.binary("minimum", code.binary("add", steps, 1), code.binary("add", before_last, 1))

        return HostNumber(self._difference(whole) if self.known(stride) == 1 else None, made)

    # ---------------------------------------------------------------------------------------------------- requirements

    def require(
        self,
        said: str,
        shown: Sequence[Number],
        conditions: Sequence[Ordered],
        *,
        guarded: bool = False,
        of_data: bool = False,
    ) -> None:
        numbers = [host(number) for number in shown]
        if not of_data or any(number.size is None for number in numbers):
            self._found.append(Check(said, numbers, [(host(a), host(b)) for a, b in conditions], guarded))

    def same_product(self, a: Sequence[Number], b: Sequence[Number], broken: Broken) -> None:
        """Of the elements of the operand, `a`, and of the sizes of its result."""
        if any(isinstance(number, Unknown) for number in b):
            return
        own, numbers = [host(number) for number in a], [host(number) for number in b]
        total: Size | None = Size.constant(1)
        for number in own:
            total = None if total is None or number.size is None else total * number.size
        elements = HostNumber(total, lambda code: code.product([number.made(code) for number in own]))
        shape = ", ".join(f"{{{axis}}}" for axis in range(len(numbers)))
        message = f"[{shape}] does not have the {{{len(numbers)}}} elements of the operand"
        conditions = [(ZERO, number) for number in numbers] or [(ZERO, ZERO)]
        self._found.append(Check(message, [*numbers, elements], conditions, guarded=True, product=numbers or [host(1)]))

    def fits(self, window: Number, size: Number, broken: Broken, said: str) -> None:
        # The guards check known sizes, in loops too.
        if None in (host(size).size, host(window).size) and self.known(window) != 0:
            super().fits(window, size, broken, said)

    def inside(self, start: Number, limit: Number, size: Number, said: str, shown: Sequence[Number]) -> None:
        place = host(start).place
        if isinstance(self.op, RealDynamicSliceOp) and place is not None:
            low, high = (found[place[1]] for found in self._clamps())
            count, whole = self._counts()[place[1]], host(size)
            end = None if high.size is None or count.size is None else high.size + count.size
            # start = clamp(low, at, high) and limit = start + count: 0 <= low <= high, high + count <= size, count >= 0.
            held = [(ZERO, low), (low, high), (ZERO, count), (HostNumber(end, lambda code: 0), whole)]
            if not _open(held, self.sizes):
                return
        super().inside(start, limit, size, said, shown)

    def repeats(self, own: Number, wanted: Number, broken: Broken, said: str) -> Number:
        size, result = host(own), host(wanted)
        if self.known(own) != 1 and None in (size.size, result.size):  # the guards check known sizes, in loops too
            off = HostNumber(None, lambda code: _differs(code, size, result))
            self._found.append(Check(said, [size, result], [(off, ZERO)]))
        return wanted

    # -------------------------------------------------------------------------------------- slices whose start is clamped

    def _difference(self, whole: HostNumber) -> Size | None:
        """What is known about limit - start."""
        start = whole.parts[1].place if whole.parts is not None else None
        is_of_data = isinstance(self.op, RealDynamicSliceOp) and whole.size is None and start is not None
        return self._counts()[start[1]].size if is_of_data and start is not None else whole.size

    def _counts(self) -> list[HostNumber]:
        """Of a slice: for limit = start + n the elements of n."""
        start, limit = self.op.operands[1], self.op.operands[2].owner
        ends = limit.operands if isinstance(limit, HloOp) and limit.opcode == "add" else ()
        added = [value for value in ends if value is not start]
        return self._known(added[0] if len(added) == 1 else None)

    def _clamps(self) -> list[list[HostNumber]]:
        """Of a slice: for start = clamp(low, at, high) the elements of low, and of high."""
        start = self.op.operands[1].owner
        ends = start.operands[::2] if isinstance(start, HloOp) and start.opcode == "clamp" else (None, None)
        return [self._known(end) for end in ends]

    def _known(self, value: SSAValue | None) -> list[HostNumber]:
        """What is known about the elements of a list with one for each axis, or one for all."""
        rank = len(dims_of(self.op.operands[0]))
        known = (self.sizes.numbers(value) if value is not None else None) or (None,)
        return [HostNumber(size, lambda code: 0) for size in (known if len(known) == rank else known * rank)]


def _differs(code: ShapeCode, own: HostNumber, wanted: HostNumber) -> Coded:
    """0 if own is 1 or equal to wanted, else positive."""
    size = own.made(code)
    difference = code.binary("subtract", size, wanted.made(code))
    apart = code.binary("minimum", code.binary("maximum", difference, code.binary("subtract", 0, difference)), 1)
    return code.binary("multiply", apart, code.binary("subtract", size, 1))


def _element(value: SSAValue, at: int, count: int, code: ShapeCode) -> Coded:
    """The element at a row-major position of an array of integers."""
    element, dims = element_of(value), dims_of(value)
    if len(dims) > 1:
        value = code.add("reshape", [value], array_type(element.ir_type, (count,)), of_sizes=True)
    if dims:
        only = ArrayAttr[DenseArrayBase]([DenseArrayBase.from_list(i64, [at, at + 1, 1])])
        one = code.add("slice", [value], array_type(element.ir_type, (1,)), {"slice": only}, of_sizes=True)
        value = code.add("reshape", [one], array_type(element.ir_type, ()), of_sizes=True)
    return value if element.name == "s64" else code.add("convert", [value], SCALAR, of_sizes=True)
