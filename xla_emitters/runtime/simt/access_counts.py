"""Counts, while a kernel runs, what its memory accesses would cost a GPU: bank conflicts of shared memory, sectors of global memory.

    counter = AccessCounter()
    execute(module, arrays, watchers=[counter])
    counter.counts()   ->   AccessCount(op='llvm.load', place='transpose.3 (t.hlo:4:8)', memory='@shared', ..., bank_ways=32.0), ...

    request   one access of one warp: the active ones of its 32 threads
    sector    32 bytes of global memory, which are fetched together: 32 contiguous words are 4 sectors, 32 scattered words up to 32
    bank      shared memory's words of 4 bytes are dealt to 32 banks; a bank serves one word at a time. The `ways` of a request are the
              most different words that it accesses in one bank: 1 is not a conflict. Accesses of 8 and 16 bytes are served in two and
              four parts, of half a warp and of a quarter each.

Every buffer is taken to start at a sector and at bank 0, as allocations do.
Source: CUDA C++ best practices guide, "Device memory spaces".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from xla_emitters.dialects.locations import place_of
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.gpu_rules import WARP_SIZE
from xla_emitters.runtime.simt.memory import Access, Memory, Space, Watcher
from xla_emitters.support.columns import aligned

BANKS, WORD, SECTOR = 32, 4, 32
NO_THREAD = -1


@dataclass(frozen=True)
class AccessCount:
    """One op's accesses to one buffer, summed over all blocks that ran.

    op, place          the op's name, and its source: `transpose.3 (t.hlo:4:8)`
    memory, space      name of the buffer; "global" or "shared"
    is_store           an atomic update counts as a load and a store, or as one store if the executor does it in one access
    bytes_per_thread   of one access
    requests           accesses by a warp with an active thread
    bank_ways          of shared memory: the mean over the parts of requests; 0 for global memory
    worst_bank_ways    the most of any part
    sectors            of global memory, per request: the mean; 0 for shared memory
    parts              of requests to shared memory that are served separately; 0 for global memory
    """

    op: str
    place: str
    memory: str
    space: str
    is_store: bool
    bytes_per_thread: int
    requests: int
    bank_ways: float
    worst_bank_ways: int
    sectors: float
    parts: int


@dataclass
class _Sums:
    requests: int = 0
    parts: int = 0
    ways: int = 0
    worst: int = 0
    sectors: int = 0


class AccessCounter(Watcher):
    """Counts all accesses to global and shared memory, in the order in which their ops first run."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._sums: dict[tuple[Operation, str, Space, bool, int], _Sums] = {}

    def access(self, memory: Memory, access: Access) -> None:
        buffer = access.buffer
        if buffer.space is Space.PRIVATE:
            return
        key = (access.op, buffer.name, buffer.space, access.is_store, access.size)
        sums = self._sums.setdefault(key, _Sums())
        warps = by_warps(access, (len(memory.blocks), memory.launch.threads))
        sums.requests += int((warps != NO_THREAD).any(axis=1).sum())
        if buffer.space is Space.SHARED:
            ways = bank_ways(warps, access.size)
            sums.parts += int((ways > 0).sum())
            sums.ways += int(ways.sum())
            sums.worst = max(sums.worst, int(ways.max()))
        else:
            sums.sectors += int(sectors(warps, access.size).sum())

    def counts(self) -> tuple[AccessCount, ...]:
        found: list[AccessCount] = []
        for (op, name, space, is_store, size), sums in self._sums.items():
            ways, per_request = sums.ways / max(1, sums.parts), sums.sectors / max(1, sums.requests)
            where = (op.name, place_of(op), name, space.value, is_store, size)
            found.append(AccessCount(*where, sums.requests, ways, sums.worst, per_request, sums.parts))
        return tuple(found)


