"""Computations of scalars that are called for each element: their value in NumPy, and `map`.

    on_elements(op, @add, call)([x, y])      x, y f32[8,64]: @add of every x[i, j], y[i, j]

A body of elementwise ops only is evaluated once, on whole arrays, one element per call; any other body once per element.
Source: docs/reference/1 5.5 "map", "reduce".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp
from xla_emitters.dialects.hlo.computation import (
    Callee,
    CallingOp,
    CallOp,
    ComputationOp,
    ParameterOp,
    TupleOp,
    find_computation,
    scalar_of,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp, is_elementwise
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing, same_axes
from xla_emitters.dialects.hlo.types import dims_of, element_of, leaf_types
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, Kind

OnElements: TypeAlias = Callable[[Sequence[Array]], tuple[Array, ...]]


def on_elements(op: Operation, symbol: SymbolRefAttr, call: Call) -> OnElements:
    """A computation of scalars as an elementwise function of arrays of one shape, which returns one array per leaf of its root.

    op  is in the module that holds it
    """
    name, callee = symbol.root_reference.data, find_computation(op, symbol)

    def at_once(arrays: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(np.broadcast_to(np.asarray(leaf), arrays[0].shape) for leaf in arrays_of(call(name, arrays)))

    def one_by_one(arrays: Sequence[Array]) -> tuple[Array, ...]:
        found = [np.empty(arrays[0].shape, element_of(leaf).numpy) for leaf in leaf_types(callee.root.type)]
        for index in np.ndindex(*arrays[0].shape):
            values = call(name, [np.asarray(array[index], array.dtype) for array in arrays])
            for array, value in zip(found, arrays_of(values), strict=True):
                array[index] = value
        return tuple(found)

    return at_once if goes_by_element(callee) else one_by_one


def goes_by_element(computation: ComputationOp) -> bool:
    """Whether the computation of scalars, applied to whole arrays, gives its value for each element."""
    return all(
        is_elementwise(op)
        or isinstance(op, ParameterOp | TupleOp | ConstantOp)
        or (isinstance(op, BitcastOp) and op.is_of_scalars)
        or (isinstance(op, CallOp) and goes_by_element(find_computation(op, op.to_apply)))
        for op in computation.instructions
    )


def has_scalar_code(computation: ComputationOp) -> bool:
    """Whether `emit_scalars` (`dynamic/loops/scalar_code`) supports all instructions that the results need."""
    for op in needed_by(computation):
        if isinstance(op, CallOp):
            if not has_scalar_code(find_computation(op, op.to_apply)):
                return False
        elif not isinstance(op, ParameterOp | TupleOp | ConstantOp | ElementwiseOp):
            return False
    return True


def needed_by(computation: ComputationOp) -> set[Operation]:
    """The instructions that the root of a computation depends on."""
    found, waiting = set[Operation](), [computation.root]
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            waiting += owner.operands
    return found


FOLDS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""Ops whose NumPy function folds an array in one call."""
ROWS_AT_ONCE = 1 << 22


def fold(op: CallingOp, symbol: SymbolRefAttr, init: Array, array: Array) -> Array | None:
    """`init` combined with `array[0]`, `array[1]` ... in this order, rounded each time; None where no NumPy function equals the body.

    init  has the shape of one step, `array[0]`
    """
    root = find_computation(op, symbol).root.owner
    if not is_elementwise(root) or len(root.operands) != 2 or root.operands[0] is root.operands[1]:
        return None
    if not all(isinstance(operand.owner, ParameterOp) for operand in root.operands):
        return None
    function, element = FOLDS.get(root.opcode), element_of(root.result)
    if (
        function is None
        or element.numpy.kind not in "biufc"
        or (element.kind is Kind.PRED and root.opcode in ("add", "multiply"))
    ):
        return None
    if element.kind is Kind.COMPLEX and root.opcode != "add":
        return None
    if not len(array):
        return init.copy()
    if root.opcode in ("maximum", "minimum") and element.kind is Kind.FLOAT:
        return _extreme(function, np.concatenate([init[np.newaxis], array]))
    if element.kind not in (Kind.FLOAT, Kind.COMPLEX):
        return function(init, function.reduce(array, axis=0, dtype=array.dtype))
    rows = max(1, ROWS_AT_ONCE // max(1, init.size))
    for first in range(0, len(array), rows):
        # Not `reduce`, which adds in pairs.
        init = function.accumulate(np.concatenate([init[np.newaxis], array[first : first + rows]]), axis=0)[-1]
    return init.copy()


def _extreme(function: np.ufunc, array: Array) -> Array:
    """The largest or smallest along the first dimension. +0 is larger than -0, as in HLO; NumPy leaves that open."""
    found = np.asarray(function.reduce(array, axis=0))
    zeros, is_negative = array == 0, np.signbit(array)
    wanted = (zeros & (~is_negative if function is np.maximum else is_negative)).any(axis=0)
    sign = np.where(wanted == (function is np.maximum), 1, -1).astype(found.dtype)
    return np.where(found == 0, np.copysign(np.zeros_like(found), sign), found)


def arrays_of(value: Any) -> tuple[Array, ...]:
    """The arrays of a computation's value: of a tuple, all."""
    return cast("tuple[Array, ...]", value) if isinstance(value, tuple) else (value,)


@op_definition
class MapOp(CallingOp):
    """A computation of scalars applied element by element."""

    name = "hlo.map"

    to_apply = prop_def(SymbolRefAttr)
    dimensions = opt_prop_def(DenseArrayBase)

    def callees(self) -> tuple[Callee, ...]:
        return (
            Callee(self.to_apply, [scalar_of(operand.type) for operand in self.operands], scalar_of(self.result.type)),
        )

    def verify_shape(self) -> None:
        ranks = [len(dims_of(operand)) for operand in self.operands]
        if (other := next((i for i, rank in enumerate(ranks) if rank != ranks[0]), None)) is not None:
            raise self.arrays_differ(other)
        self.expect_dims(self.inferred_dims(), "its operand has")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [same_axes(s, range(len(self.operands)), self.arrays_differ)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        (value,) = on_elements(self, self.to_apply, call)(operands)
        return value

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (identity_map(dims_of(self.result)),) * len(self.operands)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        return e.call(self.to_apply.root_reference.data, [e.operand(i) for i in range(len(self.operands))])


OPS: tuple[type[HloOp], ...] = (MapOp,)
