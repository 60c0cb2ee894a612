"""Long lists of cases: `make test` runs those that show every kind, `make long` the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def but_long(cases: Iterable[Any], long: Collection[Any]) -> list[Any]:
    """Parameters of a test: all cases, those in `long` with the mark of that name. raises ValueError for one that is not a case"""
    known = list(cases)
    if strange := [case for case in long if case not in known]:
        raise ValueError(f"no such case: {strange}")
    return [long_case(case) if case in long else case for case in known]


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the first case and each `step`-th after it, the others with the mark `long`."""
    return [long_case(case) if number % step else case for number, case in enumerate(cases)]


def long_case(case: Any) -> Any:
    """Values of a test's parameters that `make test` leaves out."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
