"""Folds a transpose into the convolution that alone reads it, or whose result it alone reads: the labels state the order of dimensions. On
buffers, for a CPU.

    "lmhlo.fusion"() <{kind = "kLoop"}> ({
      lmhlo.transpose %w -> %t {dimensions = [3, 2, 0, 1]}                         lmhlo.dynamic_conv %x, %w, %p -> %y
      lmhlo.terminator })                                                    ->        {dim_labels = "bf01_01io->bf01"}
    lmhlo.dynamic_conv %x, %t, %p -> %y {dim_labels = "bf01_oi01->bf01"}
    memref.dealloc %t

`disc-conv-rewriter` gives convolutions the layout of a GPU's library, so every call would transpose all filters. Machine code for a CPU
reads any layout. The convolution runs later than the transpose did: the array must still exist then, unchanged. This holds for
arguments that the program does not own, and for buffers that are only written before the transpose; these are freed after the convolution.
An empty fusion is removed. Transposes with other readers stay. Where a result is folded, the transpose's buffer is allocated before the
convolution, which writes it.

Source: none; BladeDISC has one layout for each library.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.buffers.buffer_uses import frees, is_after, uses_of, writes
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicConvOp
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.lmhlo import DONATED, BufferOp, FusionOp, TerminatorOp
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscFoldConvTransposesPass(KernelPass):
    """See the file's head."""

    name = "disc-fold-conv-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, BufferOp) and inner.HLO is TransposeOp:
                convs = _convolutions_of(inner)
                if (conv := _convolution_before(inner)) is not None:
                    _fold_result(inner, conv)
                elif not convs:
                    self.skip(inner, "not only convolutions read it")
                elif (reason := _why_not(inner, convs)) is not None:
                    self.skip(inner, reason)
                else:
                    _fold(inner, convs)


def _convolutions_of(transpose: BufferOp) -> list[BufferOp]:
    """The readers of the transpose's result, if all of them are convolutions behind it; else []."""
    (buffer,) = transpose.outputs
    found = list[BufferOp]()
    for use in uses_of(buffer):
        reader = use.operation
        if (
            isinstance(reader, BufferOp)
            and reader.HLO is DynamicConvOp
            and use.index < 2
            and is_after(reader, transpose)
        ):
            found.append(reader)
        elif reader is not transpose and not frees(use):
            return []
    return found if isinstance(buffer.owner, memref.AllocOp) else []


def _convolution_before(transpose: BufferOp) -> BufferOp | None:
    """The convolution whose result only the transpose reads, if it can write the transpose's result instead."""
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    writers = [use.operation for use in uses_of(source) if writes(use)]
    others = [use for use in uses_of(source) if use.operation not in (transpose, *writers) and not frees(use)]
    conv = writers[0] if len(writers) == 1 and not others else None
    if not (isinstance(conv, BufferOp) and conv.HLO is DynamicConvOp and isinstance(source.owner, memref.AllocOp)):
        return None
    block, made = _placed(transpose).parent, buffer.owner
    if not isinstance(made, memref.AllocOp) or any(op.parent is not block for op in (conv, source.owner, made)):
        return None
    owners = (value.owner for value in made.operands)
    sizes = (owner for owner in owners if isinstance(owner, Operation) and owner.parent is block)
    is_known = all(size.is_before_in_block(conv) for size in sizes)
    return conv if is_known and is_after(transpose, conv) else None


def _fold_result(transpose: BufferOp, conv: BufferOp) -> None:
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    moved, made = transpose.as_hlo(), conv.as_hlo()
    assert isinstance(moved, TransposeOp)
    assert isinstance(made, DynamicConvOp)
    operands, _, result = made.dim_labels.data.partition("->")
    labels = "".join(result[dim] for dim in integers(moved.dimensions))
    conv.properties["dim_labels"] = StringAttr(f"{operands}->{labels}")
    allocation = _owner(buffer)
    if conv.is_before_in_block(allocation):
        allocation.detach()
        Rewriter.insert_op(allocation, InsertPoint.before(conv))
    conv.operands[len(conv.inputs)] = buffer
    _erase(transpose, source)


def _why_not(transpose: BufferOp, convs: list[BufferOp]) -> str | None:
    """Why the convolutions cannot read the transpose's operand; None: they can."""
    (source,) = transpose.inputs
    if isinstance(source, BlockArgument):
        function = source.block.parent_op()
        if not isinstance(function, func.FuncOp) or function.body.blocks[0] is not source.block:
            return "it reads what a loop carries"
        is_own = function.arg_attrs is not None and DONATED in function.arg_attrs.data[source.index].data
        return "it reads an argument that the program owns" if is_own else None
    if not isinstance(source.owner, memref.AllocOp):
        return "it reads another name of a buffer"
    block = _placed(transpose).parent
    if source.owner.parent is not block or any(conv.parent is not block for conv in convs):
        return "its buffer, itself and the convolutions are not in one block"
    for use in uses_of(source):
        if not frees(use) and not isinstance(use.operation, BufferOp):
            return "what it reads has other names, or is given away"
        if frees(use) and use.operation.parent is not block:
            return "what it reads is freed in a branch"
        in_fusion = use.operation.parent is transpose.parent and use.operation.is_before_in_block(transpose)
        if writes(use) and not (in_fusion or is_after(_placed(transpose), use.operation)):
            return "what it reads is written later"
    return None


def _placed(op: Operation) -> Operation:
    """The op, or the fusion around it."""
    holder = op.parent_op()
    return holder if isinstance(holder, FusionOp) else op


def _fold(transpose: BufferOp, convs: list[BufferOp]) -> None:
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    moved = transpose.as_hlo()
    assert isinstance(moved, TransposeOp)
    order = integers(moved.dimensions)
    for conv in dict.fromkeys(convs):
        made = conv.as_hlo()
        assert isinstance(made, DynamicConvOp)
        *labels, result = made.dim_labels.data.replace("->", "_").split("_")
        for number, value in enumerate(conv.inputs[:2]):
            if value is buffer:
                labels[number] = "".join(labels[number][order.index(dim)] for dim in range(len(order)))
                conv.operands[number] = source
        conv.properties["dim_labels"] = StringAttr(f"{labels[0]}_{labels[1]}->{result}")
        for use in uses_of(source):
            if frees(use) and is_after(conv, use.operation):
                use.operation.detach()
                Rewriter.insert_op(use.operation, InsertPoint.after(conv))
    _erase(transpose, buffer)


def _erase(transpose: BufferOp, buffer: SSAValue) -> None:
    """Erases the transpose and a buffer that has no other use, and the fusion if it is empty."""
    fusion = transpose.parent_op()
    Rewriter.erase_op(transpose)
    for use in uses_of(buffer):
        Rewriter.erase_op(use.operation)
    Rewriter.erase_op(_owner(buffer))
    if isinstance(fusion, FusionOp) and isinstance(fusion.body.block.first_op, TerminatorOp):
        Rewriter.erase_op(fusion)


def _owner(buffer: SSAValue) -> Operation:
    assert isinstance(buffer.owner, Operation)
    return buffer.owner
