"""Barriers of some threads, `mbarrier`, and copies that complete them: who waits, who has arrived, what is ordered."""

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, run_checked

from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.support.limits import limited_iterations

START = """.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<9>; .shared .align 16 .b8 s[2048]; .shared .align 8 .b64 bar[4];
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar;
  mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2; mad.lo.u32 %r4, %r1, 4, %r2;
"""
INIT = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [%r3], {count}; bar.sync 0;"
WAIT = """
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], {parity}; @!%p2 bra W;
"""


def executed(body: str, threads: int = 128, blocks: int = 1, more: str = "") -> np.ndarray:
    """What the second array holds afterwards; the first is 0, 1, 2 ... The sanitizer watches."""
    kernel = PtxKernel.read(HEAD + more + START + body + " ret; }", "b.ptx")
    arrays = [np.arange(threads, dtype=np.uint32), np.zeros(threads, np.uint32)]
    launch = launch_of(f"{blocks}x{threads}")[0]
    with limited_iterations(1000):
        return run_checked(kernel, arrays, launch)[1]


def test_a_barrier_of_some_threads() -> None:
    """Each half of the block has its own barrier and mirrors its half."""
    body = """
      ld.global.u32 %r5, [%rd3]; st.shared.u32 [%r4], %r5; shr.u32 %r6, %r1, 6; add.u32 %r7, %r6, 1;
      setp.lt.u32 %p1, %r1, 64; @%p1 bra A; bar.sync 2, 64; bra B; A: bar.sync 1, 64; B:
      xor.b32 %r8, %r1, 63; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;
    """
    np.testing.assert_array_equal(executed(body), np.arange(128) ^ 63)


def test_arrivals_are_counted() -> None:
    """The first half arrives and goes on; the second half waits for it."""
    body = """
      setp.lt.u32 %p1, %r1, 64; @!%p1 bra SECOND;
      ld.global.u32 %r5, [%rd3]; st.shared.u32 [%r4], %r5; bar.arrive 3, 128; bra END;
      SECOND: bar.sync 3, 128; ld.shared.u32 %r10, [%r4+-256]; st.global.u32 [%rd4], %r10; END:
    """
    np.testing.assert_array_equal(executed(body), np.concatenate([np.zeros(64), np.arange(64)]))


def test_reductions_of_some_threads() -> None:
    body = """
      setp.lt.u32 %p1, %r1, 64; setp.lt.u32 %p3, %r1, 5; mov.u32 %r10, 0; @!%p1 bra END;
      bar.red.popc.u32 %r10, 1, 64, %p3; END: st.global.u32 [%rd4], %r10;
    """
    np.testing.assert_array_equal(executed(body), np.where(np.arange(128) < 64, 5, 0))


_MIRROR = "xor.b32 %r8, %r1, 63; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;"


