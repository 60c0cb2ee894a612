"""Programs for the fake CuPy, and a fixture that installs it in place of the real one."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import xla_emitters as xe
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program
from xla_emitters.runtime.cuda import cupy_platform

FOLDER = Path(__file__).parent / "fake_cupy"
CORPUS = Path(__file__).parents[2] / "corpus"
NO_SCALARS = """
func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %is_less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %r = "stablehlo.if"(%is_less) ({ stablehlo.return %b : tensor<f32> }, { stablehlo.return %a : tensor<f32> })
        : (tensor<i1>) -> tensor<f32>
      stablehlo.return %r : tensor<f32>
  }) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
"""What neither a kernel nor a library computes: a window whose computation is more than ops on scalars."""


@contextmanager
def fake_cupy() -> Iterator[ModuleType]:
    """The fake as `cupy`, fresh: nothing loaded, nothing launched."""
    spec = importlib.util.spec_from_file_location("cupy", FOLDER / "cupy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cupy_platform.load_module.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in {"cupy": module, **module.neighbours}.items():
            patch.setitem(sys.modules, name, stand_in)
        yield module
    cupy_platform.load_module.cache_clear()


def program_for_fake(source: Path | str, record: str = "stages") -> Program:
    """A program with unknown sizes."""
    program = xe.compile(source, record=record)
    assert isinstance(program, Program)
    return program


@cache
def of_corpus(file: str) -> Program:
    """A program of `tests/corpus`, compiled once a process."""
    return program_for_fake(CORPUS / f"{file}.mlir")


def for_fake(source: str | Path, target: str = "t4", fusion: str | None = None, tune: str = "") -> Program:
    """A program with its PTX: one text for all of its kernels."""
    return compile(source, target=target, fusion=fusion, tune=tune, stage="ptx", record="none")
