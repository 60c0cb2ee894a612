"""Atomic updates: the same as an ordered loop in Python."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher

THREADS, BLOCKS, BINS = 16, 6, 5
LANES = THREADS * BLOCKS
BINS_OF = np.random.default_rng(0).integers(0, BINS, LANES)


def scatter(
    body: str, ir_type: str, values: np.ndarray, out: np.ndarray, guard: str = "", bins: np.ndarray = BINS_OF, **options
) -> np.ndarray:
    """Every thread updates the bin that %bins says for it; `body` makes %new from %old and its %value."""
    atomic = f"""%t = xla_gpu.atomic_rmw %out[%bin] : tensor<{BINS}x{ir_type}> {{
    ^bb0(%old: {ir_type}):
      {body}
      xla_gpu.yield %new : {ir_type}
    }}"""
    update = atomic
    if guard:
        update = f"""{guard}
    %t = scf.if %some -> (tensor<{BINS}x{ir_type}>) {{
      {atomic.replace("%t =", "%u =")}
      scf.yield %u : tensor<{BINS}x{ir_type}>
    }} else {{
      scf.yield %out : tensor<{BINS}x{ir_type}>
    }}"""
    module = parse_ir(f"""
func.func @main(%bins: tensor<{LANES}xindex>, %values: tensor<{LANES}x{ir_type}>, %out: tensor<{BINS}x{ir_type}>)
    -> tensor<{BINS}x{ir_type}> attributes {{xla.entry, {launch(THREADS, BLOCKS)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %width = arith.constant {THREADS} : index
  %first = arith.muli %block, %width : index
  %lane = arith.addi %first, %thread : index
  %bin = tensor.extract %bins[%lane] : tensor<{LANES}xindex>
  %value = tensor.extract %values[%lane] : tensor<{LANES}x{ir_type}>
  {update}
  return %t : tensor<{BINS}x{ir_type}>
}}""")
    (found,) = execute(module, [bins, values, out], results=1, **options)
    return found


class Stores(Watcher):
    """Counts accesses to the buffer of the result."""

    count = 0

    def access(self, memory: Memory, access: Access) -> None:
        self.count += access.buffer.number == 2


def one_by_one(combine, values: np.ndarray, out: np.ndarray, lanes=range(LANES)) -> np.ndarray:
    with np.errstate(over="ignore"):
        for lane in lanes:
            out[BINS_OF[lane]] = combine(out[BINS_OF[lane]], values[lane])
    return out


INTEGERS = {
    "addi": lambda a, b: a + b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "maxsi": max,
    "minsi": min,
    "maxui": lambda a, b: max(a, b, key=lambda n: int(n) % 2**64),
    "minui": lambda a, b: min(a, b, key=lambda n: int(n) % 2**64),
    "muli": lambda a, b: a * b,
    "subi": lambda a, b: a - b,
}


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, bits):
    numpy_type = np.dtype(f"i{bits // 8}")
    limits = np.iinfo(numpy_type)
    draw = np.random.default_rng(1)
    values = draw.integers(limits.min, limits.max, LANES, numpy_type, endpoint=True)
    start = draw.integers(limits.min, limits.max, BINS, numpy_type, endpoint=True)
    got = scatter(f"%new = arith.{name} %old, %value : i{bits}", f"i{bits}", values, start.copy())
    np.testing.assert_array_equal(got, one_by_one(INTEGERS[name], values, start.copy()))


@pytest.mark.parametrize("numpy_type", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("chunk_blocks", [1, 4, 6])
def test_sums_of_floats_keep_their_order(numpy_type, chunk_blocks):
    """Bit by bit, though adding in another order would round differently, by whichever way and however the blocks are cut."""
    ir_type = f"f{np.dtype(numpy_type).itemsize * 8}"
    values = (np.random.default_rng(2).normal(size=LANES) * 10).astype(numpy_type)
    wanted = one_by_one(np.add, values, np.ones(BINS, numpy_type))
    for body in (
        f"%new = arith.addf %old, %value : {ir_type}",
        f"%new = arith.addf %value, %old : {ir_type}",
        f"%zero = arith.constant 0.0 : {ir_type}\n%a = arith.addf %value, %zero : {ir_type}\n"
        f"%new = arith.addf %old, %a : {ir_type}",
    ):
        got = scatter(body, ir_type, values, np.ones(BINS, numpy_type), chunk_blocks=chunk_blocks)
        assert got.tobytes() == wanted.tobytes()


def test_a_body_of_its_own():
    """old * 3 + value depends on the order of the updates."""
    values = np.random.default_rng(3).integers(-9, 9, LANES, np.int32)
    body = "%three = arith.constant 3 : i32\n%m = arith.muli %old, %three : i32\n%new = arith.addi %m, %value : i32"
    got = scatter(body, "i32", values, np.zeros(BINS, np.int32))
    np.testing.assert_array_equal(got, one_by_one(lambda a, b: a * np.int32(3) + b, values, np.zeros(BINS, np.int32)))


@pytest.mark.parametrize("body", ["%new = arith.addi %old, %value : i32", "%new = arith.subi %old, %value : i32"])
def test_lanes_that_are_not_there_change_nothing(body):
    values = np.arange(LANES, dtype=np.int32)
    guard = "%c10 = arith.constant 10 : index\n%some = arith.cmpi uge, %lane, %c10 : index"
    got = scatter(body, "i32", values, np.zeros(BINS, np.int32), guard=guard)
    combine = np.add if "addi" in body else np.subtract
    np.testing.assert_array_equal(got, one_by_one(combine, values, np.zeros(BINS, np.int32), range(10, LANES)))


def test_the_last_one_wins_an_exchange():
    values = np.arange(LANES, dtype=np.int32)
    got = scatter(
        "%zero = arith.constant 0 : i32\n%new = arith.addi %value, %zero : i32", "i32", values, np.zeros(BINS, np.int32)
    )
    assert got.tolist() == [np.flatnonzero(BINS_OF == bin).max() for bin in range(BINS)]


def test_an_index_outside_is_an_error():
    out = np.zeros(BINS - 1, np.float32)
    text = f"""
func.func @main(%out: tensor<{BINS - 1}xf32>) -> tensor<{BINS - 1}xf32> attributes {{xla.entry, {launch(THREADS, 1)}}} {{
  %thread = gpu.thread_id x
  %one = arith.constant 1.0 : f32
  %t = xla_gpu.atomic_rmw %out[%thread] : tensor<{BINS - 1}xf32> {{
  ^bb0(%old: f32):
    %new = arith.addf %old, %one : f32
    xla_gpu.yield %new : f32
  }}
  return %t : tensor<{BINS - 1}xf32>
}}"""
    with pytest.raises(ExecutionError, match="thread 4 writes index 4 of argument 0, which has 4"):
        execute(parse_ir(text), [out])


def test_vectors_are_updated_whole():
    """Each thread adds (1, thread) to a pair; pairs are shared by four threads."""
    module = parse_ir(f"""
func.func @main(%out: tensor<8xf32>) -> tensor<8xf32> attributes {{xla.entry, {launch(THREADS, 1)}}} {{
  %thread = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c2 = arith.constant 2 : index
  %pair = arith.remui %thread, %c4 : index
  %at = arith.muli %pair, %c2 : index
  %one = arith.constant 1.0 : f32
  %n = arith.index_cast %thread : index to i32
  %f = arith.sitofp %n : i32 to f32
  %v = vector.from_elements %one, %f : vector<2xf32>
  %t = xla_gpu.atomic_rmw %out[%at] : tensor<8xf32> {{
  ^bb0(%old: vector<2xf32>):
    %new = arith.addf %old, %v : vector<2xf32>
    xla_gpu.yield %new : vector<2xf32>
  }}
  return %t : tensor<8xf32>
}}""")
    out = np.zeros(8, np.float32)
    execute(module, [out])
    assert out.reshape(4, 2).tolist() == [[4.0, sum(range(pair, 16, 4))] for pair in range(4)]


def test_blocks_do_not_meet_in_shared_memory():
    """Every block counts its own threads."""
    module = parse_ir(f"""
func.func @main(%out: tensor<{BLOCKS}xi32>) -> tensor<{BLOCKS}xi32> attributes {{xla.entry, {launch(THREADS, BLOCKS)}}} {{
  %block = gpu.block_id x
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %shared = xla_gpu.allocate_shared : tensor<1xi32>
  %cleared = tensor.insert %zero into %shared[%c0] : tensor<1xi32>
  %ready = xla_gpu.sync_threads %cleared : tensor<1xi32>
  %counted = xla_gpu.atomic_rmw %ready[%c0] : tensor<1xi32> {{
  ^bb0(%old: i32):
    %a = arith.addi %old, %one : i32
    %new = arith.addi %a, %one : i32
    xla_gpu.yield %new : i32
  }}
  %synced = xla_gpu.sync_threads %counted : tensor<1xi32>
  %v = tensor.extract %synced[%c0] : tensor<1xi32>
  %t = tensor.insert %v into %out[%block] : tensor<{BLOCKS}xi32>
  return %t : tensor<{BLOCKS}xi32>
}}""")
    out = np.zeros(BLOCKS, np.int32)
    execute(module, [out])
    assert out.tolist() == [2 * THREADS] * BLOCKS


def test_one_element_for_all_needs_no_turns():
    """All lanes go in one access: turns take a read and a write per lane."""
    values, everywhere_0 = np.ones(LANES, np.float32), np.zeros(LANES, np.int64)
    adding, taking = ("%new = arith.addf %old, %value : f32", "%new = arith.subf %old, %value : f32")
    for body, total, accesses in ((adding, LANES, 1), (taking, -LANES, 2 * LANES)):
        stores = Stores()
        got = scatter(body, "f32", values, np.zeros(BINS, np.float32), bins=everywhere_0, watchers=[stores])
        assert (got[0], stores.count) == (total, accesses)
