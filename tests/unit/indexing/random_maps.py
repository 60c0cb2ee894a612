"""Random small maps, and their answers by enumeration: what the tests of maps and of the prover share."""

import itertools
import math

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from xla_emitters.indexing import Expr, IndexingMap, Interval, Variable
from xla_emitters.indexing.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, make

KINDS = (ADD, ADD, ADD, MUL, MOD, FLOORDIV, CEILDIV, MIN, MAX)
CONSTANTS = (1, -1, 2, 3, 4, -3, -4, 6, 8, -8, 12, -12, 24)
BYTES = 60  # what one map takes, about


class Tape:
    """Choices read from bytes, the first option once they run out.

    Hypothesis draws one byte string and shrinks that; drawing each choice by itself takes ten times as long as what is tested.
    """

    def __init__(self, data):
        self.bytes = iter(data)

    def choose(self, options):
        return options[next(self.bytes, 0) % len(options)]

    def expression(self, variables, depth=3):
        """Over variables 0 .. variables - 1; only constants divide."""
        if depth == 0 or self.choose(range(5)) == 0:
            is_variable = variables and self.choose(range(4)) < 3
            return (
                Expr.variable(self.choose(range(variables))) if is_variable else Expr.constant(self.choose(CONSTANTS))
            )
        kind = self.choose(KINDS)
        lhs = self.expression(variables, depth - 1)
        is_general = kind in (ADD, MIN, MAX)
        return make(
            kind, lhs, self.expression(variables, depth - 1) if is_general else Expr.constant(self.choose(CONSTANTS))
        )

    def variable(self):
        lower = self.choose((0, 0, 0, -3, 5))
        return Variable(Interval(lower, lower + self.choose((0, 1, 2, 3, 5, 7))))

    def constraint(self, variables):
        """An arbitrary one, or one of the shapes that emission makes: x * k + y + c in [..], x mod k in [..]."""
        if self.choose((False, True)):
            x, y = (Expr.variable(self.choose(range(variables))) for _ in range(2))
            e = x * self.choose((4, 8, 3, -2)) + y * self.choose((1, 1, -1, 2)) + self.choose((0, 0, 1, -7))
        else:
            e = self.expression(variables, 2)
        if self.choose((False, False, True)):
            e = make(MOD, e, Expr.constant(self.choose((2, 3, 4))))
        lower = self.choose((0, 0, 0, -5, 1, 3))
        return e, Interval(lower, lower + self.choose((0, 1, 4, 9, 15, 31)))

    def map(self, dims=(1, 2), results=2, constraints=2):
        """A map of up to four variables with small bounds and up to `constraints` constraints."""
        counts = (self.choose(dims), self.choose(range(2)), self.choose(range(2)))
        variables = [tuple(self.variable() for _ in range(count)) for count in counts]
        expressions = tuple(self.expression(sum(counts)) for _ in range(results))
        limits = tuple(self.constraint(sum(counts)) for _ in range(self.choose(range(constraints + 1))))
        return IndexingMap(expressions, *variables, constraints=limits)


def batches(count, *shapes):
    """Lists of `count` random maps, or of tuples with a map for each of several `shapes` (arguments of `Tape.map`).

    An example costs hypothesis more than a map costs us, so one example is many maps.
    """

    def drawn(data):
        starts = range(0, len(data), BYTES)
        tapes = [Tape(data[start : start + BYTES]) for start in starts]
        if not shapes:
            return [tape.map() for tape in tapes]
        made = [tape.map(**shape) for tape, shape in zip(tapes, itertools.cycle(shapes))]
        return list(zip(*(made[first :: len(shapes)] for first in range(len(shapes))), strict=True))

    size = count * BYTES * max(len(shapes), 1)
    return st.binary(min_size=size, max_size=size).map(drawn)


def repeatable(examples):
    """Settings: the same examples every time, whatever the machine."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


# ---- Enumeration


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
