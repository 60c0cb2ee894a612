"""`llvm.intr.*` that `arith` and `math` have nothing like: bits moved about, classes of floats, ordered sums of a vector.

    llvm.intr.fshl(%a, %b, %n)                 the upper half of (a:b) << (n mod bits)
    "llvm.intr.is.fpclass"(%x) <{bit = 3}>     whether the value is of one of the classes in `bit`

Source: LLVM language reference, "Bit Manipulation Intrinsics", "llvm.is.fpclass", "llvm.vector.reduce.fadd".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, cast

import ml_dtypes
import numpy as np

from xla_emitters.dialects import llvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith import FLOAT_OPS
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules, Unary
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.math import integer_exponent_power
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of, unsigned, wrap

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
        # Shifting right by n is shifting left by the rest, but for n = 0.
        return np.where(shift == 0, lower, funnel_shift(form, True, upper, lower, wrap(form, form.bits - shift)))
    left = scalars.shift_left(form, upper, wrap(form, shift))
    right = scalars.shift_right_logical(form, lower, wrap(form, form.bits - shift))
    return np.where(shift == 0, upper, left | right)


RULES.of_form(lambda form: partial(reversed_bits, form), llvm.BitReverseOp)
RULES.of_form(lambda form: partial(swapped_bytes, form), llvm.ByteSwapOp)
RULES.of_form(lambda form: partial(funnel_shift, form, True), llvm.FunnelShiftLeftOp)
RULES.of_form(lambda form: partial(funnel_shift, form, False), llvm.FunnelShiftRightOp)


@RULES.elementwise(llvm.PowIOp)
def powi(op: llvm.PowIOp) -> Binary:
    form, exponent_form = form_of(op.val.type), form_of(op.power.type)

    def run(base: Array, exponent: Array) -> Array:
        power = integer_exponent_power(scalars.widen(form, base), scalars.signed(exponent_form, exponent))
        return scalars.narrow(form, power)

    return run


@RULES.elementwise(llvm.IsFPClassOp)
def is_fpclass(op: llvm.IsFPClassOp) -> Unary:
    form, wanted = form_of(op.arg.type), op.bit.value.data
    if not np.isinf(np.array(np.inf, form.rounded)):
        raise Unsupported(f"classes of {form.name}, which has no infinities", stage="simt")
    fraction_bits: int = cast("Any", ml_dtypes.finfo(form.rounded)).nmant
    all_exponents = (1 << form.bits - 1 - fraction_bits) - 1

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


def _ordered(op: llvm.VectorReduceFAddOp | llvm.VectorReduceFMulOp, name: str) -> Kernel:
    combine = FLOAT_OPS[name](form_of(op.start_value.type))

    def run(machine: Machine, start: Array, elements: tuple[Array, ...]) -> Array:
        return reduce(combine, elements, start)

    return run


RULES.op(llvm.VectorReduceFAddOp)(partial(_ordered, name="add"))
RULES.op(llvm.VectorReduceFMulOp)(partial(_ordered, name="mul"))


@RULES.op(llvm.StackSaveOp)
def stacksave(op: llvm.StackSaveOp) -> Callable[[Machine], Array]:
    return lambda machine: scalars.constant(INDEX, 0)


@RULES.op(llvm.StackRestoreOp)
def stackrestore(op: llvm.StackRestoreOp) -> Callable[[Machine, Array], None]:
    """Allocas live as long as the chunk: there is nothing to free."""
    return lambda machine, saved: None
