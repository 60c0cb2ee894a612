"""Types of StableHLO text to types of the `hlo` dialect, and back.

    tensor<4x?xf32>                                   tensor<4x?xf32>
    tensor<?x4xf32, #stablehlo.bounds<8, ?>>          tensor<?x4xf32, #hlo.layout<[1, 0], bounds = [8, ?]>>
    tuple<tensor<f32>, !stablehlo.token>              tuple<tensor<f32>, !hlo.token>
    index   tensor<2xindex>   i32   !shape.size       tensor<i64>, tensor<2xi64>, tensor<i32>, tensor<i64>
    !shape.witness                                    tensor<i1>
    !shape.shape                                      a list of sizes of any length (`SHAPE`)

Quantized elements (`!quant.uniform<...>`) and sparse encodings are refused by name.
Source: StableHLO specification, "Types" (https://openxla.org/stablehlo/spec#types).
"""

from __future__ import annotations

import re
from functools import lru_cache

from xdsl.dialects.builtin import FunctionType, TensorType, TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import UNBOUNDED, TokenType, array_type, as_array, size_bounds, tuple_type
from xla_emitters.dtypes import DTYPES, dtype
from xla_emitters.errors import Unsupported
from xla_emitters.support.cursor import nearest
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloCursor, StableHloTokenKind

ELEMENTS = {str(row.ir_type): row.ir_type for row in DTYPES}
"""The element types by their spelling in MLIR."""
INDEX = array_type(dtype("s64").ir_type, ())
TRUTH = array_type(dtype("pred").ir_type, ())
SHAPE = array_type(dtype("s64").ir_type, (UNBOUNDED,))
_SCALARS = {
    **{name: array_type(ir_type, ()) for name, ir_type in ELEMENTS.items()},
    "index": INDEX,
    "!shape.size": INDEX,
    "!shape.witness": TRUTH,
    "!shape.shape": SHAPE,
}
"""Types of values that are not arrays, as MLIR's own dialects have them -> the arrays that hold them."""
_SHAPE = re.compile(r"\s*((?:(?:\d+|\?)\s*x\s*)*)(.*)", re.DOTALL)
_SIZE = re.compile(r"\d+|\?")
_BOUNDS = re.compile(r"#(?:stablehlo|mhlo)\.(?:bounds<([\d?,\s]*)>|type_extensions<bounds\s*=\s*\[([\d?,\s]*)\]>)\Z")
_REFUSED = {"*x": "arrays of unknown rank", "!quant": "quantized types", "tuple": "arrays of tuples"}


class _NoType(Exception):
    """A type that cannot be read: the message, and whether it is legal StableHLO that is not supported."""

    def __init__(self, message: str, is_legal: bool = False):
        super().__init__(message)
        self.is_legal = is_legal


@lru_cache(maxsize=8192)
def tensor_type(text: str) -> Attribute:
    """The type for the text `tensor<...>`. raises _NoType."""
    match = _SHAPE.match(text[len("tensor<") : -1])
    assert match is not None
    sizes, rest = match[1], match[2].strip()
    element, _, encoding = rest.partition(",") if not rest.startswith("!") else (rest, "", "")
    element = element.strip()
    if (ir_type := INDEX.element_type if element == "index" else ELEMENTS.get(element)) is None:
        for prefix, what in _REFUSED.items():
            if element.startswith(prefix):
                raise _NoType(f"{what} are not taken: {text}", is_legal=True)
        raise _NoType(f"no element type '{element}'{nearest(element, ELEMENTS)}")
    dims = _numbers(sizes)
    return array_type(ir_type, dims, bounds=_bounds(encoding.strip(), dims, text))


def _numbers(sizes: str) -> list[int]:
    found = _SIZE.findall(sizes)
    if any(len(size) > 20 for size in found) or any(int(size) >= 1 << 63 for size in found if size != "?"):
        raise _NoType("a size does not fit 64 bits")
    return [UNBOUNDED if size == "?" else int(size) for size in found]


