"""Clusters of several blocks: their registers, shared memory of other blocks, barriers, races between blocks."""

import re

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, run_checked

from xla_emitters.errors import DataError, ExecutionError, UsageError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of, tensor_map_of
from xla_emitters.support.limits import limited_iterations

START = """.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<9>; .reg .b16 %h;
  .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar;
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.u32 %r6, %r4, %r5, %r1;
  mad.wide.u32 %rd3, %r6, 4, %rd1; mad.wide.u32 %rd4, %r6, 4, %rd2; mad.lo.u32 %r7, %r1, 4, %r2; mov.u32 %r8, %cluster_ctarank;
  xor.b32 %r9, %r8, 1;
"""
CLUSTER = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;"
COUNT = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [%r3], {count}; barrier.cluster.arrive; barrier.cluster.wait;"
WAIT = "{ W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W; }"


def executed(body: str, launch: str = "4x64/2", more: str = "", end: str = CLUSTER) -> np.ndarray:
    """What the second array holds afterwards; the first is 0, 1, 2 ... The sanitizer watches."""
    kernel = PtxKernel.read(HEAD + START.replace("{\n", f"{more} {{\n", 1) + body + end + " ret; }", "c.ptx")
    shape, _, cluster = launch_of(launch)
    arrays = [
        np.arange(shape.blocks * shape.threads, dtype=np.uint32),
        np.zeros(shape.blocks * shape.threads, np.uint32),
    ]
    with limited_iterations(1000):
        return run_checked(kernel, arrays, shape, cluster=cluster)[1]


OTHERS = "mapa.shared::cluster.u32 %r10, %r7, %r9; {load} ld.shared::cluster.u32 %r11, [%r10];"


def test_the_memory_of_the_other_block() -> None:
    body = f"ld.global.u32 %r10, [%rd3]; st.shared.u32 [%r7], %r10; {CLUSTER} {OTHERS.format(load='')} st.global.u32 [%rd4], %r11;"
    want = np.arange(256).reshape(2, 2, 64)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(executed(body), want)
    np.testing.assert_array_equal(executed(body, "4x64", ".reqnctapercluster 2, 1, 1"), want)
    with pytest.raises(ExecutionError, match="a race"):
        executed(body.replace(CLUSTER, "bar.sync 0;"))
    with pytest.raises(ExecutionError, match="a race"):  # both have arrived, and neither waits
        executed(body.replace(CLUSTER, "barrier.cluster.arrive; bar.sync 0;"), end="barrier.cluster.wait;")
    waits = body.replace(CLUSTER, "barrier.cluster.arrive; bar.sync 0; barrier.cluster.wait;")
    np.testing.assert_array_equal(executed(waits), want)
    # Threads that have ended need not arrive.
    ends = f"setp.eq.u32 %p1, %r8, 1; @%p1 bra END; {CLUSTER} st.global.u32 [%rd4], %r6; END:"
    np.testing.assert_array_equal(executed(ends).reshape(2, 2, 64)[:, 0], np.arange(256).reshape(2, 2, 64)[:, 0])
    with pytest.raises(ExecutionError, match="that never"):
        executed(f"setp.eq.u32 %p1, %r8, 0; @%p1 bra END; bar.sync 1, 128; END: {CLUSTER}")
    with pytest.raises(ExecutionError, match="waits for the cluster without having arrived"):
        executed("barrier.cluster.wait;")


