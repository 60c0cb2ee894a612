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
20 per float `math` op that becomes a call or a polynomial, each times the number of elements of a vector result. A loop is copied as often
as copies of a total size of at most 400 allow; a loop of at most `max_unroll_factor` iterations is unrolled whatever its size: 4, or what
the function says, since the elements of a thread are the iterations of a loop. The factor
always divides the number of iterations, so there is no remainder loop. A loop that contains another loop, a call, or a function with
a large expansion is not unrolled; inner loops come first, so a nest is unrolled from the inside as far as the size allows.
Source: seed document, "Loop unrolling"; XLA optimize_loops.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.build import constant_index
from xla_emitters.functions import BY_OP, Size
from xla_emitters.indexing import Expr, IndexingMap, Interval, Variable
from xla_emitters.kernels.accesses import constant_of
from xla_emitters.kernels.kernel_entry import UNROLL_FACTOR
from xla_emitters.rewrite.effects import is_constant
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.locations import located_builder
from xla_emitters.rewrite.unrolling import copy_body, unroll_fully

DEFAULT_UNROLL_FACTOR = 4
SIZE_MAX = 400
MATH_WEIGHT = 20
# A loop that contains one of these ops is not unrolled.
HEAVY = frozenset({"scf.for", "func.call", *(op for op, row in BY_OP.items() if row.size is Size.LARGE)})
CHEAP_MATH = frozenset(op for op, row in BY_OP.items() if row.size is Size.SMALL and op.startswith("math."))


@dataclass(frozen=True)
class OptimizeLoopsPass(KernelPass):
    """See the head of the file. `max_unroll_factor` 0 means what a function says in `xla.unroll_factor`, else 4."""

    name = "xla-gpu-optimize-loops"

    max_unroll_factor: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            said = function.attributes.get(UNROLL_FACTOR)
            factor = said.value.data if isinstance(said, IntegerAttr) else DEFAULT_UNROLL_FACTOR
            for loop in [found for found in function.walk(region_first=True) if isinstance(found, scf.ForOp)]:
                self.optimize(loop, self.max_unroll_factor or factor)

    def optimize(self, loop: scf.ForOp, max_unroll_factor: int) -> None:
        """Unrolls `loop` if its size allows; else adds a remark with the reason."""
        trips = trip_count_of_plain_loop(loop)
        if isinstance(trips, str):
            return self.skip(loop, trips)
        if trips < 2:
            return self.skip(loop, "it runs at most once")
        if heavy := next((op for op in loop.body.walk() if op.name in HEAVY), None):
            return self.skip(loop, f"it contains {heavy.name}")
        size = body_size(loop)
        factor = unroll_factor(trips, size, max_unroll_factor)
        if factor <= 1:
            return self.skip(loop, f"no unroll factor divides its {trips} iterations and fits a body of size {size}")
        if factor == trips:
            unroll_fully(loop, trips)
        else:
            unroll_by(loop, factor, trips)


def trip_count_of_plain_loop(loop: scf.ForOp) -> int | str:
    """Trip count of a `0..C step 1` loop over `index`, else a string: why it has none."""
    lower, upper, step = (constant_of(bound) for bound in (loop.lb, loop.ub, loop.step))
    if not isinstance(loop.lb.type, IndexType):
        return f"its induction variable is {loop.lb.type}, not index"
    if lower != 0:
        return "it does not start at 0"
    if step != 1:
        return "step is not 1"
    if upper is None:
        return "its upper bound is not a constant"
    return max(upper, 0)


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
    return sum(weight(op) for op in loop.body.walk())


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
    step = constant_index(located_builder(InsertPoint.before(loop), loop), factor)
    body = Block(arg_types=[argument.type for argument in loop.body.block.args])
    for argument, old in zip(body.args, loop.body.block.args, strict=True):
        argument.name_hint, argument.location = old.name_hint, old.location
    variable, *carried = body.args
    builder = located_builder(InsertPoint.at_end(body), loop)
    first = Variable(Interval(0, trips - factor))
    for copy in range(factor):
        number: SSAValue = variable
        if copy:
            shifted = IndexingMap(results=(Expr.variable(0) + copy,), dims=(first,))
            number = builder.insert(xla_gpu.ApplyIndexingOp([variable], shifted)).results[0]
            number.name_hint = variable.name_hint
        carried = copy_body(loop, builder, number, carried)
    builder.insert(scf.YieldOp(*carried))
    unrolled = scf.ForOp(loop.lb, loop.ub, step, loop.iter_args, body)
    unrolled.attributes, unrolled.properties, unrolled.location = (
        loop.attributes.copy(),
        loop.properties.copy(),
        loop.location,
    )
    for new, old in zip(unrolled.results, loop.results, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(loop, unrolled)
