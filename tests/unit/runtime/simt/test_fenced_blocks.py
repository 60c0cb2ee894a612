"""Blocks that are ordered by a fence and a flag are no race, and the same without the fence, or without a look at the flag, are one.

Source: PTX ISA 8.8, chapter 8, "Release and acquire patterns"; CUDA C++ Programming Guide, "Memory Fence Functions", with the sum.
"""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.sanitizer import Sanitizer

START = """.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {
  .reg .b64 %x, %y, %f, %a, %b, %o; .reg .b32 %t, %c, %n, %v, %w, %i; .reg .pred %p, %q; .shared .b32 last;
  ld.param.u64 %x, [p0]; ld.param.u64 %y, [p1]; ld.param.u64 %f, [p2];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x; setp.eq.u32 %p, %t, 0;
  mad.wide.u32 %a, %c, 4, %x; mad.wide.u32 %b, %c, 4, %y;
"""
NUMBERS = np.arange(10, 16, dtype=np.int32)


def after(body: str, launch: str = "6x64") -> dict[int, np.ndarray]:
    """p0 holds numbers of blocks, p1 results of blocks, p2 counters; %a and %b are the block's own."""
    shape, _, _ = launch_of(launch)
    arrays = [NUMBERS.copy(), np.zeros(6, np.int32), np.zeros(8, np.int32)]
    return PtxKernel.read(HEAD + START + body + " ret; }", "k.ptx").run(arrays, shape, watchers=[Sanitizer()])


def race(body: str, launch: str = "6x64") -> str:
    with pytest.raises(ExecutionError, match="a race") as caught:
        after(body, launch)
    return caught.value.message


LAST_BLOCK = """
  @!%p bra J; ld.global.u32 %v, [%a]; mul.lo.u32 %v, %v, %v; st.global.u32 [%b], %v;
  FENCE atom.global.add.u32 %w, [%f], 1; st.shared.u32 [last], %w;
J: bar.sync 0; ld.shared.u32 %w, [last]; add.u32 %w, %w, 1; setp.ne.u32 %q, %w, %n; @%q bra E; @!%p bra E;
  mov.u32 %i, 0; mov.u32 %v, 0;
L: ld.global.u32 %w, [%y]; add.u32 %v, %v, %w; add.u64 %y, %y, 4; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %n; @%q bra L;
  st.global.u32 [%x], %v; st.global.u32 [%f], 0;
E:"""


@pytest.mark.parametrize("fence", ["membar.gl;", "fence.acq_rel.gpu;", "fence.sc.sys;"])
def test_the_last_block_adds_the_results_of_all(fence):
    found = after(LAST_BLOCK.replace("FENCE", fence).replace("[%x], %v", "[%f+4], %v"))
    assert found[2].tolist()[:2] == [0, int((NUMBERS**2).sum())]


def test_a_release_is_a_fence():
    found = after(LAST_BLOCK.replace("FENCE atom", "atom.acq_rel.gpu").replace("[%x], %v", "[%f+4], %v"))
    assert found[2][1] == (NUMBERS**2).sum()


@pytest.mark.parametrize("fence", ["", "membar.cta;", "fence.acq_rel.cta;"])
def test_without_a_fence_of_the_device_it_is_a_race(fence):
    assert "which thread 0 of block" in race(LAST_BLOCK.replace("FENCE", fence))


def test_a_block_that_does_not_look_at_the_flag_is_in_a_race():
    body = LAST_BLOCK.replace("FENCE", "membar.gl;").replace(
        "atom.global.add.u32 %w, [%f], 1", "atom.global.add.u32 %w, [%f+FAR], 1"
    )
    own = "shl.b32 %i, %c, 2; cvt.u64.u32 %o, %i; add.u64 %f, %f, %o; mov.u32 %n, 1;"
    assert "which thread 0 of block" in race(
        own + body.replace("+FAR", "").replace("setp.lt.u32 %q, %i, %n", "setp.lt.u32 %q, %i, 6")
    )


HANDSHAKE = """
  setp.eq.u32 %q, %c, 0; @!%p bra E; @%q bra PRODUCER;
W: LOAD %v, [%f]; setp.eq.u32 %q, %v, 0; @%q bra W; ld.global.u32 %v, [%x]; st.global.u32 [%b], %v; bra E;
PRODUCER: st.global.u32 [%x], 77; FENCE STORE
E:"""


