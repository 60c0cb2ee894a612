"""Allocations and deallocations in a GPU's memory become calls of the runtime, which has the device's allocator.

    %o = memref.alloc(%n) : memref<?x4xf32, "gpu">             %o = disc_ral.dispatch "alloc" on "gpu"(%ctx, %n, %c4)
    func.call @gpu_mem_marker_2df32_x_4(%o)             ->
    memref.dealloc %o                                          disc_ral.dispatch "dealloc" on "gpu"(%ctx, %o)

A buffer is a GPU's if a call (`disc-insert-memory-marker`) or its type marks it; a buffer passed from block to block is recognized by
its type alone. All sizes are arguments of the call. With `cpu-too` the host's allocations are calls as well,
so that its allocator can be replaced; by default they stay.
Source: seed document, "ConvertMemoryMarkerV2"; docs/reference/4 1.3, note M.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.disc_ral import MARKER, DispatchOp, is_marker
from xla_emitters.dialects.lmhlo import space_of
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.dynamic.host.contexts import context_of, sizes_of
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscConvertMemoryMarkerPass(KernelPass):
    """See the file's head.

    cpu_too   convert the host's buffers as well
    """

    name = "disc-convert-memory-marker"

    cpu_too: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        marked = dict[SSAValue, None]()
        for call in list(op.walk()):
            if is_marker(call):
                marked[call.operands[0]] = None
                Rewriter.erase_op(call)
        for inner in list(op.walk()):
            if isinstance(inner, func.FuncOp) and inner.is_declaration and inner.sym_name.data.startswith(MARKER):
                Rewriter.erase_op(inner)
            elif isinstance(inner, memref.AllocOp | memref.DeallocOp):
                buffer = inner.memref
                if _is_shared(buffer.type):
                    continue
                device = "gpu" if buffer in marked else space_of(buffer.type) or "cpu"
                if device == "gpu" or self.cpu_too:
                    made = _call(inner, device)
                    for before, after in zip(inner.results, made.results, strict=True):
                        after.name_hint = before.name_hint
                        if before in marked:
                            marked[after] = None
                    Rewriter.replace_op(inner, made)


def _is_shared(ir_type: Attribute) -> bool:
    """Whether it is the type of a kernel's shared memory, which is not allocated by the runtime."""
    return isinstance(ir_type, MemRefType) and not isinstance(ir_type.memory_space, NoneAttr | StringAttr)


def _call(op: memref.AllocOp | memref.DeallocOp, device: str) -> Operation:
    context = context_of(op)
    if isinstance(op, memref.AllocOp):
        made = DispatchOp("alloc", device, [context, *sizes_of(op, op.memref.type, op.dynamic_sizes)], [op.memref.type])
    else:
        made = DispatchOp("dealloc", device, [context, op.memref])
    made.location = op.location
    return made
