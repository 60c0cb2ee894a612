"""StableHLO text to a tree of functions, ops and regions (`tree`), by recursive descent.

    program  := alias* (module | function*) alias*
    module   := 'module' symbol? ('attributes' attributes)? '{' function* '}' location?   | "builtin.module"() ({ ... })
    function := 'func.func' word? symbol '(' parameters ')' ('->' types)? ('attributes' attributes)? region  | "func.func"() ...

Ops and regions are read by `op_parser` and `pretty_forms`. Source: MLIR language reference; StableHLO's ODS declarations.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from xla_emitters.errors import ParseError, Unsupported, VerifyError
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.attribute_values import (
    Attributes,
    TypeValue,
    optional_dictionary,
    parse_attribute,
    parse_dictionary,
)
from xla_emitters.text.stablehlo.pretty_forms import PrettyForms
from xla_emitters.text.stablehlo.spellings import renamed
from xla_emitters.text.stablehlo.stablehlo_lexer import (
    STAGE,
    Alias,
    StableHloCursor,
    StableHloTokenKind,
    Token,
    unquoted,
)
from xla_emitters.text.stablehlo.stablehlo_locations import Location, parse_location
from xla_emitters.text.stablehlo.stablehlo_types import parse_both_types, parse_type
from xla_emitters.text.stablehlo.tree import Region, StableHloFunction, StableHloModule, Value

_SPLIT = re.compile(r"^// -----", re.MULTILINE)
"""The line between the parts of a file for MLIR's --split-input-file."""
_MODULES = ("module", "builtin.module", '"builtin.module"')
_COMPUTING = ("stablehlo", "chlo", "mhlo", "check", "func", "arith", "tensor")
"""The dialects of which no op may be beside the functions."""
_OP = re.compile(r'"?\w+(?:\.[\w.$]+)+"?\Z')
_FUNCTIONS = ("func.func", "func", '"func.func"', '"func"', "builtin.func", '"builtin.func"')


