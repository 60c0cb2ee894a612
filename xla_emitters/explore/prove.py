"""Proofs about indexing maps and sizes of any magnitude, for all points of the domain at once, by integer sets instead of enumeration.

    m = IndexingMap.parse("(th_x, bl_x)[v] -> ((bl_x * 128 + th_x) * 4 + v),"
                          " domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]")
    prove_equal(m, m.simplify())     the same domain, and the same results on it
    prove_injective(m)               no index is computed twice
    prove_covers(m, (12582912,))     every index of the shape is computed, and nothing outside
    prove_fact(Fact(AT_LEAST, s - s // 2, Size.constant(1), ""), facts.stated)      the fact follows from those that are stated

Maps and sizes consist of sums, products by constants, floor divisions and remainders by constants, minima and maxima. They are
quasi-affine, so each claim is equivalent to a set of integer points being empty, which the library isl decides exactly. The simplifiers
are not used: expressions are translated node by node. A refuted claim has a counterexample, which is evaluated in Python, so that a
wrong translation is detected.
Integers are unbounded here: the proofs do not show that 64 bits are enough.

Refused by name: products of two variables and divisors that are variables (a variable with only one value counts as a constant), and
questions that need more than `BUDGET` steps of isl. Needs the extra [prove].
Source: Verdoolaege, "isl: An Integer Set Library for the Polyhedral Model" (2010).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import starmap
from typing import Any

from xla_emitters.algebra.expression import Expr, ExprKind, postorder
from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Fact
from xla_emitters.algebra.interval import MAX, MIN, Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.map_text import display_names
from xla_emitters.algebra.size import numbered
from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.support.extras import installed

BUDGET = 20_000_000
"""Maximum steps of isl for one question, a few seconds; the maps of loop fusions need a thousandth of it."""

Point = tuple[int, ...]  # a value per variable, in the map's order


@dataclass(frozen=True)
class Proof:
    """A claim about a map, and its counterexample.

    claim            in words
    counterexample   the point where the claim fails, and how; "" if it holds at every point of the domain

    >>> print(Proof("no index is computed twice"))
    proved: no index is computed twice
    """

    claim: str
    counterexample: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim is true."""
        return not self.counterexample

    def __str__(self) -> str:
        return f"refuted: {self.claim}: {self.counterexample}" if self.counterexample else f"proved: {self.claim}"


def prove_equal(before: IndexingMap, after: IndexingMap) -> Proof:
    """Proves that the maps have the same domain, and the same results on it.

    raises   ValueError if they have different numbers of variables or results; Unsupported; ToolError without the extra
    """
    counts = [(len(m.dims), len(m.range_vars), len(m.runtime_vars), m.num_results) for m in (before, after)]
    if counts[0] != counts[1]:
        raise ValueError(f"the maps have different numbers of variables or results: {before} and {after}")
    claim = "the same results on the same domain"
    with _translation() as isl:
        domain, domain_after = isl.domain(before), isl.domain(after)
        for one, other, where in ((domain, domain_after, "before"), (domain_after, domain, "after")):
            if (point := isl.first(one.subtract(other))) is not None:
                _expect(_contains(before, point) != _contains(after, point), before, after)
                return Proof(claim, f"{_at(before, point)} is in the domain {where} only")
        pairs = zip(isl.functions(before, before.results), isl.functions(after, after.results), strict=True)
        for number, (value, value_after) in enumerate(pairs):
            if (point := isl.first(value.ne_set(value_after).intersect(domain))) is not None:
                old, new = _evaluate(before, point)[number], _evaluate(after, point)[number]
                _expect(old != new and _contains(before, point), before, after)
                return Proof(claim, f"at {_at(before, point)} result {number} is {old} before, {new} after")
    return Proof(claim)


def prove_injective(m: IndexingMap) -> Proof:
    """Proves that no two points of the domain with the same runtime values have the same results.

    raises   Unsupported; ToolError without the extra
    """
    claim = "no index is computed twice"
    with _translation() as isl:
        graph = isl.graph(m)
        if graph.is_injective():
            return Proof(claim)
        both = isl.first(graph.apply_range(graph.reverse()).subtract(isl.identity(m)).wrap())
    if both is None:
        raise InternalError(f"not injective, but no two points collide: {m}", stage="prove")
    one, other = both[: len(m.variables)], both[len(m.variables) :]
    index = _evaluate(m, one)
    _expect(one != other and index == _evaluate(m, other) and _contains(m, one) and _contains(m, other), m)
    return Proof(claim, f"{_at(m, one)} and {_at(m, other)} both give {_tuple(index)}")


