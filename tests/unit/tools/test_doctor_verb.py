"""`doctor`: what is there, what is missing, and what installs it."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from tools_here import PTX, needs

from xla_emitters.settings import VARIABLES
from xla_emitters.support.extras import install_command
from xla_emitters.tools.main import main

pytestmark = pytest.mark.usefixtures("cache_of_its_own")


@needs(*PTX)
def test_where_all_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "ready: fusions can be compiled to PTX here"
    assert re.search(rf"xdsl +{re.escape(metadata.version('xdsl'))}$", out, re.MULTILINE)


def test_a_missing_tool_comes_with_the_command_that_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    monkeypatch.setenv("XLA_EMITTERS_LLC", "/nowhere/llc")
    assert main(["doctor"]) == 4
    lines = capsys.readouterr().out.splitlines()
    (row,) = [number for number, line in enumerate(lines) if line.startswith("  missing")]
    assert "mlir-opt was not found (for PTX without llvmlite)" in lines[row]
    assert "-> apt-get install mlir-22-tools llvm-22" in lines[row + 1]
    assert any(line.startswith("  absent") and "llc was not found (for --keep-intermediates)" in line for line in lines)
    assert lines[-1] == "not ready: install what is missing"


@needs("llvmlite", "libdevice")
def test_the_way_to_ptx_and_why(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of another way is absent, not missing."""
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "llvmlite")
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", "/nowhere/mlir-opt")
    assert main(["doctor", "--json"]) == 0
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert found["way to PTX"]["found"] == "llvmlite: llvmlite is here"
    assert found["mlir-opt"]["state"] == "absent"
    assert found["llvmlite"]["found"].startswith(("0.50.", "0.51."))
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", "gcc")
    assert main(["doctor"]) == 2
    assert "one of: auto, llvmlite, mlir-opt, steps" in capsys.readouterr().err


def test_a_tool_of_another_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "mlir-opt"
    tool.write_text("#!/bin/sh\necho 'LLVM version 14.0.6'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", str(tool))
    assert main(["doctor"]) == 4
    assert f"mlir-opt is of version 14.0.6, and 22 is needed: {tool}" in capsys.readouterr().out


def test_a_package_that_is_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version

    def version(name: str) -> str:
        if name in ("ml_dtypes", "islpy"):
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    assert main(["doctor", "--json"]) == 4
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert (found["ml_dtypes"]["state"], found["ml_dtypes"]["remedy"]) == ("missing", install_command("ml_dtypes"))
    assert (found["islpy"]["state"], found["islpy"]["remedy"]) == ("absent", install_command(extras="prove"))


def test_every_variable_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_EMITTERS_PTXAS", "/somewhere/ptxas")
    main(["doctor", "--json"])
    found = {finding["name"]: finding["found"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert found["XLA_EMITTERS_PTXAS"] == "/somewhere/ptxas"
    assert {variable.name for variable in VARIABLES} <= set(found)
