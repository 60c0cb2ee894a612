"""Thread and block ids, barriers, shuffles; the same ops in nvvm."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

LAUNCH = "gpu.known_block_size = array<i32: 4, 2, 3>, gpu.known_grid_size = array<i32: 5, 2, 2>"
THREADS, BLOCKS = 24, 20


def coordinates(extents: tuple[int, int, int], dimension: int) -> np.ndarray:
    """Coordinate `dimension` of each thread or block, the x fastest."""
    x, y, z = extents
    grid = np.indices((z, y, x))[2 - dimension]
    return grid.reshape(-1)


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_ids_and_extents_in_three_dimensions(dimension):
    d = "xyz"[dimension]
    module = parse_ir(f"""
func.func @main(%out: tensor<{BLOCKS * THREADS}x4xindex>) -> tensor<{BLOCKS * THREADS}x4xindex> attributes {{xla.entry, {LAUNCH}}} {{
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %tz = gpu.thread_id z
  %bx = gpu.block_id x
  %by = xla.workgroup_id y
  %bz = gpu.block_id z
  %row = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(tx, ty, tz, bx, by, bz) -> "
    "(((((bz * 2 + by) * 5 + bx) * 3 + tz) * 2 + ty) * 4 + tx), domain: tx in [0, 3], ty in [0, 1], tz in [0, 2], "
    "bx in [0, 4], by in [0, 1], bz in [0, 1]">(%tx, %ty, %tz, %bx, %by, %bz)
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %thread = gpu.thread_id {d}
  %block = gpu.block_id {d}
  %block_dim = "gpu.block_dim"() {{dimension = #gpu<dim {d}>}} : () -> index
  %grid_dim = "gpu.grid_dim"() {{dimension = #gpu<dim {d}>}} : () -> index
  %0 = tensor.insert %thread into %out[%row, %c0] : tensor<{BLOCKS * THREADS}x4xindex>
  %1 = tensor.insert %block into %0[%row, %c1] : tensor<{BLOCKS * THREADS}x4xindex>
  %2 = tensor.insert %block_dim into %1[%row, %c2] : tensor<{BLOCKS * THREADS}x4xindex>
  %3 = tensor.insert %grid_dim into %2[%row, %c3] : tensor<{BLOCKS * THREADS}x4xindex>
  return %3 : tensor<{BLOCKS * THREADS}x4xindex>
}}""")
    out = np.full((BLOCKS, THREADS, 4), -1, np.int64)
    execute(module, [out], chunk_blocks=3)
    thread, block = coordinates((4, 2, 3), dimension), coordinates((5, 2, 2), dimension)
    np.testing.assert_array_equal(out[:, :, 0], np.broadcast_to(thread, (BLOCKS, THREADS)))
    np.testing.assert_array_equal(out[:, :, 1], np.broadcast_to(block[:, None], (BLOCKS, THREADS)))
    assert (out[:, :, 2] == (4, 2, 3)[dimension]).all()
    assert (out[:, :, 3] == (5, 2, 2)[dimension]).all()


def test_special_registers_read_the_same():
    ops = """
    %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 64> : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %n = nvvm.read.ptx.sreg.ntid.x : i32
    %l = nvvm.read.ptx.sreg.laneid : i32
    %w = nvvm.read.ptx.sreg.warpid : i32
    %s = nvvm.read.ptx.sreg.warpsize : i32
    %warp_start = arith.muli %w, %s : i32
    %thread2 = arith.addi %warp_start, %l : i32
    %row = arith.muli %b, %n : i32
    %k = arith.addi %row, %t : i32
    %difference = arith.subi %thread2, %t : i32
    %r = arith.addi %k, %difference : i32"""
    got = per_thread(ops, "i32", threads=64, a=("i32", np.zeros(192)))
    np.testing.assert_array_equal(got, np.arange(192))


@pytest.mark.parametrize(
    "read",
    [
        "%r = nvvm.read.ptx.sreg.tid.x range <i32, 0, 31> : i32",
        "%t = gpu.thread_id x {xla.range = [0 : index, 30 : index]}\n%r = arith.index_cast %t : index to i32",
    ],
)
def test_a_broken_promise_about_a_range_is_an_error(read):
    with pytest.raises(
        ExecutionError, match="in block 0, thread 31 gives a value outside the range that it promises, 0 to 30"
    ):
        per_thread(read, "i32", a=("i32", np.zeros(32)))


BARRIER_UNDER = """
func.func @main(%out: tensor<8xi32>) -> tensor<8xi32> attributes {{xla.entry, {launch}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %apart = arith.cmpi ult, {who}, %c1 : index
  scf.if %apart {{
    gpu.barrier
  }}
  return %out : tensor<8xi32>
}}"""


def test_a_barrier_is_for_whole_blocks():
    out = np.zeros(8, np.int32)
    execute(parse_ir(BARRIER_UNDER.format(launch=launch(4, 2), who="%block")), [out])
    with pytest.raises(
        ExecutionError, match=r"gpu\.barrier in block 0, thread 1 is not reached with the other threads"
    ):
        execute(parse_ir(BARRIER_UNDER.format(launch=launch(4, 2), who="%thread")), [out])


def shuffle_source(mode: str, lane: int, offset: int, width: int) -> int | None:
    """The lane whose value comes; None where there is none."""
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": offset}[mode]
    return source if 0 <= source < width else None


@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
@pytest.mark.parametrize("offset", [0, 1, 5, 16])
def test_shuffles_exchange_within_a_warp(mode, offset):
    values = np.arange(100, 228, dtype=np.int32)
    ops = f"""
    %offset = arith.constant {offset} : i32
    %width = arith.constant 32 : i32
    %r, %valid = gpu.shuffle {mode} %a, %offset, %width : i32"""
    got = per_thread(ops, "i32", threads=64, a=("i32", values))
    sources = [shuffle_source(mode, k % 32, offset, 32) for k in range(128)]
    wanted = [values[k] if s is None else values[k - k % 32 + s] for k, s in enumerate(sources)]
    np.testing.assert_array_equal(got, wanted)
    ops = ops.replace("%r, %valid", "%other, %r")
    got = per_thread(ops, "i1", threads=64, a=("i32", values))
    assert got.tolist() == [s is not None for s in sources]


@pytest.mark.parametrize(("kind", "mode"), [("bfly", "xor"), ("up", "up"), ("down", "down"), ("idx", "idx")])
def test_nvvm_shuffles_follow_ptx(kind, mode):
    """The clamp is 31, or 0 for up, as PTX wants for a whole warp."""
    values = np.arange(64, dtype=np.float32)
    ops = f"""
    %all = arith.constant -1 : i32
    %offset = arith.constant 3 : i32
    %clamp = arith.constant {0 if kind == "up" else 31} : i32
    %r = nvvm.shfl.sync {kind} %all, %a, %offset, %clamp : f32 -> f32"""
    got = per_thread(ops, "f32", threads=64, a=("f32", values))
    sources = [shuffle_source(mode, k % 32, 3, 32) for k in range(64)]
    assert got.tolist() == [k if s is None else k - k % 32 + s for k, s in enumerate(sources)]


def test_where_a_thread_stands_in_its_warps():
    ops = """
    %n = gpu.num_subgroups : index
    %s = gpu.subgroup_size : index
    %w = gpu.subgroup_id : index
    %l = gpu.lane_id
    %g = gpu.global_id x
    %start = arith.muli %w, %s : index
    %b = arith.addi %start, %l : index
    %c = arith.muli %b, %n : index
    %d = arith.muli %g, %s : index
    %r = arith.addi %c, %d : index"""
    got = per_thread(ops, "index", threads=80, a=("i32", np.zeros(160)))
    thread = np.tile(np.arange(80), 2)
    np.testing.assert_array_equal(got, thread * 3 + np.arange(160) * 32)


EXCHANGES = {
    "gpu": "%r, %valid = gpu.shuffle down %a, %one, %width : i32",
    "nvvm": "%r = nvvm.shfl.sync down %all, %a, %one, %last : i32 -> i32",
}


def exchange_where(exchange: str, condition: str, width: int = 32) -> str:
    return f"""
    %t = gpu.thread_id x
    %one = arith.constant 1 : i32
    %width = arith.constant {width} : i32
    %all = arith.constant {(1 << width) - 1} : i32
    %last = arith.constant 31 : i32
    %limit = arith.constant 32 : index
    %few = arith.constant 5 : index
    %c = {condition}
    %x = scf.if %c -> (i32) {{
      {exchange.replace("%r", "%got")}
      scf.yield %got : i32
    }} else {{
      scf.yield %a : i32
    }}
    %r = arith.addi %x, %width : i32"""


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_an_exchange_needs_all_lanes_of_its_warp(exchange):
    values = np.arange(64, dtype=np.int32)
    whole = exchange_where(exchange, "arith.cmpi uge, %t, %limit : index")
    got = per_thread(whole, "i32", threads=64, a=("i32", values))
    np.testing.assert_array_equal(got - 32, [*range(32), *range(33, 64), 63])
    part = exchange_where(exchange, "arith.cmpi uge, %t, %few : index")
    with pytest.raises(ExecutionError, match="thread 0 is not reached with the other threads of the warp"):
        per_thread(part, "i32", threads=64, a=("i32", values))


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_an_exchange_is_for_the_lanes_that_it_names(exchange):
    values = np.arange(32, dtype=np.int32)
    few = exchange_where(exchange, "arith.cmpi ult, %t, %few : index", width=5)
    got = per_thread(few, "i32", threads=32, a=("i32", values))
    assert got[:4].tolist() == [6, 7, 8, 9]
    with pytest.raises(ExecutionError, match="thread 5 is run by a lane that the op does not name"):
        per_thread(exchange_where(exchange, "arith.cmpi ult, %t, %limit : index", width=5), "i32", a=("i32", values))


def test_lanes_that_the_last_warp_lacks_have_nothing_to_give():
    values = np.arange(40, dtype=np.int32)
    ops = """
    %offset = arith.constant 4 : i32
    %width = arith.constant 32 : i32
    %r, %valid = gpu.shuffle down %a, %offset, %width : i32"""
    got = per_thread(ops, "i32", threads=40, a=("i32", values))
    assert got[32:36].tolist() == [36, 37, 38, 39]
    assert (got[36:].view(np.uint32) == 0xA5A5A5A5).all()


def test_vectors_are_exchanged_element_by_element():
    values = np.arange(32, dtype=np.float32)
    ops = """
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %double = arith.addf %a, %a : f32
    %v = vector.from_elements %a, %double : vector<2xf32>
    %w, %valid = gpu.shuffle xor %v, %one, %width : vector<2xf32>
    %x, %y = vector.to_elements %w : vector<2xf32>
    %r = arith.addf %x, %y : f32"""
    np.testing.assert_array_equal(per_thread(ops, "f32", a=("f32", values)), 3 * values[np.arange(32) ^ 1])


def test_a_launch_inside_a_kernel_is_refused_by_name_where_it_stands():
    ops = """
    %n = arith.constant 1 : index
    gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %n, %g1 = %n, %g2 = %n) threads(%t0, %t1, %t2) in (%l0 = %n, %l1 = %n, %l2 = %n) {
      gpu.terminator
    }
    %r = arith.addi %a, %a : i32"""
    with pytest.raises(Unsupported, match=r"no rule for op 'gpu\.launch'") as caught:
        per_thread(ops, "i32", a=("i32", np.arange(32)))
    assert caught.value.details
