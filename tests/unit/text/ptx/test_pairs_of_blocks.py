"""`tcgen05` of `.cta_group::2`: products and copies of two blocks against NumPy, tensor maps whose bytes the first block awaits, faults.

The kernels are those of one block (`test_tensor_memory`), run by a cluster of two; the first thread of the first block issues.
"""

import re
from typing import Any

import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD as ANY
from unit.text.ptx.test_tensor_memory import (
    KINDS,
    LOADED,
    SHARED,
    STORED,
    cells_of,
    chunks_of,
    descriptor,
    image,
    small_integers,
    text_of,
)

from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of, tensor_map_of

CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;"
FIRST = "mov.u32 %r20, %cluster_ctarank; add.u32 %r21, %r20, %r1; setp.eq.u32 %p6, %r21, 0;"
"""%p6 in the first thread of the first block: its rank and its number are 0."""
COMMIT = (
    "@%p6 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r4], %h1; "
    "V: mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0; @!%p4 bra V;"
)


def text_of_two(issue: str, columns: int) -> str:
    """`issue` between what each block loads of its half, and stores of its tensor memory."""
    text = text_of(STORED + CLUSTER + issue + COMMIT + LOADED + CLUSTER, columns).replace(
        "cta_group::1", "cta_group::2"
    )
    places = f"{FIRST} mov.b16 %h1, 3; mad.wide.u32 %rd1, %r20, {SHARED}, %rd1; mad.wide.u32 %rd2, %r20, {512 * columns}, %rd2;"
    places += f"mad.wide.u32 %rd3, %r20, {512 * columns}, %rd3;"
    return text.replace("mov.u32 %r2, smem;", f"{places} mov.u32 %r2, smem;").replace(
        ".reg .b32", ".reg .b16 %h<2>; .reg .b32", 1
    )


def run(
    issue: str,
    cells: np.ndarray,
    memory: tuple[bytes, bytes],
    descriptors: tuple[int, int] = (0, 0),
    what: int = 0,
    launch: str = "2x128/2",
    changes: tuple[tuple[str, str], ...] = (),
) -> np.ndarray:
    """What both blocks' tensor memory holds afterwards, (2, 128, columns), where `cells` is what it held."""
    text = text_of_two(issue, cells.shape[-1])
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    kernel = PtxKernel.read(text.replace(";", ";\n"), "t.ptx")
    whole = np.concatenate([np.frombuffer(each.ljust(SHARED, b"\0"), np.uint8) for each in memory])
    numbers = [np.asarray(np.uint64(each)) for each in descriptors]
    arrays = [whole, cells, np.zeros_like(cells), *numbers, np.asarray(np.uint32(what))]
    shape, _, cluster = launch_of(launch)
    verdict = kernel.check(arrays, shape, shared_bytes=SHARED, cluster=cluster)
    if not verdict.ok:
        place = re.search(r"t\.ptx:(\d+):", "".join(verdict.details))
        at = text.replace(";", ";\n").splitlines()[int(place[1]) - 1].strip() if place else ""
        raise ExecutionError(f"{verdict.summary} | {at}", stage="simt")
    return kernel.run(arrays, shape, shared_bytes=SHARED, cluster=cluster)[2]


