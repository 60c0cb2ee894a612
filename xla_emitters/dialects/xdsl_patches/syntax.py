"""MLIR's custom forms of ops for which xDSL's form is missing or incomplete and a declarative format is not enough.

    arith.cmpi slt, %a, %b {note} : vector<4xi32>                    the result is vector<4xi1>; attributes
    arith.select %c, %a, %b : vector<4xi1>, vector<4xf32>            the condition's type, where it is not i1
    scf.for unsigned %i = %lb to %ub step %s { }
    scf.parallel (%i, %j) = (%a, %b) to (%c, %d) step (%e, %f) init (%x) -> f32 { ... }
    memref.global "private" constant @g : memref<4xf32> = dense<1.0> {alignment = 64 : i64}

Each form is a pair `parse_<op>(op_type, parser)` and `print_<op>(op, printer)`, put in place by `definitions.py`.
Source: MLIR 22, the ops' definitions and printers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyDenseElement,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.utils import parse_assignment, print_assignment
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import SingleBlockImplicitTerminator, ensure_terminator
from xdsl.utils.hints import isa

# ---- arith ------------------------------------------------------------------------------------------------------------------------------

ROUNDING_MODES = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")
"""Word of a rounding mode, by number."""


@irdl_custom_directive
class RoundingMode(CustomDirective):
    """A word for the number of a rounding mode, or nothing."""

    mode: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        for number, word in enumerate(ROUNDING_MODES):
            if parser.parse_optional_keyword(word):
                self.mode.set(state, IntegerAttr(number, 32))
                return

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        mode = self.mode.get(op)
        if isa(mode, IntegerAttr):
            state.print_whitespace(printer)
            printer.print_string(ROUNDING_MODES[mode.value.data])


def condition_type(compared: Attribute) -> Attribute:
    """i1, or a vector or tensor of i1 as large as what is compared."""
    if isinstance(compared, VectorType):
        return VectorType(i1, compared.shape, compared.scalable_dims)
    if isinstance(compared, TensorType):
        return TensorType(i1, compared.shape, compared.encoding)
    return i1


def _compare(
    op: Operation, operand1: Any, operand2: Any, predicate: int | str, words: Sequence[str], **more: Any
) -> None:
    lhs, rhs = SSAValue.get(operand1), SSAValue.get(operand2)
    if lhs.type != rhs.type:
        raise TypeError(f"{op.name} of {lhs.type} and {rhs.type}")
    number = words.index(predicate) if isinstance(predicate, str) else predicate
    IRDLOperation.__init__(
        cast(IRDLOperation, op),
        operands=[lhs, rhs],
        result_types=[condition_type(lhs.type)],
        properties={"predicate": IntegerAttr(number, 64), **more},
    )


def init_cmpi(
    self: arith.CmpiOp, operand1: Operation | SSAValue, operand2: Operation | SSAValue, arg: int | str
) -> None:
    _compare(self, operand1, operand2, arg, arith.CMPI_COMPARISON_OPERATIONS)


def init_cmpf(
    self: arith.CmpfOp,
    operand1: SSAValue | Operation,
    operand2: SSAValue | Operation,
    arg: int | str,
    fastmath: FastMathFlagsAttr | None = None,
) -> None:
    _compare(self, operand1, operand2, arg, arith.CMPF_COMPARISON_OPERATIONS, fastmath=fastmath)


def parse_comparison(op_type: type[arith.CmpiOp | arith.CmpfOp], parser: Parser) -> Operation:
    words = arith.CMPI_COMPARISON_OPERATIONS if op_type is arith.CmpiOp else arith.CMPF_COMPARISON_OPERATIONS
    start = parser.pos
    if (word := parser.parse_identifier()) not in words:
        parser.raise_error(f"expected one of {', '.join(words)}", start, parser.pos)
    parser.parse_punctuation(",")
    lhs = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    rhs = parser.parse_unresolved_operand()
    flags: FastMathFlagsAttr | None = None
    if op_type is arith.CmpfOp and parser.parse_optional_keyword("fastmath"):
        flags = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    one, other = parser.resolve_operands([lhs, rhs], [parser.parse_type()] * 2, start)
    if op_type is arith.CmpiOp:
        op: Operation = arith.CmpiOp(one, other, word)
    else:
        op = arith.CmpfOp(one, other, word, flags or FastMathFlagsAttr("none"))
    op.attributes |= attributes
    return op


def print_comparison(op: arith.CmpiOp | arith.CmpfOp, printer: Printer) -> None:
    words = arith.CMPI_COMPARISON_OPERATIONS if isinstance(op, arith.CmpiOp) else arith.CMPF_COMPARISON_OPERATIONS
    printer.print_string(f" {words[op.predicate.value.data]}, ")
    printer.print_list(op.operands, printer.print_ssa_value)
    if isinstance(op, arith.CmpfOp) and op.fastmath != FastMathFlagsAttr("none"):
        printer.print_string(" fastmath")
        op.fastmath.print_parameter(printer)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.lhs.type)


def parse_select(op_type: type[arith.SelectOp], parser: Parser) -> Operation:
    start = parser.pos
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    selected = parser.parse_type()
    condition: Attribute = i1
    if parser.parse_optional_punctuation(","):
        condition, selected = selected, parser.parse_type()
    op = op_type(*parser.resolve_operands(operands, [condition, selected, selected], start))
    op.attributes |= attributes
    return op


def print_select(op: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if op.cond.type != i1:
        printer.print_attribute(op.cond.type)
        printer.print_string(", ")
    printer.print_attribute(op.result.type)


# ---- scf --------------------------------------------------------------------------------------------------------------------------------


def parse_types(parser: Parser) -> list[Attribute]:
    """`-> f32` or `-> (f32, i32)`, or nothing."""
    if not parser.parse_optional_punctuation("->"):
        return []
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


def _with_block(region: Region) -> Region:
    """The region; `{ }` stands for one empty block."""
    if not region.blocks:
        region.add_block(Block())
    return region


def _terminated(op: Operation) -> Operation:
    """Puts the terminators that MLIR leaves out at the ends of `op`'s blocks."""
    for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
        ensure_terminator(op, trait)
    return op


