"""Records each rewrite that a pass makes: the pattern, the op that it matched, what it added, erased and changed, and the IR after it.

    with record_rewrites(module, print_ir_with_lines) as record:
        run_pass(...)
    record.rewrites     Rewrite("AddConstants", "arith.addi", line=14, added=("arith.constant", "arith.addi"), ...)

There are two ways in. The greedy driver (`patterns.py`) tells the record which pattern matched which op. A pass that walks by itself has no
driver that could tell it: there the interpreter's own profile hook sees each op that is erased, and a step ends with it, under the name of
the function that erased it. What is left when the pass ends is the last step. Without a record the driver asks once whether there is one,
and nothing else costs anything.

The IR is printed after each rewrite, so a record is slow and is limited: what comes after the limit is counted, and is one step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.trace import Rewrite

MOST_REWRITES = 400
"""Of one pass."""
MOST_CHARACTERS = 10_000_000
"""Of the texts after the rewrites of one pass."""
REST, WHOLE = "the rest of the pass", "the whole pass"
"""Names of the last step: of one that is not the first, and of the only one."""

Print = Callable[[ModuleOp], tuple[str, Sequence[tuple[int, Operation]]]]
"""Returns the text of a module, and its ops with the lines on which they start, from 0."""

_ERASURES = (Operation.erase.__code__, QuickOp.erase.__code__)
_SHARED = ("xdsl.", "xla_emitters.dialects.", "xla_emitters.rewrite.")
"""Modules whose functions are called by passes: they do not say which part of a pass is at work."""


class RewriteRecord:
    """The rewrites of one pass on `module`, in order.

    left_out  how many were not recorded, because there were too many
    """

    def __init__(self, module: ModuleOp, print_module: Print) -> None:
        self.rewrites = list[Rewrite]()
        self.left_out = 0
        self._module, self._print = module, print_module
        self._matched: Operation | None = None
        self._erased = list[Operation]()  # those that are being erased, outermost first
        self._characters = 0
        text, lines, contents = self._listed()
        self._text: str = text
        self._lines: dict[Operation, int] = lines
        self._contents: dict[Operation, tuple[object, ...]] = contents

    def match(self, op: Operation) -> None:
        """The driver is about to visit `op`."""
        self._matched = op

    def end(self, pattern: str | None) -> None:
        """The driver has visited the op; `pattern` rewrote it, or None did."""
        op, self._matched = self._matched, None
        if pattern is not None:
            self._add(pattern, op)

    def finish(self) -> None:
        """The pass has ended."""
        self._add(REST if self.rewrites else WHOLE, None, is_last=True)

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Of `sys.setprofile`."""
        if self._matched is not None or frame.f_code not in _ERASURES:
            return
        if event == "call":
            self._erased.append(frame.f_locals["self"])
        elif event == "return" and self._erased:
            op = self._erased.pop()
            if not self._erased:
                self._add(_name_of(frame), op)

    def _add(self, pattern: str, op: Operation | None, *, is_last: bool = False) -> None:
        """Records what changed since the last rewrite, if anything did."""
        if not is_last and (len(self.rewrites) >= MOST_REWRITES or self._characters > MOST_CHARACTERS):
            self.left_out += 1
            return
        try:
            text, lines, contents = self._listed()
        except Exception:
            if is_last:
                raise
            return  # in the middle of a change: a use may have no definition yet. The next rewrite has this one's changes
        if text == self._text:
            return
        before = self._contents
        name, line = ("", 0) if op is None else (op.name, self._lines.get(op, 0))
        added, erased = _names(contents, before), _names(before, contents)
        changed = tuple(each.name for each in contents if each in before and contents[each] != before[each])
        self.rewrites.append(Rewrite(pattern, name, line, added, erased, changed, text))
        self._text, self._lines, self._contents = text, lines, contents
        self._characters += len(text)

    def _listed(self) -> tuple[str, dict[Operation, int], dict[Operation, tuple[object, ...]]]:
        text, starts = self._print(self._module)
        contents: dict[Operation, tuple[object, ...]] = {op: _contents_of(op) for op in self._module.walk()}
        lines: dict[Operation, int] = {op: line + 1 for line, op in reversed(starts)}
        return text, lines, contents


def _names(ops: dict[Operation, Any], without: dict[Operation, Any]) -> tuple[str, ...]:
    return tuple(op.name for op in ops if op not in without)


def _contents_of(op: Operation) -> tuple[object, ...]:
    types = [result.type for result in op.results]
    return [*op.operands], types, {**op.properties}, {**op.attributes}, [*op.successors]


def _name_of(frame: FrameType) -> str:
    """The function of a pass that called what `frame` is of."""
    own, caller = "", frame.f_back
    while caller is not None and (module := str(caller.f_globals.get("__name__", ""))) != __name__:
        if not module.startswith("xdsl."):
            own = own or caller.f_code.co_qualname
            if not module.startswith(_SHARED):
                return caller.f_code.co_qualname
        caller = caller.f_back
    return own


_RECORDING: ContextVar[RewriteRecord | None] = ContextVar("recording", default=None)


@contextmanager
def record_rewrites(module: ModuleOp, print_module: Print) -> Generator[RewriteRecord]:
    """Records the rewrites of the pass that is run inside the `with`, on this thread."""
    record, hook = RewriteRecord(module, print_module), sys.getprofile()
    token = _RECORDING.set(record)
    sys.setprofile(record.profile)
    try:
        yield record
    finally:
        sys.setprofile(hook)
        _RECORDING.reset(token)
    record.finish()


def record_wanted() -> RewriteRecord | None:
    """The record of the pass that runs; None where none was asked for."""
    return _RECORDING.get()
