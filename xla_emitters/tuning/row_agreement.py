"""Checks that a kernel that reads rows once computes its HLO: runs some of its blocks on the CPU and computes the same rows by NumPy.

    blocks 0, 8192, 16382, 16383 of f32[16384,2048]     write rows 0, 8192, 16382, 16383
    the HLO of these rows alone, f32[4,2048]            on the same elements of the parameters
    -> None, or "result 0: 17 of 8192 elements are not within the bounds of the ops, the first at 4096"

A row is summed in another order than NumPy's, so numbers are compared within the bounds of the ops (`runtime/reference/bounds`),
whatever the order.
In the HLO for some of the rows, the dimensions that together are the rows become 1, ..., 1 and the number of rows. If an instruction
depends on the row's number (an iota over rows, a constant per row, anything that moves elements), NumPy computes all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, TupleOp
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, BroadcastOp, ReshapeOp
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of
from xla_emitters.dialects.verification import verify_ir
from xla_emitters.dtypes import Array
from xla_emitters.errors import VerifyError
from xla_emitters.graph.fusion_parts import NewComputation
from xla_emitters.graph.view import FusionView
from xla_emitters.pricing.traffic import arrays_for
from xla_emitters.program import Argument
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.runtime.layouts import from_buffer
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.tolerance import Bounds
from xla_emitters.runtime.simt.execute import written_elements

LAST_BLOCKS = 2
Matrix = tuple[int, int]
"""Rows and columns."""


def row_disagreement(module: ModuleOp, view: FusionView, arguments: Sequence[Argument], matrix: Matrix) -> str | None:
    """None if the first, the middle and the last blocks write what the HLO computes, within the bounds of the ops; else the difference.

    module   the kernel, at a stage that the executor runs; it must not write into a parameter
    matrix   each result has all of its elements, or one per row
    raises   whatever the executor raises
    """
    arrays, inputs = arrays_for(view, arguments, repeat=True), len(view.parameters)
    blocks = launch_of(module).blocks
    chosen = sorted({0, blocks // 2, *range(max(0, blocks - LAST_BLOCKS), blocks)})
    masks = written_elements(module, arrays, blocks=chosen, results=len(arrays) - inputs)
    rows = np.flatnonzero(_by_rows(masks[0], matrix).any(axis=1))
    if not rows.size:
        return "the first, the middle and the last blocks write nothing"
    computation, taken = _computation_of(view, rows, matrix)
    parameters = list[Array]()
    for parameter, array, argument in zip(view.parameters, arrays, arguments, strict=False):
        dims = dims_of(computation.parameters[parameter.number.value.data].result)
        if dims != dims_of(parameter.result):
            parameters.append(_by_rows(array, matrix)[rows].reshape(dims))
        else:
            parameters.append(from_buffer(array, argument.array))
    for number, bounds in enumerate(evaluate_bounds(computation, parameters, any_order=True)):
        mask, found = (_by_rows(each, matrix)[rows] for each in (masks[number], arrays[inputs + number]))
        if not mask.all():
            return f"result {number}: {np.count_nonzero(~mask)} elements of the blocks' rows are not written"
        low, high = (_by_rows(each, (len(rows) if taken else matrix[0], 0)) for each in (bounds.low, bounds.high))
        admitted = Bounds(low, high) if taken else Bounds(low[rows], high[rows])
        wrong = np.flatnonzero(~admitted.admits(found))
        if wrong.size:
            return (
                f"result {number}: {wrong.size} of {found.size} elements are not within the bounds of the ops, "
                f"the first in row {rows[wrong[0] // found.shape[1]]}"
            )
    return None


def _by_rows(array: Array, matrix: Matrix) -> Array:
    """The array reshaped to a row per row of the matrix."""
    return array.reshape(matrix[0], -1)


def _computation_of(view: FusionView, rows: Array, matrix: Matrix) -> tuple[ComputationOp, bool]:
    """The HLO for the given rows, and True; or the HLO for all rows, and False."""
    some = _SomeRows(view, len(rows), matrix)
    if all(map(some.is_same_in_all_rows, view.instructions)):
        entry = some.entry()
        try:
            verify_ir(ModuleOp([*(called.clone() for called in view.called), entry]))
        except VerifyError:
            return view.computation, False  # a shape that arranges the rows differently
        return entry, True
    return view.computation, False


@dataclass(frozen=True)
class _SomeRows:
    """Builds the HLO of a fusion for fewer rows.

    rows    the new number of rows
    matrix  rows and columns of the fusion
    made    value of the fusion -> its new value
    """

    view: FusionView
    rows: int
    matrix: Matrix
    made: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def is_same_in_all_rows(self, op: HloOp) -> bool:
        """Whether the instruction's class guarantees that a row is computed in the same way whatever its number is."""
        match op:
            case ConstantOp():
                return not self.leading(op.result)
            case IotaOp():
                return op.iota_dimension.value.data >= self.leading(op.result)
            case BroadcastOp() if not self.leading(op.operands[0]):
                leading = self.leading(op.result)
                return all(dim >= leading for dim in integers(op.properties["dimensions"]))
            case TupleOp() | ParameterOp() | ReduceOp() | BroadcastOp() | ReshapeOp() | BitcastOp():
                return True
            case _:
                return is_elementwise(op)

    def leading(self, value: SSAValue) -> int:
        """The number of leading dimensions of an array that are its rows; 0 if it has none."""
        dims, (rows, columns) = dims_of(value), self.matrix
        if prod(dims) not in (rows, rows * columns) or (rows == columns and self._is_of_columns(value)):
            return 0
        return next((count for count in range(1, len(dims) + 1) if prod(dims[:count]) == rows), 0)

    def _is_of_columns(self, value: SSAValue) -> bool:
        """If there are as many columns as rows: whether an array has an element per column."""
        dims = dims_of(value)
        if prod(dims) != self.matrix[1]:
            return False
        pending, seen = [value], {value}
        while pending:
            for user in (use.operation for use in pending.pop().uses):
                match user:
                    case BroadcastOp():
                        if integers(user.properties["dimensions"])[-1:] == (len(dims_of(user.result)) - 1,):
                            return True
                    case HloOp() if is_elementwise(user) and dims_of(user.result) == dims and user.result not in seen:
                        seen.add(user.result)
                        pending.append(user.result)
                    case _:
                        pass
        return False

    def type_of(self, value: SSAValue) -> Attribute:
        dims, leading = dims_of(value), self.leading(value)
        shape = (*(1,) * (leading - 1), self.rows, *dims[leading:]) if leading else dims
        return array_type(as_array(value.type).element_type, shape)

    def entry(self) -> ComputationOp:
        inside = NewComputation()
        for op in (*self.view.parameters, *self.view.instructions):
            if op.result in self.made or isinstance(op, TupleOp):
                continue
            made = type(op).create(
                operands=[self.made[operand] for operand in op.operands],
                result_types=[self.type_of(op.result)],
                properties=op.properties.copy(),
                attributes=op.attributes.copy(),
            )
            self.made[op.result] = inside.insert(made, op)
        results = [self.made[root.result] for root in self.view.roots]
        return inside.finish("main", results, self.view.computation, is_entry=True)
