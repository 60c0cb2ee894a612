"""Builder of instructions that compute sizes; passes insert them before an op whose sizes they change.

    code = ShapeCode(names, before)
    code.product([code.size(x, 0), code.size(x, 1), 4])        n = get_dimension_size(x), convert to s64, multiply ...
    code.reshaped(x, [rows, 4], "flat")                        reshape, or dynamic_reshape where a size is not known

In a placed program (`disc-placer`) sizes are computed on the host; other new instructions have the place of the op.
A size is a Python int if it is known, else a scalar s64: products of sizes exceed 32 bits for arrays of more than 2^31 elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo import ALL_OPS
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import GetTupleElementOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.placement import DEVICE, HOST
from xla_emitters.dialects.hlo.types import UNBOUNDED, array_type, as_array, dims_of
from xla_emitters.dtypes import dtype
from xla_emitters.graph.names import Names

Number: TypeAlias = int | SSAValue
"""A size: known, or a scalar s64."""

S64 = dtype("s64")
SCALAR = array_type(S64.ir_type, ())


@dataclass(frozen=True)
class ShapeCode:
    """Adds instructions before one instruction, under free names."""

    names: Names
    before: Operation

    def add(
        self,
        opcode: str,
        operands: Sequence[SSAValue],
        ir_type: Attribute,
        properties: Mapping[str, Attribute | None] | None = None,
        name: str = "",
        *,
        of_sizes: bool = False,
    ) -> SSAValue:
        """A new instruction; its name is `name`, or the opcode.

        of_sizes   it computes sizes, not data
        """
        op_class = ALL_OPS[opcode]
        made = op_class(operands, ir_type, name or opcode.replace("-", "_"), properties)
        return self.insert(made, of_sizes=of_sizes)

    def insert(self, made: HloOp, *, of_sizes: bool = False) -> SSAValue:
        """Inserts an instruction; in a placed program, with its place."""
        if DEVICE in self.before.attributes and DEVICE not in made.attributes:
            made.attributes[DEVICE] = StringAttr(HOST) if of_sizes else self.before.attributes[DEVICE]
        return self.names.add(made, self.before)

    def constant(self, array: object, element: str = "s64", name: str = "sizes") -> SSAValue:
        """A constant; integers of 32 and 64 bits are sizes and are placed as such."""
        kind = dtype(element)
        made = ConstantOp.from_array(np.asarray(array, kind.numpy), kind, name)
        return self.insert(made, of_sizes=element in ("s32", "s64"))

    def element_of_tuple(self, value: SSAValue, index: int, ir_type: Attribute, name: str) -> SSAValue:
        return self.insert(GetTupleElementOp([value], ir_type, name, {"index": IntegerAttr(index, i64)}))

    def size(self, value: SSAValue, axis: int) -> Number:
        """The size of an axis."""
        known = dims_of(value)[axis]
        if known >= 0:
            return known
        scalar = array_type(dtype("s32").ir_type, ())
        size = self.add("get-dimension-size", [value], scalar, {"dimensions": integer_array([axis])}, of_sizes=True)
        return self.add("convert", [size], SCALAR, of_sizes=True)

    def scalar(self, number: Number) -> SSAValue:
        return self.constant(number) if isinstance(number, int) else number

    def binary(self, opcode: str, a: Number, b: Number) -> SSAValue:
        return self.add(opcode, [self.scalar(a), self.scalar(b)], SCALAR, of_sizes=True)

    def product(self, numbers: Sequence[Number]) -> Number:
        known = prod(number for number in numbers if isinstance(number, int))
        rest = [number for number in numbers if not isinstance(number, int)]
        if not rest or known == 0:
            return known
        total: Number = rest[0] if known == 1 else self.binary("multiply", rest[0], known)
        for number in rest[1:]:
            total = self.binary("multiply", total, number)
        return total

    def shape(self, numbers: Sequence[Number]) -> SSAValue:
        """A list of sizes: the shape operand of an op."""
        if all(isinstance(number, int) for number in numbers):
            return self.constant(np.asarray(numbers, np.int64))
        one = array_type(S64.ir_type, (1,))
        parts = [
            self.constant([number]) if isinstance(number, int) else self.add("reshape", [number], one, of_sizes=True)
            for number in numbers
        ]
        if len(parts) == 1:
            return parts[0]
        whole = array_type(S64.ir_type, (len(parts),))
        return self.add("concatenate", parts, whole, {"dimensions": integer_array([0])}, of_sizes=True)

    def reshaped(self, value: SSAValue, sizes: Sequence[Number], name: str) -> SSAValue:
        """`value` in another shape with as many elements; `value` itself if it has that shape."""
        dims = tuple(size if isinstance(size, int) else UNBOUNDED for size in sizes)
        ir_type = array_type(as_array(value.type).element_type, dims)
        if not any(dim < 0 for dim in dims) and dims == dims_of(value):
            return value
        if any(dim < 0 for dim in dims):
            return self.add("dynamic-reshape", [value, self.shape(sizes)], ir_type, name=name)
        return self.add("reshape", [value], ir_type, name=name)

    def transposed(self, value: SSAValue, order: Sequence[int], name: str = "") -> SSAValue:
        """`value` with its dimensions in this order."""
        dims = [dims_of(value)[dim] for dim in order]
        ir_type = array_type(as_array(value.type).element_type, dims)
        return self.add("transpose", [value], ir_type, {"dimensions": integer_array(order)}, name)

    def spread(self, value: SSAValue, sizes: Sequence[Number], name: str) -> SSAValue:
        """A scalar broadcast to a shape; `value` itself for rank 0."""
        dims = tuple(size if isinstance(size, int) else UNBOUNDED for size in sizes)
        ir_type, nowhere = array_type(as_array(value.type).element_type, dims), {"dimensions": integer_array([])}
        if not dims:
            return value
        if any(dim < 0 for dim in dims):
            return self.add("dynamic-broadcast-in-dim", [value, self.shape(sizes)], ir_type, nowhere, name)
        return self.add("broadcast", [value], ir_type, nowhere, name)
