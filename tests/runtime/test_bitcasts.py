"""Bitcasts between widths in programs, as kernels of this CPU: NumPy's views of the same bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.errors import VerifyError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU
from xla_emitters.text.stablehlo import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

PARTS = """module @m {{ func.func public @main(%x: tensor<{source}>) -> tensor<{target}> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<{source}>) -> tensor<{target}>
  return %0 : tensor<{target}> }} }}"""
TYPES: dict[str, Any] = {
    **{"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16, "i32": np.int32, "ui32": np.uint32},
    **{"i64": np.int64, "ui64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32},
    **{"f64": np.float64},
}
NARROWER = [
    ("f32", "ui8"),
    ("f32", "bf16"),
    ("f64", "i32"),
    ("ui64", "ui8"),
    ("i32", "f16"),
    ("ui16", "i8"),
    ("f64", "f32"),
]


def compiled(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv(CPU, "llvm")
    text = PARTS.format(source=source, target=target)
    program = compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))
    assert program.compilation.cpu.lowering is not None
    return program


def is_a_kernel(program: Program) -> bool:
    assert program.compilation.cpu.lowering is not None
    return "lmhlo.bitcast_convert" not in {op.name for op in program.compilation.cpu.lowering.host.walk()}


@pytest.mark.parametrize(("wide", "narrow"), NARROWER)
def test_parts_of_elements_and_back(wide: str, narrow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part has the lowest bits."""
    ratio = np.dtype(TYPES[wide]).itemsize // np.dtype(TYPES[narrow]).itemsize
    apart = compiled(f"3x?x{wide}", f"3x?x{ratio}x{narrow}", monkeypatch)
    together = compiled(f"3x?x{ratio}x{narrow}", f"3x?x{wide}", monkeypatch)
    assert is_a_kernel(apart)
    assert is_a_kernel(together)
    for size in (0, 1, 5):
        bits = np.random.default_rng(0).integers(0, 256, (3, size, np.dtype(TYPES[wide]).itemsize)).astype(np.uint8)
        x = bits.view(TYPES[wide])[..., 0]
        parts = apart(x)
        assert (parts.shape, parts.dtype, parts.tobytes()) == ((3, size, ratio), np.dtype(TYPES[narrow]), x.tobytes())
        assert together(parts).tobytes() == x.tobytes()


def test_a_last_dimension_of_another_size_is_refused() -> None:
    with pytest.raises(VerifyError, match=r"operand 0 is tensor<3x\?x3xui8>; its last dimension must be 4"):
        parse_stablehlo(PARTS.format(source="3x?x3xui8", target="3x?xui32"), "<test>")
