"""Tools of passes that split a fusion: a computation made from parts of another; ENTRY as a call of its old computation.

part = Part(callee)                       a computation under construction
x = part.take(root.operands[0])           copies the instructions that compute this value, and the parameters that they need
y = part.insert(CopyOp(...), root)        a new instruction
computation = part.finish("first", [y], callee)
call = new_fusion([operands[n] for n in part.parameters], computation, "fusion.first")

`Parting` does this for fusions of control computations, which then use the results of the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TypeGuard

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import tuple_type
from xla_emitters.graph.entry import changes_width, tuple_elements
from xla_emitters.graph.names import Names, rename
from xla_emitters.graph.overwrites import is_callers, may_overwrite
from xla_emitters.graph.view import FusionView
from xla_emitters.support.late_dataclass import dataclass


@dataclass(eq=False)
class NewComputation:
    """A computation under construction.

    names  of its instructions
    """

    block: Block = field(init=False, default_factory=Block)
    names: set[str] = field(init=False, default_factory=set[str])

    def insert(self, op: HloOp, of: Operation) -> SSAValue:
        """Adds a new instruction with the location of another, under a name of its own."""
        rename(op, self.names)
        return self._add(op, of)

    def copy(self, op: HloOp, operands: Sequence[SSAValue]) -> SSAValue:
        """Adds a copy of an instruction, with these operands."""
        copy = op.clone()
        copy.operands = list(operands)
        return self.insert(copy, op)

    def _add(self, op: HloOp, of: Operation) -> SSAValue:
        op.location = of.location
        self.block.add_op(op)
        return op.result

    def finish(self, name: str, results: Sequence[SSAValue], of: Operation, *, is_entry: bool = False) -> ComputationOp:
        """The computation, with the location of `of`; several results are a tuple."""
        root = results[0]
        if len(results) > 1:
            root = self.insert(TupleOp(results, tuple_type([result.type for result in results]), "results"), of)
        self.block.add_op(ReturnOp(root))
        made = ComputationOp(name, self.block, entry=is_entry)
        made.location = of.location
        return made


@dataclass(eq=False)
class Part(NewComputation):
    """A computation under construction that copies instructions of another, with the parameters that they need.

    source      the computation that is copied from
    outside     whether an instruction is not copied: its value is a parameter here
    taken       value of `source` -> its copy here
    parameters  for each parameter here: the number of its original in `source`, -1 if it has none
    names       of `source` too
    """

    source: ComputationOp
    outside: Callable[[HloOp], bool] = lambda op: isinstance(op, ParameterOp)
    taken: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    parameters: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.names = {op.instruction_name.data for op in self.source.instructions}

    def take(self, value: SSAValue) -> SSAValue:
        """Copies `value` of `source`, with the instructions that it depends on; returns the copy."""
        pending = [value]
        while pending:
            current = pending[-1]
            owner = owner_of(current)
            is_outside = self.outside(owner)
            missing = [operand for operand in owner.operands if operand not in self.taken and not is_outside]
            if current in self.taken:
                pending.pop()
            elif missing:
                pending += missing
            elif is_outside:
                own = ParameterOp(len(self.parameters), current.type, owner.instruction_name.data)
                self.parameters.append(owner.number.value.data if isinstance(owner, ParameterOp) else -1)
                self.taken[current] = self._add(own, owner)
            else:
                copy = owner.clone()
                copy.operands = [self.taken[operand] for operand in owner.operands]
                self.taken[current] = self._add(copy, owner)
        return self.taken[value]


@dataclass(frozen=True, eq=False)
class Parting:
    """A fusion of a control computation that is being split."""

    names: Names
    fusion: FusionOp
    callee: ComputationOp

    def call(
        self, part: Part, name: str, results: Sequence[SSAValue], first: Sequence[SSAValue], suffix: str
    ) -> FusionOp:
        """Adds the computation of `part` to the module, and a fusion that calls it before this one.

        name    of the computation
        first   operands for the parameters that are not the fusion's
        suffix  appended to the fusion's name
        """
        callee = part.finish(name, results, self.callee)
        self.names.add_computation(callee, self.callee)
        operands = [*first, *(self.fusion.operands[number] for number in part.parameters if number >= 0)]
        made = new_fusion(operands, callee, f"{self.fusion.instruction_name.data}{suffix}")
        self.before(made)
        return made

    def before(self, op: HloOp) -> SSAValue:
        """Adds an instruction before the fusion."""
        return self.names.add(op, self.fusion)

    def elements(self, value: SSAValue) -> list[SSAValue]:
        """The elements of a tuple; [value] if it is not a tuple."""
        return tuple_elements(value, self.before)

    def replace(self, found: Sequence[tuple[HloOp, SSAValue]]) -> None:
        """Replaces the fusion's results: `found` has one (instruction, value) per root of the computation; a root may be a tuple."""
        values = {root: [value for other, value in found if other is root] for root, _ in found}

        def together(value: SSAValue) -> SSAValue:
            owner = owner_of(value)
            if owner in values:
                return values[owner].pop()
            assert isinstance(owner, TupleOp)
            parts = [together(operand) for operand in owner.operands]
            return self.before(TupleOp(parts, owner.result.type, owner.instruction_name.data))

        self.names.replace(self.fusion, together(self.callee.root))
        self.names.erase_uncalled(self.callee)


