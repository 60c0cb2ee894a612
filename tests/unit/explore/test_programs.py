"""Programs with unknown sizes pass by pass: every pass keeps the bits, and a wrong one is named."""

from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from in_process import printed, written
from long_lists import but_long
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.explore.compile import compile_text
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import LISTS
from xla_emitters.pipelines.passes import PassRow
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.program_passes import PROGRAM_FUSED, RUN_ON_KERNELS
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.tools.main import main

CORPUS = Path(__file__).parents[2] / "corpus"
TEXT = """
module @m {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %a = stablehlo.subtract %x, %y : tensor<?x3xf32>
    %b = stablehlo.exponential %a : tensor<?x3xf32>
    return %b : tensor<?x3xf32>
  }
}
""".lstrip()


class SwapsOperands(KernelPass):
    """x - y becomes y - x, on tensors or on buffers."""

    name = "swaps-operands"

    def apply_to(self, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name in ("hlo.subtract", "lmhlo.subtract"):
                assert isinstance(each, HloOp | lmhlo.BufferOp)
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


@contextmanager
def planted(number: int, wrong: KernelPass, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A wrong pass after the row of that number."""
    row = PassRow(lambda _: wrong, "it is wrong")
    with monkeypatch.context() as patch:
        patch.setitem(LISTS, "program", (*PROGRAM_FUSED[: number + 1], row, *PROGRAM_FUSED[number + 1 :]))
        yield


def row_of(stage: str) -> int:
    return next(number for number, row in enumerate(PROGRAM_FUSED) if row.stage == stage)


KEPT = ("stablehlo/loop", "stablehlo/outer", "stablehlo/sorted", "programs/histogram")


@pytest.mark.parametrize("name", but_long(KEPT, KEPT[1:]))
def test_every_pass_keeps_the_bits(name: str) -> None:
    program = compile_text((CORPUS / f"{name}.mlir").read_text(), name, CompileOptions(record="passes"))
    verdict = check(program, sizes=dict.fromkeys(program.symbols, 3), stages="passes")
    assert verdict.ok, verdict.summary
    steps = program.compilation.passes.steps
    changed = sum(a.ir != b.ir for a, b in pairwise(steps))
    executed, words = verdict.summary.removeprefix("ok  ").split(" ", 1)
    assert words.startswith("executions after passes: ")
    assert int(executed) > changed + len(RUN_ON_KERNELS) > 5


def test_the_command_line_runs_them_and_says_which_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "m.mlir", TEXT)
    assert "executions after passes: 6 of 6 elements" in printed("check", path, "--stages", "passes", "--sizes", "d0=2")
    with planted(row_of("placed"), SwapsOperands(), monkeypatch):
        assert main(["check", str(path), "--stages", "passes", "--sizes", "d0=2"]) == 3
    assert "swaps-operands: 6 elements of r0 change" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------------- bounds

PROGRAMS = (
    "stablehlo/masked_softmax",
    "programs/bfloat_softmax",
    "programs/generator",
    "loops/chosen_beside_another_name",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_programs_have_bounds(name: str) -> None:
    """Ops whose sizes are operands move elements: what is known of these is known of the result, and 2 % off is wrong."""
    program = compile_text((CORPUS / f"{name}.mlir").read_text(), name, CompileOptions(stage="fused", record="none"))
    inputs = drawn_inputs(program, {symbol: 5 + n for n, symbol in enumerate(program.symbols)}, 0)
    reference = reference_of(program, inputs)
    assert reference.compare(program.run(inputs)).ok
    for number, (value, bounds) in enumerate(zip(reference.values, reference.bounds, strict=True)):
        if value.dtype.kind in "biu":
            continue
        low, high = bounds.low.astype(np.float64), bounds.high.astype(np.float64)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        off = [array.copy() for array in reference.values]
        off[number] = (value.astype(np.float64) * 1.02).astype(value.dtype)
        if (off[number] != value).any():
            assert not reference.compare(off).ok
