"""Programs with unknown sizes at the stages that LLVM makes: executed, checked, and a fault in what it made is named."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from runtime.corpus import CORPUS

import xla_emitters as xe
from xla_emitters.explore.bisect.program_bisect import search_program
from xla_emitters.explore.check.program_stages import check_program
from xla_emitters.pipelines import program_kernels
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.tools.bisect_verb import culprit_lines

TEXT = """
func.func @main(%x: tensor<?x6xf32>, %y: tensor<?x6xf32>) -> (tensor<?xf32>, tensor<?x6xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %less = stablehlo.compare LT, %x, %y, FLOAT : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xi1>
  %chosen = stablehlo.select %less, %x, %y : tensor<?x6xi1>, tensor<?x6xf32>
  %sum = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [1]
       : (tensor<?x6xf32>, tensor<f32>) -> tensor<?xf32>
  return %sum, %less : tensor<?xf32>, tensor<?x6xi1>
}
"""
X = np.arange(30, dtype=np.float32).reshape(5, 6) % 7 - 3
Y = np.arange(30, dtype=np.float32).reshape(5, 6) % 5 - 2


def test_numbers_are_numpy_s() -> None:
    program: Any = xe.compile(TEXT, record="none")
    for stage, rows in product(("llvm", "ptx"), (0, 1, 5)):
        total, less = program.run([X[:rows], Y[:rows]], stage)
        np.testing.assert_array_equal(total, np.minimum(X, Y)[:rows].sum(-1))  # small integers: exact
        np.testing.assert_array_equal(less, (X < Y)[:rows])


@pytest.mark.parametrize(
    "name", but_long(["batch_norm", "causal_attention", "recurrent"], ["causal_attention", "batch_norm"])
)
def test_programs_of_the_corpus(name: str) -> None:
    (path,) = CORPUS.glob(f"programs/{name}.mlir")
    program: Any = xe.compile(path, record="none")
    arrays = drawn_inputs(program, dict.fromkeys(program.symbols, 7), seed=1)
    verdict = check_program(program, arrays, ("llvm", "ptx"))
    assert verdict.ok, verdict.summary


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """PTX with a comparison the wrong way around."""
    make = program_kernels.compile_to_ptx

    def wrong(*given: Any, **how: Any) -> str:
        text, count = re.subn(r"setp\.lt\.f32", "setp.gt.f32", make(*given, **how))
        assert count
        return text

    monkeypatch.setattr(program_kernels, "compile_to_ptx", wrong)


@pytest.mark.usefixtures("planted")
def test_check_finds_a_fault_behind_the_last_pass() -> None:
    program: Any = xe.compile(TEXT, record="none")
    assert check_program(program, [X, Y], ("llvm-dialect", "llvm")).ok
    verdict = check_program(program, [X, Y], ("llvm", "ptx"))
    assert not verdict.ok
    assert verdict.summary.startswith("stage ptx: ")


@pytest.mark.usefixtures("planted")
def test_bisect_names_llvm() -> None:
    program: Any = xe.compile(TEXT, record="none")
    culprit = search_program(program, [X, Y]).culprit
    assert culprit.stage == "ptx"
    assert "LLVM (behind the last of our passes, between llvm and ptx) changes results" in "\n".join(
        culprit_lines(culprit)
    )