def test_a_relaxed_arrival_orders_what_a_fence_has_ordered() -> None:
    body = (
        "ld.global.u32 %r10, [%rd3]; st.shared.u32 [%r7], %r10; {sync}"
        + OTHERS.format(load="")
        + "st.global.u32 [%rd4], %r11;"
    )
    fence, want = "fence.acq_rel.cluster;", np.arange(256).reshape(2, 2, 64)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(executed(body.format(sync=fence + RELAXED)), want)
    for sync in (
        RELAXED,
        f"fence.acq_rel.cta; {RELAXED}",
        RELAXED + fence,
        f"{fence} st.shared.u32 [%r7], %r10; {RELAXED}",
    ):
        with pytest.raises(ExecutionError, match=r"reads bytes 0 to 3 of @s, which thread 0 of block \d wrote: a race"):
            executed(body.format(sync=sync))
    # Threads of one block know as little, and what others release is known.
    own = "st.shared.u32 [%r7], %r1; {sync} xor.b32 %r12, %r1, 32; mad.lo.u32 %r12, %r12, 4, %r2; ld.shared.u32 %r11, [%r12];"
    with pytest.raises(ExecutionError, match=r"which thread 32 of its block wrote: a race"):
        executed(own.format(sync=RELAXED))
    executed(own.format(sync="bar.sync 0;" + RELAXED) + RELAXED)
    one = f"setp.eq.u32 %p1, %r8, 0; @%p1 bra A; st.shared.u32 [%r7], %r1; {CLUSTER} bra B; A: {RELAXED} {OTHERS.format(load='')} B:"
    executed(one)
    with pytest.raises(ExecutionError, match="a race"):
        executed(one.replace(CLUSTER, RELAXED))


def test_a_block_ends_behind_the_accesses_of_others() -> None:
    body = f"st.shared.u32 [%r7], %r1; {CLUSTER} {{other}} st.global.u32 [%rd4], %r1;"
    load, store = OTHERS.format(load=""), OTHERS.format(load="").replace("ld.shared::cluster.u32 %r11, [%r10]", "{}")
    store = store.format("st.shared::cluster.u32 [%r10], %r1")
    arrive = (
        COUNT.format(count=64)
        + "mapa.shared::cluster.u32 %r12, %r3, %r9; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];"
    )
    for other in (load, store, arrive):
        executed(body.format(other=other), end=CLUSTER)
        executed(body.format(other=other), end=RELAXED)
        with pytest.raises(
            ExecutionError, match=r"accesses @\w+ of block \d, which may have ended: no barrier of the cluster"
        ):
            executed(body.format(other=other), end="")
    executed(body.format(other=load.replace("%r9", "%r8")), end="")
    executed(body.format(other=arrive + WAIT), end="")


def test_writes_to_the_other_block() -> None:
    """Generic addresses; what is written after the barrier races with what was read before it only without a second one."""
    body = f"""
      cvta.shared.u64 %rd5, s; mad.wide.u32 %rd5, %r1, 4, %rd5; mapa.u64 %rd6, %rd5, %r9; st.u32 [%rd6], %r6; {CLUSTER}
      ld.shared.u32 %r11, [%r7]; SECOND st.u32 [%rd6], %r1; {CLUSTER} ld.shared.u32 %r12, [%r7];
      mad.lo.u32 %r11, %r12, 1000, %r11; st.global.u32 [%rd4], %r11;
    """
    threads = np.arange(256).reshape(2, 2, 64)
    want = (threads[:, ::-1] + 1000 * (threads % 64)).reshape(-1)
    np.testing.assert_array_equal(executed(body.replace("SECOND", CLUSTER)), want)
    with pytest.raises(ExecutionError, match="a race"):
        executed(body.replace("SECOND", ""))


def test_races_between_blocks() -> None:
    """Two blocks write one word of the first one's memory; what one wrote to global memory the other one of its cluster reads."""
    both = "mov.u32 %r10, 0; mapa.shared::cluster.u32 %r11, %r7, %r10; {first} st.shared::cluster.u32 [%r11], %r6; {second}"
    with pytest.raises(ExecutionError, match=r"writes .* of @s, which thread 0 of block \d wrote: a race"):
        executed(both.format(first="", second=CLUSTER))
    one = f"setp.eq.u32 %p1, %r8, 0; @%p1 st.shared::cluster.u32 [%r11], %r1; {CLUSTER} @%p1 bra END;"
    executed(both.format(first=one, second="END:"))
    shared = "st.global.u32 [%rd4], %r6; SYNC xor.b32 %r10, %r6, 64; mad.wide.u32 %rd5, %r10, 4, %rd2; ld.global.u32 %r11, [%rd5];"
    shared += f"{CLUSTER} st.global.u32 [%rd5], %r11;"
    np.testing.assert_array_equal(executed(shared.replace("SYNC", CLUSTER)), np.arange(256))
    with pytest.raises(ExecutionError, match="a race"):
        executed(shared.replace("SYNC", ""))
    # Another cluster is not ordered.
    with pytest.raises(ExecutionError, match="a race"):
        executed(shared.replace("SYNC", CLUSTER).replace("%r6, 64;", "%r6, 128;"))


