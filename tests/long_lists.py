"""Long lists of cases: `make test` runs those that show every kind, `make long` the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

are_wanted = True
"""Whether this run may have any: `conftest.py` says no where the run leaves them all out, and then their tests are not even made."""


def but_long(cases: Iterable[Any], long: Collection[Any]) -> list[Any]:
    """Parameters of a test: all cases, those in `long` with the mark of that name. raises ValueError for one that is not a case"""
    known = list(cases)
    if strange := [case for case in long if case not in known]:
        raise ValueError(f"no such case: {strange}")
    return _with_marks((case, case in long) for case in known)


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the first case and each `step`-th after it, the others with the mark `long`."""
    return _with_marks((case, number % step > 0) for number, case in enumerate(cases))


def _with_marks(cases: Iterable[tuple[Any, bool]]) -> list[Any]:
    return [long_case(case) if is_long else case for case, is_long in cases if are_wanted or not is_long]


def long_case(case: Any) -> Any:
    """Values of a test's parameters that `make test` leaves out."""
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.long)  # a row is one value
