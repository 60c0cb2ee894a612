"""Where tools are looked for, which versions are accepted, and the errors if one is missing."""

import os
from pathlib import Path

import pytest
from tools_here import fake_tool, here

from xla_emitters.errors import ToolError
from xla_emitters.lowering.toolchain import tools
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.support.processes import run_tool


def test_missing_libdevice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names a file that is not there: nothing else is tried."""
    monkeypatch.setenv("XLA_EMITTERS_LIBDEVICE", "/nowhere/libdevice.10.bc")
    with pytest.raises(ToolError, match="libdevice was not found") as raised:
        find_tool("libdevice", here())
    assert "XLA_EMITTERS_LIBDEVICE=/nowhere" in raised.value.details[0]
    assert raised.value.exit_code == 4
    assert "pip install" in raised.value.help


def test_missing_tool_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "_places", lambda row, cuda_home: [f"{row.name}-22", row.name])
    with pytest.raises(ToolError, match="llc was not found") as raised:
        find_tool("llc", here())
    assert raised.value.details == ("looked at: llc-22, llc",)
    assert "apt-get install" in raised.value.help
    assert "XLA_EMITTERS_LLC" in raised.value.help


def test_wrong_major_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Debian's plain llc is version 14."""
    path = fake_tool(tmp_path, "mlir-opt", 'echo "Debian LLVM version 14.0.6"')
    monkeypatch.setenv("XLA_EMITTERS_MLIR_OPT", path)
    with pytest.raises(ToolError, match=r"mlir-opt is of version 14\.0\.6, and 22 is needed") as raised:
        find_tool("mlir-opt", here())
    assert "apt-get install mlir-22-tools llvm-22" in raised.value.help


def test_version_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And again when the file has changed."""
    log = tmp_path / "log"
    path = fake_tool(tmp_path, "llc", f'echo asked >> {log}\necho "LLVM version 22.1.0"')
    monkeypatch.setenv("XLA_EMITTERS_LLC", path)
    assert find_tool("llc", here()).version == find_tool("llc", here()).version == "22.1.0"
    assert log.read_text().count("asked") == 1
    os.utime(path, ns=(1, 1))
    find_tool("llc", here())
    assert log.read_text().count("asked") == 2


def test_tool_that_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "ptxas"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o755)
    monkeypatch.setenv("XLA_EMITTERS_PTXAS", str(path))
    with pytest.raises(ToolError, match="ptxas could not be started"):
        run_tool([find_tool("ptxas", here()).path])
