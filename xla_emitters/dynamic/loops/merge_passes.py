"""Sorts arrays together, stably, in passes over all elements: for a GPU, a thread an element and a launch a pass.

    for each element, in its tile of 64:     rank = how many of the tile come before it           %runs[tile + rank] = the element
    for width = 64; width < n; width *= 2:
      for each element, in its run of `width`:
        rank = how many of the other run of its pair come before it, by bisection
        to[start of the pair + place in its run + rank] = the element

A small sort of known size is one tile, and so one launch (`first_run`). Of a pair of elements the right one comes first where the
comparator says that it is before the left one, and both threads ask the same question; so ranks are places of a permutation for each
comparator that is an order, and for constant ones. Passes come in twos, `runs` to `copies` and back: the second one of two copies where
nothing is left to merge. Of an unknown size, passes that are not needed have no blocks, and all are one kernel, since the width is an
argument.
Source: N. Satish, M. Harris, M. Garland, "Designing efficient sorting algorithms for manycore GPUs" (IPDPS 2009), section 5 (ranks by
bisection).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops

NAME = "loop"
TILE = 64
WHOLE, MOST_COMPARISONS = 512, 1 << 23
"""A sort of up to WHOLE elements along its dimension is one tile, if all its threads together make no more comparisons: each doubling of a
tile is a launch. By `cost` f32[512] takes an h200 13 us as one tile and 16 by tiles of 64, f32[256,512] 39 and 17."""
S64 = dtype("s64")
MOST_ELEMENTS = 1 << 31
"""Along the sorted dimension."""
Before: TypeAlias = Callable[[KernelCode, Sequence[SSAValue]], SSAValue]
"""(code, of each array the element in question and the other one) -> i1: whether the first is before."""


def first_run(sizes: Sequence[Number], along: int) -> int:
    """How many elements along the sorted dimension the first launch sorts.

    >>> first_run([4, 100], 1), first_run([4, 5000], 1), first_run([1 << 20, 100], 1)
    (128, 64, 64)
    """
    known = [size for size in sizes if isinstance(size, int)]
    size = sizes[along]
    if len(known) < len(sizes) or not isinstance(size, int) or not TILE < size <= WHOLE:
        return TILE
    run = 1 << (size - 1).bit_length()
    return run if prod(known) * run <= MOST_COMPARISONS else TILE


class MergePasses:
    """See the file's head.

    sizes   of all arrays
    along   the dimension that is sorted
    before  the order
    """

    def __init__(self, fusion: FusionLoops, sizes: Sequence[Number], along: int, before: Before) -> None:
        self._fusion, self._sizes, self._along, self._before = fusion, sizes, along, before
        self._size, self._count = sizes[along], fusion.numbers.code.product(sizes)
        self._tile = first_run(sizes, along)

    def sort(self, arrays: Sequence[SSAValue], runs: Sequence[SSAValue], copies: Sequence[SSAValue]) -> None:
        """Writes the sorted elements of the arrays to `runs`."""
        host = self._fusion.numbers.code
        self.sort_runs(self._tile, arrays, runs)
        limit = self._size if isinstance(self._size, int) else MOST_ELEMENTS
        width = self._tile
        while width < limit:
            count: Number = self._count
            if not isinstance(self._size, int):
                count = host.select(host.compare("slt", width, self._size), count, 0)
            self._pass(count, width, runs, copies)
            self._pass(count, 2 * width, copies, runs)
            width *= 4

    def sort_runs(self, width: int, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        """Writes the elements to `targets` with each run of `width` sorted. Runs longer than `first_run` have sorted halves."""
        if width == self._tile:
            self._fusion.parallel(
                NAME, [self._count], [1], lambda code, ids: self._rank_in_tile(code, ids, sources, targets)
            )
        else:
            self._pass(self._count, width // 2, sources, targets)

    def _pass(self, count: Number, width: int, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        # Arguments of the kernel where the size is unknown, so that all passes are one kernel. Both numbers are below the size.
        host = self._fusion.numbers.code
        least, steps = (host.minimum(number, self._size) for number in (width // 2, width.bit_length()))
        steps = steps if not isinstance(self._size, int) else width.bit_length()

        def body(code: KernelCode, ids: Sequence[SSAValue]) -> None:
            self._rank_in_pair(code, ids, code.index.multiply(least, 2), steps, sources, targets)

        self._fusion.parallel(NAME, [count], [1], body)

    def _place(self, code: KernelCode, ids: Sequence[SSAValue]) -> list[SSAValue]:
        return code.index.delinearize(ids[0], self._sizes)

    def _at(self, indices: Sequence[SSAValue], place: Number, code: KernelCode) -> list[SSAValue]:
        return [*indices[: self._along], code.index.value(place), *indices[self._along + 1 :]]

    def _is_before(
        self, code: KernelCode, swapped: SSAValue, mine: Sequence[SSAValue], theirs: Sequence[SSAValue]
    ) -> SSAValue:
        """i1: whether theirs is before mine; whether mine is before theirs where `swapped`."""
        arguments = list[SSAValue]()
        for own, other in zip(mine, theirs, strict=True):
            arguments.append(code.insert(arith.SelectOp(swapped, own, other)).result)
            arguments.append(code.insert(arith.SelectOp(swapped, other, own)).result)
        return self._before(code, arguments)

    def _rank_in_tile(
        self, code: KernelCode, ids: Sequence[SSAValue], arrays: Sequence[SSAValue], runs: Sequence[SSAValue]
    ) -> None:
        indices, index = self._place(code, ids), code.index
        place = indices[self._along]
        first = index.subtract(place, index.remainder(place, self._tile))
        last = index.minimum(index.add(first, self._tile), self._size)
        mine = [code.load(array, indices) for array in arrays]

        def step(inner: KernelCode, other: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            index, (rank,) = inner.index, carried
            more = inner.insert(arith.AddiOp(rank, constant(inner, 1, i64))).result
            theirs = [inner.load(array, self._at(indices, other, inner)) for array in arrays]
            is_left = index.compare("slt", other, place)
            is_before = self._is_before(inner, is_left, mine, theirs)
            counts = inner.insert(arith.XOrIOp(is_before, is_left)).result
            counts = index.every([counts, index.compare("ne", other, place)])
            return (inner.insert(arith.SelectOp(counts, more, rank)).result,)

        (found,) = code.loop(first, last, 1, [constant(code, 0, i64)], step)
        rank = index.clamp(found, S64, self._tile - 1)
        self._write(code, mine, runs, self._at(indices, index.add(first, rank), code))

    def _rank_in_pair(
        self,
        code: KernelCode,
        ids: Sequence[SSAValue],
        width: Number,
        steps: Number,
        sources: Sequence[SSAValue],
        targets: Sequence[SSAValue],
    ) -> None:
        indices, index = self._place(code, ids), code.index
        place = indices[self._along]
        run = index.quotient(place, width)
        start = index.multiply(run, width)
        is_right = index.compare("ne", index.remainder(run, 2), 0)
        is_left = code.insert(arith.XOrIOp(is_right, _true(code))).result
        other = index.select(is_right, index.subtract(start, width), index.add(start, width))
        first = index.minimum(other, self._size)
        end = index.minimum(index.add(other, width), self._size)
        mine = [code.load(array, indices) for array in sources]

        def goes_up(inner: KernelCode, place: SSAValue) -> SSAValue:
            theirs = [inner.load(array, self._at(indices, place, inner)) for array in sources]
            # A left element follows those of the right run that are before it, a right one those that it is not before.
            return inner.insert(arith.XOrIOp(self._is_before(inner, is_right, mine, theirs), is_right)).result

        rank = index.subtract(bisected(code, first, end, self._size, steps, goes_up), first)
        pair = index.select(is_left, start, other)
        target = index.add(index.add(pair, index.subtract(place, start)), rank)
        self._write(code, mine, targets, self._at(indices, target, code))

    def _write(
        self, code: KernelCode, values: Sequence[SSAValue], targets: Sequence[SSAValue], at: Sequence[SSAValue]
    ) -> None:
        for value, target in zip(values, targets, strict=True):
            code.store(value, target, at)


def bisected(
    code: KernelCode,
    first: Number,
    end: Number,
    size: Number,
    steps: Number,
    goes_up: Callable[[KernelCode, SSAValue], SSAValue],
) -> Number:
    """The first place from `first` to `end` for which `goes_up` does not hold, if it holds for none behind that.

    size   of the array, which is not empty
    steps  at least the bits of the distance, plus one
    """

    def long(number: Number) -> SSAValue:
        return code.insert(arith.IndexCastOp(code.index.value(number), i64)).result

    one = constant(code, 1, i64)

    # In 64 bits: of an index that a loop carries no bound is known (`rewrite/index_bounds`).
    def step(inner: KernelCode, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        low, high = carried
        is_open = inner.insert(arith.CmpiOp(low, high, "slt")).result
        middle = inner.insert(arith.ShRUIOp(inner.insert(arith.AddiOp(low, high)).result, one)).result
        up = goes_up(inner, inner.index.value(inner.index.clamp(middle, S64, inner.index.subtract(size, 1))))
        above = inner.insert(arith.AddiOp(middle, one)).result
        goes = inner.insert(arith.AndIOp(is_open, up)).result
        stays = inner.insert(arith.OrIOp(inner.insert(arith.XOrIOp(is_open, _true(inner))).result, up)).result
        return (
            inner.insert(arith.SelectOp(goes, above, low)).result,
            inner.insert(arith.SelectOp(stays, high, middle)).result,
        )

    low, _ = code.loop(0, steps, 1, [long(first), long(end)], step)
    return code.index.clamp(low, S64, size)


def _true(code: KernelCode) -> SSAValue:
    return code.insert(arith.ConstantOp(IntegerAttr(1, i1))).result