@pytest.mark.parametrize(
    "body",
    [
        "setp.ge.u32 %p1, %r1, 64; @%p1 bra END; st.shared.u32 [%r4], %r1; bar.sync 0;" + _MIRROR + "END:",
        # The second half ends after a barrier of its own, while the first one waits.
        """setp.ge.u32 %p1, %r1, 64; @%p1 bra LAST; st.shared.u32 [%r4], %r1;
        setp.ge.u32 %p3, %r1, 0; bar.red.and.pred %p4, 0, %p3; @!%p4 mov.u32 %r2, 4096;"""
        + _MIRROR
        + "bra END; LAST: bar.sync 1, 64; END:",
    ],
)
def test_a_barrier_does_not_wait_for_warps_that_have_ended(body: str) -> None:
    """CUDA C++ Programming Guide, "Independent Thread Scheduling": a barrier is reached by all threads that have not exited."""
    np.testing.assert_array_equal(executed(body), np.where(np.arange(128) < 64, np.arange(128) ^ 63, 0))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("setp.lt.u32 %p1, %r1, 64; @%p1 bar.sync 1, 128;", "waits for threads that never come"),
        ("bar.sync 16;", "16 is no number of a barrier"),
        ("bar.sync 1, 32;", "is reached by more than 32 threads"),
        ("setp.lt.u32 %p1, %r1, 33; @%p1 bar.sync 0;", "is not reached with the other threads of the block"),
        ("setp.ge.u32 %p1, %r1, 64; @%p1 ret; bar.sync 1, 128;", "waits for threads that never come"),
        ("bar.sync 1, 33;", "multiples of 32"),
        ("mbarrier.arrive.shared.b64 %rd5, [%r3];", "which no thread wrote"),
        (INIT.format(count=64) + "mbarrier.arrive.shared.b64 %rd5, [%r3];", "more often than the barrier expects"),
        ("add.u32 %r5, %r3, 4; mbarrier.init.shared.b64 [%r5], 1;", "not aligned to 8 bytes"),
        (INIT.format(count=0), "expects no arrival"),
        ("mbarrier.init.shared.b64 [%r3], 1, 2;", "takes 2 operands"),
        (INIT.format(count=1) + WAIT.format(parity=0), "never ends|more than 1000 rounds"),
    ],
)
def test_faults(body: str, message: str) -> None:
    with pytest.raises(XlaEmittersError, match=message):
        executed(body)


def test_a_barrier_in_memory() -> None:
    """Everybody arrives, and waits for the phase: what others wrote before is there. Two phases, by parity and by token."""
    body = (
        INIT.format(count=128)
        + """
      ld.global.u32 %r5, [%rd3]; st.shared.u32 [%r4], %r5; mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [%r3];
    """
        + WAIT.format(parity=0)
        + """
      xor.b32 %r8, %r1, 127; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9];
      mbarrier.arrive.shared.b64 %rd6, [%r3];
      V: mbarrier.test_wait.shared.b64 %p2, [%r3], %rd6; @!%p2 bra V;
      st.shared.u32 [%r4], %r10; st.global.u32 [%rd4], %r10;
    """
    )
    np.testing.assert_array_equal(executed(body, blocks=1), np.arange(128) ^ 127)


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_its_initialisation_is_ordered_before_other_threads_use_it(barrier: str) -> None:
    """PTX ISA 8.8, "mbarrier.init": an access of an object in memory, which the operations of other threads on it race with."""
    body = INIT.format(count=128).replace("bar.sync 0;", barrier)
    body += "mbarrier.arrive.shared::cta.b64 %rd5, [%r3];" + WAIT.format(parity=0) + "st.global.u32 [%rd4], %r1;"
    if barrier:
        np.testing.assert_array_equal(executed(body), np.arange(128))
        return
    with pytest.raises(ExecutionError, match="of @bar, which thread 0 of its block wrote: a race"):
        executed(body)


def test_without_the_wait_it_is_a_race() -> None:
    body = (
        INIT.format(count=128)
        + """
      st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 %rd5, [%r3];
      xor.b32 %r8, %r1, 127; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9];
    """
    )
    with pytest.raises(ExecutionError, match="a race"):
        executed(body)


def test_counts_of_arrivals_and_tokens() -> None:
    body = (
        INIT.format(count=300)
        + """
      setp.eq.u32 %p1, %r1, 0; @!%p1 bra END; mbarrier.arrive.shared.b64 %rd5, [%r3], 100;
      mbarrier.arrive.shared.b64 %rd6, [%r3], 100; mbarrier.pending_count.b64 %r5, %rd5; mbarrier.pending_count.b64 %r6, %rd6;
      st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+4], %r6;
      mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 1, 2, %p3; st.global.u32 [%rd2+8], %r7;
      mbarrier.arrive_drop.shared.b64 %rd6, [%r3], 100;
      mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 1, 2, %p3; st.global.u32 [%rd2+12], %r7;
      mbarrier.arrive.shared.b64 %rd6, [%r3]; mbarrier.pending_count.b64 %r6, %rd6; st.global.u32 [%rd2+16], %r6;
      mbarrier.inval.shared.b64 [%r3]; END:
    """
    )
    assert executed(body)[:5].tolist() == [300, 200, 2, 1, 200]


