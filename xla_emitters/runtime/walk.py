"""Runs bound steps: each becomes a function without arguments, once for each `Frame`; a call runs the functions in order.

    frame = Frame(bound, program, platform, memory)       memory of one call at a time: slots, numbers, the arena
    frame.run([x, y])                                     -> the results

A platform computes single steps (`Platform`): on the CPU by NumPy, with kernels by the executor or as machine code. Control flow, numbers
of the host, memory and names of memory are the same on all of them. A frame belongs to one call at a time; `Frames` keeps those of finished
calls, so that a warm call finds its memory where it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array, numpy_type, pointer
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES, packed_bytes, unpacked_elements
from xla_emitters.program.bind import ALIGNMENT, STAGE, BoundSteps, no_reshape
from xla_emitters.program.executable import Executable
from xla_emitters.program.steps import (
    DIVISIONS,
    FUNCTIONS,
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
    Copy,
    Dimension,
    Extent,
    Fill,
    Launch,
    Load,
    Loop,
    Move,
    NumberSlot,
    Recurrence,
    Release,
    Step,
    Store,
    View,
    steps_within,
)
from xla_emitters.runtime.repetition import LONG_LOOP, Repetition, asked_after, too_long
from xla_emitters.support.limits import (
    MOST_ITERATIONS,
    allowed_memory,
    iteration_limit,
    memory_limit,
    refuse_beyond_limit,
)

Run: TypeAlias = Callable[[], None]
"""A step, ready to run."""
ARGUMENT_ALIGNMENT = 16
"""Bytes: the alignment of each array that a kernel takes."""
MOST_IDLE, MOST_IDLE_BYTES = 8, 256 << 20
"""Frames of one binding, and bytes of the arenas of all frames of a program, that are kept between calls; one frame is kept in any case."""
MOST_KEPT_BYTES = 1 << 16
"""Of an array in such a state; of a larger one the hash is kept."""


class HostMemory:
    """Where arrays are, here NumPy's; `place` says which type they have, and whether they are in the device's memory or the host's.

    empty_of  returns uninitialized memory of a shape and a type
    waits     whether the host waits for a device when it reads an array
    """

    waits = False

    def __init__(self, empty_of: Callable[[tuple[int, ...], Any], Array] = np.empty) -> None:
        self._empty = empty_of

    def limit(self) -> int | None:
        """Bytes that the arrays of a run may take at a time; None: as many as there are."""
        return memory_limit()

    def empty(self, place: ArrayPlace, shape: tuple[int, ...]) -> Any:
        """Memory for an array, uninitialized. raises MemoryError, ValueError"""
        return self._empty(shape, numpy_type(place.dtype))

    def arena(self, count: int) -> Any:
        """So many bytes of the device's memory, aligned to ALIGNMENT."""
        held = self._empty((count + ALIGNMENT,), np.dtype(np.uint8))
        start = -pointer(held) % ALIGNMENT
        return held[start : start + count]

    def placed(self, arena: Any, start: int, place: ArrayPlace, shape: tuple[int, ...]) -> Any:
        """An array in the arena, from byte `start` on."""
        kind = numpy_type(place.dtype)
        return arena[start : start + prod(shape) * kind.itemsize].view(kind).reshape(shape)

    def resident(self, place: ArrayPlace, elements: Array) -> Any:
        """A constant where the program expects it."""
        return elements

    def argument(self, place: ArrayPlace, array: Any) -> Any:
        """An argument where the program expects it, aligned as kernels assume: the caller's array, or a copy."""
        return array.copy() if pointer(array) % ARGUMENT_ALIGNMENT else array


class Platform(ABC):
    """What differs between platforms: how a call and a launch are computed."""

    @abstractmethod
    def call(self, frame: Frame, step: Call) -> Run: ...

    @abstractmethod
    def launch(self, frame: Frame, step: Launch) -> Run: ...

    def joined(self, frame: Frame, runs: Sequence[Run]) -> Sequence[Run]:
        """Steps that follow each other, some of them as one."""
        return runs

    def whole(self, frame: Frame, step: Loop) -> Run | None:
        """A loop as one step; None: its steps run one by one."""
        return None

    def outlasts(self, ends: Recurrence, state: Sequence[Any], most: int) -> bool:
        """Whether a loop in this state runs more than `most` times; False where that is not known."""
        return False


