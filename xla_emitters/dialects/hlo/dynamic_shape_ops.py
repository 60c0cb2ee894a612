"""Ops with sizes as values: results of a size that another op computes, and the sizes of arrays as numbers.

    %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?x4xf32>) -> tensor<i32>
    %y = hlo.dynamic_broadcast_in_dim %c, %shape {dimensions = array<i64>, name = "y"} : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>

They come from StableHLO, where a `?` of a type is a size known only at run time; the operand `%shape` holds one integer per
dimension of the result. HLO text has only the three of `TEXT_OPS`: its `dynamic-reshape` takes a scalar per dimension. The others are
refused by name where a module is printed as HLO text. No op here has an indexing map or code: passes replace them once sizes are symbols.

A value is computed at the sizes that the operands hold. Undefined behaviour in StableHLO (a reshape to another number of elements,
a slice that is not inside) is a DataError, never a value. `shape_assertion` is the custom call by which JAX checks its arguments' sizes.
Source: StableHLO specification and its "Dynamism" RFC (https://openxla.org/stablehlo/dynamism); docs/reference/4 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo import control_ops, routines
from xla_emitters.dialects.hlo.base import (
    Call,
    HloOp,
    RuleBroken,
    at_least,
    fault,
    integers,
    opcode_of,
)
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.contractions import ConvolutionOp
from xla_emitters.dialects.hlo.convert import convert_array
from xla_emitters.dialects.hlo.gather_scatter import GatherOp
from xla_emitters.dialects.hlo.library_calls import NUMBERS_BEFORE, numbers_before
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import PadOp
from xla_emitters.dialects.hlo.sized import with_operands
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    element_of,
    same_dims,
    same_shape,
    size_bounds,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import DataError

S32 = dtype("s32")
MOST = 1 << 40
"""The largest padding, or number of a window, that data may hold: sums and products of a few of them fit 64 bits."""


class SizeOp(HloOp):
    """The base of these ops, with their common checks."""

    def expect_element(self, operand: int = 0) -> None:
        """The result's elements are of the operand's type."""
        source, result = as_array(self.operands[operand].type), as_array(self.result.type)
        if source.element_type != result.element_type:
            raise RuleBroken(
                f"'{self.opcode}' keeps the element type",
                operand=operand,
                details=(f"the operand is {type_text(source)}, the result {type_text(result)}",),
            )

    def expect_numbers(self, operand: int, count: int, what: str) -> None:
        """An operand is a list of `count` integers."""
        ir_type = as_array(self.operands[operand].type)
        if not element_of(ir_type).is_integer or not same_dims(ir_type.get_shape(), (count,)):
            raise RuleBroken(
                f"{what} of '{self.opcode}' are {count} integers",
                operand=operand,
                details=(f"operand {operand} is {type_text(ir_type)}",),
            )

    def expect_shape_operand(self, operand: int) -> None:
        self.expect_numbers(operand, len(dims_of(self.result)), "the sizes")

    def expect_dimensions(self, dimensions: Sequence[int], rank: int) -> None:
        """`dimensions` are different dimensions of an array of that rank."""
        if any(not 0 <= dim < rank for dim in dimensions) or len(set(dimensions)) != len(dimensions):
            shown = ",".join(map(str, dimensions))
            raise RuleBroken(f"dimensions={{{shown}}} of '{self.opcode}' are not different dimensions of rank {rank}")

    def sizes_in(self, numbers: Array) -> tuple[int, ...]:
        """The sizes that an operand holds. raises DataError for a negative one, and one that contradicts the result's type."""
        sizes = tuple(int(number) for number in np.asarray(numbers).reshape(-1))
        known = dims_of(self.result)
        if any(size < 0 for size in sizes) or not same_dims(sizes, known):
            raise self.fault(f"the sizes {list(sizes)} do not fit {type_text(self.result.type)}")
        self.refuse_beyond_limit(sizes)
        return sizes

    def refuse_beyond_limit(self, sizes: Sequence[int]) -> None:
        """raises DataError for a result of these sizes that is larger than the limit on memory."""
        from xla_emitters.memory_limit import (
            refuse_beyond_limit,
        )  # only for runs: commands that compile start faster without it

        element = element_of(self.result)
        what = f"%{self.instruction_name.data} = {self.opcode}"
        refuse_beyond_limit(sizes, element.numpy.itemsize, element.name, what)

    def fault(self, message: str) -> DataError:
        """The error for operands for which the op has no value."""
        return fault(self, message)


