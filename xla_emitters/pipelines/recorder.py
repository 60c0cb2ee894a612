"""Runs the steps of one kernel's compilation and records them.

    emit            recorded as stage "xla_gpu"      op counts, remarks, decisions, time; the IR and the origin of each of its lines
    pass by pass    a stage or none                  the same
    a tool          stage "llvm", "ptx" or "sass"    its output and time; the origin of each line, if requested

Every dump, diff, page, explanation and timing is made from the `Trace` recorded here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from operator import is_
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xla_emitters.dialects.locations import instructions_of
from xla_emitters.dialects.mlir_printer import OpText, print_ir_with_lines, print_parts
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.kernel_pass import run_pass, verify_after
from xla_emitters.rewrite.notes import Notes, take_notes
from xla_emitters.trace import Decision, Remark, Step, Trace

if TYPE_CHECKING:
    from xla_emitters.support.forked import Forked

Observer = Callable[[str, str | None, ModuleOp], None]
"""Called with (pass name, stage or None, live module) after emission and after each pass; it must not change the module."""

Sources = tuple[tuple[str, ...], ...]
"""For each line of a text, the HLO instructions that it comes from."""
Listing = Callable[[ModuleOp, Collection[Operation]], tuple[str, Sources]]
"""Prints a module. The second argument has the ops in its body that are as they were when it was printed last."""


class Recorder:
    """Runs the steps of one kernel's compilation and records them in its trace.

    With nothing to record, verify or observe it only runs them, which is the fast path.

    listing  prints a module; without it IR is printed as MLIR prints it
    apart    stages are printed by copies of this process while passes go on, and their texts are in the trace after `settle`
    """

    def __init__(
        self,
        name: str,
        record: str,
        verify: bool,
        observe: Observer | None,
        listing: Listing | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self._listing = listing or IrListing()
        self.is_apart = apart and record == "stages"
        self._printed: dict[int, Forked[tuple[str, Sources]]] = {}
        """Number of a step -> its text."""
        self._record = record
        self._verify = verify
        self._observe = observe
        self._verified: ModuleOp | None = None
        self._contents = dict[Operation, list[object]]()
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
        if self._record == "rewrites":
            self._run_recorded(kernel_pass, stage, context, module)
            return
        start = time.perf_counter()
        with take_notes() as notes:
            run_pass(kernel_pass, context, module)
        self._after(kernel_pass.name, stage, module, time.perf_counter() - start, notes)

    def _run_recorded(self, kernel_pass: ModulePass, stage: str | None, context: Context, module: ModuleOp) -> None:
        """`run`, with each rewrite of the pass; its time includes their recording."""
        from xla_emitters.rewrite.recorded_rewrites import record_rewrites  # most compilations do not load it

        start = time.perf_counter()
        print_module = print_ir_with_lines if isinstance(self._listing, IrListing) else self._plain_text
        with take_notes() as notes, record_rewrites(module, print_module) as found:
            run_pass(kernel_pass, context, module)
        self._after(kernel_pass.name, stage, module, time.perf_counter() - start, notes)
        last = self.trace.steps[-1]
        self.trace.steps[-1] = replace(last, rewrites=tuple(found.rewrites), left_out=found.left_out)

    def _plain_text(self, module: ModuleOp) -> tuple[str, Sequence[tuple[int, Operation]]]:
        return self._listing(module, ())[0], ()

    def pass_over(self, name: str, stage: str | None, module: ModuleOp, seconds: float) -> None:
        """Records a pass that has nothing to do in the module, and was not run; `seconds`: how long it took to find that."""
        self._after(name, stage, module, seconds, Notes(), is_verified=self._verified is module)

    def tool(self, stage: str, text: str, seconds: float, sources: Sources = (), origins: tuple[int, ...] = ()) -> None:
        """Records the output of an external tool as the stage of that name.

        seconds  time of the tool for this kernel
        """
        kept = text if self.keeps_text else None
        self.trace.steps.append(Step(stage, stage, kept, seconds, sources=sources, origins=origins))

    @property
    def is_watched(self) -> bool:
        """Whether texts are recorded, or someone sees the module after each pass."""
        return self.keeps_text or self._verify or self._observe is not None

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

    def _after(
        self,
        name: str,
        stage: str | None,
        module: ModuleOp,
        seconds: float,
        notes: Notes,
        *,
        is_verified: bool = False,
    ) -> None:
        if self._verify and not is_verified:
            verify_after(name, module)
            self._verified = module
        if self._observe:
            self._observe(name, stage, module)
        step = Step(name, stage, None, seconds, {}, tuple(notes.remarks), tuple(notes.decisions))
        if self._record != "none":
            step = replace(step, op_counts=op_counts(module))
        if self._record in ("passes", "rewrites") or (self._record == "stages" and stage is not None):
            if self.is_apart:
                from xla_emitters.support.forked import Forked  # imported here: it loads multiprocessing

                self._printed[len(self.trace.steps)] = Forked(partial(self._listing, module, ()))
            else:
                self._list(module)
                step = replace(step, ir=self._listed[0], sources=self._listed[1])
        self.trace.steps.append(step)

    def settle(self) -> None:
        """Waits for the texts that are printed apart, and puts them into the trace."""
        for number, printed in self._printed.items():
            text, sources = printed.answer()
            self.trace.steps[number] = replace(self.trace.steps[number], ir=text, sources=sources)
        self._printed.clear()

    def _list(self, module: ModuleOp) -> None:
        """Prints the module, but for what is as it was; from one stage to another the only part of a kernel's module is not."""
        if self._record == "stages" and _is_one(module):
            self._contents, self._listed = {}, self._listing(module, ())
            return
        contents = {part: _contents(part) for part in module.ops} | {module: _of_op(module)}
        before = self._contents
        same = {part for part, found in contents.items() if _are_same(found, before.get(part))}
        if len(same) < len(contents) or [*contents] != [*before]:
            self._contents, self._listed = contents, self._listing(module, same)