def test_the_last_arrival_of_a_thread_may_expect_bytes() -> None:
    """PTX ISA, "mbarrier.arrive_drop": the phase ends when its bytes are there; the next phase expects one arrival less."""
    body = (
        INIT.format(count=2)
        + """
      setp.eq.u32 %p1, %r1, 0; @!%p1 bra END; mbarrier.arrive.shared.b64 _, [%r3];
      mbarrier.arrive_drop.expect_tx.shared.b64 _, [%r3], 8;
      mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 1, 2, %p3; st.global.u32 [%rd2], %r7;
      mbarrier.complete_tx.shared::cta.b64 [%r3], 8;
      mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 1, 2, %p3; st.global.u32 [%rd2+4], %r7;
      mbarrier.arrive.shared.b64 %rd6, [%r3]; mbarrier.pending_count.b64 %r6, %rd6; st.global.u32 [%rd2+8], %r6; END:
    """
    )
    assert executed(body)[:3].tolist() == [2, 1, 1]


def test_a_bulk_copy_completes_a_barrier() -> None:
    """One thread expects 512 bytes and copies them; all wait, then one writes them back, mirrored by words."""
    body = (
        INIT.format(count=1)
        + """
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 512, [%r3];
    """
        + WAIT.format(parity=0)
        + """
      xor.b32 %r8, %r1, 127; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; add.u32 %r11, %r4, 1024;
      st.shared.u32 [%r11], %r10; fence.proxy.async.shared::cta; bar.sync 0; add.u32 %r12, %r2, 1024;
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r12], 512;
      @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0;
    """
    )
    np.testing.assert_array_equal(executed(body), np.arange(128) ^ 127)
    for fence in ("", "fence.proxy.async.global;", "fence.acq_rel.cta;"):
        with pytest.raises(ExecutionError, match=r"wrote without fence\.proxy\.async"):
            executed(body.replace("fence.proxy.async.shared::cta;", fence))
    by_one = body.replace("fence.proxy.async.shared::cta; bar.sync 0;", "bar.sync 0; @%p1 fence.proxy.async;")
    np.testing.assert_array_equal(executed(by_one), np.arange(128) ^ 127)
    with pytest.raises(ExecutionError, match="a race"):
        executed(body.replace("bar.sync 0; add.u32 %r12", "add.u32 %r12"))


def test_a_copy_of_other_bytes_than_expected_is_waited_for_in_vain() -> None:
    body = (
        INIT.format(count=1)
        + """
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];
    """
        + WAIT.format(parity=0)
    )
    with pytest.raises(ExecutionError, match=r"never ends|more than 1000 rounds"):
        executed(body)
    with pytest.raises(ExecutionError, match="no multiple of 16"):
        executed(body.replace("256", "250"))


