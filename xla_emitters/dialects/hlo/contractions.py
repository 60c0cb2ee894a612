"""Ops whose elements each need many elements of their operands: reduce, reduce-window, dot, convolution, gather, scatter.

    %s = hlo.reduce %x, %zero {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>

Reductions and sums go one element after the other, in row-major order of what is summed; updates of a scatter in row-major order of the
indices. A scatter has no map from results to operands, nor code for one element: which updates go to an element only the run knows.
Source: spec/1 3.2, 3.6, 5.5, 6.8; spec/2 2.7.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def

from xla_emitters.dialects.build import apply_indexing, clamp_index, constant_index
from xla_emitters.dialects.hlo import complex_meaning
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken, at_least, integers
from xla_emitters.dialects.hlo.called import apply_to_elements, fold
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.convert import constant, convert_array, emit_convert, wrap
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    leaf_types,
    same_dims,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import Window, WindowAttr, window_map
from xla_emitters.dtypes import Array, DType, Kind, dtype
from xla_emitters.indexing import Expr, IndexingMap, Interval, Variable
from xla_emitters.indexing.shapes import identity_map


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

    @property
    def arrays(self) -> Sequence[SSAValue]:
        """The operands that are reduced; as many initial values stand after them."""
        return self.operands[: len(self.operands) // 2]

    @abstractmethod
    def reduced_map(self) -> IndexingMap:
        """From an index of the result, and a range variable per loop, to the elements of the arrays that it is made of."""

    def reduced_value(self, steps: Iterable[Sequence[Array]], inits: Sequence[Any], call: Call) -> Any:
        """The inits combined with each step's arrays, which have the result's shape, one after the other."""
        shape = dims_of(leaf_types(self.result.type)[0])
        values: tuple[Array, ...] = tuple(np.broadcast_to(init, shape) for init in inits)
        for arrays in steps:
            values = apply_to_elements(self, self.to_apply, [*values, *arrays], call)
        copies = [value.copy() for value in values]
        return copies[0] if len(copies) == 1 else tuple(copies)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        map = self.reduced_map()
        return (map,) * len(self.arrays) + (IndexingMap((), map.dims),) * len(self.arrays)

    def reads_apart(self, operand: int) -> bool:
        return operand < len(self.arrays)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        map, count = self.reduced_map(), len(self.arrays)
        inits = [e.operand(count + i, ()) for i in range(count)]

        def step(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = apply_indexing(e.builder, map, [*e.indices, *symbols])
            return e.call(self.to_apply.root_reference.data, [*carried, *(e.operand(i, at) for i in range(count))])

        return inits if map.is_known_empty else e.loop(map, inits, step)

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

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """One element after the other, in row-major order of the reduced dimensions."""
        count, reduced = len(self.arrays), sorted(integers(self.dimensions))
        kept = [dim for dim in range(operands[0].ndim) if dim not in reduced]
        moved = [array.transpose([*reduced, *kept]) for array in operands[:count]]
        sizes = moved[0].shape[: len(reduced)]
        if count == 1:
            shape = moved[0].shape[len(reduced) :]
            steps_first = moved[0].reshape(-1, *shape) if moved[0].size else np.empty((0, *shape), moved[0].dtype)
            folded = fold(self, self.to_apply, np.broadcast_to(operands[1], shape), steps_first)
            if folded is not None:
                return folded
        steps = ([array[index] for array in moved] for index in np.ndindex(*sizes))
        return self.reduced_value(steps, operands[count:], call)

    def reduced_map(self) -> IndexingMap:
        sizes, reduced = dims_of(self.operands[0]), sorted(integers(self.dimensions))
        kept = [dim for dim in range(len(sizes)) if dim not in reduced]
        order = [*kept, *reduced]
        variables = [Variable(Interval(0, sizes[dim] - 1)) for dim in order]
        results = tuple(Expr.variable(order.index(dim)) for dim in range(len(sizes)))
        return IndexingMap(results, tuple(variables[: len(kept)]), tuple(variables[len(kept) :]))


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

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """Element by element of the window, in row-major order; what the padding covers is left out."""
        count, map = len(self.arrays), self.reduced_map()
        shape = dims_of(leaf_types(self.result.type)[0])
        where = np.indices(shape)
        result = [np.broadcast_to(init, shape).copy() for init in operands[count:]]
        for offsets in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in map.range_vars)):
            inside = points_inside(map, where, offsets)
            at = tuple(np.broadcast_to(np.asarray(part), shape)[inside] for part in map.evaluate([*where], offsets))
            chosen = [array[at] for array in operands[:count]]
            combined = apply_to_elements(self, self.to_apply, [*(part[inside] for part in result), *chosen], call)
            for part, value in zip(result, combined, strict=True):
                part[inside] = value
        return tuple(result) if count > 1 else result[0]

    def reduced_map(self) -> IndexingMap:
        """Where base dilation leaves holes at fixed steps of the window, the loop goes from one element that is there to the next."""
        return window_map(self.window.data, dims_of(self.operands[0])).rescale_symbols().simplify()


def points_inside(map: IndexingMap, where: Array, symbols: Sequence[int]) -> Array:
    """Which of the places `where` (one array a dim) are in the map's domain with these values of its symbols."""
    inside = np.broadcast_to(np.asarray(map.constraints_satisfied([*where], symbols)), where.shape[1:])
    for at, variable in zip(where, map.dims, strict=True):
        inside = inside & (at >= variable.bounds.lower) & (at <= variable.bounds.upper)
    return inside


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


