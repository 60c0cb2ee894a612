"""Programs as plain data and back, so that a kernel that is compiled here can be launched where there is neither xDSL nor LLVM.

A step is its class's name and fields:

    {"step": "Launch", "kernel": "main_kLoop_add_0", "grid": [{"number": 3}, 1, 1], ...,
     "arguments": [{"slot": 0, "dtype": "f32", "shape": [{"number": 0}], "on_device": true}, ...]}
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, cast, get_args

from xla_emitters.program.callees import Kernel, LibraryCall, ScalarArgument
from xla_emitters.program.step_values import UNKNOWN, Argument, ArraySpec, Extents, LaunchDimensions
from xla_emitters.program.steps import ArrayPlace, NumberSlot, Recurrence, Step


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """Plain data, without the PTX, which all kernels of a program share."""
    return {
        "name": kernel.name,
        "grid": list(kernel.launch.blocks_of_axes),
        "block": list(kernel.launch.block),
        "shared_bytes": kernel.shared_bytes,
        "architecture": kernel.architecture,
        "arguments": list(map(_argument_json, kernel.arguments)),
        "scalars": list(map(asdict, kernel.scalars)),
    }


def kernel_from_json(data: Mapping[str, Any], ptx: str) -> Kernel:
    """The inverse of `kernel_json`, with the PTX that is stored beside it."""
    sizes = tuple(data["grid"])
    grid = _triple([size if isinstance(size, int) else UNKNOWN for size in sizes])
    return Kernel(
        name=data["name"],
        ptx=ptx,
        architecture=data["architecture"],
        launch=LaunchDimensions(grid, _triple(data["block"]), sizes if UNKNOWN in grid else ()),
        shared_bytes=data["shared_bytes"],
        arguments=tuple(map(_argument, data["arguments"])),
        scalars=tuple(ScalarArgument(**scalar) for scalar in data.get("scalars", ())),
    )


def call_json(call: LibraryCall) -> dict[str, Any]:
    """Plain data."""
    source = {"source": list(map(dict, call.source))} if call.source else {}
    arrays = {"operands": list(map(array_json, call.operands)), "results": list(map(array_json, call.results))}
    return {"name": call.name, "instruction": call.instruction, **arrays, "config": dict(call.config), **source}


def call_from_json(data: Mapping[str, Any]) -> LibraryCall:
    """The inverse of `call_json`."""
    operands, results = (tuple(map(array_from_json, data[name])) for name in ("operands", "results"))
    source = tuple(data.get("source", ()))
    return LibraryCall(data["name"], data["instruction"], operands, results, dict(data["config"]), source)


def array_json(spec: ArraySpec) -> dict[str, Any]:
    """Plain data."""
    return {"dtype": spec.dtype, "shape": list(spec.dims), "minor_to_major": list(spec.minor_to_major)}


def array_from_json(data: Mapping[str, Any]) -> ArraySpec:
    """The inverse of `array_json`."""
    sizes = tuple(data["shape"])
    shape = tuple(size if isinstance(size, int) else UNKNOWN for size in sizes)
    return ArraySpec(data["dtype"], shape, tuple(data["minor_to_major"]), sizes if UNKNOWN in shape else ())


def _argument_json(argument: Argument) -> dict[str, Any]:
    size = None if argument.bytes == UNKNOWN else argument.bytes
    return {**asdict(argument), "array": array_json(argument.array), "bytes": size}


def _argument(data: Mapping[str, Any]) -> Argument:
    size = UNKNOWN if data["bytes"] is None else data["bytes"]
    fields: dict[str, Any] = {**data, "array": array_from_json(data["array"]), "bytes": size}
    return Argument(**fields)


def _triple(values: list[int]) -> Extents:
    x, y, z = values
    return x, y, z


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
        case NumberSlot():
            return {"number": value.index}
        case _:
            held = {part.name: value_json(getattr(value, part.name)) for part in fields(value)}
            return held if isinstance(value, ArrayPlace) else {"step": type(value).__name__, **held}


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
        return NumberSlot(held["number"])
    made = {name: value_from_json(part) for name, part in held.items() if name != "step"}
    if "step" not in held:
        return ArrayPlace(**made)
    if held["step"] not in STEPS:
        raise ValueError(f"no step is called {held['step']!r}")
    return STEPS[held["step"]](**made)
