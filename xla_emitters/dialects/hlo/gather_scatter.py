"""gather and scatter: windows of an array, read or updated at starts that are known only at run time.

    %g = hlo.gather %x, %rows {...} : (tensor<500x64xf32>, tensor<8x1xs32>) -> tensor<8x64xf32>          a window for each row of indices
    %s = hlo.scatter %x, %rows, %u {..., to_apply = @add} : (..., tensor<8x64xf32>) -> tensor<500x64xf32>

A gather clamps its starts, so that every window is inside; a scatter leaves out windows that are not. Updates are applied in row-major
order of the indices. Which of them update an element is known only at run time: the code of one element of a scatter tests all windows.

    %0 = scf.for %window = %c0 to %c8 step %c1 iter_args(%iter = %old) -> (f32) {
      %row = the start of the window                       the element has as its row:
      %is_inside = arith.cmpi eq, %row, %i : index
      %1 = scf.if %is_inside -> (f32) { %iter + the update } else { %iter }

Source: docs/reference/1 3.2, 5.5, 6.8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.build import apply_indexing, clamp_index, constant_index
from xla_emitters.dialects.hlo.base import (
    Call,
    ElementContext,
    HloOp,
    RuleBroken,
    at_least,
    fault,
    integer,
    integers,
)
from xla_emitters.dialects.hlo.called import on_elements
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.shape_rule import Broken, Shape, Sizing, fits_inside, same_axes
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    element_of,
    tuple_type,
    type_text,
)
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.xla_gpu import INDEX
from xla_emitters.dtypes import Array, Kind


def verify_index_map(op: HloOp, indices: int, along: int, mapped: Sequence[int], rank: int, name: str) -> None:
    """Checks the rows of indices, integers along dimension `along`, and `mapped`: for each number of a row, one of `rank` dimensions.

    indices  the number of the operand
    name     the attribute that holds `mapped`
    """
    array = as_array(op.operands[indices].type)
    if not element_of(array).is_integer:
        raise RuleBroken("indices are integers", f"they are {type_text(array)}", operand=indices)
    dims = array.get_shape()
    if not 0 <= along <= len(dims):
        raise RuleBroken(
            f"index_vector_dim={along} is neither a dimension of the indices nor the one after the last",
            operand=indices,
        )
    row = dims[along] if along < len(dims) else 1
    if (
        any(not 0 <= dim < rank for dim in mapped)
        or len(set(mapped)) != len(mapped)
        or row not in (len(mapped), UNBOUNDED)
    ):
        raise RuleBroken(
            f"{name}={{{','.join(map(str, mapped))}}} does not fit",
            f"it names a dimension of {rank} for each number of a row of {row}",
            operand=indices,
        )


def verify_ascending(name: str, numbers: Sequence[int], rank: int) -> None:
    """raises RuleBroken unless `numbers` are dimensions of an array of that rank in ascending order, each once."""
    if list(numbers) != sorted(set(numbers)) or any(not 0 <= dim < rank for dim in numbers):
        raise RuleBroken(
            f"{name}={{{','.join(map(str, numbers))}}} are not dimensions of an array of rank {rank}, in ascending order"
        )


def verify_batching(
    op: HloOp,
    indices: int,
    along: int,
    of_array: DenseArrayBase[Any] | None,
    of_indices: DenseArrayBase[Any] | None,
    names: tuple[str, str],
) -> None:
    """Checks the batching dimensions, pairs of one of operand 0 and one of the indices, other than `along`.

    indices  the number of the operand
    names    the names of the attributes `of_array` and `of_indices`
    """
    pairs = integers(of_array), integers(of_indices)
    rank = len(dims_of(op.operands[indices]))
    if any(not 0 <= dim < rank for dim in pairs[1]) or len(set(pairs[1])) != len(pairs[1]):
        raise RuleBroken(
            f"{names[1]}={{{','.join(map(str, pairs[1]))}}} are not different dimensions of the indices",
            f"they are {type_text(op.operands[indices].type)}",
            operand=indices,
        )
    if along in pairs[1] or len(pairs[0]) != len(pairs[1]):
        raise _unpaired(op, indices, pairs, names)


def _unpaired(
    op: HloOp, indices: int, pairs: tuple[tuple[int, ...], tuple[int, ...]], names: tuple[str, str]
) -> RuleBroken:
    texts = [f"{name}={{{','.join(map(str, numbers))}}}" for name, numbers in zip(names, pairs, strict=True)]
    return RuleBroken(
        f"{texts[0]} and {texts[1]} do not pair dimensions of one size",
        f"the array is {type_text(op.operands[0].type)}, the indices {type_text(op.operands[indices].type)}",
        operand=indices,
    )


def same_batches(
    op: HloOp, s: Sizing, indices: int, of_array: tuple[int, ...], of_indices: tuple[int, ...], names: tuple[str, str]
) -> None:
    """The batching dimensions of operand 0 and of the indices are of the same sizes; arguments as for `verify_batching`."""
    for dim, other in zip(of_array, of_indices, strict=True):
        s.same(s.axis(0, dim), s.axis(indices, other), lambda: _unpaired(op, indices, (of_array, of_indices), names))


GATHER_BATCHES = ("operand_batching_dims", "start_indices_batching_dims")


def gathered(op: HloOp, s: Sizing, slice_sizes: Shape, outside: Broken) -> Shape:
    """The sizes of a gather's result: those of a slice at offset_dims, those of the indices at the others, in order."""
    fits_inside(s, slice_sizes, s.axes(0), outside)
    properties = op.properties
    batching, of_indices = (integers(properties.get(name)) for name in GATHER_BATCHES)
    same_batches(op, s, 1, batching, of_indices, GATHER_BATCHES)
    dropped = {*integers(properties["collapsed_slice_dims"]), *batching}
    along, offsets = integer(properties["index_vector_dim"]), integers(properties["offset_dims"])
    window = [size for dim, size in enumerate(slice_sizes) if dim not in dropped]
    rest = [size for dim, size in enumerate(s.axes(1)) if dim != along]
    found = iter(rest)
    return [window[offsets.index(dim)] if dim in offsets else next(found) for dim in range(len(window) + len(rest))]


