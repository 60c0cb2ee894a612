"""Simpler forms of `xla_gpu.apply_indexing` and `xla_gpu.loop`.

    %0 = apply_indexing (d0)[s0] -> (d0 * 4 + s0) (%tid)[%v]        symbols become dims, unused variables are dropped, the map simplified,
    %1 = apply_indexing (d0) -> (d0 + 512) (%0)                     constants and the maps of operands are composed into it, and results
                                                                    that are an operand or a constant are replaced by it
    %1 = apply_indexing (d0, s0) -> (d0 * 4 + s0 + 512) (%tid, %v)

The ops are in `loops.py`; this file has the rewrites of a map and its operands that both share.

Each rewrite replaces a map and its operands by another map that computes the same. They are repeated until none applies, and then the op is
replaced once. This terminates: each rewrite removes symbols, variables or chains of apply_indexing, or simplifies the map.

A loop checks its domain at run time; apply_indexing assumes it. So where a loop's dim is replaced by an expression, the dim's bounds become
a constraint on the expression, and an unused dim is dropped only if its operand is proved to be in the bounds.
Source: docs/reference/1 1.5 "Canonicalization patterns"; where it marks an upstream defect, this keeps the constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.quick_op import PlainMeta, number_of, op_of
from xla_emitters.dialects.ranges import constant_of, range_of_value
from xla_emitters.support.late_dataclass import dataclass


class AppliesMap(Operation, ABC, metaclass=PlainMeta):
    """Interface of an op whose operands are the variables of an indexing map and whose results are the map's."""

    @property
    @abstractmethod
    def map(self) -> IndexingMap: ...


@dataclass(frozen=True)
class Application:
    """A map with the values of its variables: dims, then symbols."""

    map: IndexingMap
    operands: tuple[SSAValue, ...]


# ---- rewrites of an application: each gives a simpler one that computes the same, or None -----------------------------------------------


def _symbols_to_dims(it: Application) -> Application | None:
    return replace(it, map=it.map.symbols_to_dims()) if it.map.num_symbols else None


def _simplify(it: Application) -> Application | None:
    simplified = it.map.simplify()
    return None if simplified is it.map else replace(it, map=simplified)


def without_unused_vars(it: Application) -> Application | None:
    smaller, removed = it.map.remove_unused_vars()
    if smaller is it.map:
        return None
    return Application(smaller, tuple(v for v, gone in zip(it.operands, removed, strict=True) if not gone))


def _merge_repeated_operands(it: Application) -> Application | None:
    """One dim for each value."""
    if len(set(it.operands)) == len(it.operands):
        return None
    kept = list(dict.fromkeys(it.operands))
    replacements = [Expr.variable(kept.index(operand)) for operand in it.operands]
    dims = [it.map.dims[it.operands.index(operand)] for operand in kept]
    return Application(it.map.with_variables_replaced(replacements, dims=dims), tuple(kept))


def _fold_constants(it: Application) -> Application | None:
    values = {n: value for n, operand in enumerate(it.operands) if (value := constant_of(operand)) is not None}
    if not values:
        return None
    kept = tuple(operand for n, operand in enumerate(it.operands) if n not in values)
    return Application(it.map.with_dims_fixed(values), kept)


def _fold_producers(it: Application) -> Application | None:
    """Puts the maps of operands that are themselves results of maps into this one.

    Only if the producers then have no use left, or if the combined map can be simplified.
    """
    folded, producers = _with_producers(it, it.operands)
    if folded is None:
        return None
    if _have_one_use(it, producers):
        return folded
    return None if folded.map.simplify() is folded.map else folded


@dataclass(frozen=True)
class Producer:
    """An operand that is a result of another map: the number of its dim, that map, which result, and the dims of that map's operands."""

    dim: int
    map: IndexingMap
    result: int
    operands: tuple[int, ...]

    @property
    def expression(self) -> Expr:
        """The dim's expression over the dims of the application."""
        return self.map.results[self.result].substitute([Expr.variable(number) for number in self.operands])


def _with_producers(it: Application, dims: Sequence[SSAValue]) -> tuple[Application | None, list[Producer]]:
    """`it` with the values of `dims` that are results of apply_indexing ops without symbols replaced by these ops' expressions.

    dims     the operands of the map's dims
    returns  the application over the producers' operands, None if there are no such producers; and the producers folded. A producer's
             operand that is an operand already shares its dim; the others become dims at the end, with the producer's bounds. Replaced
             dims stay, unused.
    """
    operands: list[SSAValue] | None = None
    producers: list[Producer] = []
    for number, operand in enumerate(dims):
        if not isinstance(producer := op_of(operand), AppliesMap):
            continue
        if (theirs := producer.map).num_symbols:
            continue
        if operands is None:
            operands = list(dims)
        places: list[int] = []
        for value in producer.operands:
            if value not in operands:
                operands.append(value)
            places.append(operands.index(value))
        producers.append(Producer(number, theirs, number_of(operand), tuple(places)))
    if operands is None:
        return None, []
    combined = _composed(it.map, it.map.names, tuple(producers), tuple(each.map.names for each in producers))
    return Application(combined, (*operands, *it.operands[len(dims) :])), producers


