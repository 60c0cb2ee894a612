"""Indexing maps: functions from the indices of one array or grid to the indices of another, with their domains.

    (th_x, bl_x)[v] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + v),
        domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]

A map has dims (the given indices: an output element, a thread), range variables (all values are visited: a loop) and
runtime variables (known when the kernel runs: a slice's offset); range and runtime variables together are its symbols.
Its domain is the box of the variables' bounds, cut by constraints `expression in [lower, upper]`. In expressions
variable v is dim v for v < num_dims, else symbol v - num_dims.

A map is a value: frozen, hashable, compared by results, bounds and the set of constraints (never by names). A map
whose domain contains no point is *known empty* and has one form: results 0, the bounds of dims and range variables
[0, -1], no constraints. Building a map normalises its domain: a constraint on a single variable becomes the variable's
bounds, two constraints on the same expression become one.
Source: docs/reference/1 1.8, 2.1, 2.4, 2.6-2.9; seed document, "Indexing transformations"; XLA hlo/analysis/indexing_map.h.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Any

from xla_emitters.algebra.expression import (
    CONSTANT,
    MOD,
    VARIABLE,
    Expr,
    bits_of,
    evaluate_all,
    linear_terms,
    mask_of,
    postorder,
    substitute_all,
)
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map_text import Constraint, MapParts, Spelling, parse_map, print_map
from xla_emitters.algebra.simplify import (
    Domain,
    Ranges,
    Simplifier,
    merge_mod_constraints,
    settle_constraints,
    simplify_domain,
)
from xla_emitters.support.late_dataclass import dataclass

_NOTHING = Interval(0, -1)
_NEVER: Constraint = (Expr.constant(0), _NOTHING)
_FIELDS = ("results", "dims", "range_vars", "runtime_vars", "constraints")


@dataclass(frozen=True, eq=False, repr=False)
class IndexingMap:
    """A map with its domain.

    results       one expression per index of the target
    dims, range_vars, runtime_vars    the variables, numbered in this order
    constraints   (expression, interval) pairs that hold on the domain, besides the variables' bounds

    >>> x, y = Expr.variable(0), Expr.variable(1)
    >>> print(IndexingMap((y, x), dims=(Variable(Interval(0, 19)), Variable(Interval(0, 39)))))
    (d0, d1) -> (d1, d0), domain: d0 in [0, 19], d1 in [0, 39]

    Source: docs/reference/1 2.1 "Data model".
    """

    results: tuple[Expr, ...]
    dims: tuple[Variable, ...] = ()
    range_vars: tuple[Variable, ...] = ()
    runtime_vars: tuple[Variable, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    is_known_empty: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        for name in _FIELDS:
            if type(given := getattr(self, name)) is not tuple:
                object.__setattr__(self, name, tuple(given))
        variables = self.variables
        used = mask_of(self.results)
        if self.constraints:
            used |= mask_of(e for e, _ in self.constraints)
        if used >> len(variables):
            raise ValueError(f"variable {used.bit_length() - 1} is used, but the map has {len(variables)} variables")
        if not self.constraints and all(v.bounds.is_feasible for v in variables):
            return
        settled = settle_constraints(self.domain)
        if settled is None:
            object.__setattr__(self, "is_known_empty", True)
            object.__setattr__(self, "results", (Expr.constant(0),) * len(self.results))
            for name in ("dims", "range_vars"):
                object.__setattr__(self, name, tuple(replace(v, bounds=_NOTHING) for v in getattr(self, name)))
            object.__setattr__(self, "constraints", ())
            return
        object.__setattr__(self, "constraints", settled.constraints)
        self._set_bounds(settled.bounds)

    def _set_bounds(self, bounds: Sequence[Interval]) -> None:
        """Sets the variables' normalised bounds while the map is being built."""
        ranges = iter(bounds)
        for name in ("dims", "range_vars", "runtime_vars"):
            variables: tuple[Variable, ...] = getattr(self, name)
            mine = tuple(itertools.islice(ranges, len(variables)))
            if any(v.bounds is not b for v, b in zip(variables, mine, strict=True)):
                tightened = tuple(Variable(b, v.name) for v, b in zip(variables, mine, strict=True))
                object.__setattr__(self, name, tightened)

    # ---- Parts

    @property
    def num_dims(self) -> int:
        """The number of dims."""
        return len(self.dims)

    @property
    def num_symbols(self) -> int:
        """The number of symbols: range variables and runtime variables."""
        return len(self.range_vars) + len(self.runtime_vars)

    @property
    def num_results(self) -> int:
        """The number of results: the rank of the target."""
        return len(self.results)

    @property
    def symbols(self) -> tuple[Variable, ...]:
        """Range variables, then runtime variables."""
        return self.range_vars + self.runtime_vars

    @property
    def points_of_box(self) -> int:
        """The number of points in the box of the dims and range variables; constraints are ignored."""
        return math.prod(variable.bounds.trip_count for variable in (*self.dims, *self.range_vars))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables by number: dims, range variables, runtime variables."""
        return self.dims + self.range_vars + self.runtime_vars

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the variables. Equal maps may have different names."""
        return tuple(v.name for v in self.variables)

    @property
    def parts(self) -> MapParts:
        """The fields in the form of text.py; a known empty map without dims and range variables gets an unsatisfiable constraint."""
        is_silent = self.is_known_empty and not self.dims and not self.range_vars
        constraints = (_NEVER,) if is_silent else self.constraints
        return MapParts(self.results, self.dims, self.range_vars, self.runtime_vars, constraints)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        constraints = frozenset(self.constraints)
        return self.results, self.dims, self.range_vars, self.runtime_vars, constraints, self.is_known_empty

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, IndexingMap):
            return NotImplemented
        return self._hash == other._hash and self._key == other._key

    # ---- Text

    @staticmethod
    def parse(text: str, file: str = "<indexing map>") -> IndexingMap:
        """Reads a map in either spelling.

        raises   ParseError, whose place counts lines and columns within `text`

        >>> IndexingMap.parse("(d0)[s0] -> (d0 / 8 + s0), domain: d0 in [0, 63], s0 in [0, 3]").num_symbols
        1

        Source: docs/reference/1 1.8 "indexing_map attribute text".
        """
        return IndexingMap(*parse_map(text, file))

    def to_text(self, spelling: Spelling = "seed") -> str:
        """The map on one line; `floordiv` in the seed's spelling, `/` in upstream's. `parse` reads either back.

        >>> IndexingMap.parse("(d0) -> (d0 / 8), domain: d0 in [0, 63]").to_text("upstream")
        '(d0) -> (d0 / 8), domain: d0 in [0, 63]'
        """
        return print_map(self.parts, spelling)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<IndexingMap {self.to_text()}>"

    def _repr_html_(self) -> str:
        import html  # imported here: only notebooks need it

        return f"<code>{html.escape(self.to_text())}</code>"

    # ---- Values and ranges

    def evaluate(self, dims: Sequence[Any], symbols: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The results for these values; the domain is not checked.

        dims, symbols   one int or array each
        returns         one int or array per result; a result without variables is an int even where the rest are arrays

        >>> IndexingMap.parse("(d0)[s0] -> (d0 / 8, s0 + 1), domain: d0 in [0, 63], s0 in [0, 3]").evaluate([20], [3])
        (2, 4)
        """
        return evaluate_all(self.results, self._values(dims, symbols), self._order_of_results)

    def constraints_satisfied(self, dims: Sequence[Any], symbols: Sequence[Any] = ()) -> Any:
        """Whether the constraints hold; the variables' own bounds are not checked.

        returns  a bool, or a boolean array if a constraint's expression is an array. False if the map is known empty.

        >>> m = IndexingMap.parse("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 4 in [0, 0]")
        >>> m.constraints_satisfied([4]), m.constraints_satisfied([5])
        (True, False)
        """
        expressions = [e for e, _ in self.constraints]
        values = evaluate_all(expressions, self._values(dims, symbols), self._order_of_constraints)
        holds: Any = not self.is_known_empty
        for value, (_, bounds) in zip(values, self.constraints, strict=True):
            holds = holds & (value >= bounds.lower) & (value <= bounds.upper)
        return holds

    @cached_property
    def _order_of_results(self) -> list[Expr]:
        return postorder(self.results)

    @cached_property
    def _order_of_constraints(self) -> list[Expr]:
        return postorder(e for e, _ in self.constraints)

    def points(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Every point of the domain as (dims, symbols), the last variable changing fastest.

        >>> m = IndexingMap.parse("(d0)[s0] -> (d0), domain: d0 in [0, 1], s0 in [0, 3], d0 + s0 in [4, 9]")
        >>> list(m.points())
        [((1,), (3,))]
        """
        if self.is_known_empty:
            return
        for values in itertools.product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in self.variables)):
            dims, symbols = values[: self.num_dims], values[self.num_dims :]
            if self.constraints_satisfied(dims, symbols):
                yield dims, symbols

    def range_of(self, e: Expr) -> Interval:
        """The range of `e`, an expression over this map's variables, on the domain (constraints are used).

        >>> m = IndexingMap.parse("(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 63], s0 in [0, 3]")
        >>> m.range_of(m.results[0])
        Interval(lower=0, upper=255)

        Source: docs/reference/1 2.4 "Range evaluation of an expression over a map's domain".
        """
        return self._ranges.of(e)

    def result_range(self, number: int) -> Interval:
        """The range of a result on the domain."""
        return self._ranges.of(self.results[number])

    @property
    def domain(self) -> Domain:
        """Bounds by variable number, and the constraints."""
        return Domain(tuple(v.bounds for v in self.variables), self.constraints)

    @cached_property
    def _ranges(self) -> Ranges:
        return Ranges(self.domain.bounds, dict(self.constraints))

    def _values(self, dims: Sequence[Any], symbols: Sequence[Any]) -> list[Any]:
        if len(dims) != self.num_dims or len(symbols) != self.num_symbols:
            wanted, got = f"{self.num_dims} dims and {self.num_symbols} symbols", f"{len(dims)} and {len(symbols)}"
            raise ValueError(f"the map takes {wanted}, got {got}")
        return [*dims, *symbols]

    # ---- Simplification

    def simplify(self, replace_points: bool = True) -> IndexingMap:
        """The same map on the same domain in its normal form: maps that are equal as functions usually get equal text.

        replace_points   replace every expression whose range is one value by that constant
        returns          this object if it is already in normal form

        The result is cached, for this object and (for the last few thousand maps) for every equal one.

        >>> text = "(d0, d1) -> ((d0 * 12 + d1) / 12, (d0 * 12 + d1) mod 12), domain: d0 in [0, 9], d1 in [0, 11]"
        >>> print(IndexingMap.parse(text).simplify())
        (d0, d1) -> (d0, d1), domain: d0 in [0, 9], d1 in [0, 11]

        Source: docs/reference/1 2.6 "Simplify (domain-aware)".
        """
        return self._simplified if replace_points else self._simplified_keeping_points

    @cached_property
    def _simplified(self) -> IndexingMap:
        return self._in_normal_form(True)

    @cached_property
    def _simplified_keeping_points(self) -> IndexingMap:
        return self._in_normal_form(False)

    def _in_normal_form(self, replace_points: bool) -> IndexingMap:
        answer = _normal_form(self, replace_points)
        if answer == self:
            return self

        def named(theirs: tuple[Variable, ...], mine: tuple[Variable, ...]) -> tuple[Variable, ...]:
            # The cached result may come from an equal map with other names.
            return tuple(Variable(t.bounds, m.name) for t, m in zip(theirs, mine, strict=True))

        mine = IndexingMap(
            answer.results,
            named(answer.dims, self.dims),
            named(answer.range_vars, self.range_vars),
            named(answer.runtime_vars, self.runtime_vars),
            answer.parts.constraints,
        )
        # A normal form is its own normal form: cache it without simplifying again.
        mine.__dict__["_simplified" if replace_points else "_simplified_keeping_points"] = mine
        return mine

    # ---- Other maps from this one

    def with_variables_replaced(
        self,
        replacements: Sequence[Expr],
        *,
        dims: Sequence[Variable] = (),
        range_vars: Sequence[Variable] = (),
        runtime_vars: Sequence[Variable] = (),
    ) -> IndexingMap:
        """This map over other variables: variable v becomes replacements[v], in results and constraints alike.

        replacements  one expression per variable of this map, over the new variables
        dims, range_vars, runtime_vars   the new variables with their bounds; the old variables' bounds are dropped

        >>> m = IndexingMap.parse("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]")
        >>> print(m.with_variables_replaced([Expr.variable(0), Expr.constant(5)], dims=m.dims[:1]))
        (d0) -> (d0 * 8 + 5), domain: d0 in [0, 3]
        """
        changed = substitute_all([*self.results, *(e for e, _ in self.constraints)], replacements)
        constraints = zip(changed[self.num_results :], (bounds for _, bounds in self.constraints), strict=True)
        constraints = tuple(constraints) + ((_NEVER,) if self.is_known_empty else ())
        return IndexingMap(
            changed[: self.num_results], tuple(dims), tuple(range_vars), tuple(runtime_vars), constraints
        )

    def with_dims_fixed(self, values: Mapping[int, int]) -> IndexingMap:
        """This map with dims replaced by constants and removed; the constants are not checked against the dims' bounds.

        >>> m = IndexingMap.parse("(d0, d1)[s0] -> (d0 * 8 + d1 + s0), domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 1]")
        >>> print(m.with_dims_fixed({0: 2}))
        (d0)[s0] -> (d0 + 16 + s0), domain: d0 in [0, 7], s0 in [0, 1]
        """
        replacements: list[Expr] = []
        removed = 0
        for number in range(len(self.variables)):
            is_fixed = number in values and number < self.num_dims
            removed += is_fixed
            replacements.append(Expr.constant(values[number]) if is_fixed else Expr.variable(number - removed))
        return self.with_variables_replaced(
            replacements,
            dims=[v for number, v in enumerate(self.dims) if number not in values],
            range_vars=self.range_vars,
            runtime_vars=self.runtime_vars,
        )

    def compose(self, second: IndexingMap) -> IndexingMap:
        """`second` after this map: its dims are this map's results. Not simplified.

        returns  dims of this map; range variables of `second`, then of this; runtime variables likewise. A point is in its
                 domain iff it is in this map's and the results are in `second`'s.
        raises   ValueError if this map does not have one result per dim of `second`

        >>> first = IndexingMap.parse("(d0) -> (d0 + 2), domain: d0 in [0, 9]")
        >>> second = IndexingMap.parse("(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 7], s0 in [0, 3]")
        >>> print(first.compose(second).simplify())
        (d0)[s0] -> (d0 * 4 + s0 + 8), domain: d0 in [0, 5], s0 in [0, 3]

        Source: docs/reference/1 2.8 "Compose(first, second) = second o first".
        """
        if self.num_results != second.num_dims:
            raise ValueError(
                f"cannot compose a map with {self.num_results} results with a map with {second.num_dims} dims"
            )
        dims, ranges = self.num_dims, second.range_vars + self.range_vars
        firsts_ranges = dims + len(second.range_vars)
        seconds_runtime = dims + len(ranges)
        firsts_runtime = seconds_runtime + len(second.runtime_vars)
        own = [
            *range(dims),
            *range(firsts_ranges, seconds_runtime),
            *range(firsts_runtime, firsts_runtime + len(self.runtime_vars)),
        ]
        moved = substitute_all(
            [*self.results, *(e for e, _ in self.constraints)], [Expr.variable(number) for number in own]
        )
        results, own_constraints = moved[: self.num_results], moved[self.num_results :]
        theirs = [*range(dims, firsts_ranges), *range(seconds_runtime, firsts_runtime)]
        composed = second.with_variables_replaced(
            [*results, *(Expr.variable(number) for number in theirs)],
            dims=self.dims,
            range_vars=ranges,
            runtime_vars=second.runtime_vars + self.runtime_vars,
        )
        constraints = [
            *composed.parts.constraints,
            *zip(own_constraints, (bounds for _, bounds in self.constraints), strict=True),
            *zip(results, (v.bounds for v in second.dims), strict=True),
        ]
        if self.is_known_empty:
            constraints.append(_NEVER)
        return replace(composed, constraints=tuple(constraints))

    def submap(self, number: int) -> IndexingMap:
        """Only result `number`, on the same domain.

        >>> print(IndexingMap.parse("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]").submap(0))
        (d0, d1) -> (d1), domain: d0 in [0, 3], d1 in [0, 7]
        """
        return replace(self, results=(self.results[number],), constraints=self.parts.constraints)

    def symbols_to_dims(self) -> IndexingMap:
        """All symbols as trailing dims, in order and with their names.

        >>> m = IndexingMap.parse("(th_x)[v] -> (th_x * 4 + v), domain: th_x in [0, 127], v in [0, 3]")
        >>> print(m.symbols_to_dims())
        (th_x, v) -> (th_x * 4 + v), domain: th_x in [0, 127], v in [0, 3]

        Source: docs/reference/1 2.9 "ConvertSymbolsToDimensions".
        """
        return IndexingMap(self.results, self.variables, constraints=self.parts.constraints)

    def remove_unused_symbols(self) -> tuple[IndexingMap, tuple[bool, ...]]:
        """This map without its unused symbols.

        returns  the map, and one bit per symbol, True = removed; no bits if nothing was removed

        All dims count as used. A symbol is used if a result depends on it, or if it occurs in a constraint with a used
        variable. A constraint without used variables is removed together with its symbols. The bounds of a removed symbol
        are dropped.

        >>> m = IndexingMap.parse("(d0)[s0, s1] -> (d0 + s1), domain: d0 in [0, 3], s0 in [0, 1], s1 in [0, 7]")
        >>> smaller, removed = m.remove_unused_symbols()
        >>> print(smaller, removed)
        (d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 7] (True, False)

        Source: docs/reference/1 2.7 "Variable removal".
        """
        smaller, removed = self._without_unused(first=self.num_dims)
        return smaller, removed[self.num_dims :]

    def remove_unused_vars(self) -> tuple[IndexingMap, tuple[bool, ...]]:
        """As `remove_unused_symbols`, but also removes dims; one bit per variable.

        >>> m = IndexingMap.parse("(d0, d1) -> (d1), domain: d0 in [0, 3], d1 in [0, 7]")
        >>> m.remove_unused_vars()
        (<IndexingMap (d0) -> (d0), domain: d0 in [0, 7]>, (True, False))
        """
        return self._without_unused_vars

    @cached_property
    def _without_unused_vars(self) -> tuple[IndexingMap, tuple[bool, ...]]:
        return self._without_unused(first=0)

    def _without_unused(self, first: int) -> tuple[IndexingMap, tuple[bool, ...]]:
        total = len(self.variables)
        used = mask_of(self.results) | (1 << first) - 1
        # A known empty map uses no variables, but must keep the bounds that make it empty.
        is_growing = not self.is_known_empty
        while is_growing:
            grown = used | mask_of(e for e, _ in self.constraints if e.variable_mask & used)
            is_growing, used = grown != used, grown
        if self.is_known_empty or used == (1 << total) - 1:
            return self, ()
        kept = list(bits_of(used))
        position = {number: index for index, number in enumerate(kept)}
        nowhere = Expr.constant(0)
        replacements = [Expr.variable(position[n]) if n in position else nowhere for n in range(total)]
        alive = tuple((e, bounds) for e, bounds in self.constraints if e.variable_mask & used or not e.variable_mask)
        ranges_end = self.num_dims + len(self.range_vars)
        variables = self.variables
        smaller = replace(self, constraints=alive).with_variables_replaced(
            replacements,
            dims=[variables[n] for n in kept if n < self.num_dims],
            range_vars=[variables[n] for n in kept if self.num_dims <= n < ranges_end],
            runtime_vars=[variables[n] for n in kept if n >= ranges_end],
        )
        return smaller, tuple(n not in position for n in range(total))

    def is_symbol_constrained(self, number: int) -> bool:
        """Whether symbol `number` occurs in a constraint, so that it may take only some values of its bounds."""
        return bool(self.constraints_mentioning(self.num_dims + number))

    def constraints_mentioning(self, variable: int) -> tuple[Constraint, ...]:
        """The constraints in which variable `variable` occurs."""
        return tuple((e, bounds) for e, bounds in self.constraints if e.variable_mask >> variable & 1)

    def with_runtime_vars_fixed(self) -> IndexingMap:
        """A typical instance of this map, for estimates: each runtime variable is the middle of its bounds, rounded toward 0.

        returns  a simplified map without runtime variables; constraints are dropped, because the middle need not satisfy them

        >>> text = "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 7], rt0 in [0, 25], d0 + rt0 in [0, 9]"
        >>> print(IndexingMap.parse(text).with_runtime_vars_fixed())
        (d0) -> (d0 + 12), domain: d0 in [0, 7]

        Source: docs/reference/1 2.9 "AssignValuesToRTVars".
        """
        if not self.runtime_vars:
            return self
        staying = self.num_dims + len(self.range_vars)
        sums = [v.bounds.lower + v.bounds.upper for v in self.runtime_vars]
        middles = [Expr.constant(total // 2 if total >= 0 else -(-total // 2)) for total in sums]
        boxed = self if self.is_known_empty else replace(self, constraints=())
        replacements = [*(Expr.variable(number) for number in range(staying)), *middles]
        return boxed.with_variables_replaced(replacements, dims=self.dims, range_vars=self.range_vars).simplify()

    def rescale_symbols(self) -> IndexingMap:
        """Rescales range variables that take only every c-th value, so that they take every value. Not simplified.

        A range variable s with the constraint s mod c = r, or (s + k) mod c = r (which XLA leaves alone), becomes s * c + r with
        new bounds; of several such constraints on a variable the first is used. Returns this object if there is none.

        >>> m = IndexingMap.parse("()[s0] -> (s0 * 3), domain: s0 in [0, 7], s0 mod 2 in [1, 1]")
        >>> print(m.rescale_symbols().simplify())
        ()[s0] -> (s0 * 6 + 3), domain: s0 in [0, 3]

        Source: docs/reference/1 2.9 "RescaleSymbols".
        """
        if self.is_known_empty:
            return self
        merged = merge_mod_constraints(self.domain)
        bounds = merged.bounds
        strides: dict[int, tuple[int, int]] = {}
        kept: list[Constraint] = []
        for e, interval in merged.constraints:
            stride = _stride_of(e, interval)
            is_range = stride is not None and self.num_dims <= stride[0] < self.num_dims + len(self.range_vars)
            if stride is None or not is_range or stride[0] in strides:
                kept.append((e, interval))
            else:
                strides[stride[0]] = stride[1:]
        if not strides:
            return self
        variables = list(self.variables)
        replacements = [Expr.variable(number) for number in range(len(variables))]
        for number, (c, r) in strides.items():
            lower, upper = bounds[number].lower, bounds[number].upper
            variables[number] = replace(variables[number], bounds=Interval(-((r - lower) // c), (upper - r) // c))
            replacements[number] = Expr.variable(number) * c + r
        ranges_end = self.num_dims + len(self.range_vars)
        return replace(self, constraints=tuple(kept)).with_variables_replaced(
            replacements,
            dims=variables[: self.num_dims],
            range_vars=variables[self.num_dims : ranges_end],
            runtime_vars=variables[ranges_end:],
        )


def _stride_of(e: Expr, interval: Interval) -> tuple[int, int, int] | None:
    """(v, c, r) if the constraint is equivalent to v mod c = r for one variable v, else None."""
    if e.kind is not MOD or e.rhs.kind is not CONSTANT or e.rhs.value <= 0 or not interval.is_point:
        return None
    terms, shift = linear_terms(e.lhs)
    (variable, factor), *others = terms.items() or ((e.lhs, 0),)
    if others or factor != 1 or variable.kind is not VARIABLE or not 0 <= interval.lower < e.rhs.value:
        return None
    return variable.value, e.rhs.value, (interval.lower - shift) % e.rhs.value


@lru_cache(maxsize=4096)
def _normal_form(m: IndexingMap, replace_points: bool) -> IndexingMap:
    """The simplified map; cached, so its names may be those of an equal map."""
    if m.is_known_empty:
        return m
    domain = simplify_domain(m.domain, replace_points)
    if domain is None:
        return replace(m, constraints=(_NEVER,))
    simplifier = Simplifier(Ranges(domain.bounds, dict(domain.constraints)), replace_points)
    results = tuple(simplifier.simplify(e) for e in m.results)
    # The tightened bounds are passed on as constraints on the variables.
    tightened = [(Expr.variable(number), interval) for number, interval in enumerate(domain.bounds)]
    return replace(m, results=results, constraints=(*domain.constraints, *tightened))
