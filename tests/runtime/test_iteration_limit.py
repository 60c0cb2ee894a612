"""The limit of iterations holds for the run of a program, not only for its reference, and its error says where the loop is."""

from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import EndlessLoop, UsageError
from xla_emitters.tools.main import main

# Halves x until it is below the bound: how often follows from the arguments.
HALVED = """func.func public @main(%x: tensor<f32>, %bound: tensor<f32>) -> tensor<f32> {
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0:2 = stablehlo.while(%a = %x, %b = %bound) : tensor<f32>, tensor<f32>
  cond {
    %more = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.multiply %a, %half : tensor<f32>
    stablehlo.return %next, %b : tensor<f32>, tensor<f32>
  }
  return %0#0 : tensor<f32>
}
"""
ARGUMENTS = np.float32(1024), np.float32(1)  # 11 halvings: 0.5


def test_a_program_runs_as_often_as_is_allowed() -> None:
    program = xe.compile(HALVED, record="none")
    with xe.limited_iterations(11):
        assert program(*ARGUMENTS) == np.float32(0.5)
    with xe.limited_iterations(10), pytest.raises(EndlessLoop, match="does not end within 10 iterations"):
        program(*ARGUMENTS)
    assert program(*ARGUMENTS) == np.float32(0.5)
    with pytest.raises(UsageError, match="-1 iterations are no limit"), xe.limited_iterations(-1):
        pass


def test_the_command_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "halved.mlir").write_text(HALVED)
    np.savez(tmp_path / "in.npz", p0=ARGUMENTS[0], p1=ARGUMENTS[1])
    words = ["run", str(tmp_path / "halved.mlir"), "--inputs", str(tmp_path / "in.npz"), "--max-iterations"]
    assert main([*words, "10"]) == 1
    assert "halved.mlir:3:10: error: [run] loop %" in capsys.readouterr().err
    assert main([*words, "11"]) == 0
