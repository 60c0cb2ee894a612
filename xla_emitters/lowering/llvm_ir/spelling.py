"""Types, constants and names in LLVM IR's spelling.

    vector<4xbf16>                        <4 x bfloat>
    !llvm.struct<(f32, i1)>               { float, i1 }
    0.9 : f32                             0x3FECCCCCC0000000         the bits of the double of the same value
    dense<1.0> : vector<2xbf16>           <bfloat 0xR3F80, bfloat 0xR3F80>
    @region.1                             @region.1                  in quotes if it has other characters

A NaN keeps its sign and its payload. Not covered: floats other than f16, bf16, f32 and f64, named structs, scalable vectors.
Source: LLVM language reference, "Type System", "Constants", "Identifiers".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute

from xla_emitters.dialects.float_bits import pack, values_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm import LLVMArrayType, LLVMPointerType, LLVMStructType, LLVMVoidType
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import Unsupported

STAGE = "llvm-ir"
"""The first words of messages about LLVM IR."""

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "half",
    BFloat16Type: "bfloat",
    Float32Type: "float",
    Float64Type: "double",
}
# Quiet and signalling NaN: the fraction of a float, moved to its place in a double.
_SINGLE_FRACTION, _FRACTION_SHIFT = (1 << 23) - 1, 52 - 23
_SPECIAL_EXPONENT = 0x7FF << 52

_PLAIN_NAME = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")


def type_text(ir_type: Attribute) -> str:
    """The type in LLVM IR's spelling. raises Unsupported if LLVM IR has no such type."""
    if (name := _FLOATS.get(ir_type.__class__)) is not None:
        return name
    match ir_type:
        case IntegerType():
            return f"i{ir_type.width.data}"
        case LLVMPointerType():
            space = address_space(ir_type)
            return f"ptr addrspace({space})" if space else "ptr"
        case LLVMVoidType():
            return "void"
        case LLVMArrayType():
            return f"[{ir_type.size.data} x {type_text(ir_type.type)}]"
        case LLVMStructType() if not ir_type.struct_name.data:
            return f"{{ {', '.join(map(type_text, ir_type.types))} }}" if ir_type.types.data else "{}"
        case VectorType() if ir_type.get_num_dims() == 1 and not any(ir_type.scalable_dims.data):
            return f"<{ir_type.get_shape()[0]} x {type_text(ir_type.element_type)}>"
        case _:
            raise Unsupported(f"no LLVM IR for the type {ir_type}", stage=STAGE)


def address_space(pointer: LLVMPointerType) -> int:
    """The number of the address space that it points into: 0 generic, 3 a block's shared memory."""
    return pointer.addr_space.data if isinstance(pointer.addr_space, IntAttr) else 0


def constant_text(value: Attribute, ir_type: Attribute) -> str:
    """A constant of `ir_type`, without the type. raises Unsupported if LLVM IR has no such constant."""
    match value:
        case IntegerAttr() if isa(ir_type, IntegerType):
            return _integer(value.value.data, ir_type)
        case FloatAttr():
            return _floats([value.value.data], ir_type)[0]
        case llvm.ZeroAttr():
            return "zeroinitializer"
        case llvm.UndefAttr():
            return "undef"
        case llvm.PoisonAttr():
            return "poison"
        case StringAttr():
            return f'c"{escaped(value.data.encode())}"'
        case DenseIntOrFPElementsAttr():
            numbers = [number for number in values_of(value) if not isinstance(number, tuple)]
            return _elements(iter(numbers), ir_type)
        case ArrayAttr():
            return _parts(list(value), ir_type)
        case _:
            raise Unsupported(f"no LLVM IR for the constant {value} of type {ir_type}", stage=STAGE)


def _integer(value: int, ir_type: IntegerType) -> str:
    return ("true" if value else "false") if ir_type.bitwidth == 1 else str(value)


def _floats(values: Sequence[float], ir_type: Attribute) -> list[str]:
    """The constants of a float type for these numbers, all at once: a global can have millions."""
    if not isinstance(ir_type, AnyFloat) or ir_type.__class__ not in _FLOATS:
        raise Unsupported(f"no LLVM IR for a float constant of type {ir_type}", stage=STAGE)
    numbers = np.frombuffer(pack(ir_type, values), dtype_of(ir_type).numpy)
    if isinstance(ir_type, Float16Type | BFloat16Type):
        letter = "H" if isinstance(ir_type, Float16Type) else "R"
        return [f"0x{letter}{bits:04X}" for bits in numbers.view(np.uint16).tolist()]
    with np.errstate(invalid="ignore"):  # a processor's conversion of a signalling NaN, which is written below
        wide = numbers.astype(np.float64).view(np.uint64).tolist()
    if isinstance(ir_type, Float32Type):
        for place in np.flatnonzero(np.isnan(numbers)).tolist():
            bits = int(numbers[place].view(np.uint32))
            wide[place] = bits >> 31 << 63 | _SPECIAL_EXPONENT | (bits & _SINGLE_FRACTION) << _FRACTION_SHIFT
    return [f"0x{bits:016X}" for bits in wide]


def _elements(numbers: Iterator[float | int], ir_type: Attribute) -> str:
    """The constant for the next of `numbers`, as many as `ir_type` holds, in row-major order."""
    match ir_type:
        case LLVMArrayType():
            inner, count, (begin, end) = ir_type.type, ir_type.size.data, "[]"
        case VectorType() if isa(ir_type, VectorType):
            inner, count, (begin, end) = ir_type.element_type, ir_type.get_shape()[0], "<>"
        case IntegerType():
            return _integer(int(next(numbers)), ir_type)
        case _:
            return _floats([next(numbers)], ir_type)[0]
    is_nested = isinstance(inner, LLVMArrayType | VectorType | IntegerType)
    own = [_elements(numbers, inner) for _ in range(count)] if is_nested else _floats([*islice(numbers, count)], inner)
    shown = type_text(inner)
    return f"{begin}{', '.join(f'{shown} {each}' for each in own)}{end}"


def _parts(values: Sequence[Attribute], ir_type: Attribute) -> str:
    """A struct or array constant from the list of its parts."""
    match ir_type:
        case LLVMStructType():
            types, (begin, end) = list(ir_type.types), "{}"
        case LLVMArrayType():
            types, (begin, end) = [ir_type.type] * ir_type.size.data, "[]"
        case _:
            types = []
            begin = end = ""
    if not begin or len(types) != len(values):
        raise Unsupported(f"no LLVM IR for {len(values)} parts of a constant of type {ir_type}", stage=STAGE)
    parts = (f"{type_text(inner)} {constant_text(value, inner)}" for value, inner in zip(values, types, strict=True))
    return f"{begin} {', '.join(parts)} {end}"


def global_name(name: str) -> str:
    """`@name`, in quotes if LLVM IR requires them."""
    return f"@{name}" if _PLAIN_NAME.fullmatch(name) else f'@"{escaped(name.encode())}"'


def is_plain_name(name: str) -> bool:
    """Whether LLVM IR accepts `name` without quotes."""
    return _PLAIN_NAME.fullmatch(name) is not None


def escaped(data: bytes) -> str:
    """Bytes, escaped, for a quoted string of LLVM IR."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data)
