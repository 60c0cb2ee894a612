"""Runs a function of one block on NumPy arrays: what the tests of the lowerings compare with.

Index is int64. Small on purpose, and apart from the product's own executor.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.mlir import func

Array = Any


def _toward_zero(a: Array, b: Array) -> Array:
    return (np.abs(a) // np.abs(b)) * np.sign(a) * np.sign(b)


def _unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(np.asarray(a).astype(np.uint64), np.asarray(b).astype(np.uint64)).astype(np.int64)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """A product of two f32 is exact in f64."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "olt": operator.lt,
    "ogt": operator.gt,
    "oge": operator.ge,
    "ult": lambda a, b: ~(a >= b),
    "ugt": lambda a, b: ~(a <= b),
}
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
_FLOAT_PREDICATES = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult")
_OPS: dict[str, Callable[..., Array]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _toward_zero,
    "arith.remsi": lambda a, b: a - _toward_zero(a, b) * b,
    "arith.divui": _unsigned(operator.floordiv),
    "arith.remui": _unsigned(operator.mod),
    "arith.ceildivui": _unsigned(lambda a, b: (a + b - np.uint64(1)) // b),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.select": np.where,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
    "math.fma": _fma,
    "math.absf": np.abs,
    "math.copysign": np.copysign,
}


def run(module: ModuleOp, arguments: Sequence[Array]) -> list[Array]:
    """What the module's only function with a body returns."""
    (function,) = (op for op in module.body.ops if isinstance(op, func.FuncOp) and op.body.blocks)
    block = function.body.block
    values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, func.ReturnOp):
            return operands
        if op.name == "arith.constant":
            attribute = op.properties["value"]
            if isinstance(attribute, FloatAttr):
                values[op.results[0]] = np.float32(attribute.value.data)
            else:
                assert isinstance(attribute, IntegerAttr)
                values[op.results[0]] = np.int64(attribute.value.data)
        elif op.name in ("arith.cmpi", "arith.cmpf"):
            number = op.properties["predicate"].value.data
            names = _INTEGER_PREDICATES if op.name == "arith.cmpi" else _FLOAT_PREDICATES
            values[op.results[0]] = _COMPARISONS[names[number]](*operands)
        else:
            values[op.results[0]] = _OPS[op.name](*operands)
    raise AssertionError("no return")
