"""The inverse of a map: from a result to every point that the map sends to it.

    slice:   (d0) -> (d0 * 2 + 3), domain: d0 in [0, 9]
    inverse: (d0) -> ((d0 - 3) floordiv 2), domain: d0 in [3, 21], (d0 + 1) mod 2 in [0, 0]

    row sum: (d0)[s0] -> (d0, s0), domain: d0 in [0, 7], s0 in [0, 63]
    inverse: (d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 63]

A map may send many points to one result, so the inverse has a range variable for each variable that the result does not determine. Each
result of the map gives an equation. A sum is solved for one of its variables, which eliminates that unknown from the other equations:
  - the variable with the largest coefficient c, if the rest of the sum is in [0, c - 1]: division with remainder, as in y = x0 * 8 + x1;
  - else a variable with coefficient 1 or -1; else any variable, with the constraint that its coefficient divides the rest.
An equation without such a variable (a `mod` or `floordiv` of unknowns) stays as a constraint: correct, but its points must be searched.
Source: docs/reference/1 3.3; the results are the same for the ops listed there. XLA has no inverse for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from xla_emitters.algebra.expression import Expr, ExprKind, linear_terms, make_sum, mask_of, substitute_all
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import dims_of
from xla_emitters.algebra.simplify import Ranges
from xla_emitters.support.late_dataclass import dataclass


def inverse_map(m: IndexingMap, shape: Sequence[int]) -> IndexingMap:
    """The map from an index of an array of sizes `shape`, into which `m` maps, to the dims of `m` that give this index.

    returns  dims: the index; range variables: the dims of `m` that the index does not determine, then the range variables of `m` that it
             does not determine; runtime variables: those of `m`. The inverse maps an index to dims, for some values of its range variables,
             if and only if `m` maps these dims to that index, for some values of its own range variables.
    raises   ValueError if `m` does not have one result per size of `shape`

    >>> print(inverse_map(IndexingMap.parse("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"), (32,)))
    (d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]
    """
    if m.num_results != len(shape):
        raise ValueError(f"a map with {m.num_results} results is not a map into an array of rank {len(shape)}")
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
    """A system of equations `side = 0`, with the results and constraints found so far.

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
        """Eliminates an unknown for each equation that allows it; the other equations remain as constraints."""
        at = 0
        while at < len(self.sides):
            # A solved equation may make another one solvable, so start again.
            at = 0 if self._solve(self.sides[at]) else at + 1
        self.constraints += [(side, Interval(0, 0)) for side in self.sides]

    def _is_known(self, e: Expr) -> bool:
        return not any(e.variable_mask >> number & 1 for number in self.unknowns)

    def _solve(self, side: Expr) -> bool:
        """Solves `side = 0` for one of its unknowns and eliminates it; returns whether it could."""
        terms, constant = linear_terms(side)
        hidden = mask_of(base for base in terms if base.kind is not ExprKind.VARIABLE)
        free = [base for base in terms if base.value in self.unknowns and base.kind is ExprKind.VARIABLE]
        free = [base for base in free if not hidden >> base.value & 1]
        for x in sorted(free, key=lambda x: -abs(terms[x])):
            # x * size + rest = whole, where the rest is unknown too, but in [0, size - 1].
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
        """Replaces `x` by `value` everywhere, and constrains `value` to the bounds of `x`."""
        self.unknowns.remove(x.value)
        replacements = [Expr.variable(number) for number in range(len(self.bounds))]
        replacements[x.value] = value
        self.sides = list(substitute_all(self.sides, replacements))
        self.results = list(substitute_all(self.results, replacements))
        self.constraints = [(e.substitute(replacements), interval) for e, interval in self.constraints]
        self.constraints.append((value, self.bounds[x.value]))
