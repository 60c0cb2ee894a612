"""Splits the loop over all elements into a loop over rows with an inner loop over a row's elements: for a CPU.

    scf.parallel (%i) = (0) to (%n) step (1) {                scf.parallel (%row, %thread) = (0, 0) to (%b, 1) step (1, 1) {
      %d:2 = affine.delinearize_index %i into (%b, 32)          scf.for %j = 0 to 32 step 1 {
      ... %x[%d#0, %d#1]                                ->        ... %x[%row, %j]
    } {disc.schedule = "loop"}                                  }
                                                              } {disc.schedule = "loop"}

The inner loop has no divisions, and adjacent elements have adjacent indices, so LLVM can vectorize it. The rows are those of the first
coordinates that the body needs, of an array with as many elements as the loop has iterations: %n is %b * 32. Other coordinates
are computed from the number of the element, which is %row * 32 + %j. A loop that needs no such coordinates remains one loop.

Every loop then has two variables, the second with one value: a block is one thread.
Source: docs/reference/4 3.5 (the loop schedule).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.buffers.index_code import INDEX, IndexCode, Number
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.kernels.index_sums import Sum, Sums
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscNestLoopsPass(KernelPass):
    """See the file's head. On fusions whose loops read no buffer of their own any more."""

    name = "disc-nest-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            for loop in [found for found in fusion.body.block.ops if isinstance(found, scf.ParallelOp)]:
                if len(loop.lowerBound) == 1:
                    self.nest(fusion, loop)

    def nest(self, fusion: FusionOp, loop: scf.ParallelOp) -> None:
        """Replaces a loop of one variable."""
        (element,) = loop.body.block.args
        if (constant_of(loop.lowerBound[0]), constant_of(loop.step[0])) != (0, 1):
            self.skip(loop, "its step is not 1")
            return
        asked = [
            found
            for found in loop.body.block.walk()
            if isinstance(found, DelinearizeIndexOp) and found.linear_index is element and len(found.basis) > 1
        ]
        sums = Sums()
        rows = [found for found in asked if _count(sums, found) == sums.of(loop.upperBound[0])]
        if asked and not rows:
            self.skip(
                loop, "no array whose coordinates it computes is known to have as many elements as it has iterations"
            )
        host = IndexCode(Builder(InsertPoint.before(fusion)), loop.location)
        body = Block(arg_types=[INDEX, INDEX])
        *ops, _ = loop.body.block.ops
        for moved in ops:
            moved.detach()
        row = body.args[0]
        row.name_hint = "row" if rows else element.name_hint
        upper: Number = loop.upperBound[0]
        if rows:
            basis = rows[0].basis
            upper = host.product(basis[:-1])
            inner = Block(arg_types=[INDEX])
            code = IndexCode(Builder(InsertPoint.at_end(body)), loop.location)
            low, high, step = code.value(0), host.value(basis[-1]), code.value(1)
            kept = row if len(basis) == 2 else None
            outer = [kept] if kept is not None else _delinearized(code, row, basis[:-1])
            code.insert(arith.MuliOp(row, high))
            start = body.last_op
            assert start is not None
            code.builder.insert(scf.ForOp(low, high, step, [], Region(inner))).location = loop.location
            inside = IndexCode(Builder(InsertPoint.at_end(inner)), loop.location)
            column = inner.args[0]
            column.name_hint = "column"
            number = inside.insert(arith.AddiOp(start.results[0], column))
            number.name_hint = element.name_hint
            inner.add_ops([*ops, scf.YieldOp()])
            for found in rows:
                if found.basis == basis:
                    Rewriter.replace_op(found, [], [*outer, column])
            element.replace_all_uses_with(number)
        else:
            body.add_ops(ops)
            element.replace_all_uses_with(row)
        body.add_op(scf.ReduceOp())
        zero, one = host.value(0), host.value(1)
        made = scf.ParallelOp([zero, zero], [host.value(upper), one], [one, one], Region(body))
        made.attributes |= loop.attributes
        made.location = loop.location
        Rewriter.replace_op(loop, made, [])


def _count(sums: Sums, coordinates: DelinearizeIndexOp) -> Sum:
    """The number of elements of the array with these coordinates."""
    total = Sum(1)
    for size in coordinates.basis:
        total = total * (Sum(size) if isinstance(size, int) else sums.of(size))
    return total


def _delinearized(code: IndexCode, row: SSAValue, basis: list[Number]) -> list[SSAValue]:
    made = DelinearizeIndexOp(row, basis, len(basis))
    code.insert(made)
    return list(made.multi_index)
