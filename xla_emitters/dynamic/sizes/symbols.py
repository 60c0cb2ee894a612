"""Names of symbols: from JAX's text if possible, else d0, d1 ...

    p0: f32[?,?]    'b' = {0} from specification '2*b' for dimension args[0].shape[0] (= {1})       axis 0 is 2*b
                    the argument "s" of a function is get_dimension_size(p0, 1) - 1                  axis 1 is s + 1

The first walk of a program has a symbol for each open axis of a parameter. The text then gives names for some sizes: `size == name`.
If this equation can be solved for one axis's symbol, the axis is expressed by the name from then on.
Source: behaviour of jax.export 0.10.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xla_emitters.algebra.expression import FLOORDIV
from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.dynamic.sizes.walk import Assertion
from xla_emitters.errors import VerifyError

_OBTAINED = re.compile(r"'([A-Za-z_]\w*)' = \{(\d+)\} from specification")


def names_in(assertions: Iterable[Assertion]) -> list[tuple[str, Size]]:
    """(name, size) of the dimension variables in the messages of assertions."""
    found: dict[str, Size] = {}
    for assertion in assertions:
        for name, number in _OBTAINED.findall(assertion.op.message.data):
            shown = assertion.shown
            if int(number) < len(shown) and (size := shown[int(number)]) is not None:
                found.setdefault(name, size)
    return list(found.items())


def renaming(axes: Sequence[Size], named: Iterable[tuple[str, Size]], facts: Facts) -> dict[str, Size]:
    """The symbols of axes in terms of the final names.

    axes    the symbols of the open axes, in argument order
    named   (name, size) pairs from the text
    facts   known facts about the axes
    """
    found: dict[str, Size] = {}
    names = set[str]()
    for name, size in named:
        solved = _solved(facts.simplify(size).substitute(found), name, {str(axis) for axis in axes} - set(found))
        if solved is not None and name not in names:
            names.add(name)
            found[solved[0]] = solved[1]
    number = 0
    for axis in axes:
        simple = facts.simplify(axis)
        for symbol in sorted(simple.symbols - set(found)):
            while f"d{number}" in names:
                number += 1
            found[symbol] = Size.symbol(f"d{number}")
            number += 1
    return found


def _solved(size: Size, name: str, unknown: set[str]) -> tuple[str, Size] | None:
    """(symbol, its value) if `size == name` can be solved for one of the unknown symbols as k*name + rest; else None."""
    try:
        value = Size.symbol(name)
    except VerifyError:
        return None
    if size.kind is FLOORDIV:
        size, divisor = size.operands  # exact: the text asserts that the remainder is 0
        value = value * divisor
    symbols = size.symbols & unknown
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    rest = size - Size.symbol(symbol)
    return None if symbol in rest.symbols else (symbol, value - rest)
