"""The memory of one call of a host program over time: which buffers it allocates, and how many bytes are live after each step.

    results, memory = program.run_watched([x])      of a `LoadedProgram`
    memory.peak, memory.at_peak                     the most live bytes, and the buffers that are live then
    memory.events                                   what each step did to a buffer, and the live bytes after it
    "\n".join(memory.lines())

        made             bytes  live
        exponential_0       24    24  ##########
        multiply_1          24    48  ####################
        add_2               24    48  ####################


A step is a statement of the host program that allocates, frees or returns a buffer; a buffer has the name of its variable. The text has a
row for each allocating statement, with the most live bytes after it. Arguments and constants are not buffers of the call, and lists of
sizes on the stack are not counted. The numbers are from a real run, so loops and branches count as often as they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.arrays import element_name
from xla_emitters.runtime.ral.context import Call, Context, line_of_host_program

BAR = 40
"""Characters of the longest bar of a drawing."""
SMALL = 50
"""A buffer smaller than this fraction of the peak is not listed at the peak."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """The buffer of one execution of a statement; two buffers with equal fields are still different.

    name   of the variable
    line   of the statement in the host program, from 1
    dtype  HLO's name of the element type
    """

    name: str
    line: int
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{','.join(map(str, self.shape))}]: {self.bytes} bytes"


@dataclass(frozen=True)
class Event:
    """What a statement did to a buffer, and how many bytes are live after it."""

    line: int
    what: Literal["made", "freed", "returned"]
    buffer: Buffer
    live: int


@dataclass(frozen=True)
class Row:
    """A statement that allocates buffers: how often it ran, the largest buffer, and the most live bytes after it."""

    name: str
    line: int
    times: int
    bytes: int
    live: int


@dataclass(frozen=True)
class Memory:
    """The memory of one call.

    events  in chronological order
    """

    events: tuple[Event, ...]

    @property
    def peak(self) -> int:
        """The most bytes that are live at once."""
        return max((event.live for event in self.events), default=0)

    @property
    def at_peak(self) -> tuple[Buffer, ...]:
        """The buffers that are live when the peak is first reached, the largest first."""
        live, peak = dict[Buffer, None](), self.peak
        for event in self.events:
            if event.what == "made":
                live[event.buffer] = None
            else:
                del live[event.buffer]
            if event.live == peak:
                break
        return tuple(sorted(live, key=lambda buffer: -buffer.bytes))

    def rows(self) -> tuple[Row, ...]:
        """One row for each statement that allocated a buffer, in the order of their first execution."""
        found = dict[int, Row]()
        for event in self.events:
            if event.what == "made":
                buffer, line = event.buffer, event.line
                seen = found.get(line, Row(buffer.name, line, 0, 0, 0))
                most = max(seen.bytes, buffer.bytes), max(seen.live, event.live)
                found[line] = Row(buffer.name, line, seen.times + 1, *most)
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
        cells = [("made", "bytes", "live")]
        cells += [
            (f"{row.name} x{row.times}" if row.times > 1 else row.name, str(row.bytes), str(row.live)) for row in rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        bars = ["", *("#" * (-(-BAR * row.live // peak) if peak else 0) for row in rows)]
        for (name, size, live), bar in zip(cells, bars, strict=True):
            yield f"{name:<{widths[0]}}  {size:>{widths[1]}}  {live:>{widths[2]}}  {bar}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Plain data: see docs/json.md."""
        return {
            "peak": self.peak,
            "at_peak": [asdict(buffer) for buffer in self.at_peak],
            "steps": [
                {
                    "line": event.line,
                    "what": event.what,
                    "buffer": event.buffer.name,
                    "bytes": event.buffer.bytes,
                    "live": event.live,
                }
                for event in self.events
            ],
        }


class WatchedCall(Call):
    """A call that records the events of its buffers."""

    __slots__ = ("_events", "_live", "_names_of", "_of")

    def __init__(self, context: Context, inputs: Sequence[Array], donated: frozenset[int]) -> None:
        super().__init__(context, inputs, donated)
        self._events = list[Event]()
        self._live = 0
        self._of = dict[int, Buffer]()
        self._names_of = Counter[Buffer]()

    def memory(self) -> Memory:
        """The events so far."""
        return Memory(tuple(self._events))

    def alloc(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "") -> Array:
        array = super().alloc(shape, dtype, name)
        line = line_of_host_program()
        buffer = Buffer(
            self.context.variable_at(line) or "buffer", line, element_name(array.dtype), array.shape, array.nbytes
        )
        self._of[id(array)] = buffer
        self._names_of[buffer] = 1
        self._live += buffer.bytes
        self._events.append(Event(line, "made", buffer, self._live))
        return array

    def inc_ref(self, buffer: Array, shape: tuple[int, ...]) -> Array:
        view = super().inc_ref(buffer, shape)
        if (made := self._of.get(id(buffer))) is not None:
            self._of[id(view)] = made
            self._names_of[made] += 1
        return view

    def end_name(self, buffer: Array) -> bool:
        is_last = super().end_name(buffer)
        if (made := self._of.pop(id(buffer), None)) is not None:
            self._names_of[made] -= 1
            if not self._names_of[made]:
                self._live -= made.bytes
                self._events.append(Event(line_of_host_program(), "freed", made, self._live))
        return is_last

    def release(self, buffer: Array) -> None:
        made = self._of.get(id(buffer))
        super().release(buffer)
        if made is not None:  # its last view ended: now it belongs to the caller
            self._events[-1] = replace(self._events[-1], what="returned")
