"""Splits the loop over all elements into a loop over rows with an inner loop over a row's elements: for a CPU.

    scf.parallel (%i) = (0) to (%n) step (1) {                scf.parallel (%row, %thread) = (0, 0) to (%b, 1) step (1, 1) {
      %d:2 = affine.delinearize_index %i into (%b, 32)          scf.for %j = 0 to 32 step 1 {
      ... %x[%d#0, %d#1]                                ->        ... %x[%row, %j]
    } {disc.schedule = "loop"}                                  }
                                                              } {disc.schedule = "loop"}

The inner loop has no divisions, and adjacent elements have adjacent indices, so LLVM can vectorize it. The rows are those of the first
coordinates that the body needs, of an array with as many elements as the loop has iterations: %n is %b * 32. Other coordinates
are computed from the number of the element, which is %row * 32 + %j. A loop that needs no such coordinates remains one loop.

Where an access has its last coordinate from the row, and another one from %j, as in a transpose, blocks are 16 rows, in tiles of 16
columns: each line of memory that a tile reads is used by all of its rows.

    scf.parallel (%block, %thread) = (0, 0) to (%b ceildiv 16, 1) step (1, 1) {
      scf.for %left = 0 to %n step 16 { scf.for %row = ... to min(%first + 16, %b) { scf.for %j = %left to min(%left + 16, %n) {
        ... %x[%j, %row] }}}

Every loop then has two variables, the second with one value: a block is one thread.
Source: docs/reference/4 3.5 (the loop schedule).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir import arith, memref, scf
from xla_emitters.dialects.mlir.affine import DelinearizeIndexOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.buffers.index_code import INDEX, IndexCode, Number
from xla_emitters.rewrite.index_sums import Sums
from xla_emitters.rewrite.kernel_pass import KernelPass

TILE = 16
"""Rows and columns of a tile: the elements of a line of memory, if they have four bytes."""


class DiscNestLoopsPass(KernelPass):
    """See the file's head. On fusions whose loops read no buffer of their own any more."""

    name = "disc-nest-loops"

    def apply_to(self, op: ModuleOp) -> None:
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
        host = IndexCode(QuickBuilder(InsertPoint.before(fusion)), loop.location)
        *ops, _ = loop.body.block.ops
        is_crossed = any(_is_crossed(found, op) for found in rows[:1] for op in loop.body.block.walk())
        for moved in ops:
            moved.detach()
        body = Block(arg_types=[INDEX, INDEX])
        upper: Number = loop.upperBound[0]
        code = IndexCode(QuickBuilder(InsertPoint.at_end(body)), loop.location)
        if not rows:
            body.args[0].name_hint = element.name_hint
            body.add_ops(ops)
            element.replace_all_uses_with(body.args[0])
        else:
            *above, columns = basis = rows[0].basis
            count = host.product(above)
            if is_crossed:
                upper = host.divide(host.add(count, TILE - 1), TILE)
                row, code, low, high = _tiles(host, code, body.args[0], count, columns)
            else:
                upper, row, low, high = count, body.args[0], code.value(0), host.value(columns)
            row.name_hint, one = "row", code.value(1)
            inner = Block(arg_types=[INDEX])
            outer = [row] if len(above) == 1 else _delinearized(code, row, above)
            start = code.insert(arith.MuliOp(row, host.value(columns)))
            _for(code, low, high, one, inner)
            inside = IndexCode(QuickBuilder(InsertPoint.at_end(inner)), loop.location)
            column = inner.args[0]
            column.name_hint = "column"
            number = inside.insert(arith.AddiOp(start, column))
            number.name_hint = element.name_hint
            inner.add_ops([*ops, scf.YieldOp()])
            for found in rows:
                if found.basis == basis:
                    Rewriter.replace_op(found, [], [*outer, column])
            element.replace_all_uses_with(number)
        body.add_op(scf.ReduceOp())
        zero, one = host.value(0), host.value(1)
        made = scf.ParallelOp([zero, zero], [host.value(upper), one], [one, one], Region(body))
        made.attributes |= loop.attributes
        made.location = loop.location
        Rewriter.replace_op(loop, made, [])


def _is_crossed(coordinates: DelinearizeIndexOp, op: Operation) -> bool:
    """Whether an op reads an element whose last coordinate is the last of the row, and whose other ones include the column."""
    *_, row, column = coordinates.multi_index
    return isinstance(op, memref.LoadOp) and len(op.indices) > 1 and op.indices[-1] is row and column in op.indices[:-1]


def _tiles(
    host: IndexCode, code: IndexCode, block: SSAValue, rows: Number, columns: Number
) -> tuple[SSAValue, IndexCode, SSAValue, SSAValue]:
    """Loops over the tiles of a block, and the rows of a tile: a row, the code in it, and the first and last column."""
    zero, one, tile = code.value(0), code.value(1), code.value(TILE)
    first = code.insert(arith.MuliOp(block, tile))
    end = code.insert(arith.MinSIOp(code.insert(arith.AddiOp(first, tile)), host.value(rows)))
    of_tile, of_row = Block(arg_types=[INDEX]), Block(arg_types=[INDEX])
    _for(code, zero, host.value(columns), tile, of_tile)
    left = of_tile.args[0]
    code = code.inside(QuickBuilder(InsertPoint.at_end(of_tile)))
    right = code.insert(arith.MinSIOp(code.insert(arith.AddiOp(left, tile)), host.value(columns)))
    _for(code, first, end, one, of_row)
    of_tile.add_op(scf.YieldOp())
    of_row.add_op(scf.YieldOp())
    return of_row.args[0], code.inside(QuickBuilder(InsertPoint.at_start(of_row))), left, right


def _for(code: IndexCode, low: SSAValue, high: SSAValue, step: SSAValue, body: Block) -> None:
    code.builder.insert(scf.ForOp(low, high, step, [], Region(body))).location = code.location


def _count(sums: Sums, coordinates: DelinearizeIndexOp) -> Size:
    """The number of elements of the array with these coordinates."""
    total = Size.constant(1)
    for size in coordinates.basis:
        total = total * (size if isinstance(size, int) else sums.of(size))
    return total


def _delinearized(code: IndexCode, row: SSAValue, basis: list[Number]) -> list[SSAValue]:
    made = DelinearizeIndexOp(row, basis, len(basis))
    code.insert(made)
    return list(made.multi_index)
