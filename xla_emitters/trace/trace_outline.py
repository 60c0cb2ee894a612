"""A trace in at most 20 lines: a row for each stage, and how to see its IR.

trace of fusion: 46 steps
  stage          ops       ms    lines of IR
  xla_gpu         57      8.1             64
  ...
  more: print(trace["ptx"].ir); print(trace.diff("llvm-dialect", "ptx")); trace.show("llvm-dialect", "ptx")
"""

from __future__ import annotations

from collections.abc import Sequence

from xla_emitters.support.columns import aligned

MOST_STAGES = 16


def outline(name: str, steps: int, rows: Sequence[tuple[str, str, str, str]]) -> str:
    """See the file's head. rows: of each stage its name, ops, milliseconds, and lines of IR; "" for what was not recorded"""
    shown = [("stage", "ops", "ms", "lines of IR"), *rows[:MOST_STAGES]]
    table = aligned(shown, right={1, 2, 3})
    others = [f"{len(rows) - MOST_STAGES} more stages"] if len(rows) > MOST_STAGES else []
    lines = [*(table if rows else []), *others, f"more: {_more([stage for stage, _, _, ir in rows if ir])}"]
    return "\n".join([f"trace of {name or 'nothing'}: {steps} steps", *(f"  {line.rstrip()}" for line in lines)])


def _more(stages: list[str]) -> str:
    """Expressions that show the IR of these stages."""
    if not stages:
        return "recorded without IR; compile with record='stages' or 'passes'"
    last, before = stages[-1], stages[-2] if len(stages) > 1 else stages[-1]
    return f'print(trace["{last}"].ir); print(trace.diff("{before}", "{last}")); trace.show("{before}", "{last}")'