def parse_for(op_type: type[scf.ForOp], parser: Parser) -> Operation:
    is_unsigned = parser.parse_optional_keyword("unsigned") is not None
    variable = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    bounds = [parser.parse_unresolved_operand()]
    for word in ("to", "step"):
        parser.parse_keyword(word)
        bounds.append(parser.parse_unresolved_operand())
    start = parser.pos
    carried: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
    types: list[Attribute] = []
    if parser.parse_optional_keyword("iter_args"):
        carried = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser))
        types = parse_types(parser)
    inits = parser.resolve_operands([init for _, init in carried], types, start)
    counted = parser.parse_type() if parser.parse_optional_punctuation(":") else IndexType()
    operands = parser.resolve_operands(bounds, [counted] * 3, start)
    arguments = [
        variable.resolve(counted),
        *(name.resolve(carried_type) for (name, _), carried_type in zip(carried, types, strict=True)),
    ]
    low, high, step = operands
    op = op_type(low, high, step, inits, _with_block(parser.parse_region(arguments)))
    op.attributes |= parser.parse_optional_attr_dict()
    if is_unsigned:
        op.properties["unsignedCmp"] = UnitAttr()
    return op if inits else _terminated(op)


def print_for(op: scf.ForOp, printer: Printer) -> None:
    variable, *carried = op.body.block.args
    printer.print_string(" unsigned " if "unsignedCmp" in op.properties else " ")
    print_assignment(printer, variable, op.lb)
    printer.print_string(" to ")
    printer.print_ssa_value(op.ub)
    printer.print_string(" step ")
    printer.print_ssa_value(op.step)
    if carried:
        printer.print_string(" iter_args(")
        printer.print_list(zip(carried, op.iter_args, strict=True), lambda pair: print_assignment(printer, *pair))
        printer.print_string(") -> (")
        printer.print_list([argument.type for argument in carried], printer.print_attribute)
        printer.print_string(")")
    if not isinstance(variable.type, IndexType):
        printer.print_string(" : ")
        printer.print_attribute(variable.type)
    printer.print_string(" ")
    printer.print_region(
        op.body,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=bool(op.iter_args),
    )
    printer.print_op_attributes(op.attributes)


