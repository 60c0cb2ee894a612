"""A program as what runs, whatever its sizes: its steps, what they name, and the elements of constants. Bundles contain this file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, cast, overload

from xla_emitters.library.arguments import Array
from xla_emitters.program.bind import ALIGNMENT
from xla_emitters.program.step_values import ALIGN_ALLOCATED, Argument, Arrays
from xla_emitters.program.steps import (
    Allocate,
    ArrayPlace,
    Compute,
    Copy,
    Launch,
    Load,
    NumberSlot,
    Step,
    moved_memory,
    rewritten,
    steps_within,
)


class Constants(Sequence[tuple[ArrayPlace, Array]]):
    """Places and elements of constants; elements are read when they are first needed."""

    def __init__(self, readers: Sequence[tuple[ArrayPlace, Callable[[], Array]]]) -> None:
        self._readers = readers

    @cached_property
    def _read(self) -> list[tuple[ArrayPlace, Array]]:
        return [(place, read()) for place, read in self._readers]

    @overload
    def __getitem__(self, index: int) -> tuple[ArrayPlace, Array]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[ArrayPlace, Array]]: ...
    def __getitem__(self, index: int | slice) -> tuple[ArrayPlace, Array] | list[tuple[ArrayPlace, Array]]:
        return self._read[index]

    def __len__(self) -> int:
        return len(self._readers)


@dataclass(frozen=True)
class Executable:
    """A program's steps, and what they name.

    parameters  in the caller's order; unknown sizes are numbers
    results     read after the last step
    steps       in order
    slots       how many there are
    numbers     how many there are
    constants   arrays that no step changes, and their elements, which are read when they are first needed
    names       slot -> the name of its value in the IR
    ops         what each `Call` computes: ops of the IR, or rows of plain data
    donated     indices of the parameters whose memory belongs to the program
    alignment   in bytes, of temporaries: what kernels rely on
    """

    parameters: tuple[ArrayPlace, ...]
    results: tuple[ArrayPlace, ...]
    steps: tuple[Step, ...] = field(repr=False)
    slots: int
    numbers: int
    constants: Constants = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    ops: tuple[Any, ...] = field(repr=False)
    donated: frozenset[int]
    alignment: int = ALIGNMENT


NO_STEPS = Executable((), (), (), 0, 0, Constants(()), {}, (), frozenset())


def executable_of(
    arrays: Arrays,
    steps: Sequence[Step],
    calls: Sequence[Any],
    arguments: Mapping[str, Sequence[Argument]],
) -> Executable:
    """The steps of a program whose sizes are all known. Its results get memory before the first one, or that of a donated parameter.

    arguments  of a kernel, by its name
    """
    parameters = arrays.places("parameter", len(arrays.parameters))
    results = arrays.places("result", len(arrays.results))
    slots = len(arrays.parameters) + len(arrays.results) + len(arrays.temporaries)
    assigned = [step.result.index for step in steps_within(steps) if isinstance(step, Compute | Load)]
    moved = moved_memory(steps)
    return Executable(
        parameters,
        results,
        (*(Allocate(place) for place in results if place.slot not in moved), *_apart(steps, arguments)),
        slots,
        max(assigned, default=-1) + 1,
        Constants(()),
        {number: str(arrays.slot(number)) for number in range(slots)},
        tuple(calls),
        frozenset(moved.values()).intersection(place.slot for place in parameters),
        ALIGN_ALLOCATED,
    )


def _apart(steps: Sequence[Step], arguments: Mapping[str, Sequence[Argument]]) -> tuple[Step, ...]:
    """The steps; a kernel that updates a parameter of the program in place gets the result's memory for both, with a copy of the parameter.

    The caller's array stays as it is.
    """

    def each(step: Step) -> Iterator[Step]:
        match step:
            case Launch():
                places = [value for value in step.arguments if isinstance(value, ArrayPlace)]
                first = dict[int, ArrayPlace]()
                for number, argument in enumerate(arguments[step.kernel]):
                    source, target = first.setdefault(argument.slice_index, places[number]), places[number]
                    if source.slot != target.slot:
                        yield Copy(source, target)
                        places = [target if place.slot == source.slot else place for place in places]
                        first[argument.slice_index] = target
                yield replace(step, arguments=tuple(places))
            case _:
                yield step

    return rewritten(steps, each)


def executable_of_arrays(
    arrays: Arrays, steps: Sequence[Step], calls: Sequence[Any], constants: Constants, donated: Sequence[int] = ()
) -> Executable:
    """The steps of a program with unknown sizes, whose places are logical arrays: the unknown sizes of its parameters, in order, are the
    first numbers."""
    numbers = count()
    parameters = tuple(
        ArrayPlace(
            slot, spec.dtype, tuple(NumberSlot(next(numbers)) if size < 0 else size for size in spec.shape), True
        )
        for slot, spec in enumerate(arrays.parameters)
    )
    before = len(parameters)
    return Executable(
        parameters,
        tuple(ArrayPlace(before + number, spec.dtype, (), True) for number, spec in enumerate(arrays.results)),
        tuple(steps),
        before + len(arrays.results) + len(arrays.temporaries),
        max(map(_largest, steps), default=next(numbers)) + 1,
        constants,
        {},
        tuple(calls),
        frozenset(donated),
    )


def _largest(value: Any) -> int:
    """The largest index of a number in a step, or in a part of one; -1 if it has none."""
    if isinstance(value, NumberSlot):
        return value.index
    if isinstance(value, tuple):
        return max(map(_largest, cast("tuple[Any, ...]", value)), default=-1)
    if not is_dataclass(value):
        return -1
    own = [getattr(value, part.name) for part in fields(value)]
    listed = [index for name in ("assigned", "chosen") for index in getattr(value, name, ())]
    return max([*map(_largest, own), *listed], default=-1)
