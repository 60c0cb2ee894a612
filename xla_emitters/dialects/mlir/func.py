"""The `func` dialect: xDSL's and indirect calls. Completed: func, which drops the dictionaries of a declaration's arguments.

    %1 = func.call_indirect %f(%n) : (i32) -> i32
    func.func private @f(tensor<4xf32> {xla.slice_index = 0 : index}, index) -> f32

Source: MLIR 22, func dialect.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects import func as upstream
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType
from xdsl.dialects.func import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.irdl import (
    ParsePropInAttrDict,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.mlir.directives import DerivedRange
from xla_emitters.dialects.mlir.function_syntax import parse_func_op_like, print_func_op_like
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp


class FuncOp(upstream.FuncOp, QuickOp):
    """A function: its visibility is one of MLIR's, and there is a dictionary for each argument and each result, or none."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        visibility = parser.parse_optional_visibility_keyword()
        name, inputs, outputs, body, further, arg_attrs, res_attrs = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type", "sym_visibility")
        )
        op = cls(name, (inputs, outputs), body, visibility, arg_attrs=arg_attrs, res_attrs=res_attrs)
        if further is not None:
            op.attributes |= further.data
        return op

    def print(self, printer: Printer) -> None:
        if self.sym_visibility:
            printer.print_string(f" {self.sym_visibility.data}")
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            arg_attrs=self.arg_attrs,
            res_attrs=self.res_attrs,
            reserved_attr_names=("sym_name", "function_type", "sym_visibility", "arg_attrs"),
        )

    def verify_(self) -> None:
        super().verify_()
        if (word := self.sym_visibility) is not None and word.data not in ("public", "private", "nested"):
            raise VerifyException(f"its visibility is '{word.data}', but must be public, private or nested")
        types = self.function_type
        for what, found, wanted in (("arg", self.arg_attrs, types.inputs), ("res", self.res_attrs, types.outputs)):
            if found is not None and len(found) != len(wanted):
                raise VerifyException(f"{what}_attrs has {len(found)} dictionaries for {len(wanted)} values")


@op_definition
class CallIndirectOp(QuickOp):
    """See the file's head."""

    name = "func.call_indirect"

    callee = operand_def(VarConstraint("F", base(FunctionType)))
    callee_operands = var_operand_def(DerivedRange("F", lambda function: function.inputs.data))
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res = var_result_def(DerivedRange("F", lambda function: function.outputs.data))

    assembly_format = "$callee `(` $callee_operands `)` attr-dict `:` type($callee)"

    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        found = FunctionType.from_lists(self.callee_operands.types, self.res.types)
        if self.callee.type != found:
            raise VerifyException(f"the callee is {self.callee.type}, but is called as {found}")


FUNC = dialect_of(upstream.Func, names=globals())
