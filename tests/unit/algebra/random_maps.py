"""Random small maps: what the tests of maps and of the prover share."""

import itertools

from hypothesis import strategies as st

from xla_emitters.algebra.expression import ADD, CEILDIV, FLOORDIV, MAX, MIN, MOD, MUL, Expr, make
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap

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
