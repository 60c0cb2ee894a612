"""Arrays for all devices of a program: drawn, read from a file, or parts of whole ones; and the results of all devices as whole arrays.

p0             a whole array, cut as the parameter's `sharding=` says; without one the same array for each device
p0@3           that of device 3
r0             a whole result, where the text says how devices have it: `sharding=` of ENTRY's ROOT; else r0@0, r0@1 ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.device_groups import groups_of
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError
from xla_emitters.program import ArraySpec, Program
from xla_emitters.runtime.arrays import StandardInput, checked, load_named, random_array
from xla_emitters.runtime.device_threads import run_on_devices
from xla_emitters.runtime.inputs import allowed_starts, exchanged_rows
from xla_emitters.runtime.npz import opened
from xla_emitters.runtime.shards import Shards


def shards_of(program: Program) -> list[Shards | None]:
    """How each parameter, then each result, is cut; None where the text does not say."""
    specs = (*program.parameters, *program.results)
    said = program.shardings or ("",) * len(specs)
    return [
        Shards.parse(text, len(spec.shape), program.devices) if text else None
        for text, spec in zip(said, specs, strict=True)
    ]


def whole_specs(program: Program) -> list[ArraySpec]:
    """The specs of whole parameters, then of whole results: where the text does not say how they are cut, those of one device."""
    specs = (*program.parameters, *program.results)
    return [
        spec if cut is None else replace(spec, shape=cut.whole(spec.shape))
        for spec, cut in zip(specs, shards_of(program), strict=True)
    ]


def draw_for_devices(
    program: Program, entry: ComputationOp, seed: int, ranks: Sequence[int] | None = None
) -> list[list[Array]]:
    """For each device one array per parameter: parts of one array where it is cut, else an array of its own.

    ranks  the devices, here and below; default: all
    """
    places, devices = allowed_starts(entry), _ranks(program, ranks)
    of_parameter = list[list[Array]]()
    for number, (spec, cut) in enumerate(zip(program.parameters, shards_of(program), strict=False)):
        if cut is None:
            drawn = [random_array(spec, seed + (device << 16), number, places.get(number)) for device in devices]
        else:
            whole = random_array(replace(spec, shape=cut.whole(spec.shape)), seed, number, places.get(number))
            drawn = [cut.cut(whole, device) for device in devices]
        of_parameter.append(drawn)
    given, seen = _by_device(of_parameter, len(devices)), set[int]()
    for op, (starts, sizes, places, expected) in exchanged_rows(entry):
        made = _exchange(op, seed)
        for numbers, arrays in zip((starts, sizes, places, expected), made, strict=True):
            for number in set(numbers) - seen:
                seen.add(number)
                for of_device, device in zip(given, devices, strict=True):
                    of_device[number] = arrays[device].astype(of_device[number].dtype)
    return given


def _exchange(op: RuleOp, seed: int) -> list[dict[int, Array]]:
    """For each device of a ragged-all-to-all: first rows, numbers of rows, places, expected numbers. Rows fit, none is written twice."""
    (updates,), (rows, *_), (room, *_) = (dims_of(op.operands[operand]) for operand in (2, 0, 1))
    random, found = np.random.default_rng(seed), [dict[int, Array]() for _ in range(4)]
    most, here, there = min(rows, room) // updates, rows // updates, room // updates
    for group in groups_of(op):
        each = updates // len(group)
        sizes: Array = random.integers(0, most + 1, (len(group), updates))
        for member, device in enumerate(group):
            spare = np.array([int(random.integers(0, here - int(size) + 1)) for size in sizes[member]])
            places = there * (member * each + np.arange(updates) % max(each, 1))
            expected = sizes.reshape(len(group), len(group), -1)[:, member].reshape(-1)
            parts = here * np.arange(updates) + spare, sizes[member], places, expected
            for arrays, part in zip(found, parts, strict=True):
                arrays[device] = part
    return found


def load_for_devices(
    path: str | Path | StandardInput, program: Program, ranks: Sequence[int] | None = None
) -> list[list[Array]]:
    """For each device one array per parameter. raises as `load_arrays`"""
    with opened(path) as archive:
        present = set(archive.members)
    devices, whole = _ranks(program, ranks), whole_specs(program)
    of_parameter = list[list[Array]]()
    for number, (spec, cut) in enumerate(zip(program.parameters, shards_of(program), strict=False)):
        own = [f"p{number}@{device}" for device in devices]
        if given := [name for name in own if name in present]:
            if missing := [name for name in own if name not in present]:
                raise DataError(f"{path} has no '{missing[0]}', but it has '{given[0]}'", stage="arrays")
            of_parameter.append(load_named(path, own, [spec] * len(devices)))
        else:
            of_parameter.append(_parts(load_named(path, [f"p{number}"], [whole[number]])[0], cut, devices))
    return _by_device(of_parameter, len(devices))


def cut_for_devices(program: Program, arrays: Sequence[Any]) -> list[list[Array]]:
    """For each device its arrays, of whole ones. raises DataError for arrays that do not fit"""
    shards, count = shards_of(program), len(program.parameters)
    if len(arrays) != count:
        raise DataError(f"{program.name} takes {count} arrays, {len(arrays)} were given", stage="run")
    of_parameter = list[list[Array]]()
    for number, (given, spec, cut) in enumerate(zip(arrays, whole_specs(program), shards, strict=False)):
        what = f"parameter {number}, for all {program.devices} devices,"
        array = checked(given, spec, what)
        of_parameter.append(_parts(array, cut, range(program.devices)))
    return _by_device(of_parameter, program.devices)


def run_on_whole_arrays(
    program: Program, arrays: Sequence[Any], run: Callable[[Sequence[Array]], Sequence[Array]]
) -> list[Any]:
    """The results of `together`, of `run` with the arrays of each device, on all devices. raises as `cut_for_devices`, `run_on_devices`"""
    given = cut_for_devices(program, arrays)
    return together(program, run_on_devices(range(program.devices), lambda device: run(given[device])))


def together(program: Program, results: Sequence[Sequence[Array]]) -> list[Array | list[Array]]:
    """Each result as a whole array; where the text does not say how devices have it, the list of what each has.

    results  for each device
    """
    shards = shards_of(program)[len(program.parameters) :]
    listed = ([list(of_device)[number] for of_device in results] for number in range(len(shards)))
    return [parts if cut is None else cut.together(parts) for parts, cut in zip(listed, shards, strict=True)]


def named_results(
    program: Program, results: Sequence[Sequence[Array]], ranks: Sequence[int] | None = None
) -> tuple[list[str], list[Array], list[ArraySpec]]:
    """The results of devices as they are printed and stored: r0 for a whole array, r0@0, r0@1 ... for each device's own."""
    names, arrays, specs = list[str](), list[Array](), list[ArraySpec]()
    devices = _ranks(program, ranks)
    if len(devices) < program.devices:
        whole, all_found = program.results, [list(found) for found in zip(*results, strict=True)]
    else:
        whole, all_found = whole_specs(program)[len(program.parameters) :], together(program, results)
    for number, (spec, found) in enumerate(zip(whole, all_found, strict=True)):
        of_devices = found if isinstance(found, list) else [found]
        names += [f"r{number}@{device}" for device in devices] if of_devices is found else [f"r{number}"]
        arrays += of_devices
        specs += [spec] * len(of_devices)
    return names, arrays, specs


def _ranks(program: Program, ranks: Sequence[int] | None) -> Sequence[int]:
    return range(program.devices) if ranks is None else ranks


def _parts(array: Array, cut: Shards | None, devices: Sequence[int]) -> list[Array]:
    return [array if cut is None else cut.cut(array, device) for device in devices]


def _by_device(of_parameter: Sequence[Sequence[Array]], count: int) -> list[list[Array]]:
    return [[parts[place] for parts in of_parameter] for place in range(count)]
