"""`tcgen05`: tensor memory allocated, stored, loaded and copied to; products of all kinds against NumPy; what is refused, and races."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tools_here import here, needs
from unit.text.ptx.one_instruction import run_checked

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.text.ptx.ptx_parser import read_ptx
from xla_emitters.text.ptx.raising import Raised

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
SHARED = 3 << 15
START = """.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 image, .param .u64 c, .param .u64 d, .param .u64 da, .param .u64 db, .param .u32 what) {{
  .reg .b32 %c<260>, %r<30>; .reg .b64 %rd<20>; .reg .pred %p<9>; .shared .align 8 .b64 bar, done; .shared .align 4 .b32 at;
  ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [c]; ld.param.u64 %rd3, [d]; ld.param.u64 %rd4, [da]; ld.param.u64 %rd5, [db];
  ld.param.u32 %r9, [what];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, bar; mov.u32 %r4, done; mov.u32 %r5, at; setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 mbarrier.init.shared.b64 [%r4], 1; shr.u32 %r6, %r1, 5; setp.eq.u32 %p2, %r6, 0;
  @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 512;
  @%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  bar.sync 0; ld.shared.b32 %r7, [%r5]; shl.b32 %r8, %r6, 21; add.u32 %r8, %r7, %r8;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {shared};
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], {shared}, [%r3];
  W: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra W;
  mad.wide.u32 %rd2, %r1, {bytes}, %rd2; mad.wide.u32 %rd3, %r1, {bytes}, %rd3;
  cvt.u64.u32 %rd6, %r2; bfe.u64 %rd6, %rd6, 4, 14; add.s64 %rd4, %rd4, %rd6; add.s64 %rd5, %rd5, %rd6;
"""
END = "@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512; ret; }}"
STORED = (
    "{loads} tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%r8], {{{registers}}}; tcgen05.wait::st.sync.aligned; bar.sync 0;"
)
LOADED = "tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {{{registers}}}, [%r8]; tcgen05.wait::ld.sync.aligned; {stores} bar.sync 0;"
COMMIT = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];"
WAIT = "V: mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0; @!%p4 bra V;"
F16 = 1 << 4 | 2 << 17 | 8 << 24
"""The instruction descriptor of 128 rows and 16 columns of f16, in f32."""
CODES = {0: 0, 128: 2, 64: 4, 32: 6, 1: 1}
"""Swizzle -> its code in a descriptor; 1: of 128 bytes, by 32 at a time."""


def text_of(body: str, columns: int) -> str:
    words = {
        "shared": SHARED,
        "bytes": 4 * columns,
        "n": columns,
        "registers": ", ".join(f"%c{n}" for n in range(columns)),
        "loads": "".join(f"ld.global.b32 %c{n}, [%rd2+{4 * n}];" for n in range(columns)),
        "stores": "".join(f"st.global.b32 [%rd3+{4 * n}], %c{n};" for n in range(columns)),
    }
    return HEAD + (START + body + END).format(**words)


def run(
    body: str, cells: np.ndarray, memory: bytes = b"", descriptors: tuple[int, int] = (0, 0), what: int = 0
) -> np.ndarray:
    """The cells (128, columns) of tensor memory that the kernel's `LOADED` stores; `STORED` gives it `cells`."""
    kernel = PtxKernel.read(text_of(body, cells.shape[1]), "t.ptx")
    whole = np.frombuffer(memory.ljust(SHARED, b"\0"), np.uint8).copy()
    numbers = [np.asarray(np.uint64(each)) for each in descriptors]
    arrays = [whole, np.ascontiguousarray(cells), np.zeros_like(cells), *numbers, np.asarray(np.uint32(what))]
    return run_checked(kernel, arrays, launch_of("1x128")[0], shared_bytes=SHARED)[2]


def image(chunks: np.ndarray, swizzle: int, along: bool = False) -> tuple[bytes, int]:
    """Chunks of 16 bytes, uint8 (lines, chunks of a line, 16), in shared memory, and their descriptor without an address.

    A line is a row of a matrix, or, along rows, all rows of one k. Under a swizzle of W bytes, chunk c of line n of an atom is where chunk
    c ^ (n * W // 128 % (W // 16)) would be, as the ISA's figures show it.
    """
    width, lines = {0: 16, 1: 128}.get(swizzle, swizzle), 4 if swizzle == 1 else 8
    atom, wide = lines * width, -(-chunks.shape[1] // (width // 16))
    if along:
        near, far = atom, atom * (chunks.shape[0] // lines)  # from atom to atom along k, along rows
        leading, stride = (near, far) if not swizzle else (far, near)
    else:
        near, far = atom + 16 * (not swizzle), (atom + 16) * 2 if not swizzle else atom
        leading, stride = near, far
    found = np.zeros(3 << 14, np.uint8)
    for number, line in enumerate(chunks):
        group, n = divmod(number, lines)
        for c, chunk in enumerate(line):
            part, inside = divmod(c, width // 16)
            place = inside ^ (n * width // 128 % (width // 16))
            if swizzle == 1:
                place = (inside // 2 ^ n) * 2 + inside % 2
            start = group * near + part * far if along else group * far + part * near
            found[start + n * width + place * 16 :][:16] = chunk
    assert wide <= 32
    return found.tobytes(), leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | CODES[swizzle] << 61


def numbered(columns: int = 128) -> np.ndarray:
    return (np.arange(128)[:, None] * 1000 + np.arange(columns)).astype(np.uint32)


# ---------------------------------------------------------------------------------------------- loads and stores

FRAGMENTS: dict[str, tuple[int, Callable[[int, int], tuple[int, int]]]] = {
    # registers of one repetition; lane and column of the cell in register r of thread t, from the ISA's figures of fragments
    "32x32b": (1, lambda t, r: (t, r)),
    "16x64b": (1, lambda t, r: (t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2)),
    "16x128b": (2, lambda t, r: (t // 4 + 8 * (r % 2), r // 2 * 4 + t % 4)),
    "16x256b": (4, lambda t, r: (t // 4 + 8 * (r // 2 % 2), r // 4 * 8 + t % 4 * 2 + r % 2)),
    "16x32bx2": (1, lambda t, r: (t % 16, r + t // 16 * 40)),
}


@pytest.mark.parametrize(
    ("shape", "times", "half"),
    [
        ("32x32b", 8, 0),
        *(
            (shape, n, half)
            for shape, n in (("16x64b", 4), ("16x128b", 2), ("16x256b", 2), ("16x32bx2", 4))
            for half in (0, 16)
        ),
    ],
)
def test_fragments(shape: str, times: int, half: int) -> None:
    """Register r of a warp's thread is a cell of its 32 lanes: loaded, and stored to where it came from."""
    each, place = FRAGMENTS[shape]
    count, more = each * times, ", 40" if shape == "16x32bx2" else ""
    registers = ", ".join(f"%c{n}" for n in range(count))
    load = f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {{{{{registers}}}}}, [%r10+3]{more}; tcgen05.wait::ld.sync.aligned;"
    change = "".join(f"add.u32 %c{n}, %c{n}, {10000000 * (n + 1)};" for n in range(count))
    store = f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r10+3]{more}, {{{{{registers}}}}}; tcgen05.wait::st.sync.aligned;"
    body = STORED + f"add.u32 %r10, %r8, {half << 16};" + load + change + store + "bar.sync 0;" + LOADED
    want = numbered(64)
    for warp in range(4):
        for t in range(32):
            for r in range(count):
                lane, column = place(t, r)
                want[32 * warp + half + lane, column + 3] += 10000000 * (r + 1)
    np.testing.assert_array_equal(run(body, numbered(64)), want)


def test_lanes_may_be_counted_from_the_warps_own() -> None:
    """DeepGEMM gives all warps the address of lane 0, and of lane 16 for the second half of their own."""
    cells = numbered(16)
    np.testing.assert_array_equal(run(STORED.replace("[%r8]", "[%r7]") + LOADED, cells), cells)
    np.testing.assert_array_equal(run(STORED + LOADED.replace("[%r8]", "[%r7]"), cells), cells)
    moved = "tcgen05.ld.sync.aligned.16x64b.x1.b32 {{%c70}}, [%r7+1048576]; tcgen05.wait::ld.sync.aligned;"
    moved += "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r7+8], {{%c70}}; tcgen05.wait::st.sync.aligned;"
    wanted = cells.reshape(4, 32, 16).copy()
    wanted[:, :16, 8:10] = wanted[:, 16:, :2]
    np.testing.assert_array_equal(run(STORED + moved + LOADED, cells), wanted.reshape(128, 16))


def test_halves_of_cells_are_packed() -> None:
    """Two columns' lower halves are one register, and stored so with zeros above them."""
    load = "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {{%c70, %c71}}, [%r8+4]; tcgen05.wait::ld.sync.aligned;"
    store = "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r8+8], {{%c70, %c71}}; tcgen05.wait::st.sync.aligned;"
    cells = numbered(16) | np.uint32(0x70000000)
    got = run(STORED + load + store + LOADED, cells)
    np.testing.assert_array_equal(got[:, 8:12], cells[:, 4:8] & 0xFFFF)
    load = (
        load.replace("x2.pack", "x1.pack")
        .replace(", %c71", "")
        .replace("32x32b", "16x256b")
        .replace("{{%c70}}", "{{%c70, %c71, %c72, %c73}}")
    )
    store = "tcgen05.st.sync.aligned.16x256b.x1.b32 [%r8], {{%c70, %c71, %c72, %c73}}; tcgen05.wait::st.sync.aligned;"
    cells = numbered(32) | np.uint32(0x70000000)
    got = run(STORED + load.replace("[%r8+4]", "[%r8+8]") + store + "bar.sync 0;" + LOADED, cells)
    pairs = cells[:, 8:24:2] & 0xFFFF | (cells[:, 9:24:2] & 0xFFFF) << 16
    np.testing.assert_array_equal(got.reshape(4, 32, 32)[:, :16, :8], pairs.reshape(4, 32, 8)[:, :16])


@pytest.mark.parametrize(
    ("shape", "rows", "chunks", "lanes"),
    [
        ("128x256b", 128, 2, [(r, r) for r in range(128)]),
        ("128x128b", 128, 1, [(r, r) for r in range(128)]),
        ("4x256b", 4, 2, [(r, 32 * r) for r in range(4)]),
        ("64x128b.warpx2::02_13", 64, 1, [(r, r + 64 * n) for r in range(64) for n in range(2)]),
        ("64x128b.warpx2::01_23", 64, 1, [(r, r % 32 + 64 * (r // 32) + 32 * n) for r in range(64) for n in range(2)]),
        ("32x128b.warpx4", 32, 1, [(r, r + 32 * n) for r in range(32) for n in range(4)]),
    ],
)
@pytest.mark.parametrize("swizzle", [0, 32, 128])
def test_copies(shape: str, rows: int, chunks: int, lanes: list[tuple[int, int]], swizzle: int) -> None:
    given = np.random.default_rng(1).integers(0, 256, (rows, 2, 16)).astype(np.uint8)
    memory, descriptor = image(given, swizzle)
    body = STORED + f"@%p1 tcgen05.cp.cta_group::1.{shape} [%r7+4], %rd4;" + COMMIT + WAIT + LOADED
    want = numbered(16)
    words = given.reshape(rows, -1).view(np.uint32)
    for row, lane in lanes:
        want[lane, 4 : 4 + 4 * chunks] = words[row, : 4 * chunks]
    np.testing.assert_array_equal(run(body, numbered(16), memory, (descriptor, 0)), want)


# ---------------------------------------------------------------------------------------------- products

TYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8},
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn},
    **{"e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "f32": np.float32, "s32": np.int32},
}
BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
KINDS: dict[str, tuple[int, dict[str, int]]] = {
    # columns of A; codes of types in the instruction descriptor
    "f16": (16, {"f16": 0, "bf16": 1}),
    "tf32": (8, {"tf32": 2}),
    "f8f6f4": (32, {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}),
    "i8": (32, {"u8": 0, "s8": 1}),
    "mxf8f6f4": (32, {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}),
    "mxf4": (64, {"e2m1": 1}),
    "mxf4nvf4": (64, {"e2m1": 1}),
}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}


def chunks_of(matrix: np.ndarray, word: str, depth: int, along: bool) -> np.ndarray:
    """A matrix (rows, depth) as chunks of 16 bytes; numbers of less than 8 bits are 16 in a chunk, at its start, unless depth is 64."""
    typed = matrix.astype(TYPES[word])
    if along:
        return np.ascontiguousarray(typed.T).view(np.uint8).reshape(depth, -1, 16)
    if (bits := BITS.get(word, 8)) == 8:
        return np.ascontiguousarray(typed).view(np.uint8).reshape(len(matrix), 2, 16)
    digits = np.unpackbits(typed.view(np.uint8)[..., None], axis=-1, bitorder="little")[..., :bits]
    packed = np.packbits(digits.reshape(len(matrix), 2, -1), axis=-1, bitorder="little")
    return np.concatenate([packed, np.full((len(matrix), 2, 16 - packed.shape[2]), 0xEE, np.uint8)], axis=-1)


def cells_of(numbers: np.ndarray, to: str) -> np.ndarray:
    """Numbers as cells; those of 16 bits in lower halves."""
    typed = numbers.astype(TYPES[to])
    return typed.view(np.uint16).astype(np.uint32) if to == "f16" else typed.view(np.uint32)


def small_integers(
    dice: np.random.Generator, words: tuple[str, str], shapes: tuple[tuple[int, int], tuple[int, int]], big: int = 4
) -> list[np.ndarray]:
    """A and the transpose of B, so small that all sums are exact."""
    pairs = zip(words, shapes, strict=True)
    return [dice.integers(0 if word == "u8" else -big, big + 1, shape).astype(np.float64) for word, shape in pairs]


def descriptor(kind: str, a: str, b: str, to: str, rows: int, columns: int, along: tuple[bool, bool]) -> int:
    """The instruction descriptor of a product."""
    codes = KINDS[kind][1]
    what = RESULTS[to] << 4 | codes[a] << 7 | codes[b] << 10 | along[0] << 15 | along[1] << 16
    return what | columns // 8 << 17 | rows // 16 << 24


def product(
    kind: str,
    a: str,
    b: str,
    to: str = "f32",
    *,
    rows: int = 128,
    columns: int = 64,
    swizzles: tuple[int, int] = (128, 128),
    along: tuple[bool, bool] = (False, False),
    negates: tuple[int, int] = (0, 0),
    counts: int = 1,
    exponent: int | None = None,
    masks: tuple[int, ...] = (),
    in_tensor: bool = False,
    more: str = "",
    saturates: int = 0,
    big: int = 4,
) -> None:
    """D is at column 0, A at column 64 if it is in tensor memory."""
    depth, _ = KINDS[kind]
    dice = np.random.default_rng(rows + columns)
    left, right = small_integers(dice, (a, b), ((rows, depth), (columns, depth)), big)
    before = dice.integers(-9, 10, (rows, columns)).astype(np.float64) * 16
    lanes = np.arange(rows) if rows == 128 else np.arange(rows) // 16 * 32 + np.arange(rows) % 16
    cells = numbered(128)
    cells[lanes, :columns] = cells_of(before, to)
    (of_a, da), (of_b, db) = (
        image(chunks_of(matrix, word, depth, side), swizzle, side)
        for matrix, word, side, swizzle in zip((left, right), (a, b), along, swizzles, strict=True)
    )
    if in_tensor:
        packed = np.ascontiguousarray(left.astype(TYPES[a])).view(np.uint32)
        cells[:, 64 : 64 + packed.shape[1]] = packed
    what = descriptor(kind, a, b, to, rows, columns, along) | negates[0] << 13 | negates[1] << 14 | saturates << 3
    ending = f", {{{{{', '.join(map(str, masks))}}}}}" if masks else ""
    ending += ", %p5" + (f", {exponent}" if exponent is not None else "")
    operand = "[%r7+64]" if in_tensor else "%rd4"
    issue = f"setp.ne.u32 %p5, {counts}, 0; @%p1 tcgen05.mma.cta_group::1.kind::{kind}{more} [%r7], {operand}, %rd5, %r9{ending};"
    got = run(STORED + issue + COMMIT + WAIT + LOADED, cells, of_a + of_b, (da, db + (len(of_a) >> 4)), what)
    sums = (-1) ** (negates[0] ^ negates[1]) * (left @ right.T) + counts * before * 2.0 ** -(exponent or 0)
    if saturates:
        sums = np.clip(sums, -(2.0**31), 2.0**31 - 1)
    want = cells.copy()
    kept = [row for row, lane in enumerate(lanes) if not masks or not masks[lane // 32] >> lane % 32 & 1]
    want[lanes[kept], :columns] = cells_of(sums[kept], to)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(
    ("kind", "a", "b", "to"),
    [
        *(("f16", a, a, "f32") for a in ("f16", "bf16")),
        *(("f16", "f16", "f16", "f16"), ("f16", "bf16", "f16", "f32"), ("tf32", "tf32", "tf32", "f32")),
        *(("f8f6f4", a, b, "f32") for a, b in (("e4m3", "e5m2"), ("e2m1", "e2m1"), ("e3m2", "e2m1"), ("e4m3", "e2m3"))),
        *(("f8f6f4", "e4m3", "e4m3", "f16"), ("i8", "s8", "u8", "s32"), ("i8", "u8", "u8", "s32")),
    ],
)
def test_kinds(kind: str, a: str, b: str, to: str, rows: int) -> None:
    product(kind, a, b, to, rows=rows)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("along", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("kind", "word"), [("f16", "f16"), ("f8f6f4", "e4m3"), ("i8", "s8")])
def test_layouts_in_shared_memory(kind: str, word: str, along: tuple[bool, bool], swizzle: int) -> None:
    product(kind, word, word, "s32" if kind == "i8" else "f32", along=along, swizzles=(swizzle, swizzle))


def test_the_swizzle_of_32_bytes_at_a_time() -> None:
    product("tf32", "tf32", "tf32", along=(True, True), swizzles=(1, 1))
    product("tf32", "tf32", "tf32", along=(True, False), swizzles=(1, 64))


@pytest.mark.parametrize(
    "how",
    [
        {"columns": 16},
        {"columns": 8, "rows": 64},
        {"columns": 128},
        {"negates": (1, 0)},
        {"negates": (1, 1)},
        {"counts": 0},
        {"exponent": 3},
        {"exponent": 0},
        {"masks": (0, 1, 0xFFFFFFFF, 0x80000001)},
        {"masks": (5, 0, 0xFFFF, 0), "rows": 64},
        {"in_tensor": True},
        {"in_tensor": True, "along": (False, True)},
        {"more": ".collector::a::lastuse"},
    ],
)
def test_options(how: Any) -> None:
    product("f16", "f16", "f16", **how)


def test_a_in_tensor_memory_of_other_types() -> None:
    product("tf32", "tf32", "tf32", in_tensor=True)
    product("f8f6f4", "e5m2", "e2m1", in_tensor=True)
    product("i8", "s8", "s8", "s32", in_tensor=True)


@pytest.mark.parametrize(
    ("kind", "a", "b", "size", "count", "scale"),
    [
        ("mxf8f6f4", "e4m3", "e5m2", ".block_scale", 1, "ue8m0"),
        ("mxf8f6f4", "e2m1", "e3m2", ".block_scale.scale_vec::1X", 1, "ue8m0"),
        ("mxf4", "e2m1", "e2m1", ".block_scale.scale_vec::2X", 2, "ue8m0"),
        ("mxf4", "e2m1", "e2m1", ".block_scale.block32", 2, "ue8m0"),
        ("mxf4nvf4", "e2m1", "e2m1", ".block_scale.scale_vec::4X", 4, "ue4m3"),
        ("mxf4nvf4", "e2m1", "e2m1", ".block_scale.block16", 4, "ue8m0"),
        ("mxf4nvf4", "e2m1", "e2m1", ".block_scale.scale_vec::2X", 2, "ue8m0"),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_factors_of_blocks(kind: str, a: str, b: str, size: str, count: int, scale: str, last: bool) -> None:
    """Factors of A are in columns 64 to 67, of B from 68 on: a byte of row r in lane r % 32 of all quarters, column r // 32.

    CUTLASS has the byte in the highest bits of their addresses too.
    """
    depth, codes = KINDS[kind]
    columns, first = 56, (4 - count if last else 0)
    dice = np.random.default_rng(count)
    left, right = (dice.integers(-3, 4, (n, depth)).astype(np.float64) for n in (128, columns))
    cells, factors = numbered(128), list[np.ndarray]()
    before = dice.integers(-9, 10, (128, columns)).astype(np.float64) * 16
    cells[:, :columns] = cells_of(before, "f32")
    for number, rows in enumerate((128, columns)):
        exponents = dice.integers(-2, 3, (rows, count))
        bytes_of = np.zeros((128, 4), np.uint8)
        bytes_of[:rows, first : first + count] = exponents + 127 if scale == "ue8m0" else exponents + 7 << 3
        words = bytes_of.view(np.uint32)[:, 0].reshape(4, 32)
        cells[:, 64 + 4 * number : 68 + 4 * number] = np.tile(words.T, (4, 1))
        factors.append(2.0 ** exponents.repeat(depth // count, axis=1))
    (of_a, da), (of_b, db) = (
        image(chunks_of(matrix, word, depth, False), 64) for matrix, word in ((left, a), (right, b))
    )
    what = (
        first << 4
        | codes[a] << 7
        | codes[b] << 10
        | columns // 8 << 17
        | (scale == "ue8m0") << 23
        | 8 << 24
        | first << 29
    )
    issue = f"setp.eq.u32 %p5, 0, 0; or.b32 %r10, %r7, {first << 30}; "
    issue += f"@%p1 tcgen05.mma.cta_group::1.kind::{kind}{size} [%r7], %rd4, %rd5, %r9, [%r10+64], [%r10+68], %p5;"
    got = run(STORED + issue + COMMIT + WAIT + LOADED, cells, of_a + of_b, (da, db + (len(of_a) >> 4)), what)
    want = cells_of((left * factors[0]) @ (right * factors[1]).T + before, "f32")
    np.testing.assert_array_equal(got[:, :columns], want)


# ---------------------------------------------------------------------------------------------- faults


def fault_of(body: str, *changes: tuple[str, str], what: int = F16, memory: bytes = b"") -> str:
    """What `check` finds in a kernel of 16 columns, in which texts are replaced; and the line at which it does; "" if nothing."""
    text = text_of(body, 16)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    kernel = PtxKernel.read(text.replace(";", ";\n"), "t.ptx")
    (of_a, da), (_, db) = image(np.zeros((128, 2, 16), np.uint8), 128), image(np.zeros((16, 2, 16), np.uint8), 128)
    whole = np.frombuffer((memory or of_a).ljust(SHARED, b"\0"), np.uint8).copy()
    numbers = [np.asarray(np.uint64(each)) for each in (da, db + (len(of_a) >> 4))]
    arrays = [whole, numbered(16), np.zeros((128, 16), np.uint32), *numbers, np.asarray(np.uint32(what))]
    verdict = kernel.check(arrays, launch_of("1x128")[0], shared_bytes=SHARED)
    if verdict.ok:
        return ""
    place = re.match(r"t\.ptx:(\d+):", verdict.details[0])
    return f"{verdict.summary} | {text.replace(';', ';' + chr(10)).splitlines()[int(place[1]) - 1].strip()}"


ALLOC = "@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 512;"
RELINQUISH = "@%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
DEALLOC = "@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;"
MMA = "setp.ne.u32 %p5, 1, 0; @%p1 tcgen05.mma.cta_group::1.kind::f16 [%r7], %rd4, %rd5, %r9, %p5;"
ROUND = STORED + LOADED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(DEALLOC, DEALLOC + DEALLOC)], "deallocates 0x0, where no allocation of tensor memory begins | @%p2 tcgen05.dealloc"),
        ([(DEALLOC, "")], "allocates tensor memory that is never deallocated | @%p2 tcgen05.alloc"),
        ([(DEALLOC, DEALLOC.replace("512", "256"))], "deallocates 256 columns of an allocation of 512 | @%p2 tcgen05.dealloc"),
        ([(DEALLOC, DEALLOC.replace("%r7", "%r8+0").replace("%r8+0", "%r2"))], "where no allocation of tensor memory begins"),
        ([(ALLOC, ALLOC + ALLOC)], "waits for tensor memory, which nobody deallocates: all columns are in use | @%p2 tcgen05.alloc"),
        ([(RELINQUISH, RELINQUISH + ALLOC)], "allocates tensor memory after tcgen05.relinquish_alloc_permit | @%p2 tcgen05.alloc"),
        ([(ALLOC, ALLOC.replace("512", "48"))], "names columns of tensor memory that are no power of two from 32 to 512"),
        ([(ALLOC, ALLOC.replace("512", "1024"))], "names columns of tensor memory that are no power of two from 32 to 512"),
        ([(ALLOC, ALLOC.replace("512", "32") + ALLOC.replace("512", "64"))], "allocates 64 columns after an allocation of 32"),
        ([("@%p2 tcgen05.alloc", "@%p1 tcgen05.alloc")], "is not reached with the other threads of the warp"),
        ([("x16.b32 [%r8]", "x16.b32 [%r8+500]")], "accesses column 512 of tensor memory, which is not allocated"),
        ([(ALLOC, ALLOC.replace("512", "32")), (DEALLOC, DEALLOC.replace("512", "32")), ("x16.b32 [%r8]", "x16.b32 [%r8+30]")],
         "accesses column 32 of tensor memory, which is not allocated | tcgen05.st"),
        ([("x16.b32 [%r8]", "x16.b32 [%r7+4194304]")], "thread 0 accesses lanes of tensor memory that are another warp's | tcgen05.st"),
        ([("add.u32 %r8, %r7, %r8;", "add.u32 %r8, %r7, %r8; add.u32 %r8, %r8, %r1;")], "has other operands than its warp"),
        ([("tcgen05.st.sync.aligned.32x32b.x16.b32 [%r8]", "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r8+16]")],
         "reads lane 0, column 0 of tensor memory, which no thread wrote | tcgen05.ld"),
    ],
)  # fmt: skip
def test_misuse_of_tensor_memory(changes: list[tuple[str, str]], message: str) -> None:
    assert message in fault_of(ROUND, *changes)


def test_a_part_of_tensor_memory_is_free_again() -> None:
    """A warp waits until another one has deallocated what it needs; and 32 columns sixteen times are all there are."""
    later = "bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;"
    again = (
        ALLOC.replace("%p2", "%p6")
        + "@%p6 bar.warp.sync -1; @%p6 ld.shared.b32 %r20, [%r5]; @%p6 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 512; ret;"
    )
    assert not fault_of(
        ROUND, (RELINQUISH, ""), (DEALLOC, later.replace("bar.sync 0;", "") + "setp.eq.u32 %p6, %r6, 1;" + again)
    )
    many, each = ALLOC.replace("512", "32"), DEALLOC.replace("512", "32")
    none = "".join(each.replace("%r7", str(32 * n)) for n in range(16))
    assert not fault_of("", (ALLOC, many * 16), (DEALLOC, none))
    assert "all columns are in use" in fault_of("", (ALLOC, many * 17), (DEALLOC, none))


SECOND = MMA.replace("[%r7]", "[%r7+32]")
FIRST_ZERO = MMA.replace("1, 0;", "0, 0;")
OTHER = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];"
ON_OTHER = "U: mbarrier.try_wait.parity.shared.b64 %p4, [%r3], 1; @!%p4 bra U;"
LATER = "@!%p2 bra S; " + WAIT + "S: " + ON_OTHER + "setp.eq.u32 %p4, %r1, 32; @%p4 st.shared.u32 [%r2], 0; bar.sync 0;"
OVERWRITTEN = "@%p1 st.shared.u32 [%r2], 0;"
AWAITED = "tcgen05.wait::ld.sync.aligned;"
ONE_LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%c20}}, [%r8];"
ONE_WAITS = "@!%p1 bra N; V: mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0; @!%p4 bra V; N:"
FLYING = "of tensor memory, which thread 0 of its block writes without a wait: a race"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (STORED + MMA + COMMIT + WAIT + LOADED, ""),
        (STORED + MMA + COMMIT + LOADED, f"begins to read lane 0, column 0 {FLYING} | tcgen05.ld"),
        (STORED + MMA + LOADED, f"begins to read lane 0, column 0 {FLYING} | tcgen05.ld"),
        (STORED + MMA + COMMIT + WAIT + MMA + LOADED, f"begins to read lane 0, column 0 {FLYING} | tcgen05.ld"),
        (STORED + MMA + MMA + COMMIT + WAIT + LOADED, ""),
        (STORED + MMA + OTHER + MMA + COMMIT + WAIT + LOADED, ""),  # a later commit is for all before it
        (STORED + MMA + OTHER + MMA + COMMIT + ON_OTHER + LOADED, f"begins to read lane 0, column 0 {FLYING} | tcgen05.ld"),
        (STORED + MMA + OTHER + FIRST_ZERO.replace("[%r7]", "[%r7+32]") + COMMIT + ON_OTHER + LOADED + WAIT, ""),
        (STORED + MMA + COMMIT + ONE_WAITS + "bar.sync 0;" + LOADED, ""),  # a barrier tells the others
        (STORED + MMA + COMMIT + ONE_WAITS + LOADED, "of tensor memory, which thread 0 of its block wrote: a race | N:tcgen05.ld"),
        (STORED.replace("tcgen05.wait::st.sync.aligned;", "") + MMA + COMMIT + WAIT + LOADED,
         f"begins to read lane 0, column 0 {FLYING} | @%p1 tcgen05.mma"),
        (STORED.replace("bar.sync 0;", "") + MMA + COMMIT + WAIT + LOADED,
         "begins to read lane 32, column 0 of tensor memory, which thread 32 of its block wrote: a race | @%p1 tcgen05.mma"),
        (STORED + FIRST_ZERO + SECOND + COMMIT + WAIT + LOADED,
         "reads lane 0, column 32 of tensor memory, which no thread wrote | @%p1 tcgen05.mma"),
        (STORED + MMA + COMMIT + OVERWRITTEN + WAIT + LOADED,
         "writes bytes 0 to 3 of @smem, which thread 0 of its block reads without a wait: a race | @%p1 st.shared"),
        (STORED + MMA + COMMIT + WAIT + OVERWRITTEN + LOADED, ""),
        (STORED + MMA + OTHER + COMMIT + LATER + LOADED, ""),  # what another warp has seen complete by another barrier
        (STORED + OVERWRITTEN + "bar.sync 0;" + MMA + COMMIT + WAIT + LOADED,
         "wrote without fence.proxy.async after it | @%p1 tcgen05.mma"),
        (STORED + OVERWRITTEN + "fence.proxy.async; bar.sync 0;" + MMA + COMMIT + WAIT + LOADED, ""),
        (STORED + "@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], %rd4;" + MMA + COMMIT + WAIT + LOADED, ""),  # in their order
        (STORED + "@%p1 tcgen05.cp.cta_group::1.128x128b [%r7], %rd4;" + LOADED, f"begins to read lane 0, column 0 {FLYING}"),
        (STORED + LOADED.replace(AWAITED, "") + "bar.sync 0;" + FIRST_ZERO + COMMIT + WAIT + LOADED, ""),  # its registers were used
        (STORED + ONE_LOAD + "bar.sync 0;" + FIRST_ZERO + COMMIT + WAIT + LOADED,
         "begins to write lane 0, column 0 of tensor memory, which thread 0 of its block reads without a wait: a race | @%p1 tcgen05.mma"),
        (STORED + ONE_LOAD + AWAITED + "bar.sync 0;" + FIRST_ZERO + COMMIT + WAIT + LOADED, ""),
    ],
)  # fmt: skip
def test_what_is_in_flight(body: str, message: str) -> None:
    found = fault_of(body)
    assert message in found if message else not found


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (F16 & ~(31 << 24) | 12 << 24, "has an instruction descriptor of 192 rows"),
        (F16 & ~(63 << 17) | 1 << 17, "has an instruction descriptor of 8 columns"),
        (F16 & ~(63 << 17) | 33 << 17, "has an instruction descriptor of 264 columns"),
        (F16 | 4, "has an instruction descriptor of a sparse matrix, which is not supported"),
        (F16 | 2 << 7, "has an instruction descriptor with a type that this kind does not have"),
        (F16 & ~(3 << 4) | 1 << 7, "has an instruction descriptor with sums of f16 of bf16"),
        (F16 | 8, "has an instruction descriptor that saturates floats"),
    ],
)
def test_descriptors_of_no_product(what: int, message: str) -> None:
    assert f"{message} | @%p1 tcgen05.mma" in fault_of(STORED + MMA + COMMIT + WAIT + LOADED, what=what)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("and.b64 %rd4, %rd4, 0xFFFF8FFFFFFFFFFF;", "has a descriptor whose bits 46 to 48 are not 1"),
        ("or.b64 %rd4, %rd4, 0x2000000000000000;", "has a descriptor of a swizzle of code 3"),
        ("or.b64 %rd4, %rd4, 0x2000000000000;", "has a descriptor with a base offset or an absolute stride"),
        ("or.b64 %rd4, %rd4, 0x3FFF;", "has a descriptor of an address outside shared memory"),
    ],
)
def test_descriptors_of_no_matrix(change: str, message: str) -> None:
    found = fault_of(STORED + "bar.sync 0;" + change + MMA + COMMIT + WAIT + LOADED)
    assert message in found
    assert "tcgen05.mma" in found


def test_factors_differ_between_quarters() -> None:
    scaled = "@%p1 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r7], %rd4, %rd5, %r9, [%r7+4], [%r7+8], %p5;"
    body = STORED + "setp.ne.u32 %p5, 0, 0;" + scaled + COMMIT + WAIT + LOADED
    assert "has factors that are not alike in the four quarters of the lanes" in fault_of(
        body, what=16 << 16 | 1 << 23 | 8 << 24
    )


# ---------------------------------------------------------------------------------------------- forms


def forms() -> dict[str, bool]:
    """Instructions of the family -> whether they are read. Those that ptxas 12.9 refuses for sm_100a are not."""

    def registers(count: int) -> str:
        return "{" + ", ".join(f"%r{10 + n}" for n in range(count)) + "}"

    found = dict[str, bool]()
    for shape, each in {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1, "32x64b": 2}.items():
        half = ", 4" if shape == "16x32bx2" else ""
        for times in (1, 2, 3, 8, 16, 32, 64, 128, 256):
            count = each * times
            fits = count <= 128 and times != 3 and shape != "32x64b"
            for word, is_load in (
                ("", True),
                ("", False),
                (".pack::16b", True),
                (".unpack::16b", False),
                (".pack::16b", False),
            ):
                name = f"tcgen05.{'ld' if is_load else 'st'}.sync.aligned.{shape}.x{times}{word}.b32"
                values, place = registers(min(count, 128)), f"[%r1+2]{half}"
                is_right = fits and (is_load or word != ".pack::16b")
                found[f"{name} {values}, {place};" if is_load else f"{name} {place}, {values};"] = is_right
    found["tcgen05.ld.sync.aligned.32x32b.x1.b32 %r2, [%r1];"] = False
    found["tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2, _}, [%r1];"] = False
    found["tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2}, [%r1];"] = False
    found["tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r2}, [%r1];"] = False
    found["tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], 3;"] = False
    for shape in ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b", "128x128b.warpx4", "32x128b.warpx2::02_13"):
        found[f"tcgen05.cp.cta_group::1.{shape} [%r1], %rd1;"] = shape in ("128x256b", "4x256b", "128x128b")
    for shape in ("64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"):
        found[f"tcgen05.cp.cta_group::1.{shape} [%r1], %rd1;"] = True
    plain, scaled, masks = "[%r1], %rd1, %rd1, %r2", "[%r3], [%r4]", "{%r3, %r4, %r5, %r6}"
    sizes = ("", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")
    have = {
        "mxf8f6f4": ("", "scale_vec::1X", "block32"),
        "mxf4": ("", "scale_vec::2X", "block32"),
        "mxf4nvf4": sizes[2:],
    }
    for kind in KINDS:
        name = f"tcgen05.mma.cta_group::1.kind::{kind}"
        is_plain = kind not in have
        found[f"{name} {plain}, %p1;"] = found[f"{name} {plain}, {masks}, !%p1;"] = is_plain
        found[f"{name} [%r1], [%r3], %rd1, 77, 1;"] = found[f"{name}.collector::a::use {plain}, %p1;"] = is_plain
        if kind != "i8":  # ptxas takes a divisor of integers, the ISA does not
            found[f"{name} {plain}, %p1, 15;"] = kind in ("f16", "tf32")
        found[f"{name} {plain}, %p1, 16;"] = found[f"{name} {plain};"] = False
        for size in sizes:
            dotted = f"{name}.block_scale{'.' * bool(size)}{size}"
            found[f"{dotted} {plain}, {scaled}, %p1;"] = size in have.get(kind, ())
            found[f"{dotted} {plain}, %p1;"] = False
    one = "mbarrier::arrive::one"
    for word in (".shared::cluster", "", ".shared::cta"):
        for place in ("[%r1]", "[%rd1]", "[bar]"):
            is_right = word != ".shared::cta" and (bool(word) or place != "[%r1]")
            if word or place != "[%r1]":
                found[f"tcgen05.commit.cta_group::1.{one}{word}.b64 {place};"] = is_right
    found[f"tcgen05.commit.cta_group::1.{one}.shared::cluster.multicast::cluster.b64 [%r1], %h1;"] = True
    found[f"tcgen05.commit.cta_group::1.{one}.shared::cluster.multicast::cluster.b64 [%r1], 3;"] = False
    found["tcgen05.commit.cta_group::1.shared::cluster.b64 [%r1];"] = False
    found["tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], %r1;"] = True
    found["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta [%r1], 32;"] = False
    found["tcgen05.dealloc.cta_group::1.sync.aligned.b32 [%r1], 32;"] = False
    found["tcgen05.wait::ld.sync;"] = found["tcgen05.fence;"] = False
    of_two = {
        form.replace("cta_group::1", "cta_group::2").replace(
            masks, "{%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}"
        ): is_read
        for form, is_read in found.items()
        if "cta_group::1" in form
    }
    found[f"tcgen05.mma.cta_group::2.kind::f16 {plain}, {masks}, %p1;"] = False
    found["tcgen05.alloc.sync.aligned.b32 [%rd1], %r1;"] = found["tcgen05.cp.128x128b [%r1], %rd1;"] = False
    # Of these ptxas takes some.
    more = (
        "shift.cta_group::1.down [%r1]",
        f"mma.ws.cta_group::1.kind::f16 {plain}, %p1",
        "mma.cta_group::1.kind::f16.ashift [%r1], [%r3], %rd1, %r2, %p1",
        "cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%r1], %rd1",
        f"commit.{one}.b64 [%rd1]",
    )
    return found | of_two | {f"tcgen05.{each};": False for each in more}


ENTRY = """.visible .entry k{number}() {{ .reg .b32 %r<140>; .reg .b64 %rd<3>; .reg .b16 %h<2>; .reg .pred %p<2>; .shared .align 8 .b64 bar;
mov.u32 %r1, 0; mov.u64 %rd1, 0; mov.b16 %h1, 0; setp.eq.u32 %p1, %r1, 0;
{form}
ret; }}
"""


def test_forms() -> None:
    for form, is_read in forms().items():
        module = read_ptx(HEAD + ENTRY.format(number=0, form=form), "f.ptx")
        if is_read:
            Raised(module, module.entries[0], ())
            continue
        with pytest.raises(XlaEmittersError) as caught:
            Raised(module, module.entries[0], ())
        assert "f.ptx:6:1" in str(caught.value), form


@needs("ptxas")
def test_what_is_read_ptxas_takes() -> None:
    entries = [
        ENTRY.format(number=number, form=form) for number, (form, is_read) in enumerate(forms().items()) if is_read
    ]
    assert len(entries) > 200
    assemble(HEAD + "".join(entries), "sm_100a", here())
