"""The structure around instructions: computations, parameters, tuples, and the ops that call a computation.

    hlo.computation @gelu {
      %param = hlo.parameter 0 {name = "param"} : tensor<8xbf16>
      %square = hlo.multiply %param, %param {name = "square"} : tensor<8xbf16>
      hlo.return %square : tensor<8xbf16>
    }
    hlo.computation @main entry {
      %p = hlo.parameter 0 {name = "p"} : tensor<8xbf16>
      %f = hlo.fusion %p calls @gelu kind = "kLoop" {name = "fusion"} : tensor<8xbf16>
      hlo.return %f : tensor<8xbf16>
    }

A computation has one block without arguments: its inputs are `hlo.parameter` ops, as in HLO. `hlo.return` names the root, which need not
be the last instruction. One computation of a module is its entry. Computations are named by symbols, exactly as in HLO.
Source: docs/reference/1 6.2, 6.10.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, TupleType, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, MemoryWriteEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken
from xla_emitters.dialects.hlo.types import (
    BufferType,
    array_type,
    as_array,
    dims_of,
    same_shape,
    tuple_type,
    type_at,
    type_text,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp, ops_of
from xla_emitters.support.late_dataclass import dataclass

CAPTURES = "disc.captures"
"""The attribute of a loop with operands after the first, which are the same in every iteration: its computations have a parameter for
each. HLO and StableHLO text have no such loops."""
_IS_FUSION = "is_fusion"


@op_definition
class ComputationOp(QuickOp):
    """A function of HLO: a list of instructions with a root."""

    name = "hlo.computation"

    sym_name = prop_def(StringAttr)
    entry = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(self, name: str, body: Region | Block, *, entry: bool = False):
        super().__init__(
            properties={"sym_name": StringAttr(name), "entry": UnitAttr() if entry else None},
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @property
    def is_entry(self) -> bool:
        return self.entry is not None

    @property
    def is_fusion(self) -> bool:
        """Whether this is the entry of a text without ENTRY: one fusion, which is compiled by itself."""
        return self.is_entry and _IS_FUSION in self.attributes

    def set_entry(self, *, is_fusion: bool = False) -> None:
        """Makes this the module's entry."""
        self.entry = UnitAttr()
        if is_fusion:
            self.attributes[_IS_FUSION] = UnitAttr()

    @property
    def instructions(self) -> Iterator[HloOp]:
        """All instructions in order, parameters too; not the terminator."""
        return (op for op in ops_of(self.body.block) if isinstance(op, HloOp))

    @property
    def parameters(self) -> tuple[ParameterOp, ...]:
        """Its parameters by number, whatever their order in the text."""
        found = [op for op in ops_of(self.body.block) if type(op) is ParameterOp]
        return tuple(sorted(found, key=lambda op: op.number.value.data))

    @property
    def root(self) -> SSAValue:
        """Its result; a tuple when it has several."""
        terminator = self.body.block.last_op
        assert isinstance(terminator, ReturnOp)
        return terminator.root

    @property
    def roots(self) -> tuple[SSAValue, ...]:
        """Its results: the operands of a root tuple, or the root alone."""
        owner = self.root.owner
        return tuple(owner.operands) if isinstance(owner, TupleOp) else (self.root,)

    def verify_(self) -> None:
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException(f"computation '{self.sym_name.data}' does not end in hlo.return")
        if self.body.block.args:
            raise VerifyException("a computation's inputs are hlo.parameter ops, not block arguments")
        self.verify_parameter_numbers()
        self.verify_names()

    def verify_names(self) -> None:
        """raises RuleBroken at the second instruction of one name."""
        first = dict[str, HloOp]()
        for op in self.instructions:
            name = op.instruction_name.data
            if (other := first.setdefault(name, op)) is not op:
                raise RuleBroken(f"instruction '{name}' is defined twice", at=op, also=(other, "the other one"))

    def verify_parameter_numbers(self) -> None:
        """Parameters are numbered 0, 1, ..., each number once. raises RuleBroken naming the parameter at fault."""
        parameters = self.parameters
        for expected, parameter in enumerate(parameters):
            number = parameter.number.value.data
            if number == expected:
                continue
            twice = bool(expected) and number == parameters[expected - 1].number.value.data
            raise RuleBroken(
                f"parameter({number}) of computation '{self.sym_name.data}' is defined twice"
                if twice
                else f"computation '{self.sym_name.data}' has parameter({number}) but no parameter({expected})",
                f"it has {len(parameters)} parameters: they are numbered 0 to {len(parameters) - 1}, once each",
                at=parameter,
                also=(parameters[expected - 1], "the other one") if twice else None,
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        entry = parser.parse_optional_keyword("entry") is not None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        op = cls(name.data, region, entry=entry)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.is_entry:
            printer.print_string(" entry")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@op_definition
class ReturnOp(QuickOp):
    """Names the root of a computation."""

    name = "hlo.return"

    root = operand_def()
    traits = traits_def(IsTerminator(), HasParent(ComputationOp))
    assembly_format = "$root attr-dict `:` type($root)"

    def __init__(self, root: SSAValue):
        super().__init__(operands=[root])


@op_definition
class ParameterOp(HloOp):
    """Input `number` of its computation, used or not: it counts as a write, so that no pass erases it."""

    name = "hlo.parameter"
    OPERANDS: ClassVar = range(0, 1)
    traits = traits_def(MemoryWriteEffect())

    number = prop_def(IntegerAttr)

    def __init__(self, number: int, ir_type: Attribute, name: str):
        super().__init__([], ir_type, name, {"number": IntegerAttr(number, i64)})

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        return {"number": IntegerAttr(parser.parse_integer(allow_negative=False, allow_boolean=False), i64)}

    def print_head(self, printer: Printer) -> tuple[str, ...]:
        printer.print_string(f" {self.number.value.data}")
        return ("number",)

    def output_to_input(self) -> tuple[()]:
        return ()


@op_definition
class TupleOp(HloOp):
    """Several values as one; at the root of a fusion, its results."""

    name = "hlo.tuple"

    def verify_(self) -> None:
        self.expect_type(self.infer_type(), "its operands make")

    def infer_type(self) -> Attribute:
        return tuple_type([operand.type for operand in self.operands])

    def input_to_output(self) -> tuple[IndexingMap, ...]:
        """For each operand, the identity map of its own element of the tuple."""
        return tuple(identity_map(dims_of(operand)) for operand in self.operands)

    def evaluate(self, operands: Sequence[Any], call: Call) -> tuple[Any, ...]:
        return tuple(operands)


@op_definition
class GetTupleElementOp(HloOp):
    """One element of a tuple."""

    name = "hlo.get_tuple_element"
    OPERANDS: ClassVar = range(1, 2)

    index = prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.expect_type(self.infer_type(), f"element {self.index.value.data} is")

    def infer_type(self) -> Attribute:
        ir_type, index = self.operands[0].type, self.index.value.data
        if not isinstance(ir_type, TupleType):
            raise RuleBroken(
                "get-tuple-element of a value that is not a tuple", f"it is {type_text(ir_type)}", operand=0
            )
        if not 0 <= index < len(ir_type.types):
            raise RuleBroken(
                f"a tuple of {len(ir_type.types)} has no element {index}", f"it is {type_text(ir_type)}", operand=0
            )
        return ir_type.types.data[index]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return operands[0][self.index.value.data]

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (identity_map(dims_of(self.result)),)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        return (e.elements(0)[self.index.value.data],)


@dataclass(frozen=True)
class Callee:
    """A computation that an instruction calls.

    symbol  the computation's name
    takes   required types of its parameters, layouts aside
    gives   required type of its root; None: any
    """

    symbol: SymbolRefAttr
    takes: Sequence[Attribute]
    gives: Attribute | None


class CallingOp(HloOp):
    """An instruction that applies computations: to its operands, or to elements of them."""

    @abstractmethod
    def callees(self) -> tuple[Callee, ...]:
        """The called computations, with their required types."""

    def verify_(self) -> None:
        self.verify_shape()
        if enclosing_module(self) is not None:
            self.verify_callees(partial(find_computation, self))

    def verify_shape(self) -> None:
        """Checks operands, attributes and result, but not the called computations."""

    def verify_callees(self, find: Callable[[str], ComputationOp]) -> None:
        """raises RuleBroken for a computation whose parameters or root do not have the types that this instruction needs."""
        for callee in self.callees():
            self._verify_callee(find(callee.symbol.root_reference.data), callee.takes, callee.gives)

    def _verify_callee(self, callee: ComputationOp, wanted: Sequence[Attribute], result: Attribute | None) -> None:
        parameters = callee.parameters
        name = callee.sym_name.data
        if len(parameters) != len(wanted):
            raise RuleBroken(
                f"computation '{name}' does not fit '{self.opcode}'",
                f"it has {len(parameters)} parameters; '{self.opcode}' gives it {len(wanted)} values",
                also=(callee, "it is here"),
            )
        for i, (parameter, ir_type) in enumerate(zip(parameters, wanted, strict=True)):
            if not same_shape(parameter.result.type, ir_type):
                raise RuleBroken(
                    f"parameter {i} of computation '{name}' does not fit '{self.opcode}'",
                    f"it is {type_text(parameter.result.type)}; '{self.opcode}' gives it {type_text(ir_type)}",
                    operand=i if len(wanted) == len(self.operands) else None,
                    also=(parameter, "the parameter is here"),
                )
        if result is not None and not same_shape(callee.root.type, result):
            raise RuleBroken(
                f"the root of computation '{name}' does not fit '{self.opcode}'",
                f"it is {type_text(callee.root.type)}; '{self.opcode}' needs {type_text(result)}",
                also=(callee.root.owner, "the root is here") if isinstance(callee.root.owner, Operation) else None,
            )


def enclosing_module(op: Operation) -> ModuleOp | None:
    """The module that contains `op`, or None."""
    holder: Operation | None = op.parent_op()
    while holder is not None and not isinstance(holder, ModuleOp):
        holder = holder.parent_op()
    return holder


def find_computation(beside: Operation, name: str | SymbolRefAttr) -> ComputationOp:
    """The computation of that name in the module that contains `beside`. raises RuleBroken where there is none."""
    module = enclosing_module(beside)
    text = name if isinstance(name, str) else name.root_reference.data
    if module is not None and (found := _by_name(module, text)) is not None:
        return found
    raise RuleBroken(f"no computation named '{text}'")


def callees_of(op: Operation) -> list[ComputationOp]:
    """The computations that an instruction calls, runs or applies: a `while` its condition and its body, a `conditional` its branches."""
    return [find_computation(op, callee.symbol) for callee in op.callees()] if isinstance(op, CallingOp) else []


def reached_from(
    roots: Iterable[ComputationOp], through: Callable[[HloOp], bool] = lambda op: True
) -> Iterator[ComputationOp]:
    """Computations, and those that they call, directly or not, each once. `through`: whether an instruction's calls count."""
    seen, pending = set[ComputationOp](), list(roots)
    while pending:
        if (computation := pending.pop()) in seen:
            continue
        seen.add(computation)
        yield computation
        for op in filter(through, computation.instructions):
            pending += callees_of(op)


_FOUND: WeakKeyDictionary[ModuleOp, dict[str, ComputationOp]] = WeakKeyDictionary()
"""Cache of computations by name. A look-up checks that the cached one is still in the module under that name."""


def insert_computation(made: ComputationOp, before: ComputationOp) -> None:
    """Adds a computation to the module that contains `before`, and to the look-up cache."""
    Rewriter.insert_op(made, InsertPoint.before(before))
    module = enclosing_module(made)
    if module is not None:
        _FOUND.setdefault(module, {})[made.sym_name.data] = made


def _by_name(module: ModuleOp, name: str) -> ComputationOp | None:
    """Cached: xDSL's look-up walks over all computations, of which a module may have thousands, each looked up many times."""
    found = _FOUND.setdefault(module, {})
    known = found.get(name)
    if known is None or known.parent_op() is not module or known.sym_name.data != name:
        every = [op for op in module.ops if isinstance(op, ComputationOp)]
        found.clear()
        found.update((op.sym_name.data, op) for op in reversed(every))
    return found.get(name)


_NUMBER = r"-?\d{1,9}"
_INDEX = rf"\{{((?:{_NUMBER}(?:,{_NUMBER})*)?)\}}"
_ALIAS = re.compile(rf"{_INDEX}:\(({_NUMBER}),{_INDEX}\)")


def verify_aliasing(op: HloOp, aliasing: StringAttr | None) -> None:
    """raises RuleBroken unless the arrays that share a buffer by `output_to_operand_aliasing`, `{{0}: (1, {})}`, have one shape."""
    if aliasing is None:
        return
    text = "".join(aliasing.data.split()).removeprefix("{").removesuffix("}")
    if _ALIAS.sub("", text).strip(","):
        raise RuleBroken(
            f"'{aliasing.data}' is not an aliasing", "{{0}: (1, {})}: output {0} shares the memory of operand 1"
        )
    types = tuple_type([operand.type for operand in op.operands])
    for output, operand, inside in aliased_operands(aliasing):
        ours, theirs = type_at(op.result.type, output), type_at(types, [operand, *inside])
        if ours is None or theirs is None or not same_shape(_contents(ours), _contents(theirs)):
            at, of = (",".join(map(str, index)) for index in (output, inside))
            raise RuleBroken(
                f"output {{{at}}} of '{op.opcode}' cannot share the memory of {{{of}}} of operand {operand}",
                f"output_to_operand_aliasing={aliasing.data}",
                f"the operands are {type_text(types)[1:-1]}",
                f"the result is {type_text(op.result.type)}",
            )


def aliased_operands(aliasing: StringAttr) -> list[tuple[list[int], int, list[int]]]:
    """The entries of `output_to_operand_aliasing`: an index into the result, an operand's number, and an index into that operand.

    >>> aliased_operands(StringAttr("{{0}: (1, {}), {1}: (2, {3})}"))
    [([0], 1, []), ([1], 2, [3])]
    """
    text = "".join(aliasing.data.split())[1:-1]
    return [(_numbers(output), int(operand), _numbers(inside)) for output, operand, inside in _ALIAS.findall(text)]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _contents(ir_type: Attribute) -> Attribute:
    return ir_type.contents if isinstance(ir_type, BufferType) else ir_type


@op_definition
class FusionOp(CallingOp):
    """A computation that becomes one kernel."""

    name = "hlo.fusion"
    KINDS: ClassVar = ("kLoop", "kInput", "kOutput", "kCustom")

    calls = prop_def(SymbolRefAttr)
    kind = prop_def(StringAttr)
    output_to_operand_aliasing = opt_prop_def(StringAttr)

    def callees(self) -> tuple[Callee, ...]:
        return (Callee(self.calls, [operand.type for operand in self.operands], self.result.type),)

    def verify_shape(self) -> None:
        if self.kind.data not in self.KINDS:
            raise RuleBroken(f"no fusion kind '{self.kind.data}'", f"it is one of {', '.join(self.KINDS)}")
        verify_aliasing(self, self.output_to_operand_aliasing)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return call(self.calls.root_reference.data, operands)

    @classmethod
    def parse_tail(cls, parser: Parser) -> dict[str, Attribute]:
        parser.parse_keyword("calls")
        calls = SymbolRefAttr(parser.parse_symbol_name())
        parser.parse_keyword("kind")
        parser.parse_punctuation("=")
        return {"calls": calls, "kind": StringAttr(parser.parse_str_literal())}

    def print_tail(self, printer: Printer) -> tuple[str, ...]:
        printer.print_string(" calls ")
        printer.print_symbol_name(self.calls.root_reference.data)
        printer.print_string(" kind = ")
        printer.print_string_literal(self.kind.data)
        return ("calls", "kind")


@op_definition
class CallOp(CallingOp):
    """A computation applied to the operands, not fused. What it calls may print, or check sizes."""

    name = "hlo.call"
    traits = traits_def(MemoryWriteEffect())

    to_apply = prop_def(SymbolRefAttr)
    is_composite = opt_prop_def(IntegerAttr)

    def callees(self) -> tuple[Callee, ...]:
        return (Callee(self.to_apply, [operand.type for operand in self.operands], self.result.type),)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return call(self.to_apply.root_reference.data, operands)


def scalar_of(ir_type: Attribute) -> Attribute:
    """The scalar with the element type of an array; for a tuple, the tuple of those."""
    if isinstance(ir_type, TupleType):
        return tuple_type([scalar_of(part) for part in ir_type.types])
    return array_type(as_array(ir_type).element_type, ())


OPS: tuple[type[HloOp], ...] = (ParameterOp, TupleOp, GetTupleElementOp, FusionOp, CallOp)


_FEW = 16
"""Up to this limit, numbers for names are tried one by one."""


def fresh_name(name: str, names: Container[str]) -> str:
    """`name`, or with a number appended a name that is not in `names`: mostly the first free one, found in few steps."""
    if name not in names:
        return name
    few = next((f"{name}.{n}" for n in range(1, _FEW) if f"{name}.{n}" not in names), None)
    if few is not None:
        return few
    taken, free = _FEW - 1, _FEW
    while f"{name}.{free}" in names:
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        taken, free = (middle, free) if f"{name}.{middle}" in names else (taken, middle)
    return f"{name}.{free}"
