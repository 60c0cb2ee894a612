"""Converts a value of one HLO type to another: in NumPy (the reference) and in `arith` ops (the code).

    from \\ to | pred    | integer                       | float                      | complex
    pred      | itself  | as s8 0 or 1                  | as s8                      | imag 0
    integer   | x != 0  | wrap, or extend by x's sign   | nearest even, once         | imag 0
    float     | x != 0  | toward zero, saturating,      | nearest even, once         | imag 0
              | (NaN is | NaN gives 0                   |                            |
              |  true)  |                               |                            |
    complex   | by the real part                                                     | by parts

"Once" matters: f64 to bf16 by way of f32 rounds twice and is off by one unit for one value in 2^29; so does s64 to f32 by way
of f64. NumPy and ml_dtypes do that; `round_once` and `_exact_float64` do not.
Source: docs/reference/1 5.4 "convert rules".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, IndexType, IntegerType, f16, f32, f64, i1, i8, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.float_bits import float_attr
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Array, DType, Kind, dtype_of

# ---------------------------------------------------------------------------------------------------- NumPy


def convert_array(x: Array, source: DType, target: DType) -> Array:
    """The result of HLO's `convert` of `x`, of type `source`, to `target`; same shape."""
    if source == target:
        return x
    with np.errstate(all="ignore"):
        if source.kind is Kind.COMPLEX:
            if target.kind is Kind.COMPLEX:
                return x.astype(target.numpy)
            part = np.dtype(np.float32 if source.bits == 64 else np.float64)
            return _convert_real(np.real(x).astype(part), Kind.FLOAT, target)
        if target.kind is Kind.COMPLEX:
            half = np.dtype(np.float32 if target.bits == 64 else np.float64)
            return _to_float(x, source.kind, half).astype(target.numpy)
        return _convert_real(x, source.kind, target)


def _convert_real(x: Array, kind: Kind, target: DType) -> Array:
    match target.kind:
        case Kind.PRED:
            return (widen(x) != 0) if kind is Kind.FLOAT else x.astype(np.int64) != 0
        case Kind.FLOAT:
            return _to_float(x, kind, target.numpy)
        case _:
            return _saturate(widen(x), target) if kind is Kind.FLOAT else wrap(widen(x), target)


F32_BYTES = 4


def widen(x: Array) -> Array:
    """`x` in the narrowest type NumPy computes in: floats below 32 bits in float32, integers below 8 bits in a byte.

    Exact for every value; pred, 8-bit and wider integers, f32, f64 and complex come back as they are.
    """
    kind = x.dtype.kind
    if kind in "biuc" or (kind == "f" and x.dtype.itemsize >= F32_BYTES):
        return x
    name = x.dtype.name
    if name.startswith("int"):
        return x.astype(np.int8)
    if name.startswith("uint"):
        return x.astype(np.uint8)
    return x.astype(np.float32)


def wrap(x: Array, target: DType) -> Array:
    """Integers of any width reduced modulo 2^bits into the integer type `target`."""
    if target.bits >= 8 and target.numpy.itemsize * 8 == target.bits:
        return x.astype(target.numpy)
    bits = np.iinfo(np.int8).bits - target.significant_bits
    low = x.astype(np.uint8) << np.uint8(bits)
    if target.kind is Kind.SIGNED:
        return (low.view(np.int8) >> np.int8(bits)).astype(target.numpy)
    return (low >> np.uint8(bits)).astype(target.numpy)


def round_once(x: Array, target: np.dtype[Any]) -> Array:
    """`x` (float32 or float64) rounded to the float type `target`, to nearest even, in one step."""
    if x.dtype == target:
        return x
    if x.dtype == np.float64 and target.itemsize < 4 and target != np.float16:
        x = _round_to_odd(x)
    return x.astype(target)


def _round_to_odd(x: Array) -> Array:
    """float64 to float32 so that rounding again to any narrower type is as if done once.

    Toward zero, then the last bit is set when anything was lost: the lost part can no longer look like a tie.
    """
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32).copy()
    bits -= np.abs(back) > np.abs(x)
    lost = (back != x) & ~np.isnan(x)
    bits |= lost
    return bits.view(np.float32)


def _to_float(x: Array, kind: Kind, target: np.dtype[Any]) -> Array:
    x = widen(x)
    if kind is not Kind.FLOAT and target != np.float64:
        x = _exact_float64(x)
    elif kind is not Kind.FLOAT:
        return x.astype(np.float64)
    return round_once(x, target)


def _exact_float64(x: Array) -> Array:
    """Integers (or pred) as float64, so that a further rounding to 24 bits or fewer is correct.

    From 2^53 up, the low 12 bits only decide on which side of a tie the value is: they become one sticky bit.
    """
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low, sticky = x.dtype.type(0xFFF), x.dtype.type(0x800)
    large = (x >= 2**53) | ((x <= -(2**53)) if x.dtype.kind == "i" else False)
    return np.where(large & ((x & low) != 0), (x & ~low) | sticky, x).astype(np.float64)


