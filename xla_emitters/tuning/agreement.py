"""Checks that two kernels of one fusion compute the same: runs some of the blocks of both on the CPU.

    candidate      blocks 0, 3072, 6140 ... 6143 write 12288 elements
    XLA's choice   the blocks that write these elements, and their neighbours
    -> None, or "argument 1: 17 of 12288 elements differ, the first at 4096"

The blocks of the other kernel that write the same elements are either given, or both kernels visit the first result in memory order,
so that an element's index tells which blocks may write it. Parameters are random; an array of more than 2^20 elements repeats random
data, with a period that is not a divisor of a power of two. Bits are compared. If a kernel adds in another order, values are compared,
and random numbers are positive, of complex numbers both parts: then a sum's rounding errors are small relative to the sum, since no
terms cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array, Kind, dtype
from xla_emitters.graph.view import FusionView
from xla_emitters.pricing.traffic import arrays_for
from xla_emitters.program import Argument
from xla_emitters.rewrite.kernel_entry import launch_of
from xla_emitters.runtime.simt.execute import written_elements

LAST_BLOCKS = 4
"""If threads work in n rounds, one of the grid's last n blocks writes the last element."""


def disagreement(
    candidate: ModuleOp,
    other: ModuleOp,
    view: FusionView,
    arguments: Sequence[Argument],
    same_blocks: Callable[[Sequence[int]], Sequence[int]] | None = None,
    tolerance: float = 0.0,
) -> str | None:
    """None if `other` writes the same elements as the first, the middle and the last blocks of `candidate`; otherwise the difference.

    candidate, other  at a stage that the executor runs
    same_blocks       blocks of `candidate` -> the blocks of `other` that write the same elements; None: by the elements' indices
    tolerance         for floats, relative to the value of `other`; 0: bits are compared
    raises            whatever the executor raises
    """
    drawn = drawn_for(view, arguments, tolerance)
    blocks = launch_of(candidate).blocks
    chosen = sorted({0, blocks // 2, *range(max(0, blocks - LAST_BLOCKS), blocks)})
    made, masks = _run(candidate, drawn, arguments, chosen)
    first = masks[len(view.parameters)]
    places = np.flatnonzero(first)
    if not places.size:
        return "the first, the middle and the last blocks write nothing"
    if same_blocks is not None:
        others = same_blocks(chosen)
    else:
        # Blocks are of equal size, but the last may be partial: an element at fraction f of the array is in block f * count, or one before.
        count = launch_of(other).blocks
        near = places * count // first.size
        others = np.unique(np.clip(np.concatenate([near - 1, near, [0]]), 0, count - 1)).tolist()
    wanted, known = _run(other, drawn, arguments, others)
    for number, (mask, seen) in enumerate(zip(masks, known, strict=True)):
        if (mask & ~seen).any():
            return f"argument {number}: the other kernel's blocks write other elements"
        found, right = made[number][mask], wanted[number][mask]
        wrong = np.flatnonzero(differing(found, right, tolerance if _is_rounded(arguments[number]) else 0.0))
        if wrong.size:
            place = np.flatnonzero(mask)[wrong[0]]
            return f"argument {number}: {wrong.size} of {found.size} elements differ, the first at {place}"
    return None


def drawn_for(view: FusionView, arguments: Sequence[Argument], tolerance: float) -> list[Array]:
    """An array for each argument; if values are compared, of positive numbers."""
    drawn = arrays_for(view, arguments, repeat=True)
    return [
        positive(array) if tolerance and _is_rounded(a) else array for a, array in zip(arguments, drawn, strict=True)
    ]


def differing(found: Array, right: Array, tolerance: float) -> Array:
    """Per element: whether its bits differ and, unless the tolerance is 0, it is not near the other."""
    differ = (found.view(np.uint8) != right.view(np.uint8)).reshape(found.size, found.itemsize).any(axis=1)
    return differ & ~are_near(found, right, tolerance) if tolerance and differ.any() else differ


def _is_rounded(argument: Argument) -> bool:
    """Whether additions of such numbers are rounded, so that their order matters."""
    return dtype(argument.array.dtype).kind in (Kind.FLOAT, Kind.COMPLEX)


def positive(array: Array) -> Array:
    """The numbers without their signs; both parts of complex ones."""
    if np.iscomplexobj(array):
        return np.abs(np.real(array)) + np.abs(np.imag(array)) * array.dtype.type(1j)
    return np.abs(array)


def are_near(found: Array, right: Array, tolerance: float) -> Array:
    """Per element: whether it is within the tolerance plus one rounding to its type, or NaN on both sides. Complex: of the modulus."""
    if np.iscomplexobj(found):
        one, other = found.astype(np.complex128), right.astype(np.complex128)
        rounding = np.spacing(np.abs(right)).astype(np.float64)
    else:
        one, other = found.astype(np.float64), right.astype(np.float64)
        # The distance to the next representable value is the size of a rounding.
        rounding = np.abs(np.nextafter(right, found).astype(np.float64) - other)
    with np.errstate(invalid="ignore"):
        return (np.abs(one - other) <= np.abs(other) * tolerance + rounding) | (np.isnan(one) & np.isnan(other))


def _run(
    module: ModuleOp, drawn: Sequence[Array], arguments: Sequence[Argument], blocks: Sequence[int]
) -> tuple[Sequence[Array], Sequence[Array]]:
    """The arrays after these blocks ran on copies of the written ones, and a mask of the written elements."""
    written = {argument.slice_index for argument in arguments if argument.written}
    copies = {
        argument.slice_index: array.copy()
        for argument, array in zip(arguments, drawn, strict=True)
        if argument.slice_index in written
    }
    arrays = [copies.get(argument.slice_index, array) for argument, array in zip(arguments, drawn, strict=True)]
    return arrays, written_elements(module, arrays, blocks=blocks, results=len(arrays))
