"""Folds a transpose into the convolutions, products or the loop that alone read it, or whose result it alone reads: labels and
dimension numbers state the order of dimensions. On buffers, for a CPU.

    "lmhlo.fusion"() <{kind = "kLoop"}> ({
      lmhlo.transpose %w -> %t {dimensions = [3, 2, 0, 1]}                         lmhlo.dynamic_conv %x, %w, %p -> %y
      lmhlo.terminator })                                                    ->        {dim_labels = "bf01_01io->bf01"}
    lmhlo.dynamic_conv %x, %t, %p -> %y {dim_labels = "bf01_oi01->bf01"}
    memref.dealloc %t

    lmhlo.dot %a, %b -> %c;  lmhlo.transpose %c -> %d {dimensions = [1, 0]}  ->    lmhlo.dot %b, %a -> %d

`disc-conv-rewriter` gives convolutions the layout of a GPU's library, so every call would transpose all filters. Machine code for a CPU
reads any layout, and so does BLAS. A product whose operands change places has the transposed result. A batch of matrices that is an
operand, such as heads of attention, may be anywhere in memory, if its last dimension is not one of the batch, so that BLAS needs no copy.

A loop over as many elements that reads the transpose computes it, in tiles (`disc-nest-loops`); a GPU's tiles have a kernel of their own.

The op runs later than the transpose did, when the array must still exist, unchanged (`later_reads`). An empty fusion is removed.
Transposes with other readers stay. Where a result is folded, the transpose's buffer is allocated before the op, which writes it.

Source: none; BladeDISC has one layout for each library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, TerminatorOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.buffer_uses import frees, is_after, is_read_inside, precedes, reads, uses_of, writes
from xla_emitters.dynamic.buffers.fusion_rules import LOOP
from xla_emitters.dynamic.buffers.later_reads import free_behind, placed, why_not_later
from xla_emitters.rewrite.kernel_pass import KernelPass

FOLDED = (DynamicConvOp, DotOp)
SIDES, GROUPS = ("lhs", "rhs"), ("batch", "contracting")
"""Parts of the names of a product's lists of dimensions."""


class DiscFoldTransposesPass(KernelPass):
    name = "disc-fold-transposes"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, BufferOp) and inner.HLO is TransposeOp:
                order = integers(inner.properties["dimensions"])
                readers = _readers_of(inner)
                if (writer := _writer_before(inner)) and (changed := _with_result(writer, order)):
                    _fold_result(inner, writer, changed)
                elif (loop := _loop_behind(inner)) is not None:
                    if (reason := why_not_later(inner.inputs[0], inner, [loop])) is not None:
                        self.skip(inner, reason)
                    else:
                        _move(inner, loop)
                elif not readers or not all(_with_operand(*reader, order) for reader in readers):
                    self.skip(
                        inner, "not only convolutions and products that can read its operand, or one loop, read it"
                    )
                elif (reason := why_not_later(inner.inputs[0], inner, [reader for reader, _ in readers])) is not None:
                    self.skip(inner, reason)
                else:
                    _fold(inner, readers, order)


Properties: TypeAlias = dict[str, Attribute]
"""Those of an op that change."""


def _with_operand(op: BufferOp, number: int, order: Sequence[int]) -> Properties | None:
    """What changes in an op that reads, as its operand of that number, the array whose transpose it read; None: it cannot."""
    made = op.as_hlo()
    if isinstance(made, DynamicConvOp):
        *labels, result = made.dim_labels.data.replace("->", "_").split("_")
        labels[number] = "".join(labels[number][order.index(dim)] for dim in range(len(order)))
        return {"dim_labels": StringAttr(f"{labels[0]}_{labels[1]}->{result}")}
    assert isinstance(made, DotOp)
    side = SIDES[number]
    batch, summed = (integers(op.properties.get(f"{side}_{name}_dims")) for name in GROUPS)
    free = [order[dim] for dim in range(len(order)) if dim not in (*batch, *summed)]
    moved = {
        f"{side}_{name}_dims": [order[dim] for dim in dims] for name, dims in zip(GROUPS, (batch, summed), strict=True)
    }
    is_matrix = len(free) <= 1 and len(summed) == 1 and len(order) - 1 not in moved[f"{side}_batch_dims"]
    return {name: integer_array(dims) for name, dims in moved.items()} if is_matrix else None


