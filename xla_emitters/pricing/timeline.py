"""When the work of a module runs on one device: kernels and calls one after the other, collectives beside them from start to wait.

    compute        fusion.1 |--------|      fusion.2 |------|          fusion.3 |---|
    communication            all-reduce |--------------------|

A collective starts when what is before it in the text is done, and after the collective before it. Without a wait the program waits at
once. A loop counts as one piece of work, as often as its body is known to run, else once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xla_emitters.pricing.call_prices import CallCost
from xla_emitters.program.callees import LibraryCall
from xla_emitters.program.communication import WAIT, waits_for
from xla_emitters.program.steps import Branch, Call, Copy, Launch, Loop, Step
from xla_emitters.support.units import microseconds

MOST_SHOWN = 40
"""Rows of the text."""
WIDTH = 48


@dataclass(frozen=True)
class WorkSpan:
    """A piece of work, in microseconds from the first one's start. `stream` is "compute" or "communication"."""

    name: str
    stream: str
    start: float
    end: float


@dataclass
class Timeline:
    """Spans in the order in which they start.

    compute, communication  microseconds in which each stream works
    overlap                 in which both do
    time                    until the last ends
    """

    spans: list[WorkSpan] = field(default_factory=list[WorkSpan])

    @property
    def compute(self) -> float:
        return self._busy("compute")

    @property
    def communication(self) -> float:
        return self._busy("communication")

    def _busy(self, stream: str) -> float:
        return sum(span.end - span.start for span in self.spans if span.stream == stream)

    @property
    def time(self) -> float:
        return max((span.end for span in self.spans), default=0.0)

    @property
    def overlap(self) -> float:
        """Spans of one stream never overlap each other."""
        moved = [span for span in self.spans if span.stream == "communication"]
        return sum(
            max(0.0, min(span.end, other.end) - max(span.start, other.start))
            for span in self.spans
            if span.stream == "compute"
            for other in moved
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; see docs/json.md."""
        totals = {name: getattr(self, name) for name in ("time", "compute", "communication", "overlap")}
        return {**totals, "spans": [asdict(span) for span in self.spans]}

    def __str__(self) -> str:
        whole = self.time or 1.0
        lines = [
            f"timeline: {microseconds(self.time)}: computes {microseconds(self.compute)}, communicates"
            f" {microseconds(self.communication)}, both at a time {microseconds(self.overlap)}"
        ]
        wide = max((len(span.name) for span in self.spans[:MOST_SHOWN]), default=0)
        for span in self.spans[:MOST_SHOWN]:
            first, last = (round(at / whole * WIDTH) for at in (span.start, span.end))
            bar = " " * first + ("#" if span.stream == "compute" else "=") * max(1, last - first)
            lines.append(f"  {span.name:<{wide}}  {microseconds(span.end - span.start):>8}  {bar}".rstrip())
        if (left := len(self.spans) - MOST_SHOWN) > 0:
            lines.append(f"  and {left} more")
        return "\n".join(lines)


def timeline_of(
    steps: Sequence[Step],
    calls: Sequence[LibraryCall],
    kernels: Mapping[str, float],
    costs: Sequence[CallCost | None],
    copies: Mapping[Copy, float] | None = None,
) -> Timeline:
    """The timeline of a program.

    kernels  name -> microseconds
    costs    of calls by their numbers; None: no work
    copies   step -> microseconds
    """
    found, now, free = Timeline(), 0.0, 0.0
    under_way = list[tuple[Call, float]]()
    for at, step in enumerate(steps):
        match step:
            case Call() if calls[step.op].name == WAIT:
                ended = [end for start, end in under_way if waits_for(step, start)]
                under_way = [pair for pair in under_way if not waits_for(step, pair[0])]
                now = max([now, *ended])
            case Call() if (cost := costs[step.op]) is not None and cost.members:
                start = max(now, free)
                free = start + cost.time
                found.spans.append(WorkSpan(step.name, "communication", start, free))
                waits = (other for other in steps[at + 1 :] if isinstance(other, Call) and calls[other.op].name == WAIT)
                if any(waits_for(wait, step) for wait in waits):
                    under_way.append((step, free))
                else:
                    now = free
            case Launch() | Call() | Copy() | Loop() | Branch():
                if (time := _time_of(step, calls, kernels, costs, copies or {})) > 0:
                    name = "copy" if isinstance(step, Copy) else step.kernel if isinstance(step, Launch) else step.name
                    found.spans.append(WorkSpan(name, "compute", now, now + time))
                    now += time
            case _:
                pass
    return found


def _time_of(
    step: Step,
    calls: Sequence[LibraryCall],
    kernels: Mapping[str, float],
    costs: Sequence[CallCost | None],
    copies: Mapping[Copy, float],
) -> float:
    """Microseconds of a step and the steps inside it."""

    def inside(steps: Sequence[Step]) -> float:
        return timeline_of(steps, calls, kernels, costs, copies).time

    match step:
        case Launch():
            return kernels.get(step.kernel, 0.0)
        case Copy():
            return copies.get(step, 0.0)
        case Call():
            cost = costs[step.op]
            return cost.time if cost is not None else 0.0
        case Loop():
            return (step.trips or 1) * inside((*step.condition, *step.body))
        case Branch():
            return max((inside(branch) for branch in step.branches), default=0.0)
        case _:
            return 0.0
