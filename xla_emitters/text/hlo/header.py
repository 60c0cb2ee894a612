"""The text before the computations of a module: its name, its attributes, the tables of source positions.

    HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

    FileNames
    1 "model.py"

The attributes are stored as written, as `hlo.<name>` on the module, except `input_output_alias`, which is parsed because analyses read it.
References to the entry computation are checked once it is parsed (`verify_header`).
Source: docs/reference/1 6.2, 6.7.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import RuleBroken
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import Alias, AliasAttr, same_shape, type_at, type_text
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloTokenKind
from xla_emitters.text.hlo.shapes import ShapeReader
from xla_emitters.text.hlo.stack_frames import TABLES

ALIASES = "hlo.input_output_alias"
ENTRY_LAYOUT = "hlo.entry_computation_layout"

_BOOLEANS = ("is_scheduled", "alias_passthrough_params")
_INTEGERS = ("replica_count", "num_partitions")
_OPAQUE = (
    "buffer_donor",
    "entry_computation_layout",
    "frontend_attributes",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "origin_recovery_table",
    "debug_attributes",
)
_NAMES = (*_BOOLEANS, *_INTEGERS, *_OPAQUE, "input_output_alias")


def parse_attributes(cursor: HloCursor) -> dict[str, Attribute]:
    """Consumes `, name=value ...` after the module's name."""
    found = dict[str, Attribute]()
    while cursor.accept(","):
        token = cursor.name("an attribute of the module")
        name = token.name
        if name not in _NAMES:
            raise cursor.error(
                f"a module has no attribute '{name}'{nearest(name, _NAMES)}",
                token,
                help=f"it takes: {', '.join(_NAMES)}",
            )
        if (key := f"hlo.{name}") in found:
            raise cursor.error(f"attribute '{name}' is given twice", token)
        cursor.expect("=", f"after '{name}'")
        found[key] = _value(cursor, name)
    return found


def _value(cursor: HloCursor, name: str) -> Attribute:
    if name == "input_output_alias":
        return _aliases(cursor)
    start = cursor.token.start
    if name in _BOOLEANS:
        cursor.boolean(f"the value of '{name}'")
    elif name in _INTEGERS:
        cursor.integer(f"the value of '{name}'")
    else:
        cursor.opaque(f"the value of '{name}'")
    return StringAttr(cursor.source.text[start : cursor.previous.end])


def _aliases(cursor: HloCursor) -> Attribute:
    """`{ {0}: (1, {}, may-alias), ... }`"""

    def alias() -> AliasAttr:
        output = _index(cursor)
        cursor.expect(":", "after the index of an output")
        cursor.expect("(", "before the number of a parameter")
        parameter = cursor.integer("the number of a parameter")
        cursor.expect(",", "after the number of a parameter")
        index = _index(cursor)
        kind = "may-alias"
        if cursor.accept(","):
            kind = cursor.name("'may-alias' or 'must-alias'").name
        if kind not in ("may-alias", "must-alias"):
            raise cursor.error(f"unknown kind of alias '{kind}'", cursor.previous, help="may-alias or must-alias")
        cursor.expect(")", "after an alias")
        return AliasAttr(Alias(output, parameter, index, kind))

    cursor.expect("{", "before the aliases")
    return ArrayAttr(cursor.items("}", alias, "an alias"))


def _index(cursor: HloCursor) -> tuple[int, ...]:
    """`{}`, `{0,1}`: the index of an array in nested tuples."""
    cursor.expect("{", "before an index into a tuple")
    return tuple(cursor.items("}", lambda: cursor.integer("a number"), "a number"))


def parse_stack_tables(cursor: HloCursor) -> str:
    """Consumes the tables that `stack_frame_id` in metadata refers to (rows of a number and a string or a group); returns their text."""
    start = cursor.token.start
    while cursor.at(*TABLES):
        cursor.advance()
        while cursor.token.kind is HloTokenKind.INT:
            cursor.advance()
            cursor.opaque("a row of the table")
    return cursor.source.text[start : cursor.previous.end]


def verify_header(module: ModuleOp, entry: ComputationOp) -> None:
    """Checks aliases and the entry's layout against the entry computation; raises RuleBroken if they do not match it."""
    parameters = [parameter.result.type for parameter in entry.parameters]
    if isa(aliases := module.attributes.get(ALIASES), ArrayAttr[AliasAttr]):
        _verify_aliases([each.data for each in aliases], parameters, entry.root.type)
    layout = module.attributes.get(ENTRY_LAYOUT)
    if isinstance(layout, StringAttr):
        _verify_entry_layout(layout.data, parameters, entry.root.type)


def _verify_aliases(aliases: Sequence[Alias], parameters: Sequence[Attribute], root: Attribute) -> None:
    seen = set[tuple[int, ...]]()
    for alias in aliases:
        if not 0 <= alias.parameter < len(parameters):
            raise RuleBroken(
                f"input_output_alias names parameter {alias.parameter}, which does not exist",
                f"number of the entry's parameters: {len(parameters)}",
            )
        parameter = parameters[alias.parameter]
        output, source = type_at(root, alias.output), type_at(parameter, alias.inside)
        if output is None or source is None:
            what = "the result" if output is None else f"parameter {alias.parameter}"
            index = alias.output if output is None else alias.inside
            raise RuleBroken(
                f"input_output_alias names element {{{','.join(map(str, index))}}} of {what}, which does not exist",
                f"{what} is {type_text(root if output is None else parameter)}",
            )
        if alias.output in seen:
            raise RuleBroken(f"input_output_alias names output {{{','.join(map(str, alias.output))}}} twice")
        seen.add(alias.output)


def _verify_entry_layout(text: str, parameters: Sequence[Attribute], root: Attribute) -> None:
    """Checks `text`, such as `{(f32[8]{0})->f32[8]{0}}`, against the entry's shapes."""
    try:
        found, result = _entry_layout(text)
    except ParseError as error:
        # The error's place is relative to `text`, whose own place in the file is not stored.
        raise RuleBroken(f"entry_computation_layout: {error.message}", *error.details) from None
    if len(found) != len(parameters) or not all(map(same_shape, [*found, result], [*parameters, root])):
        wanted, got = (
            f"({', '.join(map(type_text, parameter_types))})->{type_text(result_type)}"
            for parameter_types, result_type in ((found, result), (parameters, root))
        )
        raise RuleBroken("entry_computation_layout does not match the entry", f"it is {wanted}; the entry is {got}")


def _entry_layout(text: str) -> tuple[list[Attribute], Attribute]:
    """The types of the parameters, and the type of the result. Raises ParseError."""
    cursor = HloCursor(Source(text, ENTRY_LAYOUT.removeprefix("hlo.")))
    shapes = ShapeReader(cursor)
    cursor.expect("{", "before the shapes of the parameters")
    cursor.expect("(", "before the shapes of the parameters")
    found = cursor.items(")", shapes.shape, "a shape")
    cursor.expect("->", "before the shape of the result")
    result = shapes.shape()
    cursor.expect("}", "after the shape of the result")
    return found, result
