"""Conversion of ops with regions: reductions, scatters, sorts; loops and branches; reductions over devices.

    stablehlo.reduce(%x init: %0) applies stablehlo.add ...       reduce, to_apply = @reducer_add
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
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, tuple_type
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.dtypes import Array
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.op_table import GROUPS, all_results, channel_of, flag, result_type
from xla_emitters.text.stablehlo.rules import ELEMENTWISE, Results, padding_of, window

# ---------------------------------------------------------------------------------------------------------------- reductions


def _reduce(c: Conversion) -> Results:
    dimensions = integer_array(c.attributes.integers("dimensions"))
    return all_results(c, "reduce", dimensions=dimensions, to_apply=_reducer(c))


def _reducer(c: Conversion) -> SymbolRefAttr:
    """The region as a computation; for `applies stablehlo.add` a computation of that op."""
    if "applies" not in c.attributes:
        (region,) = c.expect_regions(1)
        return c.scalars(region, "reducer")
    opcode = ELEMENTWISE.get(c.attributes.string("applies").rpartition(".")[2])
    if opcode is None or not c.operands:
        raise c.attributes.wrong("applies", "an elementwise op of two operands such as stablehlo.add")
    scalar = array_type(as_array(c.operands[-1].type).element_type, ())
    return c.module.scalar_computation(opcode, scalar, c.op.token)


def _sliding_window(c: Conversion, pad: Array | None) -> WindowAttr:
    """The window of reduce_window and select_and_scatter."""
    rank = len(dims_of(c.operands[0]))
    sizes = c.attributes.integers("window_dimensions", [1] * rank)
    return window(
        c,
        sizes,
        pad=None if pad is None else pad.reshape(-1).tolist(),
        stride=c.attributes.integers("window_strides", []),
        lhs_dilate=c.attributes.integers("base_dilations", []),
        rhs_dilate=c.attributes.integers("window_dilations", []),
    )


def _reduce_window(c: Conversion) -> Results:
    along = _sliding_window(c, padding_of(c, len(dims_of(c.operands[0])) if c.operands else 0))
    return all_results(c, "reduce-window", window=along, to_apply=_reducer(c))


def _select_and_scatter(c: Conversion) -> Results:
    select, scatter = c.expect_regions(2)
    operand = c.expect_operands(3)[0]
    return c.add(
        "select-and-scatter",
        c.operands,
        c.type,
        window=_sliding_window(c, padding_of(c, len(dims_of(operand)))),
        select=c.scalars(select, "select"),
        scatter=c.scalars(scatter, "scatter"),
    )


def _sort(c: Conversion) -> Results:
    (region,) = c.expect_regions(1)
    along = c.attributes.integer("dimension", -1)
    rank = len(dims_of(c.operands[0])) if c.operands else 0
    return all_results(
        c,
        "sort",
        dimensions=integer_array([along % rank if rank else along]),
        is_stable=flag(c, "is_stable"),
        to_apply=c.scalars(region, "comparator"),
    )


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
    data = result_type(types)
    about = {"channel_id": channel_of(c), "is_host_transfer": flag(c, "is_host_transfer")}
    started = c.add("recv", c.operands, tuple_type([data, scalar("u32"), TOKEN]), **about)
    parts = c.elements(c.add("recv-done", [started], tuple_type([data, token]), **about), 2)
    return [*(parts[:1] if len(types) == 1 else c.elements(parts[0], len(types))), parts[1]]


REGION_RULES: dict[str, Rule] = {
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "sort": _sort,
    "while": _while,
    "if": _if,
    "case": _case,
    "all_to_all": _all_to_all,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "recv": _recv,
}
