"""The `llvm` dialect's branches, with branch weights and loop annotations.

    llvm.br ^head(%i : i32) {loop_annotation = #llvm.loop_annotation<mustProgress = true>}
    llvm.cond_br %c weights([2000, 1]), ^body, ^exit(%x : f32)
    llvm.switch %n : i32, ^default(%x : f32) [
      1: ^one,
      -2: ^default(%y : f32)
    ]

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I1,
    DenseArrayBase,
    DenseIntElementsAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    successor_def,
    traits_def,
    var_operand_def,
    var_successor_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.llvm.metadata import LoopAnnotationAttr, NamedParametersAttr
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

Way = tuple[Block, Sequence[SSAValue | Operation]]
"""A block, and the values of its arguments."""


def _way(block: str, arguments: str) -> str:
    """`^block(%x, %i : f32, i32)` in a format."""
    return f"${block} (`(` ${arguments}^ `:` type(${arguments}) `)`)?"


def _parse_way(parser: Parser) -> tuple[Block, list[SSAValue]]:
    """`^block(%x, %i : f32, i32)`"""
    block = parser.parse_successor()
    if parser.parse_optional_punctuation("(") is None:
        return block, []
    return block, parse_typed_operands(parser)


def parse_typed_operands(parser: Parser) -> list[SSAValue]:
    """`%x, %i : f32, i32)`"""
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    start = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    values = parser.resolve_operands(operands, types, start)
    parser.parse_punctuation(")")
    return list(values)


def print_typed_operands(printer: Printer, values: Sequence[SSAValue]) -> None:
    """`%x, %i : f32, i32`; nothing for no values."""
    if values:
        printer.print_list(values, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([value.type for value in values], printer.print_attribute)


def _print_way(printer: Printer, block: Block, values: Sequence[SSAValue]) -> None:
    printer.print_block_name(block)
    if values:
        with printer.in_parens():
            print_typed_operands(printer, values)


def _weights(weights: Sequence[int] | None) -> Attribute | None:
    return None if weights is None else DenseArrayBase.from_list(i32, weights)


def _verify_weights(weights: DenseArrayBase | None, ways: int) -> None:
    if weights is not None and len(weights) != ways:
        raise VerifyException(f"has {len(weights)} weights for {ways} successors")


@op_definition
class BrOp(QuickOp):
    """`llvm.br ^next(%x : f32)`"""

    name = "llvm.br"

    arguments = var_operand_def()
    loop_annotation = opt_prop_def(LoopAnnotationAttr)
    successor = successor_def()

    assembly_format = f"{_way('successor', 'arguments')} attr-dict"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(IsTerminator())

    def __init__(self, dest: Block, *ops: Operation | SSAValue, loop_annotation: NamedParametersAttr | None = None):
        super().__init__(operands=[ops], successors=[dest], properties={"loop_annotation": loop_annotation})


@op_definition
class CondBrOp(QuickOp):
    """`llvm.cond_br %c weights([2000, 1]), ^then(%x : f32), ^else`"""

    name = "llvm.cond_br"

    cond = operand_def(I1)
    then_arguments = var_operand_def()
    else_arguments = var_operand_def()
    branch_weights = opt_prop_def(DenseArrayBase.constr(i32))
    loop_annotation = opt_prop_def(LoopAnnotationAttr)
    then_block = successor_def()
    else_block = successor_def()

    assembly_format = (
        "$cond (`weights` `(` $branch_weights^ `)`)?"
        f" `,` {_way('then_block', 'then_arguments')} `,` {_way('else_block', 'else_arguments')} attr-dict"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    traits = traits_def(IsTerminator())

    def __init__(
        self,
        cond: Operation | SSAValue,
        then_block: Block,
        then_ops: Sequence[Operation | SSAValue],
        else_block: Block,
        else_ops: Sequence[Operation | SSAValue],
    ):
        super().__init__(operands=[cond, then_ops, else_ops], successors=[then_block, else_block])

    def verify_(self) -> None:
        _verify_weights(self.branch_weights, 2)


@op_definition
class SwitchOp(QuickOp):
    """See the file's head. The default's weight comes first."""

    name = "llvm.switch"

    value = operand_def(IntegerType)
    default_operands = var_operand_def()
    case_operands = var_operand_def()
    case_values = opt_prop_def(DenseIntElementsAttr)
    case_operand_segments = prop_def(DenseArrayBase.constr(i32))
    branch_weights = opt_prop_def(DenseArrayBase.constr(i32))
    default_destination = successor_def()
    case_destinations = var_successor_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(IsTerminator())

    def __init__(
        self,
        value: SSAValue | Operation,
        default: Way,
        cases: Sequence[tuple[int, Way]],
        branch_weights: Sequence[int] | None = None,
    ):
        """`cases`: (number, way); a way is a block and the values of its arguments."""
        value_type = SSAValue.get(value).type
        assert isa(value_type, IntegerType)
        numbers = [number for number, _ in cases]
        vector = VectorType(value_type, [len(cases)])
        super().__init__(
            operands=[value, default[1], [operand for _, (_, operands) in cases for operand in operands]],
            properties={
                "case_values": DenseIntOrFPElementsAttr.from_list(vector, numbers) if cases else None,
                "case_operand_segments": DenseArrayBase.from_list(i32, [len(operands) for _, (_, operands) in cases]),
                "branch_weights": _weights(branch_weights),
            },
            successors=[default[0], [block for _, (block, _) in cases]],
        )

    @property
    def numbers(self) -> tuple[int, ...]:
        """The value of each case."""
        return () if self.case_values is None else tuple(self.case_values.get_values())

    @property
    def ways(self) -> list[tuple[Block, Sequence[SSAValue]]]:
        """For each case: its block, and the values of the block's arguments."""
        found: list[tuple[Block, Sequence[SSAValue]]] = []
        start = 0
        for block, count in zip(self.case_destinations, self.case_operand_segments.iter_values(), strict=True):
            found.append((block, self.case_operands[start : start + count]))
            start += count
        return found

    @classmethod
    def parse(cls, parser: Parser) -> SwitchOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation(",")
        default = _parse_way(parser)

        def case() -> tuple[int, Way]:
            number = parser.parse_integer()
            parser.parse_punctuation(":")
            return number, _parse_way(parser)

        cases = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, case)
        attributes = parser.parse_optional_attr_dict()
        op = SwitchOp(operand, default, cases)
        if (weights := attributes.pop("branch_weights", None)) is not None:
            op.properties["branch_weights"] = weights
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        _print_way(printer, self.default_destination, self.default_operands)
        printer.print_string(" [")
        for position, (number, (block, values)) in enumerate(zip(self.numbers, self.ways, strict=True)):
            printer.print_string(f"{',' if position else ''}\n  {number}: ")
            _print_way(printer, block, values)
        printer.print_string("\n]")
        weights = {} if self.branch_weights is None else {"branch_weights": self.branch_weights}
        printer.print_op_attributes(weights | self.attributes)

    def verify_(self) -> None:
        ways, segments = len(self.case_destinations), tuple(self.case_operand_segments.iter_values())
        if len(self.numbers) != ways or len(segments) != ways or sum(segments) != len(self.case_operands):
            raise VerifyException(
                f"has {ways} case successors, but {len(self.numbers)} case values and operands for {len(segments)}"
            )
        if self.case_values is not None and self.case_values.get_element_type() != self.value.type:
            raise VerifyException(
                f"switches on {self.value.type}, but its cases are {self.case_values.get_element_type()}"
            )
        _verify_weights(self.branch_weights, ways + 1)
