"""The `llvm` dialect's metadata: of modules, loops and accesses, read and kept.

    llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>]
    #scope = #llvm.alias_scope<id = distinct[1]<>, domain = #domain, description = "output">
    llvm.br ^head {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>, mustProgress = true>}
    llvm.func @f() {...} loc(fused<#llvm.di_subprogram<id = distinct[0]<>, ..., name = "f">>["f.hlo":1:1])

Metadata does not change results: accesses in different alias scopes do not overlap, and a loop annotation is a hint for LLVM's optimiser.
A function whose location has a subprogram is compiled with line information; other debug information is not supported.
Parameters have MLIR's names; a table has the syntax of each.
Source: MLIR 22, LLVM dialect, as `mlir-opt` reads and prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import new_class
from typing import Any, ClassVar, TypeVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import ParamAttrDef, ParamDef, irdl_attr_definition, prop_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.runtime_final import runtime_final

from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.support.late_dataclass import dataclass

BaseT = TypeVar("BaseT", bound=ParametrizedAttribute)

# ---- parameters by name -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParameterSyntax:
    """How one parameter's value is written."""

    parse: Callable[[AttrParser], Attribute]
    print: Callable[[Printer, Any], None]
    is_required: bool = False


def required(parameter: ParameterSyntax) -> ParameterSyntax:
    """The parameter, without which the attribute is refused."""
    return replace(parameter, is_required=True)


ATTRIBUTE = ParameterSyntax(AttrParser.parse_attribute, Printer.print_attribute)
"""`count = 4 : i32`, `id = distinct[0]<>`, `description = "d"`."""

NUMBER = ParameterSyntax(
    lambda parser: IntegerAttr(parser.parse_integer(allow_boolean=False), i64),
    lambda printer, value: printer.print_string(str(value.value.data)),
)
"""`offset = 0`: without a type."""

LIST = ParameterSyntax(
    lambda parser: ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_attribute)),
    lambda printer, value: printer.print_list(value, printer.print_attribute),
)
"""`parallelAccesses = #g, #h`: to the end, without brackets."""

STRING = ParameterSyntax(
    lambda parser: StringAttr(parser.parse_str_literal()),
    lambda printer, value: printer.print_string_literal(value.data),
)
"""`producer = "xla-emitters"`."""


def one_of(*words: str) -> ParameterSyntax:
    """`argMem = readwrite`."""

    def parse(parser: AttrParser) -> Attribute:
        start = parser.pos
        word = parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"expected one of: {', '.join(words)}", start, start + len(word))
        return StringAttr(word)

    return ParameterSyntax(parse, lambda printer, value: printer.print_string(value.data))


def nested(attribute: type[ParametrizedAttribute]) -> ParameterSyntax:
    """`unroll = <disable = true>` or `unroll = #llvm.loop_unroll<disable = true>`: an `attribute`, whose name may be left out."""

    def parse(parser: AttrParser) -> Attribute:
        start = parser.pos
        value = parser.parse_optional_attribute()
        if value is None:
            return attribute.new(attribute.parse_parameters(parser))
        if not isinstance(value, attribute):
            parser.raise_error(f"expected #{attribute.name}", start, parser.pos)
        return value

    return ParameterSyntax(parse, Printer.print_attribute)


_MADE = dict[str, type[ParametrizedAttribute]]()
"""The classes made below, by the names of their attributes: pickle cannot find them by theirs."""


def _unpacked(name: str, parameters: Sequence[Attribute]) -> ParametrizedAttribute:
    return _MADE[name].new(parameters)


def _by_name(self: ParametrizedAttribute) -> tuple[Any, ...]:
    """Pickles the attribute by its name and parameters."""
    return _unpacked, (self.name, tuple(self.parameters))


