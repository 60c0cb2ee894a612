"""Threads of a block that a barrier of some of them, or a fence and a flag, orders are no race; those that it does not order are one.

Source: PTX ISA 8.8, 9.7.13.1 "bar", chapter 8, "Release and acquire patterns".
"""

import math

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD

from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.runtime.simt.sanitizer import Sanitizer

START = """.visible .entry k(.param .u64 p0, .param .u64 p1) {
  .reg .b64 %x, %f, %a; .reg .b32 %t, %c, %s, %v, %w; .reg .pred %p, %q, %r; .shared .align 4 .b8 tile[1024];
  ld.param.u64 %x, [p0]; ld.param.u64 %f, [p1]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.wide.u32 %a, %t, 4, %x;
  mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s;
"""


def after(body: str, launch: str = "1x128") -> np.ndarray:
    """What p0 holds: 128 integers, 0 before. p1 are 128 counters."""
    arrays = [np.zeros(128, np.int32), np.zeros(128, np.int32)]
    kernel = PtxKernel.read(HEAD + START + body + " ret; }", "k.ptx")
    return kernel.run(arrays, launch_of(launch)[0], watchers=[Sanitizer()])[0]


def race(body: str, launch: str = "1x128") -> str:
    with pytest.raises(ExecutionError, match="a race") as caught:
        after(body, launch)
    return caught.value.message


# Warps 0 and 1 store, warps 2 and 3 load what is 64 places before theirs.
HALVES = """
  st.shared.u32 [%s], 0; bar.sync 0;
  setp.ge.u32 %p, %t, 64; @%p bra C; add.u32 %v, %t, 7; st.shared.u32 [%s], %v; PRODUCED bra E;
C: CONSUMED ld.shared.u32 %v, [%s+-256]; st.global.u32 [%a], %v;
E:"""
WANTED = [0] * 64 + list(range(7, 71))


@pytest.mark.parametrize(
    ("produced", "consumed"),
    [("bar.arrive 1, 128;", "bar.sync 1, 128;"), ("bar.sync 1, 128;", "bar.sync 1, 128;")],
)
def test_a_barrier_orders_the_threads_that_reach_it(produced: str, consumed: str) -> None:
    np.testing.assert_array_equal(after(HALVES.replace("PRODUCED", produced).replace("CONSUMED", consumed)), WANTED)


@pytest.mark.parametrize(
    ("produced", "consumed"),
    [
        ("", "bar.sync 1, 64;"),  # only those that load
        ("bar.sync 2, 64;", "bar.sync 1, 64;"),  # each half for itself
        ("setp.lt.u32 %q, %t, 32; @%q bra E; bar.arrive 1, 96;", "bar.sync 1, 96;"),  # warp 0 does not come
    ],
)
def test_a_barrier_does_not_order_other_threads(produced: str, consumed: str) -> None:
    race(HALVES.replace("PRODUCED", produced).replace("CONSUMED", consumed))


def test_those_that_only_arrive_know_nothing_of_the_others() -> None:
    """The half that arrived goes on to overwrite what the half that waits reads before the barrier."""
    body = """
      st.shared.u32 [%s], %t; bar.sync 0; setp.ge.u32 %p, %t, 64; @%p bra C;
      ARRIVE st.shared.u32 [%s], 5; bra E;
    C: ld.shared.u32 %v, [%s+-256]; bar.sync 1, 128; st.global.u32 [%a], %v;
    E:"""
    np.testing.assert_array_equal(after(body.replace("ARRIVE", "bar.sync 1, 128;")), [0] * 64 + list(range(64)))
    race(body.replace("ARRIVE", "bar.arrive 1, 128;"))


def test_what_a_thread_knows_goes_on_with_it_from_barrier_to_barrier() -> None:
    """Warp 0 stores, and meets warp 1; warp 1 meets warps 2 and 3, which load what warp 0 stored."""
    body = """
      setp.lt.u32 %p, %t, 32; @%p st.shared.u32 [%s], 9; setp.lt.u32 %q, %t, 64; @%q bar.sync 1, 64;
      @!%p bar.sync 2, 96; @!%q ld.shared.u32 %v, [tile+40]; @!%q st.global.u32 [%a], %v;
    """
    np.testing.assert_array_equal(after(body), [0] * 64 + [9] * 64)
    race(body.replace("@%q bar.sync 1, 64;", ""))
    race(body.replace("@!%p bar.sync 2, 96;", "@!%q bar.sync 2, 64;"))


