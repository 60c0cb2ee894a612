"""The tree of a StableHLO program to computations of the `hlo` dialect.

    func.func public @main(%arg0: tensor<?xf32>) -> ...           hlo.computation @main entry { %p0 = hlo.parameter 0 ...
    func.func private @f(...)                                     hlo.computation @f { ... }, called by hlo.call
    the region of a reduce, sort, map, scatter ...                a computation of scalars that the op names
    the regions of a while                                        condition and body: computations of one tuple
    the branches of a case or an if                               computations of a tuple of what they capture

A region may use values from outside, a computation may not. A constant is repeated inside; other values become additional elements of a
loop's tuple, or the elements of a branch's tuple. Several results are a tuple and `get-tuple-element`s. Computations are listed before
their callers.

The ops are converted by `rules`, `region_rules` and `chlo`: functions of a `Conversion`, which adds ops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
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
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import int_attr, string, unchecked
from xla_emitters.dialects.hlo import ALL_OPS
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, hint
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, ParameterOp, ReturnOp, fresh_name
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, has_dynamic_dims, is_array, same_shape, tuple_type
from xla_emitters.dialects.mlir import builtin as quick_builtin
from xla_emitters.dtypes import DTYPES, Array
from xla_emitters.errors import ParseError, Place, Unsupported, UsageError, VerifyError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.stack_frames import STACK_TABLES, StackTables
from xla_emitters.text.stablehlo.attribute_values import Attributes
from xla_emitters.text.stablehlo.stablehlo_lexer import Token, unquoted
from xla_emitters.text.stablehlo.stablehlo_locations import Location, metadata, name_of
from xla_emitters.text.stablehlo.stablehlo_types import stablehlo_type
from xla_emitters.text.stablehlo.tree import Op, Region, StableHloFunction, StableHloModule, Value, called_functions

VERIFY = "stablehlo.verify"
SKIPPED = "hlo.skipped"
"""The attribute of a module with the ops beside its functions that were not read, each with its place."""
Rule = Callable[["Conversion"], "SSAValue | Sequence[SSAValue]"]
"""Adds the HLO ops for an op of StableHLO; returns their results."""


ENTRIES = ("main", "tao_main")
"""Names of functions that are the entry of a text with several public functions."""
SHOWN = 10
"""Most functions that a message names."""


class ModuleBuilder:
    """Builds the module of one program.

    rules  op name -> the function that converts it
    entry  name of the entry; "": see `reader`
    """

    def __init__(
        self,
        source: Source,
        program: StableHloModule,
        aliases: Mapping[str, Location],
        rules: Mapping[str, Rule],
        entry: str = "",
    ):
        self.source = source
        self.program = program
        self.aliases = aliases
        self.rules = rules
        self.entry = entry
        self.computations: dict[str, ComputationOp] = {}
        self._names = {_identifier(name) for name in program.functions}
        self._built: dict[str, ComputationOp] = {}
        self._shared: dict[object, str] = {}
        self._file = StringAttr(source.file)
        self._metadata: dict[Location, str] = {}
        self._stacks = StackTables()

    def module(self) -> ModuleOp:
        entry = self._entry()
        for function in self._callees_first():
            self._built[function.name] = self._build(function, is_entry=function is entry)
        self._built[entry.name].set_entry()
        attributes = dict[str, Attribute]()
        for name, attr in self.program.attributes.found.items():
            if name != "sym_name":
                attributes[name] = StringAttr(self.program.attributes.text(attr))
        if skipped := [f"{token.text} ({self.place(token)})" for token in self.program.skipped.values()]:
            attributes[SKIPPED] = StringAttr(", ".join(skipped))
        if tables := self._stacks.text():
            attributes[STACK_TABLES] = StringAttr(tables)
        name = StringAttr(_identifier(self.program.name))
        module = quick_builtin.ModuleOp(list(self.computations.values()), attributes, name)
        module.location = self.location(self.program.name, self.program.attributes.at)
        return module

    def _entry(self) -> StableHloFunction:
        functions = self.program.functions
        if self.entry:
            if self.entry not in functions:
                names = ", ".join(f"@{name}" for name in functions)
                raise UsageError(
                    f"{self.source.file} has no function @{self.entry}", stage=VERIFY, help=f"it has {names}"
                )
            return functions[self.entry]
        if (found := next((functions[name] for name in ENTRIES if name in functions), None)) is not None:
            return found
        public = [each for each in functions.values() if each.is_public] or list(functions.values())
        called = {name for each in functions.values() for name, _ in called_functions(each.body) if name != each.name}
        possible = [each for each in public if each.name not in called] or public
        if len(possible) == 1:
            return possible[0]
        first, second, *_ = possible
        more = f" and {len(possible) - SHOWN} more" if len(possible) > SHOWN else ""
        names = ", ".join(f"@{each.name}" for each in possible[:SHOWN])
        raise VerifyError(
            f"{len(possible)} functions could be the entry: {names}{more}",
            stage=VERIFY,
            place=self.place(second.token),
            notes=((self.place(first.token), f"@{first.name} is the first"),),
            help=f"--entry {first.name}, or in Python entry='{first.name}'; without it @main is the entry",
        )

    # --------------------------------------------------------------------------------------------------------- functions

    def function(self, name: str, at: Token) -> ComputationOp:
        """The computation of @name, called at `at`. raises VerifyError if there is none."""
        if (found := self._built.get(name)) is None:
            if (declared := self.program.declared.get(name)) is not None:
                raise VerifyError(
                    f"@{name} has no body to call",
                    stage=VERIFY,
                    place=self.place(at),
                    notes=((self.place(declared.token), "declared here"),),
                )
            if (skipped := self.program.skipped.get(name)) is not None:
                raise Unsupported(
                    f"@{name} is '{skipped.text}', which is not taken",
                    stage=VERIFY,
                    place=self.place(at),
                    notes=((self.place(skipped), "defined here"),),
                )
            known = nearest(name, self.program.functions)
            raise VerifyError(f"no function @{name}{known}", stage=VERIFY, place=self.place(at))
        return found

    def _callees_first(self) -> Iterator[StableHloFunction]:
        """The functions, each after those that it calls. raises VerifyError for a function that calls itself."""
        functions, done, open_ = self.program.functions, set[str](), dict[str, Iterator[tuple[str, Token]]]()
        for first in functions:
            if first in done:
                continue
            open_[first] = called_functions(functions[first].body)
            while open_:
                name, callees = next(reversed(open_.items()))
                callee, token = next(callees, ("", None))
                if token is None:
                    del open_[name]
                    done.add(name)
                    yield functions[name]
                elif callee in open_:
                    names = list(open_)
                    around = " -> ".join(f"@{caller}" for caller in (*names[names.index(callee) :], callee))
                    message = f"function @{callee} calls itself: {around}"
                    raise VerifyError(message, stage=VERIFY, place=self.place(token))
                elif callee in functions and callee not in done:
                    open_[callee] = called_functions(functions[callee].body)

    def _build(self, function: StableHloFunction, *, is_entry: bool) -> ComputationOp:
        name = function.name
        body = ComputationBody(self, function.body)
        for number, argument in enumerate(function.body.arguments):
            parameter = body.parameter(argument, number, f"p{number}" if is_entry else argument.name)
            self._describe(function, number, parameter, is_entry)
        results = body.ops(function.body)
        if len(results) != len(function.results) or any(
            value.type != wanted
            for value, wanted in zip(function.body.returned.operands, function.results, strict=True)
        ):
            got = ", ".join(stablehlo_type(value.type) for value in function.body.returned.operands)
            wanted = ", ".join(map(stablehlo_type, function.results))
            raise VerifyError(
                f"@{name} does not return what its type says",
                stage=VERIFY,
                place=self.place(function.body.returned.token),
                details=(f"it returns ({got})", f"its type says ({wanted})"),
            )
        computation = body.finish(_identifier(name), results, function.token)
        self._describe_results(function, computation)
        return computation

    def _describe(self, function: StableHloFunction, number: int, parameter: HloOp, is_entry: bool) -> None:
        """Copies the text's facts about a parameter: attributes as written, and for a program's argument the name that the caller knows."""
        found = function.parameter_attributes[number]
        for name, attr in found.found.items():
            text = found.text(attr)
            parameter.attributes[name] = StringAttr(unquoted(text) if name == "jax.arg_name" else text)
        if is_entry and (name := self._argument_name(function, function.body.arguments[number], number)):
            parameter.attributes["jax.arg_name"] = StringAttr(name)

    def _argument_name(self, function: StableHloFunction, argument: Value, number: int) -> str | None:
        """The name in the argument's location, or in the location of the parameter to which jax.export passes it."""
        if name := self._written_name(function, number):
            return name
        for op in function.body.ops:
            if op.opcode == "call" and argument in op.operands and "callee" in op.attributes:
                callee = self.program.functions.get(op.attributes.symbol("callee"))
                return self._written_name(callee, op.operands.index(argument)) if callee is not None else None
        return None

    def _written_name(self, function: StableHloFunction, number: int) -> str | None:
        locations = function.parameter_locations
        return name_of(locations[number], self.aliases) if number < len(locations) else None

    def _describe_results(self, function: StableHloFunction, computation: ComputationOp) -> None:
        rows = [
            "{" + ", ".join(f"{name} = {found.text(attr)}" for name, attr in found.found.items()) + "}"
            for found in function.result_attributes
        ]
        if any(row != "{}" for row in rows):
            computation.attributes["result_attributes"] = ArrayAttr([StringAttr(row) for row in rows])

    # ------------------------------------------------------------------------------------------------------ computations

    def is_read(self, value: Value, region: Region) -> bool:
        """Whether a region uses a value for more than passing it to functions that do not read it.

        JAX passes the unknown sizes to all functions that it calls, also those that compute with scalars.
        """
        pending, seen = [(value, region)], set[Value]()
        while pending:
            value, region = pending.pop()
            for op in region.ops:
                callee = self.program.functions.get(op.attributes.symbol("callee")) if op.opcode == "call" else None
                for number, operand in enumerate(op.operands):
                    if operand is value:
                        arguments = callee.body.arguments if callee is not None else []
                        if number >= len(arguments) or callee is None:
                            return True
                        if arguments[number] not in seen:
                            seen.add(arguments[number])
                            pending.append((arguments[number], callee.body))
                pending += [(value, inner) for inner in op.regions]
        return False

    def fresh(self, name: str) -> str:
        """`name`, or `name.1` ... if another computation has it; the returned name is then taken."""
        found = fresh_name(name, self._names)
        self._names.add(found)
        return found

    def scalar_computation(self, opcode: str, scalar: Attribute, at: Token) -> SymbolRefAttr:
        """The computation that applies a binary op to two scalars; one per op and type."""

        def build() -> str:
            body = ComputationBody(self, None)
            op = Op(f"stablehlo.{opcode}", at, Attributes(self.program.attributes.cursor, opcode, at))
            c = Conversion(body, op, f"{opcode}.0", [])
            x, y = (c.add_op(ParameterOp(i, scalar, f"p{i}")) for i in range(2))
            result = c.add(opcode, [x, y], scalar)
            c.name_results([result])
            return body.finish(self.fresh(f"reducer_{opcode}"), [result], at).sym_name.data

        return self.shared((opcode, scalar), build)

    def shared(self, key: object, build: Callable[[], str]) -> SymbolRefAttr:
        """The computation for `key`: at the first request, `build` adds it and returns its name."""
        if key not in self._shared:
            self._shared[key] = build()
        return SymbolRefAttr(self._shared[key])

    # ------------------------------------------------------------------------------------------------------------ places

    def place(self, token: Token) -> Place:
        return self.source.place(token.start, token.end)

    def location(self, name: str, token: Token) -> NameLoc:
        line, column = self.source.line_and_column(token.start)
        where = unchecked(FileLineColLoc, filename=self._file, line=int_attr(line), column=int_attr(column))
        return unchecked(NameLoc, desc=string(name), location=where)

    def metadata_of(self, location: Location | None) -> str:
        """HLO's metadata of an op's location, or ""."""
        if location is None:
            return ""
        if (found := self._metadata.get(location)) is None:
            found = self._metadata[location] = metadata(location, self.aliases, self._stacks)
        return found


