"""Moves divisions of loop-invariant numbers out of a loop's branches, in front of the loop: for a CPU.

    scf.for %j = %0 to %n step %1 {                 %d = arith.maxui %rows, %1
      %c = arith.cmpi ult, %j, %m                   %q = arith.divui %i, %d
      scf.if %c {                                   scf.for %j = %0 to %n step %1 {
        %q = arith.divui %i, %rows          ->        %c = arith.cmpi ult, %j, %m
        ... %x[%q]                                    scf.if %c {
      }                                                 ... %x[%q]
    }                                                 }
                                                    }

LLVM leaves such a division in its branch, because a divisor may be 0, and LLVM 22's loop vectorizer gets it wrong: only the lanes that take
the branch divide, and then the quotient of the first lane is used in all of them, which is undefined if the first lane does not take it.
In front of the loop the division runs even if no iteration would run it, so a divisor of 0 becomes 1. What the operands are computed from
moves too. Divisions by constants cannot fail, so LLVM moves them itself; it takes no quotients of signed divisions for equal in all lanes.
Source: LLVM 22, LoopVectorize, whose code for a padding had other numbers than JAX.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, scf
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.effects import UNSIGNED_DIVISIONS, is_speculatable
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscHoistDivisionsPass(KernelPass):
    """See the file's head. On kernels whose indices are computed by ops of `arith`, before branches become blocks."""

    name = "disc-hoist-divisions"

    def apply_to(self, op: ModuleOp) -> None:
        for loop in [found for found in op.walk(region_first=True) if isinstance(found, scf.ForOp | scf.WhileOp)]:
            for division in [found for found in loop.walk() if isinstance(found, UNSIGNED_DIVISIONS)]:
                if not is_speculatable(division) and _is_in_branch(division, loop):
                    _hoist(division, loop)


def _is_in_branch(op: Operation, loop: Operation) -> bool:
    """Whether a branch inside the loop decides if the op runs."""
    parent = op.parent_op()
    while parent is not None and parent is not loop:
        if isinstance(parent, scf.IfOp | scf.IndexSwitchOp):
            return True
        parent = parent.parent_op()
    return False


def _hoist(division: Operation, loop: Operation) -> None:
    moved = dict[Operation, None]()
    if not all(_is_invariant(operand, loop, moved) for operand in division.operands):
        return
    for op in (*moved, division):
        place = InsertPoint.before(loop)
        if isinstance(op, UNSIGNED_DIVISIONS) and not is_speculatable(op):
            builder = located_builder(place, op)
            kind = op.rhs.type
            assert isa(kind, IndexType | IntegerType), "kernels of a CPU divide no vectors"
            one = literal(builder, 1, kind)
            op.operands[1] = builder.insert(arith.MaxUIOp(op.rhs, one)).result
        op.detach()
        Rewriter.insert_op(op, place)


def _is_invariant(value: SSAValue, loop: Operation, moved: dict[Operation, None]) -> bool:
    """Whether the value is computed outside the loop, or can be; `moved` collects the ops that must move for it, in order."""
    owner = value.owner
    if not loop.is_ancestor(owner):
        return True
    if not isinstance(owner, Operation) or owner.regions:
        return False
    if not (is_speculatable(owner) or isinstance(owner, UNSIGNED_DIVISIONS)):
        return False
    if owner not in moved:
        if not all(_is_invariant(operand, loop, moved) for operand in owner.operands):
            return False
        moved[owner] = None
    return True
