"""Inserts computations and instructions under names that are not taken; one `Names` for a run of a pass.

    names = Names(module)
    names.add_computation(made, before)       %made, or %made.1 ... if that is taken
    names.add(op, before)                     the same for an instruction; it may have the name of `before`,
    names.replace(before, op.result)          which it usually replaces

`rename` does so for one instruction and a set of names. Names are counted once per computation, so that a pass over thousands of
instructions stays linear.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field
from itertools import count

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, fresh_name, insert_computation
from xla_emitters.support.late_dataclass import dataclass

_NUMBERED = re.compile(r"(.*)\.([1-9][0-9]*)", re.DOTALL)


@dataclass(eq=False)
class _Taken:
    """Counts the uses of each name; and for `name.N` keeps the first number that may be free, so that no number is tried twice."""

    times: Counter[str]
    _first: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, name: str, own: str = "") -> str:
        """Takes `name`, or with a number appended the first free one; `own` if it has one user at most. Returns the name taken."""
        found = self._fresh(name, own)
        self.times[found] += 1
        return found

    def free(self, name: str) -> None:
        """One user of the name is erased."""
        self.times[name] -= 1
        self._lower(name, 0)
        if (numbered := _NUMBERED.fullmatch(name)) is not None:
            self._lower(numbered[1], int(numbered[2]))

    def _lower(self, name: str, number: int) -> None:
        if name in self._first:
            self._first[name] = min(self._first[name], number)

    def _fresh(self, name: str, own: str) -> str:
        first = self._first.get(name, 0)
        if self.times[own] <= 1 and own != "":
            number = _number_in(own, name)
            if number is not None and number < first:
                return own
        for number in count(first):
            candidate = f"{name}.{number}" if number else name
            if self.times[candidate] - (candidate == own) <= 0:
                self._first[name] = number
                return candidate
        raise AssertionError


def _number_in(numbered: str, name: str) -> int | None:
    """N if `numbered` is `name.N`, 0 if it is `name`."""
    if numbered == name:
        return 0
    found = _NUMBERED.fullmatch(numbered)
    return int(found[2]) if found is not None and found[1] == name else None


@dataclass(eq=False)
class Names:
    """The names in a module: of computations, and of each computation's instructions; and which fusions call which computation."""

    module: ModuleOp
    _computations: _Taken = field(init=False)
    _instructions: dict[ComputationOp, _Taken] = field(default_factory=dict[ComputationOp, _Taken])
    _calls: Counter[str] | None = None

    def __post_init__(self) -> None:
        self._computations = _Taken(
            Counter(op.sym_name.data for op in self.module.ops if isinstance(op, ComputationOp))
        )

    def add_computation(self, made: ComputationOp, before: ComputationOp) -> None:
        name = self._computations.take(made.sym_name.data)
        made.properties["sym_name"] = StringAttr(name)
        insert_computation(made, before)
        self._count_calls(made, 1)

    def add(self, op: HloOp, before: Operation) -> SSAValue:
        """Inserts an instruction before another one, with that one's location; returns its value."""
        own = before.instruction_name.data if isinstance(before, HloOp) else ""
        op.properties["name"] = StringAttr(self._of(before).take(op.instruction_name.data, own))
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))
        self._count_calls(op, 1)
        return op.result

    def replace(self, op: HloOp, value: SSAValue) -> None:
        """Replaces the result of `op` by `value`, and erases `op`."""
        self._of(op).free(op.instruction_name.data)
        self._count_calls(op, -1)
        Rewriter.replace_op(op, (), [value])

    def call_instead(self, fusion: FusionOp, computation: ComputationOp) -> None:
        """Makes a fusion call another computation."""
        self._count_calls(fusion, -1)
        fusion.calls = SymbolRefAttr(computation.sym_name.data)
        self._count_calls(fusion, 1)

    def erase_uncalled(self, computation: ComputationOp) -> None:
        """Erases a computation unless a fusion calls it."""
        if self._calls is None:
            self._calls = Counter()
            self._count_calls(self.module, 1)
        name = computation.sym_name.data
        if self._calls[name] <= 0:
            self._computations.free(name)
            self._count_calls(computation, -1)
            Rewriter.erase_op(computation)

    def _count_calls(self, around: Operation, each: int) -> None:
        """Adds `each` to the call counts for all fusions in an operation, itself included, once the counts exist."""
        if self._calls is not None:
            for op in around.walk():
                if isinstance(op, FusionOp):
                    self._calls[op.calls.root_reference.data] += each

    def _of(self, op: Operation) -> _Taken:
        around = op.parent_op()
        assert isinstance(around, ComputationOp)
        if around not in self._instructions:
            self._instructions[around] = _Taken(Counter(other.instruction_name.data for other in around.instructions))
        return self._instructions[around]


def rename(op: HloOp, names: set[str]) -> None:
    """Gives `op` its name, or with a number appended the first one that is not in `names`, and adds it to `names`."""
    name = fresh_name(op.instruction_name.data, names)
    names.add(name)
    op.properties["name"] = StringAttr(name)
