"""The `llvm` dialect's symbols: functions and globals. Calls are in `calls.py`.

    llvm.func @main(%arg0: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} { ... }
    llvm.mlir.global private unnamed_addr @tile() {addr_space = 3 : i32} : !llvm.array<1056 x f32>

A function is external by default: LLVM removes an internal kernel, because nothing calls it.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects import llvm as upstream
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i32,
)
from xdsl.dialects.llvm import (
    FramePointerKindAttr,
    LLVMArrayType,
    LLVMFunctionType,
    LLVMVoidType,
    TargetFeaturesAttr,
)
from xdsl.ir import Attribute, ParametrizedAttribute, Region, TypedAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.mlir.function_syntax import parse_func_op_like, print_func_op_like
from xla_emitters.dialects.mlir.llvm.metadata import (
    MemoryEffectsAttr,
    UnwindTableKindAttr,
    VScaleRangeAttr,
    WordAttr,
    word_attribute,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

CALLING_CONVENTIONS = (
    *sorted(upstream.LLVM_CALLING_CONVS),
    *("ptx_kernelcc", "ptx_devicecc", "spir_kernelcc", "spir_funccc", "cc_10", "cc_11"),
)
"""MLIR's words for calling conventions: xDSL's, and those that it does not know, except those of other processors."""

CallingConventionAttr = word_attribute("llvm.cconv", *CALLING_CONVENTIONS)
"""`#llvm.cconv<ptx_kernelcc>`: xDSL's knows no kernels."""


_LINKAGES = (
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external"
)


@irdl_attr_definition
class LinkageAttr(ParametrizedAttribute):
    """`#llvm.linkage<internal>`, as MLIR prints it; xDSL's puts the word in quotes. Reads both."""

    name = "llvm.linkage"

    linkage: StringAttr

    def __init__(self, linkage: str):
        super().__init__(StringAttr(linkage))

    def verify(self) -> None:
        if self.linkage.data not in _LINKAGES.split():
            raise VerifyException(f"there is no linkage '{self.linkage.data}'")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            word = parser.parse_optional_str_literal()
            return [StringAttr(parser.parse_identifier() if word is None else word)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.linkage.data}>")


EXTERNAL, INTERNAL = LinkageAttr("external"), LinkageAttr("internal")
"""External linkage: visible to other modules."""

C_CONVENTION = CallingConventionAttr.of("ccc")

# Keywords by number; 0 has none.
_VISIBILITIES = ("", "hidden", "protected")
_UNNAMED = ("", "local_unnamed_addr", "unnamed_addr")


def _parse_choice(parser: Parser, words: Sequence[str]) -> IntegerAttr[IntegerType]:
    """The number of the keyword that comes next; 0 when none of them does."""
    return IntegerAttr(words.index(parser.parse_optional_keyword_in(words[1:]) or ""), 64)


def words(*words: str) -> str:
    """The non-empty words, each after a space."""
    return "".join(f" {word}" for word in words if word)


