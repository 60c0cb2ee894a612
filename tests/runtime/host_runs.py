"""Counts how often the host program of a program runs by Python, and not by a plan."""

from __future__ import annotations

from typing import Any

import pytest

from xla_emitters.dtypes import Array
from xla_emitters.pipelines.programs import DynamicProgram


def program_runs(program: DynamicProgram, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one at each run of the host program by Python."""
    runs, loaded = list[int](), program.loaded
    run = loaded._run  # pyright: ignore[reportPrivateUsage]

    def counted(*arguments: Any) -> list[Array]:
        runs.append(1)
        return run(*arguments)

    monkeypatch.setattr(loaded, "_run", counted)
    return runs
