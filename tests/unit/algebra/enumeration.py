"""Small maps evaluated point by point: the expected values for the tests of maps and of the prover."""

import itertools
import math

import numpy as np

from xla_emitters.algebra.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, make


def combined(lefts, rights, divisors):
    """Every expression of one operator over these operands, each once, in order."""
    found = [make(kind, a, b) for kind in (ADD, MUL, MAX, MIN) for a in lefts for b in rights]
    found += [make(kind, a, b) for kind in (MOD, FLOORDIV, CEILDIV) for a in lefts for b in divisors]
    return list(dict.fromkeys(found))


def box_of(m):
    """(dims, symbols) as arrays over all points of the box of the variables' bounds."""
    lowest = [v.bounds.lower for v in m.variables]
    axes = np.indices([v.bounds.trip_count for v in m.variables])
    values = [axis.ravel() + low for axis, low in zip(axes, lowest, strict=True)]
    return values[: m.num_dims], values[m.num_dims :]


def answers(m):
    """{point of the domain: results}."""
    if m.is_known_empty:
        return {}
    dims, symbols = box_of(m)
    count = math.prod(v.bounds.trip_count for v in m.variables)
    inside = np.broadcast_to(m.constraints_satisfied(dims, symbols), count)
    results = [np.broadcast_to(result, count)[inside].tolist() for result in m.evaluate(dims, symbols)]
    points = np.array([*dims, *symbols]).reshape(len(m.variables), count)[:, inside].T.tolist()
    tuples = zip(*results, strict=True) if results else itertools.repeat(())
    return {(tuple(p[: m.num_dims]), tuple(p[m.num_dims :])): r for p, r in zip(points, tuples)}  # noqa: B905


def is_same_function(m, other):
    """`other`, over no larger a box, has the domain of m and its results there; `answers` would say so ten times as slowly."""
    if m.is_known_empty:
        return other.is_known_empty
    if not all(v.bounds.contains(w.bounds) for v, w in zip(m.variables, other.variables, strict=True)):
        return False
    dims, symbols = box_of(m)
    count = math.prod(v.bounds.trip_count for v in m.variables)
    inside = np.broadcast_to(m.constraints_satisfied(dims, symbols), count)
    inside_other = np.broadcast_to(other.constraints_satisfied(dims, symbols), count)
    for values, v in zip([*dims, *symbols], other.variables, strict=True):
        inside_other = inside_other & (values >= v.bounds.lower) & (values <= v.bounds.upper)
    return np.array_equal(inside, inside_other) and all(
        np.array_equal(np.broadcast_to(a, count)[inside], np.broadcast_to(b, count)[inside])
        for a, b in zip(m.evaluate(dims, symbols), other.evaluate(dims, symbols), strict=True)
    )
