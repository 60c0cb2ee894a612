"""The bytes that a fusion must move: each element that its results need, once, and each result, once.

    bf16[6,512,4096] parameter of GELU, (d0, d1, d2) -> (d0, d1, d2)        every element: 25,165,824 bytes
    f32[4096] bias, (d0, d1) -> (d1), d0 in [0, 63]                        4,096 elements, although 262,144 points need them
    a slice, (d0) -> (d0 * 2), d0 in [0, 9]                                10 elements

The elements are the image of the indexing maps from the results to the parameter. Results of a map that have no variable in common are
counted separately and multiplied. Up to MOST_POINTS points are enumerated by NumPy; a linear result without gaps is counted by its range.
Otherwise the count is an upper bound, and also if the map depends on data, as a gather's does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xla_emitters.algebra.expression import Expr, ExprKind, bits_of, evaluate_all, linear_terms, mask_of
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.dtypes import Array
from xla_emitters.graph.indexing_analysis import Indexing, Indexings, indexing_of_operands
from xla_emitters.graph.view import FusionView

MOST_POINTS = 1 << 21


@dataclass(frozen=True)
class NeededElements:
    """The elements of one array that a fusion needs.

    exact  False if the number is an upper bound
    """

    elements: int
    exact: bool


def needed_of_parameters(view: FusionView) -> tuple[NeededElements | None, ...]:
    """For each parameter of the fusion, the elements that its results need; None if a map on the path is unknown."""
    found = [indexing_of_operands(view, root) for root in view.roots]
    asked = ([of_root.get(parameter.result, ()) for of_root in found] for parameter in view.parameters)
    return tuple(
        _needed(dims_of(parameter.result), indexings)
        for parameter, indexings in zip(view.parameters, asked, strict=True)
    )


def _needed(shape: Sequence[int], found: Sequence[Indexings | None]) -> NeededElements | None:
    """found  for each root of the fusion, the maps from its result to the parameter; () if it needs none of its elements"""
    known = [indexings for indexings in found if indexings is not None]
    return needed(shape, [indexing for each in known for indexing in each]) if len(known) == len(found) else None


def needed(shape: Sequence[int], indexings: Sequence[Indexing]) -> NeededElements:
    """The elements of an array of `shape` that are in the image of at least one of the maps.

    >>> m = IndexingMap.parse("(d0, d1) -> (d1), domain: d0 in [0, 63], d1 in [0, 9]")
    >>> needed([20], [Indexing(m)])
    NeededElements(elements=10, exact=True)
    """
    total = math.prod(shape)
    by_data = [any(mask_of(origin.map.results) for origin in indexing.origins) for indexing in indexings]
    maps = [indexing.map.with_runtime_vars_fixed() for indexing in indexings]
    if not any(by_data) and sum(map(_points, maps)) <= MOST_POINTS:
        touched = np.zeros(total, np.bool_)
        for each in maps:
            touched[_flat(each, shape)] = True
        return NeededElements(int(touched.sum()), True)
    # If data decides the index, each point may need another element.
    images = [
        NeededElements(_points(each), False) if anywhere else _image(each, shape)
        for each, anywhere in zip(maps, by_data, strict=True)
    ]
    is_exact = (len(images) == 1 and images[0].exact) or any(
        image.exact and image.elements == total for image in images
    )
    return NeededElements(min(total, sum(image.elements for image in images)), is_exact)


def _points(of: IndexingMap) -> int:
    """Number of points in the box of the map's variables; constraints are ignored."""
    return 0 if of.is_known_empty else math.prod(v.bounds.trip_count for v in of.variables)


