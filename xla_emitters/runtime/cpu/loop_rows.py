"""A loop's steps as rows of `lowering/cpu/loop_interpreter`, where they only call machine code on memory of known size.

    Loop while n1:                      0  LOAD.u8 q, 0 -> n1
      n1 = Load q                       1  UNLESS n1, 7
      Branch n2: [Launch k: a, b] []    2  TURN trips, wake
      n0 = add n0, 1                    3  eq n2, 0 -> t ...
      Move b -> a                          POINT a, word; POINT b, word; CALL k ...

Slots and numbers of the host are numbered anew: the slots that the loop changes come first. Words of a launch that are the same in all
iterations are set before the loop runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.lowering.cpu.loop_interpreter import OPS, ROW, TESTS
from xla_emitters.program.steps import (
    DIVISIONS,
    INTEGERS,
    Allocate,
    ArrayPlace,
    Branch,
    Call,
    Compute,
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
    steps_within,
)
from xla_emitters.runtime.cpu.code_chain import Chain, Places, PlacesOf, Words
from xla_emitters.runtime.walk import Frame

WORD = ctypes.sizeof(ctypes.c_int64)
LARGEST = (1 << 63) - 1
"""The largest number of a row."""


WriteConstant: TypeAlias = Callable[[Frame, ArrayPlace, Array], Chain]
"""(frame, place, elements): a call that writes them to the place's memory."""


class Refused(Exception):
    """A step has no rows."""


class Pool(NamedTuple):
    """Memory for one place of the loop: its table has how many arrays there are, and their addresses."""

    place: ArrayPlace
    shape: tuple[int, ...]
    bytes: int
    table: Words


class Turns(NamedTuple):
    """A loop inside the rows.

    trips  number: how many iterations have begun
    wake   number: before the iteration with this number Python is asked
    first  number: `wake` where the loop begins
    """

    step: Loop
    trips: int
    wake: int
    first: int


@dataclass
class LoopRows:
    """The rows of a loop, and what they refer to.

    slots    slot -> its number; the first `changed` of them are those that the loop changes; negative: no slot of the program
    numbers  number of the host -> its number; there are `count` in all, those of `constants` with these values
    assigned numbers of the host that the loop assigns
    given    words that hold the memory of slots that the loop does not change, and told, those of numbers that it does not assign
    turns    row -> the loop that is asked there
    takes    row -> the memory that is taken there
    divisions  row -> the step that stops there where it divides by zero
    """

    slots: dict[int, int] = field(default_factory=dict[int, int])
    changed: int = 0
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    count: int = 0
    assigned: set[int] = field(default_factory=set[int])
    constants: dict[int, int] = field(default_factory=dict[int, int])
    rows: list[list[int]] = field(default_factory=list[list[int]])
    given: PlacesOf = field(default_factory=PlacesOf)
    told: PlacesOf = field(default_factory=PlacesOf)
    turns: dict[int, Turns] = field(default_factory=dict[int, Turns])
    takes: dict[int, Pool] = field(default_factory=dict[int, Pool])
    divisions: dict[int, Compute] = field(default_factory=dict[int, Compute])


