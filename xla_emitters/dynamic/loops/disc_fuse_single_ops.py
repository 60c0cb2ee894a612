"""Puts ops that the runtime would execute into fusions of one op, if loops of their own compute them.

    lmhlo.scatter %x, %i, %u -> %y          ->          "lmhlo.fusion"() <{fusion_name = "main_kSingleOp_scatter_0", kind = "kSingleOp"}> ({
                                                          lmhlo.scatter %x, %i, %u -> %y
                                                          lmhlo.terminator }) {disc.device = "gpu"}

Those of `single_op_schedules`. For a CPU (`target=cpu`) a sort of which only the first elements are read is marked with their number
(`disc.first`). What is not taken: computations that are not of scalars alone, results that are neither allocated here nor an array that
the op updates in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.placement import GPU
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, space_of
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.dynamic.buffers.buffer_uses import updated_in_place
from xla_emitters.dynamic.buffers.fusion_rules import SINGLE
from xla_emitters.dynamic.loops.single_op_schedules import has_single_op_schedule
from xla_emitters.errors import UsageError
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscFuseSingleOpsPass(KernelPass):
    """See the file's head.

    target  "gpu" or "cpu"
    """

    name = "disc-fuse-single-ops"

    target: str = "gpu"

    def apply_to(self, op: ModuleOp) -> None:
        if self.target not in ("gpu", "cpu"):
            raise UsageError(f"{self.name}: no target '{self.target}'", help="gpu or cpu")
        is_cpu = self.target == "cpu"
        for function in [found for found in op.ops if isinstance(found, func.FuncOp) and not found.is_declaration]:
            found = [
                inner for inner in function.walk() if isinstance(inner, BufferOp) and _is_taken(inner, is_cpu=is_cpu)
            ]
            for number, inner in enumerate(found):
                opcode = opcode_of(inner.HLO).replace("-", "_")
                name = f"{function.sym_name.data}_{SINGLE}_{opcode}_{number}"
                if is_cpu and inner.HLO.name == "hlo.sort":
                    from xla_emitters.dynamic.loops.sort_schedule import (  # imported here: few programs sort
                        FIRST,
                        first_read,
                    )

                    if (first := first_read(inner)) is not None:
                        inner.attributes[FIRST] = IntegerAttr(first, i64)
                made = FusionOp.of(name, SINGLE, [], inner.location)
                Rewriter.insert_op(made, InsertPoint.before(inner))
                inner.detach()
                Rewriter.insert_op(inner, InsertPoint.at_start(made.body.block))


def _is_taken(op: BufferOp, *, is_cpu: bool) -> bool:
    if isinstance(op.parent_op(), FusionOp) or not op.outputs:
        return False
    updated = updated_in_place(op)
    is_here = all(
        (isinstance(buffer.owner, memref.AllocOp) or buffer in updated) and space_of(buffer.type) == GPU
        for buffer in op.outputs
    )
    return is_here and has_single_op_schedule(op, is_cpu=is_cpu)
