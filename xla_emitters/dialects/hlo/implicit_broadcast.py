"""Elementwise ops that broadcast their operands, for frontends that leave the broadcast to the compiler.

    %y = hlo.add %a, %b {broadcast_dimensions = array<i64: 1>, name = "y"} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

The attribute lists the result's dimensions that the operand of lower rank has; none for a scalar. A size 1 is repeated. Ops of HLO and
StableHLO do not have it: their operands have one shape. `disc-broadcast-simplifier` puts explicit broadcasts before these ops.
Source: seed document, "DhloBroadcastSimplifierPass".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase

from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, integers
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing
from xla_emitters.dialects.hlo.types import UNBOUNDED, dims_of, type_text
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import DataError

BROADCAST = "broadcast_dimensions"
"""The attribute of an op that broadcasts its operands: the result's dimensions that the operand of lower rank has. Not in HLO."""
DONE = "disc.no_implicit_broadcast"
"""The attribute of such an op after explicit broadcasts were inserted."""


def broadcast_axes(op: HloOp, number: int) -> tuple[int, ...]:
    """The dimensions of the result to which operand `number` of an op with the attribute is mapped."""
    rank, wanted, said = len(dims_of(op.operands[number])), len(dims_of(op.result)), op.attributes[BROADCAST]
    if rank in (0, wanted):
        return tuple(range(rank))
    return integers(said) if isa(said, DenseArrayBase) else ()


def verify_broadcast(op: HloOp) -> None:
    """raises RuleBroken unless every size of an operand is 1 or fits the result's"""
    result = dims_of(op.result)
    for number, operand in enumerate(op.operands):
        dims, axes = dims_of(operand), broadcast_axes(op, number)
        if len(axes) != len(dims) or list(axes) != sorted(set(axes)) or not set(axes) <= set(range(len(result))):
            raise RuleBroken(
                f"{BROADCAST} of '{op.opcode}' are not {len(dims)} rising dimensions of the result",
                f"it is {type_text(operand.type)}, the result {type_text(op.result.type)}",
                operand=number,
            )
        if any(
            size not in (1, UNBOUNDED, result[dim]) and result[dim] != UNBOUNDED
            for size, dim in zip(dims, axes, strict=True)
        ):
            raise RuleBroken(
                "the operands' shapes cannot be broadcast to one",
                " and ".join(type_text(one.type) for one in op.operands),
                "sizes are equal, or one of them is 1",
                operand=number,
            )


def implicit_shape(op: HloOp, s: Sizing) -> Shape:
    """The shape rule of such an op: along each dimension the size of the operands that do not repeat a size 1."""
    axes = [broadcast_axes(op, number) for number in range(len(op.operands))]
    return [
        s.broadcast([s.axis(number, own.index(dim)) for number, own in enumerate(axes) if dim in own])
        for dim in range(len(dims_of(op.result)))
    ]


def broadcast_arrays(op: HloOp, operands: Sequence[Any]) -> list[Any]:
    """The arrays broadcast to one shape. raises DataError if that is impossible"""
    rank, found = len(dims_of(op.result)), list[Any]()
    for number, operand in enumerate(operands):
        axes = broadcast_axes(op, number)
        found.append(operand.reshape([operand.shape[axes.index(dim)] if dim in axes else 1 for dim in range(rank)]))
    try:
        return list(np.broadcast_arrays(*found))
    except ValueError:
        shapes = " and ".join(str(list(operand.shape)) for operand in operands)
        raise DataError(
            f"%{op.instruction_name.data} = {op.opcode}: {shapes} cannot be broadcast to one shape", stage="evaluate"
        ) from None


def verify_one_shape(op: HloOp, operands: Sequence[Any], scalars: Sequence[int]) -> None:
    """raises DataError if the arrays of an op without broadcast differ in shape: NumPy would repeat a size 1

    scalars  the operands that may be scalars instead
    """
    shapes = [operand.shape for number, operand in enumerate(operands) if operand.ndim or number not in scalars]
    if any(shape != shapes[0] for shape in shapes):
        shown = " and ".join(str(list(shape)) for shape in dict.fromkeys(shapes))
        raise DataError(f"%{op.instruction_name.data} = {op.opcode}: operands of shapes {shown}", stage="evaluate")
