"""Windows of an array at starts that are known only at run time: read by dynamic-slice, replaced by dynamic-update-slice.

    %s = hlo.dynamic_slice %x, %i {dynamic_slice_sizes = array<i64: 4>, name = "s"} : (tensor<10xf32>, tensor<i32>) -> tensor<4xf32>

Starts are clamped, so that the window is inside; a window that is larger than the array has no such start.
Source: docs/reference/1 3.2, 5.5, 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.build import apply_indexing, clamp_index, constant_index, value_is_in
from xla_emitters.dialects.hlo.base import Call, ElementContext, HloOp, RuleBroken, at_least, fault, integers
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing, fits_inside
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, element_of, type_text
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array, Kind


class DynamicOp(HloOp):
    """A window of an array at starts known only at run time, which are clamped so that the window is inside."""

    STARTS: ClassVar[int]
    """The number of the first operand that is a start index."""

    def verify_starts(self) -> None:
        """raises RuleBroken unless the start indices are one integer scalar per dimension, all of one type."""
        starts, rank = self.operands[self.STARTS :], len(dims_of(self.operands[0]))
        if len(starts) != rank:
            raise RuleBroken(
                f"'{self.opcode}' of {type_text(self.operands[0].type)} with {len(starts)} start indices",
                f"it takes {rank}, one scalar per dimension",
            )
        for i, start in enumerate(starts, self.STARTS):
            if dims_of(start) or not element_of(start).is_integer:
                raise RuleBroken(
                    "a start index is an integer scalar", f"operand {i} is {type_text(start.type)}", operand=i
                )
            if start.type != starts[0].type:
                raise RuleBroken(
                    f"start indices of '{self.opcode}' differ in type",
                    f"operand {i} is {type_text(start.type)}, operand {self.STARTS} is {type_text(starts[0].type)}",
                    operand=i,
                )

    def window(self, operands: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
        """The clamped window of that size, from the values of all operands."""
        starts = operands[self.STARTS :]
        if any(map(int.__gt__, sizes, operands[0].shape)):
            raise fault(self, f"no window of {list(sizes)} fits inside {list(operands[0].shape)}")
        clamped = [
            min(max(int(start), 0), whole - size)
            for start, whole, size in zip(starts, operands[0].shape, sizes, strict=True)
        ]
        return tuple(slice(start, start + size) for start, size in zip(clamped, sizes, strict=True))

    def last_starts(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The greatest start of a window of that size, in each dimension."""
        return tuple(whole - size for whole, size in zip(dims_of(self.operands[0]), sizes, strict=True))

    def clamped_starts(
        self, builder: Builder, start: Callable[[int], SSAValue], sizes: Sequence[int]
    ) -> list[SSAValue]:
        """The clamped starts, one index per dimension. `start` returns the element of an operand, by its number."""
        return [
            clamp_index(builder, start(i), last, is_unsigned=element_of(self.operands[i]).kind is Kind.UNSIGNED)
            if last > 0
            else constant_index(builder, 0)
            for i, last in enumerate(self.last_starts(sizes), self.STARTS)
        ]

    def reads_apart(self, operand: int) -> bool:
        return operand < self.STARTS

    def moved(self, dims: Sequence[int], sizes: Sequence[int], direction: int) -> IndexingMap:
        """From an index of an array of sizes `dims` to it plus (or minus, by `direction`) the starts of a window of `sizes`: runtime
        variables, one per dimension."""
        whole = identity_map(dims)
        rank = len(whole.dims)
        results = (index + Expr.variable(rank + dim) * direction for dim, index in enumerate(whole.results))
        starts = tuple(Variable(Interval(0, last)) for last in self.last_starts(sizes))
        return IndexingMap(tuple(results), whole.dims, runtime_vars=starts)

    def starts_as_origins(self) -> tuple[tuple[int, IndexingMap], ...]:
        """The origins of the runtime variables of `moved`: one start index per dimension."""
        return tuple(enumerate(self.scalar_maps(), self.STARTS))

    def scalar_maps(self) -> tuple[IndexingMap, ...]:
        """The maps of the start indices."""
        return (IndexingMap((), identity_map(dims_of(self.result)).dims),) * len(self.operands[self.STARTS :])