def _image(of: IndexingMap, shape: Sequence[int]) -> NeededElements:
    """The number of elements in the image, as a product over groups of results of the map without a variable in common."""
    if of.is_known_empty:
        return NeededElements(0, True)
    elements, exact = 1, True
    for mask, results in _groups(of):
        variables = [of.variables[number] for number in bits_of(mask)]
        points = math.prod(v.bounds.trip_count for v in variables)
        if points <= MOST_POINTS:
            values = _values(of, mask)
            keys, holds = np.zeros(points, np.int64), _holds(of, values, points, mask)
            for number, result in zip(results, evaluate_all([of.results[n] for n in results], values), strict=True):
                holds &= (result >= 0) & (result < shape[number])
                keys = keys * shape[number] + result
            touched = np.zeros(math.prod(shape[number] for number in results), np.bool_)
            touched[keys[holds]] = True
            elements *= int(touched.sum())
        else:
            ranges = [of.result_range(number).intersect(Interval(0, shape[number] - 1)) for number in results]
            elements *= min(points, math.prod(r.trip_count for r in ranges))
            is_interval = len(results) == 1 and not of.constraints and _has_no_gaps(of, of.results[results[0]])
            exact = exact and is_interval
    return NeededElements(elements, exact)


def _groups(of: IndexingMap) -> list[tuple[int, list[int]]]:
    """Results that have variables in common, directly or through constraints: (mask of their variables, numbers of the results)."""
    masks = [(mask_of([result]), [number]) for number, result in enumerate(of.results)]
    masks += [(mask_of([expression]), []) for expression, _ in of.constraints]
    groups: list[tuple[int, list[int]]] = []
    for mask, numbers in masks:
        joined = [group for group in groups if group[0] & mask]
        groups = [group for group in groups if not group[0] & mask]
        for other, others in joined:
            mask, numbers = mask | other, others + numbers
        groups.append((mask, numbers))
    return [group for group in groups if group[1] and group[0]]


def _has_no_gaps(of: IndexingMap, result: Expr) -> bool:
    """Whether a linear expression takes every value of its range: 512 * b + 4 * t + v, t in [0, 127], v in [0, 3]."""
    terms, _ = linear_terms(result)
    covered = 1
    for term, factor in sorted(terms.items(), key=lambda each: abs(each[1])):
        if term.kind is not ExprKind.VARIABLE or abs(factor) > covered:
            return False
        bounds = of.variables[term.value].bounds
        covered += abs(factor) * (bounds.upper - bounds.lower)
    return True


def _holds(of: IndexingMap, values: Sequence[Array], points: int, mask: int = -1) -> Array:
    """For each point, whether the constraints hold that have a variable in `mask`."""
    holds = np.ones(points, np.bool_)
    for expression, bounds in of.constraints:
        if mask_of([expression]) & mask:
            (value,) = evaluate_all([expression], values)
            holds &= (value >= bounds.lower) & (value <= bounds.upper)
    return holds


def _values(of: IndexingMap, mask: int) -> list[Array]:
    """A value of each variable for every point of the box of the variables in `mask`; the others are 0."""
    numbers = list(bits_of(mask))
    ranges = [np.arange(of.variables[n].bounds.lower, of.variables[n].bounds.upper + 1) for n in numbers]
    grid = dict(zip(numbers, (axis.reshape(-1) for axis in np.meshgrid(*ranges, indexing="ij")), strict=True))
    return [grid.get(number, np.zeros(1, np.int64)) for number in range(len(of.variables))]


def _flat(of: IndexingMap, shape: Sequence[int]) -> Array:
    """The row-major numbers of all elements in the image, with repetitions."""
    if of.is_known_empty:
        return np.zeros(0, np.int64)
    values = _values(of, (1 << len(of.variables)) - 1) or [np.zeros(1, np.int64)]
    points = max(_points(of), 1)
    flat, holds = np.zeros(points, np.int64), _holds(of, values, points)
    for extent, result in zip(shape, evaluate_all(of.results, values), strict=True):
        # With a runtime variable at the middle of its range, an index may be outside a smaller window.
        holds &= (result >= 0) & (result < extent)
        flat = flat * extent + result
    return flat[holds]