def parse_parallel(op_type: type[scf.ParallelOp], parser: Parser) -> Operation:
    index = IndexType()

    def operands() -> list[SSAValue]:
        return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(index))

    variables = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(index)
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
    op = op_type(low, high, step, _with_block(parser.parse_region(variables)), values)
    op.attributes |= parser.parse_optional_attr_dict()
    return _terminated(op)


def print_parallel(op: scf.ParallelOp, printer: Printer) -> None:
    def group(word: str, values: Sequence[SSAValue]) -> None:
        printer.print_string(word)
        with printer.in_parens():
            printer.print_list(values, printer.print_ssa_value)

    group(" ", op.body.block.args)
    group(" = ", op.lowerBound)
    group(" to ", op.upperBound)
    group(" step ", op.step)
    if op.initVals:
        group(" init ", op.initVals)
        print_types(op.res.types, printer)
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def parse_while(op_type: type[scf.WhileOp], parser: Parser) -> Operation:
    start = parser.pos
    carried = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser)) or []
    parser.parse_punctuation(":")
    function_type = parser.parse_function_type()
    inputs = function_type.inputs.data
    values = parser.resolve_operands([init for _, init in carried], inputs, start)
    arguments = [name.resolve(carried_type) for (name, _), carried_type in zip(carried, inputs, strict=True)]
    before = parser.parse_region(arguments)
    parser.parse_keyword("do")
    op = op_type(values, function_type.outputs.data, before, _with_block(parser.parse_region()))
    if (attributes := parser.parse_optional_attr_dict_with_keyword()) is not None:
        op.attributes |= attributes.data
    return op


def print_while(op: scf.WhileOp, printer: Printer) -> None:
    printer.print_string(" ")
    if op.arguments:
        with printer.in_parens():
            pairs = zip(op.before_region.block.args, op.arguments, strict=True)
            printer.print_list(pairs, lambda pair: print_assignment(printer, *pair))
        printer.print_string(" ")
    printer.print_string(": ")
    # Not `print_operation_type`, which prints the location in the middle.
    printer.print_function_type(op.arguments.types, op.res.types)
    printer.print_string(" ")
    printer.print_region(op.before_region, print_entry_block_args=False)
    printer.print_string(" do ")
    printer.print_region(op.after_region)
    printer.print_op_attributes(op.attributes, print_keyword=True)


def parse_index_switch(op_type: type[scf.IndexSwitchOp], parser: Parser) -> Operation:
    argument = parser.parse_operand(IndexType())
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
    return _terminated(op_type(argument, DenseArrayBase.from_list(i64, numbers), default, cases, types, attributes))


def parse_execute_region(op_type: type[scf.ExecuteRegionOp], parser: Parser) -> Operation:
    types = parse_types(parser)
    is_kept = parser.parse_optional_keyword("no_inline") is not None
    op = op_type(types, parser.parse_region())
    op.attributes |= parser.parse_optional_attr_dict()
    if is_kept:
        op.properties["no_inline"] = UnitAttr()
    return op


def print_execute_region(op: scf.ExecuteRegionOp, printer: Printer) -> None:
    print_types(op.outs.types, printer)
    printer.print_string(" no_inline " if "no_inline" in op.properties else " ")
    printer.print_region(op.region, print_entry_block_args=False)
    printer.print_op_attributes(op.attributes)


def parse_if(op_type: type[scf.IfOp], parser: Parser) -> scf.IfOp:
    """As xDSL's, but the type of one result needs no parentheses, as in MLIR and in xDSL's own scf.for."""
    condition = parser.parse_operand(IntegerType(1))
    types: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->"):
        types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type) or ()
        types = types or (parser.parse_type(),)
    then = scf.IfOp.parse_region_with_yield(parser)
    has_else = parser.parse_optional_keyword("else") is not None
    otherwise = scf.IfOp.parse_region_with_yield(parser) if has_else else Region()
    return scf.IfOp(condition, types, then, otherwise, parser.parse_optional_attr_dict())


# ---- affine -----------------------------------------------------------------------------------------------------------------------------


