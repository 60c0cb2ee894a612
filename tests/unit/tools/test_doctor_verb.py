"""`doctor`: what is there, what is missing, and what installs it."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from in_process import called, messages, printed, written
from tools_here import PTX, needs

from xla_emitters.settings import VARIABLES
from xla_emitters.support.extras import install_command

pytestmark = pytest.mark.usefixtures("cache_of_its_own")


@needs(*PTX)
def test_where_all_is_there() -> None:
    out = printed("doctor")
    assert out.splitlines()[-1] == "ready: fusions can be compiled to PTX here"
    assert re.search(rf"xdsl +{re.escape(metadata.version('xdsl'))}$", out, re.MULTILINE)


def test_a_missing_tool_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    monkeypatch.setenv("XLA_EMITTERS_LLC", "/nowhere/llc")
    lines = printed("doctor", code=4).splitlines()
    (row,) = [number for number, line in enumerate(lines) if line.startswith("  missing")]
    assert "mlir-opt was not found (for PTX without llvmlite)" in lines[row]
    assert "-> apt-get install mlir-22-tools llvm-22" in lines[row + 1]
    assert any(line.startswith("  absent") and "llc was not found (for --keep-intermediates)" in line for line in lines)
    assert lines[-1] == "not ready: install what is missing"


@needs("llvmlite", "libdevice")
def test_the_way_to_ptx_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of another way is absent, not missing."""
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "llvmlite")
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    found = {finding["name"]: finding for finding in json.loads(printed("doctor", "--json"))["findings"]}
    assert found["way to PTX"]["found"] == "llvmlite: llvmlite is here"
    assert found["mlir-opt"]["state"] == "absent"
    assert found["llvmlite"]["found"].startswith(("0.50.", "0.51."))
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "gcc")
    assert "one of: auto, llvmlite, mlir-opt, steps" in messages(2, "doctor")


def test_a_tool_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = written(tmp_path / "mlir-opt", "#!/bin/sh\necho 'LLVM version 14.0.6'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", str(tool))
    assert f"mlir-opt is of version 14.0.6, and 22 is needed: {tool}" in printed("doctor", code=4)


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version

    def version(name: str) -> str:
        if name in ("ml_dtypes", "islpy"):
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    found = {finding["name"]: finding for finding in json.loads(printed("doctor", "--json", code=4))["findings"]}
    assert (found["ml_dtypes"]["state"], found["ml_dtypes"]["remedy"]) == ("missing", install_command("ml_dtypes"))
    assert (found["islpy"]["state"], found["islpy"]["remedy"]) == ("absent", install_command(extras="prove"))


def test_every_variable_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_PTXAS", "/somewhere/ptxas")
    found = {finding["name"]: finding["found"] for finding in json.loads(called("doctor", "--json")[1])["findings"]}
    assert found["XLA_EMITTERS_PTXAS"] == "/somewhere/ptxas"
    assert {variable.name for variable in VARIABLES} <= set(found)