@dataclass(frozen=True, init=False)
class NamedParametersAttr(ParametrizedAttribute):
    """`#llvm.name<a = 1 : i32, b = <...>>`: parameters by MLIR's names, in the order in which they are written.

    PARAMETERS   name -> its syntax
    IS_OPTIONAL  whether `<>` is omitted if no parameter is given
    """

    parameters_by_name: DictionaryAttr

    PARAMETERS: ClassVar[Mapping[str, ParameterSyntax]]
    IS_OPTIONAL: ClassVar[bool] = False

    __reduce__ = _by_name

    @classmethod
    def of(cls, **parameters: Attribute):
        """The attribute with these parameters."""
        return cls(DictionaryAttr(parameters))

    def get(self, name: str) -> Attribute | None:
        """The value of a parameter; None where it is not given."""
        return self.parameters_by_name.data.get(name)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        found: dict[str, Attribute] = {}

        def parameter() -> None:
            start = parser.pos
            word = parser.parse_optional_identifier() or ""
            if word not in cls.PARAMETERS:
                end = start + max(1, len(word))
                parser.raise_error(f"#{cls.name} has no '{word}'; it has {', '.join(cls.PARAMETERS)}", start, end)
            if word in found:
                parser.raise_error(f"'{word}' is given twice", start, start + len(word))
            parser.parse_punctuation("=")
            found[word] = cls.PARAMETERS[word].parse(parser)

        start = parser.pos
        if cls.IS_OPTIONAL:
            parser.parse_optional_comma_separated_list(parser.Delimiter.ANGLE, parameter)
        else:
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parameter)
        if missing := cls._missing(found):
            parser.raise_error(missing, start, parser.pos)
        return [DictionaryAttr(found)]

    @classmethod
    def _missing(cls, found: Mapping[str, Attribute]) -> str:
        names = [name for name, row in cls.PARAMETERS.items() if row.is_required and name not in found]
        return f"#{cls.name} needs {' and '.join(names)}" if names else ""

    def verify(self) -> None:
        if missing := self._missing(self.parameters_by_name.data):
            raise VerifyException(missing)

    def print_parameters(self, printer: Printer) -> None:
        if self.IS_OPTIONAL and not self.parameters_by_name.data:
            return

        def parameter(item: tuple[str, Attribute]) -> None:
            name, value = item
            printer.print_string(f"{name} = ")
            self.PARAMETERS[name].print(printer, value)

        with printer.in_angle_brackets():
            printer.print_list(self.parameters_by_name.data.items(), parameter)


def named_parameters(
    name: str, parameters: Mapping[str, ParameterSyntax], *, is_optional: bool = False
) -> type[NamedParametersAttr]:
    """The attribute `name` with the given parameters."""

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(name=name, PARAMETERS=parameters, IS_OPTIONAL=is_optional, __module__=__name__)

    return _defined(name, NamedParametersAttr, fill)


@dataclass(frozen=True, init=False)
class WordAttr(ParametrizedAttribute):
    """`#llvm.uwtableKind<async>`: one of WORDS."""

    word: StringAttr

    WORDS: ClassVar[tuple[str, ...]]

    __reduce__ = _by_name

    @classmethod
    @cache
    def of(cls, word: str):
        """The attribute that is `word`."""
        return cls(StringAttr(word))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [one_of(*cls.WORDS).parse(parser)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.word.data}>")

    def verify(self) -> None:
        if self.word.data not in self.WORDS:
            raise VerifyException(f"#{self.name} is one of {', '.join(self.WORDS)}, not {self.word.data}")


class SpacedWordAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    """`#gpu<shuffle_mode xor>`, of which an op's own syntax has the word alone."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return [one_of(*cls.WORDS).parse(parser)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(self.word.data)


def word_attribute(name: str, *words: str, is_spaced: bool = False) -> type[WordAttr]:
    """The attribute `name`, which is one of `words`.

    is_spaced  whether MLIR writes it as a `SpacedWordAttr`
    """

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(name=name, WORDS=words, __module__=__name__)

    return _defined(name, SpacedWordAttr if is_spaced else WordAttr, fill)


def _defined(name: str, base: type[BaseT], fill: Callable[[dict[str, Any]], None]) -> type[BaseT]:
    """As `irdl_attr_definition` of a subclass of `base`, whose parameters and methods it has: none are made again."""
    made: Any = new_class(f"{_stem(name)}Attr", (base,), exec_body=fill)
    definition = ParamAttrDef(name, _parameters_of(base, made))
    made.get_irdl_definition = classmethod(lambda _: definition)
    _MADE[name] = runtime_final(made)
    return made


_PARAMETERS: dict[type[Any], list[tuple[str, ParamDef]]] = {}


def _parameters_of(base: type[Any], made: type[Any]) -> list[tuple[str, ParamDef]]:
    if (found := _PARAMETERS.get(base)) is None:
        found = _PARAMETERS[base] = ParamAttrDef.from_pyrdl(made).parameters
    return found


def _stem(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace("_", ".").split("."))


# ---- accesses ---------------------------------------------------------------------------------------------------------------------------

AliasScopeDomainAttr = named_parameters("llvm.alias_scope_domain", dict(id=required(ATTRIBUTE), description=ATTRIBUTE))
AliasScopeAttr = named_parameters(
    "llvm.alias_scope",
    dict(id=required(ATTRIBUTE), domain=required(nested(AliasScopeDomainAttr)), description=ATTRIBUTE),
)
AccessGroupAttr = named_parameters("llvm.access_group", dict(id=required(ATTRIBUTE)))
DereferenceableAttr = named_parameters("llvm.dereferenceable", dict(bytes=required(NUMBER), mayBeNull=ATTRIBUTE))
TBAARootAttr = named_parameters("llvm.tbaa_root", dict(id=ATTRIBUTE), is_optional=True)


@irdl_attr_definition
class TBAAMemberAttr(ParametrizedAttribute):
    """`#llvm.tbaa_member<#llvm.tbaa_root, 0>`: a member's type, and its offset in bytes."""

    name = "llvm.tbaa_member"

    type_desc: Attribute
    offset: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            type_desc = parser.parse_attribute()
            parser.parse_punctuation(",")
            return [type_desc, IntAttr(parser.parse_integer(allow_boolean=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.type_desc)
            printer.print_string(f", {self.offset.data}")


_MEMBER = nested(TBAAMemberAttr)


def _print_members(printer: Printer, members: ArrayAttr[TBAAMemberAttr]) -> None:
    with printer.in_braces():
        printer.print_list(members, lambda member: member.print_parameters(printer))


_MEMBERS = ParameterSyntax(
    lambda parser: ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _MEMBER.parse(parser))),
    _print_members,
)
"""`members = {<#root, 0>, <#int, 8>}`."""