class ContractingOp(HloOp):
    """Sums of products of two operands' elements; both maps have the same range variables, and the first one's domain holds for both."""

    OPERANDS: ClassVar = range(2, 3)

    operand_precision = opt_prop_def(StringAttr)
    algorithm = opt_prop_def(StringAttr)

    ALGORITHMS: ClassVar = ("dot_f32_f32_f32", "dot_bf16_bf16_f32")
    """Those with code; without one, floats are multiplied and added in f32 (f64 where the result is)."""

    @property
    def held(self) -> DType:
        """The type that sums are held in, and that elements have when they are multiplied. raises Unsupported."""
        result = element_of(self.result)
        if result.kind is not Kind.COMPLEX and Kind.COMPLEX in (element_of(operand).kind for operand in self.operands):
            raise self.unsupported("no code for a real result of complex numbers")
        if self.algorithm is not None and self.algorithm.data not in (*self.ALGORITHMS, "unset"):
            raise self.unsupported(
                f"no code for algorithm {self.algorithm.data}", help=f"supported: {', '.join(self.ALGORITHMS)}"
            )
        return dtype("f32") if result.kind is Kind.FLOAT and result.bits < 32 else result

    def _kept(self, operand: int) -> list[DType]:
        """The types that an element of an operand is converted to, one after the other."""
        source = element_of(self.operands[operand])
        rounds = self.algorithm is not None and self.algorithm.data == "dot_bf16_bf16_f32"
        return [source, *([dtype("bf16")] if rounds and source.bits > 16 else ()), self.held]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        """One product after the other, in the order of the maps' range variables, the last one fastest."""
        held, shape = self.held, dims_of(self.result)
        factors = list[Array]()
        for i, array in enumerate(operands):
            for source, target in pairwise(self._kept(i)):
                array = convert_array(array, source, target)
            factors.append(array.astype(np.int64) if held.is_integer else array)
        total = np.zeros(shape, factors[0].dtype)
        maps = self.output_to_input()
        where = np.indices(shape)
        for numbers in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in maps[0].range_vars)):
            inside = points_inside(maps[0], where, numbers)
            x, y = (
                array[
                    tuple(np.broadcast_to(np.asarray(part), shape)[inside] for part in map.evaluate([*where], numbers))
                ]
                for array, map in zip(factors, maps, strict=True)
            )
            if held.kind is Kind.PRED:
                total[inside] |= x & y
            else:
                total[inside] += complex_meaning.product(x, y) if held.kind is Kind.COMPLEX else x * y
        return convert_array(wrap(total, held) if held.is_integer else total, held, element_of(self.result))

    def reads_apart(self, operand: int) -> bool:
        return True

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        held, maps = self.held, self.output_to_input()
        zero = constant(e, 0, held.storage_type)

        def factor(i: int, symbols: Sequence[SSAValue]) -> SSAValue:
            value = e.operand(i, apply_indexing(e.builder, maps[i], [*e.indices, *symbols]))
            for source, target in pairwise(self._kept(i)):
                value = emit_convert(e, value, source, target)
            return value

        def step(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            x, y, (total,) = factor(0, symbols), factor(1, symbols), carried
            if held.kind is Kind.FLOAT:
                return (e.insert(arith.AddfOp(total, e.insert(arith.MulfOp(x, y)).result)).result,)
            if held.kind is Kind.COMPLEX:
                return (e.insert(complex.AddOp(total, e.insert(complex.MulOp(x, y)).result)).result,)
            if held.kind is Kind.PRED:
                return (e.insert(arith.OrIOp(total, e.insert(arith.AndIOp(x, y)).result)).result,)
            return (e.insert(arith.AddiOp(total, e.insert(arith.MuliOp(x, y)).result)).result,)

        (total,) = (zero,) if maps[0].is_known_empty else e.loop(maps[0], (zero,), step)
        return (emit_convert(e, total, held, element_of(self.result)),)


@irdl_op_definition
class DotOp(ContractingOp):
    """Sums of products over the contracting dimensions; result: batch dimensions, then free ones of lhs, then of rhs."""

    name = "hlo.dot"
    lhs_batch_dims = opt_prop_def(DenseArrayBase)
    rhs_batch_dims = opt_prop_def(DenseArrayBase)
    lhs_contracting_dims = opt_prop_def(DenseArrayBase)
    rhs_contracting_dims = opt_prop_def(DenseArrayBase)

    @property
    def pairing(self) -> DotDimensions:
        return DotDimensions(
            _numbers(self.lhs_batch_dims),
            _numbers(self.rhs_batch_dims),
            _numbers(self.lhs_contracting_dims),
            _numbers(self.rhs_contracting_dims),
        )

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_dims(self.pairing.result_dims(self), "its operands give")

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        pairing, result = self.pairing, dims_of(self.result)
        places = tuple(Variable(Interval(0, size - 1)) for size in result)
        sizes = dims_of(self.operands[0])
        summed = tuple(Variable(Interval(0, sizes[dim] - 1)) for dim in pairing.lhs_contracting)
        maps = list[IndexingMap]()
        free = len(pairing.lhs_batch)
        for operand, batch, contracting in (
            (self.operands[0], pairing.lhs_batch, pairing.lhs_contracting),
            (self.operands[1], pairing.rhs_batch, pairing.rhs_contracting),
        ):
            variables = dict[int, int]()
            variables |= {dim: number for number, dim in enumerate(batch)}
            variables |= {dim: len(result) + number for number, dim in enumerate(contracting)}
            for dim in range(len(dims_of(operand))):
                if dim not in variables:
                    variables[dim] = free
                    free += 1
            results = tuple(Expr.variable(variables[dim]) for dim in range(len(variables)))
            maps.append(IndexingMap(results, places, summed))
        return tuple(maps)


def _numbers(attribute: DenseArrayBase[Any] | None) -> tuple[int, ...]:
    return integers(attribute) if attribute else ()


@irdl_op_definition
class ConvolutionOp(ContractingOp):
    """Sums of products of a kernel that slides over an array, over spatial dimensions and features."""

    name = "hlo.convolution"

    dim_labels = prop_def(StringAttr)
    window = opt_prop_def(WindowAttr)
    feature_group_count = opt_prop_def(IntegerAttr)
    batch_group_count = opt_prop_def(IntegerAttr)

    @property
    def labels(self) -> list[str]:
        """A letter or digit per dimension, of the image (b, f), the kernel (i, o) and the result (b, f)."""
        return self.dim_labels.data.replace("->", "_").split("_")

    def verify_(self) -> None:
        self.verify_operand_count()
        labels = self.labels
        values = (*self.operands, self.result)
        if len(labels) != 3 or any(
            len(label) != len(dims_of(value)) or len(set(label)) != len(label)
            for label, value in zip(labels, values, strict=True)
        ):
            raise RuleBroken(
                f"dim_labels={self.dim_labels.data} do not name each dimension once",
                details=tuple(type_text(value.type) for value in values),
            )
        sizes = [dict(zip(label, dims_of(value), strict=True)) for label, value in zip(labels, values, strict=True)]
        spatial = [str(i) for i in range(len(labels[0]) - 2)]
        if any(set(found) != {*spatial, *letters} for found, letters in zip(sizes, ("bf", "io", "bf"), strict=True)):
            raise RuleBroken(f"dim_labels={self.dim_labels.data} differ in their spatial dimensions")
        image, kernel, _ = sizes
        batches = self._batch_groups(image, kernel)
        window = self.window.data.dims if self.window else ()
        if not same_dims([dim.size for dim in window], [kernel[dim] for dim in spatial]):
            raise RuleBroken(
                "the window is not as large as the kernel", operand=1, details=(type_text(self.operands[1].type),)
            )
        wanted = {
            dim: UNBOUNDED if image[dim] == UNBOUNDED else along.output_size(image[dim])
            for dim, along in zip(spatial, window, strict=True)
        }
        wanted |= {"b": image["b"] if image["b"] == UNBOUNDED else image["b"] // batches, "f": kernel["o"]}
        self.expect_dims([wanted[label] for label in labels[2]], "image, kernel and window give")

    @property
    def _features(self) -> int:
        """How many groups the features of the image fall into."""
        return self.feature_group_count.value.data if self.feature_group_count else 1

    @property
    def _batches(self) -> int:
        """How many groups its batches fall into."""
        return self.batch_group_count.value.data if self.batch_group_count else 1

    def _batch_groups(self, image: Mapping[str, int], kernel: Mapping[str, int]) -> int:
        """How many groups of batches there are; raises RuleBroken when the sizes do not fall into groups."""
        features, batches = self._features, self._batches
        if features < 1 or batches < 1 or (features > 1 and batches > 1):
            raise RuleBroken(f"{features} groups of features and {batches} of batches")
        known = UNBOUNDED not in (*image.values(), *kernel.values())
        if known and (image["f"] != kernel["i"] * features or kernel["o"] % features):
            raise RuleBroken(
                f"kernel and image do not fit in {features} groups of features",
                operand=1,
                details=(
                    f"the image has {image['f']} features, the kernel takes {kernel['i']} and gives {kernel['o']}",
                ),
            )
        if known and (image["b"] % batches or kernel["o"] % batches):
            raise RuleBroken(f"the image does not fall into {batches} groups of batches", operand=0)
        return batches

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """Range variables: the window's spatial dimensions, then the features that one feature of the result sees.

        The features of the result fall into groups where those of the image, or its batches, do; each group sees its own alone.
        """
        in_image, in_kernel, in_result = self.labels
        image, kernel, result = (
            dict(zip(label, dims_of(value), strict=True))
            for label, value in zip(self.labels, (*self.operands, self.result), strict=True)
        )
        # Which way the kernel lies is said in the kernel's map.
        along = self.window.data.dims if self.window else ()
        window = Window(tuple(replace(side, reversed=False) for side in along))
        spatial = [str(i) for i in range(len(window.dims))]
        whole, rank = identity_map(dims_of(self.result)), len(in_result)
        places = [Expr.variable(in_result.index(dim)) for dim in spatial]
        within = [Expr.variable(rank + i) for i in range(len(spatial))]
        slides = window_map(window, [image[dim] for dim in spatial])
        slid = slides.with_variables_replaced([*places, *within], dims=whole.dims, range_vars=slides.range_vars)
        batch, feature = (Expr.variable(in_result.index(letter)) for letter in "bf")
        seen = Expr.variable(rank + len(spatial))
        taken = {
            dim: Expr.constant(side.size - 1) - at if side.reversed else at
            for dim, at, side in zip(spatial, within, along, strict=True)
        }
        found = dict(zip(spatial, slid.results, strict=True)) | {"b": batch, "f": seen}
        if self._features > 1:
            found["f"] = feature // max(1, kernel["o"] // self._features) * kernel["i"] + seen
        if self._batches > 1:
            found["b"] = feature // max(1, kernel["o"] // self._batches) * result["b"] + batch
        taken |= {"o": feature, "i": seen}
        summed = (*slides.range_vars, Variable(Interval(0, kernel["i"] - 1)))
        bounds = tuple((place, v.bounds) for place, v in zip(places, slides.dims, strict=True))
        return (
            IndexingMap(
                tuple(found[dim] for dim in in_image), whole.dims, summed, constraints=slid.constraints + bounds
            ),
            IndexingMap(tuple(taken[dim] for dim in in_kernel), whole.dims, summed),
        )


def verify_index_map(op: HloOp, indices: int, along: int, mapped: Sequence[int], rank: int, name: str) -> None:
    """Rows of indices, integers, along a dimension; the attribute `name` says which of `rank` dimensions each number of a row is in.

    indices  the number of the operand
    """
    array = as_array(op.operands[indices].type)
    if not element_of(array).is_integer:
        raise RuleBroken("indices are integers", operand=indices, details=(f"they are {type_text(array)}",))
    dims = array.get_shape()
    if not 0 <= along <= len(dims):
        raise RuleBroken(
            f"index_vector_dim={along} is no dimension of the indices, nor the one after the last", operand=indices
        )
    row = dims[along] if along < len(dims) else 1
    if (
        any(not 0 <= dim < rank for dim in mapped)
        or len(set(mapped)) != len(mapped)
        or row not in (len(mapped), UNBOUNDED)
    ):
        raise RuleBroken(
            f"{name}={{{','.join(map(str, mapped))}}} does not fit",
            operand=indices,
            details=(f"it names a dimension of {rank} for each number of a row of {row}",),
        )


def verify_ascending(name: str, numbers: Sequence[int], rank: int) -> None:
    """A list of different dimensions of an array of that rank, in order."""
    if list(numbers) != sorted(set(numbers)) or any(not 0 <= dim < rank for dim in numbers):
        raise RuleBroken(
            f"{name}={{{','.join(map(str, numbers))}}} are not dimensions of an array of rank {rank}, in ascending order"
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
        batching, collapsed = _numbers(self.operand_batching_dims), integers(self.collapsed_slice_dims)
        verify_ascending("collapsed_slice_dims", collapsed, len(dims))
        verify_ascending("operand_batching_dims", batching, len(dims))
        dropped = {*collapsed, *batching}
        if any(sizes[dim] > 1 for dim in dropped):
            raise RuleBroken("a dimension that a gather drops has slice size 1 or 0")
        verify_index_map(
            self,
            1,
            self.index_vector_dim.value.data,
            integers(self.start_index_map),
            len(dims),
            "start_index_map",
        )
        window = [size for dim, size in enumerate(sizes) if dim not in dropped]
        along = self.index_vector_dim.value.data
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
                details=(f"the result is {type_text(self.result.type)}",),
            )
        rest = iter(batch)
        wanted = [window[offsets.index(dim)] if dim in offsets else next(rest) for dim in range(rank)]
        self.expect_type(array_type(operand.element_type, wanted), "slice_sizes and indices give")

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
        """The dimensions of the result that say which window an element is in."""
        return [dim for dim in range(len(dims_of(self.result))) if dim not in integers(self.offset_dims)]

    def start_map(self) -> IndexingMap:
        """From an index of the result, and a number of a row of starts (range variable), to its place among the indices."""
        whole, along = identity_map(dims_of(self.result)), self.index_vector_dim.value.data
        row = Expr.variable(len(whole.dims))
        results = [whole.results[dim] for dim in self._batch()]
        if along < len(dims_of(self.operands[1])):
            results.insert(along, row)
        length = len(integers(self.start_index_map))
        return IndexingMap(tuple(results), whole.dims, (Variable(Interval(0, length - 1)),))

    def element_map(self) -> IndexingMap:
        """From an index of the result, and the window's clamped starts (run-time variables), to the operand."""
        whole = identity_map(dims_of(self.result))
        offsets, batch = iter(integers(self.offset_dims)), self._batch()
        batching = _numbers(self.operand_batching_dims)
        along = self.index_vector_dim.value.data
        rows = [dim for dim in range(len(dims_of(self.operands[1]))) if dim != along]
        dropped = {*integers(self.collapsed_slice_dims), *batching}
        results = list[Expr]()
        for dim in range(len(dims_of(self.operands[0]))):
            at = Expr.constant(0) if dim in dropped else whole.results[next(offsets)]
            if dim in batching:
                row = _numbers(self.start_indices_batching_dims)[batching.index(dim)]
                at = whole.results[batch[rows.index(row)]]
            if dim in self.mapped:
                at = at + Expr.variable(len(whole.dims) + self.mapped.index(dim))
            results.append(at)
        starts = tuple(Variable(Interval(0, last)) for last in self.last_starts)
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        array, rows = operands
        shape = dims_of(self.result)
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
        dims = dims_of(arrays[0])
        verify_index_map(
            self, count, along, integers(self.scatter_dims_to_operand_dims), len(dims), "scatter_dims_to_operand_dims"
        )
        verify_ascending("inserted_window_dims", _numbers(self.inserted_window_dims), len(dims))
        verify_ascending("input_batching_dims", _numbers(self.input_batching_dims), len(dims))
        dropped = {*_numbers(self.inserted_window_dims), *_numbers(self.input_batching_dims)}
        limits = [size for dim, size in enumerate(dims) if dim not in dropped]
        for i, update in enumerate(self.operands[count + 1 :], count + 1):
            dims = dims_of(update)
            verify_ascending("update_window_dims", window, len(dims))
            if len(window) != len(limits) or any(
                UNBOUNDED not in (dims[dim], limit) and dims[dim] > limit
                for dim, limit in zip(window, limits, strict=True)
            ):
                raise RuleBroken(
                    "the windows of the updates do not lie inside the array",
                    operand=i,
                    details=(f"updates are {type_text(update.type)}, the array {type_text(arrays[0])}",),
                )
            if as_array(update.type).element_type != as_array(arrays[i - count - 1]).element_type:
                raise RuleBroken(
                    "the updates are of another type than the array",
                    operand=i,
                    details=(f"updates are {type_text(update.type)}, the array {type_text(arrays[i - count - 1])}",),
                )
            rest = [size for dim, size in enumerate(dims) if dim not in window]
            if not has_dynamic_dims(update.type) and rest != batch:
                raise RuleBroken(
                    "the updates do not fit the indices",
                    operand=i,
                    details=(f"updates are {type_text(update.type)}, indices {type_text(indices)}",),
                )

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
        """Whether the program promises that no element gets two updates."""
        return self.unique_indices is not None and bool(self.unique_indices.value.data)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the program promises that the windows come in ascending order."""
        return self.indices_are_sorted is not None and bool(self.indices_are_sorted.value.data)

    @property
    def mapped(self) -> tuple[int, ...]:
        """The dimensions of the arrays that a row of indices speaks of, in its order."""
        return integers(self.scatter_dims_to_operand_dims)

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """The dimensions of the updates that say which row of indices an update goes with."""
        rank = len(dims_of(self.updates[0]))
        return tuple(dim for dim in range(rank) if dim not in integers(self.update_window_dims))

    @property
    def window_sizes(self) -> tuple[int, ...]:
        """How much of each dimension of the arrays a window covers."""
        dropped = {*_numbers(self.inserted_window_dims), *_numbers(self.input_batching_dims)}
        sizes = iter([dims_of(self.updates[0])[dim] for dim in integers(self.update_window_dims)])
        return tuple(1 if dim in dropped else next(sizes) for dim in range(len(dims_of(self.arrays[0]))))

    @property
    def last_starts(self) -> tuple[int, ...]:
        """The greatest start in each of the `mapped` dimensions of a window that lies inside."""
        sizes, dims = self.window_sizes, dims_of(self.arrays[0])
        return tuple(dims[dim] - sizes[dim] for dim in self.mapped)

    def start_map(self) -> IndexingMap:
        """From an index of the updates, and a number of a row of indices (range variable), to its place among the indices."""
        whole, along = identity_map(dims_of(self.updates[0])), self.index_vector_dim.value.data
        results = [whole.results[dim] for dim in self.scatter_dims]
        if along < len(dims_of(self.indices)):
            results.insert(along, Expr.variable(len(whole.dims)))
        return IndexingMap(tuple(results), whole.dims, (Variable(Interval(0, len(self.mapped) - 1)),))

    def update_to_result(self) -> IndexingMap:
        """From an index of the updates, and the starts of its window (run-time variables), to the arrays."""
        whole = identity_map(dims_of(self.updates[0]))
        inserted, batching = _numbers(self.inserted_window_dims), _numbers(self.input_batching_dims)
        window = iter(integers(self.update_window_dims))
        along = self.index_vector_dim.value.data
        rows = [dim for dim in range(len(dims_of(self.indices))) if dim != along]
        results = list[Expr]()
        for dim in range(len(dims_of(self.arrays[0]))):
            if dim in batching:
                row = _numbers(self.scatter_indices_batching_dims)[batching.index(dim)]
                at = whole.results[self.scatter_dims[rows.index(row)]]
            else:
                at = Expr.constant(0) if dim in inserted else whole.results[next(window)]
            if dim in self.mapped:
                at = at + Expr.variable(len(whole.dims) + self.mapped.index(dim))
            results.append(at)
        starts = tuple(Variable(Interval(0, last)) for last in self.last_starts)
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)

    def places(self, indices: Array) -> tuple[Array, Array]:
        """Where updates go: numbers of the updates' elements (flat), window after window, and those of the arrays' elements.

        What belongs to a window that does not lie inside the arrays is left out.
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
        sizes = dims_of(self.arrays[0])
        flat = (
            np.ravel_multi_index(tuple(np.broadcast_to(part, numbers.shape) for part in at), sizes)
            if sizes
            else 0 * numbers
        )
        return numbers[inside], flat[inside]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """Update after update, in row-major order of the indices; the k-th updates of all elements are combined at once."""
        count = len(self.arrays)
        updates, targets = self.places(operands[count])
        results = [array.copy() for array in operands[:count]]
        for turn in turns(targets):
            at = np.unravel_index(targets[turn], results[0].shape) if results[0].ndim else ()
            given = [array.reshape(-1)[updates[turn]] for array in operands[count + 1 :]]
            old = [np.broadcast_to(result[at], turn.shape) for result in results]
            for result, new in zip(results, apply_to_elements(self, self.to_apply, [*old, *given], call), strict=True):
                result[at] = new if result.ndim else new[0]
        return tuple(results) if count > 1 else results[0]


def turns(keys: Array) -> Iterator[Array]:
    """Positions in `keys`, which has one dimension, in groups: no key twice in a group, equal ones in order."""
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


OPS: tuple[type[HloOp], ...] = (ReduceOp, ReduceWindowOp, DotOp, ConvolutionOp, GatherOp, ScatterOp)
