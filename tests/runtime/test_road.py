"""The examples at full size: sampled blocks at every stage, and all blocks at one."""

from pathlib import Path

import pytest
from long_lists import but_long

from xla_emitters.explore.check.check import check
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))


# GELU has as many elements, 12.6 million, in fewer bytes.
LONG = [path for path in EXAMPLES if path.stem in ("multiply_f64", "not_pred")]
LARGE = [*LONG, *(path for path in EXAMPLES if path.stem == "gelu")]


@pytest.mark.parametrize("path", but_long(EXAMPLES, LONG), ids=lambda path: path.stem)
def test_every_stage_of_sampled_blocks(path: Path) -> None:
    """16 blocks, the first and the last among them: what they write is right, bit by bit. (The stage hlo has no blocks.)"""
    verdict = check(path, blocks=16, stages=",".join(EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]))
    assert verdict.ok, verdict.details


@pytest.mark.parametrize("path", but_long(EXAMPLES, LARGE), ids=lambda path: path.stem)
def test_whole_grid_at_the_llvm_dialect(path: Path) -> None:
    verdict = check(path, stages="llvm-dialect", verify=False)
    assert verdict.ok, verdict.details
