"""Types of the `hlo` dialect, and how they are spelled in HLO text.

    HLO text                      IR
    bf16[6,512,4096]{2,1,0}       tensor<6x512x4096xbf16>                      default layout: nothing
    f32[8,64]{0,1}                tensor<8x64xf32, #hlo.layout<[0, 1]>>
    s4[8,64]{1,0:E(4)}            tensor<8x64xi4, #hlo.layout<[1, 0], "E(4)">>
    f32[<=8,?]                    tensor<?x?xf32, #hlo.layout<[1, 0], bounds = [8, ?]>>
    (f32[2], s32[])               tuple<tensor<2xf32>, tensor<i32>>
    token[]  opaque[]  b(f32[2])  !hlo.token  !hlo.opaque  !hlo.buffer<tensor<2xf32>>
    { {1}: (0, {}, may-alias) }   [#hlo.alias<[1], 0, [], "may-alias">]        the module's input_output_alias

A layout lists dimensions minor first, as HLO does; the default is row major, `{n-1, ..., 0}`. The part after the colon of an HLO layout
(tiles, element bits, memory space) is kept as written and has no effect here.
Source: docs/reference/1 6.3; MLIR's tensor encoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, TensorType, TupleType
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dtypes import DType, dtype_of

ArrayType: TypeAlias = TensorType[Attribute]
_FactT = TypeVar("_FactT")
UNBOUNDED = DYNAMIC_INDEX
"""An unknown dimension, or an unknown bound of one."""


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """HLO's `token[]`: orders effects and holds no data."""

    name = "hlo.token"


@irdl_attr_definition
class OpaqueType(ParametrizedAttribute, TypeAttribute):
    """HLO's `opaque[]`: a value that only the runtime understands."""

    name = "hlo.opaque"


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """HLO's `b(f32[2])`: memory rather than a value."""

    name = "hlo.buffer"

    contents: Attribute = param_def()


class Layout(NamedTuple):
    """The memory order of an array that is not plainly row major, and the bounds of its dynamic dimensions.

    minor_to_major  a permutation of the dimensions, fastest varying first
    suffix          the text after the colon in HLO, e.g. "T(8,128)E(4)S(5)", or ""
    bounds          one number per dimension, UNBOUNDED for static and for unbounded ones; empty when no dimension has a bound
    """

    minor_to_major: tuple[int, ...]
    suffix: str = ""
    bounds: tuple[int, ...] = ()


@irdl_attr_definition
class LayoutAttr(Data[Layout]):
    """A layout in IR; `.data` is the layout."""

    name = "hlo.layout"

    def verify(self) -> None:
        order, _, bounds = self.data
        if sorted(order) != list(range(len(order))):
            raise VerifyException(f"layout {{{_commas(order)}}} is not a permutation of the dimensions")
        if bounds and len(bounds) != len(order):
            raise VerifyException(f"{len(bounds)} bounds for {len(order)} dimensions")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        def bound() -> int:
            return UNBOUNDED if parser.parse_optional_punctuation("?") else parser.parse_integer()

        with parser.in_angle_brackets():
            order = _parse_numbers(parser)
            suffix, bounds = "", list[int]()
            while parser.parse_optional_punctuation(","):
                if parser.parse_optional_keyword("bounds"):
                    parser.parse_punctuation("=")
                    bounds = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, bound)
                else:
                    suffix = parser.parse_str_literal()
        return Layout(order, suffix, tuple(bounds))

    def print_parameter(self, printer: Printer) -> None:
        order, suffix, bounds = self.data
        with printer.in_angle_brackets():
            printer.print_string(str(list(order)))
            if suffix:
                printer.print_string(", ")
                printer.print_string_literal(suffix)
            if bounds:
                shown = ", ".join("?" if bound == UNBOUNDED else str(bound) for bound in bounds)
                printer.print_string(f", bounds = [{shown}]")


class Alias(NamedTuple):
    """An output of the module that may, or must, take the memory of a parameter.

    output     the index of the array in the (possibly nested) tuple of the output
    parameter  its number
    inside     the index of the array in the parameter
    kind       "may-alias" or "must-alias"
    """

    output: tuple[int, ...]
    parameter: int
    inside: tuple[int, ...]
    kind: str


