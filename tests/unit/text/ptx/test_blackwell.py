"""Instructions of sm_100 and of several devices.

Rounding by given bits, `clusterlaunchcontrol`, `st.bulk`, `multimem`, rows of tensor maps.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, executed, run_checked
from unit.text.ptx.test_tensor_copies import LOAD, OUT
from unit.text.ptx.test_tensor_copies import executed as copied

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of

DICE = np.random.default_rng(11)


def neighbours(value: float, kind: type) -> tuple[float, float]:
    """The numbers of a type at or below a magnitude, and behind it."""
    near = np.array(abs(value), np.float32).astype(kind)
    low = near if float(near) <= abs(value) else np.nextafter(near, kind(0))
    return float(low), float(np.nextafter(low, kind(np.inf)))


@pytest.mark.parametrize(("word", "kind", "bits"), [("f16", np.float16, 13), ("bf16", ml_dtypes.bfloat16, 16)])
def test_rounding_by_given_bits(word: str, kind: type, bits: int) -> None:
    """Away from zero where what is lost, and the given bits in front of it, have a carry. Upper half: of the first operand."""
    a, b = (DICE.standard_normal(200).astype(np.float32) * np.float32(2.0) ** DICE.integers(-9, 9, 200) for _ in "ab")
    a[:4], b[:4] = [1, -0.0, np.inf, 1.5], [-2, 0, -np.inf, np.nan]
    a, b = a.astype(np.float32), b.astype(np.float32)
    random = DICE.integers(0, 1 << 32, 200).astype(np.uint32)
    got = executed(f"cvt.rs.{word}x2.f32 %d, %a0, %a1, %a2;", a, b, random, result=np.uint32).view(kind).reshape(-1, 2)
    for number, drawn in enumerate(random):
        for given, found, chance in ((b, got[number, 0], int(drawn)), (a, got[number, 1], int(drawn) >> 16)):
            value = float(given[number])
            if not np.isfinite(value):
                assert np.isnan(found) if np.isnan(value) else found == value
                continue
            low, high = neighbours(value, kind)
            lost = (Fraction(abs(value)) - Fraction(low)) / (Fraction(high) - Fraction(low))
            is_away = lost + Fraction(chance % (1 << bits), 1 << bits) >= 1
            assert float(found) == np.copysign(high if is_away else low, value)
    big = np.array([7e4, -7e4, 3.0, -3.0], np.float32)
    got = executed("cvt.rs.relu.satfinite.f16x2.f32 %d, %a0, %a0, 0;", big, result=np.uint32).view(np.float16)
    np.testing.assert_array_equal(got[::2], [65504, 0, 3, 0])


@pytest.mark.parametrize("body", ["cvt.rs.f16.f32 %d, %a0, 0;", "cvt.rs.e4m3x2.f32 %d, %a0, %a0, 0;"])
def test_other_roundings_by_bits_are_refused(body: str) -> None:
    with pytest.raises(XlaEmittersError, match="is not supported"):
        executed(body, np.zeros(1, np.float32), result=np.uint16)


def test_a_longer_float_is_rounded_in_no_direction() -> None:
    given = np.array([1.5, -3.25, np.inf], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(executed("cvt.rz.f64.bf16 %d, %a0;", given, result=np.float64), given.astype(float))


PERSISTENT = """.visible .entry k(.param .u64 p) {
  .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .b128 %q;
  .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, answer; mov.u32 %r3, bar; mov.u32 %r4, %ctaid.x; mov.u32 %r5, 0;
  setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;
  WORK: mad.lo.u32 %r6, %r4, 32, %r1; mad.wide.u32 %rd2, %r6, 4, %rd1; st.global.u32 [%rd2], %r6;
  @!%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{all}.b128 [%r2], [%r3];
  WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r5; @!%p2 bra WAIT;
  ld.shared.b128 %q, [%r2]; xor.b32 %r5, %r5, 1;
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
  clusterlaunchcontrol.query_cancel.get_first_ctaid{first}, %q;
  bar.sync 0; @%p3 bra WORK; ret; }
"""


@pytest.mark.parametrize("first", [".v4.b32.b128 {%r4, %r7, %r8, _}", "::x.b32.b128 %r4"])
@pytest.mark.parametrize("all_blocks", ["", ".multicast::cluster::all"])
def test_blocks_that_ask_for_others_work(first: str, all_blocks: str) -> None:
    """A loop of CUTLASS's persistent kernels: no launch is cancelled, so each block does its own part, and only that."""
    text = HEAD + PERSISTENT.replace("{first}", first).replace("{all}", all_blocks)
    found = run_checked(PtxKernel.read(text, "c.ptx"), [np.zeros(128, np.uint32)], launch_of("4x32")[0])
    np.testing.assert_array_equal(found[0], np.arange(128))


