"""Values of ops that order, move, branch and loop: one device, one host, each async operation done when it starts.

    while        the last value for which the condition does not hold
    conditional  the chosen branch's value: of a pred true first, of a number the last branch if it is out of range
    token        ()

Endless loops are the caller's concern: `call` is called for each iteration's condition and body (`runtime/reference/reference`).
Source: docs/reference/1 6.8 "while", "conditional"; HLO's operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.base import Call
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, tuple_types


def first_operand(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """The op passes its operand through."""
    return operands[0]


def token(op: RuleOp, operands: Sequence[Any], call: Call) -> tuple[()]:
    """A token holds nothing."""
    return ()


def looped(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """Applies the body while the condition holds. Operands after the first are the same in every iteration."""
    (condition,), (body,) = (op.symbols(name) for name in ("condition", "body"))
    value, same = operands[0], operands[1:]
    while call(condition.root_reference.data, [value, *same]):
        value = call(body.root_reference.data, [value, *same])
    return value


def branch_taken(op: RuleOp, selector: Any) -> int:
    """The number of the branch that a selector chooses; its operand is the next one."""
    number = int(selector)
    if "true_computation" in op.properties:
        return 0 if number else 1
    last = len(op.symbols("branch_computations")) - 1
    return number if 0 <= number <= last else last


def branched(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """The chosen branch, applied to its own operand."""
    number = branch_taken(op, operands[0])
    return call(op.callees()[number].symbol.root_reference.data, [operands[1 + number]])


def copy_started(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """(copy, operand, context)."""
    return operands[0], operands[0], np.uint32(0)


def element_of_operand(number: int) -> Any:
    """An element of the operand, a tuple."""

    def element(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
        return operands[0][number]

    return element


def async_started(op: RuleOp, operands: Sequence[Any], call: Call) -> Any:
    """((operands), result, state ...): the computation is done at once."""
    found = call(op.callees()[0].symbol.root_reference.data, operands)
    return (tuple(operands), found, *(zeros_of(part) for part in tuple_types(op.result.type)[2:]))


def zeros_of(ir_type: Attribute) -> Any:
    """A value of that type, all zeros."""
    if isinstance(ir_type, TupleType):
        return tuple(map(zeros_of, ir_type.types))
    return np.zeros(dims_of(ir_type), element_of(ir_type).numpy) if is_array(ir_type) else ()
