"""Loop-invariant code motion out of `scf.for` and `scf.while`, innermost loops first; ops keep their locations.

    scf.for %i = %c0 to %c4 step %c1 {          %0 = arith.cmpi sle, %thread_id_x, %c127
      %0 = arith.cmpi sle, %tid, %c127     ->   scf.for %i = %c0 to %c4 step %c1 {
      ...                                         ...

An op is moved if nothing it uses is defined in the loop, and running it once before the loop is the same as running it in every iteration:
it is pure, and either it cannot fail or the loop's bounds show that it runs at least once. So an invariant tensor.extract moves out of a
loop of four trips, but not out of one that may have none: there its index may be outside the tensor.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region

from xla_emitters.dialects.mlir import scf
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.dialects.ranges import range_of_value
from xla_emitters.rewrite.effects import is_pure, is_speculatable, is_terminator
from xla_emitters.rewrite.kernel_pass import KernelPass

LOOPS: frozenset[type[Operation]] = frozenset((scf.ForOp, scf.WhileOp))


def loop_invariant_code_motion(root: Operation) -> bool:
    """Moves invariant ops out of the loops inside `root`; returns whether any moved."""
    loops = [op for op in root.walk(region_first=True) if type(op) in LOOPS]
    moved = False
    for loop in loops:
        for region in loop.regions:
            moved |= _hoist(loop, region, runs_at_least_once(loop, region))
    return moved


def runs_at_least_once(loop: Operation, region: Region) -> bool:
    """Whether the region of `loop` is sure to run when `loop` is reached."""
    if isinstance(loop, scf.WhileOp):
        return region is loop.before_region
    if not isinstance(loop, scf.ForOp):
        return False
    lower, upper = range_of_value(loop.lb), range_of_value(loop.ub)
    if lower is None or upper is None or lower.upper >= upper.lower:
        return False
    # An unsigned comparison has another order if signs differ.
    return "unsignedCmp" not in loop.properties or lower.lower >= 0 or upper.upper < 0


def _hoist(loop: Operation, region: Region, runs: bool) -> bool:
    """Moves the invariant ops of a one-block region in front of `loop`, in order; returns whether any moved."""
    block = region.first_block
    if block is None or block is not region.last_block:
        return False
    inside = {id(argument) for argument in block.args}
    parent = loop.parent
    assert parent is not None
    moved = False
    op = block.first_op
    while op is not None:
        after = op.next_op
        if not is_terminator(op) and _is_invariant(op, inside) and is_pure(op) and (runs or is_speculatable(op)):
            op.detach()
            parent.insert_op_before(op, loop)
            moved = True
        else:
            inside.update(id(result) for result in op.results)
        op = after
    return moved


def _is_invariant(op: Operation, inside: set[int]) -> bool:
    """Whether neither `op` nor anything in it uses one of the values whose ids are in `inside`."""
    if op.regions:
        return all(id(operand) not in inside for inner in op.walk() for operand in inner.operands)
    return all([id(operand) not in inside for operand in operands_of(op)])


class LoopInvariantCodeMotionPass(KernelPass):
    """Moves pure, loop-invariant ops in front of their `scf.for` or `scf.while`, if they cannot fail or are sure to run."""

    name = "xla-loop-invariant-code-motion"

    def apply_to(self, op: ModuleOp) -> None:
        loop_invariant_code_motion(op)
