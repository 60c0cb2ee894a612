"""Marks for tests that need external tools: skipped, with what is missing, where they are not."""

from __future__ import annotations

import pytest

from xla_emitters.errors import ToolError
from xla_emitters.lowering.toolchain import find_tools

PTX = ("mlir-opt", "libdevice")
STEPS = (*PTX, "mlir-translate", "llvm-link", "opt", "llc")
SASS = (*PTX, "ptxas", "nvdisasm")


def needs(*names: str) -> pytest.MarkDecorator:
    """Skips a test where one of the tools is missing or of the wrong version."""
    found = find_tools()
    missing = "; ".join(str(found[name]) for name in names if isinstance(found[name], ToolError))
    return pytest.mark.skipif(bool(missing), reason=missing)
