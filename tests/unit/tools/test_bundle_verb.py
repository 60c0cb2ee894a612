"""`xla-emitters bundle`: real PTX for several programs in one zip."""

import io
import json
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from in_process import called, messages, printed
from tools_here import PTX, needs
from unit.runtime.bundle.test_bundle import SORT_S4

from xla_emitters.tools.main import main

MODULES = Path(__file__).parents[2] / "corpus" / "modules"
EXAMPLES = Path(__file__).parents[3] / "examples"
NEGATE, TWO_OUTPUTS = EXAMPLES / "negate_20.hlo", EXAMPLES / "two_outputs.hlo"


@needs(*PTX)
def test_bundle_and_run(tmp_path: Path) -> None:
    """Two programs for sm_80; the zip runs with nothing of ours on the path and says that it did not run."""
    path = tmp_path / "kernels.zip"
    assert (
        printed("bundle", NEGATE, TWO_OUTPUTS, "-o", path, "--target", "sm_80", "--seed", "4")
        == f"{path}: 2 programs, 2 kernels for sm_80; run it with: python {path}\n"
    )
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert [case["name"] for case in manifest["cases"]] == ["negate_20", "two_outputs"]
        assert {case["seed"] for case in manifest["cases"]} == {4}
        ptx = archive.read("negate_20/ours-0.ptx").decode()
        assert archive.read("negate_20/hlo.txt").decode().startswith("HloModule negate_20")
    assert ".target sm_80" in ptx
    assert ".visible .entry negate(" in ptx
    # -S: no site packages of a .pth file; NumPy and ml_dtypes come from a folder that has nothing else in it.
    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in (
        *Path(np.__file__).parents[1].glob("numpy*"),
        *Path(ml_dtypes.__file__).parents[1].glob("ml_dtypes*"),
    ):
        (packages / folder.name).symlink_to(folder)
    done = subprocess.run(
        [sys.executable, "-S", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(packages)},
    )
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith("not run: ")


