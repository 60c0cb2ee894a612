"""Fixtures of the command line's tests."""

from pathlib import Path

import pytest


@pytest.fixture
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, on, in a directory of this test's."""
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
