"""HLO's elementwise ops on f32 and f64 that have one correctly rounded value on every machine, as rows of `program.steps.Recurrence`.

multiply(n0, n1) of f32      n2 = float.multiply n0, n1          NumPy's scalars, which keep their type
constant(0.5) of f32         n0 = float.f32 1056964608           from its bits: an extent is an integer
compare(n0, n1)              as of integers; NaN is unequal to all numbers

Not here: functions whose last bit differs between libraries (exp, power ...), divisions of f32, for which GPUs have `div.full`, conversions
to integers, types that a machine computes in a wider one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from xla_emitters.program.integer_forms import Compute
    from xla_emitters.program.steps import Extent

FLOATS: Mapping[str, tuple[type[np.floating[Any]], type[np.integer[Any]]]] = {
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
"""HLO's name -> the type of the element, and of its bits."""
_FROM = frozenset(("pred", "s8", "s16", "s32", "u8", "u16", "u32", *FLOATS))
"""The types whose elements are converted with one rounding."""


def _of_bits(kind: str) -> Callable[[int], np.floating[Any]]:
    element, bits = FLOATS[kind]
    return lambda held: bits(held).view(element)


_PLAIN: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": np.negative,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
}
FLOAT_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{f"float.{name}": function for name, function in _PLAIN.items()},
    **{f"float.{kind}": _of_bits(kind) for kind in FLOATS},
    **{f"float.to.{kind}": element for kind, (element, _) in FLOATS.items()},
}
"""The rows by name. Overflow, division by zero and invalid operations give infinities and NaN, with warnings that the caller turns off."""


def constant(value: Any, kind: str, compute: Compute) -> Extent:
    """A constant of the type `kind`."""
    element, bits = FLOATS[kind]
    return compute(f"float.{kind}", (int(element(value).view(bits)),))


def computed_float(
    opcode: str, types: Sequence[str], result: str, operands: Sequence[Extent], compute: Compute
) -> Extent | None:
    """The value of an elementwise op with a float among its operands or as its result, `compare` excepted; None for an op without a row.

    types    HLO's names of the operands' types; result: of the result's
    compute  makes the row
    """
    if opcode == "select":
        return compute("select", operands)
    if opcode == "convert":
        return compute(f"float.to.{result}", operands) if result in FLOATS and types[0] in _FROM else None
    if opcode == "divide" and result == "f32":
        return None
    if opcode == "clamp":
        least, value, most = operands
        return compute("float.minimum", (compute("float.maximum", (value, least)), most))
    return compute(f"float.{opcode}", operands) if opcode in _PLAIN else None
