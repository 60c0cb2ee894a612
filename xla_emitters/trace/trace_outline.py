"""A trace in at most 20 lines: a row for each stage, and how to see its IR.

trace of fusion: 46 steps
  stage          ops       ms    lines of IR
  xla_gpu         57      8.1             64
  ...
  more: print(trace["ptx"].ir); print(trace.diff("llvm-dialect", "ptx")); trace.show("llvm-dialect", "ptx")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from xla_emitters.support.columns import aligned

MOST_STAGES = 16


class Recorded(Protocol):
    """What is shown of a step. `records.py` implements both protocols; it imports this file, not the reverse."""

    @property
    def stage(self) -> str | None: ...
    @property
    def ir(self) -> str | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def ops(self) -> int: ...


class Recording(Protocol):
    """What is shown of a trace."""

    @property
    def name(self) -> str: ...
    def __iter__(self) -> Iterator[Recorded]: ...


def outline(trace: Recording) -> str:
    """See the file's head. A stage's time is the sum over all passes since the previous stage."""
    rows, seconds, steps = list[tuple[str, str, str, str]](), 0.0, 0
    for step in trace:
        steps += 1
        seconds += step.seconds
        if step.stage:
            lines = "" if step.ir is None else str(step.ir.count("\n") + 1)
            rows.append((step.stage, str(step.ops or ""), f"{seconds * 1e3:.1f}", lines))
            seconds = 0.0
    shown = [("stage", "ops", "ms", "lines of IR"), *rows[:MOST_STAGES]]
    table = aligned(shown, right={1, 2, 3})
    others = [f"{len(rows) - MOST_STAGES} more stages"] if len(rows) > MOST_STAGES else []
    lines = [*(table if rows else []), *others, f"more: {_more([stage for stage, _, _, ir in rows if ir])}"]
    return "\n".join([f"trace of {trace.name or 'nothing'}: {steps} steps", *(f"  {line.rstrip()}" for line in lines)])


def _more(stages: list[str]) -> str:
    """Expressions that show the IR of these stages."""
    if not stages:
        return "recorded without IR; compile with record='stages' or 'passes'"
    last, before = stages[-1], stages[-2] if len(stages) > 1 else stages[-1]
    return f'print(trace["{last}"].ir); print(trace.diff("{before}", "{last}")); trace.show("{before}", "{last}")'
