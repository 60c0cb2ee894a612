"""reduce and reduce-window: elements of arrays combined by a computation, one after the other.

    %s = hlo.reduce %x, %zero {dimensions = array<i64: 1>, name = "s", to_apply = @add} : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
    %w = hlo.reduce_window %x, %zero {name = "w", to_apply = @add, window = #hlo.window<size = [2, 1]>} : (...) -> tensor<7x64xf32>

The initial value comes first, then the elements in row-major order. Elements in a window's padding are left out.
Source: docs/reference/1 3.2, 3.6, 5.5; docs/reference/2 2.7.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.irdl import prop_def

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.build import apply_indexing
from xla_emitters.dialects.hlo.base import (
    Call,
    ElementContext,
    HloOp,
    RuleBroken,
    at_least,
    integers,
)
from xla_emitters.dialects.hlo.called import fold, on_elements
from xla_emitters.dialects.hlo.computation import Callee, CallingOp, ComputationOp, find_computation, scalar_of
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing, same_axes
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    leaf_types,
    tuple_type,
    tuple_types,
    type_text,
)
from xla_emitters.dialects.hlo.windows import WindowAttr, visited, window_map
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dtypes import Array

LEAST_OF_TREE = 64
"""Elements from which on a tree is worth its copies: argmax over a vocabulary takes a step of NumPy an element otherwise."""
_CHOOSING = frozenset(
    "parameter constant compare select maximum minimum and or xor not tuple get-tuple-element".split()
)


def chooses_only(computation: ComputationOp) -> bool:
    """Whether a computation rounds nothing: an associative one, as HLO asks for, gives the same in pairs of neighbours as in turn."""
    return all(op.opcode in _CHOOSING for op in computation.instructions)


class ReducingOp(CallingOp):
    """n arrays and n initial values, combined by a computation from 2n scalars to n."""

    OPERANDS: ClassVar = at_least(2)
    DEPENDS_ON_SIZES: ClassVar = True
    to_apply = prop_def(SymbolRefAttr)

    def callees(self) -> tuple[Callee, ...]:
        results = [scalar_of(part) for part in tuple_types(self.result.type)]
        values = [scalar_of(operand.type) for operand in self.operands[: len(self.operands) // 2]]
        return (Callee(self.to_apply, [*results, *values], scalar_of(self.result.type)),)

    def verify_shape(self) -> None:
        if len(self.operands) % 2:
            raise RuleBroken(
                f"'{self.opcode}' takes as many initial values as arrays", f"it has {len(self.operands)} operands"
            )
        half = len(self.operands) // 2
        rank = len(dims_of(self.operands[0]))
        self.verify_attributes(rank)
        for i in range(half):
            array, init = as_array(self.operands[i].type), as_array(self.operands[half + i].type)
            if array.get_num_dims() != rank:
                raise self.arrays_differ(i)
            if init.get_shape():
                raise RuleBroken("an initial value is a scalar", f"it is {type_text(init)}", operand=half + i)
        wanted = self.inferred_dims()
        elements = [as_array(init.type).element_type for init in self.operands[half:]]
        parts = [array_type(element, wanted) for element in elements]
        self.expect_type(parts[0] if half == 1 else tuple_type(parts), "its operands give")

    @abstractmethod
    def verify_attributes(self, rank: int) -> None:
        """raises RuleBroken unless the attributes fit arrays of that rank."""

    def shapes(self, s: Sizing) -> Sequence[Shape]:
        count = len(self.arrays)
        return [self.reduced(s, same_axes(s, range(count), self.arrays_differ))] * count

    @abstractmethod
    def reduced(self, s: Sizing, sizes: Shape) -> Shape:
        """The sizes of the result from those of the arrays."""

    @property
    def arrays(self) -> Sequence[SSAValue]:
        """The operands that are reduced: the first half."""
        return self.operands[: len(self.operands) // 2]

    @property
    def inits(self) -> Sequence[SSAValue]:
        """The initial values, one for each array."""
        return self.operands[len(self.operands) // 2 :]

    @abstractmethod
    def reduced_map(self) -> IndexingMap:
        """From an index of the result, and a range variable per loop, to the elements of the arrays that are combined to it."""

    def reduced_value(self, steps: Iterable[Sequence[Array]], inits: Sequence[Any], call: Call) -> Any:
        """The inits combined with the arrays of each step, one step after the other; a step's arrays have the result's shape."""
        shape = dims_of(leaf_types(self.result.type)[0])
        values: tuple[Array, ...] = tuple(np.broadcast_to(init, shape) for init in inits)
        combine = on_elements(self, self.to_apply, call)
        for arrays in steps:
            values = combine([*values, *arrays])
        copies = [value.copy() for value in values]
        return copies[0] if len(copies) == 1 else tuple(copies)

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        index_map = self.reduced_map()
        return (index_map,) * len(self.arrays) + (IndexingMap((), index_map.dims),) * len(self.arrays)

    def reads_apart(self, operand: int) -> bool:
        return operand < len(self.arrays)

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        index_map, count = self.reduced_map(), len(self.arrays)
        inits = [e.operand(count + i, ()) for i in range(count)]

        def step(symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = apply_indexing(e.builder, index_map, [*e.indices, *symbols])
            return e.call(self.to_apply.root_reference.data, [*carried, *(e.operand(i, at) for i in range(count))])

        return inits if index_map.is_known_empty else e.loop(index_map, inits, step)


@op_definition
class ReduceOp(ReducingOp):
    """Combines all elements along some dimensions."""

    name = "hlo.reduce"
    READS_ONCE: ClassVar = True
    dimensions = prop_def(DenseArrayBase)

    def verify_attributes(self, rank: int) -> None:
        self.expect_dimensions(integers(self.dimensions), rank)

    def reduced(self, s: Sizing, sizes: Shape) -> Shape:
        return [size for dim, size in enumerate(sizes) if dim not in integers(self.dimensions)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """Combines one element after the other, in row-major order of the reduced dimensions; in pairs where no number depends on it."""
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
        if prod(sizes) >= LEAST_OF_TREE and chooses_only(find_computation(self, self.to_apply)):
            values = [array.reshape(-1, *array.shape[len(reduced) :]) for array in moved]
            return self.reduced_value([self._combined_in_pairs(values, call)], operands[count:], call)
        steps = ([array[index] for array in moved] for index in np.ndindex(*sizes))
        return self.reduced_value(steps, operands[count:], call)

    def _combined_in_pairs(self, values: Sequence[Array], call: Call) -> list[Array]:
        """Arrays [n, ...] combined along their first dimension, each element with the next one, then these, and so on."""
        combine = on_elements(self, self.to_apply, call)
        while (count := len(values[0])) > 1:
            pairs = combine([*(array[: count - 1 : 2] for array in values), *(array[1::2] for array in values)])
            last = [array[count - count % 2 :] for array in values]
            values = [np.concatenate(parts) for parts in zip(pairs, last, strict=True)]
        return [array[0] for array in values]

    def reduced_map(self) -> IndexingMap:
        sizes, reduced = dims_of(self.operands[0]), sorted(integers(self.dimensions))
        kept = [dim for dim in range(len(sizes)) if dim not in reduced]
        order = [*kept, *reduced]
        variables = [Variable(Interval(0, sizes[dim] - 1)) for dim in order]
        results = tuple(Expr.variable(order.index(dim)) for dim in range(len(sizes)))
        return IndexingMap(results, tuple(variables[: len(kept)]), tuple(variables[len(kept) :]))


@op_definition
class ReduceWindowOp(ReducingOp):
    """Combines all elements in a window, at every position of the window."""

    name = "hlo.reduce_window"
    window = prop_def(WindowAttr)

    def verify_attributes(self, rank: int) -> None:
        window = self.window.data.dims
        if len(window) != rank:
            raise RuleBroken(f"a window of {len(window)} dimensions over {type_text(self.operands[0].type)}", operand=0)

    def reduced(self, s: Sizing, sizes: Shape) -> Shape:
        return [along.positions(s, size) for size, along in zip(sizes, self.window.data.dims, strict=True)]

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """Combines the elements of the window in row-major order, without those in the padding."""
        count = len(self.arrays)
        shape = dims_of(leaf_types(self.result.type)[0])
        result = [np.broadcast_to(init, shape).copy() for init in operands[count:]]
        combine = on_elements(self, self.to_apply, call)
        for inside, (at,) in visited(shape, self.reduced_map()):
            chosen = [array[at] for array in operands[:count]]
            combined = combine([*(part[inside] for part in result), *chosen])
            for part, value in zip(result, combined, strict=True):
                part[inside] = value
        return tuple(result) if count > 1 else result[0]

    def reduced_map(self) -> IndexingMap:
        """If base dilation makes holes at fixed steps of the window, the loop visits only the elements between them."""
        return window_map(self.window.data, dims_of(self.operands[0])).rescale_symbols().simplify()


OPS: tuple[type[HloOp], ...] = (ReduceOp, ReduceWindowOp)
