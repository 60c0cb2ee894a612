"""Tensor accesses: their buffers, their elements, and whether two of them can overlap.

    %x = tensor.extract %in[%i]                     reads 1 element of %in's buffer at %i
    %t = vector.transfer_write %v, %iter[%j]        writes 4 elements of the buffer that %iter came from, at %j, ..., %j + 3

Tensors are values, but a kernel stores each in one buffer and updates it in place. Moving an access, or updating in place,
is right only if the accessed elements do not overlap. Three functions decide that:

* `buffer_of(tensor)`: back through inserts, loops and branches to the argument (or allocation) that stores the value. Two arguments
  with one `xla.slice_index` are one buffer; arguments without it are different buffers, as in the listings of the seed document.
* `subscript(index)`: an index as `constant + sum(coefficient * term)`. A term is an SSA value or a nonlinear part (mod, floordiv ...),
  which is compared by structure. Equal terms cancel in a difference, so `th_x * 4 + 1` and `th_x * 4` are known to differ by one.
* `are_disjoint(earlier, later)`: no execution of `earlier` accesses an element that a later execution of `later` accesses. The
  distance of the two subscripts is bounded by an interval: once for the same iteration of all common loops, and once for each common loop
  in which `later` runs in a later iteration.

All answers are conservative: True is a proof, False means "not known".
Source: docs/reference/2 3.3 (the conditions of vectorize-loads-stores and lower-tensors), made explicit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from xdsl.dialects.builtin import IntegerAttr, TensorType, VectorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Interval
from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, func, scf, tensor, vector
from xla_emitters.dialects.quick_op import number_of, op_of, operands_of, walk
from xla_emitters.dialects.ranges import constant_of, range_of_value
from xla_emitters.rewrite.kernel_entry import SLICE_INDEX
from xla_emitters.support.late_dataclass import dataclass

UNKNOWN_RANGE = Interval(-(2**63), 2**63 - 1)

Buffer = SSAValue | IntegerAttr


# --- buffers ---------------------------------------------------------------------------------------------------------------------


def argument_attribute(value: SSAValue, name: str) -> Attribute | None:
    """The attribute `name` of a function argument; None if it is absent, or `value` is not an argument of a func.func."""
    if not isinstance(value, BlockArgument) or not isinstance(function := value.block.parent_op(), func.FuncOp):
        return None
    if function.arg_attrs is None or value.block is not function.body.first_block:
        return None
    return function.arg_attrs.data[value.index].data.get(name)


def root_of(value: SSAValue) -> SSAValue | None:
    """The argument or op whose memory stores `value`; None if branches differ."""
    roots: set[SSAValue] = set()
    # Consecutive branches join again, so each value is followed once, not once per path.
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        match op_of(value):
            case None:
                loop = value.block.parent_op() if isinstance(value, BlockArgument) and value.index else None
                if isinstance(loop, scf.ForOp):
                    pending.append(loop.iter_args[number_of(value) - 1])
                else:
                    roots.add(value)
            case tensor.InsertOp() as op:
                pending.append(op.dest)
            case vector.TransferWriteOp() as op:
                pending.append(op.source)
            case xla_gpu.AtomicRMWOp() as op:
                pending.append(op.input)
            case xla_gpu.SyncThreadsOp() as op:
                pending.append(op.arguments[number_of(value)])
            case scf.ForOp() as op:
                pending.append(op.iter_args[number_of(value)])
            case scf.IfOp() | scf.IndexSwitchOp() as op:
                ends = (region.block.last_op for region in op.regions)
                pending += [end.operands[number_of(value)] for end in ends if end is not None]
            case _:
                roots.add(value)
    return roots.pop() if len(roots) == 1 else None


def buffer_of(value: SSAValue) -> Buffer | None:
    """A key for the memory of `value`: equal keys are the same memory. None if it is unknown."""
    root = root_of(value)
    if root is None:
        return None
    slice_index = argument_attribute(root, SLICE_INDEX)
    return slice_index if isa(slice_index, IntegerAttr) else root


# --- accesses --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorAccess:
    """An op that reads or writes a tensor.

    tensor    the value that is read or updated
    index     of the first element; None: anywhere in the tensor
    elements  the number of elements from there on
    """

    op: Operation
    tensor: SSAValue
    is_write: bool
    index: SSAValue | None
    elements: int = 1

    @property
    def buffer(self) -> Buffer | None:
        return buffer_of(self.tensor)


def is_tensor(value: SSAValue) -> bool:
    return type(value.type) is TensorType  # isinstance calls xDSL's metaclass and takes ten times as long


def has_tensor(values: Iterable[SSAValue]) -> bool:
    for value in values:
        if type(value.type) is TensorType:
            return True
    return False


# Ops that pass tensors on without an access.
CARRIERS = (scf.ForOp, scf.IfOp, scf.IndexSwitchOp, scf.YieldOp, func.ReturnOp, arith.ConstantOp, xla_gpu.SyncThreadsOp)


def accesses_of(op: Operation) -> Iterator[TensorAccess]:
    """The reads and writes of `op` itself, not of nested ops; an unknown op reads and writes its tensors anywhere."""
    if not has_tensor(operands_of(op)):
        return
    match op:
        case tensor.ExtractOp():
            yield TensorAccess(op, op.tensor, False, _only(op.indices))
        case tensor.InsertOp():
            yield TensorAccess(op, op.dest, True, _only(op.indices))
        case vector.TransferReadOp() if is_tensor(op.source):
            yield TensorAccess(op, op.source, False, *_transfer(op, op.indices, op.result.type))
        case vector.TransferWriteOp() if is_tensor(op.source):
            yield TensorAccess(op, op.source, True, *_transfer(op, op.indices, op.vector.type))
        case xla_gpu.AtomicRMWOp():
            old = op.current.type
            yield TensorAccess(
                op, op.input, True, _only(op.indices), math.prod(old.get_shape()) if isa(old, VectorType) else 1
            )
        case xla_gpu.PureCallOp() | func.CallOp() if not has_tensor(op.results):
            # A function that writes an argument must return it.
            yield from (TensorAccess(op, value, False, None) for value in op.operands if is_tensor(value))
        case _ if not isinstance(op, CARRIERS):
            for value in op.operands:
                if is_tensor(value):
                    yield TensorAccess(op, value, False, None)
                    yield TensorAccess(op, value, True, None)
        case _:
            pass


def accesses_in(op: Operation) -> tuple[TensorAccess, ...]:
    """The accesses of `op` and of every op nested in it, in program order."""
    return tuple(access for nested in walk(op) if has_tensor(operands_of(nested)) for access in accesses_of(nested))


def by_buffer(accesses: Iterable[TensorAccess]) -> dict[Buffer | None, list[TensorAccess]]:
    """The accesses by buffer; under None those with an unknown buffer."""
    found: dict[Buffer | None, list[TensorAccess]] = {}
    for access in accesses:
        found.setdefault(access.buffer, []).append(access)
    return found


def _only(indices: Sequence[SSAValue]) -> SSAValue | None:
    return indices[0] if len(indices) == 1 else None


def _transfer(
    op: vector.VectorTransferOperation, indices: Sequence[SSAValue], transferred: Attribute
) -> tuple[SSAValue | None, int]:
    if not isa(transferred, VectorType) or not op.permutation_map.data.is_minor_identity():
        return None, 1
    return _only(indices), math.prod(transferred.get_shape())


# --- subscripts ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nonlinear:
    """`lhs kind rhs` if it is not a sum: mod, floordiv, a product of two variables ..."""

    kind: ExprKind
    lhs: Subscript
    rhs: Subscript


Term = SSAValue | Nonlinear


@dataclass(frozen=True)
class Subscript:
    """`constant + sum(coefficient * term)`, no coefficient 0."""

    constant: int = 0
    terms: frozenset[tuple[Term, int]] = field(default=frozenset[tuple[Term, int]]())

    @property
    def coefficients(self) -> dict[Term, int]:
        return dict(self.terms)

    def __add__(self, other: Subscript) -> Subscript:
        sums = self.coefficients
        for term, coefficient in other.terms:
            sums[term] = sums.get(term, 0) + coefficient
        return Subscript(self.constant + other.constant, frozenset((t, c) for t, c in sums.items() if c))

    def scaled(self, factor: int) -> Subscript:
        return Subscript(self.constant * factor, frozenset((t, c * factor) for t, c in self.terms if factor))

    def stride(self, value: SSAValue) -> int | None:
        """The difference of the subscript when `value` grows by one; None if it is not a constant."""
        if any(isinstance(term, Nonlinear) and value in values_in(term) for term, _ in self.terms):
            return None
        return self.coefficients.get(value, 0)

    def without(self, value: SSAValue) -> Subscript:
        """The subscript at `value` = 0; `value` must have a constant stride."""
        return Subscript(self.constant, frozenset((t, c) for t, c in self.terms if t is not value))

    def divisor(self) -> int:
        """A number that divides the subscript for all values of its variables; 0 if the subscript is always 0.

        The gcd over a sum, the product over a product, gcd(x, m) for x mod m, and 1 if nothing is known.
        """
        return math.gcd(self.constant, *(coefficient * _term_divisor(term) for term, coefficient in self.terms))


def subscript(index: SSAValue) -> Subscript:
    """`index` in terms of the values that it is computed from."""
    match op_of(index):
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return Subscript(constant.value.data)
        case xla_gpu.ApplyIndexingOp() as op if len(op.results) == 1:
            return _of_expr(op.map.results[0], [subscript(operand) for operand in operands_of(op)])
        case arith.AddiOp() as op:
            return subscript(op.lhs) + subscript(op.rhs)
        case _:
            return Subscript(0, frozenset([(index, 1)]))


def _of_expr(expr: Expr, operands: list[Subscript]) -> Subscript:
    match expr.kind:
        case ExprKind.CONSTANT:
            return Subscript(expr.value)
        case ExprKind.VARIABLE:
            return operands[expr.value]
        case kind:
            lhs, rhs = _of_expr(expr.lhs, operands), _of_expr(expr.rhs, operands)
    if kind is ExprKind.ADD:
        return lhs + rhs
    if kind is ExprKind.MUL and not rhs.terms:
        return lhs.scaled(rhs.constant)
    if kind is ExprKind.MUL and not lhs.terms:
        return rhs.scaled(lhs.constant)
    return Subscript(0, frozenset([(Nonlinear(kind, lhs, rhs), 1)]))


def values_in(term: Term) -> frozenset[SSAValue]:
    """The SSA values that a term is computed from."""
    if isinstance(term, SSAValue):
        return frozenset([term])
    return frozenset(v for part in (term.lhs, term.rhs) for nested, _ in part.terms for v in values_in(nested))


def _term_divisor(term: Term) -> int:
    if isinstance(term, SSAValue):
        return _value_divisor(term)
    match term.kind:
        case ExprKind.MUL:
            return term.lhs.divisor() * term.rhs.divisor()
        case ExprKind.MOD | ExprKind.MIN | ExprKind.MAX:
            return math.gcd(term.lhs.divisor(), term.rhs.divisor())
        case _:
            return 1


def _value_divisor(value: SSAValue) -> int:
    """A divisor of a value: an induction variable is a multiple of the gcd of its lower bound and its step."""
    if (loop := _loop_of(value)) is None:
        return 1
    lower, step = constant_of(loop.lb), constant_of(loop.step)
    return 1 if lower is None or step is None else math.gcd(lower, step)


# --- overlaps --------------------------------------------------------------------------------------------------------------------


def are_disjoint(earlier: TensorAccess, later: TensorAccess, within: scf.ForOp | None = None) -> bool:
    """True if it is proved that no execution of `later` accesses an element that an earlier execution of `earlier` accessed.

    within  only during one run of this loop: iterations of the loops around it are ignored
    """
    if earlier.index is None or later.index is None:
        return False
    before, after = subscript(earlier.index), subscript(later.index)
    touching = Interval(-(later.elements - 1), earlier.elements - 1)
    if _precedes(earlier.op, later.op) and _may_intersect(_distance(before, after, None), touching):
        return False
    for loop in _common_loops(earlier.op, later.op):
        if within is not None and not within.is_ancestor(loop):
            continue
        if trip_count(loop) not in (0, 1) and _may_intersect(_distance(before, after, loop), touching):
            return False
    return True


def _distance(before: Subscript, after: Subscript, loop: scf.ForOp | None) -> Interval:
    """Bounds of `after - before`, both in one iteration of all common loops, or `after` in a later iteration of `loop`.

    A value from outside `loop` is the same on both sides, so only the difference of its coefficients matters. The induction variable is 1
    to (trip count - 1) steps further. Any other value of the body is unknown on both sides.
    """
    total = _point(after.constant - before.constant)
    earlier, later = before.coefficients, after.coefficients
    for term in {**earlier, **later}:
        first, second, values = earlier.get(term, 0), later.get(term, 0), _range(term)
        if loop is None or not any(_is_inside(value, loop) for value in values_in(term)):
            total += _times(second - first, values)
        elif term is loop.body.block.args[0]:
            step, trips = constant_of(loop.step), trip_count(loop)
            growth = UNKNOWN_RANGE if step is None or trips is None else _point(step) * Interval(1, trips - 1)
            total += _times(second - first, values) + _times(second, growth)
        else:
            total += _times(second, values) - _times(first, values)
    return total


def _point(value: int) -> Interval:
    return Interval(value, value)


def _times(coefficient: int, interval: Interval) -> Interval:
    return _point(coefficient) * interval if coefficient else _point(0)


def _range(term: Term) -> Interval:
    known = range_of_value(term) if isinstance(term, SSAValue) else None
    return known or UNKNOWN_RANGE


def _may_intersect(one: Interval, other: Interval) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


def trip_count(loop: scf.ForOp) -> int | None:
    """The number of iterations, if the bounds are constants and the step is positive; else None."""
    lower, upper, step = constant_of(loop.lb), constant_of(loop.ub), constant_of(loop.step)
    if lower is None or upper is None or step is None or step <= 0:
        return None
    if "unsignedCmp" in loop.properties and (lower < 0 or upper < 0):
        return None  # a negative number would be a large unsigned one
    return max(0, -(-(upper - lower) // step))


def _loop_of(value: SSAValue) -> scf.ForOp | None:
    """The loop with the induction variable `value`; None if it is not one."""
    if isinstance(value, BlockArgument) and value.index == 0 and isinstance(loop := value.owner.parent_op(), scf.ForOp):
        return loop
    return None


def _is_inside(value: SSAValue, loop: scf.ForOp) -> bool:
    return loop.is_ancestor(value.owner)


def _loops_around(op: Operation) -> list[scf.ForOp]:
    """The loops around `op`, innermost first."""
    loops: list[scf.ForOp] = []
    while (parent := op.parent_op()) is not None:
        op = parent
        if isinstance(op, scf.ForOp):
            loops.append(op)
    return loops


def _common_loops(one: Operation, other: Operation) -> list[scf.ForOp]:
    around = _loops_around(other)
    return [loop for loop in _loops_around(one) if any(loop is candidate for candidate in around)]


def _precedes(one: Operation, other: Operation) -> bool:
    """Whether `one` runs before `other` in the same iteration of all loops around both; False for the two branches of an `scf.if`."""
    block: Block | None = one.parent_block()
    while block is not None:
        first, second = block.find_ancestor_op_in_block(one), block.find_ancestor_op_in_block(other)
        if first is not None and second is not None:
            return first is not second and first.is_before_in_block(second)
        parent = block.parent_op()
        block = parent.parent_block() if parent else None
    return False