def parse_map(parser: Parser) -> tuple[list[SSAValue], AffineMapAttr, dict[str, Attribute]]:
    """`affine_map<...>(%dims)[%symbols] {attributes}`."""
    start = parser.pos
    affine_map = parser.parse_attribute()
    if not isinstance(affine_map, AffineMapAttr):
        parser.raise_error("expected an affine map", start, parser.pos)
    index = IndexType()
    operands: list[SSAValue] = []
    for delimiter in (parser.Delimiter.PAREN, parser.Delimiter.SQUARE):
        operands += parser.parse_optional_comma_separated_list(delimiter, lambda: parser.parse_operand(index)) or []
    return operands, affine_map, parser.parse_optional_attr_dict()


def parse_map_op(op_type: Any, parser: Parser) -> Operation:
    operands, affine_map, attributes = parse_map(parser)
    op: Operation = op_type(operands, affine_map)
    op.attributes |= attributes
    return op


def print_map_op(op: Operation, printer: Printer) -> None:
    affine_map = op.properties["map"]
    assert isinstance(affine_map, AffineMapAttr)
    printer.print_string(" ")
    printer.print_attribute(affine_map)
    with printer.in_parens():
        printer.print_list(op.operands[: affine_map.data.num_dims], printer.print_ssa_value)
    if affine_map.data.num_symbols:
        with printer.in_square_brackets():
            printer.print_list(op.operands[affine_map.data.num_dims :], printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)


# ---- vector -----------------------------------------------------------------------------------------------------------------------------


def parse_transfer(op_type: type[vector.TransferReadOp | vector.TransferWriteOp], parser: Parser) -> Operation:
    """`%t[%i], %pad, %mask {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>`; a write has its vector first and no pad."""
    is_read = op_type is vector.TransferReadOp
    start = parser.pos
    accessed = [parser.parse_unresolved_operand()]
    if not is_read:
        parser.parse_punctuation(",")
        accessed.append(parser.parse_unresolved_operand())
    index = IndexType()
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(index))
    more: list[UnresolvedOperand] = []
    while parser.parse_optional_punctuation(","):
        more.append(parser.parse_unresolved_operand())
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    shaped, row = (types if is_read else reversed(types)) if len(types) == 2 else (None, None)
    if not isa(shaped, MemRefType | TensorType) or not isa(row, VectorType):
        parser.raise_error("expected a tensor or memref and a vector", start, parser.pos)
    permutation = attributes.pop("permutation_map", None)
    if not isinstance(permutation, AffineMapAttr):
        permutation = AffineMapAttr(vector.VectorTransferOperation.get_transfer_minor_identity_map(shaped, row))
    in_bounds = attributes.pop("in_bounds", None)
    if not isa(in_bounds, ArrayAttr[BoolAttr]):
        in_bounds = ArrayAttr([BoolAttr.from_bool(False)] * len(permutation.data.results))
    of_mask = (
        [vector.VectorTransferOperation.infer_transfer_op_mask_type(row, permutation.data)]
        if len(more) > is_read
        else []
    )
    values = parser.resolve_operands(more, [*([shaped.element_type] if is_read else []), *of_mask], start)
    mask = values[-1] if of_mask else None
    if is_read:
        source = parser.resolve_operand(accessed[0], shaped)
        op: Operation = vector.TransferReadOp(source, indices, values[0], row, in_bounds, permutation, mask)
    else:
        written, target = parser.resolve_operands(accessed, [row, shaped], start)
        result = shaped if isinstance(shaped, TensorType) else None
        op = vector.TransferWriteOp(written, target, indices, in_bounds, mask, permutation, result)
    op.attributes |= attributes
    return op


# ---- memref -----------------------------------------------------------------------------------------------------------------------------


