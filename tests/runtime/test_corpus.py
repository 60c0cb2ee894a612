"""Every fusion of the corpus: right at every stage on up to 4 blocks, by the emitter that XLA takes, launched as XLA launches it."""

from __future__ import annotations

import pytest
from runtime.corpus import OTHER_LAUNCH, examine, files


@pytest.mark.parametrize("name", files())
def test_fusion(name: str) -> None:
    assert examine(name, blocks=4).problems == ()


def test_few_launches_are_not_xlas() -> None:
    assert len(OTHER_LAUNCH) <= 5
    assert all(OTHER_LAUNCH.values())
