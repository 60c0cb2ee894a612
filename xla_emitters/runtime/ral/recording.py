"""Records a call of a host program, so that later calls at the same sizes can be repeated without the host program.

    n = p0.shape[0]; y = alloc((n, 4), f32)          memory of the plan
    launch("main_kLoop_add_0", (n, 1, 1), ...)       Launch(main_kLoop_add_0, [input 0, buffer 1, n])
    gemm(y, w, z)                                    Run(gemm, [buffer 1, input 1, buffer 2])
    size[()] = n; add(size, one, more)               nothing: the value is known at these sizes
    if flag.item(): ...                              end of the segment: what follows depends on the value

Everything that a host program does follows from the sizes of its arguments, and from the elements of buffers that it reads. A buffer is
*known* if it was computed from sizes and constants only: what is computed from known buffers is computed once, during recording. Everything
else is recorded as an event. A known buffer that is written once is a constant of the plan.

When the program reads an element of a buffer that is not known, the segment ends; each value that was read there has its own next segment.
A recording follows the existing segments while the values agree, with the same memory, and adds new ones.

If more than FEW_READS such elements follow from single integers among the arguments, like the condition of a loop with an argument as trip
count, these arguments *decide*: from the next recording on, their values are read first. Then the condition is known, and all
iterations are one segment.

A donated argument is written in place, and can be the result. After such a write no read of data may end a segment: for a new value the
host program would have to run again, on an argument that was changed. Reads that follow from single integers among the arguments make
these decide, however few the reads are.

A known buffer that a later segment writes, such as the cache of a loop that data end, is set in each call. If the first segment that writes
it is added to compiled ones, in which it is a constant, the plan is recorded anew, with no constants.

Not planned (`Unplanned`): reads of data after a donated argument was written, and more than MOST_EVENTS; where the program can be machine
code, more than FEW_EVENTS, and more reads than MOST_SEGMENTS (FEW_READS where it is).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.hot_kernels import PlannedLaunches
from xla_emitters.runtime.ral.hot_spots import Spot
from xla_emitters.runtime.ral.segments import (
    KNOWN,
    UNCLEAR,
    Argument,
    Event,
    Launch,
    Place,
    Plan,
    Repeated,
    Run,
    Segment,
    Set,
    Slot,
)

MOST_EVENTS, MOST_SEGMENTS = 50_000, 256
"""Limits on the events of one path through a program, and on the segments of a plan beside those of its longest path."""
FEW_EVENTS = 20_000
"""Limit on the events of one path where the program can be machine code instead."""
FEW_READS = 8
"""Elements that are read in one call: where more follow from single arguments, these are read in their place; where more are data, machine
code is faster than a plan."""
KEPT_BYTES = 256
"""Buffers up to this size in bytes do not share memory in a plan, so that known ones can be constants."""


class Unplanned(Exception):
    """Raised for a call that no plan can repeat; the call itself can go on."""


class RecordedBuffer(np.ndarray[Any, Any]):
    """A buffer of a recorded call: its elements, and its slot."""

    recording: Recording
    slot: Slot

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, RecordedBuffer) and hasattr(obj, "slot"):
            self.recording, self.slot = obj.recording, obj.slot

    def item(self, *indices: Any) -> Any:
        value = super().item(*indices)
        if not self.slot.known:
            self.recording.has_read(self, indices, value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.recording.has_stored(self, key, value)


def elements_of(value: Any) -> Any:
    """A buffer of a recorded call as the plain array that functions take."""
    return value.view(np.ndarray) if isinstance(value, RecordedBuffer) else value


def place_of(value: Any) -> Argument:
    """An argument in the form that events store."""
    return Place(value.slot, value.shape, value.dtype) if isinstance(value, RecordedBuffer) else value


class Recording(Call):
    """A call that is recorded; see the file's head.

    inputs  as of a `Call`
    plan    which is empty at first
    may_stop  it ends by Unplanned as soon as the call cannot be repeated
    most_reads  elements that a call may read and be repeated
    """

    __slots__ = (
        "_constants",
        "_count",
        "_donated",
        "_entry",
        "_free",
        "_has_changed_argument",
        "_made",
        "_may_stop",
        "_most_reads",
        "_new",
        "_plan",
        "_reads",
        "_reads_of_sources",
        "_sources",
        "failure",
        "segment",
    )

    def __init__(
        self,
        context: Context,
        inputs: Sequence[Array],
        plan: Plan,
        donated: frozenset[int] = frozenset(),
        *,
        may_stop: bool = False,
        most_reads: int = MOST_EVENTS,
    ) -> None:
        super().__init__(context, inputs, donated)
        self._may_stop, self._reads, self._most_reads = may_stop, 0, most_reads
        self._plan, self._donated, self._has_changed_argument = plan, donated, False
        self.segment = root = plan.root
        self._new = root.read is None
        self._entry: tuple[Segment, Any] | None = None
        self._reads_of_sources, self._sources = 0, KNOWN
        self._made = self._count = 0
        self._free = defaultdict[int, list[Array]](list)
        self._constants = dict[int, Slot]()
        self.failure = ""
        self.inputs = [
            self._view(array, Slot(array, root, number, sources=frozenset((number,)) if _can_decide(array) else None))
            for number, array in enumerate(self.inputs)
        ]
        self._names = {id(self.inputs[number]): self.inputs[number] for number in donated}

    def run_host_program(self, main: Callable[..., Any], *, takes_arguments: bool) -> list[Array]:
        try:
            for number in sorted(self._plan.deciding):
                argument = self.inputs[number]
                self._entry = self.segment, argument.item()
                argument.slot.sources = KNOWN
        except Unplanned:
            self.drop_all()
            raise
        return super().run_host_program(main, takes_arguments=takes_arguments)

    def _view(self, array: Array, slot: Slot) -> RecordedBuffer:
        view = array.view(RecordedBuffer)
        view.recording, view.slot = self, slot
        return view

    # --------------------------------------------------------------------------------------------------------- buffers

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory of the plan: that of a freed buffer with the same number of bytes, if there is one."""
        wanted = super().empty(shape, dtype)
        free = self._free[wanted.nbytes]
        is_own = not free and self._plan.has_constants
        if free:
            memory = free.pop()
        elif not self._new and self._made < len(self.segment.slots):
            before = self.segment.slots[self._made]
            memory, is_own = before.memory, before.is_own
        else:
            memory = wanted
        slot = Slot(memory, self.segment, is_own=is_own)
        if self._new:
            self.segment.slots.append(slot)
        self._made += 1
        return self._view(Place(slot, shape, wanted.dtype).array(), slot)

    def freed(self, buffer: Array) -> None:
        slot = cast(RecordedBuffer, buffer).slot
        if not slot.is_constant and slot.number is None and slot.memory.nbytes > KEPT_BYTES:
            self._free[slot.memory.nbytes].append(slot.memory)

    def constant(self, array: Array) -> Array:
        """A constant of the program."""
        slot = self._constants.setdefault(id(array), Slot(array, self._plan.root, sources=KNOWN))
        return self._view(array, slot)

    # ---------------------------------------------------------------------------------------------------------- events

    def note(self, event: Event) -> None:
        self._count += 1
        if self._count > (most := FEW_EVENTS if self._may_stop else MOST_EVENTS):
            self._fails(f"more than {most} events")
        elif self._new:
            self.segment.events.append(event)
            self.segment.count += 1

    def _fails(self, why: str) -> None:
        """Records that the call cannot be repeated. raises Unplanned if it may stop"""
        self.failure = self.failure or why
        if self._may_stop:
            raise Unplanned(why)

    def has_read(self, buffer: RecordedBuffer, indices: tuple[int, ...], value: Any) -> None:
        """The program read an element on which it may branch."""
        self._reads += 1
        if buffer.slot.sources:
            self._reads_of_sources += 1
            self._sources |= buffer.slot.sources
            if self._reads_of_sources > FEW_READS or self._has_changed_argument:
                self._plan.deciding |= self._sources
        if self._has_changed_argument:
            return self._fails("data decide after an argument was written")
        if self._reads > self._most_reads:
            return self._fails(f"more than {self._most_reads} elements are read")
        key = value if value == value else "nan"
        if self._new:
            self.segment.read = place_of(buffer), indices
        following = self.segment.children.get(key)
        self._new = following is None
        if following is None:
            following = self.segment.children[key] = Segment()
        self.segment, self._made = following, 0
        return None

    def has_stored(self, buffer: RecordedBuffer, key: Any, value: Any) -> None:
        """An element, or all elements, got a value that the program knows."""
        slot = buffer.slot
        if slot.known or not slot.writes:
            return self.knows([buffer])

        def store(target: Array) -> None:
            target[key] = value

        return self.writes([buffer], Run(store, (place_of(buffer),)), slot.sources)

    def knows(self, buffers: Sequence[RecordedBuffer]) -> None:
        """Marks buffers whose elements follow from sizes and constants."""
        for buffer in buffers:
            slot = self._written(buffer)
            slot.sources = KNOWN
            self.note(Set(slot, np.array(elements_of(buffer))))

    def writes(self, buffers: Sequence[RecordedBuffer], event: Event, sources: frozenset[int] | None) -> None:
        """An event writes buffers; `sources` are those of the written elements."""
        for buffer in buffers:
            self._written(buffer).sources = sources
        self.note(event)

    def _written(self, buffer: RecordedBuffer) -> Slot:
        slot = buffer.slot
        if slot.number is not None:
            self._changes(slot.number)
        elif slot.segment is not self.segment:
            if slot.is_constant and slot.writes and slot.segment.code is not None:
                self._plan.has_constants = False
                self.failure = self.failure or "a constant is written"
            slot.is_own = False
        slot.writes += 1
        return slot

    def _changes(self, number: int) -> None:
        """A donated argument is written or returned."""
        if number not in self._donated:
            self.failure = self.failure or "an argument is written"
        self._plan.takes = self._has_changed_argument = True

    def run(
        self, function: Callable[..., None], arguments: Sequence[Any], outputs: int, *, is_pure: bool = True
    ) -> None:
        """Runs a function that writes the last `outputs` of the buffers among its arguments, and records it if necessary.

        is_pure  its results depend only on what it reads, and it has no side effects
        """
        function(*map(elements_of, arguments))
        buffers = [value for value in arguments if isinstance(value, RecordedBuffer)]
        read, written = buffers[: len(buffers) - outputs], buffers[len(buffers) - outputs :]
        sources = _sources(read, written) if is_pure else None
        if sources == KNOWN:
            self.knows(written)
        else:
            seen = Repeated(self.context)
            noted = (seen if value is self else place_of(value) for value in arguments)
            self.writes(written, Run(function, tuple(noted)), sources)

    def copy(self, source: RecordedBuffer, target: RecordedBuffer) -> None:
        """Records that a buffer got the elements of another one."""
        sources = _sources([source], [target])
        if sources == KNOWN:
            self.knows([target])
        else:
            self.writes([target], Set(target.slot, source.slot), sources)

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        if not all(grid):
            return
        kernels = self.context.kernels
        assert isinstance(kernels, HostKernels)
        super().launch(name, grid, block, shared_bytes, [*map(elements_of, arguments)])
        self._launched(kernels, name, grid, shared_bytes, arguments)

    def _launched(
        self,
        kernels: HostKernels,
        name: str,
        grid: Extents,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        """Records a launch."""
        reads, writes = kernels.accesses[name]
        written = [arguments[number] for number in writes]
        sources = _sources([arguments[number] for number in reads], written)
        if sources == KNOWN:
            self.knows(written)
        else:
            noted = tuple(map(place_of, arguments))
            self.writes(written, Launch(name, grid, shared_bytes, noted, kernels), sources)

    def run_hot(self, fusion: str, values: Sequence[Any]) -> bool:
        """Runs the kernels compiled for a fusion, launch by launch, and records these; or records that there are none."""
        heat, given = self.context.heat, [*map(elements_of, values)]
        if heat is None:
            return False
        spot = heat.spot(fusion, given)
        kernel = spot.kernel
        if not isinstance(kernel, PlannedLaunches) or not isinstance(kernel.kernels, HostKernels):
            has_run = super().run_hot(fusion, given)
            self._counted(spot, UNCLEAR if has_run else None)
            return has_run
        self._counted(spot, kernel)
        heat.repeated(spot, 1, is_hot=True)
        temporaries = [self.empty(shape, element) for element, shape in kernel.temporaries]
        held = [*values[: len(spot.shapes)], *temporaries]
        for name, grid, block, shared_bytes, numbers in kernel.launches:
            arguments = [held[number] for number in numbers]
            kernel.kernels.launch(name, grid, block, shared_bytes, [*map(elements_of, arguments)])
            self._launched(kernel.kernels, name, grid, shared_bytes, arguments)
        for buffer in temporaries:
            self.freed(buffer)
        return True

    def _counted(self, spot: Spot, kernel: object) -> None:
        if self._new:
            key = spot, kernel
            self.segment.spots[key] = self.segment.spots.get(key, 0) + 1

    # --------------------------------------------------------------------------------------------------------- results

    def send_output(self, number: int, buffer: Array) -> None:
        super().send_output(number, buffer)
        recorded = cast(RecordedBuffer, buffer)
        if self._new:
            self.segment.results.append(place_of(recorded))
        elements = elements_of(recorded)
        if recorded.slot.number is None:
            self.outputs[number] = elements.copy()  # the original is memory of the plan
        else:
            self._changes(recorded.slot.number)
            self.outputs[number] = elements

    def finish(self) -> None:
        """Ends the recording. raises Unplanned for a call that cannot be repeated"""
        if not self._new:
            self.failure = self.failure or "the program did other things at the same values"
        if self.failure:
            raise Unplanned(self.failure)
        self.segment.allocations, self.segment.peak_bytes = self.allocations, self.peak_bytes

    def refuse(self) -> None:
        """Marks calls with these values of the deciding arguments as not repeatable; without such arguments, all calls at these sizes."""
        if self._entry is None:
            self._plan.root, self._plan.is_recorded, self._plan.usable = Segment(), False, False
        else:
            parent, value = self._entry
            parent.children[value] = Segment(refused=True)


def _can_decide(array: Array) -> bool:
    """Whether an argument's value can be used to choose a segment."""
    return array.size == 1 and array.dtype.kind in "biu"


def _sources(read: Sequence[RecordedBuffer], written: Sequence[RecordedBuffer]) -> frozenset[int] | None:
    """The sources of the buffers after a write; a write may cover only a part of a buffer."""
    found = [buffer.slot.sources for buffer in (*read, *(buffer for buffer in written if buffer.slot.writes))]
    return None if None in found else frozenset[int]().union(*(each for each in found if each))
