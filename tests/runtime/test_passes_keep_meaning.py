"""After every pass the module computes the same bits (any NaN equals any NaN) as before it, over the whole grid."""

import pytest
from long_lists import but_long
from runtime.small_programs import EVERY_PASS_ON_HLO, PROGRAMS, TARGET, changes
from tools_here import here

from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.verdict import TOLERANT
from xla_emitters.lowering.toolchain.tools import ptx_reason_missing
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import FOR_TOOLS, GRAPH, KERNEL
from xla_emitters.pipelines.program_passes import PROGRAM_GRAPH, PROGRAM_LOOPS


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", but_long([0, 1], [1]))
def test_every_pass_keeps_every_bit(name: str, seed: int) -> None:
    verdict = check(PROGRAMS[name], target=TARGET, stages="passes", seed=seed)
    assert verdict.ok, verdict.details
    # The text read back, emission, each row, LLVM IR and the PTX were executed: nothing was skipped on the way.
    by_llvm = 2 if ptx_reason_missing(here()) is None else 0
    assert f"ok  {len(KERNEL) + len(FOR_TOOLS) + 2 + by_llvm} executions" in verdict.summary


@pytest.mark.parametrize(
    ("fusion", "kernels"), but_long([(None, 7), ("c", 2), ("s", 2), ("w", 2)], [("s", 2), ("w", 2)])
)
def test_every_pass_on_hlo_keeps_the_meaning(fusion: str | None, kernels: int) -> None:
    """Of the whole module seven rows change something, of one fusion which it is, and what is split; of `c` that it is for Triton."""
    verdict = check(EVERY_PASS_ON_HLO, target=TARGET, stages="passes", fusion=fusion)
    assert verdict.ok, verdict.details
    assert len(verdict.kernels) == kernels
    assert all(kernel.ok for kernel in verdict.kernels)
    # What the first row changes is in the text already.
    names = [row.make(CompileOptions(target=TARGET)).name for row in GRAPH]
    changed = {None: sum(changes(names)) - 1, "c": 3}.get(fusion, 2)
    assert f"ok  {changed + len(KERNEL) + len(FOR_TOOLS) + 2} executions" in verdict.summary


def test_tolerant_passes_are_in_the_pipeline() -> None:
    """The table of passes that may change bits names passes that exist, so that it cannot excuse a renamed one."""
    rows = (*GRAPH, *KERNEL, *FOR_TOOLS, *PROGRAM_GRAPH, *PROGRAM_LOOPS)
    names = {row.make(CompileOptions(target=TARGET)).name for row in rows}
    assert set(TOLERANT) <= names
