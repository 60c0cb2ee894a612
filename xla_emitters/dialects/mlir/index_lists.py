"""Lists of numbers and operands: `(4, %n, 8)`, the bounds of a `scf.forall` and the basis of a linear index.

    (4, %n, 8)      operands  %n        constants  array<i64: 4, -9223372036854775808, 8>

The op has the operands, and an attribute with the numbers and `DYNAMIC` in place of each operand.
Source: MLIR 22, "dynamic index list".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from xla_emitters.dialects.attributes import integer_array

DYNAMIC = -(2**63)
"""MLIR's ShapedType::kDynamic."""

IndexList: TypeAlias = Sequence[int | SSAValue]


def operands_of(entries: IndexList) -> list[SSAValue]:
    return [entry for entry in entries if isinstance(entry, SSAValue)]


def constants_of(entries: IndexList) -> DenseArrayBase[IntegerType]:
    return integer_array([entry if isinstance(entry, int) else DYNAMIC for entry in entries])


def entries_of(operands: Sequence[SSAValue], constants: Sequence[int]) -> list[int | SSAValue]:
    """The list that `operands_of` and `constants_of` were taken from."""
    rest = iter(operands)
    return [next(rest) if number == DYNAMIC else number for number in constants]


def parse_index_list(parser: Parser) -> list[int | SSAValue]:
    """In parentheses; the operands are indices."""
    names, constants = parse_dynamic_index_list_without_types(parser, DYNAMIC, delimiter=parser.Delimiter.PAREN)
    return entries_of([parser.resolve_operand(name, IndexType()) for name in names], constants)


def print_index_list(printer: Printer, operands: Sequence[SSAValue], constants: DenseArrayBase[IntegerType]) -> None:
    print_dynamic_index_list(printer, DYNAMIC, operands, constants.iter_values(), delimiter=Parser.Delimiter.PAREN)
