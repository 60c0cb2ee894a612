"""The command `bisect`: what is printed, as text and as JSON, and the exit codes."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from in_process import called, messages, printed, written
from runtime.planted_faults import row_name, wrong_op
from runtime.small_programs import PROGRAMS

from xla_emitters.tools.main import main
from xla_emitters.transforms.flatten_tensors import FlattenTensorsPass
from xla_emitters.transforms.insert_pdl import InsertPdlPass

MLIR = Path(__file__).parents[3] / "examples" / "softmax.mlir"


@pytest.fixture
def ragged(tmp_path: Path) -> str:
    return str(written(tmp_path / "ragged.hlo", PROGRAMS["ragged"]))


def test_a_wrong_pass(ragged: str) -> None:
    with wrong_op(12, lambda found: [one for one in found if "mulf" in one.what][-1]):
        text = printed("bisect", ragged, "--target", "t4", "--blocks", "16", code=3)
        data = json.loads(printed("bisect", ragged, "--target", "t4", "--blocks", "16", "--json", code=3))
    assert text.startswith(f"kernel fusion, stage flat: {row_name(12)} (pass 12 of ")
    assert f"  from      p ({ragged}:7:3)" in text
    assert "  thread    block (0, 0, 0), thread (0, 0, 0)" in text
    assert "\n            + " in text
    found = data["found"]
    assert (found["pass"], found["number"], found["kind"]) == (row_name(12), 12, "numbers")
    assert found["blame"]["instructions"] == ["p"]


def test_nothing_wrong(tmp_path: Path) -> None:
    path = written(tmp_path / "bytes.hlo", PROGRAMS["bytes"])
    assert printed("bisect", path, "--blocks", "2").startswith("no pass is wrong: 1 kernel, ")


def test_options_of_the_other_kind_of_file(ragged: str) -> None:
    assert "--blocks is for modules" in messages(2, "bisect", MLIR, "--blocks", "2")
    assert "--sizes is for programs" in messages(2, "bisect", ragged, "--sizes", "b=2")


def test_a_file_that_is_not_there() -> None:
    assert main(["bisect", "no_such.hlo"]) == 1


def test_a_pass_that_fails_has_a_reduced_input(ragged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 70: the pass is named on stdout, the reproducer and the reduced input on stderr."""

    def fails(self: FlattenTensorsPass, ctx: object, op: object) -> None:
        raise KeyError("no such tensor")

    monkeypatch.setattr(FlattenTensorsPass, "apply", fails)
    code, out, err = called("bisect", ragged, "--target", "t4")
    assert code == 70
    assert "xla-flatten-tensors (pass 12 of " in out
    assert "check " in out
    # A version with the crash is bad, one without is good, whatever its numbers are; others are skipped.
    script = shlex.split(out.partition("git bisect run ")[2])[2].partition("; ")[2]
    verdicts = [subprocess.run(["sh", "-c", f"(exit {code}); {script}"]).returncode for code in (0, 3, 70, 1, 2, 4)]
    assert verdicts == [0, 0, 1, 125, 125, 125]
    line = next(line for line in err.splitlines() if "reduced.hlo" in line)
    reduced = Path(line.split()[0])
    assert (reduced.parent / "original.hlo").read_text() == PROGRAMS["ragged"]
    assert reduced.read_text().count(" = ") <= 3
    assert "instructions" in line


def test_a_crash_in_a_pipeline_that_was_asked_for_is_reduced_with_it(
    ragged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass that fails is not among those that are run without --pipeline."""

    def fails(self: InsertPdlPass, ctx: object, op: object) -> None:
        raise KeyError("no such entry")

    monkeypatch.setattr(InsertPdlPass, "apply", fails)
    pipeline = ["--pipeline", "builtin.module(xla-gpu-insert-pdl)", "--stage", "llvm-dialect"]
    assert "reduced.hlo" in messages(70, "compile", ragged, *pipeline)
