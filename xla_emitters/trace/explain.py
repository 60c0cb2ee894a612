"""Why this code: what was decided on the way, and what passes declined, from the trace.

fusion
  emitter    loop emitter
  launch     24576x1x1 blocks of 128x1x1 threads
  unroll     4 a thread: 12582912 elements fill the 270336 threads of h200
  partition  1 function: gelu_multiply_0 (18 instructions)
  access     reads 4 x bf16 (8 bytes) at once: param (gelu.hlo:4:3)
  access     writes 4 x bf16 (8 bytes) at once: fusion (gelu.hlo:24:8)
  declined   xla-vectorize-loads-stores: skipped scf.for: ...
"""

from __future__ import annotations

from typing import Any

from xla_emitters.support.columns import aligned
from xla_emitters.trace.records import Trace


def explained(trace: Trace) -> str:
    """The decisions and remarks of one kernel's compilation, one per line."""
    rows = [(decision.topic, decision.text) for decision in trace.decisions]
    rows += [("declined" if remark.text.startswith("skipped ") else "remark", str(remark)) for remark in trace.remarks]
    return "\n".join([trace.name, *(f"  {line}" for line in aligned(rows))])


def explained_json(trace: Trace) -> dict[str, Any]:
    """The same as plain data: topic -> data of its decisions, in order; and `declined`, the remarks."""
    found: dict[str, list[dict[str, Any]]] = {}
    for decision in trace.decisions:
        found.setdefault(decision.topic, []).append({"text": decision.text, **decision.data})
    return {"name": trace.name, **found, "declined": remarks_json(trace)}


def remarks_json(trace: Trace) -> list[dict[str, str]]:
    """The remarks of one trace as plain data."""
    return [{"pass": r.pass_name, "text": r.text, "place": r.place} for r in trace.remarks]
