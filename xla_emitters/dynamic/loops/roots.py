"""The roots of a fusion: the ops with results that are used outside.

lmhlo.fusion { lmhlo.abs %x -> %t;  lmhlo.add %t, %y -> %z }; return %z             the root is `add`

A loop over a matrix may write roots in addition to its reductions: arrays with equally many elements, perhaps in another shape.

at (%row, %column) of a matrix of %b * %s rows and 32 columns, an array of shape
  (%b, %s, 32)    %i, %j = affine.delinearize_index %row into (%b, %s); element (%i, %j, %column): no division by the columns
  any other       the coordinates of element %row * %cols + %column
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue, Use

from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dialects.mlir import memref
from xla_emitters.dynamic.buffers.buffer_uses import asks_size, frees, writes
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.element_code import element
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops


def is_used_outside(buffer: SSAValue, fusion: FusionOp) -> bool:
    """Whether a buffer that the fusion writes is read outside, or may be. A variant of the fusion reads what it writes itself."""
    if not isinstance(buffer.owner, memref.AllocOp):
        return True
    return any(_is_read_outside(use, buffer, fusion) for use in buffer.uses)


def _is_read_outside(use: Use, buffer: SSAValue, fusion: FusionOp) -> bool:
    op = use.operation
    if frees(use) or asks_size(use) or writes(use) or fusion.is_ancestor(op):
        return False
    other = op.parent_op()
    while other is not None and not isinstance(other, FusionOp):
        other = other.parent_op()
    return other is None or not any(writes(inner) and other.is_ancestor(inner.operation) for inner in buffer.uses)


def roots_of(fusion: FusionOp) -> list[BufferOp]:
    """The ops of a fusion with a result that is used outside, in order."""
    ops = (op for op in fusion.body.block.ops if isinstance(op, BufferOp))
    return [op for op in ops if any(is_used_outside(buffer, fusion) for buffer in op.outputs)]


def write_root(
    fusion: FusionLoops, code: KernelCode, root: BufferOp, place: tuple[SSAValue, SSAValue], shape: Sequence[Number]
) -> None:
    """Writes the element of a root at a position of the matrix; later reads of it there reuse the value."""
    (buffer,) = root.outputs
    indices = indices_at(code, place, shape, fusion.numbers.sizes(buffer))
    value = element(code, root, indices)
    with code.located(root.location):
        code.store(value, buffer, indices)
    code.keep(buffer, indices, value)


def indices_at(
    code: KernelCode, place: tuple[SSAValue, SSAValue], shape: Sequence[Number], sizes: Sequence[Number]
) -> list[SSAValue]:
    """The indices, in an array of `sizes`, of the element at a position of a matrix of `shape` with equally many elements."""
    row, column = place
    if len(sizes) > 1 and sizes[-1] == shape[-1]:
        return [*code.index.delinearize(row, sizes[:-1]), column]
    if 1 in shape:
        return code.index.delinearize(column if shape[0] == 1 else row, sizes)
    return code.index.delinearize(code.index.linearize([row, column], shape), sizes)
