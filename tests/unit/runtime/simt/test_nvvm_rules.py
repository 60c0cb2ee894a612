"""Exchange between the lanes of a warp, barriers with a result, asynchronous copies: against Python."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

VALUES = np.random.default_rng(0).integers(-(2**31), 2**31, 80).astype(np.int32)
ALL = "%all = arith.constant -1 : i32"


def warps(threads: int, count: int) -> list[range]:
    """The threads of each warp, of blocks of so many threads; a block's last one may be short."""
    starts = [block + start for block in range(0, count, threads) for start in range(0, threads, 32)]
    return [range(start, min(start + 32, start - start % threads + threads)) for start in starts]


def signed(number: int) -> int:
    number %= 1 << 32
    return number - (1 << 32) if number >> 31 else number


REDUX = {
    "add": lambda v: signed(sum(v)),
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
    "max": max,
    "min": min,
    "umax": lambda v: signed(max(n % 2**32 for n in v)),
    "umin": lambda v: signed(min(n % 2**32 for n in v)),
}


@pytest.mark.parametrize("kind", REDUX)
def test_redux(kind):
    """Also where the block's last warp is short."""
    ops = f"{ALL}\n%r = nvvm.redux.sync {kind} %a, %all : i32 -> i32"
    got = per_thread(ops, "i32", threads=40, a=("i32", VALUES))
    wanted = [int(REDUX[kind](VALUES[list(warp)].tolist())) for warp in warps(40, 80) for _ in warp]
    assert got.tolist() == wanted


@pytest.mark.parametrize(
    ("flags", "combine"),
    [
        ("fmin|", np.fmin),
        ("fmax|", np.fmax),
        ("fmin|{nan = true}", np.minimum),
        ("fmax|{abs = true}", lambda a, b: np.fmax(abs(a), abs(b))),
    ],
)
def test_redux_of_floats(flags, combine):
    kind, attributes = flags.split("|")
    values = np.random.default_rng(1).normal(size=64).astype(np.float32)
    values[5] = np.nan
    ops = f"{ALL}\n%r = nvvm.redux.sync {kind} %a, %all {attributes} : f32 -> f32"
    got = per_thread(ops, "f32", threads=64, a=("f32", values))
    wanted = [np.frompyfunc(combine, 2, 1).reduce(values[list(warp)]) for warp in warps(64, 64) for _ in warp]
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))


@pytest.mark.parametrize("kind", ["all", "any", "uni", "ballot"])
def test_votes(kind):
    flags = np.random.default_rng(2).integers(0, 2, 160).astype(np.bool_)
    flags[40:80], flags[80:120] = True, False
    ops = f"{ALL}\n%r = nvvm.vote.sync {kind} %all, %a -> {'i32' if kind == 'ballot' else 'i1'}"
    got = per_thread(ops, "i32" if kind == "ballot" else "i1", threads=40, a=("i1", flags))
    answers = {
        "all": lambda v: all(v),
        "any": lambda v: any(v),
        "uni": lambda v: all(v) or not any(v),
        "ballot": lambda v: signed(sum(1 << lane for lane, flag in enumerate(v) if flag)),
    }
    assert got.tolist() == [answers[kind](flags[list(warp)].tolist()) for warp in warps(40, 160) for _ in warp]


@pytest.mark.parametrize("ir_type", ["i32", "i64"])
def test_matches(ir_type):
    values = np.random.default_rng(3).integers(0, 4, 120).astype(ir_type.replace("i", "int"))
    values[:40] = 3
    got = per_thread(
        f"{ALL}\n%r = nvvm.match.sync any %all, %a : {ir_type} -> i32", "i32", threads=40, a=(ir_type, values)
    )
    wanted = [
        signed(sum(1 << lane for lane, other in enumerate(warp) if values[other] == values[thread]))
        for warp in warps(40, 120)
        for thread in warp
    ]
    assert got.tolist() == wanted
    struct = "!llvm.struct<(i32, i1)>"
    ops = f"""
    {ALL}
    %s = nvvm.match.sync all %all, %a : {ir_type} -> {struct}
    %r = llvm.extractvalue %s[{{}}] : {struct}"""
    same = [len(set(values[list(warp)].tolist())) == 1 for warp in warps(40, 120) for _ in warp]
    size = [len(warp) for warp in warps(40, 120) for _ in warp]
    got = per_thread(ops.format(1), "i1", threads=40, a=(ir_type, values))
    assert got.tolist() == same
    got = per_thread(ops.format(0), "i32", threads=40, a=(ir_type, values))
    assert got.tolist() == [signed((1 << n) - 1) if is_same else 0 for n, is_same in zip(size, same, strict=True)]


@pytest.mark.parametrize("order", ["eq", "le", "lt", "ge", "gt"])
def test_lane_masks(order):
    got = per_thread(f"%r = nvvm.read.ptx.sreg.lanemask.{order} : i32", "i32", threads=64, a=("i32", np.zeros(64)))
    below = {
        "eq": lambda other, lane: other == lane,
        "le": lambda other, lane: other <= lane,
        "lt": lambda other, lane: other < lane,
        "ge": lambda other, lane: other >= lane,
        "gt": lambda other, lane: other > lane,
    }[order]
    masks = [signed(sum(1 << other for other in range(32) if below(other, lane))) for lane in range(32)]
    assert got.tolist() == masks * 2


