"""A program's steps at one set of sizes: everything that follows from the sizes is computed once, here.

    bound = bind(steps, [(12, 40), (40,)], evaluate)

    Compute n1 = add n0, 63          gone: n1 is 75
    Call multiply (of the host)      gone where its operands are known: its result is
    Allocate a1 f32[n0]              Allocate a1 f32[12], at a place in the arena
    Launch k grid (n1, 1, 1)         Launch k grid (75, 1, 1); gone where the grid has no blocks
    Branch on n2                     the steps of the chosen branch

What only data decide stays: numbers that are read from arrays, the branches and loops that depend on them, arrays of such sizes. Inside
these a check that fails, and arithmetic that has no value, are left to the run: they may never be reached.
A loop's carried arrays are taken to keep their sizes; where the body disproves it, the loop is bound anew without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from xla_emitters.errors import DataError, InternalError, XlaEmittersError
from xla_emitters.library.arguments import Array, element_name, numpy_type
from xla_emitters.program.steps import (
    FUNCTIONS,
    INTEGERS,
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
    Release,
    Step,
    Store,
    View,
    parts_of,
    rewritten,
    steps_within,
)
from xla_emitters.support.limits import refuse_beyond_limit

STAGE = "run"
ALIGNMENT = 64
"""Bytes: the least alignment of arrays in the arena."""
Evaluate = Callable[[int, Sequence[Array]], None]
"""(number of an op, its operands and results): writes the results."""


@dataclass(frozen=True)
class BoundSteps:
    """Steps at one set of sizes.

    steps    what is left to do in each call
    known    slot -> elements: arrays of the host that are the same in every call
    shapes   slot -> its sizes, where they are known
    offsets  slot -> bytes from the beginning of the arena: arrays of known size that no step moves
    arena_bytes  of all of them; where two are never needed at once, they may share memory
    results  as the last step leaves them
    """

    steps: tuple[Step, ...]
    known: Mapping[int, Array] = field(repr=False)
    shapes: Mapping[int, tuple[int, ...]]
    offsets: Mapping[int, int]
    arena_bytes: int
    results: tuple[ArrayPlace, ...]


def bind(
    steps: Sequence[Step],
    parameters: Sequence[ArrayPlace],
    results: Sequence[ArrayPlace],
    sizes: Sequence[Sequence[int]],
    constants: Sequence[tuple[ArrayPlace, Array]],
    evaluate: Evaluate,
    alignment: int = ALIGNMENT,
) -> BoundSteps:
    """The steps at these sizes.

    sizes      of the arguments, which fit the parameters
    constants  arrays that no step changes, and their elements
    evaluate   computes an op of the host, in NumPy
    alignment  of arrays in the arena
    raises     DataError where the program refuses the sizes
    """
    binder = _Binder(evaluate, constants)
    for place, shape in zip(parameters, sizes, strict=True):
        binder.shapes[place.slot] = tuple(shape)
        binder.numbers |= {
            extent.index: size
            for extent, size in zip(place.shape, shape, strict=True)
            if isinstance(extent, NumberSlot)
        }
    binder.all(steps)
    found = [binder.place(place) for place in results]
    left = _needed(
        binder.out, {extent.index for place in found for extent in place.shape if isinstance(extent, NumberSlot)}
    )
    offsets, arena_bytes = _arena(left, {place.slot for place in results}, binder.shapes, alignment)
    return BoundSteps(left, binder.used, binder.shapes, offsets, arena_bytes, tuple(found))


class _Binder:
    """Binds steps in order.

    numbers  those that are known
    host     slot -> elements of an array of the host that are known so far
    written  slots among them with elements that were set
    shapes   slot -> sizes
    used     arrays of `host` that steps of `out` read
    out      the steps that are left
    depth    how many loops and branches that data decide are around the step
    variables  numbers that these loops and branches assign, which outlast them
    """

    def __init__(self, evaluate: Evaluate, constants: Sequence[tuple[ArrayPlace, Array]]) -> None:
        self.evaluate = evaluate
        self.numbers = dict[int, int]()
        self.host = {place.slot: array for place, array in constants if not place.on_device}
        self.written = set(self.host)
        self.shapes = {place.slot: array.shape for place, array in constants}
        self.used = dict[int, Array]()
        self.out = list[Step]()
        self.depth = 0
        self.variables = frozenset[int]()

    def all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.step(step)

    def extent(self, extent: Extent) -> Extent:
        return self.numbers.get(extent.index, extent) if isinstance(extent, NumberSlot) else extent

    def place(self, place: ArrayPlace) -> ArrayPlace:
        return replace(place, shape=tuple(map(self.extent, place.shape)))

    def read(self, place: ArrayPlace) -> ArrayPlace:
        """A place that a step of the run reads."""
        if place.slot in self.host and not place.on_device:
            self.used[place.slot] = self.host[place.slot]
        return self.place(place)

    def materialize(self, place: ArrayPlace) -> None:
        """Gives an array of the host memory in the run, as something of the run writes it."""
        array = self.host.pop(place.slot, None)
        if array is None:
            return
        if place.slot in self.used:
            raise InternalError(f"a{place.slot} is written after it was read", stage=STAGE)
        held = replace(place, shape=array.shape)
        self.out.append(Fill(held, array.tobytes()) if place.slot in self.written else Allocate(held))

    def step(self, step: Step) -> None:
        match step:
            case Compute():
                self._compute(step)
            case Dimension():
                axis, shape = self.extent(step.axis), self.shapes.get(step.slot)
                if isinstance(axis, int) and shape is not None:
                    self.numbers[step.result.index] = shape[axis]
                else:
                    self.out.append(replace(step, axis=axis))
            case Load():
                self._load(step)
            case Store():
                self._store(step)
            case Allocate():
                self._allocate(step)
            case Fill():
                self.out.append(step)
            case View():
                self._view(step)
            case Release():
                if self.host.pop(step.slot, None) is None:
                    self.out.append(step)
            case Copy():
                self.out.append(Copy(self.read(step.source), self.place(step.target)))
            case Move():
                self._move(step)
            case Call():
                self._call(step)
            case Launch():
                self._launch(step)
            case Loop():
                self._loop(step)
            case Branch():
                self._branch(step)

    # ------------------------------------------------------------------------------------------------------ the host

    def _compute(self, step: Compute) -> None:
        operands = tuple(map(self.extent, step.operands))
        known = [operand for operand in operands if isinstance(operand, int)]
        if len(known) == len(operands) and step.result.index not in self.variables:
            try:
                self.numbers[step.result.index] = FUNCTIONS[step.function](*known)
                return
            except ZeroDivisionError:
                if not self.depth:
                    raise DataError(f"{step.function} by zero, of {known[0]}", stage=STAGE) from None
        self.out.append(replace(step, operands=operands))

    def _load(self, step: Load) -> None:
        index = tuple(map(self.extent, step.index))
        known = tuple(number for number in index if isinstance(number, int))
        if step.array.slot in self.host and len(known) == len(index):
            self.numbers[step.result.index] = int(self.host[step.array.slot][known])
        else:
            self.out.append(replace(step, array=self.read(step.array), index=index))

    def _store(self, step: Store) -> None:
        index, value = tuple(map(self.extent, step.index)), self.extent(step.value)
        known = tuple(number for number in index if isinstance(number, int))
        if step.array.slot in self.host and len(known) == len(index) and isinstance(value, int):
            self._write(step.array.slot)
            self.host[step.array.slot][known] = value
        else:
            self.materialize(step.array)
            self.out.append(Store(self.place(step.array), index, value))

    def _write(self, slot: int) -> None:
        if slot in self.used:
            raise InternalError(f"a{slot} is written after it was read", stage=STAGE)
        self.written.add(slot)

    def _call(self, step: Call) -> None:
        places = (*step.reads, *step.writes)
        if not step.outward and all(place.slot in self.host for place in places):
            arrays = [self._as(place) for place in places]
            try:
                self.evaluate(step.op, arrays)
                for place in step.writes:
                    self._write(place.slot)
                return
            except XlaEmittersError:
                if not self.depth:
                    raise
        reads = tuple(map(self.read, step.reads))
        for place in step.writes:
            if not place.on_device:
                self.materialize(place)
        self.out.append(replace(step, reads=reads, writes=tuple(map(self.place, step.writes))))

    def _as(self, place: ArrayPlace) -> Array:
        """The known array of a place, in the place's shape."""
        array, shape = self.host[place.slot], self.place(place).shape
        known = tuple(size for size in shape if isinstance(size, int))
        return array if len(known) != len(shape) or array.shape == known else array.reshape(known)

    # ---------------------------------------------------------------------------------------------------------- memory

    def _allocate(self, step: Allocate) -> None:
        place = self.place(step.array)
        shape = tuple(size for size in place.shape if isinstance(size, int))
        if len(shape) != len(place.shape):
            self.shapes.pop(place.slot, None)
            self.out.append(Allocate(place))
            return
        if min(shape, default=0) < 0:
            if not self.depth:
                raise DataError(f"a size of {list(shape)} is negative", stage=STAGE)
            self.shapes.pop(place.slot, None)
            self.out.append(Allocate(place))
            return
        self.shapes[place.slot] = shape
        if place.on_device:
            self.out.append(Allocate(place))
        else:
            held = numpy_type(place.dtype)
            refuse_beyond_limit(shape, held.itemsize, place.dtype, "an array of the host")
            self.host[place.slot] = np.zeros(shape, held)
            self.written.discard(place.slot)

    def _view(self, step: View) -> None:
        source, target = self.place(step.source), self.place(step.target)
        shape = tuple(size for size in target.shape if isinstance(size, int))
        held = self.shapes.get(source.slot)
        if held is None or len(shape) != len(target.shape):
            self.shapes.pop(target.slot, None)
        elif prod(shape) != prod(held) or min(shape, default=0) < 0:
            if not self.depth:
                raise no_reshape(held, shape)
            self.shapes.pop(target.slot, None)
        else:
            self.shapes[target.slot] = shape
            if source.slot in self.host and not source.on_device:
                self.host[target.slot] = self.host[source.slot].reshape(shape)
                self.written.add(target.slot)
                return
        self.out.append(View(self.read(step.source), target))

    def _move(self, step: Move) -> None:
        shapes = [self.shapes.get(source) for source, _ in step.pairs]
        for source, _ in step.pairs:
            if (array := self.host.get(source)) is not None:
                # The new owner may change it: each run has its own copy.
                self.used.pop(source, None)
                self.materialize(ArrayPlace(source, element_name(array.dtype), array.shape, on_device=False))
        self.out.append(step)
        for (_, target), shape in zip(step.pairs, shapes, strict=True):
            self.host.pop(target, None)
            self.shapes.pop(target, None)
            if shape is not None:
                self.shapes[target] = shape

    # ----------------------------------------------------------------------------------------------------- what runs

    def _launch(self, step: Launch) -> None:
        x, y, z = map(self.extent, step.grid)
        if 0 in (x, y, z):
            return
        arguments = tuple(
            self.read(value) if isinstance(value, ArrayPlace) else self.extent(value) for value in step.arguments
        )
        block, shared = tuple(map(self.extent, step.block)), self.extent(step.shared_bytes)
        self.out.append(Launch(step.kernel, (x, y, z), (block[0], block[1], block[2]), shared, arguments))

    def _inside(
        self, steps: Sequence[Step], variables: Sequence[int], forgotten: Sequence[int] = ()
    ) -> tuple[tuple[Step, ...], _Binder]:
        """Steps that may run any number of times, and what is known after one run. `forgotten` slots have unknown sizes."""
        inner = _Binder(self.evaluate, ())
        inner.numbers, inner.host, inner.shapes = dict(self.numbers), dict(self.host), dict(self.shapes)
        inner.written, inner.used, inner.depth = set(self.written), self.used, self.depth + 1
        inner.variables = self.variables.union(variables)
        for slot in forgotten:
            inner.shapes.pop(slot, None)
        inner.all(steps)
        return tuple(inner.out), inner

    def _prepare(self, steps: Sequence[Step]) -> None:
        """Gives memory in the run to arrays of the host that are from outside of these steps and written inside."""
        for step in steps_within(steps):
            places = (step.array,) if isinstance(step, Store) else step.writes if isinstance(step, Call) else ()
            for place in places:
                if not place.on_device and place.slot in self.host and place.slot in self.shapes:
                    if not any(isinstance(s, Allocate) and s.array.slot == place.slot for s in steps_within(steps)):
                        self.materialize(place)

    def _loop(self, loop: Loop) -> None:
        self._prepare((*loop.condition, *loop.body))
        starts = dict[int, int]()
        for index in loop.assigned:
            if (value := self.numbers.pop(index, None)) is not None:
                starts[index] = value
                self.out.append(Compute(NumberSlot(index), "copy", (value,)))
        forgotten = [slot for slot in loop.carried if slot not in self.shapes]
        before = {slot: self.shapes.get(slot) for slot in loop.carried}
        used = dict(self.used)
        while True:
            condition, deciding = self._inside(loop.condition, loop.assigned, forgotten)
            body, after = self._inside(loop.body, loop.assigned, forgotten)
            changed = [
                slot for slot in loop.carried if slot not in forgotten and after.shapes.get(slot) != before[slot]
            ]
            if not changed:
                break
            forgotten += changed
            # The steps are bound again: nothing has read the arrays of this try.
            self.used.clear()
            self.used.update(used)
        for slot in forgotten:
            self.shapes.pop(slot, None)
        self.shapes |= {
            slot: shape for slot, shape in (*deciding.shapes.items(), *after.shapes.items()) if slot not in self.shapes
        }
        for slot in forgotten:
            self.shapes.pop(slot, None)
        bound = replace(loop, condition=condition, holds=deciding.extent(loop.holds), body=body)
        if (trips := _trips(bound, starts)) is not None:
            bound = replace(bound, condition=(), holds=1, trips=trips)
        self.out.append(bound)

    def _branch(self, branch: Branch) -> None:
        selector = self.extent(branch.selector)
        if isinstance(selector, int):
            last = len(branch.branches) - 1
            self.all(branch.branches[selector if 0 <= selector <= last else last])
            return
        for steps in branch.branches:
            self._prepare(steps)
        bound = [self._inside(steps, branch.chosen) for steps in branch.branches]
        for _, inner in bound:
            self.shapes |= {slot: shape for slot, shape in inner.shapes.items() if slot not in self.shapes}
        for slot in branch.results:
            found = {inner.shapes.get(slot) for _, inner in bound}
            shape = found.pop() if len(found) == 1 else None
            self.shapes.pop(slot, None)
            if shape is not None:
                self.shapes[slot] = shape
        self.out.append(replace(branch, selector=selector, branches=tuple(steps for steps, _ in bound)))