class TreeParser(PrettyForms):
    """Reads one text.

    aliases  the locations `#loc1`, complete after the whole text has been read
    """

    def __init__(self, source: Source):
        super().__init__(source)
        self.aliases: dict[str, Location] = {}
        self._skipped: dict[str, Token] = {}
        self._meshes: dict[str, str] = {}

    # ---------------------------------------------------------------------------------------------------------- program

    def program(self) -> StableHloModule:
        cursor = self.cursor
        program: StableHloModule | None = None
        functions = list[StableHloFunction]()
        while cursor.token.kind is not StableHloTokenKind.END:
            token = cursor.token
            if (program or functions) and (line := _SPLIT.search(self.source.text, cursor.previous.end, token.start)):
                raise Unsupported(
                    "a second module after '// -----': a file holds one",
                    stage=STAGE,
                    place=self.source.place(line.start(), line.end()),
                    help="write each part to a file of its own",
                )
            if token.kind is StableHloTokenKind.ATTRIBUTE or token.kind is StableHloTokenKind.DIALECT_TYPE:
                self._alias()
            elif token.text in _MODULES:
                if program is not None:
                    raise cursor.error("a second module", token)
                program = self._module()
            elif token.text in _FUNCTIONS:
                functions.append(self._function())
            elif token.text == "{-#":
                cursor.skip_to(len(cursor.source.text))
            elif not self._skipped_op():
                raise self._not_a_program(token)
        if program is None:
            program = StableHloModule("module", Attributes(cursor, "module", cursor.token))
        for function in functions:
            self._add(program, function)
        program.skipped, program.meshes = self._skipped, self._meshes
        if not program.functions:
            found = dict.fromkeys(f"{token} is not taken" for token in program.skipped.values())
            help = "func.func @main(...) { ... }"
            raise cursor.error("no function in this text", cursor.token, details=tuple(found)[:3], help=help)
        return program

    def _not_a_program(self, token: Token) -> ParseError:
        if token.text == "HloModule" or token.text == "ENTRY" or re.match(r"\w[\w.\-]*\s*\{", self.source.text):
            return self.cursor.error("this is HLO text, not StableHLO", token, help="parse_hlo reads it")
        return self.cursor.unexpected("a module or a function: module @name { ... } or func.func @main(...) { ... }")

    def _generic_tail(self, attributes: Attributes) -> None:
        """Consumes the text after the region of a module or a function in generic form: `{attributes} : (types) -> types`."""
        optional_dictionary(self.cursor, attributes)
        self.cursor.expect(":", "before the type of an op")
        parse_both_types(self.cursor)

    def _alias(self) -> None:
        cursor = self.cursor
        token = cursor.advance()
        cursor.expect("=", f"after '{token.text}'")
        if cursor.at("loc"):
            self.aliases[token.text] = parse_location(cursor)
            return
        start = cursor.token.start
        # An attribute may be followed by its type, and so may the definition of an alias.
        is_type = token.kind is StableHloTokenKind.DIALECT_TYPE
        value = parse_attribute(cursor)
        if is_type and not isinstance(value, TypeValue):
            value = None  # a type that no value may have; its use says so
        elif is_type:
            value = value.types
        if value is not None:
            cursor.aliases[token.text] = Alias(value, cursor.source.text[start : cursor.previous.end])

    def _module(self) -> StableHloModule:
        cursor = self.cursor
        token = cursor.advance()
        name = "module"
        attributes = Attributes(cursor, "module", token)
        is_generic = token.kind is StableHloTokenKind.STRING
        if is_generic:
            cursor.expect("(", "after the name of an op")
            cursor.expect(")", "after the operands: a module has none")
            self._optional_properties(attributes)
            cursor.expect("(", "before the module's region")
        else:
            if cursor.token.kind is StableHloTokenKind.SYMBOL:
                name = self._symbol()
            if cursor.accept("attributes"):
                parse_dictionary(cursor, attributes)
        program = StableHloModule(name, attributes)
        start = cursor.expect("{", "before the functions of a module")
        while not cursor.at("}"):
            token = cursor.token
            if token.kind is StableHloTokenKind.END:
                raise cursor.error("this module is not closed", start, details=("got the end of the text",))
            if token.text in _FUNCTIONS:
                self._add(program, self._function())
            elif token.text in _MODULES:
                raise cursor.unsupported("a module inside a module is not taken", token)
            elif not self._skipped_op():
                raise cursor.unexpected("a function: func.func @name(...) { ... }")
        cursor.advance()
        if is_generic:
            cursor.expect(")", "after the module's region")
            self._generic_tail(attributes)
            if "sym_name" in attributes:
                program.name = attributes.string("sym_name")
        self._optional_location()
        return program

    def _skipped_op(self) -> bool:
        """Consumes an op beside the functions, of a dialect that says nothing about their values; returns whether there was one.

        Its form is not known. It ends where a line begins with the next op, outside of parentheses, brackets and braces.
        raises Unsupported for VHLO
        """
        cursor = self.cursor
        token = cursor.token
        dialect, dot, _ = token.text.strip('"').partition(".")
        if not dot or _OP.match(token.text) is None or renamed(f"{dialect}.add").partition(".")[0] in _COMPUTING:
            return False
        if dialect == "vhlo":
            raise self._vhlo(token)
        opened, symbol = 0, f"op {len(self._skipped)}"
        while cursor.advance().kind is not StableHloTokenKind.END:
            after = cursor.token
            if after.text in ("(", "[", "{"):
                opened += 1
            elif after.text in (")", "]", "}"):
                opened -= 1
            elif after.kind is StableHloTokenKind.SYMBOL and symbol.startswith("op ") and not opened:
                symbol = self._symbol_of(after)
            if opened < 0 or (opened == 0 and self._begins_an_op(after)):
                break
        if dialect == "sdy":
            text = self.source.text[token.start : cursor.token.start]
            if (named := re.search(r'@"?([\w.$-]+)|sym_name = "([^"]+)"', text)) is not None:
                self._meshes[named[1] or named[2]] = text
        else:
            self._skipped[symbol] = token
        return True

    def _begins_an_op(self, token: Token) -> bool:
        """Whether the first token of a line begins an op, or the definition of an alias."""
        text = self.source.text
        if text[text.rfind("\n", 0, token.start) + 1 : token.start].strip():
            return False
        starts = token.text in _FUNCTIONS or token.text in _MODULES or token.kind is StableHloTokenKind.ATTRIBUTE
        return starts or _OP.match(token.text) is not None

    def _add(self, program: StableHloModule, function: StableHloFunction) -> None:
        other = program.functions.get(function.name) or program.declared.get(function.name)
        if other is not None:
            raise VerifyError(
                f"function @{function.name} is defined twice",
                stage="stablehlo.verify",
                place=self._place(function.token),
                notes=((self._place(other.token), "first defined here"),),
            )
        (program.declared if function.is_declared else program.functions)[function.name] = function

    # --------------------------------------------------------------------------------------------------------- functions

    def _function(self) -> StableHloFunction:
        is_generic = self.cursor.token.kind is StableHloTokenKind.STRING
        return self._generic_function() if is_generic else self._pretty_function()

    def _pretty_function(self) -> StableHloFunction:
        cursor = self.cursor
        token = cursor.advance()
        attributes = Attributes(cursor, "func.func", token)
        visibility = cursor.advance().text if cursor.at("public", "private", "nested") else "public"
        name_token = cursor.token
        name = self._symbol()
        self._values = {}
        body = Region(None, name_token)
        function = StableHloFunction(name, name_token, body, [], attributes, is_public=visibility == "public")
        cursor.expect("(", "before the parameters")
        types = list[Attribute]()
        while not cursor.at(")"):
            if body.arguments or types:
                cursor.expect(",", "or ')' after a parameter")
            if cursor.token.kind is StableHloTokenKind.VALUE or body.arguments:
                self._parameter(function)
            else:
                types.append(parse_type(cursor))
                self._optional_dictionary(name_token)
        cursor.advance()
        if cursor.accept("->"):
            self._function_results(function)
        if cursor.accept("attributes"):
            parse_dictionary(cursor, attributes)
        if types or not cursor.at("{"):
            if cursor.at("{"):
                raise cursor.error("the parameters of a function with a body have names", name_token)
            function.is_declared = True
        else:
            self._region_ops(body)
        self._optional_location()
        return function

    def _optional_dictionary(self, at: Token) -> None:
        """Consumes attributes that nothing reads: those of a parameter without a name."""
        optional_dictionary(self.cursor, Attributes(self.cursor, "a parameter", at))
        self._optional_location()

    def _parameter(self, function: StableHloFunction) -> None:
        cursor = self.cursor
        token = cursor.expect_kind(StableHloTokenKind.VALUE, "a parameter")
        cursor.expect(":", "after the name of a parameter")
        self._define(Value(token.text[1:], parse_type(cursor), token, function.body))
        function.body.arguments.append(self._values[token.text[1:]])
        found = Attributes(cursor, f"parameter {token.text}", token)
        optional_dictionary(cursor, found)
        function.parameter_attributes.append(found)
        function.parameter_locations.append(self._optional_location())

    def _function_results(self, function: StableHloFunction) -> None:
        cursor = self.cursor
        if not cursor.accept("("):
            function.results.append(parse_type(cursor))
            function.result_attributes.append(Attributes(cursor, "a result", cursor.token))
            return

        def result() -> None:
            found = Attributes(cursor, "a result", cursor.token)
            function.results.append(parse_type(cursor))
            optional_dictionary(cursor, found)
            function.result_attributes.append(found)

        cursor.items(")", result, "a type")

    def _generic_function(self) -> StableHloFunction:
        cursor = self.cursor
        token = cursor.advance()
        attributes = Attributes(cursor, "func.func", token)
        cursor.expect("(", "after the name of an op")
        cursor.expect(")", "after the operands: a function has none")
        self._optional_properties(attributes)
        cursor.expect("(", "before the function's region")
        self._values = {}
        body = Region(None, token)
        is_declared = cursor.at("{") and cursor.peek().text == "}"
        if is_declared:
            cursor.group("a region")
        locations = [] if is_declared else self._region_ops(body)
        cursor.expect(")", "after the function's region")
        self._generic_tail(attributes)
        self._optional_location()
        types = attributes.get("function_type", TypeValue, "the type of a function").types
        if not isinstance(types, FunctionType):
            raise attributes.wrong("function_type", "the type of a function")
        if not is_declared and [argument.type for argument in body.arguments] != list(types.inputs):
            raise cursor.error("the arguments of the function's region are not those of its type", token)
        function = StableHloFunction(attributes.string("sym_name"), token, body, list(types.outputs), attributes)
        function.is_declared = is_declared
        function.is_public = attributes.string("sym_visibility", "public") == "public"
        function.parameter_attributes = self._listed(attributes, "arg_attrs", len(body.arguments))
        function.result_attributes = self._listed(attributes, "res_attrs", len(function.results))
        function.parameter_locations = locations
        return function

    def _listed(self, attributes: Attributes, name: str, count: int) -> list[Attributes]:
        """`arg_attrs = [{...}, {}]`: a set of attributes per parameter or result."""
        found = [Attributes(self.cursor, f"{name}[{i}]", attributes.at) for i in range(count)]
        if name not in attributes:
            return found
        # Reads the text again to get the places of the single attributes.
        attributes.values(name, "a list of attributes")
        cursor = StableHloCursor(self.source, self.cursor.aliases)
        cursor.skip_to(attributes.found[name].start)
        cursor.advance()
        for number in range(count + 1):
            if cursor.at("]"):
                break
            if number:
                cursor.expect(",", "or ']' after a set of attributes")
            into = found[min(number, count - 1)]
            into.cursor = cursor
            parse_dictionary(cursor, into)
        else:
            raise attributes.wrong(name, f"a list of {count} sets of attributes")
        return found

    def _symbol(self) -> str:
        return self._symbol_of(self.cursor.expect_kind(StableHloTokenKind.SYMBOL, "a name such as @main"))

    def _symbol_of(self, token: Token) -> str:
        return unquoted(token.text[1:])
