"""The `scf` dialect: xDSL's and `forall`, which is read from today's XLA and never emitted here.

    %r = scf.forall (%i, %j) in (128, %n) shared_outs(%o = %init) -> (tensor<8xf32>) {
      ...
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
      }
    }

Source: MLIR 22, scf dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf as upstream
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, i64
from xdsl.dialects.scf import (
    ConditionOp,
    ExecuteRegionOp,
    ForOp,
    IfOp,
    IndexSwitchOp,
    ParallelOp,
    ReduceOp,
    ReduceReturnOp,
    WhileOp,
    YieldOp,
)
from xdsl.dialects.utils import parse_assignment, print_assignment
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    NoTerminator,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.mlir.index_lists import (
    IndexList,
    constants_of,
    operands_of,
    parse_index_list,
    print_index_list,
)

INDEX = IndexType()


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """`scf.forall.in_parallel { tensor.parallel_insert_slice ... }`: the writes of each iteration of a forall."""

    name = "scf.forall.in_parallel"

    body = region_def("single_block")

    traits = lazy_traits_def(lambda: (IsTerminator(), NoTerminator(), HasParent(ForallOp)))

    def __init__(self, body: Region | None = None):
        super().__init__(regions=[body if body and body.blocks else Region([Block()])])

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        op = InParallelOp(parser.parse_region())
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ForallOp(IRDLOperation):
    """A loop whose iterations are independent; the body's arguments are the indices, then the shared outs."""

    name = "scf.forall"

    dynamic_lower = var_operand_def(IndexType)
    dynamic_upper = var_operand_def(IndexType)
    dynamic_step = var_operand_def(IndexType)
    outputs = var_operand_def()
    static_lower = prop_def(DenseArrayBase.constr(i64), prop_name="staticLowerBound")
    static_upper = prop_def(DenseArrayBase.constr(i64), prop_name="staticUpperBound")
    static_step = prop_def(DenseArrayBase.constr(i64), prop_name="staticStep")
    mapping = opt_prop_def(ArrayAttr)
    res = var_result_def()
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(SingleBlockImplicitTerminator(InParallelOp), RecursiveMemoryEffect())

    def __init__(
        self,
        lower: IndexList,
        upper: IndexList,
        step: IndexList,
        outputs: Sequence[SSAValue],
        body: Region,
        mapping: Attribute | None = None,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__(
            operands=[operands_of(lower), operands_of(upper), operands_of(step), outputs],
            properties={
                "staticLowerBound": constants_of(lower),
                "staticUpperBound": constants_of(upper),
                "staticStep": constants_of(step),
                "mapping": mapping,
            },
            result_types=[[output.type for output in outputs]],
            attributes=attributes,
            regions=[body],
        )

    @property
    def induction_vars(self) -> Sequence[BlockArgument]:
        return self.body.block.args[: len(self.static_upper)]

    @property
    def shared_outs(self) -> Sequence[BlockArgument]:
        return self.body.block.args[len(self.static_upper) :]

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        ivs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(INDEX)
        )
        lower: IndexList = [0] * len(ivs)
        step: IndexList = [1] * len(ivs)
        if parser.parse_optional_keyword("in") is not None:
            upper = parse_index_list(parser)
        else:
            parser.parse_punctuation("=")
            lower = parse_index_list(parser)
            parser.parse_keyword("to")
            upper = parse_index_list(parser)
            parser.parse_keyword("step")
            step = parse_index_list(parser)
        shared: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
        types: list[Attribute] = []
        start = parser.pos
        if parser.parse_optional_keyword("shared_outs") is not None:
            shared = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser))
            parser.parse_punctuation("->")
            types = list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))
        outputs = parser.resolve_operands([init for _, init in shared], types, start)
        arguments = [name.resolve(argument_type) for (name, _), argument_type in zip(shared, types, strict=True)]
        body = parser.parse_region((*ivs, *arguments))
        attributes = parser.parse_optional_attr_dict()
        if not isinstance(body.block.last_op, InParallelOp):
            body.block.add_op(InParallelOp())
        return ForallOp(lower, upper, step, outputs, body, attributes.pop("mapping", None), attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.induction_vars, printer.print_ssa_value)
        printer.print_string(")")
        if set(self.static_lower.iter_values()) <= {0} and set(self.static_step.iter_values()) <= {1}:
            printer.print_string(" in ")
            print_index_list(printer, self.dynamic_upper, self.static_upper)
        else:
            printer.print_string(" = ")
            print_index_list(printer, self.dynamic_lower, self.static_lower)
            printer.print_string(" to ")
            print_index_list(printer, self.dynamic_upper, self.static_upper)
            printer.print_string(" step ")
            print_index_list(printer, self.dynamic_step, self.static_step)
        if self.outputs:
            printer.print_string(" shared_outs(")
            printer.print_list(
                zip(self.shared_outs, self.outputs, strict=True), lambda pair: print_assignment(printer, *pair)
            )
            printer.print_string(") -> (")
            printer.print_list(self.outputs.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(({"mapping": self.mapping} if self.mapping else {}) | self.attributes)

    def verify_(self) -> None:
        rank = len(self.static_upper)
        types = (*([INDEX] * rank), *self.outputs.types)
        if self.body.block.arg_types != types:
            raise VerifyException(f"its body must take {rank} indices and the shared outs")
        if self.result_types != self.outputs.types:
            raise VerifyException("its results must have the types of the shared outs")


SCF = Dialect("scf", [*upstream.Scf.operations, ForallOp, InParallelOp], list(upstream.Scf.attributes))

__all__ = [
    "SCF",
    "ConditionOp",
    "ExecuteRegionOp",
    "ForOp",
    "ForallOp",
    "IfOp",
    "InParallelOp",
    "IndexSwitchOp",
    "ParallelOp",
    "ReduceOp",
    "ReduceReturnOp",
    "WhileOp",
    "YieldOp",
]