def test_one_lane_is_elected():
    got = per_thread("%r = nvvm.elect.sync -> i1", "i1", threads=64, a=("i32", np.zeros(64)))
    assert np.flatnonzero(got).tolist() == [0, 32]
    ops = """
    %few = arith.constant -16 : i32
    %four = arith.constant 4 : index
    %t = gpu.thread_id x
    %c = arith.cmpi uge, %t, %four : index
    %no = arith.constant false
    %r = scf.if %c -> (i1) {
      %e = nvvm.elect.sync %few -> i1
      scf.yield %e : i1
    } else {
      scf.yield %no : i1
    }"""
    assert np.flatnonzero(per_thread(ops, "i1", a=("i32", np.zeros(32)))).tolist() == [4]


@pytest.mark.parametrize("line", ["nvvm.bar.warp.sync %all : i32", "%v = nvvm.redux.sync add %a, %all : i32 -> i32"])
def test_all_lanes_of_the_mask_must_come(line):
    ops = f"""
    {ALL}
    %zero = arith.constant 0 : i32
    %c = arith.cmpi slt, %a, %zero : i32
    scf.if %c {{
      {line}
    }}
    %r = arith.addi %a, %all : i32"""
    with pytest.raises(ExecutionError, match="is not reached with the other threads of the warp"):
        per_thread(ops, "i32", a=("i32", np.arange(32, dtype=np.int32) - 3))
    np.testing.assert_array_equal(per_thread(ops, "i32", a=("i32", np.full(32, -3))), -4)


@pytest.mark.parametrize(("kind", "wanted"), [("popc", [3, 40, 0]), ("and", [0, 1, 0]), ("or", [1, 1, 0])])
def test_a_barrier_with_an_answer(kind, wanted):
    flags = np.zeros((3, 40), np.int32)
    flags[0, [1, 7, 39]], flags[1] = 5, -1
    got = per_thread(
        f"%r = nvvm.barrier #nvvm.reduction<{kind}> %a -> i32", "i32", threads=40, a=("i32", flags.reshape(-1))
    )
    assert got.tolist() == np.repeat(wanted, 40).tolist()


def test_reciprocals():
    x = np.array([1.0, -4.0, 0.0, -0.0, np.inf, 1e-40, 3e38, np.nan], np.float32)
    got = per_thread("%r = nvvm.rcp.approx.ftz.f %a : f32", "f32", a=("f32", x))
    np.testing.assert_array_equal(got, np.array([1.0, -0.25, np.inf, -np.inf, 0.0, np.inf, 0.0, np.nan], np.float32))


@pytest.mark.parametrize(("size", "cache"), [(4, "ca"), (8, "ca"), (16, "cg")])
def test_copies_beside_the_threads(size, cache):
    """Each thread brings so many bytes to shared memory, the last thread of each pair half as many; the others are zeros."""
    source = np.random.default_rng(4).integers(0, 256, (8, size), dtype=np.uint8)
    out = np.full((8, size), 1, np.uint8)
    text = f"""
llvm.mlir.global internal @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<{8 * size} x i8>
llvm.func @main(%p0: !llvm.ptr, %p1: !llvm.ptr) attributes {{nvvm.kernel, {launch(8, 1)}}} {{
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %size = llvm.mlir.constant({size} : i32) : i32
  %odd = llvm.and %tid, %one : i32
  %bytes = llvm.lshr %size, %odd : i32
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %to = llvm.getelementptr %tile[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<{size} x i8>
  %of = llvm.getelementptr %p0[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<{size} x i8>
  %global = llvm.addrspacecast %of : !llvm.ptr to !llvm.ptr<1>
  nvvm.cp.async.shared.global %to, %global, {size}, cache = {cache}, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
  nvvm.cp.async.commit.group
  nvvm.cp.async.wait.group 0
  nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async>}}
  nvvm.memory.barrier <cta>
  nvvm.barrier0
  %v = llvm.load %to {{alignment = 4 : i64}} : !llvm.ptr<3> -> vector<{size}xi8>
  %q = llvm.getelementptr %p1[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<{size} x i8>
  llvm.store %v, %q {{alignment = 4 : i64}} : vector<{size}xi8>, !llvm.ptr
  llvm.return
}}"""
    execute(parse_ir(text), [source, out])
    counts = np.where(np.arange(8) % 2, size // 2, size)[:, None]
    np.testing.assert_array_equal(out, np.where(np.arange(size) < counts, source, 0))


@pytest.mark.parametrize(
    "line",
    [
        "%v = nvvm.read.ptx.sreg.clock : i32",
        "%v = nvvm.read.ptx.sreg.smid : i32",
        "nvvm.cluster.arrive",
        "nvvm.breakpoint",
    ],
)
def test_what_a_cpu_does_not_have_is_refused_by_name_where_it_stands(line):
    name = line.split(" = ")[-1].split()[0]
    with pytest.raises(Unsupported, match=f"no rule for op '{name}'") as caught:
        per_thread(f"{line}\n%r = arith.addi %a, %a : i32", "i32", a=("i32", np.zeros(32)))
    assert name in "".join(caught.value.details) or ":" in "".join(caught.value.details)
