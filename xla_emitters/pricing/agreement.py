"""Whether two kernels of one fusion compute the same bits: both run on the CPU on some of their blocks.

    candidate      blocks 0, 3072, 6140 ... 6143 write 12288 elements
    XLA's choice   the blocks that write these elements, and their neighbours
    -> None, or "argument 1: 17 of 12288 elements differ, the first at 4096"

Both must visit the first result in memory order, so that an element's place says which blocks of the other kernel may write it. Parameters
are drawn; an array of more than 2^20 elements repeats what was drawn, at a period that divides no power of two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array
from xla_emitters.fusions.view import FusionView
from xla_emitters.kernels.kernel_entry import launch_of
from xla_emitters.pricing.traffic import arrays_for
from xla_emitters.program import Argument
from xla_emitters.runtime.simt.execute import written_elements

LAST_BLOCKS = 4
"""A grid whose threads work in n rounds writes its last element in one of its last n blocks."""


def disagreement(candidate: ModuleOp, other: ModuleOp, view: FusionView, arguments: Sequence[Argument]) -> str | None:
    """None where `other` writes the same elements as the first, the middle and the last blocks of `candidate`; else what differs.

    candidate, other  at a stage that the executor runs
    raises            what the executor raises
    """
    drawn = arrays_for(view, arguments, repeat=True)
    blocks = launch_of(candidate).blocks
    made, masks = _run(
        candidate, drawn, arguments, sorted({0, blocks // 2, *range(max(0, blocks - LAST_BLOCKS), blocks)})
    )
    first = masks[len(view.parameters)]
    places = np.flatnonzero(first)
    if not places.size:
        return "the first, the middle and the last blocks write nothing"
    others = launch_of(other).blocks
    # Of blocks of equal size the last is not full: a place's share of the array is its block's number, or the next one.
    near = places * others // first.size
    near = np.unique(np.clip(np.concatenate([near - 1, near, [0]]), 0, others - 1))
    wanted, known = _run(other, drawn, arguments, near.tolist())
    for number, (mask, seen) in enumerate(zip(masks, known, strict=True)):
        if (mask & ~seen).any():
            return f"argument {number}: the other kernel's blocks write other elements"
        found, right = made[number][mask], wanted[number][mask]
        wrong = np.flatnonzero((found.view(np.uint8) != right.view(np.uint8)).reshape(-1, found.itemsize).any(axis=1))
        if wrong.size:
            place = np.flatnonzero(mask)[wrong[0]]
            return f"argument {number}: {wrong.size} of {found.size} elements differ, the first at {place}"
    return None


def _run(
    module: ModuleOp, drawn: Sequence[Array], arguments: Sequence[Argument], blocks: Sequence[int]
) -> tuple[Sequence[Array], Sequence[Array]]:
    """The arrays after these blocks ran on copies of what they write, and which of their elements were written."""
    written = {argument.slice_index for argument in arguments if argument.written}
    copies = {
        argument.slice_index: array.copy()
        for argument, array in zip(arguments, drawn, strict=True)
        if argument.slice_index in written
    }
    arrays = [copies.get(argument.slice_index, array) for argument, array in zip(arguments, drawn, strict=True)]
    return arrays, written_elements(module, arrays, blocks=blocks, results=len(arrays))
