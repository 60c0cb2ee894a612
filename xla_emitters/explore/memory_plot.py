"""The buffers of a run over time as SVG: one rectangle per buffer, from the step that allocates it to the step that frees it.

    bytes
      ^   +--------+ +-----------+
      |   |   b    | |     d     |
      | +-+----+---+-+---+-------+
      | |  a   |    |  c |
      +----------------------------> steps

A rectangle's height is its size in bytes; it is placed as low as fits between the buffers that are live at the same time, those of
the peak first. The line is the peak. (The runtime gets memory from NumPy; the height at which a buffer is drawn is not its address.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

from xla_emitters.runtime.memory_history import AllocatedBuffer, MemoryHistory
from xla_emitters.trace.html import Html

WIDTH, HEIGHT = 900, 360


@dataclass(frozen=True)
class Life:
    """A buffer from the event `start` to `end`, drawn upwards from byte `low`."""

    buffer: AllocatedBuffer
    start: int
    end: int
    low: int


def lives(memory: MemoryHistory) -> tuple[Life, ...]:
    """The place of each buffer in the drawing: buffers that are live at the same time do not overlap.

    Those of the peak are placed first, so that together they are as high as the peak; then the others, in order of allocation.
    """
    ends = {event.buffer: number for number, event in enumerate(memory.events) if event.what != "made"}
    found = [
        Life(event.buffer, start, ends.get(event.buffer, len(memory.events)), 0)
        for start, event in enumerate(memory.events)
        if event.what == "made"
    ]
    at_peak, placed = set(memory.at_peak), list[Life]()
    for life in sorted(found, key=lambda each: each.buffer not in at_peak):
        others = [other for other in placed if other.start < life.end and life.start < other.end]
        placed.append(replace(life, low=_lowest(life.buffer.bytes, others)))
    return tuple(sorted(placed, key=lambda each: each.start))


def _lowest(size: int, others: list[Life]) -> int:
    """The lowest offset with room for that many bytes between the live buffers."""
    low = 0
    for life in sorted(others, key=lambda life: life.low):
        if life.low - low >= size:
            break
        low = max(low, life.low + life.buffer.bytes)
    return low


def memory_plot(memory: MemoryHistory) -> Html:
    """The drawing; a buffer's name, shape and bytes are its tooltip."""
    found = lives(memory)
    top = max((life.low + life.buffer.bytes for life in found), default=0) or 1
    step, byte = WIDTH / max(1, len(memory.events)), HEIGHT / top
    at_peak = set(memory.at_peak)
    parts = [_rectangle(life, step, byte, life.buffer in at_peak) for life in found]
    y = HEIGHT - memory.peak * byte
    line = f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="4"/>'
    said = f'<text x="4" y="{y + 14:.1f}" font-size="12" fill="currentColor">peak: {memory.peak} bytes</text>'
    return Html(
        f'<svg role="img" aria-label="buffers over time" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="monospace">{"".join(parts)}{line}{said}</svg>'
    )


def _rectangle(life: Life, step: float, byte: float, is_at_peak: bool) -> str:
    x, width = life.start * step, (life.end - life.start) * step
    height = life.buffer.bytes * byte
    y = HEIGHT - life.low * byte - height
    fill = "#d95f02" if is_at_peak else "#7570b3"
    shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="white">'
    return f"{shape}<title>{escape(str(life.buffer))}</title></rect>"
