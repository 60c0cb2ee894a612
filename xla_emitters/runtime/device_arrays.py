"""Arrays for all devices of a program: drawn, or read from a file, which holds whole arrays or each device's own.

p0             a whole array, cut as the parameter's `sharding=` says; without one the same array for each device
p0@3           that of device 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from xdsl.dialects.builtin import StringAttr

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import StandardInput, load_named, random_array
from xla_emitters.runtime.inputs import allowed_starts
from xla_emitters.runtime.npz import opened
from xla_emitters.runtime.shards import Shards


def shards_of(entry: ComputationOp, specs: Sequence[ArraySpec], devices: int) -> list[Shards | None]:
    """For each parameter how it is cut; None where the text does not say."""
    found = list[Shards | None]()
    for parameter, spec in zip(sorted(entry.parameters, key=lambda op: op.number.value.data), specs, strict=True):
        said = parameter.attributes.get("sharding")
        is_said = isinstance(said, StringAttr)
        found.append(Shards.parse(said.data, len(spec.shape), devices) if is_said else None)
    return found


def draw_for_devices(
    entry: ComputationOp, specs: Sequence[ArraySpec], shards: Sequence[Shards | None], devices: int, seed: int
) -> list[list[Array]]:
    """For each device one array per parameter: parts of one array where it is cut, else an array of its own."""
    places = allowed_starts(entry)
    of_parameter = list[list[Array]]()
    for number, (spec, cut) in enumerate(zip(specs, shards, strict=True)):
        if cut is None:
            drawn = [random_array(spec, seed + (device << 16), number, places.get(number)) for device in range(devices)]
        else:
            whole = random_array(replace(spec, shape=cut.whole(spec.shape)), seed, number, places.get(number))
            drawn = [cut.cut(whole, device) for device in range(devices)]
        of_parameter.append(drawn)
    return [[drawn[device] for drawn in of_parameter] for device in range(devices)]


def load_for_devices(
    path: str | Path | StandardInput, specs: Sequence[ArraySpec], shards: Sequence[Shards | None], devices: int
) -> list[list[Array]]:
    """For each device one array per parameter. raises as `load_arrays`"""
    with opened(path) as archive:
        present = set(archive.members)
    of_parameter = list[list[Array]]()
    for number, (spec, cut) in enumerate(zip(specs, shards, strict=True)):
        own = [f"p{number}@{device}" for device in range(devices)]
        if given := [name for name in own if name in present]:
            if missing := [name for name in own if name not in present]:
                raise DataError(f"{path} has no '{missing[0]}', but it has '{given[0]}'", stage="arrays")
            of_parameter.append(load_named(path, own, [spec] * devices))
        elif cut is None:
            of_parameter.append(load_named(path, [f"p{number}"], [spec]) * devices)
        else:
            (whole,) = load_named(path, [f"p{number}"], [replace(spec, shape=cut.whole(spec.shape))])
            of_parameter.append([cut.cut(whole, device) for device in range(devices)])
    return [[drawn[device] for drawn in of_parameter] for device in range(devices)]