class Frame:
    """The state of one call, and its steps ready to run.

    arrays   slot -> the array that it holds, or None
    numbers  of the host
    kept     objects that steps refer to by address
    varying  slots that a call gives memory, which it does not keep
    code     what a call runs
    """

    def __init__(self, bound: BoundSteps, made: Executable, platform: Platform, memory: HostMemory) -> None:
        self.bound, self.platform = bound, platform
        self._memory, self._names = memory, made.names
        self._limit, self._taken, self._in_arena = memory.limit(), 0, bound.arena_bytes
        self._refuse_arena()
        self.arrays: list[Any] = [None] * made.slots
        self.numbers = [0] * made.numbers
        self._parameters = made.parameters
        self._given = [place.slot for place in made.parameters]
        for slot, array in bound.known.items():
            self.arrays[slot] = array
        for place, array in made.constants:
            self.arrays[place.slot] = memory.resident(place, array)
        try:
            self._arena = memory.arena(bound.arena_bytes)
        except MemoryError as error:
            raise DataError(
                f"out of memory: the arrays of a run take {bound.arena_bytes} bytes", stage=STAGE
            ) from error
        self._results = [place.slot for place in bound.results]
        self.varying = list[int]()
        self.kept = list[object]()
        self.code = self.prepared(bound.steps)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The results for arguments of the sizes of this binding. raises DataError, ExecutionError

        The frame keeps nothing of a call but the memory of its arena.
        """
        arrays = self.arrays
        for place, array in zip(self._parameters, inputs, strict=True):
            arrays[place.slot] = self._memory.argument(place, array)
        self._limit = self._memory.limit()
        if allowed_memory() is not None:
            self._refuse_arena()
        self._taken = self._in_arena
        try:
            for run in self.code:
                run()
            # From now on what is free is read without the arena, whose memory is in use.
            self._in_arena = 0 if allowed_memory() is None else self.bound.arena_bytes
            return [arrays[slot] for slot in self._results]
        finally:
            for slot in (*self._given, *self._results, *self.varying):
                arrays[slot] = None

    # -------------------------------------------------------------------------------------------------------- memory

    def _refuse_arena(self) -> None:
        """raises DataError if the arena does not fit; it names the largest array in it"""
        if self._limit is None or self.bound.arena_bytes <= self._limit:
            return
        allocated = [
            (place, size)
            for step in steps_within(self.bound.steps)
            if isinstance(step, Allocate) and (place := step.array).slot in self.bound.offsets
            for size in (prod(self.bound.shapes[place.slot]) * numpy_type(place.dtype).itemsize,)
        ]
        place, size = max(allocated, key=lambda found: found[1])
        self._refuse(place, self.bound.shapes[place.slot], self.bound.arena_bytes - size)

    def _refuse_now(self, place: ArrayPlace, shape: tuple[int, ...], beside: Sequence[Any]) -> None:
        """raises DataError if an array does not fit beside those that live now, in slots and in `beside`"""
        held = (*beside, *(array for slot in self.varying if (array := self.arrays[slot]) is not None))
        owners = [array if array.base is None else array.base for array in held]
        self._taken = self._in_arena + sum({id(owner): owner.nbytes for owner in owners}.values())
        self._refuse(place, shape, self._taken)

    def _refuse(self, place: ArrayPlace, shape: tuple[int, ...], taken: int) -> None:
        if min(shape, default=0) < 0:
            raise DataError(f"{self._named(place)}: a size of {list(shape)} is negative", stage=STAGE)
        refuse_beyond_limit(shape, numpy_type(place.dtype).itemsize, place.dtype, self._named(place), taken)

    def _named(self, place: ArrayPlace) -> str:
        return f"%{self._names.get(place.slot, f'a{place.slot}')}"

    # ------------------------------------------------------------------------------------------------------ operands

    def is_fixed(self, slot: int) -> bool:
        """Whether a slot holds the same array in every call."""
        return slot in self.bound.offsets or self.arrays[slot] is not None

    def value(self, extent: Extent) -> Callable[[], int]:
        """A number when the step runs."""
        if isinstance(extent, int):
            return lambda: extent
        numbers, index = self.numbers, extent.index
        return lambda: numbers[index]

    def values(self, extents: Sequence[Extent]) -> Callable[[], tuple[int, ...]]:
        """Several numbers when the step runs."""
        known = tuple(extent for extent in extents if isinstance(extent, int))
        if len(known) == len(extents):
            return lambda: known
        numbers = self.numbers
        pairs = [(extent.index, 0) if isinstance(extent, NumberSlot) else (-1, extent) for extent in extents]
        return lambda: tuple([numbers[index] if index >= 0 else fixed for index, fixed in pairs])

    def operands(self, places: Sequence[ArrayPlace]) -> Callable[[], list[Array]]:
        """The arrays of places when the step runs, in the shapes of the places."""
        arrays = self.arrays
        flat = [place.shape == (-1,) for place in places]
        if all(self.is_fixed(place.slot) for place in places):
            held = [
                arrays[p.slot].reshape(-1) if is_flat else arrays[p.slot]
                for p, is_flat in zip(places, flat, strict=True)
            ]
            return lambda: held
        slots = [place.slot for place in places]
        if not any(flat):
            return lambda: [arrays[slot] for slot in slots]
        pairs = list(zip(slots, flat, strict=True))
        return lambda: [arrays[slot].reshape(-1) if is_flat else arrays[slot] for slot, is_flat in pairs]

    def arguments(self, values: Sequence[ArrayPlace | Extent]) -> Callable[[], list[Any]]:
        """Arrays and numbers when the step runs."""
        operands = self.operands([value for value in values if isinstance(value, ArrayPlace)])
        numbers = self.values([value for value in values if not isinstance(value, ArrayPlace)])
        is_array = [isinstance(value, ArrayPlace) for value in values]

        def found() -> list[Any]:
            arrays, known = iter(operands()), iter(numbers())
            return [next(arrays) if held else next(known) for held in is_array]

        return found

    # --------------------------------------------------------------------------------------------------------- steps

    def prepared(self, steps: Sequence[Step]) -> Sequence[Run]:
        """Steps that follow each other, ready to run."""
        found = (self.prepare(step) for step in steps)
        return self.platform.joined(self, [run for run in found if run is not None])

    def prepare(self, step: Step) -> Run | None:
        """A step, ready to run; None: there is nothing to do in a call."""
        match step:
            case Compute():
                return self._compute(step)
            case Dimension():
                return self._dimension(step)
            case Load():
                return self._load(step)
            case Store():
                return self._store(step)
            case Allocate():
                return self._allocate(step.array)
            case Fill():
                return self._fill(step)
            case View():
                return self._view(step)
            case Release():
                return self._release(step.slot)
            case Copy():
                return self._copy(step)
            case Move():
                return self._move(step)
            case Call():
                return self.platform.call(self, step)
            case Launch():
                return self.platform.launch(self, step)
            case Loop():
                return self._loop(step)
            case Branch():
                return self._branch(step)

    def _compute(self, step: Compute) -> Run:
        numbers, result, function = self.numbers, step.result.index, FUNCTIONS[step.function]
        match step.operands:
            case (NumberSlot(index=a),) if step.function == "copy":

                def run() -> None:
                    numbers[result] = numbers[a]
            case (NumberSlot(index=a), int() as b) if step.function not in DIVISIONS:

                def run() -> None:
                    numbers[result] = function(numbers[a], b)
            case (NumberSlot(index=a), NumberSlot(index=b)) if step.function not in DIVISIONS:

                def run() -> None:
                    numbers[result] = function(numbers[a], numbers[b])
            case _:
                operands = self.values(step.operands)

                def run() -> None:
                    try:
                        numbers[result] = function(*operands())
                    except ZeroDivisionError:
                        raise DataError(f"{step.function} by zero, of {operands()[0]}", stage=STAGE) from None

        return run

    def _dimension(self, step: Dimension) -> Run:
        numbers, arrays, result, slot, axis = self.numbers, self.arrays, step.result.index, step.slot, step.axis
        value = self.value(axis)

        def run() -> None:
            numbers[result] = arrays[slot].shape[value()]

        return run

    def _load(self, step: Load) -> Run:
        numbers, arrays, result, slot = self.numbers, self.arrays, step.result.index, step.array.slot
        index = self.values(step.index)

        def run() -> None:
            numbers[result] = int(arrays[slot][index()])

        return run

    def _store(self, step: Store) -> Run:
        arrays, slot, index, value = self.arrays, step.array.slot, self.values(step.index), self.value(step.value)

        def run() -> None:
            arrays[slot][index()] = value()

        return run

    def _allocate(self, place: ArrayPlace) -> Run | None:
        arrays, slot, memory = self.arrays, place.slot, self._memory
        if (start := self.bound.offsets.get(slot)) is not None:
            shape = self.bound.shapes[slot]
            on_device = place.on_device
            arrays[slot] = memory.placed(self._arena, start, place, shape) if on_device else memory.empty(place, shape)
            return None
        self.varying.append(slot)
        sizes, itemsize = self.values(place.shape), numpy_type(place.dtype).itemsize
        fixed = None if any(isinstance(size, NumberSlot) for size in place.shape) else prod(sizes()) * itemsize

        def run() -> None:
            shape = sizes()
            arrays[slot] = self.fresh(place, shape, prod(shape) * itemsize if fixed is None else fixed)

        return run

    def fresh(self, place: ArrayPlace, shape: tuple[int, ...], wanted: int, beside: Sequence[Any] = ()) -> Any:
        """Memory of so many bytes for an array of this run. raises DataError where there is not enough

        beside  arrays that live now and that no slot holds
        """
        # Memory that was freed is counted until this sum exceeds the limit: most calls need no more than the addition.
        if self._limit is not None and self._taken + wanted > self._limit:
            self._refuse_now(place, shape, beside)
        self._taken += wanted
        try:
            return self._memory.empty(place, shape)
        except (ValueError, MemoryError) as error:
            self._refuse(place, shape, 0)
            said = f"{self._named(place)} is {place.dtype}[{','.join(map(str, shape))}], {wanted} bytes"
            raise DataError(f"out of memory: {said}", stage=STAGE) from error

    def _fill(self, step: Fill) -> Run:
        arrays, slot, kind = self.arrays, step.array.slot, numpy_type(step.array.dtype)
        held = np.frombuffer(step.data, kind).reshape(self.values(step.array.shape)())
        self.varying.append(slot)

        def run() -> None:
            arrays[slot] = held.copy()

        return run

    def _view(self, step: View) -> Run | None:
        arrays, source, target = self.arrays, step.source.slot, step.target.slot
        if target in self.bound.offsets or (self.is_fixed(source) and target in self.bound.shapes):
            arrays[target] = arrays[source].reshape(self.bound.shapes[target])
            return None
        self.varying.append(target)
        shape, held_shape = self.values(step.target.shape), self.bound.shapes.get(source)
        if held_shape is not None and not any(isinstance(size, NumberSlot) for size in step.target.shape):
            known = shape()
            if prod(known) == prod(held_shape) and min(known, default=0) >= 0:

                def run_known() -> None:
                    arrays[target] = arrays[source].reshape(known)

                return run_known

        def run() -> None:
            held, sizes = arrays[source], shape()
            if prod(sizes) != held.size or min(sizes, default=0) < 0:
                raise no_reshape(held.shape, sizes)
            arrays[target] = held.reshape(sizes)

        return run

    def _release(self, slot: int) -> Run | None:
        if self.is_fixed(slot):
            return None
        arrays = self.arrays

        def run() -> None:
            arrays[slot] = None

        return run

    def _copy(self, step: Copy) -> Run:
        operands = self.operands((step.source, step.target))
        bits, wanted = (BITS_IN_SHARED_BYTES.get(place.dtype, 8) for place in (step.source, step.target))

        def run() -> None:
            source, target = operands()
            if source.nbytes != target.nbytes:  # on a GPU elements share bytes, as in the text
                shared = packed_bytes(source.view(np.uint8).reshape(-1), bits)
                source = unpacked_elements(shared, wanted).reshape(target.shape)
            target[...] = source.view(target.dtype)

        return run

    def _move(self, step: Move) -> Run:
        arrays = self.arrays
        self.varying.extend(target for _, target in step.pairs)
        if len(step.pairs) == 1:
            ((source, target),) = step.pairs

            def run_one() -> None:
                arrays[target], arrays[source] = arrays[source], None

            return run_one
        sources, targets = zip(*step.pairs, strict=True)
        left = [source for source in sources if source not in targets]

        def run() -> None:
            for target, array in zip(targets, [arrays[source] for source in sources], strict=True):
                arrays[target] = array
            for source in left:
                arrays[source] = None

        return run

    def _loop(self, step: Loop) -> Run:
        return self._whole(step) or self.by_steps(step, self.prepared(step.condition), self.prepared(step.body))

    def _whole(self, step: Loop) -> Run | None:
        return self.platform.whole(self, step)

    def by_steps(self, step: Loop, condition: Sequence[Run], body: Sequence[Run]) -> Run:
        """A loop whose steps, which are ready to run, run one by one."""
        known = step.trips
        if known is not None and (not condition or (self._memory.waits and known <= MOST_ITERATIONS)):

            def run_known() -> None:
                if known > (most := iteration_limit()):
                    raise too_long(step.name, most, STAGE)
                for _ in range(known):
                    for repeat in body:
                        repeat()

            return run_known
        holds = self.value(step.holds)
        arrays, numbers, assigned = self.arrays, self.numbers, step.assigned
        asked = 0 if step.trips is not None or step.ends is None else asked_after(is_exact=step.ends.is_exact)
        decisive = step.carried if step.decides is None else step.decides

        def counted() -> Iterator[bytes]:
            yield repr([numbers[index] for index in assigned]).encode()

        def state() -> Iterator[bytes]:
            yield from counted()
            yield from state_bytes([arrays[slot] for slot in decisive])

        def refuse_endless(ends: Recurrence, trips: int, most: int) -> None:
            held = [arrays[slot] for slot in ends.state]
            if all(isinstance(array, np.ndarray) for array in held):
                if self.platform.outlasts(ends, held, most - trips):
                    raise too_long(step.name, most, STAGE)

        def run() -> None:
            most = iteration_limit()
            trips, repetition, by_numbers = 0, Repetition(LONG_LOOP - 1), Repetition(LONG_LOOP - 1)
            is_watched = not assigned  # arrays, which take time, only once the numbers have come back
            while True:
                for decide in condition:
                    decide()
                if not holds():
                    return
                if trips == most:
                    raise too_long(step.name, most, STAGE)
                if trips + 1 == asked and step.ends is not None:
                    refuse_endless(step.ends, trips, most)
                trips += 1
                if trips < LONG_LOOP or step.trips is not None:
                    pass
                elif not is_watched:
                    is_watched = by_numbers.is_found(counted)
                elif all(isinstance(arrays[slot], np.ndarray) for slot in decisive):
                    if repetition.is_found(state):
                        raise repetition.error(step.name, STAGE)
                for repeat in body:
                    repeat()

        return run

    def _branch(self, step: Branch) -> Run:
        branches = [self.prepared(steps) for steps in step.branches]
        selector, last = self.value(step.selector), len(branches) - 1

        def run() -> None:
            number = selector()
            for run in branches[number if 0 <= number <= last else last]:
                run()

        return run


def state_bytes(arrays: Sequence[Array]) -> Iterator[bytes]:
    """The parts of a loop's state, small ones first."""
    for array in sorted(arrays, key=lambda array: array.nbytes):
        held = array.tobytes()
        yield held if len(held) <= MOST_KEPT_BYTES else blake2b(held).digest()


