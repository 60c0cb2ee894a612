"""The `scf` dialect: xDSL's with `forall`, which is read from today's XLA and never emitted here, and completed ops.

    %r = scf.forall (%i, %j) in (128, %n) shared_outs(%o = %init) -> (tensor<8xf32>) {
      ...
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
      }
    }

Completed, with the reason:
  for               no `unsigned`
  parallel          the generic form alone, a step of 0
  while             no loop without values
  index_switch      no default region that is empty
  execute_region    no `no_inline`
  if                the type of one result in parentheses
  if, execute_region, while    regions that yield other values than the op needs

Lists of numbers and operands, the bounds of a `forall` and the basis of a linear index:

    (4, %n, 8)      operands  %n        constants  array<i64: 4, -9223372036854775808, 8>

The op has the operands, and an attribute with the numbers and `DYNAMIC` in place of each operand.
Source: MLIR 22, scf dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypeAlias, TypeVar

from xdsl.dialects import scf as upstream
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, IntegerType, UnitAttr, i1, i64
from xdsl.dialects.scf import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.scf import ConditionOp, YieldOp
from xdsl.dialects.utils import (
    parse_assignment,
    parse_dynamic_index_list_without_types,
    print_assignment,
    print_dynamic_index_list,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
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
    ConstantLike,
    HasParent,
    IsTerminator,
    NoTerminator,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.completion import completed, dialect_of
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

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


INDEX = IndexType()
OpT = TypeVar("OpT", bound=Operation)

# ---- text -------------------------------------------------------------------------------------------------------------------------------


def parse_types(parser: Parser) -> list[Attribute]:
    """`-> f32` or `-> (f32, i32)`, or nothing."""
    return _types_behind_arrow(parser) if parser.parse_optional_punctuation("->") else []


def _types_behind_arrow(parser: Parser) -> list[Attribute]:
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return list(types) if types is not None else [parser.parse_type()]


def print_types(types: Sequence[Attribute], printer: Printer) -> None:
    if types:
        printer.print_string(" -> ")
        if len(types) == 1:
            printer.print_attribute(types[0])
        else:
            with printer.in_parens():
                printer.print_list(types, printer.print_attribute)


def parse_carried(parser: Parser, word: str) -> tuple[Sequence[SSAValue], list[Parser.Argument]]:
    """`iter_args(%a = %x, %b = %y) -> (f32, i32)`, or nothing: the first values, and the body's arguments that carry them."""
    start = parser.pos
    pairs: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
    types: list[Attribute] = []
    if parser.parse_optional_keyword(word):
        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser))
        parser.parse_punctuation("->")
        types = _types_behind_arrow(parser)
    inits = parser.resolve_operands([init for _, init in pairs], types, start)
    return inits, [name.resolve(carried_type) for (name, _), carried_type in zip(pairs, types, strict=True)]


def print_carried(printer: Printer, word: str, arguments: Sequence[BlockArgument], inits: Sequence[SSAValue]) -> None:
    """The inverse of `parse_carried`."""
    if not inits:
        return
    printer.print_string(f" {word}(")
    printer.print_list(zip(arguments, inits, strict=True), lambda pair: print_assignment(printer, *pair))
    printer.print_string(") -> (")
    printer.print_list([init.type for init in inits], printer.print_attribute)
    printer.print_string(")")


def _with_block(region: Region) -> Region:
    """The region; `{ }` stands for one empty block."""
    if not region.blocks:
        region.add_block(Block())
    return region


def _terminated(op: OpT) -> OpT:
    """Puts the terminators that MLIR leaves out at the ends of `op`'s blocks."""
    for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
        ensure_terminator(op, trait)
    return op


# ---- loops ------------------------------------------------------------------------------------------------------------------------------


