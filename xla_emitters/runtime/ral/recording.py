"""A call of a host program that notes what it does, so that later calls at the same sizes do the same without the host program.

    n = p0.shape[0]; y = alloc((n, 4), f32)          memory of the plan
    launch("main_kLoop_add_0", (n, 1, 1), ...)       Launch(main_kLoop_add_0, [input 0, buffer 1, n])
    gemm(y, w, z)                                    Run(gemm, [buffer 1, input 1, buffer 2])
    size[()] = n; add(size, one, more)               nothing: it is known at these sizes
    if flag.item(): ...                              where the segment ends: what follows depends on what is read

Everything that a host program does follows from the sizes of its arguments, and from the elements of buffers that it reads. A buffer is
*known* where only sizes and constants went into it: what is computed from known buffers is computed now, once. All else is noted as an
event. A known buffer that is written once is a constant of the plan.

A program that reads an element of a buffer that is not known ends a segment: each value that is read there has a segment of its own behind
it. A recording follows the segments that are there as far as the values agree, with the same memory, and adds those that are new.

Not planned (`Unplanned`): arguments that are written, known buffers that a later segment writes, and more than MOST_EVENTS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.segments import Argument, Event, Launch, Place, Repeated, Run, Segment, Set, Slot

MOST_EVENTS, MOST_SEGMENTS = 20_000, 256
"""Events of one path through a program, and segments of a plan: more are not noted."""
KEPT_BYTES = 256
"""Buffers up to this size have memory of their own in a plan: those that become known are then constants."""


class Unplanned(Exception):
    """The call cannot be repeated by a plan; it goes on all the same."""


class RecordedBuffer(np.ndarray[Any, Any]):
    """A buffer of a recorded call: its elements, and which slot they are."""

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
    """A buffer of a recorded call as the array that functions take."""
    return value.view(np.ndarray) if isinstance(value, RecordedBuffer) else value


def place_of(value: Any) -> Argument:
    """An argument as an event has it."""
    return Place(value.slot, value.shape, value.dtype) if isinstance(value, RecordedBuffer) else value


class Recording(Call):
    """See the file's head.

    inputs  as of a `Call`
    root    the first segment of the plan, which is empty at first
    may_stop  it ends by Unplanned as soon as the call cannot be repeated
    """

    __slots__ = (
        "_constants",
        "_count",
        "_free",
        "_made",
        "_may_stop",
        "_new",
        "_reads",
        "_root",
        "failure",
        "segment",
    )

    def __init__(
        self,
        context: Context,
        inputs: Sequence[Array],
        root: Segment,
        donated: frozenset[int] = frozenset(),
        *,
        may_stop: bool = False,
    ) -> None:
        super().__init__(context, inputs, donated)
        self._may_stop, self._reads = may_stop, 0
        self._root = self.segment = root
        self._new = root.read is None
        self._made = self._count = 0
        self._free = defaultdict[int, list[Array]](list)
        self._constants = dict[int, Slot]()
        self.failure = ""
        self.inputs = [
            self._view(array, Slot(array, root, number, known=False)) for number, array in enumerate(self.inputs)
        ]
        self._names = {id(self.inputs[number]): self.inputs[number] for number in donated}

    def _view(self, array: Array, slot: Slot) -> RecordedBuffer:
        view = array.view(RecordedBuffer)
        view.recording, view.slot = self, slot
        return view

    # --------------------------------------------------------------------------------------------------------- buffers

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory of the plan: a buffer that was freed, if there is one of as many bytes."""
        wanted = super().empty(shape, dtype)
        free = self._free[wanted.nbytes]
        is_own = not free
        if free:
            memory = free.pop()
        elif not self._new and self._made < len(self.segment.slots):
            memory = self.segment.slots[self._made].memory
        else:
            memory = wanted
        slot = Slot(memory, self.segment, known=False, is_own=is_own)
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
        slot = self._constants.setdefault(id(array), Slot(array, self._root, known=True))
        return self._view(array, slot)

    # ---------------------------------------------------------------------------------------------------------- events

    def note(self, event: Event) -> None:
        self._count += 1
        if self._count > MOST_EVENTS:
            self._fails(f"more than {MOST_EVENTS} events")
        elif self._new:
            self.segment.events.append(event)

    def _fails(self, why: str) -> None:
        """Says that the call cannot be repeated. raises Unplanned if it may stop"""
        self.failure = self.failure or why
        if self._may_stop:
            raise Unplanned(why)

    def has_read(self, buffer: RecordedBuffer, indices: tuple[int, ...], value: Any) -> None:
        """The program goes on as an element says."""
        self._reads += 1
        if self._reads > MOST_SEGMENTS:
            return self._fails(f"more than {MOST_SEGMENTS} elements are read")
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
        """An element, or all, became a number that the program knows."""
        slot = buffer.slot
        if slot.known or not slot.writes:
            return self.knows([buffer])

        def store(target: Array) -> None:
            target[key] = value

        return self.writes([buffer], Run(store, (place_of(buffer),)))

    def knows(self, buffers: Sequence[RecordedBuffer]) -> None:
        """Buffers have elements that follow from sizes and constants."""
        for buffer in buffers:
            slot = self._written(buffer)
            slot.known = True
            self.note(Set(slot, np.array(elements_of(buffer))))

    def writes(self, buffers: Sequence[RecordedBuffer], event: Event) -> None:
        """An event writes buffers."""
        for buffer in buffers:
            self._written(buffer).known = False
        self.note(event)

    def _written(self, buffer: RecordedBuffer) -> Slot:
        slot = buffer.slot
        if slot.number is not None or (slot.segment is not self.segment and slot.is_constant and slot.writes):
            self.failure = self.failure or "an argument or a constant is written"
        slot.writes += 1
        return slot

    def run(
        self, function: Callable[..., None], arguments: Sequence[Any], outputs: int, *, is_pure: bool = True
    ) -> None:
        """Runs a function that writes the last `outputs` of the buffers among its arguments, and notes it if need be.

        is_pure  what it writes follows from what it reads, and it does nothing else
        """
        function(*map(elements_of, arguments))
        buffers = [value for value in arguments if isinstance(value, RecordedBuffer)]
        read, written = buffers[: len(buffers) - outputs], buffers[len(buffers) - outputs :]
        if is_pure and _all_known(read, written):
            self.knows(written)
        else:
            seen = Repeated(self.context)
            noted = (seen if value is self else place_of(value) for value in arguments)
            self.writes(written, Run(function, tuple(noted)))

    def copy(self, source: RecordedBuffer, target: RecordedBuffer) -> None:
        """Notes that a buffer got the elements of another one."""
        if _all_known([source], [target]):
            self.knows([target])
        else:
            self.writes([target], Set(target.slot, source.slot))

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        if not all(grid):
            return
        super().launch(name, grid, block, shared_bytes, [*map(elements_of, arguments)])
        kernels = self.context.kernels
        assert isinstance(kernels, HostKernels)
        reads, writes = kernels.accesses[name]
        written = [arguments[number] for number in writes]
        if _all_known([arguments[number] for number in reads], written):
            self.knows(written)
        else:
            self.writes(written, Launch(name, grid, shared_bytes, tuple(map(place_of, arguments))))

    # --------------------------------------------------------------------------------------------------------- results

    def send_output(self, number: int, buffer: Array) -> None:
        super().send_output(number, buffer)
        recorded = cast(RecordedBuffer, buffer)
        if self._new:
            self.segment.results.append(place_of(recorded))
        self.outputs[number] = elements_of(recorded).copy()  # it is memory of the plan

    def finish(self) -> None:
        """The call ended. raises Unplanned where it cannot be repeated"""
        if not self._new:
            self.failure = self.failure or "the program did other things at the same values"
        if self.failure:
            raise Unplanned(self.failure)
        self.segment.allocations, self.segment.peak_bytes = self.allocations, self.peak_bytes


def _all_known(read: Sequence[RecordedBuffer], written: Sequence[RecordedBuffer]) -> bool:
    """Whether what is written is known afterwards. A part of a buffer may be all that is written."""
    return all(buffer.slot.known for buffer in read) and all(
        buffer.slot.known or not buffer.slot.writes for buffer in written
    )
