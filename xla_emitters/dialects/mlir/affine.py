"""The `affine` dialect: xDSL's, with what it lacks.

    %0 = affine.max affine_map<(d0)[s0] -> (d0 + s0, 8)>(%i)[%j]      the maximum of a map's results
    %1:2 = affine.delinearize_index %i into (4, 8) : index, index    the coordinates of an element number
    %2 = affine.linearize_index [%1#0, %1#1] by (4, 8) : index       and back

The basis may omit the first extent. Completed: apply and min, which read no attributes behind the values.
Source: MLIR 22, affine dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import affine as upstream
from xdsl.dialects.affine import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.builtin import AffineMapAttr, BoolAttr, DenseArrayBase, IndexType, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.mlir.scf import (
    DYNAMIC,
    IndexList,
    constants_of,
    entries_of,
    operands_of,
    parse_index_list,
    print_index_list,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

INDEX = IndexType()
_FALSE = BoolAttr.from_bool(False)


class _AppliesMap:
    """`affine_map<(d0)[s0] -> (d0 + s0)>(%dims)[%symbols] {attributes}`, what follows the op's name."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        start = parser.pos
        affine_map = parser.parse_attribute()
        if not isinstance(affine_map, AffineMapAttr):
            parser.raise_error("expected an affine map", start, parser.pos)
        operands: list[SSAValue] = []
        for delimiter in (parser.Delimiter.PAREN, parser.Delimiter.SQUARE):
            operands += parser.parse_optional_comma_separated_list(delimiter, lambda: parser.parse_operand(INDEX)) or []
        op: Any = cast(Any, cls)(operands, affine_map)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self: Any, printer: Printer) -> None:
        dims = self.map.data.num_dims
        printer.print_string(" ")
        printer.print_attribute(self.map)
        with printer.in_parens():
            printer.print_list(self.operands[:dims], printer.print_ssa_value)
        if self.map.data.num_symbols:
            with printer.in_square_brackets():
                printer.print_list(self.operands[dims:], printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)


class ApplyOp(_AppliesMap, upstream.ApplyOp, QuickOp):
    """The only result of a map."""


class MinOp(_AppliesMap, upstream.MinOp, QuickOp):
    """The minimum of a map's results."""


@op_definition
class MaxOp(_AppliesMap, QuickOp):
    """The maximum of a map's results."""

    name = "affine.max"

    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, map_operands: Sequence[SSAValue | Operation], affine_map: AffineMapAttr):
        super().__init__(operands=[map_operands], properties={"map": affine_map}, result_types=[INDEX])

    def verify_(self) -> None:
        if len(self.arguments) != (wanted := self.map.data.num_dims + self.map.data.num_symbols):
            raise VerifyException(f"its map takes {wanted} operands, not {len(self.arguments)}")


def _verify_basis(op: DelinearizeIndexOp | LinearizeIndexOp, coordinates: int) -> None:
    extents = op.static_basis.get_values()
    if extents.count(DYNAMIC) != len(op.dynamic_basis):
        raise VerifyException(f"its basis takes {extents.count(DYNAMIC)} operands, not {len(op.dynamic_basis)}")
    if len(extents) not in (coordinates, coordinates - 1):
        raise VerifyException(f"a basis of {len(extents)} extents for {coordinates} coordinates")


@op_definition
class DelinearizeIndexOp(PureOp):
    """The coordinates of element `linear_index`; the last coordinate varies fastest."""

    name = "affine.delinearize_index"

    linear_index = operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    multi_index = var_result_def(IndexType)

    def __init__(self, linear_index: SSAValue | Operation, basis: IndexList, coordinates: int):
        super().__init__(
            operands=[linear_index, operands_of(basis)],
            properties={"static_basis": constants_of(basis)},
            result_types=[[INDEX] * coordinates],
        )

    @property
    def basis(self) -> list[int | SSAValue]:
        return entries_of(self.dynamic_basis, self.static_basis.get_values())

    @classmethod
    def parse(cls, parser: Parser) -> DelinearizeIndexOp:
        linear_index = parser.parse_operand(INDEX)
        parser.parse_keyword("into")
        basis = parse_index_list(parser)
        attributes = parser.parse_optional_attr_dict()
        types = []
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        op = DelinearizeIndexOp(linear_index, basis, len(types))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.linear_index)
        printer.print_string(" into ")
        print_index_list(printer, self.dynamic_basis, self.static_basis)
        printer.print_op_attributes(self.attributes)
        if self.multi_index:
            printer.print_string(" : ")
            printer.print_list(self.multi_index.types, printer.print_attribute)

    def verify_(self) -> None:
        _verify_basis(self, len(self.multi_index))


@op_definition
class LinearizeIndexOp(PureOp):
    """The number of the element at the coordinates. `disjoint`: each coordinate is below its extent."""

    name = "affine.linearize_index"

    multi_index = var_operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    disjoint = opt_prop_def(UnitAttr | BoolAttr)
    linear_index = result_def(IndexType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, multi_index: Sequence[SSAValue | Operation], basis: IndexList, disjoint: bool = False):
        super().__init__(
            operands=[multi_index, operands_of(basis)],
            properties={"static_basis": constants_of(basis), "disjoint": UnitAttr() if disjoint else None},
            result_types=[INDEX],
        )

    @property
    def basis(self) -> list[int | SSAValue]:
        return entries_of(self.dynamic_basis, self.static_basis.get_values())

    @property
    def is_disjoint(self) -> bool:
        """MLIR's generic form also has `disjoint = false`."""
        return self.disjoint is not None and self.disjoint != _FALSE

    @classmethod
    def parse(cls, parser: Parser) -> LinearizeIndexOp:
        disjoint = parser.parse_optional_keyword("disjoint") is not None
        coordinates = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(INDEX))
        parser.parse_keyword("by")
        basis = parse_index_list(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        parser.parse_type()
        op = LinearizeIndexOp(coordinates, basis, disjoint)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" disjoint [" if self.is_disjoint else " [")
        printer.print_list(self.multi_index, printer.print_ssa_value)
        printer.print_string("] by ")
        print_index_list(printer, self.dynamic_basis, self.static_basis)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.linear_index.type)

    def verify_(self) -> None:
        _verify_basis(self, len(self.multi_index))


AFFINE = dialect_of(upstream.Affine, names=globals())