def test_where_the_rank_is_in_an_address() -> None:
    """From bit 24 on, in a block's own addresses too: CUTLASS clears that bit for the first block of a pair."""
    body = (
        f"st.shared.u32 [%r7], %r6; {CLUSTER} {{own}} ld.shared::cluster.u32 %r11, [%r10]; st.global.u32 [%rd4], %r11;"
    )
    first = np.arange(256).reshape(2, 2, 64)[:, [0, 0]].reshape(-1)
    np.testing.assert_array_equal(executed(body.format(own="and.b32 %r10, %r7, 0xFEFFFFFF;")), first)
    four = np.arange(256).reshape(4, 64)[[0, 0, 2, 2]].reshape(-1)
    np.testing.assert_array_equal(executed(body.format(own="and.b32 %r10, %r7, 0xFEFFFFFF;"), "4x64/4"), four)
    rank = "shr.u32 %r11, %r7, 24; and.b32 %r11, %r11, 3; st.global.u32 [%rd4], %r11;"
    np.testing.assert_array_equal(executed(rank, "4x64/4"), np.arange(4).repeat(64))
    ranks = "mapa.shared::cluster.u32 %r10, %r7, {rank}; getctarank.shared::cluster.u32 %r11, {of}; st.global.u32 [%rd4], %r11;"
    np.testing.assert_array_equal(executed(ranks.format(rank=2, of="%r10"), "3x64/3"), np.full(192, 2))
    np.testing.assert_array_equal(executed(ranks.format(rank=2, of="%r7"), "3x64/3"), np.arange(3).repeat(64))
    with pytest.raises(ExecutionError, match="uses address 0x0, which belongs to no buffer"):
        executed("mapa.shared::cluster.u32 %r10, %r7, 3; ld.shared::cluster.u32 %r11, [%r10];", "3x64/3")


@pytest.mark.parametrize("launch", ["4x64/2", "4x64/4"])
def test_one_number_that_all_blocks_update(launch: str) -> None:
    """What each thread of a cluster gets is another number: of an addition, and of a compare-and-swap that is tried again."""
    start = f"setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 0; {CLUSTER} mapa.shared::cluster.u32 %r10, %r2, 0;"
    swap = """L: ld.volatile.shared::cluster.u32 %r12, [%r10]; add.u32 %r13, %r12, 1;
      atom.shared::cluster.cas.b32 %r11, [%r10], %r12, %r13; setp.ne.u32 %p2, %r11, %r12; @%p2 bra L;"""
    for update in ("atom.shared::cluster.add.u32 %r11, [%r10], 1;", swap):
        found = executed(f"{start} {update} st.global.u32 [%rd4], %r11;", launch).reshape(-1, 64 * int(launch[-1]))
        np.testing.assert_array_equal(np.sort(found), np.tile(np.arange(found.shape[1]), (len(found), 1)))


def test_arrivals_from_the_other_block() -> None:
    body = (
        COUNT.format(count=64)
        + f"""
      mapa.shared::cluster.u32 %r10, %r7, %r9; st.shared::cluster.u32 [%r10], %r6;
      mapa.shared::cluster.u32 %r12, %r3, %r9; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
      {WAIT} ld.shared.u32 %r11, [%r7]; st.global.u32 [%rd4], %r11;
    """
    )
    np.testing.assert_array_equal(executed(body), np.arange(256).reshape(2, 2, 64)[:, ::-1].reshape(-1))
    bytes_ = body.replace("st.shared::cluster.u32 [%r10], %r6;", "").replace(
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];",
        """@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r6, [%r12];""",
    )
    bytes_ = bytes_.replace("[%r3], 64", "[%r3], 1")
    np.testing.assert_array_equal(executed(bytes_), np.arange(256).reshape(2, 2, 64)[:, ::-1].reshape(-1))
    # Updates of what is there, 5.
    added = bytes_.replace("st.async.weak.shared::cluster", "red.async.relaxed.cluster.shared::cluster")
    added = added.replace("bytes.u32", "bytes.add.u32")
    np.testing.assert_array_equal(
        executed(f"mov.u32 %r13, 5; st.shared.u32 [%r7], %r13; {added}"),
        5 + np.arange(256).reshape(2, 2, 64)[:, ::-1].reshape(-1),
    )


