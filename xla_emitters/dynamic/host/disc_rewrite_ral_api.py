"""Converts calls of the runtime to one form that any language can implement: a name, and pointers to the arguments.

    disc_ral.dispatch "ral_gemm" on "gpu"(%ctx, %stream, %a, %b, %o, %f, %f, %f)
->
    llvm.mlir.global internal constant @ral_name_0("ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void\\00")
    %slots = llvm.alloca 1 x !llvm.struct<(ptr, ptr, ptr, ptr, i64, i64, ...)>       the arguments, behind them the results
    %args = llvm.alloca 1 x !llvm.array<27 x ptr>                                    a pointer to each
    llvm.store %a_allocated, %slots[0, 2] ...
    llvm.call @ral_api_call(%ctx, @ral_name_0, %args)
    %status = llvm.load %ctx[0, 2]
    cf.cond_br (%status != 0), ^stop, ^next                                          ^stop: return

A buffer is passed as its parts, one after the other (`memref_descriptors`), an index as i64, a context, a stream or a text as a pointer; a
list of numbers is a text too, "[0, 1, 2]". A result has slots of its own, read after the call. Calls of one name share slots.
`recv_input` and `send_output` are calls too, `ral_recv_input` and `ral_send_output`; remaining `lmhlo` ops become calls
named after their instructions, by `name_buffer_ops`: a runtime finds the op by that name.

A context is three words in memory: what the runtime wants, its function of (context, name, args), and the status. A function that fails
sets the status; no function is called after that: each function of the module returns, and so does one that called it. So a call inside
a region is refused, and one in a function with results. An allocation gets the buffer's name as its text, for messages.
`ral_api_call(ctx, name, args)` calls the function in the context.
Source: seed document, "RewriteRalApiPass"; docs/reference/4 4.2, 4.3; BladeDISC's runtime (https://github.com/alibaba/BladeDISC).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import (
    ContextType,
    DispatchOp,
    RecvInputOp,
    SendOutputOp,
    StreamType,
)
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.lmhlo import BufferOp, space_of
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, cf, func, llvm
from xla_emitters.dynamic.host.contexts import context_of
from xla_emitters.dynamic.host.memref_descriptors import POINTER, as_i64, buffer_of, cast, part_types, parts_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.split import split_before
from xla_emitters.rewrite.symbols import functions

API = "ral_api_call"
NAME = "ral_name"
"""Name prefix of the globals that hold functions' names."""
RECEIVE, SEND = "ral_recv_input", "ral_send_output"
FUNCTION, STATUS = 1, 2
"""Words of a context; `ral.h` has them too."""


class DiscRewriteRalApiPass(KernelPass):
    name = "disc-rewrite-ral-api"

    def apply_to(self, op: ModuleOp) -> None:
        texts = dict[str, str]()
        named = name_buffer_ops(op)
        for function in [found for found in functions(op).values() if not found.is_declaration]:
            remaining = {name: each for name, each in named.items() if function.is_ancestor(each)}
            dispatches = _dispatches(function, remaining)
            inner = [call for call in function.walk() if isinstance(call, func.CallOp) and _passes_context(call)]
            for call in (*dispatches, *inner):
                self._refuse_unless_it_can_leave(call, function)
            if dispatches or inner:
                _Calls(op, function, texts).rewrite(dispatches, inner)
        if texts:
            Rewriter.insert_op(
                llvm.FuncOp(API, llvm.LLVMFunctionType([POINTER] * 3), llvm.LinkageAttr("external")),
                InsertPoint.at_end(op.body.block),
            )

    def _refuse_unless_it_can_leave(self, call: Operation, function: func.FuncOp) -> None:
        """raises Unsupported for a call after whose failure the function cannot return"""
        holder = call.parent_op()
        assert holder is not None
        if holder is not function:
            needed = "disc-legalize-lhlo-control-flow" if isinstance(holder, BufferOp) else "xla-convert-scf-to-cf"
            why = f"'{holder.name}' holds a call of the runtime; if that fails, a branch leaves the function"
            raise self.refuse(holder, why, f"run {needed} before {self.name}")
        if function.function_type.outputs:
            why = f"function @{function.sym_name.data} calls the runtime, and would have no results if that fails"
            raise self.refuse(function, why, "return results in buffers that are arguments")