# --------------------------------------------------------------------------------------------------- sizes as numbers


def _only_dimension(op: HloOp, dimensions: DenseArrayBase[Any]) -> int:
    found = integers(dimensions)
    rank = len(dims_of(op.operands[0]))
    if len(found) != 1:
        raise RuleBroken(f"'{op.opcode}' has one number in dimensions=", details=(f"it has {len(found)}",))
    if not 0 <= found[0] < rank:
        raise RuleBroken(f"dimensions={found[0]} of '{op.opcode}' is not a dimension of an array of rank {rank}")
    return found[0]


@op_definition
class GetDimensionSizeOp(HloOp):
    """The size of one dimension."""

    name = "hlo.get_dimension_size"
    OPERANDS: ClassVar = range(1, 2)
    dimensions = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.verify_operand_count()
        _only_dimension(self, self.dimensions)
        self.expect_type(array_type(S32.ir_type, ()), "operands and attributes give")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        size = operands[0].shape[integers(self.dimensions)[0]]
        if size >= 1 << 31:
            raise self.unsupported(f"a size of {size} does not fit s32")
        return np.asarray(size, np.int32)


@op_definition
class SetDimensionSizeOp(SizeOp):
    """The array with one dimension cut to a size known at run time; the type keeps the largest size as a bound."""

    name = "hlo.set_dimension_size"
    OPERANDS: ClassVar = range(2, 3)
    dimensions = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.verify_operand_count()
        operand = as_array(self.operands[0].type)
        dimension = _only_dimension(self, self.dimensions)
        size = as_array(self.operands[1].type)
        if size != array_type(S32.ir_type, ()):
            raise RuleBroken(
                f"operand 1 of '{self.opcode}' does not fit",
                operand=1,
                details=(f"it is {type_text(size)}", "it must be s32[]"),
            )
        bounds = list(size_bounds(operand))
        sizes = [UNBOUNDED if dim == dimension else size for dim, size in enumerate(dims_of(operand))]
        limits = [bound if size == UNBOUNDED else UNBOUNDED for size, bound in zip(sizes, bounds, strict=True)]
        self.expect_type(array_type(operand.element_type, sizes, bounds=limits), "operands and attributes give")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        array, size = operands[0], int(operands[1])
        dimension = integers(self.dimensions)[0]
        if not 0 <= size <= array.shape[dimension]:
            raise self.fault(f"the size {size} is not in [0, {array.shape[dimension]}]")
        return array[(slice(None),) * dimension + (slice(0, size),)].copy()


# ------------------------------------------------------------------------------------- results of sizes given as operands


@op_definition
class DynamicReshapeOp(SizeOp):
    """The same elements in row-major order, in the shape that the operands after the first hold: one list, or a scalar per dimension."""

    name = "hlo.dynamic_reshape"
    OPERANDS: ClassVar = at_least(1)

    @property
    def takes_list(self) -> bool:
        """Whether the sizes are one operand, as in StableHLO, and not scalars, as in HLO text."""
        return len(self.operands) == 2 and len(dims_of(self.operands[1])) == 1

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_element()
        rank = len(dims_of(self.result))
        if self.takes_list:
            self.expect_shape_operand(1)
        elif len(self.operands) != 1 + rank:
            raise RuleBroken(f"'dynamic-reshape' to rank {rank} has {len(self.operands)} operands, not 1 + {rank}")
        for i in range(1, len(self.operands)):
            if not self.takes_list and as_array(self.operands[i].type) != array_type(S32.ir_type, ()):
                raise RuleBroken(
                    f"operand {i} of '{self.opcode}' does not fit",
                    operand=i,
                    details=(f"it is {type_text(self.operands[i].type)}", "it must be s32[]"),
                )
        sizes = [size_bounds(value.type) for value in (self.operands[0], self.result)]
        if not any(UNBOUNDED in dims for dims in sizes) and prod(sizes[0]) != prod(sizes[1]):
            raise RuleBroken("'dynamic-reshape' changes the largest number of elements", operand=0)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        numbers = operands[1] if self.takes_list else np.asarray([int(size) for size in operands[1:]])
        sizes = self.sizes_in(numbers)
        if prod(sizes) != operands[0].size:
            raise self.fault(f"{list(operands[0].shape)} has {operands[0].size} elements, {list(sizes)} {prod(sizes)}")
        return operands[0].reshape(sizes)


