"""`xla-emitters cache`: what is stored, as text and as JSON, and clearing it."""

import json
from pathlib import Path

from in_process import printed

from xla_emitters.runtime.cache import OPTIMIZED, Cache
from xla_emitters.settings import read_settings

NEGATE = Path(__file__).parents[3] / "examples" / "negate_20.hlo"


def test_info_and_clear(cache_of_its_own: Path) -> None:
    printed("compile", NEGATE, "--stage", "scf")
    facts = json.loads(printed("cache", "info", "--json"))
    size = sum(path.stat().st_size for path in cache_of_its_own.rglob("*") if path.is_file())
    assert facts == {
        "directory": str(cache_of_its_own),
        "enabled": True,
        "programs": 1,
        "bytes": size,
        "limit_bytes": 256 * 2**20,
        "optimized": 0,
        "optimized_bytes": 0,
        "optimized_limit_bytes": 256 * 2**20,
    }
    assert "\nprograms   1\n" in printed("cache", "info")
    assert printed("cache", "clear") == f"1 program removed from {cache_of_its_own}\n"
    assert json.loads(printed("cache", "clear", "--json")) == {
        "directory": str(cache_of_its_own),
        "removed": 0,
        "optimized_removed": 0,
    }


def test_modules_of_xla_are_counted_and_cleared(cache_of_its_own: Path) -> None:
    Cache.of(OPTIMIZED, read_settings()).put("ab" * 32, b"HloModule m")
    assert "optimized  1 module, 0.0 of 256 MiB" in printed("cache", "info")
    assert printed("cache", "clear") == f"0 programs and 1 optimized module removed from {cache_of_its_own}\n"
    assert Cache.of(OPTIMIZED, read_settings()).size() == (0, 0)
