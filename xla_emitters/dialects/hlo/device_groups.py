"""Which devices take part in a collective: its groups of replicas or partitions as lists of devices.

    replica_groups={{0,1},{2,3}}                       lists; of what, is said by channel_id= and use_global_device_ids=
    replica_groups=[2,4]<=[4,2]T(1,0)                  2 groups of 4: 0 .. 7 as [4,2], transposed, cut into rows
    replica_groups=mesh['x'=2,'y'=4] {'x'}             devices that differ along x alone; a part of an axis: 'y':(2)2

    all-reduce, all-gather, reduce-scatter             no channel: replicas, for each partition by itself
                                                       a channel: replicas, with all of their partitions
                                                       a channel and global ids: devices
    all-to-all, broadcasts, permutes                   no channel: replicas; a channel: partitions, for each replica by itself

A device is replica * partitions + partition. Source: XLA's collective_ops_utils.h; hlo.proto on meshes and iota lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, StringAttr

from xla_emitters.dialects.hlo.base import HloOp, integers, written_at
from xla_emitters.dialects.hlo.computation import enclosing_module
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import DataError

Groups = tuple[tuple[int, ...], ...]
MOST_DEVICES = 1 << 20
"""Of a module, and of a list that is written as its shape: more are a mistake."""
_OF_PARTITIONS = ("all-to-all", "ragged-all-to-all", "collective-broadcast", "collective-permute")
"""Prefixes of ops whose groups are of partitions if they have a channel."""


def device_counts(op: HloOp) -> tuple[int, int]:
    """The numbers of replicas and of partitions that the module of `op` is for."""
    module = enclosing_module(op)
    return (1, 1) if module is None else counts_of(module)


def counts_of(module: ModuleOp) -> tuple[int, int]:
    """The numbers of replicas and of partitions that a module says it is for. raises DataError for more than MOST_DEVICES"""

    def count(*names: str) -> int:
        found = next((module.attributes[name] for name in names if name in module.attributes), None)
        number = re.match(r"\d{1,18}", found.data) if isinstance(found, StringAttr) else None
        return int(number[0]) if number else 1

    counts = count("hlo.replica_count", "mhlo.num_replicas"), count("hlo.num_partitions", "mhlo.num_partitions")
    _check_count(prod(counts))
    return counts


def _check_count(devices: int) -> None:
    if devices > MOST_DEVICES:
        raise DataError(f"the module is for {devices} devices: at most {MOST_DEVICES} are possible", stage="hlo")


def devices_of(module: ModuleOp) -> int:
    """How many devices a module is for: what it says, or, where it does not, all that its groups name.

    raises DataError for a group that names another device than those, for groups that leave one out, and for more than MOST_DEVICES
    """
    replicas, partitions = counts_of(module)
    said, most = replicas * partitions, 1
    for op in module.walk():
        if not isinstance(op, RuleOp):
            continue
        is_collective = bool({"replica_groups", "source_target_pairs"} & op.properties.keys())
        groups, pairs = groups_of(op) if is_collective else (), pairs_of(op) if pairs_said(op) else ()
        most = max([most, *(device + 1 for group in (*groups, *pairs) for device in group)])
        missing = set(range(said if is_collective else 0)).difference(device for group in groups for device in group)
        if missing and "broadcast" not in op.opcode:
            raise DataError(
                f"%{op.instruction_name.data} = {op.opcode} is for {said - len(missing)} of the module's {said} devices:"
                f" device {min(missing)} is in none of its groups",
                stage="hlo",
                place=written_at(op),
            )
        if most > said > 1:
            raise DataError(
                f"%{op.instruction_name.data} = {op.opcode} names device {most - 1}, but the module is for {said} devices",
                stage="hlo",
                place=written_at(op),
            )
    _check_count(most)
    return max(said, most)


def groups_of(op: RuleOp) -> Groups:
    """The groups of devices of a collective, each in the order in which arrays are combined or put one after the other."""
    replicas, partitions = device_counts(op)
    has_channel, is_of_partitions = "channel_id" in op.properties, op.opcode.startswith(_OF_PARTITIONS)
    said = () if op.opcode.startswith("collective-permute") else groups_said(op)
    if op.number("use_global_device_ids") and not is_of_partitions:
        return said or (tuple(range(replicas * partitions)),)
    said = said or (tuple(range(partitions if is_of_partitions and has_channel else replicas)),)
    if is_of_partitions or not has_channel:
        return _as_devices(op, said)
    return tuple(
        tuple(replica * partitions + partition for replica in group for partition in range(partitions))
        for group in said
    )


def pairs_of(op: RuleOp) -> Groups:
    """(sender, receiver) of a permute, as devices."""
    return _as_devices(op, pairs_said(op))


def _as_devices(op: RuleOp, said: Groups) -> Groups:
    """Groups of partitions, of an op with a channel, for each replica; or groups of replicas for each partition."""
    replicas, partitions = device_counts(op)
    step, others, apart = (1, replicas, partitions) if "channel_id" in op.properties else (partitions, partitions, 1)
    return tuple(tuple(number * step + other * apart for number in group) for group in said for other in range(others))


_TRANSFERS = re.compile(r"_xla_send_recv_source_target_pairs=\"?(\{[\d\s,{}]*\})")


def pairs_said(op: RuleOp) -> tuple[tuple[int, ...], ...]:
    """The pairs of a permute, a send or a receive as its text has them: XLA keeps those of the latter among the front end's attributes."""
    pairs, beside = op.properties.get("source_target_pairs"), op.attributes.get("frontend_attributes")
    if isinstance(beside, StringAttr) and (found := _TRANSFERS.search(beside.data)):
        # A number of many digits is of no device; no module has device MOST_DEVICES either.
        return tuple(
            tuple(int(device) if len(device) < 10 else MOST_DEVICES for device in pair)
            for pair in re.findall(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}", found[1])
        )
    return tuple(integers(pair) for pair in pairs) if isa(pairs, ArrayAttr[DenseArrayBase]) else ()


