"""Sizes as values: the known facts about a program's dimensions before it runs.

    b, s = Size.symbol("b"), Size.symbol("s")
    facts = Facts.of_symbols(("b", "s"), 1, "jax.export")
    facts.simplify((b * s + s) // s)   ->   b + 1

Plain values: nothing here knows the compiler's IR, or arrays; `sizes` finds these values for a program in the `hlo` dialect.
    size     polynomials over symbols in normal form      text     jax.export's notation: parser and printer
    bounds   intervals and remainders                     facts    equalities, limits, divisors, and their consequences
    axes     which axes have the same size                guards   conditions that a run checks
    solve    from shapes of arguments to symbols
"""

from xla_emitters.shapes.axes import Axes
from xla_emitters.shapes.bounds import Bounds
from xla_emitters.shapes.facts import Fact, Facts, Relation
from xla_emitters.shapes.guards import Guard, needed
from xla_emitters.shapes.size import Size, TooLarge, ceildiv, floordiv, maximum, minimum, mod
from xla_emitters.shapes.size_text import parse_shape, parse_size, print_shape
from xla_emitters.shapes.solve import Parameter, Plan, plan

__all__ = [
    "Axes",
    "Bounds",
    "Fact",
    "Facts",
    "Guard",
    "Parameter",
    "Plan",
    "Relation",
    "Size",
    "TooLarge",
    "ceildiv",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "needed",
    "parse_shape",
    "parse_size",
    "plan",
    "print_shape",
]
