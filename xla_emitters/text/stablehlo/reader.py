"""StableHLO text to a verified module of the `hlo` dialect: the text becomes a tree, and the tree becomes computations.

    module = parse_stablehlo(text, "layer.mlir")

The text is one program. Its entry is the function that the caller names, or @main, or @tao_main (BladeDISC's name), or the only public
function that no other one calls; the entry's parameters are p0, p1 ...

Rules here: ops of MHLO that StableHLO lacks, and regions that only mark a part of a program ...

    "mhlo.copy"(%x)   "mhlo.domain"(%x)   mhlo.add_dependency %x, %token           %x
    "mhlo.topk"(%x) {k = 2 : i64, largest = true}                                  topk
    "mhlo.rng_uniform"(%low, %high, %shape)                                        rng distribution=rng_uniform
    "mhlo.bitcast"(%x) : (tensor<2x3xf32>) -> tensor<6xf32>                        reshape
    "mhlo.fusion"(%x) ({...})   sdy.named_computation<"f">(%x) (...) {...}         the ops of the region
    sdy.manual_computation(%x) ... (...) {...}                                     the same, where no array is cut

... and comparisons of programs that check themselves: they become custom calls of `check.expect_*`, whose configuration has
the numbers and the names of the two values:

    stablehlo.custom_call @check.expect_close(%0, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
    check.expect_almost_eq %0, %1, tolerance = 0.1 : tensor<2xf32>
    check.expect_eq_const %0, dense<[1, 2]> : tensor<2xi32>

Source: the ODS declarations of MLIR-HLO (mhlo_ops.td); Shardy's dialect (https://openxla.org/shardy/sdy_dialect); StableHLO,
docs/reference.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i1
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.types import array_type, dims_of, element_of, is_array, same_dims, tuple_type
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.chlo import CHLO_RULES, CHLO_TARGETS, top_k
from xla_emitters.text.stablehlo.chlo_scan import composite, scan
from xla_emitters.text.stablehlo.computations import Conversion, ModuleBuilder, Rule
from xla_emitters.text.stablehlo.mlir_rules import MLIR_RULES
from xla_emitters.text.stablehlo.region_rules import REGION_RULES
from xla_emitters.text.stablehlo.rules import (
    CALL_TARGETS,
    DATA_RULES,
    Results,
    call_function,
    custom_call,
    custom_call_target,
    pass_through,
    random_numbers,
    refused,
)
from xla_emitters.text.stablehlo.spellings import OWN, REGIONS
from xla_emitters.text.stablehlo.stablehlo_literals import Literal
from xla_emitters.text.stablehlo.stablehlo_parser import TreeParser
from xla_emitters.text.stablehlo.stablehlo_types import stablehlo_type

KINDS = ("check.expect_eq", "check.expect_almost_eq", "check.expect_close")
NUMBERS = ("tolerance", "min_ulp_difference", "max_ulp_difference")
NAMES = ("found", "wanted")
"""The fields with the names of the two values."""


def _custom_call(c: Conversion) -> Results:
    return _expect(c, custom_call_target(c))


def _op(c: Conversion) -> Results:
    return _expect(c, c.op.name)


def _expect(c: Conversion, target: str) -> Results:
    names = [f"%{value.name}" for value in c.op.operands]
    operands = c.operands
    if "value" in c.attributes:
        (found,) = c.expect_operands(1)
        literal = c.attributes.get("value", Literal, "a literal such as dense<0> : tensor<2xi32>")
        ir_type = array_type(literal.element.ir_type, literal.array.shape)
        operands, names = [found, c.constant(literal.array, ir_type)], [*names, "the literal"]
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


CHECK_TARGETS: dict[str, Rule] = dict.fromkeys(KINDS, _custom_call)
CHECK_RULES: dict[str, Rule] = {
    name: _op for kind in KINDS for name in (kind, f"{kind}_const") if name != "check.expect_close_const"
}


def _bitcast(c: Conversion) -> Results:
    """Row-major arrays of one element type: the same elements in another shape."""
    (x,) = c.expect_operands(1)
    if element_of(x) != element_of(c.type) or any("layout" in name for name in c.attributes.found):
        raise c.unsupported("'mhlo.bitcast' is taken without layouts, from and to one element type")
    return c.add("reshape", [x], c.type)


def _inlined(c: Conversion) -> Results:
    """The ops of the region, whose arguments are the operands."""
    (region,) = c.expect_regions(1)
    if [argument.type for argument in region.arguments] != [operand.type for operand in c.op.operands]:
        raise c.wrong(f"the arguments of the region of '{c.op.name}' have the types of its operands")
    c.body.values |= dict(zip(region.arguments, c.operands, strict=True))
    return c.body.ops(region)


def _manual_computation(c: Conversion) -> Results:
    """Each device computes the region with its part of the operands: with whole operands and results it is the program's."""
    (region,) = c.expect_regions(1)
    inside = [value.type for value in (*region.arguments, *region.returned.operands)]
    outside = [value.type for value in (*c.op.operands, *c.op.results)]
    if inside != outside:
        cut = next((pair for pair in zip(outside, inside, strict=False) if pair[0] != pair[1]), None)
        example = f": {stablehlo_type(cut[0])} is cut to {stablehlo_type(cut[1])}" if cut else ""
        raise c.unsupported(
            f"'{c.op.name}' is not taken: its region runs on each of several devices{example}",
            help="xla-emitters optimize FILE has XLA partition it, for all of them",
        )
    return _inlined(c)


_NOTHING: Sequence[SSAValue] = ()
MHLO_RULES: dict[str, Rule] = {
    **dict.fromkeys((f"mhlo.{name}" for name in OWN), refused("StableHLO has no such op")),
    **dict.fromkeys(REGIONS, _inlined),
    "sdy.manual_computation": _manual_computation,
    **dict.fromkeys(("mhlo.copy", "mhlo.domain", "sdy.sharding_constraint", "sdy.reshard"), pass_through),
    **dict.fromkeys(("sdy.propagation_barrier", "sdy.data_flow_edge"), pass_through),
    "sdy.sharding_group": lambda c: _NOTHING,
    "mhlo.add_dependency": lambda c: c.expect_operands(2)[0],
    "mhlo.bitcast": _bitcast,
    "mhlo.topk": top_k,
    "mhlo.rng_uniform": random_numbers("rng_uniform"),
    "mhlo.rng_normal": random_numbers("rng_normal"),
}


RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": rule for name, rule in (DATA_RULES | REGION_RULES).items()},
    **{f"chlo.{name}": rule for name, rule in CHLO_RULES.items()},
    "chlo.scan": scan,
    "stablehlo.composite": composite,
    **CHECK_RULES,
    "func.call": call_function,
    **MHLO_RULES,
    **MLIR_RULES,
    "stablehlo.custom_call": custom_call(CALL_TARGETS | CHECK_TARGETS | CHLO_TARGETS),
}
"""Op name -> the rule that converts it."""


def parse_stablehlo(text: str, file: str = "<stablehlo>", entry: str = "") -> ModuleOp:
    """The module that `text` describes, verified.

    file    name of the text in messages and locations
    entry   name of the function to compile, with or without `@`; "": the rule in the file's head
    raises  UsageError if no function has that name; VerifyError that lists the public functions if none is the entry by that rule;
            ParseError if it is not StableHLO text, VerifyError if it breaks a rule (shapes, types, names), Unsupported for legal text that
            is not supported; all with the place
    """
    source = Source(text, file)
    parser = TreeParser(source)
    program = parser.program()
    return ModuleBuilder(source, program, parser.aliases, RULES, entry.removeprefix("@")).module()
