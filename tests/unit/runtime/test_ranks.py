"""`run --ranks`: some of the devices of a module, which need no others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xla_emitters.tools.main import main

MANY = """HloModule m, num_partitions=512
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main { x = f32[4] parameter(0), sharding={devices=[512]<=[512]}
  w = f32[4] parameter(1)
  i = u32[] partition-id()
  n = f32[] convert(i)
  c = f32[4] broadcast(n), dimensions={}
  y = f32[4] add(x, c)
  r = f32[4] all-reduce(y), channel_id=1, replica_groups=[64,8]<=[512], use_global_device_ids=true, to_apply=add
  q = f32[4] collective-permute(w), channel_id=2, source_target_pairs={{0,1},{1,0},{10,300}}
  ROOT z = f32[4] add(r, q) }
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "m.hlo").write_text(MANY)
    return str(tmp_path / "m.hlo")


def test_a_group_of_eight_of_512(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole numbers: sums in any order are the same."""
    x, w = np.arange(2048, dtype=np.float32), np.arange(32, dtype=np.float32).reshape(8, 4)
    given: dict[str, Any] = {"p0": x, **{f"p1@{device}": w[device] for device in range(8)}}
    np.savez(tmp_path / "in.npz", **given)
    words = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
    assert main(["run", module, "--platform", "cpu", "--ranks", "0-7", *words]) == 0
    assert "ran on 8 of 512 devices" in capsys.readouterr().out
    total = sum(x.reshape(512, 4)[device] + device for device in range(8))
    moved = {0: w[1], 1: w[0]}
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == [f"r0@{device}" for device in range(8)]
        for device in range(8):
            np.testing.assert_array_equal(found[f"r0@{device}"], total + moved.get(device, np.zeros(4)))


@pytest.mark.parametrize(
    ("ranks", "code", "messages"),
    [
        ("0,3-5", 1, ("device 0: %r needs devices 1-2,6-7, not run here", "--ranks 0-7")),
        ("8-15", 1, ("%q needs device 300, not run here", "--ranks 8-15,300")),
        ("0-512", 2, ("numbers and ranges, of devices 0 to 511",)),
        ("1,x", 2, ("numbers and ranges, of devices 0 to 511",)),
        ("5-3", 2, ("--ranks 5-3 names no device",)),
        (None, 2, ("the program is for 512 devices", "--devices 512; or run some of them", "--ranks 0-7")),
    ],
)
def test_what_is_said(
    ranks: str | None, code: int, messages: tuple[str, ...], module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [] if ranks is None else ["--ranks", ranks]
    assert main(["run", module, "--platform", "cpu", *words]) == code
    err = capsys.readouterr().err
    assert all(message in err for message in messages), err


def test_all_of_them_are_listed_and_compiled(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--tune", "xla", module]) == 0
    assert "4 fusions, 3 library calls, 0 not supported" in capsys.readouterr().out
    assert main(["compile", module, "--stage", "llvm-dialect"]) == 0


def test_each_process_is_a_rank_already(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", module, "--comm", "mpi", "--ranks", "0-7"]) == 2
    assert "--ranks is for --comm local" in capsys.readouterr().err
