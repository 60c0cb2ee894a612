"""`mma.sp`: products by matrices half of whose elements are zero, and `wmma`; by NumPy of small integers, which are exact."""

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD
from unit.text.ptx.test_matrices import TYPES, A, B, Place, as_words, run

from xla_emitters.dialects.mlir.mma_shapes import BITS, SPARSE, Mma
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of


def metadata_of(places: np.ndarray, word: str, selector: int) -> np.ndarray:
    """The word of each lane: (32,). places: for each row and chunk its 4 bits: (16, chunks)

    Where CUTLASS says it (16-bit types with two threads, 8-bit ones with four), as its reorder_meta arranges words for ldmatrix.
    """
    chunks = places.shape[1]
    found = np.zeros(32, np.uint32)
    if BITS[word] > 8 and chunks == 8:
        # 16 bits for 4 chunks; 32 rows, of which the selector chooses 16.
        halves = np.zeros((32, 2), np.uint64)
        halves[16 * selector : 16 * selector + 16] = packed(places, 4)
        ordered = reordered(halves, 32, 4)
        return (ordered[:, 0] | ordered[:, 1] << np.uint64(16)).astype(np.uint32)
    if BITS[word] == 8 and chunks == 16:
        return reordered(packed(places, 8), 16, 2).reshape(-1).astype(np.uint32)
    for group in range(8):
        low, high = packed(places, chunks)[[group, group + 8], 0]
        if BITS[word] > 8:
            found[4 * group + selector] = int(low) | int(high) << 16
        else:
            found[4 * group + 2 * selector : 4 * group + 2 * selector + 2] = low, high
    return found


