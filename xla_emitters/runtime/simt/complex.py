"""`complex`: numbers of two parts, held as NumPy's complex64 or complex128.

    complex.mul %a, %b : complex<f32>     ->   (re re' - im im', re im' + im re'), each product and sum rounded to float32
    complex.exp %a : complex<f32>         ->   np.exp

Sums, products and the like are done by parts, as `convert-complex-to-standard` writes them out, so that they keep their bits when
it has; NumPy's own product may be fused. Quotients and functions are NumPy's: within tolerances, not bit-equal to the written out ones.
Source: MLIR 22, complex dialect; spec/1 5.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import complex
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, FloatAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from xla_emitters.dialects.complex import PowiOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Binary, Rules, Unary
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


def from_parts(real: Array, imaginary: Array) -> Array:
    """Complex lanes from lanes of float32 or float64 parts; infinities and NaNs stay as they are."""
    both = np.stack(np.broadcast_arrays(real, imaginary), axis=-1)
    return both.view(np.result_type(real.dtype, np.complex64))[..., 0]


def product(one: Array, other: Array) -> Array:
    """By parts, each operation rounded once."""
    (a, b), (c, d) = (np.real(one), np.imag(one)), (np.real(other), np.imag(other))
    return from_parts(a * c - b * d, a * d + b * c)


def sign(value: Array) -> Array:
    """value / |value|; 0 for 0."""
    length = np.abs(value)
    return np.where(length == 0, value, value / np.where(length == 0, 1, length)).astype(value.dtype)


def atan2(y: Array, x: Array) -> Array:
    """-i log((x + i y) / sqrt(x^2 + y^2))"""
    i = y.dtype.type(1j)
    return -i * np.log((x + i * y) / np.sqrt(x * x + y * y))


def rsqrt(value: Array) -> Array:
    """1 / sqrt(value)"""
    return value.dtype.type(1) / np.sqrt(value)


UNARY: dict[type[complex.ComplexUnaryComplexResultOperation | complex.ComplexUnaryRealResultOperation], Unary] = {
    complex.AbsOp: np.abs,
    complex.AngleOp: np.angle,
    complex.ConjOp: np.conj,
    complex.CosOp: np.cos,
    complex.ExpOp: np.exp,
    complex.Expm1Op: np.expm1,
    complex.ImOp: np.imag,
    complex.LogOp: np.log,
    complex.Log1pOp: np.log1p,
    complex.NegOp: np.negative,
    complex.ReOp: np.real,
    complex.RsqrtOp: rsqrt,
    complex.SignOp: sign,
    complex.SinOp: np.sin,
    complex.SqrtOp: np.sqrt,
    complex.TanOp: np.tan,
    complex.TanhOp: np.tanh,
}

BINARY: dict[type[complex.ComplexBinaryOp | complex.ComplexCompareOp], Binary] = {
    complex.AddOp: np.add,
    complex.SubOp: np.subtract,
    complex.MulOp: product,
    complex.DivOp: np.divide,
    complex.PowOp: np.power,
    complex.Atan2Op: atan2,
    complex.EqualOp: np.equal,
    complex.NotEqualOp: np.not_equal,
}


def _contiguous(compute: Callable[..., Array]) -> Callable[..., Array]:
    """NumPy's loops for contiguous and for scattered data may round differently."""
    return lambda *operands: np.ascontiguousarray(compute(*map(np.ascontiguousarray, operands)))


for _op, _function in (*UNARY.items(), *BINARY.items()):

    @RULES.elementwise(_op)
    def compute(op: Operation, function: Callable[..., Array] = _function) -> Callable[..., Array]:
        return _contiguous(function)


@RULES.elementwise(PowiOp)
def powi(op: PowiOp) -> Binary:
    exponents = form_of(op.rhs.type)

    def power(base: Array, exponent: Array) -> Array:
        return np.power(base, scalars.signed(exponents, exponent).astype(base.dtype))

    return _contiguous(power)


@RULES.elementwise(complex.CreateOp)
def create(op: complex.CreateOp) -> Binary:
    return from_parts


@RULES.elementwise(complex.BitcastOp)
def bitcast(op: complex.BitcastOp) -> Unary:
    source, target = form_of(op.operand.type), form_of(op.result.type)
    return lambda value: scalars.reinterpret(source, target, np.ascontiguousarray(value))


@RULES.op(complex.ConstantOp)
def constant(op: complex.ConstantOp) -> Callable[[Machine], Array]:
    value = constant_lanes(op.value, op.complex.type)
    return lambda machine: value


def constant_lanes(parts: Attribute, ir_type: Attribute) -> Array:
    """`[real, imaginary]` as lanes of shape (1, 1). raises Unsupported for parts that are no floats."""
    if not isa(parts, ArrayAttr[FloatAttr]) or not isa(ir_type, ComplexType[AnyFloat]):
        raise Unsupported(f"constant {parts} of type {ir_type}", stage="simt")
    part = form_of(ir_type.element_type)
    real, imaginary = (scalars.constant(part, number.value.data) for number in parts)
    return from_parts(real, imaginary)
