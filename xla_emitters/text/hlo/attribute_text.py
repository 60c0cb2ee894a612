"""The HLO text of each attribute of an instruction: `dimensions={0,1}`, `slice={[0:4:2]}`, `to_apply=add`.

The table has one row per attribute name, with its parser and its printer; a name has the same syntax in every opcode. The attributes of an
opcode are the properties that its class in the `hlo` dialect declares, by the same names. The attributes that every instruction may carry
(`COMMON`) are stored as written, and so are those whose meaning is not needed here.
Source: docs/reference/1 6.6, 6.8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import OptPropertyDef

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.shape_ops import rows
from xla_emitters.dialects.hlo.types import type_text
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.isa import isa
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloToken, HloTokenKind
from xla_emitters.text.hlo.hlo_literals import literal_text, parse_literal
from xla_emitters.text.hlo.shapes import ShapeReader


@dataclass(frozen=True)
class Syntax:
    """The syntax of one kind of attribute.

    parse  consumes the value, after the `=`
    text   returns the value as HLO text, without the `=`
    """

    parse: Callable[[HloCursor], Attribute]
    text: Callable[[Attribute], str]


def _listed(what: str, one: Syntax, comma: str = ", ") -> Syntax:
    """`{item, item}`; `what` is the noun of an item, with its article."""

    def parse(cursor: HloCursor) -> Attribute:
        cursor.expect("{", f"before a list: {{{what}, ...}}")
        return ArrayAttr(cursor.items("}", lambda: one.parse(cursor), what))

    def text(attribute: Attribute) -> str:
        assert isa(attribute, ArrayAttr[Attribute])
        return f"{{{comma.join(map(one.text, attribute))}}}"

    return Syntax(parse, text)


# ------------------------------------------------------------------------------------------------------------- lists of numbers


def _parse_integers(cursor: HloCursor) -> Attribute:
    cursor.expect("{", "before a list of numbers")
    return integer_array(cursor.items("}", lambda: cursor.integer("a number"), "a number"))


def _integers_text(attribute: Attribute) -> str:
    assert isinstance(attribute, DenseArrayBase)
    return f"{{{','.join(map(str, attribute.get_values()))}}}"


def _parse_range(cursor: HloCursor) -> Attribute:
    """`[start:limit]`, `[start:limit:stride]`"""
    cursor.expect("[", "before the start of a range")
    numbers = [cursor.integer("the start of a range")]
    cursor.expect(":", "after the start of a range")
    numbers.append(cursor.integer("the limit of a range"))
    numbers.append(cursor.integer("the stride of a range") if cursor.accept(":") else 1)
    cursor.expect("]", "after a range")
    return integer_array(numbers)


def _range_text(attribute: Attribute) -> str:
    start, limit, stride = integers(attribute)
    return f"[{start}:{limit}{f':{stride}' if stride != 1 else ''}]"


# --------------------------------------------------------------------------------------------------------- padding and windows


def _split_padding(cursor: HloCursor, token: HloToken) -> list[tuple[int, ...]]:
    """`0_1x-2_3_4` to [(0, 1), (-2, 3, 4)]."""
    parts = token.text.split("x")
    numbers = [[int(number) for number in part.split("_") if len(number) <= 19] for part in parts]
    if any(len(found) != part.count("_") + 1 for found, part in zip(numbers, parts, strict=True)):
        raise cursor.error("a number of the padding does not fit 64 bits", token)
    return [tuple(found) for found in numbers]


def _parse_padding(cursor: HloCursor) -> Attribute:
    token = cursor.expect_kind(HloTokenKind.PADDING, "low_high_interior for each dimension")
    return ArrayAttr([integer_array((*part, 0)[:3]) for part in _split_padding(cursor, token)])


def _padding_text(attribute: Attribute) -> str:
    assert isa(attribute, ArrayAttr[Attribute])
    found = rows(attribute)
    has_interior = any(interior for _, _, interior in found)
    return "x".join("_".join(map(str, row if has_interior else row[:2])) for row in found)


_WINDOW_PARTS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def _parse_window(cursor: HloCursor) -> Attribute:
    """`{size=2x2 stride=1x1 pad=0_1x0_1}`"""
    lists = dict[str, Sequence[int]]()
    start = cursor.expect("{", "before a window")
    while not cursor.at("}"):
        cursor.accept(",")
        token = cursor.name("a part of the window")
        if token.text not in _WINDOW_PARTS or token.text in lists:
            problem = "is given twice" if token.text in lists else "is not a part of a window"
            raise cursor.error(f"'{token.text}' {problem}", token, help=f"its parts: {', '.join(_WINDOW_PARTS)}")
        cursor.expect("=", f"after '{token.text}'")
        lists[token.text] = _window_numbers(cursor, token.text)
    cursor.advance()
    try:
        return WindowAttr(Window.of_lists(lists))
    except ValueError as error:
        raise cursor.error(str(error), start) from None


def _window_numbers(cursor: HloCursor, part: str) -> list[int]:
    if part == "pad":
        token = cursor.expect_kind(HloTokenKind.PADDING, "low_high for each dimension")
        found = _split_padding(cursor, token)
        if any(len(pair) != 2 for pair in found):
            raise cursor.error("a window's padding is written low_high for each dimension", token)
        return [number for pair in found for number in pair]
    if cursor.token.kind is HloTokenKind.SIZES:
        token = cursor.advance()
        if any(len(number) > 18 for number in token.text.split("x")):
            raise cursor.error(f"a number of '{part}' does not fit 64 bits", token)
        return [int(number) for number in token.text.split("x")]
    return [cursor.integer(f"the window's {part}, such as 3x3")]


def _window_text(attribute: Attribute) -> str:
    assert isinstance(attribute, WindowAttr)
    shown = list[str]()
    for part, numbers in attribute.data.lists().items():
        pairs = zip(numbers[::2], numbers[1::2], strict=True) if part == "pad" else ()
        values = [f"{low}_{high}" for low, high in pairs] or map(str, numbers)
        shown.append(f"{part}={'x'.join(values)}")
    return f"{{{' '.join(shown)}}}"


# -------------------------------------------------------------------------------------------------------------- single values


def _text_of_string(attribute: Attribute) -> str:
    assert isinstance(attribute, StringAttr)
    return attribute.data


def _integer_text(attribute: Attribute) -> str:
    assert isinstance(attribute, IntegerAttr)
    return str(attribute.value.data)


def _boolean_text(attribute: Attribute) -> str:
    assert isinstance(attribute, IntegerAttr)
    return "true" if attribute.value.data else "false"


def _parse_message(cursor: HloCursor) -> Attribute:
    """A string as JSON has it."""
    token = cursor.expect_kind(HloTokenKind.STRING, "a message")
    try:
        return StringAttr(json.loads(token.text))
    except ValueError as error:
        raise cursor.error(f"this string is not written as in JSON: {error}", token) from None


def _parse_computation(cursor: HloCursor) -> SymbolRefAttr:
    return SymbolRefAttr(cursor.name("the name of a computation").name)


def _computation_text(attribute: Attribute) -> str:
    assert isinstance(attribute, SymbolRefAttr)
    return f"%{attribute.root_reference.data}"


def _parse_number(cursor: HloCursor) -> Attribute:
    """A real number; stored as written."""
    if cursor.token.kind not in (HloTokenKind.FLOAT, HloTokenKind.INT):
        raise cursor.unexpected("a number")
    return StringAttr(cursor.advance().text)


def _parse_size_lists(cursor: HloCursor) -> Attribute:
    """`{1,2}`, or `{{1,2},{3,4}}` for a collective-permute of several slices."""
    return (LISTS if cursor.peek().text == "{" else INTEGERS).parse(cursor)


def _parse_groups(cursor: HloCursor) -> Attribute:
    """Groups of devices: lists `{{0,1},{2,3}}`, a reshaped and transposed range `[2,2]<=[4]T(1,0)`, or axes of a mesh, some of them a part
    of an axis: `mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'x','y':(1)2}`; the latter two are stored as written.
    """
    if cursor.at("{"):
        return LISTS.parse(cursor)
    start = cursor.token.start
    if cursor.accept("mesh"):
        cursor.opaque("the axes of the mesh and their sizes")
        if cursor.accept(","):
            cursor.expect("device_ids", "after the ',' behind a mesh")
            cursor.expect("=", "after 'device_ids'")
            cursor.opaque("the devices of the mesh")
        cursor.opaque("the axes along which a group extends")
        return StringAttr(cursor.source.text[start : cursor.previous.end])
    if not cursor.at("["):
        raise cursor.unexpected("groups of devices, {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=2,'y'=2] {'x'}")
    cursor.opaque("the number and the size of the groups")
    cursor.expect("<=", "after the number and the size of the groups")
    cursor.opaque("the devices")
    if cursor.accept("T"):
        cursor.opaque("a permutation of the devices")
    return StringAttr(cursor.source.text[start : cursor.previous.end])


def _shape_text(attribute: Attribute) -> str:
    return type_text(attribute, True)


def _parse_typed_literal(cursor: HloCursor) -> Attribute:
    """A shape and a literal of that shape: a list of the type and the value, as in an `hlo.constant`."""
    literal_type = ShapeReader(cursor).shape()
    start = cursor.token
    literal = parse_literal(cursor, literal_type)
    if literal is None:
        raise cursor.error("this literal leaves out its data", start)
    return ArrayAttr([literal_type, literal])


def _typed_literal_text(attribute: Attribute) -> str:
    assert isa(attribute, ArrayAttr[Attribute])
    literal_type, literal = attribute
    return f"{type_text(literal_type, True)} {literal_text(literal)}"


INTEGERS = Syntax(_parse_integers, _integers_text)
RANGES = _listed("a range", Syntax(_parse_range, _range_text))
PADDING = Syntax(_parse_padding, _padding_text)
WINDOW = Syntax(_parse_window, _window_text)
INTEGER = Syntax(lambda cursor: IntegerAttr(cursor.integer("a number"), i64), _integer_text)
BOOLEAN = Syntax(lambda cursor: IntegerAttr(int(cursor.boolean("a truth value")), i1), _boolean_text)
WORD = Syntax(lambda cursor: StringAttr(cursor.name("a word").text), _text_of_string)
MESSAGE = Syntax(_parse_message, lambda attribute: json.dumps(_text_of_string(attribute)))
LABELS = Syntax(
    lambda cursor: StringAttr(cursor.expect_kind(HloTokenKind.LABELS, "the value of dim_labels").text), _text_of_string
)
COMPUTATION = Syntax(_parse_computation, _computation_text)
COMPUTATIONS = _listed("a computation", COMPUTATION)
OPAQUE = Syntax(lambda cursor: StringAttr(cursor.opaque("a value")), _text_of_string)
NUMBER = Syntax(_parse_number, _text_of_string)
LISTS = _listed("a list of numbers", INTEGERS, ",")
SIZE_LISTS = Syntax(
    _parse_size_lists,
    lambda attribute: LISTS.text(attribute) if isa(attribute, ArrayAttr[Attribute]) else _integers_text(attribute),
)
GROUPS = Syntax(
    _parse_groups, lambda attribute: attribute.data if isinstance(attribute, StringAttr) else LISTS.text(attribute)
)
SHAPE = Syntax(lambda cursor: ShapeReader(cursor).shape(), _shape_text)
SHAPES = _listed("a shape", SHAPE)
TYPED_LITERAL = Syntax(_parse_typed_literal, _typed_literal_text)


# ------------------------------------------------------------------------------------------------------------------- the table

_NAMES: tuple[tuple[Syntax, str], ...] = (
    (
        OPAQUE,
        """algorithm async_execution_thread custom_call_target domain infeed_config operand_precision
        outfeed_config output_to_operand_aliasing""",
    ),
    (
        WORD,
        """api_version conv_kind direction distribution fft_type kind mode padding_type schedule transpose_a
        type""",
    ),
    (
        INTEGER,
        """batch_group_count channel_id cross_program_prefetch_index delta exponent_bits feature_group_count
        feature_index index index_vector_dim inferred_dimension iota_dimension k mantissa_bits num_carries""",
    ),
    (COMPUTATION, "body calls condition false_computation scatter select to_apply true_computation"),
    (COMPUTATIONS, "branch_computations called_computations"),
    (
        INTEGERS,
        """collapsed_slice_dims dimensions dynamic_slice_sizes fft_length input_batching_dims
        inserted_window_dims known_expanding known_nonexpanding lhs_batch_dims lhs_contracting_dims
        lhs_ragged_dims offset_dims operand_batching_dims rhs_batch_dims rhs_contracting_dims rhs_group_dims
        scatter_dims_to_operand_dims scatter_indices_batching_dims start_index_map
        start_indices_batching_dims update_window_dims""",
    ),
    (
        BOOLEAN,
        """constrain_layout custom_call_has_side_effect indices_are_sorted is_associative is_composite
        is_host_transfer is_reverse is_stable largest left_side lower unique_indices unit_diagonal
        use_global_device_ids""",
    ),
    (LABELS, "dim_labels"),
    (NUMBER, "epsilon"),
    (TYPED_LITERAL, "literal"),
    (MESSAGE, "message"),
    (SHAPES, "operand_layout_constraints"),
    (SHAPE, "outfeed_shape"),
    (PADDING, "padding"),
    (GROUPS, "replica_groups"),
    (RANGES, "slice"),
    (SIZE_LISTS, "slice_sizes"),
    (LISTS, "source_target_pairs"),
    (WINDOW, "window"),
)
SYNTAX: dict[str, Syntax] = {name: syntax for syntax, names in _NAMES for name in names.split()}

COMMON: tuple[str, ...] = (
    "backend_config",
    "control-predecessors",
    "frontend_attributes",
    "metadata",
    "origin",
    "original_value",
    "parameter_replication",
    "result_accuracy",
    "sharding",
    "statistics",
)
"""Attributes that any instruction may carry: stored as written in discardable attributes of the op, with `_` for `-`."""

# Properties that HLO text writes elsewhere: the name before `=`, the number and the literal in the parentheses.
ELSEWHERE = frozenset(("name", "number", "value"))


def attributes_of(op: type[HloOp]) -> tuple[tuple[str, bool], ...]:
    """The attributes of an opcode besides the common ones, in order, as (name, is_required)."""
    definition = op.get_irdl_definition()
    return tuple(
        (name, not isinstance(rule, OptPropertyDef))
        for name, rule in definition.properties.items()
        if name not in ELSEWHERE
    )
