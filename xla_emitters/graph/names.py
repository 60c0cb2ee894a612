"""New computations and instructions, under names that are not taken; one `Names` for a run of a pass.

    names = Names(module)
    names.add_computation(made, before)       %made, or %made.1 ... where that is taken
    names.add(op, before)                     the same for an instruction; the name of `before` may be taken again:
    names.replace(before, op.result)          as a rule it is replaced by what comes before it

Names are counted once for a computation, so that a pass over thousands of instructions stays linear.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, insert_computation


@dataclass(eq=False)
class Names:
    """The names in a module: those of computations, those of each computation's instructions, and which fusions call what."""

    module: ModuleOp
    _computations: Counter[str] = field(init=False)
    _instructions: dict[ComputationOp, Counter[str]] = field(default_factory=dict[ComputationOp, Counter[str]])

    def __post_init__(self) -> None:
        self._computations = Counter(op.sym_name.data for op in self.module.ops if isinstance(op, ComputationOp))

    def add_computation(self, made: ComputationOp, before: ComputationOp) -> None:
        name = _fresh(made.sym_name.data, self._computations)
        self._computations[name] += 1
        made.properties["sym_name"] = StringAttr(name)
        insert_computation(made, before)

    def add(self, op: HloOp, before: Operation) -> SSAValue:
        """Adds an instruction before another one, at the place in the source where that is; returns its value."""
        taken = self._of(before)
        own = before.instruction_name.data if isinstance(before, HloOp) else ""
        name = _fresh(op.instruction_name.data, taken, own)
        taken[name] += 1
        op.properties["name"] = StringAttr(name)
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))
        return op.result

    def replace(self, op: HloOp, value: SSAValue) -> None:
        """Uses `value` instead of what `op` gives, and erases `op`."""
        self._of(op)[op.instruction_name.data] -= 1
        Rewriter.replace_op(op, (), [value])

    def erase_uncalled(self, computation: ComputationOp) -> None:
        """Erases a computation unless a fusion calls it."""
        name = computation.sym_name.data
        if not any(isinstance(op, FusionOp) and op.calls.root_reference.data == name for op in self.module.walk()):
            self._computations[name] -= 1
            Rewriter.erase_op(computation)

    def _of(self, op: Operation) -> Counter[str]:
        around = op.parent_op()
        assert isinstance(around, ComputationOp)
        if around not in self._instructions:
            self._instructions[around] = Counter(other.instruction_name.data for other in around.instructions)
        return self._instructions[around]


def _fresh(name: str, taken: Counter[str], own: str = "") -> str:
    """`name`, or with a number the first that is not taken; `own` is not, by the one instruction that has it."""
    candidates = (name if number == 0 else f"{name}.{number}" for number in count())
    return next(candidate for candidate in candidates if taken[candidate] - (candidate == own) <= 0)