def _bounds(encoding: str, dims: list[int], text: str) -> list[int]:
    if not encoding:
        return []
    if (match := _BOUNDS.match(encoding)) is None:
        raise _NoType(
            f"the encoding of {text} is not taken: sparse arrays and layouts are not supported", is_legal=True
        )
    bounds = _numbers(match[1] or match[2] or "")
    if len(bounds) != len(dims) or any(
        bound != UNBOUNDED and size != UNBOUNDED for bound, size in zip(bounds, dims, strict=True)
    ):
        raise _NoType(f"the bounds of {text} do not fit its {len(dims)} sizes: one for each, `?` for a known one")
    return bounds


def parse_type(cursor: StableHloCursor) -> Attribute:
    """Consumes the type of a value."""
    token = cursor.token
    if token.kind is StableHloTokenKind.TYPE:
        try:
            found = tensor_type(token.text)
        except _NoType as error:
            raise (cursor.unsupported if error.is_legal else cursor.error)(str(error), token) from None
        cursor.advance()
        return found
    if token.text == "tuple":
        cursor.advance()
        cursor.expect("<", "after 'tuple'")
        with cursor.nested():
            return tuple_type(cursor.items(">", lambda: parse_type(cursor), "a type of the tuple"))
    if token.kind is StableHloTokenKind.DIALECT_TYPE and (alias := cursor.aliases.get(token.text)) is not None:
        cursor.advance()
        return alias.value
    if token.text in ("!stablehlo.token", "!mhlo.token"):
        cursor.advance()
        return TokenType()
    if (scalar := _SCALARS.get(token.text)) is not None:
        cursor.advance()
        return scalar
    if token.text == "tensor":
        raise cursor.error("this type is not closed", token, help="tensor<8x?xf32>")
    if token.kind is StableHloTokenKind.DIALECT_TYPE or token.text in ("memref", "vector", "none"):
        help = "xla-emitters-opt reads ops on buffers: lmhlo, and xla_lhlo of 2020" if token.text == "memref" else ""
        raise cursor.unsupported(f"values of type {token.text} are not taken", token, help)
    raise cursor.unexpected("a type such as tensor<8x?xf32>")


def parse_types(cursor: StableHloCursor) -> list[Attribute]:
    """Consumes `(type, type ...)`, or one type."""
    if not cursor.at("("):
        return [parse_type(cursor)]
    cursor.advance()
    return cursor.items(")", lambda: parse_type(cursor), "a type")


def parse_listed_types(cursor: StableHloCursor) -> list[Attribute]:
    """Consumes `type, type ...`."""
    types = [parse_type(cursor)]
    while cursor.accept(","):
        types.append(parse_type(cursor))
    return types


def parse_both_types(cursor: StableHloCursor) -> tuple[list[Attribute], list[Attribute]]:
    """Consumes `(types) -> types`: those of operands, and of results."""
    operands = parse_types(cursor)
    cursor.expect("->", "after the types of the operands")
    return operands, parse_types(cursor)


def parse_function_type(cursor: StableHloCursor) -> FunctionType:
    """Consumes `(types) -> types`."""
    return FunctionType.from_lists(*parse_both_types(cursor))


def stablehlo_type(ir_type: Attribute) -> str:
    """A type of the `hlo` dialect in StableHLO's spelling; layouts are left out, because StableHLO has none.

    >>> stablehlo_type(array_type(ELEMENTS["f32"], (4, UNBOUNDED)))
    'tensor<4x?xf32>'
    """
    match ir_type:
        case TensorType():
            array = as_array(ir_type)
            dims = array.get_shape()
            shown = "".join(f"{'?' if size == UNBOUNDED else size}x" for size in dims)
            bounds = [
                bound if size == UNBOUNDED else UNBOUNDED
                for bound, size in zip(size_bounds(ir_type), dims, strict=True)
            ]
            if all(bound == UNBOUNDED for bound in bounds):
                return f"tensor<{shown}{array.element_type}>"
            listed = ", ".join("?" if bound == UNBOUNDED else str(bound) for bound in bounds)
            return f"tensor<{shown}{array.element_type}, #stablehlo.bounds<{listed}>>"
        case TupleType():
            return f"tuple<{', '.join(map(stablehlo_type, ir_type.types))}>"
        case TokenType():
            return "!stablehlo.token"
        case _:
            raise Unsupported(f"StableHLO has no type {ir_type}", stage="stablehlo.print")
