"""Roots that a loop over a matrix writes in addition to its reductions: arrays with equally many elements, perhaps in another shape.

at (%row, %column) of a matrix of %b * %s rows and 32 columns, an array of shape
  (%b, %s, 32)    %i, %j = affine.delinearize_index %row into (%b, %s); element (%i, %j, %column): no division by the columns
  any other       the coordinates of element %row * %cols + %column
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops


def write_root(
    fusion: FusionLoops, code: KernelCode, root: BufferOp, place: tuple[SSAValue, SSAValue], shape: Sequence[Number]
) -> None:
    """Writes the element of a root at a position of the matrix; later reads of it there reuse the value."""
    (buffer,) = root.outputs
    indices = indices_at(code, place, shape, fusion.numbers.sizes(buffer))
    value = fusion.element(code, root, indices)
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
