"""`mma`, `ldmatrix`, `stmatrix`, `movmatrix`: the fragments of the ISA's figures, products by NumPy of small integers, which are exact."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, run_checked

from xla_emitters.dialects.mlir.mma_shapes import BITS, SHAPES, Mma
from xla_emitters.errors import ExecutionError, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of

TYPES: dict[str, Any] = {
    **{
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f64": np.float64,
        "tf32": np.float32,
        "s8": np.int8,
        "u8": np.uint8,
    },
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f32": np.float32, "s32": np.int32},
}
Place = Callable[[int, int], tuple[int, int]]
"""(lane, number of the element that it holds) -> row and column, as the ISA's text gives them."""


def _halves16(lane: int, i: int) -> tuple[int, int]:
    """A of m16n8k16, f16 and bf16; also of s8's m16n8k32, with twice the elements of a register"""
    row = lane // 4 if i in (0, 1, 4, 5) else lane // 4 + 8
    return row, lane % 4 * 2 + (i & 1) + (0 if i < 4 else 8)


def _bytes32(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 if i < 4 or 8 <= i < 12 else lane // 4 + 8
    return row, lane % 4 * 4 + (i & 3) + (0 if i < 8 else 16)


def _nibbles64(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 if i < 8 or 16 <= i < 24 else lane // 4 + 8
    return row, lane % 4 * 8 + (i & 7) + (0 if i < 16 else 32)


A: dict[tuple[int, int, int], Place] = {
    # (bits, rows, columns)
    (16, 16, 8): lambda lane, i: (lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)),
    (16, 16, 16): _halves16,
    (32, 16, 4): lambda lane, i: (lane // 4 + 8 * i, lane % 4),
    (32, 16, 8): lambda lane, i: (lane // 4 + 8 * (i in (1, 3)), lane % 4 + 4 * (i >= 2)),
    (64, 8, 4): lambda lane, i: (lane // 4, lane % 4),
    (64, 16, 4): lambda lane, i: (lane // 4 + 8 * i, lane % 4),
    (64, 16, 8): lambda lane, i: (lane // 4 + 8 * (i in (1, 3)), lane % 4 + 4 * (i >= 2)),
    (64, 16, 16): lambda lane, i: (lane // 4 + 8 * (i % 2), lane % 4 + (2 * i if i % 2 == 0 else 2 * i - 2)),
    (8, 8, 16): lambda lane, i: (lane // 4, lane % 4 * 4 + i),
    (8, 16, 16): lambda lane, i: (lane // 4 + 8 * (i >= 4), lane % 4 * 4 + (i & 3)),
    (8, 16, 32): _bytes32,
    (4, 8, 32): lambda lane, i: (lane // 4, lane % 4 * 8 + i),
    (4, 16, 32): lambda lane, i: (lane // 4 + 8 * (i >= 8), lane % 4 * 8 + (i & 7)),
    (4, 16, 64): _nibbles64,
    (1, 8, 128): lambda lane, i: (lane // 4, lane % 4 * 32 + i),
    (1, 16, 128): lambda lane, i: (lane // 4 + 8 * (i >= 32), lane % 4 * 32 + (i & 31)),
    (1, 16, 256): lambda lane, i: (
        lane // 4 + 8 * (32 <= i < 64 or i >= 96),
        lane % 4 * 32 + (i & 31) + 128 * (i >= 64),
    ),
}
B: dict[tuple[int, int], Place] = {
    # (bits, rows)
    (16, 8): lambda lane, i: (lane % 4 * 2 + i, lane // 4),
    (16, 16): lambda lane, i: (lane % 4 * 2 + (i & 1) + 8 * (i >= 2), lane // 4),
    (32, 4): lambda lane, i: (lane % 4, lane // 4),
    (32, 8): lambda lane, i: (lane % 4 + 4 * i, lane // 4),
    (64, 4): lambda lane, i: (lane % 4, lane // 4),
    (64, 8): lambda lane, i: (lane % 4 + 4 * i, lane // 4),
    (64, 16): lambda lane, i: (lane % 4 + 4 * i, lane // 4),
    (8, 16): lambda lane, i: (lane % 4 * 4 + i, lane // 4),
    (8, 32): lambda lane, i: (lane % 4 * 4 + (i & 3) + 16 * (i >= 4), lane // 4),
    (4, 32): lambda lane, i: (lane % 4 * 8 + i, lane // 4),
    (4, 64): lambda lane, i: (lane % 4 * 8 + (i & 7) + 32 * (i >= 8), lane // 4),
    (1, 128): lambda lane, i: (lane % 4 * 32 + i, lane // 4),
    (1, 256): lambda lane, i: (lane % 4 * 32 + (i & 31) + 128 * (i >= 32), lane // 4),
}
NAMES = [
    name
    for a, shapes in SHAPES.items()
    for m, k in shapes
    for b in ({"s8": ("s8", "u8"), "u8": ("u8", "s8"), "e4m3": ("e4m3", "e5m2"), "s4": ("u4",)}.get(a, (a,)))
    for to in ("f16", "f32", "f64", "s32")
    for end in ("", ".and.popc", ".xor.popc")
    if Mma.of(name := f"mma.sync.aligned.m{m}n8k{k}.row.col.{to}.{a}.{b}.{to}{end}") is not None
]


def as_words(numbers: np.ndarray, word: str) -> np.ndarray:
    """(lanes, elements) packed into registers: (lanes, registers), the first element in the lowest bits."""
    if word in ("s4", "u4"):
        nibbles = numbers.astype(np.int64) & 15
        return (nibbles[:, 0::2] | nibbles[:, 1::2] << 4).astype(np.uint8).view(np.uint32)
    if word == "b1":
        return np.packbits(numbers.astype(np.uint8), axis=1, bitorder="little").view(np.uint32)
    typed = np.ascontiguousarray(numbers.astype(TYPES[word]))
    return typed.view(np.uint64 if word == "f64" else np.uint32)


def run(body: str, declarations: str, inputs: np.ndarray, results: int, threads: int = 32) -> np.ndarray:
    """The body's %in<n> are the columns of `inputs` (threads, n), %out<n> those of the result; all of one width."""
    bits = 8 * inputs.itemsize
    lines = [
        ".visible .entry k(.param .u64 p, .param .u64 q) {",
        f".reg .b{bits} %in<64>, %out<16>; .reg .b64 %at<3>; .reg .b32 %i;",
    ]
    lines += [declarations, "ld.param.u64 %at1, [p]; ld.param.u64 %at2, [q]; mov.u32 %i, %tid.x;"]
    size = inputs.itemsize
    lines += [f"mad.wide.u32 %at1, %i, {size * inputs.shape[1]}, %at1; mad.wide.u32 %at2, %i, {size * results}, %at2;"]
    lines += [f"ld.global.b{bits} %in{n}, [%at1+{size * n}];" for n in range(inputs.shape[1])]
    lines += [body, *(f"st.global.b{bits} [%at2+{size * n}], %out{n};" for n in range(results)), "ret; }"]
    kernel = PtxKernel.read(HEAD + "\n".join(lines), "m.ptx")
    after = kernel.run([inputs, np.zeros((threads, results), inputs.dtype)], launch_of(f"1x{threads}")[0])
    return after[1]


@pytest.mark.parametrize("name", NAMES)
def test_products(name: str) -> None:
    mma = Mma.of(name)
    dice = np.random.default_rng(len(name))
    low, high = {"u": (0, 4), "b1": (0, 2)}.get(mma.a if mma.a == "b1" else mma.a[0], (-3, 4))
    a = dice.integers(low, high, (mma.rows, mma.depth)).astype(np.float64)
    b = dice.integers(0 if mma.b[0] == "u" else low, high, (mma.depth, 8)).astype(np.float64)
    c = dice.integers(-9, 9, (mma.rows, 8)).astype(np.float64)
    of_a, of_b = A[BITS[mma.a], mma.rows, mma.depth], B[BITS[mma.b], mma.depth]

    def fragment(matrix: np.ndarray, place: Place, count: int) -> np.ndarray:
        return np.array([[matrix[place(lane, i)] for i in range(count)] for lane in range(32)])

    def of_c(lane: int, i: int) -> tuple[int, int]:
        return lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)

    numbers = mma.rows * 8 // 32
    given = [
        as_words(fragment(a, of_a, a.size // 32), mma.a),
        as_words(fragment(b, of_b, b.size // 32), mma.b),
        as_words(fragment(c, of_c, numbers), mma.to),
    ]
    assert tuple(part.shape[1] for part in given) == mma.registers
    first, second, third = np.cumsum([0, *mma.registers[:2]])

    def registers(start: int, count: int, stem: str = "in") -> str:
        return "{" + ", ".join(f"%{stem}{start + n}" for n in range(count)) + "}"

    body = f"{name} {registers(0, mma.registers[2], 'out')}, {registers(first, mma.registers[0])},"
    body += f" {registers(second, mma.registers[1])}, {registers(third, mma.registers[2])};"
    got = run(body, "", np.concatenate(given, axis=1), mma.registers[2])
    product = (a[:, :, None] != b[None]).sum(axis=1) if mma.combine == "xor" else a @ b
    want = as_words(fragment(product + c, of_c, numbers), mma.to)
    np.testing.assert_array_equal(got, want)


def test_integer_sums_wrap_or_saturate() -> None:
    ones = np.full((32, 8), 0x7F7F7F7F, np.uint32)
    ones[:, 6:] = 0x7FFFFFFF
    for modifier, want in (
        ("", (0x7FFFFFFF + 16 * 127 * 127 + (1 << 31)) % (1 << 32) - (1 << 31)),
        (".satfinite", 0x7FFFFFFF),
    ):
        body = f"mma.sync.aligned.m8n8k16.row.col{modifier}.s32.s8.s8.s32 {{%out0, %out1}}, {{%in0}}, {{%in1}}, {{%in6, %in7}};"
        got = run(body, "", ones, 2)
        assert (got.view(np.int32) == want).all()


def test_a_product_of_matrices_in_shared_memory() -> None:
    """As kernels do it: `ldmatrix` of A's rows and of B's columns, `mma`, `stmatrix`; f16[16,16] times f16[16,8]."""
    dice = np.random.default_rng(3)
    a, b = dice.integers(-4, 5, (16, 16)).astype(np.float16), dice.integers(-4, 5, (16, 8)).astype(np.float16)
    for transposed in (False, True):
        text = f"""
        .visible .entry k(.param .u64 p, .param .u64 q, .param .u64 r) {{
          .reg .b32 %r<40>; .reg .b64 %rd<20>; .shared .align 16 .b8 sa[512]; .shared .align 16 .b8 sb[256]; .shared .align 16 .b8 sd[256];
          ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd3, [r]; mov.u32 %r1, %tid.x;
          mad.wide.u32 %rd1, %r1, 16, %rd1; ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%rd1];
          mov.u32 %r6, sa; mad.lo.u32 %r7, %r1, 16, %r6; st.shared.v4.b32 [%r7], {{%r2, %r3, %r4, %r5}};
          mad.wide.u32 %rd2, %r1, 8, %rd2; ld.global.v2.b32 {{%r2, %r3}}, [%rd2];
          mov.u32 %r8, sb; mad.lo.u32 %r9, %r1, 8, %r8; st.shared.v2.b32 [%r9], {{%r2, %r3}};
          bar.sync 0;
          // lanes 0 to 15 name the rows' first halves, 16 to 31 their second halves
          and.b32 %r10, %r1, 15; shr.u32 %r11, %r1, 4; mad.lo.u32 %r12, %r10, 32, %r6; mad.lo.u32 %r12, %r11, 16, %r12;
          ldmatrix.sync.aligned.x4.m8n8.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r12];
          mad.lo.u32 %r13, %r10, 16, %r8;
          ldmatrix.sync.aligned.m8n8.x2{".trans" if transposed else ""}.shared.b16 {{%r24, %r25}}, [%r13];
          mov.b32 %r30, 0;
          mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%r26, %r27}}, {{%r20, %r21, %r22, %r23}}, {{%r24, %r25}}, {{%r30, %r30}};
          mov.u32 %r14, sd; mad.lo.u32 %r15, %r10, 16, %r14;
          stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r15], {{%r26, %r27}};
          bar.sync 0;
          mad.lo.u32 %r16, %r1, 8, %r14; ld.shared.v2.b32 {{%r2, %r3}}, [%r16];
          mad.wide.u32 %rd3, %r1, 8, %rd3; st.global.v2.b32 [%rd3], {{%r2, %r3}}; ret; }}
        """
        # Without .trans the rows of shared memory are B's columns, cut into halves of 8.
        given = b if transposed else np.concatenate([b[:8].T, b[8:].T])
        arrays = [a, np.ascontiguousarray(given), np.zeros((16, 8), np.float16)]
        found = run_checked(PtxKernel.read(HEAD + text, "m.ptx"), arrays, launch_of("1x32")[0])
        np.testing.assert_array_equal(found[2], a @ b)


def test_movmatrix_transposes() -> None:
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    got = run("movmatrix.sync.aligned.m8n8.trans.b16 %out0, %in0;", "", matrix.reshape(32, 2).view(np.uint32), 1)
    np.testing.assert_array_equal(got.view(np.uint16).reshape(8, 8), matrix.T)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%out0}, {%in0}, {%in0}, {%in0};", "is not supported"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%out0}, {%in0}, {%in0}, {%in0};", "m8n8k4"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%out0}, {%in0}, {%in0}, {%in0};", "takes 2 registers here"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%out0}, [%in0];", "takes 2 registers here"),
    ],
)
def test_what_is_not_taken_is_refused(body: str, message: str) -> None:
    with pytest.raises(XlaEmittersError, match=message) as caught:
        run(body, "", np.zeros((32, 1), np.uint32), 1)
    assert caught.value.place is not None


def test_faults_of_warps_and_rows() -> None:
    zeros = np.zeros((48, 4), np.uint32)
    body = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%out0, %out1}, {%in0}, {%in1}, {%in2, %in3};"
    with pytest.raises(ExecutionError, match="less than 32 threads"):
        run(body, "", zeros, 2, threads=48)
    with pytest.raises(ExecutionError, match="other threads of the warp"):
        run(f"setp.lt.u32 %p, %i, 7; @%p {body}", ".reg .pred %p;", zeros[:32], 2)
    body = "mov.u32 %in0, s; add.u32 %in0, %in0, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%out0}, [%in0];"
    with pytest.raises(ExecutionError, match="not aligned to 16 bytes"):
        run(body, ".shared .align 16 .b8 s[256];", zeros[:32], 1)