def _saturate(x: Array, target: DType) -> Array:
    """Floats to the nearest integer toward zero that `target` holds; NaN gives 0."""
    lowest, highest = target.integers[0], target.integers[-1]
    wide = np.dtype(np.int64 if lowest < 0 else np.uint64)
    x = x.astype(np.float64)
    inside = (x > lowest) & (x < float(highest))
    whole = np.where(inside, np.trunc(x), 0.0).astype(wide)
    whole = np.where(x <= lowest, wide.type(lowest), np.where(x >= float(highest), wide.type(highest), whole))
    return wrap(np.where(np.isnan(x), wide.type(0), whole), target)


# ---------------------------------------------------------------------------------------------------- code


_OpT = TypeVar("_OpT", bound=Operation)


class Inserter(Protocol):
    """Inserts ops at the point of emission. `ElementContext` is one."""

    def insert(self, op: _OpT, /) -> _OpT: ...


def constant(e: Inserter, value: complex, ir_type: Attribute) -> SSAValue:
    """A constant of a float, complex or signless integer (or index) type; integers wrap to the width."""
    if isa(ir_type, ComplexType[AnyFloat]):
        from xla_emitters.dialects.mlir.complex import ConstantOp  # imported here: few kernels have complex numbers

        parts = [float_attr(float(part), ir_type.element_type) for part in (value.real, value.imag)]
        return e.insert(ConstantOp(ArrayAttr(parts), ir_type)).complex
    assert not isinstance(value, complex)
    if isa(ir_type, AnyFloat):
        return e.insert(arith.ConstantOp(float_attr(float(value), ir_type))).result
    if isa(ir_type, IntegerType):
        return e.insert(arith.ConstantOp(integer(int(value), ir_type, True))).result
    return e.insert(arith.ConstantOp(integer(int(value), IndexType()))).result


def select_by_flag(
    e: Inserter, flag: SSAValue, values: Sequence[SSAValue], others: Sequence[SSAValue]
) -> list[SSAValue]:
    """`values` where the i8 `flag` is set, else `others`."""
    is_set = e.insert(arith.CmpiOp(flag, constant(e, 0, i8), "ne")).result
    pairs = zip(values, others, strict=True)
    return [e.insert(arith.SelectOp(is_set, value, other)).result for value, other in pairs]


def extend_i1(e: Inserter, bit: SSAValue) -> SSAValue:
    """A comparison's i1 as the byte 0 or 1 of a pred."""
    return e.insert(arith.ExtUIOp(bit, IntegerType(8))).result


def emit_convert(e: Inserter, x: SSAValue, source: DType, target: DType) -> SSAValue:
    """Ops that turn `x`, one element of type `source` as kernels store it, into `target`."""
    if source == target:
        return x
    if Kind.COMPLEX in (source.kind, target.kind):
        return _convert_complex(e, x, source, target)
    if target.kind is Kind.PRED:
        return _to_pred(e, x, source)
    if target.significant_bits == 1:
        return _to_one_bit(e, x, source, target)
    if source.significant_bits == 1:
        x = low_bit(e, x)
    if source.kind is Kind.FLOAT:
        return emit_float_cast(e, x, target.storage_type) if target.kind is Kind.FLOAT else _to_int(e, x, target)
    if target.kind is Kind.FLOAT:
        return _int_to_float(e, x, source, target)
    return _int_to_int(e, x, source, target.storage_type)


def _convert_complex(e: Inserter, x: SSAValue, source: DType, target: DType) -> SSAValue:
    """Complex targets: by parts (a real number's imaginary part is 0); real targets: the real part, converted."""
    from xla_emitters.dialects.mlir import complex  # imported here: few kernels have complex numbers

    if isa(x.type, ComplexType[AnyFloat]):
        part = dtype_of(x.type.element_type)
        real: SSAValue = e.insert(complex.ReOp(x)).result
        if target.kind is not Kind.COMPLEX:
            return emit_convert(e, real, part, target)
        imaginary: SSAValue | None = e.insert(complex.ImOp(x)).result
    else:
        part, real, imaginary = source, x, None
    assert isa(target.ir_type, ComplexType[AnyFloat])
    wanted = dtype_of(target.ir_type.element_type)
    converted = (
        emit_convert(e, real, part, wanted),
        constant(e, 0.0, wanted.ir_type) if imaginary is None else emit_convert(e, imaginary, part, wanted),
    )
    return e.insert(complex.CreateOp(*converted, target.ir_type)).complex


def _to_one_bit(e: Inserter, x: SSAValue, source: DType, target: DType) -> SSAValue:
    """s1 and u1 are a byte that holds the value in its low bit; the other bits are 0, as in a pred."""
    if source.kind is Kind.FLOAT:
        x = _to_int(e, x, target)
    elif source.kind is Kind.PRED or source.significant_bits == 1:
        return x
    return extend_i1(e, low_bit(e, x))


def low_bit(e: Inserter, x: SSAValue) -> SSAValue:
    """The value of an s1 or u1, as an i1."""
    return e.insert(arith.TruncIOp(x, i1)).result


