"""The code of one element of an HLO op that is not a single `arith` or `math` op.

    divide (s32)     %z = cmpi eq %y, 0            shift-left     %i = cmpi ult %y, 32
                     %o = MIN / -1 ?                              %s = shli %x, %y
                     %s = select %z|%o, 1, %y                     select %i, %s, 0
                     select %z, -1, (divsi %x, %s)

Every function takes an `Inserter`, the deciding HLO type (the first operand's) and the operands as kernels store them: pred is an i8
that is 0 or 1, unsigned integers are signless. It returns the result; the caller extends an i1 to pred's byte. Division guards its divisor
and shifts mask their result, because the hardware's result for 0, overflow or a too large amount is not HLO's. Floats of eight bits are
computed in f32, not here.
Source: docs/reference/1 5.2 and 5.3.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import IntegerType, f32, i1, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.context import op_named
from xla_emitters.dialects.hlo.convert import Inserter, constant, emit_float_cast, float_bits
from xla_emitters.dialects.hlo.elementwise_meaning import carries_beyond, last_bit_of_even, range_kept
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, math, scf
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dtypes import DType, Kind

Code: TypeAlias = Callable[..., SSAValue]
"""(inserter, deciding type, operands...) -> result."""


def op(make: Callable[..., Operation] | str) -> Code:
    """A function that emits one op with one result, built from the operands alone.

    make  the op's class, or its name: then its dialect is loaded by the first kernel that has the op
    """

    def code(e: Inserter, _: DType, *operands: SSAValue) -> SSAValue:
        return e.insert(_class_named(make)(*operands) if isinstance(make, str) else make(*operands)).results[0]

    return code


_class_named: Callable[[str], Callable[..., Operation]] = cache(op_named)


def approximate(name: str) -> Code:
    """As `op`, for `exponential` and `log`: with `afn` for 16-bit types, where a faster function still rounds to the same value."""

    def code(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
        flags = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC]) if float_bits(x.type) == 16 else None
        return e.insert(_class_named(name)(x, flags)).results[0]

    return code


def operand(_: Inserter, __: DType, x: SSAValue) -> SSAValue:
    return x


def _width(x: SSAValue) -> int:
    assert isa(x.type, IntegerType)
    return x.type.bitwidth


def _lowest(x: SSAValue) -> int:
    return -(1 << _width(x) - 1)


def _compare(e: Inserter, predicate: str, x: SSAValue, y: SSAValue | int) -> SSAValue:
    return e.insert(arith.CmpiOp(x, constant(e, y, x.type) if isinstance(y, int) else y, predicate)).result


def _select(e: Inserter, condition: SSAValue, then: SSAValue | int, otherwise: SSAValue | int) -> SSAValue:
    """arith.select; one of the two must be a value, and an int becomes a constant of its type."""
    shared = then.type if isinstance(then, SSAValue) else otherwise.type if isinstance(otherwise, SSAValue) else None
    assert shared is not None
    values = (constant(e, v, shared) if isinstance(v, int) else v for v in (then, otherwise))
    return e.insert(arith.SelectOp(condition, *values)).result


def select(e: Inserter, _: DType, predicate: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    bit = e.insert(arith.TruncIOp(predicate, i1)).result
    return _select(e, bit, then, otherwise)


def clamp(maximum: Callable[..., Operation], minimum: Callable[..., Operation]) -> Code:
    def code(e: Inserter, _: DType, lowest: SSAValue, x: SSAValue, highest: SSAValue) -> SSAValue:
        return e.insert(minimum(e.insert(maximum(lowest, x)).results[0], highest)).results[0]

    return code


# ------------------------------------------------------------------------------------------- integers


def negate(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    return e.insert(arith.SubiOp(constant(e, 0, x.type), x)).result


def absolute(e: Inserter, dt: DType, x: SSAValue) -> SSAValue:
    return _select(e, _compare(e, "sge", x, 0), x, negate(e, dt, x))


def complement(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    return e.insert(arith.XOrIOp(x, constant(e, -1, x.type))).result


def logical_not(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    return _compare(e, "eq", x, 0)


def _safe_divisor(e: Inserter, dt: DType, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """(whether y is 0, y with 1 in place of divisors for which the division is undefined)."""
    is_zero = bad = _compare(e, "eq", y, 0)
    if dt.kind is Kind.SIGNED:
        lowest, minus_one = _compare(e, "eq", x, _lowest(x)), _compare(e, "eq", y, -1)
        overflows = e.insert(arith.AndIOp(lowest, minus_one)).result
        bad = e.insert(arith.OrIOp(is_zero, overflows)).result
    return is_zero, _select(e, bad, 1, y)


def _in_a_byte(code: Code, e: Inserter, dt: DType, *bits: SSAValue) -> SSAValue:
    """`code` for one-bit numbers, computed in eight bits, because s1 has no 1 to divide by."""
    extend = arith.ExtSIOp if dt.kind is Kind.SIGNED else arith.ExtUIOp
    wide = (e.insert(extend(bit, IntegerType(8))).results[0] for bit in bits)
    return e.insert(arith.TruncIOp(code(e, dt, *wide), i1)).result


def divide(e: Inserter, dt: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    if x.type == i1:
        return _in_a_byte(divide, e, dt, x, y)
    is_zero, safe = _safe_divisor(e, dt, x, y)
    quotient = e.insert(arith.DivSIOp(x, safe) if dt.kind is Kind.SIGNED else arith.DivUIOp(x, safe)).result
    return _select(e, is_zero, -1, quotient)


def remainder(e: Inserter, dt: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    if x.type == i1:
        return _in_a_byte(remainder, e, dt, x, y)
    is_zero, safe = _safe_divisor(e, dt, x, y)
    rest = e.insert(arith.RemSIOp(x, safe) if dt.kind is Kind.SIGNED else arith.RemUIOp(x, safe)).result
    return _select(e, is_zero, x, rest)


def shift_left(e: Inserter, _: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    return _select(e, _compare(e, "ult", y, _width(x)), e.insert(arith.ShLIOp(x, y)).result, 0)


def shift_right_logical(e: Inserter, _: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    return _select(e, _compare(e, "ult", y, _width(x)), e.insert(arith.ShRUIOp(x, y)).result, 0)


def shift_right_arithmetic(e: Inserter, _: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    sign = e.insert(arith.ShRSIOp(x, constant(e, _width(x) - 1, x.type))).result
    return _select(e, _compare(e, "ult", y, _width(x)), e.insert(arith.ShRSIOp(x, y)).result, sign)


def multiply_high(e: Inserter, dt: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    bits, signed = _width(x), dt.kind is Kind.SIGNED
    wide = IntegerType(2 * bits)
    a, b = (e.insert(arith.ExtSIOp(v, wide) if signed else arith.ExtUIOp(v, wide)).result for v in (x, y))
    product = e.insert(arith.MuliOp(a, b)).result
    shift = arith.ShRSIOp if signed else arith.ShRUIOp
    return e.insert(arith.TruncIOp(e.insert(shift(product, constant(e, bits, wide))).result, IntegerType(bits))).result


def power(e: Inserter, dt: DType, x: SSAValue, y: SSAValue) -> SSAValue:
    """Square and multiply over all bits of the exponent; a negative one gives 0 but for the bases 1 and -1."""
    integer = x.type
    assert isa(integer, IntegerType)
    one = constant(e, 1, integer)
    zero, step = constant(e, 0, i32), constant(e, 1, i32)
    body = Block(arg_types=[i32, integer, integer, integer])
    _, result, square, exponent = body.args
    b = QuickBuilder(InsertPoint.at_end(body))
    odd = _compare(b, "ne", b.insert(arith.AndIOp(exponent, one)).result, 0)
    multiplied = b.insert(arith.MuliOp(result, square)).result
    b.insert(
        scf.YieldOp(
            _select(b, odd, multiplied, result),
            b.insert(arith.MuliOp(square, square)).result,
            b.insert(arith.ShRUIOp(exponent, one)).result,
        )
    )
    loop = e.insert(scf.ForOp(zero, constant(e, _width(x), i32), step, [one, x, y], body))
    if dt.kind is Kind.UNSIGNED:
        return loop.results[0]
    parity = _compare(e, "eq", e.insert(arith.AndIOp(y, one)).result, 0)
    by_minus_one = _select(e, _compare(e, "eq", x, -1), _select(e, parity, 1, constant(e, -1, integer)), 0)
    inverse = _select(e, _compare(e, "eq", x, 1), 1, by_minus_one)
    return _select(e, _compare(e, "sge", y, 0), loop.results[0], inverse)


def sign_of_integer(e: Inserter, dt: DType, x: SSAValue) -> SSAValue:
    is_zero = _compare(e, "eq", x, 0)
    if dt.kind is Kind.UNSIGNED:
        return _select(e, is_zero, x, 1)
    top = e.insert(arith.ShRSIOp(x, constant(e, _width(x) - 1, x.type))).result
    return _select(e, is_zero, x, e.insert(arith.OrIOp(top, constant(e, 1, x.type))).result)


# ------------------------------------------------------------------------------------------- floats


def sign_of_float(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    """NaN and both zeros are their own sign."""
    is_nan = e.insert(arith.CmpfOp(x, x, "uno")).result
    nonzero = e.insert(arith.CmpfOp(x, constant(e, 0.0, x.type), "one")).result
    magnitude = e.insert(arith.SelectOp(nonzero, constant(e, 1.0, x.type), constant(e, 0.0, x.type))).result
    signed = e.insert(math.CopySignOp(magnitude, x)).result
    return e.insert(arith.SelectOp(is_nan, x, signed)).result


def is_finite(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    magnitude = e.insert(math.AbsFOp(x)).result
    return e.insert(arith.CmpfOp(magnitude, constant(e, python_math.inf, x.type), "one")).result


def logistic(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x)); 16-bit types are computed in f32, because three roundings would be off by more than one unit."""
    own = x.type
    x = emit_float_cast(e, x, f32) if float_bits(own) < 32 else x
    one = constant(e, 1.0, x.type)
    exponential = e.insert(math.ExpOp(e.insert(arith.NegfOp(x)).result)).result
    value = e.insert(arith.DivfOp(one, e.insert(arith.AddfOp(exponential, one)).result)).result
    return emit_float_cast(e, value, own)


