"""The `llvm` dialect's calls: of functions, of pointers, and of intrinsics by name.

    %y = llvm.call @__nv_tanhf(%x) : (f32) -> f32
    %z = llvm.call tail %pointer(%x) : !llvm.ptr, (f32 {llvm.noundef}) -> f32
    %w = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
    llvm.intr.assume %true ["align"(%p, %n : !llvm.ptr, i32)] : i1

Operand bundles are in square brackets: a tag, and values.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import (
    I1,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i32,
)
from xdsl.dialects.llvm import (
    FastMathAttr,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMVoidType,
    TailCallKind,
    TailCallKindAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import symbol
from xla_emitters.dialects.mlir.directives import numbered_word
from xla_emitters.dialects.mlir.function_syntax import called_function
from xla_emitters.dialects.mlir.llvm.control import parse_typed_operands, print_typed_operands
from xla_emitters.dialects.mlir.llvm.function_ops import (
    C_CONVENTION,
    CALLING_CONVENTIONS,
    CallingConventionAttr,
    FuncOp,
    words,
)
from xla_emitters.dialects.mlir.llvm.metadata import MemoryEffectsAttr
from xla_emitters.dialects.mlir.llvm.values import NO_FLAGS
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

_NO_BUNDLES = DenseArrayBase.from_list(i32, ())

Bundles = Sequence[tuple[str, Sequence[SSAValue]]]
"""Each a tag and its values."""


def _parse_bundles(parser: Parser) -> list[tuple[str, list[SSAValue]]]:
    """`["align"(%p, %n : !llvm.ptr, i32), "cold"()]`, if it is there."""

    def bundle() -> tuple[str, list[SSAValue]]:
        tag = parser.parse_str_literal()
        parser.parse_punctuation("(")
        if parser.parse_optional_punctuation(")") is not None:
            return tag, []
        return tag, parse_typed_operands(parser)

    return parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, bundle) or []


def _bundle_properties(bundles: Bundles) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        "op_bundle_sizes": DenseArrayBase.from_list(i32, [len(values) for _, values in bundles])
    }
    if bundles:
        found["op_bundle_tags"] = ArrayAttr(StringAttr(tag) for tag, _ in bundles)
    return found


def bundles_of(op: CallOp | CallIntrinsicOp | AssumeOp) -> Bundles:
    """The inverse of `_bundle_properties`. raises VerifyException if the numbers of tags, sizes and values do not match."""
    sizes = tuple(op.op_bundle_sizes.iter_values())
    tags = [str(tag.data) if isinstance(tag, StringAttr) else str(tag) for tag in op.op_bundle_tags or ()]
    if len(tags) != len(sizes) or sum(sizes) != len(op.op_bundle_operands):
        raise VerifyException(f"has {len(tags)} operand bundles of {len(sizes)} sizes")
    found: list[tuple[str, Sequence[SSAValue]]] = []
    start = 0
    for tag, size in zip(tags, sizes, strict=True):
        found.append((tag, op.op_bundle_operands[start : start + size]))
        start += size
    return found


def _print_bundles(printer: Printer, op: CallOp | CallIntrinsicOp | AssumeOp) -> None:
    if not (bundles := bundles_of(op)):
        return

    def bundle(item: tuple[str, Sequence[SSAValue]]) -> None:
        tag, values = item
        printer.print_string_literal(tag)
        with printer.in_parens():
            print_typed_operands(printer, values)

    printer.print_string(" ")
    with printer.in_square_brackets():
        printer.print_list(bundles, bundle)


_Typed = tuple[list[Attribute], ArrayAttr[DictionaryAttr] | None]
"""Types, and a dictionary for each, if one is not empty."""


def _parse_typed(parser: Parser, several: Sequence[tuple[Attribute, DictionaryAttr]] | None) -> _Typed:
    if several is None:
        several = [(parser.parse_type(), DictionaryAttr({}))]
    dictionaries = [dictionary for _, dictionary in several]
    attributes = ArrayAttr(dictionaries) if any(dictionary.data for dictionary in dictionaries) else None
    return [result_type for result_type, _ in several], attributes


def _parse_call_type(parser: Parser) -> tuple[_Typed, _Typed]:
    """`(f32 {llvm.noundef}, i32) -> f32`"""

    def typed() -> tuple[Attribute, DictionaryAttr]:
        return parser.parse_type(), DictionaryAttr(parser.parse_optional_dictionary_attr_dict())

    inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, typed)
    parser.parse_punctuation("->")
    outputs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, typed)
    return _parse_typed(parser, inputs), _parse_typed(parser, outputs)


def _print_call_type(printer: Printer, op: CallOp | CallIntrinsicOp, inputs: Sequence[SSAValue]) -> None:
    def typed(values: Sequence[SSAValue], dictionaries: ArrayAttr[DictionaryAttr] | None) -> None:
        with printer.in_parens():
            for position, value in enumerate(values):
                printer.print_string(", " if position else "")
                printer.print_attribute(value.type)
                if dictionaries is not None and dictionaries.data[position].data:
                    printer.print_string(" ")
                    printer.print_attribute(dictionaries.data[position])

    typed(inputs, op.arg_attrs)
    printer.print_string(" -> ")
    if len(op.results) == 1 and op.res_attrs is None:
        printer.print_attribute(op.results[0].type)
    else:
        typed(op.results, op.res_attrs)


CallT = TypeVar("CallT", bound="CallOp | CallIntrinsicOp")


def _finished(
    op_type: type[CallT],
    attributes: dict[str, Attribute],
    properties: Mapping[str, Attribute | None],
    arguments: Sequence[SSAValue],
    bundles: Bundles,
    result_types: Sequence[Attribute],
) -> CallT:
    """The parsed op, with its properties from the attribute dictionary, or their defaults."""
    operands = [*arguments, *(value for _, values in bundles for value in values)]
    segments = DenseArrayBase.from_list(i32, [len(arguments), len(operands) - len(arguments)])
    known = op_type.get_irdl_definition().properties
    found: dict[str, Attribute] = {name: attributes.pop(name) for name in list(attributes) if name in known}
    found |= {name: value for name, value in properties.items() if value is not None}
    found |= {"operandSegmentSizes": segments, **_bundle_properties(bundles)}
    for name, definition in known.items():
        if definition.default_value is not None:
            found.setdefault(name, definition.default_value)
    return op_type.create(operands=operands, properties=found, attributes=attributes, result_types=result_types)


# ---- calls of functions -----------------------------------------------------------------------------------------------------------------


class _CalleeIsLLVMFunc(SymbolUserOpInterface):
    """The callee of a direct call is an `llvm.func` of the call's type."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallOp)
        callee = None if op.callee is None else called_function(op, op.callee, FuncOp, "llvm.func")
        if callee is None or (wanted := callee.function_type).is_variadic:
            return
        outputs = () if isinstance(wanted.output, LLVMVoidType) else (wanted.output,)
        if op.args.types != wanted.inputs.data or op.result_types != outputs:
            called = LLVMFunctionType(op.args.types, op.result_types[0] if op.results else None)
            raise VerifyException(f"{op.callee} is {wanted}, but is called with other types: {called}")


