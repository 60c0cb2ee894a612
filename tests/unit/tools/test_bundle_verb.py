"""`xla-emitters bundle`: real PTX for several programs in one zip."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tools_here import PTX, needs

from xla_emitters.tools.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
NEGATE, TWO_OUTPUTS = EXAMPLES / "negate_20.hlo", EXAMPLES / "two_outputs.hlo"


@needs(*PTX)
def test_bundle_and_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two programs for sm_80; the zip runs with nothing of ours on the path and says that it did not run."""
    path = tmp_path / "kernels.zip"
    assert main(["bundle", str(NEGATE), str(TWO_OUTPUTS), "-o", str(path), "--target", "sm_80", "--seed", "4"]) == 0
    assert capsys.readouterr().out == f"{path}: 2 programs, 2 kernels for sm_80; run it with: python {path}\n"
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert [case["name"] for case in manifest["cases"]] == ["negate_20", "two_outputs"]
        assert {case["seed"] for case in manifest["cases"]} == {4}
        ptx = archive.read("negate_20/ours-0.ptx").decode()
        assert archive.read("negate_20/hlo.txt").decode().startswith("HloModule negate_20")
    assert ".target sm_80" in ptx
    assert ".visible .entry negate(" in ptx
    # -S: no site packages of a .pth file; NumPy and ml_dtypes come from their folder, which has no `xla_emitters` in it.
    packages = Path(pytest.__file__).parents[1]
    assert not (packages / "xla_emitters").exists()
    done = subprocess.run(
        [sys.executable, "-S", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(packages)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("not run: ")


@needs(*PTX)
def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["bundle", str(NEGATE), "-o", "-"]) == 0
    with zipfile.ZipFile(io.BytesIO(capfdbinary.readouterr().out)) as archive:
        assert "negate_20/ours-0.ptx" in archive.namelist()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.hlo", "-o", "k.zip"], 1, "error: [file] nowhere.hlo: No such file"),
        ([NEGATE, "-o", "k.zip", "--target", "tpu"], 2, "error: unknown target 'tpu'"),
    ],
)
def test_faults(
    words: list[str | Path],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", *(str(word) for word in words)]) == code
    assert capsys.readouterr().err.startswith(message)
    assert not Path("k.zip").exists()


@needs(*PTX)
def test_a_place_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["bundle", str(NEGATE), "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: [bundle] cannot write {tmp_path}: Is a directory")


def test_no_output_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bundle", str(NEGATE)])
    assert stopped.value.code == 2