CALLED = "disc.called"
"""The attribute in which `keep_names` stores a name."""


def keep_names(function: Operation) -> None:
    """Stores the name of each op on buffers in an attribute, so that passes which remove ops do not renumber the others."""
    for name, op in name_buffer_ops(function).items():
        op.attributes[CALLED] = StringAttr(name)


def name_buffer_ops(function: Operation) -> Mapping[str, BufferOp]:
    """Name -> op, for the ops on buffers of a host program, in order: `lmhlo_` and the instruction, numbered if taken."""
    found = dict[str, BufferOp]()
    for op in function.walk():
        if isinstance(op, BufferOp) and isinstance(kept := op.attributes.get(CALLED), StringAttr):
            found[kept.data] = op
        elif isinstance(op, BufferOp):
            base = re.sub(r"_+", "_", re.sub(r"\W", "_", f"{op.name}_{op.instruction_name}")).strip("_")
            name, number = base, 0
            while name in found:
                name, number = f"{base}_{number}", number + 1
            found[name] = op
    return found


def _passes_context(call: func.CallOp) -> bool:
    """Whether the function that is called may call the runtime."""
    return any(isinstance(value.type, ContextType) for value in call.arguments)


def _dispatches(function: func.FuncOp, remaining: Mapping[str, BufferOp]) -> list[DispatchOp]:
    """All calls of the runtime as dispatches, in order; `remaining` are the function's ops on buffers, by name."""
    for name, op in remaining.items():
        device = next((space for value in reversed(op.operands) if (space := space_of(value.type))), "cpu")
        made = DispatchOp(name, device, [context_of(op), *op.operands])
        made.location = op.location
        Rewriter.replace_op(op, made, [])
    for op in list(function.walk()):
        if isinstance(op, RecvInputOp | SendOutputOp):
            number = arith.ConstantOp(op.number)
            device = space_of(op.buffer.type) or "cpu"
            if isinstance(op, RecvInputOp):
                made = DispatchOp(RECEIVE, device, [op.context, number.result], [op.buffer.type])
                made.res[0].name_hint = op.buffer.name_hint
            else:
                made = DispatchOp(SEND, device, [op.context, number.result, op.buffer])
            made.location = number.location = op.location
            Rewriter.replace_op(op, [number, made], made.res)
    found = [op for op in function.walk() if isinstance(op, DispatchOp)]
    for op in found:
        if op.call.data == "alloc" and op.config is None:
            op.properties["config"] = StringAttr(op.res[0].name_hint or "buffer")
    return found