@op_definition
class DynamicBroadcastInDimOp(SizeOp):
    """Operand dim k becomes result dim dimensions[k], where a size 1 is repeated; operand 1 holds the result's sizes.

    known_expanding, known_nonexpanding  dimensions of the operand that are known to be, or not to be, repeated
    """

    name = "hlo.dynamic_broadcast_in_dim"
    OPERANDS: ClassVar = range(2, 3)
    dimensions = prop_def(DenseArrayBase)
    known_expanding = opt_prop_def(DenseArrayBase)
    known_nonexpanding = opt_prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_element()
        self.expect_shape_operand(1)
        operand, result, dimensions = dims_of(self.operands[0]), dims_of(self.result), integers(self.dimensions)
        if len(dimensions) != len(operand):
            raise RuleBroken(
                f"broadcast of {type_text(self.operands[0].type)} with {len(dimensions)} dimensions",
                operand=0,
                details=(f"dimensions={{...}} has a number for each of the operand's {len(operand)}",),
            )
        self.expect_dimensions(dimensions, len(result))
        for size, dim in zip(operand, dimensions, strict=True):
            if size != 1 and not same_dims((size,), (result[dim],)):
                raise RuleBroken(
                    "broadcast changes a size",
                    operand=0,
                    details=(
                        f"the operand is {type_text(self.operands[0].type)}, the result {type_text(self.result.type)}",
                    ),
                )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return self.view(operands).copy()

    def view(self, operands: Sequence[Any]) -> Array:
        """The value as a read-only view."""
        x, sizes, dimensions = operands[0], self.sizes_in(operands[1]), integers(self.dimensions)
        kept = [1] * len(sizes)
        for size, dim in zip(x.shape, dimensions, strict=True):
            if size not in (1, sizes[dim]):
                raise self.fault(f"{list(x.shape)} does not fit {list(sizes)} at dimension {dim}")
            kept[dim] = size
        in_result_order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
        return np.broadcast_to(x.transpose(in_result_order).reshape(kept), sizes)


@op_definition
class DynamicIotaOp(SizeOp):
    """Every element is its own index in one dimension; the result's sizes are the operand."""

    name = "hlo.dynamic_iota"
    OPERANDS: ClassVar = range(1, 2)
    iota_dimension = prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_shape_operand(0)
        self.expect_dimensions([self.iota_dimension.value.data], len(dims_of(self.result)))

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        sizes, along = self.sizes_in(operands[0]), self.iota_dimension.value.data
        one = np.arange(sizes[along]).reshape([-1 if dim == along else 1 for dim in range(len(sizes))])
        return np.broadcast_to(convert_array(one, dtype("s64"), element_of(self.result)), sizes).copy()


@op_definition
class DynamicPadOp(SizeOp):
    """As `pad`, with the numbers before, after and between the elements in operands 2, 3 and 4."""

    name = "hlo.dynamic_pad"
    OPERANDS: ClassVar = range(5, 6)

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_element()
        operand, filler = (as_array(value.type) for value in self.operands[:2])
        if filler != array_type(operand.element_type, ()):
            raise RuleBroken(
                "the padding value is not a scalar of the operand's type",
                operand=1,
                details=(f"it is {type_text(filler)}; the operand is {type_text(operand)}",),
            )
        rank = operand.get_num_dims()
        for i in range(2, 5):
            self.expect_numbers(i, rank, "the paddings")
        if len(dims_of(self.result)) != rank:
            raise RuleBroken("'dynamic-pad' keeps the rank", operand=0)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        edges = [[int(number) for number in operands[i]] for i in range(2, 5)]
        low, high, interior = edges
        if any(not 0 <= number <= MOST for number in interior) or any(abs(number) > MOST for number in (*low, *high)):
            raise self.fault(f"no padding of {low} before, {high} after and {interior} between the elements")
        sizes = [
            size + max(size - 1, 0) * inner + before + after
            for size, before, after, inner in zip(operands[0].shape, low, high, interior, strict=True)
        ]
        return PadOp.padded(
            operands[0], operands[1], self.sizes_in(np.asarray(sizes)), list(zip(low, high, interior, strict=True))
        )