def test_a_copy_to_all_blocks() -> None:
    """Each block copies half of what both get; in the second round by a tensor map."""
    copy = """
      mov.u16 %h, 3; mul.lo.u32 %r10, %r8, 128; add.u32 %r11, %r2, %r10; shr.u32 %r12, %r4, 1; mad.lo.u32 %r12, %r12, 256, %r10;
      mad.wide.u32 %rd5, %r12, 1, %rd1; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r11], [%rd5], 128, [%r3], %h;
    """
    body = COUNT.format(count=1) + copy + WAIT + "ld.shared.u32 %r11, [%r7]; st.global.u32 [%rd4], %r11;"
    want = np.repeat(np.arange(128).reshape(2, 1, 64), 2, axis=1).reshape(-1)
    np.testing.assert_array_equal(executed(body), want)
    boxes = body.replace("[%rd5], 128,", "[%rd1, {%r13}],").replace("cp.async.bulk.", "cp.async.bulk.tensor.1d.")
    boxes = boxes.replace(
        "mov.u16 %h, 3;", "mov.u16 %h, 3; shr.u32 %r13, %r4, 1; mad.lo.u32 %r13, %r13, 2, %r8; shl.b32 %r13, %r13, 5;"
    )
    kernel = PtxKernel.read(HEAD + START + boxes + "ret; }", "c.ptx")
    arrays = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
    launch, _, cluster = launch_of("4x64/2")
    found = kernel.run(arrays, launch, cluster=cluster, tensor_maps=dict([tensor_map_of("p0,box=32")]))
    np.testing.assert_array_equal(found[1], want)


def test_registers() -> None:
    """Grid 4 x 6 in clusters of 2 x 3."""
    names = "cluster_ctaid.x cluster_ctaid.y cluster_nctaid.y clusterid.x clusterid.y nclusterid.y cluster_ctarank cluster_nctarank"
    body = "mov.u32 %r10, %ctaid.y; mad.lo.u32 %r10, %r10, 4, %r4; mad.wide.u32 %rd4, %r10, 32, %rd2; setp.eq.u32 %p1, %r1, 0;"
    body += "@!%p1 bra END;" + "".join(
        f"mov.u32 %r11, %{name}; st.global.u32 [%rd4+{4 * n}], %r11;" for n, name in enumerate(names.split())
    )
    found = executed(body + "mapa.u64 %rd5, %rd4, %r8; END:", "4,6x32/2,3")[: 24 * 8].reshape(6, 4, 8)
    y, x = np.mgrid[:6, :4]
    want = [x % 2, y % 3, 0 * x + 3, x // 2, y // 3, 0 * x + 2, x % 2 + 2 * (y % 3), 0 * x + 6]
    np.testing.assert_array_equal(found, np.stack(want, axis=-1))
    body = f"mapa.shared::cluster.u32 %r10, %r2, %r9; getctarank.shared::cluster.u32 %r11, %r10; st.global.u32 [%rd4], %r11; {CLUSTER}"
    np.testing.assert_array_equal(executed(body).reshape(2, 2, 64)[:, :, 0], [[1, 0], [1, 0]])


def test_launches_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="do not divide the grid"):
        executed("", "3x64/2")
    with pytest.raises(DataError, match="must have 2x1x1 blocks"):
        executed("", "4x64/4", ".reqnctapercluster 2")
    with pytest.raises(UsageError, match="is no launch"):
        launch_of("3x64/")


