"""Sectors of kernels whose accesses can be counted by hand."""

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.pricing.traffic import ALL_THREADS, Sectors, TrafficCounter, footprint, measure_traffic, run_count
from xla_emitters.program import Argument, ArraySpec, LaunchDimensions
from xla_emitters.runtime.simt.execute import execute

COPY = """
func.func @copy(%in: tensor<{size}xf32> {{xla.slice_index = 0, xla.invariant}}, %out: tensor<{size}xf32> {{xla.slice_index = 1}})
    -> tensor<{size}xf32> attributes {{xla.entry}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %threads = arith.constant {threads} : index
  %first = arith.muli %b, %threads : index
  %i = arith.addi %first, %t : index
  {index}
  %value = tensor.extract %in[%j] : tensor<{size}xf32>
  %done = tensor.insert %value into %out[%i] : tensor<{size}xf32>
  func.return %done : tensor<{size}xf32>
}}
"""
SAME = "%zero = arith.constant 0 : index\n  %j = arith.addi %i, %zero : index"
FIRST = "%j = arith.constant 0 : index"
BY_EIGHT = """%eight = arith.constant 8 : index
  %last = arith.constant {size} : index
  %scaled = arith.muli %i, %eight : index
  %j = arith.remui %scaled, %last : index"""


def arguments(size: int) -> list[Argument]:
    spec = ArraySpec("f32", (size,), (0,))
    return [
        Argument("parameter", 0, spec, 4 * size, 16, 0, False),
        Argument("result", 0, spec, 4 * size, 16, 1, True),
    ]


def traffic(index: str, blocks: int, threads: int = 64, wave: int = 4):
    size = blocks * threads
    text = COPY.format(size=size, threads=threads, index=index.format(size=size))
    arrays = [np.zeros(size, np.float32), np.zeros(size, np.float32)]
    return measure_traffic(
        parse_ir(text), arguments(size), arrays, LaunchDimensions((blocks, 1, 1), (threads, 1, 1)), wave
    )


@pytest.mark.tiny
def test_a_copy_moves_every_byte_once() -> None:
    found = traffic(SAME, blocks=8)
    read, written = found.arguments
    assert (read.read_requests, read.read_blocks, read.read_waves, read.write_requests) == (2048, 2048, 2048, 0)
    assert (written.write_requests, written.write_waves, written.read_requests) == (2048, 2048, 0)
    assert written.write_lines == 2048
    # 16 warps read and write 128 bytes each: four sectors, one cycle.
    assert (found.lane_bytes, found.l1_cycles, found.l2_bytes) == (2048, 32, 4096)


def test_a_broadcast_is_fetched_once_a_request_a_block_and_a_wave() -> None:
    """8 blocks of two warps, four blocks a wave: one sector for each of 16 requests, 8 blocks and 2 waves."""
    read = traffic(FIRST, blocks=8).arguments[0]
    assert (read.read_requests, read.read_blocks, read.read_waves) == (16 * 32, 8 * 32, 2 * 32)


def test_neighbours_a_sector_apart_need_one_each() -> None:
    """Every lane another sector; every second block comes back to the same 64, so that a wave of four blocks has 128."""
    found = traffic(BY_EIGHT, blocks=16)
    read = found.arguments[0]
    assert read.read_requests == read.read_blocks == 16 * 64 * 32
    assert read.read_waves == 4 * 128 * 32
    # 32 warps: 32 sectors in 8 cycles read, 4 in one written.
    assert found.l1_cycles == 32 * (8 + 1)


