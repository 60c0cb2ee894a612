"""The memory of one call of a program over time: which buffers it allocates, and how many bytes are live after each step.

    memory = program.memory([x])                    of a `LoadedProgram`
    memory.peak, memory.at_peak                     the most live bytes, and the buffers that are live then
    memory.events                                   what each step did to a buffer, and the live bytes after it
    "\n".join(memory.lines())

        made             bytes  live
        exponential_0       24    24  ##########
        multiply_1          24    48  ####################
        add_2               24    48  ####################


A step allocates, frees or returns a buffer; a buffer has the name of its value in the IR, and the number of its slot. The text has a
row for each allocating step, with the most live bytes after it. Arguments, constants and lists of sizes are not counted, and each
buffer has memory of its own, which in a call may be a place of the arena. The numbers are from a real run, so loops and branches count as
often as they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from xla_emitters.library.arguments import Array
from xla_emitters.program.bind import BoundSteps
from xla_emitters.program.executable import Executable
from xla_emitters.program.steps import ArrayPlace, Loop, View
from xla_emitters.runtime.walk import Frame, HostMemory, Platform, Run
from xla_emitters.support.columns import aligned

BAR = 40
"""Characters of the longest bar of a drawing."""
SMALL = 50
"""A buffer smaller than this fraction of the peak is not listed at the peak."""


@dataclass(frozen=True, eq=False)
class AllocatedBuffer:
    """The buffer of one execution of a statement; two buffers with equal fields are still different.

    name   of the value in the IR
    slot   that the step gives memory
    dtype  HLO's name of the element type
    """

    name: str
    slot: int
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{','.join(map(str, self.shape))}]: {self.bytes} bytes"


@dataclass(frozen=True)
class Event:
    """What a step did to a buffer, and how many bytes are live after it."""

    slot: int
    what: Literal["made", "freed", "returned"]
    buffer: AllocatedBuffer
    live: int


@dataclass(frozen=True)
class BufferRow:
    """A step that allocates buffers: how often it ran, the largest buffer, and the most live bytes after it."""

    name: str
    slot: int
    times: int
    bytes: int
    live: int


@dataclass(frozen=True)
class MemoryHistory:
    """The memory of one call.

    events  in chronological order
    """

    events: tuple[Event, ...]

    @property
    def peak(self) -> int:
        """The most bytes that are live at once."""
        return max((event.live for event in self.events), default=0)

    @property
    def at_peak(self) -> tuple[AllocatedBuffer, ...]:
        """The buffers that are live when the peak is first reached, the largest first."""
        peak = self.peak
        first = next((number for number, event in enumerate(self.events, 1) if event.live == peak), 0)
        live = _live_after(self.events[:first])
        return tuple(sorted(live, key=lambda buffer: -buffer.bytes))

    def rows(self) -> tuple[BufferRow, ...]:
        """One row for each step that allocated a buffer, in the order of their first execution."""
        found = dict[int, BufferRow]()
        for event in self.events:
            if event.what == "made":
                buffer, slot = event.buffer, event.slot
                seen = found.get(slot, BufferRow(buffer.name, slot, 0, 0, 0))
                most = max(seen.bytes, buffer.bytes), max(seen.live, event.live)
                found[slot] = BufferRow(buffer.name, slot, seen.times + 1, *most)
        return tuple(found.values())

    def peak_lines(self) -> Iterator[str]:
        """The buffers at the peak; equal ones of a loop are one line, and small ones are summed."""
        large = [buffer for buffer in self.at_peak if SMALL * buffer.bytes >= self.peak]
        small = self.at_peak[len(large) :]
        for said, times in Counter(map(str, large)).items():
            yield f"{said}, {times} times" if times > 1 else said
        if small:
            yield f"{len(small)} smaller ones: {sum(buffer.bytes for buffer in small)} bytes"

    def lines(self) -> Iterator[str]:
        """The rows as a text diagram."""
        rows, peak = self.rows(), self.peak
        cells = [("made", "bytes", "live", "")]
        for row in rows:
            name = f"{row.name} x{row.times}" if row.times > 1 else row.name
            cells.append((name, str(row.bytes), str(row.live), "#" * (-(-BAR * row.live // peak) if peak else 0)))
        yield from aligned(cells, right={1, 2})

    def to_json(self) -> dict[str, Any]:
        """Plain data: see docs/json.md."""
        return {
            "peak": self.peak,
            "at_peak": [asdict(buffer) for buffer in self.at_peak],
            "steps": [
                {
                    "slot": event.slot,
                    "what": event.what,
                    "buffer": event.buffer.name,
                    "bytes": event.buffer.bytes,
                    "live": event.live,
                }
                for event in self.events
            ],
        }


def _live_after(events: Iterable[Event]) -> list[AllocatedBuffer]:
    """The buffers that these events have made, and neither freed nor returned."""
    live = dict[AllocatedBuffer, None]()
    for event in events:
        if event.what == "made":
            live[event.buffer] = None
        else:
            del live[event.buffer]
    return list(live)


class WatchedFrame(Frame):
    """A frame that records what a call does to its memory; each array has memory of its own, and none is kept."""

    def __init__(self, bound: BoundSteps, made: Executable, platform: Platform, memory: HostMemory) -> None:
        self._events = list[Event]()
        self._live = 0
        self._of = dict[int, AllocatedBuffer]()  # id of an array that holds memory -> the buffer
        self._views = Counter[AllocatedBuffer]()
        super().__init__(replace(bound, offsets={}, arena_bytes=0), made, platform, memory)

    def left(self) -> list[AllocatedBuffer]:
        """The buffers that a run has neither freed nor returned."""
        return _live_after(self._events)

    def memory(self) -> MemoryHistory:
        """The events so far."""
        return MemoryHistory(tuple(self._events))

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        found = super().run(inputs)
        for array in found:
            if (made := self._of.get(id(array))) is not None:
                self._live -= made.bytes
                self._events.append(Event(made.slot, "returned", made, self._live))
        return found

    def is_fixed(self, slot: int) -> bool:
        return False

    def _whole(self, step: Loop) -> Run | None:
        return None

    def _allocate(self, place: ArrayPlace) -> Run | None:
        allocate = super()._allocate(place)
        if allocate is None or not place.on_device:
            return allocate

        def run() -> None:
            allocate()
            array = self.arrays[place.slot]
            name = self._names.get(place.slot, f"a{place.slot}")
            made = AllocatedBuffer(name, place.slot, place.dtype, array.shape, array.nbytes)
            self._of[id(array)], self._views[made] = made, 1
            self._live += made.bytes
            self._events.append(Event(place.slot, "made", made, self._live))

        return run

    def _view(self, step: View) -> Run | None:
        view = super()._view(step)
        assert view is not None

        def run() -> None:
            view()
            if (made := self._of.get(id(self.arrays[step.source.slot]))) is not None:
                self._of[id(self.arrays[step.target.slot])] = made
                self._views[made] += 1

        return run

    def _release(self, slot: int) -> Run | None:
        release = super()._release(slot)
        assert release is not None

        def run() -> None:
            if (made := self._of.pop(id(self.arrays[slot]), None)) is not None:
                self._views[made] -= 1
                if not self._views[made]:
                    self._live -= made.bytes
                    self._events.append(Event(made.slot, "freed", made, self._live))
            release()

        return run
