"""`xla-emitters cost` on kernels whose resources, bytes and launches are known; its options and exit codes."""

import json
from pathlib import Path

import pytest
from in_process import messages, printed
from tools_here import SASS, needs

import xla_emitters as xe
from xla_emitters.tools.main import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
pytestmark = needs(*SASS)


def test_gelu() -> None:
    """GELU reads and writes 25,165,824 bytes; it needs 23 registers on h200 by ptxas 12.9."""
    data = json.loads(printed("cost", EXAMPLES / "gelu.hlo", "--json"))
    (kernel,) = data["targets"][0]["kernels"]
    assert (kernel["blocks"], kernel["threads"], kernel["spills"], kernel["occupancy"]) == (24576, 128, 0, 1.0)
    assert kernel["bytes_needed"] == kernel["bytes_moved"] == 2 * 25_165_824
    assert (kernel["bytes_needed_exact"], kernel["bytes_ratio"], kernel["registers"]) == (True, 1.0, 23)
    assert kernel["bytes_in_flight"] == 2048 * 8
    assert kernel["waves"] == pytest.approx(24576 / (132 * 16))
    assert kernel["time_low"] < kernel["time"] < kernel["time_high"]
    assert sum(kernel["classes"].values()) == kernel["instructions"]


def test_a_report_is_short() -> None:
    lines = printed("cost", EXAMPLES / "negate_20.hlo", "--target", "h200,a6000").splitlines()
    assert len(lines) < 40
    assert lines[1].split() == ["target", "h200", "a6000"]
    assert any(line.split()[:1] == ["bound"] for line in lines)
    assert not any("measured" in line for line in lines)


def test_a_transpose_has_no_bank_conflicts() -> None:
    """A tile of 32 x 33 words: 4,224 bytes, one way; all bytes once in each direction."""
    (kernel,) = xe.cost(EXAMPLES / "transpose.hlo").kernels
    assert (kernel.bank_ways, kernel.worst_bank_ways, kernel.shared_bytes) == (1.0, 1, 4224)
    elements = kernel.bytes_needed // 8
    assert kernel.bytes_needed == 8 * elements
    assert kernel.bytes_moved == pytest.approx(kernel.bytes_needed, rel=0.05)


def test_a_column_of_a_row_major_array_wastes_sectors(tmp_path: Path) -> None:
    """One of eight f32: 4,194,304 bytes must be read, but each is in a sector of its own, 33,554,432 bytes."""
    path = tmp_path / "column.hlo"
    path.write_text(
        "HloModule column\nf {\n  p = f32[1048576,8] parameter(0)\n  ROOT s = f32[1048576,1] slice(p), slice={[0:1048576], [3:4]}\n}\n"
        "ENTRY e {\n  p = f32[1048576,8] parameter(0)\n  ROOT fusion = f32[1048576,1] fusion(p), kind=kLoop, calls=f\n}\n"
    )
    (kernel,) = xe.cost(path).kernels
    assert kernel.bytes_needed == 2 * 4_194_304
    assert kernel.bytes_moved == 4_194_304 + 33_554_432


def test_bytes_that_data_decides_are_about(tmp_path: Path) -> None:
    """An update in place at drawn starts: sectors of a run, which are neither exact nor a bound. The copy before it is a step."""
    path = tmp_path / "update.hlo"
    parameters = "  a = f32[64,100] parameter(0)\n  u = f32[3,50] parameter(1)\n  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
    path.write_text(
        f"HloModule update\nf {{\n{parameters}  ROOT d = f32[64,100] dynamic-update-slice(a, u, i, j)\n}}\n"
        f"ENTRY e {{\n{parameters}  ROOT fusion = f32[64,100] fusion(a, u, i, j), kind=kLoop, calls=f\n}}\n"
    )
    exact = {kernel.name: kernel.bytes_needed_exact for kernel in xe.cost(path).kernels}
    assert exact == {"fusion": False}
    assert "about" in printed("cost", path)


def test_a_module_is_a_table() -> None:
    """loop.hlo runs a body five times, and sorts."""
    title, head, *rows = printed("cost", EXAMPLES / "modules" / "loop.hlo").splitlines()
    assert "expected times" in title
    assert head.split()[:3] == ["kernel", "launches", "time"]
    launches = {row.split()[0]: row.split()[1] for row in rows[:5]}
    assert (launches["negated"], launches["squared"]) == ("5", "1")
    assert rows[-1] == "priced by their bytes alone, at least: sort"
    sort = next(row for row in rows if row.startswith("sort"))
    assert len(sort.split()) > 6


def test_one_fusion_of_a_module() -> None:
    report = xe.cost(EXAMPLES / "modules" / "loop.hlo", fusion="squared")
    assert [kernel.name for kernel in report.kernels] == ["squared"]


def test_a_compiled_program_is_priced_for_any_device() -> None:
    program = xe.compile(EXAMPLES / "negate_20.hlo", target="h200")
    report = xe.cost(program, targets=("a100", "t4"))
    assert [(kernel.target, kernel.bytes_needed) for kernel in report.kernels] == [("a100", 160), ("t4", 160)]


def test_access_report_has_totals_first() -> None:
    report = printed("cost", EXAMPLES / "transpose.hlo", "--access-report").split("accesses of ")[1].splitlines()
    assert [line.split(":")[0] for line in report[1:4]] == ["global reads", "global writes", "shared memory"]
    assert report[4].split()[:3] == ["access", "copies", "of"]
    assert len(report) == 5 + 4


@pytest.mark.parametrize(
    ("condition", "code"),
    [("spills > 0", 0), ("registers > 3", 3), ("bound == 'launch' and blocks < 5", 3), ("spill > 0", 2)],
)
def test_fail_on(condition: str, code: int) -> None:
    said = messages(code, "cost", EXAMPLES / "negate_20.hlo", "--fail-on", condition)
    assert (f"failed: {condition}: kernel " in said) == (code == 3)


def test_wrong_uses() -> None:
    assert main(["cost", str(EXAMPLES / "negate_20.hlo"), "--target", "h200,gtx1080"]) == 2
    assert main(["cost", str(EXAMPLES / "negate_20.hlo"), "--json", "--access-report"]) == 2
    assert "has no size 'b': all its sizes are known" in messages(
        1, "cost", EXAMPLES / "softmax.mlir", "--sizes", "b=2"
    )


def test_a_size_that_is_missing_is_asked_for() -> None:
    """`cost` has no --inputs, and does not name it."""
    message = messages(1, "cost", ROOT / "examples" / "dense.mlir")
    assert "help: --sizes d0=2\n" in message
    assert "--inputs" not in message
