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
checked before a run (`sizes/program`); of what data decide, as by `set_dimension_size`, nothing is known before.

An assertion is left out if the facts about sizes imply it, if the program's guards check it, or if its computation has it already: a second
run adds nothing. JAX clamps the start of a slice, so that it is inside. Paddings and numbers of windows are at most MOST, so that no size
that is computed from several of them wraps around.
Not one of the seed's passes. Source: docs/reference/4 3.1; StableHLO specification, the constraints of each op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import (
    MOST,
    DynamicConvOp,
    DynamicGatherOp,
    DynamicReduceWindowOp,
    DynamicReshapeOp,
    ShapeAssertionOp,
)
from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, leaf_types, tuple_type
from xla_emitters.dtypes import dtype
from xla_emitters.graph.names import Names
from xla_emitters.graph.shape_code import SCALAR, ShapeCode
from xla_emitters.graph.shape_code import Number as Coded
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.shapes import Size
from xla_emitters.sizes import Sizes, sizes_of

PRED = array_type(dtype("pred").ir_type, ())


@dataclass(frozen=True, eq=False)
class Number:
    """A number that an op takes.

    size  what is known about it; None if data decide it
    made  inserts the code that computes it
    """

    size: Size | None
    made: Callable[[ShapeCode], Coded]


Condition: TypeAlias = tuple[Number, Number]
"""(a, b): a <= b."""


@dataclass(frozen=True)
class Check:
    """What an op requires along one axis.

    message     with {0}, {1} ... for `shown`
    guarded     whether the program's guards check it if all numbers are known and the op always runs
    product     of these numbers is the last one of `shown`; no such requirement for ()
    """

    message: str
    shown: Sequence[Number]
    conditions: Sequence[Condition]
    guarded: bool = False
    product: Sequence[Number] = ()


