"""A collective-permute of slices, in place: what is sent of each operand, and where in each result it is put.

    from, to = tuple(i, j), tuple(k, l)
    f32[10,6] collective-permute(x, y, from, to), slice_sizes={{2,4}}                    y with 2x4 elements of the sender's x at (k, l)
    ... collective-permute(x, y, tuple(from, from2), tuple(to, to2)), slice_sizes={{2,4},{1,1}}        two slices of each sender
    ... collective-permute(tuple(x, x2), tuple(y, y2), tuple(from, from2), tuple(to, to2)), slice_sizes={{2,4},{3}}       two arrays

The slices are those of the first array, then those of the second. A device may send and receive as often as an array has slices: its first
pair is for its first slice, its second for its second. Starts are those of the device itself, moved inside the array as those of
dynamic-slice; a device that receives nothing has its second operand. XLA says none of these three; it makes such permutes for TPUs.
Source: xla/service/hlo_verifier.cc, CheckInplaceCollectivePermute and CheckDuplicatedSourceOrTarget.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import as_array, dims_of, element_of, is_array, tuple_types
from xla_emitters.dialects.isa import isa

Slices = tuple[tuple[tuple[int, ...], ...], ...]
"""Sizes of each slice of each array."""


def is_sliced(op: RuleOp) -> bool:
    return "slice_sizes" in op.properties


def slices_of(op: RuleOp) -> Slices:
    """The slices of a permute of slices. raises RuleBroken for one that is none"""
    if len(op.operands) != 4:
        raise op.broken("a permute of slices has four operands", None, f"it has {len(op.operands)}")
    sent, kept = (_arrays(op, operand) for operand in (0, 1))
    if len(sent) != len(kept):
        raise op.broken("a permute of slices has as many results as arrays that it sends", 1)
    for number, (array, other) in enumerate(zip(sent, kept, strict=True)):
        if as_array(array).element_type != as_array(other).element_type or len(dims_of(array)) != len(dims_of(other)):
            raise op.broken(f"a permute of slices moves elements of one type and rank; not so in array {number}", 1)
    counts = [_slice_count(op, operand, [len(dims_of(array)) for array in sent]) for operand in (2, 3)]
    said = op.properties["slice_sizes"]
    sizes = [integers(each) for each in said] if isa(said, ArrayAttr[DenseArrayBase]) else [integers(said)]
    if counts[0] != counts[1] or len(sizes) != counts[0] * len(sent):
        raise op.broken(
            f"slice_sizes= has {counts[0] * len(sent)} slices, as the starts have", None, f"it has {len(sizes)}"
        )
    found = tuple(tuple(sizes[number * counts[0] : (number + 1) * counts[0]]) for number in range(len(sent)))
    for arrays in (sent, kept):
        for array, slices in zip(arrays, found, strict=True):
            dims = dims_of(array)
            for each in slices:
                if len(each) != len(dims) or any(
                    size < 0 or size > dim >= 0 for size, dim in zip(each, dims, strict=True)
                ):
                    raise op.broken(f"a slice {list(each)} of slice_sizes= fits in {list(dims)}")
    return found


def sliced_bytes(op: RuleOp) -> int:
    """Bytes that a device sends."""
    return sum(
        (prod(sizes) * element_of(array).bits + 7) // 8
        for array, slices in zip(_arrays(op, 0), slices_of(op), strict=True)
        for sizes in slices
    )


def _arrays(op: RuleOp, operand: int) -> Sequence[Attribute]:
    found = tuple_types(op.type_of(operand)) if not is_array(op.type_of(operand)) else (op.type_of(operand),)
    if not all(map(is_array, found)):
        raise op.broken("a permute of slices is of arrays, or of tuples of them", operand)
    return found


def _slice_count(op: RuleOp, operand: int, ranks: Sequence[int]) -> int:
    """How many starts each array has: a tuple of numbers, or a tuple of such tuples; of several arrays, a tuple of those."""
    given = op.type_of(operand)
    of_arrays = (given,) if is_array(op.type_of(0)) else tuple_types(given)
    counts = set[int]()
    for starts, rank in zip(of_arrays, ranks, strict=False):
        parts = tuple_types(starts)
        listed = [tuple_types(part) for part in parts] if parts and not is_array(parts[0]) else [parts]
        counts.add(len(listed))
        for each in listed:
            if len(each) != rank or not all(
                is_array(part) and not dims_of(part) and element_of(part).is_integer for part in each
            ):
                raise op.broken("the starts of a slice are a number for each dimension", operand)
    if len(of_arrays) != len(ranks) or len(counts) != 1:
        raise op.broken("all arrays of a permute have as many slices", operand)
    return counts.pop()
