"""`llvm.intr.*` without an equivalent in `arith` and `math`: bit permutations, classes of floats, saturation, vectors, hints.

    llvm.intr.fshl(%a, %b, %n)                 the upper half of (a:b) << (n mod bits)
    "llvm.intr.is.fpclass"(%x) <{bit = 3}>     whether the value is of one of the classes in `bit`

Source: LLVM language reference, "Bit Manipulation Intrinsics", "llvm.is.fpclass", "llvm.vector.reduce.fadd".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import Reading, two_results
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules, Unary, first, nothing
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.math_rules import function
from xla_emitters.runtime.simt.scalars import BOOL, INDEX, Form, form_of, signed, unsigned, wrap
from xla_emitters.runtime.simt.vector_rules import Elements, count_of

RULES = Rules()


def reversed_bits(form: Form, value: Array) -> Array:
    """The lowest bit becomes the highest."""
    bits = unsigned(form, value).astype(np.uint64)
    result = np.zeros_like(bits)
    for number in range(form.bits):
        result |= (bits >> np.uint64(number) & np.uint64(1)) << np.uint64(form.bits - 1 - number)
    return wrap(form, result.view(np.int64))


def swapped_bytes(form: Form, value: Array) -> Array:
    """The lowest byte becomes the highest."""
    return np.ascontiguousarray(value).byteswap()


def funnel_shift(form: Form, to_left: bool, upper: Array, lower: Array, amount: Array) -> Array:
    """The upper half of (upper:lower) << amount, or the lower half of (upper:lower) >> amount; the amount is modulo the width."""
    shift = unsigned(form, amount) % form.bits
    if not to_left:
        # Shifting right by n is shifting left by the width minus n, except for n = 0.
        return np.where(shift == 0, lower, funnel_shift(form, True, upper, lower, wrap(form, form.bits - shift)))
    left = scalars.shift_left(form, upper, wrap(form, shift))
    right = scalars.shift_right_logical(form, lower, wrap(form, form.bits - shift))
    return np.where(shift == 0, upper, left | right)


def permuted(function: Callable[[Form, Array], Array], form: Form) -> Unary:
    """raises Unsupported for integers of more than 64 bits"""
    if form.is_wide:
        raise Unsupported(f"a permutation of the bits of {form.name}", stage="simt")
    return partial(function, form)


RULES.of_form(partial(permuted, reversed_bits), llvm.INTRINSICS["bitreverse"])
RULES.of_form(partial(permuted, swapped_bytes), llvm.INTRINSICS["bswap"])
RULES.of_form(lambda form: partial(funnel_shift, form, True), llvm.INTRINSICS["fshl"])
RULES.of_form(lambda form: partial(funnel_shift, form, False), llvm.INTRINSICS["fshr"])


@RULES.elementwise(llvm.INTRINSICS["is.fpclass"])
def is_fpclass(op: Any) -> Unary:
    form, wanted = form_of(op.arg.type), op.bit.value.data
    layout = dtype(form.name).float_format
    if not layout.has_infinity:
        raise Unsupported(f"classes of {form.name}, which has no infinities", stage="simt")
    fraction_bits, all_exponents = layout.fraction_bits, (1 << layout.exponent_bits) - 1

    def run(value: Array) -> Array:
        bits = scalars.to_bits(form, value).astype(np.uint64)
        fraction = bits & np.uint64((1 << fraction_bits) - 1)
        exponent = bits >> np.uint64(fraction_bits) & np.uint64(all_exponents)
        negative = bits >> np.uint64(form.bits - 1) != 0
        quiet = fraction >> np.uint64(fraction_bits - 1) != 0
        top = exponent == all_exponents
        # LLVM numbers the classes: signalling NaN, quiet NaN, then from -inf over -0 and +0 to +inf.
        size = np.select([top, exponent != 0, fraction != 0], [3, 2, 1], 0)
        number = np.where(negative, 5 - size, 6 + size)
        number = np.where(top & (fraction != 0), np.where(quiet, 1, 0), number)
        return wanted >> number & 1 != 0

    return run


# ---------------------------------------------------------------------------------------------- floats and integers


@RULES.elementwise(llvm.INTRINSICS["ldexp"])
def ldexp(op: Any) -> Binary:
    form, exponent_form = form_of(op.val.type), form_of(op.power.type)

    def run(value: Array, exponent: Array) -> Array:
        # In float64, so that a narrow result is rounded once; 4000 is beyond the exponents of all types.
        steps = np.clip(scalars.signed(exponent_form, exponent), -4000, 4000).astype(np.int32)
        return scalars.from_float(form, np.ldexp(scalars.widen(form, value).astype(scalars.F64), steps))

    return run


def _rounded_to_integer(op: Any, name: str) -> Unary:
    source, target = form_of(op.val.type), form_of(op.res.type)
    rounded = function(source, name=name)
    return lambda value: scalars.to_integer(target, scalars.widen(source, rounded(value)), True)


RULES.elementwise(llvm.INTRINSICS["lrint"], llvm.INTRINSICS["llrint"])(partial(_rounded_to_integer, name="rint"))
RULES.elementwise(llvm.INTRINSICS["lround"], llvm.INTRINSICS["llround"])(partial(_rounded_to_integer, name="round"))


@RULES.op(llvm.INTRINSICS["frexp"])
def frexp(op: Any) -> Kernel:
    form = form_of(op.val.type)
    exponent_form = form_of(op.res.type.types.data[1])

    def compute(value: Array) -> tuple[Array, Array]:
        fraction, exponent = np.frexp(scalars.widen(form, value))
        return scalars.narrow(form, fraction), wrap(exponent_form, exponent)

    return two_results(op, compute)


# ---------------------------------------------------------------------------------------------- integers that do not wrap


def _exactly(reading: Reading, combine: Callable[[Array, Array], Array], form: Form, one: Array, other: Array) -> Array:
    """`combine` of the readings, in Python's integers."""
    return combine(reading(form, one).astype(object), reading(form, other).astype(object))


