"""A program whose sizes are known only when it is called, as a value: its steps, and what they name; as plain data and back.

    {"step": "Launch", "kernel": "main_kLoop_add_0", "grid": [{"number": 3}, 1, 1], ...,
     "arguments": [{"slot": 0, "dtype": "f32", "shape": [{"number": 0}], "on_device": true}, ...]}

A step is its class's name and fields; what an op computes, and the elements of constants, are stored beside the steps. Only NumPy and
files like this one are imported: bundles contain it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, cast, get_args, overload

from xla_emitters.library.arguments import Array
from xla_emitters.program.sized import Number, Place, Step


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
class SizedSteps:
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

    def to_json(self) -> dict[str, Any]:
        """Plain data, without ops and constants."""
        return {
            **{name: _json(getattr(self, name)) for name in ("parameters", "results", "steps", "slots", "numbers")},
            "names": {str(slot): name for slot, name in self.names.items()},
            "donated": sorted(self.donated),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], constants: Constants, ops: Sequence[Any]) -> SizedSteps:
        """The inverse of `to_json`. raises LookupError, TypeError or ValueError for data of another form"""
        return cls(
            _value(data["parameters"]),
            _value(data["results"]),
            _value(data["steps"]),
            int(data["slots"]),
            int(data["numbers"]),
            constants,
            {int(slot): name for slot, name in data["names"].items()},
            tuple(ops),
            frozenset(data["donated"]),
        )


STEPS: Mapping[str, type[Any]] = {step.__name__: step for step in get_args(Step)}


def _json(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case bytes():
            return {"base64": b64encode(value).decode()}
        case tuple():
            return [_json(part) for part in cast("tuple[Any, ...]", value)]
        case Number():
            return {"number": value.index}
        case _:
            held = {part.name: _json(getattr(value, part.name)) for part in fields(value)}
            return held if isinstance(value, Place) else {"step": type(value).__name__, **held}


def _value(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_value(part) for part in cast("list[Any]", data))
    if not isinstance(data, dict):
        return data
    held = cast("dict[str, Any]", data)
    if "base64" in held:
        return b64decode(held["base64"])
    if "number" in held:
        return Number(held["number"])
    made = {name: _value(part) for name, part in held.items() if name != "step"}
    return STEPS[held["step"]](**made) if "step" in held else Place(**made)


def place_from_json(data: Mapping[str, Any]) -> Place:
    """A place from plain data as in `SizedSteps.to_json`."""
    return _value(dict(data))


def place_json(place: Place) -> dict[str, Any]:
    """Plain data of a place."""
    return _json(place)