class _Calls:
    """The calls of one function."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, texts: dict[str, str]) -> None:
        self.module, self.function = module, function
        self.last: Operation | None = None
        self.texts = texts
        self.slots = dict[str, tuple[SSAValue, SSAValue]]()
        self.stop = Block([func.ReturnOp()])

    def rewrite(self, dispatches: list[DispatchOp], inner: list[func.CallOp]) -> None:
        """Rewrites the calls by name; those of the module's own functions only get the test for a failure."""
        self.function.body.add_block(self.stop)
        for call in inner:
            behind, builder = call.next_op, located_builder(InsertPoint.after(call), call)
            assert behind is not None
            self.leave(self.failed(builder, cast(builder, context_of(call), POINTER)), behind)
        # What is behind a call is moved to a block of its own: the last ones first, so that each op is moved once.
        for finish in reversed([self.call(call) for call in dispatches]):
            finish()

    def call(self, op: DispatchOp) -> Callable[[], None]:
        """Inserts the call before `op`; the function that is returned replaces `op`."""
        name, builder = op.full_name, located_builder(InsertPoint.before(op), op)
        values = [value for argument in op.arguments for value in self.argument(builder, argument)]
        if op.config is not None:
            values.append(self.text(builder, config_text(op.config), "ral_text"))
        results = [list(_slot_types(result.type)) for result in op.res]
        types = [*(value.type for value in values), *(kind for kinds in results for kind in kinds)]
        struct = llvm.LLVMStructType.from_type_list(types)
        slots, arguments = self.slots_of(name, struct, len(types))
        places = [builder.insert(llvm.GEPOp(slots, [0, number], struct)).result for number in range(len(types))]
        for number, place in enumerate(places):
            builder.insert(llvm.StoreOp(place, builder.insert(llvm.GEPOp(arguments, [number], POINTER)).result))
            if number < len(values):
                builder.insert(llvm.StoreOp(values[number], place))
        context = cast(builder, context_of(op), POINTER)
        builder.insert(llvm.CallOp(API, context, self.text(builder, name, NAME), arguments))
        return partial(self.finish, op, self.failed(builder, context), results, places[len(values) :])

    def finish(
        self, op: DispatchOp, failed: SSAValue, results: Sequence[Sequence[Attribute]], places: Sequence[SSAValue]
    ) -> None:
        """Returns from the function if the call failed; behind it, replaces `op` by the results, which are at `places`."""
        self.leave(failed, op)
        behind, left = located_builder(InsertPoint.before(op), op), iter(places)
        made = list[SSAValue]()
        for result, kinds in zip(op.res, results, strict=True):
            parts = [behind.insert(llvm.LoadOp(next(left), kind)).dereferenced_value for kind in kinds]
            is_buffer = isinstance(result.type, MemRefType)
            made.append(buffer_of(behind, parts, result.type) if is_buffer else cast(behind, parts[0], result.type))
        Rewriter.replace_op(op, [], made)

    def leave(self, failed: SSAValue, behind: Operation) -> None:
        """Returns from the function if `failed`; `behind` is then the first op of a block of its own."""
        assert behind.parent is not None
        block, rest = behind.parent, split_before(behind)
        branch = cf.ConditionalBranchOp(failed, self.stop, [], rest, [])
        branch.location = behind.location
        block.add_op(branch)

    def argument(self, builder: Builder, value: SSAValue) -> list[SSAValue]:
        """The values that are stored for an argument."""
        match value.type:
            case MemRefType():
                return parts_of(builder, value)
            case ContextType() | StreamType():
                return [cast(builder, value, POINTER)]
            case IndexType():
                return [as_i64(builder, value)]
            case _:
                return [value]

    def slots_of(self, name: str, struct: llvm.LLVMStructType, count: int) -> tuple[SSAValue, SSAValue]:
        """The memory for calls of that name: their arguments and results, and the pointers to these."""
        if name not in self.slots:
            one = llvm.ConstantOp(IntegerAttr(1, i32), i32)
            slots = llvm.AllocaOp(one.result, struct)
            arguments = llvm.AllocaOp(one.result, llvm.LLVMArrayType(count, POINTER))
            at = InsertPoint.after(self.last) if self.last else InsertPoint.at_start(self.function.body.blocks[0])
            Rewriter.insert_op([one, slots, arguments], at)
            self.last = arguments
            self.slots[name] = slots.res, arguments.res
        return self.slots[name]

    def text(self, builder: Builder, text: str, kind: str) -> SSAValue:
        """The address of a zero-terminated text."""
        if text not in self.texts:
            self.texts[text] = f"{kind}_{len(self.texts)}"
            data = StringAttr(f"{text}\0")
            size = llvm.LLVMArrayType(len(data.data.encode()), i8)
            made = llvm.GlobalOp(size, self.texts[text], "internal", constant=True, value=data)
            Rewriter.insert_op(made, InsertPoint.before(self.function))
        return builder.insert(llvm.AddressOfOp(self.texts[text], POINTER)).result

    def failed(self, builder: Builder, context: SSAValue) -> SSAValue:
        """Whether the call before failed."""
        place = builder.insert(llvm.GEPOp(context, [STATUS], i64)).result
        status = builder.insert(llvm.LoadOp(place, i64)).dereferenced_value
        zero = builder.insert(arith.ConstantOp(IntegerAttr(0, i64))).result
        return builder.insert(arith.CmpiOp(status, zero, "ne")).result


def _slot_types(ir_type: Attribute) -> list[Attribute]:
    match ir_type:
        case MemRefType():
            return part_types(ir_type)
        case IndexType():
            return [i64]
        case _:
            return [ir_type]


def config_text(config: StringAttr | DenseArrayBase) -> str:
    """The compile-time configuration as text."""
    return config.data if isinstance(config, StringAttr) else str(list(integers(config)))