def groups_said(op: RuleOp) -> Groups:
    """The groups as the text has them, as lists; () where it names none. raises ValueError for a list that is none"""
    groups = op.properties.get("replica_groups")
    if isinstance(groups, StringAttr):
        text = re.sub(r"\s", "", groups.data)
        return _of_mesh(text) if text.startswith("mesh") else _rows(numbers_of_iota(text))
    return tuple(integers(group) for group in groups) if isa(groups, ArrayAttr[DenseArrayBase]) else ()


def _rows(devices: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Groups:
    return tuple(tuple(map(int, row)) for row in devices)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def numbers_of_iota(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Devices as an array, of the text of an iota list.

    >>> numbers_of_iota("[2,4]<=[4,2]T(1,0)").tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7]]
    """
    found = re.fullmatch(r"\[([\d,]*)\](?:<=\[([\d,]*)\])?(?:T\(([\d,]*)\))?", text)
    if found is None:
        raise ValueError(f"no list of devices: {text}")
    shape = _numbers(found[1])
    return _arranged(_numbers(found[2]) if found[2] else shape, found[3], shape)


def _arranged(
    before: Sequence[int], order: str | None, shape: Sequence[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """0, 1, 2 ... as `before`, its axes in another order, as `shape`. raises ValueError where they do not fit"""
    count = prod(shape)
    if not 0 < count <= MOST_DEVICES or prod(before) != count:
        raise ValueError(f"{list(before)} devices are not {list(shape)}, of at most {MOST_DEVICES}")
    devices = np.arange(count).reshape(before)
    return (devices.transpose(_numbers(order)) if order else devices).reshape(shape)


def _of_mesh(text: str) -> Groups:
    """
    >>> _of_mesh("mesh['x'=2,'y'=4]{'x'}")
    ((0, 4), (1, 5), (2, 6), (3, 7))
    >>> _of_mesh("mesh['x'=2,'y'=4]{'y':(2)2}")
    ((0, 1), (2, 3), (4, 5), (6, 7))
    """
    found = re.fullmatch(r"mesh\[(.*?)\](?:,device_ids=\((.*)\))?\{(.*)\}", text)
    if found is None:
        raise ValueError(f"no groups of a mesh: {text}")
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", found[1])}
    shape = list(sizes.values())
    listed = found[2] or ""
    if not listed or listed.startswith("["):
        before, _, order = listed.partition("T")
        devices = _arranged(_numbers(before) or shape, order, shape)
    else:
        devices = np.array(_numbers(listed)).reshape(shape)
    chosen = re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", found[3])
    if strange := [name for name, _, _ in chosen if name not in sizes]:
        raise ValueError(f"the mesh has no axis '{strange[0]}'")
    if len(set(chosen)) != len(chosen):
        raise ValueError("an axis is named twice")
    return _rows(_along(devices, list(sizes), chosen))


def _along(
    devices: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    axes: Sequence[str],
    chosen: Sequence[tuple[str, str, str]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """One row for each group: the devices that differ along the chosen axes, (name, size of what is before, size) for a part of one."""
    cuts = {
        name: sorted({int(b) for a in chosen if a[0] == name and a[1] for b in (a[1], int(a[1]) * int(a[2]))})
        for name in axes
    }
    shape, places = list[int](), dict[tuple[str, int], list[int]]()
    for name, size in zip(axes, devices.shape, strict=True):
        edges = [*dict.fromkeys((1, *cuts[name], size))]
        for before, end in pairwise(edges):
            places[name, before] = [len(shape)]
            shape.append(end // before)
    grouped, count = list[int](), 1
    for name, before, size in chosen:
        first, end = (int(before), int(before) * int(size)) if before else (1, devices.shape[axes.index(name)])
        inside = [
            number for (axis, at), numbers in places.items() if axis == name and first <= at < end for number in numbers
        ]
        grouped += inside
        count *= end // first
    others = [axis for axis in range(len(shape)) if axis not in grouped]
    return devices.reshape(shape).transpose([*others, *grouped]).reshape(-1, count)
