"""Reductions of dimensions in the middle of an array, as machine code of this CPU, against NumPy: one pass, without a transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import CPU
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
SHAPES = ((3, 5, 7), (2, 700, 300), (2, 0, 3), (0, 4, 3), (1, 1, 1), (4, 257, 1))
TEXT = """module @m {{ func.func public @main(%x: tensor<?x?x?x{t}>) -> {results} {{
  %start = stablehlo.constant dense<{start}> : tensor<{t}>
  {body}
}} }}"""
REDUCE = (
    "stablehlo.reduce(%{of} init: %start) applies stablehlo.{op} across dimensions = [1]"
    " : (tensor<?x?x?x{t}>, tensor<{t}>) -> tensor<?x?x{t}>"
)


@pytest.fixture(autouse=True)
def by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")


def compiled(body: str, results: str, t: str = "f32", start: str = "0.0") -> Program:
    text = TEXT.format(body=body, results=results, t=t, start=start)
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


def kernels(program: Program) -> list[str]:
    assert program.compilation.cpu.lowering is not None
    return list(program.compilation.cpu.lowering.parameters)


CASES: tuple[tuple[str, str, str, Callable[[Array], Array]], ...] = (
    ("add", "i32", "5", lambda x: x.sum(1, dtype=np.int32) + 5),
    ("maximum", "f32", "-1.0", lambda x: x.max(1, initial=-1.0)),
    ("minimum", "i32", "3", lambda x: x.min(1, initial=3)),
)


@pytest.mark.parametrize(("op", "t", "start", "wanted"), CASES)
def test_every_element_and_the_initial_value_count_once(
    op: str, t: str, start: str, wanted: Callable[[Array], Array]
) -> None:
    program = compiled(
        f"%y = {REDUCE.format(of='x', op=op, t=t)}\n return %y : tensor<?x?x{t}>", f"tensor<?x?x{t}>", t, start
    )
    assert kernels(program) == ["main_kRowReduction_reduce_1_middle"]
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32 if t == "i32" else np.float32)
        np.testing.assert_array_equal(program(x), wanted(x))


def test_long_sums_of_floats_are_by_blocks() -> None:
    program = compiled(
        f"%y = {REDUCE.format(of='x', op='add', t='f32')}\n return %y : tensor<?x?xf32>", "tensor<?x?xf32>"
    )
    x = np.full((1, 200_000, 2), np.float32(0.1))
    np.testing.assert_allclose(program(x), x.astype(np.float64).sum(1), rtol=1e-5)  # one after the other: 3e-3


def test_what_is_before_and_behind_the_reduction() -> None:
    """The negation is computed in the loops of the sum; its reader behind is a loop of its own."""
    program = compiled(
        f"""%n = stablehlo.negate %x : tensor<?x?x?xf32>
  %s = {REDUCE.format(of="n", op="add", t="f32")}
  %y = stablehlo.multiply %s, %s : tensor<?x?xf32>
  return %y : tensor<?x?xf32>""",
        "tensor<?x?xf32>",
    )
    assert kernels(program)[0].endswith("_middle")
    assert not any("transpose" in name or "negate" in name for name in kernels(program))
    for shape in SHAPES:
        x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
        np.testing.assert_array_equal(program(x), x.sum(1) ** 2)


def test_what_others_read_too_is_kept() -> None:
    program = compiled(
        f"""%n = stablehlo.negate %x : tensor<?x?x?xf32>
  %s = {REDUCE.format(of="n", op="add", t="f32")}
  return %s, %n : tensor<?x?xf32>, tensor<?x?x?xf32>""",
        "(tensor<?x?xf32>, tensor<?x?x?xf32>)",
    )
    x = np.random.default_rng(2).integers(-9, 9, (3, 6, 5)).astype(np.float32)
    found, negated = program(x)
    np.testing.assert_array_equal(found, -x.sum(1))
    np.testing.assert_array_equal(negated, -x)
