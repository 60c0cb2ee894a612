"""Ops with numbers as operands that are their static op at these numbers: gather, convolution, reduce-window, top-k, random numbers.

    %y = hlo.dynamic_gather %x, %at, %sizes {...} : (tensor<?x?xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<?x?xf32>

A value is that of the static op, made with the numbers that the operands hold; the shape rule is the same, over numbers that are not known.
`dynamic_shape_ops` has the others, and says more about all of them.
Source: StableHLO specification and its "Dynamism" RFC (https://openxla.org/stablehlo/dynamism); docs/reference/4 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def, prop_def

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo import control_ops, routines
from xla_emitters.dialects.hlo.base import Call, HloOp, RuleBroken, at_least, opcode_of
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, scalar_of
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, convolved, labels_of
from xla_emitters.dialects.hlo.dynamic_shape_ops import S32, SizeOp, listed
from xla_emitters.dialects.hlo.gather_scatter import GatherOp, gathered
from xla_emitters.dialects.hlo.library_calls import NUMBERS_BEFORE, numbers_before
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_rule import MOST, Number, Shape, Sizing, positions, same_axes
from xla_emitters.dialects.hlo.sized import ValueSizing, with_operands
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    element_of,
    same_dims,
    same_shape,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import Window, WindowAttr
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array


@op_definition
class DynamicGatherOp(SizeOp):
    """As `gather`, with the sizes of a slice in operand 2."""

    name = "hlo.dynamic_gather"
    OPERANDS: ClassVar = range(3, 4)
    MOVED: ClassVar = slice(0, 1)
    NUMBERS: ClassVar = slice(2, 3)

    offset_dims = prop_def(DenseArrayBase)
    collapsed_slice_dims = prop_def(DenseArrayBase)
    start_index_map = prop_def(DenseArrayBase)
    operand_batching_dims = opt_prop_def(DenseArrayBase)
    start_indices_batching_dims = opt_prop_def(DenseArrayBase)
    index_vector_dim = prop_def(IntegerAttr)
    indices_are_sorted = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.expect_element()
        self.expect_numbers(2, len(dims_of(self.operands[0])), "the sizes of a slice")

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        return (min(1, self.smallest_drawn), self.smallest_drawn) if operand == 2 else None

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        sizes = [s.held(2, axis) for axis in range(len(dims_of(self.operands[0])))]
        return [gathered(self, s, sizes, lambda: RuleBroken("no such slice fits inside the operand", operand=0))]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        self.sizes_from(operands)
        properties = {**self.properties, "slice_sizes": integer_array(operands[2].tolist())}
        return with_operands(self, operands[:2], GatherOp, properties).evaluate(operands[:2], call)


@op_definition
class DynamicConvOp(SizeOp):
    """As `convolution`, with the padding in operand 2: a row (low, high) for each spatial dimension.

    window  without padding; its size is that of the kernel, whatever the attribute says
    """

    name = "hlo.dynamic_conv"
    OPERANDS: ClassVar = range(3, 4)
    NUMBERS: ClassVar = slice(2, 3)

    dim_labels = prop_def(StringAttr)
    window = prop_def(WindowAttr)
    feature_group_count = opt_prop_def(IntegerAttr)
    batch_group_count = opt_prop_def(IntegerAttr)
    operand_precision = opt_prop_def(StringAttr)

    def verify_(self) -> None:
        padding = as_array(self.operands[2].type)
        spatial = len(dims_of(self.result)) - 2
        if not element_of(padding).is_integer or not same_dims(padding.get_shape(), (spatial, 2)):
            raise RuleBroken(
                f"the padding of 'dynamic-conv' is {spatial} rows of two integers",
                f"it is {type_text(padding)}",
                operand=2,
            )

    @property
    def labels(self) -> list[str]:
        """As those of `ConvolutionOp`."""
        return labels_of(self.dim_labels)

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        return (0, 3) if operand == 2 else None

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        for axis in range(len(self.labels[0]) - 2):
            low, high = s.held(2, axis, 0), s.held(2, axis, 1)
            size = s.axis(0, self.labels[0].index(str(axis)))
            said = f"the padding {{0}} before and {{1}} after axis {axis}, of size {{2}}, leaves no array"
            limits = [(-MOST, low), (low, MOST), (-MOST, high), (high, MOST), (0, size + low + high)]
            s.require(said, [low, high, size], limits, of_data=True)
        groups = self.batch_group_count.value.data if self.batch_group_count else 1
        return [convolved(s, self.labels, self.window.data.dims, groups, lambda axis, side: s.held(2, axis, side))]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return self.static(operands).evaluate(operands[:2], call)

    def static(self, operands: Sequence[Any]) -> ConvolutionOp:
        """The static convolution of operands 0 and 1 for these values. raises DataError for a padding that leaves no array"""
        self.sizes_from(operands)
        in_kernel = self.labels[1]
        lists = dict(self.window.data.lists())
        lists["size"] = tuple(operands[1].shape[in_kernel.index(str(i))] for i in range(len(in_kernel) - 2))
        lists["pad"] = tuple(int(number) for number in operands[2].reshape(-1))
        properties = {**self.properties, "window": WindowAttr(Window.of_lists(dict(lists)))}
        return with_operands(self, operands[:2], ConvolutionOp, properties)


@op_definition
class DynamicReduceWindowOp(CallingOp):
    """As `reduce-window`, with the window in the last five operands: sizes, strides, dilations of the array and of the window, and
    a row (low, high) of padding for each dimension."""

    name = "hlo.dynamic_reduce_window"
    OPERANDS: ClassVar = at_least(7)
    NUMBERS: ClassVar = slice(-5, None)
    WINDOW: ClassVar = ("size", "stride", "lhs_dilate", "rhs_dilate", "pad")
    NAMES: ClassVar = ("size", "stride", "dilation of the operand", "dilation of the window")

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
                f"it has {len(self.operands)} operands, the last five of the window",
            )
        rank = len(dims_of(self.operands[0]))
        for i, name in enumerate(self.WINDOW, 2 * self.count):
            ir_type = as_array(self.operands[i].type)
            if not element_of(ir_type).is_integer or not same_dims(
                ir_type.get_shape(), (rank, 2) if name == "pad" else (rank,)
            ):
                raise RuleBroken(
                    f"the window of '{self.opcode}' has {rank} dimensions",
                    f"operand {i} is {type_text(ir_type)}",
                    operand=i,
                )

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        padding = len(self.operands) - 1
        return None if operand not in self.number_operands else (0, 2) if operand == padding else (1, 2)

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        first, found = 2 * self.count, list[Number]()
        for axis, elements in enumerate(same_axes(s, range(self.count), self.arrays_differ)):
            numbers = [s.held(operand, axis) for operand in range(first, first + 4)]
            for name, number in zip(self.NAMES, numbers, strict=True):
                said = f"the window's {name} is {{0}} along axis {axis}, not between 1 and {MOST}"
                s.require(said, [number], [(1, number), (number, MOST)])
            size, stride, base, apart = numbers
            low, high = (s.held(first + 4, axis, side) for side in (0, 1))
            for edge in (low, high):
                s.require(f"the padding {{0}} is not between {-MOST} and {MOST}", [edge], [(-MOST, edge), (edge, MOST)])
            found.append(positions(s, elements, size, stride, low, high, base, apart))
        return [found] * self.count

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        return self.static(operands).evaluate(operands[: 2 * self.count], call)

    def static(self, operands: Sequence[Any]) -> ReduceWindowOp:
        """The static op of the arrays and initial values for these values. raises DataError for a window that is none"""
        self.shapes(ValueSizing(self, operands))
        lists = {
            name: tuple(array.reshape(-1).tolist())
            for name, array in zip(self.WINDOW, operands[2 * self.count :], strict=True)
        }
        properties = {**self.properties, "window": WindowAttr(Window.of_lists(dict(lists)))}
        return with_operands(self, operands[: 2 * self.count], ReduceWindowOp, properties)


@op_definition
class DynamicTopKOp(SizeOp):
    """As `topk`, with the number k in operand 1."""

    name = "hlo.dynamic_top_k"
    OPERANDS: ClassVar = range(2, 3)
    NUMBERS: ClassVar = slice(1, 2)

    def verify_(self) -> None:
        if dims_of(self.operands[1]) or not element_of(self.operands[1]).is_integer:
            raise RuleBroken("the number of 'dynamic-top-k' is an integer scalar", operand=1)
        if not dims_of(self.operands[0]):
            raise RuleBroken("'dynamic-top-k' takes an array with a last dimension", operand=0)
        operand = as_array(self.operands[0].type).element_type
        wanted = [array_type(element, self.inferred_dims()) for element in (operand, S32.ir_type)]
        self.expect_type(tuple_type(wanted), "the largest values and their places have")

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        return (0, max(0, dims_of(self.operands[0])[-1])) if operand == 1 else None

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return routines.top_k_shapes(s, s.held(1), lambda: RuleBroken("too few elements", operand=0))

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        sizes, k = self.sizes_from(operands), int(operands[1])
        element = as_array(self.operands[0].type).element_type
        result = tuple_type([array_type(part, sizes) for part in (element, S32.ir_type)])
        properties = {"name": self.instruction_name, "k": IntegerAttr(k, i64), "largest": IntegerAttr(1, i1)}
        return with_operands(self, operands[:1], _opcode("topk"), properties, result).evaluate(operands[:1], call)


@op_definition
class DynamicRngBitGeneratorOp(SizeOp):
    """As `rng-bit-generator`, with the sizes of the bits in operand 1; gives the new state and the bits."""

    name = "hlo.dynamic_rng_bit_generator"
    OPERANDS: ClassVar = range(2, 3)
    NUMBERS: ClassVar = slice(1, 2)
    algorithm = prop_def(StringAttr)

    def verify_(self) -> None:
        types = tuple_types(self.result.type)
        if len(types) != 2 or not same_shape(types[0], self.operands[0].type):
            raise RuleBroken(f"'{self.opcode}' gives its new state and an array")
        self.expect_numbers(1, len(dims_of(types[1])), "the sizes")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [s.axes(0), listed(s, 1, len(dims_of(tuple_types(self.result.type)[1])))]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        state, bits = tuple_types(self.result.type)
        result = tuple_type([state, array_type(as_array(bits).element_type, self.sizes_from(operands))])
        generator = with_operands(self, operands[:1], _opcode("rng-bit-generator"), self.properties, result)
        return generator.evaluate(operands[:1], call)


@op_definition
class DynamicRngOp(SizeOp):
    """As `rng`, with the sizes of the result in operand 2."""

    name = "hlo.dynamic_rng"
    OPERANDS: ClassVar = range(3, 4)
    NUMBERS: ClassVar = slice(2, 3)
    distribution = prop_def(StringAttr)

    def verify_(self) -> None:
        for number in range(2):
            if dims_of(self.operands[number]) or element_of(self.operands[number]) != element_of(self.result):
                raise RuleBroken("the first operands of 'dynamic-rng' are scalars of the result's type", operand=number)
        self.expect_numbers(2, len(dims_of(self.result)), "the sizes")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [listed(s, 2, len(dims_of(self.result)))]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        result = array_type(as_array(self.result.type).element_type, self.sizes_from(operands))
        return self.as_rng(result).evaluate(operands[:2], call)

    def as_rng(self, result: Attribute) -> HloOp:
        """`rng` of the first two operands, which are scalars, with a result of that type."""
        made = with_operands(self, [np.zeros(())] * 2, _opcode("rng"), self.properties, result)
        made.attributes[NUMBERS_BEFORE] = IntegerAttr(numbers_before(self), i64)
        return made


def _opcode(opcode: str) -> type[HloOp]:
    (found,) = (op for op in (*control_ops.OPS, *routines.OPS) if opcode_of(op) == opcode)
    return found


OPS: tuple[type[HloOp], ...] = (
    DynamicGatherOp,
    DynamicConvOp,
    DynamicReduceWindowOp,
    DynamicTopKOp,
    DynamicRngBitGeneratorOp,
    DynamicRngOp,
)
