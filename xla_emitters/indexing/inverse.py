"""A map the other way round: from what it leads to, to every point that leads there.

    slice:   (d0) -> (d0 * 2 + 3), domain: d0 in [0, 9]
    inverse: (d0) -> ((d0 - 3) floordiv 2), domain: d0 in [3, 21], (d0 + 1) mod 2 in [0, 0]

    row sum: (d0)[s0] -> (d0, s0), domain: d0 in [0, 7], s0 in [0, 63]
    inverse: (d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 63]

Many points may lead to one place, so the inverse has a range variable for each variable that the place does not determine. Each result
is an equation; one that is a sum is solved for a variable of it, which leaves the equations that are left with one unknown less:
  - the one with the largest coefficient c, where the rest of the sum lies in [0, c - 1]: division with remainder, as in y = x0 * 8 + x1;
  - else one with the coefficient 1 or -1, else any with a coefficient, where what is divided must be a multiple of it.
An equation with no such variable (a `mod` or `floordiv` of unknowns) stays as a constraint: right, but to be searched.
Source: docs/reference/1 3.3, which this gives for the ops listed there; for others it says what XLA does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xla_emitters.indexing.expression import Expr, ExprKind, linear_terms, make_sum, mask_of, substitute_all
from xla_emitters.indexing.interval import Interval
from xla_emitters.indexing.map import IndexingMap
from xla_emitters.indexing.shapes import dims_of
from xla_emitters.indexing.simplify import Ranges


def inverse_map(m: IndexingMap, shape: Sequence[int]) -> IndexingMap:
    """From an index of an array of sizes `shape`, which `m` leads into, to the dims of `m` from which it is reached.

    returns  dims: the index; range variables: those of `m`'s dims that the index does not determine, then its range variables
             likewise; runtime variables: those of `m`. It leads from an index to dims, by some values of its range variables, exactly if
             `m` leads from these dims to that index, by some values of its own.
    raises   ValueError when `m` has another number of results than `shape` has sizes

    >>> print(inverse_map(IndexingMap.parse("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"), (32,)))
    (d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]
    """
    if m.num_results != len(shape):
        raise ValueError(f"a map of {m.num_results} results does not lead into an array of rank {len(shape)}")
    places, rank = dims_of(shape), len(shape)
    variables = (*places, *m.variables)
    in_all = [Expr.variable(rank + number) for number in range(len(m.variables))]
    system = _System(
        sides=[result - Expr.variable(i) for i, result in enumerate(substitute_all(m.results, in_all))],
        results=in_all[: m.num_dims],
        constraints=[(e.substitute(in_all), interval) for e, interval in m.parts.constraints],
        bounds=[v.bounds for v in variables],
        unknowns=list(range(rank, rank + m.num_dims + len(m.range_vars))),
        dims_end=rank + m.num_dims,
    )
    system.solve()
    kept = [number for number in range(len(variables)) if number < rank or number in system.unknowns]
    kept += range(rank + m.num_dims + len(m.range_vars), len(variables))
    position = {number: Expr.variable(index) for index, number in enumerate(kept)}
    replacements = [position.get(number, Expr.constant(0)) for number in range(len(variables))]
    found = IndexingMap(
        substitute_all(system.results, replacements),
        places,
        tuple(variables[number] for number in system.unknowns),
        m.runtime_vars,
        tuple((e.substitute(replacements), interval) for e, interval in system.constraints),
    )
    return found.simplify()


@dataclass
class _System:
    """Equations `side = 0`, and what is wanted in terms of what is known: the results and the constraints.

    bounds    of all variables, by number
    unknowns  the variables to eliminate: the map's dims, and from `dims_end` on its range variables
    """

    sides: list[Expr]
    results: list[Expr]
    constraints: list[tuple[Expr, Interval]]
    bounds: list[Interval]
    unknowns: list[int]
    dims_end: int

    def solve(self) -> None:
        """Eliminates an unknown for each equation that allows it; the others are constraints in the end."""
        at = 0
        while at < len(self.sides):
            # What is found for one may make another solvable: from the start again.
            at = 0 if self._solve(self.sides[at]) else at + 1
        self.constraints += [(side, Interval(0, 0)) for side in self.sides]

    def _is_known(self, e: Expr) -> bool:
        return not any(e.variable_mask >> number & 1 for number in self.unknowns)

    def _solve(self, side: Expr) -> bool:
        """Solves `side = 0` for one of its unknowns, which is then no unknown any more."""
        terms, constant = linear_terms(side)
        hidden = mask_of(base for base in terms if base.kind is not ExprKind.VARIABLE)
        free = [base for base in terms if base.value in self.unknowns and base.kind is ExprKind.VARIABLE]
        free = [base for base in free if not hidden >> base.value & 1]
        for x in sorted(free, key=lambda x: -abs(terms[x])):
            # x * size + rest = whole, where the rest is unknown too, but a digit below `size`.
            size, sign = abs(terms[x]), 1 if terms[x] > 0 else -1
            known = {base: factor * -sign for base, factor in terms.items() if self._is_known(base)}
            rest = {base: factor * sign for base, factor in terms.items() if base is not x and not self._is_known(base)}
            digit, whole = make_sum(rest, 0), make_sum(known, constant * -sign)
            within = Ranges(self.bounds, {}).of(digit)
            if rest and 0 <= within.lower and within.upper < size:
                self.sides[self.sides.index(side)] = digit - whole % size
                self._found(x, whole // size)
                return True
        for x in sorted(free, key=lambda x: (abs(terms[x]) != 1, x.value >= self.dims_end, x.value)):
            size, sign = abs(terms[x]), 1 if terms[x] > 0 else -1
            others = {base: factor * -sign for base, factor in terms.items() if base is not x}
            whole = make_sum(others, constant * -sign)
            if size != 1:
                bounds = self.bounds[x.value]
                self.constraints.append((whole % size, Interval(0, 0)))
                self.constraints.append((whole, Interval(bounds.lower * size, bounds.upper * size)))
            self.sides.remove(side)
            self._found(x, whole // size)
            return True
        return False

    def _found(self, x: Expr, value: Expr) -> None:
        """`x` is `value` everywhere, and what its bounds said holds of that."""
        self.unknowns.remove(x.value)
        replacements = [Expr.variable(number) for number in range(len(self.bounds))]
        replacements[x.value] = value
        self.sides = list(substitute_all(self.sides, replacements))
        self.results = list(substitute_all(self.results, replacements))
        self.constraints = [(e.substitute(replacements), interval) for e, interval in self.constraints]
        self.constraints.append((value, self.bounds[x.value]))
