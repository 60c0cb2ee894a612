"""What passes that make two fusions of one are built of: a computation put together from parts of another, ENTRY as a call of what it was.

part = Part(callee)                       a computation under construction
x = part.take(root.operands[0])           what that value is made of comes along: instructions, and the parameters that they need
y = part.insert(CopyOp(...), root)        a new instruction
computation = part.finish("first", [y], callee)
call = new_fusion([operands[n] for n in part.parameters], computation, "fusion.first")
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.analysis.program_plan import entry_of
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, ReturnOp, TupleOp
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


def leave_only(module: ModuleOp, fusion: str) -> None:
    """ENTRY becomes a call of one of its fusions, with a parameter for each operand."""
    entry = entry_of(module)
    # It speaks of parameters by number.
    module.attributes.pop("hlo.input_output_alias", None)
    (called,) = (op for op in entry.instructions if isinstance(op, FusionOp) and op.instruction_name.data == fusion)
    parameters = [ParameterOp(number, value.type, f"p{number}") for number, value in enumerate(called.operands)]
    alone = called.clone()
    alone.operands = [parameter.result for parameter in parameters]
    for op in (*parameters, alone):
        op.location = called.location
    made = ComputationOp(entry.sym_name.data, Block([*parameters, alone, ReturnOp(alone.result)]), entry=True)
    made.location = entry.location
    Rewriter.insert_op(made, InsertPoint.after(entry))
    Rewriter.erase_op(entry)


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


def rename(op: HloOp, names: set[str]) -> None:
    """Gives `op` its name, or with a number the first that is not among `names`, and adds that to them."""
    name = fresh_name(op.instruction_name.data, names)
    names.add(name)
    op.properties["name"] = StringAttr(name)


def fresh_name(name: str, names: AbstractSet[str]) -> str:
    return name if name not in names else next(f"{name}.{n}" for n in count(1) if f"{name}.{n}" not in names)
