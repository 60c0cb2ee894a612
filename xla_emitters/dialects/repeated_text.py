"""Reads IR faster: lines, types and dictionaries of attributes that were read before are not parsed again. Lines may name other values.

    %5 = arith.addf %3, %4 : f32     kept under "arith.addf %, % : f32": AddfOp, its operands are the line's values 0 and 1,
                                     both f32, and it has one f32 result
    tensor<8xf32>                    kept under its text, as is {llvm.align = 256 : index}

A line is kept if the parser read exactly that line, and made an op without regions and successors, whose operands are the line's values.
The types of values are compared each time. All else is left to the parser, errors included: strings, locations, labels of blocks, what is
defined elsewhere (`#map`, resources), values that are used before they are defined, types that differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute

from xla_emitters.support.late_dataclass import dataclass

_LINE = re.compile(
    r"""(?:%([\w$.-]+)[ ]=[ ])?(\w+\.[^\n"^/]*)\n[ ]*(?=%[\w$.,:% -]+=|[}^]|(?!loc\b)[a-z_]+[.\ ])""", re.ASCII
)
"""A line with at most one name before its op, and the blanks of the next line, which begins another op, or ends the block. Groups: that
name, and the op."""
_NAME = re.compile(r"%([\w$.-]+(?:#[0-9]+)?)", re.ASCII)
_DEFINED_ELSEWHERE = re.compile(r"[#!](?![\w$-]+\.)|\b(?:distinct\[|dense_resource<)", re.ASCII)
TYPE = re.compile(r"(?:!\w+\.)?[a-z]\w*+(?:\.\w+)*+(?:<[^<>\"#!\n]*>)?+(?!\s*<)", re.ASCII)
"""`f32`, `!llvm.ptr<1>`, `tensor<8xf32>`; not a type with other types' brackets in its own."""
DICTIONARY = re.compile(r"\{[^{}\"\n/]*\}")
"""Attributes in one line, without strings and other dictionaries."""
_MOST = 20_000
"""Kept texts of each kind; after that all of the kind are forgotten."""
_LONGEST = 1000
"""Characters of a kept text: large constants are not kept."""

Values = Mapping[str, Sequence[SSAValue]]
"""Name -> the values that it was given to, several where an op has several results."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class OpLine:
    """A line of a text.

    result  the name before the op, if there is one
    key     the op's text without names
    names   the other names, in order
    end     where the next line's first token begins
    """

    result: str | None
    key: str
    names: Sequence[str]
    end: int


@dataclass(frozen=True)
class _Meaning:
    """What a line stands for.

    types   of the line's values
    places  operand -> number of its value in the line
    """

    types: tuple[Attribute, ...]
    op: type[Operation]
    places: tuple[int, ...]
    result_types: tuple[Attribute, ...]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]


@dataclass
class RepeatedText:
    """What was read with one context."""

    lines: dict[str, _Meaning] = field(default_factory=dict[str, _Meaning])
    types: dict[str, TypeAttribute | None] = field(default_factory=dict[str, TypeAttribute | None])
    dictionaries: dict[str, Mapping[str, Attribute]] = field(default_factory=dict[str, Mapping[str, Attribute]])

    def op(self, line: OpLine, defined: Values) -> Operation | None:
        """A new op for a kept line; None if the parser has to read it."""
        meaning = self.lines.get(line.key)
        if meaning is None or (line.result is not None and len(meaning.result_types) != 1):
            return None
        values = [_value(name, defined) for name in line.names]
        for value, wanted in zip(values, meaning.types, strict=True):
            if value is None or (value.type is not wanted and value.type != wanted):
                return None
        return meaning.op.create(
            operands=[value for place in meaning.places if (value := values[place]) is not None],
            result_types=meaning.result_types,
            properties=meaning.properties,
            attributes=meaning.attributes,
        )

    def keep_line(self, line: OpLine, op: Operation, defined: Values) -> None:
        """Keeps what the parser made of a line, if that says which value of the line is which operand."""
        values = [_value(name, defined) for name in line.names]
        operands = list(op.operands)
        is_clear = len(set(values)) == len(values) and set(values) == set(operands)
        # Inside of LLVM's ops, `mlir.constant` is short for `llvm.mlir.constant`; elsewhere it is not an op.
        has_full_name = line.key.startswith(op.name)
        if op.regions or op.successors or op.location != UNKNOWN_LOC or not (is_clear and has_full_name):
            return
        meaning = _Meaning(
            tuple(value.type for value in values if value is not None),
            type(op),
            tuple(values.index(operand) for operand in operands),
            tuple(op.result_types),
            dict(op.properties),
            dict(op.attributes),
        )
        keep(self.lines, line.key, meaning)


def keep(kept: dict[str, _T], text: str, value: _T) -> None:
    """Adds what a text stands for, unless it is long or needs the definition of a name."""
    if len(text) > _LONGEST or _DEFINED_ELSEWHERE.search(text):
        return
    if len(kept) >= _MOST:
        kept.clear()
    kept[text] = value


def line_at(text: str, start: int) -> OpLine | None:
    """The line from `start` on; None if it is not one that can be kept."""
    found = _LINE.match(text, start)
    if found is None or found.end(2) - found.start(2) > _LONGEST:
        return None
    result, op = found.groups()
    parts = _NAME.split(op)
    return OpLine(result, "%".join(parts[::2]), parts[1::2], found.end())


def _value(name: str, defined: Values) -> SSAValue | None:
    if found := defined.get(name):
        return found[0]
    name, _, index = name.partition("#")
    found = defined.get(name, ())
    return found[int(index)] if index and int(index) < len(found) else None
