"""LLVM's atomic accesses: the same as an ordered loop in Python."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.runtime.simt import execute

THREADS, BLOCKS, BINS = 16, 3, 5
LANES = THREADS * BLOCKS
BINS_OF = np.random.default_rng(0).integers(0, BINS, LANES).astype(np.int32)


def run(body: str, *arrays: np.ndarray, globals: str = "", **options) -> None:
    """A kernel over pointers %p0, %p1 ...; %lane is the thread's number in the grid, %bin the bin of it."""
    arguments = ", ".join(f"%p{n}: !llvm.ptr" for n in range(len(arrays)))
    module = parse_ir(f"""
{globals}
llvm.func @main({arguments}, %bins: !llvm.ptr {{xla.invariant}}) attributes {{nvvm.kernel, {launch(THREADS, BLOCKS)}}} {{
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %bid = nvvm.read.ptx.sreg.ctaid.x : i32
  %width = llvm.mlir.constant({THREADS} : i32) : i32
  %row = llvm.mul %bid, %width : i32
  %lane = llvm.add %row, %tid : i32
  %binp = llvm.getelementptr %bins[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %bin = llvm.load %binp : !llvm.ptr -> i32
{body}
  llvm.return
}}""")
    execute(module, [*arrays, BINS_OF], **options)