def zero(e: Inserter, _: DType, x: SSAValue) -> SSAValue:
    """The imaginary part of a real number."""
    return constant(e, 0.0, x.type)


# ------------------------------------------------------------------------------------------- complex numbers


def logistic_of_complex(e: Inserter, _: DType, z: SSAValue) -> SSAValue:
    """1 / (1 + exp(-z))"""
    from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

    one = constant(e, 1.0, z.type)
    exponential = e.insert(complex.ExpOp(e.insert(complex.NegOp(z)).result)).result
    return e.insert(complex.DivOp(one, e.insert(complex.AddOp(exponential, one)).result)).result


def compare_complex(e: Inserter, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """Compares the real parts, then the imaginary parts; a NaN part makes the values unequal, and unordered if it is compared."""
    from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

    if direction in ("EQ", "NE"):
        return e.insert((complex.EqualOp if direction == "EQ" else complex.NotEqualOp)(x, y)).result
    real, imaginary = (tuple(e.insert(part(z)).result for z in (x, y)) for part in (complex.ReOp, complex.ImOp))
    is_tie = compare_floats(e, "EQ", False, *real)
    of_tie = e.insert(arith.AndIOp(is_tie, compare_floats(e, direction, False, *imaginary))).result
    strictly = {"GE": "GT", "LE": "LT"}.get(direction, direction)
    return e.insert(arith.OrIOp(of_tie, compare_floats(e, strictly, False, *real))).result


def extreme_complex(direction: str) -> Code:
    """The first operand if it compares as `direction` to the second, else the second."""

    def code(e: Inserter, _: DType, x: SSAValue, y: SSAValue) -> SSAValue:
        return e.insert(arith.SelectOp(compare_complex(e, direction, x, y), x, y)).result

    return code


def clamp_complex(e: Inserter, dt: DType, lowest: SSAValue, x: SSAValue, highest: SSAValue) -> SSAValue:
    return extreme_complex("LE")(e, dt, extreme_complex("GE")(e, dt, lowest, x), highest)


# ------------------------------------------------------------------------------------------- order


def compare_floats(e: Inserter, direction: str, total_order: bool, x: SSAValue, y: SSAValue) -> SSAValue:
    if total_order:
        return _compare(e, _INTEGER[direction], _total_order(e, x), _total_order(e, y))
    return e.insert(arith.CmpfOp(x, y, _FLOAT[direction])).result


def compare_integers(e: Inserter, direction: str, unsigned: bool, x: SSAValue, y: SSAValue) -> SSAValue:
    predicate = _INTEGER[direction]
    return _compare(e, predicate.replace("s", "u") if unsigned else predicate, x, y)


_FLOAT = {"EQ": "oeq", "NE": "une", "GE": "oge", "GT": "ogt", "LE": "ole", "LT": "olt"}
_INTEGER = {"EQ": "eq", "NE": "ne", "GE": "sge", "GT": "sgt", "LE": "sle", "LT": "slt"}


def _total_order(e: Inserter, x: SSAValue) -> SSAValue:
    """The bits as an integer that orders as IEEE's totalOrder does: negative ones have all bits but the sign flipped."""
    integer = IntegerType(float_bits(x.type))
    bits = e.insert(arith.BitcastOp(x, integer)).result
    flipped = e.insert(arith.XOrIOp(bits, constant(e, (1 << integer.bitwidth - 1) - 1, integer))).result
    return _select(e, _compare(e, "slt", bits, 0), flipped, bits)


_InsertedT = TypeVar("_InsertedT", bound=Operation)


def reduce_precision(e: Inserter, dt: DType, exponent_bits: int, mantissa_bits: int, x: SSAValue) -> SSAValue:
    """The bit pattern rounded, then clamped at both ends of the exponent range; see `elementwise_meaning.reduce_precision`."""
    form = dt.float_format
    integer = IntegerType(dt.bits)
    bits = e.insert(arith.BitcastOp(x, integer)).result

    def k(value: int) -> SSAValue:
        return constant(e, value, integer)

    def i(make: Callable[[SSAValue, SSAValue], _InsertedT], a: SSAValue, b: SSAValue | int) -> SSAValue:
        return e.insert(make(a, k(b) if isinstance(b, int) else b)).results[0]

    rounded = i(arith.AndIOp, bits, form.sign - 1) if form.sign else bits
    if mantissa_bits < form.fraction_bits:
        dropped = form.fraction_bits - mantissa_bits
        odd = i(arith.AndIOp, i(arith.ShRUIOp, rounded, dropped), 1)
        if last := last_bit_of_even(form, mantissa_bits):
            odd = i(arith.XOrIOp, odd, last)
        raised = i(arith.AddiOp, i(arith.AddiOp, rounded, (1 << dropped - 1) - 1), odd)
        rounded = i(arith.AndIOp, raised, -(1 << dropped))
    lowest, highest = range_kept(form, exponent_bits)
    if lowest:
        rounded = _select(e, _compare(e, "ult", rounded, lowest), form.below, rounded)
    if highest <= form.largest or not carries_beyond(form):
        rounded = _select(e, _compare(e, "uge", rounded, highest), form.beyond, rounded)
    if form.sign:
        signed = i(arith.OrIOp, rounded, i(arith.AndIOp, bits, form.sign))
        rounded = signed if form.has_minus_zero else _select(e, _compare(e, "eq", rounded, 0), 0, signed)
    value = e.insert(arith.BitcastOp(rounded, x.type)).result
    return e.insert(arith.SelectOp(e.insert(arith.CmpfOp(x, x, "uno")).result, x, value)).result
