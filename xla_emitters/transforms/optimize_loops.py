"""Unroll loops with constant bounds: fully when short, else by the largest factor that fits.

    scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %x) {      %a0 = f(%x, %c0)
      %n = f(%a, %v)                                      ->   %a1 = f(%a0, %c1)
      scf.yield %n                                             %a2 = f(%a1, %c2)
    }                                                          %a3 = f(%a2, %c3)

    scf.for %v = %c0 to %c64 step %c1 ... { f(%v) }       ->   scf.for %v = %c0 to %c64 step %c16 ... {
                                                                 f(%v)
                                                                 %v1 = apply_indexing (d0) -> (d0 + 1)(%v)
                                                                 f(%v1) ... }

Straight-line code lets the loads of several iterations overlap, but is larger. The size of a body is the sum of its ops' weights: 1 per op,
20 per float `math` op that becomes a call or a polynomial, each times the number of elements of a vector result. All copies of a body
together may have a size of 400. A loop of at most `max_unroll_factor` iterations is unrolled whatever its size: 4, or the function's
attribute, because a loop may run over the elements of one thread. The factor
always divides the number of iterations, so there is no remainder loop. A loop that contains another loop, a call, or a function with
a large expansion is not unrolled; inner loops come first, so a nest is unrolled from the inside as far as the size allows.

With `unroll_in_llvm` some loops are marked for LLVM instead of copied here, so that the passes in between have one body to process: loops
to be copied more than `max_unroll_factor` times, and loops that contain a loop and are to be copied whole:

    scf.for %v = %c0 to %c8 step %c1 { f(%v) }     ->    scf.for %v = %c0 to %c8 step %c1 { f(%v) } {loop_annotation = #unroll}

    scf.for %v = %c0 to %c64 step %c1 { f(%v) }    ->    scf.for %v = %c0 to %c64 step %c16 {
                                                           scf.for %w = %c0 to %c16 step %c1 { f(%v + %w) } {loop_annotation = #unroll}
                                                         }          #unroll = #llvm.loop_annotation<unroll = <full = true>>

LLVM combines instructions before it copies, so these loops are copied here nevertheless: a loop that calls a function with an index,
because the index arithmetic meets the loop's only in LLVM; one that carries an integer, or a value that a branch selects; one that reads
vectors of 4-bit elements, which become two accesses each; and one with a condition that several iterations share (`8 * b + %v <= 74`),
because here its copies become one branch. In a marked loop the variable is moved to the other side of comparisons, `8 * b <= 74 - %v`, so
that copies share the operand that does not depend on it.

A marked loop counts with the size of its copies, so the unroll factor of the loops around it does not depend on who copies.
Source: seed document, "Loop unrolling"; XLA optimize_loops.cc; docs/decisions/18-loops-that-llvm-unrolls.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.expression import Expr, linear_terms, make_sum
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.build import constant_index
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import block_like, located_builder, replace_alike, take_over
from xla_emitters.dialects.mlir import arith, scf, vector
from xla_emitters.dialects.mlir.llvm.metadata import LOOP_ANNOTATION, LoopAnnotationAttr, LoopUnrollAttr
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.functions import BY_OP, CodeSize
from xla_emitters.rewrite.effects import is_constant
from xla_emitters.rewrite.folders import FIRST_UNSIGNED
from xla_emitters.rewrite.kernel_entry import UNROLL_FACTOR
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.scf_patterns import yielded
from xla_emitters.rewrite.symbols import Scope, scopes
from xla_emitters.rewrite.unrolling import copy_body, trip_count_of_plain_loop, unroll_fully
from xla_emitters.support.late_dataclass import dataclass

DEFAULT_UNROLL_FACTOR = 4
SIZE_MAX = 400
MATH_WEIGHT = 20
# A loop that contains one of these ops is not unrolled.
HEAVY = frozenset({"scf.for", "func.call", *(op for op, row in BY_OP.items() if row.size is CodeSize.LARGE)})
_UNROLL_FULLY = LoopAnnotationAttr.of(unroll=LoopUnrollAttr.of(full=BoolAttr.from_bool(True)))
CHEAP_MATH = frozenset(op for op, row in BY_OP.items() if row.size is CodeSize.SMALL and op.startswith("math."))


@dataclass(frozen=True)
class OptimizeLoopsPass(KernelPass):
    """See the head of the file. `max_unroll_factor` 0: the function's `xla.unroll_factor`, else 4."""

    name = "xla-gpu-optimize-loops"

    max_unroll_factor: int = 0
    unroll_in_llvm: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        if self.max_unroll_factor < 0:
            raise UsageError(f"{self.name}: max-unroll-factor={self.max_unroll_factor}", help="0 for the default")
        for function in (found for module in scopes(op) for found in module.body.ops if not isinstance(found, Scope)):
            said = function.attributes.get(UNROLL_FACTOR)
            factor = said.value.data if isinstance(said, IntegerAttr) else DEFAULT_UNROLL_FACTOR
            loops = [found for found in function.walk(region_first=True) if isinstance(found, scf.ForOp)]
            # Computed before any loop is erased: the loops that contain others.
            around = {around for loop in loops if isinstance(around := loop.parent_op(), scf.ForOp)}
            for loop in loops:
                self.optimize(loop, self.max_unroll_factor or factor, contains_loops=loop in around)

    def optimize(self, loop: scf.ForOp, short: int, *, contains_loops: bool) -> None:
        """Unrolls `loop` if its size allows; else adds a remark with the reason.

        short           loops of up to this many iterations are unrolled whatever their size
        contains_loops  whether it did before the pass
        """
        trips = trip_count_of_plain_loop(loop)
        if isinstance(trips, str):
            return self.skip(loop, trips)
        if trips < 2:
            return self.skip(loop, "it runs at most once")
        if heavy := next((op for op in loop.body.walk() if op.name in HEAVY and not is_unrolled_later(op)), None):
            return self.skip(loop, f"it contains {heavy.name}")
        size = body_size(loop)
        factor = unroll_factor(trips, size, short)
        if factor <= 1:
            return self.skip(loop, f"no unroll factor divides its {trips} iterations and fits a body of size {size}")
        if self.unroll_in_llvm and (factor > short or (contains_loops and factor == trips)):
            if (reason := reason_to_copy_here(loop, trips)) is None:
                return leave_to_llvm(loop, factor, trips)
            self.skip(loop, f"not left to LLVM: {reason}")
        if factor == trips:
            unroll_fully(loop, trips)
        else:
            unroll_by(loop, factor, trips)


