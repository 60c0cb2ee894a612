"""Each kernel of a program has a verdict of its own, and a wrong one is named, even if later kernels hide its effect."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from in_process import written
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32

from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Array
from xla_emitters.explore.check.program_stages import check_program
from xla_emitters.explore.check.watched_kernels import check_kernels, first_difference
from xla_emitters.explore.compile import compile_text
from xla_emitters.pipelines.pass_lists import LISTS, rows_of
from xla_emitters.pipelines.passes import PassRow
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.text import ptx
from xla_emitters.tools.main import main

TEXT = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> (tensor<3xf32>, tensor<3x?xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %a = stablehlo.subtract %x, %y : tensor<?x3xf32>
    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %n = stablehlo.negate %t : tensor<3x?xf32>
    return %s, %n : tensor<3xf32>, tensor<3x?xf32>
  }
}
""".lstrip()
"""A reduction of columns in two passes, which makes the difference too; a transpose of that; a negation."""
LOOP = Path(__file__).parents[3] / "corpus" / "stablehlo" / "loop.mlir"


class SwapsOperands(KernelPass):
    """x - y becomes y - x in each kernel."""

    name = "swaps-operands"

    def apply_to(self, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, arith.SubfOp):
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


class TakesMore(KernelPass):
    """In kernels of negations -x becomes x - 1."""

    name = "takes-more"

    def apply_to(self, op: ModuleOp) -> None:
        for each in [found for found in op.walk() if isinstance(found, arith.NegfOp)]:
            one = arith.ConstantOp(FloatAttr(1.0, f32))
            block = each.parent_block()
            block.insert_ops_before([one, made := arith.SubfOp(each.operand, one.result)], each)
            each.result.replace_all_uses_with(made.result)


def planted(wrong: KernelPass, monkeypatch: pytest.MonkeyPatch, of: str = "program-kernel") -> None:
    monkeypatch.setitem(LISTS, of, (PassRow(lambda _: wrong, "it is wrong"), *rows_of(of)))


def program() -> Program:
    return compile_text(TEXT, "m.mlir")


INPUTS = [np.arange(12, dtype=np.float32).reshape(4, 3) ** 2, np.ones((4, 3), np.float32)]


def test_all_kernels_are_right_and_say_what_they_launched() -> None:
    """Of more rows than a tile has: of fewer, the first pass writes the sums."""
    many = [np.repeat(array, 600, axis=0) for array in INPUTS]
    verdict = check_program(program(), many, ["loops", "llvm-dialect"])
    assert verdict.ok
    summaries = {kernel.name: kernel.summary for kernel in verdict.kernels}
    assert all(summary.startswith("ok; launched: ") for summary in summaries.values())
    assert len(summaries) >= 2
    (reduction,) = (name for name in summaries if "kColReduction" in name)
    assert f"{reduction}_0, {reduction}_1" in summaries[reduction]


@pytest.mark.parametrize(("wrong", "kind"), [(SwapsOperands(), "kColReduction"), (TakesMore(), "kLoop")])
def test_a_wrong_kernel_is_named_with_its_first_wrong_element(
    wrong: KernelPass, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(wrong, monkeypatch)
    verdict = check_program(program(), INPUTS, ["kernels", "llvm-dialect"])
    assert not verdict.ok
    (bad,) = (kernel for kernel in verdict.kernels if not kernel.ok)
    assert kind in bad.name
    assert " at stage llvm-dialect; launched: " in bad.summary
    assert any(line.startswith(f"kernel {bad.name}: %") for line in verdict.details)
    # What comes after a wrong kernel gets its wrong numbers, and is right all the same.
    assert [kernel.ok for kernel in verdict.kernels].count(False) == 1


def test_a_kernel_that_is_wrong_in_ptx_alone_is_named_and_no_other_is_called_right_by_an_earlier_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LLVM's code generator negates nothing: -x is x in PTX."""
    read = ptx.read_ptx
    monkeypatch.setattr(ptx, "read_ptx", lambda text, *rest: read(text.replace("neg.f32", "mov.f32"), *rest))
    verdict = check_program(program(), INPUTS, ["llvm-dialect", "ptx"])
    assert not verdict.ok
    assert verdict.summary.startswith("stage ptx: differs")
    (bad,) = (kernel for kernel in verdict.kernels if not kernel.ok)
    assert " at stage ptx; launched: " in bad.summary
    assert all(kernel.summary.startswith("ok; launched") for kernel in verdict.kernels if kernel.ok)


def test_kernels_that_are_right_beside_a_wrong_stage_say_at_which_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage `hlo` has no kernels: what is wrong there is in none of them."""
    found, run = program(), Program.run

    def run_wrong(self: Program, inputs: Sequence[Array], stage: str = "ptx") -> list[Array]:
        results = run(self, inputs, stage)
        return [array + 1 for array in results] if stage == "hlo" else results

    monkeypatch.setattr(Program, "run", run_wrong)
    verdict = check_program(found, INPUTS, ["hlo", "kernels"])
    assert verdict.summary.startswith("stage hlo: differs")
    assert {kernel.summary.partition(";")[0] for kernel in verdict.kernels} == {"at stage kernels: ok"}


def test_a_loop_on_the_host_runs_its_kernels_again_and_again() -> None:
    found = compile_text(LOOP.read_text(), LOOP.name)
    inputs = drawn_inputs(found, dict.fromkeys(found.symbols, 2), 0)
    verdicts, results = check_kernels(found, found.compilation.checked(inputs), "loops")
    assert all(verdict.ok for verdict in verdicts)
    for one, other in zip(results, found.run(inputs, "loops"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_command_line_has_them_in_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "m.mlir", TEXT)
    planted(SwapsOperands(), monkeypatch)
    assert main(["check", str(path), "--stages", "llvm-dialect", "--sizes", "d0=2", "--json"]) == 3
    row = json.loads(capsys.readouterr().out)
    (row,) = row if isinstance(row, list) else row.get("files", [row])
    assert [kernel["ok"] for kernel in row["kernels"]].count(False) == 1
    assert set(row["kernels"][0]) == {"name", "ok", "summary", "details"}


@pytest.mark.parametrize(
    ("found", "wanted", "is_near"),
    [
        (1.0 + 2**-11, 1.0, True),
        (1.0 + 2**-8, 1.0, False),
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (0.0, np.nan, False),
    ],
)
def test_the_tolerance_of_floats(found: float, wanted: float, is_near: bool) -> None:
    difference = first_difference(np.asarray([1, found], np.float32), np.asarray([1, wanted], np.float32), 0.0)
    assert (difference == "") == is_near
    assert is_near or difference.startswith("[1] is ")


def test_integers_must_be_equal() -> None:
    assert not first_difference(np.arange(3), np.arange(3), 1e9)
    assert first_difference(np.arange(3), np.asarray([0, 1, 3]), 1e9) == "[2] is 2, not 3 (1 of 3 elements differ)"
