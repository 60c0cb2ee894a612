"""Fixtures that tests of several wings share."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest


@pytest.fixture
def cupy() -> Iterator[ModuleType]:
    """The fake CuPy, fresh, in the place of the real one."""
    from unit.runtime.fake_gpu import fake_cupy

    with fake_cupy() as module:
        yield module
