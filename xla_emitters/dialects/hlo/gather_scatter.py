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
from collections.abc import Iterable, Iterator, Sequence
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
    are_dimensions,
    at_least,
    fault,
    integer,
    integers,
)
from xla_emitters.dialects.hlo.called import on_elements
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.shape_rule import Broken, Number, Shape, Sizing, fits_inside, same_axes
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of, element_of, tuple_type, type_text
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.xla_gpu import INDEX
from xla_emitters.dtypes import Array, Kind


class IndexedWindows:
    """Windows of operand 0, the array, one for each row of indices, as the attributes of an op describe them.

    indices   number of the operand with the rows: numbers along its dimension `along`; one after the last: a row is one number
    window    dimensions of the array of all windows (a gather's result, a scatter's updates) that are those of a window
    mapped    for each number of a row, the dimension of the array in which it is a start
    dropped   dimensions of the array that a window lacks: it has one element there
    batching  those of them that are paired with the dimensions `batched` of the indices, instead of having a start
    """

    def __init__(self, op: HloOp, indices: int, names: Sequence[str]):
        """names: of the attributes with `window`, `mapped`, the `dropped` dimensions but the batching ones, `batching` and `batched`"""
        self.op, self.indices, self.names = op, indices, names
        found = [integers(op.properties.get(name)) for name in names]
        self.window, self.mapped, self.collapsed, self.batching, self.batched = found
        self.along = integer(op.properties["index_vector_dim"])
        self.dropped = {*self.collapsed, *self.batching}

    # ----------------------------------------------------------------------------------------------------------- rule

    def verify(self) -> None:
        """raises RuleBroken unless the indices are integers, and the attributes name dimensions of them and of the array, in pairs."""
        rank, indices = len(dims_of(self.op.operands[0])), as_array(self.op.operands[self.indices].type)
        dims = indices.get_shape()
        if not element_of(indices).is_integer:
            raise self._broken("indices are integers", f"they are {type_text(indices)}")
        if not 0 <= self.along <= len(dims):
            raise self._broken(
                f"index_vector_dim={self.along} is neither a dimension of the indices nor the one after the last"
            )
        row = dims[self.along] if self.along < len(dims) else 1
        if not are_dimensions(self.mapped, rank) or row not in (len(self.mapped), UNBOUNDED):
            raise self._broken(
                f"{self._said(1)} does not fit", f"it names a dimension of {rank} for each number of a row of {row}"
            )
        for number, dropped in ((2, self.collapsed), (3, self.batching)):
            verify_ascending(self.names[number], dropped, rank)
        if not are_dimensions(self.batched, len(dims)):
            raise self._broken(
                f"{self._said(4)} are not different dimensions of the indices", f"they are {type_text(indices)}"
            )
        if self.along in self.batched or len(self.batching) != len(self.batched):
            raise self._unpaired()

    def _said(self, number: int) -> str:
        """An attribute as it is written."""
        return f"{self.names[number]}={{{','.join(map(str, integers(self.op.properties.get(self.names[number]))))}}}"

    def _broken(self, message: str, *details: str) -> RuleBroken:
        return RuleBroken(message, *details, operand=self.indices)

    def _unpaired(self) -> RuleBroken:
        array, indices = (type_text(self.op.operands[operand].type) for operand in (0, self.indices))
        return self._broken(
            f"{self._said(3)} and {self._said(4)} do not pair dimensions of one size",
            f"the array is {array}, the indices {indices}",
        )

    def rows(self, s: Sizing) -> list[Number]:
        """The sizes of the indices without `along`. States that batching dimensions of the array and of the indices are of one size."""
        for dim, other in zip(self.batching, self.batched, strict=True):
            s.same(s.axis(0, dim), s.axis(self.indices, other), self._unpaired)
        return [size for dim, size in enumerate(s.axes(self.indices)) if dim != self.along]

    # ----------------------------------------------------------------------------------------------------------- maps

    @property
    def row_dims(self) -> list[int]:
        """The dimensions of the indices that number the rows."""
        return [dim for dim in range(len(dims_of(self.op.operands[self.indices]))) if dim != self.along]

    def numbering(self, all_windows: Sequence[int]) -> list[int]:
        """The dimensions of the array of all windows, of these sizes, that number the windows: one for each of `row_dims`."""
        return [dim for dim in range(len(all_windows)) if dim not in self.window]

    def window_sizes(self, sizes: Iterable[int]) -> tuple[int, ...]:
        """The size of a window in each dimension of the array; `sizes`: those of its own dimensions."""
        own = iter(sizes)
        return tuple(1 if dim in self.dropped else next(own) for dim in range(len(dims_of(self.op.operands[0]))))

    def start_map(self, all_windows: Sequence[int]) -> IndexingMap:
        """From an index of the array of all windows and a number's position in its row (range variable) to the number's index."""
        whole = identity_map(all_windows)
        results = [whole.results[dim] for dim in self.numbering(all_windows)]
        if self.along < len(dims_of(self.op.operands[self.indices])):
            results.insert(self.along, Expr.variable(len(whole.dims)))
        return IndexingMap(tuple(results), whole.dims, (Variable(Interval(0, len(self.mapped) - 1)),))

    def element_map(self, all_windows: Sequence[int], last_starts: Sequence[int]) -> IndexingMap:
        """From an index of the array of all windows and the starts of its window (runtime variables) to an index of the array."""
        whole, window = identity_map(all_windows), iter(self.window)
        row_of = dict(zip(self.row_dims, self.numbering(all_windows), strict=True))
        results = list[Expr]()
        for dim in range(len(dims_of(self.op.operands[0]))):
            if dim in self.batching:
                at = whole.results[row_of[self.batched[self.batching.index(dim)]]]
            else:
                at = Expr.constant(0) if dim in self.dropped else whole.results[next(window)]
            if dim in self.mapped:
                at = at + Expr.variable(len(whole.dims) + self.mapped.index(dim))
            results.append(at)
        starts = tuple(Variable(Interval(0, last)) for last in last_starts)
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)


