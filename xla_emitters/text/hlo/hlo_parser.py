"""HLO text to the `hlo` dialect, by recursive descent; every op gets its location in the text.

    module      := ('HloModule' name ':'? (',' name '=' value)*)? tables? computation+
    computation := 'ENTRY'? name signature? '{' instruction+ '}' (',' name '=' value)*
    signature   := '(' (name ':' shape (',' name ':' shape)*)? ')' '->' shape
    instruction := 'ROOT'? name '=' shape? opcode '(' arguments ')' (',' name '=' value)*
    arguments   := operand (',' operand)* | number of a parameter | literal of a constant
    operand     := shape? name ('#' int)*                  '#i' takes an element of a tuple
                 | shape? opcode '(' arguments ')'          an instruction of its own, named "<opcode>.anon"

    A shape may be left out where the operands determine it (elementwise ops, tuples, sort, while ...). `slice-start(...)` and the like
    become an `async-start` of a computation with that one instruction.

Names are exact and may be written with or without `%`; each is defined once per computation, before its uses. Without ENTRY the last
computation is the entry and one fusion, without ROOT the last instruction is the root. A computation may be written in place of its name:
`calls={ ... ROOT ... }`. Shape rules are checked as instructions are read, so that an error points at the operand in the text.
After an instruction with an error the parser continues and reports all errors, except those that may follow from a reported one: the users
of such an instruction and the callers of its computation are not checked, and their written shapes are assumed to be right. An undefined
name is reported once. Parsing stops at an error if the end of the instruction cannot be found, or if its text does not begin with a
name and a shape.
Source: docs/reference/1 6.2, 6.7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
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

from xla_emitters.dialects.attributes import int_attr, integer, integer_array, symbol, unchecked
from xla_emitters.dialects.collector import collector_at_rest
from xla_emitters.dialects.hlo import ALL_OPS, HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, hint, opcode_of, written_at
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    fresh_name,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import TokenType, dims_of, is_array, same_shape, tuple_types, type_text
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import builtin as quick_builtin
from xla_emitters.errors import SHOWN, ParseError, Place, VerifyError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.attribute_text import COMMON, COMPUTATION, COMPUTATIONS, SYNTAX, attributes_of
from xla_emitters.text.hlo.header import parse_attributes, parse_stack_tables, verify_header
from xla_emitters.text.hlo.hlo_lexer import HloCursor, HloToken, HloTokenKind
from xla_emitters.text.hlo.hlo_literals import parse_literal
from xla_emitters.text.hlo.shapes import ShapeReader, suggested_type
from xla_emitters.text.hlo.stack_frames import STACK_TABLES, TABLES


@collector_at_rest()
def parse_hlo(text: str, file: str = "<hlo>", *, of_program: bool = False) -> ModuleOp:
    """The module that `text` describes, verified.

    file        name of the text in messages and locations
    of_program  the ops of programs with unknown sizes are known too: see `print_hlo`
    raises  ParseError if it is not HLO text, VerifyError if it breaks a rule (shapes, types, names); both with the place.
            The exception is the first error; its `others` are the later ones.
    """
    parser = _ModuleParser(Source(text, file), ALL_OPS if of_program else HLO_OPS)
    try:
        module = parser.module()
    except (ParseError, VerifyError) as error:
        parser.errors.append(error)
    else:
        if not parser.errors:
            return module
    first, *others = parser.errors
    first.others = tuple(others)
    raise first


_MLIR = (("module", "@"), ("module", "attributes"), ("#", "loc"), ("func.func", "public"), ("func.func", "@"))
"""The first two tokens of MLIR text; of other texts below."""
_PTX = ((".", "version"),)
_LLVM_IR = (
    *((";", "ModuleID"), ("source_filename", "="), ("target", "datalayout"), ("target", "triple")),
    ("define", "ptx_kernel"),
)
_PROTO = re.compile(r"\s*(?:hlo\s*\{\s*)?hlo_module\s*\{\s*\w+:")


def _refuse_other_texts(cursor: HloCursor) -> None:
    """raises ParseError for what another reader takes"""
    header = cursor.token
    first = (header.text, cursor.peek().text)
    if first in _MLIR:
        raise cursor.error(
            "this is MLIR, not HLO text",
            header,
            help="StableHLO: the commands run, check, compile, explain and list take it, and parse_stablehlo reads it",
        )
    if first in _PTX + _LLVM_IR:
        text, ending = ("PTX", ".ptx") if first in _PTX else ("LLVM IR", ".ll")
        raise cursor.error(
            f"this is {text}, not HLO text",
            header,
            help=f"the commands run and check take it, in a file FILE{ending}, with --launch",
        )
    if header.text in ("hlo", "hlo_module") and _PROTO.match(cursor.source.text):
        raise cursor.error(
            "this is a proto as text, as XLA writes snapshots with --xla_dump_hlo_as_text",
            header,
            help="without that flag the snapshot is binary, which is read",
        )


class _FollowUp(Exception):
    """Raised at an instruction that is not checked, because it depends on one with a reported error."""


@dataclass
class _Definition:
    """The value of a name, and the token that defines it. In doubt if its instruction had an error or its type is unknown."""

    value: SSAValue
    token: HloToken
    is_in_doubt: bool = False


@dataclass
class _Scope:
    """The state of one computation while it is being parsed."""

    name: str
    block: Block = field(default_factory=Block)
    defined: dict[str, _Definition] = field(default_factory=dict[str, _Definition])
    root: SSAValue | None = None
    missing: set[str] = field(default_factory=set[str])
    is_broken: bool = False


@dataclass
class _Instruction:
    """What is read of one instruction; `spans` are the places of its operands."""

    name: str
    opcode: HloToken
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    operands: list[SSAValue] = field(default_factory=list[SSAValue])
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class _ModuleParser:
    def __init__(self, source: Source, ops: Mapping[str, type[HloOp]]):
        self.source = source
        self.ops = ops
        self.cursor = HloCursor(source)
        self.shapes = ShapeReader(self.cursor)
        self.computations: dict[str, ComputationOp] = {}
        self.errors: list[ParseError | VerifyError] = []
        self._broken: set[str] = set()
        self._missing: set[str] = set()
        self._file = StringAttr(source.file)
        self._attributes: dict[type[HloOp], dict[str, bool]] = {}

    # ----------------------------------------------------------------------------------------------------------- module

    def module(self) -> ModuleOp:
        cursor = self.cursor
        name, attributes = "", dict[str, Attribute]()
        header = cursor.token
        _refuse_other_texts(cursor)
        if cursor.accept("HloModule"):
            name = cursor.new_name("the module's name").name
            cursor.accept(":")
            attributes = parse_attributes(cursor)
        if cursor.at(*TABLES):
            attributes[STACK_TABLES] = StringAttr(parse_stack_tables(cursor))
        entry: ComputationOp | None = None
        while cursor.token.kind is not HloTokenKind.END:
            start = cursor.token
            is_entry = start.text == "ENTRY" and bool(cursor.advance())
            computation = self._computation()
            if is_entry and entry is not None:
                raise cursor.error(
                    "the module has a second ENTRY", start, details=(f"the first is '{entry.sym_name.data}'",)
                )
            entry = computation if is_entry else entry
        if not self.computations:
            raise cursor.unexpected("a computation", help="name { ... ROOT %r = f32[2] negate(%p) }")
        is_fusion = entry is None
        entry = entry or list(self.computations.values())[-1]
        entry.set_entry(is_fusion=is_fusion)
        name = name or f"module_{entry.sym_name.data}"
        module = quick_builtin.ModuleOp(list(self.computations.values()), attributes, StringAttr(name))
        module.location = NameLoc(StringAttr(name), FileLineColLoc(self._file, int_attr(1), int_attr(1)))
        if not self.errors:
            try:
                verify_header(module, entry)
            except RuleBroken as error:
                raise self._verify_error(error, header, []) from None
        return module

    # ------------------------------------------------------------------------------------------------------- computation

    def _computation(self) -> ComputationOp:
        """Consumes a top-level computation and adds it to the module."""
        cursor = self.cursor
        token = cursor.new_name("the name of a computation")
        if token.name in self.computations:
            other = self.computations[token.name]
            error = VerifyError(
                f"computation '{token.name}' is defined twice",
                stage="hlo.verify",
                place=self._place(token),
                notes=((self._place_of(other), "first defined here"),),
            )
            self._break(token.name, error)
        signature = self._signature() if cursor.at("(") else None
        computation = self._body(token.name, token)
        while cursor.accept(","):
            attribute = cursor.name("an attribute of the computation")
            if attribute.name != "execution_thread":
                problem = f"a computation has no attribute '{attribute.name}'"
                raise cursor.error(problem, attribute, help='execution_thread="..."')
            if attribute.name in computation.attributes:
                raise cursor.error(f"attribute '{attribute.name}' is given twice", attribute)
            cursor.expect("=", f"after '{attribute.name}'")
            computation.attributes[attribute.name] = StringAttr(
                cursor.expect_kind(HloTokenKind.STRING, "the thread's name").text
            )
        if signature is not None and token.name not in self._broken:
            self._check_signature(computation, *signature)
        return computation

    def _break(self, computation: str, error: VerifyError) -> None:
        """Records the error and marks the computation broken, so that its callers are not checked."""
        self.errors.append(error)
        self._broken.add(computation)

    def _signature(self) -> tuple[list[Attribute], Attribute, HloToken]:
        cursor = self.cursor
        start = cursor.advance()

        def parameter() -> Attribute:
            cursor.name("the name of a parameter")
            cursor.expect(":", "after the name of a parameter")
            return self.shapes.shape()

        parameters = cursor.items(")", parameter, "a parameter")
        cursor.expect("->", "after the parameters")
        return parameters, self.shapes.shape(), start

    def _check_signature(
        self, computation: ComputationOp, parameters: list[Attribute], root: Attribute, token: HloToken
    ) -> None:
        found = [parameter.result.type for parameter in computation.parameters]
        if len(found) == len(parameters) and all(map(same_shape, [*found, computation.root.type], [*parameters, root])):
            return
        wanted, got = (
            f"({', '.join(map(type_text, types))}) -> {type_text(result)}"
            for types, result in ((parameters, root), (found, computation.root.type))
        )
        error = VerifyError(
            f"the signature of computation '{computation.sym_name.data}' does not match its instructions",
            stage="hlo.verify",
            place=self._place(token),
            details=(f"it is {wanted}; the instructions give {got}",),
        )
        self._break(computation.sym_name.data, error)

    def _body(self, name: str, token: HloToken) -> ComputationOp:
        """Consumes `{ instructions }`."""
        cursor = self.cursor
        scope = _Scope(name)
        start = cursor.expect("{", f"before the instructions of '{name}'")
        with cursor.nested():
            while not cursor.at("}"):
                if cursor.token.kind is HloTokenKind.END:
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
        if scope.is_broken:
            self._broken.add(name)
            return computation
        try:
            computation.verify_parameter_numbers()
        except RuleBroken as error:
            self._break(name, self._verify_error(error, token, []))
        return computation

    # ------------------------------------------------------------------------------------------------------- instruction

    def _instruction(self, scope: _Scope) -> None:
        cursor = self.cursor
        start = cursor.token
        root = cursor.advance() if cursor.at("ROOT") and cursor.peek().kind is HloTokenKind.NAME else None
        token = cursor.new_name("an instruction: %name = shape opcode(...)")
        result_type: Attribute | None = None
        try:
            if (other := scope.defined.get(token.name)) is not None:
                raise VerifyError(
                    f"instruction '{token.name}' is defined twice in computation '{scope.name}'",
                    stage="hlo.verify",
                    place=self._place(token),
                    notes=((self._place(other.token), "first defined here"),),
                )
            cursor.expect("=", f"after '{token.text}'")
            result_type = self.shapes.shape() if self.shapes.at_shape() else None
            opcode = cursor.name("an opcode" if result_type else "a shape such as f32[8,64]{1,0}, and an opcode")
            definition = _Definition(self._operation(scope, token.name, token, result_type, opcode), token)
        except (ParseError, VerifyError, _FollowUp) as error:
            self._recover(start, result_type, error)
            scope.is_broken = True
            stand_in = ParameterOp(0, result_type or TokenType(), token.name)
            stand_in.location = self._location(token.name, token)
            scope.block.add_op(stand_in)
            # The written type of an array is assumed to be right. A tuple is in doubt: some rules check which op produces it.
            is_trusted = isinstance(error, _FollowUp) and result_type is not None and is_array(result_type)
            definition = _Definition(stand_in.result, token, is_in_doubt=not is_trusted)
        scope.defined[token.name] = definition
        if root is None:
            return
        if scope.root is not None:
            raise cursor.error(f"computation '{scope.name}' has a second ROOT", root)
        scope.root = definition.value

    def _recover(
        self, start: HloToken, result_type: Attribute | None, error: ParseError | VerifyError | _FollowUp
    ) -> None:
        """Records the error of the instruction that starts at `start`, and consumes the rest of the instruction.

        raises the error itself if parsing cannot continue
        """
        if isinstance(error, ParseError) and result_type is None:
            raise error
        self.cursor.skip_to(start.start)
        try:
            self.cursor.skip_instruction()
        except ParseError as unmatched:
            raise (unmatched if isinstance(error, _FollowUp) else error) from None
        if not isinstance(error, _FollowUp):
            self.errors.append(error)

    def _operation(
        self,
        scope: _Scope,
        name: str,
        place: HloToken,
        result_type: Attribute | None,
        opcode: HloToken,
        *,
        nested: bool = False,
    ) -> SSAValue:
        """Consumes `(arguments), attributes` after an opcode and adds the op; a nested one has no attributes.

        result_type  as written; None if the text omits it
        """
        cursor = self.cursor
        wrapped, stage = _async_form(opcode.text)
        op_class = HLO_OPS[f"async-{stage}"] if wrapped else self._op_class(opcode, name, scope)
        if result_type is None and (wrapped or op_class is ConstantOp):
            raise self._shape_missing(opcode)
        location = self._location(name, place)
        its = _Instruction(name, opcode, {"name": location.desc})
        cursor.expect("(", f"after '{opcode.text}'")
        if op_class is ParameterOp:
            its.properties["number"] = integer(self._parameter_number(), i64)
        elif op_class is ConstantOp and result_type is not None:
            if (literal := parse_literal(cursor, result_type)) is not None:
                its.properties["value"] = literal
        else:
            self._operands(scope, its)
        cursor.expect(")", f"after the operands of '{opcode.text}'")
        if stage == "start" and result_type is not None:
            self._wrap(HLO_OPS[wrapped], its, scope, result_type, nested=nested)
        else:
            self._read_attributes(op_class, its, scope, nested=nested)
        if not wrapped:
            self._require_attributes(op_class, its)
        op = op_class.create(
            operands=its.operands,
            result_types=[result_type or self._inferred(op_class, its)],
            properties=its.properties,
            attributes=its.attributes,
            location=location,
        )
        hint(op)
        self._verify(op, its)
        scope.block.add_op(op)
        return op.results[0]

    def _inferred(self, op_class: type[HloOp], its: _Instruction) -> Attribute:
        """The result's type if the text omits it, inferred on a trial op with a placeholder type."""
        trial = op_class.create(operands=its.operands, result_types=[TokenType()], properties=its.properties)
        try:
            trial.verify_operand_count()
            result_type = trial.infer_type()
        except VerifyException as error:
            raise self._verify_error(error, its.opcode, its.spans, trial) from None
        finally:
            trial.drop_all_references()
        if result_type is None:
            raise self._shape_missing(its.opcode)
        return result_type

    def _shape_missing(self, opcode: HloToken) -> ParseError:
        return self.cursor.error(
            f"the shape of '{opcode.text}' cannot be left out", opcode, help=f"f32[8,64]{{1,0}} {opcode.text}(...)"
        )

    def _wrap(
        self, op_class: type[HloOp], its: _Instruction, scope: _Scope, async_type: Attribute, *, nested: bool
    ) -> None:
        """Reads the attributes of `slice-start(...)`: all but `async_execution_thread` are those of the op that it wraps.

        Adds a computation of that one op, whose result is the second element of the async op's tuple.
        """
        self._read_attributes(op_class, its, scope, nested=nested, also=("async_execution_thread",))
        results = tuple_types(async_type)
        if not isinstance(async_type, TupleType) or len(results) < 2:
            raise self.cursor.error(
                f"'{its.opcode.text}' must have shape ((operands), result, state ...)",
                its.opcode,
                details=(f"got {type_text(async_type)}",),
            )
        self._require_attributes(op_class, its)
        own = {key: its.properties.pop(key) for key in ("name", "async_execution_thread") if key in its.properties}
        block = Block()
        for number, operand in enumerate(its.operands):
            block.add_op(ParameterOp(number, operand.type, f"async_param.{number}"))
        op = op_class.create(
            operands=[parameter.results[0] for parameter in block.ops],
            result_types=[results[1]],
            properties={"name": StringAttr(f"{its.name}.wrapped"), **its.properties},
        )
        self._verify(op, its)
        block.add_ops((op, ReturnOp(op.results[0])))
        for inner in block.ops:
            inner.location = self._location(op.instruction_name.data, its.opcode)
        computation = ComputationOp(fresh_name("async_wrapped", self.computations), block)
        computation.location = self._location(computation.sym_name.data, its.opcode)
        if (thread := own.get("async_execution_thread")) is not None:
            computation.attributes["execution_thread"] = thread
        self.computations[computation.sym_name.data] = computation
        its.properties = {**own, "calls": SymbolRefAttr(computation.sym_name)}

    def _op_class(self, opcode: HloToken, name: str, scope: _Scope) -> type[HloOp]:
        if (found := self.ops.get(opcode.text)) is not None:
            return found
        if self.cursor.at("["):
            raise self.cursor.error(f"no element type '{opcode.text}'{suggested_type(opcode.text)}", opcode)
        where = f"(instruction %{name} of computation '{scope.name}')"
        raise ParseError(
            f"no HLO op '{opcode.text}' {where}{self._nearest(opcode.text, self.ops)}",
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

    def _operands(self, scope: _Scope, its: _Instruction) -> None:
        cursor = self.cursor
        while not cursor.at(")"):
            if its.operands:
                cursor.expect(",", "or ')' after an operand")
            start = cursor.token.start
            its.operands.append(self._operand(scope))
            its.spans.append((start, cursor.previous.end))

    def _operand(self, scope: _Scope) -> SSAValue:
        cursor = self.cursor
        start = cursor.token
        written = self.shapes.shape() if self.shapes.at_shape() else None
        token = cursor.name("an operand")
        if cursor.at("("):
            with cursor.nested():
                name = fresh_name(f"{token.name}.anon", scope.defined)
                value = self._operation(scope, name, token, written, token, nested=True)
                scope.defined[name] = _Definition(value, start)
                return value
        definition = scope.defined.get(token.name)
        if definition is None:
            raise self._undefined(scope, token)
        if definition.is_in_doubt:
            raise _FollowUp
        value = definition.value
        while cursor.accept("#"):
            value = self._element(scope, value, token)
        if written is not None and written is not value.type and not same_shape(written, value.type):
            raise VerifyError(
                f"operand '{token.name}' is written with a shape that is not its own",
                stage="hlo.verify",
                place=self._place(start),
                details=(f"written {type_text(written)}; it is {type_text(value.type)}",),
                notes=((self._place(definition.token), f"'{token.name}' is defined here"),),
            )
        return value

    def _element(self, scope: _Scope, value: SSAValue, token: HloToken) -> SSAValue:
        """The element of a tuple for `name#1`: adds a get-tuple-element."""
        number = self.cursor.integer("the number of a tuple's element")
        types = value.type.types.data if isinstance(value.type, TupleType) else ()
        if not 0 <= number < len(types):
            raise self.cursor.error(
                f"'{token.name}' has no element {number}", token, details=(f"it is {type_text(value.type)}",)
            )
        name = fresh_name("get-tuple-element.anon", scope.defined)
        op = GetTupleElementOp([value], types[number], name, {"index": IntegerAttr(number, i64)})
        op.location = self._location(name, token)
        scope.block.add_op(op)
        scope.defined[name] = _Definition(op.result, token)
        return op.result

    def _undefined(self, scope: _Scope, token: HloToken) -> VerifyError | _FollowUp:
        if token.name in scope.missing:
            return _FollowUp()
        scope.missing.add(token.name)
        suggestion = self._nearest(token.name, scope.defined).removeprefix("; ")
        return VerifyError(
            f"no instruction '{token.name}' before this one in computation '{scope.name}'",
            stage="hlo.verify",
            place=self._place(token),
            help=suggestion,
        )

    # -------------------------------------------------------------------------------------------------------- attributes

    def _read_attributes(
        self, op_class: type[HloOp], its: _Instruction, scope: _Scope, *, nested: bool, also: tuple[str, ...] = ()
    ) -> None:
        """Consumes `, name=value ...` into the op's properties and its discardable attributes."""
        cursor = self.cursor
        allowed = self._allowed(op_class)
        while not nested and cursor.accept(","):
            token = cursor.name("an attribute")
            key = token.text
            is_own = key in allowed or key in also
            if not is_own and key not in COMMON:
                names = (*allowed, *also, *COMMON)
                raise cursor.error(
                    f"'{opcode_of(op_class)}' has no attribute '{key}'{nearest(key, names)}",
                    token,
                    help=f"it takes: {', '.join(names)}",
                )
            if key in its.properties or _identifier(key) in its.attributes:
                raise cursor.error(f"attribute '{key}' is given twice", token)
            cursor.expect("=", f"after '{key}'")
            if key == "control-predecessors":
                its.attributes[_identifier(key)] = self._predecessors(scope)
            elif not is_own:
                its.attributes[_identifier(key)] = StringAttr(cursor.opaque(f"the value of '{key}'"))
            elif SYNTAX[key] is COMPUTATION:
                its.properties[key] = self._computation_reference(its.name)
            else:
                its.properties[key] = self._value(key, token)

    def _value(self, key: str, token: HloToken) -> Attribute:
        value = SYNTAX[key].parse(self.cursor)
        if SYNTAX[key] is COMPUTATIONS and isa(value, ArrayAttr[SymbolRefAttr]):
            for symbol in value:
                self._check_computation(symbol.root_reference.data, token)
        return value

    def _predecessors(self, scope: _Scope) -> StringAttr:
        """`{%a, b}`: earlier instructions of this computation."""
        cursor = self.cursor

        def predecessor() -> str:
            token = cursor.name("the name of an instruction")
            if token.name not in scope.defined:
                raise self._undefined(scope, token)
            return f"%{token.name}"

        cursor.expect("{", "before the names of instructions")
        return StringAttr(f"{{{', '.join(cursor.items('}', predecessor, 'the name of an instruction'))}}}")

    def _allowed(self, op_class: type[HloOp]) -> dict[str, bool]:
        """The attributes of an opcode: name -> is_required."""
        if (found := self._attributes.get(op_class)) is None:
            found = self._attributes[op_class] = dict(attributes_of(op_class))
        return found

    def _computation_reference(self, instruction: str) -> SymbolRefAttr:
        """A computation given by name, or written inline; the latter is named after the instruction."""
        token = self.cursor.token
        if token.text == "{":
            body = self._body(fresh_name(f"{instruction}.computation", self.computations), token)
            if body.sym_name.data in self._broken:
                raise _FollowUp
            return SymbolRefAttr(body.sym_name)
        name = self.cursor.name("the name of a computation").name
        self._check_computation(name, token)
        return symbol(name)

    def _check_computation(self, name: str, token: HloToken) -> None:
        if name in self._broken or name in self._missing:
            raise _FollowUp
        if name not in self.computations:
            self._missing.add(name)
            raise VerifyError(
                f"no computation '{name}' before this one{self._nearest(name, self.computations)}",
                stage="hlo.verify",
                place=self._place(token),
                help="a computation must be defined before the instructions that call it",
            )

    def _require_attributes(self, op_class: type[HloOp], its: _Instruction) -> None:
        operands = its.operands
        if op_class is BroadcastOp and operands and is_array(source := operands[0].type) and not dims_of(source):
            its.properties.setdefault("dimensions", integer_array(()))
        for key, is_required in self._allowed(op_class).items():
            if is_required and key not in its.properties:
                raise self.cursor.error(f"'{its.opcode.text}' needs the attribute '{key}='", its.opcode)

    # ---------------------------------------------------------------------------------------------------- checks, places

    def _verify(self, op: HloOp, its: _Instruction) -> None:
        try:
            op.verify_rule()
            if isinstance(op, CallingOp):
                op.verify_callees(self.computations.__getitem__)
        except VerifyException as error:
            raise self._verify_error(error, its.opcode, its.spans, op) from None

    def _verify_error(
        self, error: VerifyException, token: HloToken, spans: list[tuple[int, int]], op: HloOp | None = None
    ) -> VerifyError:
        """The error located at the operand or op that it names, else at `token`."""
        if not isinstance(error, RuleBroken):
            return VerifyError(str(error), stage="hlo.verify", place=self._place(token))
        notes = list[tuple[Place | None, str]]()
        place = self._place(token)
        if error.at is not None:
            place = self._place_of(error.at)
        elif error.operand is not None and op is not None and error.operand < len(spans):
            place = self.source.place(*spans[error.operand])
            operand = op.operands[error.operand]
            if isinstance(operand.owner, HloOp):
                text = f"'{operand.owner.instruction_name.data}' is {type_text(operand.type)}"
                notes.append((self._place_of(operand.owner), text))
        if error.also is not None:
            notes.append((self._place_of(error.also[0]), error.also[1]))
        return VerifyError(
            error.message, stage="hlo.verify", place=place, details=error.details, notes=tuple(notes), help=error.help
        )

    def _nearest(self, name: str, names: Iterable[str]) -> str:
        """`; did you mean '...'?`, or "" for an error that will not be printed: the search is slow in a large module."""
        return nearest(name, names) if len(self.errors) < SHOWN else ""

    def _place(self, token: HloToken) -> Place:
        return self.source.place(token.start, token.end)

    def _place_of(self, op: Operation) -> Place | None:
        """The place of an op of this text, with its line."""
        found = written_at(op)
        if found is None:
            return None
        width = len(op.location.desc.data) if isinstance(op.location, NameLoc) else 1
        return self.source.place_at(found.line, found.column, width)

    def _location(self, name: str, token: HloToken) -> NameLoc:
        line, column = self.source.line_and_column(token.start)
        where = unchecked(FileLineColLoc, filename=self._file, line=int_attr(line), column=int_attr(column))
        return unchecked(NameLoc, desc=unchecked(StringAttr, data=name), location=where)


def _async_form(opcode: str) -> tuple[str, str]:
    """`slice-start` → ("slice", "start"), the wrapped opcode and the stage; ("", "") for any other opcode."""
    wrapped, _, stage = opcode.rpartition("-")
    is_wrapped = stage in ("start", "update", "done") and wrapped in HLO_OPS and opcode not in HLO_OPS
    return (wrapped, stage) if is_wrapped else ("", "")


def _identifier(name: str) -> str:
    """An attribute's name in MLIR's spelling."""
    return name.replace("-", "_")