def test_readers_of_several_warps_that_arrive_are_before_the_next_write() -> None:
    """Three warps load a tile that warp 0 then fills again; warp 0 waits for them."""
    body = """
      setp.lt.u32 %p, %t, 32; @%p st.shared.u32 [%s], 3; bar.sync 0;
      @!%p ld.shared.u32 %v, [tile+20]; @!%p bar.arrive 1, 128; WAIT @%p st.shared.u32 [%s], 4; @!%p st.global.u32 [%a], %v;
    """
    np.testing.assert_array_equal(after(body.replace("WAIT", "@%p bar.sync 1, 128;")), [0] * 32 + [3] * 96)
    race(body.replace("WAIT", "").replace("@!%p bar.arrive 1, 128;", ""))


@pytest.mark.parametrize("fence", ["fence.proxy.async;", "membar.gl; red.global.add.u32 [%f], 1;", "bar.sync 1, 64;"])
def test_a_thread_is_in_no_race_with_itself(fence: str) -> None:
    body = f"""
      setp.ge.u32 %p, %t, 64; @%p bra E; st.shared.u32 [%s], 1; {fence} st.shared.u32 [%s], %t; {fence}
      ld.shared.u32 %v, [%s]; st.global.u32 [%a], %v; {fence} st.global.u32 [%a], %v;
    E:"""
    np.testing.assert_array_equal(after(body), [*range(64), *[0] * 64])


FLAG = """
  setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [tile+64], 0; bar.sync 0; @!%p bra C;
  st.shared.u32 [tile], 77; FENCE STORE [tile+64], 1; bra E;
C: setp.ne.u32 %q, %t, OTHER; @%q bra E;
W: LOAD %v, [tile+64]; setp.eq.u32 %q, %v, 0; @%q bra W; ld.shared.u32 %v, [tile]; st.global.u32 [%a], %v;
E:"""


@pytest.mark.parametrize("other", ["5", "40"], ids=["of the warp", "of another warp"])
@pytest.mark.parametrize(
    ("fence", "store", "load"),
    [
        ("", "st.release.cta.shared.u32", "ld.acquire.cta.shared.u32"),
        ("", "st.release.gpu.shared.u32", "ld.acquire.gpu.shared.u32"),
        ("membar.cta;", "st.volatile.shared.u32", "ld.volatile.shared.u32"),
        ("fence.acq_rel.cta;", "red.relaxed.cta.shared.add.u32", "ld.relaxed.cta.shared.u32"),
    ],
)
def test_a_thread_waits_for_the_flag_of_another(fence: str, store: str, load: str, other: str) -> None:
    body = FLAG.replace("LOAD", load).replace("OTHER", other)
    found = after(body.replace("FENCE", fence).replace("STORE", store))
    assert found[int(other)] == 77
    without = body.replace("FENCE", "").replace("STORE", store.replace("release", "relaxed"))
    assert "thread 0 of its block wrote" in race(without)


def test_what_is_stored_between_a_fence_and_its_flag_is_not_ordered() -> None:
    body = FLAG.replace("LOAD", "ld.volatile.shared.u32").replace("OTHER", "40").replace("FENCE", "{}")
    body = body.replace("STORE", "st.volatile.shared.u32").replace(
        "ld.shared.u32 %v, [tile];", "ld.shared.u32 %v, [tile+4];"
    )
    store, fence = "st.shared.u32 [tile+4], 5;", "membar.cta;"
    assert after(body.format(store + fence))[40] == 5
    assert "reads bytes 4 to 7" in race(body.format(fence + store))
    assert "reads bytes 4 to 7" in race(body.format(store + fence + store))


@pytest.mark.parametrize("launch", ["1x64", "2x32"])
def test_each_lane_takes_a_lock(launch: str) -> None:
    body = """
    W: atom.global.cas.b32 %v, [%f], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra W; membar.gl;
      ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; st.global.u32 [%x], %v; RELEASE atom.global.exch.b32 %w, [%f], 0;
    """
    assert after(body.replace("RELEASE", "membar.gl;"), launch)[0] == math.prod(map(int, launch.split("x")))
    race(body.replace("membar.gl;", "").replace("RELEASE", ""), launch)


@pytest.mark.parametrize("scope", ["cta", "gpu"])
def test_an_order_of_the_block_is_none_between_blocks(scope: str) -> None:
    body = """
      setp.ne.u32 %p, %t, 0; @%p bra E; setp.ne.u32 %q, %c, 0; @%q bra W;
      st.global.u32 [%x], 77; st.release.SCOPE.global.u32 [%f], 1; bra E;
    W: ld.acquire.SCOPE.global.u32 %v, [%f]; setp.eq.u32 %r, %v, 0; @%r bra W; ld.global.u32 %v, [%x]; st.global.u32 [%x+4], %v;
    E:""".replace("SCOPE", scope)
    if scope == "gpu":
        assert after(body, "2x32")[1] == 77
    else:
        assert "updates for its block alone" in race(body, "2x32")
    # The consumer's own atomic access says nothing of other blocks either.
    one = (
        body.replace("st.release.cta", "st.release.gpu")
        if scope == "cta"
        else body.replace("ld.acquire.gpu", "ld.acquire.cta")
    )
    assert "reads atomically bytes 0 to 3 of argument 1, which thread 0 of block 0 updated" in race(one, "2x32")


