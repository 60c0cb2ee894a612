"""Matrices of 8, 6 and 4 bits: `mma` of the `.kind`s, with factors of blocks; `ldmatrix` and `stmatrix` of bytes.

Products by NumPy and ml_dtypes of numbers whose sums are exact; places by the ISA's figures and the layouts of CUTLASS.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.test_matrices import A, B, run

from xla_emitters.dialects.mlir.mma_shapes import KINDS, NARROW, Mma
from xla_emitters.errors import ExecutionError, XlaEmittersError

FLOATS: dict[str, Any] = {
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn},
    **{"e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn},
}
NUMBERS = [0, 0.5, 1, 1.5, 2, 3, -0.5, -1, -2, -3]
"""That all types have."""


def codes(numbers: np.ndarray, word: str, bits: int) -> np.ndarray:
    """The bits of each number; e2m1 is in the middle of a byte (PTX ISA 8.8, 9.7.14.5.14 "mma")."""
    found = numbers.astype(FLOATS[word]).view(np.uint8).astype(np.uint32)
    return found << 2 if (word, bits) == ("e2m1", 8) else found


def words(numbers: np.ndarray, word: str, bits: int) -> np.ndarray:
    """(lanes, elements) in registers, the first element in the lowest bits."""
    parts = codes(numbers, word, bits).reshape(32, -1, 32 // bits)
    return (parts << np.arange(0, 32, bits, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)


def fragments(name: str, dice: np.random.Generator) -> tuple[Mma, np.ndarray, np.ndarray, np.ndarray]:
    """A, B, and the registers of both."""
    mma = Mma.of(name)
    a, b = dice.choice(NUMBERS, (16, mma.depth)), dice.choice(NUMBERS, (mma.depth, 8))
    of_a, of_b = A[mma.bits, 16, mma.depth], B[mma.bits, mma.depth]
    parts = [
        np.array([[matrix[place(lane, i)] for i in range(matrix.size // 32)] for lane in range(32)])
        for matrix, place in ((a, of_a), (b, of_b))
    ]
    return mma, a, b, np.concatenate([words(parts[0], mma.a, mma.bits), words(parts[1], mma.b, mma.bits)], axis=1)


def unpacked(got: np.ndarray, to: str) -> np.ndarray:
    """D from its registers: (16, 8)."""
    numbers = got.view(np.float16 if to == "f16" else np.float32)
    found = np.zeros((16, 8))
    for lane, i in np.ndindex(32, 4):
        found[lane // 4 + 8 * (i >= 2), lane % 4 * 2 + (i & 1)] = numbers[lane, i]
    return found


def product(name: str, count: int) -> str:
    """The instruction with its first four operands; nothing is added to the product. count: registers of D"""
    of_d, zeros = (", ".join(name.format(n) for n in range(count)) for name in ("%out{}", "%in9"))
    return f"mov.b32 %in9, 0; {name} {{{of_d}}}, {{%in0, %in1, %in2, %in3}}, {{%in4, %in5}}, {{{zeros}}}"


@pytest.mark.parametrize("to", ["f32", "f16"])
@pytest.mark.parametrize(("a", "b"), [(word, NARROW[-1 - n]) for n, word in enumerate(NARROW)])
def test_products_of_two_types(a: str, b: str, to: str) -> None:
    name = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{to}.{a}.{b}.{to}"
    _, first, second, given = fragments(name, np.random.default_rng(len(a + b)))
    got = run(product(name, 2 if to == "f16" else 4) + ";", "", given, 2 if to == "f16" else 4)
    np.testing.assert_array_equal(unpacked(got, to), first @ second)


SCALED = [
    ("mxf8f6f4.block_scale", "e4m3", "e2m1", "ue8m0", 3, 1),
    ("mxf8f6f4.block_scale.scale_vec::1X", "e3m2", "e5m2", "ue8m0", 0, 0),
    ("mxf4.block_scale", "e2m1", "e2m1", "ue8m0", 2, 1),
    ("mxf4nvf4.block_scale.scale_vec::2X", "e2m1", "e2m1", "ue8m0", 0, 0),
    ("mxf4nvf4.block_scale.scale_vec::4X", "e2m1", "e2m1", "ue4m3", 0, 1),
]


@pytest.mark.parametrize(("kind", "a", "b", "scale", "byte", "thread"), SCALED)
def test_factors_of_blocks(kind: str, a: str, b: str, scale: str, byte: int, thread: int) -> None:
    """Each part of a row of A, and of a column of B, has a factor: of threads 2t and 2t+1 for rows g and g+8, of thread s for column g."""
    dice = np.random.default_rng(len(kind))
    depth = KINDS[kind.split(".")[0]][2]
    name = f"mma.sync.aligned.m16n8k{depth}.row.col.kind::{kind}.f32.{a}.{b}.f32.{scale}"
    mma, first, second, given = fragments(name, dice)
    low, high = (0x80 - 3, 0x80 + 3) if scale == "ue8m0" else (0x28, 0x48)
    data = dice.integers(low, high, (32, 2, 4)).astype(np.uint8)
    factor_type = np.dtype(ml_dtypes.float8_e8m0fnu if scale == "ue8m0" else ml_dtypes.float8_e4m3fn)
    factors = data.view(factor_type).astype(np.float64)
    thread_of_b = thread + 2
    left = [[factors[row % 8 * 4 + 2 * thread + row // 8, 0, byte + n] for n in range(mma.scales)] for row in range(16)]
    right = [[factors[column * 4 + thread_of_b, 1, byte + n] for n in range(mma.scales)] for column in range(8)]
    scaled = (
        first * np.repeat(left, depth // mma.scales, axis=1),
        second * np.repeat(right, depth // mma.scales, axis=1).T,
    )
    body = product(name, 4) + f", %in6, {{{byte}, {thread}}}, %in7, {{{byte}, {thread_of_b}}};"
    got = run(body, "", np.concatenate([given, data.view(np.uint32)[..., 0]], axis=1), 4)
    np.testing.assert_array_equal(unpacked(got, "f32"), (scaled[0] @ scaled[1]).astype(np.float32))


def test_a_factor_that_is_no_number_spreads_and_selectors_are_checked() -> None:
    name = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    given = np.array([[0x22222222] * 6 + [0xFFFF]] * 32, np.uint32)
    assert np.isnan(run(product(name, 4) + ", %in6, {0, 0}, %in6, {0, 0};", "", given, 4).view(np.float32)).all()
    with pytest.raises(ExecutionError, match="takes scales from byte 1 of threads 0"):
        run(product(name, 4) + ", %in6, {1, 0}, %in6, {0, 0};", "", given, 4)


@pytest.mark.parametrize(
    "name",
    [
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32.ue8m0",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.f32.e4m3.e4m3.f32",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8",
    ],
)
def test_combinations_that_ptxas_refuses(name: str) -> None:
    body = f"{name} {{%out0}}, {{%in0}}, {{%in0}}, {{%in0}};" if name[0] == "m" else f"{name} {{%out0, %out1}}, [%in0];"
    with pytest.raises(XlaEmittersError, match=r"is not supported|needs one of"):
        run(body, "", np.zeros((32, 1), np.uint32), 1)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("bits", "source"), [(8, ".b8"), (6, ".b8x16.b6x16_p32"), (4, ".b8x16.b4x16_p64")])
def test_columns_of_bytes_are_loaded(bits: int, source: str, count: int) -> None:
    """16 rows of 16 elements; a lane has four rows of column g, and of column g + 8. Lane n has the address of row n."""
    elements = np.random.default_rng(bits).integers(0, 1 << bits, (16 * count, 16))
    name = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared{source}"
    got = loaded(name, elements, bits, 2 * count).view(np.uint8).reshape(32, count, 2, 4)
    for lane, number, half, place in np.ndindex(32, count, 2, 4):
        assert got[lane, number, half, place] == elements[16 * number + lane % 4 * 4 + place, lane // 4 + 8 * half]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(("bits", "source"), [(6, "b6x16_p32"), (4, "b4x16_p64")])
def test_rows_of_fewer_bits_are_loaded_as_bytes(bits: int, source: str, count: int) -> None:
    elements = np.random.default_rng(bits).integers(0, 1 << bits, (8 * count, 16))
    got = loaded(f"ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{source}", elements, bits, count)
    for lane, number, place in np.ndindex(32, count, 4):
        element = elements[8 * number + lane // 4, lane % 4 * 4 + place]
        assert got.view(np.uint8).reshape(32, count, 4)[lane, number, place] == element


def loaded(name: str, elements: np.ndarray, bits: int, registers: int) -> np.ndarray:
    """What the lanes get of rows of 16 elements, each row packed at the start of 16 bytes."""
    packed = np.zeros((32, 16), np.uint8)
    for row, numbers in enumerate(elements):
        whole = sum(int(number) << bits * place for place, number in enumerate(numbers))
        packed[row] = list(whole.to_bytes(16, "little"))
    out = ", ".join(f"%out{n}" for n in range(registers))
    body = (
        "mov.u32 %in9, s; mad.lo.u32 %in9, %i, 16, %in9; st.shared.v4.b32 [%in9], {%in0, %in1, %in2, %in3}; bar.sync 0;"
    )
    return run(f"{body} {name} {{{out}}}, [%in9];", ".shared .align 16 .b8 s[512];", packed.view(np.uint32), registers)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_bytes_of_a_product_are_stored_by_columns(count: int) -> None:
    """A lane has rows g and g + 8 of columns 2w and 2w + 1; a column is 16 bytes. Source: CUTLASS, Copy_Traits<SM100_U8x4_STSM_T>."""
    matrices = np.random.default_rng(count).integers(0, 256, (count, 16, 8)).astype(np.uint8)
    given = np.zeros((32, count, 4), np.uint8)
    for lane, number, place in np.ndindex(32, count, 4):
        given[lane, number, place] = matrices[number, lane // 4 + 8 * (place // 2), lane % 4 * 2 + place % 2]
    registers = ", ".join(f"%in{n}" for n in range(count))
    body = "mov.u32 %in9, s; mad.lo.u32 %in9, %i, 16, %in9; mov.b32 %in8, 0; st.shared.v4.b32 [%in9], {%in8, %in8, %in8, %in8};"
    body += f"bar.sync 0; stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%in9], {{{registers}}}; bar.sync 0;"
    body += "ld.shared.v4.b32 {%out0, %out1, %out2, %out3}, [%in9];"
    got = run(body, ".shared .align 16 .b8 s[512];", given.view(np.uint32)[..., 0], 4).view(np.uint8)
    np.testing.assert_array_equal(got[: 8 * count].reshape(count, 8, 16), matrices.swapaxes(1, 2))
    assert not got[8 * count :].any()
