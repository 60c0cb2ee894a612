"""Conversion of loops and branches, and of what is exchanged with devices and hosts.

    %1:2 = stablehlo.while(%i = %0, %acc = %x) cond {...} do {...}
        %t = tuple(%0, %x, captured ...)
        %w = while(%t), condition = @w.condition, body = @w.body
        get-tuple-element(%w), index 0 and 1
    "stablehlo.if"(%p) ({...}, {...})                             conditional(%p, %t, %f), each operand a tuple of what the branch captures

Source: StableHLO specification; docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.attributes import integer_array
from xla_emitters.dialects.hlo.rule_ops import TOKEN, scalar
from xla_emitters.dialects.hlo.types import one_or_tuple, tuple_type
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.fields import GROUPS, channel_of, flag
from xla_emitters.text.stablehlo.op_table import all_results
from xla_emitters.text.stablehlo.rules import Results

# ---------------------------------------------------------------------------------------------------------- loops, branches


def _while(c: Conversion) -> Results:
    condition, body = c.expect_regions(2)
    captured = c.captured(condition, body)
    for region in (condition, body):
        if [value.type for value in region.arguments] != [value.type for value in c.op.operands]:
            raise c.wrong("the arguments of a loop's regions have the types of its values")
    if not c.operands:
        raise c.unsupported("a loop without values is not taken")
    carried = c.tuple_of([*c.operands, *(c.body.value(value) for value in captured)])
    found = c.add(
        "while",
        [carried],
        carried.type,
        condition=c.of_tuple(condition, condition.arguments, captured, "condition", carries=False),
        body=c.of_tuple(body, body.arguments, captured, "body", carries=True),
    )
    return c.elements(found, len(c.types))


def _branches(c: Conversion) -> tuple[SSAValue, list[SSAValue], list[SymbolRefAttr]]:
    """What is chosen by, an operand and a computation for each branch.

    Until 2022, MHLO's branches had an argument each, and the op an operand for it.
    """
    chosen, *passed = c.operands or c.expect_operands(1)
    arguments = [region.arguments for region in c.op.regions]
    if any(arguments) or passed:
        if [value.type for value in c.op.operands[1:]] != [value.type for values in arguments for value in values]:
            raise c.wrong(
                f"the operands of '{c.op.name}' are what it chooses by, and one for each argument of a branch"
            )
    operands, symbols, given = list[SSAValue](), list[SymbolRefAttr](), iter(passed)
    for number, region in enumerate(c.op.regions):
        captured = c.captured(region)
        held = [next(given) for _ in region.arguments] + [c.body.value(value) for value in captured]
        operands.append(c.tuple_of(held))
        symbols.append(c.of_tuple(region, region.arguments, captured, f"branch_{number}", carries=False))
    return chosen, operands, symbols


def _if(c: Conversion) -> Results:
    c.expect_regions(2)
    chosen, operands, (then, otherwise) = _branches(c)
    return all_results(c, "conditional", [chosen, *operands], true_computation=then, false_computation=otherwise)


def _case(c: Conversion) -> Results:
    if not c.op.regions:
        raise c.wrong("'stablehlo.case' has at least one branch")
    chosen, operands, symbols = _branches(c)
    return all_results(c, "conditional", [chosen, *operands], branch_computations=ArrayAttr(symbols))


# ------------------------------------------------------------------------------------------------------------------ devices


def _all_to_all(c: Conversion) -> Results:
    split, concat = c.attributes.integer("split_dimension"), c.attributes.integer("concat_dimension")
    if split != concat and c.attributes.integer("split_count") != 1:
        raise c.unsupported("'stablehlo.all_to_all' is taken along one dimension")
    about = {"dimensions": integer_array([split])} | {
        name: value for field in GROUPS for name, value in field.read(c).items()
    }
    return [
        c.add("all-to-all", [operand], ir_type, **about) for operand, ir_type in zip(c.operands, c.types, strict=True)
    ]


# ------------------------------------------------------------------------------------------------------------ communication


def _infeed(c: Conversion) -> Results:
    *data, token = c.types
    pair = tuple_type([tuple_type(data), token])
    parts = c.elements(c.add("infeed", c.operands, pair), 2)
    return [*c.elements(parts[0], len(data)), parts[1]]


def _outfeed(c: Conversion) -> Results:
    *data, token = c.operands
    return c.add("outfeed", [_packed(c, data), token], c.type)


def _packed(c: Conversion, values: Sequence[SSAValue]) -> SSAValue:
    return values[0] if len(values) == 1 else c.tuple_of(values)


def _send(c: Conversion) -> Results:
    *data, token = c.operands
    packed = _packed(c, data)
    about = {"channel_id": channel_of(c), "is_host_transfer": flag(c, "is_host_transfer")}
    started = c.add("send", [packed, token], tuple_type([packed.type, scalar("u32"), TOKEN]), **about)
    return c.add("send-done", [started], TOKEN, **about)


def _recv(c: Conversion) -> Results:
    *types, token = c.types
    data = one_or_tuple(types)
    about = {"channel_id": channel_of(c), "is_host_transfer": flag(c, "is_host_transfer")}
    started = c.add("recv", c.operands, tuple_type([data, scalar("u32"), TOKEN]), **about)
    parts = c.elements(c.add("recv-done", [started], tuple_type([data, token]), **about), 2)
    return [*(parts[:1] if len(types) == 1 else c.elements(parts[0], len(types))), parts[1]]


REGION_RULES: dict[str, Rule] = {
    "while": _while,
    "if": _if,
    "case": _case,
    "all_to_all": _all_to_all,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "recv": _recv,
}