def packed(places: np.ndarray, each: int) -> np.ndarray:
    """Words of `each` chunks, the first in the lowest bits: (16, words)."""
    parts = places.reshape(16, -1, each).astype(np.uint64)
    return (parts << np.arange(0, 4 * each, 4, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)


def reordered(words: np.ndarray, group: int, interweave: int) -> np.ndarray:
    """Rows that are 8 apart become neighbours; then each 2 x 2 block is transposed."""
    found = np.zeros_like(words)
    for m, k in np.ndindex(*words.shape):
        row = m // group * group + m % 8 * interweave + m % group // 8
        block, inside = row // 2 * 2, row % 2
        found[block + k, inside] = words[m, k]
    return found


def cases() -> list[tuple[str, int]]:
    found = list[tuple[str, int]]()
    for word, depths in SPARSE.items():
        to = {"s8": "s32", "u8": "s32"}.get(word, "f32")
        for depth in depths:
            other = {"s8": "u8", "e4m3": "e5m2"}.get(word, word)
            name = f"mma.sp::ordered_metadata.sync.aligned.m16n8k{depth}.row.col.{to}.{word}.{other}.{to}"
            threads = depth // (2 if word == "tf32" else 4) // 4
            found += [(name, selector) for selector in range(4 // threads)]
    return [*found, ("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", 1)]


@pytest.mark.parametrize(("name", "selector"), cases())
def test_sparse_products(name: str, selector: int) -> None:
    mma = Mma.of(name)
    dice = np.random.default_rng(len(name) + selector)
    width = 2 if mma.a == "tf32" else 4
    dense, places = np.zeros((16, mma.depth)), np.zeros((16, mma.depth // width), np.int64)
    compressed = dice.integers(1, 4, (16, mma.depth // 2)).astype(np.float64)
    for row, chunk in np.ndindex(*places.shape):
        if width == 2:
            (place,) = chosen = dice.integers(0, 2, 1)
            places[row, chunk] = 0b1110 if place else 0b0100
        else:
            first, second = chosen = np.sort(dice.choice(4, 2, replace=False))
            places[row, chunk] = first | second << 2
        dense[row, width * chunk + chosen] = compressed[row, len(chosen) * chunk : len(chosen) * (chunk + 1)]
    b = dice.integers(0 if mma.b[0] == "u" else -3, 4, (mma.depth, 8)).astype(np.float64)
    c = dice.integers(-9, 9, (16, 8)).astype(np.float64)
    half = mma.depth // 2

    def of_b(lane: int, i: int) -> tuple[int, int]:
        inside = B[BITS[mma.b], half]
        row, column = inside(lane, i % (half // 4))
        return row + half * (i // (half // 4)), column

    def of_c(lane: int, i: int) -> tuple[int, int]:
        return lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)

    def fragment(matrix: np.ndarray, place: Place, count: int) -> np.ndarray:
        return np.array([[matrix[place(lane, i)] for i in range(count)] for lane in range(32)])

    given = [
        as_words(fragment(compressed, A[BITS[mma.a], 16, half], half // 2), mma.a),
        as_words(fragment(b, of_b, mma.depth // 4), mma.b),
        as_words(fragment(c, of_c, 4), mma.to),
        metadata_of(places, mma.a, selector)[:, None],
    ]
    assert tuple(part.shape[1] for part in given[:3]) == mma.registers
    starts = np.cumsum([0, *mma.registers])

    def registers(number: int, stem: str = "in") -> str:
        start = 0 if stem == "out" else starts[number]
        return "{" + ", ".join(f"%{stem}{start + n}" for n in range(mma.registers[number])) + "}"

    body = f"{name} {registers(2, 'out')}, {registers(0)}, {registers(1)}, {registers(2)}, %in{starts[3]}, {selector};"
    got = run(body, "", np.concatenate(given, axis=1), mma.registers[2])
    np.testing.assert_array_equal(got, as_words(fragment(dense @ b + c, of_c, 4), mma.to))


@pytest.mark.parametrize(
    ("word", "selector", "message"), [(0, 0, "names no neighbours in order"), (0x44444444, 3, "of 2 choices")]
)
def test_wrong_metadata(word: int, selector: int, message: str) -> None:
    body = f"mov.b32 %in1, {word};"
    body += "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%out0, %out1, %out2, %out3},"
    body += f" {{%in0, %in0, %in0, %in0}}, {{%in0, %in0, %in0, %in0}}, {{%in0, %in0, %in0, %in0}}, %in1, {selector};"
    with pytest.raises(XlaEmittersError, match=message):
        run(body, "", np.zeros((32, 1), np.uint32), 4)


WMMA = [
    # shape, A and B, C and D, layouts
    ((16, 16, 16), "f16", "f32", "row", "col"),
    ((32, 8, 16), "f16", "f16", "col", "row"),
    ((8, 32, 16), "bf16", "f32", "row", "row"),
    ((16, 16, 8), "tf32", "f32", "row", "col"),
    ((16, 16, 16), "s8", "s32", "col", "col"),
    ((32, 8, 16), "u8", "s32", "row", "col"),
    ((8, 8, 4), "f64", "f64", "row", "col"),
]
COUNTS = {"f16": (8, 8), "f64": (1, 1), "tf32": (4, 4)}


@pytest.mark.parametrize(("shape", "word", "to", "of_a", "of_b"), WMMA)
def test_wmma(shape: tuple[int, int, int], word: str, to: str, of_a: str, of_b: str) -> None:
    """Loads by row and by column, with a stride that is longer than a line; D by column. How many registers, the ISA's table says."""
    m, n, k = shape
    dice = np.random.default_rng(m + n)
    low = 0 if word == "u8" else -3
    a, b, c = (dice.integers(low, 4, size).astype(np.float64) for size in ((m, k), (k, n), (m, n)))

    def stored(matrix: np.ndarray, layout: str, kind: str) -> np.ndarray:
        lines = matrix if layout == "row" else matrix.T
        return np.pad(lines, ((0, 0), (0, 8))).astype(TYPES[kind])

    arrays = [stored(a, of_a, word), stored(b, of_b, word), stored(c, "row", to), np.zeros((n, m + 8), TYPES[to])]
    bits, size = (64 if word == "f64" else 32), f"m{m}n{n}k{k}"
    each = COUNTS.get(word, tuple(rows * k // 32 * np.dtype(TYPES[word]).itemsize // 4 for rows in (m, n)))
    of_c = 4 if to == "f16" else m * n // 32
    names = [
        f"{{{', '.join(f'%{stem}{i}' for i in range(count))}}}"
        for stem, count in zip("abcd", (*each, of_c, of_c), strict=True)
    ]
    kinds = f"{to}.{to}" if word == "f16" else f"{to}.{word}.{word}.{to}"
    text = f""".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
      .reg .b{bits} %a<9>, %b<9>, %c<9>, %d<9>; .reg .b64 %at<4>; .reg .b32 %s;
      ld.param.u64 %at0, [a]; ld.param.u64 %at1, [b]; ld.param.u64 %at2, [c]; ld.param.u64 %at3, [d]; mov.u32 %s, {arrays[0].shape[1]};
      wmma.load.a.sync.aligned.{of_a}.{size}.global.{word} {names[0]}, [%at0], %s;
      wmma.load.b.sync.aligned.{of_b}.{size}.{word} {names[1]}, [%at1], {arrays[1].shape[1]};
      wmma.load.c.sync.aligned.row.{size}.{to} {names[2]}, [%at2], {n + 8};
      wmma.mma.sync.aligned.{of_a}.{of_b}.{size}.{kinds} {names[3]}, {names[0]}, {names[1]}, {names[2]};
      wmma.store.d.sync.aligned.col.{size}.global.{to} [%at3], {names[3]}, {m + 8}; ret; }}"""
    kernel, launch = PtxKernel.read(HEAD + text, "w.ptx"), launch_of("1x32")[0]
    assert kernel.check(arrays, launch).ok
    found = kernel.run(arrays, launch)[3][:, :m].T
    np.testing.assert_array_equal(found.astype(np.float64), (a @ b + c).astype(TYPES[to]).astype(np.float64))


def test_what_wmma_does_not_have_is_refused() -> None:
    for body in (
        "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r}, [%d];",
        "wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r}, {%r}, {%r}, {%r};",
    ):
        with pytest.raises(XlaEmittersError, match="not supported"):
            PtxKernel.read(HEAD + f".entry k() {{ .reg .b32 %r; .reg .b64 %d; {body} }}", "w.ptx").run(
                [], launch_of("1x32")[0]
            )