@op_definition
class DynamicSliceOp(DynamicOp):
    """The window of the operand that begins at the start indices."""

    name = "hlo.dynamic_slice"
    OPERANDS: ClassVar = at_least(1)
    MOVED: ClassVar = slice(0, 1)
    STARTS: ClassVar = 1
    dynamic_slice_sizes = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.verify_starts()
        operand = as_array(self.operands[0].type)
        if len(integers(self.dynamic_slice_sizes)) != operand.get_num_dims():
            raise self._outside()
        self.expect_type(array_type(operand.element_type, self.inferred_dims()), "dynamic_slice_sizes give")

    def _outside(self) -> RuleBroken:
        return RuleBroken(
            f"no window of sizes {{{','.join(map(str, integers(self.dynamic_slice_sizes)))}}} fits inside the operand",
            f"it is {type_text(self.operands[0].type)}",
            operand=0,
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        sizes = integers(self.dynamic_slice_sizes)
        fits_inside(s, sizes, s.axes(0), self._outside)
        return [sizes]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        return operands[0][self.window(operands, integers(self.dynamic_slice_sizes))].copy()

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        sizes = integers(self.dynamic_slice_sizes)
        return (self.moved(sizes, sizes, 1), *self.scalar_maps())

    def runtime_origins(self, operand: int) -> tuple[tuple[int, IndexingMap], ...]:
        return self.starts_as_origins() if operand == 0 else ()

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        sizes = integers(self.dynamic_slice_sizes)
        starts = self.clamped_starts(e.builder, lambda i: e.operand(i, ()), sizes)
        return (e.operand(0, apply_indexing(e.builder, self.moved(sizes, sizes, 1), [*e.indices, *starts])),)


@op_definition
class DynamicUpdateSliceOp(DynamicOp):
    """The operand with a window, from the start indices on, taken from the update."""

    name = "hlo.dynamic_update_slice"
    IN_STABLEHLO: ClassVar = True
    OPERANDS: ClassVar = at_least(2)
    MOVED: ClassVar = slice(0, 2)
    STARTS: ClassVar = 2

    def verify_(self) -> None:
        self.verify_starts()
        operand, update = as_array(self.operands[0].type), as_array(self.operands[1].type)
        if update.get_num_dims() != operand.get_num_dims() or update.element_type != operand.element_type:
            raise self._misfit()
        self.expect_type(array_type(operand.element_type, self.inferred_dims()), "its operand is")

    def _misfit(self) -> RuleBroken:
        operand, update = (type_text(value.type) for value in self.operands[:2])
        return RuleBroken(
            "the update does not fit the operand", f"the update is {update}, the operand {operand}", operand=1
        )

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        fits_inside(s, s.axes(1), s.axes(0), self._misfit)
        return [s.axes(0)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Array:
        result = operands[0].copy()
        result[self.window(operands, operands[1].shape)] = operands[1]
        return result

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """The update's map is valid inside the window; elsewhere its index is outside the update."""
        return (identity_map(dims_of(self.result)), self.result_to_update(), *self.scalar_maps())

    def result_to_update(self) -> IndexingMap:
        """From an index of the result and the window's clamped starts (runtime variables) to an index of the update."""
        return self.moved(dims_of(self.result), dims_of(self.operands[1]), -1)

    def update_to_result(self) -> IndexingMap:
        """From an index of the update and the window's clamped starts (runtime variables) to an index of the result."""
        sizes = dims_of(self.operands[1])
        return self.moved(sizes, sizes, 1)

    def runtime_origins(self, operand: int) -> tuple[tuple[int, IndexingMap], ...]:
        return self.starts_as_origins() if operand == 1 else ()

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        sizes = dims_of(self.operands[1])
        if 0 in sizes:
            return (e.operand(0),)
        starts = self.clamped_starts(e.builder, lambda i: e.operand(i, ()), sizes)
        places = apply_indexing(e.builder, self.result_to_update(), [*e.indices, *starts])
        inside = e.insert(arith.ConstantOp(IntegerAttr.from_bool(True))).result
        for place, size, last in zip(places, sizes, self.last_starts(sizes), strict=True):
            if last > 0:
                here = value_is_in(e.builder, place, Interval(0, size - 1))
                inside = e.insert(arith.AndIOp(inside, here)).result
        return e.branch(inside, lambda: (e.operand(1, places),), lambda: (e.operand(0),))


OPS: tuple[type[HloOp], ...] = (DynamicSliceOp, DynamicUpdateSliceOp)
