"""Exact bits of float constants: NaN payloads and signs of zeros, which xDSL loses when it reads and prints floats.

    dense<[0.0, -0.0]> : vector<2xf32>      xDSL prints dense<0.0>, as 0.0 == -0.0
    0x7F800001 : f32                        xDSL reads 0x7FC00001, since a conversion by the processor makes a signalling NaN quiet
    0x7E01 : f16,  0xFF : f8E5M2            xDSL reads 0x7E00 and 0x7E: the payload is lost, and for f8 the sign

xDSL holds every float as a Python float, so a NaN of a narrower type is represented by the f64 NaN with a fraction that begins with the
narrow one's bits, as f32's quiet NaN already are. These are only read, compared by their bits, and written; never computed with.
Source: IEEE 754-2019 3.4 and 6.2.1; the formats' own NaN in MLIR's builtin types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    FloatNanEncoding,
    FloatSemantics,
    ReducedPrecisionFloatType,
)

from xla_emitters.dialects.xdsl_patches.patch import Member
from xla_emitters.dtypes import dtype

_F64_FRACTION_BITS = dtype("f64").float_format.fraction_bits
_IEEE = {
    float_type: FloatSemantics(form.exponent_bits, form.fraction_bits, form.bias)
    for float_type, form in (
        (BFloat16Type, dtype("bf16").float_format),
        (Float16Type, dtype("f16").float_format),
        (Float32Type, dtype("f32").float_format),
    )
}


def nan_from_bits(bits: int, semantics: FloatSemantics) -> float:
    """The f64 NaN that represents a NaN of another format, given by its bits."""
    sign = bits >> semantics.sign_shift & 1 if semantics.has_sign else 0
    fraction = (bits & semantics.max_mantissa) << (_F64_FRACTION_BITS - semantics.mantissa_bits)
    if semantics.nan_encoding is not FloatNanEncoding.IEEE:
        # One NaN, or one of each sign.
        sign = sign if semantics.nan_encoding is FloatNanEncoding.ALL_ONES else 0
        fraction = 0
    quiet = 1 << (_F64_FRACTION_BITS - 1)
    return struct.unpack("<d", struct.pack("<Q", sign << 63 | 0x7FF << _F64_FRACTION_BITS | (fraction or quiet)))[0]


def bits_of_nan(value: float, semantics: FloatSemantics) -> int:
    """The bits of the other format's NaN that `value` represents."""
    (f64,) = struct.unpack("<Q", struct.pack("<d", value))
    sign = (f64 >> 63) << semantics.sign_shift if semantics.has_sign else 0
    match semantics.nan_encoding:
        case FloatNanEncoding.NEGATIVE_ZERO:
            return 1 << semantics.sign_shift
        case FloatNanEncoding.IEEE if semantics.mantissa_bits:
            fraction = (f64 & (1 << _F64_FRACTION_BITS) - 1) >> (_F64_FRACTION_BITS - semantics.mantissa_bits)
            quiet = 1 << (semantics.mantissa_bits - 1)
            return sign | semantics.max_exponent << semantics.mantissa_bits | (fraction or quiet)
        case _:
            return sign | semantics.max_exponent << semantics.mantissa_bits | semantics.max_mantissa


def _semantics(float_type: Any) -> FloatSemantics:
    return _IEEE.get(float_type.__class__) or float_type.SEMANTICS


def _decoded(own: Any, values: Sequence[float], buffer: Any) -> tuple[float, ...]:
    size, data = own.compile_time_size, bytes(memoryview(buffer))
    return tuple(
        nan_from_bits(int.from_bytes(data[i * size : (i + 1) * size], "little"), _semantics(own)) if v != v else v
        for i, v in enumerate(values)
    )


def unpack_exactly(own: Callable[..., tuple[float, ...]]) -> Callable[..., tuple[float, ...]]:
    """`unpack` of a float type, with exact NaN. `own`: the type's own."""

    def unpack(self: Any, buffer: Any, num: int, /) -> tuple[float, ...]:
        values = own(self, buffer, num)
        return _decoded(self, values, buffer) if any(v != v for v in values) else values

    return unpack


def iter_unpack_exactly(own: Callable[..., Iterator[float]]) -> Callable[..., Iterator[float]]:
    """`iter_unpack` of a float type, with exact NaN."""

    def iter_unpack(self: Any, buffer: Any, /) -> Iterator[float]:
        values = tuple(own(self, buffer))
        return iter(_decoded(self, values, buffer) if any(v != v for v in values) else values)

    return iter_unpack


def pack_exactly(own: Callable[..., bytes]) -> Callable[..., bytes]:
    """`pack` of a float type, with exact NaN."""

    def pack(self: Any, values: Sequence[float]) -> bytes:
        data = own(self, values)
        if all(v == v for v in values):
            return data
        size, written = self.compile_time_size, bytearray(data)
        for index, value in enumerate(values):
            if value != value:
                bits = bits_of_nan(value, _semantics(self))
                written[index * size : (index + 1) * size] = bits.to_bytes(size, "little")
        return bytes(written)

    return pack


def pack_into_exactly(own: Callable[..., None]) -> Callable[..., None]:
    """`pack_into` of a float type, with exact NaN."""

    def pack_into(self: Any, buffer: Any, offset: int, value: float) -> None:
        own(self, buffer, offset, value)
        if value != value:
            size = self.compile_time_size
            memoryview(buffer)[offset : offset + size] = bits_of_nan(value, _semantics(self)).to_bytes(size, "little")

    return pack_into


def is_splat(self: DenseIntOrFPElementsAttr) -> bool:
    """Whether all elements have the same bits; xDSL compares values, for which NaN != NaN and 0.0 == -0.0."""
    data, size = self.data.data, self.get_element_type().compile_time_size
    return data == data[:size] * (len(data) // size)


_WRAPPERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("unpack", unpack_exactly),
    ("iter_unpack", iter_unpack_exactly),
    ("pack_into", pack_into_exactly),
    ("pack", pack_exactly),
)

FLOATS: tuple[Member, ...] = (
    Member(
        DenseIntOrFPElementsAttr, "is_splat", "compares values: NaN equals none, 0.0 equals -0.0", lambda _: is_splat
    ),
    # The narrow types' own `pack` calls their `pack_into`.
    *(
        Member(float_type, name, "loses the sign and the payload of NaN", wrapper)
        for float_type in (*_IEEE, ReducedPrecisionFloatType)
        for name, wrapper in _WRAPPERS
        if (float_type, name) != (ReducedPrecisionFloatType, "pack")
    ),
)
