"""StableHLO text to a tree of functions, ops and regions (`tree`), by recursive descent; pretty and generic form.

    program  := alias* (module | function*) alias*
    module   := 'module' symbol? ('attributes' attributes)? '{' function* '}' location?   | "builtin.module"() ({ ... })
    function := 'func.func' word? symbol '(' parameters ')' ('->' types)? ('attributes' attributes)? region  | "func.func"() ...
    op       := (values '=')? (generic | pretty) location?
    generic  := string '(' values ')' ('<' attributes '>')? ('(' regions ')')? attributes? ':' types '->' types

Pretty forms are tables in `syntax`. Each use of a value is looked up when it is read: an undefined name, a name defined twice and a
written type that differs from the value's are errors at that name.
Source: MLIR language reference; StableHLO's ODS declarations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import array_type, dims_of, is_array
from xla_emitters.errors import ParseError, Place, Unsupported, VerifyError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.attributes import (
    Attributes,
    TypeValue,
    parse_attribute,
    parse_dictionary,
    parse_labels,
    parse_struct,
)
from xla_emitters.text.stablehlo.lexer import STAGE, Alias, Cursor, Token, TokenKind, unquoted
from xla_emitters.text.stablehlo.literals import Elided, Literal
from xla_emitters.text.stablehlo.locations import Location, parse_location
from xla_emitters.text.stablehlo.spellings import REGIONS, may_broadcast, renamed
from xla_emitters.text.stablehlo.syntax import (
    FORMAT,
    KEYS,
    NO_TYPES,
    OPERAND_TYPES_ONLY,
    OTHER_TYPES,
    RESULT_TYPES_ONLY,
    SAME_TYPES,
    VALUE_FIRST,
    WORDS,
)
from xla_emitters.text.stablehlo.tree import Function, Op, Program, Region, Value
from xla_emitters.text.stablehlo.types import TRUTH, parse_type, parse_types

DIALECTS = ("stablehlo", "chlo", "mhlo", "check", "func", "sdy", "arith", "tensor", "shape")
_SPLIT = re.compile(r"^// -----", re.MULTILINE)
"""The line between the parts of a file for MLIR's --split-input-file."""
_RETURNS = ("return", "func.return", "stablehlo.return", "sdy.return", "shape.assuming_yield")
_CALLS = ("call", "func.call")
_QUOTED = {"shape.cstr_require": "msg", "arith.cmpi": "predicate"}
"""Ops with a string in their pretty form -> its attribute."""
_MODULES = ("module", "builtin.module", '"builtin.module"')
_COMPUTING = ("stablehlo", "chlo", "mhlo", "check", "func", "arith", "tensor")
"""The dialects of which no op may be beside the functions."""
_OP = re.compile(r'"?\w+(?:\.[\w.$]+)+"?\Z')
_FUNCTIONS = ("func.func", "func", '"func.func"', '"func"', "builtin.func", '"builtin.func"')


