"""Skinny reductions in parts, by price: chosen where two kernels are faster, and only if their results are those of one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from runtime.corpus import CORPUS
from tools_here import SASS, needs

from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.explore.check.check import check
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile
from xla_emitters.program import Program, Slot
from xla_emitters.tuning import split_candidates
from xla_emitters.tuning.kernel_candidates import Candidate


def summed(shape: str, result: str, dim: int) -> str:
    return f"""
      add {{
        a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT s = f32[] add(a, b) }}
      f {{
        p = {shape} parameter(0)
        z = f32[] constant(0)
        ROOT r = {result} reduce(p, z), dimensions={{{dim}}}, to_apply=add }}
      ENTRY e {{
        p = {shape} parameter(0)
        ROOT sums = {result} fusion(p), kind=kInput, calls=f }}"""


COLUMNS = summed("f32[4096,64]", "f32[64]", 0)


def priced(source: str | Path) -> tuple[Program, str]:
    """With the only remark on it."""
    program = compile(source, tune="price", stage="graph", cache=False)
    (remark,) = [each for each in program.graph.remarks if each.pass_name == "tune"]
    return program, remark.text


@needs(*SASS)
def test_one_block_becomes_many() -> None:
    program, said = priced(COLUMNS)
    assert said.startswith("%sums: ")
    assert " parts, by expected times, with sums in another, fixed order. one kernel of 1 blocks: " in said
    assert "%sums.partial = f32[1,128,64]{2,1,0} fusion(" in program.code


@needs(*SASS)
def test_a_short_reduction_is_one_kernel() -> None:
    program, said = priced(summed("f32[8,16384]", "f32[8]", 1))
    assert "partial" not in program.code
    assert "one kernel of 8 blocks: " in said
    assert "; two kernels take " in said


@needs(*SASS)
def test_parts_beside_results_of_another_size() -> None:
    """No emitter takes the parts of columns together with the arrays beside them: these have a kernel of their own."""
    file = CORPUS / "reduction" / "moe_gate.31185e73.hlo"
    said = priced(file)[1]
    assert said.startswith("%fusion: 8 parts, by expected times")
    assert check(file, tune="price").ok


@needs(*SASS)
def test_other_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One result of the parts is off by a thousandth."""
    run = split_candidates._run

    def wrong(
        kernels: Sequence[PlannedKernel], candidates: Sequence[Candidate], given: Mapping[Slot, Array]
    ) -> Mapping[Slot, Array]:
        arrays = run(kernels, candidates, given)
        if len(kernels) > 1:
            next(array for slot, array in arrays.items() if slot.kind == "result")[3] *= 1.001
        return arrays

    monkeypatch.setattr(split_candidates, "_run", wrong)
    program, said = priced(COLUMNS)
    assert "partial" not in program.code
    assert "parts not taken: result 0: 1 of 64 elements differ" in said


def test_parts_are_made_where_they_are_asked_for() -> None:
    verdict = check(summed("f32[64,48]", "f32[48]", 0), splits=("sums=4",), verify=False)
    assert verdict.ok, verdict
    assert [each.name for each in verdict.kernels] == ["sums.partial", "sums"]


def test_no_parts_are_asked_for_in_other_words() -> None:
    with pytest.raises(UsageError, match="into how many parts"):
        compile(COLUMNS, splits=("sums",), stage="graph")