def prove_covers(m: IndexingMap, shape: Sequence[int]) -> Proof:
    """Proves that every index of `shape` is the result of a point of the domain, and that no result is outside; for all runtime values.

    raises   ValueError if there is not one result per dimension; Unsupported; ToolError without the extra
    """
    if m.num_results != len(shape):
        raise ValueError(f"a map of {m.num_results} results and a shape of rank {len(shape)}")
    claim = f"every index of [{', '.join(map(str, shape))}] is computed, and none outside"
    bounds = [*(Interval(0, size - 1) for size in shape), *(v.bounds for v in m.runtime_vars)]
    with _translation() as isl:
        graph, indices = isl.graph(m), isl.box(bounds)
        outside = isl.first(graph.subtract_range(indices).domain())
        missing = isl.first(indices.subtract(graph.range()))
    if outside is not None:
        index = _evaluate(m, outside)
        _expect(_contains(m, outside) and not all(0 <= i < size for i, size in zip(index, shape, strict=True)), m)
        return Proof(claim, f"{_at(m, outside)} gives {_tuple(index)}, which is outside")
    if missing is not None:
        index, runtime = missing[: len(shape)], missing[len(shape) :]
        names = display_names(m.parts)[len(m.variables) - len(m.runtime_vars) :]
        given = ", ".join(starmap("{} = {}".format, zip(names, runtime, strict=True)))
        return Proof(claim, f"nothing gives {_tuple(index)}{f' when {given}' if given else ''}")
    return Proof(claim)


def prove_fact(fact: Fact, stated: Iterable[Fact]) -> Proof:
    """Proves that a fact about sizes holds for all values of the symbols for which the stated ones hold.

    raises   Unsupported, also for products of symbols and divisions by them; ToolError without the extra
    """
    known = list(stated)
    names = sorted(
        frozenset[str]().union(*(size.symbols for each in (fact, *known) for size in (each.left, each.right)))
    )
    left, right, *differences = numbered([fact.left, fact.right, *(each.left - each.right for each in known)], names)
    intervals = [_DIFFERENCES[each.relation] for each in known]
    dims = tuple(Variable(Interval(), name) for name in names)
    m = IndexingMap((left, right), dims, constraints=tuple(zip(differences, intervals, strict=True)))
    with _translation() as isl:
        one, other = isl.functions(m, m.results)
        fails = {EQUAL: one.ne_set, AT_LEAST: one.lt_set, AT_MOST: one.gt_set}[fact.relation](other)
        point = isl.first(fails.intersect(isl.domain(m)))
    if point is None:
        return Proof(str(fact))
    values = dict(zip(names, point, strict=True))
    _expect(all(each.holds(values) for each in known) and not fact.holds(values), m)
    return Proof(str(fact), f"at {_at(m, point)} it is {fact.left.evaluate(values)}, and {fact.right.evaluate(values)}")


_DIFFERENCES = {EQUAL: Interval(0, 0), AT_LEAST: Interval(0), AT_MOST: Interval(upper=0)}
"""The values of left - right by a fact's relation."""

# ---- Points in Python -----------------------------------------------------------------------------------------------


def _evaluate(m: IndexingMap, point: Point) -> Point:
    return tuple(m.evaluate(point[: m.num_dims], point[m.num_dims :]))


def _contains(m: IndexingMap, point: Point) -> bool:
    """Whether the point is in the domain, by the map's own arithmetic."""
    is_in_box = all(v.bounds.contains(value) for v, value in zip(m.variables, point, strict=True))
    return is_in_box and bool(m.constraints_satisfied(point[: m.num_dims], point[m.num_dims :]))


def _at(m: IndexingMap, point: Point) -> str:
    named = starmap("{} = {}".format, zip(display_names(m.parts), point, strict=True))
    return f"({', '.join(named)})"


def _tuple(index: Point) -> str:
    return f"({', '.join(map(str, index))})"


def _expect(is_confirmed: bool, *maps: IndexingMap) -> None:
    if not is_confirmed:
        raise InternalError(
            "isl's counterexample is not one when it is evaluated", stage="prove", details=tuple(map(str, maps))
        )


# ---- Translation ----------------------------------------------------------------------------------------------------


@contextmanager
def _translation() -> Generator[_Translation]:
    """A translation for one question. Raises ToolError without the extra, Unsupported if isl gives up."""
    with installed("the integer set library", "prove", extras="prove"):
        isl = import_module("islpy")
    try:
        yield _Translation(isl)
    except isl.Error as error:
        raise Unsupported(f"isl gives up: {error}", stage="prove") from error