def test_threads_wait_for_another_branch() -> None:
    """The first half consumes what the second half produces, through two places: four rounds, by parity."""
    body = """
      .reg .b64 %t; setp.eq.u32 %p1, %r1, 0; @!%p1 bra READY;
      mbarrier.init.shared.b64 [%r3], 64; mbarrier.init.shared.b64 [%r3+8], 64;
      mbarrier.init.shared.b64 [%r3+16], 64; mbarrier.init.shared.b64 [%r3+24], 64;
      READY: bar.sync 0; mov.u32 %r5, 0; mov.u32 %r10, 0; and.b32 %r6, %r1, 63; setp.lt.u32 %p4, %r1, 64; @%p4 bra CONSUMER;
      PRODUCER: and.b32 %r7, %r5, 1; shr.u32 %r8, %r5, 1; xor.b32 %r8, %r8, 1; mad.lo.u32 %r9, %r7, 8, %r3;
      { W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9+16], %r8; @!%p2 bra W; }
      mad.lo.u32 %r11, %r7, 256, %r2; mad.lo.u32 %r11, %r6, 4, %r11; mad.lo.u32 %r12, %r5, 1000, %r6;
      st.shared.u32 [%r11], %r12; mbarrier.arrive.shared.b64 %t, [%r9];
      add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra PRODUCER; bra END;
      CONSUMER: and.b32 %r7, %r5, 1; shr.u32 %r8, %r5, 1; mad.lo.u32 %r9, %r7, 8, %r3;
      { W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r8; @!%p2 bra W; }
      mad.lo.u32 %r11, %r7, 256, %r2; xor.b32 %r13, %r6, 63; mad.lo.u32 %r11, %r13, 4, %r11;
      ld.shared.u32 %r12, [%r11]; mad.lo.u32 %r10, %r10, 3, %r12; mbarrier.arrive.shared.b64 %t, [%r9+16];
      add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra CONSUMER; st.global.u32 [%rd4], %r10; END:
    """
    want = np.zeros(128, np.int64)
    for step in range(4):
        want[:64] = 3 * want[:64] + 1000 * step + np.arange(63, -1, -1)
    np.testing.assert_array_equal(executed(body), want)


def test_several_barriers_in_one_instruction() -> None:
    """Each warp its own, then each half its own; the number is in a register."""
    body = """
      ld.global.u32 %r5, [%rd3]; st.shared.u32 [%r4], %r5; shr.u32 %r6, %r1, 5; add.u32 %r6, %r6, 1; bar.sync %r6, 32;
      xor.b32 %r8, %r1, 31; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; shr.u32 %r6, %r1, 6; add.u32 %r6, %r6, 5;
      bar.sync %r6, 64; st.shared.u32 [%r4], %r10; bar.sync %r6, 64;
      xor.b32 %r8, %r1, 63; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; setp.lt.u32 %p1, %r10, 3;
      bar.red.popc.u32 %r11, %r6, 64, %p1; mad.lo.u32 %r10, %r11, 1000, %r10; st.global.u32 [%rd4], %r10;
    """
    threads = np.arange(128)
    np.testing.assert_array_equal(executed(body), (threads ^ 31 ^ 63) + 3000 * (threads < 64))


def test_branches_meet_at_a_barrier() -> None:
    """Three warps at one instruction, one at another: one barrier of 128 threads, and its reduction over all of them."""
    body = """
      setp.lt.u32 %p3, %r1, 5; mov.u32 %r10, 0; setp.lt.u32 %p1, %r1, 96; @%p1 bra A;
      bar.red.popc.u32 %r10, 1, 128, %p1; bra END; A: bar.red.popc.u32 %r10, 1, 128, %p3; END: st.global.u32 [%rd4], %r10;
    """
    np.testing.assert_array_equal(executed(body), np.full(128, 5))
    with pytest.raises(ExecutionError, match="waits for threads that never come"):
        executed("setp.lt.u32 %p1, %r1, 64; @%p1 bra A; bar.sync 1, 128; bra END; A: bar.sync 2, 128; END:")


def test_asynchronous_copies_arrive() -> None:
    body = (
        INIT.format(count=128)
        + """
      cp.async.ca.shared.global [%r4], [%rd3], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];
    """
        + WAIT.format(parity=0)
        + "ld.shared.u32 %r10, [%r4]; st.global.u32 [%rd4], %r10;"
    )
    np.testing.assert_array_equal(executed(body), np.arange(128))


def test_a_block_is_its_own_cluster() -> None:
    body = """
      st.shared.u32 [%r4], %r1; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      mov.u32 %r5, 0; mapa.shared::cluster.u32 %r6, %r2, %r5; xor.b32 %r8, %r1, 127; mad.lo.u32 %r9, %r8, 4, %r6;
      ld.shared::cluster.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;
    """
    np.testing.assert_array_equal(executed(body), np.arange(128) ^ 127)


