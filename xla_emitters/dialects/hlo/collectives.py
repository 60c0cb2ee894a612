"""Ops in which several devices take part: all-reduce, all-gather, all-to-all, permutes ..., as one op or as a start and a done.

    %r = hlo.all_reduce %x {name = "r", replica_groups = "{{0,1}}", to_apply = @add} : tensor<8xf32>

Rows of `rule_ops`: these ops parse, verify and print; they are not compiled, since their code involves several devices. Where each device
is a group of its own, an op gives its operands (`is_alone`), which is its value in NumPy, and `remove_no_ops` removes it.
Source: docs/reference/1 6.8; XLA's collective_ops_utils.h for what a group is made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from xla_emitters.dialects.hlo import host_meaning
from xla_emitters.dialects.hlo.base import Call, HloOp, at_least, integers
from xla_emitters.dialects.hlo.computation import Callee, enclosing_module
from xla_emitters.dialects.hlo.rule_ops import (
    RuleOp,
    RuleRow,
    as_operand,
    as_operands,
    class_of,
    element_of_tuple,
    element_scalar,
    one_or_tuple,
    scalar,
)
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, tuple_type, tuple_types
from xla_emitters.dtypes import Kind


def _reducer(op: RuleOp) -> tuple[Callee, ...]:
    """The computation from two scalars to one, of the element type of the operands, of the first if they differ."""
    (name,) = op.symbols("to_apply")
    element = element_scalar(op.type_of(0))
    return (Callee(name, [element, element], element),)


def _scaled(grows: bool) -> Callable[[RuleOp], Attribute]:
    """The operands, along one dimension multiplied or divided by the size of a group of devices, which the stated result implies."""

    def result(op: RuleOp) -> Attribute:
        gathered = [_scaled_along(op, i, ir_type, grows) for i, ir_type in enumerate(_results(op))]
        return one_or_tuple(gathered)

    return result


def _results(op: RuleOp) -> tuple[Attribute, ...]:
    types = (op.result.type,) if len(op.operands) == 1 else tuple_types(op.result.type)
    if len(types) != len(op.operands):
        raise op.broken(f"'{op.opcode}' of {len(op.operands)} operands gives a tuple of {len(op.operands)}")
    return types


def _scaled_along(op: RuleOp, i: int, said: Attribute, grows: bool) -> Attribute:
    operand = op.array(i)
    dims = list(dims_of(operand))
    along = op.only_dimension(len(dims))
    got = dims_of(said)
    if len(got) == len(dims) and UNBOUNDED not in (got[along], dims[along]):
        small, large = (dims[along], got[along]) if grows else (got[along], dims[along])
        if (large % small if small else large) == 0:
            dims[along] = got[along]
    return array_type(operand.element_type, dims)


def _all_gather_start(op: RuleOp) -> Attribute:
    """`(operand, result)`: the operands and the gathered arrays, each a tuple if there are several."""
    types = tuple_types(op.result.type)
    if len(types) != 2:
        raise op.broken(f"'{op.opcode}' gives (operands, results)")
    said = (types[1],) if len(op.operands) == 1 else tuple_types(types[1])
    if len(said) != len(op.operands):
        raise op.broken(f"'{op.opcode}' of {len(op.operands)} operands gives {len(op.operands)} results")
    gathered = [_scaled_along(op, i, ir_type, True) for i, ir_type in enumerate(said)]
    return tuple_type([as_operands(op), one_or_tuple(gathered)])


def _grouped(rule: Callable[[RuleOp], Attribute]) -> Callable[[RuleOp], Attribute]:
    """`rule` for an op on groups of devices: no group is empty, and each of the devices 0, 1, 2 ... is in one group."""

    def result(op: RuleOp) -> Attribute:
        groups = op.properties.get("replica_groups")
        if isa(groups, ArrayAttr[DenseArrayBase]):
            numbers = [integers(group) for group in groups]
            devices = sorted(device for group in numbers for device in group)
            if not all(numbers) or devices != list(range(len(devices))):
                raise op.broken(
                    f"replica_groups= of '{op.opcode}' names each device once",
                    None,
                    f"of 0 to {len(devices) - 1}; no group is empty",
                )
        return rule(op)

    return result


def _all_to_all(op: RuleOp) -> Attribute:
    """Exchanges whole arrays, or pieces along one dimension."""
    if "dimensions" not in op.properties:
        for i in range(1, len(op.operands)):
            op.expect_operand(i, op.type_of(0))
        return tuple_type(op.types)
    if len(op.operands) != 1:
        raise op.broken("'all-to-all' along a dimension has one operand", None, f"it has {len(op.operands)}")
    op.only_dimension(len(dims_of(op.array(0))))
    return op.type_of(0)


def _ragged_all_to_all(op: RuleOp) -> Attribute:
    for operand in range(2, 6):
        op.expect_kind(operand, Kind.SIGNED, Kind.UNSIGNED)
        op.expect_operand(operand, op.type_of(2))
    if as_array(op.array(0)).element_type != op.array(1).element_type:
        raise op.broken("'ragged-all-to-all' moves elements of one type", 1)
    return op.type_of(1)


def _pairs_are_valid(op: RuleOp) -> None:
    """raises RuleBroken if a device sends twice or receives twice."""
    numbers = _pairs(op)
    if any(len(pair) != 2 for pair in numbers):
        raise op.broken("source_target_pairs= is a list of pairs")
    for side, name in ((0, "source"), (1, "target")):
        devices = [pair[side] for pair in numbers]
        twice = [device for device in devices if devices.count(device) > 1]
        if twice:
            raise op.broken(f"device {twice[0]} is a {name} of source_target_pairs= twice")


def _permuted(op: RuleOp) -> Attribute:
    _pairs_are_valid(op)
    if "slice_sizes" not in op.properties:
        return as_operands(op)
    if len(op.operands) != 4:
        raise op.broken("a permute of slices has four operands", None, f"it has {len(op.operands)}")
    return op.type_of(1)


def _permute_start(op: RuleOp) -> Attribute:
    """`(operands, results)`, then two numbers of context, which without slices may be absent."""
    permuted = _permuted(op)
    if "slice_sizes" in op.properties:
        parts = [*op.types[:2], scalar("u32"), scalar("u32")]
        return tuple_type([op.type_of(0), op.type_of(1), *parts[2:]])
    context = tuple_types(op.result.type)[2:]
    return tuple_type([as_operands(op), permuted, *(scalar("u32") for _ in context)])


def is_alone(op: RuleOp) -> bool:
    """Whether each device takes part in a collective alone: it is its group, sends to itself, or is the only one and gets nothing."""
    replicas, partitions = device_counts(op)
    if op.opcode.startswith("collective-permute"):
        devices = partitions if "channel_id" in op.properties else replicas
        return sorted(_pairs(op)) == [(device, device) for device in range(devices)] or (
            devices == 1 and gets_zeros(op)
        )
    if op.opcode.startswith(("all-to-all", "collective-broadcast")) or op.number("use_global_device_ids"):
        counted = 1
        everything = partitions if "channel_id" in op.properties else replicas
    else:
        # With a channel, a group is of replicas, with all of their partitions.
        counted = everything = partitions if "channel_id" in op.properties else 1
        everything *= replicas
    groups = op.properties.get("replica_groups")
    if isinstance(groups, StringAttr):
        # [number of groups, size of a group]<=...; a mesh has groups of at least two.
        sizes = re.match(r"\[\s*\d+\s*,\s*(\d+)\s*\]", groups.data)
        return sizes is not None and int(sizes[1]) * counted == 1
    found = [integers(group) for group in groups] if isa(groups, ArrayAttr[DenseArrayBase]) else []
    return (max(map(len, found)) * counted if found else everything) == 1


def gets_zeros(op: RuleOp) -> bool:
    """Whether a permute sends nothing: a device that receives nothing has zeros."""
    return op.opcode.startswith("collective-permute") and not _pairs(op)


def _pairs(op: RuleOp) -> list[tuple[int, ...]]:
    pairs = op.properties.get("source_target_pairs")
    return [integers(pair) for pair in pairs] if isa(pairs, ArrayAttr[DenseArrayBase]) else []


def device_counts(op: HloOp) -> tuple[int, int]:
    """The numbers of replicas and of partitions that the module of `op` is for."""
    module = enclosing_module(op)
    attributes = module.attributes if module is not None else {}

    def count(*names: str) -> int:
        found = next((attributes[name] for name in names if name in attributes), None)
        number = re.match(r"\d+", found.data) if isinstance(found, StringAttr) else None
        return int(number[0]) if number else 1

    return count("hlo.replica_count", "mhlo.num_replicas"), count("hlo.num_partitions", "mhlo.num_partitions")


def _alone(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """The operands, or zeros, where a device takes part alone; in the structure of the op's result."""
    if not is_alone(op):
        raise op.unsupported("no value", help="it needs the other devices that a program runs on")
    if gets_zeros(op):
        operands = [*map(np.zeros_like, operands)]
    same = operands[0] if len(operands) == 1 else tuple(operands)
    match op.opcode:
        case "all-gather-start" | "collective-permute-start":
            context = tuple_types(op.result.type)[2:]
            return (same, same, *map(host_meaning.zeros_of, context))
        case "all-to-all" if "dimensions" not in op.properties:
            return tuple(operands)
        case _:
            return same