@completed
class ForOp(upstream.ForOp, QuickOp):
    """`scf.for unsigned %i = %lb to %ub step %s { }`"""

    unsignedCmp = opt_prop_def(UnitAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        is_unsigned = parser.parse_optional_keyword("unsigned") is not None
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = [parser.parse_unresolved_operand()]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(parser.parse_unresolved_operand())
        start = parser.pos
        inits, carried = parse_carried(parser, "iter_args")
        counted = parser.parse_type() if parser.parse_optional_punctuation(":") else INDEX
        low, high, step = parser.resolve_operands(bounds, [counted] * 3, start)
        body = _with_block(parser.parse_region([variable.resolve(counted), *carried]))
        op = cls(low, high, step, inits, body)
        op.attributes |= parser.parse_optional_attr_dict()
        if is_unsigned:
            op.properties["unsignedCmp"] = UnitAttr()
        return op if inits else _terminated(op)

    def print(self, printer: Printer) -> None:
        variable, *carried = self.body.block.args
        printer.print_string(" unsigned " if "unsignedCmp" in self.properties else " ")
        print_assignment(printer, variable, self.lb)
        printer.print_string(" to ")
        printer.print_ssa_value(self.ub)
        printer.print_string(" step ")
        printer.print_ssa_value(self.step)
        print_carried(printer, "iter_args", carried, self.iter_args)
        if not isinstance(variable.type, IndexType):
            printer.print_string(" : ")
            printer.print_attribute(variable.type)
        printer.print_string(" ")
        printer.print_region(
            self.body,
            print_entry_block_args=False,
            print_empty_block=False,
            print_block_terminators=bool(self.iter_args),
        )
        printer.print_op_attributes(self.attributes)


class ParallelOp(upstream.ParallelOp, QuickOp):
    """`scf.parallel (%i, %j) = (%a, %b) to (%c, %d) step (%e, %f) init (%x) -> f32 { ... }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        def operands() -> list[SSAValue]:
            return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(INDEX))

        variables = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(INDEX)
        )
        parser.parse_punctuation("=")
        bounds = [operands()]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(operands())
        start = parser.pos
        inits: list[UnresolvedOperand] = []
        if parser.parse_optional_keyword("init"):
            inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        values = parser.resolve_operands(inits, parse_types(parser), start)
        low, high, step = bounds
        op = cls(low, high, step, _with_block(parser.parse_region(variables)), values)
        op.attributes |= parser.parse_optional_attr_dict()
        return _terminated(op)

    def print(self, printer: Printer) -> None:
        def group(word: str, values: Sequence[SSAValue]) -> None:
            printer.print_string(word)
            with printer.in_parens():
                printer.print_list(values, printer.print_ssa_value)

        group(" ", self.body.block.args)
        group(" = ", self.lowerBound)
        group(" to ", self.upperBound)
        group(" step ", self.step)
        if self.initVals:
            group(" init ", self.initVals)
            print_types(self.res.types, printer)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        super().verify_()
        for value in self.step:
            step = ConstantLike.get_constant_value(value)
            if isinstance(step, IntegerAttr) and step.value.data < 1:
                raise VerifyException(f"its step is {step.value.data}, but a step is at least 1")


def _verify_yields(op: IfOp | ExecuteRegionOp | WhileOp) -> None:
    """Each region's yielded values fit their receiver: the op's results or `while`'s other region."""
    for number, region in enumerate(op.regions):
        is_body = isinstance(op, WhileOp) and number == 1
        wanted = [value.type for value in (op.operands if is_body else op.results)]
        if not region.blocks and wanted:
            raise VerifyException(f"region {number} is empty, but must yield ({_shown(wanted)})")
        for block in region.blocks:
            # A condition's first operand is the condition itself.
            last = block.last_op
            if not isinstance(last, YieldOp | ConditionOp):
                continue
            handed = last.operands[1:] if isinstance(last, ConditionOp) else last.operands
            if (types := [value.type for value in handed]) != wanted:
                raise VerifyException(f"region {number} yields ({_shown(types)}), not ({_shown(wanted)})")


def _shown(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


class WhileOp(upstream.WhileOp, QuickOp):
    """`scf.while : () -> () { ... } do { ... }` too: a loop that carries no values."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        carried = (
            parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser)) or []
        )
        parser.parse_punctuation(":")
        function_type = parser.parse_function_type()
        inputs = function_type.inputs.data
        values = parser.resolve_operands([init for _, init in carried], inputs, start)
        arguments = [name.resolve(carried_type) for (name, _), carried_type in zip(carried, inputs, strict=True)]
        before = parser.parse_region(arguments)
        parser.parse_keyword("do")
        op = cls(values, function_type.outputs.data, before, _with_block(parser.parse_region()))
        if (attributes := parser.parse_optional_attr_dict_with_keyword()) is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.arguments:
            with printer.in_parens():
                pairs = zip(self.before_region.block.args, self.arguments, strict=True)
                printer.print_list(pairs, lambda pair: print_assignment(printer, *pair))
            printer.print_string(" ")
        printer.print_string(": ")
        # Not `print_operation_type`, which prints the location in the middle.
        printer.print_function_type(self.arguments.types, self.res.types)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        super().verify_()
        _verify_yields(self)


# ---- branches ---------------------------------------------------------------------------------------------------------------------------


class IfOp(upstream.IfOp, QuickOp):
    """`scf.if %c -> f32 { ... }` too: the type of one result needs no parentheses, as in xDSL's own scf.for."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parser.parse_operand(i1)
        types = parse_types(parser)
        then = cls.parse_region_with_yield(parser)
        has_else = parser.parse_optional_keyword("else") is not None
        otherwise = cls.parse_region_with_yield(parser) if has_else else Region()
        return cls(condition, types, then, otherwise, parser.parse_optional_attr_dict())

    def verify_(self) -> None:
        super().verify_()
        _verify_yields(self)


class IndexSwitchOp(upstream.IndexSwitchOp, QuickOp):
    """`scf.index_switch %x case 2 { ... } default { }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        argument = parser.parse_operand(INDEX)
        attributes = parser.parse_optional_attr_dict()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        numbers: list[int] = []
        cases: list[Region] = []
        while parser.parse_optional_keyword("case"):
            numbers.append(parser.parse_integer())
            cases.append(_with_block(parser.parse_region()))
        parser.parse_keyword("default")
        default = _with_block(parser.parse_region())
        return _terminated(cls(argument, DenseArrayBase.from_list(i64, numbers), default, cases, types, attributes))


@completed
class ExecuteRegionOp(upstream.ExecuteRegionOp, QuickOp):
    """`scf.execute_region -> i32 no_inline { ... }`"""

    no_inline = opt_prop_def(UnitAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        types = parse_types(parser)
        is_kept = parser.parse_optional_keyword("no_inline") is not None
        op = cls(types, parser.parse_region())
        op.attributes |= parser.parse_optional_attr_dict()
        if is_kept:
            op.properties["no_inline"] = UnitAttr()
        return op

    def print(self, printer: Printer) -> None:
        print_types(self.outs.types, printer)
        printer.print_string(" no_inline " if "no_inline" in self.properties else " ")
        printer.print_region(self.region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        _verify_yields(self)


# ---- forall -----------------------------------------------------------------------------------------------------------------------------


@op_definition
class InParallelOp(QuickOp):
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


@op_definition
class ForallOp(QuickOp):
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
        outputs, shared = parse_carried(parser, "shared_outs")
        body = parser.parse_region((*ivs, *shared))
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
        print_carried(printer, "shared_outs", self.shared_outs, self.outputs)
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


SCF = dialect_of(upstream.Scf, names=globals())