@op_definition
class RealDynamicSliceOp(SizeOp):
    """As `slice`, with the starts, limits and strides in operands 1, 2 and 3."""

    name = "hlo.real_dynamic_slice"
    OPERANDS: ClassVar = range(4, 5)

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_element()
        rank = len(dims_of(self.operands[0]))
        for i in range(1, 4):
            self.expect_numbers(i, rank, "the ranges")
        if len(dims_of(self.result)) != rank:
            raise RuleBroken("'real-dynamic-slice' keeps the rank", operand=0)

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        ranges = list(zip(*([int(number) for number in operands[i]] for i in range(1, 4)), strict=True))
        for size, (start, limit, stride) in zip(operands[0].shape, ranges, strict=True):
            if not 0 <= start <= limit <= size or stride < 1:
                raise self.fault(f"the range [{start}:{limit}:{stride}] is not inside a dimension of {size}")
        found = operands[0][tuple(slice(*triple) for triple in ranges)].copy()
        self.sizes_in(np.asarray(found.shape))
        return found


@op_definition
class DynamicGatherOp(SizeOp):
    """As `gather`, with the sizes of a slice in operand 2."""

    name = "hlo.dynamic_gather"
    OPERANDS: ClassVar = range(3, 4)

    offset_dims = prop_def(DenseArrayBase)
    collapsed_slice_dims = prop_def(DenseArrayBase)
    start_index_map = prop_def(DenseArrayBase)
    operand_batching_dims = opt_prop_def(DenseArrayBase)
    start_indices_batching_dims = opt_prop_def(DenseArrayBase)
    index_vector_dim = prop_def(IntegerAttr)
    indices_are_sorted = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_element()
        self.expect_numbers(2, len(dims_of(self.operands[0])), "the sizes of a slice")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        sizes = [int(number) for number in operands[2]]
        if any(not 0 <= size <= whole for size, whole in zip(sizes, operands[0].shape, strict=True)):
            raise self.fault(f"no slice of sizes {sizes} fits inside {list(operands[0].shape)}")
        properties = {**self.properties, "slice_sizes": integer_array(sizes)}
        gather = with_operands(self, operands[:2], GatherOp, properties)
        self.refuse_beyond_limit(dims_of(gather.result))
        return gather.evaluate(operands[:2], call)