def wrap_entry(entry: ComputationOp) -> ComputationOp:
    """A new ENTRY that calls the old one as a fusion of the same name."""
    name, around = entry.sym_name.data, NewComputation()
    entry.properties["sym_name"] = StringAttr(f"{name}.fused")
    entry.entry = None
    around.names.add(name)  # the fusion has it, and its kernel
    parameters = [
        around.insert(ParameterOp(n, p.result.type, p.instruction_name.data), p) for n, p in enumerate(entry.parameters)
    ]
    around.names.remove(name)
    fusion = around.insert(new_fusion(parameters, entry, name), entry)
    made = around.finish(name, [fusion], entry, is_entry=True)
    Rewriter.insert_op(made, InsertPoint.after(entry))
    return made


def new_fusion(operands: Sequence[SSAValue], callee: ComputationOp, name: str) -> FusionOp:
    properties = {"calls": SymbolRefAttr(callee.sym_name.data), "kind": StringAttr("kInput")}
    return FusionOp(operands, callee.root.type, name, properties)


def copying(names: Names, value: SSAValue, ir_type: Attribute, before: Operation, name: str) -> SSAValue:
    """A new fusion that copies an array of a control computation.

    type    of the copy: the array's, possibly with another layout
    before  the instruction before which it is inserted, and whose location it gets
    """
    around = before.parent_op()
    assert isinstance(around, ComputationOp)
    inside = NewComputation()
    array = inside.insert(ParameterOp(0, value.type, "array"), before)
    copied = inside.insert(CopyOp([array], ir_type, "copied"), before)
    callee = inside.finish(f"{name}.computation", [copied], before)
    names.add_computation(callee, around)
    return names.add(new_fusion([value], callee, name), before)


def is_fusible_bitcast(op: object) -> TypeGuard[BitcastOp]:
    """Whether an instruction is a bitcast that fusions take in. One that changes the width of elements is a copy of bytes instead."""
    return isinstance(op, BitcastOp) and not changes_width(op)


def taken_inside(part: Part, value: SSAValue, given: list[SSAValue]) -> SSAValue:
    """The value inside the fusion; a value that is neither constant nor bitcast becomes a parameter and is appended to `given`."""
    op = owner_of(value)
    match op:
        case ConstantOp():
            return part.insert(op.clone(), op)
        case BitcastOp() if not changes_width(op):
            again = op.clone()
            again.operands = [taken_inside(part, op.operands[0], given)]
            return part.insert(again, op)
        case _:
            given.append(value)
            part.parameters.append(-1)
            return part.insert(ParameterOp(len(given) - 1, value.type, op.instruction_name.data), op)


def aliasing(operands: Sequence[int | None], *, is_tuple: bool) -> StringAttr:
    """An `output_to_operand_aliasing`: result k shares the buffer of operand `operands[k]`; None: no entry."""
    pairs = [
        f"{{{number if is_tuple else ''}}}: ({operand}, {{}})"
        for number, operand in enumerate(operands)
        if operand is not None
    ]
    return StringAttr("{" + ", ".join(pairs) + "}")


def may_write(view: FusionView, bodies: AbstractSet[ComputationOp]) -> dict[int, SSAValue]:
    """Number of a result -> the operand whose buffer it has according to HLO; only buffers that may be overwritten, and the caller's.

    bodies  as in `may_overwrite`
    """
    if view.call is None:
        return {}
    return {
        number: value
        for number, value in view.wanted_aliases.items()
        if is_callers(value) or may_overwrite(value, view.call, bodies)
    }