def _saturating(reading: Reading, combine: Callable[[Array, Array], Array], form: Form) -> Binary:
    low, high = (-(1 << form.bits - 1), (1 << form.bits - 1) - 1) if reading is signed else (0, (1 << form.bits) - 1)

    def run(one: Array, other: Array) -> Array:
        return wrap(form, np.minimum(np.maximum(_exactly(reading, combine, form, one, other), low), high))

    return run


def _shifting_saturated(reading: Reading, form: Form) -> Binary:
    """The amount is unsigned; by the width or more is poison in LLVM, and saturates here."""
    shifted = _saturating(reading, np.left_shift, form)
    return lambda value, amount: shifted(value, np.minimum(unsigned(form, amount), form.bits))


def _with_overflow(op: Any, reading: Reading, combine: Callable[[Array, Array], Array]) -> Kernel:
    form = form_of(op.lhs.type)

    def compute(one: Array, other: Array) -> tuple[Array, Array]:
        exact = _exactly(reading, combine, form, one, other)
        wrapped = wrap(form, exact)
        return wrapped, reading(form, wrapped).astype(object) != exact

    return two_results(op, compute)


def _three_way(op: Any, reading: Reading) -> Binary:
    form, target = form_of(op.lhs.type), form_of(op.res.type)

    def run(one: Array, other: Array) -> Array:
        a, b = reading(form, one), reading(form, other)
        return wrap(target, (a > b).astype(np.int8) - (a < b).astype(np.int8))

    return run


for _letter, _reading in (("s", signed), ("u", unsigned)):
    for _name, _combine in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        _overflowing = partial(_with_overflow, reading=_reading, combine=_combine)
        RULES.op(llvm.INTRINSICS[f"{_letter}{_name}.with.overflow"])(_overflowing)
    for _name, _combine in (("add", np.add), ("sub", np.subtract)):
        RULES.of_form(partial(_saturating, _reading, _combine), llvm.INTRINSICS[f"{_letter}{_name}.sat"])
    RULES.of_form(partial(_shifting_saturated, _reading), llvm.INTRINSICS[f"{_letter}shl.sat"])
    RULES.elementwise(llvm.INTRINSICS[f"{_letter}cmp"])(partial(_three_way, reading=_reading))


# ---------------------------------------------------------------------------------------------- vectors


@RULES.op(llvm.INTRINSICS["vector.extract"])
def vector_extract(op: Any) -> Callable[[Machine, Elements], Value]:
    start = op.pos.value.data
    end = start + count_of(op.res.type)
    return lambda machine, source: source[start:end]


@RULES.op(llvm.INTRINSICS["vector.insert"])
def vector_insert(op: Any) -> Callable[[Machine, Elements, Elements], Value]:
    start = op.pos.value.data
    end = start + count_of(op.srcvec.type)
    return lambda machine, target, source: (*target[:start], *source, *target[end:])


@RULES.op(llvm.INTRINSICS["vector.interleave2"])
def vector_interleave(op: Any) -> Callable[[Machine, Elements, Elements], Value]:
    return lambda machine, one, other: tuple(element for pair in zip(one, other, strict=True) for element in pair)


@RULES.op(llvm.INTRINSICS["vector.deinterleave2"])
def vector_deinterleave(op: Any) -> Callable[[Machine, Elements], Value]:
    return lambda machine, source: (source[0::2], source[1::2])


@RULES.op(llvm.INTRINSICS["stepvector"])
def stepvector(op: Any) -> Callable[[Machine], Value]:
    form = form_of(op.res.type)
    numbers = tuple(scalars.constant(form, number) for number in range(count_of(op.res.type)))
    return lambda machine: numbers


@RULES.kernel(llvm.INTRINSICS["get.active.lane.mask"])
def active_lane_mask(op: Any, machine: Machine, base: Array, limit: Array) -> Value:
    form, count = form_of(op.base.type), count_of(op.res.type)
    # Compare with the distance: base plus number may wrap.
    left = unsigned(form, limit).astype(object) - unsigned(form, base).astype(object)
    return tuple((left > number).astype(np.bool_) for number in range(count))


# ---------------------------------------------------------------------------------------------- hints


RULES.kernel(*(llvm.INTRINSICS[name] for name in ("expect", "expect.with.probability", "ssa.copy")))(first)


@RULES.op(llvm.INTRINSICS["is.constant"])
def is_constant(op: Any) -> Callable[[Machine, Value], Value]:
    return lambda machine, value: scalars.constant(BOOL, 0)


@RULES.kernel(llvm.AssumeOp)
def assume(op: llvm.AssumeOp, machine: Machine, condition: Array, *values: Value) -> None:
    """Checks the condition, on which the optimiser relies; operand bundles are not checked."""
    machine.refuse(op, ~condition, "does not hold")


@RULES.op(llvm.INTRINSICS["trap"], llvm.INTRINSICS["debugtrap"])
def trap(op: Operation) -> Callable[[Machine], None]:
    return lambda machine: machine.refuse(op, np.ones((1, 1), np.bool_), "is reached")


# Allocas live as long as their call.
RULES.of_machine(lambda machine: scalars.constant(INDEX, 0), llvm.INTRINSICS["stacksave"])
RULES.kernel(llvm.INTRINSICS["stackrestore"])(nothing)
