"""A program as what runs, whatever its sizes: its steps, and what they name; as plain data and back.

What an op computes, and the elements of constants, are stored beside the steps. Only NumPy and files like this one are imported: bundles
contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

from xla_emitters.library.arguments import Array
from xla_emitters.program.arrays import ALIGN_ALLOCATED, Arrays
from xla_emitters.program.bind import ALIGNMENT
from xla_emitters.program.steps import Allocate, Compute, Load, Place, Step, steps_within
from xla_emitters.program.steps_json import value_from_json, value_json


class Constants(Sequence[tuple[Place, Array]]):
    """Places and elements of constants; elements are read when they are first needed."""

    def __init__(self, readers: Sequence[tuple[Place, Callable[[], Array]]]) -> None:
        self._readers = readers

    @cached_property
    def _read(self) -> list[tuple[Place, Array]]:
        return [(place, read()) for place, read in self._readers]

    @overload
    def __getitem__(self, index: int) -> tuple[Place, Array]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Place, Array]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Place, Array] | list[tuple[Place, Array]]:
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

    parameters: tuple[Place, ...]
    results: tuple[Place, ...]
    steps: tuple[Step, ...] = field(repr=False)
    slots: int
    numbers: int
    constants: Constants = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    ops: tuple[Any, ...] = field(repr=False)
    donated: frozenset[int]
    alignment: int = ALIGNMENT

    def to_json(self) -> dict[str, Any]:
        """Plain data, without ops and constants."""
        return {
            **{
                name: value_json(getattr(self, name)) for name in ("parameters", "results", "steps", "slots", "numbers")
            },
            "names": {str(slot): name for slot, name in self.names.items()},
            "donated": sorted(self.donated),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Constants, ops: Sequence[Any]) -> Executable:
        """The inverse of `to_json`. raises LookupError, TypeError or ValueError for data of another form"""
        return cls(
            value_from_json(data["parameters"]),
            value_from_json(data["results"]),
            value_from_json(data["steps"]),
            int(data["slots"]),
            int(data["numbers"]),
            constants,
            {int(slot): name for slot, name in data["names"].items()},
            tuple(ops),
            frozenset(data["donated"]),
        )


def executable_of(arrays: Arrays, steps: Sequence[Step], calls: Sequence[Any]) -> Executable:
    """The steps of a program whose sizes are all known, with memory for its results before the first one."""
    parameters = arrays.places("parameter", len(arrays.parameters))
    results = arrays.places("result", len(arrays.results))
    slots = len(arrays.parameters) + len(arrays.results) + len(arrays.temporaries)
    assigned = [step.result.index for step in steps_within(steps) if isinstance(step, Compute | Load)]
    return Executable(
        parameters,
        results,
        (*map(Allocate, results), *steps),
        slots,
        max(assigned, default=-1) + 1,
        Constants(()),
        {number: str(arrays.slot(number)) for number in range(slots)},
        tuple(calls),
        frozenset(),
        ALIGN_ALLOCATED,
    )