class _Translation:
    """Maps as isl's sets and piecewise quasi-affine functions, in one context with one budget.

    A variable with only one value is translated as that value: this keeps the function on the domain and makes more maps quasi-affine.
    """

    def __init__(self, isl: Any) -> None:
        self.isl = isl
        self.context: Any = isl.Context()
        self.context.set_max_operations(BUDGET)

    def first(self, points: Any) -> Point | None:
        """The lexicographically first point of the set, any point if there is no first; None if it is empty."""
        if points.is_empty():
            return None
        first = points.lexmin() if points.is_bounded() else points
        found, axes = first.sample_point(), range(points.dim(self.isl.dim_type.set))
        return tuple(found.get_coordinate_val(self.isl.dim_type.set, axis).to_python() for axis in axes)

    def box(self, bounds: Sequence[Interval]) -> Any:
        """The set of points whose coordinate i is in bounds[i]."""
        points = self.isl.Set.universe(self._space(len(bounds)))
        for axis, interval in enumerate(bounds):
            if interval.lower != MIN:
                points = points.lower_bound_val(self.isl.dim_type.set, axis, self._value(interval.lower))
            if interval.upper != MAX:
                points = points.upper_bound_val(self.isl.dim_type.set, axis, self._value(interval.upper))
        return points

    def domain(self, m: IndexingMap) -> Any:
        """The map's domain as a set over its variables."""
        points = self.box([v.bounds for v in m.variables])
        if m.is_known_empty:
            return points.subtract(points)
        functions = self.functions(m, [e for e, _ in m.constraints])
        for function, (_, interval) in zip(functions, m.constraints, strict=True):
            if interval.lower != MIN:
                points = points.intersect(function.ge_set(self._constant(m, interval.lower)))
            if interval.upper != MAX:
                points = points.intersect(function.le_set(self._constant(m, interval.upper)))
        return points

    def graph(self, m: IndexingMap) -> Any:
        """The relation from the points of the domain to the results followed by the runtime variables."""
        first_runtime = len(m.variables) - len(m.runtime_vars)
        runtime = [Expr.variable(first_runtime + number) for number in range(len(m.runtime_vars))]
        relation = self.isl.Map.from_domain(self.domain(m))
        for function in self.functions(m, [*m.results, *runtime]):
            relation = relation.flat_range_product(self.isl.Map.from_pw_aff(function))
        return relation

    def identity(self, m: IndexingMap) -> Any:
        """The identity on the space of the map's variables."""
        return self.isl.Map.identity(self._space(len(m.variables)).map_from_set())

    def functions(self, m: IndexingMap, roots: Sequence[Expr]) -> list[Any]:
        """Expressions over the map's variables as isl functions of them."""
        known: dict[Expr, Any] = {}
        for node in postorder(roots):
            if node.kind is ExprKind.CONSTANT:
                known[node] = self._constant(m, node.value)
            elif node.kind is ExprKind.VARIABLE:
                known[node] = self._variable(m, node.value)
            else:
                known[node] = self._operation(node, known[node.lhs], known[node.rhs])
        return [known[root] for root in roots]

    def _operation(self, e: Expr, a: Any, b: Any) -> Any:
        if e.kind is ExprKind.ADD:
            return a.add(b)
        if e.kind is ExprKind.MIN:
            return a.min(b)
        if e.kind is ExprKind.MAX:
            return a.max(b)
        if e.kind is ExprKind.MUL:
            if not a.is_cst() and not b.is_cst():
                raise Unsupported(f"a product of two variables cannot be decided: {e}", stage="prove")
            return a.mul(b)
        if not b.is_cst() or e.rhs.is_constant(0):
            raise Unsupported(f"a division by a variable cannot be decided: {e}", stage="prove")
        quotient = a.div(b)
        if e.kind is ExprKind.CEILDIV:
            return quotient.ceil()
        return quotient.floor() if e.kind is ExprKind.FLOORDIV else a.sub(b.mul(quotient.floor()))

    def _variable(self, m: IndexingMap, number: int) -> Any:
        bounds = m.variables[number].bounds
        if bounds.is_point:
            return self._constant(m, bounds.lower)
        along = self.isl.Aff.var_on_domain(self._local_space(m), self.isl.dim_type.set, number)
        return self.isl.PwAff.from_aff(along)

    def _constant(self, m: IndexingMap, value: int) -> Any:
        return self.isl.PwAff.from_aff(self.isl.Aff.val_on_domain(self._local_space(m), self._value(value)))

    def _value(self, value: int) -> Any:
        return self.isl.Val.read_from_str(self.context, str(value))

    def _local_space(self, m: IndexingMap) -> Any:
        return self.isl.LocalSpace.from_space(self._space(len(m.variables)))

    def _space(self, rank: int) -> Any:
        return self.isl.Space.set_alloc(self.context, 0, rank)
