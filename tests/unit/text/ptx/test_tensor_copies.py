"""Copies of boxes by tensor maps: which elements, where under a swizzle, what lies outside; maps that a kernel changes; updates."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.text.ptx.one_instruction import HEAD, run_checked

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.errors import DataError, ExecutionError, UsageError, XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel, launch_of, tensor_map_of

BODY = """.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 more) {{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>; .shared .align 8 .b64 bar; .shared .align 128 .b8 s[128];
  mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [more];
  mov.u32 %r1, %tid.x; mov.u32 %r2, smem; mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0; setp.ne.u32 %p3, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;
  @%p3 bra READY;
  {issue}
  READY:
  W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W;
  {after}
  ret;
}}
"""
LOAD = """mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {bytes};
  cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {{{at}}}], [%r3];"""
OUT = """mov.u32 %r4, %r1;
  L: mad.wide.u32 %rd4, %r4, 1, %rd2; add.u32 %r5, %r2, %r4; ld.shared.u8 %r6, [%r5]; st.global.u8 [%rd4], %r6;
  add.u32 %r4, %r4, 32; setp.lt.u32 %p2, %r4, {bytes}; @%p2 bra L;"""
IN = """mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {bytes};
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd2], {bytes}, [%r3];"""
STORE = """@!%p1 bra END; cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%rd1, {{{at}}}], [%r2];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""


def executed(
    issue: str, after: str, arrays: list[np.ndarray], tensor_map: TensorMap, shared: int
) -> dict[int, np.ndarray]:
    """What the arrays hold afterwards: the map's, `out`, `more`. The sanitizer watches."""
    kernel = PtxKernel.read(HEAD + BODY.format(issue=issue, after=after), "t.ptx")
    given = [*arrays, np.zeros(4, np.uint32)][:3]
    return run_checked(kernel, given, launch_of("1x32")[0], shared_bytes=shared, tensor_maps={0: tensor_map})


def drawn(shape: tuple[int, ...], kind: Any) -> np.ndarray:
    return np.asarray(np.random.default_rng(1).integers(-100, 100, size=shape), kind)