@needs(*PTX)
def test_a_program_for_devices_has_the_name_of_its_file(tmp_path: Path) -> None:
    """It is compiled from the module that is made of it."""
    (tmp_path / "shifted.mlir").write_text(
        """module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %x : tensor<4xf32>
    %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> :
        (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""
    )
    path = tmp_path / "kernels.zip"
    assert "note: shifted is for 2 devices" in called("bundle", tmp_path / "shifted.mlir", "-o", path)[2]
    with zipfile.ZipFile(path) as archive:
        assert [case["name"] for case in json.loads(archive.read("manifest.json"))["cases"]] == ["shifted"]


@needs(*PTX)
def test_a_whole_module_and_one_that_no_gpu_runs(tmp_path: Path) -> None:
    """A loop with a library call in it; a sort of narrow numbers: the note has the instruction and the reason, the bundle is written."""
    path = tmp_path / "modules.zip"
    (tmp_path / "sort_s4.hlo").write_text(SORT_S4)
    files = [str(MODULES / "fori_power_iteration.hlo"), str(tmp_path / "sort_s4.hlo")]
    code, out, err = called("bundle", *files, "-o", path)
    assert code == 0
    assert out.startswith(f"{path}: 2 programs, ")
    assert err == (
        "note: sort_s4 will be refused where it is run: no library function for s4 on a GPU: 's' calls 'sort' with it\n"
    )
    with zipfile.ZipFile(path) as archive:
        loop, sort = json.loads(archive.read("manifest.json"))["cases"]
        names = {name for name in archive.namelist() if name.endswith(".ptx")}
        ptx = archive.read("fori_power_iteration/ours-0.ptx").decode()
    assert names == {"fori_power_iteration/ours-0.ptx"} | {k["ptx"] for k in sort["codes"][0]["kernels"]}
    assert ptx.count(".visible .entry") == len(loop["codes"][0]["kernels"]) > 1
    (repeated,) = (step for step in loop["codes"][0]["steps"] if step["step"] == "Loop")
    assert repeated["trips"] == 12
    assert (loop["refused"], sort["refused"]) == ("", err.partition("run: ")[2].strip())
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.count("not run") == 3


@needs(*PTX)
def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["bundle", str(NEGATE), "-o", "-"]) == 0
    with zipfile.ZipFile(io.BytesIO(capfdbinary.readouterr().out)) as archive:
        assert "negate_20/ours-0.ptx" in archive.namelist()


TWO_FUSIONS = """HloModule two
halves { p = f32[64,32] parameter(0) a = f32[32,32] slice(p), slice={[0:32], [0:32]}
  b = f32[32,32] slice(p), slice={[32:64], [0:32]} ROOT t = (f32[32,32], f32[32,32]) tuple(a, b) }
flip { p = f32[64,32] parameter(0) ROOT n = f32[64,32] negate(p) }
ENTRY e {
  p = f32[64,32] parameter(0)
  h = (f32[32,32], f32[32,32]) fusion(p), kind=kInput, calls=halves
  n = f32[64,32] fusion(p), kind=kLoop, calls=flip
  a = f32[32,32] get-tuple-element(h), index=0
  ROOT t = (f32[32,32], f32[64,32]) tuple(a, n)
}
"""


@needs(*PTX)
@pytest.mark.parametrize(("rules", "threads"), [("current", 32 * 32), ("seed", 64 * 32)])
def test_one_fusion_of_standard_input(
    rules: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emitter of input slices, which today's rules do not have, has a thread for each element of the parameter."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TWO_FUSIONS.encode())))
    path = tmp_path / "kernels.zip"
    assert main(["bundle", "-", "--fusion", "h", "--hero-rules", rules, "-o", str(path)]) == 0
    with zipfile.ZipFile(path) as archive:
        (case,) = json.loads(archive.read("manifest.json"))["cases"]
    assert case["name"] == "stdin"
    assert [spec["shape"] for spec in case["results"]] == [[32, 32], [32, 32]]
    (kernel,) = case["codes"][0]["kernels"]
    assert kernel["name"] == "h"
    assert kernel["grid"][0] * kernel["block"][0] == threads


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.hlo", "-o", "k.zip"], 1, "error: [file] nowhere.hlo: No such file"),
        ([NEGATE, "-o", "k.zip", "--target", "tpu"], 2, "error: unknown target 'tpu'"),
        ([NEGATE, "-o", "k.zip", "--fusion", "other"], 2, "error: [plan] no fusion instruction 'other' in ENTRY"),
        (["-", "-", "-o", "k.zip"], 2, "error: [bundle] '-' is given more than once"),
    ],
)
def test_faults(
    words: list[str | Path], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert messages(code, "bundle", *(str(word) for word in words)).startswith(message)
    assert not Path("k.zip").exists()


@needs(*PTX)
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    assert messages(2, "bundle", NEGATE, "-o", tmp_path).startswith(
        f"error: [bundle] cannot write {tmp_path}: Is a directory"
    )


def test_no_output_is_usage() -> None:
    messages(2, "bundle", NEGATE)


def test_for_c_the_output_is_a_directory(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    attention = str(EXAMPLES / "causal_attention.mlir")
    said = printed("bundle", attention, "--abi", "c", "-o", tmp_path / "c c")
    names = {"causal_attention.bin", "causal_attention.c", "causal_attention.h", "causal_attention.o", "ral.c", "ral.h"}
    assert {path.name for path in (tmp_path / "c c").iterdir()} == names
    assert "include causal_attention.h" in said
    command = shlex.split(said.partition("compile with: ")[2])
    assert {Path(word) for word in command if word.endswith(".c")} > {tmp_path / "c c" / "ral.c"}
    assert command[1:3] == ["-I", str(tmp_path / "c c")]
    assert "--abi c writes several files" in messages(2, "bundle", attention, "--abi", "c", "-o", "-")


def test_for_c_hlo_text_is_refused(tmp_path: Path) -> None:
    assert "is HLO text: --abi c takes programs in StableHLO" in messages(
        1, "bundle", NEGATE, "--abi", "c", "-o", tmp_path
    )


def test_two_programs_for_c_do_not_overwrite_each_other(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        text = "module @m { func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> } }"
        (tmp_path / folder / "same.mlir").write_text(text)
    files = [str(tmp_path / folder / "same.mlir") for folder in ("a", "b")]
    assert f"{files[0]} and {files[1]} would both be same.o" in messages(
        2, "bundle", *files, "--abi", "c", "-o", tmp_path / "c"
    )
