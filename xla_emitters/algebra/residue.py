"""What is known of an integer's remainder: `remainder` modulo `modulus`.

    2*b + 1   =   1 modulo 2

Over-approximates, as intervals do: every value of an expression has the remainder, but not every such number is a value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xla_emitters.algebra.interval import MAX, MIN, Interval


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

    minimum = maximum = union

    def tighten(self, interval: Interval) -> Interval:
        """`interval` with each end moved inward to the nearest number with this remainder.

        >>> Residue(0, 4).tighten(Interval(1, 11)), Residue(0, 4).tighten(Interval(1, 3)).is_feasible
        (Interval(lower=4, upper=8), False)
        """
        if self.modulus == 0:
            return interval.intersect(Interval.point(self.remainder))
        lower, upper = interval.lower, interval.upper
        if lower != MIN:
            lower = min(lower + (self.remainder - lower) % self.modulus, MAX)
        if upper != MAX:
            upper = max(upper - (upper - self.remainder) % self.modulus, MIN)
        return Interval(lower, upper)

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

    def __floordiv__(self, divisor: Residue) -> Residue:
        """The residue of a quotient, rounded toward minus infinity."""
        d = divisor.remainder
        if divisor.modulus or d <= 0 or self.modulus % d:
            return Residue()
        return _residue(self.remainder // d, self.modulus // d)

    def __mod__(self, divisor: Residue) -> Residue:
        """The residue of a remainder with the sign of the divisor."""
        d = divisor.remainder
        if divisor.modulus or d <= 0:
            return self + divisor * Residue()  # mod(x, y) = x - y * floordiv(x, y)
        if self.modulus % d == 0:
            return Residue(self.remainder % d, 0)
        return _residue(self.remainder, math.gcd(self.modulus, d))


def _residue(remainder: int, modulus: int) -> Residue:
    return Residue(remainder % modulus if modulus else remainder, modulus)