EXCHANGE = """
  st.shared.u32 [%r4], %r1; {sync}
  xor.b32 %r8, %r1, {mask}; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;
"""
ALL_READ = """
  setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], %r1; bar.sync 0; {who} bra NOT;
  ld.shared.u32 %r10, [%r2]; NOT: bar.warp.sync -1; @%p1 st.shared.u32 [%r2], 7;
"""


def test_a_barrier_of_a_warp_orders_its_threads() -> None:
    np.testing.assert_array_equal(executed(EXCHANGE.format(sync="bar.warp.sync -1;", mask=31)), np.arange(128) ^ 31)
    for sync, mask in (("", 31), ("bar.warp.sync -1;", 32)):
        with pytest.raises(ExecutionError, match="a race"):
            executed(EXCHANGE.format(sync=sync, mask=mask))
    # A word that many threads of a warp have read may be written after the barrier, but not if another warp has read it too.
    executed(ALL_READ.format(who="setp.ge.u32 %p3, %r1, 32; @%p3"))
    with pytest.raises(ExecutionError, match="a race"):
        executed(ALL_READ.format(who="setp.ge.u32 %p3, %r1, 33; @%p3"))


def test_a_barrier_of_the_block_orders_what_barriers_of_warps_do_not() -> None:
    body = "bar.warp.sync -1; st.shared.u32 [%r4], %r1; bar.warp.sync -1; bar.sync 0; bar.warp.sync -1;"
    body += "xor.b32 %r8, %r1, 96; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;"
    np.testing.assert_array_equal(executed(body, blocks=1), np.arange(128) ^ 96)
    with pytest.raises(ExecutionError, match="a race"):
        executed(body.replace("bar.sync 0;", ""))


def test_a_block_may_write_the_same_value_together() -> None:
    """As compilers do it with a value that all threads have, in one instruction or in two. Two values are a race."""
    body = "{value} {who} st.shared.u32 [%r2], %r5; bar.sync 0; ld.shared.u32 %r10, [%r2]; st.global.u32 [%rd4], %r10;"
    one_warp, same = "setp.lt.u32 %p1, %r1, 32; @%p1", "mov.u32 %r5, 9;"
    for who in ("", one_warp, "setp.lt.u32 %p1, %r1, 33; @%p1"):
        np.testing.assert_array_equal(executed(body.format(value=same, who=who)), np.full(128, 9))
    np.testing.assert_array_equal(executed(body.format(value=same, who="st.shared.u32 [%r2], %r5;")), np.full(128, 9))
    twice = "st.shared.u32 [%r2], 8;"
    for value, who in (("mov.u32 %r5, %r1;", ""), ("mov.u32 %r5, %r1;", one_warp), (same, twice)):
        with pytest.raises(ExecutionError, match="a race"):
            executed(body.format(value=value, who=who))
    # Neighbours that overlap by half of what they write do not write the same bytes to one place.
    halves = "shl.b32 %r6, %r1, 2; add.u32 %r6, %r2, %r6; mov.u32 %r5, 1; mov.u32 %r7, 2; @%p1 st.shared.v2.u32 [%r6], {%r5, %r7};"
    with pytest.raises(ExecutionError, match=r"a race|not aligned"):
        executed("setp.lt.u32 %p1, %r1, 32;" + halves)


def test_what_nobody_wrote_is_a_fault_where_a_result_depends_on_it() -> None:
    """The upper half of a tile is outside of the matrix: its numbers are read, and not stored."""
    body = """setp.lt.u32 %p1, %r1, 64; mad.lo.u32 %r6, %r1, 4, %r2; @%p1 st.shared.u32 [%r6], %r1; bar.sync 0; xor.b32 %r7, %r1, {whose};
      mad.lo.u32 %r7, %r7, 4, %r2; ld.shared.u32 %r10, [%r7]; shl.b32 %r10, %r10, 1; @%p1 st.global.u32 [%rd4], %r10;"""
    wanted = np.where(np.arange(128) < 64, 2 * (np.arange(128) ^ 1), 0)
    np.testing.assert_array_equal(executed(body.format(whose=1)), wanted)
    for unwritten in (body.format(whose=64), body.format(whose=1).replace("@%p1 st.global", "st.global")):
        with pytest.raises(ExecutionError, match=r"reads bytes 2\d\d to 2\d\d of @s, which no thread wrote"):
            executed(unwritten)