def sectors_of(text: str, size: int, threads: int) -> Sectors:
    """Of a kernel of one block and one array of s32."""
    counter, launch = TrafficCounter([4 * size // 32]), LaunchDimensions((1, 1, 1), (threads, 1, 1))
    execute(parse_ir(text), [np.zeros(size, np.int32)], watchers=[counter], launch=launch)
    (sectors,) = counter.finished()
    return sectors


def test_a_request_that_writes_parts_of_lines() -> None:
    """Each of 64 lanes writes 4 bytes into a sector of its own: 64 sectors in 16 lines."""
    text = """
    module {
      llvm.func @kernel(%p: !llvm.ptr {llvm.dereferenceable = 2048 : index}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
        %t = nvvm.read.ptx.sreg.tid.x : i32
        %eight = llvm.mlir.constant(8 : i32) : i32
        %scaled = llvm.mul %t, %eight : i32
        %at = llvm.getelementptr %p[%scaled] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %t, %at : i32, !llvm.ptr
        llvm.return
      }
    }
    """
    sectors = sectors_of(text, 512, 64)
    assert (sectors.write_requests, sectors.write_lines) == (64 * 32, 16 * 128)


def test_runs_of_blocks_stand_for_a_large_grid() -> None:
    blocks = 2 * ALL_THREADS // 64
    found = traffic(SAME, blocks=blocks, wave=1 << 20)
    assert found.sampled < blocks
    assert found.arguments[0].read_waves == pytest.approx(4 * 64 * blocks)
    assert found.arguments[1].write_waves == pytest.approx(4 * 64 * blocks)


def test_an_atomic_update_reads_and_writes() -> None:
    text = """
    module {
      llvm.func @kernel(%p: !llvm.ptr {llvm.dereferenceable = 128 : index}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
        %t = nvvm.read.ptx.sreg.tid.x : i32
        %one = llvm.mlir.constant(1 : i32) : i32
        %at = llvm.getelementptr %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %old = llvm.atomicrmw add %at, %one monotonic : !llvm.ptr, i32
        llvm.return
      }
    }
    """
    sectors = sectors_of(text, 32, 32)
    assert (sectors.read_waves, sectors.write_waves) == (128, 128)


def test_reads_again_are_counted_by_what_their_block_touched_since() -> None:
    """Each block of 64 threads reads 256 bytes, then the same again; the first read of a block is none."""
    again = "%before = tensor.extract %in[%i] : tensor<{size}xf32>\n  " + SAME
    found = traffic(again, blocks=8)
    assert found.rereads == ({256: 8 * 256}, {})
    assert traffic(SAME, blocks=8).rereads == ({}, {})


def test_runs_of_sectors_are_counted_in_each_block() -> None:
    """8 blocks read 256 bytes in one piece each; every eighth element is a sector of its own."""
    assert traffic(SAME, blocks=8).arguments[0].read_runs == 8
    assert traffic(SAME, blocks=8).arguments[1].write_runs == 8
    apart = np.arange(0, 64 * 10, 10)
    assert run_count(apart) == 64
    assert run_count(apart[:0]) == 0
    assert run_count(np.array([3, 4, 5, 9, 10, 20])) == 3


def test_what_a_grid_reads_in_all_follows_from_what_its_samples_share() -> None:
    """By enumeration: 128 runs, each of which chooses 400 of 1,000 sectors, read nearly all of these, and four of them show it."""
    draw = np.random.default_rng(0)
    runs = [np.unique(draw.integers(0, 1000, 400)) for _ in range(128)]
    found = footprint(runs[:4], 32)
    assert found == pytest.approx(32 * np.unique(np.concatenate(runs)).size, rel=0.1)
    # Ten of 512 rows in two samples by chance: no reason to think that there are few.
    assert footprint([np.arange(n * 118, n * 118 + 128) for n in range(4)], 32) == 32 * (4 * 128 - 30) * 32
    # Streams: each run reads its own part. All blocks ran: what they read is what the grid reads.
    assert footprint([np.arange(n, n + 100) for n in (0, 1000, 2000, 3000)], 32) == 32 * 400 * 32
    assert footprint([np.arange(100), np.arange(100)], 1) == 32 * 100
    assert footprint([np.arange(100)] * 4, 32) == pytest.approx(32 * 100, rel=0.03)
    assert footprint([], 32) == 0