@pytest.mark.parametrize(
    ("load", "fence", "store"),
    [
        ("ld.acquire.gpu.global.u32", "", "st.release.gpu.global.u32 [%f], 1;"),
        ("ld.volatile.global.u32", "membar.gl;", "st.volatile.global.u32 [%f], 1;"),
        ("ld.relaxed.gpu.global.u32", "fence.acq_rel.gpu;", "red.relaxed.gpu.global.add.u32 [%f], 1;"),
        ("ld.acquire.gpu.global.u32", "", "atom.release.gpu.global.exch.b32 %w, [%f], 1;"),
    ],
)
def test_a_block_waits_for_the_flag_of_another(load, fence, store):
    body = HANDSHAKE.replace("LOAD", load).replace("FENCE", fence)
    assert after(body.replace("STORE", store), "2x32")[1].tolist()[:2] == [0, 77]
    assert "thread 0 of block 0 wrote" in race(
        body.replace("STORE", store).replace(".release", ".relaxed").replace(fence, ""), "2x32"
    )


def test_what_is_stored_between_a_fence_and_its_flag_is_not_ordered():
    body = HANDSHAKE.replace("LOAD", "ld.relaxed.gpu.global.u32").replace(
        "global.u32 %v, [%x]", "global.u32 %v, [%x+4]"
    )
    body = body.replace("STORE", "st.relaxed.gpu.global.u32 [%f], 1;")
    store, fence = "st.global.u32 [%x+4], 5;", "fence.acq_rel.gpu;"
    assert after(body.replace("FENCE", store + fence), "2x32")[1][1] == 5
    assert "reads bytes 4 to 7 of argument 0" in race(body.replace("FENCE", fence + store), "2x32")
    # A barrier after the fence is none of another block's.
    last = LAST_BLOCK.replace("FENCE atom", "atom").replace("[%x], %v", "[%f+4], %v")
    last = last.replace("@!%p bra J; ld", "@!%p bra J; {} ld").replace("atom.global.add", "{} atom.global.add")
    assert after(last.format("", "membar.gl;"))[2][1] == (NUMBERS**2).sum()
    race(last.format("membar.gl;", ""))


ATOMIC = "mov.u64 %o, 1; @%p red.global.add.u32 [%f], 1; setp.eq.u32 %q, %t, 33; "


@pytest.mark.parametrize(
    ("access", "width"),
    [
        ("@%q red.global.add.u64 [%f], 1;", 8),
        ("@%q ld.relaxed.gpu.global.u64 %o, [%f];", 8),
        ("@%q atom.global.cas.b64 %o, [%f], 0, 1;", 8),
        ("@%q st.volatile.global.u64 [%f], %o;", 8),
        ("@%q red.global.add.noftz.f16x2 [%f], %v;", 2),
    ],
)
def test_atomic_accesses_of_other_bytes_are_a_race(access, width):
    """PTX ISA 8.8, 8.7.1 "Moral strength": both must overlap completely. Vectors and packed types are one access for each element."""
    assert f"updated 4 bytes at a time, not {width}: a race" in race(ATOMIC + access, "1x64")
    after(ATOMIC + "bar.sync 0;" + access, "1x64")
    after(ATOMIC + access.replace("[%f]", "[%f+8]"), "1x64")
    # Whoever comes first.
    turned = (
        ATOMIC.replace("@%p red.global.add.u32 [%f], 1;", "")
        + access.replace("@%q", "@%p")
        + "@%q red.global.add.u32 [%f], 1;"
    )
    assert f"{width} bytes at a time, not 4: a race" in race(turned, "1x64")


@pytest.mark.parametrize(
    "access",
    [
        "@%q ld.relaxed.gpu.global.v2.u32 {%v, %w}, [%f];",
        "@%q ld.acquire.gpu.global.v2.u32 {%v, %w}, [%f];",
        "@%q ld.volatile.global.v2.u32 {%v, %w}, [%f];",
        "@%q st.release.gpu.global.v2.u32 [%f], {%t, %t};",
        "@%q st.relaxed.sys.global.v4.b32 [%f], {%t, %t, %t, %t};",
    ],
)
def test_a_vector_is_accessed_element_by_element(access):
    after(ATOMIC + access, "1x64")
    race(
        ATOMIC
        + access.replace(".relaxed.gpu", "")
        .replace(".relaxed.sys", "")
        .replace(".acquire.gpu", "")
        .replace(".release.gpu", "")
        .replace(".volatile", ""),
        "1x64",
    )


def test_a_vector_hands_on_what_its_release_orders():
    body = HANDSHAKE.replace("FENCE", "").replace("LOAD %v, [%f]", "ld.acquire.gpu.global.v2.u32 {%v, %w}, [%f]")
    store = "st.release.gpu.global.v2.u32 [%f], {%n, %n};"
    assert after(body.replace("STORE", store), "2x32")[1][1] == 77
    race(body.replace("STORE", store.replace("release", "relaxed")), "2x32")


