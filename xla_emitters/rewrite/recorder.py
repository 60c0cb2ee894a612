"""Runs the steps of one kernel's compilation and records them.

    emit            recorded as stage "xla_gpu"      op counts, remarks, decisions, time; the IR and the origin of each of its lines
    pass by pass    a stage or none                  the same
    a tool          stage "llvm", "ptx" or "sass"    its output and time; the origin of each line, if requested

Every dump, diff, page, explanation and timing is made from the `Trace` recorded here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xla_emitters.dialects.printer import print_ir_with_lines
from xla_emitters.rewrite.kernel_pass import run_pass, verify_after
from xla_emitters.rewrite.locations import instructions_of
from xla_emitters.rewrite.notes import Notes, take_notes
from xla_emitters.trace import Decision, Remark, Step, Trace

Observer = Callable[[str, str | None, ModuleOp], None]
"""Called with (pass name, stage or None, live module) after emission and after each pass; it must not change the module."""

Sources = tuple[tuple[str, ...], ...]
"""For each line of a text, the HLO instructions that it comes from."""
Listing = Callable[[ModuleOp], tuple[str, Sources]]


class Recorder:
    """Runs the steps of one kernel's compilation and records them in its trace.

    With nothing to record, verify or observe it only runs them, which is the fast path.

    listing  prints a module
    """

    def __init__(
        self, name: str, record: str, verify: bool, observe: Observer | None, listing: Listing | None = None
    ) -> None:
        self._listing = listing or ir_listing
        self._record = record
        self._verify = verify
        self._observe = observe
        self._contents = list[object]()
        self._listed: tuple[str, Sources] = ("", ())
        self.trace = Trace(name)

    def emission(self, emit: Callable[[], ModuleOp]) -> ModuleOp:
        """Calls `emit` and records the module that it returns as the stage "xla_gpu"."""
        start = time.perf_counter()
        with take_notes() as notes:
            module = emit()
        self._after("emit", "xla_gpu", module, time.perf_counter() - start, notes)
        return module

    def read(self, stage: str, module: ModuleOp, remarks: Sequence[Remark] = ()) -> None:
        """Records a parsed module as a stage, with what its reader declined."""
        self._after("read", stage, module, 0.0, Notes(list(remarks)))

    def run(self, kernel_pass: ModulePass, stage: str | None, context: Context, module: ModuleOp) -> None:
        """Runs one pass. An error that it does not raise on purpose is a bug of ours; the message names the pass."""
        start = time.perf_counter()
        with take_notes() as notes:
            run_pass(kernel_pass, context, module)
        self._after(kernel_pass.name, stage, module, time.perf_counter() - start, notes)

    def tool(self, stage: str, text: str, seconds: float, sources: Sources = (), origins: tuple[int, ...] = ()) -> None:
        """Records the output of an external tool as the stage of that name.

        seconds  time of the tool for this kernel
        """
        kept = text if self.keeps_text else None
        self.trace.steps.append(Step(stage, stage, kept, seconds, sources=sources, origins=origins))

    @property
    def keeps_text(self) -> bool:
        return self._record != "none"

    def text(self, stage: str, text: str, source: Operation | None = None, *decisions: Decision) -> None:
        """Records a stage that is text; the ops of `source` are counted. Without texts, only decisions are recorded."""
        if self.keeps_text:
            counts = op_counts(source) if source is not None else {}
            step = Step(stage, stage, text, 0.0, counts, decisions=decisions, sources=_sources_of_hlo(text))
            self.trace.steps.append(step)
        elif decisions:
            self.trace.steps.append(Step(stage, None, None, 0.0, decisions=decisions))

    def _after(self, name: str, stage: str | None, module: ModuleOp, seconds: float, notes: Notes) -> None:
        if self._verify:
            verify_after(name, module)
        if self._observe:
            self._observe(name, stage, module)
        step = Step(name, stage, None, seconds, {}, tuple(notes.remarks), tuple(notes.decisions))
        if self._record != "none":
            step = replace(step, op_counts=op_counts(module))
        if self._record == "passes" or (self._record == "stages" and stage is not None):
            contents = _contents(module)
            # The objects are kept alive by the list, so that identity means that nothing was changed.
            if len(contents) != len(self._contents) or not all(map(is_, contents, self._contents)):
                self._contents, self._listed = contents, self._listing(module)
            step = replace(step, ir=self._listed[0], sources=self._listed[1])
        self.trace.steps.append(step)


def ir_listing(module: ModuleOp) -> tuple[str, Sources]:
    """IR as MLIR prints it."""
    text, starts = print_ir_with_lines(module)
    return text, sources_of_lines(text, starts)


def hlo_listing(module: ModuleOp) -> tuple[str, Sources]:
    """A module of the `hlo` dialect as HLO text."""
    from xla_emitters.hlo_text import print_hlo

    text = print_hlo(module)
    return text, _sources_of_hlo(text)


def sources_of_lines(text: str, starts: Sequence[tuple[int, Operation]]) -> Sources:
    """For each line of printed IR, the HLO instructions from which the ops starting there come."""
    lines: list[dict[str, None]] = [{} for _ in range(text.count("\n") + 1)]
    names = dict[int, dict[str, None]]()  # by the identity of the location: many ops share one
    for line, op in starts:
        if (key := id(op.location)) not in names:
            names[key] = dict.fromkeys(instructions_of(op))
        lines[line] |= names[key]
    return tuple(map(tuple, lines))


def _contents(module: ModuleOp) -> list[object]:
    """Everything that a listing of the module is made of, by reference: two equal lists of the same objects print the same."""
    found = list[object]()
    for op in module.walk():
        found += (op, op.location)
        found += op.operands
        for named in (op.properties, op.attributes):
            if named:
                found += named
                found += named.values()
        for result in op.results:
            found += (result.type, result.name_hint)
        if op.successors:
            found += op.successors
        for region in op.regions:
            for block in region.blocks:
                found.append(block)
                for argument in block.args:
                    found += (argument, argument.type, argument.name_hint)
    return found


def _sources_of_hlo(text: str) -> Sources:
    return tuple(map(_defined, text.split("\n")))


def _defined(line: str) -> tuple[str, ...]:
    """The instruction that a line of HLO text defines."""
    name, equals, _ = line.strip().removeprefix("ROOT ").partition(" = ")
    return (name.removeprefix("%"),) if equals and name.startswith("%") else ()


def op_counts(root: Operation) -> dict[str, int]:
    """Op name -> number of such ops in `root`, without `root` itself and modules."""
    return dict(Counter(op.name for op in root.walk() if op is not root and not isinstance(op, ModuleOp)))
