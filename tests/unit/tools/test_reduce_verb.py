"""The command `reduce`: commands as questions, what is refused, and that an interrupted search leaves its best."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from in_process import called, messages, written
from runtime.planted_faults import Fault, planted
from runtime.small_programs import PROGRAMS

from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.tools.reduce_verb import is_interesting

MLIR = Path(__file__).parents[3] / "examples" / "softmax.mlir"


@pytest.fixture
def gelu(tmp_path: Path) -> Path:
    path = written(tmp_path / "my gelu.hlo", PROGRAMS["gelu"])
    return path


@pytest.mark.parametrize("command", ["grep -q 'tanh('", "grep -q 'tanh(' {}", "cat {} | grep 'tanh('"])
def test_a_command(command: str, gelu: Path) -> None:
    code, out, err = called("reduce", gelu, "--keep", command)
    assert code == 0
    assert " tanh(" in out
    assert len(out.splitlines()) == 6
    assert err.startswith("17 -> 1 instruction, ")


def test_output_and_json(gelu: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.hlo"
    data = json.loads(messages(0, "reduce", gelu, "--keep", "grep -q 'tanh('", "-o", small, "--json"))
    assert (data["before"], data["after"], data["finished"]) == (17, 1, True)
    parse_hlo(small.read_text())


def test_wrong_numbers(gelu: Path) -> None:
    with planted(Fault("xla-flatten-tensors", "arith.mulf", "bf16")):
        code, out, err = called("reduce", gelu, "--keep-wrong", "--target", "t4")
    assert code == 0
    assert err.startswith("wrong at the stage flat\n")
    assert out.count("multiply(") == 1
    assert "-> 1 instruction" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keep", "false"], "not true of the file"),
        (["--keep", "echo no such thing >&2; exit 3;"], "the command ended with 3:\n    no such thing\n"),
        (["--keep-wrong"], "check finds nothing wrong in it"),
        (["--keep-crash"], "does not fail by a bug of ours"),
        (["--keep", "true", "--budget", "0"], "above 0"),
        (["--keep", "true", "--keep-wrong"], "not allowed with"),
        ([], "required"),
    ],
)
def test_what_is_refused(words: list[str], message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "bytes.hlo", PROGRAMS["bytes"])
    assert message in messages(2, "reduce", path, *words)


def test_files_that_cannot_be_reduced(tmp_path: Path) -> None:
    broken = written(tmp_path / "broken.hlo", "HloModule m\nENTRY e { ROOT %x = f32[2] nonsense() }\n")
    for file in broken, tmp_path / "none.hlo":
        messages(1, "reduce", file, "--keep", "true")
    wrong = written(tmp_path / "wrong.mlir", MLIR.read_text().replace("dims = [0]", "dims = [7]", 1))
    assert str(wrong) in messages(1, "reduce", wrong, "--keep", "true")


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("gelu.hlo", ["--sizes", "b=2"], "--sizes is for programs"),
        ("softmax.mlir", ["--blocks", "2"], "--blocks is for modules"),
        ("softmax.mlir", ["--pipeline", "builtin.module(xla-cse)"], "--pipeline is for modules"),
    ],
)
def test_options_of_the_other_kind_of_text(name: str, words: list[str], message: str) -> None:
    assert message in messages(2, "reduce", MLIR.parent / name, "--keep", "true", *words)


def test_a_program_of_unknown_sizes(tmp_path: Path) -> None:
    """The candidates are files of StableHLO, and so is the result."""
    command = "case {} in *.mlir) grep -q stablehlo.tanh {} && grep -q '?x8xf32' {};; *) exit 1;; esac"
    small = tmp_path / "small.mlir"
    said = messages(0, "reduce", MLIR.with_name("dense.mlir"), "--keep", command, "-o", small)
    assert said.startswith("8 -> 1 instruction, ")
    text = small.read_text()
    assert "tensor<?x8xf32>" in text
    parse_stablehlo(text)


def test_wrong_numbers_of_a_program(tmp_path: Path) -> None:
    """The sum of the product and the bias is wrong in kernels."""
    dense, small = MLIR.with_name("dense.mlir"), tmp_path / "small.mlir"
    words = ["reduce", str(dense), "--keep-wrong", "-o", str(small)]
    with planted(Fault("xla-convert-scf-to-cf", "arith.addf", "f32")):
        assert "no size 'rows': its sizes are d0" in messages(1, *words, "--sizes", "rows=3")
        said = messages(0, *words, "--sizes", "d0=3", "--json").splitlines()
    assert said[0] == "wrong at the stage llvm-dialect"
    data = json.loads(said[-1])
    assert (data["before"], data["after"], data["finished"]) == (8, 1, True)
    assert data.get("sizes", {}) == {}  # the addition is wrong at sizes that are known, too
    assert "stablehlo.add" in small.read_text()
    assert "--sizes d0=2" in messages(1, *words)


def test_a_command_that_changes_its_mind_is_refused(gelu: Path, tmp_path: Path) -> None:
    """Yes, then no, about one file."""
    flag = tmp_path / "flag"
    toggling = f": {{}}; if [ -e '{flag}' ]; then rm '{flag}'; exit 1; else touch '{flag}'; fi"
    assert "does not always say the same" in messages(2, "reduce", gelu, "--keep", toggling)


def test_a_command_that_hangs_is_a_no(gelu: Path) -> None:
    command = "grep -q cube {} || sleep 30"
    began = time.monotonic()
    code, out, err = called("reduce", gelu, "--keep", command, "--timeout", "0.2", "--budget", "3")
    assert (code, time.monotonic() - began < 20) == (0, True)
    assert "cube" in out
    assert "took longer than 0.2 s and counted as no: --timeout" in err


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="it needs process groups")
def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    late = tmp_path / "late"
    assert is_interesting(f"(sleep 1; touch {late}) & wait; true", "", timeout_seconds=0.2) is None
    time.sleep(1.5)
    assert not late.exists()


def test_a_command_that_hangs_on_the_file_itself_is_told(gelu: Path) -> None:
    assert "the command takes longer than 0.2 s for the file itself" in messages(
        2, "reduce", gelu, "--keep", "sleep 30;:", "--timeout", "0.2"
    )


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


def test_a_file_that_is_no_hlo_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "cut.hlo", PROGRAMS["gelu"][:200])
    assert f"{path}:" in messages(1, "reduce", path, "--keep", "true")
