"""A text of LLVM IR: its functions, globals and metadata, and the IR of one kernel with all that it uses.

    define ptx_kernel void @scale(ptr align 16 %x) { ... }      llvm.func @scale(%x: !llvm.ptr {llvm.align = 16}) attributes {nvvm.kernel}
    @tile = private addrspace(3) global [1056 x float] undef     llvm.mlir.global @tile {addr_space = 3}
    !7 = !DILocation(line: 3, column: 5, scope: !4)              the location of what carries `!dbg !7`

Bodies are read when a kernel needs them. Source: LLVM language reference, "High Level Structure".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.dialects import builtin
from xdsl.dialects.builtin import i8, i64
from xdsl.ir import Attribute, Block

from xla_emitters.dialects.locations import location_at
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.data_layout import size_and_alignment, stride_of
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.llvm_ir import call_reader, instruction_reader
from xla_emitters.text.llvm_ir.function_reader import FunctionReader
from xla_emitters.text.llvm_ir.llvm_constants import ConstantReader
from xla_emitters.text.llvm_ir.llvm_ir_lexer import STAGE, LlvmTokenKind, Token, name_of, unescaped
from xla_emitters.text.llvm_ir.llvm_types import MOST_BYTES, VOID
from xla_emitters.text.ptx.op_builder import hint_of
from xla_emitters.text.ptx.raising import bytes_attribute, kernel_module

TABLES = (call_reader, instruction_reader)
"""The modules that fill the table of instructions when they are imported."""
_BRACES = re.compile(r'"[^"\n]*"|;[^\n]*|[{}]')
_SCOPE, _FILE = re.compile(r"scope: (!\d+)"), re.compile(r"file: (!\d+)")
_PAIR = re.compile(r'"(nvvm\.(?:reqntid|maxntid))"="([\d,]{1,32})"')
_TOP = ("define", "declare", "attributes", "target", "source_filename", "module")


@dataclass(frozen=True, eq=False)
class LlvmParameter:
    """align: bytes that a pointer is aligned to, 0 where the text does not say."""

    name: str
    type: Attribute
    align: int

    @property
    def is_pointer(self) -> bool:
        return isinstance(self.type, llvm.LLVMPointerType)


@dataclass(frozen=True, eq=False)
class LlvmFunction:
    """A function. body: offset behind its brace; None for a declaration. groups: of its attributes."""

    name: str
    is_entry: bool
    output: Attribute
    parameters: tuple[LlvmParameter, ...]
    start: int
    end: int
    body: int | None
    groups: tuple[str, ...]


@dataclass(eq=False)
class LlvmModule:
    """A text. metadata: `!5` -> its text; groups: `#0` -> the text of its attributes."""

    source: Source
    functions: dict[str, LlvmFunction] = field(default_factory=dict[str, LlvmFunction])
    globals: dict[str, llvm.GlobalOp] = field(default_factory=dict[str, llvm.GlobalOp])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    groups: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def entries(self) -> list[LlvmFunction]:
        return [function for function in self.functions.values() if function.is_entry and function.body is not None]

    def bounds(self, function: LlvmFunction) -> dict[str, tuple[int, ...]]:
        """`reqntid` and `maxntid` of a kernel."""
        texts = (self.groups.get(group, "") for group in function.groups)
        found = (match for text in texts for match in _PAIR.finditer(text))
        return {
            match[1].removeprefix("nvvm."): tuple(int(part) for part in match[2].split(",") if part) for match in found
        }

    def location(self, text: str) -> builtin.LocationAttr:
        """The place that a `!DILocation` or its number names."""
        text = self.metadata.get(text, text)
        line, column = (re.search(rf"\b{word}: (\d{{1,9}})\b", text) for word in ("line", "column"))
        if line is None or "DILocation" not in text:
            return builtin.UnknownLoc()
        name, seen = "", 0
        while name == "" and seen < 100:
            seen += 1
            if (file := _FILE.search(text)) is not None:
                match = re.search(r'filename: "([^"]*)"', self.metadata.get(file[1], ""))
                name = unescaped(match[1]).decode("latin-1") if match else "?"
            elif (scope := _SCOPE.search(text)) is not None:
                text = self.metadata.get(scope[1], "")
            else:
                return builtin.UnknownLoc()
        return location_at(name, int(line[1]), int(column[1]) if column else 1)


def read_llvm_ir(text: str, file: str) -> LlvmModule:
    """The module that a text says. raises ParseError and Unsupported with their place

    >>> module = read_llvm_ir("define ptx_kernel void @f(ptr %x) { ret void }", "f.ll")
    >>> [function.name for function in module.entries]
    ['f']
    """
    return _ModuleReader(Source(text, file)).module()


class _ModuleReader(ConstantReader):
    """Reads all but the bodies."""

    def module(self) -> LlvmModule:
        cursor = self.cursor
        found = self.found = LlvmModule(cursor.source)
        while (token := cursor.token).kind is not LlvmTokenKind.END:
            cursor.advance()
            if token.kind is LlvmTokenKind.METADATA:
                cursor.expect("=", "after the metadata's name")
                cursor.accept("distinct")
                found.metadata[token.text] = self.metadata_value()
            elif token.kind is LlvmTokenKind.GLOBAL:
                self._global(token)
            elif token.text == "$":
                self._skip_to_next()
            elif token.text == "define":
                self._function()
            elif token.text == "declare":
                self._declaration()
            elif token.text == "attributes":
                group = cursor.expect_kind(LlvmTokenKind.GROUP, "the group")
                cursor.expect("=", "after the group")
                start = cursor.token.start
                cursor.expect("{", "before the attributes")
                while not cursor.accept("}"):
                    if cursor.token.kind is LlvmTokenKind.END:
                        raise cursor.unexpected("'}' after the attributes")
                    cursor.advance()
                found.groups[group.text] = cursor.source.text[start : cursor.previous.end]
            elif token.text in ("source_filename", "target"):
                while cursor.token.kind is LlvmTokenKind.WORD:
                    cursor.advance()
                cursor.expect("=", f"after '{token.text}'")
                cursor.expect_kind(LlvmTokenKind.STRING, "the value")
            elif token.text == "module":
                raise self.unsupported("assembly of a module", token)
            elif token.kind is LlvmTokenKind.LOCAL:
                raise self.unsupported(f"the named type {token}", token)
            else:
                details = (f"got {token}",)
                raise cursor.error("expected 'define', a global, or another part of a module", token, details=details)
        return found

    def _skip_to_next(self) -> None:
        """Consumes what follows a declaration."""
        cursor = self.cursor
        names = (LlvmTokenKind.GLOBAL, LlvmTokenKind.LOCAL, LlvmTokenKind.METADATA, LlvmTokenKind.END)
        while cursor.token.kind not in names and not cursor.at(*_TOP, "$"):
            cursor.advance()

    def _global(self, token: Token) -> None:
        """`@x = internal unnamed_addr addrspace(1) constant [6 x i32] [i32 1, ...], align 4`"""
        cursor, name = self.cursor, name_of(token)
        cursor.expect("=", "after the global's name")
        words, space = set[str](), 0
        while not cursor.at("global", "constant"):
            if cursor.at("addrspace"):
                space = self.address_space()
                continue
            words.add(cursor.expect_kind(LlvmTokenKind.WORD, "'global' or 'constant'").text)
            if words & {"alias", "ifunc"}:
                raise self.unsupported("an alias")
            if cursor.at("("):
                cursor.skip_group()
        is_constant = cursor.advance().text == "constant"
        ir_type = self.value_type()
        size, alignment = stride_of(ir_type), size_and_alignment(ir_type)[1]
        value: Attribute | None = None if space == 3 else llvm.ZeroAttr()
        array: Attribute = llvm.LLVMArrayType(size, i8)
        if not words & {"external", "extern_weak"}:
            is_zero = cursor.accept_any("zeroinitializer", "undef", "poison", "null") != ""
            if not is_zero and any(data := self.data(ir_type)) and space != 3:
                value = bytes_attribute(data)
        elif space != 3:
            raise self.unsupported(f"the global {token}, which is defined elsewhere,", token)
        while cursor.accept(","):
            if cursor.accept("align"):
                alignment = cursor.integer("the alignment")
                if alignment & (alignment - 1) or not 0 < alignment <= MOST_BYTES:
                    raise self.error("an alignment is a power of two")
            elif cursor.token.kind is LlvmTokenKind.METADATA:
                cursor.advance()
                self.metadata_value()
            else:
                cursor.advance()  # such as section "x"
        self._skip_to_next()
        self._new(name, token)
        self.found.globals[name] = llvm.GlobalOp(
            array, name, "internal", addr_space=space, constant=is_constant, value=value, alignment=alignment
        )

    def _new(self, name: str, token: Token) -> None:
        known = self.found.functions.get(name)
        if name in self.found.globals or (known is not None and known.body is not None):
            raise self.error(f"{token} is defined twice", token)

    def _declaration(self) -> None:
        """Only its name counts: what a call needs is in the call."""
        cursor = self.cursor
        while cursor.token.kind is not LlvmTokenKind.GLOBAL:
            if cursor.token.kind is LlvmTokenKind.END:
                raise cursor.unexpected("the function's name")
            cursor.advance()
        token = cursor.advance()
        function = LlvmFunction(name_of(token), False, VOID, (), token.start, token.end, None, ())
        self.found.functions.setdefault(function.name, function)
        self._skip_to_next()

    def _function(self) -> None:
        cursor = self.cursor
        words = self.skip_attributes()
        output = self.type()
        token = cursor.expect_kind(LlvmTokenKind.GLOBAL, "the function's name")
        parameters, unnamed = list[LlvmParameter](), 0
        cursor.expect("(", "before the parameters")
        while not cursor.accept(")"):
            if parameters:
                cursor.expect(",", "or ')' after the parameter")
            if cursor.at("..."):
                raise self.unsupported("a function of any number of arguments", cursor.token)
            ir_type = self.value_type()
            said = self.skip_attributes()
            name = name_of(cursor.advance()) if cursor.token.kind is LlvmTokenKind.LOCAL else str(unnamed)
            unnamed += name == str(unnamed)
            if "byval" in said:
                raise self.unsupported("a parameter that is passed by value in memory")
            parameters.append(LlvmParameter(name, ir_type, said.get("align", 0)))
        if len({parameter.name for parameter in parameters}) < len(parameters):
            raise self.error("two parameters have one name", token)
        groups = list[str]()
        while not cursor.at("{"):
            if cursor.token.kind is LlvmTokenKind.END:
                raise cursor.unexpected("'{' before the function's body")
            groups += [cursor.token.text] if cursor.token.kind is LlvmTokenKind.GROUP else []
            cursor.advance()
        body, name = cursor.token.end, name_of(token)
        self._skip_body()
        self._new(name, token)
        is_entry = "ptx_kernel" in words or words.get("cc") == 71
        self.found.functions[name] = LlvmFunction(
            name, is_entry, output, tuple(parameters), token.start, token.end, body, tuple(groups)
        )

    def _skip_body(self) -> None:
        """Consumes `{ ... }`."""
        depth, source = 0, self.cursor.source
        for match in _BRACES.finditer(source.text, self.cursor.token.start):
            depth += (match[0] == "{") - (match[0] == "}")
            if depth == 0 and match[0] == "}":
                self.cursor.skip_to(match.end())
                return
        raise self.error("this function has no closing brace", self.cursor.token)


def raise_kernel(
    module: LlvmModule,
    entry: LlvmFunction,
    *,
    arguments: Sequence[Mapping[str, Attribute]] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    more_pointers: int = 0,
) -> builtin.ModuleOp:
    """The IR of one kernel.

    arguments   attributes of each argument, in place of the alignments that the text says
    attributes  attributes of the function, such as its launch
    more_pointers  arguments after the parameters: arrays whose addresses others hold
    raises      ParseError for names and types that do not fit, Unsupported for what is not read, each with its place
    """

    def raised(function: LlvmFunction) -> tuple[llvm.FuncOp, Mapping[str, Token], Iterable[LlvmFunction]]:
        reader, op = _raised(module, function, more_pointers if function is entry else 0)
        callees = list[LlvmFunction]()
        addresses = {name: token for name, token in reader.globals.items() if name in module.functions}
        for name, token in (reader.callees | addresses).items():
            callee = module.functions.get(name)
            if callee is None or callee.body is None:
                use = "a call" if name in reader.callees else "the address"
                what = f"{use} of '{name}', which is {'declared, not defined' if callee else 'not declared'},"
                raise reader.unsupported(what, token)
            callees.append(callee)
        return op, {name: token for name, token in reader.globals.items() if name not in addresses}, callees

    def global_named(name: str, token: Token) -> llvm.GlobalOp:
        if (found := module.globals.get(name)) is not None:
            return found.clone()
        place = module.source.place(token.start, token.end)
        raise ParseError(f"{token} is not defined{nearest(name, module.globals)}", stage=STAGE, place=place)

    given = arguments or [
        {"llvm.align": builtin.IntegerAttr(each.align, i64)} if each.align else {} for each in entry.parameters
    ]
    whole = kernel_module(entry, raised, global_named, given, attributes)
    verify_ir(whole)
    return whole


def _raised(module: LlvmModule, function: LlvmFunction, more_pointers: int = 0) -> tuple[FunctionReader, llvm.FuncOp]:
    assert function.body is not None
    types = [*(parameter.type for parameter in function.parameters), *[llvm.LLVMPointerType()] * more_pointers]
    entry = Block(arg_types=types)
    for parameter, value in zip(function.parameters, entry.args, strict=False):
        value.name_hint = hint_of(parameter.name)
    names = [parameter.name for parameter in function.parameters]
    location: Callable[[str], builtin.LocationAttr] = partial(LlvmModule.location, module)
    reader = FunctionReader(module.source, function.body, entry, names, location)
    region = reader.region(function.output)
    op = llvm.FuncOp(function.name, llvm.LLVMFunctionType(types, function.output), body=region)
    op.location = location_at(module.source.file, *module.source.line_and_column(function.start))
    return reader, op
