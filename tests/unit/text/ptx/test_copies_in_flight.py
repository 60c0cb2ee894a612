"""Shared memory that an asynchronous copy fills, and registers that a product is written to: used before and after the wait."""

import numpy as np
import pytest
from unit.text.ptx.test_barriers import INIT, WAIT, executed

from xla_emitters.errors import ExecutionError
from xla_emitters.text.ptx.flow import Flow
from xla_emitters.text.ptx.products_in_flight import unwaited_registers
from xla_emitters.text.ptx.ptx_parser import read_ptx
from xla_emitters.text.ptx.raising import Raised

COPY = "cp.async.ca.shared.global [%r4], [%rd3], 4;"
MORE = "add.u32 %r12, %r4, 512; cp.async.ca.shared.global [%r12], [%rd3], 4;"
OWN = "ld.shared.u32 %r10, [%r4]; st.global.u32 [%rd4], %r10;"
MIRRORED = "xor.b32 %r8, %r1, 127; mad.lo.u32 %r9, %r8, 4, %r2; ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd4], %r10;"
GROUP, ALL = "cp.async.commit_group;", "cp.async.wait_all;"


def wait(most: int) -> str:
    return f"cp.async.wait_group {most};"


@pytest.mark.parametrize(
    ("body", "mirrored"),
    [
        (COPY + GROUP + wait(0) + OWN, False),
        (COPY + ALL + OWN, False),
        (COPY + GROUP + wait(0) + "bar.sync 0;" + MIRRORED, True),
        (COPY + GROUP + MORE + GROUP + wait(1) + OWN, False),  # the older group
        (COPY + MORE + GROUP + wait(0) + "bar.sync 0;" + MIRRORED, True),
        (COPY + GROUP + wait(0) + COPY + GROUP + wait(0) + OWN, False),  # the same memory again
        (COPY + INIT.format(count=128) + "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];" + WAIT.format(parity=0) + MIRRORED, True),
        (COPY + GROUP, None),  # not read: nothing to wait for
    ],
)  # fmt: skip
def test_after_the_wait_the_bytes_are_there(body: str, mirrored: bool | None) -> None:
    wanted: np.ndarray = np.zeros(128, np.int64) if mirrored is None else np.arange(128) ^ (127 if mirrored else 0)
    np.testing.assert_array_equal(executed(body), wanted)


UNWAITED = "reads bytes .* of @s, which thread .* copies without a wait: a race"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (COPY + OWN, UNWAITED),
        (COPY + GROUP + OWN, UNWAITED),
        (COPY + GROUP + wait(1) + OWN, UNWAITED),
        (COPY + wait(0) + OWN, UNWAITED),  # of no group
        (MORE + GROUP + COPY + GROUP + wait(1) + OWN, UNWAITED),  # the younger group
        (COPY + GROUP + "bar.sync 0;" + MIRRORED, UNWAITED),
        (COPY + GROUP + "bar.sync 0;" + wait(0) + MIRRORED, "reads bytes .* of @s, which thread .* wrote: a race"),
        (COPY + GROUP + wait(0) + MIRRORED, "reads bytes .* of @s, which thread .* wrote: a race"),
        (COPY + "st.shared.u32 [%r4], %r1;", "writes bytes .* copies without a wait"),
        (COPY + COPY + GROUP + wait(0), "begins to copy to bytes .* copies without a wait"),
        # half of the threads wait
        (COPY + GROUP + "setp.lt.u32 %p1, %r1, 64; @%p1 cp.async.wait_group 0; bar.sync 0;" + MIRRORED, UNWAITED),
        # the barrier is complete, but nobody has looked
        (COPY + INIT.format(count=128) + "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];" + OWN, UNWAITED),
        # of another barrier
        (COPY + INIT.format(count=128) + "@%p1 mbarrier.init.shared.b64 [%r3+8], 128; bar.sync 0;"
         "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3+8]; mbarrier.arrive.shared.b64 %rd5, [%r3];"
         + WAIT.format(parity=0) + OWN, UNWAITED),
    ],
)  # fmt: skip
def test_before_the_wait_it_is_a_race(body: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message) as caught:
        executed(body)
    assert "b.ptx:8:" in str(caught.value) or "b.ptx:9:" in str(caught.value)  # where the body is


