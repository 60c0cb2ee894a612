"""What passes that make two fusions of one are built of: a computation put together from parts of another, ENTRY as a call of what it was.

part = Part(callee)                       a computation under construction
x = part.take(root.operands[0])           what that value is made of comes along: instructions, and the parameters that they need
y = part.insert(CopyOp(...), root)        a new instruction
computation = part.finish("first", [y], callee)
call = new_fusion([operands[n] for n in part.parameters], computation, "fusion.first")

`Parting` does this for ENTRY's fusions, whose results then come from the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, TupleType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.types import tuple_type


@dataclass(eq=False)
class Part:
    """A computation under construction that takes over instructions of another, and those parameters that these need.

    source      the other
    taken       its values, and what they are here
    parameters  for each parameter here the number of the one that it is there, -1 for one that is not
    names       that no new instruction may have
    """

    source: ComputationOp
    block: Block = field(default_factory=Block)
    taken: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    parameters: list[int] = field(default_factory=list[int])
    names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = {op.instruction_name.data for op in self.source.instructions}

    def insert(self, op: HloOp, of: Operation) -> SSAValue:
        """Adds a new instruction, under a name of its own."""
        rename(op, self.names)
        return self._add(op, of)

    def _add(self, op: HloOp, of: Operation) -> SSAValue:
        op.location = of.location
        self.block.add_op(op)
        return op.result

    def take(self, value: SSAValue) -> SSAValue:
        """What `value` of the other computation is here."""
        pending = [value]
        while pending:
            current = pending[-1]
            owner = current.owner
            assert isinstance(owner, HloOp)
            missing = [operand for operand in owner.operands if operand not in self.taken]
            if current in self.taken:
                pending.pop()
            elif missing:
                pending += missing
            elif isinstance(owner, ParameterOp):
                own = ParameterOp(len(self.parameters), current.type, owner.instruction_name.data)
                self.parameters.append(owner.number.value.data)
                self.taken[current] = self._add(own, owner)
            else:
                copy = owner.clone()
                copy.operands = [self.taken[operand] for operand in owner.operands]
                self.taken[current] = self._add(copy, owner)
        return self.taken[value]

    def finish(self, name: str, results: Sequence[SSAValue], of: Operation) -> ComputationOp:
        root = results[0]
        if len(results) > 1:
            root = self.insert(TupleOp(results, tuple_type([result.type for result in results]), "results"), of)
        self.block.add_op(ReturnOp(root))
        made = ComputationOp(name, self.block)
        made.location = of.location
        return made


@dataclass(frozen=True, eq=False)
class Parting:
    """A fusion of ENTRY on its way to several."""

    module: ModuleOp
    fusion: FusionOp
    callee: ComputationOp

    def call(
        self, part: Part, name: str, results: Sequence[SSAValue], first: Sequence[SSAValue], suffix: str
    ) -> FusionOp:
        """Adds the computation of `part` to the module, and before the fusion one that calls it.

        name    of the computation
        first   what the parameters are given that are none of the fusion's
        suffix  to the fusion's name
        """
        computations = {op.sym_name.data for op in self.module.ops if isinstance(op, ComputationOp)}
        callee = part.finish(fresh_name(name, computations), results, self.callee)
        Rewriter.insert_op(callee, InsertPoint.before(self.callee))
        operands = [*first, *(self.fusion.operands[number] for number in part.parameters if number >= 0)]
        made = new_fusion(operands, callee, f"{self.fusion.instruction_name.data}{suffix}")
        self.before(made)
        return made

    def before(self, op: HloOp) -> SSAValue:
        """Adds an instruction to ENTRY before the fusion."""
        around = self.fusion.parent_op()
        assert isinstance(around, ComputationOp)
        rename(op, {other.instruction_name.data for other in around.instructions if other is not self.fusion})
        op.location = self.fusion.location
        Rewriter.insert_op(op, InsertPoint.before(self.fusion))
        return op.result

    def elements(self, value: SSAValue) -> list[SSAValue]:
        """The elements of a tuple; `value` alone if it is none."""
        if not isinstance(value.type, TupleType):
            return [value]
        owner = value.owner
        assert isinstance(owner, HloOp)
        name = owner.instruction_name.data
        return [
            self.before(GetTupleElementOp([value], element_type, f"{name}.{n}", {"index": IntegerAttr(n, i64)}))
            for n, element_type in enumerate(value.type.types)
        ]

    def replace(self, found: Sequence[tuple[HloOp, SSAValue]]) -> None:
        """ENTRY uses new values for the fusion's: one for each root of what the fusion called, also where an instruction is several."""
        values = {root: [value for other, value in found if other is root] for root, _ in found}

        def together(value: SSAValue) -> SSAValue:
            owner = value.owner
            assert isinstance(owner, HloOp)
            if owner in values:
                return values[owner].pop()
            assert isinstance(owner, TupleOp)
            parts = [together(operand) for operand in owner.operands]
            return self.before(TupleOp(parts, owner.result.type, owner.instruction_name.data))

        Rewriter.replace_op(self.fusion, (), [together(self.callee.root)])
        fusions = (op for op in self.module.walk() if isinstance(op, FusionOp))
        if not any(op.calls.root_reference.data == self.callee.sym_name.data for op in fusions):
            Rewriter.erase_op(self.callee)