def lanes_of(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Block, lane and column of each element of D, (rows, columns), from the ISA's figures of layouts A and B."""
    row, column = np.indices((rows, columns))
    if rows == 256:
        return row // 128, row % 128, column
    return row // 64, row % 64 + 64 * (column >= columns // 2), column % (columns // 2)


def numbered(columns: int = 128) -> np.ndarray:
    return (np.arange(256)[:, None] * 1000 + np.arange(columns)).astype(np.uint32).reshape(2, 128, columns)


def product(
    kind: str,
    a: str,
    b: str,
    to: str = "f32",
    *,
    rows: int = 256,
    columns: int = 64,
    along: tuple[bool, bool] = (False, False),
    in_tensor: bool = False,
    masks: tuple[int, ...] = (),
    changes: tuple[tuple[str, str], ...] = (),
    launch: str = "2x128/2",
) -> None:
    """Each block's shared memory has half of the rows of A, and half of the columns of B, behind them."""
    depth, _ = KINDS[kind]
    dice = np.random.default_rng(rows + columns)
    left, right = small_integers(dice, (a, b), ((rows, depth), (columns, depth)))
    before, where = dice.integers(-9, 10, (rows, columns)).astype(np.float64), lanes_of(rows, columns)
    cells = numbered()
    cells[where] = cells_of(before, to)
    parts, da, db = list[bytes](), 0, 0
    for half, of_b in zip(np.split(left, 2), np.split(right, 2), strict=True):
        (first, da), (second, db) = (
            image(chunks_of(matrix, word, depth, side), 128, side)
            for matrix, word, side in ((half, a, along[0]), (of_b, b, along[1]))
        )
        parts.append(first + second)
    if in_tensor:
        packed = np.ascontiguousarray(left.astype(np.float16)).view(np.uint32).reshape(2, 128, -1)
        cells[:, :, 64 : 64 + packed.shape[2]] = packed
    what = descriptor(kind, a, b, to, rows, columns, along)
    ending = f"{{{{{', '.join(map(str, masks))}}}}}, " if masks else ""
    issue = f"setp.eq.u32 %p5, 0, 0; @%p6 tcgen05.mma.cta_group::2.kind::{kind} [%r7], {'[%r7+64]' if in_tensor else '%rd4'}, "
    got = run(
        f"{issue} %rd5, %r9, {ending}%p5;",
        cells,
        (parts[0], parts[1]),
        (da, db + (3 << 14 >> 4)),
        what,
        launch,
        changes,
    )
    block, lane, _ = where
    words = np.array(masks or [0] * 8)[4 * block + lane // 32]
    want = cells.copy()
    want[where] = cells_of(np.where(words >> lane % 32 & 1, before, left @ right.T + before), to)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize(
    ("kind", "a", "b", "to"),
    [
        *(("f16", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("tf32", "tf32", "tf32", "f32")),
        *(("f8f6f4", "e4m3", "e2m1", "f32"), ("i8", "s8", "u8", "s32")),
    ],
)
def test_kinds(kind: str, a: str, b: str, to: str, rows: int) -> None:
    product(kind, a, b, to, rows=rows)


def test_options() -> None:
    product("f16", "f16", "f16", columns=32)
    product("f16", "f16", "f16", columns=128)
    for along in ((True, False), (False, True)):
        product("f16", "f16", "f16", along=along, columns=128)
    product("f16", "f16", "f16", in_tensor=True)
    for rows in (128, 256):
        product("f16", "f16", "f16", rows=rows, masks=(1, 0, 5, 0, 0, 0xFFFF, 0, 3))


def test_factors_of_blocks() -> None:
    """Factors of a block's rows of A are in columns 64 to 67 of its tensor memory, of all columns of B from 68 on, in both."""
    depth, columns, codes = 32, 64, KINDS["mxf8f6f4"][1]
    dice = np.random.default_rng(1)
    left, right = (dice.integers(-3, 4, (n, depth)).astype(np.float64) for n in (256, columns))
    exponents = [dice.integers(-2, 3, n) for n in (256, columns)]
    cells, parts, da, db = numbered(), list[bytes](), 0, 0
    for block in (0, 1):
        for at, of in ((64, exponents[0][128 * block :][:128]), (68, exponents[1])):
            words = np.zeros(128, np.uint32)
            words[: len(of)] = of + 127
            cells[block, :, at : at + 4] = np.tile(words.reshape(4, 32).T, (4, 1))
        (first, da), (second, db) = (
            image(chunks_of(np.split(matrix, 2)[block], word, depth, False), 128)
            for matrix, word in ((left, "e4m3"), (right, "e5m2"))
        )
        parts.append(first + second)
    what = codes["e4m3"] << 7 | codes["e5m2"] << 10 | columns // 8 << 17 | 1 << 23 | 256 // 16 << 24
    issue = "setp.ne.u32 %p5, 0, 0; @%p6 tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r7], %rd4, %rd5, %r9, "
    issue += "[%r7+64], [%r7+68], %p5;"
    got = run(issue, cells, (parts[0], parts[1]), (da, db + (3 << 14 >> 4)), what)
    want = (left * 2.0 ** exponents[0][:, None]) @ (right * 2.0 ** exponents[1][:, None]).T
    np.testing.assert_array_equal(got[..., :columns], cells_of(want, "f32").reshape(2, 128, columns))


def test_copies_in_both_blocks() -> None:
    matrices = np.arange(2 * 128 * 4, dtype=np.uint32).reshape(2, 128, 4) * 7
    (first, descriptor), (second, _) = (image(each.view(np.uint8).reshape(128, 1, 16), 0) for each in matrices)
    got = run("@%p6 tcgen05.cp.cta_group::2.128x128b [%r7+8], %rd4;", numbered(32), (first, second), (descriptor, 0))
    want = numbered(32)
    want[:, :, 8:12] = matrices
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((("mov.b16 %h1, 3;", "mov.b16 %h1, 1;"),), "never ends"),
        (((COMMIT.split(" V:", maxsplit=1)[1], ""),), "block 0, thread 0 begins to read lane 0, column 0 of tensor memory, which thread 0"),
        (((CLUSTER, ""),), "of @smem, which thread 0 of block 1 wrote: a race | @%p6 tcgen05.mma"),
    ],
)  # fmt: skip
def test_faults(changes: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(ExecutionError, match=re.escape(message)):
        product("f16", "f16", "f16", changes=changes)


def test_a_block_without_another() -> None:
    with pytest.raises(ExecutionError, match=r"its block is not one of a pair.* \| @%p6 tcgen05.mma"):
        product("f16", "f16", "f16", launch="2x128")


BOXES = """.visible .entry k(.param .u64 map, .param .u64 out) {
  .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<5>; .reg .b16 %h; .shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar;
  mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r4, 0; and.pred %p3, %p1, %p2; mov.b16 %h, 3;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
  @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 4096;
  and.b32 %r5, %r3, 0xFEFFFFFF; shl.b32 %r6, %r4, 10; shl.b32 %r7, %r4, 3; LOAD
  @!%p2 bra E; W: mbarrier.try_wait.parity.shared.b64 %p4, [%r3], 0; @!%p4 bra W;
  shl.b32 %r8, %r1, 2; add.u32 %r9, %r2, %r8; mapa.shared::cluster.u32 %r10, %r9, 1; mul.wide.u32 %rd3, %r8, 1; add.s64 %rd2, %rd2, %rd3;
  ld.shared.u32 %r11, [%r9]; ld.shared.u32 %r12, [%r9+1024]; ld.shared::cluster.u32 %r13, [%r10]; ld.shared::cluster.u32 %r14, [%r10+1024];
  st.global.u32 [%rd2], %r11; st.global.u32 [%rd2+1024], %r12; st.global.u32 [%rd2+2048], %r13; st.global.u32 [%rd2+3072], %r14;
  E: barrier.cluster.arrive; barrier.cluster.wait; ret; }
"""
ONE = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
TO_BOTH = f"add.u32 %r6, %r2, %r6; @%p1 {ONE}.multicast::cluster.cta_group::2 [%r6], [%rd1, {{0, %r7}}], [%r5], %h;"
TO_OWN = f"""@%p1 {ONE}.cta_group::2 [%r2], [%rd1, {{0, %r7}}], [%r5];
  add.u32 %r6, %r2, 1024; add.u32 %r7, %r7, 16; @%p1 {ONE}.cta_group::2 [%r6], [%rd1, {{0, %r7}}], [%r5];"""


def boxes(load: str) -> tuple[bool, str, np.ndarray, np.ndarray]:
    """Boxes of 8 x 32 that both blocks load, all awaited by the first one, which stores what is in its memory, then in the other's."""
    kernel = PtxKernel.read((ANY + BOXES.replace("LOAD", load)).replace(";", ";\n"), "t.ptx")
    array, out = np.arange(32 * 32, dtype=np.float32).reshape(32, 32), np.zeros((4, 8, 32), np.float32)
    how: Any = {"tensor_maps": dict([tensor_map_of("p0,box=8x32")]), "cluster": (2, 1, 1)}
    shape, _, _ = launch_of("2x256")
    verdict = kernel.check([array, out], shape, **how)
    return verdict.ok, "\n".join([verdict.summary, *verdict.details]), array, kernel.run([array, out], shape, **how)[1]


def test_bytes_that_the_first_block_awaits() -> None:
    ok, told, array, got = boxes(TO_BOTH)
    assert ok, told
    parts = array.reshape(4, 8, 32)
    np.testing.assert_array_equal(got, parts[[0, 1, 0, 1]])
    ok, told, _, got = boxes(TO_OWN)
    assert ok, told
    np.testing.assert_array_equal(got, parts[[0, 2, 1, 3]])
    awaited = BOXES[BOXES.index("W: mbarrier") : BOXES.index("shl.b32 %r8")]
    kernel = PtxKernel.read((ANY + BOXES.replace("LOAD", TO_OWN).replace(awaited, "")).replace(";", ";\n"), "t.ptx")
    arrays, shape = [array, np.zeros((4, 8, 32), np.float32)], launch_of("2x256")[0]
    maps = dict([tensor_map_of("p0,box=8x32")])
    verdict = kernel.check(arrays, shape, tensor_maps=maps, cluster=(2, 1, 1))
    assert "copies without a wait: a race" in verdict.summary
