"""The command `reduce`: commands as questions, what is refused, and that an interrupted search leaves its best."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runtime.planted_faults import Fault, planted
from runtime.small_programs import PROGRAMS

from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.tools.main import main
from xla_emitters.tools.reduce_verb import is_interesting

MLIR = Path(__file__).parents[3] / "examples" / "softmax.mlir"


@pytest.fixture
def gelu(tmp_path: Path) -> Path:
    path = tmp_path / "my gelu.hlo"
    path.write_text(PROGRAMS["gelu"])
    return path


@pytest.mark.parametrize("command", ["grep -q 'tanh('", "grep -q 'tanh(' {}", "cat {} | grep 'tanh('"])
def test_a_command(command: str, gelu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(gelu), "--keep", command]) == 0
    out, err = capsys.readouterr()
    assert " tanh(" in out
    assert len(out.splitlines()) == 6
    assert err.startswith("17 -> 1 instruction, ")


def test_output_and_json(gelu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = tmp_path / "small.hlo"
    assert main(["reduce", str(gelu), "--keep", "grep -q 'tanh('", "-o", str(small), "--json"]) == 0
    data = json.loads(capsys.readouterr().err)
    assert (data["before"], data["after"], data["finished"]) == (17, 1, True)
    parse_hlo(small.read_text())


def test_wrong_numbers(gelu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with planted(Fault("xla-flatten-tensors", "arith.mulf", "bf16")):
        assert main(["reduce", str(gelu), "--keep-wrong", "--target", "t4"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("wrong at the stage flat\n")
    assert out.count("multiply(") == 1
    assert "-> 1 instruction" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--keep", "false"], 2, "not true of the file"),
        (["--keep", "echo no such thing >&2; exit 3;"], 2, "the command ended with 3:\n    no such thing\n"),
        (["--keep-wrong"], 2, "check finds nothing wrong in it"),
        (["--keep-crash"], 2, "does not fail by a bug of ours"),
        (["--keep", "true", "--budget", "0"], 2, "above 0"),
        (["--keep", "true", "--keep-wrong"], 2, "not allowed with"),
        ([], 2, "required"),
    ],
)
def test_what_is_refused(
    words: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bytes.hlo"
    path.write_text(PROGRAMS["bytes"])
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(["reduce", str(path), *words]))
    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_files_that_cannot_be_reduced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.hlo"
    broken.write_text("HloModule m\nENTRY e { ROOT %x = f32[2] nonsense() }\n")
    assert main(["reduce", str(broken), "--keep", "true"]) == 1
    assert main(["reduce", str(tmp_path / "none.hlo"), "--keep", "true"]) == 1
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(MLIR.read_text().replace("dims = [0]", "dims = [7]", 1))
    capsys.readouterr()
    assert main(["reduce", str(wrong), "--keep", "true"]) == 1
    assert str(wrong) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("gelu.hlo", ["--sizes", "b=2"], "--sizes is for programs"),
        ("softmax.mlir", ["--blocks", "2"], "--blocks is for modules"),
        ("softmax.mlir", ["--pipeline", "builtin.module(xla-cse)"], "--pipeline is for modules"),
    ],
)
def test_options_of_the_other_kind_of_text(
    name: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reduce", str(MLIR.parent / name), "--keep", "true", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_program_of_unknown_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The candidates are files of StableHLO, and so is the result."""
    command = "case {} in *.mlir) grep -q stablehlo.tanh {} && grep -q '?x8xf32' {};; *) exit 1;; esac"
    small = tmp_path / "small.mlir"
    assert main(["reduce", str(MLIR.with_name("dense.mlir")), "--keep", command, "-o", str(small)]) == 0
    assert capsys.readouterr().err.startswith("8 -> 1 instruction, ")
    text = small.read_text()
    assert "tensor<?x8xf32>" in text
    parse_stablehlo(text)


def test_wrong_numbers_of_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sum of the product and the bias is wrong in kernels."""
    dense, small = MLIR.with_name("dense.mlir"), tmp_path / "small.mlir"
    words = ["reduce", str(dense), "--keep-wrong", "-o", str(small)]
    with planted(Fault("xla-convert-scf-to-cf", "arith.addf", "f32")):
        assert main([*words, "--sizes", "rows=3"]) == 1
        assert "no size 'rows': its sizes are d0" in capsys.readouterr().err
        assert main([*words, "--sizes", "d0=3", "--json"]) == 0
        said = capsys.readouterr().err.splitlines()
    assert said[0] == "wrong at the stage llvm-dialect"
    data = json.loads(said[-1])
    assert (data["before"], data["after"], data["finished"]) == (8, 1, True)
    assert data.get("sizes", {}) == {}  # the addition is wrong at sizes that are known, too
    assert "stablehlo.add" in small.read_text()
    assert main(words) == 1
    assert "--sizes d0=2" in capsys.readouterr().err


def test_a_command_that_changes_its_mind_is_refused(
    gelu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Yes, then no, about one file."""
    flag = tmp_path / "flag"
    toggling = f": {{}}; if [ -e '{flag}' ]; then rm '{flag}'; exit 1; else touch '{flag}'; fi"
    assert main(["reduce", str(gelu), "--keep", toggling]) == 2
    assert "does not always say the same" in capsys.readouterr().err


def test_a_command_that_hangs_is_a_no(gelu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "grep -q cube {} || sleep 30"
    began = time.monotonic()
    assert main(["reduce", str(gelu), "--keep", command, "--timeout", "0.2", "--budget", "3"]) == 0
    assert time.monotonic() - began < 20
    out, err = capsys.readouterr()
    assert "cube" in out
    assert "took longer than 0.2 s and counted as no: --timeout" in err


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="it needs process groups")
def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    late = tmp_path / "late"
    assert is_interesting(f"(sleep 1; touch {late}) & wait; true", "", timeout_seconds=0.2) is None
    time.sleep(1.5)
    assert not late.exists()


def test_a_command_that_hangs_on_the_file_itself_is_told(gelu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(gelu), "--keep", "sleep 30;:", "--timeout", "0.2"]) == 2
    assert "the command takes longer than 0.2 s for the file itself" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_writes_the_best_so_far(gelu: Path, tmp_path: Path) -> None:
    """The first eleven questions are answered at once, the next never."""
    small, count = tmp_path / "small.hlo", tmp_path / "count"
    command = f"grep -q 'tanh(' {{}} || exit 1; echo >> '{count}'; [ $(wc -l < '{count}') -lt 12 ] || sleep 60"
    words = ["-m", "xla_emitters.tools.main", "reduce", str(gelu), "--keep", command, "-o", str(small)]
    # A shell ignores Ctrl-C in what it runs in the background, and so would all that comes from it.
    process = subprocess.Popen(
        [sys.executable, *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (count.exists() and len(count.read_text()) >= 12):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "so far is written" in err
    text = small.read_text()
    assert "tanh(" in text
    assert text.count(" = ") < PROGRAMS["gelu"].count(" = ")
    parse_hlo(text)


def test_a_file_that_is_no_hlo_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.hlo"
    path.write_text(PROGRAMS["gelu"][:200])
    assert main(["reduce", str(path), "--keep", "true"]) == 1
    assert f"{path}:" in capsys.readouterr().err
