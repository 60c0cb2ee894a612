"""Conversion of the comparisons of programs that check themselves: custom calls, and ops of StableHLO's dialect `check`.

    stablehlo.custom_call @check.expect_close(%0, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
    check.expect_almost_eq %0, %1, tolerance = 0.1 : tensor<2xf32>
    check.expect_eq_const %0, dense<[1, 2]> : tensor<2xi32>

All become custom calls of `check.expect_*`, whose configuration has the numbers and the names of the two values.
Source: StableHLO, docs/reference.md.
"""

from __future__ import annotations

import json
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, is_array, same_dims, tuple_type
from xla_emitters.text.stablehlo.attributes import Literal
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.rules import Results, constant, custom_call_target

KINDS = ("check.expect_eq", "check.expect_almost_eq", "check.expect_close")
NUMBERS = ("tolerance", "min_ulp_difference", "max_ulp_difference")
NAMES = ("found", "wanted")
"""The fields with the names of the two values."""


def _expect(c: Conversion, target: str) -> Results:
    names = [f"%{value.name}" for value in c.op.operands]
    operands = c.operands
    if "value" in c.attributes:
        (found,) = c.expect_operands(1)
        literal = c.attributes.get("value", Literal, "a literal such as dense<0> : tensor<2xi32>")
        ir_type = array_type(literal.element.ir_type, literal.array.shape)
        operands, names = [found, constant(c, literal.array, ir_type)], [*names, "the literal"]
    if len(operands) != 2 or c.types:
        raise c.wrong(f"'{target}' compares two values and gives none")
    found, wanted = operands
    if not (is_array(found.type) and is_array(wanted.type)):
        raise c.wrong(f"'{target}' compares arrays")
    if element_of(found) != element_of(wanted) or not same_dims(dims_of(found), dims_of(wanted)):
        raise c.wrong(f"'{target}' compares values of one type")
    config = dict(zip(NAMES, names, strict=True)) | _config(c)
    call = c.add(
        "custom-call",
        operands,
        tuple_type([]),
        custom_call_target=StringAttr(json.dumps(target.removesuffix("_const"))),
        custom_call_has_side_effect=IntegerAttr(1, i1),
    )
    owner = call.owner
    assert isinstance(owner, Operation)
    owner.attributes["backend_config"] = StringAttr(json.dumps(json.dumps(config)))
    return []


def _config(c: Conversion) -> dict[str, Any]:
    """The numbers of a comparison: attributes, or fields of the configuration, as attributes or JSON."""
    found = dict[str, Any]()
    for name in ("backend_config", "mhlo.backend_config"):
        if name not in c.attributes:
            continue
        value: Any = c.attributes.get(name, object, "values by name")
        try:
            value = json.loads(value or "{}") if isinstance(value, str) else value
        except ValueError:
            pass
        if not isinstance(value, dict):
            raise c.attributes.wrong(name, "values by name, or JSON")
        found |= cast("dict[str, Any]", value)
    kept: dict[str, Any] = {name: found[name] for name in (*NUMBERS, *NAMES) if name in found}
    for name in NUMBERS:
        if name in c.attributes:
            kept[name] = c.attributes.number(name)
    if any(isinstance(kept.get(name, 0), bool) or not isinstance(kept.get(name, 0), int | float) for name in NUMBERS):
        raise c.wrong(f"{', '.join(NUMBERS)} of '{c.op.name}' are numbers")
    return kept


CHECK_TARGETS: dict[str, Rule] = dict.fromkeys(KINDS, lambda c: _expect(c, custom_call_target(c)))
CHECK_RULES: dict[str, Rule] = {
    name: lambda c: _expect(c, c.op.name)
    for kind in KINDS
    for name in (kind, f"{kind}_const")
    if name != "check.expect_close_const"
}
