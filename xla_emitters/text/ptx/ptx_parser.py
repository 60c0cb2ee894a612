"""PTX text to `PtxModule`: directives, functions, instructions; nothing is executed or checked here but form and names.

    read_ptx(text, "kernel.ptx")

Source: PTX ISA 8.8, chapters 4, 5 and 11.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.ptx.declarations import Declarations, Scope
from xla_emitters.text.ptx.ptx_lexer import PtxTokenKind, Token
from xla_emitters.text.ptx.rows import row_of
from xla_emitters.text.ptx.syntax import (
    SIZES,
    Address,
    Instruction,
    Label,
    Negated,
    Operand,
    OperandGroup,
    Pair,
    PtxFunction,
    PtxModule,
    PtxVariable,
    Register,
    Selected,
    Special,
    SymbolAddress,
)
from xla_emitters.text.ptx.system_functions import TEXT as SYSTEM_TEXT
from xla_emitters.text.ptx.system_functions import add_system_functions

NEWEST = (8, 8)
"""The ISA's version that this reader was written from; a text of a newer one gets a remark."""
_SPACES = ("global", "const", "shared", "local", "param", "tex")
_LINKING = (".visible", ".extern", ".weak", ".common")
_NUMBERS = (
    *(".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster", ".maxclusterrank"),
    *(".abi_preserve", ".abi_preserve_control"),
)
_FLAGS = (".noreturn", ".explicitcluster", ".blocksareclusters")
_NEXT = (".entry", ".func", ".file", ".global", ".const", *_LINKING)
"""What may follow a declaration of a function that has no semicolon, as nvcc wrote it up to CUDA 3."""
_PARTS = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
_SPECIAL = re.compile(
    r"%(?:n?tid|n?ctaid|clusterid|nclusterid|cluster_n?ctaid)(?:\.[xyzw])?$"
    r"|%(?:laneid|n?warpid|smid|nsmid|gridid|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|globaltimer(?:_lo|_hi)?"
    r"|pm\d+(?:_64)?|envreg\d+|current_graph_exec|cluster_n?ctarank|is_explicit_cluster|(?:total|aggr|dynamic|reserved)_smem_\w+)$"
)
_BRACES = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*|/\*.*?\*/|[{}]', re.DOTALL)
"""What a body's end is found by: braces, and what they do not count in."""
_USED_BYTES = re.compile(r'"used_bytes_mask (0x[0-9a-fA-F]{1,16})"')


def read_ptx(text: str, file: str, kernel: str = "") -> PtxModule:
    """The module that a text says. raises ParseError with its place for text that is not PTX

    kernel  the only one whose body is read: that of others is empty, and may be anything; "": all are read

    >>> module = read_ptx(".version 8.6 .target sm_90 .address_size 64 .entry f() { ret; }", "f.ptx")
    >>> module.target, [function.name for function in module.entries]
    ('sm_90', ['f'])
    """
    found = PtxParser(Source(text, file), kernel).module()
    if any(function.body is None for function in found.functions.values()):
        return add_system_functions(found, PtxParser(Source(SYSTEM_TEXT, "<system>")).module())
    return found