_GROUPS = ("replica_groups", "channel_id")
_REDUCING = (*_GROUPS, "constrain_layout", "use_global_device_ids", "mode")
_PERMUTE = ("channel_id", "slice_sizes")
_SOME = at_least(1)
_ONE = range(1, 2)

_SECOND = host_meaning.element_of_operand(1)

ROWS: tuple[RuleRow, ...] = (
    RuleRow(
        "all-reduce",
        _SOME,
        _grouped(as_operands),
        required=("to_apply",),
        optional=_REDUCING,
        callees=_reducer,
        meaning=_alone,
    ),
    RuleRow(
        "all-reduce-start",
        _SOME,
        _grouped(as_operands),
        required=("to_apply",),
        optional=_REDUCING,
        callees=_reducer,
        meaning=_alone,
    ),
    RuleRow("all-reduce-done", _ONE, as_operand(0), meaning=host_meaning.first_operand),
    RuleRow(
        "all-gather",
        _SOME,
        _grouped(_scaled(grows=True)),
        required=("dimensions",),
        optional=_REDUCING[:-1],
        meaning=_alone,
    ),
    RuleRow(
        "all-gather-start",
        _SOME,
        _grouped(_all_gather_start),
        required=("dimensions",),
        optional=_REDUCING[:-1],
        meaning=_alone,
    ),
    RuleRow("all-gather-done", _ONE, element_of_tuple(1), meaning=_SECOND),
    RuleRow(
        "reduce-scatter",
        _SOME,
        _grouped(_scaled(grows=False)),
        required=("to_apply", "dimensions"),
        optional=_REDUCING,
        callees=_reducer,
        meaning=_alone,
    ),
    RuleRow(
        "all-to-all",
        _SOME,
        _grouped(_all_to_all),
        optional=(*_GROUPS, "dimensions", "constrain_layout"),
        meaning=_alone,
    ),
    RuleRow("ragged-all-to-all", range(6, 7), _grouped(_ragged_all_to_all), optional=(*_GROUPS, "dimensions")),
    RuleRow("collective-broadcast", _SOME, as_operands, optional=_GROUPS, meaning=_alone),
    RuleRow(
        "collective-permute",
        _SOME,
        _permuted,
        required=("source_target_pairs",),
        optional=_PERMUTE,
        meaning=_alone,
    ),
    RuleRow(
        "collective-permute-start",
        _SOME,
        _permute_start,
        required=("source_target_pairs",),
        optional=_PERMUTE,
        meaning=_alone,
    ),
    RuleRow("collective-permute-done", _ONE, element_of_tuple(1), meaning=_SECOND),
)

OPS: tuple[type[HloOp], ...] = tuple(class_of(row, __name__) for row in ROWS)
