"""Permutes of slices, and ragged exchanges, on all devices of a run: against NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import XlaEmittersError
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tools.main import main

SLICED = """HloModule m, num_partitions=4
ENTRY main {
  x = f32[8,6] parameter(0)
  y = f32[10,6] parameter(1)
  i = s32[] parameter(2)
  o = s32[] parameter(3)
  z = s32[] constant(0)
  t = s32[] constant(2)
  from = (s32[], s32[]) tuple(i, z)
  to = (s32[], s32[]) tuple(o, t)
  RESULT
}
"""
PLAIN = """ROOT p = f32[10,6] collective-permute(x, y, from, to), channel_id=1,
    source_target_pairs={{0,1},{1,2},{2,3}}, slice_sizes={{2,4}}"""
STARTED = """s = (f32[8,6], f32[10,6], u32[], u32[]) collective-permute-start(x, y, from, to), channel_id=1,
    source_target_pairs={{0,1},{1,2},{2,3}}, slice_sizes={{2,4}}
  ROOT p = f32[10,6] collective-permute-done(s)"""
TWICE = """from2 = (s32[], s32[]) tuple(t, t)
  to2 = (s32[], s32[]) tuple(z, z)
  froms = ((s32[], s32[]), (s32[], s32[])) tuple(from, from2)
  tos = ((s32[], s32[]), (s32[], s32[])) tuple(to, to2)
  ROOT p = f32[10,6] collective-permute(x, y, froms, tos), channel_id=1,
    source_target_pairs={{0,1},{1,0},{2,3},{0,2},{1,3},{3,2}}, slice_sizes={{2,4},{2,4}}"""
TUPLES = """w = f32[7] parameter(4)
  v = f32[9] parameter(5)
  one = (s32[]) tuple(i)
  other = (s32[]) tuple(o)
  xs = (f32[8,6], f32[7]) tuple(x, w)
  ys = (f32[10,6], f32[9]) tuple(y, v)
  froms = ((s32[], s32[]), (s32[])) tuple(from, one)
  tos = ((s32[], s32[]), (s32[])) tuple(to, other)
  ROOT p = (f32[10,6], f32[9]) collective-permute(xs, ys, froms, tos), channel_id=1, source_target_pairs={{0,3},{3,0}},
    slice_sizes={{2,4},{3}}"""


def sliced(result: str) -> str:
    return SLICED.replace("RESULT", result)


def given(count: int = 4) -> dict[str, np.ndarray]:
    """Arrays of each device; the starts of device 3 are outside: they are moved inside, as those of dynamic-slice."""
    random = np.random.default_rng(0)
    arrays = dict[str, np.ndarray]()
    for device in range(4):
        shapes = [(8, 6), (10, 6), None, None, (7,), (9,)]
        starts = {2: [1, 0, 5, 99][device], 3: [3, 7, 0, -5][device]}
        for number, shape in enumerate(shapes[:count]):
            value = np.int32(starts[number]) if shape is None else random.standard_normal(shape).astype(np.float32)
            arrays[f"p{number}@{device}"] = np.asarray(value)
    return arrays


def put(target: np.ndarray, at: tuple[int, ...], part: np.ndarray) -> None:
    at = tuple(min(max(start, 0), dim - size) for start, dim, size in zip(at, target.shape, part.shape, strict=True))
    target[tuple(slice(start, start + size) for start, size in zip(at, part.shape, strict=True))] = part


def taken(source: np.ndarray, at: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    at = tuple(min(max(start, 0), dim - size) for start, dim, size in zip(at, source.shape, sizes, strict=True))
    return source[tuple(slice(start, start + size) for start, size in zip(at, sizes, strict=True))]


def save(path: Path, arrays: dict[str, Any]) -> None:
    np.savez(path, **arrays)


def ran(text: str, arrays: dict[str, np.ndarray], folder: Path) -> dict[str, np.ndarray]:
    (folder / "m.hlo").write_text(text)
    save(folder / "in.npz", arrays)
    words = ["run", str(folder / "m.hlo"), "--platform", "cpu", "--inputs", str(folder / "in.npz")]
    assert main([*words, "--outputs", str(folder / "out.npz")]) == 0
    with np.load(folder / "out.npz") as found:
        return dict(found)


@pytest.mark.parametrize("result", [PLAIN, STARTED], ids=["plain", "started"])
def test_a_slice_is_put_in_the_receivers_array(result: str, tmp_path: Path) -> None:
    arrays = given()
    found = ran(sliced(result), arrays, tmp_path)
    for device in range(4):
        wanted = arrays[f"p1@{device}"].copy()
        if device > 0:
            part = taken(arrays[f"p0@{device - 1}"], (int(arrays[f"p2@{device - 1}"]), 0), (2, 4))
            put(wanted, (int(arrays[f"p3@{device}"]), 2), part)
        np.testing.assert_array_equal(found[f"r0@{device}"], wanted)


def test_a_device_sends_and_receives_two_slices(tmp_path: Path) -> None:
    arrays = given()
    found = ran(sliced(TWICE), arrays, tmp_path)
    wanted = [arrays[f"p1@{device}"].copy() for device in range(4)]
    sent, received = [0] * 4, [0] * 4
    for sender, receiver in ((0, 1), (1, 0), (2, 3), (0, 2), (1, 3), (3, 2)):
        source = (int(arrays[f"p2@{sender}"]), 0) if sent[sender] == 0 else (2, 2)
        target = (int(arrays[f"p3@{receiver}"]), 2) if received[receiver] == 0 else (0, 0)
        put(wanted[receiver], target, taken(arrays[f"p0@{sender}"], source, (2, 4)))
        sent[sender] += 1
        received[receiver] += 1
    for device in range(4):
        np.testing.assert_array_equal(found[f"r0@{device}"], wanted[device])


def test_slices_of_two_arrays(tmp_path: Path) -> None:
    arrays = given(6)
    found = ran(sliced(TUPLES), arrays, tmp_path)
    for device, sender in ((0, 3), (1, None), (2, None), (3, 0)):
        both = arrays[f"p1@{device}"].copy(), arrays[f"p5@{device}"].copy()
        if sender is not None:
            source, target = int(arrays[f"p2@{sender}"]), int(arrays[f"p3@{device}"])
            put(both[0], (target, 2), taken(arrays[f"p0@{sender}"], (source, 0), (2, 4)))
            put(both[1], (target,), taken(arrays[f"p4@{sender}"], (source,), (3,)))
        for number, wanted in enumerate(both):
            np.testing.assert_array_equal(found[f"r{number}@{device}"], wanted)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("slice_sizes={{2,4}}", "slice_sizes={{2,4},{1,1}}", "slice_sizes= has 1 slices, as the starts have"),
        ("slice_sizes={{2,4}}", "slice_sizes={{9,4}}", "fits in \\[8, 6\\]"),
        ("slice_sizes={{2,4}}", "slice_sizes={{-2,4}}", "fits in \\[8, 6\\]"),
        ("(s32[], s32[]) tuple(i, z)", "(s32[], s32[], s32[]) tuple(i, z, z)", "a number for each dimension"),
        ("{2,3}}", "{2,3},{0,3}}", "device 0 is a source of source_target_pairs= twice"),
        ("(x, y, from, to)", "(x, y, from)", "four operands"),
    ],
)
def test_slices_that_do_not_fit(was: str, now: str, message: str) -> None:
    text = sliced(PLAIN).replace(was, now)
    with pytest.raises(XlaEmittersError, match=message):
        parse_hlo(text)


def test_bytes_of_slices_are_priced() -> None:
    (line,) = (
        line for line in xe.compile(sliced(PLAIN), stage="llvm-dialect").explain().splitlines() if "sends" in line
    )
    assert "sends 32 B" in line


RAGGED = """HloModule m, num_partitions=4
ENTRY main {
  x = f32[20,3] parameter(0)
  y = f32[30,3] parameter(1)
  a = s64[8] parameter(2)
  b = s64[8] parameter(3)
  c = s64[8] parameter(4)
  d = s64[8] parameter(5)
  ROOT r = f32[30,3] ragged-all-to-all(x, y, a, b, c, d), channel_id=1, replica_groups={{0,2,1,3}}
}
"""


def test_rows_that_fit_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(RAGGED)
    for seed in range(3):
        assert main(["check", str(tmp_path / "m.hlo"), "--stages", "hlo", "--seed", str(seed)]) == 0
    assert "bit-identical" in capsys.readouterr().out


def exchanged() -> dict[str, np.ndarray]:
    """Device d sends d + u rows as update u of each receiver, which expects them; two updates from each to each."""
    group, arrays = [0, 2, 1, 3], dict[str, np.ndarray]()
    random = np.random.default_rng(1)
    for device in range(4):
        arrays[f"p0@{device}"] = random.standard_normal((20, 3)).astype(np.float32)
        arrays[f"p1@{device}"] = random.standard_normal((30, 3)).astype(np.float32)
        arrays[f"p2@{device}"] = np.arange(8)
        arrays[f"p3@{device}"] = np.array([device + update % 2 for update in range(8)])
        arrays[f"p4@{device}"] = np.array([7 * group.index(device) + 3 * (update % 2) for update in range(8)])
        arrays[f"p5@{device}"] = np.array([sender + update for sender in group for update in (0, 1)])
    return arrays


def test_rows_that_are_given(tmp_path: Path) -> None:
    arrays = exchanged()
    found = ran(RAGGED, arrays, tmp_path)
    group = [0, 2, 1, 3]
    for place, device in enumerate(group):
        wanted = arrays[f"p1@{device}"].copy()
        for sender in group:
            for update in (0, 1):
                count, first = sender + update, 2 * place + update
                there = 7 * group.index(sender) + 3 * update
                wanted[there : there + count] = arrays[f"p0@{sender}"][first : first + count]
        np.testing.assert_array_equal(found[f"r0@{device}"], wanted)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p2@1", "device 1 sends rows 99 to 101 to device 2, but has 20"),
        ("p4@1", "device 1 sends rows 3 to 5 to device 2, at row 99 of 30"),
        ("p5@2", "device 2 sends rows 3 to 6 to device 2, which expects 99 rows"),
    ],
)
def test_rows_that_do_not_fit(name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = exchanged()
    arrays[name][3] = 99
    (tmp_path / "m.hlo").write_text(RAGGED)
    save(tmp_path / "in.npz", arrays)
    assert main(["run", str(tmp_path / "m.hlo"), "--platform", "cpu", "--inputs", str(tmp_path / "in.npz")]) == 1
    assert message in capsys.readouterr().err
