"""HLO's elementwise ops on integers, as rows of `program.steps.FUNCTIONS`.

clamp(n0, n1, n2) of s32     n3 = maximum n1, n0;  n4 = minimum n3, n2
add(n0, n1) of s8            n2 = add.s8 n0, n1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xla_emitters.program.steps import INTEGERS, Extent

PRED = "pred"
Compute: TypeAlias = Callable[[str, Sequence[Extent]], Extent]
"""(row of `program.steps.FUNCTIONS`, operands) -> the number"""
Form: TypeAlias = Callable[[Compute, str, str, Sequence[Extent]], Extent]
"""(compute, the first operand's type, the result's, operands) -> the element"""


def _plain(name: str) -> Form:
    return lambda compute, _, __, row: compute(name, row)


def _wrapping(name: str) -> Form:
    return lambda compute, _, result, row: compute(f"{name}.{result}", row)


def _clamp(compute: Compute, _: str, __: str, row: Sequence[Extent]) -> Extent:
    least, value, most = row
    return compute("minimum", (compute("maximum", (value, least)), most))


def _convert(compute: Compute, source: str, result: str, row: Sequence[Extent]) -> Extent:
    if result == PRED:
        return row[0] if source == PRED else compute("ne", (row[0], 0))
    return row[0] if source in (PRED, result) else compute(f"copy.{result}", row)


def _not(compute: Compute, _: str, result: str, row: Sequence[Extent]) -> Extent:
    if result == PRED:
        return compute("eq", (row[0], 0))
    bits, least = INTEGERS[result]
    return compute("subtract", ((1 << bits) - 1 if least == 0 else -1, row[0]))


def _negate(compute: Compute, _: str, result: str, row: Sequence[Extent]) -> Extent:
    return compute(f"subtract.{result}", (0, row[0]))


_FORMS: Mapping[str, Form] = {
    "add": _wrapping("add"),
    "and": _plain("and"),
    "clamp": _clamp,
    "convert": _convert,
    "maximum": _plain("maximum"),
    "minimum": _plain("minimum"),
    "multiply": _wrapping("multiply"),
    "negate": _negate,
    "not": _not,
    "or": _plain("or"),
    "select": _plain("select"),
    "subtract": _wrapping("subtract"),
    "xor": _plain("xor"),
}
"""Opcode -> its value on integers. Ops that divide or shift have rules of their own for zero and large operands: they have no form."""


def computed(
    opcode: str, types: Sequence[str], result: str, operands: Sequence[Extent], compute: Compute
) -> Extent | None:
    """The value of an elementwise op on integers and truth values, `compare` excepted; None for an op that has no form.

    types    HLO's names of the operands' types; result: of the result's
    compute  makes the row
    """
    form = _FORMS.get(opcode)
    if form is None or (PRED in types and opcode in ("add", "subtract", "multiply", "negate")):
        return None
    return form(compute, types[0], result, operands)
