"""Steps as plain data and back: a step is its class's name and fields.

{"step": "Launch", "kernel": "main_kLoop_add_0", "grid": [{"number": 3}, 1, 1], ...,
 "arguments": [{"slot": 0, "dtype": "f32", "shape": [{"number": 0}], "on_device": true}, ...]}
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_args

from xla_emitters.program.steps import Number, Place, Recurrence, Step

STEPS: Mapping[str, type[Any]] = {step.__name__: step for step in (*get_args(Step), Recurrence)}


def value_json(value: Any) -> Any:
    """Plain data of a step, a place, a number, or a tuple of those."""
    match value:
        case None | bool() | int() | str():
            return value
        case bytes():
            return {"base64": b64encode(value).decode()}
        case tuple():
            return [value_json(part) for part in cast("tuple[Any, ...]", value)]
        case Number():
            return {"number": value.index}
        case _:
            held = {part.name: value_json(getattr(value, part.name)) for part in fields(value)}
            return held if isinstance(value, Place) else {"step": type(value).__name__, **held}


def value_from_json(data: Any) -> Any:
    """The inverse of `value_json`. raises LookupError, TypeError or ValueError for data of another form"""
    if isinstance(data, list):
        return tuple(value_from_json(part) for part in cast("list[Any]", data))
    if not isinstance(data, dict):
        return data
    held = cast("dict[str, Any]", data)
    if "base64" in held:
        return b64decode(held["base64"])
    if "number" in held:
        return Number(held["number"])
    made = {name: value_from_json(part) for name, part in held.items() if name != "step"}
    if "step" not in held:
        return Place(**made)
    if held["step"] not in STEPS:
        raise ValueError(f"no step is called {held['step']!r}")
    return STEPS[held["step"]](**made)
