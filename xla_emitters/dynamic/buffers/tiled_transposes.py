"""Transposes that a GPU computes through tiles of shared memory, with the elementwise ops that read them in the same fusion.

    lmhlo.transpose %x -> %t {dimensions = [0, 2, 1]}       the last dimension moves: neighbours in %t are far from each other in %x
    lmhlo.add %t, %b -> %y                                  elementwise: an element of %y needs the element of %t at its own place

Source: docs/reference/2, "transpose emitter", which has the same tiles for sizes that are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.shape_ops import TransposeOp
from xla_emitters.dialects.lmhlo import BufferOp

TILES = "disc.tiles"
"""Attribute of a fusion that is computed through tiles."""
LEAST_TILED = 16
"""Least size of the two dimensions of a tile: a tile of 32 by 32 is half full then in each."""


def moves_last(op: BufferOp) -> bool:
    """Whether an op is a transpose that moves the last dimension."""
    if op.HLO is not TransposeOp:
        return False
    order = integers(op.properties["dimensions"])
    return len(order) > 1 and order[-1] != len(order) - 1


def tiled_transpose(ops: Iterable[BufferOp], roots: Sequence[BufferOp]) -> BufferOp | str:
    """The transpose that a kernel of these ops, in program order, computes through tiles; or a string: why there is none."""
    depends, found = set[SSAValue](), None
    written = set[SSAValue]()
    for op in ops:
        if moves_last(op):
            if found is not None:
                return "it has several transposes"
            if not written.isdisjoint(op.inputs):
                return f"it computes what {op.instruction_name} transposes"
            found = op
            depends |= set(op.outputs)
        elif not depends.isdisjoint(op.inputs):
            if not is_elementwise(op.as_hlo()):
                return f"{op.instruction_name} moves what was transposed"
            depends |= set(op.outputs)
        written |= set(op.outputs)
    if found is None:
        return "no transpose in it moves the last dimension"
    if not all(set(root.outputs) <= depends for root in roots):
        return f"not all of its results are transposed by {found.instruction_name}"
    return found
