"""Ops that order effects, move data between memories, hosts and programs, branch and loop, and ask about devices.

    %t = hlo.after_all {name = "t"} : !hlo.token
    %w = hlo.while %init {body = @body, condition = @condition, name = "w"} : tuple<tensor<i32>, tensor<8xf32>>
    %c = hlo.custom_call %x {custom_call_target = "\\22my_target\\22", name = "c"} : tensor<8xf32>

Rows of `rule_ops`: these ops have no code; XLA runs them without emitters. What they mean is in `control_meaning` and `library_calls`.
Source: docs/reference/1 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo import control_meaning as meaning
from xla_emitters.dialects.hlo.backend_configs import shape_operands
from xla_emitters.dialects.hlo.base import Call, HloOp, at_least
from xla_emitters.dialects.hlo.computation import CAPTURES, Callee, verify_aliasing
from xla_emitters.dialects.hlo.control_meaning import evaluated_by_library, library_evaluator
from xla_emitters.dialects.hlo.rule_ops import TOKEN, RuleOp, RuleRow, as_operand, class_of, element_of_tuple, scalar
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing
from xla_emitters.dialects.hlo.types import (
    array_type,
    as_array,
    dims_of,
    element_of,
    leaf_types,
    tuple_type,
    tuple_types,
)
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Kind

NONE, ONE, TWO = range(0, 1), range(1, 2), range(2, 3)


# ------------------------------------------------------------------------------------------------------- order, memory


def _after_all(op: RuleOp) -> Attribute:
    for operand in range(len(op.operands)):
        op.expect_operand(operand, TOKEN)
    return TOKEN


def _add_dependency(op: RuleOp) -> Attribute:
    op.expect_operand(1, TOKEN)
    return op.type_of(0)


# ------------------------------------------------------------------------------------------------ branches, loops, calls


def _while(op: RuleOp) -> Attribute:
    if len(op.operands) > 1 and CAPTURES not in op.attributes:
        raise op.broken("wrong number of operands for 'while'", None, f"it has {len(op.operands)}; 'while' takes 1")
    return op.type_of(0)


def _while_callees(op: RuleOp) -> tuple[Callee, ...]:
    (condition,), (body,) = op.symbols("condition"), op.symbols("body")
    return Callee(condition, op.types, scalar("pred")), Callee(body, op.types, op.type_of(0))


def _branches(op: RuleOp) -> tuple[Callee, ...]:
    names = (*op.symbols("true_computation"), *op.symbols("false_computation"), *op.symbols("branch_computations"))
    return tuple(
        Callee(name, [operand.type], op.result.type) for name, operand in zip(names, op.operands[1:], strict=True)
    )


def _conditional(op: RuleOp) -> None:
    selector = op.array(0)
    if selector not in (scalar("pred"), scalar("s32")):
        raise op.broken("a conditional chooses by a scalar pred or s32", 0)
    names = ("true_computation", "false_computation") if selector == scalar("pred") else ("branch_computations",)
    for name in names:
        if not op.symbols(name):
            raise op.broken(f"'conditional' by {element_of(selector).name} without '{name}='")
    if extra := {"true_computation", "false_computation", "branch_computations"}.difference(names) & set(op.properties):
        raise op.broken(f"'conditional' by {element_of(selector).name} has no '{min(extra)}='")
    count = 2 if len(names) == 2 else len(op.symbols("branch_computations"))
    if len(op.operands) != 1 + count:
        raise op.broken(f"'conditional' of {count} branches has {len(op.operands)} operands, not 1 + {count}")


def _custom_call(op: RuleOp) -> None:
    """Checks the called computations and that the operands' layout constraints have the operands' shapes."""
    if "to_apply" in op.properties and "called_computations" in op.properties:
        raise op.broken("'custom-call' has both to_apply= and called_computations=")
    aliasing = op.properties.get("output_to_operand_aliasing")
    verify_aliasing(op, aliasing if isinstance(aliasing, StringAttr) else None)
    wanted = op.properties.get("operand_layout_constraints")
    if not isa(wanted, ArrayAttr[Attribute]):
        return
    if len(wanted) != len(op.operands):
        raise op.broken(f"{len(wanted)} layout constraints for {len(op.operands)} operands")
    for operand, ir_type in enumerate(wanted):
        op.expect_operand(operand, ir_type)


def _listed_shapes(op: RuleOp, s: Sizing) -> list[Shape] | None:
    """The elements of the operands that list the sizes, if it has such operands."""
    types, listed = leaf_types(op.result.type), shape_operands(op)
    if not listed:
        return None
    return [
        [s.is_size(s.held(operand, dim), dim) for dim in range(len(dims_of(leaf)))]
        for operand, leaf in zip(listed, types, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------- async operations


def _async_parts(op: RuleOp, ir_type: Attribute) -> tuple[Attribute, ...]:
    """The elements of `((operands), result, state ...)`."""
    parts = tuple_types(ir_type)
    if not isinstance(ir_type, TupleType) or len(parts) < 2 or not isinstance(parts[0], TupleType):
        raise op.broken(
            f"'{op.opcode}' is of shape ((operands), result, state ...)", None if ir_type is op.result.type else 0
        )
    return parts


def _async_start(op: RuleOp) -> Attribute:
    _, result, *state = _async_parts(op, op.result.type)
    return tuple_type([tuple_type(op.types), result, *state])


def _async_callees(op: RuleOp) -> tuple[Callee, ...]:
    (name,) = op.symbols("calls")
    return (Callee(name, op.types, tuple_types(op.result.type)[1]),)


def _previous(op: RuleOp) -> HloOp:
    """The start, or update, that is the operand of `async-update` or `async-done`."""
    previous = op.operands[0].owner
    if not isinstance(previous, HloOp) or previous.opcode not in ("async-start", "async-update"):
        raise op.broken(f"'{op.opcode}' takes an async-start or async-update", 0)
    return previous


def _async_update(op: RuleOp) -> Attribute:
    _previous(op)
    return op.type_of(0)


def _async_done(op: RuleOp) -> Attribute:
    _previous(op)
    return _async_parts(op, op.type_of(0))[1]


# --------------------------------------------------------------------------------------------------------- communication


def _infeed(op: RuleOp) -> Attribute:
    op.expect_operand(0, TOKEN)
    return tuple_type([_first_of_result(op, 2), TOKEN])


def _first_of_result(op: RuleOp, count: int) -> Attribute:
    types = tuple_types(op.result.type)
    if not isinstance(op.result.type, TupleType) or len(types) != count:
        raise op.broken(f"'{op.opcode}' gives a tuple of {count}: the data first, a token last")
    return types[0]


def _outfeed(op: RuleOp) -> Attribute:
    op.expect_operand(1, TOKEN)
    if said := op.properties.get("outfeed_shape"):
        op.expect_operand(0, said)
    return TOKEN


def _send(op: RuleOp) -> Attribute:
    op.expect_operand(1, TOKEN)
    return tuple_type([op.type_of(0), scalar("u32"), TOKEN])


def _recv(op: RuleOp) -> Attribute:
    op.expect_operand(0, TOKEN)
    return tuple_type([_first_of_result(op, 3), scalar("u32"), TOKEN])


def _same_channel(op: RuleOp) -> None:
    """raises RuleBroken if a done has another channel than its start."""
    start = op.operands[0].owner
    if isinstance(start, RuleOp) and {"channel_id"} <= op.properties.keys() & start.properties.keys():
        if op.number("channel_id") != start.number("channel_id"):
            raise op.broken(
                f"'{op.opcode}' on another channel than '{start.opcode}'",
                None,
                f"channel_id={op.number('channel_id')}; the operand has channel_id={start.number('channel_id')}",
            )


def _send_done(op: RuleOp) -> Attribute:
    _same_channel(op)
    return TOKEN


def _recv_done(op: RuleOp) -> Attribute:
    _same_channel(op)
    return tuple_type([element_of_tuple(0)(op), TOKEN])


# --------------------------------------------------------------------------------------------------------- random numbers

_DISTRIBUTIONS = ("rng_uniform", "rng_normal")
_GENERATORS = ("rng_default", "rng_three_fry", "rng_philox")


def _rng(op: RuleOp) -> Attribute:
    op.expect_word("distribution", _DISTRIBUTIONS)
    if op.word("distribution") == "rng_normal":
        op.expect_kind(0, Kind.FLOAT)
    result = as_array(op.result.type)
    for operand in range(2):
        op.expect_operand(operand, array_type(result.element_type, ()))
    return result


def _rng_bit_generator(op: RuleOp) -> Attribute | None:
    op.expect_word("algorithm", _GENERATORS)
    op.expect_kind(0, Kind.UNSIGNED)
    if not isinstance(op.result.type, TupleType):
        return None
    return tuple_type([op.type_of(0), _second_of_pair(op)])


def _second_of_pair(op: RuleOp) -> Attribute:
    types = tuple_types(op.result.type)
    if len(types) != 2:
        raise op.broken(f"'{op.opcode}' gives its new state and an array")
    return types[1]


_CHANNEL = ("channel_id", "is_host_transfer")


def _sent(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """(operand, context, token)."""
    made = tuple_type(tuple_types(op.result.type)[:2])
    return (*library_evaluator(op, call, made)([operands[0]]), ())


def _receiving(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """(nothing yet, context, token)."""
    return meaning.zeros_of(op.result.type)


def _received(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """(what is received, token)."""
    data, _ = tuple_types(op.result.type)
    return library_evaluator(op, call, data)([operands[0][0]]), ()


ROWS: tuple[RuleRow, ...] = (
    # order, memory
    RuleRow("after-all", None, _after_all, meaning=meaning.token),
    RuleRow("add-dependency", TWO, _add_dependency, meaning=meaning.first_operand),
    RuleRow("opt-barrier", ONE, as_operand(0), meaning=meaning.first_operand),
    RuleRow("domain", ONE, as_operand(0), required=("domain",), meaning=meaning.first_operand),
    RuleRow(
        "copy-start",
        ONE,
        lambda op: tuple_type([op.type_of(0), op.type_of(0), scalar("u32")]),
        optional=("cross_program_prefetch_index",),
        meaning=meaning.copy_started,
    ),
    RuleRow("copy-done", ONE, element_of_tuple(0), meaning=meaning.element_of_operand(0)),
    # branches, loops, calls
    RuleRow(
        "while",
        at_least(1),
        _while,
        required=("condition", "body"),
        callees=_while_callees,
        meaning=meaning.looped,
        acts=True,
    ),
    RuleRow(
        "conditional",
        at_least(2),
        _conditional,
        optional=("true_computation", "false_computation", "branch_computations"),
        callees=_branches,
        meaning=meaning.branched,
        acts=True,
    ),
    RuleRow(
        "custom-call",
        None,
        _custom_call,
        required=("custom_call_target",),
        optional=(
            "window",
            "dim_labels",
            "feature_group_count",
            "batch_group_count",
            "operand_layout_constraints",
            "custom_call_has_side_effect",
            "to_apply",
            "called_computations",
            "output_to_operand_aliasing",
            "padding_type",
            "literal",
            "operand_precision",
            "schedule",
            "api_version",
        ),
        meaning=evaluated_by_library,
        shapes=_listed_shapes,
        acts=True,
    ),
    # async operations
    RuleRow(
        "async-start",
        None,
        _async_start,
        required=("calls",),
        optional=("async_execution_thread", "output_to_operand_aliasing"),
        callees=_async_callees,
        meaning=meaning.async_started,
        acts=True,
    ),
    RuleRow(
        "async-update",
        ONE,
        _async_update,
        optional=("async_execution_thread", "calls"),
        meaning=meaning.first_operand,
        acts=True,
    ),
    RuleRow(
        "async-done",
        ONE,
        _async_done,
        optional=("async_execution_thread", "calls"),
        meaning=meaning.element_of_operand(1),
        acts=True,
    ),
    # communication
    RuleRow("infeed", ONE, _infeed, optional=("infeed_config",), acts=True),
    RuleRow("outfeed", TWO, _outfeed, optional=("outfeed_shape", "outfeed_config"), acts=True),
    RuleRow("send", TWO, _send, optional=_CHANNEL, meaning=_sent, acts=True),
    RuleRow("send-done", ONE, _send_done, optional=_CHANNEL, meaning=meaning.token, acts=True),
    RuleRow("recv", ONE, _recv, optional=_CHANNEL, meaning=_receiving, acts=True),
    RuleRow("recv-done", ONE, _recv_done, optional=_CHANNEL, meaning=_received, acts=True),
    RuleRow("partition-id", NONE, lambda op: scalar("u32"), meaning=evaluated_by_library),
    RuleRow("replica-id", NONE, lambda op: scalar("u32"), meaning=evaluated_by_library),
    # random numbers
    RuleRow("rng", TWO, _rng, required=("distribution",), meaning=evaluated_by_library),
    RuleRow("rng-bit-generator", ONE, _rng_bit_generator, required=("algorithm",), meaning=evaluated_by_library),
    RuleRow(
        "rng-get-and-update-state",
        NONE,
        lambda op: array_type(scalar("u64").element_type, (2,)),
        required=("delta",),
        meaning=evaluated_by_library,
        acts=True,
    ),
)

OPS: tuple[type[HloOp], ...] = tuple(class_of(row, __name__) for row in ROWS)
