"""XLA's passes and ours as rows, with the difference between the IR of the two sides after each.

Passes are aligned as two sequences of names (XLA's `cse` is our `xla-cse`). A pass that only one side has is a row of its own, in which
its state is compared with the latest one of the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.other_spelling import of_dictionaries
from xla_emitters.explore.compare.ir_difference import Difference, KernelIr, difference
from xla_emitters.explore.compare.xla_log import State, XlaLog


@dataclass(frozen=True)
class ComparedPass:
    """One pass.

    xla, ours          its names; "" on the side that does not have it
    xla_ops, ours_ops  ops after it; None where there is no such pass, or the log ends before
    changed            whether it changed anything, on either side
    found              the difference between the two; None where the log ends before
    lines              both sides in one form, ours and XLA's, for a diff
    """

    xla: str
    ours: str
    xla_ops: int | None
    ours_ops: int | None
    changed: bool
    found: Difference | None
    lines: Callable[[], tuple[list[str], list[str]]] = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The verdict; "" where the log ends before."""
        return self.found.verdict if self.found else ""

    def to_json(self) -> dict[str, Any]:
        found = self.found
        return {
            "xla": self.xla or None,
            "ours": self.ours or None,
            "xla_ops": self.xla_ops,
            "ours_ops": self.ours_ops,
            "changed": self.changed,
            "verdict": found.verdict if found else None,
            "ops": {name: {"ours": ours, "xla": xla} for name, (ours, xla) in found.ops.items()} if found else {},
        }


def our_name(xla: str, known: Sequence[str]) -> str:
    """The name of ours that an XLA or MLIR pass has here.

    >>> our_name("cse", ["xla-cse"]), our_name("inline", ["inline"])
    ('xla-cse', 'inline')
    """
    return xla if xla in known or f"xla-{xla}" not in known else f"xla-{xla}"


def compare_passes(ours: Sequence[tuple[str, ModuleOp]], log: XlaLog) -> tuple[ComparedPass, ...]:
    """A row for each pass of either side."""
    states, names = _States(log), [name for name, _ in ours]
    theirs = [our_name(state.name, names) for state in log.states]
    own = [KernelIr(ir) for _, ir in ours]
    rows, left, right = list[ComparedPass](), 0, 0
    for i, j in _aligned(names, theirs):
        left, right = (left if i is None else i), (right if j is None else j)
        mine, other = own[left], states[right]
        changed = i == 0 or j == 0 or (i is not None and own[i].lines != own[i - 1].lines)
        changed |= j is not None and not states.is_unchanged(j)
        rows.append(
            ComparedPass(
                "" if j is None else log.states[j].name,
                "" if i is None else names[i],
                None if j is None or other is None else other.ops,
                None if i is None else mine.ops,
                changed,
                difference(mine, other) if other is not None else None,
                partial(_lines, mine, other),
            )
        )
    return tuple(rows)


def _lines(ours: KernelIr, theirs: KernelIr | None) -> tuple[list[str], list[str]]:
    return ours.lines, theirs.lines if theirs else []


def _aligned(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Numbers of passes of both sides in order; None on the side that lacks one."""
    for tag, i, i_end, j, j_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            yield from ((None, number) for number in range(j, j_end))
            yield from ((number, None) for number in range(i, i_end))


class _States:
    """XLA's states as IR; each dump is read once."""

    def __init__(self, log: XlaLog) -> None:
        self.log = log
        self._read: dict[str, ModuleOp] = {}
        self._made: dict[tuple[Any, ...], KernelIr] = {}

    def __getitem__(self, number: int) -> KernelIr | None:
        """The module after that pass; None where the log does not have it."""
        state = self.log.states[number]
        if state.dump is None:
            return None
        key = self._key(state)
        if key not in self._made:
            self._made[key] = KernelIr(self._module(state, state.dump))
        return self._made[key]

    def is_unchanged(self, number: int) -> bool:
        """Whether the pass changed nothing, or the log lacks its output."""
        states = self.log.states
        return states[number].dump is None or self._key(states[number]) == self._key(states[number - 1])

    def _key(self, state: State) -> tuple[Any, ...]:
        dump = None if state.dump is None else self.log.dumps[state.dump]
        functions = ((name, self.log.dumps[number]) for name, number in sorted(state.functions.items()))
        return dump, tuple((name, text) for name, text in functions if text != dump)

    def _dump(self, text: str) -> ModuleOp:
        if text not in self._read:
            self._read[text] = parse_ir(of_dictionaries(text), "<XLA's log>", verify=False)
        return self._read[text]

    def _module(self, state: State, dump: int) -> ModuleOp:
        """The dump with the functions that are from earlier ones."""
        module = self._dump(self.log.dumps[dump]).clone()
        functions = _functions(module)
        for name, number in state.functions.items():
            earlier = _functions(self._dump(self.log.dumps[number])).get(name)
            if earlier is not None and name in functions:
                Rewriter.replace_op(functions[name], earlier.clone())
        return module


def _functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