def test_a_warp_hands_on_what_one_of_its_lanes_has_seen() -> None:
    body = """
      setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [tile+64], 0; bar.sync 0; @!%p bra C;
      st.shared.u32 [tile], 77; st.release.cta.shared.u32 [tile+64], 1; bra E;
    C: setp.lt.u32 %q, %t, 32; @%q bra E; setp.ne.u32 %r, %t, 40; @%r bra M;
    W: ld.acquire.cta.shared.u32 %v, [tile+64]; setp.eq.u32 %q, %v, 0; @%q bra W;
    M: MEET ld.shared.u32 %v, [tile]; st.global.u32 [%a], %v;
    E:"""
    assert after(body.replace("MEET", "bar.warp.sync -1;"), "1x64").tolist()[:64] == [0] * 32 + [77] * 32
    race(body.replace("MEET", ""), "1x64")


# A ring of two tiles: a thread of warp 0 fills them by bulk copies, warp 1 adds up what its neighbour's place had.
RING = """.visible .entry k(.param .u64 p0, .param .u64 p1) {
  .reg .b64 %x, %y, %a; .reg .b32 %t, %s, %i, %n, %b, %f, %e, %w, %l; .reg .pred %p, %q; .reg .f32 %u, %v;
  .shared .align 128 .b8 tiles[256]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
  ld.param.u64 %x, [p0]; ld.param.u64 %y, [p1]; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; mov.u32 %i, 0; @%p bra I;
  mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1;
  mbarrier.init.shared.b64 [empty], 1; mbarrier.init.shared.b64 [empty+8], 1; fence.mbarrier_init.release.cluster;
I: bar.sync 0; setp.ge.u32 %q, %t, 32; @%q bra C; @%p bra E;
P: and.b32 %n, %i, 1; shr.u32 %b, %i, 1; and.b32 %b, %b, 1; xor.b32 %b, %b, 1;
  mov.u32 %f, full; mad.lo.u32 %f, %n, 8, %f; mov.u32 %e, empty; mad.lo.u32 %e, %n, 8, %e; mov.u32 %s, tiles; mad.lo.u32 %s, %n, 128, %s;
W: EMPTY @!%q bra W;
  mad.wide.u32 %a, %i, 128, %x; mbarrier.arrive.expect_tx.shared.b64 _, [%f], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%a], 128, [%f];
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 6; @%q bra P; bra E;
C: sub.u32 %l, %t, 32; mov.f32 %u, 0f00000000;
D: and.b32 %n, %i, 1; shr.u32 %b, %i, 1; and.b32 %b, %b, 1;
  mov.u32 %f, full; mad.lo.u32 %f, %n, 8, %f; mov.u32 %e, empty; mad.lo.u32 %e, %n, 8, %e; mov.u32 %s, tiles; mad.lo.u32 %s, %n, 128, %s;
V: mbarrier.try_wait.parity.shared.b64 %q, [%f], %b; @!%q bra V;
  xor.b32 %w, %l, 1; mad.lo.u32 %w, %w, 4, %s; ld.shared.f32 %v, [%w]; add.f32 %u, %u, %v; MEET
  setp.eq.u32 %q, %l, 0; @%q mbarrier.arrive.shared.b64 _, [%e];
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 6; @%q bra D; mad.wide.u32 %a, %l, 4, %y; st.global.f32 [%a], %u;
E: ret; }"""


def test_a_ring_of_tiles_that_bulk_copies_fill() -> None:
    """The copies wait for those that read the tile before, and the readers for the copies."""
    given, wait = np.arange(192, dtype=np.float32), "mbarrier.try_wait.parity.shared.b64 %q, [%e], %b;"
    text = RING.replace("MEET", "bar.warp.sync -1;")

    def added(body: str) -> np.ndarray:
        kernel, arrays = PtxKernel.read(HEAD + body, "k.ptx"), [given, np.zeros(32, np.float32)]
        return kernel.run(arrays, launch_of("1x64")[0], watchers=[Sanitizer()])[1]

    np.testing.assert_array_equal(added(text.replace("EMPTY", wait)), given.reshape(6, 32)[:, np.arange(32) ^ 1].sum(0))
    with pytest.raises(ExecutionError, match=r"begins to copy to .* its block read: a race"):
        added(text.replace("EMPTY", "setp.eq.u32 %q, %t, %t;"))
