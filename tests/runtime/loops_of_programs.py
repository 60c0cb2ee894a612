"""Programs whose ops on the device are put into fusions, for tests of the passes that make loops of fusions.

    fuse(module, 1)          a fusion for each op of which one element can be computed on its own
    fuse(module, 8)          runs of up to 8 such ops that follow each other, of one number of elements where they are roots

`disc-fuse-on-buffer` chooses better ones; these have all ops, in all positions, and no preference.
"""

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, TerminatorOp, space_of
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.loops.disc_input_inline_fusion import DiscInputInlineFusionPass
from xla_emitters.dynamic.loops.disc_lhlo_legalize_to_loop import DiscLhloLegalizeToLoopPass
from xla_emitters.dynamic.loops.element_code import has_element_code
from xla_emitters.dynamic.loops.roots import roots_of
from xla_emitters.rewrite.kernel_pass import run_pass


def fuse(module: ModuleOp, most: int) -> int:
    """Puts ops into fusions, in place; returns how many fusions there are."""
    count = 0
    for op in list(module.walk()):
        if isinstance(op, FusionOp) or not _is_fusible(op) or op.parent is None:
            continue
        if isinstance(op.parent_op(), FusionOp):
            continue
        run: list[Operation] = [op]
        while len(run) < most and (after := _next(run[-1])) is not None:
            run.append(after)
        fusion = _wrapped(run, f"fusion_{count}")
        while not _has_loop(fusion):
            run = run[:-1]
            _unwrap(fusion)
            fusion = _wrapped(run, f"fusion_{count}")
        count += 1
    return count


def only_loops(module: ModuleOp) -> int:
    """Takes the ops of all other fusions out of them, in place; returns how many loop fusions are left."""
    fusions = [op for op in module.walk() if isinstance(op, FusionOp)]
    for fusion in fusions:
        if fusion.kind != StringAttr("kLoop"):
            _unwrap(fusion)
    return sum(fusion.parent is not None for fusion in fusions)


def _next(op: Operation) -> Operation | None:
    """The next op that may join; allocations between are no obstacle."""
    after = op.next_op
    while isinstance(after, memref.AllocOp):
        after = after.next_op
    return after if after is not None and _is_fusible(after) else None


def _is_fusible(op: Operation) -> bool:
    if not isinstance(op, BufferOp) or not has_element_code(op) or op.name in ("lmhlo.h2d",):
        return False
    return all(space_of(buffer.type) == "gpu" for buffer in op.outputs)


def _has_loop(fusion: FusionOp) -> bool:
    """Whether all roots have as many elements."""
    first, *rest = [root.outputs[0] for root in roots_of(fusion)] or [None]
    return all(BufferSizes().same_count(first, other) for other in rest if first is not None and other is not None)


def _wrapped(ops: list[Operation], name: str) -> FusionOp:
    block = Block()
    fusion = FusionOp(
        regions=[Region(block)], properties={"fusion_name": StringAttr(name), "kind": StringAttr("kLoop")}
    )
    fusion.attributes["disc.device"] = StringAttr("gpu")
    fusion.location = ops[-1].location
    Rewriter.insert_op(fusion, InsertPoint.after(ops[-1]))
    for op in ops:
        op.detach()
        block.add_op(op)
    block.add_op(TerminatorOp(operands=[[]]))
    return fusion


def _unwrap(fusion: FusionOp) -> None:
    for op in list(fusion.body.block.ops):
        if not isinstance(op, TerminatorOp):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(fusion))
    Rewriter.erase_op(fusion)


def with_loops(module: ModuleOp) -> ModuleOp:
    """The module after both passes, in place."""
    for made in (DiscLhloLegalizeToLoopPass(), DiscInputInlineFusionPass()):
        run_pass(made, make_context(), module, verify=True)
    return module
