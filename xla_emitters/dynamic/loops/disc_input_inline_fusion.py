"""Replaces loads of buffers that the fusion itself computes by the code of the elements; afterwards a fusion contains loops only.

    lmhlo.fusion {                                         lmhlo.fusion {
      lmhlo.abs %x -> %t                                     scf.parallel (%i) = (0) to (%n) step (1) {
      scf.parallel (%i) = (0) to (%n) step (1) {               %0 = memref.load %x[%i]
        %0 = memref.load %t[%i]                     ->         %1 = math.absf %0
        %1 = memref.load %y[%i]                                %2 = memref.load %y[%i]
        %2 = arith.addf %0, %1                                 %3 = arith.addf %1, %2
        memref.store %2, %z[%i]                                memref.store %3, %z[%i]
      }                                                      }
    }                                                      }

The intermediate buffers are then not read any more (`disc-dead-temp-buffer-removal` removes them). Each element is computed once in a
region, after its operands, in the order in which they are needed: the seed's repeated search for the nearest producer and its load cache
at equal indices give the same code. A fusion without results is erased. A result that no loop writes is an error of the schedule.
Source: seed document, "InputInlineFusion"; docs/reference/4 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dialects.mlir import memref, scf
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.dynamic.loops.inline_reads import inline_reads, producers_in
from xla_emitters.dynamic.loops.roots import is_used_outside
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscInputInlineFusionPass(KernelPass):
    """See the file's head. On fusions that `disc-lhlo-legalize-to-loop` gave loops."""

    name = "disc-input-inline-fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fusion in [inner for inner in op.walk() if isinstance(inner, FusionOp)]:
            self._inline(fusion)

    def _inline(self, fusion: FusionOp) -> None:
        loops = [op for op in fusion.body.block.ops if isinstance(op, scf.ParallelOp)]
        ops = [op for op in fusion.body.block.ops if isinstance(op, BufferOp)]
        if not loops and any(is_used_outside(buffer, fusion) for op in ops for buffer in op.outputs):
            return self.skip(fusion, "it has no loop")
        producers, numbers = producers_in(fusion), BufferNumbers(fusion)
        for loop in loops:
            inline_reads(loop, fusion, numbers, producers)
        for op in reversed(ops):
            for buffer in op.outputs:
                if is_used_outside(buffer, fusion) and not _is_written(buffer, fusion):
                    what = f"no loop of '{_name(fusion)}' writes the result of {op.name} (%{op.instruction_name})"
                    raise InternalError(what, stage=self.name)
            Rewriter.erase_op(op)
        if not loops:
            Rewriter.erase_op(fusion)
        return None


def _is_written(buffer: SSAValue, fusion: FusionOp) -> bool:
    writers = (use.operation for use in buffer.uses if isinstance(use.operation, memref.StoreOp | memref.AtomicRMWOp))
    return any(fusion.is_ancestor(writer) for writer in writers)


def _name(fusion: FusionOp) -> str:
    return fusion.fusion_name.data if fusion.fusion_name else "a fusion"
