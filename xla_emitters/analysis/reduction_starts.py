"""What partial results of a reduction begin with, so that its initial value counts once however many threads begin.

    add, init 0        0 + 0 is 0: every thread begins with it
    maximum, init x    max(x, x) is x, whatever x is: every thread begins with it
    add, init x        threads begin with 0, and x is added in the end
    argmax, init x     each result is selected from its two candidates, so body(x, x) is x: every thread begins with it
    own body, init x   element by element, unless body(x, x) is x for the constant that x is

Bodies are associative and commutative: HLO lets elements be combined in any order. So x . a . x . b is a . b . (x . x), and where
x . x is x nobody sees how often it was there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.traits import SymbolTable

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, ParameterOp, TupleOp, enclosing_module
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import ReduceOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Kind
from xla_emitters.errors import InternalError

IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or"))
"""Opcodes that give x from x and x."""
IDENTITY = {"add": 0, "multiply": 1, "xor": 0}
"""By opcode, what gives x from x and itself."""


def identities_needed(hero: ReduceOp) -> tuple[int, ...] | str | None:
    """None where threads begin with the initial values; numbers where they begin with these, and the initial values come in the end.

    Else why neither is right.
    """
    body = body_of(hero)
    if only_chooses(body):
        return None
    inits = [_constant(init.owner) for init in hero.operands[len(hero.arrays) :]]
    if None not in inits and _combines_to_itself(body, inits):
        return None
    opcodes = combining_opcodes(body)
    is_complex = any(element_of(array).kind is Kind.COMPLEX for array in hero.arrays)
    if not is_complex and all(opcode in IDENTITY for opcode in opcodes):
        return tuple(IDENTITY[opcode] for opcode in opcodes if opcode)
    name = f"%{hero.instruction_name.data}"
    return f"the initial value of {name} would count once for each thread, and its computation has no known identity"


def body_of(hero: ReduceOp) -> ComputationOp:
    """The computation that a reduction calls."""
    module = enclosing_module(hero)
    body = module and SymbolTable.lookup_symbol(module, hero.to_apply)
    if not isinstance(body, ComputationOp):
        raise InternalError(
            f"reduce '{hero.instruction_name.data}' calls no computation of its module", stage="analysis"
        )
    return body


def only_chooses(body: ComputationOp) -> bool:
    """Whether each result is one of its two candidates, whichever: what is given twice is given back."""
    parts = _results_of(body)
    return all(_is_chosen(part, (number, number + len(parts))) for number, part in enumerate(parts))


def _results_of(body: ComputationOp) -> list[Any]:
    """What computes each result of a reduction's computation: result i has parameters i and i + n for candidates."""
    root = body.root.owner
    return [operand.owner for operand in root.operands] if isinstance(root, TupleOp) else [root]


def _is_chosen(op: Any, candidates: tuple[int, int]) -> bool:
    """Whether `op` is one of these two parameters, or selected from them."""
    op = _converted(op)
    if isinstance(op, ParameterOp):
        return op.number.value.data in candidates
    if isinstance(op, HloOp) and op.opcode in IDEMPOTENT | {"select"}:
        return all(_is_chosen(operand.owner, candidates) for operand in op.operands[-2:])
    return False


def combining_opcodes(body: ComputationOp) -> tuple[str | None, ...]:
    """For each result the opcode of what combines its two candidates and nothing else, but for conversions; else None."""
    parts = _results_of(body)
    return tuple(_combining_opcode(part, {number, number + len(parts)}) for number, part in enumerate(parts))


def _combining_opcode(op: Any, candidates: set[int]) -> str | None:
    root = _converted(op)
    if not isinstance(root, HloOp):
        return None
    sources = [_converted(operand.owner) for operand in root.operands]
    numbers = [source.number.value.data for source in sources if isinstance(source, ParameterOp)]
    return root.opcode if len(sources) == 2 and len(numbers) == 2 and set(numbers) == candidates else None


def _converted(op: Any) -> Any:
    """What `op` is a conversion of, or `op`."""
    while isinstance(op, HloOp) and op.opcode == "convert":
        op = op.operands[0].owner
    return op


def _constant(op: Any) -> Any:
    """The value of a scalar constant, converted or not; None for what is known only at run time."""
    if isinstance(op, ConstantOp):
        return None if op.value is None else op.evaluate((), _no_call)
    if isinstance(op, HloOp) and op.opcode in ("convert", "bitcast", "reshape", "copy", "negate"):
        operand = _constant(op.operands[0].owner)
        return None if operand is None else op.evaluate((operand,), _no_call)
    return None


def _combines_to_itself(body: ComputationOp, inits: Sequence[Any]) -> bool:
    """Whether the body gives the initial values when both of its sides are they."""
    given = [*inits, *inits]
    values = dict[Any, Any]()
    for op in body.instructions:
        if isinstance(op, CallingOp):
            return False
        if isinstance(op, ParameterOp):
            values[op.result] = given[op.number.value.data]
        else:
            with np.errstate(all="ignore"):
                values[op.result] = op.evaluate([values[operand] for operand in op.operands], _no_call)
    found = values[body.root]
    parts = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
    return all(
        bool(part == init) or bool(part != part and init != init) for part, init in zip(parts, inits, strict=True)
    )


def _no_call(name: str, operands: Sequence[Any]) -> Any:
    raise InternalError(f"a computation that calls none calls '{name}'", stage="analysis")
