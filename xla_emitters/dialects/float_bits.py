"""Constants of floats by their bits: NaN with sign and payload, and zeros of two signs, which xDSL alone loses.

    0x7F800001 : f32         read and written as it is; xDSL writes 0x7FC00001, since a conversion by the processor makes a signalling
                             NaN quiet
    0x7E01 : f16,  0xFF : f8E5M2            xDSL reads 0x7E00 and 0x7E: the payload is lost, and for f8 the sign
    dense<[0.0, -0.0]>       is no splat; for xDSL it is one

xDSL holds every float as a Python float, so a NaN of a narrower type is represented by the f64 NaN with a fraction that begins with the
narrow one's bits, as f32's quiet NaN already are. These are only read, compared by their bits, and written; never computed with. The parser
and the printer here, and all that reads or makes constants which may hold NaN, use these functions in place of `FloatAttr(...)`,
`DenseIntOrFPElementsAttr.from_list`, `get_values` and `is_splat`.
Source: IEEE 754-2019 3.4 and 6.2.1; the formats' own NaN in MLIR's builtin types.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    FloatAttr,
    FloatData,
    FloatNanEncoding,
    FloatSemantics,
    ReducedPrecisionFloatType,
)
from xdsl.ir import Attribute
from xdsl.printer import Printer

from xla_emitters.dtypes import dtype

_LISTED = 100
_F64_FRACTION_BITS = dtype("f64").float_format.fraction_bits
_IEEE: dict[type[Any], FloatSemantics] = {
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


def _semantics(float_type: Any) -> FloatSemantics | None:
    """None for f64, whose NaN are Python's, and for types that are wider."""
    if isinstance(float_type, ReducedPrecisionFloatType):
        return float_type.SEMANTICS
    return _IEEE.get(float_type.__class__)


# ---- numbers to bytes and back ----------------------------------------------------------------------------------------------------------


def pack(element_type: Any, values: Sequence[Any]) -> bytes:
    """The bytes of numbers of a float type, or of pairs of a complex one; those of other types as xDSL has them."""
    if type(element_type) is ComplexType:
        return pack(element_type.element_type, [part for pair in values for part in pair])
    data: bytes = element_type.pack(values)
    if (semantics := _semantics(element_type)) is None or all(value == value for value in values):
        return data
    size, written = element_type.compile_time_size, bytearray(data)
    for index, value in enumerate(values):
        if value != value:
            written[index * size : (index + 1) * size] = bits_of_nan(value, semantics).to_bytes(size, "little")
    return bytes(written)


def unpack(element_type: Any, data: bytes) -> tuple[Any, ...]:
    """The inverse of `pack`."""
    if type(element_type) is ComplexType:
        parts = unpack(element_type.element_type, data)
        return tuple(zip(parts[::2], parts[1::2], strict=True))
    size = element_type.compile_time_size
    values: tuple[Any, ...] = element_type.unpack(data, len(data) // size)
    if (semantics := _semantics(element_type)) is None or all(value == value for value in values):
        return values
    return tuple(
        nan_from_bits(int.from_bytes(data[i * size : (i + 1) * size], "little"), semantics) if v != v else v
        for i, v in enumerate(values)
    )


# ---- attributes -------------------------------------------------------------------------------------------------------------------------


def float_attr(value: float, float_type: Attribute) -> FloatAttr:
    """An attribute of `float_type`: a NaN with its bits, other values rounded once to nearest, ties to even, or to infinity."""
    kind: Any = float_type
    if value != value:
        if (semantics := _semantics(float_type)) is not None:
            value = nan_from_bits(bits_of_nan(value, semantics), semantics)
        return FloatAttr.new((FloatData(value), kind))
    try:
        return FloatAttr(value, kind)
    except OverflowError:  # raised by struct.pack for f16 and f32
        return FloatAttr(math.copysign(math.inf, value), kind)


def float_attr_of_bits(bits: int, float_type: AnyFloat) -> FloatAttr:
    """The attribute of `float_type` with these bits. raises OverflowError if they are too many"""
    (value,) = unpack(float_type, bits.to_bytes(float_type.compile_time_size, "little"))
    return float_attr(value, float_type)


def dense_of(dense_type: Any, values: Sequence[Any]) -> DenseIntOrFPElementsAttr[Any]:
    """`DenseIntOrFPElementsAttr.from_list` with the bits of NaN: one value stands for all elements."""
    element_type: Attribute = dense_type.element_type
    if not isinstance(element_type, AnyFloat | ComplexType):
        return DenseIntOrFPElementsAttr.from_list(dense_type, values)
    data = pack(element_type, values)
    count = math.prod(dense_type.get_shape())
    return DenseIntOrFPElementsAttr(dense_type, BytesAttr(data * count if len(values) == 1 else data))


def values_of(attribute: DenseIntOrFPElementsAttr[Any]) -> tuple[Any, ...]:
    """The elements of a dense attribute: numbers, or pairs of them."""
    return unpack(attribute.get_element_type(), attribute.data.data)


def is_splat(attribute: DenseIntOrFPElementsAttr[Any]) -> bool:
    """Whether all elements have the same bits; xDSL compares values, for which NaN != NaN and 0.0 == -0.0."""
    data, size = attribute.data.data, attribute.get_element_type().compile_time_size
    return data == data[:size] * (len(data) // size)


def print_dense(printer: Printer, attribute: DenseIntOrFPElementsAttr[Any]) -> None:
    """`dense<...>` without its type, as xDSL prints it but for the bits of NaN: the bytes of more than a hundred elements, else a list."""
    values, shape = values_of(attribute), attribute.get_shape()
    printer.print_string("dense<")
    if values and is_splat(attribute):
        _print_element(printer, attribute, values[0])
    elif len(values) > _LISTED:
        printer.print_string(f'"0x{attribute.data.data.hex().upper()}"')
    elif values:
        _print_list(printer, attribute, values, shape if attribute.shape_is_complete else (len(values),))
    printer.print_string(">")


def _print_list(printer: Printer, attribute: Any, values: Sequence[Any], shape: Sequence[int]) -> None:
    outer, *inner = shape
    size = len(values) // outer
    with printer.in_square_brackets():
        if inner:
            parts = (values[start : start + size] for start in range(0, len(values), size))
            printer.print_list(parts, lambda part: _print_list(printer, attribute, part, inner))
        else:
            printer.print_list(values, lambda value: _print_element(printer, attribute, value))


def _print_element(printer: Printer, attribute: Any, value: Any) -> None:
    if isinstance(value, tuple):
        real, imaginary = cast("tuple[Any, Any]", value)
        if real != real or imaginary != imaginary:
            part = attribute.get_element_type().element_type
            with printer.in_parens():
                _print_number(printer, part, real)
                printer.print_string(",")
                _print_number(printer, part, imaginary)
            return
    elif value != value:
        _print_number(printer, attribute.get_element_type(), value)
        return
    attribute._print_one_elem(value, printer)


def _print_number(printer: Printer, float_type: Any, value: float) -> None:
    if value != value:
        printer.print_string(hexadecimal(value, float_type))
    else:
        printer.print_float(value, float_type)


def hexadecimal(value: float, float_type: Any) -> str:
    """The bits of a number: `0x7F800001`."""
    return f"0x{pack(float_type, (value,))[::-1].hex().upper()}"