def by_warps(access: Access, shape: tuple[int, int]) -> Array:
    """Byte offsets, int64 (warps, 32); NO_THREAD where a lane is inactive or does not exist.

    shape   (blocks, threads) of the chunk
    """
    blocks, threads = shape
    warps = -(-threads // WARP_SIZE)
    offsets = np.full((blocks, warps * WARP_SIZE), NO_THREAD, np.int64)
    offsets[:, :threads] = (
        access.offsets if access.active is None else np.where(access.active, access.offsets, NO_THREAD)
    )
    return offsets.reshape(-1, WARP_SIZE)


def bank_ways(warps: Array, size: int) -> Array:
    """For each part of each request, int64: the most words that it accesses in one bank; 0 where no lane of it is active.

    >>> stride_of_32_words = np.arange(32)[None, :] * 128
    >>> bank_ways(stride_of_32_words, 4), bank_ways(stride_of_32_words + np.arange(32) * 4, 4)
    (array([32]), array([1]))
    """
    lanes = WARP_SIZE
    while lanes > 1 and lanes * size > BANKS * WORD:
        lanes //= 2
    words = _covered(warps.reshape(-1, lanes), size, WORD)
    places = np.nonzero(_is_new(words))
    banks = np.bincount(places[0] * BANKS + words[places] % BANKS, minlength=len(words) * BANKS)
    return banks.reshape(-1, BANKS).max(axis=1)


def sectors(warps: Array, size: int) -> Array:
    """For each request, int64: the sectors that it touches.

    >>> sectors(np.arange(32)[None, :] * 4, 4), sectors(np.arange(32)[None, :] * 100, 4)
    (array([4]), array([32]))
    """
    return _is_new(_covered(warps, size, SECTOR)).sum(axis=1)


def sectors_of(warps: Array, size: int) -> tuple[Array, Array]:
    """The different sectors of each request: (row of `warps`, number of the sector), two arrays of one length."""
    covered = _covered(warps, size, SECTOR)
    places = np.nonzero(_is_new(covered))
    return places[0], covered[places]


def _covered(offsets: Array, size: int, unit: int) -> Array:
    """The numbers of the units of `unit` bytes that each row's accesses touch, sorted, with repetitions; NO_THREAD first."""
    pieces = np.arange(0, size, min(size, unit))
    touched = np.where(offsets[..., None] == NO_THREAD, NO_THREAD, (offsets[..., None] + pieces) // unit)
    last = np.where(offsets == NO_THREAD, NO_THREAD, (offsets + size - 1) // unit)
    return np.sort(np.concatenate([touched.reshape(len(offsets), -1), last], axis=1), axis=1)


def _is_new(numbers: Array) -> Array:
    """Mask of the first occurrence of each number in a sorted row, without NO_THREAD."""
    new = numbers != NO_THREAD
    new[:, 1:] &= numbers[:, 1:] != numbers[:, :-1]
    return new


def access_table(counts: Iterable[AccessCount]) -> str:
    """Totals of each memory, then one row for each access: equal ones, as unrolling makes them, are one row with their number.

    Accesses are equal where all but the number of requests agrees; `requests` is the sum over the copies.
    """
    groups: dict[tuple[object, ...], list[AccessCount]] = {}
    for count in counts:
        kind = "write" if count.is_store else "read"
        key = (kind, count.op, count.memory, count.space, count.bytes_per_thread, count.place)
        key += (f"{count.bank_ways:.3g}", count.worst_bank_ways, f"{count.sectors:.3g}")
        groups.setdefault(key, []).append(count)
    rows = [("access", "copies", "of", "bytes", "requests", "bank ways", "sectors", "from")]
    for (kind, op, memory, *_), copies in groups.items():
        first, requests = copies[0], sum(copy.requests for copy in copies)
        ways = f"{first.bank_ways:.3g}"
        if first.bank_ways and f"{first.worst_bank_ways}" != ways:
            ways += f" (worst {first.worst_bank_ways})"
        is_shared = first.space == Space.SHARED.value
        ways, per_request = (ways, "-") if is_shared else ("-", f"{first.sectors:.3g}")
        where = (f"{kind} {op}", str(len(copies)), str(memory), str(first.bytes_per_thread))
        rows.append((*where, str(requests), ways, per_request, first.place))
    return "\n".join([*_totals([count for copies in groups.values() for count in copies]), *aligned(rows)])


def _totals(counts: Sequence[AccessCount]) -> list[str]:
    """A line for reads and one for writes of global memory, and one for shared memory; a line without accesses is left out."""
    lines: list[str] = []
    for kind, is_store in (("reads", False), ("writes", True)):
        found = [count for count in counts if count.space == Space.GLOBAL.value and count.is_store == is_store]
        if requests := sum(count.requests for count in found):
            moved = sum(count.sectors * count.requests for count in found)
            lines.append(
                f"global {kind}: {requests} requests, {moved:.0f} sectors ({moved / requests:.3g} a request), {moved * SECTOR:.0f} bytes"
            )
    found = [count for count in counts if count.space == Space.SHARED.value]
    if parts := sum(count.parts for count in found):
        ways = sum(count.bank_ways * count.parts for count in found) / parts
        worst = max(count.worst_bank_ways for count in found)
        requests = sum(count.requests for count in found)
        lines.append(f"shared memory: {requests} requests, {ways:.3g} bank ways (worst {worst})")
    return lines
