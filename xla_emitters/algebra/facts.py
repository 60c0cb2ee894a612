"""Facts about sizes, each with its source, and their consequences.

    facts = Facts().with_at_least(s, 1, "jax.export").with_equal(t, 2 * s, "argument 1 (p1), axis 0")
    facts.equal(t * b, b * s * 2)     ->   True
    facts.at_least(t, 2)              ->   True
    facts.simplify(b * s // s)        ->   b
    facts.with_equal(t, 7, "...")     ->   VerifyError: t == 7 contradicts t == 2*s

Nothing is assumed: a symbol may be negative until a fact excludes it (jax.export's symbols are at least one:
`Facts.of_symbols(names, 1, "jax.export")`).

Answers are True or False if they hold for every assignment that the facts allow and for which both sides have a value,
otherwise None. They are never wrong; None may also mean that the proof was not found (`knowledge.py`).

Facts are immutable: a branch that a pass specialises (`if s >= 512`) has its own facts, made from the outer ones in time
and memory proportional to the number of facts, which is tens per program. Data proportional to the number of ops is in axes.py.
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.knowledge import Contradiction, Knowledge
from xla_emitters.algebra.size import Size, TooLarge, as_size
from xla_emitters.errors import Place, VerifyError

Source = str | Place
"""The source of a fact: words such as "argument 0 (p0), axis 1", or a place in the input."""


class Relation(Enum):
    """The relation of the two sides of a fact or a guard."""

    EQUAL = "=="
    AT_LEAST = ">="
    AT_MOST = "<="


EQUAL, AT_LEAST, AT_MOST = Relation


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement about sizes, and its source.

    >>> str(Fact(EQUAL, Size.symbol("s") % 8, Size.constant(0), "the caller"))
    'mod(s, 8) == 0'
    """

    relation: Relation
    left: Size
    right: Size
    source: Source

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the statement holds for these values of the symbols. raises DataError as `Size.evaluate`"""
        left, right = self.left.evaluate(values), self.right.evaluate(values)
        if self.relation is EQUAL:
            return left == right
        if self.relation is AT_LEAST:
            return left >= right
        return left <= right

    def add_to(self, known: Knowledge) -> None:
        """Adds the statement. raises Contradiction, TooLarge"""
        if self.relation is EQUAL:
            known.add_equation(self.left - self.right)
        else:
            bounds = Interval(0) if self.relation is AT_LEAST else Interval(upper=0)
            known.add_limit(known.simplify(self.left - self.right), bounds)

    def __str__(self) -> str:
        return f"{self.left} {self.relation.value} {self.right}"


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that do not contradict each other. `Facts()` has none; the methods `with_...` return a value with one more.

    stated   the facts in the order in which they were added, without those that follow from earlier ones

    The methods raise VerifyError if the new fact contradicts others: it names a set of facts that cannot all hold, each with its source.
    Not every contradiction is found; from facts that allow no assignment, every answer is correct.
    """

    stated: tuple[Fact, ...] = ()
    _known: Knowledge = field(default_factory=Knowledge, repr=False, compare=False)

    @staticmethod
    def of_symbols(names: Iterable[str], least: int, source: Source) -> Facts:
        """Facts that every named symbol is at least `least`.

        >>> facts = Facts.of_symbols(("b", "s"), 1, "jax.export: dimension variables are at least 1")
        >>> facts.at_least(Size.symbol("b") * Size.symbol("s"), 1)
        True
        """
        facts = Facts()
        for name in names:
            facts = facts.with_at_least(Size.symbol(name), least, source)
        return facts

    # -- adding

    def with_equal(self, a: Size | int, b: Size | int, source: Source) -> Facts:
        """These facts and a == b.

        >>> b, s = Size.symbol("b"), Size.symbol("s")
        >>> facts = Facts().with_equal(b, 3, "argument 0 (p0), axis 0")
        >>> print(facts.with_equal(b, 4, "argument 1 (p1), axis 0"))
        Traceback (most recent call last):
        ...
        xla_emitters.errors.VerifyError: error: [shapes] b == 4 contradicts b == 3
        note: argument 0 (p0), axis 0: b == 3
        note: argument 1 (p1), axis 0: b == 4
        """
        return self.with_fact(Fact(EQUAL, as_size(a), as_size(b), source))

    def with_at_least(self, a: Size | int, b: Size | int, source: Source) -> Facts:
        """These facts and a >= b."""
        return self.with_fact(Fact(AT_LEAST, as_size(a), as_size(b), source))

    def with_at_most(self, a: Size | int, b: Size | int, source: Source) -> Facts:
        """These facts and a <= b."""
        return self.with_fact(Fact(AT_MOST, as_size(a), as_size(b), source))

    def with_fact(self, fact: Fact) -> Facts:
        """These facts and `fact`; unchanged if it follows from them, or is too large to compute with."""
        if self.holds(fact.relation, fact.left, fact.right):
            return self
        known = self._known.copy()
        try:
            fact.add_to(known)
        except Contradiction:
            raise self._conflict(fact) from None
        except TooLarge:
            return self
        known.finish()
        return Facts((*self.stated, fact), known)

    # -- queries

    def holds(self, relation: Relation, a: Size | int, b: Size | int) -> bool | None:
        """Whether the relation holds between a and b; None if unknown."""
        if relation is EQUAL:
            return self.equal(a, b)
        return self.at_least(a, b) if relation is AT_LEAST else self.at_least(b, a)

    def equal(self, a: Size | int, b: Size | int) -> bool | None:
        """Whether a == b; None if unknown.

        >>> s = Size.symbol("s")
        >>> Facts().equal(s % 2 + s // 2 * 2, s), Facts().equal(2 * s, 7), Facts().equal(s, 7)
        (True, False, None)
        """
        a, b = as_size(a), as_size(b)
        if a == b:
            return True
        try:
            return self._known.is_zero(self._known.simplify(a - b))
        except TooLarge:
            return None

    def at_least(self, a: Size | int, b: Size | int) -> bool | None:
        """Whether a >= b; None if unknown. False means a < b.

        >>> s = Size.symbol("s")
        >>> Facts().at_least(s - s // 2 * 2, 0), Facts().at_least(s, 0)
        (True, None)
        """
        bounds = self.bounds(as_size(a) - b)
        return True if bounds.lower >= 0 else False if bounds.upper < 0 else None

    def bounds(self, a: Size | int) -> Interval:
        """The bounds of `a`.

        >>> b, s = Size.symbol("b"), Size.symbol("s")
        >>> Facts.of_symbols("bs", 1, "the caller").bounds(b * s - s).to_text()
        '[0, ∞)'
        """
        try:
            return self._known.bounds(self._known.simplify(as_size(a)))
        except TooLarge:
            return Interval()

    def simplify(self, a: Size | int) -> Size:
        """A simpler size with the same value whenever the facts hold and `a` has a value; of equal symbols only one remains.

        >>> b, s = Size.symbol("b"), Size.symbol("s")
        >>> facts = Facts.of_symbols("bs", 1, "the caller").with_equal(s % 8, 0, "the caller").with_equal(b, s, "the caller")
        >>> print(facts.simplify((b * s + b) // s), facts.simplify(s % 4), facts.simplify(Size.symbol("t") % 4))
        b + 1 0 mod(t, 4)
        """
        size = as_size(a)
        if size.value is not None:
            return size
        try:
            return self._known.simplify(size)
        except TooLarge:
            return size

    def _conflict(self, fact: Fact) -> VerifyError:
        """The error: names a few facts that cannot all hold, including `fact`.

        Bisection: each step finds the shortest prefix of the stated facts that contradicts the facts found so far, and adds its last fact.
        """
        found = [fact]
        rest = self.stated
        while not _is_contradictory(found) and _is_contradictory([*rest, *found]):
            low, high = 1, len(rest)
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if _is_contradictory([*rest[:middle], *found]) else (middle + 1, high)
            found.insert(0, rest[low - 1])
            rest = rest[: low - 1]
        found.sort(key=[*self.stated, fact].index)
        others = " and ".join(str(other) for other in found if other is not fact)
        places = [(f.source, f"{f}") if isinstance(f.source, Place) else (None, f"{f.source}: {f}") for f in found]
        return VerifyError(
            f"{fact} contradicts {others}" if others else f"{fact} cannot be",
            stage="shapes",
            place=fact.source if isinstance(fact.source, Place) else None,
            notes=tuple(places),
        )


def _is_contradictory(facts: Iterable[Fact]) -> bool:
    known = Knowledge()
    try:
        for fact in facts:
            fact.add_to(known)
    except Contradiction:
        return True
    except TooLarge:
        return False
    return False
