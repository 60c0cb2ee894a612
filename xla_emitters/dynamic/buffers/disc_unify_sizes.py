"""CSE of sizes: values that are known to be the same number are computed once.

    %b = memref.dim %x, %c0                                             %x: memref<?x4xf32> {disc.sizes = ["b", "4"]}
    %l = memref.load %shape[%c0] : memref<2xi32, "cpu">
    %n = arith.index_cast %l : i32 to index                  ->         (nothing uses %n any more)
    %y = memref.alloc(%n) {disc.sizes = ["b", "4"]}                     %y = memref.alloc(%b) {disc.sizes = ["b", "4"]}

A program computes the sizes of each result anew; the program's symbols tell which are equal. Kernels then take
each size once, and index arithmetic over equal sizes cancels. The value that stays is the first, in the same block or an enclosing one.
Lists of sizes without readers are left to the passes that remove dead buffers.
Source: docs/reference/4 3.1, 3.7.
"""

from __future__ import annotations

from collections import ChainMap

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.mlir import arith, func, memref
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.rewrite.kernel_pass import KernelPass


class DiscUnifySizesPass(KernelPass):
    name = "disc-unify-sizes"

    def apply_to(self, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                for block in function.body.blocks:
                    _unify(block, BufferSizes(from_allocations=True), ChainMap())


NUMBERS = (memref.DimOp, arith.IndexCastOp, arith.AddiOp, arith.SubiOp, arith.MuliOp)
"""Ops that compute sizes."""


def _unify(block: Block, sizes: BufferSizes, known: ChainMap[Size, SSAValue]) -> None:
    for op in list(block.ops):
        if isinstance(op, NUMBERS) and isinstance(op.results[0].type, IndexType):
            value = op.results[0]
            size = sizes.number(value)
            if (same := known.get(size)) is None:
                known[size] = value
            else:
                Rewriter.replace_op(op, [], [same])
        for region in op.regions:
            for inner in region.blocks:
                _unify(inner, sizes, known.new_child())