def test_the_first_block_of_a_cluster_asks_for_all() -> None:
    cluster = "barrier.cluster.arrive; barrier.cluster.wait;"
    text = HEAD + PERSISTENT.replace("{first}", "::x.b32.b128 %r4").replace("{all}", ".multicast::cluster::all")
    text = text.replace("WORK:", f"{cluster} WORK:", 1).replace("@%p3 bra WORK;", f"@%p3 bra WORK; {cluster}")
    asks = "mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p4, %r7, 0; @%p4 clusterlaunchcontrol.try_cancel"
    text = text.replace("clusterlaunchcontrol.try_cancel", asks)
    (launch, _, of), arrays = launch_of("4x32/2"), [np.zeros(128, np.uint32)]
    found = run_checked(PtxKernel.read(text, "c.ptx"), arrays, launch, cluster=of)
    np.testing.assert_array_equal(found[0], np.arange(128))
    alone = PtxKernel.read(text.replace(".multicast::cluster::all", ""), "c.ptx").check(arrays, launch, cluster=of)
    assert "never ends" in alone.summary  # the second block is not told


def test_zeros_are_stored_in_bulk() -> None:
    """Each thread clears 8 or 16 bytes of its own."""
    more = ".shared .align 16 .b8 s[1024];"
    body = """mov.u32 %t1, s; mad.lo.u32 %t1, %i, 16, %t1; st.shared.v2.b64 [%t1], {%a0, %a0};
    cvt.u64.u32 %w1, %t1; cvta.shared.u64 %w1, %w1;
    and.b32 %t2, %i, 1; add.u32 %t2, %t2, 1; mul.lo.u32 %t2, %t2, 8; cvt.u64.u32 %w2, %t2;
    st.bulk.weak.shared::cta [WHERE], %w2, 0; ld.shared.b64 %d, [%t1+8];"""
    given = np.arange(1, 9, dtype=np.uint64)
    for where in ("%t1", "%w1"):
        text = body.replace("WHERE", where).replace(".shared::cta [%w1", " [%w1")
        np.testing.assert_array_equal(executed(text, given, result=np.uint64, more=more), given * (given % 2))
    with pytest.raises(XlaEmittersError, match="stores zeros"):
        executed("st.bulk [%at0], 8, 1; mov.b64 %d, 0;", given, result=np.uint64)


@pytest.mark.parametrize(
    ("word", "kind"), [("f32", np.float32), ("u32", np.uint32), ("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)]
)
def test_memory_of_several_devices_is_that_of_one_here(word: str, kind: type) -> None:
    given = np.arange(16).astype(kind).view(np.uint32)
    body = f"multimem.ld_reduce.relaxed.sys.global.add{'.acc::f32' * word.endswith('x2')}.{word} %t1, [%at0];"
    body += f"multimem.st.release.sys.global.{word} [%at0], %a0; bar.sync 0; multimem.red.relaxed.sys.global.add.{word} [%at0], %t1;"
    got = executed(f"{body} bar.sync 0; ld.global.b32 %d, [%at0];", given, result=np.uint32)
    np.testing.assert_array_equal(got.view(kind), np.arange(16).astype(kind) * kind(2))


def test_vectors_of_several_devices() -> None:
    given = np.arange(8, dtype=np.float16).view(np.uint32)[:1].repeat(4)
    body = "multimem.ld_reduce.global.max.v2.f16x2 {%t1, %t2}, [%at0]; mov.b32 %d, %t1;"
    text = "setp.eq.u32 %p1, %i, 0; mov.b32 %d, %a0; @!%p1 bra NO;" + body + "NO:"
    np.testing.assert_array_equal(executed(text, given, result=np.uint32), given)


@pytest.mark.parametrize("how", ["release.gpu", "mmio.release.sys"])
def test_asynchronous_stores_to_global_memory(how: str) -> None:
    given = np.arange(5, 21, dtype=np.uint32)
    body = f"st.async.{how}.global.u32 [%at0], 7; red.async.{how}.global.add.u32 [%at0], %a0; ld.global.u32 %d, [%at0];"
    np.testing.assert_array_equal(executed(body, given, result=np.uint32), given + 7)


def test_rows_are_gathered_and_scattered() -> None:
    """Four rows that are named one by one, 32 bytes of each from column 4 on; a row outside the array is zeros, and is not written."""
    array = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    rows, tensor_map = (3, 17, 0, 40), TensorMap((1, 8), 0)
    wanted = np.array([array[row, 4:12] if row < 20 else np.zeros(8) for row in rows], np.float32)
    at = ", ".join(map(str, (4, *rows)))
    load = LOAD.replace(".tile.", ".tile::gather4.").format(bytes=128, rank=2, at=at)
    after = copied(load, OUT.format(bytes=128), [array, np.zeros((4, 8), np.float32)], tensor_map, 1024)
    np.testing.assert_array_equal(after[1], wanted)
    store = "@!%p1 bra END; cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {8, 5, 6, 9, 41}], [%r2];"
    store += "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"
    after = copied(load, store, [array.copy(), np.zeros((4, 8), np.float32)], tensor_map, 1024)
    array[[5, 6, 9], 8:16] = wanted[:3]
    np.testing.assert_array_equal(after[0], array)
    with pytest.raises(ExecutionError, match="has several"):
        copied(load, "", [array, np.zeros((4, 8), np.float32)], TensorMap((2, 8), 0), 1024)
    for wrong in (load.replace("{4, ", "{"), load.replace("gather4", "scatter4")):
        with pytest.raises(XlaEmittersError, match=r"coordinates|are gathered"):
            copied(wrong, "", [array, np.zeros((4, 8), np.float32)], tensor_map, 1024)
