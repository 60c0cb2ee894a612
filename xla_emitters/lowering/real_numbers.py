"""Real numbers that a kernel computes, or vectors of them, with Python's operators: each inserts an op.

x, y = Number(builder, lhs), Number(builder, rhs)
abs(x).holds("olt", 0.5).choose(x, x * y + 1.0)        math.absf, arith.cmpf, arith.mulf, arith.addf, arith.select, and constants
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, VectorType
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, math
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class Number:
    """See the file's head."""

    builder: Builder
    value: SSAValue

    def of(self, value: float) -> Number:
        """A constant of the same type."""
        kind = self.value.type
        if isa(kind, VectorType[AnyFloat]):
            return self._insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [value])))
        assert isa(kind, AnyFloat)
        return self._insert(arith.ConstantOp(FloatAttr(value, kind)))

    def __add__(self, other: Number | float) -> Number:
        return self._insert(arith.AddfOp(self.value, self._other(other)))

    def __sub__(self, other: Number | float) -> Number:
        return self._insert(arith.SubfOp(self.value, self._other(other)))

    def __mul__(self, other: Number | float) -> Number:
        return self._insert(arith.MulfOp(self.value, self._other(other)))

    def __truediv__(self, other: Number) -> Number:
        return self._insert(arith.DivfOp(self.value, other.value))

    def __neg__(self) -> Number:
        return self._insert(arith.NegfOp(self.value))

    def __abs__(self) -> Number:
        return self.apply(math.AbsFOp)

    def apply(self, function: Callable[[SSAValue], Operation]) -> Number:
        return self._insert(function(self.value))

    def polynomial(self, coefficients: Sequence[float]) -> Number:
        """Horner's rule by fused multiply-add, `coefficients` highest power first."""
        total = self.of(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self._insert(math.FmaOp(total.value, self.value, self.of(coefficient).value))
        return total

    def maximum(self, other: Number) -> Number:
        return self._insert(arith.MaximumfOp(self.value, other.value))

    def minimum(self, other: Number) -> Number:
        return self._insert(arith.MinimumfOp(self.value, other.value))

    def with_sign_of(self, sign: Number) -> Number:
        return self._insert(math.CopySignOp(self.value, sign.value))

    def angle_from(self, x: Number) -> Number:
        """atan2(self, x)"""
        return self._insert(math.Atan2Op(self.value, x.value))

    def holds(self, predicate: str, other: Number | float) -> Truth:
        return Truth(self.builder, self.builder.insert(arith.CmpfOp(self.value, self._other(other), predicate)).result)

    def is_nan(self) -> Truth:
        return self.holds("uno", self)

    def is_infinite(self) -> Truth:
        """Whether the number, a magnitude, is infinity."""
        return self.holds("oeq", inf)

    def _other(self, other: Number | float) -> SSAValue:
        return (other if isinstance(other, Number) else self.of(other)).value

    def _insert(self, op: Operation) -> Number:
        return Number(self.builder, self.builder.insert(op).results[0])


@dataclass(frozen=True)
class Truth:
    """Whether something holds, as the kernel computes it."""

    builder: Builder
    value: SSAValue

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.builder.insert(arith.AndIOp(self.value, other.value)).result)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.builder, self.builder.insert(arith.OrIOp(self.value, other.value)).result)

    def choose(self, then: Number | float, otherwise: Number) -> Number:
        then = then if isinstance(then, Number) else otherwise.of(then)
        chosen = self.builder.insert(arith.SelectOp(self.value, then.value, otherwise.value))
        return Number(self.builder, chosen.result)