def update(
    operation: str, ir_type: str, values: np.ndarray, start: np.ndarray, keep: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What the bins hold after each lane updated its own, and what each lane got, if it keeps that."""
    bins, got = start.copy(), np.zeros_like(values)
    keeping = f"""
  %gp = llvm.getelementptr %p2[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, {ir_type}
  llvm.store %old, %gp : {ir_type}, !llvm.ptr"""
    run(
        f"""
  %vp = llvm.getelementptr %p0[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, {ir_type}
  %v = llvm.load %vp : !llvm.ptr -> {ir_type}
  %p = llvm.getelementptr %p1[%bin] : (!llvm.ptr, i32) -> !llvm.ptr, {ir_type}
  %old = llvm.atomicrmw {operation} %p, %v monotonic : !llvm.ptr, {ir_type}
{keeping if keep else ""}""",
        values,
        bins,
        got,
    )
    return bins, got


def one_by_one(combine, values: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    bins, got = start.copy(), np.zeros_like(values)
    for lane, bin in enumerate(BINS_OF):
        got[lane] = bins[bin]
        bins[bin] = combine(bins[bin], values[lane])
    return bins, got


def natural(number, bits: int) -> int:
    return int(number) % (1 << bits)


def integer_operations(bits: int):
    def wrapped(number: int) -> int:
        number %= 1 << bits
        return number - (1 << bits) if number >= 1 << bits - 1 else number

    def unsigned(function):
        return lambda a, b: wrapped(function(natural(a, bits), natural(b, bits)))

    return {
        "xchg": lambda a, b: b,
        "add": lambda a, b: wrapped(int(a) + int(b)),
        "sub": lambda a, b: wrapped(int(a) - int(b)),
        "_and": lambda a, b: a & b,
        "nand": lambda a, b: ~(a & b),
        "_or": lambda a, b: a | b,
        "_xor": lambda a, b: a ^ b,
        "max": max,
        "min": min,
        "umax": unsigned(max),
        "umin": unsigned(min),
        "uinc_wrap": unsigned(lambda a, b: 0 if a >= b else a + 1),
        "udec_wrap": unsigned(lambda a, b: b if a == 0 or a > b else a - 1),
        "usub_cond": unsigned(lambda a, b: a - b if a >= b else a),
        "usub_sat": unsigned(lambda a, b: max(a - b, 0)),
    }


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("operation", integer_operations(8))
def test_integers(operation, bits):
    numpy_type = np.dtype(f"i{bits // 8}")
    limits, draw = np.iinfo(numpy_type), np.random.default_rng(1)
    values = draw.integers(limits.min, limits.max, LANES, numpy_type, endpoint=True)
    values[::3] = draw.integers(0, 4, values[::3].size)
    start = draw.integers(-3, 3, BINS, numpy_type, endpoint=True)
    wanted, wanted_old = one_by_one(integer_operations(bits)[operation], values, start)
    bins, got = update(operation, f"i{bits}", values, start, keep=True)
    np.testing.assert_array_equal(bins, wanted)
    np.testing.assert_array_equal(got, wanted_old)
    bins, _ = update(operation, f"i{bits}", values, start, keep=False)
    np.testing.assert_array_equal(bins, wanted)


FLOATS = {
    "xchg": lambda a, b: b,
    "fadd": np.add,
    "fsub": np.subtract,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmaximum": np.maximum,
    "fminimum": np.minimum,
}


@pytest.mark.parametrize(("ir_type", "numpy_type"), [("f32", np.float32), ("f64", np.float64), ("f16", np.float16)])
@pytest.mark.parametrize("operation", FLOATS)
def test_floats_keep_their_order(operation, ir_type, numpy_type):
    values = np.random.default_rng(2).normal(size=LANES).astype(numpy_type)
    values[7] = np.nan if operation != "fadd" else 3
    start = np.linspace(-1, 1, BINS).astype(numpy_type)
    wanted, wanted_old = one_by_one(FLOATS[operation], values, start)
    for keep in (True, False):
        bins, got = update(operation, ir_type, values, start, keep)
        np.testing.assert_array_equal(bins, wanted)
        np.testing.assert_array_equal(got, wanted_old if keep else np.zeros_like(got))


def test_vectors_are_updated_element_by_element():
    bins = np.zeros((BINS, 2), np.float32)
    run(
        """
  %f = llvm.sitofp %lane : i32 to f32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %u = llvm.mlir.poison : vector<2xf32>
  %v = llvm.insertelement %f, %u[%c0 : i32] : vector<2xf32>
  %w = llvm.insertelement %one, %v[%c1 : i32] : vector<2xf32>
  %p = llvm.getelementptr %p0[%bin] : (!llvm.ptr, i32) -> !llvm.ptr, vector<2xf32>
  %old = llvm.atomicrmw fadd %p, %w monotonic : !llvm.ptr, vector<2xf32>""",
        bins,
    )
    lanes = [np.flatnonzero(BINS_OF == bin) for bin in range(BINS)]
    assert bins.tolist() == [[own.sum(), own.size] for own in lanes]


PAIR = 'llvm.inline_asm has_side_effects "atom.global.v2.f32.add {$0, $1}, [$2], {$3, $4};", "=f,=f,l,f,f"'


def test_machine_code_that_adds_to_a_pair():
    """Each lane adds its number and 1; the second that a lane finds is how many came before it."""
    body = f"""
  %f = llvm.sitofp %lane : i32 to f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %p = llvm.getelementptr %p0[%bin] : (!llvm.ptr, i32) -> !llvm.ptr, vector<2xf32>
  %old = {PAIR} %p, %f, %one : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>"""
    keeping = """
  %before = llvm.extractvalue %old[1] : !llvm.struct<(f32, f32)>
  %q = llvm.getelementptr %p1[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.store %before, %q : f32, !llvm.ptr"""
    lanes = [np.flatnonzero(BINS_OF == bin) for bin in range(BINS)]
    for code in (body, body + keeping):
        bins, before = np.zeros((BINS, 2), np.float32), np.zeros(LANES, np.float32)
        run(code, bins, before)
        assert bins.tolist() == [[own.sum(), own.size] for own in lanes]
    assert before.tolist() == [lanes[bin].tolist().index(lane) for lane, bin in enumerate(BINS_OF)]


def test_machine_code_that_adds_to_a_pair_that_is_not_aligned():
    with pytest.raises(ExecutionError, match="uses an address that is not aligned to 8 bytes"):
        run(
            f"""
  %f = llvm.sitofp %lane : i32 to f32
  %p = llvm.getelementptr %p0[1] : (!llvm.ptr) -> !llvm.ptr, f32
  %old = {PAIR} %p, %f, %f : (!llvm.ptr, f32, f32) -> !llvm.struct<(f32, f32)>""",
            np.zeros(4, np.float32),
        )


def test_blocks_do_not_meet_in_shared_memory():
    """Every thread gets how many of its block came before it."""
    out = np.zeros(LANES, np.int32)
    run(
        """
  %shared = llvm.mlir.addressof @count : !llvm.ptr<3>
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.store %zero, %shared : i32, !llvm.ptr<3>
  nvvm.barrier0
  %old = llvm.atomicrmw add %shared, %one syncscope("block") acq_rel : !llvm.ptr<3>, i32
  llvm.fence syncscope("block") seq_cst
  %q = llvm.getelementptr %p0[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %old, %q : i32, !llvm.ptr""",
        out,
        globals="llvm.mlir.global internal @count() {addr_space = 3 : i32} : i32",
    )
    assert out.tolist() == list(range(THREADS)) * BLOCKS


@pytest.mark.parametrize("chunk_blocks", [1, 3])
def test_only_the_first_of_each_bin_succeeds(chunk_blocks):
    """Each lane tries to put its number plus 1 where 0 is."""
    bins, flags, olds = np.zeros(BINS, np.int32), np.zeros(LANES, np.int32), np.zeros(LANES, np.int32)
    run(
        """
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %mine = llvm.add %lane, %one : i32
  %p = llvm.getelementptr %p0[%bin] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %r = llvm.cmpxchg weak %p, %zero, %mine acq_rel monotonic : !llvm.ptr, i32
  %old = llvm.extractvalue %r[0] : !llvm.struct<(i32, i1)>
  %ok = llvm.extractvalue %r[1] : !llvm.struct<(i32, i1)>
  %flag = llvm.zext %ok : i1 to i32
  %q = llvm.getelementptr %p1[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %flag, %q : i32, !llvm.ptr
  %s = llvm.getelementptr %p2[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %old, %s : i32, !llvm.ptr""",
        bins,
        flags,
        olds,
        chunk_blocks=chunk_blocks,
    )
    first = [int(np.flatnonzero(BINS_OF == bin)[0]) for bin in range(BINS)]
    assert bins.tolist() == [lane + 1 for lane in first]
    assert np.flatnonzero(flags).tolist() == sorted(first)
    assert olds.tolist() == [0 if lane in first else first[bin] + 1 for lane, bin in enumerate(BINS_OF)]


@pytest.mark.parametrize("chunk_blocks", [1, 3])
def test_one_block_gets_what_the_same_thread_of_each_block_swaps(chunk_blocks):
    """A branch of thread 0 alone is the same in all blocks: the second block finds what the first put there."""
    flag, olds = np.zeros(1, np.int32), np.full(BLOCKS, -1, np.int32)
    run(
        """
  %zero = llvm.mlir.constant(0 : i32) : i32
  %mine = llvm.add %bid, %width : i32
  %is_first = llvm.icmp "eq" %tid, %zero : i32
  llvm.cond_br %is_first, ^swap, ^end
^swap:
  %r = llvm.cmpxchg %p0, %zero, %mine monotonic monotonic : !llvm.ptr, i32
  %old = llvm.extractvalue %r[0] : !llvm.struct<(i32, i1)>
  %q = llvm.getelementptr %p1[%bid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %old, %q : i32, !llvm.ptr
  llvm.br ^end
^end:""",
        flag,
        olds,
        chunk_blocks=chunk_blocks,
    )
    assert (flag.tolist(), olds.tolist()) == ([THREADS], [0] + [THREADS] * (BLOCKS - 1))


def test_a_loop_around_a_compare_and_exchange_adds_for_all():
    """The way in which adding a type that hardware lacks is emulated: lanes that fail try again."""
    bins = np.zeros(BINS, np.int32)
    run(
        """
  %p = llvm.getelementptr %p0[%bin] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %first = llvm.load %p : !llvm.ptr -> i32
  llvm.br ^try(%first : i32)
^try(%seen: i32):
  %sum = llvm.add %seen, %lane : i32
  %r = llvm.cmpxchg %p, %seen, %sum seq_cst seq_cst : !llvm.ptr, i32
  %found = llvm.extractvalue %r[0] : !llvm.struct<(i32, i1)>
  %ok = llvm.extractvalue %r[1] : !llvm.struct<(i32, i1)>
  llvm.cond_br %ok, ^done, ^try(%found : i32)
^done:""",
        bins,
    )
    assert bins.tolist() == [int(np.flatnonzero(BINS_OF == bin).sum()) for bin in range(BINS)]


@pytest.mark.parametrize(
    ("index", "message"),
    [("%far", r"llvm\.atomicrmw in block 0, thread 0 writes|reads index 99"), ("%odd", "not aligned to 4 bytes")],
)
@pytest.mark.parametrize("use", ["", "%use = llvm.add %old, %old : i32"])
def test_accesses_are_checked(index, message, use):
    body = f"""
  %far = llvm.mlir.constant(396 : i32) : i32
  %odd = llvm.mlir.constant(2 : i32) : i32
  %p = llvm.getelementptr %p0[{index}] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %old = llvm.atomicrmw add %p, %lane monotonic : !llvm.ptr, i32
  {use}"""
    with pytest.raises(ExecutionError, match=message):
        run(body, np.zeros(4, np.int32))
