"""HLO's element types, one row each: width, type in the `hlo` dialect, storage type in kernels, NumPy type.

    >>> dtype("bf16").bits, str(dtype("bf16").ir_type), dtype("bf16").numpy.name
    (16, 'bf16', 'bfloat16')
    >>> str(dtype("pred").ir_type), str(dtype("pred").storage_type)
    ('i1', 'i8')

HLO's signed integers are signless in IR (s32 is i32), unsigned ones keep their sign in the `hlo` dialect (u32 is ui32) and lose
it in kernels. pred is i1 in the `hlo` dialect and one byte, 0 or 1, in kernels. Types without storage here (token, opaque,
six-bit floats) parse, verify and print, and are refused by name where they would have to be stored.
Source: docs/reference/1 5.1 "Types" and 6.4 "Dtypes".
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from math import ldexp
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from xla_emitters.errors import Unsupported
from xla_emitters.support.late_dataclass import dataclass

# Element types are known only at run time here, so arrays are typed by shape-less `Any`.
Array: TypeAlias = npt.NDArray[Any]
NumpyType: TypeAlias = np.dtype[Any]


class Kind(Enum):
    """The kind of arithmetic that a type has."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


class Specials(Enum):
    """The special values of a float format, and their bit patterns.

    IEEE      the largest exponent: infinity with fraction 0, else NaN
    TOP_NAN   NaN is all ones; no infinity
    ZERO_NAN  NaN is the pattern of -0; no infinity and no -0
    NONE      every pattern is a number
    """

    IEEE = "ieee"
    TOP_NAN = "top_nan"
    ZERO_NAN = "zero_nan"
    NONE = "none"


@dataclass(frozen=True)
class FloatFormat:
    """The bits of a float type: sign, exponent, fraction. With exponent 0 a number is subnormal.

    bias      exponent field of 1.0
    has_sign  f8e8m0fnu, the type without sign, has no zero and no subnormal numbers either

    Patterns are integers without the sign bit.

    >>> half = dtype("f16").float_format
    >>> hex(half.sign), hex(half.one), hex(half.largest), hex(half.beyond), half.max, half.smallest_normal
    ('0x8000', '0x3c00', '0x7bff', '0x7c00', 65504.0, 6.103515625e-05)
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials = Specials.IEEE
    has_sign: bool = True

    @property
    def bits(self) -> int:
        return self.has_sign + self.exponent_bits + self.fraction_bits

    @property
    def _patterns(self) -> int:
        return 1 << self.exponent_bits + self.fraction_bits

    @property
    def sign(self) -> int:
        """The sign bit; 0 in a type without sign."""
        return self._patterns if self.has_sign else 0

    @property
    def one(self) -> int:
        """The pattern of 1.0."""
        return self.bias << self.fraction_bits

    @property
    def largest(self) -> int:
        """The pattern of the largest finite value."""
        match self.specials:
            case Specials.IEEE:
                return self._patterns - (1 << self.fraction_bits) - 1
            case Specials.TOP_NAN:
                return self._patterns - 2
            case Specials.ZERO_NAN | Specials.NONE:
                return self._patterns - 1

    @property
    def beyond(self) -> int:
        """The pattern that a value above the largest is rounded to: infinity, NaN, or the largest finite value."""
        return self.largest if self.specials is Specials.NONE else self.largest + 1

    @property
    def nan(self) -> int:
        """The pattern that NaN is rounded to: a quiet NaN, or in a type without NaN the sign bit, which is a zero."""
        match self.specials:
            case Specials.IEEE:
                return self.beyond | 1 << self.fraction_bits - 1
            case Specials.TOP_NAN:
                return self._patterns - 1
            case Specials.ZERO_NAN | Specials.NONE:
                return self.sign

    @property
    def below(self) -> int:
        """The pattern that a value too small is rounded to: zero, or NaN in a type without zero."""
        return 0 if self.has_sign else self.nan

    @property
    def has_infinity(self) -> bool:
        return self.specials is Specials.IEEE

    @property
    def has_signed_nan(self) -> bool:
        """Whether there is NaN of either sign."""
        return self.has_sign and self.specials in (Specials.IEEE, Specials.TOP_NAN)

    @property
    def has_minus_zero(self) -> bool:
        return self.has_sign and self.specials is not Specials.ZERO_NAN

    @property
    def max(self) -> float:
        """The largest finite value."""
        return self._value(self.largest)

    @property
    def smallest_normal(self) -> float:
        return self._value(1 << self.fraction_bits if self.has_sign else 0)

    def _value(self, pattern: int) -> float:
        """The value of a normal number's pattern."""
        implicit = 1 << self.fraction_bits
        power = (pattern >> self.fraction_bits) - self.bias - self.fraction_bits
        return ldexp(pattern % implicit + implicit, power)


