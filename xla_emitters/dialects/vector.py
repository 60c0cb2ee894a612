"""The `vector` dialect: xDSL's, with `from_elements` and `to_elements`.

    %v = vector.from_elements %a, %b, %c, %d : vector<4xbf16>
    %e:4 = vector.to_elements %v : vector<4xbf16>

Source: MLIR 22, vector dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import vector as upstream
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.vector import (
    BitcastOp,
    BroadcastOp,
    CombiningKindAttr,
    CombiningKindFlag,
    CreateMaskOp,
    ExtractOp,
    FMAOp,
    InsertOp,
    LoadOp,
    MaskedLoadOp,
    MaskedStoreOp,
    PrintOp,
    ReductionOp,
    ShuffleOp,
    StoreOp,
    TransferReadOp,
    TransferWriteOp,
)
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from xla_emitters.dialects import upstream_patches as upstream_patches


def _parse_vector_type(parser: Parser) -> VectorType:
    start = parser.pos
    type = parser.parse_type()
    if not isa(type, VectorType):
        parser.raise_error("expected a vector type", start, parser.pos)
    return type


def _verify_elements(vector: VectorType, elements: Sequence[SSAValue]) -> None:
    wanted = prod(vector.get_shape())
    if len(elements) != wanted:
        raise VerifyException(f"{vector} has {wanted} elements, not {len(elements)}")
    for element in elements:
        if element.type != vector.element_type:
            raise VerifyException(f"an element of {vector} cannot be {element.type}")


@irdl_op_definition
class FromElementsOp(IRDLOperation):
    """A vector of its elements, the last dimension fastest."""

    name = "vector.from_elements"

    elements = var_operand_def()
    dest = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, elements: Sequence[SSAValue | Operation], result_type: VectorType):
        super().__init__(operands=[elements], result_types=[result_type])

    @classmethod
    def parse(cls, parser: Parser) -> FromElementsOp:
        elements = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = _parse_vector_type(parser)
        op = FromElementsOp([parser.resolve_operand(element, type.element_type) for element in elements], type)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.dest.type)

    def verify_(self) -> None:
        assert isa(self.dest.type, VectorType)
        _verify_elements(self.dest.type, self.elements)


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """The elements of a vector, the last dimension fastest."""

    name = "vector.to_elements"

    source = operand_def(VectorType)
    elements = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation):
        type = SSAValue.get(source).type
        assert isa(type, VectorType), "to_elements of a value that is no vector"
        super().__init__(operands=[source], result_types=[[type.element_type] * prod(type.get_shape())])

    @classmethod
    def parse(cls, parser: Parser) -> ToElementsOp:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = ToElementsOp(parser.resolve_operand(source, _parse_vector_type(parser)))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    def verify_(self) -> None:
        assert isa(self.source.type, VectorType)
        _verify_elements(self.source.type, self.elements)


VECTOR = Dialect(
    "vector", [*upstream.Vector.operations, FromElementsOp, ToElementsOp], list(upstream.Vector.attributes)
)

__all__ = [
    "VECTOR",
    "BitcastOp",
    "BroadcastOp",
    "CombiningKindAttr",
    "CombiningKindFlag",
    "CreateMaskOp",
    "ExtractOp",
    "FMAOp",
    "FromElementsOp",
    "InsertOp",
    "LoadOp",
    "MaskedLoadOp",
    "MaskedStoreOp",
    "PrintOp",
    "ReductionOp",
    "ShuffleOp",
    "StoreOp",
    "ToElementsOp",
    "TransferReadOp",
    "TransferWriteOp",
]
