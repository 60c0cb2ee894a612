"""The lines of Python that a kernel or a library call computes, as text: "train.py:14 in model, train.py:13 in layer_norm".

The lines are plain data (`text/hlo/stack_frames.py` finds them), those with most instructions first:
{"text": "train.py:14 in model", "file", "line", "function", "instructions"}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xla_emitters.trace.records import Decision

SOURCE = "source"
"""The topic of the decision that has a kernel's lines."""
_MOST = 6


def source_decision(lines: Sequence[Mapping[str, Any]]) -> Decision:
    """The decision that records the lines of a kernel."""
    whole = sum(line["instructions"] for line in lines)
    shown = [f"{line['text']} ({line['instructions']:.3g} of {whole:.3g} instructions)" for line in lines[:_MOST]]
    return Decision(SOURCE, ", ".join([*shown, *_others(lines, _MOST)]), {"lines": [dict(line) for line in lines]})


def source_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """The line with most instructions, and the number of others; "" for none."""
    return ", ".join([*(str(line["text"]) for line in lines[:1]), *_others(lines, 1)])


def _others(lines: Sequence[Mapping[str, Any]], shown: int) -> list[str]:
    return [f"{len(lines) - shown} more"] if len(lines) > shown else []
