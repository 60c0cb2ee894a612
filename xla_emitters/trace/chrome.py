"""Times as a trace that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

    chrome_trace([Track("passes of gelu", (Span("xla-cse", 0.0, 12.5, {"ops": 40}),))])
    {"traceEvents": [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "passes of gelu"}},
                     {"ph": "X", "name": "xla-cse", "pid": 1, "tid": 1, "ts": 0.0, "dur": 12.5, "args": {"ops": 40}}], ...}

Source: "Trace Event Format" of Chromium: complete events (X), metadata events (M); times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xla_emitters.trace.records import Trace


@dataclass(frozen=True)
class Span:
    """`start` and `duration` in microseconds; `details` are shown when it is selected."""

    name: str
    start: float
    duration: float
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Track:
    """A row of spans, with its name."""

    name: str
    spans: Sequence[Span]


def chrome_trace(tracks: Iterable[Track]) -> dict[str, Any]:
    """Tracks as Chromium's JSON object."""
    return {"traceEvents": list(_events(tracks)), "displayTimeUnit": "ns"}


def _events(tracks: Iterable[Track]) -> Iterator[dict[str, Any]]:
    for number, track in enumerate(tracks, 1):
        where = {"pid": 1, "tid": number}
        yield {"ph": "M", "name": "thread_name", **where, "args": {"name": track.name}}
        for span in track.spans:
            times = {"ts": round(span.start, 3), "dur": round(span.duration, 3)}
            yield {"ph": "X", "name": span.name, "cat": track.name, **where, **times, "args": dict(span.details)}


def pass_track(trace: Trace) -> Track:
    """The passes of a trace. Only how long each took was recorded: each starts where the one before ends."""
    spans, now = list[Span](), 0.0
    for step in trace:
        took = step.seconds * 1e6
        details = {"ops": step.ops} if step.op_counts else {}
        spans.append(Span(step.name, now, took, {**details, **({"stage": step.stage} if step.stage else {})}))
        now += took
    return Track(f"passes: {trace.name}", spans)
