"""The entry gets a context as its only argument: it receives its inputs from it, and sends results to it.

    func.func @main(%a: memref<?x?xf32>, %b: memref<?x?xf32>) -> memref<?x?xf32> {
      ...
      return %r : memref<?x?xf32>                 func.func @main(%ctx: !disc_ral.context) {
    }                                                %a = disc_ral.recv_input %ctx, 0 : memref<?x?xf32>
                                          ->         %b = disc_ral.recv_input %ctx, 1 : memref<?x?xf32>
                                                     ...
                                                     disc_ral.send_output %ctx, 0, %r : memref<?x?xf32>
                                                     return }

The representation of a memref is then internal to the runtime. Every function that the module defines is an entry: fusions are regions
here, so no other function needs the context.
Source: seed document, "DhloInjectExecutionContext"; docs/reference/4 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import CONTEXT, ContextType, RecvInputOp, SendOutputOp
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscInjectExecutionContextPass(KernelPass):
    """See the file's head."""

    name = "disc-inject-execution-context"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if not isinstance(function, func.FuncOp) or function.is_declaration:
                continue
            if any(isinstance(ir_type, ContextType) for ir_type in function.function_type.inputs):
                self.skip(function, "it takes a context")
                continue
            for argument in function.args:
                if not isinstance(argument.type, MemRefType):
                    raise self.refuse(function, f"function @{function.sym_name.data} takes {argument.type}, no buffer")
            _inject(function)


def _inject(function: func.FuncOp) -> None:
    block = function.body.block if len(function.body.blocks) == 1 else function.body.blocks[0]
    arguments = list(block.args)
    context = block.insert_arg(CONTEXT, 0)
    context.name_hint = "ctx"
    received = [RecvInputOp(context, number, argument.type) for number, argument in enumerate(arguments)]
    Rewriter.insert_op(received, InsertPoint.at_start(block))
    for argument, op in zip(arguments, received, strict=True):
        op.location = function.location
        op.buffer.name_hint = argument.name_hint
        argument.replace_all_uses_with(op.buffer)
        block.erase_arg(argument)
    for op, said in zip(received, function.arg_attrs or (), strict=False):
        op.attributes |= said.data
    for inner in function.walk():
        if isinstance(inner, func.ReturnOp):
            sent = [SendOutputOp(context, number, value) for number, value in enumerate(inner.arguments)]
            for op in sent:
                op.location = inner.location
            Rewriter.replace_op(inner, [*sent, func.ReturnOp()], [])
    function.properties.pop("arg_attrs", None)
    function.function_type = FunctionType.from_lists([CONTEXT], [])
