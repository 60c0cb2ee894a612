"""The `func` dialect: xDSL's and indirect calls.

    %1 = func.call_indirect %f(%n) : (i32) -> i32

Source: MLIR 22, func dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func as upstream
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class CallIndirectOp(IRDLOperation):
    """See the file's head."""

    name = "func.call_indirect"

    callee = operand_def(FunctionType)
    callee_operands = var_operand_def()
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res = var_result_def()

    def __init__(self, callee: SSAValue | Operation, operands: Sequence[SSAValue | Operation]):
        function_type = SSAValue.get(callee).type
        assert isinstance(function_type, FunctionType), "only a function can be called"
        super().__init__(operands=[callee, operands], result_types=[function_type.outputs.data])

    @classmethod
    def parse(cls, parser: Parser) -> CallIndirectOp:
        callee = parser.parse_unresolved_operand()
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        function_type = parser.parse_function_type()
        op = CallIndirectOp(
            parser.resolve_operand(callee, function_type),
            parser.resolve_operands(operands, function_type.inputs.data, start),
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.callee)
        with printer.in_parens():
            printer.print_list(self.callee_operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.callee.type)

    def verify_(self) -> None:
        found = FunctionType.from_lists(self.callee_operands.types, self.res.types)
        if self.callee.type != found:
            raise VerifyException(f"the callee is {self.callee.type}, but is called as {found}")


FUNC = Dialect("func", [*upstream.Func.operations, CallIndirectOp], list(upstream.Func.attributes))

__all__ = ["FUNC", "CallIndirectOp"]