TBAATypeDescAttr = named_parameters("llvm.tbaa_type_desc", dict(id=required(ATTRIBUTE), members=required(_MEMBERS)))
TBAATagAttr = named_parameters(
    "llvm.tbaa_tag",
    dict(
        base_type=required(nested(TBAATypeDescAttr)),
        access_type=required(nested(TBAATypeDescAttr)),
        offset=required(NUMBER),
        constant=ATTRIBUTE,
    ),
)


@op_definition
class NoAliasScopeDeclOp(QuickOp):
    """`llvm.intr.experimental.noalias.scope.decl #scope`: the start of a scope."""

    name = "llvm.intr.experimental.noalias.scope.decl"

    scope = prop_def(AliasScopeAttr)

    def __init__(self, scope: Attribute):
        super().__init__(properties={"scope": scope})

    @classmethod
    def parse(cls, parser: Parser) -> NoAliasScopeDeclOp:
        op = NoAliasScopeDeclOp(nested(AliasScopeAttr).parse(parser))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.scope)
        printer.print_op_attributes(self.attributes)


# ---- loops ------------------------------------------------------------------------------------------------------------------------------


def _loop_hints(name: str, *parameters: str) -> type[NamedParametersAttr]:
    return named_parameters(name, dict.fromkeys(parameters, ATTRIBUTE))


LOOP_ANNOTATION = "loop_annotation"
"""The attribute of `scf.for`, `cf.br` and `llvm.br`: the name under which MLIR's passes hand it on from one to the next."""

LoopVectorizeAttr = _loop_hints(
    "llvm.loop_vectorize",
    *("disable", "predicateEnable", "scalableEnable", "width"),
    *("followupVectorized", "followupEpilogue", "followupAll"),
)
LoopInterleaveAttr = _loop_hints("llvm.loop_interleave", "count")
LoopUnrollAttr = _loop_hints(
    "llvm.loop_unroll",
    *("disable", "count", "runtimeDisable", "full", "followupUnrolled", "followupRemainder", "followupAll"),
)
LoopUnrollAndJamAttr = _loop_hints(
    "llvm.loop_unroll_and_jam",
    *("disable", "count", "followupOuter", "followupInner"),
    *("followupRemainderOuter", "followupRemainderInner", "followupAll"),
)
LoopLICMAttr = _loop_hints("llvm.loop_licm", "disable", "versioningDisable")
LoopDistributeAttr = _loop_hints(
    "llvm.loop_distribute",
    *("disable", "followupCoincident", "followupSequential", "followupFallback", "followupAll"),
)
LoopPipelineAttr = _loop_hints("llvm.loop_pipeline", "disable", "initiationinterval")
LoopPeeledAttr = _loop_hints("llvm.loop_peeled", "count")
LoopUnswitchAttr = _loop_hints("llvm.loop_unswitch", "partialDisable")
LoopAnnotationAttr = named_parameters(
    "llvm.loop_annotation",
    dict(
        disableNonforced=ATTRIBUTE,
        vectorize=nested(LoopVectorizeAttr),
        interleave=nested(LoopInterleaveAttr),
        unroll=nested(LoopUnrollAttr),
        unrollAndJam=nested(LoopUnrollAndJamAttr),
        licm=nested(LoopLICMAttr),
        distribute=nested(LoopDistributeAttr),
        pipeline=nested(LoopPipelineAttr),
        peeled=nested(LoopPeeledAttr),
        unswitch=nested(LoopUnswitchAttr),
        mustProgress=ATTRIBUTE,
        isVectorized=ATTRIBUTE,
        startLoc=ATTRIBUTE,
        endLoc=ATTRIBUTE,
        parallelAccesses=LIST,
    ),
)

