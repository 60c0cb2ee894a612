"""The corpus: emitter and launch of fusions are XLA's, and their numbers are right. `make corpus`: all of all files."""

import pytest
from long_lists import every
from runtime.corpus import CORPUS, OTHER_LAUNCH, examine, files, other_choices

from xla_emitters.pipelines.compiler import compile


# Files are in the order of their names, so that parts of the list are of all emitters and of most ops.
@pytest.mark.parametrize("name", every(4, files()))
def test_emitter_and_launch_are_xlas(name: str) -> None:
    program = compile(CORPUS / name, stage="xla_gpu", record="none", cache=False)
    assert other_choices(name, program) == []


@pytest.mark.parametrize("name", every(7, files()[::7]))
def test_every_stage_of_four_blocks_is_right(name: str) -> None:
    assert examine(name, blocks=4).problems == ()


def test_few_launches_are_not_xlas() -> None:
    assert len(OTHER_LAUNCH) <= 5
    assert all(OTHER_LAUNCH.values())
