"""Simplification with the ranges of the variables: the normal form of a map and of its domain.

    (bl_x floordiv 4096) * 2097152 + ((bl_x floordiv 8) mod 512) * 4096 + (bl_x mod 8) * 512 + th_x * 4 + v
        th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]               ->    th_x * 4 + bl_x * 512 + v

An expression is simplified by two steps in turn until neither changes it: `canonicalize` (expression.py), which uses no
ranges, and one pass of the rules here, from the leaves up:

    sums      R1  (x mod c) * p + (x floordiv c) * p * c              ->  x * p
                  (x mod c) * p + ((x floordiv c) mod n) * p * c    ->  (x mod (c * n)) * p
              R2  (x floordiv c) * -b * c                             ->  x * -b + (x mod c) * b       (in a longer sum)
    mod       M1  x mod m, all of x between the same multiples        ->  x - that multiple of m
              M2  (y * c) mod m, c divides m                          ->  (y mod (m / c)) * c
              M3  multiples of m are dropped from the sum under the mod
              M4  (a * g + b) mod m, g divides m, 0 <= b < g          ->  (a * g) mod m + b
    floordiv  D1  (x mod m) floordiv d, d divides m                   ->  (x floordiv d) mod (m / d)
              D2  (x floordiv b) floordiv d                           ->  x floordiv (b * d)
              D3  multiples of d move out of the sum; (a * g + b) floordiv d, 0 <= b < gcd(g, d)  ->  (a * g) floordiv d;
                  (x floordiv c + y) floordiv d                       ->  (x + y * c) floordiv (c * d)
    all       an expression whose range is one value becomes that constant; min and max of disjoint ranges are decided

A domain is simplified by moving each constraint's outermost operation to the other side until a single variable is left,
which gives that variable's bounds (d0 * 7 + 3 in [10, 52] is d0 in [1, 7]), by dropping constraints that the bounds
imply, and by merging congruences. Constraints are simplified with the bounds only, not with other constraints: of two
that imply each other, both would be dropped. Results are simplified with both. The value of a result at a point of the
domain and the set of points never change; outside the domain the value may change.
Source: docs/reference/1 2.1, 2.4, 2.6; XLA hlo/analysis/indexing_map.cc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xla_emitters.algebra.expression import (
    ADD,
    CONSTANT,
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    MUL,
    VARIABLE,
    Expr,
    add_scaled,
    apply,
    divided_by_constants,
    is_linear,
    linear_terms,
    make,
    make_sum,
    operands_first,
    postorder,
)
from xla_emitters.algebra.interval import Interval

# Usually two or three rounds are enough, plus one per digit if a number is rebuilt from its digits. Each round keeps
# the value, so the result is right even if the limit stops two rules that undo each other.
_MOST_ROUNDS = 256


class Domain(NamedTuple):
    """The points of a map: a box, one interval per variable, cut by constraints."""

    bounds: tuple[Interval, ...]
    constraints: tuple[tuple[Expr, Interval], ...]


class Ranges:
    """The ranges of expressions, given their variables' bounds and optionally constraints; caches its results.

    >>> x = Expr.variable(0)
    >>> Ranges([Interval(0, 99)], {}).of(x // 8 * 2 + 1)
    Interval(lower=1, upper=25)

    Source: docs/reference/1 2.4 "Range evaluation of an expression over a map's domain".
    """

    def __init__(self, bounds: Sequence[Interval], constraints: Mapping[Expr, Interval]) -> None:
        self._bounds = bounds
        self._constraints = constraints
        self._known: dict[Expr, Interval] = {}

    def of(self, e: Expr) -> Interval:
        """An interval that contains every value of `e` on the domain."""
        ranges = self._known
        if (known := ranges.get(e)) is not None:
            return known
        if e.kind >= VARIABLE or (e.lhs in ranges and e.rhs in ranges):
            found = ranges[e] = self._of_node(e)
            return found
        for node in postorder((e,), self._known.__contains__):
            self._known[node] = self._of_node(node)
        return self._known[e]

    def point(self, e: Expr) -> int | None:
        """The value of `e` if its range is one value, else None."""
        if e.kind is CONSTANT:
            return e.value
        interval = self.of(e)
        return interval.lower if interval.is_point else None

    def _of_node(self, e: Expr) -> Interval:
        if e.kind is CONSTANT:
            return Interval(e.value, e.value)
        if e.kind is VARIABLE:
            return self._bounds[e.value]
        interval = apply(e.kind, self._known[e.lhs], self._known[e.rhs])
        constraint = self._constraints.get(e)
        return interval if constraint is None else interval.intersect(constraint)


class Simplifier:
    """Simplifies expressions over a domain; caches its results.

    replace_points   whether an expression whose range is one value becomes that constant

    >>> x, y = Expr.variable(0), Expr.variable(1)
    >>> simplifier = Simplifier(Ranges([Interval(0, 99), Interval(0, 11)], {}), replace_points=True)
    >>> str(simplifier.simplify((x * 12 + y) % 36)), str(simplifier.simplify((x * 12 + y) // 12))
    ('(v0 mod 3) * 12 + v1', 'v0')

    Source: docs/reference/1 2.6 "Simplify (domain-aware)".
    """

    def __init__(self, ranges: Ranges, replace_points: bool) -> None:
        self.ranges = ranges
        self._replace_points = replace_points
        self._simplified: dict[Expr, Expr] = {}
        self._passed: dict[Expr, Expr] = {}

    def simplify(self, e: Expr) -> Expr:
        """The normal form of `e` on the domain."""
        known = self._simplified.get(e)
        if known is not None:
            return known
        current = e.canonicalize()
        for _ in range(_MOST_ROUNDS):
            after = self._pass(current).canonicalize()
            if after is current:
                break
            current = after
        self._simplified[e] = self._simplified[current] = current
        return current

    def _pass(self, e: Expr) -> Expr:
        """One pass of the rules over every node of a canonical expression."""
        for node in operands_first(e, self._passed.__contains__):
            self._passed[node] = self._rewrite(node)
        return self._passed[e]

    def _rewrite(self, e: Expr) -> Expr:
        """Applies the rules to one node, whose operands (of a sum: its bases) are already rewritten."""
        if e.kind is CONSTANT:
            return e
        if self._replace_points and (value := self.ranges.point(e)) is not None:
            return Expr.constant(value)
        if e.kind is VARIABLE:
            return e
        if is_linear(e):
            return self._rewrite_sum(e)
        lhs, rhs = self._passed[e.lhs], self._passed[e.rhs]
        if e.kind in (MIN, MAX):
            return self._rewrite_extreme(e, lhs, rhs)
        operand = self.ranges.point(e.rhs)
        if e.kind is MUL and operand is not None:
            return lhs * operand
        if e.kind is MOD and operand is not None and operand > 0:
            return self._rewrite_mod(lhs, operand)
        if e.kind is FLOORDIV and operand is not None and operand > 1:
            return self._rewrite_floordiv(lhs, operand)
        return make(e.kind, lhs, rhs)

    def _rewrite_extreme(self, e: Expr, lhs: Expr, rhs: Expr) -> Expr:
        a, b = self.ranges.of(lhs), self.ranges.of(rhs)
        if lhs is rhs:
            return lhs
        if not a.is_saturated and not b.is_saturated:
            if a.upper <= b.lower:
                return lhs if e.kind is MIN else rhs
            if b.upper <= a.lower:
                return rhs if e.kind is MIN else lhs
        return make(e.kind, lhs, rhs)

    def _rewrite_sum(self, e: Expr) -> Expr:
        raw, constant = linear_terms(e)
        bases: dict[Expr, int] = {}
        for base, coefficient in raw.items():
            constant += add_scaled(bases, self._passed[base], coefficient)
        if e.kind is ADD:
            constant += self._join_remainders(bases)
            constant += self._turn_negative_quotients(bases)
        return make_sum(bases, constant)

    def _join_remainders(self, bases: dict[Expr, int]) -> int:
        """Applies R1 to the bases in place; returns the constant to add."""
        constant = 0
        for remainder in divided_by_constants(bases, MOD):
            p, c = bases.get(remainder, 0), remainder.rhs.value
            if not p or p * c not in bases.values():
                continue
            quotient = self.simplify(make(FLOORDIV, remainder.lhs, remainder.rhs))
            if bases.get(quotient) == p * c:
                del bases[remainder], bases[quotient]
                constant += add_scaled(bases, remainder.lhs, p)
                continue
            for digit in divided_by_constants(bases, MOD):
                # Of `x mod 1` the quotient is x: the digit would be the remainder itself.
                if digit is not remainder and digit.lhs is quotient and bases.get(digit) == p * c:
                    del bases[remainder], bases[digit]
                    constant += add_scaled(bases, make(MOD, remainder.lhs, Expr.constant(c * digit.rhs.value)), p)
                    break
        return constant

    def _turn_negative_quotients(self, bases: dict[Expr, int]) -> int:
        """Applies R2 to the bases in place; returns the constant to add."""
        constant = 0
        for quotient in divided_by_constants(bases, FLOORDIV):
            q, c = bases.get(quotient, 0), quotient.rhs.value
            if q < 0 and q % c == 0:
                del bases[quotient]
                constant += add_scaled(bases, quotient.lhs, q // c)
                constant += add_scaled(bases, make(MOD, quotient.lhs, quotient.rhs), -(q // c))
        return constant

    def _rewrite_mod(self, x: Expr, m: int) -> Expr:
        interval = self.ranges.of(x)
        if not interval.is_saturated and interval.lower // m == interval.upper // m:  # M1
            return x + -m * (interval.lower // m)
        modulus = Expr.constant(m)
        if x.kind is MUL and x.rhs.kind is CONSTANT and x.rhs.value > 0 and m % x.rhs.value == 0:  # M2
            return make(MOD, x.lhs, Expr.constant(m // x.rhs.value)) * x.rhs
        if x.kind is not ADD:
            return make(MOD, x, modulus)
        bases, constant = linear_terms(x)
        scaled = {base: c for base, c in bases.items() if c != 1 and c % m}  # M3
        single = {base: 1 for base, c in bases.items() if c == 1}
        g = math.gcd(*scaled.values())
        rest = make_sum(single, constant % m)
        if g > 1 and m % g == 0 and Interval(0, g - 1).contains(self.ranges.of(rest)):  # M4
            return (
                make(MOD, make_sum({base: c // g for base, c in scaled.items()}, 0), Expr.constant(m // g)) * g + rest
            )
        return make(MOD, make_sum({**scaled, **single}, constant % m), modulus)

    def _rewrite_floordiv(self, x: Expr, d: int) -> Expr:
        if x.kind is MOD and x.rhs.kind is CONSTANT and x.rhs.value > 0 and x.rhs.value % d == 0:  # D1
            return make(MOD, x.lhs // d, Expr.constant(x.rhs.value // d))
        if x.kind is FLOORDIV and x.rhs.kind is CONSTANT:  # D2
            return make(FLOORDIV, x.lhs, Expr.constant(x.rhs.value * d))
        if x.kind is not ADD:
            return make(FLOORDIV, x, Expr.constant(d))
        bases, constant = linear_terms(x)  # D3
        whole = make_sum({base: c // d for base, c in bases.items() if c % d == 0}, constant // d)
        constant %= d
        bases = {base: c for base, c in bases.items() if c % d}
        bases, constant, d = self._without_small_part(bases, constant, d)
        quotients = [base for base in divided_by_constants(bases, FLOORDIV) if bases[base] == 1]
        if len(quotients) == 1:
            [inner] = quotients
            c = inner.rhs.value
            others = {base: coefficient * c for base, coefficient in bases.items() if base is not inner}
            constant = constant * c + add_scaled(others, inner.lhs, 1)
            bases, d = others, d * c
        return make_sum(bases, constant) // d + whole

    def _without_small_part(self, bases: dict[Expr, int], constant: int, d: int) -> tuple[dict[Expr, int], int, int]:
        """Divides a common factor of g and d out of (a * g + b) floordiv d, if b is below that factor or a multiple of it."""
        scaled = {base: c for base, c in bases.items() if c != 1}
        small = make_sum({base: 1 for base, c in bases.items() if c == 1}, constant)
        h = math.gcd(d, *scaled.values())
        if h != 1 and Interval(0, h - 1).contains(self.ranges.of(small)):
            return {base: c // h for base, c in scaled.items()}, 0, d // h
        value = self.ranges.point(small)
        if value and (h := math.gcd(value, h)) != 1:
            return {base: c // h for base, c in scaled.items()}, value // h, d // h
        return bases, constant, d


# ---- Domains --------------------------------------------------------------------------------------------------------


def settle_constraints(domain: Domain) -> Domain | None:
    """The domain with one constraint per expression and none on a single variable or constant; None if it is empty.

    >>> x = Expr.variable(0)
    >>> settle_constraints(Domain((Interval(0, 9),), ((x, Interval(5, 20)), (Expr.constant(3), Interval(0, 3)))))
    Domain(bounds=(Interval(lower=5, upper=9),), constraints=())

    Source: docs/reference/1 2.1 "AddConstraint".
    """
    if not domain.constraints:
        return domain if all(interval.is_feasible for interval in domain.bounds) else None
    bounds = list(domain.bounds)
    merged: dict[Expr, Interval] = {}
    for e, interval in domain.constraints:
        if e.kind is VARIABLE:
            bounds[e.value] = bounds[e.value].intersect(interval)
        elif e.kind is CONSTANT:
            if not interval.contains(e.value):
                return None
        else:
            merged[e] = interval.intersect(merged.get(e, interval))
            if not merged[e].is_feasible:
                return None
    return Domain(tuple(bounds), tuple(merged.items())) if all(interval.is_feasible for interval in bounds) else None


def simplify_domain(domain: Domain, replace_points: bool = True) -> Domain | None:
    """A simpler domain with the same points; None if there are none.

    Source: docs/reference/1 2.6 "Map simplification order", steps 1 and 2, repeated until nothing changes.
    """
    while domain.constraints:
        simpler = _simplify_constraints(domain, replace_points)
        if simpler is None:
            return None
        merged = settle_constraints(merge_mod_constraints(simpler))
        if merged is None or merged == domain:
            return merged
        domain = merged
    return domain


def _simplify_constraints(domain: Domain, replace_points: bool) -> Domain | None:
    """Simplifies each constraint with the bounds only. Drops it if implied, and turns it into bounds of a variable if possible."""
    simplifier = Simplifier(Ranges(domain.bounds, {}), replace_points)
    kept: list[tuple[Expr, Interval]] = []
    for e, interval in domain.constraints:
        simpler = simplifier.simplify(e)
        reached = simplifier.ranges.of(simpler)
        if not interval.intersect(reached).is_feasible:
            return None
        if not interval.contains(reached):
            kept.append(_peeled(simpler, interval, simplifier.ranges))
    return settle_constraints(Domain(domain.bounds, tuple(kept)))


def _peeled(e: Expr, interval: Interval, ranges: Ranges) -> tuple[Expr, Interval]:
    """`e in interval` with the outermost operations undone on both sides, as far as this keeps the set of points."""
    while True:
        inner, inside = _peel_once(e, interval, ranges)
        if inner is e or (inside.is_saturated and not interval.is_saturated):
            return e, interval
        e, interval = inner, inside


def _peel_once(e: Expr, interval: Interval, ranges: Ranges) -> tuple[Expr, Interval]:
    if e.kind is ADD:
        return _peel_sum(e, interval, ranges)
    if e.kind is MUL and e.rhs.kind is CONSTANT:
        return e.lhs, interval.divided_by(e.rhs.value)
    if e.kind is FLOORDIV and e.rhs.kind is CONSTANT:
        return e.lhs, interval.of_dividend(e.rhs.value)
    return e, interval


def _peel_sum(e: Expr, interval: Interval, ranges: Ranges) -> tuple[Expr, Interval]:
    bases, constant = linear_terms(e)
    fixed = {base: value * bases[base] for base in bases if (value := ranges.point(base)) is not None}
    if constant or fixed:
        rest = {base: c for base, c in bases.items() if base not in fixed}
        return make_sum(rest, 0), interval - (constant + sum(fixed.values()))
    if interval.lower > 0 or interval.is_saturated or (interval.lower < 0 and ranges.of(e).lower < 0):
        return e, interval
    # 0 <= a * g + b <= u, where the 0 may be the sum's own lower bound. If every b gives the same bounds for a, drop b, then divide by g.
    scaled = {base: c for base, c in bases.items() if c != 1}
    g = math.gcd(*scaled.values())
    if g < 2:
        return e, interval
    divided = make_sum({base: c // g for base, c in scaled.items()}, 0)
    if len(scaled) == len(bases):
        return divided, interval.divided_by(g)
    small = ranges.of(make_sum({base: 1 for base, c in bases.items() if c == 1}, 0))
    if small.is_saturated:
        return e, interval
    least, most = -(small // g), (-small + interval.upper) // g
    return (divided, Interval(least.lower, most.lower)) if least.is_point and most.is_point else (e, interval)


def merge_mod_constraints(domain: Domain) -> Domain:
    """Merges congruences of one expression with equal remainders, and tightens a variable's bounds to values that satisfy its congruence.

    d0 in [1, 50], d0 mod 4 in [0, 0], d0 mod 6 in [0, 0]   ->   d0 in [12, 48], d0 mod 12 in [0, 0]

    >>> x = Expr.variable(0)
    >>> zero = Interval(0, 0)
    >>> merge_mod_constraints(Domain((Interval(1, 50),), ((x % 4, zero), (x % 6, zero)))).bounds
    (Interval(lower=12, upper=48),)

    Source: docs/reference/1 2.6 "MergeModConstraints". Negative bounds are rounded down, where XLA rounds toward 0.
    """
    moduli: dict[tuple[Expr, int], int] = {}
    for e, interval in domain.constraints:
        if (congruence := _congruence(e, interval)) is not None:
            x, modulus, remainder = congruence
            moduli[x, remainder] = math.lcm(moduli.get((x, remainder), 1), modulus)
    if not moduli:
        return domain
    bounds = list(domain.bounds)
    constraints: dict[Expr, Interval] = {}
    for e, interval in domain.constraints:
        congruence = _congruence(e, interval)
        if congruence is None:
            constraints[e] = interval
            continue
        x, _, remainder = congruence
        modulus = moduli[x, remainder]
        constraints[make(MOD, x, Expr.constant(modulus))] = interval
        if x.kind is VARIABLE and not bounds[x.value].is_saturated:
            low, high = bounds[x.value].lower, bounds[x.value].upper
            bounds[x.value] = Interval(low + (remainder - low) % modulus, high - (high - remainder) % modulus)
    return Domain(tuple(bounds), tuple(constraints.items()))


def _congruence(e: Expr, interval: Interval) -> tuple[Expr, int, int] | None:
    """(x, modulus, remainder) if the constraint is x mod modulus = remainder, else None."""
    if e.kind is not MOD or e.rhs.kind is not CONSTANT or not interval.is_point:
        return None
    modulus, remainder = e.rhs.value, interval.lower
    return (e.lhs, modulus, remainder) if 0 <= remainder < modulus else None