def _have_one_use(it: Application, producers: Sequence[Producer]) -> bool:
    return all(it.operands[producer.dim].has_one_use() for producer in producers)


@lru_cache(4096)
def _composed(
    indexing_map: IndexingMap,
    names: tuple[str, ...],
    producers: tuple[Producer, ...],
    theirs: tuple[tuple[str, ...], ...],
) -> IndexingMap:
    """The map of `_with_producers`; cached, because the users of one producer request the same one.

    names, theirs   the names in the maps: equal maps may have different names, and the result has those of its arguments
    """
    variables = list(indexing_map.dims)
    for producer in producers:
        for place, variable in zip(producer.operands, producer.map.dims, strict=True):
            if place == len(variables):
                variables.append(variable)
    replacements = [Expr.variable(number) for number in range(indexing_map.num_dims)]
    for producer in producers:
        replacements[producer.dim] = producer.expression
    replacements += [Expr.variable(len(variables) + symbol) for symbol in range(indexing_map.num_symbols)]
    return indexing_map.with_variables_replaced(replacements, dims=variables, range_vars=indexing_map.range_vars)


_REWRITES: tuple[Callable[[Application], Application | None], ...] = (
    _symbols_to_dims,
    _merge_repeated_operands,
    _fold_constants,
    _simplify,
    without_unused_vars,
    _fold_producers,
)


def simplest(it: Application) -> Application:
    """`it` after all rewrites, until none applies."""
    tried = iter(_REWRITES)
    while (rewrite := next(tried, None)) is not None:
        if (simpler := rewrite(it)) is not None:
            it, tried = simpler, iter(_REWRITES)
    return it


def is_simplest(values: Sequence[SSAValue], indexing_map: IndexingMap) -> bool:
    """Whether no rewrite applies and no result is a variable or a constant."""
    if len(set(values)) < len(values) or not _is_simplest_map(indexing_map):
        return False
    has_producers = False
    for value in values:
        op = op_of(value)
        if isinstance(op, arith.ConstantOp):
            return False
        has_producers |= isinstance(op, AppliesMap)
    return not has_producers or _fold_producers(Application(indexing_map, tuple(values))) is None


@lru_cache(4096)
def _is_simplest_map(indexing_map: IndexingMap) -> bool:
    return (
        not indexing_map.num_symbols
        and indexing_map.simplify() is indexing_map
        and indexing_map.remove_unused_vars()[0] is indexing_map
        and not any(result.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT) for result in indexing_map.results)
    )


# ---- loops: their domain is a check ------------------------------------------------------------------------------------------------------


def simplest_loop(it: Application) -> Application:
    """`it` without constant dims, dims computed by apply_indexing, and dims that neither the results nor the domain need."""
    while (simpler := _loop_with_constants(it) or _loop_with_producers(it)) is not None:
        it = simpler
    return it


def _loop_with_constants(it: Application) -> Application | None:
    """Replaces constant dims by their values if these are in the dims' bounds. Otherwise the loop does not run, and the dim stays."""
    values = {
        number: known.lower
        for number, (operand, dim) in enumerate(zip(it.operands, it.map.dims, strict=True))
        if (known := range_of_value(operand)) is not None and known.is_point and dim.bounds.contains(known.lower)
    }
    if not values:
        return None
    kept = tuple(operand for number, operand in enumerate(it.operands) if number not in values)
    return Application(it.map.with_dims_fixed(values).simplify(), kept)


def _loop_with_producers(it: Application) -> Application | None:
    folded, producers = _with_producers(it, it.operands[: it.map.num_dims])
    if folded is None:
        return None
    # The bounds of each replaced dim now apply to its expression.
    checks = tuple((each.expression, it.map.dims[each.dim].bounds) for each in producers)
    checked = replace(folded.map, constraints=folded.map.parts.constraints + checks)
    simplified = checked.simplify()
    if simplified.results == checked.results and not _have_one_use(it, producers):
        return None
    return _without_idle_dims(Application(simplified, folded.operands), frozenset(each.dim for each in producers))


def _without_idle_dims(it: Application, replaced: frozenset[int]) -> Application:
    """Without unused dims: those replaced, and those whose operand is proved to be in the bounds."""
    if it.map.is_known_empty:
        return it
    mentioned = frozenset[int]().union(
        *(result.variables() for result in it.map.results), *(e.variables() for e, _ in it.map.constraints)
    )
    kept = [
        number
        for number, (operand, dim) in enumerate(zip(it.operands, it.map.dims, strict=True))
        if number in mentioned or not (number in replaced or _is_inside(operand, dim.bounds))
    ]
    position = {number: index for index, number in enumerate(kept)}
    nowhere = Expr.constant(0)
    replacements = [
        Expr.variable(position[number]) if number in position else nowhere for number in range(it.map.num_dims)
    ] + [Expr.variable(len(kept) + symbol) for symbol in range(it.map.num_symbols)]
    dims: list[Variable] = [it.map.dims[number] for number in kept]
    smaller = it.map.with_variables_replaced(replacements, dims=dims, range_vars=it.map.range_vars)
    return Application(smaller, tuple(it.operands[number] for number in kept))


def _is_inside(value: SSAValue, bounds: Interval) -> bool:
    known = range_of_value(value)
    return known is not None and bounds.contains(known)
