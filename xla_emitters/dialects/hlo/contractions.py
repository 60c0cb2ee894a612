"""Ops whose elements each need many elements of their operands: reduce, reduce-window, dot, convolution, gather, scatter.

    %s = hlo.reduce %x, %zero {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>

They parse, verify their shapes and print.
Source: spec/1 3.2, 3.6, 6.8.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, SymbolRefAttr
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def

from xla_emitters.dialects.hlo.base import HloOp, RuleBroken, at_least, integers
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    has_dynamic_dims,
    same_dims,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import WindowAttr


class ReducingOp(CallingOp):
    """n arrays and n initial values, combined by a computation of 2n scalars that gives n."""

    OPERANDS: ClassVar = at_least(2)
    to_apply = prop_def(SymbolRefAttr)

    def callees(self) -> tuple[Callee, ...]:
        results = [scalar_of(part) for part in tuple_types(self.result.type)]
        values = [scalar_of(operand.type) for operand in self.operands[: len(self.operands) // 2]]
        return (Callee(self.to_apply, [*results, *values], scalar_of(self.result.type)),)

    def verify_shape(self) -> None:
        if len(self.operands) % 2:
            raise RuleBroken(
                f"'{self.opcode}' takes as many initial values as arrays",
                details=(f"it has {len(self.operands)} operands",),
            )
        half = len(self.operands) // 2
        first = dims_of(self.operands[0])
        for i in range(half):
            array, init = as_array(self.operands[i].type), as_array(self.operands[half + i].type)
            if not same_dims(array.get_shape(), first):
                raise RuleBroken(
                    f"the arrays of '{self.opcode}' differ in shape",
                    operand=i,
                    details=(f"operand {i} is {type_text(array)}; operand 0 is {type_text(self.operands[0].type)}",),
                )
            if init.get_shape():
                raise RuleBroken(
                    "an initial value is a scalar", operand=half + i, details=(f"it is {type_text(init)}",)
                )
        wanted = self.reduced_dims(first)
        elements = [as_array(init.type).element_type for init in self.operands[half:]]
        parts = [array_type(element, wanted) for element in elements]
        self.expect_type(parts[0] if half == 1 else tuple_type(parts), "its operands give")

    @abstractmethod
    def reduced_dims(self, dims: Sequence[int]) -> Sequence[int]:
        """The sizes of the result from those of the arrays."""


@irdl_op_definition
class ReduceOp(ReducingOp):
    """Combines all elements along some dimensions."""

    name = "hlo.reduce"
    dimensions = prop_def(DenseArrayBase)

    def reduced_dims(self, dims: Sequence[int]) -> Sequence[int]:
        reduced = integers(self.dimensions)
        if any(not 0 <= dim < len(dims) for dim in reduced) or len(set(reduced)) != len(reduced):
            raise RuleBroken(
                f"dimensions={{{','.join(map(str, reduced))}}} of 'reduce' are not different dimensions of its operand",
                operand=0,
                details=(f"it is {type_text(self.operands[0].type)}",),
            )
        return [size for dim, size in enumerate(dims) if dim not in reduced]


@irdl_op_definition
class ReduceWindowOp(ReducingOp):
    """Combines all elements in a window, at every place of the window."""

    name = "hlo.reduce_window"
    window = prop_def(WindowAttr)

    def reduced_dims(self, dims: Sequence[int]) -> Sequence[int]:
        window = self.window.data.dims
        if len(window) != len(dims):
            raise RuleBroken(f"a window of {len(window)} dimensions over {type_text(self.operands[0].type)}", operand=0)
        return [
            UNBOUNDED if size == UNBOUNDED else along.output_size(size)
            for size, along in zip(dims, window, strict=True)
        ]


@dataclass(frozen=True)
class DotDimensions:
    """Which dimensions of its operands a dot pairs: batch dimensions side by side, contracting ones summed over.

    lhs, rhs  the numbers of the operands
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs: int = 0
    rhs: int = 1

    def result_dims(self, op: HloOp, skip: Sequence[int] = ()) -> list[int]:
        """Batch dimensions, then free ones of lhs, then of rhs but for `skip`; raises RuleBroken when the operands do not fit."""
        values = op.operands[self.lhs], op.operands[self.rhs]
        lhs, rhs = (dims_of(value) for value in values)
        taken = self.lhs_batch + self.lhs_contracting, (*self.rhs_batch, *self.rhs_contracting, *skip)
        for operand, dims, used in zip((self.lhs, self.rhs), (lhs, rhs), taken, strict=True):
            if any(not 0 <= dim < len(dims) for dim in used) or len(set(used)) != len(used):
                raise RuleBroken(
                    "batch and contracting dimensions are not different dimensions of the operand",
                    operand=operand,
                    details=(f"it is {type_text(op.operands[operand].type)}",),
                )
        pairs = (self.lhs_batch, self.rhs_batch), (self.lhs_contracting, self.rhs_contracting)
        if not all(same_dims([lhs[dim] for dim in a], [rhs[dim] for dim in b]) for a, b in pairs):
            raise RuleBroken(
                "the operands differ in a batch or contracting dimension",
                operand=self.rhs,
                details=(f"lhs is {type_text(values[0].type)}, rhs {type_text(values[1].type)}",),
            )
        free = [[size for dim, size in enumerate(d) if dim not in t] for d, t in zip((lhs, rhs), taken, strict=True)]
        return [*(lhs[dim] for dim in self.lhs_batch), *free[0], *free[1]]