def test_variables_of_shared_memory_are_where_ptxas_has_them() -> None:
    """One behind the other, from a multiple of 16 bytes on: that is more than the alignment which they ask for."""
    body = """{{ .shared .align 4 .b8 first[{size}]; .shared .align 4 .b8 second[16]; mov.u32 %r6, second; setp.eq.u32 %p1, %r1, 0;
      @%p1 st.shared.v4.u32 [%r6], {{7, 7, 7, 7}}; bar.sync 0; ld.shared.u32 %r10, [%r6+8]; st.global.u32 [%rd4], %r10; }}"""
    for size in (16, 32):
        np.testing.assert_array_equal(executed(body.format(size=size)), np.full(128, 7))
    for size in (4, 8, 20):
        with pytest.raises(ExecutionError, match="not aligned to 16 bytes"):
            executed(body.format(size=size))


def test_an_array_of_an_odd_size_is_accessed_by_words() -> None:
    """31 bytes of shared memory: seven words, of which the last bytes are none."""
    body = "{ .shared .align 4 .b8 odd[31]; mov.u32 %r2, odd; setp.lt.u32 %p1, %r1, 7; mad.lo.u32 %r4, %r1, 4, %r2; add.u32 %r5, %r1, 5;"
    body += "@%p1 st.shared.u32 [%r4{more}], %r5; bar.sync 0; @%p1 ld.shared.u32 %r6, [%r4]; @%p1 st.global.u32 [%rd4], %r6; }"
    np.testing.assert_array_equal(executed(body.replace("{more}", ""))[:7], np.arange(7) + 5)
    with pytest.raises(ExecutionError, match="writes index"):
        executed(body.replace("{more}", "+4"))


def test_groups_of_a_warp_exchange_in_loops_of_their_own_length() -> None:
    """Groups of 1, 5 and 26 lanes, each with its mask: lanes of a group whose loop has ended are not waited for."""
    body = """
      shr.u32 %r5, %r1, 1; mov.u32 %r6, 1; setp.ge.u32 %p1, %r1, 1; @%p1 mov.u32 %r6, 0x3e; setp.ge.u32 %p1, %r1, 6;
      @%p1 mov.u32 %r6, 0xffffffc0; popc.b32 %r7, %r6; mov.u32 %r8, 0; mov.u32 %r9, 0;
      setp.eq.u32 %p3, 0, 0; L: vote.sync.ballot.b32 %r10, %p3, %r6; redux.sync.add.s32 %r11, %r1, %r6;
      popc.b32 %r10, %r10; add.u32 %r8, %r8, %r10;
      add.u32 %r8, %r8, %r11; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r7; @%p2 bra L; st.global.u32 [%rd4], %r8;
    """
    wanted = [len(group) * (len(group) + sum(group)) for group in ([0], range(1, 6), range(6, 32)) for _ in group]
    np.testing.assert_array_equal(executed(body, threads=32), wanted)


def test_a_warp_does_not_wait_for_lanes_that_have_ended() -> None:
    """PTX ISA, "vote.sync": all threads of the mask that have not exited; 8 of 40 threads of the second warp are left."""
    body = """
      setp.ge.u32 %p1, %r1, 40; @%p1 bra END; setp.eq.u32 %p3, 0, 0;
      vote.sync.ballot.b32 %r5, %p3, -1; bar.warp.sync -1; redux.sync.max.u32 %r6, %r1, -1; vote.sync.all.pred %p4, %p3, -1;
      match.any.sync.b32 %r7, %r1, -1; popc.b32 %r7, %r7; popc.b32 %r5, %r5; mad.lo.u32 %r8, %r5, 1000, %r6; add.u32 %r8, %r8, %r7;
      @!%p4 mov.u32 %r8, 0; st.global.u32 [%rd4], %r8; END: ret;
    """
    np.testing.assert_array_equal(executed(body, threads=64), [32 * 1000 + 32] * 32 + [8 * 1000 + 40] * 8 + [0] * 24)
    with pytest.raises(ExecutionError, match="is not reached with the other threads of the warp"):
        executed(body.replace("END: ret;", "END: st.global.u32 [%rd3], %r1;"), threads=64)


