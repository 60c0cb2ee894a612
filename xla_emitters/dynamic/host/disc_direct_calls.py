"""The host program does simple runtime calls itself, and calls the runtime only if that fails.

    %o = disc_ral.dispatch "alloc" on "gpu"(%ctx, %n, %c4)
->
      %bytes = ral_product(ral_product(4, %n), 4)                   negative if a size is, or the product overflows
      %p = llvm.call @ral_new(%ctx, %bytes)                         null without memory
      cf.cond_br (%p != null), ^direct, ^asked
    ^direct: cf.br ^next(the buffer at %p)
    ^asked:  %1 = disc_ral.dispatch "alloc" ...                     reports the error
             cf.br ^next(%1)

    recv_input, send_output       read and write the context            ral_const          once it is loaded
    alloc, dealloc, inc_ref       counters in the buffer's own header   h2d, d2h, d2d      bytes are copied
    ral_kernel_launch             a call of the kernel, block by block; from `shared_work` bytes on, the runtime launches on threads
    lmhlo ops on a few integers of the host: the code of each element; an assertion that holds

So a program runs nearly without a runtime, and all messages come from it. The context (`call_context`) has fields for this, and the
functions `ral_...` are machine code too (`lowering/cpu/host_runtime`).

    logged      only ops on integers are replaced: calls of the runtime stay, so that a runtime that has all of them can log them

Source: docs/reference/4 4.1, 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType, ModuleOp, StringAttr, i1, i8, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.disc_ral import DispatchOp, RecvInputOp, SendOutputOp
from xla_emitters.dialects.hlo.base import Emit, EmitStep, HloOp, OperationT, integers
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp, ConcatenateOp, SliceOp, rows
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, space_of
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, cf, func, llvm, memref
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dynamic.host.call_context import context_field, word_at
from xla_emitters.dynamic.host.contexts import context_of
from xla_emitters.dynamic.host.memref_descriptors import (
    POINTER,
    as_i64,
    cast,
    element_bytes,
    integer,
    memref_type,
    null,
    part,
    row_major,
    sizes_of_buffer,
)
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.split import split_before

MOST_ELEMENTS = 16
"""Most elements of a result that is computed element by element."""
INTEGERS = frozenset((i1, IntegerType(32), i64))
RUNTIME: Mapping[str, tuple[tuple[Attribute, ...], Attribute | None]] = {
    "ral_product": ((i64, i64), i64),
    "ral_new": ((POINTER, i64), POINTER),
    "ral_keep": ((POINTER,), None),
    "ral_release": ((POINTER, POINTER), None),
    "ral_give": ((POINTER, POINTER), i1),
    "ral_move": ((POINTER, POINTER, i64), None),
    "ral_scratch": ((i64,), POINTER),
    "ral_free": ((POINTER,), None),
}
"""Functions of machine code: parameter and result types; see `lowering/cpu/host_runtime`."""


@dataclass(frozen=True)
class DiscDirectCallsPass(KernelPass):
    """See the file's head."""

    name = "disc-direct-calls"

    logged: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        declared = dict[str, llvm.FuncOp]()
        for function in [found for found in op.ops if isinstance(found, func.FuncOp) and not found.is_declaration]:
            # The last ones first: what is behind an op is moved to a block of its own, and so is moved once.
            for inner in reversed(list(function.walk())):
                if self.logged and not isinstance(inner, BufferOp):
                    continue
                direct = _Direct(inner, declared)
                if isinstance(inner, DispatchOp) and (lower := CALLS.get(inner.call.data)) is not None:
                    reason = lower(direct, inner)
                elif isinstance(inner, RecvInputOp):
                    reason = _receive(direct, inner)
                elif isinstance(inner, SendOutputOp):
                    reason = _send(direct, inner)
                elif isinstance(inner, BufferOp):
                    reason = _integers(direct, inner)
                else:
                    continue
                if reason is not None:
                    self.skip(inner, reason)
        for made in reversed(declared.values()):
            Rewriter.insert_op(made, InsertPoint.at_end(op.body.block))


