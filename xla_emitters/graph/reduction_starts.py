"""The start values of a reduction's partial results, chosen so that the initial value counts once, however many threads there are.

    add, init 0        0 + 0 is 0: every thread starts with it
    maximum, init x    max(x, x) is x for every x: every thread starts with it
    add, init x        threads start with 0, and x is added at the end
    argmax, init x     each result is selected from its two candidates, so body(x, x) is x: every thread starts with it
    sum and maximum    each result by its own rule, if each depends only on its own two candidates
    own body, init x   unless x is a constant and body(x, x) is x, threads start without a value, and x is combined at the end

Bodies are associative and commutative: HLO lets elements be combined in any order. So x . a . x . b is a . b . (x . x), and if x . x is x,
the number of times that x was combined does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, no_call
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, ParameterOp, TupleOp, find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dtypes import Kind

IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or"))
"""Opcodes with op(x, x) = x."""
IDENTITY = {"add": 0, "multiply": 1, "xor": 0}
"""Opcode -> its identity element."""


def identities_needed(hero: ReduceOp) -> tuple[int | None, ...] | str | None:
    """The start values of threads; None: the initial values.

    A sequence has a start value per result; an entry of None starts with its initial value, the other initial values are combined at the
    end. A string is the reason why neither is right: threads start without a value.
    """
    body = find_computation(hero, hero.to_apply)
    if only_chooses(body):
        return None
    inits = [_constant(init.owner) for init in hero.inits]
    if None not in inits and _combines_to_itself(body, inits):
        return None
    opcodes = combining_opcodes(body)
    # infinity times 1 + 0i is NaN
    is_known = (
        opcode in IDEMPOTENT or (opcode in IDENTITY and not (opcode == "multiply" and _is_complex(array)))
        for opcode, array in zip(opcodes, hero.arrays, strict=True)
    )
    if all(is_known):
        return tuple(IDENTITY.get(opcode or "") for opcode in opcodes)
    name = f"%{hero.instruction_name.data}"
    return f"the initial value of {name} would count once for each thread, and its computation has no known identity"


def rounding_of_sums(heroes: Sequence[ReduceOp]) -> float:
    """The largest unit in the last place of the summed types; 0 if the order of combinations does not change any bit."""
    units = [0.0]
    for hero in heroes:
        body = find_computation(hero, hero.to_apply)
        for opcode, array in zip(combining_opcodes(body), hero.arrays, strict=True):
            element = element_of(array)
            if element.is_integer or element.kind is Kind.PRED or opcode in IDEMPOTENT or only_chooses(body):
                continue
            real = np.real(np.zeros((), element.numpy)).dtype
            finfo: Any = ml_dtypes.finfo
            units.append(float(finfo(real).eps))
    return max(units)


def _is_complex(array: SSAValue) -> bool:
    return element_of(array).kind is Kind.COMPLEX


def only_chooses(body: ComputationOp) -> bool:
    """Whether each result is always one of its two candidates, so that body(x, x) is x."""
    parts = _results_of(body)
    return all(_is_chosen(part, (number, number + len(parts))) for number, part in enumerate(parts))


def _results_of(body: ComputationOp) -> list[Any]:
    """The op that computes each result of a reduction's computation: the candidates of result i are parameters i and i + n."""
    root = body.root.owner
    return [operand.owner for operand in root.operands] if isinstance(root, TupleOp) else [root]


def _is_chosen(op: Any, candidates: tuple[int, int]) -> bool:
    """Whether `op` is one of these two parameters, or a select between them."""
    pending, seen = [_converted(op)], set[Any]()
    while pending:
        op = pending.pop()
        if isinstance(op, ParameterOp):
            if op.number.value.data not in candidates:
                return False
        elif not isinstance(op, HloOp) or op.opcode not in IDEMPOTENT | {"select"}:
            return False
        elif op not in seen:
            seen.add(op)
            pending += [_converted(operand.owner) for operand in op.operands[-2:]]
    return True


def combining_opcodes(body: ComputationOp) -> tuple[str | None, ...]:
    """For each result the opcode that combines its two candidates, ignoring conversions; None if the code is more than that."""
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
    """The operand of a conversion (or of a chain of them); else `op` itself."""
    while isinstance(op, HloOp) and op.opcode == "convert":
        op = op.operands[0].owner
    return op


def _constant(op: Any) -> Any:
    """The value of a scalar constant, possibly converted; None if it is known only at run time."""
    if isinstance(op, ConstantOp):
        return None if op.value is None else op.evaluate((), no_call)
    if isinstance(op, HloOp) and op.opcode in ("convert", "bitcast", "reshape", "copy", "negate"):
        operand = _constant(op.operands[0].owner)
        return None if operand is None else op.evaluate((operand,), no_call)
    return None


def _combines_to_itself(body: ComputationOp, inits: Sequence[Any]) -> bool:
    """Whether body(inits, inits) gives the initial values again."""
    given = [*inits, *inits]
    values = dict[Any, Any]()
    for op in body.instructions:
        if isinstance(op, CallingOp):
            return False
        if isinstance(op, ParameterOp):
            values[op.result] = given[op.number.value.data]
        else:
            with np.errstate(all="ignore"):
                values[op.result] = op.evaluate([values[operand] for operand in op.operands], no_call)
    found = values[body.root]
    parts = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
    return all(_is_same(part, init) for part, init in zip(parts, inits, strict=True))


def _is_same(one: Any, other: Any) -> bool:
    """Equal, or both NaN; complex numbers are compared part by part."""
    if np.iscomplexobj(one):
        return _is_same(np.real(one), np.real(other)) and _is_same(np.imag(one), np.imag(other))
    return bool(one == other) or bool(one != one and other != other)