def no_reshape(held: Sequence[int], wanted: Sequence[int]) -> DataError:
    """For an array that has another number of elements than the shape in which it is wanted."""
    return DataError(f"no reshape of {list(held)} to {list(wanted)}: the elements differ", stage=STAGE)


# ---- numbers that nothing needs -------------------------------------------------------------------------------------------------------


def _needed(steps: Sequence[Step], read: set[int]) -> tuple[Step, ...]:
    """The steps without the numbers that no step reads. `read`: numbers that are read after the steps"""
    computing = dict[int, list[Step]]()
    wanted = list(read)
    for step in steps_within(steps):
        if isinstance(step, Compute | Dimension | Load):
            computing.setdefault(step.result.index, []).append(step)
        else:
            wanted += _numbers_in(step)
    found = set[int]()
    while wanted:
        if (index := wanted.pop()) not in found:
            found.add(index)
            for step in computing.get(index, ()):
                wanted += _numbers_in(step)

    def each(step: Step) -> Iterator[Step]:
        match step:
            case Compute() | Dimension() | Load() if step.result.index not in found:
                return
            case Loop():
                yield replace(step, assigned=tuple(index for index in step.assigned if index in found))
            case _:
                yield step

    return rewritten(steps, each)


def _trips(loop: Loop, starts: Mapping[int, int]) -> int | None:
    """How often a bound loop runs that counts in a number of the host up to one that is known; None for other loops.

    starts  the numbers' values before it
    """
    match loop.condition:
        case (Compute(result, "lt", (NumberSlot(counter), int() as limit)),) if result == loop.holds:
            pass
        case _:
            return None
    made: list[Compute] = [step for step in loop.body if isinstance(step, Compute)]
    last = next((number for number, step in enumerate(made) if step.result.index == counter), 0)
    written = [step.result.index for step in steps_within(loop.body) if isinstance(step, Compute | Load | Dimension)]
    if not made or counter not in starts or written.count(counter) != 1 or made[last].function != "copy":
        return None
    (source,) = made[last].operands
    for step in made[:last]:
        match step:
            case Compute(result, "add.s32" | "add.s64" as function, (NumberSlot(before), int() as increment)):
                if result == source and before == counter and written.count(result.index) == 1:
                    largest = -INTEGERS[function.removeprefix("add.")][1] - 1
                    is_reached = increment > 0 and limit + increment <= largest
                    return max(0, -(-(limit - starts[counter]) // increment)) if is_reached else None
            case _:
                pass
    return None


def _numbers_in(step: Step) -> list[int]:
    """The numbers that a step reads, without those of the steps inside it."""
    found = list[int]()
    for part in parts_of(step):
        extents = part.shape if isinstance(part, ArrayPlace) else (part,)
        found += [extent.index for extent in extents if isinstance(extent, NumberSlot)]
    return found


# ---- the arena ------------------------------------------------------------------------------------------------------------------------


def _arena(
    steps: Sequence[Step], results: set[int], shapes: Mapping[int, tuple[int, ...]], alignment: int
) -> tuple[dict[int, int], int]:
    """Places in one piece of memory for the arrays of known size that no step moves and no result is.

    An array has memory from the step that allocates it to the last one that names it; the steps are counted in program order, those of
    a loop once. raises nothing: an array that is not placed is allocated by its step
    """
    names = dict[int, int]()  # slot -> the slot that was allocated
    moved, first, last = set(results), dict[int, int](), dict[int, int]()
    sizes, released = dict[int, int](), set[int]()
    count = 0
    for count, step in enumerate(steps_within(steps)):
        match step:
            case Allocate(array):
                if array.slot in shapes and all(isinstance(size, int) for size in array.shape):
                    if array.slot in first:
                        moved.add(array.slot)  # allocated in several branches
                    names[array.slot], first[array.slot] = array.slot, count
                    sizes[array.slot] = prod(shapes[array.slot]) * numpy_type(array.dtype).itemsize
                else:
                    moved.add(array.slot)
            case View(source, target):
                if source.slot in names and target.slot in shapes:
                    names[target.slot] = names[source.slot]
                else:
                    moved |= {source.slot, target.slot}
            case Move(pairs):
                moved |= {slot for pair in pairs for slot in pair}
            case _:
                pass
        for slot in _named_by(step):
            last[names.get(slot, slot)] = count
        if isinstance(step, Release):
            released.add(step.slot)
    fixed = {names[slot] for slot in moved if slot in names}
    groups = dict[int, list[int]]()
    for slot, owner in names.items():
        groups.setdefault(owner, []).append(slot)
    offsets, live, size = dict[int, int](), list[tuple[int, int, int]](), 0  # live: offset, end, last step
    for owner in sorted(first, key=first.__getitem__):
        if owner in fixed:
            continue
        end = last[owner] if all(slot in released for slot in groups[owner]) else count + 1
        live = [entry for entry in live if entry[2] > first[owner]]
        wanted = -(-max(sizes[owner], 1) // alignment) * alignment
        offset = 0
        for start, stop, _ in live:
            if offset + wanted <= start:
                break
            offset = max(offset, stop)
        live.append((offset, offset + wanted, end))
        live.sort()
        size = max(size, offset + wanted)
        offsets |= dict.fromkeys(groups[owner], offset)
    return offsets, size


def _named_by(step: Step) -> Sequence[int]:
    """The slots that a step names, without those of the steps inside it."""
    if isinstance(step, Release | Dimension):
        return (step.slot,)
    return [part.slot for part in parts_of(step) if isinstance(part, ArrayPlace)]