@dataclass(frozen=True)
class DType:
    """One HLO element type.

    name          HLO's spelling
    bits          storage bits of one element (pred 8; s4 is 4: two to a byte)
    ir_type       element type in the `hlo` dialect
    storage_type  element type in kernels: signless; pred, s1 and u1 are i8
    numpy         element type of a logical array; sub-byte types take one byte an element
    format        the bits of a float type; None for other kinds
    """

    name: str
    kind: Kind
    bits: int
    ir_type: Attribute
    storage_type: Attribute
    numpy: NumpyType
    format: FloatFormat | None = None

    @property
    def bytes(self) -> int:
        """Bytes of one element; 1 for types that share a byte."""
        return max(1, self.bits // 8)

    def size_bytes(self, elements: int) -> int:
        """Bytes of `elements` elements in a buffer, sub-byte types packed."""
        return -(-elements * self.bits // 8)

    @property
    def significant_bits(self) -> int:
        """The bits that hold the value: 1 of the 8 of s1."""
        return int(self.name[1:]) if self.is_integer else self.bits

    @property
    def integers(self) -> range:
        """The values of an integer type; unlike NumPy's limits, of types narrower than a byte too."""
        bits = self.significant_bits
        return range(-(1 << bits - 1), 1 << bits - 1) if self.kind is Kind.SIGNED else range(1 << bits)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_narrow_float(self) -> bool:
        """A float of eight bits or fewer: only conversions exist for it."""
        return self.kind is Kind.FLOAT and self.bits < 16

    @property
    def float_format(self) -> FloatFormat:
        """`format` of a float type."""
        assert self.format is not None, f"{self.name} is not a float type"
        return self.format

    @property
    def part(self) -> DType:
        """The type of a complex number's parts; for a real type, the type itself."""
        return {"c64": dtype("f32"), "c128": dtype("f64")}.get(self.name, self)


def _rows() -> tuple[DType, ...]:
    def row(
        name: str, kind: Kind, bits: int, ir: Attribute, numpy: npt.DTypeLike, storage: Attribute | None = None
    ) -> DType:
        return DType(name, kind, bits, ir, storage or ir, np.dtype(numpy))

    def floating(name: str, ir: Attribute, numpy: npt.DTypeLike, form: FloatFormat, bits: int = 0) -> DType:
        return DType(name, Kind.FLOAT, bits or form.bits, ir, ir, np.dtype(numpy), form)

    def signless(bits: int) -> Attribute:
        return builtin.IntegerType(bits)

    def unsigned(bits: int) -> Attribute:
        return builtin.IntegerType(bits, builtin.Signedness.UNSIGNED)

    i8 = signless(8)
    s, u, c = Kind.SIGNED, Kind.UNSIGNED, Kind.COMPLEX
    top_nan, zero_nan, none = Specials.TOP_NAN, Specials.ZERO_NAN, Specials.NONE
    e4m3b11fnuz, e8m0fnu = FloatFormat(4, 3, 11, zero_nan), FloatFormat(8, 0, 127, top_nan, has_sign=False)
    return (
        row("pred", Kind.PRED, 8, signless(1), np.bool_, i8),
        row("s1", s, 8, builtin.IntegerType(1, builtin.Signedness.SIGNED), ml_dtypes.int1, i8),
        row("s2", s, 2, signless(2), ml_dtypes.int2),
        row("s4", s, 4, signless(4), ml_dtypes.int4),
        row("s8", s, 8, i8, np.int8),
        row("s16", s, 16, signless(16), np.int16),
        row("s32", s, 32, signless(32), np.int32),
        row("s64", s, 64, signless(64), np.int64),
        row("u1", u, 8, unsigned(1), ml_dtypes.uint1, i8),
        row("u2", u, 2, unsigned(2), ml_dtypes.uint2, signless(2)),
        row("u4", u, 4, unsigned(4), ml_dtypes.uint4, signless(4)),
        row("u8", u, 8, unsigned(8), np.uint8, i8),
        row("u16", u, 16, unsigned(16), np.uint16, signless(16)),
        row("u32", u, 32, unsigned(32), np.uint32, signless(32)),
        row("u64", u, 64, unsigned(64), np.uint64, signless(64)),
        floating("f16", builtin.f16, np.float16, FloatFormat(5, 10, 15)),
        floating("bf16", builtin.bf16, ml_dtypes.bfloat16, FloatFormat(8, 7, 127)),
        floating("f32", builtin.f32, np.float32, FloatFormat(8, 23, 127)),
        floating("f64", builtin.f64, np.float64, FloatFormat(11, 52, 1023)),
        floating("f8e5m2", builtin.Float8E5M2Type(), ml_dtypes.float8_e5m2, FloatFormat(5, 2, 15)),
        floating("f8e4m3", builtin.Float8E4M3Type(), ml_dtypes.float8_e4m3, FloatFormat(4, 3, 7)),
        floating("f8e4m3fn", builtin.Float8E4M3FNType(), ml_dtypes.float8_e4m3fn, FloatFormat(4, 3, 7, top_nan)),
        floating("f8e4m3b11fnuz", builtin.Float8E4M3B11FNUZType(), ml_dtypes.float8_e4m3b11fnuz, e4m3b11fnuz),
        floating("f8e3m4", builtin.Float8E3M4Type(), ml_dtypes.float8_e3m4, FloatFormat(3, 4, 3)),
        floating(
            "f8e5m2fnuz", builtin.Float8E5M2FNUZType(), ml_dtypes.float8_e5m2fnuz, FloatFormat(5, 2, 16, zero_nan)
        ),
        floating("f8e4m3fnuz", builtin.Float8E4M3FNUZType(), ml_dtypes.float8_e4m3fnuz, FloatFormat(4, 3, 8, zero_nan)),
        floating("f8e8m0fnu", builtin.Float8E8M0FNUType(), ml_dtypes.float8_e8m0fnu, e8m0fnu),
        floating("f4e2m1fn", builtin.Float4E2M1FNType(), ml_dtypes.float4_e2m1fn, FloatFormat(2, 1, 1, none)),
        floating("f6e3m2fn", builtin.Float6E3M2FNType(), ml_dtypes.float6_e3m2fn, FloatFormat(3, 2, 3, none), bits=8),
        floating("f6e2m3fn", builtin.Float6E2M3FNType(), ml_dtypes.float6_e2m3fn, FloatFormat(2, 3, 1, none), bits=8),
        row("c64", c, 64, builtin.ComplexType(builtin.f32), np.complex64),
        row("c128", c, 128, builtin.ComplexType(builtin.f64), np.complex128),
    )


WIDE_FLOATS = (builtin.Float16Type, builtin.BFloat16Type, builtin.Float32Type, builtin.Float64Type)
"""The classes of the IR's float types that a GPU computes in."""
DTYPES: tuple[DType, ...] = _rows()
_BY_NAME = {row.name: row for row in DTYPES}
_BY_IR_TYPE = {row.ir_type: row for row in DTYPES}


def dtype(name: str) -> DType:
    """The row for HLO's spelling `name`.

    raises Unsupported, which lists the known types.
    """
    if found := _BY_NAME.get(name):
        return found
    raise Unsupported(f"no storage for element type '{name}'", help=f"one of: {', '.join(_BY_NAME)}")


@cache
def dtype_of(ir_type: Attribute) -> DType:
    """The row for an element type of the `hlo` dialect.

    raises Unsupported for a type that cannot be stored.
    """
    if found := _BY_IR_TYPE.get(ir_type):
        return found
    raise Unsupported(f"no storage for element type '{ir_type}'")