@dataclass
class ComputationBody:
    """A computation that is being built from a region.

    values  the SSA values of the region's own values, and of those passed to it
    """

    module: ModuleBuilder
    region: Region | None
    block: Block = field(default_factory=Block)
    values: dict[Value, SSAValue] = field(default_factory=dict[Value, SSAValue])
    names: set[str] = field(default_factory=set[str])

    def fresh(self, name: str) -> str:
        """`name`, or `name.1` ... if another instruction has it; the returned name is then taken."""
        found = fresh_name(name, self.names)
        self.names.add(found)
        return found

    def parameter(self, value: Value | None, number: int, name: str, ir_type: Attribute | None = None) -> HloOp:
        """Adds a parameter for the value `value`."""
        token = value.token if value is not None else self.region.token if self.region else None
        assert token is not None
        wanted = value.type if value is not None else ir_type
        assert wanted is not None
        op = ParameterOp(number, wanted, self.fresh(_identifier(name)))
        op.location = self.module.location(op.instruction_name.data, token)
        self.block.add_op(op)
        if value is not None:
            self.values[value] = op.result
        return op

    def ops(self, region: Region) -> list[SSAValue]:
        """Adds the ops of a region; returns the SSA values of the region's results."""
        for op in region.ops[:-1]:
            self.op(op)
        return [self.value(value) for value in region.returned.operands]

    def value(self, value: Value) -> SSAValue:
        """The SSA value; a constant from outside is repeated here."""
        if (found := self.values.get(value)) is not None:
            return found
        assert value.owner is not None
        assert is_constant(value), "captured values are given to a computation"
        self.op(value.owner)
        return self.values[value]

    def op(self, op: Op) -> None:
        """Converts the op and adds the result."""
        rule = self.module.rules.get(op.name if "." in op.name else f"func.{op.name}") or _rule_by_name(op.name)
        if rule is None:
            written = op.token.text.strip('"')
            dialect = written.partition(".")[0]
            names = op_names(self.module.rules)
            known = (name.replace("stablehlo.", f"{dialect}.", 1) for name in names)
            suggestion = nearest(written, known if written != op.name else names)
            raise ParseError(
                f"no op '{written}'{suggestion}", stage="stablehlo.parse", place=self.module.place(op.token)
            )
        name = op.results[0].name.partition("#")[0] if op.results and op.results[0].name else ""
        base = f"{op.opcode}.{name}" if not name or name[0].isdigit() else name
        c = Conversion(self, op, _identifier(base.rstrip(".")), [self.value(value) for value in op.operands])
        found = rule(c)
        results = [found] if isinstance(found, SSAValue) else list(found)
        if len(results) != len(op.results):
            raise c.wrong(f"'{op.name}' has {len(results)} results", f"the text has {len(op.results)}")
        c.name_results(results)
        for value, result in zip(op.results, results, strict=True):
            if value.type != result.type and not same_shape(value.type, result.type):
                raise c.wrong(
                    f"the result of '{op.name}' is not of the type that is written",
                    f"it is {stablehlo_type(result.type)}, and {stablehlo_type(value.type)} is written",
                )
            self.values[value] = result

    def finish(self, name: str, results: Sequence[SSAValue], at: Token) -> ComputationOp:
        """Adds the computation to the module; it returns these values (as a tuple, unless there is exactly one)."""
        if len(results) == 1:
            root = results[0]
        else:
            op = ALL_OPS["tuple"](list(results), tuple_type([value.type for value in results]), self.fresh("tuple"))
            op.location = self.module.location(op.instruction_name.data, at)
            self.block.add_op(op)
            root = op.result
        self.block.add_op(ReturnOp(root))
        computation = ComputationOp(name, self.block)
        computation.location = self.module.location(name, at)
        self.module.computations[name] = computation
        return computation


