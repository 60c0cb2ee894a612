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
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.irdl import opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryWriteEffect

from xla_emitters.dialects.hlo.base import Call, HloOp, RuleBroken, at_least, fault, integers
from xla_emitters.dialects.hlo.constant import counted_along
from xla_emitters.dialects.hlo.shape_ops import PadOp, broadcast_array, expect_filler, expect_one_per_dimension
from xla_emitters.dialects.hlo.shape_rule import MOST, UNKNOWN, Number, Shape, Sizing, as_int, padded
from xla_emitters.dialects.hlo.sized import ValueSizing
from xla_emitters.dialects.hlo.types import (
    UNBOUNDED,
    array_type,
    as_array,
    dims_of,
    element_of,
    leaf_types,
    same_dims,
    size_bounds,
    tuple_type,
    type_text,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import DataError

S32 = dtype("s32")
LARGEST_DRAWN = 64
"""The largest size that is drawn for an array."""


class SizeOp(HloOp):
    """The base of these ops, with their common checks."""

    def expect_numbers(self, operand: int, count: int, what: str) -> None:
        """An operand is a list of `count` integers."""
        ir_type = as_array(self.operands[operand].type)
        if not element_of(ir_type).is_integer or not same_dims(ir_type.get_shape(), (count,)):
            raise RuleBroken(
                f"{what} of '{self.opcode}' are {count} integers",
                f"operand {operand} is {type_text(ir_type)}",
                operand=operand,
            )

    def expect_number_lists(self, what: str) -> None:
        """Each operand of numbers is a list of integers, one per dimension of operand 0, whose rank the result has."""
        rank = len(dims_of(self.operands[0]))
        for operand in self.number_operands:
            self.expect_numbers(operand, rank, what)
        if len(dims_of(self.result)) != rank:
            raise RuleBroken(f"'{self.opcode}' keeps the rank", operand=0)

    def expect_s32(self, operand: int) -> None:
        """An operand is one integer."""
        ir_type = as_array(self.operands[operand].type)
        if ir_type != array_type(S32.ir_type, ()):
            raise RuleBroken(
                f"operand {operand} of '{self.opcode}' does not fit",
                f"it is {type_text(ir_type)}",
                "it must be s32[]",
                operand=operand,
            )

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        """The operand holds sizes."""
        return (0, LARGEST_DRAWN) if operand in self.number_operands else None

    @property
    def smallest_drawn(self) -> int:
        """The smallest known size of operand 0, of which numbers select a part."""
        return min((size for size in dims_of(self.operands[0]) if size >= 0), default=LARGEST_DRAWN)

    def expect_shape_operand(self, operand: int) -> None:
        self.expect_numbers(operand, len(dims_of(self.result)), "the sizes")

    def sizes_from(self, operands: Sequence[Any]) -> tuple[int, ...]:
        """The sizes of the (last) result, by the shape rule. raises DataError for numbers that the op, or the result's type, forbids"""
        found = self.shapes(ValueSizing(self, operands))
        assert found is not None
        sizes, wanted = tuple(map(as_int, found[-1])), leaf_types(self.result.type)[-1]
        if any(size < 0 for size in sizes) or not same_dims(sizes, dims_of(wanted)):
            raise self.fault(f"the sizes {list(sizes)} do not fit {type_text(wanted)}")
        self.refuse_beyond_limit(sizes)
        return sizes

    def refuse_beyond_limit(self, sizes: Sequence[int]) -> None:
        """raises DataError for a result of these sizes that is larger than the limit on memory."""
        # Imported here: commands that compile start faster without it.
        from xla_emitters.support.limits import refuse_beyond_limit

        element = element_of(leaf_types(self.result.type)[-1])
        what = f"%{self.instruction_name.data} = {self.opcode}"
        refuse_beyond_limit(sizes, element.numpy.itemsize, element.name, what)

    def fault(self, message: str) -> DataError:
        """The error for operands for which the op has no value."""
        return fault(self, message)


def listed(s: Sizing, operand: int, rank: int) -> Shape:
    """The sizes that an operand lists."""
    return [s.is_size(s.held(operand, dim), dim) for dim in range(rank)]


# --------------------------------------------------------------------------------------------------- sizes as numbers


@op_definition
class GetDimensionSizeOp(HloOp):
    """The size of one dimension."""

    name = "hlo.get_dimension_size"
    OPERANDS: ClassVar = range(1, 2)
    dimensions = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.only_dimension(len(dims_of(self.operands[0])))
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
    MOVED: ClassVar = slice(0, 1)
    NUMBERS: ClassVar = slice(1, 2)
    dimensions = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        operand = as_array(self.operands[0].type)
        dimension = self.only_dimension(len(dims_of(operand)))
        self.expect_s32(1)
        bounds = list(size_bounds(operand))
        sizes = [UNBOUNDED if dim == dimension else size for dim, size in enumerate(dims_of(operand))]
        limits = [bound if size == UNBOUNDED else UNBOUNDED for size, bound in zip(sizes, bounds, strict=True)]
        self.expect_type(array_type(operand.element_type, sizes, bounds=limits), "operands and attributes give")

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        return (0, max(0, dims_of(self.operands[0])[integers(self.dimensions)[0]])) if operand == 1 else None

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found, (dimension,), number = s.axes(0), integers(self.dimensions), s.held(1)
        whole = found[dimension]
        s.inside(0, number, whole, "the size {0} is not in [0, {1}]", [number, whole])
        found[dimension] = number
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return operands[0][tuple(map(slice, self.sizes_from(operands)))].copy()


# ------------------------------------------------------------------------------------- results of sizes given as operands


@op_definition
class DynamicReshapeOp(SizeOp):
    """The same elements in row-major order, in the shape that the operands after the first hold: one list, or a scalar per dimension."""

    name = "hlo.dynamic_reshape"
    IN_STABLEHLO: ClassVar = True
    OPERANDS: ClassVar = at_least(1)
    MOVED: ClassVar = slice(0, 1)
    NUMBERS: ClassVar = slice(1, None)

    @property
    def takes_list(self) -> bool:
        """Whether the sizes are one operand, as in StableHLO, and not scalars, as in HLO text."""
        return len(self.operands) == 2 and len(dims_of(self.operands[1])) == 1

    def verify_(self) -> None:
        self.expect_element()
        rank = len(dims_of(self.result))
        if self.takes_list:
            self.expect_shape_operand(1)
        elif len(self.operands) != 1 + rank:
            raise RuleBroken(f"'dynamic-reshape' to rank {rank} has {len(self.operands)} operands, not 1 + {rank}")
        else:
            for i in range(1, len(self.operands)):
                self.expect_s32(i)
        sizes = [size_bounds(value.type) for value in (self.operands[0], self.result)]
        if not any(UNBOUNDED in dims for dims in sizes) and prod(sizes[0]) != prod(sizes[1]):
            raise self._changes_size()

    def _changes_size(self) -> RuleBroken:
        return RuleBroken("'dynamic-reshape' changes the largest number of elements", operand=0)

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        rank = len(dims_of(self.result))
        found = [s.held(1, dim) if self.takes_list else s.held(1 + dim) for dim in range(rank)]
        s.same_product(s.axes(0), found, self._changes_size)
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return operands[0].reshape(self.sizes_from(operands))


@op_definition
class DynamicBroadcastInDimOp(SizeOp):
    """Operand dim k becomes result dim dimensions[k], where a size 1 is repeated; operand 1 holds the result's sizes.

    known_expanding, known_nonexpanding  dimensions of the operand that are known to be, or not to be, repeated
    """

    name = "hlo.dynamic_broadcast_in_dim"
    OPERANDS: ClassVar = range(2, 3)
    MOVED: ClassVar = slice(0, 1)
    NUMBERS: ClassVar = slice(1, 2)
    dimensions = prop_def(DenseArrayBase)
    known_expanding = opt_prop_def(DenseArrayBase)
    known_nonexpanding = opt_prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.expect_element()
        self.expect_shape_operand(1)
        dimensions = integers(self.dimensions)
        expect_one_per_dimension(self, dimensions)
        self.expect_dimensions(dimensions, len(dims_of(self.result)))
        self.inferred_dims()

    def _changes_size(self) -> RuleBroken:
        return RuleBroken(
            "broadcast changes a size",
            f"the operand is {type_text(self.operands[0].type)}, the result {type_text(self.result.type)}",
            operand=0,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        static = dims_of(self.result)
        found = [s.is_size(s.held(1, dim), dim) for dim in range(len(static))]
        one, equal = integers(self.known_expanding), integers(self.known_nonexpanding)
        for axis, dim in enumerate(integers(self.dimensions)):
            own, wanted = s.axis(0, axis), found[dim]
            # Where the list is not known, the type may say the size.
            wanted = static[dim] if wanted is UNKNOWN and static[dim] != UNBOUNDED else wanted
            if axis in (*one, *equal):
                s.same(own, 1 if axis in one else wanted, self._changes_size)
            said = f"axis {axis} of the operand, of size {{0}}, is no axis of size {{1}}, and is not repeated"
            found[dim] = s.repeats(own, wanted, self._changes_size, said)
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return self.view(operands).copy()

    def view(self, operands: Sequence[Any]) -> Array:
        """The value as a read-only view."""
        return broadcast_array(operands[0], self.sizes_from(operands), integers(self.dimensions))


@op_definition
class DynamicIotaOp(SizeOp):
    """Every element is its own index in one dimension; the result's sizes are the operand."""

    name = "hlo.dynamic_iota"
    OPERANDS: ClassVar = range(1, 2)
    NUMBERS: ClassVar = slice(0, 1)
    iota_dimension = prop_def(IntegerAttr)

    def verify_(self) -> None:
        self.expect_shape_operand(0)
        self.expect_dimension(self.iota_dimension.value.data, len(dims_of(self.result)), "iota_dimension")

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        return [listed(s, 0, len(dims_of(self.result)))]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return counted_along(self.iota_dimension.value.data, self.sizes_from(operands), element_of(self.result))


@op_definition
class DynamicPadOp(SizeOp):
    """As `pad`, with the numbers before, after and between the elements in operands 2, 3 and 4."""

    name = "hlo.dynamic_pad"
    IN_STABLEHLO: ClassVar = True
    OPERANDS: ClassVar = range(5, 6)
    MOVED: ClassVar = slice(0, 2)
    NUMBERS: ClassVar = slice(2, 5)

    def verify_(self) -> None:
        self.expect_element()
        expect_filler(self)
        self.expect_number_lists("the paddings")

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        return (0, 8) if operand in self.number_operands else None

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found = list[Number]()
        for axis, size in enumerate(s.axes(0)):
            low, high, interior = (s.held(operand, axis) for operand in (2, 3, 4))
            found.append(padded(s, size, low, high, interior))
            said = f"the padding {{0}} before, {{1}} after and {{2}} between the elements of axis {axis}, of size {{3}}, leaves no array"
            limits = [(0, interior), (interior, MOST), (-MOST, low), (low, MOST), (-MOST, high), (high, MOST)]
            s.require(said, [low, high, interior, size], [*limits, (0, found[-1])])
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        sizes, edges = self.sizes_from(operands), [tuple(map(int, row)) for row in zip(*operands[2:], strict=True)]
        return PadOp.filled(operands[0], operands[1], sizes, edges)


@op_definition
class RealDynamicSliceOp(SizeOp):
    """As `slice`, with the starts, limits and strides in operands 1, 2 and 3."""

    name = "hlo.real_dynamic_slice"
    IN_STABLEHLO: ClassVar = True
    OPERANDS: ClassVar = range(4, 5)
    MOVED: ClassVar = slice(0, 1)
    NUMBERS: ClassVar = slice(1, 4)

    def verify_(self) -> None:
        self.expect_element()
        self.expect_number_lists("the ranges")

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        smallest = self.smallest_drawn
        return {1: (0, smallest // 2), 2: (smallest // 2, smallest), 3: (1, 3)}.get(operand)

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        found = list[Number]()
        for axis, size in enumerate(s.axes(0)):
            start, limit, stride = (s.held(operand, axis) for operand in (1, 2, 3))
            said = f"the range [{{0}}:{{1}}] is not inside axis {axis} of the operand, whose size is {{2}}"
            s.inside(start, limit, size, said, [start, limit, size])
            s.require(f"the step {{0}} along axis {axis} is not positive", [stride], [(1, stride)])
            found.append(s.ceildiv(limit - start, stride))
        return [found]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        self.sizes_from(operands)
        return operands[0][tuple(slice(*map(int, triple)) for triple in zip(*operands[1:], strict=True))].copy()


@op_definition
class ShapeAssertionOp(SizeOp):
    """Stops the program with `message` unless operand 0 holds; `{0}` in the message is the value of operand 1, and so on."""

    name = "hlo.shape_assertion"
    OPERANDS: ClassVar = at_least(1)
    message = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
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
    ShapeAssertionOp,
    PrintOp,
)
"""The ops that HLO text lacks."""
