"""`xla-emitters check`: a row per file, chosen stages, sampled blocks, exit codes."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from in_process import called, messages, written
from runtime.small_programs import PROGRAMS
from unit.explore.check.test_check import TWO_KERNELS, calling_tan_for

from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.pipelines.passes import FOR_TOOLS, KERNEL, RUNNABLE_STAGES

EXAMPLES = Path(__file__).parents[3] / "examples"
NEGATE, TWO_OUTPUTS = EXAMPLES / "negate_20.hlo", EXAMPLES / "two_outputs.hlo"


def run(*words: str | Path, stdin: bytes = b"") -> tuple[int, list[str], str]:
    code, out, err = called("check", *words, stdin=stdin)
    return code, out.splitlines(), err


def test_a_row_a_file() -> None:
    code, rows, err = run(NEGATE, TWO_OUTPUTS)
    assert (code, err) == (0, "")
    width = max(len(str(NEGATE)), len(str(TWO_OUTPUTS)))
    count = len(RUNNABLE_STAGES) - 1  # passes on HLO change nothing of these, so `graph` is what `hlo` is
    assert rows == [
        f"{NEGATE!s:<{width}}  ok  {count} stages: 20 of 20 elements bit-identical to the NumPy reference",
        f"{TWO_OUTPUTS!s:<{width}}  ok  {count} stages: 1024 of 1024 elements bit-identical to the NumPy reference",
        "2 of 2 files ok, 0 failed",
    ]


def test_stages_of_ones_choice() -> None:
    for stages, said in [
        ("scf", "ok  1 stage:"),
        ("hlo,flat,xla_gpu", "ok  3 stages:"),
        ("hlo", "ok  1 stage:"),
        ("graph", "ok  1 stage:"),
    ]:
        code, (row,), _ = run(NEGATE, "--stages", stages)
        assert code == 0
        assert said in row, row
    code, (row,), _ = run(NEGATE, "--stages", "passes")
    assert f"ok  {4 + len(KERNEL) + len(FOR_TOOLS)} executions after passes:" in row  # LLVM IR and PTX among them
    code, (row,), err = run(NEGATE, "--stages", "scf,sass")
    assert (code, row.split()[1:]) == (2, ["not", "run"])
    assert err.startswith("error: [check] stage 'sass' cannot be executed")


def test_blocks_and_stages_that_there_are_not() -> None:
    """Exit code 2, a message, and no row of numbers."""
    for words, said in (
        (["--blocks", "-3"], "error: [check] -3 blocks cannot be run\n    help: 0 runs all blocks"),
        (["--stages", "scf,passes"], "error: [check] 'passes' is not combined with stages\n    help: --stages passes"),
    ):
        code, (row,), err = run(NEGATE, *words)
        assert (code, row.split()[1:]) == (2, ["not", "run"])
        assert err.startswith(said)


def test_a_row_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the file's row, each with its own verdict; a wrong temporary is found though the result hides it."""
    path = written(tmp_path / "two.hlo", TWO_KERNELS)
    code, rows, err = run(path, NEGATE, "--tune", "xla")
    assert (code, err) == (0, "")
    assert rows[0].startswith(f"{path!s:<{len(str(NEGATE))}}  ok  8 stages of 2 kernels: 20 of 20 elements ")
    assert [row.split()[:2] for row in rows[1:3]] == [["kernel", "a:"], ["kernel", "b:"]]
    assert len(rows) == 5
    calling_tan_for("math.cbrt", monkeypatch)
    code, rows, err = run(path, "--stages", "passes", "--tune", "xla")
    assert code == 3
    blamed = "xla-convert-math-to-libdevice changes 20 results: temporary 0"
    assert f"  kernel a: {blamed}" in rows[0]
    assert rows[1].strip().startswith(f"kernel a: {blamed}")
    assert rows[2].strip().startswith("kernel b: 20 of 20 elements ")
    assert err.count("temporary 0, element ") == 1


