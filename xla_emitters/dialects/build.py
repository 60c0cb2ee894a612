"""Building blocks of kernels: maps applied, domains checked, loop nests, arithmetic of floats.

    loop_nest over (tid)[s0, s1] in s0 [0, 3], s1 [2, 5], tid [0, 99]:

    %r = scf.for %s0 = %c0 to %c4 step %c1 iter_args(%a = %init) -> (t) {
      %r1 = scf.for %s1 = %c2 to %c6 step %c1 iter_args(%b = %a) -> (t) {
        %inside = (0 <= tid and tid <= 99, and the map's constraints)
        %r2 = scf.if %inside -> (t) { body } else { yield %b }

All take a `Builder` and insert at its insertion point; ops inside the regions that they make are announced to the same listeners.
Source: docs/reference/1 5.6 "Loop nests and predicates"; seed document, "`xla_gpu` to `scf` conversion".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.attributes import integer
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, math, scf
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.xla_gpu import INDEX, INDUCTION_NAMES, ApplyIndexingOp
from xla_emitters.support.late_dataclass import dataclass

NestBody: TypeAlias = Callable[[Builder, Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""(builder inside, values of the symbols, iter args) -> the next iter args."""


def constant_index(builder: Builder, value: int) -> SSAValue:
    """`arith.constant value : index`; each value occurs once among the constants at the start of its block."""
    at = builder.insertion_point
    wanted = integer(value, INDEX)
    op = at.block.first_op
    while isinstance(op, arith.ConstantOp) and op is not at.insert_before:
        if op.value == wanted:
            return op.result
        op = op.next_op
    builder.insertion_point = at if op is at.insert_before or op is None else InsertPoint.before(op)
    # A builder may return an equal constant from elsewhere.
    constant = builder.insert(arith.ConstantOp(wanted))
    builder.insertion_point = at
    return constant.result