@dataclass(frozen=True)
class DiscCheckNumbersPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect."""

    name = "disc-check-numbers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [inner for inner in op.walk() if isinstance(inner, HloOp) and inner.opcode in RULES]
        entries = [inner for inner in op.ops if isinstance(inner, ComputationOp) and inner.is_entry]
        if not found or not entries:
            return
        names, sizes = Names(op), sizes_of(op)
        asserted = {
            (each.parent, each.message.data) for each in op.walk() if isinstance(each, ShapeAssertionOp)
        }  # before this run: a message has the op's name in it
        for inner in found:
            code, taken = ShapeCode(names, inner), _Taken(inner, sizes)
            for check in RULES[inner.opcode](taken):
                is_known = all(number.size is not None for number in check.shown)
                is_guarded = check.guarded and is_known and inner.parent_op() in entries
                said = f"%{inner.instruction_name.data} = {inner.opcode}: {check.message}"
                if is_guarded or (inner.parent, said) in asserted:
                    continue
                if (left := _open(check.conditions, sizes)) or check.product:
                    _assert(check, left, said, code)


def _open(conditions: Sequence[Condition], sizes: Sizes) -> list[Condition]:
    """The conditions that the facts do not imply."""
    return [
        (a, b)
        for a, b in conditions
        if a.size is None or b.size is None or sizes.facts.at_least(b.size, a.size) is not True
    ]


def _assert(check: Check, conditions: Sequence[Condition], said: str, code: ShapeCode) -> None:
    scalars = dict[Number, SSAValue]()

    def scalar(number: Number) -> SSAValue:
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


def _constant(value: int) -> Number:
    return Number(Size.constant(value), lambda code: value)


ZERO, ONE, LARGEST, SMALLEST = map(_constant, (0, 1, MOST, -MOST))


@dataclass(frozen=True)
class _Taken:
    """The numbers that `op` takes."""

    op: HloOp
    sizes: Sizes
    _lists: dict[SSAValue, list[Number]] = field(default_factory=dict[SSAValue, "list[Number]"])

    @property
    def rank(self) -> int:
        return len(dims_of(self.op.operands[0]))

    def size(self, operand: int, axis: int) -> Number:
        """The size of an operand."""
        value = self.op.operands[operand]
        known = self.sizes.of(value)
        return Number(known[axis] if axis < len(known) else None, lambda code: code.size(value, axis))

    def result(self, axis: int) -> list[Number]:
        """The size of the result that its type says; [] if it says none."""
        types = leaf_types(self.op.result.type)
        size = dims_of(types[-1])[axis]
        return [_constant(size)] if size >= 0 else []

    def elements(self, operand: int) -> list[Number]:
        """The elements of an operand, in row-major order."""
        value = self.op.operands[operand]
        if value not in self._lists:
            dims, known = dims_of(value), self.sizes.numbers(value)
            count = 1
            for size in dims:
                count *= size
            self._lists[value] = [
                Number(known[at] if known else None, lambda code, at=at: _element(value, at, count, code))
                for at in range(count)
            ]
        return self._lists[value]

    def counts(self) -> list[Number]:
        """Of a slice: for limit = start + n the elements of n."""
        start, limit = self.op.operands[1], self.op.operands[2].owner
        ends = limit.operands if isinstance(limit, HloOp) and limit.opcode == "add" else ()
        added = [value for value in ends if value is not start]
        return self._known(added[0] if len(added) == 1 else None)

    def clamps(self) -> list[tuple[Number, Number]]:
        """Of a slice: for start = clamp(low, at, high) the elements of low and high."""
        start = self.op.operands[1].owner
        ends = start.operands[::2] if isinstance(start, HloOp) and start.opcode == "clamp" else (None, None)
        return list(zip(*map(self._known, ends), strict=True))

    def _known(self, value: SSAValue | None) -> list[Number]:
        """What is known about the elements of a list with one for each axis, or one for all."""
        known = (self.sizes.numbers(value) if value is not None else None) or (None,)
        return [Number(size, lambda code: 0) for size in (known if len(known) == self.rank else known * self.rank)]


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


# ---------------------------------------------------------------------------------------------------------------- rules


def _windows(windows: Callable[[_Taken, int], Number]) -> Callable[[_Taken], Iterator[Check]]:
    """The window fits inside the operand along each axis whose size data decide."""

    def rule(t: _Taken) -> Iterator[Check]:
        for axis in range(t.rank):
            size, window = t.size(0, axis), windows(t, axis)
            # The guards check known sizes, in loops too.
            if (size.size is None or window.size is None) and window.size != Size.constant(0):
                message = f"no window of {{1}} fits inside axis {axis} of the operand, whose size is {{0}}"
                yield Check(message, [size, window], [(window, size), (ZERO, window)])

    return rule


def _attribute(name: str) -> Callable[[_Taken, int], Number]:
    return lambda t, axis: _constant(integers(t.op.properties[name])[axis])


def _real_dynamic_slice(t: _Taken) -> Iterator[Check]:
    counts, clamps = t.counts(), t.clamps()
    for axis, (start, limit, stride) in enumerate(zip(*(t.elements(operand) for operand in (1, 2, 3)), strict=True)):
        size = t.size(0, axis)
        conditions = [(ZERO, start), (start, limit), (limit, size)]
        message = f"the range [{{0}}:{{1}}] is not inside axis {axis} of the operand, whose size is {{2}}"
        if _open(_inside(*clamps[axis], counts[axis], size), t.sizes):
            yield Check(message, [start, limit, size], conditions, guarded=True)
        yield Check(f"the step {{0}} along axis {axis} is not positive", [stride], [(ONE, stride)])
        yield from _equal(_count(start, limit, stride, counts[axis].size), t.result(axis), axis)


def _count(start: Number, limit: Number, stride: Number, difference: Size | None) -> Number:
    """ceil((limit - start) / stride), for limit >= start and stride >= 1; `difference`: what is known about limit - start."""

    def made(code: ShapeCode) -> Coded:
        before_last = code.binary("subtract", code.binary("subtract", limit.made(code), start.made(code)), 1)
        # HLO's division rounds toward zero: -1 / 1 is -1, and -1 / 2 is 0, but one element needs a start before the limit.
        whole = code.binary("divide", code.binary("maximum", before_last, 0), stride.made(code))
        return code.binary("minimum", code.binary("add", whole, 1), code.binary("add", before_last, 1))

    if start.size is not None and limit.size is not None:
        difference = limit.size - start.size
    return Number(difference if stride.size == ONE.size else None, made)


def _inside(low: Number, high: Number, count: Number, size: Number) -> list[Condition]:
    """0 <= low <= high, high + count <= size, count >= 0."""
    end = None if high.size is None or count.size is None else high.size + count.size
    return [(ZERO, low), (low, high), (ZERO, count), (Number(end, lambda code: 0), size)]


def _dynamic_pad(t: _Taken) -> Iterator[Check]:
    for axis, (low, high, interior) in enumerate(zip(*(t.elements(operand) for operand in (2, 3, 4)), strict=True)):
        message = f"the padding {{0}} before, {{1}} after and {{2}} between the elements of axis {axis}, of size {{3}}, leaves no array"
        size = t.size(0, axis)
        edges = [condition for edge in (low, high) for condition in ((SMALLEST, edge), (edge, LARGEST))]
        whole = Number(
            None,
            lambda code, low=low, high=high, interior=interior, size=size: _padded(code, size, low, high, interior),
        )
        if low.size is not None and high.size is not None and size.size is not None and interior.size == ZERO.size:
            whole = Number(size.size + low.size + high.size, whole.made)
        yield Check(
            message, [low, high, interior, size], [(ZERO, interior), (interior, LARGEST), *edges, (ZERO, whole)]
        )
        yield from _equal(whole, t.result(axis), axis)


def _padded(code: ShapeCode, size: Number, low: Number, high: Number, interior: Number) -> Coded:
    """The size after padding. Numbers that are too large may wrap around here: another condition refuses them."""
    between = code.binary("maximum", code.binary("subtract", size.made(code), 1), 0)
    total = code.binary("add", size.made(code), code.binary("multiply", between, interior.made(code)))
    return code.binary("add", code.binary("add", total, low.made(code)), high.made(code))


def _equal(size: Number, wanted: Sequence[Number], axis: int) -> Iterator[Check]:
    """The result has the size that its type says, if it says one."""
    for static in wanted:
        message = f"the size of axis {axis} is {{0}}, where the result's type says {{1}}"
        yield Check(message, [size, static], [(size, static), (static, size)], guarded=True)


def _sizes(operand: int) -> Callable[[_Taken], Iterator[Check]]:
    """The numbers are sizes."""

    def rule(t: _Taken) -> Iterator[Check]:
        for axis, size in enumerate(t.elements(operand)):
            yield Check(f"the size {{0}} of axis {axis} is negative", [size], [(ZERO, size)], guarded=True)
            yield from _equal(size, t.result(axis), axis)

    return rule


def _dynamic_broadcast(t: _Taken) -> Iterator[Check]:
    sizes = t.elements(1)
    yield from _sizes(1)(t)
    for axis, dim in enumerate(integers(t.op.properties["dimensions"])):
        own, wanted = t.size(0, axis), sizes[dim]
        if own.size == Size.constant(1) or (own.size is not None and wanted.size is not None):
            continue  # the guards check known sizes, in loops too
        # own == 1 or own == wanted
        off = Number(None, lambda code, own=own, wanted=wanted: _differs(code, own, wanted))
        message = f"axis {axis} of the operand, of size {{0}}, is no axis of size {{1}}, and is not repeated"
        yield Check(message, [own, wanted], [(off, ZERO)])


def _differs(code: ShapeCode, own: Number, wanted: Number) -> Coded:
    """0 if own is 1 or equal to wanted, else positive."""
    size = own.made(code)
    difference = code.binary("subtract", size, wanted.made(code))
    apart = code.binary("minimum", code.binary("maximum", difference, code.binary("subtract", 0, difference)), 1)
    return code.binary("multiply", apart, code.binary("subtract", size, 1))


def _dynamic_reshape(t: _Taken) -> Iterator[Check]:
    assert isinstance(t.op, DynamicReshapeOp)
    count = len(t.op.operands)
    numbers = t.elements(1) if t.op.takes_list else [t.elements(operand)[0] for operand in range(1, count)]
    own = [t.size(0, axis) for axis in range(t.rank)]
    total: Size | None = Size.constant(1)
    for size in own:
        total = None if total is None or size.size is None else total * size.size
    elements = Number(total, lambda code: code.product([size.made(code) for size in own]))
    shape = ", ".join(f"{{{axis}}}" for axis in range(len(numbers)))
    message = f"[{shape}] does not have the {{{len(numbers)}}} elements of the operand"
    conditions = [(ZERO, number) for number in numbers] or [(ZERO, ZERO)]
    yield Check(message, [*numbers, elements], conditions, guarded=True, product=numbers or [ONE])
    for axis, number in enumerate(numbers):
        yield from _equal(number, t.result(axis), axis)


def _dynamic_conv(t: _Taken) -> Iterator[Check]:
    assert isinstance(t.op, DynamicConvOp)
    image = t.op.dim_labels.data.split("_")[0]
    edges = t.elements(2)
    for axis in range(len(edges) // 2):
        low, high = edges[2 * axis : 2 * axis + 2]
        size = t.size(0, image.index(str(axis)))
        whole = Number(
            None,
            lambda code, low=low, high=high, size=size: code.binary(
                "add", code.binary("add", size.made(code), low.made(code)), high.made(code)
            ),
        )
        conditions = [condition for edge in (low, high) for condition in ((SMALLEST, edge), (edge, LARGEST))]
        message = f"the padding {{0}} before and {{1}} after axis {axis}, of size {{2}}, leaves no array"
        if None in (low.size, high.size, size.size):
            yield Check(message, [low, high, size], [*conditions, (ZERO, whole)])


def _dynamic_reduce_window(t: _Taken) -> Iterator[Check]:
    assert isinstance(t.op, DynamicReduceWindowOp)
    first = 2 * t.op.count
    for operand, name in enumerate(("size", "stride", "dilation of the operand", "dilation of the window"), first):
        for axis, number in enumerate(t.elements(operand)):
            message = f"the window's {name} is {{0}} along axis {axis}, not between 1 and {MOST}"
            yield Check(message, [number], [(ONE, number), (number, LARGEST)])
    for number in t.elements(first + 4):
        yield Check(
            f"the padding {{0}} is not between {-MOST} and {MOST}", [number], [(SMALLEST, number), (number, LARGEST)]
        )


def _dynamic_gather(t: _Taken) -> Iterator[Check]:
    assert isinstance(t.op, DynamicGatherOp)
    sizes = t.elements(2)
    yield from _windows(lambda t, axis: sizes[axis])(t)
    dropped = (*integers(t.op.collapsed_slice_dims), *integers(t.op.operand_batching_dims))
    kept = [axis for axis in range(t.rank) if axis not in dropped]
    for axis, dim in zip(kept, integers(t.op.offset_dims), strict=True):
        yield from _equal(sizes[axis], t.result(dim), dim)


def _set_size(t: _Taken) -> Iterator[Check]:
    (axis,) = integers(t.op.properties["dimensions"])
    (number,), size = t.elements(1), t.size(0, axis)
    yield Check("the size {0} is not in [0, {1}]", [number, size], [(ZERO, number), (number, size)], guarded=True)


def _top_k(t: _Taken) -> Iterator[Check]:
    (number,), size = t.elements(1), t.size(0, t.rank - 1)
    yield Check("no {0} largest of {1}", [number, size], [(ZERO, number), (number, size)])
    yield from _equal(number, t.result(t.rank - 1), t.rank - 1)


RULES: Mapping[str, Callable[[_Taken], Iterator[Check]]] = {
    "dynamic-broadcast-in-dim": _dynamic_broadcast,
    "dynamic-conv": _dynamic_conv,
    "dynamic-gather": _dynamic_gather,
    "dynamic-iota": _sizes(0),
    "dynamic-pad": _dynamic_pad,
    "dynamic-reduce-window": _dynamic_reduce_window,
    "dynamic-reshape": _dynamic_reshape,
    "dynamic-rng-bit-generator": _sizes(1),
    "dynamic-slice": _windows(_attribute("dynamic_slice_sizes")),
    "dynamic-top-k": _top_k,
    "dynamic-update-slice": _windows(lambda t, axis: t.size(1, axis)),
    "gather": _windows(_attribute("slice_sizes")),
    "real-dynamic-slice": _real_dynamic_slice,
    "set-dimension-size": _set_size,
}
"""Opcode -> what the op requires of its numbers."""