@dataclass
class Idle:
    """Bytes of the arenas of all frames of a program that no call uses."""

    bytes: int = 0


class Frames:
    """Frames of one binding: a call takes one and gives it back, so calls at the same time have memory of their own.

    make   makes a frame
    idle   of the program
    queue  what orders the work of a call: a frame is used again only by calls of the same queue, whose work begins after that of this call
    """

    def __init__(self, make: Callable[[], Frame], idle: Idle) -> None:
        self._make, self._idle = make, idle
        self._kept = dict[Any, list[Frame]]()
        self._lock = Lock()

    def run(self, inputs: Sequence[Any], queue: Any = None) -> list[Any]:
        """Like `Frame.run`."""
        frame = self._taken(queue) or self._make()
        try:
            return frame.run(inputs)
        finally:
            self._give_back(frame, queue)

    def _taken(self, queue: Any) -> Frame | None:
        with self._lock:
            kept = self._kept.get(queue)
            if not kept:
                return None
            self._idle.bytes -= kept[-1].bound.arena_bytes
            return kept.pop()

    def _give_back(self, frame: Frame, queue: Any) -> None:
        wanted = frame.bound.arena_bytes
        with self._lock:
            kept = self._kept.setdefault(queue, [])
            if len(kept) < MOST_IDLE and (not self._idle.bytes or self._idle.bytes + wanted <= MOST_IDLE_BYTES):
                self._idle.bytes += wanted
                kept.append(frame)

    def drop(self) -> None:
        """Frees the memory of idle frames."""
        with self._lock:
            self._idle.bytes -= sum(frame.bound.arena_bytes for kept in self._kept.values() for frame in kept)
            self._kept.clear()