class _Direct:
    """One op that is being replaced. `builder` inserts before it."""

    def __init__(self, op: Operation, declared: dict[str, llvm.FuncOp]) -> None:
        self.op = op
        self.builder = located_builder(InsertPoint.before(op), op)
        self._declared = declared

    def call(self, builder: Builder, name: str, *values: SSAValue) -> SSAValue | None:
        """A call of a function of machine code."""
        types, result = RUNTIME.get(name) or ([value.type for value in values], None)
        if name not in self._declared:
            kind = llvm.LLVMFunctionType(types, result)
            self._declared[name] = llvm.FuncOp(name, kind, llvm.LinkageAttr("external"))
        results = builder.insert(llvm.CallOp(name, *values, return_type=result)).results
        return results[0] if results else None

    def value(self, name: str, *values: SSAValue) -> SSAValue:
        """The result of a function of machine code, called before the op."""
        found = self.call(self.builder, name, *values)
        assert found is not None
        return found

    @property
    def context(self) -> SSAValue:
        return cast(self.builder, context_of(self.op), POINTER)

    def field(self, name: str) -> SSAValue:
        """The address of a field of the context."""
        return context_field(self.builder, self.context, name)

    def pointer(self, place: SSAValue, number: int) -> SSAValue:
        """The pointer at index `number` of the array whose address is stored at `place`."""
        array = self.builder.insert(llvm.LoadOp(place, POINTER)).dereferenced_value
        at = self.builder.insert(llvm.GEPOp(array, [number], POINTER)).result
        return self.builder.insert(llvm.LoadOp(at, POINTER)).dereferenced_value

    def is_set(self, pointer: SSAValue) -> SSAValue:
        return self.builder.insert(llvm.ICmpOp(pointer, null(self.builder), "ne")).results[0]

    def multiplied(self, first: int, values: Sequence[SSAValue]) -> SSAValue:
        """The product; negative if a factor is, or it overflows."""
        found = integer(self.builder, first)
        for value in values:
            found = self.value("ral_product", found, as_i64(self.builder, value))
        return found

    def replace(self, values: Sequence[SSAValue] = ()) -> None:
        """Replaces the op by values, or by nothing."""
        for result, value in zip(self.op.results, values, strict=True):
            value.name_hint = value.name_hint or result.name_hint
        Rewriter.replace_op(self.op, [], values)

    def where(self, holds: SSAValue, make: Callable[[Builder], Sequence[SSAValue]]) -> None:
        """Runs the op only if `holds` is false; otherwise uses the values of the code that `make` inserts."""
        op, before = self.op, self.op.parent
        assert before is not None
        behind = split_before(op)
        region = before.parent
        assert region is not None
        direct, asked = Block(), Block()
        Rewriter.insert_block([direct, asked], BlockInsertPoint.after(before))
        values = make(located_builder(InsertPoint.at_end(direct), op))
        for number, result in enumerate(op.results):
            argument = behind.insert_arg(result.type, number)
            argument.name_hint = result.name_hint
            result.replace_all_uses_with(argument)
        op.detach()
        asked.add_op(op)
        for block, given in ((direct, values), (asked, op.results)):
            block.add_op(cf.BranchOp(behind, *given))
        before.add_op(cf.ConditionalBranchOp(holds, direct, [], asked, []))
        for block in (before, direct, asked):
            assert block.last_op is not None
            block.last_op.location = op.location


# --------------------------------------------------------------------------------------------------------------- buffers
# Each function replaces an op, or returns why not.


def _receive(d: _Direct, op: RecvInputOp) -> None:
    ir_type = memref_type(op.buffer)
    given = d.pointer(d.field("inputs"), op.number.value.data)
    data = d.builder.insert(llvm.LoadOp(given, POINTER)).dereferenced_value
    sizes = list[SSAValue]()
    for dim, known in enumerate(ir_type.get_shape()):
        place = word_at(d.builder, given, 1 + dim)
        is_known = known >= 0
        sizes.append(integer(d.builder, known) if is_known else d.builder.insert(llvm.LoadOp(place, i64)).results[0])
    if DONATED not in op.attributes:
        return d.replace([row_major(d.builder, null(d.builder), data, sizes, ir_type)])
    # The program must own the buffer, and owns only buffers that it allocated: a copy.
    total = d.multiplied(element_bytes(ir_type.element_type), sizes)
    memory = d.value("ral_new", d.context, total)

    def copied(builder: Builder) -> Sequence[SSAValue]:
        d.call(builder, "ral_move", memory, data, total)
        return [row_major(builder, memory, memory, sizes, ir_type)]

    return d.where(d.is_set(memory), copied)


def _send(d: _Direct, op: SendOutputOp) -> None:
    sizes = sizes_of_buffer(d.builder, op.buffer)
    allocated, data = (part(d.builder, op.buffer, number) for number in range(2))
    result = d.pointer(d.field("outputs"), op.number.value.data)
    given = d.value("ral_give", d.context, allocated)

    def hand_over(builder: Builder) -> Sequence[SSAValue]:
        for number, value in enumerate((data, *sizes)):
            builder.insert(llvm.StoreOp(value, word_at(builder, result, number)))
        return ()

    d.where(given, hand_over)