@op_definition
class FuncOp(QuickOp):
    """`llvm.func @main(%arg0: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} { ... }`

    External by default, because LLVM removes an internal kernel. Without a body it is a declaration.
    """

    name = "llvm.func"

    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(LLVMFunctionType)
    CConv = prop_def(CallingConventionAttr, default_value=C_CONVENTION)
    linkage = prop_def(LinkageAttr, default_value=EXTERNAL)
    visibility_ = prop_def(IntegerAttr, default_value=IntegerAttr(0, 64))
    unnamed_addr = prop_def(IntegerAttr, default_value=IntegerAttr(0, 64))
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    sym_visibility = opt_prop_def(StringAttr)
    dso_local = opt_prop_def(UnitAttr)
    frame_pointer = opt_prop_def(FramePointerKindAttr)
    always_inline = opt_prop_def(UnitAttr)
    convergent = opt_prop_def(UnitAttr)
    no_inline = opt_prop_def(UnitAttr)
    no_unwind = opt_prop_def(UnitAttr)
    will_return = opt_prop_def(UnitAttr)
    optimize_none = opt_prop_def(UnitAttr)
    passthrough = opt_prop_def(ArrayAttr)
    section = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr)
    target_cpu = opt_prop_def(StringAttr)
    target_features = opt_prop_def(TargetFeaturesAttr)
    tune_cpu = opt_prop_def(StringAttr)
    memory_effects = opt_prop_def(MemoryEffectsAttr)
    inline_hint = opt_prop_def(UnitAttr)
    function_entry_count = opt_prop_def(IntegerAttr)
    denormal_fp_math = opt_prop_def(StringAttr)
    denormal_fp_math_f32 = opt_prop_def(StringAttr)
    fp_contract = opt_prop_def(StringAttr)
    no_infs_fp_math = opt_prop_def(BoolAttr)
    no_nans_fp_math = opt_prop_def(BoolAttr)
    no_signed_zeros_fp_math = opt_prop_def(BoolAttr)
    reciprocal_estimates = opt_prop_def(StringAttr)
    prefer_vector_width = opt_prop_def(StringAttr)
    uwtable_kind = opt_prop_def(UnwindTableKindAttr)
    vscale_range = opt_prop_def(VScaleRangeAttr)
    reqd_work_group_size = opt_prop_def(DenseArrayBase.constr(i32))
    work_group_size_hint = opt_prop_def(DenseArrayBase.constr(i32))

    # Properties that are printed before the name or in the signature.
    SIGNATURE: ClassVar = (
        "sym_name",
        "function_type",
        "arg_attrs",
        "res_attrs",
        "linkage",
        "CConv",
        "visibility_",
        "unnamed_addr",
    )

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(
        self,
        sym_name: str | StringAttr,
        function_type: LLVMFunctionType,
        linkage: LinkageAttr = EXTERNAL,
        cconv: WordAttr = C_CONVENTION,
        visibility: int | IntegerAttr = 0,
        sym_visibility: str | Attribute | None = None,
        body: Region | None = None,
        other_props: Mapping[str, Attribute | None] | None = None,
        extra_attrs: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__(
            regions=[body or Region()],
            properties={
                **(other_props or {}),
                "sym_name": StringAttr(sym_name) if isinstance(sym_name, str) else sym_name,
                "function_type": function_type,
                "linkage": linkage,
                "CConv": cconv,
                "visibility_": integer(visibility, 64) if isinstance(visibility, int) else visibility,
                "sym_visibility": StringAttr(sym_visibility) if isinstance(sym_visibility, str) else sym_visibility,
            },
            attributes=extra_attrs,
        )

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        linkage = parser.parse_optional_keyword_in(_LINKAGES.split()) or "external"
        convention = parser.parse_optional_keyword_in(CALLING_CONVENTIONS) or "ccc"
        visibility = _parse_choice(parser, _VISIBILITIES)
        unnamed = _parse_choice(parser, _UNNAMED)
        start = parser.pos
        name, inputs, outputs, body, extra, arg_attrs, res_attrs, is_variadic = parse_func_op_like(
            parser, reserved_attr_names=cls.SIGNATURE, allow_variadic=True
        )
        if len(outputs) > 1:
            parser.raise_error("an llvm.func must have one result or none", start, start + len(name) + 1)
        attributes: dict[str, Attribute] = dict(extra.data) if extra else {}
        known = cls.get_irdl_definition().properties
        properties: dict[str, Attribute | None] = {
            name: attributes.pop(name) for name in list(attributes) if name in known
        }
        properties |= {
            "arg_attrs": arg_attrs,
            "res_attrs": res_attrs,
            "unnamed_addr": unnamed,
        }
        return FuncOp(
            name,
            LLVMFunctionType(inputs, outputs[0] if outputs else None, is_variadic),
            LinkageAttr(linkage),
            CallingConventionAttr.of(convention),
            visibility,
            properties.pop("sym_visibility", None),
            body,
            properties,
            attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(
            words(
                "" if self.linkage == EXTERNAL else self.linkage.linkage.data,
                "" if self.CConv == C_CONVENTION else self.CConv.word.data,
                _VISIBILITIES[self.visibility_.value.data],
                _UNNAMED[self.unnamed_addr.value.data],
            )
        )
        output = self.function_type.output
        print_func_op_like(
            printer,
            self.sym_name,
            FunctionType.from_lists(
                self.function_type.inputs.data, [] if isinstance(output, LLVMVoidType) else [output]
            ),
            self.body,
            self.attributes | self.properties,
            arg_attrs=self.arg_attrs,
            res_attrs=self.res_attrs,
            reserved_attr_names=self.SIGNATURE,
            is_variadic=self.function_type.is_variadic,
            print_empty_outputs=False,
        )

    def verify_(self) -> None:
        if (entry := self.body.blocks.first) is None:
            return
        wanted = self.function_type.inputs.data
        if entry.arg_types != wanted:
            raise VerifyException(
                f"the entry block takes {len(entry.args)} arguments, which do not match {self.function_type}"
            )


@op_definition
class GlobalOp(QuickOp):
    """`llvm.mlir.global private constant @c(dense<1.0> : vector<4xf32>) {addr_space = 0 : i32} : vector<4xf32>`: a variable.

    Without a value and a region it is not initialised. Address space 3 is a block's shared memory; 0 elements in it mean the size
    given at launch.
    """

    name = "llvm.mlir.global"

    global_type = prop_def()
    constant = opt_prop_def(UnitAttr)
    sym_name = prop_def(SymbolNameConstraint())
    linkage = prop_def(LinkageAttr)
    dso_local = opt_prop_def(UnitAttr)
    thread_local_ = opt_prop_def(UnitAttr)
    externally_initialized = opt_prop_def(UnitAttr)
    value = opt_prop_def()
    alignment = opt_prop_def(IntegerAttr)
    addr_space = prop_def(IntegerAttr, default_value=IntegerAttr(0, 32))
    unnamed_addr = prop_def(IntegerAttr, default_value=IntegerAttr(0, 64))
    visibility_ = prop_def(IntegerAttr, default_value=IntegerAttr(0, 64))
    section = opt_prop_def(StringAttr)
    body = region_def()

    # Properties that are printed before the attributes.
    SIGNATURE: ClassVar = (
        "global_type",
        "sym_name",
        "linkage",
        "constant",
        "thread_local_",
        "unnamed_addr",
        "visibility_",
        "value",
    )

    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        global_type: Attribute,
        sym_name: str | StringAttr,
        linkage: str | LinkageAttr,
        addr_space: int = 0,
        constant: bool = False,
        value: Attribute | None = None,
        alignment: int | None = None,
        unnamed_addr: int = 0,
        body: Region | None = None,
    ):
        super().__init__(
            properties={
                "global_type": global_type,
                "sym_name": StringAttr(sym_name) if isinstance(sym_name, str) else sym_name,
                "linkage": LinkageAttr(linkage) if isinstance(linkage, str) else linkage,
                "addr_space": IntegerAttr(addr_space, 32),
                "constant": UnitAttr() if constant else None,
                "value": value,
                "alignment": None if alignment is None else IntegerAttr(alignment, 64),
                "unnamed_addr": IntegerAttr(unnamed_addr, 64),
            },
            regions=[body or Region()],
        )

    @classmethod
    def parse(cls, parser: Parser) -> GlobalOp:
        linkage = parser.parse_optional_keyword_in(_LINKAGES.split()) or "external"
        visibility = _parse_choice(parser, _VISIBILITIES)
        is_thread_local = parser.parse_optional_keyword("thread_local") is not None
        unnamed = _parse_choice(parser, _UNNAMED)
        is_constant = parser.parse_optional_keyword("constant") is not None
        name = parser.parse_symbol_name()
        with parser.in_parens():
            value = parser.parse_optional_attribute()
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":") is not None:
            global_type: Attribute = parser.parse_type()
        elif isinstance(value, StringAttr):
            global_type = LLVMArrayType(len(value.data.encode()), IntegerType(8))
        elif isinstance(value, TypedAttribute):
            global_type = value.get_type()
        else:
            parser.raise_error("expected ':' and the variable's type")
        known = cls.get_irdl_definition().properties
        op = GlobalOp(
            global_type,
            name,
            linkage,
            constant=is_constant,
            value=value,
            body=parser.parse_optional_region(),
        )
        op.properties |= {name: attributes.pop(name) for name in list(attributes) if name in known}
        op.properties |= {"unnamed_addr": unnamed, "visibility_": visibility}
        if is_thread_local:
            op.properties["thread_local_"] = UnitAttr()
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(
            words(
                self.linkage.linkage.data,
                _VISIBILITIES[self.visibility_.value.data],
                "thread_local" if self.thread_local_ is not None else "",
                _UNNAMED[self.unnamed_addr.value.data],
                "constant" if self.constant is not None else "",
            )
            + " "
        )
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            if self.value is not None:
                printer.print_attribute(self.value)
        printer.print_op_attributes(self.properties | self.attributes, reserved_attr_names=self.SIGNATURE)
        if not isinstance(self.value, StringAttr):
            printer.print_string(" : ")
            printer.print_attribute(self.global_type)
        if self.body.blocks:
            printer.print_string(" ")
            printer.print_region(self.body)