@op_definition
class GatherOp(HloOp):
    """Windows of an array, one for each row of start indices."""

    name = "hlo.gather"
    OPERANDS: ClassVar = range(2, 3)
    MOVED: ClassVar = slice(0, 1)
    DEPENDS_ON_SIZES: ClassVar = True

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
        if len(sizes) != len(dims):
            raise self._outside()
        batching, collapsed = integers(self.operand_batching_dims), integers(self.collapsed_slice_dims)
        verify_ascending("collapsed_slice_dims", collapsed, len(dims))
        verify_ascending("operand_batching_dims", batching, len(dims))
        along = self.index_vector_dim.value.data
        verify_batching(
            self,
            1,
            along,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
            GATHER_BATCHES,
        )
        dropped = {*collapsed, *batching}
        if any(sizes[dim] > 1 for dim in dropped):
            raise RuleBroken("a dimension that a gather drops has slice size 1 or 0")
        verify_index_map(
            self,
            1,
            along,
            integers(self.start_index_map),
            len(dims),
            "start_index_map",
        )
        window = [size for dim, size in enumerate(sizes) if dim not in dropped]
        batch = [size for dim, size in enumerate(indices.get_shape()) if dim != along]
        offsets = integers(self.offset_dims)
        rank = len(window) + len(batch)
        if (
            len(offsets) != len(window)
            or any(not 0 <= dim < rank for dim in offsets)
            or list(offsets) != sorted(set(offsets))
        ):
            raise RuleBroken(
                f"offset_dims={{{','.join(map(str, offsets))}}} do not name the {len(window)} dimensions of a slice",
                f"the result is {type_text(self.result.type)}",
            )
        self.expect_type(array_type(operand.element_type, self.inferred_dims()), "slice_sizes and indices give")

    def _outside(self) -> RuleBroken:
        return RuleBroken(
            f"no slice of sizes {{{','.join(map(str, integers(self.slice_sizes)))}}} fits inside the operand",
            f"it is {type_text(self.operands[0].type)}",
            operand=0,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [gathered(self, s, integers(self.slice_sizes), self._outside)]

    @property
    def mapped(self) -> list[int]:
        """The dimensions of the operand in which the windows have starts, ascending."""
        return sorted(integers(self.start_index_map))

    @property
    def last_starts(self) -> list[int]:
        """The greatest start in each of the `mapped` dimensions; a dropped dimension takes one element."""
        sizes, dims = integers(self.slice_sizes), dims_of(self.operands[0])
        return [dims[dim] - max(1, sizes[dim]) for dim in self.mapped]

    def _batch(self) -> list[int]:
        """The dimensions of the result that number the windows."""
        return [dim for dim in range(len(dims_of(self.result))) if dim not in integers(self.offset_dims)]

    def start_map(self) -> IndexingMap:
        """From an index of the result and a number's position in its row of starts (range variable) to the number's index."""
        whole, along = identity_map(dims_of(self.result)), self.index_vector_dim.value.data
        row = Expr.variable(len(whole.dims))
        results = [whole.results[dim] for dim in self._batch()]
        if along < len(dims_of(self.operands[1])):
            results.insert(along, row)
        length = len(integers(self.start_index_map))
        return IndexingMap(tuple(results), whole.dims, (Variable(Interval(0, length - 1)),))

    def element_map(self) -> IndexingMap:
        """From an index of the result and the window's clamped starts (runtime variables) to an index of the operand."""
        whole = identity_map(dims_of(self.result))
        offsets, batch = iter(integers(self.offset_dims)), self._batch()
        batching = integers(self.operand_batching_dims)
        along = self.index_vector_dim.value.data
        rows = [dim for dim in range(len(dims_of(self.operands[1]))) if dim != along]
        dropped = {*integers(self.collapsed_slice_dims), *batching}
        results = list[Expr]()
        for dim in range(len(dims_of(self.operands[0]))):
            at = Expr.constant(0) if dim in dropped else whole.results[next(offsets)]
            if dim in batching:
                row = integers(self.start_indices_batching_dims)[batching.index(dim)]
                at = whole.results[batch[rows.index(row)]]
            if dim in self.mapped:
                at = at + Expr.variable(len(whole.dims) + self.mapped.index(dim))
            results.append(at)
        starts = tuple(Variable(Interval(0, last)) for last in self.last_starts)
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        array, rows = operands
        sizes, shape = integers(self.slice_sizes), dims_of(self.result)
        if any(map(int.__gt__, sizes, array.shape)):
            raise fault(self, f"no slice of {list(sizes)} fits inside {list(array.shape)}")
        where, of_start = np.indices(shape), self.start_map()
        starts = list[Array]()
        for dim, last in zip(self.mapped, self.last_starts, strict=True):
            number = integers(self.start_index_map).index(dim)
            place = tuple(np.broadcast_to(np.asarray(part), shape) for part in of_start.evaluate([*where], [number]))
            # As Python numbers: not every integer type can be compared with `last`.
            starts.append(np.clip(rows[place].astype(object), 0, max(last, 0)).astype(np.int64))
        at = self.element_map().evaluate([*where], starts)
        return array[tuple(np.broadcast_to(np.asarray(part), shape) for part in at)]

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        return (self.element_map(), self.start_map())

    def runtime_origins(self, operand: int) -> tuple[tuple[int, IndexingMap], ...]:
        if operand != 0:
            return ()
        rows, numbers = self.start_map(), integers(self.start_index_map)
        dims = [Expr.variable(number) for number in range(rows.num_dims)]
        return tuple(
            (1, rows.with_variables_replaced([*dims, Expr.constant(numbers.index(dim))], dims=rows.dims))
            for dim in self.mapped
        )

    def reads_apart(self, operand: int) -> bool:
        return True

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        of_start, is_unsigned = self.start_map(), element_of(self.operands[1]).kind is Kind.UNSIGNED
        starts = list[SSAValue]()
        for dim, last in zip(self.mapped, self.last_starts, strict=True):
            if last <= 0:
                starts.append(constant_index(e.builder, 0))
                continue
            number = constant_index(e.builder, integers(self.start_index_map).index(dim))
            value = e.operand(1, apply_indexing(e.builder, of_start, [*e.indices, number]))
            starts.append(clamp_index(e.builder, value, last, is_unsigned=is_unsigned))
        return (e.operand(0, apply_indexing(e.builder, self.element_map(), [*e.indices, *starts])),)


SCATTER_BATCHES = ("input_batching_dims", "scatter_indices_batching_dims")


@op_definition
class ScatterOp(CallingOp):
    """n arrays whose windows, at starts known only at run time, are combined with updates; operands: arrays, indices, updates."""

    name = "hlo.scatter"
    OPERANDS: ClassVar = at_least(3)
    DEPENDS_ON_SIZES: ClassVar = True

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
                "'scatter' takes n arrays, the indices and n updates", f"it has {len(self.operands)} operands"
            )
        arrays = [operand.type for operand in self.operands[:count]]
        self.expect_type(arrays[0] if count == 1 else tuple_type(arrays), "its operands are")
        indices = as_array(self.operands[count].type)
        along = self.index_vector_dim.value.data
        batch = indices.get_num_dims() - (along < indices.get_num_dims())
        window = integers(self.update_window_dims)
        dims = dims_of(arrays[0])
        verify_index_map(
            self, count, along, integers(self.scatter_dims_to_operand_dims), len(dims), "scatter_dims_to_operand_dims"
        )
        verify_ascending("inserted_window_dims", integers(self.inserted_window_dims), len(dims))
        verify_ascending("input_batching_dims", integers(self.input_batching_dims), len(dims))
        verify_batching(
            self,
            count,
            along,
            self.input_batching_dims,
            self.scatter_indices_batching_dims,
            SCATTER_BATCHES,
        )
        dropped = {*integers(self.inserted_window_dims), *integers(self.input_batching_dims)}
        for i, array in enumerate(arrays[1:], 1):
            if len(dims_of(array)) != len(dims):
                raise self._arrays_differ(i)
        for i, update in enumerate(self.operands[count + 1 :], count + 1):
            verify_ascending("update_window_dims", window, len(dims_of(update)))
            if len(window) != len(dims) - len(dropped):
                raise self._outside(i)
            if as_array(update.type).element_type != as_array(arrays[i - count - 1]).element_type:
                raise RuleBroken(
                    "the updates are of another type than the array",
                    f"updates are {type_text(update.type)}, the array {type_text(arrays[i - count - 1])}",
                    operand=i,
                )
            if len(dims_of(update)) - len(window) != batch:
                raise self._updates_misfit(i)
        self.inferred_shapes()

    def _outside(self, update: int) -> RuleBroken:
        types = (type_text(self.operands[i].type) for i in (update, 0))
        return RuleBroken(
            "the windows of the updates do not fit inside the array",
            "updates are {}, the array {}".format(*types),
            operand=update,
        )

    def _updates_misfit(self, update: int) -> RuleBroken:
        types = (type_text(value.type) for value in (self.operands[update], self.indices))
        return RuleBroken(
            "the updates do not fit the indices", "updates are {}, indices {}".format(*types), operand=update
        )

    def _arrays_differ(self, array: int) -> RuleBroken:
        first, other = (type_text(self.operands[i].type) for i in (0, array))
        return RuleBroken(
            "the arrays of 'scatter' differ in shape",
            f"operand {array} is {other}; operand 0 is {first}",
            operand=array,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        """As the arrays; a window of the updates for each row of indices, and it fits into them."""
        count = len(self.operands) // 2
        found = same_axes(s, range(count), self._arrays_differ)
        batching, of_indices = integers(self.input_batching_dims), integers(self.scatter_indices_batching_dims)
        same_batches(self, s, count, batching, of_indices, SCATTER_BATCHES)
        dropped = {*integers(self.inserted_window_dims), *batching}
        limits = [size for dim, size in enumerate(found) if dim not in dropped]
        along, windows = self.index_vector_dim.value.data, integers(self.update_window_dims)
        rows = [size for dim, size in enumerate(s.axes(count)) if dim != along]
        same_axes(s, range(count + 1, len(self.operands)), self._updates_misfit)
        for i in range(count + 1, len(self.operands)):
            sizes, misfit, outside = s.axes(i), partial(self._updates_misfit, i), partial(self._outside, i)
            kept = [size for dim, size in enumerate(sizes) if dim not in windows]
            for size, row in zip(kept, rows, strict=True):
                s.same(size, row, misfit)
            fits_inside(s, [sizes[dim] for dim in windows], limits, outside)
        return [found] * count

    @property
    def arrays(self) -> Sequence[SSAValue]:
        return self.operands[: len(self.operands) // 2]

    @property
    def indices(self) -> SSAValue:
        return self.operands[len(self.operands) // 2]

    @property
    def updates(self) -> Sequence[SSAValue]:
        return self.operands[len(self.operands) // 2 + 1 :]

    @property
    def has_unique_indices(self) -> bool:
        """Whether the program promises that no element has two updates."""
        return self.unique_indices is not None and bool(self.unique_indices.value.data)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the program promises that the windows are in ascending order."""
        return self.indices_are_sorted is not None and bool(self.indices_are_sorted.value.data)

    @property
    def mapped(self) -> tuple[int, ...]:
        """The dimension of the arrays for each number of a row of indices."""
        return integers(self.scatter_dims_to_operand_dims)

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """The dimensions of the updates that number the rows of indices."""
        rank = len(dims_of(self.updates[0]))
        return tuple(dim for dim in range(rank) if dim not in integers(self.update_window_dims))

    @property
    def window_sizes(self) -> tuple[int, ...]:
        """The size of a window in each dimension of the arrays."""
        dropped = {*integers(self.inserted_window_dims), *integers(self.input_batching_dims)}
        sizes = iter([dims_of(self.updates[0])[dim] for dim in integers(self.update_window_dims)])
        return tuple(1 if dim in dropped else next(sizes) for dim in range(len(dims_of(self.arrays[0]))))

    @property
    def windows(self) -> int:
        """The number of windows."""
        return math.prod(dims_of(self.updates[0])[dim] for dim in self.scatter_dims)

    @property
    def last_starts(self) -> tuple[int, ...]:
        """The greatest start, in each of the `mapped` dimensions, of a window that is inside the array."""
        sizes, dims = self.window_sizes, dims_of(self.arrays[0])
        return tuple(dims[dim] - sizes[dim] for dim in self.mapped)

    def start_map(self) -> IndexingMap:
        """From an index of the updates and a number's position in its row of indices (range variable) to the number's index."""
        whole, along = identity_map(dims_of(self.updates[0])), self.index_vector_dim.value.data
        results = [whole.results[dim] for dim in self.scatter_dims]
        if along < len(dims_of(self.indices)):
            results.insert(along, Expr.variable(len(whole.dims)))
        return IndexingMap(tuple(results), whole.dims, (Variable(Interval(0, len(self.mapped) - 1)),))

    def update_to_result(self) -> IndexingMap:
        """From an index of the updates and the starts of its window (runtime variables) to an index of the arrays."""
        whole = identity_map(dims_of(self.updates[0]))
        inserted, batching = integers(self.inserted_window_dims), integers(self.input_batching_dims)
        window = iter(integers(self.update_window_dims))
        along = self.index_vector_dim.value.data
        rows = [dim for dim in range(len(dims_of(self.indices))) if dim != along]
        results = list[Expr]()
        for dim in range(len(dims_of(self.arrays[0]))):
            if dim in batching:
                row = integers(self.scatter_indices_batching_dims)[batching.index(dim)]
                at = whole.results[self.scatter_dims[rows.index(row)]]
            else:
                at = Expr.constant(0) if dim in inserted else whole.results[next(window)]
            if dim in self.mapped:
                at = at + Expr.variable(len(whole.dims) + self.mapped.index(dim))
            results.append(at)
        starts = tuple(Variable(Interval(0, last)) for last in self.last_starts)
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)

    def _windows(self) -> tuple[list[Expr], list[Variable]]:
        """Index of a window, one expression per dimension of `scatter_dims`, from an index of the arrays and symbols; and the symbols."""
        along, rank = self.index_vector_dim.value.data, len(dims_of(self.arrays[0]))
        of_arrays, of_rows = integers(self.input_batching_dims), integers(self.scatter_indices_batching_dims)
        place, symbols = list[Expr](), list[Variable]()
        for row in (dim for dim in range(len(dims_of(self.indices))) if dim != along):
            if row in of_rows:
                place.append(Expr.variable(of_arrays[of_rows.index(row)]))
            else:
                place.append(Expr.variable(rank + len(symbols)))
                symbols.append(Variable(Interval(0, dims_of(self.indices)[row] - 1), "window"))
        return place, symbols

    def window_map(self) -> IndexingMap:
        """From an index of the arrays to the windows (symbols) that may contain it; in dimensions without starts a window is at 0."""
        whole, (place, symbols) = identity_map(dims_of(self.arrays[0])), self._windows()
        bounds = [
            (whole.results[dim], Interval(0, size - 1))
            for dim, size in enumerate(self.window_sizes)
            if dim not in self.mapped and dim not in integers(self.input_batching_dims)
        ]
        return IndexingMap(tuple(place), whole.dims, tuple(symbols), constraints=tuple(bounds)).simplify()

    def result_to_start(self) -> IndexingMap:
        """From an index of the arrays, a window and a number's position in its row (symbols) to the number's index."""
        whole, (place, symbols) = identity_map(dims_of(self.arrays[0])), self._windows()
        along = self.index_vector_dim.value.data
        number = Variable(Interval(0, len(self.mapped) - 1))
        if along < len(dims_of(self.indices)):
            place.insert(along, Expr.variable(len(whole.dims) + len(symbols)))
        return IndexingMap(tuple(place), whole.dims, (*symbols, number))

    def result_to_update(self) -> IndexingMap:
        """From an index of the arrays, a window and the index's distance from the window's starts (symbols) to an index of the updates."""
        whole, (place, symbols) = identity_map(dims_of(self.arrays[0])), self._windows()
        dropped = {*integers(self.inserted_window_dims), *integers(self.input_batching_dims)}
        sizes = self.window_sizes
        offsets = [Variable(Interval(0, sizes[dim] - 1)) for dim in self.mapped]
        behind = [
            Expr.variable(len(whole.dims) + len(symbols) + self.mapped.index(dim))
            if dim in self.mapped
            else whole.results[dim]
            for dim in range(len(whole.dims))
            if dim not in dropped
        ]
        of_window, windows = iter(behind), iter(place)
        results = tuple(
            next(windows) if dim in self.scatter_dims else next(of_window)
            for dim in range(len(dims_of(self.updates[0])))
        )
        return IndexingMap(results, whole.dims, (*symbols, *offsets), constraints=self.window_map().constraints)

    def places(self, indices: Array) -> tuple[Array, Array]:
        """Flat numbers of the updates' elements, window after window, and of the arrays' elements that they update.

        Elements of a window that is not inside the arrays are left out.
        """
        shape, windows = dims_of(self.updates[0]), integers(self.update_window_dims)
        order = [*self.scatter_dims, *windows]
        numbers = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape).transpose(order).reshape(-1)
        where = np.unravel_index(numbers, shape) if shape else ()
        inside = np.ones(numbers.shape, np.bool_)
        starts = list[Array]()
        for number, last in enumerate(self.last_starts):
            place = tuple(
                np.broadcast_to(part, numbers.shape) for part in self.start_map().evaluate([*where], [number])
            )
            # As Python numbers: not every integer type can be compared with `last`.
            start = np.asarray(indices[place]).astype(object)
            inside &= ((start >= 0) & (start <= last)).astype(np.bool_)
            starts.append(np.where(inside, start, 0).astype(np.int64))
        at = self.update_to_result().evaluate([*where], starts)
        found, sizes = numbers[inside], dims_of(self.arrays[0])
        # Only for elements inside: in an empty array no element has a number.
        kept = tuple(np.broadcast_to(part, numbers.shape)[inside] for part in at)
        return found, np.ravel_multi_index(kept, sizes) if sizes else 0 * found

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """As `update`, on copies of the arrays."""
        results = [array.copy() for array in operands[: len(self.arrays)]]
        self.update(results, operands, call)
        return tuple(results) if len(results) > 1 else results[0]

    def update(self, results: Sequence[Array], operands: Sequence[Any], call: Call) -> None:
        """Applies the updates to `results`, which hold the arrays: in row-major order of the indices.

        The k-th updates of all elements are combined at once.
        """
        count = len(self.arrays)
        updates, targets = self.places(operands[count])
        combine = on_elements(self, self.to_apply, call)
        for turn in turns(targets):
            at = np.unravel_index(targets[turn], results[0].shape) if results[0].ndim else ()
            given = [array.reshape(-1)[updates[turn]] for array in operands[count + 1 :]]
            old = [np.broadcast_to(result[at], turn.shape) for result in results]
            for result, new in zip(results, combine([*old, *given]), strict=True):
                result[at] = new if result.ndim else new[0]

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """Everything that an element may need: the windows that contain it are known only at run time."""
        count, of_update = len(self.arrays), self.result_to_update()
        return (identity_map(dims_of(self.arrays[0])),) * count + (self.result_to_start(), *(of_update,) * count)

    def reads_apart(self, operand: int) -> bool:
        return operand >= len(self.arrays)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        count, windows = len(self.arrays), self.window_map()
        sizes = self.window_sizes

        def step(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            offsets, checks = list[SSAValue](), list[SSAValue]()
            for number, (dim, last) in enumerate(zip(self.mapped, self.last_starts, strict=True)):
                row = [*e.indices, *symbols, constant_index(e.builder, number)]
                value = e.operand(count, apply_indexing(e.builder, self.result_to_start(), row))
                start = self.start_as_index(e.builder, value)
                if sizes[dim] == 1:
                    offsets.append(constant_index(e.builder, 0))
                    checks.append(e.insert(arith.CmpiOp(start, e.indices[dim], "eq")).result)
                    continue
                offsets.append(e.insert(arith.SubiOp(e.indices[dim], start)).result)
                for value, most in ((start, last), (offsets[-1], sizes[dim] - 1)):
                    checks.append(e.insert(arith.CmpiOp(value, constant_index(e.builder, most), "ule")).result)

            def combined() -> Sequence[SSAValue]:
                at = apply_indexing(e.builder, self.result_to_update(), [*e.indices, *symbols, *offsets])
                updates = [e.operand(count + 1 + i, at) for i in range(count)]
                return e.call(self.to_apply.root_reference.data, [*carried, *updates])

            if not checks:
                return combined()
            is_inside, *others = checks
            for check in others:
                is_inside = e.insert(arith.AndIOp(is_inside, check)).result
            return e.branch(is_inside, combined, lambda: carried)

        old = [e.operand(i) for i in range(count)]
        is_empty = windows.is_known_empty or 0 in dims_of(self.updates[0])
        return old if is_empty else e.loop(windows, old, step)

    def start_as_index(self, builder: Builder, value: SSAValue) -> SSAValue:
        """A number of a row of indices as an index value."""
        is_unsigned = element_of(self.indices).kind is Kind.UNSIGNED
        cast = IndexCastUIOp(value, INDEX) if is_unsigned else arith.IndexCastOp(value, INDEX)
        return builder.insert(cast).results[0]


def turns(keys: Array) -> Iterator[Array]:
    """Positions in the 1-d `keys`, in groups: the keys of a group are different, and positions of equal keys are in order."""
    order = np.argsort(keys, kind="stable")
    first = np.ones(keys.size, np.bool_)
    first[1:] = keys[order[1:]] != keys[order[:-1]]
    place = np.arange(keys.size)
    rounds = place - np.maximum.accumulate(np.where(first, place, 0))
    by_round = order[np.argsort(rounds, kind="stable")]
    start = 0
    for size in np.bincount(rounds).tolist():
        yield by_round[start : start + size]
        start += size


OPS: tuple[type[HloOp], ...] = (GatherOp, ScatterOp)