def _alloc(d: _Direct, op: DispatchOp) -> None:
    ir_type = memref_type(op.res[0])
    sizes = [as_i64(d.builder, size) for size in op.arguments[1:]]
    op.properties["config"] = StringAttr(op.res[0].name_hint or "buffer")  # for the message of the runtime
    memory = d.value("ral_new", d.context, d.multiplied(element_bytes(ir_type.element_type), sizes))
    d.where(d.is_set(memory), lambda builder: [row_major(builder, memory, memory, sizes, ir_type)])


def _dealloc(d: _Direct, op: DispatchOp) -> None:
    d.call(d.builder, "ral_release", d.context, part(d.builder, op.arguments[1], 0))
    d.replace()


def _inc_ref(d: _Direct, op: DispatchOp) -> None:
    source, ir_type = op.arguments[1], op.res[0].type
    sizes = [as_i64(d.builder, size) for size in op.arguments[2:]]
    counts = [d.multiplied(1, wanted) for wanted in (sizes, sizes_of_buffer(d.builder, source))]
    allocated, data = (part(d.builder, source, number) for number in range(2))

    def share(builder: Builder) -> Sequence[SSAValue]:
        d.call(builder, "ral_keep", allocated)
        return [row_major(builder, allocated, data, sizes, ir_type)]

    d.where(d.builder.insert(arith.CmpiOp(counts[0], counts[1], "eq")).result, share)


def _copy(d: _Direct, op: DispatchOp) -> None:
    source, target = op.arguments[2:]
    ir_type = memref_type(source)
    same = d.builder.insert(arith.ConstantOp(IntegerAttr.from_bool(True))).result
    pairs = zip(*(sizes_of_buffer(d.builder, buffer) for buffer in (source, target)), strict=True)
    for one, other in pairs:
        equal = d.builder.insert(arith.CmpiOp(one, other, "eq")).result
        same = d.builder.insert(arith.AndIOp(same, equal)).result
    number = d.multiplied(element_bytes(ir_type.element_type), sizes_of_buffer(d.builder, source))
    read, written = part(d.builder, source, 1), part(d.builder, target, 1)

    def move(builder: Builder) -> Sequence[SSAValue]:
        d.call(builder, "ral_move", written, read, number)
        return ()

    d.where(same, move)


def _sync(d: _Direct, op: DispatchOp) -> None:
    d.replace()


def _constant(d: _Direct, op: DispatchOp) -> str | None:
    number = constant_of(op.arguments[2])
    if number is None:
        return "its number is not known"
    ir_type = memref_type(op.res[0])
    data = d.pointer(d.field("constants"), number)
    sizes = [integer(d.builder, size) for size in ir_type.get_shape()]
    d.where(d.is_set(data), lambda builder: [row_major(builder, null(builder), data, sizes, ir_type)])
    return None


# -------------------------------------------------------------------------------------------------------------- launches


def _launch(d: _Direct, op: DispatchOp) -> str | None:
    """A launch of a CPU kernel: it takes a range of its blocks, which are in one row, and memory for one of them."""
    _, _, blocks, *others, shared = op.arguments[:9]
    if any(constant_of(value) != 1 for value in others):
        return "its blocks are in several dimensions"
    assert isinstance(op.config, StringAttr)
    name, arguments = op.config.data, list[SSAValue]()
    total = integer(d.builder, 0)
    for value in op.arguments[9:]:
        if isa(ir_type := value.type, MemRefType[Attribute]):
            size = d.multiplied(element_bytes(ir_type.element_type), sizes_of_buffer(d.builder, value))
            total = d.builder.insert(arith.AddiOp(total, size)).result
            arguments.append(part(d.builder, value, 1))
        else:
            arguments.append(as_i64(d.builder, value) if isinstance(value.type, IndexType) else value)
    most = d.builder.insert(llvm.LoadOp(d.field("shared_work"), i64)).dereferenced_value
    holds = d.builder.insert(arith.CmpiOp(total, most, "slt")).result
    scratch = null(d.builder)
    if has_scratch := constant_of(shared) != 0:
        wide = shared if isinstance(shared.type, IndexType) else d.builder.insert(arith.ExtUIOp(shared, i64)).result
        scratch = d.value("ral_scratch", as_i64(d.builder, wide))
        holds = d.builder.insert(arith.AndIOp(holds, d.is_set(scratch))).result
    block = as_i64(d.builder, blocks)

    def launch(builder: Builder) -> Sequence[SSAValue]:
        d.call(builder, name, *arguments, integer(builder, 0), block, scratch)
        return ()

    if has_scratch:
        # Freed behind the op on both paths.
        d.call(QuickBuilder(InsertPoint.after(op)), "ral_free", scratch)
    d.where(holds, launch)
    return None


