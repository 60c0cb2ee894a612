"""Programs as plain data and back, so that a kernel that is compiled here can be launched where there is neither xDSL nor LLVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xla_emitters.program.arrays import (
    Argument,
    ArraySpec,
    Extent,
    Extents,
    Launch,
    Scalar,
    SizedLaunch,
    Slot,
    SlotArray,
)
from xla_emitters.program.steps import (
    Allocation,
    Branch,
    Copy,
    Counter,
    Kernel,
    LibraryCall,
    Loop,
    Release,
    Step,
    on_slots,
)
from xla_emitters.shapes import parse_size


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """Plain data, without the PTX, which all kernels of a program share."""
    return {
        "name": kernel.name,
        "grid": list(map(_extent_json, kernel.launch.grid)),
        "block": list(kernel.launch.block),
        "shared_bytes": kernel.shared_bytes,
        "architecture": kernel.architecture,
        "arguments": [asdict(argument) for argument in kernel.arguments],
        "scalars": [{"dtype": scalar.dtype, "value": _extent_json(scalar.value)} for scalar in kernel.scalars],
    }


def kernel_from_json(data: Mapping[str, Any], ptx: str) -> Kernel:
    """The inverse of `kernel_json`, with the PTX that is stored beside it."""
    return Kernel(
        name=data["name"],
        ptx=ptx,
        architecture=data["architecture"],
        launch=_launch(data["grid"], _triple(data["block"])),
        shared_bytes=data["shared_bytes"],
        arguments=tuple(_argument(argument) for argument in data["arguments"]),
        scalars=tuple(Scalar(scalar["dtype"], _extent(scalar["value"])) for scalar in data["scalars"]),
    )


def step_json(step: Step, kernels: Sequence[Kernel]) -> dict[str, Any]:
    """A step as plain data; a kernel becomes its number in `kernels`."""
    match step:
        case Kernel():
            number = next(number for number, kernel in enumerate(kernels) if kernel.name == step.name)
            slots = [asdict(argument.slot) for argument in step.arguments]
            return {"step": "launch", "kernel": number, "slots": slots}
        case LibraryCall():
            arrays = {"operands": list(map(asdict, step.operands)), "results": list(map(asdict, step.results))}
            names = {"name": step.name, "instruction": step.instruction}
            source = {"source": list(map(dict, step.source))} if step.source else {}
            return {"step": "library call", **names, **arrays, "config": dict(step.config), **source}
        case Allocation():
            return {"step": "allocation", "slot": asdict(step.slot)}
        case Release():
            return {"step": "release", "slot": asdict(step.slot)}
        case Copy():
            return {"step": "copy", "source": asdict(step.source), "target": asdict(step.target)}
        case Loop():
            parts = {
                "condition": [step_json(inner, kernels) for inner in step.condition],
                "body": [step_json(inner, kernels) for inner in step.body],
            }
            counter = {"counter": asdict(step.counter)} if step.counter else {}
            decided = {"proceeds": asdict(step.proceeds), "trips": step.trips, **counter}
            return {"step": "loop", "name": step.name, **parts, **decided}
        case Branch():
            branches = [[step_json(inner, kernels) for inner in branch] for branch in step.branches]
            return {"step": "branch", "name": step.name, "selector": asdict(step.selector), "branches": branches}


def steps_from_json(steps: Sequence[Mapping[str, Any]], kernels: Sequence[Kernel]) -> tuple[Step, ...]:
    return tuple(_step_from_json(step, kernels) for step in steps)


def _step_from_json(data: Mapping[str, Any], kernels: Sequence[Kernel]) -> Step:
    match data["step"]:
        case "launch":
            return on_slots(kernels[int(data["kernel"])], [Slot(**slot) for slot in data["slots"]])
        case "library call":
            operands, results = (tuple(map(_slot_array, data[name])) for name in ("operands", "results"))
            source = tuple(data.get("source", ()))
            return LibraryCall(data["name"], data["instruction"], operands, results, dict(data["config"]), source)
        case "allocation":
            return Allocation(Slot(**data["slot"]))
        case "release":
            return Release(Slot(**data["slot"]))
        case "copy":
            return Copy(Slot(**data["source"]), Slot(**data["target"]))
        case "loop":
            condition, body = (steps_from_json(data[name], kernels) for name in ("condition", "body"))
            counter = _counter(data["counter"]) if "counter" in data else None
            return Loop(data["name"], condition, Slot(**data["proceeds"]), body, data["trips"], counter)
        case "branch":
            branches = tuple(steps_from_json(branch, kernels) for branch in data["branches"])
            return Branch(data["name"], Slot(**data["selector"]), branches)
        case other:
            raise ValueError(f"no step is called {other!r}")


def array_from_json(data: Mapping[str, Any]) -> ArraySpec:
    """The `ArraySpec` from plain data of its `asdict`."""
    return ArraySpec(data["dtype"], tuple(data["shape"]), tuple(data["minor_to_major"]))


def _counter(data: Mapping[str, Any]) -> Counter:
    bound = data["bound"]
    given = bound if isinstance(bound, int) else Slot(**bound)
    return Counter(Slot(**data["slot"]), given, data["step"], data["direction"], data["dtype"])


def _slot_array(data: Mapping[str, Any]) -> SlotArray:
    return SlotArray(Slot(**data["slot"]), array_from_json(data["array"]))


def _argument(data: Mapping[str, Any]) -> Argument:
    fields = dict(data)
    array = array_from_json(fields.pop("array"))
    return Argument(array=array, **fields)


def _extent_json(extent: Extent) -> int | str:
    return extent if isinstance(extent, int) else str(extent)


def _extent(value: int | str) -> Extent:
    return value if isinstance(value, int) else parse_size(value)


def _launch(grid: Sequence[int | str], block: Extents) -> Launch | SizedLaunch:
    x, y, z = map(_extent, grid)
    if isinstance(x, int) and isinstance(y, int) and isinstance(z, int):
        return Launch((x, y, z), block)
    return SizedLaunch((x, y, z), block)


def _triple(values: list[int]) -> Extents:
    x, y, z = values
    return x, y, z