def parse_global(op_type: type[memref.GlobalOp], parser: Parser) -> Operation:
    properties: dict[str, Attribute] = {}
    if (visibility := parser.parse_optional_str_literal()) is not None:
        properties["sym_visibility"] = StringAttr(visibility)
    if parser.parse_optional_keyword("constant"):
        properties["constant"] = UnitAttr()
    properties["sym_name"] = parser.parse_symbol_name()
    parser.parse_punctuation(":")
    start = parser.pos
    properties["type"] = memref_type = parser.parse_type()
    if not isa(memref_type, MemRefType):
        parser.raise_error("expected a memref type", start, parser.pos)
    if parser.parse_optional_punctuation("="):
        if parser.parse_optional_keyword("uninitialized"):
            properties["initial_value"] = UnitAttr()
        else:
            parser.parse_keyword("dense")
            held = cast("TensorType[AnyDenseElement]", TensorType(memref_type.element_type, memref_type.shape))
            properties["initial_value"] = parser.parse_dense_int_or_fp_elements_attr(held)
    attributes = parser.parse_optional_attr_dict()
    if (alignment := attributes.pop("alignment", None)) is not None:
        properties["alignment"] = alignment
    return op_type.create(properties=properties, attributes=attributes)


def print_global(op: memref.GlobalOp, printer: Printer) -> None:
    if (visibility := op.properties.get("sym_visibility")) is not None:
        printer.print_string(" ")
        printer.print_attribute(visibility)
    printer.print_string(" constant " if op.constant is not None else " ")
    printer.print_symbol_name(op.sym_name.data)
    printer.print_string(" : ")
    printer.print_attribute(op.type)
    initial = op.properties.get("initial_value")
    if isinstance(initial, UnitAttr):
        printer.print_string(" = uninitialized")
    elif isa(initial, DenseIntOrFPElementsAttr):
        printer.print_string(" = ")
        initial.print_without_type(printer)
    printer.print_op_attributes(({"alignment": op.alignment} if op.alignment else {}) | op.attributes)


ATOMIC_KINDS = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu"),
    *("minimumf", "minnumf", "mins", "minu", "mulf", "muli", "ori", "xori"),
)
"""Word of the kind of an atomic update, by number."""


@irdl_custom_directive
class AtomicKind(CustomDirective):
    """A word for the kind of a `memref.atomic_rmw`."""

    kind: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start = parser.pos
        if (word := parser.parse_identifier()) not in ATOMIC_KINDS:
            parser.raise_error(f"expected one of {', '.join(ATOMIC_KINDS)}", start, parser.pos)
        self.kind.set(state, IntegerAttr(ATOMIC_KINDS.index(word), 64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        kind = self.kind.get(op)
        assert isa(kind, IntegerAttr)
        state.print_whitespace(printer)
        printer.print_string(ATOMIC_KINDS[kind.value.data])


# ---- gpu --------------------------------------------------------------------------------------------------------------------------------


def parse_dimension(op_type: type[Operation], parser: Parser) -> Operation:
    """` x upper_bound 64`, what follows `gpu.thread_id`."""
    dimension = gpu.DimensionAttr(parser.parse_str_enum(gpu.DimensionEnum))
    properties = {"dimension": dimension, **_parse_upper_bound(parser)}
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(properties=properties, attributes=attributes, result_types=[IndexType()])


def print_dimension(op: Operation, printer: Printer) -> None:
    """The inverse of `parse_dimension`."""
    dimension = op.properties["dimension"]
    assert isinstance(dimension, gpu.DimensionAttr)
    printer.print_string(f" {dimension.data}")
    print_bare(op, printer)


def _parse_upper_bound(parser: Parser) -> dict[str, Attribute]:
    """`upper_bound 64`, if it is there: the least number that the value is always below."""
    if parser.parse_optional_keyword("upper_bound") is None:
        return {}
    return {"upper_bound": IntegerAttr.from_index_int_value(parser.parse_integer(allow_boolean=False))}


def parse_bare(op_type: type[Operation], parser: Parser) -> Operation:
    results = [IndexType()] if op_type is not gpu.BarrierOp else []
    properties = _parse_upper_bound(parser)
    return op_type.create(properties=properties, attributes=parser.parse_optional_attr_dict(), result_types=results)


def print_bare(op: Operation, printer: Printer) -> None:
    if isinstance(bound := op.properties.get("upper_bound"), IntegerAttr):
        printer.print_string(f" upper_bound {bound.value.data}")
    printer.print_op_attributes(op.attributes)


def parse_typed(op_type: type[Operation], parser: Parser) -> Operation:
    properties = _parse_upper_bound(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return op_type.create(properties=properties, attributes=attributes, result_types=[parser.parse_type()])


def print_typed(op: Operation, printer: Printer) -> None:
    print_bare(op, printer)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)