# As CUTLASS does it: each block copies half of a tile to both; warp 1 adds a tile up, and tells both blocks that it may be overwritten.
TILES = """
  .shared .align 128 .b8 tiles[512]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; .reg .f32 %f<4>;
  setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32; mov.u32 %r10, tiles; mov.u32 %r11, full; mov.u32 %r12, empty; mov.u32 %r2, 0;
  @!%p1 bra I; mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [full+8], 1;
  mbarrier.init.shared::cta.b64 [empty], 2; mbarrier.init.shared::cta.b64 [empty+8], 2; fence.mbarrier_init.release.cluster;
I: INIT mov.u16 %h, 3; @%p2 bra C; @!%p1 bra E;
P: STAGE xor.b32 %r14, %r14, 1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r16], %r14; @!%p3 bra W;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 256; mad.lo.u32 %r17, %r8, 128, %r17;
  mad.lo.u32 %r18, %r2, 2, %r8; mad.wide.u32 %rd5, %r18, 128, %rd1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r17], [%rd5], 128, [%r15], %h;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 6; @%p4 bra P;
T: TAIL STAGE xor.b32 %r14, %r14, 1;
U: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r16], %r14; @!%p3 bra U;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 8; @%p4 bra T; bra E;
C: sub.u32 %r20, %r1, 32; mov.f32 %f1, 0f00000000;
D: STAGE
V: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r15], %r14; @!%p3 bra V;
  mad.lo.u32 %r17, %r20, 8, %r17; ld.shared.v2.f32 {%f2, %f3}, [%r17]; add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; bar.warp.sync -1;
  setp.lt.u32 %p5, %r20, 2; and.b32 %r21, %r20, 1; mapa.shared::cluster.u32 %r22, %r16, %r21;
  @%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22];
  add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 6; @%p4 bra D;
  mad.lo.u32 %r23, %r4, 32, %r20; mad.wide.u32 %rd6, %r23, 4, %rd2; st.global.f32 [%rd6], %f1;
E: ret; }""".replace(
    "STAGE",
    "and.b32 %r13, %r2, 1; shr.u32 %r14, %r2, 1; and.b32 %r14, %r14, 1; mad.lo.u32 %r15, %r13, 8, %r11; "
    "mad.lo.u32 %r16, %r13, 8, %r12; mad.lo.u32 %r17, %r13, 256, %r10;",
)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("INIT", RELAXED), ""),
        (("INIT", CLUSTER), ""),
        (("INIT", ""), "updates bytes 0 to 7 of @full, which thread 0 of its block wrote: a race"),
        (("INIT", "bar.sync 0;"), r"updates bytes 0 to 7 of @full, which thread 0 of block \d wrote: a race"),
        (("fence.mbarrier_init.release.cluster;", ""), "which thread 0 of its block wrote: a race"),
        (
            ("arrive.release.cluster.shared::cluster.b64 _, [%r22]", "arrive.shared::cta.b64 _, [%r16]"),
            r"begins to copy to bytes \d+ to \d+ of @tiles, which thread 0 of block \d wrote: a race",
        ),
        (("TAIL", "bra E;"), r"accesses @empty of block \d, which may have ended"),
    ],
)
def test_a_pipeline_of_copies_to_both_blocks(change: tuple[str, str], fault: str) -> None:
    """Faults: no barrier or no fence behind the initialisation; a block tells itself alone; no wait for the last arrivals."""
    dice = np.random.default_rng(4)
    given = dice.integers(0, 50, (6, 64)).astype(np.float32)
    text = TILES.replace(*change).replace("INIT", RELAXED).replace("TAIL", "")
    kernel, (launch, _, cluster) = PtxKernel.read(HEAD + START + text, "c.ptx"), launch_of("2x64/2")
    arrays = [given, np.zeros(64, np.float32)]
    with limited_iterations(1000):
        verdict = kernel.check(arrays, launch, cluster=cluster)
    if fault:
        assert re.search(fault, "\n".join(verdict.details)), verdict
        return
    assert verdict.ok, verdict.details
    found = kernel.run(arrays, launch, cluster=cluster)[1]
    np.testing.assert_array_equal(found, np.tile(given.reshape(6, 32, 2).sum(axis=(0, 2)), 2))


