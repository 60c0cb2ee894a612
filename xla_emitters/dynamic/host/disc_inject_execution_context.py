"""The entry gets a context as its only argument: it receives its inputs from it, and sends results to it. Calls pass the context on.

    func.func @main(%a: memref<?xf32>) -> memref<?xf32> {      func.func @main(%ctx: !disc_ral.context) {
      %r = memref.alloc(%n) : memref<?xf32>                      %a = disc_ral.recv_input %ctx, 0 : memref<?xf32>
      func.call @fusion(%a, %r)                                  %r = memref.alloc(%n) : memref<?xf32>
      return %r : memref<?xf32>                         ->       func.call @fusion(%ctx, %a, %r)
    }                                                            disc_ral.send_output %ctx, 0, %r : memref<?xf32>
                                                                 return }
    func.func @fusion(%x: memref<?xf32>,                       func.func @fusion(%ctx: !disc_ral.context, %x: memref<?xf32>,
                      %y: memref<?xf32>) {                                       %y: memref<?xf32>) {

The representation of a memref is then internal to the runtime. An entry is a function that no other function calls. A function that
is called keeps its arguments and results: the context becomes its first argument. A declaration has no body, and its calls stay as they
are (markers of memory). A module of our pipeline has only the entry, since its fusions are regions.
Source: seed document, "DhloInjectExecutionContext"; docs/reference/4 1.3.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, MemRefType, ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import CONTEXT, ContextType, RecvInputOp, SendOutputOp
from xla_emitters.dialects.mlir import func
from xla_emitters.dynamic.host.contexts import context_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import functions


class DiscInjectExecutionContextPass(KernelPass):
    name = "disc-inject-execution-context"

    def apply_to(self, op: ModuleOp) -> None:
        defined = {name: function for name, function in functions(op).items() if not function.is_declaration}
        calls = [
            call
            for function in defined.values()
            for call in function.walk()
            if isinstance(call, func.CallOp) and call.callee.string_value() in defined
        ]
        called = {call.callee.string_value() for call in calls}
        changed = set[str]()
        for name, function in defined.items():
            if any(isinstance(ir_type, ContextType) for ir_type in function.function_type.inputs):
                self.skip(function, "it takes a context")
            elif name in called:
                _take(function)
                changed.add(name)
            else:
                for argument in function.args:
                    if not isinstance(argument.type, MemRefType):
                        raise self.refuse(function, f"function @{name} takes {argument.type}, no buffer")
                _inject(function)
        for call in calls:
            if call.callee.string_value() in changed:
                call.operands = [context_of(call), *call.operands]


def _take(function: func.FuncOp) -> None:
    """Makes the context the first argument of a function that is called."""
    function.body.blocks[0].insert_arg(CONTEXT, 0).name_hint = "ctx"
    if function.arg_attrs is not None:
        function.arg_attrs = ArrayAttr([DictionaryAttr({}), *function.arg_attrs])
    taken = function.function_type
    function.function_type = FunctionType.from_lists([CONTEXT, *taken.inputs], list(taken.outputs))


def _inject(function: func.FuncOp) -> None:
    block = function.body.blocks[0]
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
