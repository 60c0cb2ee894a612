"""`wgmma`: matrices in shared memory under all swizzles, along k and along rows, and in registers; products by NumPy of small integers.

Shared memory is filled as the ISA's figures show it: under a swizzle of W bytes, chunk c of 16 bytes of row r of an atom of 8 rows is where
chunk c ^ (r * W // 128 % (W // 16)) would be.
"""

from typing import Any

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, run_checked
from unit.text.ptx.test_matrices import TYPES, as_words

from xla_emitters.dialects.mlir.mma_shapes import BITS, OF_INTEGERS, Wgmma
from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of

CODES = {0: 0, 128: 1, 64: 2, 32: 3}
SHARED = 1 << 16


def image(matrix: np.ndarray, word: str, swizzle: int, along_rows: bool) -> tuple[bytes, int]:
    """A matrix (rows, k) in shared memory, and its descriptor without an address."""
    typed = np.ascontiguousarray(matrix.astype(TYPES[word]))
    size, (rows, depth) = typed.itemsize, typed.shape
    each, width = 16 // size, swizzle or 16
    found = np.zeros((1 << 15) // size, typed.dtype)
    # Steps between atoms: larger than needed, and unequal.
    leading, stride = 8 * width * 3, 8 * width * (1 if along_rows else 3)
    if not swizzle:
        leading, stride = 1280, 160 if along_rows else 256
        leading, stride = (leading, stride) if along_rows else (128, 256)
    for r in range(rows):
        for k in range(depth):
            if along_rows:
                line, chunk, inside = k % 8, r // each, r % each
                if swizzle:
                    place = chunk // (width // 16) * leading + k // 8 * stride
                    chunk %= width // 16
                else:
                    place, chunk = chunk * stride + k // 8 * leading, 0
            else:
                line, chunk, inside = r % 8, k // each, k % each
                place = r // 8 * stride
                if not swizzle:
                    place, chunk = place + chunk * leading, 0
            chunk ^= line * width // 128 % (width // 16)
            found[(place + line * width + chunk * 16) // size + inside] = typed[r, k]
    return found.tobytes(), leading >> 4 << 16 | stride >> 4 << 32 | CODES[swizzle] << 62


KERNEL = """.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 image, .param .u64 a, .param .u64 d, .param .u64 da, .param .u64 db) {{
  .reg .b32 %d<130>, %a<4>, %r<9>; .reg .b64 %rd<20>; .reg .pred %p<4>; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [d]; ld.param.u64 %rd4, [da]; ld.param.u64 %rd5, [db];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {shared};
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], {shared}, [%r3];
  W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;
  mad.wide.u32 %rd2, %r1, 16, %rd2; ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%rd2];
  mad.wide.u32 %rd3, %r1, {bytes}, %rd3; {loads}
  cvt.u64.u32 %rd6, %r2; bfe.u64 %rd6, %rd6, 4, 14; add.s64 %rd4, %rd4, %rd6; add.s64 %rd5, %rd5, %rd6;
  setp.eq.u32 %p3, 1, {scale_d}; wgmma.fence.sync.aligned; {guard}
  {name} {{{registers}}}, {a}, %rd5, %p3{end};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {stores} ret; }}
"""


def run(
    name: str,
    a: np.ndarray,
    b: np.ndarray,
    d: np.ndarray,
    *,
    swizzles: tuple[int, int] = (0, 0),
    along_rows: tuple[bool, bool] = (False, False),
    in_registers: bool = False,
    signs: tuple[int, int] = (1, 1),
    scale_d: int = 1,
    guard: str = "",
    base: int = 0,
) -> np.ndarray:
    """The words of D (128 threads, registers) after the instruction, which is given A, the transpose of B, and those of D before."""
    shape = Wgmma.of(name)
    of_a, da = image(a, shape.a, swizzles[0], along_rows[0])
    of_b, db = image(b, shape.b, swizzles[1], along_rows[1])
    memory = np.frombuffer(of_a + of_b, np.uint8).copy()
    end = "" if shape.to == "s32" else ", {}, {}".format(*signs)
    if shape.a in ("f16", "bf16"):
        sides = along_rows[1:] if in_registers else along_rows
        end += "".join(f", {int(side)}" for side in sides)
    count = shape.registers
    text = KERNEL.format(
        **{"shared": SHARED, "bytes": 4 * count, "name": name, "scale_d": scale_d, "end": end, "guard": guard},
        a="{%a0, %a1, %a2, %a3}" if in_registers else "%rd4",
        registers=", ".join(f"%d{n}" for n in range(count)),
        loads="".join(f"ld.global.b32 %d{n}, [%rd3+{4 * n}];" for n in range(count)),
        stores="".join(f"st.global.b32 [%rd3+{4 * n}], %d{n};" for n in range(count)),
    )
    row, column = a_places(128 // BITS[shape.a])
    fragments = as_words(a[row, column], shape.a)
    kernel = PtxKernel.read(HEAD.replace("sm_90", "sm_90a") + text, "w.ptx")
    given = [memory, fragments, d, np.uint64(da + (base << 49)), np.uint64(db + (len(of_a) >> 4))]
    arrays = [np.asarray(each) for each in given]
    return run_checked(kernel, arrays, launch_of("1x128")[0], shared_bytes=SHARED)[2]


def a_places(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each element of A that a thread holds in registers, lowest bits first: (128, count)."""
    thread, i = np.arange(128)[:, None], np.arange(count)[None, :]
    each = count // 4
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // each % 2)
    return row, thread % 4 * each + i % each + 4 * each * (i // (2 * each))


def d_places(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each element of D that a thread holds: (128, columns / 2)."""
    thread, i = np.arange(128)[:, None], np.arange(columns // 2)[None, :]
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i % 4 // 2)
    return row, thread % 4 * 2 + i % 2 + 8 * (i // 4)


def check(name: str, **how: object) -> None:
    shape = Wgmma.of(name)
    dice = np.random.default_rng(len(name))
    a = dice.integers(0 if shape.a == "u8" else -3, 4, (64, shape.depth)).astype(np.float64)
    b = dice.integers(0 if shape.b == "u8" else -3, 4, (shape.columns, shape.depth)).astype(np.float64)
    d = dice.integers(-9, 9, (64, shape.columns)).astype(np.float64)
    places = d_places(shape.columns)
    got = run(name, a, b, as_words(d[places], shape.to), **how)  # pyright: ignore
    signs: Any = how.get("signs", (1, 1))
    x, y = int(signs[0]), int(signs[1])
    scale: Any = how.get("scale_d", 1)
    want = np.asarray((a * x) @ (b * y).T + d * scale)
    np.testing.assert_array_equal(got, as_words(want[places], shape.to))


PREFIX = "wgmma.mma_async.sync.aligned"
KINDS = [
    "f16.f16.f16",
    "f32.f16.f16",
    "f32.bf16.bf16",
    "f32.tf32.tf32",
    "s32.s8.s8",
    "s32.u8.s8",
    "f32.e4m3.e5m2",
    "f16.e5m2.e5m2",
]
DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32, "e4m3": 32, "e5m2": 32}


@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str) -> None:
    depth = DEPTHS[kind.split(".")[1]]
    check(f"{PREFIX}.m64n32k{depth}.{kind}", swizzles=(128, 64))
    check(f"{PREFIX}.m64n8k{depth}.{kind}", in_registers=True, swizzles=(0, 32), scale_d=0)
    check(f"{PREFIX}.m64n64k{depth}.{kind}", swizzles=(0, 128))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("along_rows", [(True, False), (False, True), (True, True)])
def test_matrices_along_their_rows(swizzle: int, along_rows: tuple[bool, bool]) -> None:
    check(f"{PREFIX}.m64n64k16.f32.bf16.bf16", swizzles=(swizzle, swizzle), along_rows=along_rows)


def test_signs_and_columns() -> None:
    check(f"{PREFIX}.m64n256k16.f32.f16.f16", signs=(-1, 1), swizzles=(32, 32))
    check(
        f"{PREFIX}.m64n24k16.f32.f16.f16",
        signs=(-1, -1),
        in_registers=True,
        along_rows=(False, False),
        swizzles=(0, 64),
    )
    check(f"{PREFIX}.m64n16k8.f32.tf32.tf32", signs=(1, -1))
    assert 40 not in OF_INTEGERS
    assert Wgmma.of(f"{PREFIX}.m64n40k32.s32.s8.s8") is None


def test_sums_of_integers_wrap_or_saturate() -> None:
    a, b = np.full((64, 32), -128.0), np.full((8, 32), -128.0)
    d = np.full((128, 4), 2**31 - 5, np.int64).astype(np.int32).view(np.uint32)
    wrapped = run(f"{PREFIX}.m64n8k32.s32.s8.s8", a, b, d).view(np.int32)
    np.testing.assert_array_equal(wrapped, (2**31 - 5 + 128 * 128 * 32) - 2**32)
    saturated = run(f"{PREFIX}.m64n8k32.satfinite.s32.s8.s8", a, b, d).view(np.int32)
    np.testing.assert_array_equal(saturated, 2**31 - 1)


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("m64n8k16.f32.f16.f16", {"base": 1}, "a base offset, which is not supported"),
        ("m64n8k16.f32.f16.f16", {"guard": "setp.lt.u32 %p1, %r1, 96; @%p1"}, "the other threads of the warpgroup"),
    ],
)
def test_faults(name: str, how: dict[str, object], message: str) -> None:
    with pytest.raises(XlaEmittersError, match=message):
        check(f"{PREFIX}.{name}", **how)


def test_what_a_warp_knows_of_the_others_of_its_group() -> None:
    """A row of A that another warp reads is overwritten: only after a later product, which that warp has begun behind its wait."""
    name, waits = f"{PREFIX}.m64n8k16.f32.f16.f16", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    of_a, da = image(np.zeros((64, 16)), "f16", 0, False)
    of_b, db = image(np.zeros((8, 16)), "f16", 0, False)
    words = {"shared": SHARED, "bytes": 16, "name": name, "scale_d": 1, "end": ", 1, 1, 0, 0", "guard": "", "a": "%rd4"}
    text = KERNEL.format(**words, registers="%d0, %d1, %d2, %d3", loads="", stores="")
    other = f"{name} {{%d4, %d5, %d6, %d7}}, {{%a0, %a1, %a2, %a3}}, %rd5, %p3, 1, 1, 0; {waits}"
    store = "setp.eq.u32 %p1, %r1, 32; @%p1 st.shared.u32 [%r2], 0;"
    arrays = [np.frombuffer(of_a + of_b, np.uint8).copy(), *(np.zeros((128, 4), np.uint32) for _ in range(2))]
    arrays += [np.asarray(np.uint64(each)) for each in (da, db + (len(of_a) >> 4))]

    def fault(body: str) -> str:
        kernel = PtxKernel.read(HEAD.replace("sm_90", "sm_90a") + text.replace(waits, body), "w.ptx")
        verdict = kernel.check(arrays, launch_of("1x128")[0], shared_bytes=SHARED)
        return "" if verdict.ok else verdict.summary

    assert "thread 32 writes bytes 0 to 3 of @smem, which thread 0 of its block read: a race" in fault(waits + store)
    assert not fault(waits + other + store)
    assert "reads without a wait: a race" in fault(other.replace(waits, "") + store + waits)
    assert "which thread 0 of its block read: a race" in fault(
        waits.split(" ", 1)[0] + other + store
    )  # begun before the first ended
    assert not fault(waits + "setp.eq.u32 %p1, %r1, 1; @%p1 st.shared.u32 [%r2], 0;")  # of its own warp


@pytest.mark.parametrize(
    "name", ["m64n12k16.f32.f16.f16", "m64n8k16.f16.bf16.bf16", "m64n8k8.f32.f16.f16", "m64n8k32.f32.s8.s8"]
)
def test_what_does_not_exist_is_refused(name: str) -> None:
    text = (
        HEAD
        + ".entry k() { .reg .b32 %r<9>; .reg .b64 %d; .reg .pred %p;"
        + f"{PREFIX}.{name} {{%r1}}, %d, %d, %p, 1, 1, 0, 0; }}"
    )
    with pytest.raises(XlaEmittersError, match="is not supported"):
        PtxKernel.read(text, "w.ptx").run([], launch_of("1x128")[0])


PIPELINE = """.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 out) .reqnctapercluster 2 .reqntid 256 {{
  .reg .b32 %d<32>, %r<30>; .reg .b64 %rd<20>; .reg .pred %p<9>; .reg .b16 %h; .shared .align 8 .b64 bar[4];
  mov.b64 %rd1, ma; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, mb; cvta.param.u64 %rd2, %rd2; ld.param.u64 %rd3, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, bar; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, 0;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 1; mbarrier.init.shared.b64 [%r3+8], 1;
  mbarrier.init.shared.b64 [%r3+16], 2; mbarrier.init.shared.b64 [%r3+24], 2; fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  setp.ge.u32 %p2, %r1, 128; @%p2 bra PRODUCER; {zeros}
CONSUME: and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; mad.lo.u32 %r9, %r7, 8, %r3; mad.lo.u32 %r10, %r7, 16384, %r2;
  {{ W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r9], %r8; @!%p3 bra W; }}
  cvt.u64.u32 %rd4, %r10; bfe.u64 %rd4, %rd4, 4, 14; or.b64 %rd4, %rd4, {descriptor}; add.s64 %rd5, %rd4, 512;
  wgmma.fence.sync.aligned; setp.eq.u32 %p4, %r1, %r1; {products}
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.sync 1, 128; @%p1 bra NEXT;
  mapa.shared::cluster.u32 %r11, %r9, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11+16];
  mapa.shared::cluster.u32 %r11, %r9, 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11+16];
NEXT: add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 4; @%p5 bra CONSUME;
  mad.lo.u32 %r12, %r4, 128, %r1; mad.wide.u32 %rd3, %r12, 128, %rd3; {stores} bra END;
PRODUCER: setp.ne.u32 %p6, %r1, 128; @%p6 bra END; mov.u16 %h, 3;
PRODUCE: and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; xor.b32 %r8, %r8, 1; mad.lo.u32 %r9, %r7, 8, %r3; mad.lo.u32 %r10, %r7, 16384, %r2;
  {{ W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r9+16], %r8; @!%p3 bra W; }}
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 16384; shl.b32 %r13, %r6, 6; shl.b32 %r14, %r4, 6; shl.b32 %r15, %r5, 5;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1, {{%r13, %r14}}], [%r9];
  shl.b32 %r16, %r5, 12; add.u32 %r16, %r16, %r10; add.u32 %r16, %r16, 8192;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r16], [%rd2, {{%r13, %r15}}], [%r9], %h;
  add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 4; @%p5 bra PRODUCE;
END: barrier.cluster.arrive.release; barrier.cluster.wait.acquire; ret;
}}
"""


@pytest.mark.parametrize("wait", [True, False])
def test_a_pipeline_of_two_blocks(wait: bool) -> None:
    """A thread copies boxes ahead, half of B to both blocks of a cluster; a warpgroup multiplies. Two stages, four steps, four blocks.

    Without the wait for the empty stage, a copy begins to where another one is in flight.
    """
    dice = np.random.default_rng(5)
    a, b = (dice.integers(-4, 5, size).astype(np.float16) for size in ((256, 256), (64, 256)))
    registers = ", ".join(f"%d{n}" for n in range(32))
    product = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{registers}}}, %rd4, %rd5, %p4, 1, 1, 0, 0;"
    step = "add.s64 %rd4, %rd4, 2; add.s64 %rd5, %rd5, 2;"
    text = PIPELINE.format(
        descriptor=1 << 62 | 1 << 16 | 64 << 32,
        zeros="".join(f"mov.b32 %d{n}, 0;" for n in range(32)),
        products=step.join([product.format(registers=registers)] * 4),
        stores="".join(f"st.global.b32 [%rd3+{4 * n}], %d{n};" for n in range(32)),
    )
    if not wait:
        text = text.replace("[%r9+16], %r8;", "[%r9+16], 1;")
    kernel = PtxKernel.read(HEAD.replace("sm_90", "sm_90a") + text, "pipeline.ptx")
    arrays = [a, b, np.zeros((4, 128, 32), np.float32)]
    how: dict[str, Any] = {
        "shared_bytes": 32768,
        "tensor_maps": {0: TensorMap((64, 64), 128), 1: TensorMap((32, 64), 128)},
    }
    launch = launch_of("4x256")[0]
    verdict = kernel.check(arrays, launch, **how)
    if not wait:
        assert (
            "begins to copy to bytes 0 to 15 of @smem, which thread 128 of its block copies without a wait"
            in verdict.summary
        )
        return
    assert verdict.ok, verdict.details
    found, (row, column) = kernel.run(arrays, launch, **how)[2], d_places(64)
    want = (a.astype(np.float64) @ b.astype(np.float64).T).reshape(4, 64, 64)[:, row, column]
    np.testing.assert_array_equal(found, want)
