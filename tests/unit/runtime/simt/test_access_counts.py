"""Bank conflicts and sectors, against their definition, one request after another."""

from dataclasses import replace

import numpy as np
import pytest
from unit.runtime.simt.watched_kernels import EXCHANGE, EXCHANGE_LLVM, pointers, tensors

from xla_emitters.dialects.context import parse_ir
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.access_counts import (
    NO_THREAD,
    AccessCount,
    AccessCounter,
    access_table,
    bank_ways,
    sectors,
)


def counts(text: str, out: int = 128) -> tuple[AccessCount, ...]:
    counter = AccessCounter()
    execute(parse_ir(text), [np.zeros(out, np.int32)], watchers=[counter])
    return counter.counts()


def ways_of(offsets: list[int], size: int) -> int:
    """Of one part of a request: the definition, word by word."""
    words = {(offset + byte) // 4 for offset in offsets if offset != NO_THREAD for byte in range(size)}
    banks = [word % 32 for word in words]
    return max((banks.count(bank) for bank in banks), default=0)


def sectors_of(offsets: list[int], size: int) -> int:
    return len({(offset + byte) // 32 for offset in offsets if offset != NO_THREAD for byte in range(size)})


@pytest.mark.parametrize("size", [1, 2, 4, 6, 8, 12, 16, 32, 48])
def test_requests_are_counted_as_defined(size):
    rng = np.random.default_rng(size)
    warps = rng.integers(0, 500 // size, (40, 32)) * size
    warps[rng.random((40, 32)) < 0.2] = NO_THREAD
    warps[7] = NO_THREAD
    lanes = max(n for n in (1, 2, 4, 8, 16, 32) if n == 1 or n * size <= 128)
    parts = warps.reshape(-1, lanes).tolist()
    assert bank_ways(warps, size).tolist() == [ways_of(part, size) for part in parts]
    assert sectors(warps, size).tolist() == [sectors_of(warp, size) for warp in warps.tolist()]


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (3, 1), (8, 8), (32, 32), (33, 1)])
def test_strides_through_shared_memory(stride, ways):
    """Words at stride s meet in gcd(s, 32) ways: the reason why a tile has 33 columns."""
    assert bank_ways(np.arange(32)[None, :] * stride * 4, 4).tolist() == [ways]


@pytest.mark.parametrize(("size", "parts"), [(4, 1), (8, 2), (16, 4)])
def test_neighbours_do_not_conflict_whatever_their_size(size, parts):
    assert bank_ways(np.arange(32)[None, :] * size, size).tolist() == [1] * parts
    assert sectors(np.arange(32)[None, :] * size, size).tolist() == [size]


def test_a_word_that_all_want_is_given_once():
    assert bank_ways(np.zeros((1, 32), np.int64), 4).tolist() == [1]
    assert sectors(np.zeros((1, 32), np.int64), 4).tolist() == [1]


@pytest.mark.parametrize(
    ("text", "read", "write"),
    [(EXCHANGE, "tensor.extract", "tensor.insert"), (EXCHANGE_LLVM, "llvm.load", "llvm.store")],
)
def test_a_kernel(text, read, write):
    filled, taken, stored = counts(text)
    assert (filled.op, filled.place, filled.space, filled.is_store) == (write, "copy.1 (t.hlo:3:8)", "shared", True)
    assert (taken.op, taken.place, taken.space, taken.is_store) == (read, "transpose.3 (t.hlo:4:8)", "shared", False)
    assert [(c.bytes_per_thread, c.requests, c.bank_ways, c.worst_bank_ways) for c in (filled, taken)] == [
        (4, 2, 1, 1)
    ] * 2
    assert (stored.memory, stored.space, stored.requests, stored.sectors) == ("argument 0", "global", 2, 4)


def test_only_what_active_threads_do_counts():
    """The first 40 of 64 threads write words 64 bytes apart: the second warp has 8 of them."""
    text = tensors(
        """
  %c40 = arith.constant 40 : index
  %c16 = arith.constant 16 : index
  %few = arith.cmpi ult, %t, %c40 : index
  %where = arith.muli %t, %c16 : index
  %done = xla_gpu.predicated_insert %v into %out[%where] if %few : tensor<640xi32>""",
        out=640,
    )
    (count,) = counts(text, 640)
    assert (count.requests, count.sectors) == (2, (32 + 8) / 2)
    (count,) = counts(text.replace("constant 40", "constant 20"), 640)
    assert (count.requests, count.sectors) == (1, 20)


def test_an_atomic_update_in_one_go_is_a_store():
    (count,) = counts(pointers("%old = llvm.atomicrmw add %result, %t monotonic : !llvm.ptr, i32"))
    assert (count.op, count.is_store, count.requests, count.sectors) == ("llvm.atomicrmw", True, 2, 4)


def test_the_table_has_totals_and_a_row_per_access():
    *totals, head, first, second, third = access_table(
        counts(EXCHANGE.replace("%full[%reversed]", "%full[%t]"))
    ).splitlines()
    assert [row.split()[:2] for row in (first, second, third)] == [
        ["write", "tensor.insert"],
        ["read", "tensor.extract"],
        ["write", "tensor.insert"],
    ]
    assert head.split() == ["access", "copies", "of", "bytes", "requests", "bank", "ways", "sectors", "from"]
    assert second.endswith("transpose.3 (t.hlo:4:8)")
    # 64 threads write 4 bytes each: two requests of four sectors.
    assert totals[0] == "global writes: 2 requests, 8 sectors (4 a request), 256 bytes"
    assert totals[1].startswith("shared memory: 4 requests, ")


def test_equal_accesses_are_one_row():
    """An unrolled loop's four loads: one row with the sum of their requests; another number of sectors is another row."""
    one = AccessCount("llvm.load", "p (f.hlo:1:1)", "argument 0", "global", False, 4, 10, 0.0, 0, 4.0, 0)
    head, *rows = access_table([one, one, one, one, replace(one, sectors=32.0)]).splitlines()[1:]
    assert [row.split()[2:3] + row.split()[6:8] for row in rows] == [["4", "40", "-"], ["1", "10", "-"]]
    assert "copies" in head