BULK = """@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3{at}], 512;
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 512, [%r3{at}];"""


def test_a_bulk_copy_is_complete_when_its_barrier_is_seen_to_be() -> None:
    one, other = BULK.format(at=""), BULK.format(at="+8")
    second = INIT.format(count=1) + "@%p1 mbarrier.init.shared.b64 [%r3+8], 1; bar.sync 0;"
    np.testing.assert_array_equal(executed(second + one + WAIT.format(parity=0) + MIRRORED), np.arange(128) ^ 127)
    # One thread looks, the others meet it at a barrier.
    looks = "@!%p1 bra MET;" + WAIT.format(parity=0) + "MET: bar.sync 0;"
    np.testing.assert_array_equal(executed(second + one + looks + MIRRORED), np.arange(128) ^ 127)
    for early in (
        one,
        one + "bar.sync 0;",
        other + "@%p1 mbarrier.arrive.shared.b64 %rd5, [%r3];" + WAIT.format(parity=0),
    ):
        with pytest.raises(ExecutionError, match="copies without a wait"):
            executed(second + early + MIRRORED)


PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f{0}, %f{1}, %f{2}, %f{3}}}, %rd1, %rd2, %p1, 1, 1, 0, 0;"
)
FIRST, SECOND = PRODUCT.format(0, 1, 2, 3), PRODUCT.format(4, 5, 6, 7)
CLOSE, USE, USE_SECOND = "wgmma.commit_group.sync.aligned;", "add.f32 %f9, %f3, %f3;", "add.f32 %f8, %f4, %f4;"


@pytest.mark.parametrize(
    ("body", "early"),
    [
        (FIRST + CLOSE + "wgmma.wait_group.sync.aligned 0;" + USE, []),
        (FIRST + FIRST + CLOSE + "wgmma.wait_group.sync.aligned 0;" + USE, []),  # sums up in the same registers
        (FIRST + CLOSE + USE, ["%f3"]),
        (FIRST + USE + CLOSE, ["%f3"]),
        (FIRST + CLOSE + SECOND + CLOSE + "wgmma.wait_group.sync.aligned 1;" + USE + USE_SECOND, ["%f4"]),
        (FIRST + "wgmma.wait_group.sync.aligned 0;" + USE, ["%f3"]),  # of no group
        (FIRST + CLOSE + "mov.b32 %f3, 0f00000000;" + USE, []),
        (FIRST + CLOSE + "mov.b32 %f8, %f3; add.f32 %f9, %f8, %f8;", ["%f8"]),  # another name of it
        (FIRST + CLOSE + "@%p2 bra L; wgmma.wait_group.sync.aligned 0; L:" + USE, []),  # on one way it has waited
        (FIRST + CLOSE + "@%p2 bra L; mov.b32 %f9, 0f00000000; L:" + USE, ["%f3"]),
        ("L: " + FIRST + CLOSE + "wgmma.wait_group.sync.aligned 1;" + USE + "@%p2 bra L; ret;", ["%f3"]),
    ],
)  # fmt: skip
def test_registers_of_a_product(body: str, early: list[str]) -> None:
    text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
    text += ".reg .f32 %f<10>; .reg .b64 %rd<9>; .reg .pred %p<9>; " + body + " ret; }"
    module = read_ptx(text, "p.ptx")
    (entry,) = module.entries
    raised = Raised(module, entry, ())
    flow = Flow(module.source, entry, raised.touched)
    assert [register.name for _, register in unwaited_registers(flow).values()] == early
