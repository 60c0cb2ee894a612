"""HLO's element types, one row each: how wide, what the `hlo` dialect calls them, what kernels store, what NumPy holds.

    >>> dtype("bf16").bits, str(dtype("bf16").ir_type), dtype("bf16").numpy.name
    (16, 'bf16', 'bfloat16')
    >>> str(dtype("pred").ir_type), str(dtype("pred").storage_type)
    ('i1', 'i8')

HLO's signed integers are signless in IR (s32 is i32), unsigned ones keep their sign in the `hlo` dialect (u32 is ui32) and lose
it in kernels. pred is i1 in the `hlo` dialect and one byte, 0 or 1, in kernels. Types without storage here (token, opaque,
six-bit floats) parse, verify and print, and are refused by name when something would have to store them.
Source: docs/reference/1 5.1 "Types" and 6.4 "Dtypes".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from xla_emitters.errors import Unsupported

# Element types are known only at run time here, so arrays are typed by shape-less `Any`.
Array: TypeAlias = npt.NDArray[Any]
NumpyType: TypeAlias = np.dtype[Any]


class Kind(Enum):
    """What arithmetic a type has."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True)
class DType:
    """One HLO element type.

    name          HLO's spelling
    bits          storage bits of one element (pred 8; s4 is 4: two to a byte)
    ir_type       element type in the `hlo` dialect
    storage_type  element type in kernels: signless; pred, s1 and u1 are i8
    numpy         what one logical array holds; sub-byte types take one byte an element
    """

    name: str
    kind: Kind
    bits: int
    ir_type: Attribute
    storage_type: Attribute
    numpy: NumpyType

    @property
    def bytes(self) -> int:
        """Bytes of one element; 1 for types that share a byte."""
        return max(1, self.bits // 8)

    def size_bytes(self, elements: int) -> int:
        """Bytes of `elements` elements in a buffer, sub-byte types packed."""
        return -(-elements * self.bits // 8)

    @property
    def significant_bits(self) -> int:
        """Bits that make the value: 1 of the 8 of s1."""
        return int(self.name[1:]) if self.is_integer else self.bits

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)


def _rows() -> tuple[DType, ...]:
    def row(
        name: str, kind: Kind, bits: int, ir: Attribute, numpy: npt.DTypeLike, storage: Attribute | None = None
    ) -> DType:
        return DType(name, kind, bits, ir, storage or ir, np.dtype(numpy))

    def signless(bits: int) -> Attribute:
        return builtin.IntegerType(bits)

    def unsigned(bits: int) -> Attribute:
        return builtin.IntegerType(bits, builtin.Signedness.UNSIGNED)

    i8 = signless(8)
    f, s, u, c = Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED, Kind.COMPLEX
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
        row("f16", f, 16, builtin.f16, np.float16),
        row("bf16", f, 16, builtin.bf16, ml_dtypes.bfloat16),
        row("f32", f, 32, builtin.f32, np.float32),
        row("f64", f, 64, builtin.f64, np.float64),
        row("f8e5m2", f, 8, builtin.Float8E5M2Type(), ml_dtypes.float8_e5m2),
        row("f8e4m3", f, 8, builtin.Float8E4M3Type(), ml_dtypes.float8_e4m3),
        row("f8e4m3fn", f, 8, builtin.Float8E4M3FNType(), ml_dtypes.float8_e4m3fn),
        row("f8e4m3b11fnuz", f, 8, builtin.Float8E4M3B11FNUZType(), ml_dtypes.float8_e4m3b11fnuz),
        row("f8e3m4", f, 8, builtin.Float8E3M4Type(), ml_dtypes.float8_e3m4),
        row("f8e5m2fnuz", f, 8, builtin.Float8E5M2FNUZType(), ml_dtypes.float8_e5m2fnuz),
        row("f8e4m3fnuz", f, 8, builtin.Float8E4M3FNUZType(), ml_dtypes.float8_e4m3fnuz),
        row("f8e8m0fnu", f, 8, builtin.Float8E8M0FNUType(), ml_dtypes.float8_e8m0fnu),
        row("f4e2m1fn", f, 4, builtin.Float4E2M1FNType(), ml_dtypes.float4_e2m1fn),
        row("f6e3m2fn", f, 8, builtin.Float6E3M2FNType(), ml_dtypes.float6_e3m2fn),
        row("f6e2m3fn", f, 8, builtin.Float6E2M3FNType(), ml_dtypes.float6_e2m3fn),
        row("c64", c, 64, builtin.ComplexType(builtin.f32), np.complex64),
        row("c128", c, 128, builtin.ComplexType(builtin.f64), np.complex128),
    )


DTYPES: tuple[DType, ...] = _rows()
_BY_NAME = {row.name: row for row in DTYPES}
_BY_IR_TYPE = {row.ir_type: row for row in DTYPES}


def dtype(name: str) -> DType:
    """The row for HLO's spelling `name`.

    raises Unsupported naming the types there are.
    """
    if found := _BY_NAME.get(name):
        return found
    raise Unsupported(f"no storage for element type '{name}'", help=f"one of: {', '.join(_BY_NAME)}")


@cache
def dtype_of(ir_type: Attribute) -> DType:
    """The row for an element type of the `hlo` dialect.

    raises Unsupported when nothing stores it.
    """
    if found := _BY_IR_TYPE.get(ir_type):
        return found
    raise Unsupported(f"no storage for element type '{ir_type}'")