def wrap_entry(entry: ComputationOp) -> ComputationOp:
    """A new ENTRY that calls the old one as a fusion of the same name."""
    name = entry.sym_name.data
    block = Block()
    parameters = [ParameterOp(n, p.result.type, p.instruction_name.data) for n, p in enumerate(entry.parameters)]
    entry.properties["sym_name"] = StringAttr(f"{name}.fused")
    entry.entry = None
    fusion = new_fusion([p.result for p in parameters], entry, name)
    block.add_ops([*parameters, fusion, ReturnOp(fusion.result)])
    made = ComputationOp(name, block, entry=True)
    for op, old in zip(parameters, entry.parameters, strict=True):
        op.location = old.location
    made.location = fusion.location = entry.location
    Rewriter.insert_op(made, InsertPoint.after(entry))
    return made


def new_fusion(operands: Sequence[SSAValue], callee: ComputationOp, name: str) -> FusionOp:
    properties = {"calls": SymbolRefAttr(callee.sym_name.data), "kind": StringAttr("kInput")}
    return FusionOp(operands, callee.root.type, name, properties)


def copying(module: ModuleOp, value: SSAValue, result_type: Attribute, before: Operation, name: str) -> SSAValue:
    """What a new fusion makes of an array of ENTRY: a copy.

    result_type  the array's type, perhaps in another layout
    before       the op of ENTRY that it is inserted before; it has its place
    """
    array = ParameterOp(0, value.type, "array")
    copy = CopyOp([array.result], result_type, "copied")
    computations = {op.sym_name.data for op in module.ops if isinstance(op, ComputationOp)}
    callee = ComputationOp(fresh_name(f"{name}.computation", computations), Block([array, copy, ReturnOp(copy.result)]))
    fusion = new_fusion([value], callee, name)
    for op in (array, copy, callee, fusion):
        op.location = before.location
    entry = before.parent_op()
    assert isinstance(entry, ComputationOp)
    rename(fusion, {op.instruction_name.data for op in entry.instructions if op is not before})
    Rewriter.insert_op(callee, InsertPoint.before(entry))
    Rewriter.insert_op(fusion, InsertPoint.before(before))
    return fusion.result


def aliasing(operands: Sequence[int | None], *, is_tuple: bool) -> StringAttr:
    """An `output_to_operand_aliasing`: result number k lies where the k-th of `operands` does; None: where nothing is said."""
    pairs = [
        f"{{{number if is_tuple else ''}}}: ({operand}, {{}})"
        for number, operand in enumerate(operands)
        if operand is not None
    ]
    return StringAttr("{" + ", ".join(pairs) + "}")


def rename(op: HloOp, names: set[str]) -> None:
    """Gives `op` its name, or with a number the first that is not among `names`, and adds that to them."""
    name = fresh_name(op.instruction_name.data, names)
    names.add(name)
    op.properties["name"] = StringAttr(name)


def fresh_name(name: str, names: AbstractSet[str]) -> str:
    return name if name not in names else next(f"{name}.{n}" for n in count(1) if f"{name}.{n}" not in names)
