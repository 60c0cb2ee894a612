"""Two kinds of facts about an integer of unknown value: its bounds, and its remainder by a modulus.

    b in [1, ∞)    ->  2*b + 1 in [3, ∞)          and   2*b + 1 = 1 modulo 2

Both over-approximate: every value of an expression is in its bounds and has its remainder, but not every such number
is a value. Ends are Python integers of any magnitude; None means that the end is unknown. A division by zero has no
value, so zero in a divisor's bounds adds nothing to the quotient's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# An end as a pair that compares in numeric order: (-1, 0) is minus infinity, (0, n) the number n, (1, 0) infinity.
_End = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """All integers from `lower` to `upper`, both included; None means no bound on that side.

    >>> str(Bounds(1) * 2 + Bounds(1, 1)), str(Bounds(-3, 2) ** 2), str(Bounds(0, 10) // Bounds(0, 3))
    ('[3, ∞)', '[0, 9]', '[0, 10]')
    """

    lower: int | None = None
    upper: int | None = None

    @staticmethod
    def point(value: int) -> Bounds:
        """The bounds of one value."""
        return Bounds(value, value)

    @property
    def is_empty(self) -> bool:
        """Whether the interval contains no integer."""
        return self.lower is not None and self.upper is not None and self.lower > self.upper

    @property
    def is_point(self) -> bool:
        """Whether it contains exactly one integer."""
        return self.lower is not None and self.lower == self.upper

    def contains(self, value: int) -> bool:
        """Whether `value` is in the interval."""
        return (self.lower is None or self.lower <= value) and (self.upper is None or value <= self.upper)

    def intersect(self, other: Bounds) -> Bounds:
        """The values in both; empty if there are none.

        >>> Bounds(0, 9).intersect(Bounds(5)), Bounds(0, 3).intersect(Bounds(7)).is_empty
        (Bounds(lower=5, upper=9), True)
        """
        return _from_ends(max(_low(self), _low(other)), min(_high(self), _high(other)))

    def union(self, other: Bounds) -> Bounds:
        """The smallest bounds that contain both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return _from_ends(min(_low(self), _low(other)), max(_high(self), _high(other)))

    def minimum(self, other: Bounds) -> Bounds:
        """The bounds of min(a, b)."""
        return _from_ends(min(_low(self), _low(other)), min(_high(self), _high(other)))

    def maximum(self, other: Bounds) -> Bounds:
        """The bounds of max(a, b)."""
        return _from_ends(max(_low(self), _low(other)), max(_high(self), _high(other)))

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(
            None if self.lower is None or other.lower is None else self.lower + other.lower,
            None if self.upper is None or other.upper is None else self.upper + other.upper,
        )

    def __mul__(self, other: Bounds | int) -> Bounds:
        factor = Bounds(other, other) if isinstance(other, int) else other
        ends = [_product(a, b) for a in (_low(self), _high(self)) for b in (_low(factor), _high(factor))]
        return _from_ends(min(ends), max(ends))

    def __pow__(self, power: int) -> Bounds:
        """The bounds of a**power, power >= 1."""
        ends = [_power(_low(self), power), _power(_high(self), power)]
        if power % 2 == 0 and self.contains(0):
            ends.append((0, 0))
        return _from_ends(min(ends), max(ends))

    def __floordiv__(self, other: Bounds) -> Bounds:
        """The bounds of a // b, rounded toward minus infinity."""
        found = _EMPTY
        for divisor in (other.intersect(_POSITIVE), other.intersect(_NEGATIVE)):
            if not divisor.is_empty and not self.is_empty:
                ends = [_quotient(a, b) for a in (_low(self), _high(self)) for b in (_low(divisor), _high(divisor))]
                found = found.union(_from_ends(min(ends), max(ends)))
        return found

    def __mod__(self, other: Bounds) -> Bounds:
        """The bounds of a mod b, which has the sign of b, as in Python."""
        if self.is_empty:
            return _EMPTY
        if other.is_point and other.lower and (quotient := self // other).is_point:
            return self + quotient * -other.lower
        found = _EMPTY
        positive, negative = other.intersect(_POSITIVE), other.intersect(_NEGATIVE)
        if not positive.is_empty:
            largest = None if positive.upper is None else positive.upper - 1
            remainder = Bounds(0, largest)
            found = found.union(remainder.minimum(self) if self.lower is not None and self.lower >= 0 else remainder)
        if not negative.is_empty:
            found = found.union(Bounds(None if negative.lower is None else negative.lower + 1, 0))
        return found

    def __str__(self) -> str:
        low = "(-∞" if self.lower is None else f"[{self.lower}"
        return f"{low}, {'∞)' if self.upper is None else f'{self.upper}]'}"


_EMPTY = Bounds(1, 0)
_POSITIVE = Bounds(1, None)
_NEGATIVE = Bounds(None, -1)


def _low(bounds: Bounds) -> _End:
    return (-1, 0) if bounds.lower is None else (0, bounds.lower)


def _high(bounds: Bounds) -> _End:
    return (1, 0) if bounds.upper is None else (0, bounds.upper)


def _from_ends(low: _End, high: _End) -> Bounds:
    if low[0] > 0 or high[0] < 0:
        return _EMPTY
    return Bounds(None if low[0] else low[1], None if high[0] else high[1])


def _sign(end: _End) -> int:
    value = end[0] or end[1]
    return (value > 0) - (value < 0)


def _product(a: _End, b: _End) -> _End:
    return (_sign(a) * _sign(b), 0) if a[0] or b[0] else (0, a[1] * b[1])


def _power(a: _End, power: int) -> _End:
    return (a[0] ** power, 0) if a[0] else (0, a[1] ** power)


def _quotient(a: _End, b: _End) -> _End:
    """One corner of a quotient; for an infinite divisor its limit, which is 0, or -1 from below."""
    if b[0]:
        return (0, 0 if _sign(a) * b[0] >= 0 else -1)
    return (a[0] * _sign(b), 0) if a[0] else (0, a[1] // b[1])


@dataclass(frozen=True, slots=True)
class Residue:
    """All integers with the remainder `remainder` modulo `modulus`; modulus 0 means the single number `remainder`.

    `remainder` is in [0, modulus) unless the modulus is 0; modulus 1 means that nothing is known.

    >>> even = Residue(0, 2)
    >>> even * even, even + Residue(1, 0)
    (Residue(remainder=0, modulus=4), Residue(remainder=1, modulus=2))
    """

    remainder: int = 0
    modulus: int = 1

    @staticmethod
    def point(value: int) -> Residue:
        """The residue of a single value."""
        return Residue(value, 0)

    def contains(self, value: int) -> bool:
        """Whether `value` has this remainder."""
        return value == self.remainder if self.modulus == 0 else value % self.modulus == self.remainder

    def intersect(self, other: Residue) -> Residue | None:
        """The numbers with both remainders; None if there are none.

        >>> Residue(2, 4).intersect(Residue(1, 3)), Residue(2, 4).intersect(Residue(1, 2))
        (Residue(remainder=10, modulus=12), None)
        """
        if self.modulus == 0 or other.modulus == 0:
            exact, rest = (self, other) if self.modulus == 0 else (other, self)
            return exact if rest.contains(exact.remainder) else None
        common = math.gcd(self.modulus, other.modulus)
        step, left = divmod(other.remainder - self.remainder, common)
        if left:
            return None
        other_part = other.modulus // common
        times = step * pow(self.modulus // common, -1, other_part) if other_part > 1 else 0
        return _residue(self.remainder + times * self.modulus, self.modulus * other_part)

    def union(self, other: Residue) -> Residue:
        """The residue of a number that has one of the two residues."""
        return _residue(self.remainder, math.gcd(self.modulus, other.modulus, self.remainder - other.remainder))

    def tighten(self, bounds: Bounds) -> Bounds:
        """`bounds` with each end moved inward to the nearest number with this remainder.

        >>> Residue(0, 4).tighten(Bounds(1, 11)), Residue(0, 4).tighten(Bounds(1, 3)).is_empty
        (Bounds(lower=4, upper=8), True)
        """
        if self.modulus == 0:
            return bounds.intersect(Bounds.point(self.remainder))
        return Bounds(
            None if bounds.lower is None else bounds.lower + (self.remainder - bounds.lower) % self.modulus,
            None if bounds.upper is None else bounds.upper - (bounds.upper - self.remainder) % self.modulus,
        )

    def __add__(self, other: Residue) -> Residue:
        return _residue(self.remainder + other.remainder, math.gcd(self.modulus, other.modulus))

    def __mul__(self, other: Residue | int) -> Residue:
        factor = Residue(other, 0) if isinstance(other, int) else other
        # (r + m*i) * (t + n*j) = r*t + (r*n)*j + (t*m)*i + (m*n)*(i*j)
        modulus = math.gcd(
            self.remainder * factor.modulus, factor.remainder * self.modulus, self.modulus * factor.modulus
        )
        return _residue(self.remainder * factor.remainder, modulus)

    def __pow__(self, power: int) -> Residue:
        """The residue of a**power, power >= 1."""
        result = self
        for _ in range(power - 1):
            result = result * self
        return result

    def __floordiv__(self, divisor: int) -> Residue:
        """The residue of the quotient by a positive number."""
        if self.modulus % divisor:
            return Residue()
        return _residue(self.remainder // divisor, self.modulus // divisor)

    def __mod__(self, divisor: int) -> Residue:
        """The residue of the remainder by a positive number."""
        if self.modulus % divisor == 0:
            return Residue(self.remainder % divisor, 0)
        return _residue(self.remainder, math.gcd(self.modulus, divisor))


def _residue(remainder: int, modulus: int) -> Residue:
    return Residue(remainder % modulus if modulus else remainder, modulus)