def test_reads_are_in_no_race_with_each_other():
    """Atomic ones and others, of any scope and width."""
    reads = "@%p ld.volatile.global.u32 %v, [%f]; @%q ld.relaxed.cta.global.u64 %o, [%f]; ld.global.u32 %w, [%f];"
    after("setp.eq.u32 %q, %t, 33;" + reads)
    race("setp.eq.u32 %q, %t, 33;" + reads + "@%p st.global.u32 [%f], 1;")


@pytest.mark.parametrize(
    "access",
    [
        "red.relaxed.SCOPE.global.add.u32 [%f], 1;",
        "atom.SCOPE.global.add.u32 %w, [%f], 1;",
        "atom.acq_rel.SCOPE.global.cas.b32 %w, [%f], 0, 1;",
        "red.global.add.u32 [%f], 1; st.relaxed.SCOPE.global.u32 [%f], 1;",
        "red.global.add.u32 [%f], 1; ld.relaxed.SCOPE.global.u32 %w, [%f];",
        "st.relaxed.SCOPE.global.u32 [%f], 1; red.global.add.u32 [%f], 1;",
    ],
)
def test_scopes_of_a_block_are_not_between_blocks(access):
    """PTX ISA 8.8, 8.7.1 "Moral strength": the scope of each has the other's thread."""
    for scope in ("gpu", "sys", "cluster"):
        after(access.replace("SCOPE", scope), "4x64")
    after(access.replace("SCOPE", "cta").replace("[%f]", "[%a]"), "4x64")
    after(access.replace("SCOPE", "cta"), "1x64")
    found = race(access.replace("SCOPE", "cta"), "4x64")
    assert "its block alone" in found or "reads atomically" in found


def test_a_scope_of_a_block_may_end_at_a_barrier_of_the_grid():
    own = "red.relaxed.cta.global.add.u32 [%a], 1; bar.sync 0;" + GRID.replace("NUMBER", "0")
    body = own + NEIGHBOUR.replace("ld.global", "ld.relaxed.gpu.global") + "@%p st.global.u32 [%b], %v;"
    np.testing.assert_array_equal(after(body)[1], np.roll(NUMBERS + 64, -1))
    race(body.replace(GRID.replace("NUMBER", "0"), ""))


GRID = """
  @!%p bra B1; membar.gl; atom.global.add.u32 %w, [%f+NUMBER], 1;
W1: ld.volatile.global.u32 %w, [%f+NUMBER]; setp.lt.u32 %q, %w, %n; @%q bra W1;
B1: bar.sync 0;"""
NEIGHBOUR = "add.u32 %i, %c, 1; setp.eq.u32 %q, %i, %n; selp.u32 %i, 0, %i, %q; mad.wide.u32 %a, %i, 4, %x; ld.global.u32 %v, [%a];"
ALL = "ld.global.u32 %w, [%x+4]; add.u32 %v, %v, %w;"


@pytest.mark.parametrize("more", ["", ALL], ids=["one reader", "several readers"])
def test_barriers_of_the_whole_grid(more):
    first, second = (
        GRID.replace("NUMBER", "0"),
        GRID.replace("NUMBER", "4").replace("1:", "2:").replace("W1;", "W2;").replace("B1;", "B2;"),
    )
    own = "@%p ld.global.u32 %v, [%a]; add.u32 %v, %v, 100; @%p st.global.u32 [%a], %v; mov.u32 %v, 0;"
    write = " setp.eq.u32 %p, %t, 0; mad.wide.u32 %a, %c, 4, %x; @%p st.global.u32 [%a], %v;"
    values = NUMBERS + 100
    found = after(own + first + NEIGHBOUR + more + second + write)
    np.testing.assert_array_equal(found[0], np.roll(values, -1) + (values[1] if more else 0))
    race(own + first + NEIGHBOUR + more + write)
    race(own + NEIGHBOUR + more + second + write)


PARTS = """
  setp.eq.u32 %q, %c, 0; @%q bra PRODUCER;
  @!%p bra B; W: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %q, %v, 0; @%q bra W;
B: MEET setp.eq.u32 %q, %t, READER; @%q ld.global.u32 %v, [%x]; @%q st.global.u32 [%b], %v; bra E;
PRODUCER: setp.eq.u32 %q, %t, WRITER; @%q st.global.u32 [%x], 77; HAND OVER @%p st.relaxed.gpu.global.u32 [%f], 1;
E:"""
FENCE = "@%p fence.acq_rel.gpu;"


