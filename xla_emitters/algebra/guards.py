"""Guards: conditions on sizes that a run checks before it computes anything, each with the message to show.

    guard = Guard(EQUAL, 2 * b, s, "argument 0 (p0): axis 1 is {0}, twice the batch is {1}", (s, 2 * b))
    guard.check({"b": 2, "s": 4})        nothing
    guard.check({"b": 2, "s": 5})        DataError: argument 0 (p0): axis 1 is 5, twice the batch is 4

Known facts need no check: `needed` leaves out guards that follow from the facts or from earlier guards.
A guard for JAX's shape_assertion has JAX's own message, in which {0}, {1} ... are the sizes that the assertion gives.
Source: docs/reference/4 2.1, 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from xla_emitters.algebra.facts import Fact, Facts, Relation, Source
from xla_emitters.algebra.size import Size
from xla_emitters.errors import DataError, VerifyError

_PLACEHOLDER = re.compile(r"\{([0-9]{1,4})\}")


@dataclass(frozen=True, slots=True)
class Guard:
    """Requires a relation between `left` and `right`; a run with other sizes ends with the message.

    message   {0}, {1} ... in it are replaced by the values of `shown`; "" means a message that names the sizes
    source    of the requirement, for the fact that holds once it is checked

    >>> from xla_emitters.algebra.facts import EQUAL
    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> print(Guard(EQUAL, b, s), Guard(EQUAL, s % 8, Size.constant(0)))
    b == s mod(s, 8) == 0
    >>> Guard(EQUAL, b + 1, s).message_for({"b": 1, "s": 4})
    'b + 1 == s does not hold: b + 1 is 2, s is 4'
    """

    relation: Relation
    left: Size
    right: Size
    message: str = ""
    shown: tuple[Size, ...] = ()
    source: Source = "a check before the run"

    @property
    def fact(self) -> Fact:
        """The fact that holds once the guard is checked."""
        return Fact(self.relation, self.left, self.right, self.source)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols whose values a check needs."""
        return self.left.symbols.union(self.right.symbols, *(size.symbols for size in self.shown))

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the condition holds for these values of the symbols. raises DataError as `Size.evaluate`"""
        return self.fact.holds(values)

    def check(self, values: Mapping[str, int]) -> None:
        """raises DataError with the message if the condition does not hold"""
        if not self.holds(values):
            raise DataError(self.message_for(values), stage="shapes")

    def message_for(self, values: Mapping[str, int]) -> str:
        """The message with the sizes' values in it. A placeholder without a size stays as written."""
        if self.message:
            shown = [str(size.evaluate(values)) for size in self.shown]

            def value_of(match: re.Match[str]) -> str:
                number = int(match[1])
                return shown[number] if number < len(shown) else match[0]

            return _PLACEHOLDER.sub(value_of, self.message)
        sizes = [size for size in (self.left, self.right) if size.value is None]
        given = ", ".join(f"{size} is {size.evaluate(values)}" for size in sizes)
        return f"{self} does not hold{': ' if given else ''}{given}"

    def __str__(self) -> str:
        return str(self.fact)


def needed(guards: Iterable[Guard], facts: Facts) -> tuple[tuple[Guard, ...], Facts]:
    """The guards that a run must check, in order, and the facts that hold afterwards.

    Guards that follow from `facts` or from earlier guards are left out. A guard that cannot hold is kept, so that the run fails with
    its message; the guards after it are kept, too.

    >>> from xla_emitters.algebra.facts import AT_LEAST, EQUAL
    >>> b, s = Size.symbol("b"), Size.symbol("s")
    >>> guards = [Guard(EQUAL, s, 2 * b), Guard(AT_LEAST, b, Size.constant(1)), Guard(AT_LEAST, s, Size.constant(2))]
    >>> kept, facts = needed(guards, Facts())
    >>> [str(guard) for guard in kept], facts.at_least(s, 2)
    (['s == 2*b', 'b >= 1'], True)
    """
    kept: list[Guard] = []
    conditions: set[tuple[Relation, Size, Size]] = set()
    for guard in guards:
        condition = (guard.relation, guard.left, guard.right)
        if condition in conditions or facts.holds(*condition):
            continue
        kept.append(guard)
        conditions.add(condition)
        with suppress(VerifyError):  # the guard contradicts the facts
            facts = facts.with_new(guard.fact)
    return tuple(kept), facts