def is_constant(value: Value) -> bool:
    """Whether a value is a literal."""
    return value.owner is not None and value.owner.name in ("stablehlo.constant", "arith.constant")


def plain_ops() -> dict[str, str]:
    """The ops with the same operands in HLO and no attributes, without a rule of their own: name in StableHLO -> HLO's opcode."""
    return {opcode.replace("-", "_"): opcode for opcode, op in ALL_OPS.items() if op.IN_STABLEHLO}


def op_names(rules: Mapping[str, Rule]) -> list[str]:
    """The names of all ops that are read, with these rules and without one."""
    return [*rules, *map("stablehlo.{}".format, plain_ops())]


def _rule_by_name(name: str) -> Rule | None:
    """The rule of one of `plain_ops`; None for another op."""
    dialect, _, opcode = name.replace("_", "-").partition(".")
    if dialect != "stablehlo" or (op := ALL_OPS.get(opcode)) is None or not op.IN_STABLEHLO:
        return None
    return lambda c: c.add(opcode, c.operands, c.type)


class Conversion:
    """The conversion of one op of StableHLO to ops of the `hlo` dialect.

    name      of the instruction that holds its result
    operands  their SSA values
    """

    def __init__(self, body: ComputationBody, op: Op, name: str, operands: Sequence[SSAValue]):
        self.body = body
        self.op = op
        self.name = name
        self.operands = list(operands)
        self._added: list[HloOp] = []

    @property
    def module(self) -> ModuleBuilder:
        return self.body.module

    @property
    def attributes(self) -> Attributes:
        return self.op.attributes

    @property
    def types(self) -> list[Attribute]:
        """The types of the results as written."""
        return [value.type for value in self.op.results]

    @property
    def type(self) -> Attribute:
        """The type of the only result."""
        if len(self.op.results) != 1:
            raise self.wrong(f"'{self.op.name}' has one result", f"the text has {len(self.op.results)}")
        return self.op.results[0].type

    def expect_operands(self, count: int) -> list[SSAValue]:
        """The operands; there must be `count` of them."""
        if len(self.operands) != count:
            raise self.wrong(
                f"wrong number of operands for '{self.op.name}'", f"it has {len(self.operands)}; it takes {count}"
            )
        return self.operands

    def expect_regions(self, count: int) -> list[Region]:
        """The regions; there must be `count` of them."""
        if len(self.op.regions) != count:
            raise self.wrong(f"'{self.op.name}' has {count} regions", f"the text has {len(self.op.regions)}")
        return self.op.regions

    # ------------------------------------------------------------------------------------------------------- adding ops

    def add(
        self, opcode: str, operands: Sequence[SSAValue], ir_type: Attribute, **properties: Attribute | None
    ) -> SSAValue:
        """Adds the op with HLO's `opcode`. A trailing `_` of a property name is left out (`type_`)."""
        op = ALL_OPS[opcode].create(
            operands=list(operands),
            result_types=[ir_type],
            properties={
                "name": string(self.name),
                **{key.rstrip("_"): value for key, value in properties.items() if value is not None},
            },
        )
        assert isinstance(op, HloOp)
        return self.add_op(op)

    def add_op(self, op: HloOp) -> SSAValue:
        """Adds an op and verifies it. raises VerifyError at the op or operand with the fault."""
        op.location = self.module.location(self.name, self.op.token)
        try:
            op.verify_rule()
            if isinstance(op, CallingOp):
                op.verify_callees(self.module.computations.__getitem__)
        except RuleBroken as error:
            raise self._located(error, op) from None
        except VerifyException as error:
            raise VerifyError(str(error), stage=VERIFY, place=self.module.place(self.op.token)) from None
        self.body.block.add_op(op)
        self._added.append(op)
        return op.result

    def _located(self, error: RuleBroken, op: HloOp) -> VerifyError:
        place = self.module.place(self.op.token)
        notes = list[tuple[Place | None, str]]()
        if error.operand is not None and error.operand < len(op.operands):
            value = op.operands[error.operand]
            if value in self.operands:
                number = self.operands.index(value)
                place = self.module.place(self.op.spans[number])
                written = self.op.operands[number]
                notes.append((self.module.place(written.token), f"%{written.name} is {stablehlo_type(written.type)}"))
        # The help of a rule is written in HLO text and would not help here.
        details = tuple(map(_in_mlir, error.details))
        return VerifyError(_in_mlir(error.message), stage=VERIFY, place=place, details=details, notes=tuple(notes))

    def name_results(self, results: Sequence[SSAValue]) -> None:
        """Names the added ops: the result's `add.3`, those of several results `sort.3.0` ..., and the others after their opcode."""
        text = self.module.metadata_of(self.op.location)
        named = {result.owner: f"{self.name}.{i}" for i, result in enumerate(results)}
        if len(results) == 1:
            named = {results[0].owner: self.name}
        elif first := next((op for op in reversed(self._added) if op not in named), None):
            named[first] = self.name  # the op that returns the tuple of results
        for op in self._added:
            if isinstance(op, ParameterOp):
                name = self.body.fresh(op.instruction_name.data)
            elif op in named:
                name = self.body.fresh(named[op])
            else:
                name = self.body.fresh(f"{self.name}.{op.opcode}")
            op.instruction_name = string(name)
            location = op.location
            assert isinstance(location, NameLoc)
            op.location = unchecked(NameLoc, desc=string(name), location=location.location)
            if text:
                op.attributes["metadata"] = string(text)
            hint(op)

    def constant(self, array: Array, ir_type: Attribute) -> SSAValue:
        """Adds a literal of type `ir_type`."""
        return self.add_op(ConstantOp.from_array(array, element_of(ir_type), self.name))

    def elements(self, value: SSAValue, count: int) -> list[SSAValue]:
        """The elements of a tuple; for a single value that is not a tuple, the value itself."""
        if not isinstance(value.type, TupleType):
            return [value]
        return [
            self.add("get-tuple-element", [value], value.type.types.data[i], index=IntegerAttr(i, i64))
            for i in range(count)
        ]

    def tuple_of(self, values: Sequence[SSAValue]) -> SSAValue:
        return self.add("tuple", values, tuple_type([value.type for value in values]))

    # ---------------------------------------------------------------------------------------------------------- regions

    def scalars(self, region: Region, what: str) -> SymbolRefAttr:
        """Converts a region of scalars to a computation with a parameter per argument. Values from outside that are not read become 0."""
        unread = self.captured(region)
        for value in unread:
            if not is_array(value.type) or has_dynamic_dims(value.type) or self.module.is_read(value, region):
                raise Unsupported(
                    f"the {what} of '{self.op.name}' uses %{value.name} from outside, which HLO cannot express",
                    stage=VERIFY,
                    place=self.module.place(self.op.token),
                    help="only constants may be used from outside; give the others as operands",
                )
        body = ComputationBody(self.module, region)
        for number, argument in enumerate(region.arguments):
            body.parameter(argument, number, argument.name)
        inner = Conversion(body, self.op, f"{what}_unread", [])
        for value in unread:
            zero = np.zeros(dims_of(value.type), element_of(value.type).numpy)
            body.values[value] = inner.add_op(
                ConstantOp.from_array(zero, element_of(value.type), body.fresh(inner.name))
            )
        results = body.ops(region)
        name = self.module.fresh(f"{self.name}.{what}")
        return SymbolRefAttr(body.finish(name, results, self.op.token).sym_name)

    def captured(self, *regions: Region) -> list[Value]:
        """The values from outside that the regions use, except constants."""
        found = dict[Value, None]()
        for region in regions:
            found |= region.captured
        return [value for value in found if not is_constant(value)]

    def of_tuple(
        self, region: Region, arguments: Sequence[Value], captured: Sequence[Value], what: str, *, carries: bool
    ) -> SymbolRefAttr:
        """Converts a region to a computation of one tuple: its arguments, then the captured values.

        carries  whether it also returns the captured values, as a loop's body does
        """
        inner, parts = self.inside_tuple(region, what, [value.type for value in (*arguments, *captured)])
        inner.name_results([])
        body = inner.body
        body.values |= dict(zip((*arguments, *captured), parts, strict=True))
        results = body.ops(region)
        if carries:
            results = [inner_tuple(body, [*results, *parts[len(arguments) :]], self.op)]
        name = self.module.fresh(f"{self.name}.{what}")
        return SymbolRefAttr(body.finish(name, results, self.op.token).sym_name)

    def inside_tuple(self, region: Region, what: str, types: Sequence[Attribute]) -> tuple[Conversion, list[SSAValue]]:
        """A conversion that adds to a new computation of one tuple, and the tuple's elements."""
        body = ComputationBody(self.module, region)
        parameter = body.parameter(None, 0, f"{what}_arg", tuple_type(types))
        inner = Conversion(body, self.op, f"{what}_arg", [])
        return inner, inner.elements(parameter.result, len(types))

    # ----------------------------------------------------------------------------------------------------------- errors

    def wrong(self, message: str, *details: str) -> VerifyError:
        return VerifyError(message, stage=VERIFY, place=self.module.place(self.op.token), details=details)

    def unsupported(self, message: str, help: str = "") -> Unsupported:
        return Unsupported(message, stage="stablehlo", place=self.module.place(self.op.token), help=help)


def inner_tuple(body: ComputationBody, values: Sequence[SSAValue], op: Op) -> SSAValue:
    """Adds a tuple of these values, even of a single one."""
    c = Conversion(body, op, "tuple", [])
    root = c.tuple_of(values)
    c.name_results([root])
    return root


_HLO_TYPE = re.compile(rf"\b({'|'.join(row.name for row in DTYPES)})\[((?:[\d?]+(?:, ?[\d?]+)*)?)\]")
_SPELLING = {row.name: str(row.ir_type) for row in DTYPES}


def _in_mlir(message: str) -> str:
    """A rule's message with its types in StableHLO's spelling.

    >>> _in_mlir("operand 1 is f32[4,?]")
    'operand 1 is tensor<4x?xf32>'
    """

    def spelled(match: re.Match[str]) -> str:
        sizes = "".join(f"{size.strip()}x" for size in match[2].split(",") if size.strip())
        return f"tensor<{sizes}{_SPELLING[match[1]]}>"

    return _HLO_TYPE.sub(spelled, message)


def _identifier(name: str) -> str:
    """`name` with only characters that HLO text allows: letters, digits, `_`, `.` and `-`."""
    found = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
    return found if found and (found[0].isalpha() or found[0] == "_") else f"v.{found}"