def verify_ascending(name: str, numbers: Sequence[int], rank: int) -> None:
    """raises RuleBroken unless `numbers` are dimensions of an array of that rank in ascending order, each once."""
    if not are_dimensions(numbers, rank) or list(numbers) != sorted(numbers):
        raise RuleBroken(
            f"{name}={{{','.join(map(str, numbers))}}} are not dimensions of an array of rank {rank}, in ascending order"
        )


OF_GATHER = (
    *("offset_dims", "start_index_map", "collapsed_slice_dims"),
    *("operand_batching_dims", "start_indices_batching_dims"),
)


def gathered(op: HloOp, s: Sizing, slice_sizes: Shape, outside: Broken) -> Shape:
    """The sizes of a gather's result: those of a slice at offset_dims, those of the indices at the others, in order."""
    fits_inside(s, slice_sizes, s.axes(0), outside)
    windows = IndexedWindows(op, 1, OF_GATHER)
    rows = iter(windows.rows(s))
    slices = [size for dim, size in enumerate(slice_sizes) if dim not in windows.dropped]
    rank = len(slices) + len(windows.row_dims)
    return [slices[windows.window.index(dim)] if dim in windows.window else next(rows) for dim in range(rank)]


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

    @property
    def windows(self) -> IndexedWindows:
        return IndexedWindows(self, 1, OF_GATHER)

    def verify_(self) -> None:
        operand, windows = as_array(self.operands[0].type), self.windows
        sizes = integers(self.slice_sizes)
        if len(sizes) != operand.get_num_dims():
            raise self._outside()
        windows.verify()
        if any(sizes[dim] > 1 for dim in windows.dropped):
            raise RuleBroken("a dimension that a gather drops has slice size 1 or 0")
        own, offsets = len(sizes) - len(windows.dropped), windows.window
        rank = own + len(windows.row_dims)
        if len(offsets) != own or not are_dimensions(offsets, rank) or list(offsets) != sorted(offsets):
            raise RuleBroken(
                f"offset_dims={{{','.join(map(str, offsets))}}} do not name the {own} dimensions of a slice",
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
    def mapped(self) -> tuple[int, ...]:
        """The dimension of the operand for each number of a row of indices."""
        return integers(self.start_index_map)

    @property
    def last_starts(self) -> list[int]:
        """The greatest start in each of the `mapped` dimensions; a dropped dimension takes one element."""
        sizes, dims = integers(self.slice_sizes), dims_of(self.operands[0])
        return [dims[dim] - max(1, sizes[dim]) for dim in self.mapped]

    def start_map(self) -> IndexingMap:
        """From an index of the result and a number's position in its row of starts (range variable) to the number's index."""
        return self.windows.start_map(dims_of(self.result))

    def element_map(self) -> IndexingMap:
        """From an index of the result and the window's clamped starts (runtime variables) to an index of the operand."""
        return self.windows.element_map(dims_of(self.result), self.last_starts)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        array, rows = operands
        sizes, shape = integers(self.slice_sizes), dims_of(self.result)
        if any(map(int.__gt__, sizes, array.shape)):
            raise fault(self, f"no slice of {list(sizes)} fits inside {list(array.shape)}")
        where, of_start = np.indices(shape), self.start_map()
        starts = list[Array]()
        for number, last in enumerate(self.last_starts):
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
        rows = self.start_map()
        dims = [Expr.variable(number) for number in range(rows.num_dims)]
        return tuple(
            (1, rows.with_variables_replaced([*dims, Expr.constant(number)], dims=rows.dims))
            for number in range(len(self.mapped))
        )

    def reads_apart(self, operand: int) -> bool:
        return True

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        of_start, is_unsigned = self.start_map(), element_of(self.operands[1]).kind is Kind.UNSIGNED
        starts = list[SSAValue]()
        for number, last in enumerate(self.last_starts):
            if last <= 0:
                starts.append(constant_index(e.builder, 0))
                continue
            row = [*e.indices, constant_index(e.builder, number)]
            value = e.operand(1, apply_indexing(e.builder, of_start, row))
            starts.append(clamp_index(e.builder, value, last, is_unsigned=is_unsigned))
        return (e.operand(0, apply_indexing(e.builder, self.element_map(), [*e.indices, *starts])),)


OF_SCATTER = (
    *("update_window_dims", "scatter_dims_to_operand_dims", "inserted_window_dims"),
    *("input_batching_dims", "scatter_indices_batching_dims"),
)


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
        places, rank = self.indexed, len(dims_of(arrays[0]))
        places.verify()
        window = places.window
        for i, array in enumerate(arrays[1:], 1):
            if len(dims_of(array)) != rank:
                raise self.arrays_differ(i)
        for i, update in enumerate(self.operands[count + 1 :], count + 1):
            verify_ascending("update_window_dims", window, len(dims_of(update)))
            if len(window) != rank - len(places.dropped):
                raise self._outside(i)
            if as_array(update.type).element_type != as_array(arrays[i - count - 1]).element_type:
                raise RuleBroken(
                    "the updates are of another type than the array",
                    f"updates are {type_text(update.type)}, the array {type_text(arrays[i - count - 1])}",
                    operand=i,
                )
            if len(dims_of(update)) - len(window) != len(places.row_dims):
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

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        """As the arrays; a window of the updates for each row of indices, and it fits into them."""
        count = len(self.operands) // 2
        found, places = same_axes(s, range(count), self.arrays_differ), self.indexed
        limits = [size for dim, size in enumerate(found) if dim not in places.dropped]
        rows, windows = places.rows(s), places.window
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
    def indexed(self) -> IndexedWindows:
        """Its windows, as those of a gather from the first array whose result would be the updates."""
        return IndexedWindows(self, len(self.operands) // 2, OF_SCATTER)

    @property
    def mapped(self) -> tuple[int, ...]:
        """The dimension of the arrays for each number of a row of indices."""
        return integers(self.scatter_dims_to_operand_dims)

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """The dimensions of the updates that number the rows of indices."""
        return tuple(self.indexed.numbering(dims_of(self.updates[0])))

    @property
    def window_sizes(self) -> tuple[int, ...]:
        """The size of a window in each dimension of the arrays."""
        sizes = dims_of(self.updates[0])
        return self.indexed.window_sizes(sizes[dim] for dim in integers(self.update_window_dims))

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
        return self.indexed.start_map(dims_of(self.updates[0]))

    def update_to_result(self) -> IndexingMap:
        """From an index of the updates and the starts of its window (runtime variables) to an index of the arrays."""
        return self.indexed.element_map(dims_of(self.updates[0]), self.last_starts)

    def _windows(self) -> tuple[list[Expr], list[Variable]]:
        """Index of a window, one expression per dimension of `scatter_dims`, from an index of the arrays and symbols; and the symbols."""
        places, rank = self.indexed, len(dims_of(self.arrays[0]))
        place, symbols = list[Expr](), list[Variable]()
        for row in places.row_dims:
            if row in places.batched:
                place.append(Expr.variable(places.batching[places.batched.index(row)]))
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
        dropped, sizes = self.indexed.dropped, self.window_sizes
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
