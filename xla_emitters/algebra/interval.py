"""Closed intervals of 64-bit integers: the static bounds of an index.

    th_x in [0, 127]                              [0, 508]
    v    in [0, 3]      ->   th_x * 4 + v   in    [0, 508] + [0, 3]  =  [0, 511]

An interval over-approximates: it contains every value of the expression, and possibly others. The two extremes
of int64 are sticky and mean "no bound known": a lower end of `MIN` means that there is no lower bound, an upper end of
`MAX` that there is no upper bound, and arithmetic that overflows past an extreme returns that extreme.

Comparisons are three-valued: `True` and `False` hold for every pair of values, `None` means that it depends on the
values. `==` compares the intervals themselves, so that they can be keys.
Source: docs/reference/1 2.3 "Interval arithmetic"; XLA hlo/analysis/interval.h.
"""

from __future__ import annotations

from dataclasses import field

from xla_emitters.late_dataclass import dataclass

MIN = -(2**63)
MAX = 2**63 - 1


def _clamp(value: int) -> int:
    return MIN if value < MIN else MAX if value > MAX else value


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `lower` to `upper`, both included; empty ("infeasible") when lower > upper.

    >>> Interval(0, 127) * 4 + Interval(0, 3)
    Interval(lower=0, upper=511)
    >>> Interval(0, 7) < Interval(8, 9), Interval(0, 8) < Interval(8, 9)
    (True, None)

    Source: docs/reference/1 2.3 "Interval arithmetic".
    """

    lower: int
    upper: int

    @staticmethod
    def point(value: int) -> Interval:
        """The interval of one value."""
        return Interval(value, value)

    @property
    def is_feasible(self) -> bool:
        """Whether the interval contains an integer."""
        return self.lower <= self.upper

    @property
    def is_point(self) -> bool:
        """Whether the interval contains exactly one integer."""
        return self.lower == self.upper

    @property
    def is_saturated(self) -> bool:
        """Whether one of the ends means "no bound known"."""
        return self.lower in (MIN, MAX) or self.upper in (MIN, MAX)

    @property
    def trip_count(self) -> int:
        """The number of integers in the interval; 0 when infeasible.

        >>> Interval(4, 7).trip_count, Interval(4, 3).trip_count
        (4, 0)
        """
        return max(self.upper - self.lower + 1, 0)

    def contains(self, other: int | Interval) -> bool:
        """Whether every value of `other` is in this interval (always true for an infeasible `other`, which has none).

        >>> Interval(0, 9).contains(9), Interval(0, 9).contains(Interval(5, 10))
        (True, False)
        """
        if isinstance(other, Interval):
            return not other.is_feasible or (self.lower <= other.lower and other.upper <= self.upper)
        return self.lower <= other <= self.upper

    def intersect(self, other: Interval) -> Interval:
        """The values in both; an empty result is [l, l - 1].

        >>> Interval(0, 9).intersect(Interval(5, 20)), Interval(0, 3).intersect(Interval(7, 9))
        (Interval(lower=5, upper=9), Interval(lower=7, upper=6))
        """
        lower = max(self.lower, other.lower)
        upper = min(self.upper, other.upper)
        return Interval(lower, upper if lower <= upper else lower - 1)

    def union(self, other: Interval) -> Interval:
        """The smallest interval that contains both.

        >>> Interval(0, 1).union(Interval(7, 9))
        Interval(lower=0, upper=9)
        """
        if not self.is_feasible:
            return other
        if not other.is_feasible:
            return self
        return Interval(min(self.lower, other.lower), max(self.upper, other.upper))

    def minimum(self, other: Interval) -> Interval:
        """The range of min(a, b)."""
        return Interval(min(self.lower, other.lower), min(self.upper, other.upper))

    def maximum(self, other: Interval) -> Interval:
        """The range of max(a, b)."""
        return Interval(max(self.lower, other.lower), max(self.upper, other.upper))

    def __add__(self, other: Interval | int) -> Interval:
        other = _as_interval(other)
        lower = MIN if MIN in (self.lower, other.lower) else _clamp(self.lower + other.lower)
        upper = MAX if MAX in (self.upper, other.upper) else _clamp(self.upper + other.upper)
        return Interval(lower, upper)

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return Interval(_negated(self.upper), _negated(self.lower))

    def __sub__(self, other: Interval | int) -> Interval:
        return self + -_as_interval(other)

    def __rsub__(self, other: int) -> Interval:
        return _as_interval(other) + -self

    def __mul__(self, other: Interval | int) -> Interval:
        if isinstance(other, int):
            return self._times(other)
        return self._times(other.lower).union(self._times(other.upper))

    __rmul__ = __mul__

    def _times(self, factor: int) -> Interval:
        if factor == 0:
            return Interval(0, 0)
        low, high = _product(self.lower, factor), _product(self.upper, factor)
        return Interval(low, high) if factor > 0 else Interval(high, low)

    def __floordiv__(self, other: Interval | int) -> Interval:
        """The range of a // b, rounding toward minus infinity; all integers if the divisor can be 0."""
        other = _as_interval(other)
        if not self.is_feasible or not other.is_feasible:
            return Interval(0, -1)
        if other.contains(0):
            return Interval(MIN, MAX)
        # The quotient is monotone in either operand while the divisor keeps its sign.
        ends = [_quotient(a, b) for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        return Interval(min(ends), max(ends))

    def __mod__(self, other: Interval | int) -> Interval:
        """The range of a mod b; the result has the divisor's sign, as in Python."""
        other = _as_interval(other)
        if not self.is_feasible or not other.is_feasible:
            return Interval(0, -1)
        if other.is_point and other.lower > 0 and not self.is_saturated:
            modulus = other.lower
            wraps = self.lower // modulus
            if self.upper // modulus == wraps:
                return Interval(self.lower - wraps * modulus, self.upper - wraps * modulus)
        elif other.lower > 0 and self.lower >= 0 and self.upper < other.lower:
            return self
        lower = 0 if other.lower >= 0 else MIN if other.lower == MIN else other.lower + 1
        upper = 0 if other.upper <= 0 else MAX if other.upper == MAX else other.upper - 1
        return Interval(lower, upper)

    def __gt__(self, other: Interval | int) -> bool | None:
        other = _as_interval(other)
        if not self.is_feasible or not other.is_feasible:
            return None
        if self.lower > other.upper:
            return True
        return False if self.upper <= other.lower else None

    def __lt__(self, other: Interval | int) -> bool | None:
        return _as_interval(other) > self

    def __ge__(self, other: Interval | int) -> bool | None:
        less = self < other
        return None if less is None else not less

    def __le__(self, other: Interval | int) -> bool | None:
        greater = self > other
        return None if greater is None else not greater

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


@dataclass(frozen=True, slots=True)
class Variable:
    """A dimension or symbol of a map: its range of values, and its name in text.

    name   "" means the default, d0 d1 ... for dims, s0 ... for range variables, rt0 ... for runtime variables.
           It is for printing only: variables that differ only in name are equal.

    >>> Variable(Interval(0, 127), "th_x") == Variable(Interval(0, 127))
    True
    """

    bounds: Interval
    name: str = field(default="", compare=False)


def _as_interval(value: Interval | int) -> Interval:
    return Interval(value, value) if isinstance(value, int) else value


def _negated(value: int) -> int:
    return MAX if value == MIN else MIN if value == MAX else -value


def _product(end: int, factor: int) -> int:
    """One end times a nonzero constant; an end that means "no bound" is unchanged up to its sign."""
    if end in (MIN, MAX):
        return end if factor > 0 else _negated(end)
    if factor in (MIN, MAX):
        return 0 if end == 0 else factor if end > 0 else _negated(factor)
    return _clamp(end * factor)


def _quotient(end: int, divisor: int) -> int:
    """One end divided by a nonzero constant; an end that means "no bound" is unchanged up to its sign."""
    if end in (MIN, MAX):
        return end if divisor > 0 else _negated(end)
    if divisor in (MIN, MAX):
        return 0 if end == 0 or (end > 0) == (divisor > 0) else -1
    return end // divisor
