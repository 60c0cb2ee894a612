"""What follows from facts about sizes (`facts.py`): bounds and residues of every size, and its simplified form.

    s >= 1, t == 2*s      ->   solved {t: 2*s}, limits {s: [1, ∞)}       so t*b - b*s*2 is 0, and t - 2 >= 0

  * equalities become substitutions. A symbol that an equality defines is replaced everywhere; an equality that defines no
    symbol (b*s == 12) replaces its first term. This is the union-find: equal sizes have one simplified form;
  * inequalities and divisibilities are stored per polynomial without its constant: 2*s - 6 >= 0 is s in [3, ∞);
  * a difference is bounded term by term, and also in these forms: each atom as its lower bound plus a nonnegative number
    (b*s - s is then (b-1)*s); d*floordiv(x, d) as x - mod(x, d); a maximum as one of its operands plus a nonnegative
    number; and with each known inequality subtracted.

Source: docs/reference/4 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from xla_emitters.algebra.expression import FLOORDIV, MAX, MIN, MOD, VARIABLE, ExprKind
from xla_emitters.algebra.interval import MAX as MOST
from xla_emitters.algebra.interval import MIN as LEAST
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.residue import Residue
from xla_emitters.algebra.size import (
    Factors,
    Size,
    all_atoms,
    content,
    divide,
    divide_exactly,
    divide_factors,
    interpret,
    map_atoms,
    maximum,
    minimum,
    mod,
    of_operands,
    operation,
    split_constant,
    sum_of_terms,
)

_REWRITES = 100
"""Of one sum, or of rewrites by others; then the current form is used, because every step keeps the value."""
_MOST_TERMS = 12  # of a sum that is multiplied out for a sharper bound
_HIGHEST_DEGREE = 4


class Contradiction(Exception):
    """The facts allow no assignment."""


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """The equation coefficient * factors == right, used from left to right."""

    factors: Factors
    coefficient: int
    right: Size

    @property
    def equation(self) -> Size:
        return sum_of_terms({self.factors: self.coefficient}) - self.right


@dataclass(slots=True)
class Knowledge:
    """Facts in the form in which queries use them. Modified only while a `Facts` is built.

    solved     symbol -> the size that it equals, which contains no solved symbol
    rewrites   equations that define no symbol
    limits     polynomial without constant, coefficients without common factor, the first positive -> its bounds
    residues   polynomial, likewise -> its remainder

    Once all facts are in it (`finish`), answers are kept: a program has few different sizes, and asks about each thousands of times.
    """

    solved: dict[str, Size] = field(default_factory=dict[str, Size])
    rewrites: tuple[_Rewrite, ...] = ()
    limits: dict[Size, Interval] = field(default_factory=dict[Size, Interval])
    residues: dict[Size, Residue] = field(default_factory=dict[Size, Residue])
    _simplified: dict[Size, Size] | None = None
    _bounds: dict[Size, Interval] | None = None

    def finish(self) -> None:
        """Nothing is added from now on."""
        self._simplified, self._bounds = {}, {}

    def copy(self) -> Knowledge:
        return Knowledge(dict(self.solved), self.rewrites, dict(self.limits), dict(self.residues))

    # -- adding

    def add_equation(self, equation: Size) -> None:
        """Adds equation == 0."""
        pending = [equation]
        changed: set[str] = set()
        steps = 0
        while pending:
            steps += 1
            equation = self.simplify(pending.pop())
            answer = self.is_zero(equation)
            if answer is False:
                raise Contradiction
            if not equation.terms:
                continue
            equation = divide_exactly(equation, content(equation))
            if self.add_remainder(equation):
                continue
            part, constant = split_constant(equation)
            if (name := _defined_symbol(equation)) is not None:
                changed.add(name)
                right = _solved_for(equation, name)
                self.solved = {other: size.substitute({name: right}) for other, size in self.solved.items()}
                self.solved[name] = right
                pending += [rewrite.equation for rewrite in self.rewrites]
                self.rewrites = ()
            elif (rewrite := _rewrite_of(equation)) is not None:
                changed |= sum_of_terms({rewrite.factors: 1}).symbols
                alone = Knowledge(rewrites=(rewrite,))
                others = [other for other in self.rewrites if alone.rewrite(other.equation) != other.equation]
                if steps > _REWRITES:
                    others.clear()  # two that rewrite each other: both stay unchanged
                self.rewrites = (*(other for other in self.rewrites if other not in others), rewrite)
                pending += [other.equation for other in others]
            if part.is_atom or (-part).is_atom:
                self.add_limit(part, Interval.point(-constant))
        if changed:
            self.add_again(changed)

    def add_remainder(self, equation: Size) -> bool:
        """Adds a remainder if the equation states nothing else: floordiv(s, 2)*2 - s == 0."""
        expanded, _ = self.without_quotients(equation)
        part, constant = split_constant(expanded)
        common = content(part)
        if not common or constant % common:
            return not part.terms
        part, constant = divide_exactly(part, common), constant // common
        atom, remainder = (part, -constant) if part.is_atom else (-part, constant)
        if atom.kind is not MOD or not (modulus := atom.rhs.value):
            return False
        if not 0 <= remainder < modulus:
            raise Contradiction
        self.add_residue(self.simplify(atom.lhs - remainder), Residue(0, modulus))
        return True

    def add_again(self, changed: set[str]) -> None:
        """Adds limits and residues of polynomials with these symbols again, because new equations may change them."""
        limits = {part: self.limits.pop(part) for part in list(self.limits) if not part.symbols.isdisjoint(changed)}
        residues = {
            part: self.residues.pop(part) for part in list(self.residues) if not part.symbols.isdisjoint(changed)
        }
        for part, bounds in limits.items():
            self.add_limit(self.simplify(part), bounds)
        for part, residue in residues.items():
            self.add_residue(self.simplify(part - residue.remainder), Residue(0, residue.modulus))

    def add_limit(self, size: Size, bounds: Interval) -> None:
        """Adds the bounds of `size`, which is simplified."""
        if size.value is not None:
            if not bounds.contains(size.value):
                raise Contradiction
            return
        part, factor, constant = _primitive(size)
        old = self.limits.get(part, Interval())
        new = (bounds - constant).divided_by(factor).intersect(old)
        new = self.residue(part).tighten(new)
        everything = self.residue(part).tighten(self.bounds(part).intersect(new))
        if not (new.is_feasible and everything.is_feasible):
            raise Contradiction
        if new == old:
            return
        self.limits[part] = new
        if everything.is_point:
            self.add_equation(part - everything.lower)
        if part.kind is FLOORDIV and (d := part.rhs.value):
            self.add_limit(self.simplify(part.lhs), new.of_dividend(d))
        elif part.kind in (MAX, MIN):
            shared = Interval(upper=new.upper) if part.kind is MAX else Interval(new.lower)
            for operand in part.operands:
                self.add_limit(self.simplify(operand), shared)

    def add_residue(self, size: Size, residue: Residue) -> None:
        """Adds that `size`, which is simplified, is a multiple of residue.modulus; its remainder is 0."""
        if size.value is not None:
            if not residue.contains(size.value):
                raise Contradiction
            return
        part, factor, constant = _primitive(size)
        common = math.gcd(factor, residue.modulus)
        if constant % common:
            raise Contradiction
        modulus = residue.modulus // common
        if modulus == 1:
            return
        remainder = -(constant // common) * pow(factor // common, -1, modulus) % modulus
        old = self.residue(part)
        new = old.intersect(Residue(remainder, modulus))
        if new is None:
            raise Contradiction
        if new == old:
            return
        self.residues[part] = new
        bounds = new.tighten(self.bounds(part))
        if not bounds.is_feasible:
            raise Contradiction
        self.add_limit(part, bounds)

    # -- queries

    def is_zero(self, size: Size) -> bool | None:
        """Whether a simplified size is 0; None if unknown."""
        if size.value is not None:
            return size.value == 0
        bounds = self.bounds(size)
        if not bounds.contains(0) or not self.residue(size).contains(0):
            return False
        return True if bounds.is_point or not self.without_quotients(size)[0].terms else None

    def is_nonzero(self, size: Size) -> bool:
        """Whether a simplified size is known not to be 0."""
        return self.is_zero(size) is False

    def reduce(self, size: Size) -> Size:
        """The size after applying the equations."""
        if self.solved:
            size = size.substitute(self.solved)
        return self.rewrite(size) if self.rewrites else size

    def rewrite(self, size: Size) -> Size:
        def of_atom(atom: Size) -> Size | None:
            if atom.kind is VARIABLE:
                return None
            return operation(atom.kind, [self.rewrite(operand) for operand in atom.operands])

        return self.rewrite_sum(map_atoms(size, of_atom) if size.depth else size)

    def rewrite_sum(self, size: Size) -> Size:
        """Applies the rewrites to the terms, but not inside operations."""
        for _ in range(_REWRITES):
            step = self.rewrite_step(size)
            if step is None:
                return size
            size = step
        return size

    def rewrite_step(self, size: Size) -> Size | None:
        for rewrite in self.rewrites:
            for factors, coefficient in size.terms:
                over = divide_factors(factors, rewrite.factors)
                if over is not None and coefficient % rewrite.coefficient == 0:
                    by = sum_of_terms({over: coefficient // rewrite.coefficient})
                    return size - sum_of_terms({factors: coefficient}) + by * rewrite.right
        return None

    def simplify(self, size: Size) -> Size:
        if self._simplified is None:
            return self._simplest(size)
        if (found := self._simplified.get(size)) is None:
            found = self._simplified[size] = self._simplest(size)
        return found

    def _simplest(self, size: Size) -> Size:
        size = self.reduce(size)
        if size.depth == 0:
            return size

        def of_atom(atom: Size) -> Size | None:
            if atom.kind is VARIABLE:
                return None
            return self.simplify_operation(atom.kind, [self.simplify(operand) for operand in atom.operands])

        return self.rewrite_sum(map_atoms(size, of_atom))

    def simplify_operation(self, kind: ExprKind, operands: list[Size]) -> Size:
        """The simplified operation on simplified operands."""
        if kind in (MAX, MIN):
            kept: list[Size] = []
            for operand in operands:
                if not any(self.decides(kind, other, operand) for other in kept):
                    kept = [other for other in kept if not self.decides(kind, operand, other)]
                    kept.append(operand)
            return operation(kind, kept)
        x, y = operands
        d = y.value
        if d is None:
            return self.simplify_division(kind, x, y)
        if d == 0:
            return operation(kind, operands)
        if kind is MOD and (remainder := self.remainder(x, d)).value is not None:
            return remainder
        quotient = self.bounds(x) // Interval.point(d)
        if quotient.is_point:
            return Size.constant(quotient.lower) if kind is FLOORDIV else x - quotient.lower * d
        return operation(kind, operands)

    def remainder(self, x: Size, d: int) -> Size:
        """mod(x, d); a number if the residue of x determines it."""
        residue = self.residue(x) % Residue.point(abs(d))
        return mod(residue.remainder, d) if residue.modulus == 0 else mod(x, d)

    def simplify_division(self, kind: ExprKind, x: Size, y: Size) -> Size:
        """The simplified quotient or remainder by a non-constant size."""
        if not self.is_nonzero(y):
            return operation(kind, (x, y))
        if self.bounds(x).lower >= 0 and self.bounds(y - x - 1).lower >= 0:
            return Size.constant(0) if kind is FLOORDIV else x
        quotient, remainder = divide(x, y)
        if remainder.value == 0:
            return quotient if kind is FLOORDIV else remainder
        if quotient.terms and remainder.weight < x.weight:
            rest = self.simplify_division(kind, remainder, y)
            return quotient + rest if kind is FLOORDIV else rest
        return operation(kind, (x, y))

    def decides(self, kind: ExprKind, a: Size, b: Size) -> bool:
        """Whether the maximum (minimum) of a and b is known to be a."""
        return self.bounds(a - b if kind is MAX else b - a).lower >= 0

    def residue(self, size: Size) -> Residue:
        result = interpret(size, Residue.point, self.residue_of_atom)
        if self.residues and size.value is None:
            part, factor, constant = _primitive(size)
            if part in self.residues:
                known = self.residues[part] * factor + Residue.point(constant)
                return result.intersect(known) or known
        return result

    def residue_of_atom(self, atom: Size) -> Residue:
        known = self.residues.get(atom, Residue())
        if atom.kind is VARIABLE:
            return known
        return of_operands(atom, self.residue).intersect(known) or known

    def bounds(self, size: Size) -> Interval:
        """The bounds of a simplified size: the intersection over all of its forms."""
        if self._bounds is None:
            return self._narrowest(size)
        if (found := self._bounds.get(size)) is None:
            found = self._bounds[size] = self._narrowest(size)
        return found

    def _narrowest(self, size: Size) -> Interval:
        result = self.plain_bounds(size)
        for other, rest in self.other_forms(size):
            result = result.intersect(self.plain_bounds(other) + rest)
            expanded, scale = self.without_quotients(other)
            if scale != 1:
                result = result.intersect(self.plain_bounds(expanded).divided_by(scale) + rest)
        return result

    def other_forms(self, size: Size) -> Iterator[tuple[Size, Interval]]:
        """Pairs (other, rest): the size equals `other` plus a number in the bounds `rest`."""
        yield size, Interval.point(0)
        coefficients = dict(size.terms)
        for part, bounds in self.limits.items():
            if len(part.terms) == 1:
                continue
            for factors, coefficient in part.terms:
                times, left = divmod(coefficients.get(factors, 0), coefficient)
                if times and not left:
                    yield size - part * times, bounds * times
        for atom in _atoms(size):
            if atom.kind in (MAX, MIN):
                for operand in atom.operands:
                    extreme = maximum if atom.kind is MAX else minimum
                    rest = extreme(*(other - operand for other in atom.operands))
                    yield _replace(size, atom, operand + rest), Interval.point(0)

    def plain_bounds(self, size: Size) -> Interval:
        result = self.bounds_of_terms(size)
        if len(size.terms) > _MOST_TERMS or not 2 <= _degree(size) <= _HIGHEST_DEGREE:
            return result
        # Every atom as its lower bound plus a nonnegative number, or as its upper bound minus one.
        names: dict[Size, Size] = {}
        bounds: dict[str, Interval] = {}
        of_atoms = {atom: self.bounds_of_atom(atom) for atom in _atoms(size)}
        signs = {coefficient > 0 for factors, coefficient in size.terms if factors}
        if len(signs) == 1 and all(own.lower >= 0 for own in of_atoms.values()):
            return result  # every term grows with every atom: nothing to gain
        for atom, own in of_atoms.items():
            name = f"x{len(names)}"
            symbol = Size.symbol(name)
            if own.lower != LEAST:
                bounds[name], names[atom] = own - own.lower, symbol + own.lower
            else:
                bounds[name], names[atom] = (
                    (-own + own.upper, own.upper - symbol) if own.upper != MOST else (own, symbol)
                )
        return result.intersect(interpret(size, Size.constant, names.__getitem__).bounds(bounds))

    def bounds_of_terms(self, size: Size) -> Interval:
        result = interpret(size, Interval.point, self.bounds_of_atom)
        if self.limits and size.value is None:
            part, factor, constant = _primitive(size)
            if part in self.limits:
                result = result.intersect(self.limits[part] * factor + Interval.point(constant))
        return result

    def bounds_of_atom(self, atom: Size) -> Interval:
        known = self.limits.get(atom, Interval())
        if atom.kind is VARIABLE:
            return known
        return known.intersect(of_operands(atom, self.bounds_of_terms))

    def without_quotients(self, size: Size) -> tuple[Size, int]:
        """(other, scale): scale * size equals `other`, in which x - mod(x, d) replaces d*floordiv(x, d)."""
        divisors: dict[Size, int] = {}
        powers: dict[Size, int] = {}
        for factors, _ in size.terms:
            for atom, power in factors:
                if atom.kind is FLOORDIV and (d := atom.rhs.value):
                    divisors[atom] = d
                    powers[atom] = max(power, powers.get(atom, 0))
        if not divisors:
            return size, 1
        scale = math.prod(d ** powers[atom] for atom, d in divisors.items())
        total = Size.constant(0)
        for factors, coefficient in size.terms:
            term = Size.constant(coefficient * scale)
            for atom, power in factors:
                if atom in divisors:
                    x = atom.lhs
                    term = divide_exactly(term, divisors[atom] ** power)
                    term = term * (x - self.remainder(x, divisors[atom])) ** power
                else:
                    term = term * atom**power
            total = total + term
        return total, scale


def _primitive(size: Size) -> tuple[Size, int, int]:
    """(part, factor, constant) with size = part * factor + constant; the part has the form of keys of `limits`."""
    part, constant = split_constant(size)
    factor = content(part) if part.terms[0][1] > 0 else -content(part)
    return divide_exactly(part, factor), factor, constant


def _degree(size: Size) -> int:
    return sum(power for _, power in size.terms[0][0]) if size.terms else 0


def _atoms(size: Size) -> list[Size]:
    """The distinct atoms of the terms, without those inside operations."""
    return list(dict.fromkeys(atom for factors, _ in size.terms for atom, _ in factors))


def _replace(size: Size, atom: Size, by: Size) -> Size:
    """The size with an atom of its terms replaced."""
    return map_atoms(size, lambda other: by if other == atom else None)


def _nested(size: Size) -> frozenset[str]:
    """The symbols inside operations."""
    return frozenset[str]().union(*(atom.symbols for atom in _atoms(size) if atom.kind is not VARIABLE))


def _defined_symbol(equation: Size) -> str | None:
    """The symbol that equation == 0 defines by the others: it occurs once, alone, with coefficient 1 or -1.

    Of several such symbols the last by name, so that the answer does not depend on how the equation is written.
    """
    found: list[str] = []
    nested = _nested(equation)
    for factors, coefficient in equation.terms:
        if len(factors) == 1 and factors[0][1] == 1 and factors[0][0].kind is VARIABLE and abs(coefficient) == 1:
            symbol = factors[0][0]
            times = sum(atom is symbol for others, _ in equation.terms for atom, _ in others)
            if times == 1 and symbol.name not in nested:
                found.append(symbol.name)
    return max(found, default=None)


def _solved_for(equation: Size, name: str) -> Size:
    symbol = Size.symbol(name)
    coefficient = dict(equation.terms)[((symbol, 1),)]
    return symbol - equation * coefficient


def _rewrite_of(equation: Size) -> _Rewrite | None:
    """The equation as a terminating rewrite of its first suitable term, none of whose atoms is inside an operation of the rest."""
    for factors, coefficient in equation.terms:
        if not factors:
            continue
        rest = equation - sum_of_terms({factors: coefficient})
        symbols = frozenset(atom.name for atom, _ in factors if atom.kind is VARIABLE)
        operations = {atom for atom, _ in factors if atom.kind is not VARIABLE}
        if symbols.isdisjoint(_nested(equation)) and operations.isdisjoint(all_atoms(rest)):
            sign = 1 if coefficient > 0 else -1
            return _Rewrite(factors, coefficient * sign, -rest * sign)
    return None