# ---- functions --------------------------------------------------------------------------------------------------------------------------

_ACCESSED = required(one_of("none", "read", "write", "readwrite"))
MemoryEffectsAttr = named_parameters(
    "llvm.memory_effects",
    dict.fromkeys(("other", "argMem", "inaccessibleMem", "errnoMem", "targetMem0", "targetMem1"), _ACCESSED),
)
VScaleRangeAttr = named_parameters(
    "llvm.vscale_range", dict(minRange=required(ATTRIBUTE), maxRange=required(ATTRIBUTE))
)


UnwindTableKindAttr = word_attribute("llvm.uwtableKind", "none", "sync", "async")


@irdl_attr_definition
class ZeroAttr(ParametrizedAttribute):
    """`#llvm.zero`: zeros, as the value of a global."""

    name = "llvm.zero"


@irdl_attr_definition
class UndefAttr(ParametrizedAttribute):
    """`#llvm.undef`: an undefined part of a constant."""

    name = "llvm.undef"


@irdl_attr_definition
class PoisonAttr(ParametrizedAttribute):
    """`#llvm.poison`: a poison part of a constant."""

    name = "llvm.poison"


# ---- debug information ------------------------------------------------------------------------------------------------------------------


@irdl_attr_definition
class DIFileAttr(ParametrizedAttribute):
    """`#llvm.di_file<"gelu.hlo" in "examples">`."""

    name = "llvm.di_file"

    file: StringAttr
    directory: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            file = parser.parse_str_literal()
            parser.parse_keyword("in")
            return [StringAttr(file), StringAttr(parser.parse_str_literal())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.file.data)
            printer.print_string(" in ")
            printer.print_string_literal(self.directory.data)


DICompileUnitAttr = named_parameters(
    "llvm.di_compile_unit",
    dict(
        id=required(ATTRIBUTE),
        sourceLanguage=required(one_of("DW_LANG_C")),
        file=nested(DIFileAttr),
        producer=STRING,
        isOptimized=required(ATTRIBUTE),
        emissionKind=required(one_of("None", "Full", "LineTablesOnly", "DebugDirectivesOnly")),
    ),
)
DISubprogramAttr = named_parameters(
    "llvm.di_subprogram",
    dict(
        id=required(ATTRIBUTE),
        compileUnit=nested(DICompileUnitAttr),
        scope=nested(DIFileAttr),
        name=STRING,
        file=nested(DIFileAttr),
        line=NUMBER,
        subprogramFlags=STRING,
    ),
)

# ---- modules ----------------------------------------------------------------------------------------------------------------------------


@irdl_attr_definition
class ModuleFlagAttr(ParametrizedAttribute):
    """`#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>`: the behaviour on a conflict between modules, a name, and its value."""

    name = "llvm.mlir.module_flag"

    behavior: StringAttr
    key: StringAttr
    value: Attribute

    BEHAVIORS: ClassVar = ("error", "warning", "require", "override", "append", "append_unique", "max", "min")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            behavior = one_of(*cls.BEHAVIORS).parse(parser)
            parser.parse_punctuation(",")
            key = parser.parse_str_literal()
            parser.parse_punctuation(",")
            return [behavior, StringAttr(key), parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.behavior.data}, ")
            printer.print_string_literal(self.key.data)
            printer.print_string(", ")
            printer.print_attribute(self.value)

    def verify(self) -> None:
        if not isinstance(self.value, IntegerAttr | StringAttr | ArrayAttr):
            raise VerifyException(
                f'the value of flag "{self.key.data}" is {self.value}; it must be a number or a string'
            )


@op_definition
class ModuleFlagsOp(QuickOp):
    """`llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>]`"""

    name = "llvm.module_flags"

    flags = prop_def(ArrayAttr[ModuleFlagAttr])

    assembly_format = "attr-dict $flags"

    def __init__(self, flags: Sequence[ModuleFlagAttr]):
        super().__init__(properties={"flags": ArrayAttr(flags)})
