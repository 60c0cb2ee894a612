"""The lists of passes by name, including the passes of plugins.

    xe.register_pass(MyPass, after="xla-flatten-tensors")        rows_of("kernel") then has it after that pass

The built-in rows are in `passes.py` (fusions) and `program_passes.py` (programs); the latter is loaded when one of its lists is first used.
A neighbour is given by name, not by number, so that plugins keep working when passes are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from xdsl.passes import ModulePass

from xla_emitters.errors import UsageError
from xla_emitters.pipelines.options import CompileOptions, Replacement
from xla_emitters.pipelines.passes import GRAPH, KERNEL, STAGES, TOOL_STAGES, PassRow
from xla_emitters.plugins import load, note, refuse_double
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.pass_table import made

LISTS: dict[str, tuple[PassRow, ...]] = {"graph": GRAPH, "kernel": KERNEL}
"""The lists of fusions and those lists of programs that were used, with the passes of plugins inserted."""

EMITTED = "xla_gpu"
"""The stage before the first row of the list "kernel"."""

OF_PROGRAMS = {
    "program": "PROGRAM_FUSED",
    "program-loops": "PROGRAM_LOOPS",
    "program-host": "PROGRAM_HOST",
    "program-kernel": "PROGRAM_KERNEL",
}


def _rows(name: str) -> tuple[PassRow, ...]:
    """The current list, with plugins. Lists of programs are loaded late because they import the second system."""
    if name not in LISTS:
        LISTS[name] = getattr(import_module("xla_emitters.pipelines.program_passes"), OF_PROGRAMS[name])
    return LISTS[name]


def register_pass(
    make: Callable[[CompileOptions], KernelPass] | type[KernelPass],
    *,
    after: str = "",
    before: str = "",
    of: str = "kernel",
    reason: str = "",
) -> None:
    """Adds a pass from outside the package to a list, next to the named pass or at the boundary of a stage.

    make     the pass's class, or a function that makes the pass for a compilation
    after    name of a pass that is in the list once, or of a stage: "xla-flatten-tensors", "flat"; or else
    before   likewise
    of       the list: "graph" (HLO to HLO), "kernel" (xla_gpu to the LLVM dialect); for unknown sizes "program" (up to fusions),
             "program-loops" (fusions to launches), "program-host" or "program-kernel" (each kernel, to the LLVM dialect)
    reason   why the pass is at this place, for listings
    raises   UsageError for an unknown list, or a neighbour that is missing or occurs more than once
    """
    if of not in (known := ("graph", "kernel", *OF_PROGRAMS)):
        raise UsageError(f"no list of passes '{of}'", stage="plugins", help=f"one of: {', '.join(known)}")
    if bool(after) == bool(before):
        raise UsageError("a pass is placed either after= or before= another", stage="plugins")
    rows, options = _rows(of), CompileOptions()
    row = PassRow(lambda o: make() if isinstance(make, type) else make(o), reason)
    added: Any = row.make(options)
    if not isinstance(added, ModulePass):
        raise UsageError(f"{make!r} makes {type(added).__name__}, which is not a pass", stage="plugins")
    names = [each.make(options).name for each in rows]
    refuse_double("pass", added.name, names)
    number = _number_of(after or before, rows, names, of) + bool(after)
    if number == len(rows):
        # The last boundary is after all passes.
        *others, last = rows
        LISTS[of] = (*others, replace(last, stage=None), replace(row, stage=last.stage))
    else:
        LISTS[of] = (*rows[:number], row, *rows[number:])
    note("pass", added.name, added)


def _number_of(neighbour: str, rows: Sequence[PassRow], names: Sequence[str], of: str) -> int:
    """The index of the row of that pass, or of the last row of that stage. raises UsageError unless there is exactly one"""
    found = [i for i, (row, name) in enumerate(zip(rows, names, strict=True)) if neighbour in (name, row.stage)]
    if not found:
        near = get_close_matches(neighbour, [*names, *(row.stage for row in rows if row.stage)], n=1)
        stages = ", ".join(row.stage for row in rows if row.stage)
        raise UsageError(
            f"no pass or stage '{neighbour}' in the list '{of}'",
            stage="plugins",
            help=f"did you mean '{near[0]}'?" if near else f"its stages: {stages}",
        )
    if len(found) > 1:
        raise UsageError(
            f"the list '{of}' has '{neighbour}' {len(found)} times",
            stage="plugins",
            help="name a stage, or a pass that is there once",
        )
    return found[0]


def rows_of(name: str) -> tuple[PassRow, ...]:
    """A list including the passes of plugins."""
    load()
    return _rows(name)


def kernel_rows(options: CompileOptions) -> tuple[PassRow, ...]:
    """The list "kernel" including the passes of plugins, or the passes of `options.pipeline` instead.

    raises  UsageError for a stage that is not a boundary of that pipeline
    """
    if options.pipeline is None:
        rows = rows_of("kernel")
    else:
        rows = _asked(options.pipeline)
        rows = _ending(rows, "llvm-dialect")
        kept = [stage for stage in STAGES if stage not in {row.stage for row in KERNEL[:-1]}]
        if options.stage not in kept:
            raise UsageError(
                f"the pipeline has no stage '{options.stage}'", stage="compile", help=f"one of: {', '.join(kept)}"
            )
    rows = _with_replacements(rows, options.replaced)
    ends = [number for number, row in enumerate(rows, 1) if row.stage == options.stage]
    return rows[: ends[0]] if ends else rows if options.stage in TOOL_STAGES else ()


def _with_replacements(rows: tuple[PassRow, ...], replaced: Sequence[Replacement]) -> tuple[PassRow, ...]:
    """The rows, with a kernel put in place where its stage ends: the stage is then the new IR."""
    for each in replaced:
        row = PassRow(lambda _, each=each: made("xla-replace-kernel", each.name, each.text), "asked for", each.stage)
        if each.stage == EMITTED:
            rows = (row, *rows)
            continue
        ends = [number for number, other in enumerate(rows) if other.stage == each.stage]
        if not ends:
            stages = ", ".join((EMITTED, *(other.stage for other in rows if other.stage)))
            raise UsageError(
                f"no kernel is replaced at stage '{each.stage}'", stage="compile", help=f"one of: {stages}"
            )
        at = ends[-1]
        rows = (*rows[:at], replace(rows[at], stage=None), row, *rows[at + 1 :])
    return rows


def program_rows(options: CompileOptions) -> tuple[tuple[PassRow, ...], tuple[PassRow, ...] | None]:
    """A program's rows up to "fused", and the rows from there to "host"; None: the lists "program-loops" and "program-host".

    A pipeline's second part begins with its first pass that only those two lists have. Its stages are "fused" and "host", the ends.
    """
    if options.pipeline is None:
        return rows_of("program"), None
    rows, early = _asked(options.pipeline), _names("program")
    late = _names("program-loops", "program-host") - early
    start = next((number for number, each in enumerate(options.pipeline) if each.name in late), len(rows))
    return _ending(rows[:start], "fused"), _ending(rows[start:], "host") or None


def refuse_unknown_passes(options: CompileOptions, *lists: Sequence[PassRow]) -> None:
    """raises UsageError for an option of a pass that is in none of the lists"""
    if not options.pass_options:
        return
    known = {row.how(options).name for rows in lists for row in rows} | {each.name for each in options.pipeline or ()}
    for name, option, _ in options.pass_options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise UsageError(
                f"the option '{option}' is of the pass '{name}', which this compilation does not run",
                stage="usage",
                help=f"did you mean '{near[0]}'?" if near else "xla-emitters-opt --help lists all passes",
            )


def _asked(pipeline: Sequence[ModulePass]) -> tuple[PassRow, ...]:
    return tuple(PassRow(lambda _, each=each: each, "asked for") for each in pipeline)


def _ending(rows: tuple[PassRow, ...], stage: str) -> tuple[PassRow, ...]:
    """The rows, with `stage` after the last one."""
    return (*rows[:-1], replace(rows[-1], stage=stage)) if rows else ()


def _names(*lists: str) -> set[str]:
    return {row.make(CompileOptions()).name for name in lists for row in rows_of(name)}