def _with_result(op: BufferOp, order: Sequence[int]) -> Properties | None:
    """What changes in an op that writes the transpose of its result; None: it cannot. Operands of a product then change places."""
    made = op.as_hlo()
    if isinstance(made, DynamicConvOp):
        operands, _, result = made.dim_labels.data.partition("->")
        return {"dim_labels": StringAttr(f"{operands}->{''.join(result[dim] for dim in order)}")}
    assert isinstance(made, DotOp)
    batch = len(made.pairing.lhs_batch)
    rows = len(dims_of(made.operands[0])) - len(made.pairing.lhs_contracting)
    swapped = [*range(batch), *range(rows, len(order)), *range(batch, rows)]
    if made.algorithm is not None or list(order) != swapped:
        return None
    lists = {side: [op.properties.get(f"{side}_{name}_dims") for name in GROUPS] for side in SIDES}
    return {
        f"{side}_{name}_dims": value
        for side, other in zip(SIDES, reversed(SIDES), strict=True)
        for name, value in zip(GROUPS, lists[other], strict=True)
        if value is not None
    }


def _readers_of(transpose: BufferOp) -> list[tuple[BufferOp, int]]:
    """The ops that read the transpose's result, each with the number of the operand, if all are convolutions or products behind it."""
    (buffer,) = transpose.outputs
    found = list[tuple[BufferOp, int]]()
    for use in uses_of(buffer):
        reader = use.operation
        if isinstance(reader, BufferOp) and reader.HLO in FOLDED and use.index < 2 and is_after(reader, transpose):
            found.append((reader, use.index))
        elif reader is not transpose and not frees(use):
            return []
    return found if isinstance(buffer.owner, memref.AllocOp) else []


def _writer_before(transpose: BufferOp) -> BufferOp | None:
    """The op whose result only the transpose reads, if it can write the transpose's result instead."""
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    writers = [use.operation for use in uses_of(source) if writes(use)]
    others = [use for use in uses_of(source) if use.operation not in (transpose, *writers) and not frees(use)]
    writer = writers[0] if len(writers) == 1 and not others else None
    if not (isinstance(writer, BufferOp) and writer.HLO in FOLDED and isinstance(source.owner, memref.AllocOp)):
        return None
    block, made = placed(transpose).parent, buffer.owner
    if not isinstance(made, memref.AllocOp) or any(op.parent is not block for op in (writer, source.owner, made)):
        return None
    owners = (value.owner for value in made.operands)
    sizes = (owner for owner in owners if isinstance(owner, Operation) and owner.parent is block)
    is_known = all(precedes(size, writer) for size in sizes)
    return writer if is_known and is_after(transpose, writer) else None


def _fold_result(transpose: BufferOp, writer: BufferOp, changed: Properties) -> None:
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    if writer.HLO is DotOp:
        for name in [name for name in writer.properties if name.endswith("_dims")]:
            del writer.properties[name]
        writer.operands[0], writer.operands[1] = writer.operands[1], writer.operands[0]
    writer.properties.update(changed)
    allocation = _owner(buffer)
    if precedes(writer, allocation):
        allocation.detach()
        Rewriter.insert_op(allocation, InsertPoint.before(writer))
    writer.operands[len(writer.inputs)] = buffer
    _erase(transpose, source)


def _fold(transpose: BufferOp, readers: Sequence[tuple[BufferOp, int]], order: Sequence[int]) -> None:
    (source,), (buffer,) = transpose.inputs, transpose.outputs
    for reader, number in readers:
        changed = _with_operand(reader, number, order)
        assert changed is not None
        reader.properties.update(changed)
        reader.operands[number] = source
        free_behind(source, reader)
    _erase(transpose, buffer)


def _loop_behind(transpose: BufferOp) -> FusionOp | None:
    """The fusion behind the transpose whose ops alone read it, if it is a loop over as many elements."""
    (buffer,) = transpose.outputs
    fusions = {placed(use.operation) for use in uses_of(buffer) if reads(use)}
    loop = fusions.pop() if len(fusions) == 1 and isinstance(buffer.owner, memref.AllocOp) else None
    if not isinstance(loop, FusionOp) or loop.kind != StringAttr(LOOP) or loop is transpose.parent_op():
        return None
    sizes = BufferSizes()
    ops = loop.ops
    is_read_once = all(sizes.same_count(buffer, op.outputs[0]) for op in ops if buffer in op.inputs)
    written = (result for op in ops for result in op.outputs if not is_read_inside(result, loop))
    return loop if is_read_once and all(sizes.same_count(buffer, result) for result in written) else None


def _move(transpose: BufferOp, loop: FusionOp) -> None:
    """Puts a transpose into the loop."""
    fusion, (source,), (buffer,) = transpose.parent_op(), transpose.inputs, transpose.outputs
    transpose.detach()
    first = loop.body.block.first_op
    assert first is not None
    Rewriter.insert_op(transpose, InsertPoint.before(first))
    free_behind(source, loop)
    free_behind(buffer, loop)
    if isinstance(fusion, FusionOp) and isinstance(fusion.body.block.first_op, TerminatorOp):
        Rewriter.erase_op(fusion)


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
