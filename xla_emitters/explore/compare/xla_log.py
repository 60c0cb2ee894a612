"""Parses XLA's log of a kernel's emitter passes: the passes in order, each with the IR after it.

    any(func.func(xla-simplify-arith{...}),canonicalize{...},cse, ...)                                      the pipeline
    // -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{...} ('func.func' operation: @fusion) //----- //
    module { ... }
    // -----// IR Dump Before ... ('func.func' operation: @helper)   ->   State("emit", 0), State("xla-simplify-arith", 2, {}), ...

The log has the whole module *before* each pass, so the result of a pass is in the dump before the next one. MLIR runs adjacent
function passes function by function: after `a, b` on f and g the log has a@f, b@f, a@g, b@g, and no dump has the result of `a` on both.
So a state records, for single functions, the earlier dump that contains them. The log does not have the IR after the last pass.
Dumps of passes that are not in the pipeline come from the inliner, which runs them: they count as part of it.
Source: `--xla_dump_emitter_re=.*`, files `*.mlir-passes.log`; MLIR's `-mlir-print-ir-before-all -mlir-print-ir-module-scope`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xla_emitters.errors import ParseError
from xla_emitters.support.cursor import split_at_commas

_DUMP = re.compile(
    r"^// -----// IR Dump Before \S+ ([\w-]+).*? \('([\w.]+)' operation(?:: @\"?([\w.$-]+)\"?)?\) //----- //$", re.M
)
_PIPELINE = re.compile(r"^(?:any|builtin\.module)\((.*)\)$", re.M)


@dataclass(frozen=True)
class State:
    """The module after a pass.

    name       the pass, as in XLA's pipeline; "emit" before the first
    dump       number of the dump that has all functions except those in `functions`; None after the last pass
    functions  function -> number of the dump that has it after the pass, if that is an earlier one
    """

    name: str
    dump: int | None
    functions: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class XlaLog:
    """dumps   texts of modules; states   in order, the first before any pass"""

    dumps: tuple[str, ...]
    states: tuple[State, ...]


@dataclass(frozen=True)
class _Run:
    """One pass on one op.

    group     number of the pass's group in the pipeline
    function  "" for a pass on the module
    dump      number of the dump before it
    """

    group: int
    name: str
    function: str
    dump: int


def parse_log(text: str, name: str = "<log>") -> XlaLog:
    """Parses a log. raises ParseError for a text without a pipeline, or without dumps of it"""
    header, marks = _PIPELINE.search(text), list(_DUMP.finditer(text))
    runs = _runs(_groups(header[1]), marks) if header else []
    if not runs:
        raise ParseError(
            f"{name} is not a log of XLA's emitter passes",
            stage="xla-log",
            help="--xla_dump_emitter_re=.* writes *.mlir-passes.log",
        )
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    dumps = tuple(text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True))
    found = [State("emit", runs[0].dump)]
    for group in dict.fromkeys(run.group for run in runs):
        members = [run for run in runs if run.group == group]
        following = next((run.dump for run in runs if run.group > group), None)
        for one in dict.fromkeys(run.name for run in members):
            own = [run for run in members if run.name == one]
            after = {run.function: _next_of_function(run, members) for run in own}
            functions = {function: dump for function, dump in after.items() if dump is not None}
            found.append(State(one, following, functions))
    return XlaLog(dumps, tuple(found))


def _next_of_function(run: _Run, members: Sequence[_Run]) -> int | None:
    """The dump before the next pass of the group on the same function."""
    later = (other.dump for other in members if other.function == run.function and other.dump > run.dump)
    return next(later, None)


def _groups(pipeline: str) -> list[tuple[bool, tuple[str, ...]]]:
    """(whether on functions, names): adjacent passes on functions are one group, each pass on the module is a group of its own."""
    groups: list[tuple[bool, tuple[str, ...]]] = []
    for part in split_at_commas(pipeline):
        nested = re.fullmatch(r"func\.func\((.*)\)", part, re.DOTALL)
        names = tuple(re.split(r"[{(]", one)[0].strip() for one in split_at_commas(nested[1] if nested else part))
        if nested and groups and groups[-1][0]:
            groups[-1] = (True, (*groups[-1][1], *names))
        else:
            groups.append((nested is not None, names))
    return groups


def _runs(groups: Sequence[tuple[bool, tuple[str, ...]]], marks: Sequence[re.Match[str]]) -> list[_Run]:
    """The dumps of the pipeline's passes, in order; dumps of passes that a pass runs itself are left out."""
    found: list[_Run] = []
    now = -1
    for dump, mark in enumerate(marks):
        name, function = mark[1], mark[3] or "" if mark[2] != "builtin.module" else ""
        first = now if now >= 0 and groups[now][0] else now + 1
        for number in range(first, len(groups)):
            on_functions, names = groups[number]
            if name in names and bool(function) == on_functions:
                now = number
                found.append(_Run(now, name, function, dump))
                break
    return found
