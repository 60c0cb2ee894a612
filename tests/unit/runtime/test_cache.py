"""Files by key: what is read is what was written, or nothing."""

import os
from pathlib import Path

import pytest

from xla_emitters.runtime.cache import Cache

KEYS = ["ab" + "0" * 62, "ab" + "1" * 62, "cd" + "0" * 62]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "entries", 1000)


def test_an_entry_is_found_under_its_key(cache: Cache) -> None:
    assert cache.get(KEYS[0]) is None
    cache.put(KEYS[0], b"one\ntwo\x00")
    assert cache.get(KEYS[0]) == b"one\ntwo\x00"
    assert cache.get(KEYS[1]) is None


@pytest.mark.parametrize("damage", [b"", b"no digest", b"0" * 64 + b"\nother"])
def test_what_was_not_written_goes_away(cache: Cache, damage: bytes) -> None:
    cache.put(KEYS[0], b"one")
    cache.path(KEYS[0]).write_bytes(damage)
    assert cache.get(KEYS[0]) is None
    assert not cache.path(KEYS[0]).exists()


def test_the_longest_unused_go_beyond_the_limit(cache: Cache) -> None:
    for number, key in enumerate(KEYS[:2]):
        cache.put(key, b"x" * 400)
        os.utime(cache.path(key), (1000 + number, 1000 + number))
    assert cache.get(KEYS[0]) is not None  # used now
    cache.put(KEYS[2], b"x" * 400)
    assert [cache.get(key) is not None for key in KEYS] == [True, False, True]


def test_a_directory_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    cache = Cache(tmp_path / "file", 1000)
    cache.put(KEYS[0], b"one")
    assert cache.get(KEYS[0]) is None
    assert cache.size() == (0, 0)
    assert cache.clear() == 0
