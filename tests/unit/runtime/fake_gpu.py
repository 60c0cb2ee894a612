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
<<<<<<< HEAD
from xla_emitters.pipelines.programs import DynamicProgram
=======
from xla_emitters.pipelines.program_kernels import GpuLowering
>>>>>>> main
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


<<<<<<< HEAD
def program_for_fake(source: Path | str) -> DynamicProgram:
    """A program with unknown sizes."""
    program = xe.compile(source)
    assert isinstance(program, DynamicProgram)
=======
class _FakeLowering(GpuLowering):
    """Its "PTX" is the LLVM dialect of all kernels."""

    def _ptx(self, *, is_wide: bool) -> str:
        return print_ir(self._together(is_wide=is_wide))


def program_for_fake(source: Path | str) -> Program:
    """A program with unknown sizes whose "PTX" the fake takes."""
    program = xe.compile(source)
    assert isinstance(program, Program)
    assert program.compilation.fused is not None
    program.compilation.__dict__["lowering"] = _FakeLowering(
        program.name, program.compilation.fused, program.compilation.options
    )
>>>>>>> main
    return program


def for_fake(source: str | Path, target: str = "t4", fusion: str | None = None) -> Program:
    """A program with its PTX: one text for all of its kernels."""
    return compile(source, target=target, fusion=fusion, stage="ptx")