@irdl_op_definition
class DotOp(HloOp):
    """Sums of products over the contracting dimensions; result: batch dimensions, then free ones of lhs, then of rhs."""

    name = "hlo.dot"
    OPERANDS: ClassVar = range(2, 3)

    lhs_batch_dims = opt_prop_def(DenseArrayBase)
    rhs_batch_dims = opt_prop_def(DenseArrayBase)
    lhs_contracting_dims = opt_prop_def(DenseArrayBase)
    rhs_contracting_dims = opt_prop_def(DenseArrayBase)
    operand_precision = opt_prop_def(StringAttr)
    algorithm = opt_prop_def(StringAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        dimensions = DotDimensions(
            _numbers(self.lhs_batch_dims),
            _numbers(self.rhs_batch_dims),
            _numbers(self.lhs_contracting_dims),
            _numbers(self.rhs_contracting_dims),
        )
        self.expect_dims(dimensions.result_dims(self), "its operands give")


def _numbers(attribute: DenseArrayBase[Any] | None) -> tuple[int, ...]:
    return integers(attribute) if attribute else ()


@irdl_op_definition
class ConvolutionOp(HloOp):
    """Sums of products of a kernel that slides over an array, over spatial dimensions and features."""

    name = "hlo.convolution"
    OPERANDS: ClassVar = range(2, 3)

    dim_labels = prop_def(StringAttr)
    window = opt_prop_def(WindowAttr)
    feature_group_count = opt_prop_def(IntegerAttr)
    batch_group_count = opt_prop_def(IntegerAttr)
    operand_precision = opt_prop_def(StringAttr)
    algorithm = opt_prop_def(StringAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        labels = self.dim_labels.data.replace("->", "_").split("_")
        values = (*self.operands, self.result)
        if len(labels) != 3 or any(
            len(label) != len(dims_of(value)) or len(set(label)) != len(label)
            for label, value in zip(labels, values, strict=True)
        ):
            raise RuleBroken(
                f"dim_labels={self.dim_labels.data} do not name each dimension once",
                details=tuple(type_text(value.type) for value in values),
            )


@irdl_op_definition
class GatherOp(HloOp):
    """Windows of an array, one for each row of start indices."""

    name = "hlo.gather"
    OPERANDS: ClassVar = range(2, 3)

    offset_dims = prop_def(DenseArrayBase)
    collapsed_slice_dims = prop_def(DenseArrayBase)
    start_index_map = prop_def(DenseArrayBase)
    operand_batching_dims = opt_prop_def(DenseArrayBase)
    start_indices_batching_dims = opt_prop_def(DenseArrayBase)
    index_vector_dim = prop_def(IntegerAttr)
    slice_sizes = prop_def(DenseArrayBase)
    indices_are_sorted = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        operand, indices = (as_array(value.type) for value in self.operands)
        sizes = integers(self.slice_sizes)
        dims = operand.get_shape()
        if len(sizes) != len(dims) or any(UNBOUNDED != whole < size for size, whole in zip(sizes, dims, strict=True)):
            raise RuleBroken(
                f"no slice of sizes {{{','.join(map(str, sizes))}}} lies inside the operand",
                operand=0,
                details=(f"it is {type_text(operand)}",),
            )
        batching = integers(self.operand_batching_dims) if self.operand_batching_dims else ()
        dropped = {*integers(self.collapsed_slice_dims), *batching}
        window = [size for dim, size in enumerate(sizes) if dim not in dropped]
        along = self.index_vector_dim.value.data
        batch = [size for dim, size in enumerate(indices.get_shape()) if dim != along]
        offsets = integers(self.offset_dims)
        rank = len(window) + len(batch)
        if (
            len(offsets) != len(window)
            or any(not 0 <= dim < rank for dim in offsets)
            or len(set(offsets)) != len(offsets)
        ):
            raise RuleBroken(
                f"offset_dims={{{','.join(map(str, offsets))}}} do not name the {len(window)} dimensions of a slice",
                details=(f"the result is {type_text(self.result.type)}",),
            )
        rest = iter(batch)
        wanted = [window[offsets.index(dim)] if dim in offsets else next(rest) for dim in range(rank)]
        self.expect_type(array_type(operand.element_type, wanted), "slice_sizes and indices give")


@irdl_op_definition
class ScatterOp(CallingOp):
    """n arrays with windows combined with updates, at places that the run knows; operands: arrays, indices, updates."""

    name = "hlo.scatter"
    OPERANDS: ClassVar = at_least(3)

    to_apply = prop_def(SymbolRefAttr)
    update_window_dims = prop_def(DenseArrayBase)
    inserted_window_dims = opt_prop_def(DenseArrayBase)
    scatter_dims_to_operand_dims = prop_def(DenseArrayBase)
    input_batching_dims = opt_prop_def(DenseArrayBase)
    scatter_indices_batching_dims = opt_prop_def(DenseArrayBase)
    index_vector_dim = prop_def(IntegerAttr)
    indices_are_sorted = opt_prop_def(IntegerAttr)
    unique_indices = opt_prop_def(IntegerAttr)

    def callees(self) -> tuple[Callee, ...]:
        count = len(self.operands) // 2
        scalars = [scalar_of(operand.type) for operand in self.operands]
        return (Callee(self.to_apply, [*scalars[:count], *scalars[count + 1 :]], scalar_of(self.result.type)),)

    def verify_shape(self) -> None:
        count = len(self.operands) // 2
        if len(self.operands) != 2 * count + 1:
            raise RuleBroken(
                "'scatter' takes n arrays, the indices and n updates",
                details=(f"it has {len(self.operands)} operands",),
            )
        arrays = [operand.type for operand in self.operands[:count]]
        self.expect_type(arrays[0] if count == 1 else tuple_type(arrays), "its operands are")
        indices = as_array(self.operands[count].type)
        along = self.index_vector_dim.value.data
        batch = [size for dim, size in enumerate(indices.get_shape()) if dim != along]
        window = integers(self.update_window_dims)
        for i, update in enumerate(self.operands[count + 1 :], count + 1):
            dims = dims_of(update)
            rest = [size for dim, size in enumerate(dims) if dim not in window]
            if not has_dynamic_dims(update.type) and rest != batch:
                raise RuleBroken(
                    "the updates do not fit the indices",
                    operand=i,
                    details=(f"updates are {type_text(update.type)}, indices {type_text(indices)}",),
                )


OPS: tuple[type[HloOp], ...] = (ReduceOp, ReduceWindowOp, DotOp, ConvolutionOp, GatherOp, ScatterOp)
