"""For CPUs: turns a kernel with one thread per block into a function that runs a range of its blocks, one after the other.

    gpu.func @k(%x: memref<?xf32>, %n: index) kernel              gpu.func @k(%x: ..., %n: index, %begin: index, %end: index) kernel {
        attributes {known_block_size = array<i32: 1, 1, 1>} {       scf.for %b = %begin to %end step 1 {
      %b = gpu.block_id x                                     ->      ...
      ...                                                           }

Memory that a block allocates is allocated once, before the loop: blocks do not read memory that another block wrote, and on a GPU it is
uninitialised. Barriers are erased.
Source: docs/reference/4 3.5; Stratton et al., "MCUDA" (2008), for kernels on CPUs.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, IndexType, ModuleOp
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.mlir import gpu, memref, scf
from xla_emitters.dialects.mlir.gpu import FuncOp
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.rewrite.constants import literal
from xla_emitters.rewrite.kernel_pass import KernelPass

INDEX = IndexType()


class DiscBlocksToLoopPass(KernelPass):
    name = "disc-blocks-to-loop"

    def apply_to(self, op: ModuleOp) -> None:
        for function in [found for found in op.walk() if isinstance(found, FuncOp)]:
            self.function(function)

    def function(self, function: FuncOp) -> None:
        """Adds the range and the loop. raises Unsupported for a kernel with several threads per block"""
        known = function.known_block_size
        if known is None or tuple(known.get_values()) != (1, 1, 1):
            raise self.refuse(function, f"a block of @{function.sym_name.data} is not one thread")
        block, count = function.body.block, len(function.function_type.inputs)
        begin, end = (block.insert_arg(INDEX, count + number) for number in range(2))
        begin.name_hint, end.name_hint = "begin", "end"
        *ops, last = block.ops
        inner = Block(arg_types=[INDEX])
        inner.args[0].name_hint = "block"
        for moved in ops:
            moved.detach()
        inner.add_ops([*ops, scf.YieldOp()])
        builder = QuickBuilder(InsertPoint.before(last))
        zero, one = (literal(builder, number) for number in range(2))
        for found in list(inner.walk()):
            match found:
                case gpu.BlockIdOp():
                    is_x = found.dimension.data is gpu.DimensionEnum.X
                    Rewriter.replace_op(found, [], [inner.args[0] if is_x else zero])
                case gpu.ThreadIdOp():
                    Rewriter.replace_op(found, [], [zero])
                case gpu.BarrierOp():
                    Rewriter.erase_op(found)  # a single thread does not wait
                case memref.AllocOp() | memref.AllocaOp():
                    found.detach()
                    builder.insert(found)
                case _:
                    pass
        loop = builder.insert(scf.ForOp(begin, end, one, [], Region(inner)))
        loop.location = function.location
        function.properties["function_type"] = FunctionType.from_lists(
            [*function.function_type.inputs, INDEX, INDEX], []
        )
        if function.arg_attrs is not None:
            function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs, DictionaryAttr({}), DictionaryAttr({})])
