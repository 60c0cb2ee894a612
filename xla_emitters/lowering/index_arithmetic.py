"""Lowers index expressions to arith ops; shared by simplify_affine and lower_affine.

    th_x * 4 + bl_x * 512     ->   %0 = arith.muli %th_x, %c4 overflow<nsw>
                                   %1 = arith.muli %bl_x, %c512 overflow<nsw>
                                   %2 = arith.addi %0, %1 overflow<nsw>

Sums and products are chains. Their operands are sorted by the block that defines them, the outermost first and constants last, so that
loop-invariant code motion finds the partial sums that do not change in a loop. A step of a chain has `nsw` where the ranges prove that it
does not overflow the index type.

Division and remainder have two forms, and the caller chooses one:

    unsigned   divui, remui: one op; only where the dividend is known not to be negative (`is_unsigned`)
    signed     rounding towards minus infinity, for any dividend: divsi or remsi and a correction

Maps are about unbounded integers, ops about an index of 32 or 64 bits. A sum or product that wraps is still right in its low bits; an
operand of a division or comparison must not wrap, so the ranges must prove that it does not (`overflowing_part`).

Source: docs/reference/2 3.3 "xla-simplify-affine" (order, nsw, when unsigned is allowed), MLIR's documentation of affine.apply
(floordiv, ceildiv and mod round as above).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.builder import Builder
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.attributes import index_number
from xla_emitters.dialects.locations import fuse_locations, located_builder
from xla_emitters.dialects.mlir import affine, arith
from xla_emitters.dialects.ranges import bounds_of
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.support.late_dataclass import dataclass

_UNSIGNED_DIVISIONS: dict[ExprKind, type[Operation]] = {
    ExprKind.MOD: arith.RemUIOp,
    ExprKind.FLOORDIV: arith.DivUIOp,
    ExprKind.CEILDIV: arith.CeilDivUIOp,
}
_NSW = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_NO_FLAGS = arith.IntegerOverflowAttr("none")

RangeOf = Callable[[Expr], Interval]
Key = tuple[object, ...]


def expression_of(expr: AffineExpr, num_dims: int) -> Expr:
    """An xDSL affine expression as an index expression; symbol i becomes variable num_dims + i."""
    match expr:
        case AffineConstantExpr():
            return Expr.constant(expr.value)
        case AffineDimExpr():
            return Expr.variable(expr.position)
        case AffineSymExpr():
            return Expr.variable(num_dims + expr.position)
        case AffineBinaryOpExpr():
            lhs, rhs = expression_of(expr.lhs, num_dims), expression_of(expr.rhs, num_dims)
            match expr.kind:
                case AffineBinaryOpKind.Add:
                    return lhs + rhs
                case AffineBinaryOpKind.Mul:
                    return lhs * rhs
                case AffineBinaryOpKind.Mod:
                    return lhs % rhs
                case AffineBinaryOpKind.FloorDiv:
                    return lhs // rhs
                case AffineBinaryOpKind.CeilDiv:
                    return lhs.ceildiv(rhs)
        case _:
            raise Unsupported(f"no lowering for affine expression '{expr}'")


def expressions_of(op: affine.ApplyOp) -> tuple[Expr, ...]:
    """The results of an affine.apply, over its operands as variables 0, 1, ..."""
    data = op.map.data
    return tuple(expression_of(result, data.num_dims) for result in data.results)


def map_of_apply_indexing(op: ApplyIndexingOp) -> IndexingMap:
    """The op's map with its symbols as dims; each variable's range is the intersection of the map's and the operand's."""
    indexing_map = op.map.symbols_to_dims()
    dims = tuple(
        Variable(bounds_of(operand, variable.bounds), variable.name)
        for variable, operand in zip(indexing_map.dims, op.operands, strict=True)
    )
    return IndexingMap(indexing_map.results, dims, (), (), indexing_map.constraints)


def is_unsigned(expr: Expr, range_of: RangeOf) -> bool:
    """Whether `expr` can be computed with unsigned division, remainder, maximum and minimum.

    Divisors must be positive constants and dividends never negative; both sides of a maximum or minimum never negative.
    """
    if expr.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT):
        return True
    lhs, rhs = expr.lhs, expr.rhs
    if not (is_unsigned(lhs, range_of) and is_unsigned(rhs, range_of)):
        return False
    if expr.kind in _UNSIGNED_DIVISIONS:
        return rhs.kind is ExprKind.CONSTANT and rhs.value > 0 and range_of(lhs).lower >= 0
    if expr.kind in (ExprKind.MAX, ExprKind.MIN):
        return range_of(lhs).lower >= 0 and range_of(rhs).lower >= 0
    return True


def overflowing_part(expr: Expr, range_of: RangeOf, width: int, *, unsigned: bool) -> Expr | None:
    """A sum or product in `expr` that may not fit an index of `width` bits and is divided, or compared by max or min; None if none is.

    unsigned   whether the unsigned forms will be used: then the largest index is 2^width - 1
    """
    if expr.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT):
        return None
    sums = (ExprKind.ADD, ExprKind.MUL)
    for part in (expr.lhs, expr.rhs):
        if part.kind in sums and expr.kind not in sums and not _fits(range_of(part), width, unsigned=unsigned):
            return part
        if (found := overflowing_part(part, range_of, width, unsigned=unsigned)) is not None:
            return found
    return None


def _fits(values: Interval, width: int, *, unsigned: bool = False) -> bool:
    """Whether a number of `width` bits holds all of `values`. An interval that ends at the limit of int64 counts as unbounded."""
    lowest, end = (0, 1 << width) if unsigned else (-(1 << width - 1), 1 << width - 1)
    return not values.is_saturated and lowest <= values.lower and values.upper < end


class SharedOps:
    """The ops that a pass made, keyed by their computation: an equal op that dominates the user is reused.

        %a = arith.muli %i, %c4          for one op's map            made
             arith.muli %i, %c4          for a later op's            %a is reused and has both locations

    This avoids ops that CSE would merge afterwards. A pass must ask in walk order: then ops of the same block, or of a block around it,
    are in front of the user. Blocks that branch to each other share nothing.
    """

    def __init__(self) -> None:
        self._made: dict[Block, dict[Key, Operation]] = {}

    def result(self, key: Key, user: Operation, make: Callable[[], Operation]) -> SSAValue:
        """The result of the op with this key that dominates `user`, or of a new one, which `make` inserts before `user`."""
        block = user.parent
        while block is not None:
            if (made := self._made.get(block)) is not None and (found := made.get(key)) is not None:
                if found.location is not user.location:
                    found.location = fuse_locations(found.location, user.location)
                return found.results[0]
            block = block.parent_block()
        op = make()
        assert op.parent is not None
        self._made.setdefault(op.parent, {})[key] = op
        return op.results[0]


@dataclass
class ExpressionLowering:
    """Builds the expressions of one op, each distinct expression once.

    op         the op that is lowered; code is inserted just before it
    operands   value of variable 0, 1, ...
    range_of   range of an expression; None if it is unknown
    unsigned   use the unsigned forms; the caller has checked `is_unsigned`
    shared     the ops that the pass has made before
    """

    op: Operation
    operands: Sequence[SSAValue]
    range_of: RangeOf | None
    unsigned: bool
    shared: SharedOps
    _built: dict[Expr, SSAValue] = field(default_factory=dict[Expr, SSAValue])
    _distances: dict[Block, int] = field(default_factory=dict[Block, int])
    _width: int = field(init=False)
    _builder: Builder = field(init=False)

    def __post_init__(self) -> None:
        self._width, self._builder = index_width(self.op), located_builder(InsertPoint.before(self.op), self.op)
        block, distance = self.op.parent, 0
        while block is not None:
            self._distances[block] = distance
            block, distance = block.parent_block(), distance + 1

    def value(self, expr: Expr) -> SSAValue:
        """The value of `expr`. raises Unsupported for a divisor that is not a positive constant."""
        if (built := self._built.get(expr)) is None:
            built = self._built[expr] = self._build(expr)
        return built

    def _build(self, expr: Expr) -> SSAValue:
        match expr.kind:
            case ExprKind.VARIABLE:
                return self.operands[expr.value]
            case ExprKind.CONSTANT:
                return self._constant(expr.value)
            case ExprKind.ADD | ExprKind.MUL:
                return self._chain(expr)
            case ExprKind.MAX:
                return self._binary(arith.MaxUIOp if self.unsigned else arith.MaxSIOp, expr)
            case ExprKind.MIN:
                return self._binary(arith.MinUIOp if self.unsigned else arith.MinSIOp, expr)
            case _:
                return self._division(expr)

    # Sums and products

    def _chain(self, expr: Expr) -> SSAValue:
        """A sum of products, or a product. The operand defined farthest away is the first; constants are last."""
        terms = sorted(_terms(expr, expr.kind), key=self._distance, reverse=True)
        total, value = terms[0], self.value(terms[0])
        for term in terms[1:]:
            total = total + term if expr.kind is ExprKind.ADD else total * term
            operation = arith.AddiOp if expr.kind is ExprKind.ADD else arith.MuliOp
            is_known = self.range_of is not None and _fits(self.range_of(total), self._width)
            flags = _NSW if is_known else _NO_FLAGS
            value = self._known_or_new(operation, value, self.value(term), flags)
        return value

    def _distance(self, expr: Expr) -> int:
        """Number of blocks between the op and the nearest definition that `expr` uses; -1 for a constant, which is last in a chain."""
        if not expr.variables():
            return -1
        return min(self._distance_of(self.operands[number]) for number in expr.variables())

    def _distance_of(self, value: SSAValue) -> int:
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return self._distances.get(block, 0) if block else 0

    # Division

    def _division(self, expr: Expr) -> SSAValue:
        divisor = expr.rhs
        if divisor.kind is not ExprKind.CONSTANT or divisor.value <= 0:
            raise refusal("lower", self.op, f"{self.op.name} divides by '{divisor}', which is not a positive constant")
        if self.unsigned:
            return self._binary(_UNSIGNED_DIVISIONS[expr.kind], expr)
        signed = {ExprKind.MOD: self._signed_mod, ExprKind.FLOORDIV: self._signed_floordiv}
        return signed.get(expr.kind, self._signed_ceildiv)(self.value(expr.lhs), self.value(divisor))

    def _signed_mod(self, dividend: SSAValue, by: SSAValue) -> SSAValue:
        """remsi has the sign of the dividend: add the divisor if it is negative."""
        rest = self._insert(arith.RemSIOp(dividend, by))
        negative = self._insert(arith.CmpiOp(rest, self._constant(0), "slt"))
        return self._insert(arith.SelectOp(negative, self._insert(arith.AddiOp(rest, by)), rest))

    def _signed_floordiv(self, dividend: SSAValue, by: SSAValue) -> SSAValue:
        """divsi rounds towards zero: for a negative dividend use -1 - (-1 - x) / c, where no dividend is negative."""
        minus_one = self._constant(-1)
        negative = self._insert(arith.CmpiOp(dividend, self._constant(0), "slt"))
        flipped = self._insert(arith.SubiOp(minus_one, dividend))
        quotient = self._insert(arith.DivSIOp(self._insert(arith.SelectOp(negative, flipped, dividend)), by))
        back = self._insert(arith.SubiOp(minus_one, quotient))
        return self._insert(arith.SelectOp(negative, back, quotient))

    def _signed_ceildiv(self, dividend: SSAValue, by: SSAValue) -> SSAValue:
        """-(-x / c) for x <= 0 and (x - 1) / c + 1 for x > 0: no dividend is negative."""
        zero, one = self._constant(0), self._constant(1)
        not_positive = self._insert(arith.CmpiOp(dividend, zero, "sle"))
        negated = self._insert(arith.SubiOp(zero, dividend))
        less_one = self._insert(arith.SubiOp(dividend, one))
        quotient = self._insert(arith.DivSIOp(self._insert(arith.SelectOp(not_positive, negated, less_one)), by))
        below = self._insert(arith.SubiOp(zero, quotient))
        above = self._insert(arith.AddiOp(quotient, one))
        return self._insert(arith.SelectOp(not_positive, below, above))

    # Ops

    def _binary(self, operation: type[Operation], expr: Expr) -> SSAValue:
        return self._known_or_new(operation, self.value(expr.lhs), self.value(expr.rhs))

    def _known_or_new(
        self,
        operation: type[Operation],
        left: SSAValue,
        right: SSAValue,
        flags: arith.IntegerOverflowAttr | None = None,
    ) -> SSAValue:
        """The result of an op of two operands of one type, made by `create`, which is the fastest way because it gets all fields."""
        properties: dict[str, Attribute] = {} if flags is None else {"overflowFlags": flags}

        def make() -> Operation:
            made = operation.create(operands=(left, right), result_types=(left.type,), properties=properties)
            return self._builder.insert(made)

        return self.shared.result((operation, left, right, flags is _NSW), self.op, make)

    def _insert(self, op: Operation) -> SSAValue:
        return self._builder.insert(op).results[0]

    def _constant(self, value: int) -> SSAValue:
        key = Expr.constant(value)
        if (built := self._built.get(key)) is None:
            built = self._built[key] = self.shared.result(
                (arith.ConstantOp, value),
                self.op,
                lambda: self._builder.insert(arith.ConstantOp(index_number(value))),
            )
        return built


def _terms(expr: Expr, kind: ExprKind) -> list[Expr]:
    """The operands of a chain of one kind of op, left to right."""
    terms: list[Expr] = []
    pending = [expr]
    while pending:
        term = pending.pop()
        if term.kind is kind:
            pending += (term.rhs, term.lhs)
        else:
            terms.append(term)
    return terms
