"""`xla-emitters cache`: what is stored, as text and as JSON, and clearing it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xla_emitters.runtime.cache import OPTIMIZED, Cache
from xla_emitters.settings import read_settings
from xla_emitters.tools.main import main

NEGATE = Path(__file__).parents[3] / "examples" / "negate_20.hlo"


def test_info_and_clear(cache_of_its_own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compile", str(NEGATE), "--stage", "scf"])
    capsys.readouterr()
    assert main(["cache", "info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
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
    assert main(["cache", "info"]) == 0
    assert "\nprograms   1\n" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"1 program removed from {cache_of_its_own}\n"
    assert main(["cache", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "directory": str(cache_of_its_own),
        "removed": 0,
        "optimized_removed": 0,
    }


def test_modules_of_xla_are_counted_and_cleared(cache_of_its_own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cache.of(OPTIMIZED, read_settings()).put("ab" * 32, b"HloModule m")
    assert main(["cache", "info"]) == 0
    assert "optimized  1 module, 0.0 of 256 MiB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"0 programs and 1 optimized module removed from {cache_of_its_own}\n"
    assert Cache.of(OPTIMIZED, read_settings()).size() == (0, 0)
