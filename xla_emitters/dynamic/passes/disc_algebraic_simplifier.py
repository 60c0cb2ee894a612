"""Arithmetic with constants becomes cheaper arithmetic, as in the program that XLA would fuse. On HLO.

    sqrt(8)            2.828427                           all operands are scalar constants, the result is a float
    divide(x, 3)       multiply(x, 0.33333334)            f32 and f64; f16 and bf16 if the reciprocal is exact
    power(x, 2)        multiply(x, x)                     floats and integers
    power(x, 3)        multiply(multiply(x, x), x)        f32, f64 and integers

The constant may be one number for all elements: a scalar, a broadcast of one, or an array of equal numbers. A division takes many times as
long as a product, and a power takes a function call per element, on a GPU and on a CPU. The other rules of XLA's pass are for shapes, or
LLVM has them.
Correctness: a reciprocal that is not exact is rounded, and so is the product, so that a quotient is within 1.5 units in the last place
instead of 0.5. XLA does the same; unlike there, a divisor keeps its division if its reciprocal is not a normal number: 0 / 1e-39 is not
0 * inf. A square is rounded once, as the power is; in a third power the square is rounded too (1.5 units), and where it is infinite or
below the normal numbers, the third power is infinite or 0.
Source: XLA, AlgebraicSimplifierVisitor::HandleDivide, HandlePower; BladeDISC's pipeline begins with its own.
"""

from __future__ import annotations

from math import frexp

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp, no_call, owner_of
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.constant import ConstantOp, dense
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicBroadcastInDimOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.implicit_broadcast import BROADCAST, DONE
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.dynamic.passes.shape_code import ShapeCode
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

ROUNDED = ("f32", "f64")
"""Types in which a quotient or a third power may be rounded twice."""


class DiscAlgebraicSimplifierPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect; ops that still broadcast their operands are left."""

    name = "disc-algebraic-simplifier"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in op.ops:
            if isinstance(computation, ComputationOp):
                for instruction in list(computation.instructions):
                    _simplify(instruction, ShapeCode(names, instruction))


def _simplify(op: HloOp, code: ShapeCode) -> None:
    if not is_elementwise(op) or (BROADCAST in op.attributes and DONE not in op.attributes):
        return
    name, kind = op.instruction_name.data, element_of(op.result)
    if (folded := _folded(op, kind)) is not None:
        _replace(op, code.insert(ConstantOp.from_array(folded, kind, name)), code.names)
        return
    number = _number(op.operands[1]) if op.opcode in ("divide", "power") else None
    if number is None:
        return
    x, y = op.operands
    if op.opcode == "divide" and (reciprocal := _reciprocal(number, kind)) is not None:
        product = code.add("multiply", [x, _in_place_of(y, reciprocal, code)], op.result.type, name=name)
        _replace(op, product, code.names)
    elif op.opcode == "power" and _is_product(number, kind):
        product = code.add("multiply", [x, x], op.result.type, name=name)
        if number == 3:
            product = code.add("multiply", [product, x], op.result.type, name=name)
        _replace(op, product, code.names)


def _folded(op: HloOp, kind: DType) -> Array | None:
    """The value of an op on scalar constants whose result is a float."""
    constants = [value.owner for value in op.operands]
    if dims_of(op.result) != () or kind.kind is not Kind.FLOAT or not all(_is_known(each) for each in constants):
        return None
    return np.asarray(op.evaluate([each.array() for each in constants if isinstance(each, ConstantOp)], no_call))


def _is_known(op: object) -> bool:
    return isinstance(op, ConstantOp) and not op.is_elided


def _number(value: SSAValue) -> Array | None:
    """The number that all elements are known to be."""
    op = value.owner
    if isinstance(op, BroadcastOp | DynamicBroadcastInDimOp):
        return _number(op.operands[0])
    if not isinstance(op, ConstantOp) or not _is_known(op):
        return None
    elements = op.array().reshape(-1)
    return elements[0] if elements.size and (elements == elements[0]).all() else None


def _reciprocal(number: Array, kind: DType) -> Array | None:
    """1 / `number`, if a product with it is as good as the quotient; see the file's head."""
    if kind.kind is not Kind.FLOAT or kind.is_narrow_float or not number or not np.isfinite(number):
        return None
    is_exact = abs(frexp(float(number))[0]) == 0.5
    if not is_exact and kind.name not in ROUNDED:
        return None
    with np.errstate(over="ignore"):
        found = np.asarray(1, kind.numpy) / number
    return found if kind.float_format.smallest_normal <= abs(found) < np.inf else None


def _is_product(exponent: Array, kind: DType) -> bool:
    """Whether a power with this exponent becomes products."""
    is_rounded_once = kind.is_integer or kind.name in ROUNDED
    return kind.kind is not Kind.COMPLEX and (exponent == 2 or (exponent == 3 and is_rounded_once))


def _in_place_of(value: SSAValue, number: Array, code: ShapeCode) -> SSAValue:
    """A value of the same type that is `number` in all elements; `value` has one number in all of them, too."""
    op = owner_of(value)
    name = op.instruction_name.data
    if isinstance(op, ConstantOp):
        kind = element_of(op.result)
        array = np.full(dims_of(op.result), number, kind.numpy)
        return code.insert(ConstantOp(dense(array, kind), op.result.type, name))
    properties = {key: each for key, each in op.properties.items() if key != "name"}
    return code.add(
        op.opcode, [_in_place_of(op.operands[0], number, code), *op.operands[1:]], value.type, properties, name
    )


def _replace(op: HloOp, value: SSAValue, names: Names) -> None:
    """Replaces an op, and erases the constants that only it read."""
    operands = list(op.operands)
    names.replace(op, value)
    for operand in operands:
        _erase_unread(operand)


def _erase_unread(value: SSAValue) -> None:
    op = value.owner
    if isinstance(op, ConstantOp | BroadcastOp | DynamicBroadcastInDimOp) and value.first_use is None:
        operands = list(op.operands)
        Rewriter.erase_op(op)
        for operand in operands:
            _erase_unread(operand)
