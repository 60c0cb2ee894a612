"""`xla-emitters run`: on the CPU at every stage, on a (fake) GPU, arrays from and to files, verdicts."""

import io
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from in_process import called, messages, written
from runtime.small_programs import GELU, PROGRAMS
from tools_here import PTX, needs
from unit.runtime.fake_gpu import fake_cupy
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, RUNNABLE_STAGES
from xla_emitters.program import ArraySpec, Kernel
from xla_emitters.runtime.arrays import load_arrays, save_arrays
from xla_emitters.support.extras import install_command
from xla_emitters.tools.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
NEGATE = EXAMPLES / "negate_20.hlo"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees this machine's CuPy; some install the fake one."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def cupy(no_gpu: None) -> Iterator[ModuleType]:
    """The fake GPU."""
    with fake_cupy() as module:
        yield module


run = partial(called, "run")


def test_results_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Nothing else is there."""
    assert main(["run", str(NEGATE), "--platform", "cpu", "--outputs", "-"]) == 0
    out, err = capfdbinary.readouterr()
    with np.load(io.BytesIO(out)) as arrays:
        assert arrays["r0"].shape == (20,)
    assert err.startswith(b"r0 = f32[20]\nran on the CPU at stage llvm-dialect")


@pytest.mark.parametrize("stage", RUNNABLE_STAGES)
def test_every_stage_computes_the_same(stage: str, tmp_path: Path) -> None:
    """Two outputs, from drawn inputs, to a file."""
    path = tmp_path / "out.npz"
    code, out, err = run(EXAMPLES / "two_outputs.hlo", "--stage", stage, "--outputs", path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "r0 = f32[8,64]",
        "r1 = f32[512]",
        next(
            line for line in out.splitlines() if re.fullmatch(rf"ran on the CPU at stage {stage} in \d+\.\d+ s", line)
        ),
        f"results: {path}",
        "1024 of 1024 elements bit-identical to the NumPy reference",
    ]
    with np.load(path) as arrays:
        x = np.random.default_rng([0, 0]).standard_normal((8, 64), dtype=np.float32)
        assert np.array_equal(arrays["r0"], -x)
        assert np.array_equal(arrays["r1"], (x * x).reshape(512))


def test_the_seed_chooses_the_inputs(tmp_path: Path) -> None:
    results = []
    for number, seed in enumerate((5, 5, 6)):
        run(NEGATE, "--seed", str(seed), "--outputs", tmp_path / f"{number}.npz", "--no-reference")
        with np.load(tmp_path / f"{number}.npz") as arrays:
            results.append(arrays["r0"])
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


@pytest.mark.parametrize("seed", ["-1", "1.5", "x"])
@pytest.mark.parametrize(
    "words", [["run"], ["check"], ["bisect"], ["bundle", "-o", "x.zip"], ["reduce", "--keep-wrong"]]
)
def test_a_seed_is_an_integer_from_0(words: list[str], seed: str) -> None:
    """As NumPy's `default_rng` takes them."""
    said = messages(2, *words, NEGATE, "--seed", seed)
    assert f"argument --seed: '{seed}' is no integer of 0 or more" in said