def _to_pred(e: Inserter, x: SSAValue, source: DType) -> SSAValue:
    if source.kind is Kind.FLOAT:
        x = at_least_f16(e, x)
        return extend_i1(e, e.insert(arith.CmpfOp(x, constant(e, 0.0, x.type), "une")).result)
    return extend_i1(e, e.insert(arith.CmpiOp(x, constant(e, 0, x.type), "ne")).result)


def at_least_f16(e: Inserter, x: SSAValue) -> SSAValue:
    """Floats of eight bits or fewer as f32, because no arithmetic exists in them; wider ones unchanged."""
    return emit_float_cast(e, x, f32) if dtype_of(x.type).is_narrow_float else x


def float_bits(ir_type: Attribute) -> int:
    if not isa(ir_type, AnyFloat):
        raise TypeError(f"{ir_type} is not a float type")
    return ir_type.bitwidth


def emit_float_cast(e: Inserter, x: SSAValue, target: Attribute) -> SSAValue:
    """`x` in another float type, rounded once where it narrows."""
    if x.type == target:
        return x
    if float_bits(x.type) == float_bits(target):
        middle = f16 if float_bits(target) == 8 else f32
        return emit_float_cast(e, e.insert(arith.ExtFOp(x, middle)).result, target)
    narrows = float_bits(x.type) > float_bits(target)
    return e.insert(arith.TruncFOp(x, target) if narrows else arith.ExtFOp(x, target)).result


def _to_int(e: Inserter, x: SSAValue, target: DType) -> SSAValue:
    """Rounds toward zero and saturates. Outside the range the hardware conversion is undefined: selects replace its result."""
    x = at_least_f16(e, x)
    float_type, int_type = x.type, target.storage_type
    assert isa(int_type, IntegerType)
    lowest, highest = target.integers[0], target.integers[-1]
    to_integer = arith.FPToSIOp if target.kind is Kind.SIGNED else arith.FPToUIOp
    raw = e.insert(to_integer(x, int_type)).result

    def select(predicate: str, bound: SSAValue, then: int, otherwise: SSAValue) -> SSAValue:
        holds = e.insert(arith.CmpfOp(x, bound, predicate)).result
        return e.insert(arith.SelectOp(holds, constant(e, then, int_type), otherwise)).result

    value = select("ole", constant(e, nearest(lowest, float_type), float_type), lowest, raw)
    value = select("oge", constant(e, nearest(highest, float_type), float_type), highest, value)
    return select("uno", x, 0, value)


def nearest(value: int, ir_type: Attribute) -> float:
    """An integer as the float type `ir_type` holds it: 127 in bf16 is 127, 2^31 - 1 in f32 is 2^31 and in f16 infinity."""
    with np.errstate(over="ignore"):
        return float(dtype_of(ir_type).numpy.type(float(value)))


def _int_to_float(e: Inserter, x: SSAValue, source: DType, target: DType) -> SSAValue:
    # No hardware converts to eight bits. Rounding to f32 first is exact: integers that f32 cannot hold overflow f8, except f8e8m0fnu.
    through = f32 if target.is_narrow_float else target.storage_type
    if target.name == "f8e8m0fnu" and source.bits > 16:
        x, through = _exact_in_f64(e, x), f64
    assert isa(through, AnyFloat)
    unsigned = source.kind is Kind.UNSIGNED
    value = e.insert(arith.UIToFPOp(x, through) if unsigned else arith.SIToFPOp(x, through)).result
    return emit_float_cast(e, value, target.storage_type)


def _exact_in_f64(e: Inserter, x: SSAValue) -> SSAValue:
    """A 64-bit integer from 2^53 up with its low bits merged into one sticky bit, see `_exact_float64`; smaller ones unchanged."""
    if x.type != i64:
        return x

    def masked(make: Callable[..., arith.AndIOp | arith.OrIOp], a: SSAValue, b: int | SSAValue) -> SSAValue:
        return e.insert(make(a, constant(e, b, i64) if isinstance(b, int) else b)).result

    lost = e.insert(arith.CmpiOp(masked(arith.AndIOp, x, 0xFFF), constant(e, 0, i64), "ne")).result
    sticky = e.insert(arith.SelectOp(lost, constant(e, 0x800, i64), constant(e, 0, i64))).result
    folded = masked(arith.OrIOp, masked(arith.AndIOp, x, ~0xFFF), sticky)
    large = e.insert(arith.CmpiOp(x, constant(e, 1 << 53, i64), "uge")).result
    return e.insert(arith.SelectOp(large, folded, x)).result


def _int_to_int(e: Inserter, x: SSAValue, source: DType, target: Attribute) -> SSAValue:
    assert isa(x.type, IntegerType)
    assert isa(target, IntegerType)
    if x.type.bitwidth == target.bitwidth:
        return x
    if x.type.bitwidth > target.bitwidth:
        return e.insert(arith.TruncIOp(x, target)).result
    unsigned = source.kind is Kind.UNSIGNED
    return e.insert(arith.ExtUIOp(x, target) if unsigned else arith.ExtSIOp(x, target)).result
