"""Costs by line of Python: the times of kernels divided by instructions, of fusions with several kernels added up; by hand."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from in_process import printed, written
from tools_here import PTX, SASS, needs

from xla_emitters.explore.cost.cost_by_source import NO_LINE, by_source, source_table
from xla_emitters.pricing.call_prices import CallCost
from xla_emitters.pricing.model import KernelCost
from xla_emitters.pricing.report import ProgramCost
from xla_emitters.program.outline import Work


def line(number: int, instructions: float) -> dict[str, Any]:
    return {
        "text": f"a.py:{number} in f",
        "file": "/a.py",
        "line": number,
        "function": "f",
        "instructions": instructions,
    }


def kernel(name: str, time: float, launches: int = 1) -> KernelCost:
    values: dict[str, Any] = dict.fromkeys((each.name for each in fields(KernelCost)), 0)
    return KernelCost(
        **{**values, "name": name, "target": "h200", "time": time, "launches": launches, "bounds": {}, "classes": {}}
    )


def call(name: str, time: float, launches: int) -> CallCost:
    values: dict[str, Any] = dict.fromkeys((each.name for each in fields(CallCost)), 0)
    return CallCost(**{**values, "name": "gemm", "instruction": name, "time": time, "launches": launches, "bounds": {}})


WORKS = (
    Work("k", "loop", "", 1, 2.0, source=(line(1, 3), line(2, 1))),
    Work("main_kStitch_reduce_0", "kStitch", "", 1, 2.0, source=(line(2, 5),)),
    Work("plain", "loop", "", 1, 2.0),
    Work("dot.1", "call gemm", "", 2, 10.0, source=(line(1, 1),)),
)
COST = ProgramCost(
    "h200",
    (
        kernel("k", 8.0),
        kernel("main_kStitch_reduce_0_vec4", 3.0, 2),
        kernel("main_kStitch_reduce_0", 1.0),
        kernel("plain", 5.0),
    ),
    calls=(call("dot.1", 10.0, 2),),
)


def test_times_are_divided_by_instructions() -> None:
    """Line 1: 3/4 of 8, and a product of twice 10; line 2: 1/4 of 8, and 2 * 3 + 1 of both kernels of a fusion; 5 without a line."""
    found = by_source(COST, WORKS)
    assert [(each.text, each.time, each.work) for each in found] == [
        ("a.py:1 in f", 26.0, ("dot.1", "k")),
        ("a.py:2 in f", 9.0, ("main_kStitch_reduce_0", "k")),
        (NO_LINE, 5.0, ("plain",)),
    ]


def test_the_table_has_shares_of_all_lines() -> None:
    title, head, first, *_, end = source_table("m", "h200", by_source(COST, WORKS)).splitlines()
    assert title == "m on h200: expected times by line of Python"
    assert head.split() == ["share", "time", "line", "kernels", "and", "calls"]
    assert first.split()[:3] == ["65%", "26.0", "us"]
    assert end == "in all: 40.0 us"


MODULE = """HloModule m

FileNames
1 "/home/me/train.py"

FunctionNames
1 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9}
2 {file_name_id=1 function_name_id=1 line=12}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

f { p = f32[4096]{0} parameter(0)
  n = f32[4096]{0} negate(p), metadata={stack_frame_id=1}
  ROOT e = f32[4096]{0} add(n, n), metadata={stack_frame_id=2} }
ENTRY main { p = f32[4096]{0} parameter(0)
  ROOT r = f32[4096]{0} fusion(p), kind=kLoop, calls=f }
"""
PROGRAM = """
#p = loc("/home/me/train.py":9:4 to :20)
#f = loc("loss"(#p))
module @m {
  func.func public @main(%arg0: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = stablehlo.negate %arg0 : tensor<?x64xf32> loc("jit(f)/neg"(#f))
    return %0 : tensor<?x64xf32>
  }
}
"""


@needs(*PTX, *SASS)
def test_of_a_module(tmp_path: Path) -> None:
    path = written(tmp_path / "m.hlo", MODULE)
    found = json.loads(printed("cost", path, "--by", "source", "--json", "--target", "h200,a6000"))["by_source"]
    assert [each["target"] for each in found] == ["h200", "a6000"]
    lines = found[0]["lines"]
    assert [(each["text"], each["work"]) for each in lines] == [
        ("train.py:9 in loss", ["r"]),
        ("train.py:12 in loss", ["r"]),
    ]
    assert lines[0]["time"] == pytest.approx(lines[1]["time"])
    whole = json.loads(printed("cost", path, "--json"))["targets"][0]["time"]
    assert sum(each["time"] for each in lines) == pytest.approx(whole)


@needs(*PTX, *SASS)
def test_of_a_program(tmp_path: Path) -> None:
    path = written(tmp_path / "m.mlir", PROGRAM)
    assert "100%" in (row := printed("cost", path, "--by", "source", "--sizes", "d0=32").splitlines()[2])
    assert "train.py:9 in loss" in row


@needs(*PTX)
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("m.hlo", MODULE, "%e = f32[4096] add(%n, %n)  at train.py:12 in loss"),
        ("m.mlir", PROGRAM, "at train.py:9 in loss"),
    ],
)
def test_annotated_code_has_the_lines(name: str, text: str, line: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, text)
    assert any(line in row for row in printed("compile", path, "--annotate").splitlines())