class IrListing:
    """IR as MLIR prints it. Functions and kernels that are as they were are not printed again: most passes change one of them."""

    def __init__(self) -> None:
        self._parts = dict[Operation, OpText]()
        self._sources = dict[Operation, Sources]()

    def __call__(self, module: ModuleOp, same: Collection[Operation] = ()) -> tuple[str, Sources]:
        known = {op: part for op, part in self._parts.items() if op in same}
        text, starts, parts = print_parts(module, known)
        sources = list(sources_of_lines(text, starts))
        self._sources = {op: self._sources[op] for op in known}
        for op, part in parts.items():
            at = slice(part.line, part.line + part.text.count("\n") + 1)
            if op in known:
                sources[at] = self._sources[op]
            self._sources[op] = tuple(sources[at])
        self._parts = parts
        return text, tuple(sources)


def hlo_listing(module: ModuleOp, _: Collection[Operation] = ()) -> tuple[str, Sources]:
    """A module of the `hlo` dialect as HLO text."""
    from xla_emitters.text.hlo import print_hlo

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


def _is_one(module: ModuleOp) -> bool:
    return module.body.block.first_op is module.body.block.last_op


def _contents(root: Operation) -> list[object]:
    """Everything that a listing of the op is made of, by reference: two equal lists of the same objects print the same."""
    found = list[object]()
    for op in root.walk():
        found += _of_op(op)
        for region in op.regions:
            for block in region.blocks:
                found.append(block)
                for argument in block.args:
                    found += (argument, argument.type, argument.name_hint)
    return found


def _of_op(op: Operation) -> list[object]:
    """The same of an op without its regions."""
    found: list[object] = [op, op.location]
    found += op.operands
    for named in (op.properties, op.attributes):
        if named:
            found += named
            found += named.values()
    for result in op.results:
        found += (result.type, result.name_hint)
    if op.successors:
        found += op.successors
    return found


def _are_same(found: list[object], before: list[object] | None) -> bool:
    return before is not None and len(found) == len(before) and all(map(is_, found, before))


def _sources_of_hlo(text: str) -> Sources:
    return tuple(map(_defined, text.split("\n")))


def _defined(line: str) -> tuple[str, ...]:
    """The instruction that a line of HLO text defines."""
    name, equals, _ = line.strip().removeprefix("ROOT ").partition(" = ")
    return (name.removeprefix("%"),) if equals and name.startswith("%") else ()


def op_counts(root: Operation) -> dict[str, int]:
    """Op name -> number of such ops in `root`, without `root` itself and modules."""
    found = Counter([op.name for op in walk(root)])
    found[root.name] -= 1
    found.pop(ModuleOp.name, None)
    return {name: count for name, count in found.items() if count}