@op_definition
class DynamicConvOp(SizeOp):
    """As `convolution`, with the padding in operand 2: a row (low, high) for each spatial dimension.

    window  without padding; its size is that of the kernel, whatever the attribute says
    """

    name = "hlo.dynamic_conv"
    OPERANDS: ClassVar = range(3, 4)

    dim_labels = prop_def(StringAttr)
    window = prop_def(WindowAttr)
    feature_group_count = opt_prop_def(IntegerAttr)
    batch_group_count = opt_prop_def(IntegerAttr)
    operand_precision = opt_prop_def(StringAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        padding = as_array(self.operands[2].type)
        spatial = len(dims_of(self.result)) - 2
        if not element_of(padding).is_integer or not same_dims(padding.get_shape(), (spatial, 2)):
            raise RuleBroken(
                f"the padding of 'dynamic-conv' is {spatial} rows of two integers",
                operand=2,
                details=(f"it is {type_text(padding)}",),
            )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return self.static(operands).evaluate(operands[:2], call)

    def static(self, operands: Sequence[Any]) -> ConvolutionOp:
        """The static convolution of operands 0 and 1 for these values. raises DataError for a padding that leaves no array"""
        in_image, in_kernel, _ = self.dim_labels.data.replace("->", "_").split("_")
        for axis, row in enumerate(operands[2]):
            edges = [int(number) for number in row]
            size = operands[0].shape[in_image.index(str(axis))]
            if max(map(abs, edges)) > MOST or size + sum(edges) < 0:
                raise self.fault(f"the padding {edges} of axis {axis}, of size {size}, leaves no array")
        lists = dict(self.window.data.lists())
        lists["size"] = tuple(operands[1].shape[in_kernel.index(str(i))] for i in range(len(in_kernel) - 2))
        lists["pad"] = tuple(int(number) for number in operands[2].reshape(-1))
        properties = {**self.properties, "window": WindowAttr(Window.of_lists(dict(lists)))}
        made = with_operands(self, operands[:2], ConvolutionOp, properties)
        self.refuse_beyond_limit(dims_of(made.result))
        return made


@op_definition
class DynamicReduceWindowOp(CallingOp):
    """As `reduce-window`, with the window in the last five operands: sizes, strides, dilations of the array and of the window, and
    a row (low, high) of padding for each dimension."""

    name = "hlo.dynamic_reduce_window"
    OPERANDS: ClassVar = at_least(7)
    WINDOW: ClassVar = ("size", "stride", "lhs_dilate", "rhs_dilate", "pad")

    to_apply = prop_def(SymbolRefAttr)

    @property
    def count(self) -> int:
        """The number of arrays."""
        return (len(self.operands) - len(self.WINDOW)) // 2

    def callees(self) -> tuple[Callee, ...]:
        results = [scalar_of(part) for part in tuple_types(self.result.type)]
        values = [scalar_of(operand.type) for operand in self.operands[: self.count]]
        return (Callee(self.to_apply, [*results, *values], scalar_of(self.result.type)),)

    def verify_shape(self) -> None:
        if len(self.operands) != 2 * self.count + len(self.WINDOW):
            raise RuleBroken(
                f"'{self.opcode}' takes as many initial values as arrays",
                details=(f"it has {len(self.operands)} operands, the last five of the window",),
            )
        rank = len(dims_of(self.operands[0]))
        for i, name in enumerate(self.WINDOW, 2 * self.count):
            ir_type = as_array(self.operands[i].type)
            if not element_of(ir_type).is_integer or not same_dims(
                ir_type.get_shape(), (rank, 2) if name == "pad" else (rank,)
            ):
                raise RuleBroken(
                    f"the window of '{self.opcode}' has {rank} dimensions",
                    operand=i,
                    details=(f"operand {i} is {type_text(ir_type)}",),
                )

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        data = operands[: 2 * self.count]
        lists = {
            name: tuple(int(number) for number in array.reshape(-1))
            for name, array in zip(self.WINDOW, operands[2 * self.count :], strict=True)
        }
        try:
            if any(abs(number) > MOST for numbers in lists.values() for number in numbers):
                raise ValueError(f"the numbers of a window are at most {MOST}")
            window = Window.of_lists(dict(lists))
        except ValueError as error:
            raise fault(self, str(error)) from None
        properties = {**self.properties, "window": WindowAttr(window)}
        return with_operands(self, data, ReduceWindowOp, properties).evaluate(data, call)


@op_definition
class DynamicTopKOp(SizeOp):
    """As `topk`, with the number k in operand 1."""

    name = "hlo.dynamic_top_k"
    OPERANDS: ClassVar = range(2, 3)

    def verify_(self) -> None:
        self.verify_operand_count()
        if dims_of(self.operands[1]) or not element_of(self.operands[1]).is_integer:
            raise RuleBroken("the number of 'dynamic-top-k' is an integer scalar", operand=1)
        *rest, _ = dims_of(self.operands[0]) or (UNBOUNDED,)
        types = tuple_types(self.result.type)
        last = [dims_of(part)[-1] if dims_of(part) else UNBOUNDED for part in types]
        operand = as_array(self.operands[0].type).element_type
        wanted = [array_type(element, (*rest, last[0])) for element in (operand, S32.ir_type)]
        self.expect_type(tuple_type(wanted), "the largest values and their places have")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        k = int(operands[1])
        if not operands[0].ndim or not 0 <= k <= operands[0].shape[-1]:
            raise self.fault(f"no {k} largest of {list(operands[0].shape)}")
        sizes = (*operands[0].shape[:-1], k)
        element = as_array(self.operands[0].type).element_type
        result = tuple_type([array_type(part, sizes) for part in (element, S32.ir_type)])
        properties = {"name": self.instruction_name, "k": IntegerAttr(k, i64), "largest": IntegerAttr(1, i1)}
        return with_operands(self, operands[:1], _opcode("topk"), properties, result).evaluate(operands[:1], call)


@op_definition
class DynamicRngBitGeneratorOp(SizeOp):
    """As `rng-bit-generator`, with the sizes of the bits in operand 1; gives the new state and the bits."""

    name = "hlo.dynamic_rng_bit_generator"
    OPERANDS: ClassVar = range(2, 3)
    algorithm = prop_def(StringAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        types = tuple_types(self.result.type)
        if len(types) != 2 or not same_shape(types[0], self.operands[0].type):
            raise RuleBroken(f"'{self.opcode}' gives its new state and an array")
        self.expect_numbers(1, len(dims_of(types[1])), "the sizes")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        state, bits = tuple_types(self.result.type)
        sizes = [int(size) for size in operands[1]]
        if any(size < 0 for size in sizes) or not same_dims(sizes, dims_of(bits)):
            raise self.fault(f"the sizes {sizes} do not fit {type_text(bits)}")
        result = tuple_type([state, array_type(as_array(bits).element_type, sizes)])
        generator = with_operands(self, operands[:1], _opcode("rng-bit-generator"), self.properties, result)
        return generator.evaluate(operands[:1], call)


@op_definition
class DynamicRngOp(SizeOp):
    """As `rng`, with the sizes of the result in operand 2."""

    name = "hlo.dynamic_rng"
    OPERANDS: ClassVar = range(3, 4)
    distribution = prop_def(StringAttr)

    def verify_(self) -> None:
        self.verify_operand_count()
        for number in range(2):
            if dims_of(self.operands[number]) or element_of(self.operands[number]) != element_of(self.result):
                raise RuleBroken("the first operands of 'dynamic-rng' are scalars of the result's type", operand=number)
        self.expect_numbers(2, len(dims_of(self.result)), "the sizes")

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        sizes = [int(size) for size in operands[2]]
        if any(size < 0 for size in sizes) or not same_dims(sizes, dims_of(self.result)):
            raise self.fault(f"the sizes {sizes} do not fit {type_text(self.result.type)}")
        result = array_type(as_array(self.result.type).element_type, sizes)
        return self.as_rng(result).evaluate(operands[:2], call)

    def as_rng(self, result: Attribute) -> HloOp:
        """`rng` of the first two operands, which are scalars, with a result of that type."""
        made = with_operands(self, [np.zeros(())] * 2, _opcode("rng"), self.properties, result)
        made.attributes[NUMBERS_BEFORE] = IntegerAttr(numbers_before(self), i64)
        return made


def _opcode(opcode: str) -> type[HloOp]:
    (found,) = (op for op in (*control_ops.OPS, *routines.OPS) if opcode_of(op) == opcode)
    return found


@op_definition
class ShapeAssertionOp(SizeOp):
    """Stops the program with `message` unless operand 0 holds; `{0}` in the message is the value of operand 1, and so on."""

    name = "hlo.shape_assertion"
    OPERANDS: ClassVar = at_least(1)
    message = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        self.verify_operand_count()
        if self.operands[0].type != array_type(dtype("pred").ir_type, ()):
            raise RuleBroken("what is asserted is a scalar pred", operand=0)
        for i, operand in enumerate(self.operands[1:], 1):
            if dims_of(operand) or not element_of(operand).is_integer:
                raise RuleBroken("a value in an assertion's message is an integer scalar", operand=i)
        self.expect_type(tuple_type([]), "an assertion gives")

    def text(self, values: Sequence[int]) -> str:
        """The message with the values in it."""
        shown = self.message.data
        for number, value in enumerate(values):
            shown = shown.replace(f"{{{number}}}", str(value))
        return shown

    def evaluate(self, operands: Sequence[Any], call: Call) -> tuple[()]:
        if not bool(operands[0]):
            raise DataError(self.text([int(value) for value in operands[1:]]), stage="evaluate")
        return ()


@op_definition
class PrintOp(SizeOp):
    """Prints operand 0 to standard error with its shape, after `label`. The reference prints nothing: a call of the program does."""

    name = "hlo.print"
    OPERANDS: ClassVar = range(1, 2)
    label = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        self.verify_operand_count()
        self.expect_type(tuple_type([]), "a print gives")

    def evaluate(self, operands: Sequence[Any], call: Call) -> tuple[()]:
        return ()


TEXT_OPS: tuple[type[HloOp], ...] = (GetDimensionSizeOp, SetDimensionSizeOp, DynamicReshapeOp)
"""The ops that HLO text has too."""

PROGRAM_OPS: tuple[type[HloOp], ...] = (
    DynamicBroadcastInDimOp,
    DynamicIotaOp,
    DynamicPadOp,
    RealDynamicSliceOp,
    DynamicGatherOp,
    DynamicConvOp,
    DynamicReduceWindowOp,
    DynamicTopKOp,
    DynamicRngBitGeneratorOp,
    DynamicRngOp,
    ShapeAssertionOp,
    PrintOp,
)
"""The ops that HLO text lacks."""
