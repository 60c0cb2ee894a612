"""Traces for Perfetto, by the documented fields of Chromium's format."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from in_process import messages, printed
from tools_here import SASS, needs

from xla_emitters.tools.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
LOOP = str(EXAMPLES / "modules" / "loop.hlo")


def tracks(text: str) -> dict[str, list[dict[str, Any]]]:
    """Name of a track -> its spans, after each event was checked."""
    data = json.loads(text)
    assert data.keys() == {"traceEvents", "displayTimeUnit"}
    names, found = dict[int, str](), dict[str, list[dict[str, Any]]]()
    for event in data["traceEvents"]:
        assert event["pid"] == 1
        if event["ph"] == "M":
            assert event["name"] == "thread_name"
            names[event["tid"]] = event["args"]["name"]
            found[event["args"]["name"]] = []
        else:
            assert event["ph"] == "X"
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            assert isinstance(event["args"], dict)
            found[names[event["tid"]]].append(event)
    for spans in found.values():  # spans of one thread do not overlap, but by the rounding to a nanosecond
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in pairwise(spans))
    return found


def test_the_times_of_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.json"
    words = ["compile", str(EXAMPLES / "gelu.hlo"), "--stage", "flat", "--trace-format", "chrome"]
    assert main([*words, "--trace", str(out)]) == 0
    (spans,) = tracks(out.read_text()).values()
    names = [span["name"] for span in spans]
    assert "xla-flatten-tensors" in names
    assert "flat" in {span["args"].get("stage") for span in spans}
    capsys.readouterr()
    assert main([*words, "--time-passes"]) == 0
    ((_, printed),) = tracks(capsys.readouterr().err).items()
    assert [span["name"] for span in printed] == names
    assert "--trace OUT.json" in messages(2, *words)


def test_the_steps_of_a_run(tmp_path: Path) -> None:
    """A loop's steps are there as often as it turns: five times, and the condition once more."""
    out = tmp_path / "t.json"
    assert main(["run", LOOP, "--platform", "cpu", "--trace", str(out), "--trace-format", "chrome"]) == 0
    found = tracks(out.read_text())
    names = [span["name"] for span in found["run: loop"]]
    assert names == ["squared", "sorted", "zero_1", *(["below", "next", "negated"] * 5), "below"]
    assert {"passes: squared", "passes: negated"} <= found.keys()


def test_the_steps_of_a_program(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    words = ["run", str(EXAMPLES / "causal_attention.mlir"), "--sizes", "b=2,s=16", "--platform", "cpu"]
    assert main([*words, "--trace", str(out), "--trace-format", "chrome"]) == 0
    spans = next(spans for name, spans in tracks(out.read_text()).items() if name.startswith("run: "))
    assert [span["name"] for span in spans if span["args"]["what"] == "dot"] == [
        *("dot_general.0", "dot_general.32", "dot_general.68")
    ]


@needs(*SASS)
@pytest.mark.parametrize("words", [[LOOP], [str(EXAMPLES / "dense.mlir"), "--sizes", "d0=16"]])
def test_the_expected_timeline(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The spans of a device last as long as its report says in all."""
    out = tmp_path / "t.json"
    assert main(["cost", *words, "--target", "h200,a6000", "--trace", str(out), "--trace-format", "chrome"]) == 0
    found = tracks(out.read_text())
    assert list(found) == ["h200: compute", "a6000: compute"]
    capsys.readouterr()
    (target,) = json.loads(printed("cost", *words, "--target", "h200", "--json"))["targets"]
    total = sum(row["time"] * row["launches"] for row in (*target["kernels"], *target["calls"]))
    assert sum(span["dur"] for span in found["h200: compute"]) == pytest.approx(total, rel=1e-3)
    assert main(["cost", *words, "--trace", str(out)]) == 2
