"""`complex`: numbers of two parts, held as NumPy's complex64 or complex128.

    complex.mul %a, %b : complex<f32>     ->   (re re' - im im', re im' + im re'), each product and sum rounded to float32
    complex.exp %a : complex<f32>         ->   np.exp

Sums, products and similar ops are computed by parts, as `convert-complex-to-standard` expands them, so that this pass keeps their bits;
NumPy's own product may be fused. Quotients and functions are those of the `hlo` ops: computed in complex128, rounded once. The pass's
expansions of these are within the tolerances.
Source: MLIR 22, complex dialect; docs/reference/1 5.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, FloatAttr
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.hlo import complex_meaning
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import complex
from xla_emitters.dialects.mlir.complex import PowiOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Binary, Rules, Unary
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


def in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """`function`, computed in complex128 and rounded once to the operands' type, or to the type of their parts."""

    def compute(*operands: Array) -> Array:
        own = operands[0].dtype
        value = np.asarray(function(*(operand.astype(np.complex128) for operand in operands)))
        return value.astype(own if value.dtype.kind == "c" else np.real(np.empty(0, own)).dtype)

    return compute


UNARY: dict[type[complex.ComplexUnaryComplexResultOperation | complex.ComplexUnaryRealResultOperation], Unary] = {
    complex.AbsOp: in_double(np.abs),
    complex.AngleOp: in_double(np.angle),
    complex.ConjOp: np.conj,
    complex.CosOp: in_double(np.cos),
    complex.ExpOp: in_double(np.exp),
    complex.Expm1Op: in_double(complex_meaning.exp_minus_one),
    complex.ImOp: np.imag,
    complex.LogOp: in_double(np.log),
    complex.Log1pOp: in_double(complex_meaning.log_plus_one),
    complex.NegOp: np.negative,
    complex.ReOp: np.real,
    complex.RsqrtOp: in_double(complex_meaning.reciprocal_sqrt),
    complex.SignOp: in_double(complex_meaning.sign),
    complex.SinOp: in_double(np.sin),
    complex.SqrtOp: in_double(np.sqrt),
    complex.TanOp: in_double(np.tan),
    complex.TanhOp: in_double(np.tanh),
}

BINARY: dict[type[complex.ComplexBinaryOp | complex.ComplexCompareOp], Binary] = {
    complex.AddOp: np.add,
    complex.SubOp: np.subtract,
    complex.MulOp: complex_meaning.product,
    complex.DivOp: in_double(complex_meaning.quotient),
    complex.PowOp: in_double(complex_meaning.power),
    complex.Atan2Op: in_double(complex_meaning.arc_tangent_of_quotient),
    complex.EqualOp: np.equal,
    complex.NotEqualOp: np.not_equal,
}


def _contiguous(compute: Callable[..., Array]) -> Callable[..., Array]:
    """`compute` on contiguous copies: NumPy's loops for contiguous and for strided data may round differently."""
    return lambda *operands: np.ascontiguousarray(compute(*map(np.ascontiguousarray, operands)))


for _op, _function in (*UNARY.items(), *BINARY.items()):

    @RULES.elementwise(_op)
    def compute(op: Operation, function: Callable[..., Array] = _function) -> Callable[..., Array]:
        return _contiguous(function)


@RULES.elementwise(PowiOp)
def powi(op: PowiOp) -> Binary:
    exponents = form_of(op.rhs.type)

    def power(base: Array, exponent: Array) -> Array:
        return in_double(complex_meaning.power)(base, scalars.signed(exponents, exponent).astype(base.dtype))

    return _contiguous(power)


@RULES.elementwise(complex.CreateOp)
def create(op: complex.CreateOp) -> Binary:
    return complex_meaning.from_parts


@RULES.elementwise(complex.BitcastOp)
def bitcast(op: complex.BitcastOp) -> Unary:
    source, target = form_of(op.operand.type), form_of(op.result.type)
    return lambda value: scalars.reinterpret(source, target, np.ascontiguousarray(value))


@RULES.op(complex.ConstantOp)
def constant(op: complex.ConstantOp) -> Callable[[Machine], Array]:
    value = constant_lanes(op.value, op.complex.type)
    return lambda machine: value


def constant_lanes(parts: Attribute, ir_type: Attribute) -> Array:
    """`[real, imaginary]` as lanes of shape (1, 1). raises Unsupported for parts that are not floats."""
    if not isa(parts, ArrayAttr[FloatAttr]) or not isa(ir_type, ComplexType[AnyFloat]):
        raise Unsupported(f"constant {parts} of type {ir_type}", stage="simt")
    part = form_of(ir_type.element_type)
    real, imaginary = (scalars.constant(part, number.value.data) for number in parts)
    return complex_meaning.from_parts(real, imaginary)
