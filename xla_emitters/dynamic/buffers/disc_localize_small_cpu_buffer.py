"""Moves small buffers of the host, such as lists of sizes, to the stack.

    %s = memref.alloc() : memref<2xindex, "cpu">       ->      %s = memref.alloca() : memref<2xindex, "cpu">
    ... memref.dealloc %s

A buffer is small up to 128 bytes; an index takes 8. It must have a static size, must not be given away (returned, yielded or carried), and
must not be allocated inside a loop, where each iteration would take more of the stack.
Source: seed document, "DhloLocalizeSmallCpuBuffer"; docs/reference/4 1.3.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import FixedBitwidthType, IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.lmhlo import space_of
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import allocations, frees, is_in_loop, leaves_the_block, uses_of
from xla_emitters.rewrite.kernel_pass import KernelPass

MOST_BYTES = 128


class DiscLocalizeSmallCpuBufferPass(KernelPass):
    name = "disc-localize-small-cpu-buffer"

    def apply_to(self, op: ModuleOp) -> None:
        for alloc in allocations(op):
            ir_type = alloc.memref.type
            assert isinstance(ir_type, MemRefType)
            if space_of(ir_type) != "cpu" or isinstance(alloc, memref.AllocaOp):
                continue
            uses = uses_of(alloc.memref)
            if not 0 <= bytes_of(ir_type) <= MOST_BYTES:
                self.skip(alloc, f"it may take more than {MOST_BYTES} bytes")
            elif any(map(leaves_the_block, uses)):
                self.skip(alloc, "it is given away")
            elif is_in_loop(alloc):
                self.skip(alloc, "it is made inside a loop")
            else:
                for use in uses:
                    if frees(use):
                        Rewriter.erase_op(use.operation)
                local = memref.AllocaOp.get(
                    ir_type.element_type, shape=ir_type.get_shape(), memory_space=ir_type.memory_space
                )
                local.memref.name_hint = alloc.memref.name_hint
                local.location = alloc.location
                Rewriter.replace_op(alloc, local)


def bytes_of(ir_type: MemRefType[Attribute]) -> int:
    """The bytes of a buffer; negative if its size is not static."""
    element = ir_type.element_type
    bits = 64 if isinstance(element, IndexType) else element.bitwidth if isinstance(element, FixedBitwidthType) else 128
    if any(size < 0 for size in ir_type.get_shape()):
        return -1
    return prod(ir_type.get_shape()) * ((bits + 7) // 8)
