"""Marks each allocation in a GPU's memory by a call, for IR whose types do not say it.

    %o = memref.alloc(%n) : memref<?x4xf32, "gpu">        ->        %o = memref.alloc(%n) : memref<?x4xf32, "gpu">
                                                                    func.call @gpu_mem_marker_2df32_x_4(%o)

The name spells the type: rank, element type, and each size, x if unknown. A pass that drops memory spaces from types cannot drop
a call. `disc-convert-memory-marker` reads either. Here types keep their memory spaces, so the marker is redundant.
Source: seed document, "InsertMemoryMarker"; docs/reference/4 1.3, note M.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import MARKER, is_marker, type_code
from xla_emitters.dialects.lmhlo import space_of, tensor_of
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscInsertMemoryMarkerPass(KernelPass):
    name = "disc-insert-memory-marker"

    def apply_to(self, op: ModuleOp) -> None:
        declared = dict[str, Attribute]()
        for alloc in list(op.walk()):
            if not isinstance(alloc, memref.AllocOp) or space_of(alloc.memref.type) != "gpu":
                continue
            if any(is_marker(use.operation) for use in alloc.memref.uses):
                self.skip(alloc, "it has a marker")
                continue
            name = marker_name(alloc.memref.type)
            call = func.CallOp(name, [alloc.memref], [])
            call.location = alloc.location
            Rewriter.insert_op(call, InsertPoint.after(alloc))
            declared[name] = alloc.memref.type
        for name, ir_type in declared.items():
            op.body.block.add_op(func.FuncOp.external(name, [ir_type], []))


def marker_name(ir_type: Attribute) -> str:
    """
    >>> from xdsl.dialects.builtin import MemRefType, f32
    >>> marker_name(MemRefType(f32, [-(2**63), 4]))
    'gpu_mem_marker_2df32_x_4'
    """
    sizes = ["x" if size < 0 else str(size) for size in tensor_of(ir_type).get_shape()]
    return "_".join((f"{MARKER}{type_code(ir_type).removeprefix('m')}", *sizes))
