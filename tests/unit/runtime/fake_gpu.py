"""Programs for the fake CuPy, and the fake in the place of the real one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest import mock

from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.runtime import cupy_platform

FOLDER = Path(__file__).parent / "fake_cupy"


@contextmanager
def fake_cupy() -> Iterator[ModuleType]:
    """The fake as `cupy`, fresh: nothing loaded, nothing launched."""
    spec = importlib.util.spec_from_file_location("cupy", FOLDER / "cupy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cupy_platform.load_module.cache_clear()
    with mock.patch.dict(sys.modules, {"cupy": module}):
        yield module
    cupy_platform.load_module.cache_clear()


def for_fake(source: str | Path, target: str = "t4", fusion: str | None = None) -> Program:
    """A program whose "PTX" is its LLVM dialect: one text for all of its kernels."""
    program = compile(source, target=target, fusion=fusion, stage="llvm-dialect")
    return Program.from_json({**program.to_json(), "stage": "ptx"}, program.graph, program.traces)
