"""Work done by a copy of this process: it knows what was known when it began; errors are those of the work; none is left running."""

import multiprocessing
import os
from functools import partial

import pytest

from xla_emitters.errors import ToolError
from xla_emitters.support.forked import Forked


def doubled(numbers: list[int]) -> list[int]:
    return [2 * number for number in numbers]


def refused() -> int:
    raise ValueError("as asked")


def killed() -> None:
    os.kill(os.getpid(), 9)


def two_doubled() -> list[list[int]]:
    made = [Forked(partial(doubled, [number])) for number in (1, 2)]
    return [each.answer() for each in made]


def test_a_copy_does_not_see_what_changes_later() -> None:
    numbers = [1, 2]
    made = [Forked(partial(doubled, numbers)) for _ in range(2)]
    numbers.append(3)
    assert [each.answer() for each in made] == [[2, 4], [2, 4]]
    assert made[0].answer() == [2, 4]
    assert multiprocessing.active_children() == []


def test_what_does_not_return() -> None:
    dying, refusing = Forked(killed), Forked(refused)
    with pytest.raises(ToolError, match="ended with signal 9"):
        dying.answer()
    with pytest.raises(ValueError, match="as asked"):
        refusing.answer()
    assert multiprocessing.active_children() == []


def test_a_copy_has_none_of_its_own() -> None:
    assert Forked(two_doubled).answer() == [[2], [4]]
