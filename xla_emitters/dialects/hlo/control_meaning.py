"""Values of ops that order, move, branch and loop: one device, one host, each async operation done when it starts.

    while        the last value for which the condition does not hold
    conditional  the chosen branch's value: of a pred true first, of a number the last branch if it is out of range
    token        ()

Endless loops are the caller's concern: `call` is called for each iteration's condition and body (`runtime/reference/reference`).
Source: docs/reference/1 6.8 "while", "conditional"; HLO's operation semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.backend_configs import shape_operands
from xla_emitters.dialects.hlo.base import Call, HloOp, written_at
from xla_emitters.dialects.hlo.called import on_elements
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types, tuple_types
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, NumbersDiffer, Unsupported


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


# ------------------------------------------------------------------------------------------------------------ by a library


def evaluated_by_library(op: HloOp, operands: Sequence[Any], call: Call) -> Any:
    """The op's value: what its library function returns, as a tuple where the op's type is one."""
    return library_evaluator(op, call)(operands)


def library_evaluator(op: HloOp, call: Call, result: Attribute | None = None) -> Callable[[Sequence[Any]], Any]:
    """Operands -> the op's value, as `evaluated_by_library`: the configuration is made once. raises as `library_call_of`

    result  type of what the library gives, if it is not the op's
    """
    # Imported here: few computations have such an op, and fewer are evaluated.
    from xla_emitters.dialects.hlo.library_calls import library_call_of

    name, config = library_call_of(op)
    result = op.result.type if result is None else result
    types = [(element_of(leaf).name, dims_of(leaf)) for leaf in leaf_types(result)]
    listed = shape_operands(op)

    def compared(comparator: str, arrays: Sequence[Array]) -> Array:
        assert isinstance(op, RuleOp)
        return on_elements(op, op.symbols("to_apply")[0], call)(arrays)[0]

    def evaluate(operands: Sequence[Any]) -> Any:
        results = types
        if listed:
            sizes = (tuple(operands[number].tolist()) for number in listed)
            results = [(element, dims) for (element, _), dims in zip(types, sizes, strict=True)]
        from xla_emitters.library import call as call_library  # imported here: it loads all function_table

        try:
            found = call_library(name, config, _leaves(operands), results, on_elements=compared)
        except (DataError, NumbersDiffer, Unsupported) as error:
            error.place = error.place or written_at(op)
            raise
        return _packed(result, iter(found))

    return evaluate


def _leaves(operands: Sequence[Any]) -> list[Array]:
    """The arrays in nested tuples."""
    found = list[Array]()
    for each in operands:
        found += _leaves(cast("tuple[Any, ...]", each)) if isinstance(each, tuple) else [each]
    return found


def _packed(ir_type: Attribute, leaves: Iterator[Array]) -> Any:
    if not isinstance(ir_type, TupleType):
        return next(leaves)
    return tuple(_packed(part, leaves) for part in tuple_types(ir_type))