class PtxParser(Declarations):
    """Reads one text. kernel: as of `read_ptx`"""

    def __init__(self, source: Source, kernel: str = "") -> None:
        super().__init__(source)
        self.kernel = kernel

    # ------------------------------------------------------------------------------------------ the module

    def module(self) -> PtxModule:
        """The whole text. raises ParseError"""
        cursor = self.cursor
        if not cursor.at(".version"):
            raise cursor.unexpected("'.version'", help="PTX begins with .version, .target and .address_size")
        while cursor.token.kind is not PtxTokenKind.END:
            self.directive()
        return self.found

    def directive(self) -> None:
        cursor = self.cursor
        token = cursor.token
        match token.text:
            case ".version":
                cursor.advance()
                number = cursor.expect_kind(PtxTokenKind.NUMBER, "the version").text
                major, _, minor = number.partition(".")
                if not (major.isdigit() and minor.isdigit()) or len(number) > 8:
                    raise cursor.error("a version is two numbers such as 8.6", cursor.previous)
                self.found.version = int(major), int(minor)
                if self.found.version > NEWEST:
                    self.found.remarks.append(f"PTX {number} is newer than {NEWEST[0]}.{NEWEST[1]}, which is read here")
            case ".target":
                cursor.advance()
                self.found.target = cursor.expect_kind(PtxTokenKind.NAME, "the target").text
                while cursor.accept(","):
                    cursor.expect_kind(PtxTokenKind.NAME, "a target's option")
            case ".address_size":
                cursor.advance()
                self.found.address_size = self.integer("the address size")
                if self.found.address_size != 64:
                    raise cursor.error("addresses must have 64 bits", cursor.previous)
            case ".file":
                self.file()
            case ".section":
                self.section()
            case ".pragma" | ".alias":
                self.skip_to(";")
            case _:
                self.linked()

    def file(self) -> None:
        self.cursor.advance()
        number = self.integer("the file's number")
        self.found.files[number] = self.cursor.expect_kind(PtxTokenKind.STRING, "the file's name").text[1:-1]
        if self.cursor.accept(","):
            self.listed(lambda: self.integer("time or size"))

    def section(self) -> None:
        """Debug information: skipped, up to the closing brace."""
        cursor = self.cursor
        cursor.advance()
        cursor.advance()
        cursor.expect("{", "after the section's name")
        self.skip_to("}")

    def linked(self) -> None:
        """A function or a variable of the module."""
        cursor, words = self.cursor, set[str]()
        if not self.found.target:
            raise cursor.unexpected("'.target'", help="PTX begins with .version, .target and .address_size")
        while cursor.at(*_LINKING):
            words.add(cursor.advance().text)
        token = cursor.token
        if token.text in (".entry", ".func"):
            cursor.advance()
            self.function_after(token.text == ".entry")
        elif token.text[1:] in _SPACES:
            for variable in self.variables(".extern" in words):
                known = self.found.variables.get(variable.name)
                if known is not None and not (known.is_extern or variable.is_extern):
                    raise cursor.error(f"'{variable.name}' is defined twice", cursor.previous)
                if known is None or known.is_extern:
                    self.found.variables[variable.name] = variable
            cursor.expect(";", "after the variable")
        else:
            raise cursor.unexpected("a directive of the module, such as .entry or .global")

    # ------------------------------------------------------------------------------------------ functions

    def parameter_list(self) -> tuple[PtxVariable, ...]:
        """`(.param .u64 a, .param .u64 b)`, or registers of old texts: `(.reg .b32 a)`"""
        self.cursor.expect("(", "before the parameters")
        found = self.cursor.items(")", self.parameter, "the parameter")
        return tuple(variable for variables in found for variable in variables)

    def parameter(self) -> list[PtxVariable]:
        self.cursor.accept(".hidden")  # Triton writes it before the tensor maps that it adds.
        if not self.cursor.at(".param", ".reg"):
            raise self.cursor.unexpected("'.param'")
        return list(self.variables(is_parameter=True))

    def function_after(self, is_entry: bool) -> None:
        cursor = self.cursor
        if cursor.accept(".attribute"):
            self.attribute()
        results = self.parameter_list() if not is_entry and cursor.at("(") else ()
        name = cursor.expect_kind(PtxTokenKind.NAME, "the function's name")
        parameters = self.parameter_list() if cursor.at("(") else ()
        function = PtxFunction(name.text, is_entry, parameters, results, name.start, name.end)
        while cursor.token.kind is PtxTokenKind.DIRECTIVE and not cursor.at(*_NEXT):
            word = cursor.advance()
            if word.text in _NUMBERS:
                numbers = self.listed(partial(self.integer, word.text))
                if min(numbers) < 1:
                    raise cursor.error(f"{word.text} is at least 1", cursor.previous)
                function.bounds[word.text[1:]] = tuple(numbers)
            elif word.text == ".pragma":
                self.skip_to(";")
            elif word.text not in _FLAGS:
                raise cursor.error(f"'{word.text}' is no directive of a function", word)
        known = self.found.functions.get(name.text)
        if known is not None and known.body is not None and cursor.at("{"):
            raise cursor.error(f"'{name.text}' is defined twice", name)
        if cursor.accept(";") or (not is_entry and cursor.at(*_NEXT)):
            self.found.functions.setdefault(name.text, function)
            return
        if not cursor.at("{"):
            raise cursor.unexpected("'{' before the function's body")
        self.found.functions[name.text] = function
        self.function, self.loc, function.body, self.tables = function, None, [], function.tables
        self.taken = set[str]()
        self.scopes = [Scope()]
        for parameter in (*parameters, *results):
            if parameter.register is not None:
                self.scopes[0].names[parameter.name] = parameter.register
        if not (is_entry and self.kernel not in ("", name.text) and self.pass_over()):
            self.block(function.body)
        self.function = None

    def pass_over(self) -> bool:
        """Goes to the end of a body. returns False, and stays, if it has none"""
        depth = 0
        for match in _BRACES.finditer(self.cursor.source.text, self.cursor.token.start):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if not depth:
                self.cursor.skip_to(match.end())
                return True
        return False

    def block(self, body: list[Instruction | Label]) -> None:
        """`{ ... }`, nested ones too."""
        cursor = self.cursor
        opened, starts = list[Token](), list[tuple[int, int]]()
        while True:
            token = cursor.token
            if token.text == "{":
                opened.append(cursor.advance())
                starts.append((len(body), len(self.tables)))
                if len(opened) > cursor.max_nesting:
                    raise cursor.too_deep()
                self.scopes.append(Scope())
            elif token.text == "}":
                cursor.advance()
                opened.pop()
                self.scopes.pop()
                if not opened:
                    return
                self.name_labels(body, *starts.pop())
            elif token.kind is PtxTokenKind.END:
                line, _ = cursor.source.line_and_column(opened[-1].start)
                raise cursor.unexpected(f"'}}' for the '{{' of line {line}")
            elif token.kind is PtxTokenKind.DIRECTIVE:
                self.local_directive()
            else:
                self.statement(body)

    def name_labels(self, body: list[Instruction | Label], start: int, first_table: int) -> None:
        """Labels of a block that ends here, and lists of labels, are its own: those after it may have their names."""
        labels = {item.name: f"{item.name}.{start}" for item in body[start:] if isinstance(item, Label)}
        tables = {name: f"{name}.{start}" for name in list(self.tables)[first_table:]}
        for name, own in tables.items():
            self.tables[own] = tuple(labels.get(target, target) for target in self.tables.pop(name))
        names = {"bra": labels, "brx": tables, "call": tables}
        for number, item in enumerate(body[start:], start=start) if labels or tables else ():
            if isinstance(item, Label):
                body[number] = replace(item, name=labels[item.name])
            elif item.operands and isinstance(target := item.operands[-1], SymbolAddress):
                name = names.get(item.stem, {}).get(target.name, target.name)
                body[number] = replace(item, operands=(*item.operands[:-1], replace(target, name=name)))

    def local_directive(self) -> None:
        cursor, function = self.cursor, self.function
        assert function is not None
        word = cursor.token
        match word.text:
            case ".reg":
                self.registers()
            case ".loc":
                self.location()
            case ".pragma":
                if (match := _USED_BYTES.match(cursor.peek().text)) is not None:
                    self.used = int(match[1], 16)
                self.skip_to(";")
            case ".branchtargets" | ".callprototype" | ".calltargets":
                raise cursor.error(f"'{word.text}' needs a label before it", word)
            case ".file":
                self.file()
            case _ if word.text[1:] in _SPACES:
                for variable in self.variables():
                    unique = variable.name
                    if variable.register is not None:
                        self.scopes[-1].names[unique] = variable.register
                        continue
                    # Blocks one after the other have variables of one name too, such as the parameters of calls.
                    if unique in self.taken:
                        unique = f"{unique}.{len(self.taken)}"
                    self.taken.add(unique)
                    self.scopes[-1].names[variable.name] = unique
                    function.variables.append(replace(variable, name=unique))
                cursor.expect(";", "after the variable")
            case _:
                raise cursor.error(f"'{word.text}' is no directive of a function's body", word)

    def location(self) -> None:
        """`.loc 1 13 20`, with `, function_name $L+8, inlined_at 1 13 20` after it."""
        self.cursor.advance()
        self.loc = self.line_of_file()
        while self.cursor.accept(","):
            if self.cursor.accept("function_name"):
                self.cursor.expect_kind(PtxTokenKind.NAME, "the label of the function's name")
                self.offset()
            else:
                self.cursor.expect("inlined_at", "or 'function_name' after the comma")
                self.line_of_file()

    def line_of_file(self) -> tuple[int, int, int]:
        return (self.integer("the file's number"), self.integer("the line"), self.integer("the column"))

    # ------------------------------------------------------------------------------------------ instructions

    def statement(self, body: list[Instruction | Label]) -> None:
        cursor = self.cursor
        guard: tuple[Register, bool] | None = None
        if cursor.accept("@"):
            is_negated = cursor.accept("!")
            name = cursor.expect_kind(PtxTokenKind.NAME, "a predicate")
            guard = self.register(name), not is_negated
            if guard[0].type != "pred":
                raise cursor.error(f"'{name.text}' is no predicate", name)
        token = cursor.expect_kind(PtxTokenKind.NAME, "an instruction or a label")
        if guard is None and cursor.accept(":"):
            self.label(token, body)
            return
        i = Instruction(tuple(token.text.split(".")), (), guard, token.start, token.end, self.loc, self.used)
        try:
            operands = cursor.items(";", self.operand if i.stem == "call" else self.value, "the operand")
        except ParseError:
            row_of(cursor.source, i)  # An instruction that is not read may have operands of other forms.
            raise
        body.append(replace(i, operands=tuple(operands)))
        self.used = None

    def value(self) -> Operand | None:
        """An operand that is no list of arguments: `(` begins a constant."""
        return self.constant() if self.cursor.at("(") else self.operand()

    def label(self, token: Token, body: list[Instruction | Label]) -> None:
        cursor, function = self.cursor, self.function
        assert function is not None
        if cursor.accept(".branchtargets") or cursor.accept(".calltargets"):
            names = self.listed(lambda: cursor.expect_kind(PtxTokenKind.NAME, "a label or a function").text)
            cursor.expect(";", "after the names")
            self.tables[token.text] = tuple(names)
        elif cursor.accept(".callprototype"):
            results = self.parameter_list() if cursor.at("(") else ()
            cursor.expect("_", "in place of the function's name")
            parameters = self.parameter_list() if cursor.at("(") else ()
            function.prototypes[token.text] = PtxFunction(
                token.text, False, parameters, results, token.start, token.end
            )
            self.skip_to(";")
        else:
            body.append(Label(token.text, token.start))

    def register(self, token: Token) -> Register:
        """The register of that name. raises ParseError where none is declared"""
        if not isinstance(found := self.find(token.text), Register):
            declared = [name for scope in self.scopes for name in (*scope.names, *scope.ranges)]
            raise self.cursor.error(f"'{token.text}' is not declared{nearest(token.text, declared)}", token)
        return found

    def find(self, name: str) -> Register | OperandGroup | str | None:
        """What a name means here: a register, a vector of them, or a variable, by its name in the function."""
        return next((found for scope in reversed(self.scopes) if (found := scope.find(name)) is not None), None)

    def operand(self) -> Operand | None:
        cursor = self.cursor
        token = cursor.token
        match token.text:
            case "!":
                cursor.advance()
                return Negated(self.register(cursor.expect_kind(PtxTokenKind.NAME, "a predicate")))
            case "{" | "(":
                return self.group("}" if token.text == "{" else ")")
            case "[":
                return self.address()
            case _ if token.kind is PtxTokenKind.NAME and token.text not in ("generic", "WARP_SZ"):
                cursor.advance()
                if cursor.accept("|"):
                    both = token, cursor.expect_kind(PtxTokenKind.NAME, "a register")
                    return Pair(*(None if each.text == "_" else self.register(each) for each in both))
                return None if token.text == "_" else self.named(token)
            case _:
                return self.constant()

    def group(self, end: str) -> OperandGroup:
        cursor = self.cursor
        if cursor.peek().kind is PtxTokenKind.DIRECTIVE:
            raise cursor.unexpected("an operand")
        cursor.advance()
        with cursor.nested():
            return OperandGroup(tuple(cursor.items(end, self.operand, "the operand")))

    def named(self, token: Token) -> Operand | None:
        """A register or a vector of them, a special register, or the address of a variable."""
        found = self.find(token.text)
        if isinstance(found, Register | OperandGroup):
            return found
        if found is None and _SPECIAL.match(token.text):
            return Special(token.text[1:])
        name, _, parts = token.text.rpartition(".")
        if found is None and _PARTS.fullmatch(parts) and isinstance(whole := self.find(name), Register):
            return Selected(whole, parts)
        symbol = self.symbol(token, found)
        return SymbolAddress(symbol, self.element(symbol, token) if self.cursor.accept("[") else self.offset())

    def element(self, name: str, token: Token) -> int:
        """`3]` of `mov.u64 %rd1, array[3]`, which is the address of an element: bytes. raises ParseError"""
        own = self.function.variables if self.function is not None else ()
        known = (*own, *self.found.variables.values())
        array = next((each for each in known if each.name == name and each.count is not None), None)
        if array is None:
            raise self.cursor.error(f"'{token.text}' is no array", token)
        number = self.integer("the element's number")
        self.cursor.expect("]", "after the element's number")
        return number * SIZES[array.type]

    def symbol(self, token: Token, found: OperandGroup | str | None) -> str:
        """The name of a variable or a function, for what `find` says. raises ParseError for a register that is not declared"""
        if isinstance(found, str):
            return found
        return self.register(token).name if token.text.startswith("%") else token.text

    def address(self) -> Address:
        """`[%rd1+8]`"""
        cursor = self.cursor
        cursor.advance()
        base: Register | SymbolAddress | None = None
        if cursor.token.kind is PtxTokenKind.NAME:
            token = cursor.advance()
            found = self.find(token.text)
            base = found if isinstance(found, Register) else SymbolAddress(self.symbol(token, found))
            offset = self.offset()
        else:
            offset = self.integer("an address")
        coordinates = None
        if cursor.accept(","):
            found = self.operand()
            coordinates = found if isinstance(found, OperandGroup) else OperandGroup((found,))
        cursor.expect("]", "after the address")
        return Address(base, offset, coordinates)
