"""HLO text to the `hlo` dialect, by recursive descent; every op knows where it was written.

    module      := ('HloModule' name ':'? (',' name '=' value)*)? tables? computation+
    computation := 'ENTRY'? name signature? '{' instruction+ '}' (',' name '=' value)*
    signature   := '(' (name ':' shape (',' name ':' shape)*)? ')' '->' shape
    instruction := 'ROOT'? name '=' shape opcode '(' arguments ')' (',' name '=' value)*
    arguments   := operand (',' operand)* | number of a parameter | literal of a constant
    operand     := shape? name ('#' int)*                  '#i' takes an element of a tuple
                 | shape opcode '(' arguments ')'           an instruction of its own, named "<opcode>.anon"

Names are exact and may be written with or without `%`; they are defined before they are used, once a computation. Without ENTRY the last
computation is the entry, without ROOT the last instruction the root. A computation may stand where one is named: `calls={ ... ROOT ... }`.
The module's attributes are kept as they were written (`hlo.<name>` on the module), except `input_output_alias`, which analyses read.
Shape rules are checked as instructions are read, so that an error points at the operand in the text.
Source: spec/1 6.2, 6.7.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
    TupleType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, hint, integer_array, place_of
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import AliasAttr, dims_of, same_shape, type_text
from xla_emitters.errors import ParseError, Place, Unsupported, VerifyError
from xla_emitters.hlo_text.attributes import COMMON, COMPUTATION, SYNTAX, attributes_of
from xla_emitters.hlo_text.cursor import Cursor
from xla_emitters.hlo_text.lexer import Source, Token, TokenKind
from xla_emitters.hlo_text.literals import parse_literal
from xla_emitters.hlo_text.shapes import ShapeReader

# Opcodes of HLO that have no class yet: named in errors as legal, but not ours.
OTHER_OPCODES = frozenset(
    """add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all
    async-done async-start async-update batch-norm-grad batch-norm-inference batch-norm-training cholesky collective-broadcast
    collective-permute collective-permute-done collective-permute-start conditional copy-done copy-start custom-call domain
    dynamic-reshape fft get-dimension-size infeed opt-barrier outfeed partition-id ragged-all-to-all ragged-dot recv recv-done
    reduce-scatter replica-id rng rng-bit-generator rng-get-and-update-state scaled-dot scan select-and-scatter send send-done
    set-dimension-size sort topk triangular-solve while""".split()
)

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def parse_hlo(text: str, file: str = "<hlo>") -> ModuleOp:
    """The module that `text` describes, verified.

    file    what messages and locations call the text
    raises  ParseError if it is not HLO text, VerifyError if it breaks a rule (shapes, types, names), Unsupported for an opcode of HLO that
            has no class yet; all with the place.
    """
    return _ModuleParser(Source(text, file)).module()


@dataclass
class _Definition:
    """What a name stands for, and where it was given."""

    value: SSAValue
    token: Token


@dataclass
class _Scope:
    """One computation while it is being read."""

    name: str
    block: Block = field(default_factory=Block)
    defined: dict[str, _Definition] = field(default_factory=dict[str, _Definition])
    root: SSAValue | None = None

    def fresh(self, name: str) -> str:
        """`name`, or `name.1` ... when it is taken."""
        if name not in self.defined:
            return name
        number = 1
        while f"{name}.{number}" in self.defined:
            number += 1
        return f"{name}.{number}"


class _ModuleParser:
    def __init__(self, source: Source):
        self.source = source
        self.cursor = Cursor(source)
        self.shapes = ShapeReader(self.cursor)
        self.computations: dict[str, ComputationOp] = {}
        self._file = StringAttr(source.file)
        self._attributes: dict[type[HloOp], tuple[tuple[str, bool], ...]] = {}

    # ----------------------------------------------------------------------------------------------------------- module

    def module(self) -> ModuleOp:
        cursor = self.cursor
        name, attributes = "", dict[str, Attribute]()
        if cursor.accept("HloModule"):
            name = cursor.name("the module's name").name
            cursor.accept(":")
            attributes = self._module_attributes()
        if cursor.at(*_TABLES):
            attributes["hlo.stack_tables"] = StringAttr(self._stack_tables())
        entry: ComputationOp | None = None
        while cursor.token.kind is not TokenKind.END:
            start = cursor.token
            is_entry = start.text == "ENTRY" and cursor.peek().kind is TokenKind.NAME and bool(cursor.advance())
            computation = self._computation()
            if is_entry and entry is not None:
                raise cursor.error(
                    "a module has one ENTRY", start, details=(f"'{entry.sym_name.data}' is the entry already",)
                )
            entry = computation if is_entry else entry
        if not self.computations:
            raise cursor.unexpected("a computation", help="name { ... ROOT %r = f32[2] negate(%p) }")
        entry = entry or list(self.computations.values())[-1]
        entry.set_entry()
        name = name or f"module_{entry.sym_name.data}"
        module = ModuleOp(list(self.computations.values()), attributes, StringAttr(name))
        module.location = NameLoc(StringAttr(name), FileLineColLoc(self._file, IntAttr(1), IntAttr(1)))
        return module

    def _module_attributes(self) -> dict[str, Attribute]:
        found = dict[str, Attribute]()
        while self.cursor.accept(","):
            token = self.cursor.name("an attribute of the module")
            key = f"hlo.{_identifier(token.name)}"
            if key in found:
                raise self.cursor.error(f"attribute '{token.name}' is there twice", token)
            self.cursor.expect("=", f"after '{token.name}'")
            found[key] = (
                self._aliases()
                if token.name == "input_output_alias"
                else StringAttr(self.cursor.opaque("the attribute's value"))
            )
        return found

    def _aliases(self) -> Attribute:
        """`{ {0}: (1, {}, may-alias), ... }`"""
        cursor = self.cursor
        found = list[AliasAttr]()
        cursor.expect("{", "before the aliases")
        while not cursor.at("}"):
            if found:
                cursor.expect(",", "or '}' after an alias")
            output = self._index()
            cursor.expect(":", "after the index of an output")
            cursor.expect("(", "before the number of a parameter")
            parameter = cursor.integer("the number of a parameter")
            cursor.expect(",", "after the number of a parameter")
            index = self._index()
            kind = "may-alias"
            if cursor.accept(","):
                kind = cursor.name("'may-alias' or 'must-alias'").name
            if kind not in ("may-alias", "must-alias"):
                raise cursor.error(f"no kind of alias '{kind}'", cursor.previous, help="may-alias or must-alias")
            cursor.expect(")", "after an alias")
            found.append(AliasAttr(output, parameter, index, kind))
        cursor.advance()
        return ArrayAttr(found)

    def _index(self) -> list[int]:
        """`{}`, `{0,1}`: the way to an array in a nest of tuples."""
        found = list[int]()
        self.cursor.expect("{", "before an index into a tuple")
        while not self.cursor.at("}"):
            if found:
                self.cursor.expect(",", "or '}' after a number")
            found.append(self.cursor.integer("a number"))
        self.cursor.advance()
        return found

    def _stack_tables(self) -> str:
        """The tables that `stack_frame_id` in metadata refers to, as they stand: rows of a number and a string or a group."""
        cursor = self.cursor
        start = cursor.token.start
        while cursor.at(*_TABLES) and cursor.peek().kind is TokenKind.INT:
            cursor.advance()
            while cursor.token.kind is TokenKind.INT:
                cursor.advance()
                cursor.opaque("a row of the table")
        return self.source.text[start : cursor.previous.end]

    # ------------------------------------------------------------------------------------------------------- computation

    def _computation(self) -> ComputationOp:
        """Consumes a computation that stands by itself, and adds it to the module."""
        cursor = self.cursor
        token = cursor.name("the name of a computation")
        if token.name in self.computations:
            other = self.computations[token.name]
            raise VerifyError(
                f"computation '{token.name}' is there twice",
                stage="hlo.verify",
                place=self._place(token),
                notes=((self._place_of(other), "the other one"),),
            )
        signature = self._signature() if cursor.at("(") else None
        computation = self._body(token.name, token)
        while cursor.accept(","):
            attribute = cursor.name("an attribute of the computation")
            cursor.expect("=", f"after '{attribute.name}'")
            computation.attributes[_identifier(attribute.name)] = StringAttr(cursor.opaque("the attribute's value"))
        if signature is not None:
            self._check_signature(computation, *signature)
        return computation

    def _signature(self) -> tuple[list[Attribute], Attribute, Token]:
        cursor = self.cursor
        start = cursor.advance()
        parameters = list[Attribute]()
        while not cursor.at(")"):
            if parameters:
                cursor.expect(",", "or ')' after a parameter")
            cursor.name("the name of a parameter")
            cursor.expect(":", "after the name of a parameter")
            parameters.append(self.shapes.shape())
        cursor.advance()
        cursor.expect("->", "after the parameters")
        return parameters, self.shapes.shape(), start

    def _check_signature(
        self, computation: ComputationOp, parameters: list[Attribute], root: Attribute, token: Token
    ) -> None:
        found = [parameter.result.type for parameter in computation.parameters]
        if len(found) == len(parameters) and all(map(same_shape, [*found, computation.root.type], [*parameters, root])):
            return
        wanted, got = (
            f"({', '.join(map(type_text, types))}) -> {type_text(result)}"
            for types, result in ((parameters, root), (found, computation.root.type))
        )
        raise VerifyError(
            f"the signature of computation '{computation.sym_name.data}' is not that of its instructions",
            stage="hlo.verify",
            place=self._place(token),
            details=(f"it says {wanted}; the instructions give {got}",),
        )

    def _body(self, name: str, token: Token) -> ComputationOp:
        """Consumes `{ instructions }`."""
        cursor = self.cursor
        scope = _Scope(name)
        start = cursor.expect("{", f"before the instructions of '{name}'")
        with cursor.nested():
            while not cursor.at("}"):
                if cursor.token.kind is TokenKind.END:
                    raise cursor.error(
                        f"computation '{name}' is not closed", start, details=("got the end of the text",)
                    )
                self._instruction(scope)
        end = cursor.advance()
        last = scope.block.last_op
        if last is None:
            raise cursor.error(f"computation '{name}' has no instructions", end)
        scope.block.add_op(ReturnOp(scope.root or last.results[0]))
        computation = ComputationOp(name, scope.block)
        computation.location = self._location(name, token)
        self.computations[name] = computation
        try:
            computation.verify_parameter_numbers()
        except RuleBroken as error:
            raise self._verify_error(error, token, []) from None
        return computation

    # ------------------------------------------------------------------------------------------------------- instruction

    def _instruction(self, scope: _Scope) -> None:
        cursor = self.cursor
        root = cursor.advance() if cursor.at("ROOT") and cursor.peek().kind is TokenKind.NAME else None
        token = cursor.name("an instruction: %name = shape opcode(...)")
        if (other := scope.defined.get(token.name)) is not None:
            raise VerifyError(
                f"instruction '{token.name}' is there twice in computation '{scope.name}'",
                stage="hlo.verify",
                place=self._place(token),
                notes=((self._place(other.token), "the other one"),),
            )
        cursor.expect("=", f"after '{token.text}'")
        if not self.shapes.at_shape():
            raise self.cursor.unexpected(
                f"the shape of '{token.name}'", help=f"{token.text} = f32[8,64]{{1,0}} opcode(...)"
            )
        type = self.shapes.shape()
        value = self._operation(scope, token.name, token, type)
        scope.defined[token.name] = _Definition(value, token)
        if root is None:
            return
        if scope.root is not None:
            raise cursor.error(f"computation '{scope.name}' has a second ROOT", root)
        scope.root = value

    def _operation(self, scope: _Scope, name: str, place: Token, type: Attribute, *, nested: bool = False) -> SSAValue:
        """Consumes `opcode(arguments), attributes` and adds the op; a nested one has no attributes."""
        cursor = self.cursor
        opcode = cursor.name("an opcode")
        op_class = self._op_class(opcode, name, scope)
        cursor.expect("(", f"after '{opcode.text}'")
        location = self._location(name, place)
        properties: dict[str, Attribute] = {"name": location.desc}
        operands, spans = list[SSAValue](), list[Token]()
        if op_class is ParameterOp:
            properties["number"] = IntegerAttr(self._parameter_number(), i64)
        elif op_class is ConstantOp:
            if (literal := parse_literal(cursor, type)) is not None:
                properties["value"] = literal
        else:
            self._operands(scope, operands, spans)
        cursor.expect(")", f"after the operands of '{opcode.text}'")
        attributes = dict[str, Attribute]()
        if not nested:
            self._read_attributes(op_class, name, properties, attributes)
        self._require_attributes(op_class, opcode, properties, operands)
        op = op_class.create(
            operands=operands,
            result_types=[type],
            properties=properties,
            attributes=attributes,
            location=location,
        )
        hint(op)
        self._verify(op, opcode, spans)
        scope.block.add_op(op)
        return op.results[0]

    def _op_class(self, opcode: Token, name: str, scope: _Scope) -> type[HloOp]:
        if (found := HLO_OPS.get(opcode.text)) is not None:
            return found
        where = f"(instruction %{name} of computation '{scope.name}')"
        if opcode.text in OTHER_OPCODES:
            raise Unsupported(
                f"no rule for HLO op '{opcode.text}' {where}",
                stage="hlo.parse",
                place=self._place(opcode),
                help="to add it: a class in a family of xla_emitters/dialects/hlo",
            )
        raise ParseError(
            f"no HLO op '{opcode.text}' {where}{_nearest(opcode.text, (*HLO_OPS, *OTHER_OPCODES))}",
            stage="hlo.parse",
            place=self._place(opcode),
        )

    def _parameter_number(self) -> int:
        token = self.cursor.token
        number = self.cursor.integer("the number of a parameter")
        if number < 0:
            raise self.cursor.error("parameters are numbered from 0", token, details=(f"got {number}",))
        return number

    # ---------------------------------------------------------------------------------------------------------- operands

    def _operands(self, scope: _Scope, operands: list[SSAValue], spans: list[Token]) -> None:
        cursor = self.cursor
        while not cursor.at(")"):
            if operands:
                cursor.expect(",", "or ')' after an operand")
            start = cursor.token
            operands.append(self._operand(scope))
            end = cursor.previous.end
            spans.append(Token(TokenKind.NAME, self.source.text[start.start : end], start.start, end))

    def _operand(self, scope: _Scope) -> SSAValue:
        cursor = self.cursor
        start = cursor.token
        type = self.shapes.shape() if self.shapes.at_shape() else None
        if type is not None and cursor.peek().text == "(":
            with cursor.nested():
                name = scope.fresh(f"{cursor.token.name}.anon")
                value = self._operation(scope, name, cursor.token, type, nested=True)
                scope.defined[name] = _Definition(value, start)
                return value
        token = cursor.name("an operand")
        definition = scope.defined.get(token.name)
        if definition is None:
            raise self._undefined(scope, token)
        value = definition.value
        while cursor.accept("#"):
            value = self._element(scope, value, token)
        if type is not None and type is not value.type and not same_shape(type, value.type):
            raise VerifyError(
                f"operand '{token.name}' is written with another shape than it has",
                stage="hlo.verify",
                place=self._place(start),
                details=(f"written {type_text(type)}; it is {type_text(value.type)}",),
                notes=((self._place(definition.token), f"'{token.name}' is defined here"),),
            )
        return value

    def _element(self, scope: _Scope, value: SSAValue, token: Token) -> SSAValue:
        """The element of a tuple that `name#1` speaks of: a get-tuple-element of its own."""
        number = self.cursor.integer("the number of a tuple's element")
        types = value.type.types.data if isinstance(value.type, TupleType) else ()
        if not 0 <= number < len(types):
            raise self.cursor.error(
                f"'{token.name}' has no element {number}", token, details=(f"it is {type_text(value.type)}",)
            )
        name = scope.fresh("get-tuple-element.anon")
        op = GetTupleElementOp([value], types[number], name, {"index": IntegerAttr(number, i64)})
        op.location = self._location(name, token)
        scope.block.add_op(op)
        scope.defined[name] = _Definition(op.result, token)
        return op.result

    def _undefined(self, scope: _Scope, token: Token) -> VerifyError:
        help = _nearest(token.name, scope.defined).removeprefix("; ")
        return VerifyError(
            f"no instruction '{token.name}' before this one in computation '{scope.name}'",
            stage="hlo.verify",
            place=self._place(token),
            help=help,
        )

    # -------------------------------------------------------------------------------------------------------- attributes

    def _read_attributes(
        self, op_class: type[HloOp], name: str, properties: dict[str, Attribute], attributes: dict[str, Attribute]
    ) -> None:
        """Consumes `, name=value ...` into the op's properties and its discardable attributes."""
        cursor = self.cursor
        allowed = self._allowed(op_class)
        while cursor.accept(","):
            token = cursor.name("an attribute")
            key = token.text
            is_own = any(key == own for own, _ in allowed)
            if not is_own and key not in COMMON:
                names = (*(own for own, _ in allowed), *COMMON)
                opcode = op_class.name.removeprefix("hlo.").replace("_", "-")
                raise cursor.error(
                    f"'{opcode}' has no attribute '{key}'{_nearest(key, names)}",
                    token,
                    help=f"it takes: {', '.join(names)}",
                )
            if key in properties or _identifier(key) in attributes:
                raise cursor.error(f"attribute '{key}' is there twice", token)
            cursor.expect("=", f"after '{key}'")
            if not is_own:
                attributes[_identifier(key)] = StringAttr(cursor.opaque(f"the value of '{key}'"))
            elif SYNTAX[key] is COMPUTATION:
                properties[key] = self._computation_reference(name)
            else:
                properties[key] = SYNTAX[key].parse(cursor)

    def _allowed(self, op_class: type[HloOp]) -> tuple[tuple[str, bool], ...]:
        if (found := self._attributes.get(op_class)) is None:
            found = self._attributes[op_class] = attributes_of(op_class)
        return found

    def _computation_reference(self, instruction: str) -> SymbolRefAttr:
        """A computation by name, or one that stands here: it gets a name from the instruction."""
        token = self.cursor.token
        if token.text == "{":
            name = f"{instruction}.computation"
            number = 0
            while name in self.computations:
                number += 1
                name = f"{instruction}.computation.{number}"
            return SymbolRefAttr(self._body(name, token).sym_name)
        name = self.cursor.name("the name of a computation").name
        if name not in self.computations:
            raise VerifyError(
                f"no computation '{name}' before this one{_nearest(name, self.computations)}",
                stage="hlo.verify",
                place=self._place(token),
                help="a computation stands before the instructions that call it",
            )
        return SymbolRefAttr(name)

    def _require_attributes(
        self, op_class: type[HloOp], opcode: Token, properties: dict[str, Attribute], operands: list[SSAValue]
    ) -> None:
        if op_class is BroadcastOp and "dimensions" not in properties and operands and not dims_of(operands[0]):
            properties["dimensions"] = integer_array(())
        missing = [key for key, is_required in self._allowed(op_class) if is_required and key not in properties]
        if missing:
            raise self.cursor.error(f"'{opcode.text}' without '{missing[0]}='", opcode)

    # ---------------------------------------------------------------------------------------------------- checks, places

    def _verify(self, op: HloOp, opcode: Token, spans: list[Token]) -> None:
        try:
            op.verify_rule()
            if isinstance(op, CallingOp):
                op.verify_callees(self.computations.__getitem__)
        except VerifyException as error:
            raise self._verify_error(error, opcode, spans, op) from None

    def _verify_error(
        self, error: VerifyException, token: Token, spans: list[Token], op: HloOp | None = None
    ) -> VerifyError:
        """The error with the place of what is at fault: an operand if it says which, else `token`."""
        if not isinstance(error, RuleBroken):
            return VerifyError(str(error), stage="hlo.verify", place=self._place(token))
        notes = list[tuple[Place | None, str]]()
        place = self._place(token)
        if error.at is not None:
            place = self._place_of(error.at)
        elif error.operand is not None and op is not None and error.operand < len(spans):
            place = self._place(spans[error.operand])
            operand = op.operands[error.operand]
            if isinstance(operand.owner, HloOp):
                text = f"'{operand.owner.instruction_name.data}' is {type_text(operand.type)}"
                notes.append((self._place_of(operand.owner), text))
        if error.also is not None:
            notes.append((self._place_of(error.also[0]), error.also[1]))
        return VerifyError(
            error.message,
            stage="hlo.verify",
            place=place,
            details=error.details,
            notes=tuple(notes),
            help=error.help,
        )

    def _place(self, token: Token) -> Place:
        return self.source.place(token.start, token.end)

    def _place_of(self, op: Operation) -> Place | None:
        """Where an op of this text stands, with its line."""
        found = place_of(op)
        if found is None:
            return None
        width = len(op.location.desc.data) if isinstance(op.location, NameLoc) else 1
        return self.source.place_at(found.line, found.column, width)

    def _location(self, name: str, token: Token) -> NameLoc:
        line, column = self.source.line_and_column(token.start)
        where = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return NameLoc(StringAttr(name), where)


def _identifier(name: str) -> str:
    """An attribute's name as MLIR spells names."""
    return name.replace("-", "_")


def _nearest(name: str, names: Iterable[str] | Mapping[str, object]) -> str:
    """`; did you mean '...'?`, or "" when nothing is like it."""
    found = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""