CALLS: Mapping[str, Callable[[_Direct, DispatchOp], str | None]] = {
    "alloc": _alloc,
    "d2d": _copy,
    "d2h": _copy,
    "dealloc": _dealloc,
    "h2d": _copy,
    "h2h": _copy,
    "inc_ref": _inc_ref,
    "ral_const": _constant,
    "ral_kernel_launch": _launch,
    "sync_on_stream": _sync,
}


# -------------------------------------------------------------------------------------------------------------- integers


def _integers(d: _Direct, op: BufferOp) -> str | None:
    """An op on a few host integers."""
    if any(space_of(value.type) != "cpu" for value in op.operands):
        return "it is not the host's"
    shapes = [list(_shape(value)) for value in op.operands]
    if any(size < 0 for shape in shapes for size in shape):
        return "it has a size that is not known"
    if op.name == "lmhlo.shape_assertion":
        holds = d.builder.insert(memref.LoadOp.get(op.inputs[0], [])).res
        d.where(holds, lambda builder: ())
        return None
    if len(op.outputs) != 1 or any(_element(value) not in INTEGERS for value in op.operands):
        return "it is not on integers with signs"
    places = list(product(*map(range, shapes[-1])))
    if len(places) > MOST_ELEMENTS:
        return f"its result has more than {MOST_ELEMENTS} elements"
    made, block = op.as_hlo(), Block()
    values = list[SSAValue]()
    # Built apart first: if an op has no code, the program stays unchanged.
    with suppress(Unsupported):
        for place in places:
            builder = located_builder(InsertPoint.at_end(block), op)
            if (moved := _moved(builder, op, made, place)) is not None:
                values.append(moved)
            elif is_elementwise(made):
                (value,) = made.emit_element(_HostElement(builder, op, place))
                is_truth = _element(op.outputs[0]) == i1
                values.append(builder.insert(arith.TruncIOp(value, i1)).result if is_truth else value)
    if len(values) != len(places) or len(block.ops) == 0:
        for inner in reversed(list(block.ops)):
            inner.detach()
            inner.drop_all_references()
        return "it has no code of one element here"
    for inner in list(block.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(op))
    # All are computed before the first is stored: the result may alias an operand.
    for place, value in zip(places, values, strict=True):
        d.builder.insert(memref.StoreOp.get(value, op.outputs[0], _indices(d.builder, place)))
    d.replace()
    return None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return memref_type(value).get_shape()


def _element(value: SSAValue) -> Attribute:
    return memref_type(value).element_type


def _indices(builder: Builder, place: Sequence[int]) -> list[SSAValue]:
    return [builder.insert(arith.ConstantOp(IntegerAttr(index, IndexType()))).result for index in place]


def _moved(builder: Builder, op: BufferOp, made: HloOp, place: Sequence[int]) -> SSAValue | None:
    """The element of an operand at that index of the result; None if the op does more than move elements."""
    buffer, at = op.inputs[0], list(place)
    match made:
        case ConcatenateOp():
            for operand in op.inputs:
                buffer, size = operand, _shape(operand)[made.dimension]
                if at[made.dimension] < size:
                    break
                at[made.dimension] -= size
        case SliceOp():
            at = [start + index * stride for index, (start, _, stride) in zip(place, rows(made.ranges), strict=True)]
        case BroadcastOp():
            at = [place[dim] for dim in integers(made.dimensions)]
        case _:
            return None
    return builder.insert(memref.LoadOp.get(buffer, _indices(builder, at))).res


class _HostElement:
    """An element at a known index: an `ElementContext`."""

    def __init__(self, builder: Builder, op: BufferOp, place: Sequence[int]) -> None:
        self.builder = builder
        self._op = op
        self.indices = tuple(_indices(builder, place))

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        buffer = self._op.inputs[i]
        at = self.indices if indices is None else indices
        value = self.builder.insert(memref.LoadOp.get(buffer, at if _shape(buffer) else ())).res
        # Ops represent truth values as bytes.
        return self.builder.insert(arith.ExtUIOp(value, i8)).result if value.type == i1 else value

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        return (self.operand(i, indices),)

    def insert(self, op: OperationT, /) -> OperationT:
        return self.builder.insert(op)

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit, /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no branch inside one element on the host")

    def loop(self, index_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep, /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no loop inside one element on the host")

    def call(self, computation: str, arguments: Sequence[SSAValue], /) -> Sequence[SSAValue]:
        raise self._op.as_hlo().unsupported("no call of a computation for one element on the host")
