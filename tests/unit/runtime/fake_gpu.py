"""Programs for the fake CuPy, and a fixture that installs it in place of the real one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest import mock

import xla_emitters as xe
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


def program_for_fake(source: Path | str) -> Program:
    """A program with unknown sizes."""
    program = xe.compile(source)
    assert isinstance(program, Program)
    return program


def for_fake(source: str | Path, target: str = "t4", fusion: str | None = None) -> Program:
    """A program with its PTX: one text for all of its kernels."""
    return compile(source, target=target, fusion=fusion, stage="ptx")