@irdl_attr_definition
class AliasAttr(Data[Alias]):
    """An alias in IR, `#hlo.alias<[1], 0, [], "may-alias">`; `.data` is the alias."""

    name = "hlo.alias"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Alias:
        with parser.in_angle_brackets():
            output = _parse_numbers(parser)
            parser.parse_punctuation(",")
            parameter = parser.parse_integer()
            parser.parse_punctuation(",")
            inside = _parse_numbers(parser)
            parser.parse_punctuation(",")
            return Alias(output, parameter, inside, parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        output, parameter, inside, kind = self.data
        with printer.in_angle_brackets():
            printer.print_string(f"{list(output)}, {parameter}, {list(inside)}, ")
            printer.print_string_literal(kind)


def _parse_numbers(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def default_order(rank: int) -> tuple[int, ...]:
    """Minor to major of a row-major array: (rank - 1, ..., 0)."""
    return tuple(range(rank - 1, -1, -1))


def array_type(
    element: Attribute,
    dims: Sequence[int],
    minor_to_major: Sequence[int] | None = None,
    suffix: str = "",
    bounds: Sequence[int] = (),
) -> ArrayType:
    """The type of an array; a plain row-major layout becomes no layout.

    dims    sizes, UNBOUNDED where not known (`bounds` then holds the largest size)

    >>> from xla_emitters.dtypes import dtype
    >>> str(array_type(dtype("f32").ir_type, (8, 64), (0, 1)))
    'tensor<8x64xf32, #hlo.layout<[0, 1]>>'
    """
    order = default_order(len(dims)) if minor_to_major is None else tuple(minor_to_major)
    return _array_type(element, tuple(dims), order, suffix, tuple(bounds))


@lru_cache(maxsize=4096)
def _array_type(
    element: Attribute, dims: tuple[int, ...], order: tuple[int, ...], suffix: str, bounds: tuple[int, ...]
) -> ArrayType:
    if all(bound == UNBOUNDED for bound in bounds):
        bounds = ()
    if order == default_order(len(dims)) and not suffix and not bounds:
        return TensorType(element, dims)
    return TensorType(element, dims, LayoutAttr(Layout(order, suffix, bounds)))


def is_array(ir_type: Attribute) -> TypeGuard[ArrayType]:
    """Whether values of `ir_type` are arrays (scalars too), not tuples, tokens, opaque values or buffers."""
    return type(ir_type) is TensorType


def as_array(ir_type: Attribute) -> ArrayType:
    """`ir_type` itself, known to be an array.

    raises VerifyException otherwise.
    """
    if is_array(ir_type):
        return ir_type
    raise VerifyException(f"expected an array, got {type_text(ir_type)}")


def _type_of(value: SSAValue | Attribute) -> Attribute:
    # `isinstance` asks xDSL's metaclass, and attributes have no such member.
    given: Any = value
    return given if type(given) is TensorType else getattr(given, "_type", given)


def _by_identity(fact: Callable[[ArrayType], _FactT]) -> Callable[[ArrayType], _FactT]:
    """A fact of a type, kept by the identity of the type, which is kept with it: to be hashed or compared, a type asks its parts."""
    kept: dict[int, tuple[ArrayType, _FactT]] = {}

    def known(array: ArrayType) -> _FactT:
        if (found := kept.get(id(array))) is None:
            if len(kept) >= 4096:
                kept.clear()
            found = kept[id(array)] = array, fact(array)
        return found[1]

    return known


@_by_identity
def _shape_of(array: ArrayType) -> tuple[int, ...]:
    return array.get_shape()


@_by_identity
def _element_of(array: ArrayType) -> DType:
    return dtype_of(array.element_type)


def dims_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The sizes of an array (of a value's type, or of a type); raises VerifyException if it is not one."""
    return _shape_of(as_array(_type_of(value)))


def size_bounds(ir_type: Attribute) -> tuple[int, ...]:
    """The largest sizes of an array: for a dynamic dimension its bound, or UNBOUNDED."""
    array = as_array(ir_type)
    dims = array.get_shape()
    bounds = array.encoding.data.bounds if isinstance(array.encoding, LayoutAttr) else ()
    return tuple(bounds[i] if bounds and size == UNBOUNDED else size for i, size in enumerate(dims))


def element_of(value: SSAValue | Attribute) -> DType:
    """The element type of an array, as a row of `dtypes`."""
    return _element_of(as_array(_type_of(value)))


def minor_to_major(ir_type: Attribute) -> tuple[int, ...]:
    """The dimensions of an array from the fastest varying to the slowest."""
    array = as_array(ir_type)
    if type(array.encoding) is LayoutAttr:  # `isinstance` asks xDSL's metaclass
        return array.encoding.data.minor_to_major
    return default_order(array.get_num_dims())


def tuple_type(elements: Sequence[Attribute]) -> TupleType:
    """The type of a tuple of values of these types."""
    return TupleType(ArrayAttr([element for element in elements if isinstance(element, TypeAttribute)]))


def one_or_tuple(types: Sequence[Attribute]) -> Attribute:
    """The type of an op with these results: the only one's type, or a tuple."""
    return types[0] if len(types) == 1 else tuple_type(types)


def tuple_types(ir_type: Attribute) -> tuple[Attribute, ...]:
    """The elements of a tuple type, or `ir_type` alone when it is not a tuple."""
    return tuple(ir_type.types) if isinstance(ir_type, TupleType) else (ir_type,)


def type_at(ir_type: Attribute, index: Sequence[int]) -> Attribute | None:
    """The type at `index`, one number per level of nested tuples; None when there is no such element."""
    for number in index:
        if not isinstance(ir_type, TupleType) or not 0 <= number < len(ir_type.types):
            return None
        ir_type = ir_type.types.data[number]
    return ir_type


def leaf_types(ir_type: Attribute) -> tuple[Attribute, ...]:
    """The types of the arrays in nested tuples, in order."""
    leaves = list[Attribute]()
    pending = [ir_type]
    while pending:
        current = pending.pop()
        if type(current) is TupleType:
            pending.extend(reversed(current.types.data))
        else:
            leaves.append(current)
    return tuple(leaves)


def elements_of(op: Operation) -> int:
    """The number of elements of an instruction's result; of several results of one shape, of one of them."""
    return math.prod(dims_of(leaf_types(op.results[0].type)[0]))


def same_shape(a: Attribute, b: Attribute) -> bool:
    """Whether two types agree in all but layout; an unknown dimension agrees with any."""
    if a is b:
        return True
    match a, b:
        case TensorType(), TensorType():
            return a.element_type == b.element_type and same_dims(a.get_shape(), b.get_shape())
        case TupleType(), TupleType():
            return len(a.types) == len(b.types) and all(map(same_shape, a.types, b.types))
        case _:
            return a == b


def same_dims(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two lists of sizes can be the same at run time."""
    return len(a) == len(b) and all(x == y or UNBOUNDED in (x, y) for x, y in zip(a, b, strict=True))


@lru_cache(maxsize=4096)
def type_text(ir_type: Attribute, layout: bool = False) -> str:
    """`ir_type` in HLO's spelling, with its layout if asked.

    >>> from xla_emitters.dtypes import dtype
    >>> type_text(array_type(dtype("f32").ir_type, (8, 64)), layout=True)
    'f32[8,64]{1,0}'
    """
    match ir_type:
        case TensorType():
            return _array_text(as_array(ir_type), layout)
        case TupleType():
            parts = [type_text(part, layout) for part in ir_type.types]
            # Without XLA's comment at every fifth element of a long tuple: it would make texts hard to compare.
            return f"({', '.join(parts)})"
        case BufferType():
            return f"b({type_text(ir_type.contents, layout)})"
        case TokenType():
            return "token[]"
        case OpaqueType():
            return "opaque[]"
        case _:
            return str(ir_type)


def _array_text(ir_type: ArrayType, layout: bool) -> str:
    encoding = ir_type.encoding
    dims = ir_type.get_shape()
    bounds = encoding.data.bounds if isinstance(encoding, LayoutAttr) else ()
    shown = [_dim_text(dim, bounds[i] if bounds else UNBOUNDED) for i, dim in enumerate(dims)]
    text = f"{dtype_of(ir_type.element_type).name}[{','.join(shown)}]"
    if not layout:
        return text
    suffix = encoding.data.suffix if isinstance(encoding, LayoutAttr) else ""
    if not dims and not suffix:
        return text
    return f"{text}{{{_commas(minor_to_major(ir_type))}{':' + suffix if suffix else ''}}}"


def _dim_text(dim: int, bound: int) -> str:
    if dim != UNBOUNDED:
        return str(dim)
    return "?" if bound == UNBOUNDED else f"<={bound}"


def _commas(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def has_dynamic_dims(ir_type: Attribute) -> bool:
    """Whether some array in `ir_type` has a dimension whose size is known only at run time."""
    if is_array(ir_type):
        return UNBOUNDED in _shape_of(ir_type)
    return any(is_array(leaf) and UNBOUNDED in _shape_of(leaf) for leaf in leaf_types(ir_type))