def test_arrays_go_in_and_come_out(tmp_path: Path) -> None:
    """bf16 as a bit pattern beside its name; the results of one run are inputs of the next."""
    hlo = written(tmp_path / "gelu.hlo", GELU)
    spec = ArraySpec("bf16", (5, 64, 128), (2, 1, 0))
    x = np.linspace(-3, 3, 5 * 64 * 128).reshape(5, 64, 128).astype(ml_dtypes.bfloat16)
    save_arrays(tmp_path / "in.npz", "p", [x], [spec])
    code, _, err = run(hlo, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    assert (code, err) == (0, "")
    (y,) = load_arrays(tmp_path / "out.npz", "r", [spec])
    assert y.dtype == ml_dtypes.bfloat16
    # Within the text's own constants and bf16's 8 bits, GELU is x * Phi(x); here it is held coarsely, elsewhere bit by bit.
    wide = x.astype(np.float64)
    assert np.allclose(y.astype(np.float64), wide * (1 + np.tanh(0.79785 * (wide + 0.044708 * wide**3))) / 2, atol=0.05)


def test_pred_is_bool_in_files(tmp_path: Path) -> None:
    hlo = written(tmp_path / "not.hlo", (EXAMPLES / "not_pred.hlo").read_text().replace("6,512,4096", "6,5,4"))
    x = np.arange(120).reshape(6, 5, 4) % 3 == 0
    np.savez(tmp_path / "in.npz", p0=x)
    code, _, err = run(hlo, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    assert (code, err) == (0, "")
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["r0"].dtype == np.bool_
        assert np.array_equal(arrays["r0"], ~x)


def test_standard_input() -> None:
    code, out, _ = run("-", stdin=NEGATE.read_bytes())
    assert code == 0
    assert out.endswith("20 of 20 elements bit-identical to the NumPy reference\n")


@needs(*PTX)
def test_the_table_of_stages(tmp_path: Path) -> None:
    """One row a stage with ops and milliseconds, the launch, and the IR of every pass and the PTX in a folder."""
    code, out, _ = run(NEGATE, "--show-stages", "--print-ir-tree-dir", tmp_path / "tree")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["stage", "ops", "ms"]
    rows = [line.split()[0] for line in lines[1:13]]
    stages = EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]
    assert rows == ["hlo", "partition", *stages, "llvm", "ptx", "total"]
    assert lines[13] == "kernel negate: 1x1x1 blocks of 20x1x1 threads, sm_90"
    names = sorted(path.name for path in (tmp_path / "tree").iterdir())
    assert names[0] == "00-hlo.hlo"
    assert names[-1].endswith("-ptx.ptx")
    assert ".visible .entry negate" in (tmp_path / "tree" / names[-1]).read_text()


def test_arrays_from_standard_input() -> None:
    """As `run --outputs -` of another program would write them."""
    file = io.BytesIO()
    np.savez(file, p0=np.arange(20, dtype=np.float32))
    code, out, err = run(NEGATE, "--inputs", "-", "--stage", "hlo", stdin=file.getvalue())
    assert (code, err) == (0, "")
    assert out.endswith("20 of 20 elements bit-identical to the NumPy reference\n")
    code, out, err = run(NEGATE, "--inputs", "-", stdin=file.getvalue()[:-20])
    assert (code, out) == (1, "")
    assert err.startswith("error: [arrays] standard input is not an .npz file")


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("-", "--inputs", "-")
    assert (code, err) == (2, "error: [run] '-' is given more than once, but standard input can be read only once\n")
    monkeypatch.setattr(sys, "stdin", None)  # as Python leaves it where a shell closed it
    for words in ["-"], [str(NEGATE), "--inputs", "-"]:
        assert main(["run", *words]) == 2
        assert capsys.readouterr().err == "error: [read] standard input is closed\n"


def test_json_and_several_runs_of_a_module(tmp_path: Path) -> None:
    """One compilation; the same keys as of a program."""
    pairs = list[str | Path]()
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", p0=np.full(20, ord(name), np.float32))
        pairs += ["--inputs", str(tmp_path / f"{name}.npz"), "--outputs", str(tmp_path / f"{name}.out.npz")]
    code, out, err = run(NEGATE, *pairs, "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert (data["compiles"], data["kernels"], data["library_calls"]) == (1, 1, 0)
    assert [(each["sizes"], each["ok"]) for each in data["runs"]] == [({}, True)] * 2
    assert data["runs"][0]["results"] == [{"dtype": "f32", "shape": [20], "minor_to_major": [0]}]
    with np.load(tmp_path / "b.out.npz") as found:
        assert (found["r0"] == -ord("b")).all()


# ---- verdicts and faults ----


def test_wrong_numbers_end_with_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that forgets the sign, as the executor would show it."""
    from xla_emitters.runtime.cpu import cpu_launcher

    right = cpu_launcher.run_program

    def wrong(*words: object, **named: object) -> list[np.ndarray]:
        (result,) = right(*words, **named)
        result[7] = -result[7]
        return [result]

    monkeypatch.setattr(cpu_launcher, "run_program", wrong)
    code, out, err = run(NEGATE)
    assert code == 3
    assert err.count("differs from the NumPy reference: r0: 1 of 20 elements") == 1
    assert "NumPy reference" not in out
    assert re.search(r"r0\[7\] is -?\d\.\d+, wanted -?\d\.\d+", err)
    assert run(NEGATE, "--no-reference")[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.hlo"], 1, "error: [file] nowhere.hlo: No such file"),
        (
            [NEGATE, "--stage", "sass"],
            2,
            "error: [run] stage 'sass' cannot be executed\n    help: one of: hlo, graph, xla_gpu, inlined",
        ),
        (
            [NEGATE, "--platform", "cuda"],
            4,
            f"error: [run] --platform cuda: CuPy is not installed\n    help: {install_command(extras='cuda12')}",
        ),
        (
            [NEGATE, "--platform", "cuda", "--stage", "scf"],
            2,
            "error: [run] --stage runs on the CPU: a GPU runs PTX only",
        ),
        ([NEGATE, "--inputs", "nowhere.npz"], 1, "error: [file] nowhere.npz: No such file"),
        (
            [NEGATE, "--inputs", "wrong.npz"],
            1,
            "error: [arrays] 'p0' in wrong.npz has shape [21], but f32[20] is expected",
        ),
        ([NEGATE, "--inputs", "empty.npz"], 1, "error: [arrays] empty.npz is not an .npz file"),
        ([NEGATE, "--outputs", "nowhere/out.npz"], 2, "error: [run] cannot write nowhere/out.npz: No such file"),
        ([NEGATE, "--outputs", "."], 2, "error: [run] cannot write .: Is a directory"),
        ([NEGATE, "--fusion", "other"], 2, "error: [plan] no fusion instruction 'other' in ENTRY"),
        ([NEGATE, "--target", "tpu"], 2, "error: unknown target 'tpu'"),
    ],
)
def test_faults(
    words: list[str | Path], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("wrong.npz", p0=np.zeros(21, np.float32))
    Path("empty.npz").touch()
    err = messages(code, "run", *words)
    assert err.startswith(message), err
    assert "Traceback" not in err


# ---- on a GPU ----


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("platform", ["auto", "cuda"])
def test_on_the_gpu(name: str, platform: str, tmp_path: Path, cupy: ModuleType) -> None:
    """Compiled for the device that is found, launched there, compared here."""
    hlo = written(tmp_path / "program.hlo", PROGRAMS[name])
    code, out, err = run(hlo, "--platform", platform)
    assert (code, err) == (0, "")
    assert "ran on the GPU (sm_75) in" in out
    assert re.search(r"(\d+) of \1 elements", out)
    assert cupy.launches == ["fusion"]


def test_with_a_gpu_a_stage_still_runs_on_the_cpu(cupy: ModuleType) -> None:
    for words in (["--stage", "flat"], ["--platform", "cpu"]):
        _, out, _ = run(NEGATE, *words)
        assert "ran on the CPU" in out
    assert cupy.launches == []


# ---------------------------------------------------------------------------------------------- watching threads

TRANSPOSE = Path(__file__).parents[2] / "filecheck" / "emitters" / "transpose" / "seed_listing.hlo"


def test_accesses_are_reported() -> None:
    """A tile of 33 columns: no bank conflict either way."""
    code, out, err = run(TRANSPOSE, "--stage", "xla_gpu", "--access-report", "--sanitize")
    assert (code, err) == (0, "")
    reads, writes, total, head, *rows = out[out.index("kernel fusion:") :].splitlines()[1:9]
    assert [line.split(":")[0] for line in (reads, writes, total)] == ["global reads", "global writes", "shared memory"]
    assert total.endswith("1 bank ways (worst 1)")
    assert head.split() == ["access", "copies", "of", "bytes", "requests", "bank", "ways", "sectors", "from"]
    shared = [row for row in rows if "the shared tensor<32x1x33xf32>  4 " in row]
    assert [re.search(r"f32>  4 +(\d+) +(\d+) +-  ", row).groups()[1] for row in shared] == ["1", "1"]
    assert all("seed_listing.hlo:" in row for row in rows)


@pytest.mark.parametrize("flag", ["--sanitize", "--access-report"])
def test_only_threads_on_the_cpu_are_watched(flag: str, cupy: ModuleType) -> None:
    code, _, err = run(NEGATE, "--platform", "cuda", flag)
    assert (code, f"{flag} works only on the CPU" in err) == (2, True)
    for stage in ("hlo", "graph"):
        code, _, err = run(NEGATE, "--stage", stage, flag)
        assert (code, f"{flag} needs threads, and stage {stage} has none" in err) == (2, True)
    code, out, _ = run(NEGATE, flag)
    assert (code, "ran on the CPU at stage llvm-dialect" in out) == (0, True)


def test_a_race_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emitter that forgets to wait."""
    from xla_emitters.runtime.cpu import cpu_launcher

    right = cpu_launcher.ExecutableKernel

    def without_barriers(module: ModuleOp, kernel: Kernel) -> cpu_launcher.ExecutableKernel:
        for op in [op for op in module.walk() if op.name == "nvvm.barrier0"]:
            op.detach()
        return right(module, kernel)

    monkeypatch.setattr(cpu_launcher, "ExecutableKernel", without_barriers)
    assert run(TRANSPOSE, "--platform", "cpu")[0] == 0
    code, _, err = run(TRANSPOSE, "--platform", "cpu", "--sanitize")
    assert code != 0
    assert re.search(
        r"llvm.load in block 0, thread \d+ reads bytes .* of @shared_0, which thread .* wrote: a race", err
    )
    assert "seed_listing.hlo:" in err


def test_the_flags_of_run_hlo_module(capfd: pytest.CaptureFixture[str]) -> None:
    """The seed document's command line, with the file last; a machine without a GPU says what to type instead."""
    asked = ["--xla_disable_all_hlo_passes", "--reference_platform=", "--v=5", str(NEGATE)]
    assert main(["run", "--platform=CPU", *asked]) == 0
    out, err = capfd.readouterr()
    assert "NumPy reference" not in out
    assert "IR after xla-flatten-tensors" in err
    assert main(["run", "--platform=CPU", "--reference_platform=Interpreter", "--v=1", str(NEGATE)]) == 0
    out, err = capfd.readouterr()
    assert "bit-identical to the NumPy reference" in out
    assert "IR after" not in err
    assert main(["run", "--platform=CUDA", *asked]) == 4
    assert "without a GPU: --platform cpu" in capfd.readouterr().err