@pytest.mark.parametrize(
    ("writer", "hand_over"),
    [
        (0, FENCE),
        (1, "bar.warp.sync -1;" + FENCE),
        (40, "bar.sync 0;" + FENCE),
        (40, "bar.sync 3, 64;" + FENCE),
        (40, "membar.gl; bar.sync 0;"),
    ],
)
@pytest.mark.parametrize(
    ("reader", "meet"), [(0, ""), (1, "bar.warp.sync -1;"), (40, "bar.sync 0;"), (40, "bar.sync 3, 64;")]
)
def test_threads_of_the_blocks_meet_before_the_fence_and_behind_the_flag(writer, hand_over, reader, meet):
    body = PARTS.replace("WRITER", str(writer)).replace("READER", str(reader))
    found = after(body.replace("HAND OVER", hand_over).replace("MEET", meet), "2x64")
    assert found[1].tolist()[:2] == [0, 77]
    if reader == 40:
        assert f"which thread {writer} of block 0 wrote" in race(
            body.replace("HAND OVER", hand_over).replace("MEET", ""), "2x64"
        )
    if writer == 40:
        for part in hand_over.split(";")[:-1]:
            race(body.replace("HAND OVER", hand_over.replace(part + ";", "")).replace("MEET", meet), "2x64")
    # Warps that meet without the one that has looked, or that stored, have not met it.
    apart = "setp.ge.u32 %q, %t, 32; @%q bar.sync 3, 32;"
    if reader == 40:
        race(body.replace("HAND OVER", hand_over).replace("MEET", apart), "2x64")
    if writer == 40:
        race(body.replace("HAND OVER", apart + FENCE).replace("MEET", meet), "2x64")


def test_a_lock():
    body = """ @!%p bra E;
    W: atom.acquire.gpu.global.cas.b32 %w, [%f], 0, 1; setp.ne.u32 %q, %w, 0; @%q bra W;
    ld.global.u32 %v, [%y]; add.u32 %v, %v, %c; st.global.u32 [%y], %v;
    st.release.gpu.global.u32 [%f], 0;
    E:"""
    assert after(body)[1][0] == 15
    race(body.replace("st.release", "st.relaxed"))


def test_threads_of_one_block_that_look_at_no_flag_are_not_ordered_by_fences():
    body = "setp.eq.u32 %q, %t, 40; @%p st.global.u32 [%b], 1; membar.gl; @%p red.global.add.u32 [%f], 1; @%q st.global.u32 [%b], 2;"
    assert "thread 0 of its block wrote" in race(body)


def test_a_memory_barrier_of_the_dialect_is_a_fence():
    text = """llvm.func @k(%p0: !llvm.ptr, %p1: !llvm.ptr) attributes {nvvm.kernel, LAUNCH} {
      %t = nvvm.read.ptx.sreg.ctaid.x : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %p = llvm.getelementptr %p0[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      llvm.store %two, %p : i32, !llvm.ptr
      nvvm.memory.barrier <SCOPE>
      %n = llvm.atomicrmw add %p1, %one monotonic : !llvm.ptr, i32
      %is_last = llvm.icmp "eq" %n, %one : i32
      llvm.cond_br %is_last, ^last, ^end
    ^last:
      %sum = llvm.load %p0 : !llvm.ptr -> i32
      llvm.store %sum, %p1 : i32, !llvm.ptr
      llvm.br ^end
    ^end:
      llvm.return
    }""".replace("LAUNCH", launch(1, 2))
    arrays = [np.zeros(2, np.int32), np.zeros(1, np.int32)]
    execute(parse_ir(text.replace("SCOPE", "gpu")), arrays, watchers=[Sanitizer()])
    assert arrays[1].tolist() == [2]
    arrays[1][:] = 0
    with pytest.raises(ExecutionError, match=r"block 1, thread 0 reads .* which thread 0 of block 0 wrote: a race"):
        execute(parse_ir(text.replace("SCOPE", "cta")), arrays, watchers=[Sanitizer()])


WHOLE_BLOCK_WAITS = """
L: bar.sync 0; @!%p bra B; atom.global.acq_rel.gpu.cas.b32 %w, [%f], 0, 1; st.shared.u32 [last], %w;
B: bar.sync 0; ld.shared.u32 %w, [last]; setp.eq.u32 %q, %w, 1; @%q bra L;
  ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; bar.sync 0;
  @!%p bra E; st.global.u32 [%x], %v; RELEASE
E:"""


@pytest.mark.parametrize(
    "release", ["atom.global.acq_rel.gpu.exch.b32 %w, [%f], 0;", "st.release.gpu.global.u32 [%f], 0;"]
)
def test_a_lock_for_which_whole_blocks_wait(release):
    """Each round of a block that waits writes its shared memory: Triton has one thread ask, and tell the others."""
    assert after(WHOLE_BLOCK_WAITS.replace("RELEASE", release), "5x64")[0][0] == NUMBERS[0] + 5
