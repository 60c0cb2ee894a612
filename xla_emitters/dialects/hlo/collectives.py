"""Ops in which several devices take part: all-reduce, all-gather, all-to-all, permutes ..., as one op or as a start and a done.

    %r = hlo.all_reduce %x {name = "r", replica_groups = "{{0,1}}", to_apply = @add} : tensor<8xf32>

Rows of `rule_ops`. Their value is a library function of the arrays of all members of a group (`library.collective_calls`), each in a thread
of its own; `device_groups` says who is a member. Where each device is a group of its own (`is_alone`), `remove_no_ops` removes the op.
Source: docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo import control_meaning
from xla_emitters.dialects.hlo.base import Call, HloOp, at_least
from xla_emitters.dialects.hlo.computation import Callee
from xla_emitters.dialects.hlo.control_meaning import evaluated_by_library, library_evaluator
from xla_emitters.dialects.hlo.device_groups import groups_of, groups_said, pairs_of, pairs_said
from xla_emitters.dialects.hlo.permuted_slices import is_sliced, slices_of
from xla_emitters.dialects.hlo.rule_ops import (
    RuleOp,
    RuleRow,
    as_operand,
    as_operands,
    class_of,
    element_of_tuple,
    element_scalar,
    scalar,
)
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    one_or_tuple,
    tuple_type,
    tuple_types,
)
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


def _grouped(rule: Callable[[RuleOp], Attribute], *, of_some: bool = False) -> Callable[[RuleOp], Attribute]:
    """`rule` for an op on groups of devices: no group is empty, and each of the devices 0, 1, 2 ... is in one, or at most one."""

    def result(op: RuleOp) -> Attribute:
        try:
            groups = groups_said(op)
        except (ValueError, ZeroDivisionError) as error:
            raise op.broken(f"replica_groups= of '{op.opcode}' is a list of devices", None, str(error)) from None
        devices = sorted(device for group in groups for device in group)
        if of_some:
            each, fits = "0 or more", len(set(devices)) == len(devices) and min(devices, default=0) >= 0
        else:
            each, fits = f"0 to {len(devices) - 1}", devices == list(range(len(devices)))
        if not all(groups) or not fits:
            raise op.broken(
                f"replica_groups= of '{op.opcode}' names each device once", None, f"of {each}; no group is empty"
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


def _pairs_are_valid(op: RuleOp, most: int) -> None:
    """raises RuleBroken for what is no pair of devices, and if a device sends or receives more than `most` times."""
    numbers = pairs_said(op)
    if any(len(pair) != 2 for pair in numbers):
        raise op.broken("source_target_pairs= is a list of pairs")
    if least := min((device for pair in numbers for device in pair if device < 0), default=0):
        raise op.broken(f"source_target_pairs= names devices from 0 on, not {least}")
    for side, name in ((0, "source"), (1, "target")):
        devices = [pair[side] for pair in numbers]
        often = [device for device in devices if devices.count(device) > most]
        if often:
            times = "twice" if most == 1 else f"more than {most} times, for {most} slices"
            raise op.broken(f"device {often[0]} is a {name} of source_target_pairs= {times}")


def _permuted(op: RuleOp) -> Attribute:
    slices = slices_of(op) if is_sliced(op) else None
    _pairs_are_valid(op, len(slices[0]) if slices else 1)
    return as_operands(op) if slices is None else op.type_of(1)


def _permute_start(op: RuleOp) -> Attribute:
    """`(operands, results)`, then two numbers of context, which without slices may be absent."""
    permuted = _permuted(op)
    if is_sliced(op):
        return tuple_type([op.type_of(0), op.type_of(1), scalar("u32"), scalar("u32")])
    context = tuple_types(op.result.type)[2:]
    return tuple_type([as_operands(op), permuted, *(scalar("u32") for _ in context)])


def is_alone(op: RuleOp) -> bool:
    """Whether each device takes part in a collective alone: it is its group, sends to itself, or is the only one and gets nothing."""
    if op.opcode.startswith("collective-permute"):
        if is_sliced(op):
            return False
        devices = [device for group in groups_of(op) for device in group]
        return sorted(pairs_of(op)) == [(device, device) for device in sorted(devices)] or (
            len(devices) == 1 and gets_zeros(op)
        )
    return all(len(group) == 1 for group in groups_of(op))


def gets_zeros(op: RuleOp) -> bool:
    """Whether a permute sends nothing: a device that receives nothing has zeros."""
    return op.opcode.startswith("collective-permute") and not pairs_said(op) and not is_sliced(op)


def _exchanged(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """What the library's function gives, in the structure of the op's result."""
    if op.opcode not in ("all-gather-start", "collective-permute-start"):
        return evaluated_by_library(op, operands, call)
    _, result, *context = tuple_types(op.result.type)
    given = operands[0] if len(operands) == 1 or is_sliced(op) else tuple(operands)
    return (given, library_evaluator(op, call, result)(operands), *map(control_meaning.zeros_of, context))


_GROUPS = ("replica_groups", "channel_id")
_REDUCING = (*_GROUPS, "constrain_layout", "use_global_device_ids", "mode")
_SOME = at_least(1)
_ONE = range(1, 2)

_SECOND = control_meaning.element_of_operand(1)

_REDUCES: dict[str, Any] = {
    "required": ("to_apply",),
    "optional": _REDUCING,
    "callees": _reducer,
    "meaning": _exchanged,
}
_SCATTERS: dict[str, Any] = {**_REDUCES, "required": ("to_apply", "dimensions")}
_GATHERS: dict[str, Any] = {"required": ("dimensions",), "optional": _REDUCING[:-1], "meaning": _exchanged}
_PERMUTES: dict[str, Any] = {
    "required": ("source_target_pairs",),
    "optional": ("channel_id", "slice_sizes"),
    "meaning": _exchanged,
}

ROWS: tuple[RuleRow, ...] = (
    RuleRow("all-reduce", _SOME, _grouped(as_operands), **_REDUCES),
    RuleRow("all-reduce-start", _SOME, _grouped(as_operands), **_REDUCES),
    RuleRow("all-reduce-done", _ONE, as_operand(0), meaning=control_meaning.first_operand),
    RuleRow("all-gather", _SOME, _grouped(_scaled(grows=True)), **_GATHERS),
    RuleRow("all-gather-start", _SOME, _grouped(_all_gather_start), **_GATHERS),
    RuleRow("all-gather-done", _ONE, element_of_tuple(1), meaning=_SECOND),
    RuleRow("reduce-scatter", _SOME, _grouped(_scaled(grows=False)), **_SCATTERS),
    RuleRow(
        "all-to-all",
        _SOME,
        _grouped(_all_to_all),
        optional=(*_GROUPS, "dimensions", "constrain_layout"),
        meaning=_exchanged,
    ),
    RuleRow(
        "ragged-all-to-all",
        range(6, 7),
        _grouped(_ragged_all_to_all),
        optional=(*_GROUPS, "dimensions"),
        meaning=_exchanged,
    ),
    RuleRow("collective-broadcast", _SOME, _grouped(as_operands, of_some=True), optional=_GROUPS, meaning=_exchanged),
    RuleRow("collective-permute", _SOME, _permuted, **_PERMUTES),
    RuleRow("collective-permute-start", _SOME, _permute_start, **_PERMUTES),
    RuleRow("collective-permute-done", _ONE, element_of_tuple(1), meaning=_SECOND),
)

OPS: tuple[type[HloOp], ...] = tuple(class_of(row, __name__) for row in ROWS)