class _Assembler:
    """See the file's head.

    write  makes a call that writes a constant
    """

    def __init__(self, frame: Frame, step: Loop, write: WriteConstant) -> None:
        self._frame, self._write = frame, write
        self.made, self._count, self._known = LoopRows(), 0, dict[int, int]()
        for slot in _changed(frame, [step]):
            self._slot(slot)
        self.made.changed = len(self.made.slots)
        self._large = _large_numbers(frame.bound.steps)
        every = [*steps_within([step])]
        self.made.assigned = {inner.result.index for inner in every if isinstance(inner, Compute | Load)}
        for inner in every:
            indices = [part.index for part in parts_of(inner) if isinstance(part, NumberSlot)]
            for index in [*indices, *([inner.result.index] if isinstance(inner, Compute | Load) else [])]:
                self.made.numbers.setdefault(index, len(self.made.numbers))
        self._count = len(self.made.numbers)
        self._loop(step)
        self._emit("END")
        self.made.count = self._count

    # ---------------------------------------------------------------------------------------------------- numbers and slots

    def _slot(self, slot: int) -> int:
        return self.made.slots.setdefault(slot, len(self.made.slots))

    def _constant(self, value: int) -> int:
        if value not in self._known:
            self._known[value] = self._new()
            self.made.constants[self._known[value]] = value
        return self._known[value]

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def _number(self, extent: Extent) -> int:
        return self._constant(extent) if isinstance(extent, int) else self.made.numbers[extent.index]

    def _emit(self, op: str, a: int = 0, b: int = 0, c: int = 0, result: int = 0) -> int:
        """Returns the number of the row."""
        self.made.rows.append([OPS[op], a, b, c, result])
        return len(self.made.rows) - 1

    def _lands_here(self, row: int) -> None:
        self.made.rows[row][ROW - 1] = len(self.made.rows)

    # ---------------------------------------------------------------------------------------------------------------- steps

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        frame = self._frame
        match step:
            case Compute():
                self._compute(step)
            case Load(result, array, index):
                kind = "u8" if array.dtype == "pred" else array.dtype
                if f"LOAD.{kind}" not in OPS:
                    raise Refused
                where = self._offset(array, index)
                self._emit(f"LOAD.{kind}", self._slot(array.slot), where, 0, self._number(result))
            case Store(array, index, value):
                bits = 8 * numpy_type(array.dtype).itemsize
                if array.dtype not in INTEGERS and array.dtype != "pred":
                    raise Refused
                where = self._offset(array, index)
                self._emit(f"STORE.{bits}", self._slot(array.slot), where, 0, self._number(value))
            case Allocate(place):
                if place.slot in frame.bound.offsets:
                    self._give_once(step, place.slot)
                else:
                    self._take(place)
            case Fill(place, data):
                self._take(place)
                self._calls(self._write(frame, place, np.frombuffer(data, numpy_type(place.dtype))))
            case View(source, target):
                if target.slot not in frame.bound.shapes:
                    raise Refused
                if self._is_changed(target.slot):
                    self._emit("HOLD", self._slot(source.slot), 0, 0, self._slot(target.slot))
                else:
                    self._give_once(step, target.slot)
            case Release(slot):
                if self._is_changed(slot):
                    self._emit("DROP", result=self._slot(slot))
            case Move(pairs):
                self._move(pairs)
            case Launch() | Call():
                run = self._frame.prepare(step)
                if not isinstance(run, Chain):
                    raise Refused
                self._calls(run)
            case Loop():
                self._loop(step)
            case Branch():
                self._branch(step)
            case _:
                raise Refused

    def _is_changed(self, slot: int) -> bool:
        return self.made.slots.get(slot, self.made.changed) < self.made.changed

    def _give_once(self, step: Step, slot: int) -> None:
        """Gives a slot the memory that it has in all calls: words hold its address from then on."""
        if self._frame.arrays[slot] is None:
            self._frame.prepare(step)

    def _compute(self, step: Compute) -> None:
        function, _, kind = step.function.partition(".")
        if kind == "u64" or (not kind and _is_large(step.operands, self._large)):
            raise Refused  # more than what 64 bits with a sign hold
        a, b, c = [*map(self._number, step.operands), 0, 0][:3]
        row = self._emit(function, a, b, c, self._number(step.result))
        if function in DIVISIONS:
            self.made.divisions[row] = step
        if f"wrap.{kind}" in OPS:
            result = self._number(step.result)
            self._emit(f"wrap.{kind}", result, 0, 0, result)

    def _offset(self, array: ArrayPlace, index: Sequence[Extent]) -> int:
        """The number of the bytes before an element."""
        shape, found = self._frame.bound.shapes.get(array.slot), self._constant(0)
        if shape is None:
            raise Refused
        for axis, place in enumerate(index):
            stride = prod(shape[axis + 1 :]) * numpy_type(array.dtype).itemsize
            part, total = self._new(), self._new()
            self._emit("multiply", self._number(place), self._constant(stride), 0, part)
            self._emit("add", found, part, 0, total)
            found = total
        return found

    def _take(self, place: ArrayPlace) -> None:
        shape = self._frame.bound.shapes.get(place.slot)
        if shape is None or any(isinstance(extent, NumberSlot) for extent in place.shape):
            raise Refused
        # One more than slots can hold: there is always one that none has.
        table = (ctypes.c_int64 * (self.made.changed + 2))()
        row = self._emit("TAKE", ctypes.addressof(table), self.made.changed, 0, self._slot(place.slot))
        self.made.takes[row] = Pool(place, shape, prod(shape) * numpy_type(place.dtype).itemsize, table)

    def _move(self, pairs: Sequence[tuple[int, int]]) -> None:
        sources, targets = zip(*pairs, strict=True)
        held = {source: self._slot(source) for source in sources}
        if len(pairs) > 1:
            for source in sources:
                if source in targets:
                    # No slot of the program: it holds memory only while others change places.
                    held[source] = self._slot(-1 - source)
                    self._emit("HOLD", self._slot(source), 0, 0, held[source])
        for source, target in pairs:
            self._emit("HOLD", held[source], 0, 0, self._slot(target))
        for source in sources:
            if source not in targets:
                self._emit("DROP", result=self._slot(source))

    def _calls(self, run: Chain) -> None:
        """Calls of machine code, with what they read."""
        for slot, places in run.changing.slots.items():
            if self._is_changed(slot):
                self._each("POINT", self._slot(slot), places)
            else:
                self._slot(slot)
                self.made.given.setdefault(slot, []).extend(places)
        for index, places in run.changing.numbers.items():
            if index in self.made.assigned:
                self._each("TELL", self.made.numbers[index], places)
            else:
                self.made.told.setdefault(index, []).extend(places)
        for row in run.rows:
            self._emit("CALL", *row)

    def _each(self, op: str, what: int, places: Places) -> None:
        for words, place in places:
            self._emit(op, what, ctypes.addressof(words) + place * WORD)

    def _loop(self, step: Loop) -> None:
        turns = Turns(step, self._new(), self._new(), self._new())
        self._emit("copy", self._constant(0), 0, 0, turns.trips)
        self._emit("copy", turns.first, 0, 0, turns.wake)
        begin = len(self.made.rows)
        if step.trips is not None and not step.condition:
            more = self._new()
            self._emit("lt", turns.trips, self._constant(step.trips), 0, more)
        else:
            self._steps(step.condition)
            more = self._number(step.holds)
        end = self._emit("UNLESS", more)
        self.made.turns[self._emit("TURN", turns.trips, turns.wake)] = turns
        self._steps(step.body)
        self._emit("JUMP", result=begin)
        self._lands_here(end)

    def _branch(self, step: Branch) -> None:
        ends = list[int]()
        for number, steps in enumerate(step.branches):
            is_last = number == len(step.branches) - 1
            other = -1
            if not is_last:
                same = self._new()
                self._emit("eq", self._number(step.selector), self._constant(number), 0, same)
                other = self._emit("UNLESS", same)
            self._steps(steps)
            if not is_last:
                ends.append(self._emit("JUMP"))
                self._lands_here(other)
        for end in ends:
            self._lands_here(end)