class TreeParser:
    """Reads one text.

    aliases  the locations `#loc1`, complete after the whole text has been read
    """

    def __init__(self, source: Source):
        self.source = source
        self.cursor = Cursor(source)
        self.aliases: dict[str, Location] = {}
        self._values: dict[str, Value] = {}
        self._skipped: dict[str, Token] = {}
        self._meshes: dict[str, str] = {}

    # ---------------------------------------------------------------------------------------------------------- program

    def program(self) -> Program:
        cursor = self.cursor
        program: Program | None = None
        functions = list[Function]()
        while cursor.token.kind is not TokenKind.END:
            token = cursor.token
            if (program or functions) and (line := _SPLIT.search(self.source.text, cursor.previous.end, token.start)):
                raise Unsupported(
                    "a second module after '// -----': a file holds one",
                    stage=STAGE,
                    place=self.source.place(line.start(), line.end()),
                    help="write each part to a file of its own",
                )
            if token.kind is TokenKind.ATTRIBUTE or token.kind is TokenKind.DIALECT_TYPE:
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
            program = Program("module", Attributes(cursor, "module", cursor.token))
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
        cursor = self.cursor
        if cursor.at("{"):
            parse_dictionary(cursor, attributes)
        cursor.expect(":", "before the type of an op")
        parse_types(cursor)
        cursor.expect("->", "between the types")
        parse_types(cursor)

    def _alias(self) -> None:
        cursor = self.cursor
        token = cursor.advance()
        cursor.expect("=", f"after '{token.text}'")
        if cursor.at("loc"):
            self.aliases[token.text] = parse_location(cursor)
            return
        start = cursor.token.start
        # An attribute may be followed by its type, and so may the definition of an alias.
        is_type = token.kind is TokenKind.DIALECT_TYPE
        value = parse_attribute(cursor)
        if is_type and not isinstance(value, TypeValue):
            value = None  # a type that no value may have; its use says so
        elif is_type:
            value = value.types
        if value is not None:
            cursor.aliases[token.text] = Alias(value, cursor.source.text[start : cursor.previous.end])

    def _module(self) -> Program:
        cursor = self.cursor
        token = cursor.advance()
        name = "module"
        attributes = Attributes(cursor, "module", token)
        is_generic = token.kind is TokenKind.STRING
        if is_generic:
            cursor.expect("(", "after the name of an op")
            cursor.expect(")", "after the operands: a module has none")
            self._optional_properties(attributes)
            cursor.expect("(", "before the module's region")
        else:
            if cursor.token.kind is TokenKind.SYMBOL:
                name = self._symbol()
            if cursor.accept("attributes"):
                parse_dictionary(cursor, attributes)
        program = Program(name, attributes)
        start = cursor.expect("{", "before the functions of a module")
        while not cursor.at("}"):
            token = cursor.token
            if token.kind is TokenKind.END:
                raise cursor.error("this module is not closed", start, details=("got the end of the text",))
            if token.text in _FUNCTIONS:
                self._add(program, self._function())
            elif token.text in _MODULES:
                raise self._unsupported("a module inside a module is not taken", token)
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
        while cursor.advance().kind is not TokenKind.END:
            after = cursor.token
            if after.text in ("(", "[", "{"):
                opened += 1
            elif after.text in (")", "]", "}"):
                opened -= 1
            elif after.kind is TokenKind.SYMBOL and symbol.startswith("op ") and not opened:
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
        starts = token.text in _FUNCTIONS or token.text in _MODULES or token.kind is TokenKind.ATTRIBUTE
        return starts or _OP.match(token.text) is not None

    def _vhlo(self, token: Token) -> Unsupported:
        return Unsupported(
            f"{token.text} is of VHLO, the form in which StableHLO is stored; this reads StableHLO itself",
            stage=STAGE,
            place=self._place(token),
            help="stablehlo-opt --vhlo-to-version=target=current --vhlo-legalize-to-stablehlo FILE > FILE.mlir",
        )

    def _add(self, program: Program, function: Function) -> None:
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

    def _function(self) -> Function:
        return self._generic_function() if self.cursor.token.kind is TokenKind.STRING else self._pretty_function()

    def _pretty_function(self) -> Function:
        cursor = self.cursor
        token = cursor.advance()
        attributes = Attributes(cursor, "func.func", token)
        visibility = cursor.advance().text if cursor.at("public", "private", "nested") else "public"
        name_token = cursor.token
        name = self._symbol()
        self._values = {}
        body = Region(None, name_token)
        function = Function(name, name_token, body, [], attributes, is_public=visibility == "public")
        cursor.expect("(", "before the parameters")
        types = list[Attribute]()
        while not cursor.at(")"):
            if body.arguments or types:
                cursor.expect(",", "or ')' after a parameter")
            if cursor.token.kind is TokenKind.VALUE or body.arguments:
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
        if self.cursor.at("{"):
            parse_dictionary(self.cursor, Attributes(self.cursor, "a parameter", at))
        self._optional_location()

    def _parameter(self, function: Function) -> None:
        cursor = self.cursor
        token = cursor.expect_kind(TokenKind.VALUE, "a parameter")
        cursor.expect(":", "after the name of a parameter")
        self._define(Value(token.text[1:], parse_type(cursor), token, function.body))
        function.body.arguments.append(self._values[token.text[1:]])
        found = Attributes(cursor, f"parameter {token.text}", token)
        if cursor.at("{"):
            parse_dictionary(cursor, found)
        function.parameter_attributes.append(found)
        function.parameter_locations.append(self._optional_location())

    def _function_results(self, function: Function) -> None:
        cursor = self.cursor
        if not cursor.accept("("):
            function.results.append(parse_type(cursor))
            function.result_attributes.append(Attributes(cursor, "a result", cursor.token))
            return

        def result() -> None:
            found = Attributes(cursor, "a result", cursor.token)
            function.results.append(parse_type(cursor))
            if cursor.at("{"):
                parse_dictionary(cursor, found)
            function.result_attributes.append(found)

        cursor.items(")", result, "a type")

    def _generic_function(self) -> Function:
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
        function = Function(attributes.string("sym_name"), token, body, list(types.outputs), attributes)
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
        cursor = Cursor(self.source, self.cursor.aliases)
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

    # ----------------------------------------------------------------------------------------------------------- regions

    def _region(self, around: Region, arguments: Sequence[tuple[Token, Attribute]] = ()) -> Region:
        """Consumes `{ ... }`; `arguments` are those of pretty forms, which name them before the brace."""
        region = Region(around, self.cursor.token)
        outside = self._values
        self._values = dict(outside)
        for token, ir_type in arguments:
            region.arguments.append(self._define(Value(token.text[1:], ir_type, token, region)))
        with self.cursor.nested():
            self._region_ops(region)
        self._values = outside
        return region

    def _region_ops(self, region: Region) -> list[Location | None]:
        """Consumes `{ ^bb0(arguments): ops }`; returns the arguments' locations."""
        cursor = self.cursor
        start = cursor.expect("{", "before the ops of a region")
        locations = list[Location | None]()
        if cursor.token.kind is TokenKind.BLOCK:
            cursor.advance()

            def argument() -> None:
                token = cursor.expect_kind(TokenKind.VALUE, "an argument")
                cursor.expect(":", "after the name of an argument")
                value = Value(token.text[1:], parse_type(cursor), token, region)
                region.arguments.append(self._define(value))
                locations.append(self._optional_location())

            if cursor.accept("("):
                cursor.items(")", argument, "an argument")
            cursor.expect(":", "after the arguments of a block")
        while not cursor.at("}"):
            if cursor.token.kind is TokenKind.END:
                raise cursor.error("this region is not closed", start, details=("got the end of the text",))
            if cursor.token.kind is TokenKind.BLOCK:
                raise self._unsupported("a region of several blocks is not taken", cursor.token)
            if region.ops and region.ops[-1].name in _RETURNS:
                raise cursor.error("an op after the return of its region", cursor.token)
            region.ops.append(self._op(region))
        end = cursor.advance()
        if not region.ops or region.ops[-1].name not in _RETURNS:
            raise cursor.error("this region does not end in a return", end)
        return locations

    # --------------------------------------------------------------------------------------------------------------- ops

    def _op(self, region: Region) -> Op:
        cursor = self.cursor
        results = self._result_names()
        token = cursor.token
        if token.kind is TokenKind.STRING:
            name = renamed(unquoted(cursor.advance().text))
            op = Op(name, token, Attributes(cursor, name, token))
            self._check_dialect(op)
            operand_types, result_types = self._generic(op, region)
        elif token.kind is TokenKind.WORD:
            cursor.advance()
            name = renamed(token.text)
            op = Op(name, token, Attributes(cursor, name, token))
            self._check_dialect(op)
            operand_types, result_types = self._pretty(op, region)
        else:
            raise cursor.unexpected("an op such as stablehlo.add")
        op.location = self._optional_location()
        if may_broadcast(unquoted(token.text) if token.kind is TokenKind.STRING else token.text):
            self._spell_out(op)
        self._check_operands(op, operand_types)
        self._define_results(op, region, results, result_types)
        return op

    def _spell_out(self, op: Op) -> None:
        """Makes CHLO's op of one whose operands have different sizes, or say to which dimensions of the result theirs belong."""
        sizes = [dims_of(value.type) if is_array(value.type) else None for value in op.operands]
        if "broadcast_dimensions" in op.attributes or len(set(sizes)) > 1:
            op.name = f"chlo.broadcast_{op.opcode}"

    def _check_dialect(self, op: Op) -> None:
        dialect, dot, _ = op.name.partition(".")
        if op.name in (*_RETURNS, *_CALLS) or (dot and dialect in DIALECTS):
            return
        if not dot:
            help = f"ops are written with their dialect: stablehlo.{op.name}"
            raise self.cursor.error(f"no op '{op.name}'", op.token, help=help)
        if dialect == "vhlo":
            raise self._vhlo(op.token)
        raise self._unsupported(f"ops of the dialect '{dialect}' are not taken: '{op.name}'", op.token)

    def _result_names(self) -> list[tuple[Token, int]]:
        """Consumes `%a, %b:2 =`."""
        cursor = self.cursor
        found = list[tuple[Token, int]]()
        while cursor.token.kind is TokenKind.VALUE:
            token = cursor.advance()
            count = 1
            if cursor.accept(":"):
                count = cursor.integer("the number of results")
            found.append((token, count))
            if not cursor.accept(","):
                break
        if found:
            cursor.expect("=", "after the names of the results")
        return found

    def _define_results(
        self, op: Op, region: Region, names: list[tuple[Token, int]], result_types: Sequence[Attribute]
    ) -> None:
        count = sum(number for _, number in names)
        if names and count != len(result_types):
            raise self.cursor.error(f"'{op.name}' has {len(result_types)} results, and {count} are named", names[0][0])
        types = iter(result_types)
        if not names:
            op.results = [Value("", ir_type, op.token, region, op) for ir_type in types]
            return
        for token, number in names:
            plain = token.text[1:]
            if "#" in plain:
                raise self.cursor.error("a result is named without '#'", token)
            for i in range(number):
                name = plain if number == 1 else f"{plain}#{i}"
                op.results.append(self._define(Value(name, next(types), token, region, op)))
            if number != 1 and plain in self._values:
                raise self._twice(token, self._values[plain])

    def _define(self, value: Value) -> Value:
        if (other := self._values.get(value.name)) is not None:
            raise self._twice(value.token, other)
        self._values[value.name] = value
        return value

    def _twice(self, token: Token, other: Value) -> VerifyError:
        return VerifyError(
            f"{token.text} is defined twice",
            stage="stablehlo.verify",
            place=self._place(token),
            notes=((self._place(other.token), "first defined here"),),
        )

    def _operand(self, op: Op, region: Region) -> None:
        token = self.cursor.expect_kind(TokenKind.VALUE, "an operand")
        name = token.text[1:]
        value = self._values.get(name)
        if value is None and name.endswith("#0"):
            value = self._values.get(name[:-2])
        if value is None:
            raise self._undefined(token)
        region.uses(value)
        op.operands.append(value)
        op.spans.append(token)

    def _undefined(self, token: Token) -> VerifyError:
        name = token.text[1:]
        if f"{name}#0" in self._values:
            count = sum(known.startswith(f"{name}#") for known in self._values)
            help = f"it has {count} results: {token.text}#0 to {token.text}#{count - 1}"
        else:
            help = nearest(name, self._values).removeprefix("; ").replace("'", "'%", 1)
        return VerifyError(
            f"no value {token.text} before this op", stage="stablehlo.verify", place=self._place(token), help=help
        )

    def _check_operands(self, op: Op, types: Sequence[Attribute] | None) -> None:
        """Checks that the written types are those of the values."""
        if types is None:
            return
        if len(types) != len(op.operands):
            raise self.cursor.error(
                f"'{op.name}' has {len(op.operands)} operands, and the types of {len(types)} are written", op.token
            )
        for value, token, ir_type in zip(op.operands, op.spans, types, strict=True):
            if value.type is not ir_type and value.type != ir_type:
                raise VerifyError(
                    f"{token.text} is written with a type that is not its own",
                    stage="stablehlo.verify",
                    place=self._place(token),
                    details=(f"written {ir_type}; it is {value.type}",),
                    notes=((self._place(value.token), f"{token.text} is defined here"),),
                )

    # ------------------------------------------------------------------------------------------------------ generic form

    def _generic(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        cursor = self.cursor
        cursor.expect("(", "after the name of an op")
        cursor.items(")", lambda: self._operand(op, region), "an operand")
        if cursor.at("["):
            raise self._unsupported("ops with successors are not taken", cursor.token)
        self._optional_properties(op.attributes)
        self._optional_regions(op, region)
        if cursor.at("{"):
            parse_dictionary(cursor, op.attributes)
        cursor.expect(":", f"before the type of '{op.name}'")
        if not cursor.at("("):
            raise cursor.unexpected("'(' before the types of the operands")
        operand_types = parse_types(cursor)
        cursor.expect("->", "after the types of the operands")
        return operand_types, parse_types(cursor)

    def _optional_regions(self, op: Op, region: Region) -> None:
        """Consumes `({...}, {...})`."""
        cursor = self.cursor
        if cursor.accept("("):
            op.regions += cursor.items(")", lambda: self._region(region), "a region")

    def _optional_properties(self, attributes: Attributes) -> None:
        if self.cursor.accept("<"):
            parse_dictionary(self.cursor, attributes)
            self.cursor.expect(">", "after the properties of an op")

    # ------------------------------------------------------------------------------------------------------- pretty form

    def _pretty(self, op: Op, region: Region) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        cursor = self.cursor
        opcode = op.opcode
        if op.name in _CALLS:
            self._attribute(op, "callee")
            self._parenthesized(op, region)
        elif op.name in VALUE_FIRST:
            return self._value_first(op, VALUE_FIRST[op.name])
        elif op.name == "shape.assuming":
            return self._assuming(op, region)
        elif opcode == "constant":
            self._optional_attributes(op)
            start = cursor.token.start
            value = parse_attribute(cursor)
            op.attributes.add("value", value, start)
            self._optional_attributes(op)
            return self._types(op) if cursor.at(":") else ([], [self._literal_type(op)])
        elif opcode == "while":
            return self._while(op, region)
        elif opcode == "reduce":
            return self._reduce(op, region)
        elif op.name == "chlo.scan":
            return self._scan(op, region)
        elif opcode == "custom_call":
            self._attribute(op, "call_target_name")
            self._parenthesized(op, region)
        elif opcode == "composite":
            self._attribute(op, "name")
            self._items(op, region)
            self._optional_regions(op, region)
        elif op.name.startswith("check."):
            return self._comparison(op, region)
        elif op.name in REGIONS:
            return self._inlined(op, region)
        elif op.name in ("sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge"):
            self._operand(op, region)
            if cursor.accept("sharding"):
                cursor.expect("=", "before a sharding")
            if cursor.at("<"):
                cursor.group("a sharding")
        elif opcode in ("convolution", "dynamic_conv", "top_k"):
            cursor.expect("(", f"after '{op.name}'")
            self._items(op, region)
            cursor.expect(")", "after the operands")
            self._items(op, region)
        elif cursor.at("("):  # as the seed document has it: xla_hlo.d_reshape(%x, %shape) : types
            self._parenthesized(op, region)
        else:
            self._items(op, region)
        if cursor.accept("overflow"):
            cursor.group("the promises of integer arithmetic")
        self._optional_attributes(op)
        return self._types(op)

    def _comparison(self, op: Op, region: Region) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """`%0, %1, tolerance = 0.1 : types`, or `%0, dense<[0, 1]> : tensor<2xi32>`, whose type may be written again."""
        cursor = self.cursor
        if op.opcode.endswith("_const"):
            self._operand(op, region)
            cursor.expect(",", "before the literal")
            self._attribute(op, "value")
            if cursor.accept(","):
                self._items(op, region)
        else:
            self._items(op, region)
        self._optional_attributes(op)
        if not cursor.accept(":"):
            return None, []
        types = parse_types(cursor)
        while cursor.accept(","):
            types.append(parse_type(cursor))
        if cursor.accept("->"):
            parse_types(cursor)
        return types * len(op.operands) if len(types) == 1 else types, []

    def _value_first(self, op: Op, name: str) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """`4 : index`, `true`, `dense<[1, 2]> : tensor<2xindex>`, `[1, 2] : tensor<2xindex>`"""
        cursor = self.cursor
        self._attribute(op, name)
        self._optional_attributes(op)
        value = op.attributes.found[name].value
        if isinstance(value, Literal | Elided):
            return [], [self._literal_type(op)]
        if isinstance(value, bool) and not cursor.at(":"):
            return [], [TRUTH]
        return self._types(op)

    def _assuming(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`%witness -> (types) { ... }`"""
        self._operand(op, region)
        types = parse_types(self.cursor) if self.cursor.accept("->") else []
        op.regions.append(self._region(region))
        self._optional_attributes(op)
        return [TRUTH], types

    def _scan(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%x, ...) inits (%0, ...) dimension=1 attributes {...} {...} : (types) -> types`"""
        cursor = self.cursor
        start = cursor.token.start
        self._parenthesized(op, region)
        count = len(op.operands)
        cursor.expect("inits", "after the inputs of a scan")
        inits = Op(op.name, op.token, op.attributes)
        self._parenthesized(inits, region)
        op.operands += inits.operands
        op.spans += inits.spans
        op.attributes.add("operandSegmentSizes", [count, len(inits.operands)], start)
        while cursor.token.kind is TokenKind.WORD and cursor.token.text != "attributes":
            name = cursor.advance().text
            cursor.expect("=", "after the name of an attribute")
            self._attribute(op, name)
        if cursor.accept("attributes"):
            parse_dictionary(cursor, op.attributes)
        op.regions.append(self._region(region))
        cursor.expect(":", f"before the type of '{op.name}'")
        operands = parse_types(cursor)
        cursor.expect("->", "after the types of the operands")
        return operands, parse_types(cursor)

    def _inlined(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`<"name">(%x, ...) key=value ... (%arg: type, ...) {...} : (types) -> types`; the name and the keys do not change values."""
        cursor = self.cursor
        if cursor.at("<"):
            cursor.group("a name")
        self._parenthesized(op, region)
        while cursor.token.kind is TokenKind.WORD and cursor.token.text != "attributes":
            key = cursor.advance().text
            cursor.expect("=", "after the name of an attribute")
            op.written[key] = cursor.group("the value of an attribute")
        cursor.expect("(", "before the arguments of a region")
        arguments = cursor.items(")", self._argument, "an argument")
        op.regions.append(self._region(region, arguments))
        self._optional_attributes(op)
        cursor.expect(":", f"before the type of '{op.name}'")
        operands = parse_types(cursor)
        cursor.expect("->", "after the types of the operands")
        return operands, parse_types(cursor)

    def _literal_type(self, op: Op) -> Attribute:
        """The type of a constant, which is inside its literal."""
        value = op.attributes.found["value"].value
        if not isinstance(value, Literal | Elided):
            raise self.cursor.error("the value of a constant is a literal such as dense<0> : tensor<2xi32>", op.token)
        return array_type(value.element.ir_type, value.dims)

    def _attribute(self, op: Op, name: str) -> None:
        start = self.cursor.token.start
        op.attributes.add(name, parse_attribute(self.cursor, is_typed=False), start)

    def _optional_attributes(self, op: Op) -> None:
        if self.cursor.accept("attributes") or self.cursor.at("{"):
            parse_dictionary(self.cursor, op.attributes)

    def _indices(self, op: Op, region: Region) -> None:
        """`%x[%i, %j]`, an element."""
        cursor = self.cursor
        cursor.expect("[", "before the indices of an element")
        cursor.items("]", lambda: self._operand(op, region), "an index")

    def _parenthesized(self, op: Op, region: Region) -> None:
        cursor = self.cursor
        cursor.expect("(", "before the operands")
        cursor.items(")", lambda: self._operand(op, region), "an operand")

    def _items(self, op: Op, region: Region) -> None:
        """Consumes operands, words and `key = value`."""
        cursor = self.cursor
        opcode = op.opcode
        keys, words = KEYS.get(opcode, {}), iter(WORDS.get(opcode, ()))
        first = True
        while True:
            token = cursor.token
            if token.kind is TokenKind.VALUE:
                self._operand(op, region)
                if cursor.at("["):
                    if op.name == "tensor.extract":
                        self._indices(op, region)
                    else:
                        self._subscript(op)
            elif token.kind is TokenKind.STRING and op.name in _QUOTED:
                self._attribute(op, _QUOTED[op.name])
            elif token.kind is TokenKind.WORD and cursor.peek().text == "=":
                cursor.advance()
                cursor.advance()
                if (name := keys.get(token.text)) is None:
                    listed = ", ".join(keys) or "none"
                    raise cursor.error(
                        f"'{op.name}' has no '{token.text} ='{nearest(token.text, keys)}",
                        token,
                        help=f"it takes: {listed}",
                    )
                self._keyed(op, token, name)
            elif token.kind is TokenKind.WORD and token.text not in ("attributes", "loc"):
                if (name := next(words, None)) is None:
                    raise cursor.unexpected(f"an operand of '{op.name}'")
                cursor.advance()
                op.attributes.add(name, token.text, token.start)
            elif first or not cursor.previous.text == ",":
                return
            else:
                raise cursor.unexpected(f"an operand or an attribute of '{op.name}' after ','")
            first = False
            if not cursor.accept(","):
                # dim_numbers of a convolution follow the parenthesis without a comma.
                if not (cursor.token.kind is TokenKind.WORD and cursor.peek().text == "="):
                    return

    def _keyed(self, op: Op, key: Token, name: str) -> None:
        """Consumes the value after `key =`."""
        cursor = self.cursor
        start = cursor.token.start
        if name == "dimension_numbers":
            op.attributes.add(name, parse_labels(cursor), start)
        elif name == "window":
            self._window(op)
        elif name in ("batching_dims", "contracting_dims"):
            lhs = parse_attribute(cursor)
            op.attributes.add(f"lhs_{name}", lhs, start)
            cursor.expect("x", f"between the two lists of '{key.text}'")
            start = cursor.token.start
            op.attributes.add(f"rhs_{name}", parse_attribute(cursor), start)
        elif name == "format":
            token = cursor.expect_kind(TokenKind.WORD, "a format such as e5m10")
            if (match := re.fullmatch(FORMAT, token.text)) is None:
                raise cursor.error(f"no format {token}", token, help="e5m10: five bits of exponent, ten of mantissa")
            op.attributes.add("exponent_bits", int(match[1]), start)
            op.attributes.add("mantissa_bits", int(match[2]), start)
        elif name == "algorithm" and cursor.at("<"):
            op.attributes.add(name, parse_struct(cursor), start)
        else:
            op.attributes.add(name, parse_attribute(cursor, is_typed=False), start)

    _WINDOW: ClassVar = {
        "stride": "window_strides",
        "pad": "padding",
        "lhs_dilate": "lhs_dilation",
        "rhs_dilate": "rhs_dilation",
        "reverse": "window_reversal",
    }

    def _window(self, op: Op) -> None:
        """`{stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}`"""
        cursor = self.cursor
        found = Attributes(cursor, "window", cursor.token)
        parse_dictionary(cursor, found)
        for key, attr in found.found.items():
            if (name := self._WINDOW.get(key)) is None:
                raise ParseError(
                    f"a window has no '{key} ='{nearest(key, self._WINDOW)}",
                    stage=STAGE,
                    place=cursor.source.place(attr.start, attr.end),
                )
            op.attributes.found[name] = attr

    def _subscript(self, op: Op) -> None:
        """`%t[0]`, an element of a tuple; `%x[0:4, 1:8:2]`, a slice."""
        cursor = self.cursor
        start = cursor.advance().start
        if op.opcode == "get_tuple_element":
            op.attributes.add("index", cursor.integer("the number of an element"), start)
            cursor.expect("]", "after the number of an element")
            return

        def limits() -> tuple[int, int, int]:
            first = cursor.integer("the start of a range")
            cursor.expect(":", "after the start of a range")
            limit = cursor.integer("the limit of a range")
            return first, limit, cursor.integer("the stride of a range") if cursor.accept(":") else 1

        rows = cursor.items("]", limits, "a range")
        for i, name in enumerate(("start_indices", "limit_indices", "strides")):
            op.attributes.add(name, [row[i] for row in rows], start)

    def _types(self, op: Op) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """Consumes `: types`; returns those of the operands (None if omitted) and of the results."""
        cursor = self.cursor
        others = OTHER_TYPES.get(op.name)
        if not cursor.accept(":"):
            if op.name in _RETURNS and not op.operands:
                return [], []
            if others is not None and op.name in NO_TYPES:
                return others([], len(op.operands))
            raise cursor.unexpected(f"':' before the types of '{op.name}'")
        if cursor.at("("):
            operands = parse_types(cursor)
            cursor.expect("->", "after the types of the operands")
            return operands, parse_types(cursor)
        types = [parse_type(cursor)]
        while cursor.accept(","):
            types.append(parse_type(cursor))
        count, opcode = len(op.operands), op.opcode
        if cursor.accept("->") or cursor.accept("to"):
            return types * count if len(types) == 1 else types, parse_types(cursor)
        if others is not None:
            if not all(map(is_array, types)):
                raise cursor.error(f"'{op.name}' takes arrays and scalars", op.token)
            return others(types, count)
        if opcode in OPERAND_TYPES_ONLY:
            return types, []
        if opcode in SAME_TYPES:
            return types, types
        if opcode in RESULT_TYPES_ONLY:
            return None, types
        if opcode == "select" and len(types) == 2 and count == 3:
            return [types[0], types[1], types[1]], types[1:]
        if len(types) != 1:
            raise cursor.error(f"the types of '{op.name}' are one type, or (types) -> types", op.token)
        return types * count, types

    def _while(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%arg = %init, ...) : types attributes {...} cond {...} do {...}`"""
        cursor = self.cursor

        def value() -> Token:
            name = cursor.expect_kind(TokenKind.VALUE, "a value of the loop")
            cursor.expect("=", "before its initial value")
            self._operand(op, region)
            return name

        cursor.expect("(", "before the values of a loop")
        names = cursor.items(")", value, "a value of the loop")
        types = list[Attribute]()
        if cursor.accept(":"):
            types.append(parse_type(cursor))
            while cursor.accept(","):
                types.append(parse_type(cursor))
        if len(types) != len(names):
            raise cursor.error(f"a loop of {len(names)} values has {len(types)} types", op.token)
        if cursor.accept("attributes"):
            parse_dictionary(cursor, op.attributes)
        arguments = list(zip(names, types, strict=True))
        for keyword in ("cond", "do"):
            cursor.expect(keyword, f"before the {'condition' if keyword == 'cond' else 'body'} of a loop")
            op.regions.append(self._region(region, arguments))
        return types, types

    def _reduce(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%x init: %0), (%y init: %1) applies stablehlo.add across dimensions = [0] : types`, or with `reducer(...) {...}`."""
        cursor = self.cursor
        inits = list[tuple[Value, Token]]()
        while True:
            cursor.expect("(", "before an array and its initial value")
            self._operand(op, region)
            cursor.expect("init", "after an array")
            cursor.expect(":", "after 'init'")
            self._operand(op, region)
            inits.append((op.operands.pop(), op.spans.pop()))
            cursor.expect(")", "after an initial value")
            if not cursor.accept(","):
                break
        for value, token in inits:
            op.operands.append(value)
            op.spans.append(token)
        if cursor.accept("applies"):
            token = cursor.expect_kind(TokenKind.WORD, "the op that the reduction applies")
            op.attributes.add("applies", token.text, token.start)
        cursor.expect("across", "before the dimensions")
        cursor.expect("dimensions", "after 'across'")
        cursor.expect("=", "after 'dimensions'")
        self._attribute(op, "dimensions")
        self._optional_attributes(op)
        types = self._types(op)
        assert types[0] is not None
        if cursor.accept("reducer"):
            pairs = list[tuple[tuple[Token, Attribute], ...]]()
            while cursor.accept("("):
                first = self._argument()
                cursor.expect(",", "between the two arguments")
                pairs.append((first, self._argument()))
                cursor.expect(")", "after the two arguments")
            op.regions.append(self._region(region, [pair[side] for side in range(2) for pair in pairs]))
        return types[0], types[1]

    def _argument(self) -> tuple[Token, Attribute]:
        token = self.cursor.expect_kind(TokenKind.VALUE, "an argument")
        self.cursor.expect(":", "after the name of an argument")
        ir_type = parse_type(self.cursor)
        self._optional_location()
        return token, ir_type

    # ------------------------------------------------------------------------------------------------------------ pieces

    def _symbol(self) -> str:
        return self._symbol_of(self.cursor.expect_kind(TokenKind.SYMBOL, "a name such as @main"))

    def _symbol_of(self, token: Token) -> str:
        text = token.text[1:]
        return unquoted(text) if text.startswith('"') else text

    def _optional_location(self) -> Location | None:
        return parse_location(self.cursor) if self.cursor.token.text == "loc" else None

    def _unsupported(self, message: str, token: Token) -> Unsupported:
        return Unsupported(message, stage=STAGE, place=self._place(token))

    def _place(self, token: Token) -> Place:
        return self.source.place(token.start, token.end)
