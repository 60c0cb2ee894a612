"""Programs as plain data and back, so that a kernel that is compiled here can be launched where there is neither xDSL nor LLVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from xla_emitters.program.arrays import Argument, ArraySpec, Extents, Launch
from xla_emitters.program.callees import Kernel, LibraryCall


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """Plain data, without the PTX, which all kernels of a program share."""
    return {
        "name": kernel.name,
        "grid": list(kernel.launch.grid),
        "block": list(kernel.launch.block),
        "shared_bytes": kernel.shared_bytes,
        "architecture": kernel.architecture,
        "arguments": [asdict(argument) for argument in kernel.arguments],
    }


def kernel_from_json(data: Mapping[str, Any], ptx: str) -> Kernel:
    """The inverse of `kernel_json`, with the PTX that is stored beside it."""
    return Kernel(
        name=data["name"],
        ptx=ptx,
        architecture=data["architecture"],
        launch=Launch(_triple(data["grid"]), _triple(data["block"])),
        shared_bytes=data["shared_bytes"],
        arguments=tuple(_argument(argument) for argument in data["arguments"]),
    )


def call_json(call: LibraryCall) -> dict[str, Any]:
    """Plain data."""
    source = {"source": list(map(dict, call.source))} if call.source else {}
    arrays = {"operands": list(map(asdict, call.operands)), "results": list(map(asdict, call.results))}
    return {"name": call.name, "instruction": call.instruction, **arrays, "config": dict(call.config), **source}


def call_from_json(data: Mapping[str, Any]) -> LibraryCall:
    """The inverse of `call_json`."""
    operands, results = (tuple(map(array_from_json, data[name])) for name in ("operands", "results"))
    source = tuple(data.get("source", ()))
    return LibraryCall(data["name"], data["instruction"], operands, results, dict(data["config"]), source)


def array_from_json(data: Mapping[str, Any]) -> ArraySpec:
    """The `ArraySpec` from plain data of its `asdict`."""
    return ArraySpec(data["dtype"], tuple(data["shape"]), tuple(data["minor_to_major"]))


def _argument(data: Mapping[str, Any]) -> Argument:
    fields = dict(data)
    array = array_from_json(fields.pop("array"))
    return Argument(array=array, **fields)


def _triple(values: list[int]) -> Extents:
    x, y, z = values
    return x, y, z
