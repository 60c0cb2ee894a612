"""Builder of size arithmetic: numbers that are known at compile time, or `index` values; constants are folded.

    code.add(3, 4)         -> 7                     code.multiply(n, 1)    -> n
    code.add(n, 4)         -> %s = arith.addi %n, %c4 : index
    code.dim(%x, 0)        -> %d = memref.dim %x, %c0, once in each scope; for a buffer allocated here, the size it was allocated with

A scope is a block and the regions in it: a value made in it is not visible after it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.lmhlo import tensor_of
from xla_emitters.dialects.mlir import arith, memref

INDEX = IndexType()
Number: TypeAlias = int | SSAValue
"""A size: known, or a value of type `index`."""


class IndexCode:
    """Writes arithmetic on sizes at the insertion point of `builder`.

    location  of new ops
    """

    def __init__(self, builder: Builder, location: LocationAttr) -> None:
        self.builder = builder
        self.location = location
        self._constants = ChainMap[int, SSAValue]()
        self._dims = ChainMap[tuple[SSAValue, int], Number]()

    def inside(self, builder: Builder) -> IndexCode:
        """The same in an inner scope: it sees values made here; its own values are not visible here."""
        made = IndexCode(builder, self.location)
        made._constants, made._dims = self._constants.new_child(), self._dims.new_child()
        return made

    def insert(self, op: Operation) -> SSAValue:
        op.location = self.location
        return self.builder.insert(op).results[0]

    def value(self, number: Number) -> SSAValue:
        """The number as an `index` value."""
        if isinstance(number, SSAValue):
            return number
        if number not in self._constants:
            made = self.insert(arith.ConstantOp(IntegerAttr(number, INDEX)))
            made.name_hint = f"c{number}" if number >= 0 else f"cm{-number}"
            self._constants[number] = made
        return self._constants[number]

    def dim(self, buffer: SSAValue, number: int) -> Number:
        """The size of a buffer along one dimension."""
        size = tensor_of(buffer.type).get_shape()[number]
        if size >= 0:
            return size
        if (buffer, number) not in self._dims:
            self._dims[buffer, number] = self.insert(memref.DimOp(buffer, self.value(number)))
        return self._dims[buffer, number]

    def allocated(self, buffer: SSAValue, sizes: Sequence[Number]) -> None:
        """Records the sizes with which a buffer was allocated."""
        for number, size in enumerate(sizes):
            self._dims[buffer, number] = size

    def element(self, buffer: SSAValue, indices: Sequence[int] = ()) -> SSAValue:
        """An element of a buffer of integers as an `index`."""
        loaded = self.insert(memref.LoadOp.get(buffer, [self.value(index) for index in indices]))
        return loaded if loaded.type == INDEX else self.insert(arith.IndexCastOp(loaded, INDEX))

    # -------------------------------------------------------------------------------------------------- arithmetic

    def add(self, a: Number, b: Number) -> Number:
        return self.binary(arith.AddiOp, lambda x, y: x + y, a, b, unit=0)

    def subtract(self, a: Number, b: Number) -> Number:
        return a if isinstance(b, int) and not b else self.binary(arith.SubiOp, lambda x, y: x - y, a, b)

    def multiply(self, a: Number, b: Number) -> Number:
        if 0 in (a, b):
            return 0
        return self.binary(arith.MuliOp, lambda x, y: x * y, a, b, unit=1)

    def divide(self, a: Number, b: Number) -> Number:
        """a / b rounded down; `b` is positive. A `b` that data make smaller counts as 1: the op that it belongs to refuses it."""
        if isinstance(b, int) and b == 1:
            return a
        return self.binary(arith.FloorDivSIOp, lambda x, y: x // y, a, self.maximum(b, 1))

    def maximum(self, a: Number, b: Number) -> Number:
        return self.binary(arith.MaxSIOp, max, a, b)

    def minimum(self, a: Number, b: Number) -> Number:
        return self.binary(arith.MinSIOp, min, a, b)

    def product(self, numbers: Sequence[Number]) -> Number:
        found: Number = 1
        for number in numbers:
            found = self.multiply(found, number)
        return found

    def compare(self, predicate: str, a: Number, b: Number) -> SSAValue:
        """i1: `a` compared with `b`, as `arith.cmpi` names it."""
        return self.insert(arith.CmpiOp(self.value(a), self.value(b), predicate))

    def select(self, condition: SSAValue, then: Number, otherwise: Number) -> SSAValue:
        return self.insert(arith.SelectOp(condition, self.value(then), self.value(otherwise)))

    def every(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """i1: the conjunction of one or more conditions."""
        first, *rest = conditions
        for other in rest:
            first = self.insert(arith.AndIOp(first, other))
        return first

    def binary(
        self,
        op: type[arith.SignlessIntegerBinaryOperation],
        fold: Callable[[int, int], int],
        a: Number,
        b: Number,
        unit: int | None = None,
    ) -> Number:
        """`op` of two numbers, computed here by `fold` if both are known; `unit` is the neutral operand: the result is the other one."""
        if isinstance(a, int) and isinstance(b, int):
            return fold(a, b)
        if unit is not None and isinstance(a, int) and a == unit:
            return b
        if unit is not None and isinstance(b, int) and b == unit:
            return a
        return self.insert(op(self.value(a), self.value(b)))
