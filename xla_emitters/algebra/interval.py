"""Closed intervals of integers: the bounds of an index or a size.

    th_x in [0, 127]                              [0, 508]
    v    in [0, 3]      ->   th_x * 4 + v   in    [0, 508] + [0, 3]  =  [0, 511]
    b    in [1, MAX]    ->   2 * b + 1      in    [3, MAX]

An interval over-approximates: it contains every value of the expression, and possibly others. Ends are 64-bit integers. A lower end
of `MIN` means that no lower bound is known, an upper end of `MAX` no upper bound, and arithmetic that overflows past an extreme
returns that extreme; [MAX, MAX] is all integers from MAX on. A division by zero has no value, so zero in a divisor adds nothing to
the quotient's range.

Source: docs/reference/1 2.3 "Interval arithmetic"; XLA hlo/analysis/interval.h.
"""

from __future__ import annotations

from dataclasses import field

from xla_emitters.support.late_dataclass import dataclass

MIN = -(2**63)
MAX = 2**63 - 1


def _clamp(value: int) -> int:
    return MIN if value < MIN else MAX if value > MAX else value


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `lower` to `upper`, both included; empty ("infeasible") when lower > upper. `Interval()` is all integers.

    >>> Interval(0, 127) * 4 + Interval(0, 3)
    Interval(lower=0, upper=511)

    Source: docs/reference/1 2.3 "Interval arithmetic".
    """

    lower: int = MIN
    upper: int = MAX

    @staticmethod
    def point(value: int) -> Interval:
        """The interval of one value, of any magnitude."""
        return Interval(value := _clamp(value), value)

    @property
    def is_feasible(self) -> bool:
        """Whether the interval contains an integer."""
        return self.lower <= self.upper

    @property
    def is_point(self) -> bool:
        """Whether the interval contains exactly one integer."""
        return MIN < self.lower == self.upper < MAX

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
        return (self.lower <= other or self.lower == MIN) and (other <= self.upper or self.upper == MAX)

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
        return self._times(-1)

    def __sub__(self, other: Interval | int) -> Interval:
        return self + -_as_interval(other)

    def __rsub__(self, other: int) -> Interval:
        return _as_interval(other) + -self

    def __mul__(self, other: Interval | int) -> Interval:
        if isinstance(other, int):
            return self._times(other)
        low = self._times_infinity(-1) if other.lower == MIN else self._times(other.lower)
        return low.union(self._times_infinity(1) if other.upper == MAX else self._times(other.upper))

    __rmul__ = __mul__

    def _times(self, factor: int) -> Interval:
        if factor == 0:
            return Interval(0, 0)
        lower, upper = self.lower, self.upper
        if factor > 0:
            return Interval(
                lower if lower == MIN else _clamp(lower * factor), upper if upper == MAX else _clamp(upper * factor)
            )
        return Interval(
            MIN if upper == MAX else _clamp(upper * factor), MAX if lower == MIN else _clamp(lower * factor)
        )

    def _times_infinity(self, sign: int) -> Interval:
        ends = [0 if end == 0 else MAX if end * sign > 0 else MIN for end in (self.lower, self.upper)]
        return Interval(min(ends), max(ends))

    def __pow__(self, power: int) -> Interval:
        """The range of a**power, power >= 1.

        >>> Interval(-3, 2) ** 2, Interval(-3, 2) ** 3
        (Interval(lower=0, upper=9), Interval(lower=-27, upper=8))
        """
        low, high = _clamp(self.lower**power), _clamp(self.upper**power)
        if power % 2 or self.lower >= 0:
            return Interval(low, high)
        return Interval(high, low) if self.upper <= 0 else Interval(0, max(low, high))

    def __floordiv__(self, other: Interval | int) -> Interval:
        """The range of a // b, rounding toward minus infinity; empty if the divisor is 0.

        >>> Interval(0, 10) // Interval(0, 3)
        Interval(lower=0, upper=10)
        """
        other = _as_interval(other)
        found = _EMPTY
        if self.is_feasible:
            # The quotient is monotone in either operand while the divisor keeps its sign.
            for low, high in ((max(other.lower, 1), other.upper), (other.lower, min(other.upper, -1))):
                if low <= high:
                    ends = [_quotient(self.lower, divisor, MIN) for divisor in (low, high)]
                    ends += [_quotient(self.upper, divisor, MAX) for divisor in (low, high)]
                    found = found.union(Interval(min(ends), max(ends)))
        return found

    def __mod__(self, other: Interval | int) -> Interval:
        """The range of a mod b; the result has the divisor's sign, as in Python."""
        other = _as_interval(other)
        if not self.is_feasible or not other.is_feasible:
            return _EMPTY
        if other.is_point and other.lower and (quotient := self // other).is_point:
            return self - quotient.lower * other.lower
        found = _EMPTY
        if other.upper > 0:
            if self.lower >= 0 and self.upper < other.lower:
                return self
            largest = MAX if other.upper == MAX else other.upper - 1
            found = Interval(0, min(largest, self.upper) if self.lower >= 0 else largest)
        return found if other.lower >= 0 else found.union(Interval(MIN if other.lower == MIN else other.lower + 1, 0))

    def divided_by(self, factor: int) -> Interval:
        """The range of x if x * factor, for a number that is not 0, is in this interval.

        >>> Interval(-7, 9).divided_by(4), Interval(-7, 9).divided_by(-4)
        (Interval(lower=-1, upper=2), Interval(lower=-2, upper=1))
        """
        if factor < 0:
            return (-self).divided_by(-factor)
        lower, upper = self.lower, self.upper
        return Interval(lower if lower == MIN else -(-lower // factor), upper if upper == MAX else upper // factor)

    def of_dividend(self, divisor: int) -> Interval:
        """The range of x if x // divisor, for a number that is not 0, is in this interval.

        >>> Interval(1, 2).of_dividend(4), Interval(1, 2).of_dividend(-4)
        (Interval(lower=4, upper=11), Interval(lower=-11, upper=-4))
        """
        if divisor < 0:
            return -self.of_dividend(-divisor)
        return self * divisor + Interval(0, divisor - 1)

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"

    def to_text(self) -> str:
        """As `str`, but with an infinity where no bound is known.

        >>> Interval(1).to_text()
        '[1, ∞)'
        """
        low = "(-∞" if self.lower == MIN else f"[{self.lower}"
        return f"{low}, {'∞)' if self.upper == MAX else f'{self.upper}]'}"


_EMPTY = Interval(0, -1)


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


def _quotient(end: int, divisor: int, no_bound: int) -> int:
    """One end divided by a nonzero constant; the end `no_bound` is an infinity."""
    if end == no_bound:
        return MAX if (end > 0) == (divisor > 0) else MIN
    if divisor in (MIN, MAX):
        return 0 if end == 0 or (end > 0) == (divisor > 0) else -1
    return _clamp(end // divisor)