@op_definition
class CallOp(QuickOp):
    """`llvm.call @__nv_tanhf(%x) : (f32) -> f32`, or of a pointer: `llvm.call %f(%x) : !llvm.ptr, (f32) -> f32`"""

    name = "llvm.call"

    args = var_operand_def()
    op_bundle_operands = var_operand_def()
    callee = opt_prop_def(SymbolRefAttr)
    var_callee_type = opt_prop_def(LLVMFunctionType)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    CConv = prop_def(CallingConventionAttr, default_value=C_CONVENTION)
    op_bundle_sizes = prop_def(DenseArrayBase.constr(i32), default_value=_NO_BUNDLES)
    op_bundle_tags = opt_prop_def(ArrayAttr)
    TailCallKind = prop_def(TailCallKindAttr, default_value=TailCallKindAttr(TailCallKind.NONE))
    memory_effects = opt_prop_def(MemoryEffectsAttr)
    convergent = opt_prop_def(UnitAttr)
    no_unwind = opt_prop_def(UnitAttr)
    will_return = opt_prop_def(UnitAttr)
    no_inline = opt_prop_def(UnitAttr)
    always_inline = opt_prop_def(UnitAttr)
    inline_hint = opt_prop_def(UnitAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    returned = opt_result_def()

    SYNTAX: ClassVar = (
        *("callee", "var_callee_type", "CConv", "TailCallKind"),
        *("op_bundle_sizes", "op_bundle_tags", "operandSegmentSizes", "arg_attrs", "res_attrs"),
    )

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(_CalleeIsLLVMFunc())

    def __init__(
        self,
        callee: str | SymbolRefAttr | None,
        *args: SSAValue | Operation,
        return_type: Attribute | None = None,
        fastmath: FastMathAttr = NO_FLAGS,
        var_callee_type: LLVMFunctionType | None = None,
    ):
        super().__init__(
            operands=[args, []],
            properties={
                "callee": symbol(callee) if isinstance(callee, str) else callee,
                "var_callee_type": var_callee_type,
                "fastmathFlags": fastmath,
            },
            result_types=[return_type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        convention = parser.parse_optional_keyword_in(CALLING_CONVENTIONS) or "ccc"
        kinds = {kind.value: kind for kind in TailCallKind if kind is not TailCallKind.NONE}
        kind = parser.parse_optional_keyword_in(kinds)
        callee = parser.parse_optional_symbol_name()
        pointer = None if callee else parser.parse_unresolved_operand()
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        variadic: Attribute | None = None
        if parser.parse_optional_keyword("vararg") is not None:
            with parser.in_parens():
                variadic = parser.parse_type()
        bundles = _parse_bundles(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        values: list[SSAValue] = []
        if pointer is not None:
            values.append(parser.resolve_operand(pointer, parser.parse_type()))
            parser.parse_punctuation(",")
        start = parser.pos
        (inputs, arg_attrs), (outputs, res_attrs) = _parse_call_type(parser)
        values += parser.resolve_operands(operands, inputs, start)
        properties = {
            "CConv": CallingConventionAttr.of(convention),
            "TailCallKind": TailCallKindAttr(kinds[kind] if kind else TailCallKind.NONE),
            "callee": SymbolRefAttr(callee) if callee else None,
            "var_callee_type": variadic,
            "arg_attrs": arg_attrs,
            "res_attrs": res_attrs,
        }
        return _finished(cls, attributes, properties, values, bundles, outputs)

    def print(self, printer: Printer) -> None:
        printer.print_string(
            words(
                "" if self.CConv == C_CONVENTION else self.CConv.word.data,
                "" if self.TailCallKind.data is TailCallKind.NONE else self.TailCallKind.data.value,
            )
            + " "
        )
        arguments = self.args
        if self.callee is not None:
            printer.print_attribute(self.callee)
        else:
            printer.print_ssa_value(arguments[0])
            arguments = arguments[1:]
        with printer.in_parens():
            printer.print_list(arguments, printer.print_ssa_value)
        if self.var_callee_type is not None:
            printer.print_string(" vararg(")
            printer.print_attribute(self.var_callee_type)
            printer.print_string(")")
        _print_bundles(printer, self)
        hidden = [*self.SYNTAX, *(["fastmathFlags"] if self.fastmathFlags == NO_FLAGS else [])]
        printer.print_op_attributes(self.properties | self.attributes, reserved_attr_names=hidden)
        printer.print_string(" : ")
        if self.callee is None:
            printer.print_attribute(self.args[0].type)
            printer.print_string(", ")
        _print_call_type(printer, self, arguments)

    def verify_(self) -> None:
        bundles_of(self)
        if self.callee is None and not (self.args and isinstance(self.args[0].type, LLVMPointerType)):
            raise VerifyException("has neither the name of a function nor a pointer as its first operand")


@op_definition
class CallIntrinsicOp(QuickOp):
    """`llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32`: an intrinsic by its name in LLVM."""

    name = "llvm.call_intrinsic"

    args = var_operand_def()
    op_bundle_operands = var_operand_def()
    intrin = prop_def(StringAttr)
    fastmathFlags = prop_def(FastMathAttr, default_value=NO_FLAGS)
    op_bundle_sizes = prop_def(DenseArrayBase.constr(i32), default_value=_NO_BUNDLES)
    op_bundle_tags = opt_prop_def(ArrayAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    ress = opt_result_def()

    SYNTAX: ClassVar = ("intrin", "op_bundle_sizes", "op_bundle_tags", "operandSegmentSizes", "arg_attrs", "res_attrs")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, intrin: str | StringAttr, args: Sequence[SSAValue | Operation], result_types: Sequence[Attribute]
    ):
        super().__init__(
            operands=[args, []],
            properties={"intrin": StringAttr(intrin) if isinstance(intrin, str) else intrin},
            result_types=[result_types],
        )

    @classmethod
    def parse(cls, parser: Parser) -> CallIntrinsicOp:
        intrin = StringAttr(parser.parse_str_literal())
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        bundles = _parse_bundles(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        (inputs, arg_attrs), (outputs, res_attrs) = _parse_call_type(parser)
        properties = {"intrin": intrin, "arg_attrs": arg_attrs, "res_attrs": res_attrs}
        values = parser.resolve_operands(operands, inputs, start)
        return _finished(cls, attributes, properties, values, bundles, outputs)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.intrin.data)
        with printer.in_parens():
            printer.print_list(self.args, printer.print_ssa_value)
        _print_bundles(printer, self)
        hidden = [*self.SYNTAX, *(["fastmathFlags"] if self.fastmathFlags == NO_FLAGS else [])]
        printer.print_op_attributes(self.properties | self.attributes, reserved_attr_names=hidden)
        printer.print_string(" : ")
        _print_call_type(printer, self, self.args)

    def verify_(self) -> None:
        bundles_of(self)
        if not self.intrin.data.startswith("llvm."):
            raise VerifyException(f"the name of an intrinsic starts with 'llvm.', but this is '{self.intrin.data}'")


@op_definition
class InlineAsmOp(QuickOp):
    """`llvm.inline_asm has_side_effects tail_call_kind = <tail> asm_dialect = intel "bar.sync $0;", "r" %n : (i32) -> ()`

    xDSL prints the dialect before the tail call kind, which MLIR does not parse.
    """

    name = "llvm.inline_asm"

    operands_ = var_operand_def()
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    has_side_effects = opt_prop_def(UnitAttr)
    is_align_stack = opt_prop_def(UnitAttr)
    tail_call_kind = prop_def(TailCallKindAttr, default_value=TailCallKindAttr(TailCallKind.NONE))
    asm_dialect = opt_prop_def(IntegerAttr)
    operand_attrs = opt_prop_def(ArrayAttr)
    res = opt_result_def()

    DIALECTS: ClassVar = {0: "att", 1: "intel"}

    assembly_format = (
        "(`has_side_effects` $has_side_effects^)? (`is_align_stack` $is_align_stack^)?"
        " (`tail_call_kind` `=` $tail_call_kind^)? (`asm_dialect` `=` custom<AsmDialect>($asm_dialect)^)?"
        " (`operand_attrs` `=` $operand_attrs^)? $asm_string `,` $constraints $operands_ attr-dict"
        " `:` functional-type(operands, results)"
    )
    custom_directives = (numbered_word("AsmDialect", DIALECTS, "expected one of: {words}"),)

    def __init__(
        self,
        asm_string: str,
        constraints: str,
        operands: Sequence[SSAValue | Operation],
        res_types: Sequence[Attribute] = (),
        has_side_effects: bool = False,
    ):
        super().__init__(
            operands=[operands],
            properties={
                "asm_string": StringAttr(asm_string),
                "constraints": StringAttr(constraints),
                "has_side_effects": UnitAttr() if has_side_effects else None,
            },
            result_types=[res_types],
        )

    def verify_(self) -> None:
        if self.asm_dialect is not None and self.asm_dialect.value.data not in self.DIALECTS:
            raise VerifyException(f"there is no assembler dialect {self.asm_dialect.value.data}")


# ---- promises ---------------------------------------------------------------------------------------------------------------------------


@op_definition
class AssumeOp(QuickOp):
    """`llvm.intr.assume %c ["align"(%p, %n : !llvm.ptr, i32)] : i1`: the condition and the bundles hold."""

    name = "llvm.intr.assume"

    cond = operand_def(I1)
    op_bundle_operands = var_operand_def()
    op_bundle_sizes = prop_def(DenseArrayBase.constr(i32), default_value=_NO_BUNDLES)
    op_bundle_tags = opt_prop_def(ArrayAttr)

    def __init__(self, cond: SSAValue | Operation, bundles: Bundles = ()):
        operands = [value for _, values in bundles for value in values]
        super().__init__(operands=[cond, operands], properties=_bundle_properties(bundles))

    @classmethod
    def parse(cls, parser: Parser) -> AssumeOp:
        cond = parser.parse_operand(i1)
        bundles = _parse_bundles(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        parser.parse_keyword("i1")
        op = AssumeOp(cond, bundles)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.cond)
        _print_bundles(printer, self)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : i1")

    def verify_(self) -> None:
        bundles_of(self)