def apply_indexing(builder: Builder, indexing_map: IndexingMap, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of `indexing_map` at `operands` (dims, then symbols), each by an op of its own.

    A result that is a variable is its operand, one that is a number a constant. Constraints are ignored.
    """
    if indexing_map.runtime_vars:
        indexing_map = indexing_map.symbols_to_dims()
    if indexing_map.constraints:
        indexing_map = replace(indexing_map, constraints=())
    found: list[SSAValue] = []
    for number, result in enumerate(indexing_map.results):
        if result.kind is ExprKind.VARIABLE:
            found.append(operands[result.value])
        elif result.kind is ExprKind.CONSTANT:
            found.append(constant_index(builder, result.value))
        else:
            found.append(builder.insert(ApplyIndexingOp(operands, indexing_map.submap(number))).results[0])
    return found


def value_is_in(builder: Builder, value: SSAValue, interval: Interval) -> SSAValue:
    """i1: whether `value`, read as signed, is in `interval`."""
    lower = constant_index(builder, interval.lower)
    if interval.is_point:
        return builder.insert(arith.CmpiOp(value, lower, "eq")).result
    at_least = builder.insert(arith.CmpiOp(value, lower, "sge"))
    at_most = builder.insert(arith.CmpiOp(value, constant_index(builder, interval.upper), "sle"))
    return builder.insert(arith.AndIOp(at_least, at_most)).result


def constraints_check(
    builder: Builder, indexing_map: IndexingMap, dims: Sequence[SSAValue], symbols: Sequence[SSAValue]
) -> SSAValue:
    """i1: whether the constraints hold and the dims are in their bounds. Bounds of symbols are not checked."""
    checks: list[SSAValue] = []
    if indexing_map.is_known_empty:
        return builder.insert(arith.ConstantOp(IntegerAttr.from_bool(False))).result
    values = [
        _value_of(builder, expression, indexing_map, [*dims, *symbols]) for expression, _ in indexing_map.constraints
    ]
    bounds = [interval for _, interval in indexing_map.constraints] + [dim.bounds for dim in indexing_map.dims]
    for value, interval in zip([*values, *dims], bounds, strict=True):
        checks.append(value_is_in(builder, value, interval))
    if not checks:
        return builder.insert(arith.ConstantOp(IntegerAttr.from_bool(True))).result
    inside = checks[0]
    for check in checks[1:]:
        inside = builder.insert(arith.AndIOp(inside, check)).result
    inside.name_hint = "inbounds"
    return inside


def _value_of(builder: Builder, expression: Expr, indexing_map: IndexingMap, operands: Sequence[SSAValue]) -> SSAValue:
    """An expression of the map's variables, computed from the variables that it uses: so it can be moved out of loops over the others."""
    alone, removed = replace(indexing_map, results=(expression,), constraints=()).remove_unused_vars()
    used = [operand for operand, gone in zip(operands, removed or [False] * len(operands), strict=True) if not gone]
    (value,) = apply_indexing(builder, alone, used)
    return value


def loop_nest(
    builder: Builder,
    indexing_map: IndexingMap,
    dims: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    body: NestBody,
) -> Sequence[SSAValue]:
    """One `scf.for` per symbol of `indexing_map`, symbol 0 outermost, and inside them `body`, if the map's domain holds.

    inits    initial values of the iter args
    body     see NestBody; it runs for the points of the domain
    returns  final values of the iter args
    """
    bounds = [
        (constant_index(builder, symbol.bounds.lower), constant_index(builder, symbol.bounds.upper + 1))
        for symbol in indexing_map.symbols
    ]
    step = constant_index(builder, 1) if bounds else None
    loops: list[scf.ForOp] = []
    ivs: list[SSAValue] = []
    carried: Sequence[SSAValue] = inits
    inner = builder
    for number, (lower, upper) in enumerate(bounds):
        assert step is not None
        block = Block(arg_types=[INDEX, *(value.type for value in inits)])
        iv, *arguments = block.args
        iv.name_hint = indexing_map.symbols[number].name or INDUCTION_NAMES[min(number, len(INDUCTION_NAMES) - 1)]
        for argument in arguments:
            argument.name_hint = "iter"
        loops.append(inner.insert(scf.ForOp(lower, upper, step, carried, Region(block))))
        inner = builder_inside(builder, block)
        ivs.append(iv)
        carried = arguments
    results = _guarded(inner, indexing_map, dims, ivs, carried, body)
    for loop in reversed(loops):
        builder_inside(builder, loop.body.block).insert(scf.YieldOp(*results))
        results = loop.results
    return results


def _guarded(
    builder: Builder,
    indexing_map: IndexingMap,
    dims: Sequence[SSAValue],
    symbols: Sequence[SSAValue],
    carried: Sequence[SSAValue],
    body: NestBody,
) -> Sequence[SSAValue]:
    inside = constraints_check(builder, indexing_map, dims, symbols)
    then, otherwise = Block(), Block()
    types = [value.type for value in carried]
    branch = builder.insert(scf.IfOp(inside, types, Region(then), Region(otherwise) if types else None))
    within = builder_inside(builder, then)
    within.insert(scf.YieldOp(*body(within, symbols, carried)))
    if types:
        builder_inside(builder, otherwise).insert(scf.YieldOp(*carried))
    return branch.results


def builder_inside(builder: Builder, block: Block) -> Builder:
    """A builder at the end of `block` that tells `builder`'s listeners."""
    made = QuickBuilder(InsertPoint.at_end(block))
    made.extend_from_listener(builder)
    return made


def clamp_index(builder: Builder, value: SSAValue, high: int, *, is_unsigned: bool = False) -> SSAValue:
    """`value`, an integer of any width or an index, as an index in [0, high]: less becomes 0, more becomes `high`.

    is_unsigned  read `value` as unsigned: nothing is less than 0 then

    With `high` <= 0 the result is 0, and `value` is not used. A value that a 32-bit index may not hold is clamped before the conversion.
    Source: docs/reference/1 5.5, "clamp rule"; XLA converts to index first, so its clamp of 2^32 + 5 to [0, 9] gives 5.
    """
    if high <= 0:
        return constant_index(builder, 0)
    wide = value.type
    if isa(wide, IntegerType) and wide.bitwidth > 32:
        most = builder.insert(arith.ConstantOp(integer(high, wide)))
        clamped = builder.insert((arith.MinUIOp if is_unsigned else arith.MinSIOp)(value, most.result)).result
        if not is_unsigned:
            least = builder.insert(arith.ConstantOp(integer(0, wide)))
            clamped = builder.insert(arith.MaxSIOp(clamped, least.result)).result
        return builder.insert(arith.IndexCastOp(clamped, INDEX)).result
    if not isinstance(value.type, IndexType):
        cast: Operation = IndexCastUIOp(value, INDEX) if is_unsigned else arith.IndexCastOp(value, INDEX)
        value = builder.insert(cast).results[0]
    limit = constant_index(builder, high)
    if is_unsigned:
        return builder.insert(arith.MinUIOp(value, limit)).result
    at_most = builder.insert(arith.MinSIOp(value, limit)).result
    return builder.insert(arith.MaxSIOp(at_most, constant_index(builder, 0))).result


@dataclass(frozen=True)
class Number:
    """A real number that a kernel computes, or a vector of them, with Python's operators: each inserts an op.

    abs(x).holds("olt", 0.5).choose(x, x * y + 1.0)        math.absf, arith.cmpf, arith.mulf, arith.addf, arith.select, and constants
    """

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