def box_of(
    array: np.ndarray, at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], fill: float = 0
) -> np.ndarray:
    """The elements of a box, outermost dimension first, one after another."""
    counts = [-(-extent // step) for extent, step in zip(box, steps, strict=True)]
    found = np.full(counts, fill, array.dtype)
    for place in np.ndindex(*counts):
        where = tuple(start + step * number for start, step, number in zip(at, steps, place, strict=True))
        if all(0 <= index < extent for index, extent in zip(where, array.shape, strict=True)):
            found[place] = array[where]
    return found


def in_shared(values: np.ndarray, swizzle: int) -> np.ndarray:
    """Bytes as a swizzle of W bytes lays them out: in line n of 128 bytes, chunk c of 16 is at c ^ (n % (W / 16))."""
    data = np.frombuffer(values.tobytes(), np.uint8)
    if not swizzle:
        return data
    chunks, found = data.reshape(-1, 16), np.zeros((len(data) // 16, 16), np.uint8)
    for number, chunk in enumerate(chunks):
        line, place = divmod(number, 8)
        found[8 * line + (place ^ line % (swizzle // 16))] = chunk
    return found.reshape(-1)


CASES = [
    # shape, type, box, where it is, swizzle, steps
    ((100,), np.float32, (32,), (-4,), 0, (1,)),
    ((100, 64), ml_dtypes.bfloat16, (16, 64), (8, 0), 128, (1, 1)),
    ((100, 72), np.float16, (32, 32), (90, 56), 64, (1, 1)),
    ((20, 48), np.int8, (16, 32), (-3, 17), 32, (1, 1)),
    ((7, 9, 16), np.float32, (4, 5, 8), (-1, 6, 9), 0, (1, 1, 1)),
    ((5, 7, 9, 16), np.int32, (2, 3, 2, 8), (4, -1, 1, 0), 32, (1, 1, 1, 1)),
    ((3, 2, 3, 4, 8), np.int16, (2, 2, 2, 2, 8), (2, 1, 2, 3, 1), 0, (1, 1, 1, 1, 1)),
    ((40, 64), np.float32, (8, 16), (5, 3), 0, (3, 1)),
    ((200, 64), np.float16, (64, 64), (150, 20), 128, (2, 1)),
    ((8, 8), np.float32, (8, 8), (8, 0), 0, (1, 1)),
]


@pytest.mark.parametrize(("shape", "kind", "box", "at", "swizzle", "steps"), CASES)
def test_boxes(shape: Any, kind: Any, box: Any, at: Any, swizzle: int, steps: Any) -> None:
    array = drawn(shape, kind)
    tensor_map = TensorMap(box=box, swizzle=swizzle, steps=steps)
    values = box_of(array, at, box, steps)
    how = {"bytes": values.nbytes, "rank": len(shape), "at": ", ".join(map(str, reversed(at)))}
    arrays = [array, np.zeros(values.nbytes, np.uint8)]
    found = executed(LOAD.format(**how), OUT.format(**how), arrays, tensor_map, values.nbytes)
    np.testing.assert_array_equal(found[1], in_shared(values, swizzle))
    np.testing.assert_array_equal(found[0], array)
    # And back: only what is inside the array is written.
    other = np.random.default_rng(2).integers(-100, 100, values.shape).astype(kind)
    found = executed(
        IN.format(**how), STORE.format(**how), [array, in_shared(other, swizzle).copy()], tensor_map, other.nbytes
    )
    want = array.copy()
    for place in np.ndindex(*other.shape):
        where = tuple(start + step * number for start, step, number in zip(at, steps, place, strict=True))
        if all(0 <= index < extent for index, extent in zip(where, shape, strict=True)):
            want[where] = other[place]
    np.testing.assert_array_equal(found[0], want)


def test_outside_there_may_be_nan() -> None:
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    how = {"bytes": 256, "rank": 2, "at": "4, 4"}
    found = executed(
        LOAD.format(**how), OUT.format(**how), [array, np.zeros(64, np.float32)], TensorMap(box=(8, 8), fill="nan"), 256
    )
    np.testing.assert_array_equal(found[1].reshape(8, 8), box_of(array, (4, 4), (8, 8), (1, 1), np.nan))


@pytest.mark.parametrize(
    ("update", "function"), [("add", np.add), ("min", np.minimum), ("max", np.maximum), ("xor", np.bitwise_xor)]
)
def test_updates_by_boxes(update: str, function: Any) -> None:
    array = np.random.default_rng(3).integers(0, 1000, (16, 16)).astype(np.int32)
    values = np.random.default_rng(4).integers(0, 1000, (8, 16)).astype(np.int32)
    how = {"bytes": 512, "rank": 2, "at": "0, 12"}
    after = STORE.format(**how).replace(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile",
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{update}.tile",
    )
    found = executed(IN.format(**how), after, [array, values], TensorMap(box=(8, 16)), 512)
    want = array.copy()
    want[12:] = function(array[12:], values[:4])
    np.testing.assert_array_equal(found[0], want)


def test_updates_by_bytes() -> None:
    values, more = np.arange(128, dtype=np.float16), np.full(128, 0.5, np.float16)
    after = "@!%p1 bra END; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd3], [%r2], 256; END:"
    how = {"bytes": 256}
    found = executed(IN.format(**how), after, [np.zeros((8, 8), np.float32), values, more], TensorMap(box=(8, 8)), 256)
    np.testing.assert_array_equal(found[2], values + np.float16(0.5))
    inc = after.replace("add.noftz.f16", "inc.u32")
    old, limits = np.arange(64, dtype=np.uint32), np.full(64, 40, np.uint32)
    found = executed(IN.format(**how), inc, [np.zeros((8, 8), np.float32), limits, old], TensorMap(box=(8, 8)), 256)
    np.testing.assert_array_equal(found[2], np.where(old >= 40, 0, old + 1))


def test_a_map_that_the_kernel_changes() -> None:
    """Copied to shared memory, given another array, size, box and swizzle, and copied to global memory."""
    array = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    change = """
      ld.global.u8 %r6, [%rd1]; mov.u32 %r7, s; mov.u32 %r8, 0;
      C: cvt.u64.u32 %rd5, %r8; add.s64 %rd5, %rd1, %rd5; ld.b32 %r9, [%rd5]; add.u32 %r10, %r7, %r8; st.shared.b32 [%r10], %r9;
      add.u32 %r8, %r8, 4; setp.lt.u32 %p2, %r8, 128; @%p2 bra C;
      tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r7], %rd3;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r7], 0, 32;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r7], 1, 15;
      mov.b64 %rd6, 128; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r7], 0, %rd6;
      tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r7], 0, 16; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r7], 1, 8;
      tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r7], 2;
      tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r7], 128;
      fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
    """
    how = {"bytes": 512, "rank": 2, "at": "16, 8"}
    issue = change + LOAD.format(**how).replace("[%rd1", "[%rd2")
    out = "add.s64 %rd2, %rd2, 128;" + OUT.format(**how)
    kernel = PtxKernel.read(HEAD + BODY.format(issue=issue, after=out), "t.ptx")
    given = [np.zeros((4, 4), np.float32), np.zeros(128 + 512, np.uint8), array]
    found = kernel.run(given, launch_of("1x32")[0], shared_bytes=512, tensor_maps={0: TensorMap(box=(4, 4))})
    np.testing.assert_array_equal(found[1][128:], in_shared(box_of(array[:15], (8, 16), (8, 16), (1, 1)), 64))


def test_a_warp_that_stores_one_box() -> None:
    """Its threads store the same bytes, once; another warp that does is in a race with it; updates are made by all."""
    array, how = drawn((8, 8), np.int32), {"bytes": 256, "rank": 2, "at": "0, 0"}
    by_all = STORE.format(**how).replace("@!%p1 bra END; ", "")
    arrays, tensor_map = [np.zeros((8, 8), np.int32), array], TensorMap(box=(8, 8))
    np.testing.assert_array_equal(executed(IN.format(**how), by_all, arrays, tensor_map, 256)[0], array)
    added = by_all.replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor").replace("cta.tile", "cta.add.tile")
    np.testing.assert_array_equal(executed(IN.format(**how), added, arrays, tensor_map, 256)[0], 32 * array)
    kernel = PtxKernel.read(HEAD + BODY.format(issue=IN.format(**how), after=by_all), "t.ptx")
    verdict = kernel.check(
        [*arrays, np.zeros(4, np.uint32)], launch_of("1x64")[0], shared_bytes=256, tensor_maps={0: tensor_map}
    )
    assert (
        "thread 32 writes bytes 0 to 3 of the array of tensor map p0, which thread 0 of its block wrote: a race"
        in verdict.summary
    )


def packed(elements: np.ndarray) -> np.ndarray:
    """Numbers of four bits, two in a byte, the first one in its low bits."""
    return (elements[..., ::2] | elements[..., 1::2] << 4).astype(np.uint8)


@pytest.mark.parametrize("at", [(5, 64), (-2, 160)])
def test_elements_of_four_bits(at: tuple[int, int]) -> None:
    elements = np.random.default_rng(1).integers(0, 16, (20, 192))
    values = packed(box_of(elements, at, (8, 128), (1, 1)))
    how = {"bytes": values.nbytes, "rank": 2, "at": f"{at[1]}, {at[0]}"}
    tensor_map = tensor_map_of("p0:b4x16[20,192],box=8x128,swizzle=64")[1]
    arrays = [packed(elements), np.zeros(values.nbytes, np.uint8)]
    found = executed(LOAD.format(**how), OUT.format(**how), arrays, tensor_map, values.nbytes)
    np.testing.assert_array_equal(found[1], in_shared(values, 64))
    assert TensorMap((8, 128), element="b4x16").encoded(arrays[0], 0).tobytes()[8:16] == b"\xc0\0\0\0\x14\0\0\0"
    with pytest.raises(ExecutionError, match="copies half a byte, 128 elements from 65 of 192"):
        executed(LOAD.format(**how).replace(f"{{{at[1]},", "{65,"), "", arrays, tensor_map, values.nbytes)
    with pytest.raises(DataError, match="has whole bytes"):
        executed("", "", arrays, TensorMap((8, 128), element="b4x16", shape=(20, 191)), 0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("elemtype", 200, "a code that there is not"),
        ("rank", 4, "has 2 coordinates, but the tensor map has 5"),
        ("box_dim", 0, "with boxes of"),
        ("box_dim", 255, "writes bytes 0 to 4079"),
        ("interleave_layout", 1, "interleaved"),
    ],
)
def test_wrong_changes_of_a_map(field: str, value: int, message: str) -> None:
    number = "1, " if field == "box_dim" else ""
    issue = f"tensormap.replace.tile.{field}.global.b1024.b32 [%rd1], {number}{value};"
    issue += LOAD.format(bytes=128, rank=2, at="0, 0")
    with pytest.raises(ExecutionError, match=message):
        executed(issue, "", [np.zeros((8, 8), np.int16), np.zeros(4, np.uint32)], TensorMap(box=(8, 8)), 128)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"issue": ("[%r2],", "[%r2+64],")}, "not aligned to 128 bytes"),
        ({"shared": -16}, "writes bytes 0 to 255 of @smem, which has 240"),
        ({"map": TensorMap(box=(8, 8), shape=(16, 8))}, "reads bytes .* of the array of tensor map p0, which has 256"),
        ({"issue": ("{0, 4}", "{0, 4, 0}")}, "has 3 coordinates"),
        ({"issue": (".2d", ".3d")}, "has 2 coordinates"),
        ({"issue": ("[%rd1,", "[%rd3,")}, "reads bytes 0 to 127 of argument 2|something else than a tensor map"),
    ],
)
def test_faults(change: dict[str, Any], message: str) -> None:
    how = {"bytes": 256, "rank": 2, "at": "0, 4"}
    issue = LOAD.format(**how).replace(*change.get("issue", ("", "")))
    arrays = [np.zeros((8, 8), np.float32), np.zeros(256, np.uint8)]
    with pytest.raises(XlaEmittersError, match=message):
        executed(
            issue, OUT.format(**how), arrays, change.get("map", TensorMap(box=(8, 8))), 256 + change.get("shared", 0)
        )


@pytest.mark.parametrize(
    ("tensor_map", "message"),
    [
        (TensorMap(box=(8,)), "box and steps have 2 numbers"),
        (TensorMap(box=(8, 7)), "28 bytes in a box are no multiple of 16"),
        (TensorMap(box=(8, 300)), "1 to 256 elements"),
        (TensorMap(box=(8, 16), swizzle=32), "longer than the swizzle"),
        (TensorMap(box=(8, 16), swizzle=48), "a swizzle is of"),
        (TensorMap(box=(8, 8), strides=(20,)), "no multiples of 16 bytes"),
        (TensorMap(box=(8, 8), element="f24"), "no tensor map has elements of f24"),
        (TensorMap(box=(8, 8), argument=7), "p0 cannot be a tensor map of p7"),
    ],
)
def test_maps_that_the_driver_refuses(tensor_map: TensorMap, message: str) -> None:
    with pytest.raises(DataError, match=message):
        executed("", "", [np.zeros((8, 8), np.float32), np.zeros(4, np.uint8)], tensor_map, 16)


def test_the_text_of_a_map() -> None:
    number, found = tensor_map_of("p0=p3:bf16[128,64],box=64x64,swizzle=128,strides=128,steps=1x2,fill=nan")
    want = TensorMap((64, 64), 128, 3, "bf16", (128, 64), (128,), (1, 2), "nan")
    assert (number, found) == (0, want)
    for text in ("p0", "p0,swizzle=32", "0,box=4", "p0,box=4,color=3", "p0:bf16,box=4", "p0,box=ax4"):
        with pytest.raises(UsageError, match="is no tensor map"):
            tensor_map_of(text)
