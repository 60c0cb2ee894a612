"""`bisect` and `bundle` of modules for several devices, and what is wrong with inputs for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import messages
from runtime.mutations import swap_operation
from runtime.planted_faults import row_name, wrong_op
from tools_here import SASS, needs

from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tools.main import main

SUM = """HloModule m, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
times { a = f32[300] parameter(0)
  b = f32[300] parameter(1)
  ROOT s = f32[300] multiply(a, b) }
ENTRY main { x = f32[300] parameter(0), sharding={devices=[2]<=[2]}
  y = f32[300] fusion(x, x), kind=kLoop, calls=times
  r = f32[300] all-reduce(y), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT z = f32[300] fusion(r, x), kind=kLoop, calls=times, sharding={devices=[2]<=[2]} }
"""


def chosen(mutations: Any) -> Any:
    return [one for one in mutations if one.what.startswith("arith.mulf") and one.apply is swap_operation][-1]


def test_the_wrong_pass_is_named_with_its_device() -> None:
    search = bisect(SUM)
    assert (search.culprit, search.device) == (None, None)
    with wrong_op(12, chosen):
        search = bisect(parse_hlo(SUM))
    assert search.device == 0
    assert (search.culprit.kernel, search.culprit.name) == ("y", row_name(12))


@needs(*SASS)
def test_a_bundle_has_the_kernels_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(SUM)
    assert main(["bundle", str(tmp_path / "m.hlo"), "-o", str(tmp_path / "m.zip")]) == 0
    found = capsys.readouterr()
    assert "2 kernels" in found.out
    assert "m is for 2 devices: the bundle has its kernels" in found.err


ONES = np.ones(600, np.float32)


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"p0": ONES[:300]}, [], "has shape [300], but f32[600]"),
        ({"p0@0": ONES[:300]}, [], "has no 'p0@1', but it has 'p0@0'"),
        ({"p0@0": ONES[:300], "p0@1": ONES[:7]}, [], "has shape [7], but f32[300]"),
        ({"p0": ONES}, ["--devices", "4"], "the program is for 2 devices, not for 4"),
        ({"p0": ONES}, ["--devices", "0"], "the program is for 2 devices, not for 0"),
        ({"p0": ONES}, ["--comm", "local", "--sanitize"], "--sanitize is for one device"),
    ],
)
def test_bad_input(
    arrays: dict[str, Any], words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(SUM)
    np.savez(tmp_path / "in.npz", **arrays)
    code = main(["run", str(tmp_path / "m.hlo"), "--platform", "cpu", "--inputs", str(tmp_path / "in.npz"), *words])
    assert code in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{{0,1}}", "{{0,1},{1}}", "names each device once"),
        ("{{0,1}}", "{{0}}", "is in none of its groups"),
        ("{{0,1}}", "{{0,2}}", "names each device once"),
        ("{{0,1}}", "{{0,1},{}}", "no group is empty"),
        ("{devices=[2]<=[2]}\n  y", "{devices=[3]<=[3]}\n  y", ""),
    ],
)
def test_bad_text(before: str, after: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(SUM.replace(before, after))
    code = main(["run", str(tmp_path / "m.hlo"), "--platform", "cpu", "--no-reference"])
    err = capsys.readouterr().err
    assert code == (1 if message else 0), err
    assert message in err


def test_a_module_of_512_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SUM.replace("num_partitions=2", "num_partitions=512").replace("{{0,1}}", "[1,512]<=[512]")
    (tmp_path / "m.hlo").write_text(text.replace("{devices=[2]<=[2]}", "{devices=[512]<=[512]}"))
    assert main(["list", str(tmp_path / "m.hlo")]) == 0
    assert main(["compile", str(tmp_path / "m.hlo"), "--stage", "llvm-dialect", "-o", str(tmp_path / "m.mlir")]) == 0
    capsys.readouterr()
    assert "the program is for 512 devices: each has arrays of its own" in messages(
        2, "run", tmp_path / "m.hlo", "--platform", "cpu"
    )