def _changed(frame: Frame, steps: Sequence[Step]) -> list[int]:
    """The slots that get other memory in steps and those inside them."""
    found = dict[int, None]()
    for step in steps_within(steps):
        match step:
            case Allocate(array) | Fill(array):
                if array.slot not in frame.bound.offsets:
                    found[array.slot] = None
            case Move(pairs):
                found |= dict.fromkeys(slot for pair in pairs for slot in pair)
            case _:
                pass
    views = [step for step in steps_within(steps) if isinstance(step, View)]
    for view in views:  # in program order: a view of a view follows it
        source, target = view.source.slot, view.target.slot
        if target not in frame.bound.offsets and (source in found or not frame.is_fixed(source)):
            found[target] = None
    for step in steps_within(steps):
        if isinstance(step, Release) and not frame.is_fixed(step.slot):
            found[step.slot] = None
    return list(found)


def _large_numbers(steps: Sequence[Step]) -> set[int]:
    """The numbers that may be more than what 64 bits with a sign hold: those of u64, and what is computed from them."""
    found = set[int]()

    def is_large(step: Compute | Load) -> bool:
        if isinstance(step, Load):
            return step.array.dtype == "u64"
        function, _, kind = step.function.partition(".")
        return kind == "u64" or (not kind and function not in TESTS and _is_large(step.operands, found))

    every, more = [step for step in steps_within(steps) if isinstance(step, Compute | Load)], True
    while more:  # a loop may compute one from a later step's
        new = {step.result.index for step in every if is_large(step)} - found
        found, more = found | new, bool(new)
    return found


def _is_large(operands: Sequence[Extent], large: set[int]) -> bool:
    """Whether one of them may be a large number."""
    return any(each > LARGEST if isinstance(each, int) else each.index in large for each in operands)


def rows_of(frame: Frame, step: Loop, write: WriteConstant) -> LoopRows | None:
    """The rows of a loop; None where a step has none. Parameters as for `_Assembler`."""
    try:
        return _Assembler(frame, step, write).made
    except Refused:
        return None