def test_sampled_blocks(tmp_path: Path) -> None:
    """Two of 2,048 blocks of 128 threads with four elements each."""
    path = tmp_path / "negate.hlo"
    path.write_text("fused { x = f32[1024,1024] parameter(0) ROOT y = f32[1024,1024] negate(x) }")
    code, (row,), _ = run(path, "--blocks", "2", "--stages", "flat,llvm-dialect")
    assert code == 0
    assert "2 stages: 1024 of 1024 elements bit-identical" in row


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.hlo", "ENTRY e {")
    code, rows, err = run(NEGATE, "nowhere.hlo", bad, TWO_OUTPUTS)
    assert code == 1
    assert [row.split()[1:3] for row in rows] == [
        ["ok", "10"],
        ["not", "run"],
        ["not", "run"],
        ["ok", "10"],
        ["of", "4"],
    ]
    assert rows[-1] == "2 of 4 files ok, 2 failed"
    assert "error: [file] nowhere.hlo: No such file or directory" in err
    assert f"{bad}:1:" in err


def miscompiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's negate forgets the sign of one element: what the kernels compute is then wrong in its eyes."""
    right = ElementwiseOp.evaluate

    def wrong(self: ElementwiseOp, operands: object, call: object) -> np.ndarray:
        result = right(self, operands, call).copy()
        result.reshape(-1)[7] *= -1
        return result

    monkeypatch.setattr(ElementwiseOp, "evaluate", wrong)


@pytest.mark.tiny
def test_numbers_that_differ_end_with_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stage that is wrong is named; the worst of several files is the exit code."""
    miscompiling(monkeypatch)
    code, rows, err = run(NEGATE, "nowhere.hlo")
    assert code == 3
    assert rows[0].split("  ")[-1] == "xla_gpu: differs from the NumPy reference: r0: 1 of 20 elements"
    assert "    r0[7] is " in err


def test_tolerances(monkeypatch: pytest.MonkeyPatch) -> None:
    miscompiling(monkeypatch)
    for words in (["--atol", "10"], ["--rtol", "2"], ["--abs_error_bound", "10"], ["--rel_error_bound=2"]):
        assert run(NEGATE, *words)[0] == 0
    assert run(NEGATE, "--atol", "0.0001")[0] == 3


def test_inputs_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, p0=np.array([np.nan, np.inf, -np.inf, -0.0] * 5, np.float32))
    assert run(NEGATE, "--inputs", path)[0] == 0
    code, _, err = run(TWO_OUTPUTS, "--inputs", path)
    assert code == 1
    assert "'p0' in" in err
    assert run(NEGATE, NEGATE, "--inputs", path)[0] == 2


def test_inputs_from_standard_input() -> None:
    """An .npz; what is none is an error of the file's row, and two readers are refused before anything is read."""
    file = io.BytesIO()
    np.savez(file, p0=np.zeros(20, np.float32))
    for data, code, said in ((file.getvalue(), 0, ""), (b"", 1, "error: [arrays] standard input is not an .npz file")):
        got, (row,), err = run(NEGATE, "--inputs", "-", "--stages", "hlo", stdin=data)
        assert (got, "ok  1 stage" in row) == (code, code == 0)
        assert err.startswith(said)
    for words in ("-", "--inputs", "-"), ("-", NEGATE, "-"):
        code, rows, err = run(*words)
        assert (code, rows) == (2, [])
        assert err.startswith("error: [check] '-' is given more than once")


def test_standard_input() -> None:
    code, (row,), _ = run("-", stdin=PROGRAMS["bytes"].encode())
    assert code == 0
    assert row.startswith("-  ok  10 stages: 1003 of 1003")


# ---- many files ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files that are right, one in a directory below, and one that is none."""
    (tmp_path / "below").mkdir()
    (tmp_path / "b.hlo").write_bytes(NEGATE.read_bytes())
    (tmp_path / "below" / "a.hlo").write_bytes(TWO_OUTPUTS.read_bytes())
    (tmp_path / "c.hlo").write_text("ENTRY e {")
    (tmp_path / "notes.txt").write_text("no HLO")
    return tmp_path


@pytest.mark.parametrize("words", [[], ["-j", "2"], ["--timeout", "100"]])
def test_a_directory(words: list[str], folder: Path) -> None:
    """Its HLO files and those below, sorted, in as many processes as are wanted; then how many there were."""
    code, rows, err = run(folder, "--stages", "scf", *words)
    assert code == 1
    assert [row.split()[:2] for row in rows[:-1]] == [
        [str(folder / "b.hlo"), "ok"],
        [str(folder / "below" / "a.hlo"), "ok"],
        [str(folder / "c.hlo"), "not"],
    ]
    assert rows[-1] == "2 of 3 files ok, 1 failed"
    assert err.startswith(f"{folder / 'c.hlo'}:1:")


def test_json_of_files(folder: Path) -> None:
    (folder / "two.hlo").write_text(TWO_KERNELS)
    code, rows, _ = run(folder, "--stages", "scf", "--json", "--tune", "xla")
    data = json.loads("\n".join(rows))
    assert (code, data["passed"], data["failed"]) == (1, 3, 1)
    first, _, bad, two = data["files"]
    assert set(first) == {"file", "ok", "summary", "details", "kernels", "left_out", "error"}
    assert (first["ok"], first["error"], first["kernels"]) == (True, None, [])
    assert (bad["ok"], bad["summary"], bad["error"]["exit_code"]) == (False, "not run", 1)
    assert f"{folder / 'c.hlo'}:1:" in bad["error"]["message"]
    assert [(kernel["name"], kernel["ok"]) for kernel in two["kernels"]] == [("a", True), ("b", True)]


def test_a_file_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    """A loop of a billion turns; the file after it is checked as ever."""
    (tmp_path / "loop.hlo").write_text(
        "c { i = s32[] parameter(0)\n  n = s32[] constant(1000000000)\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
        "b { i = s32[] parameter(0)\n  o = s32[] constant(1)\n  ROOT j = s32[] add(i, o) }\n"
        "ENTRY e { i = s32[] constant(0)\n  ROOT w = s32[] while(i), condition=c, body=b }\n"
    )
    words = ("--max-iterations", "1000000000", "--timeout", "1.5", "-j", "2", "--stages", "hlo")
    code, rows, err = run(tmp_path / "loop.hlo", NEGATE, *words)
    assert code == 1
    assert rows[0].split("  ")[-1] == "not run: took longer than 1.5 s"
    assert rows[1].split()[1] == "ok"
    assert rows[2] == "1 of 2 files ok, 1 failed"
    assert err == f"error: [check] {tmp_path / 'loop.hlo'}: took longer than 1.5 s\n"


def test_what_xla_dumped(tmp_path: Path) -> None:
    """`--xla_dump_to` writes many files for a module: the one after all passes is checked, and other commands find it."""
    name = "module_0001.jit_f.sm_9.0a_gpu_after_optimizations"
    text = "HloModule m, is_scheduled=true\n\nENTRY e {\n  a = f32[8] parameter(0)\n  ROOT n = f32[8] negate(a)\n}\n"
    (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / f"{name}-buffer-assignment.txt").write_text("BufferAssignment:\nallocation 0: size 32\n")
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text("not this one")
    code, rows, _ = run(tmp_path)
    assert (code, len(rows)) == (0, 1)
    assert rows[0].split()[:2] == [str(tmp_path / f"{name}.txt"), "ok"]
    assert "loop (negate)" in called("list", tmp_path)[1]
    (tmp_path / "other.hlo").write_text(text)
    assert "2 modules are in the directory" in messages(1, "explain", tmp_path)
    code, rows, _ = run(tmp_path)
    assert (code, len(rows)) == (0, 3)


def test_directories_and_numbers_that_cannot_be(tmp_path: Path) -> None:
    code, rows, err = run(tmp_path)
    assert (code, rows) == (1, [])
    assert err.startswith(f"error: [file] no module is in the directory {tmp_path}\n")
    assert "*after_optimizations.txt or .hlo.pb are read" in err
    assert run(NEGATE, "-j", "0")[0] == 2
    for option, value in (
        ("--timeout", "0"),
        ("--timeout", "nan"),
        ("--atol", "nan"),
        ("--atol", "-1"),
        ("--rtol", "inf"),
    ):
        said = messages(2, "check", NEGATE, f"{option}={value}")
        assert option in said
        assert f"'{value}' is no " in said