def test_votes_and_shuffles_of_old_architectures_are_among_active_threads() -> None:
    """PTX ISA, "vote (deprecated)" and "shfl (deprecated)": without .sync, the threads of the warp that execute it."""
    body = """
      mov.u32 %r8, 0; setp.ge.u32 %p1, %r1, 20; @%p1 bra END; setp.eq.u32 %p3, %r1, 3;
      vote.ballot.b32 %r5, %p3; vote.any.pred %p4, %p3; shfl.idx.b32 %r6, %r1, 5, 31; vote.all.pred %p5, !%p3;
      mad.lo.u32 %r8, %r6, 100, %r5; @!%p4 mov.u32 %r8, 0; @%p5 mov.u32 %r8, 0; END: st.global.u32 [%rd4], %r8;
    """
    np.testing.assert_array_equal(executed(body, threads=32), [508] * 20 + [0] * 12)


@pytest.mark.parametrize("kind", ["volatile", "relaxed.cta", "release.cta"])
def test_an_atomic_store_does_not_read(kind: str) -> None:
    """The memory that it fills may be unwritten before."""
    body = f"st.{kind}.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd4], %r5;"
    np.testing.assert_array_equal(executed(body), np.arange(128))
    with pytest.raises(ExecutionError, match="which no thread wrote"):
        executed(
            f"st.{kind}.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r5, [%r4+512]; st.global.u32 [%rd4], %r5;"
        )


@pytest.mark.parametrize("address", ["[%rd9]", "[%rd2+4]"])
def test_what_a_compare_and_swap_checks_is_read_without_a_race(address: str) -> None:
    """The first guess of a loop that adds up, as LLVM and nvcc write it: by the same register, and by another one."""
    body = f"""
      add.s64 %rd9, %rd2, 4; ld.global.u32 %r5, {address};
      L: add.u32 %r6, %r5, 3; atom.global.cas.b32 %r7, [%rd9], %r5, %r6; setp.ne.b32 %p1, %r7, %r5; mov.b32 %r5, %r7; @%p1 bra L;
    """
    assert executed(body)[1] == 3 * 128
    with pytest.raises(ExecutionError, match="a race"):
        executed(
            body.replace("%r5, %r6; setp", "%r1, %r6; setp").replace("@%p1 bra L;", "").replace("[%rd9];", "[%rd2+4];")
        )


def test_atomic_updates_of_an_array_that_is_no_whole_number_of_words() -> None:
    """Six bytes of shared memory in each of three blocks: the first four are a word."""
    body = """
      mov.u32 %r5, odd; setp.eq.u32 %p1, %r1, 0; mov.u32 %r6, 0; @%p1 st.shared.u32 [%r5], %r6; bar.sync 0;
      atom.shared.add.u32 %r7, [%r5], 5; bar.sync 0; red.shared.max.u32 [%r5], %r1; bar.sync 0;
      ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd4], %r8;
    """
    odd = ".shared .align 4 .b8 odd[6];"
    np.testing.assert_array_equal(executed(odd + body, threads=8), np.full(8, 8 * 5))
    three = PtxKernel.read(HEAD + START + odd + body + " ret; }", "b.ptx")
    arrays = [np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)]
    np.testing.assert_array_equal(three.run(arrays, launch_of("3x8")[0])[1], np.full(8, 8 * 5))