# ---- loops for LLVM ---------------------------------------------------------------------------------------------------------------------


def reason_to_copy_here(loop: scf.ForOp, trips: int) -> str | None:
    """The reason why LLVM would simplify its copies less than this pass does; None if there is none."""
    calls = (op for op in walk(loop) if isinstance(op, xla_gpu.PureCallOp))
    if any(isinstance(operand.type, IndexType) for call in calls for operand in call.operands):
        return "it calls a function with an index"
    carried = [value for value in yielded(loop.body.block) if not isinstance(value.type, TensorType)]
    if any(isinstance(value.owner, scf.IfOp) or isinstance(value.type, IntegerType) for value in carried):
        return "it carries an integer, or a value that a branch decides"
    reads = (op for op in walk(loop) if isinstance(op, vector.TransferReadOp))
    if any(dtype_of(read.result.type.element_type).bits < 8 for read in reads):
        return "it reads elements narrower than a byte"
    if any(bound.is_asked_again(trips) for bound in _bounds(loop)):
        return "several of its iterations have the same condition"
    return None


@dataclass(frozen=True)
class IterationBound:
    """A comparison in a loop's body: (sum of `bases` times their factors) + `constant` + `factor` * (induction variable), with `limit`."""

    op: arith.CmpiOp
    map: IndexingMap
    bases: dict[Expr, int]
    constant: int
    position: int
    factor: int
    limit: int

    @staticmethod
    def of(op: arith.CmpiOp, variable: SSAValue) -> IterationBound | None:
        """`op`, a signed comparison of a map's result with a constant; None unless the map is linear in `variable` and has others."""
        applied, limit = op.lhs.owner, constant_of(op.rhs)
        if not isinstance(applied, xla_gpu.ApplyIndexingOp) or limit is None or applied.map.num_results != 1:
            return None
        if op.predicate.value.data >= FIRST_UNSIGNED:
            return None
        positions = [number for number, operand in enumerate(applied.operands) if operand is variable]
        if len(positions) != 1:
            return None
        indexing_map = applied.map.symbols_to_dims()
        bases, constant = linear_terms(indexing_map.results[0])
        factor = bases.pop(Expr.variable(positions[0]), 0)
        if not factor or not bases or any(positions[0] in base.variables() for base in bases):
            return None
        return IterationBound(op, indexing_map, bases, constant, positions[0], factor, limit)

    def is_asked_again(self, trips: int) -> bool:
        """Whether two iterations test the same condition: `8 * b + v <= 74` is `b <= 9` for v from 0 to 2, and `b <= 8` from 3 to 7."""
        divisor = math.gcd(*self.bases.values())
        limits = [self.limit - self.constant - self.factor * number for number in range(trips)]
        return len({limit // divisor for limit in limits}) < trips

    def move_variable(self, variable: SSAValue) -> None:
        """`apply_indexing (a + %v * k) <= c` becomes `a <= apply_indexing (c - %v * k)`, so that copies share all but a constant."""
        applied = self.op.lhs.owner
        assert isinstance(applied, xla_gpu.ApplyIndexingOp)
        builder = located_builder(InsertPoint.before(self.op), self.op)
        rest = replace(self.map, results=(make_sum(self.bases, self.constant),), constraints=())
        least = Expr.constant(self.limit) - Expr.variable(0) * self.factor
        of_variable = IndexingMap((least,), dims=(self.map.dims[self.position],))
        self.op.operands[0] = builder.insert(xla_gpu.ApplyIndexingOp(applied.operands, rest)).results[0]
        self.op.operands[1] = builder.insert(xla_gpu.ApplyIndexingOp([variable], of_variable)).results[0]


def _bounds(loop: scf.ForOp) -> list[IterationBound]:
    """The comparisons in the body that depend on the induction variable."""
    variable = loop.body.block.args[0]
    found = (IterationBound.of(op, variable) for op in walk(loop) if isinstance(op, arith.CmpiOp))
    return [bound for bound in found if bound is not None]


def leave_to_llvm(loop: scf.ForOp, factor: int, trips: int) -> None:
    """Marks `loop` for LLVM, or nests a marked loop over `factor` of its iterations in it; `factor` divides `trips`."""
    for bound in _bounds(loop):
        bound.move_variable(loop.body.block.args[0])
    if factor == trips:
        loop.attributes[LOOP_ANNOTATION] = _UNROLL_FULLY
        return
    count = constant_index(located_builder(InsertPoint.before(loop), loop), factor)

    def inner_loop(builder: Builder, first: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        block = block_like(loop.body.block)
        inside = located_builder(InsertPoint.at_end(block), loop)
        variable, *arguments = block.args
        within = Variable(Interval(0, factor - 1))
        both = IndexingMap((Expr.variable(0) + Expr.variable(1),), dims=(_first_of(factor, trips), within))
        number = inside.insert(xla_gpu.ApplyIndexingOp([first, variable], both)).results[0]
        number.name_hint = variable.name_hint
        inside.insert(scf.YieldOp(*copy_body(loop, inside, number, arguments)))
        made = builder.insert(scf.ForOp(loop.lb, count, loop.step, carried, block))
        made.properties.update(loop.properties)
        take_over(loop, made)
        made.attributes[LOOP_ANNOTATION] = _UNROLL_FULLY
        return made.results

    _replace_by_steps(loop, count, inner_loop)


def is_unrolled_later(op: Operation) -> bool:
    """Whether `op` is a loop that this pass has left to LLVM."""
    return op.attributes.get(LOOP_ANNOTATION) == _UNROLL_FULLY


# ---- trip counts, sizes, copies ---------------------------------------------------------------------------------------------------------


def unroll_factor(trips: int, size: int, max_unroll_factor: int) -> int:
    """How many copies of a body of `size` to make: a divisor of `trips`. 0 or 1 means that the loop stays.

    >>> unroll_factor(4, 1000, 4), unroll_factor(64, 25, 4), unroll_factor(6, 100, 4), unroll_factor(7, 100, 4)
    (4, 16, 3, 1)
    """
    if trips <= max_unroll_factor:
        return trips
    return next((factor for factor in range(min(trips, SIZE_MAX // size), 1, -1) if trips % factor == 0), 1)


def body_size(loop: scf.ForOp) -> int:
    """The weights of all ops in the body, nested ones and terminators included."""
    return _size(loop.body.block)


def _size(block: Block) -> int:
    total = 0
    for op in block.ops:
        if isinstance(op, scf.ForOp) and is_unrolled_later(op):
            # The loop and its yield disappear when LLVM copies the body.
            trips = trip_count_of_plain_loop(op)
            assert isinstance(trips, int)
            total += trips * (body_size(op) - 1)
            continue
        total += weight(op) + sum(_size(inner) for region in op.regions for inner in region.blocks)
    return total


def weight(op: Operation) -> int:
    """The weight of one op: 1 or MATH_WEIGHT, times the elements of its first result; 0 for a constant, which is hoisted."""
    if is_constant(op):
        return 0
    result = op.results[0].type if op.results else None
    elements, element = (math.prod(result.get_shape()), result.element_type) if isa(result, VectorType) else (1, result)
    is_function = op.name.startswith("math.") and op.name not in CHEAP_MATH and isinstance(element, AnyFloat)
    return elements * (MATH_WEIGHT if is_function else 1)


def unroll_by(loop: scf.ForOp, factor: int, trips: int) -> None:
    """Replaces `loop` by a loop whose body is `factor` iterations; `factor` divides `trips`."""

    def copies(builder: Builder, first: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        for copy in range(factor):
            number = first
            if copy:
                shifted = IndexingMap(results=(Expr.variable(0) + copy,), dims=(_first_of(factor, trips),))
                number = builder.insert(xla_gpu.ApplyIndexingOp([first], shifted)).results[0]
                number.name_hint = first.name_hint
            carried = copy_body(loop, builder, number, carried)
        return carried

    _replace_by_steps(loop, constant_index(located_builder(InsertPoint.before(loop), loop), factor), copies)


def _first_of(factor: int, trips: int) -> Variable:
    """Variable: the number of the first of `factor` iterations."""
    return Variable(Interval(0, trips - factor))


def _replace_by_steps(
    loop: scf.ForOp, step: SSAValue, body: Callable[[Builder, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
) -> None:
    """Replaces `loop` by a loop that executes `step` iterations at a time.

    body    emits these iterations; (builder, number of the first, carried values before) -> carried values after
    """
    block = block_like(loop.body.block)
    first, *carried = block.args
    builder = located_builder(InsertPoint.at_end(block), loop)
    builder.insert(scf.YieldOp(*body(builder, first, carried)))
    made = scf.ForOp(loop.lb, loop.ub, step, loop.iter_args, block)
    made.properties.update(loop.properties)
    replace_alike(loop, made)
