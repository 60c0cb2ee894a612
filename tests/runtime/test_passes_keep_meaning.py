"""After every pass the module computes the same bits (any NaN equals any NaN) as before it, over the whole grid."""

from __future__ import annotations

import pytest
from runtime.small_programs import PROGRAMS, TARGET

from xla_emitters.explore.check import TOLERANT, check
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import KERNEL


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pass_keeps_every_bit(name: str, seed: int) -> None:
    verdict = check(PROGRAMS[name], target=TARGET, stages="passes", seed=seed)
    assert verdict.ok, verdict.details
    # Emission and each row were executed: nothing was skipped on the way.
    assert f"ok  {len(KERNEL) + 1} executions" in verdict.summary


def test_tolerant_passes_are_in_the_pipeline() -> None:
    """The table of passes that may change bits names passes that exist, so that it cannot excuse a renamed one."""
    names = {row.make(CompileOptions(target=TARGET)).name for row in KERNEL}
    assert set(TOLERANT) <= names