BARS = """
  .shared .align 8 .b64 bars[2]; mov.u32 %r3, bars; shr.u32 %r20, %r1, 5; and.b32 %r21, %r1, 31; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s;
  mad.lo.u32 %r7, %r21, 4, %r2; mov.u32 %r11, 9;
  @%p1 mbarrier.init.shared::cta.b64 [bars], 1; @%p1 mbarrier.init.shared::cta.b64 [bars+8], 1;
"""
SEEN = "{{ W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+{}], {}; @!%p2 bra W; }}"
TOLD = "mapa.shared::cluster.u32 %r12, %r3, {}; @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12+{}];"
# Block 1's first warp stores; block 0 is told, and tells block 1; its second warp loads.
ROUND_TRIP = f"""
  setp.eq.u32 %p3, %r4, 1; @%p3 bra B; @!%p1 bra X; {SEEN.format(0, 0)} {TOLD.format(1, 8)} bra X;
B: setp.ne.u32 %p3, %r20, 0; @%p3 bra C; st.shared.u32 [%r7], %r21; bar.warp.sync -1; {TOLD.format(0, 0)} bra X;
C: LAST ld.shared.u32 %r11, [%r7]; X:"""
# Block 0 stores in block 3, and tells block 1, which tells block 2, which tells block 3.
CHAIN = f"""
  @!%p1 bra X; add.u32 %r13, %r4, 1; setp.eq.u32 %p3, %r4, 0; @!%p3 bra M; mapa.shared::cluster.u32 %r10, %r2, 3;
  st.shared::cluster.u32 [%r10], 77; bra S; M: setp.eq.u32 %p4, %r4, 3; @%p4 bra L; {SEEN.format(0, 0)}
S: {TOLD.format("%r13", 0)} bra X; L: LAST ld.shared.u32 %r11, [s]; X:"""
# Each block loads what the other one has stored, and tells it, which then stores again.
TOLD_OF_LOADS = f"""
  st.shared.u32 [%r7], %r6; {CLUSTER} mapa.shared::cluster.u32 %r10, %r7, %r9; ld.shared::cluster.u32 %r11, [%r10]; bar.warp.sync -1;
  {TOLD.format("%r9", 0)} LAST st.shared.u32 [%r7], 0;"""
# Each block sends what it has to the next one, five times; that one says when it has taken it.
RING = f"""
  mov.u32 %r13, 0; add.u32 %r14, %r4, 1; and.b32 %r14, %r14, 3; add.u32 %r15, %r4, 3; and.b32 %r15, %r15, 3; mov.u32 %r11, %r6;
  mapa.shared::cluster.u32 %r16, %r7, %r14; mapa.shared::cluster.u32 %r17, %r3, %r14;
R: and.b32 %r18, %r13, 1; xor.b32 %r19, %r18, 1; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 128;
  setp.eq.u32 %p5, %r13, 0; @%p5 bra G; LAST
G: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r16], %r11, [%r17]; {SEEN.format(0, "%r18")}
  ld.shared.u32 %r11, [%r7]; bar.warp.sync -1; {TOLD.format("%r15", 8)} add.u32 %r13, %r13, 1; setp.lt.u32 %p5, %r13, 5; @%p5 bra R;"""


@pytest.mark.parametrize(
    ("body", "wait", "launch", "want"),
    [
        (ROUND_TRIP, SEEN.format(8, 0), "2x64/2", [*[9] * 96, *range(32)]),
        (CHAIN, SEEN.format(0, 0), "4x32/4", [*[9] * 96, 77, *[9] * 31]),
        (TOLD_OF_LOADS, SEEN.format(0, 0), "2x32/2", [*range(32, 64), *range(32)]),
        (RING, SEEN.format(8, "%r19"), "4x32/4", np.roll(np.arange(128), 160)),
    ],
    ids=["round trip", "chain", "loads", "ring"],
)
def test_a_block_knows_what_those_knew_that_have_told_it(body: str, wait: str, launch: str, want: list[int]) -> None:
    """With one wait less it is a race, or a read of what is not there yet."""
    text = BARS + CLUSTER + body + "st.global.u32 [%rd4], %r11;"
    np.testing.assert_array_equal(executed(text.replace("LAST", wait), launch), want)
    with pytest.raises(ExecutionError, match=r"a race|which no thread wrote"):
        executed(text.replace("LAST", ""), launch)
