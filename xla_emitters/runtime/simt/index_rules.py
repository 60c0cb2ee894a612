"""`index`: the integer rules of `arith` for indices, which lanes hold in 64 bits.

Division by zero, and of the least integer by -1, is an ExecutionError, as in `arith`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.ir import Operation

from xla_emitters.dialects.mlir import index
from xla_emitters.dtypes import Array
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import (
    INTEGER_OPS,
    compare_integers,
    constant_kernel,
    division,
    integer_conversion,
)
from xla_emitters.runtime.simt.code import Binary, Rules
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.scalars import INDEX, signed, unsigned

RULES = Rules()

for _name, _op in index.BINARY.items():
    if _name in INTEGER_OPS:
        RULES.of_form(INTEGER_OPS[_name], _op)
    else:
        RULES.op(_op)(partial(division, name=_name))

RULES.elementwise(index.CASTS["casts"])(partial(integer_conversion, reading=signed))
RULES.elementwise(index.CASTS["castu"])(partial(integer_conversion, reading=unsigned))


@RULES.elementwise(index.CmpOp)
def cmp(op: Any) -> Binary:
    return compare_integers(INDEX, index.PredicateAttr.WORDS.index(op.pred.word.data))


@RULES.op(index.SizeOfOp)
def sizeof(op: Operation) -> Callable[[Machine], Array]:
    bits = scalars.constant(INDEX, index_width(op))
    return lambda machine: bits


@RULES.op(index.ConstantOp, index.BoolConstantOp)
def constant(op: index.ConstantOp | index.BoolConstantOp) -> Callable[[Machine], Value]:
    return constant_kernel(op, op.value, op.result.type)
