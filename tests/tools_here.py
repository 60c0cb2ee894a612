"""Marks for tests that need external tools: skipped where a tool is missing, with its name. And scripts that stand in for a tool."""

import stat
from functools import cache
from pathlib import Path

import pytest

from xla_emitters.errors import ToolError
from xla_emitters.lowering.toolchain.tools import PtxWay, choose_way, find_tools, tools_of
from xla_emitters.settings import Toolchain, read_settings


def here() -> Toolchain:
    """What the environment says, which a test may have changed."""
    return read_settings().toolchain


def _tools_of_the_way() -> tuple[str, ...]:
    """What PTX is made with here: llvmlite, or mlir-opt where there is no llvmlite."""
    try:
        return tools_of(choose_way(here()).way)
    except ToolError:
        return tools_of(PtxWay.LLVMLITE)


PTX = (*_tools_of_the_way(), "libdevice")
STEPS = (*PTX, "mlir-translate", "llvm-link", "opt", "llc")
SASS = (*PTX, "ptxas", "nvdisasm")


@cache
def needs(*names: str) -> pytest.MarkDecorator:
    """Skips a test where one of the tools is missing or of the wrong version."""
    found = find_tools(here())
    missing = "; ".join(str(found[name]) for name in names if isinstance(found[name], ToolError))
    return pytest.mark.skipif(bool(missing), reason=missing)


SAYS_22 = 'if [ "$1" = --version ]; then echo "LLVM version 22.1.8"; exit 0; fi\n'


def fake_tool(directory: Path, name: str, script: str) -> str:
    """An executable shell script in the place of a tool."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
