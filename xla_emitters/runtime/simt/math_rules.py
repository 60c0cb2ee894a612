"""`math` and the same functions among `llvm.intr.*`, from one table of NumPy functions that all spellings of a function share.

    math.tanh %x : bf16      ->   to float32, np.tanh, round
    llvm.call @__nv_tanhf    ->   np.tanh                       the same bits, so a stage that calls libdevice equals the stage before it
    llvm.intr.exp            ->   np.exp

NumPy stands for libdevice: it is within the tolerances of the HLO op, not bit-equal to the GPU. A function is given contiguous
arrays only: NumPy's vector loops and its loops for scattered data may round differently.
Source: docs/reference/contracts "Numbers" and "Passes"; libdevice's names from the CUDA libdevice user's guide.
"""

from __future__ import annotations

import math as reals
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation

from xla_emitters.dialects.context import op_named
from xla_emitters.dialects.mlir import llvm, math
from xla_emitters.dtypes import Array, dtype
from xla_emitters.functions import BY_LIBDEVICE
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import two_results
from xla_emitters.runtime.simt.code import Binary, Kernel, Rules, Ternary, Unary
from xla_emitters.runtime.simt.scalars import F64, Form, exact, form_of, in_float

RULES = Rules()


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x), rounded once for float32."""
    return (1.0 / np.sqrt(x.astype(F64))).astype(x.dtype)


def round_half_away(x: Array) -> Array:
    """Rounds to the nearest integer, halves away from zero; keeps the sign of zero."""
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype), x)


@dataclass(frozen=True)
class GaussianIntegral:
    """erf or erfc from Taylor series around the nearest multiple of a step.

    erf' = 2/sqrt(pi) exp(-x^2), and the derivatives of exp(-x^2) are (-1)^n H_n(x) exp(-x^2) with Hermite's polynomials. Term n is
    about (2 x h)^n / n! of erfc, with h at most half a step; the first omitted term is below 2**-53 of the value.

    at_node   the exact function
    sign      the sign of its derivative
    limit     for x from here on, the float64 value is that at infinity
    """

    at_node: Callable[[float], float]
    sign: int
    step: float
    limit: float
    terms: int

    @cached_property
    def coefficients(self) -> list[Array]:
        """float64 (nodes,) of each term."""
        nodes = np.arange(int(self.limit / self.step) + 1) * self.step
        density = self.sign * 2 / np.sqrt(np.pi) * np.exp(-nodes * nodes)
        found = [np.array([self.at_node(node) for node in nodes])]
        previous, hermite, factorial = np.zeros_like(nodes), np.ones_like(nodes), 1.0
        for n in range(self.terms - 1):
            factorial *= n + 1
            found.append((-1) ** n * hermite * density / factorial)
            previous, hermite = hermite, 2 * nodes * hermite - 2 * n * previous
        return found

    def of_magnitude(self, x: Array) -> Array:
        """The function at |x|, in float64; NaN for NaN."""
        magnitude = np.minimum(np.abs(x.astype(F64)), self.limit)
        node = np.nan_to_num(np.rint(magnitude / self.step)).astype(np.int64)
        offset = magnitude - node * self.step
        value = self.coefficients[-1][node]
        for coefficients in self.coefficients[-2::-1]:
            value = value * offset + coefficients[node]
        return value


_ERF = GaussianIntegral(reals.erf, 1, step=1 / 16, limit=6.0, terms=11)
_ERFC = GaussianIntegral(reals.erfc, -1, step=1 / 64, limit=28.0, terms=15)


def erf(x: Array) -> Array:
    """The error function: 1 ulp in float64, rounded from there for float32."""
    return np.copysign(_ERF.of_magnitude(x), x).astype(x.dtype)


def erfc(x: Array) -> Array:
    """1 - erf(x) without losing digits: 4 ulp in float64, rounded from there for float32."""
    value = _ERFC.of_magnitude(x)
    return np.where(x < 0, 2 - value, value).astype(x.dtype)


def exp10(x: Array) -> Array:
    """10 to the power of x."""
    return np.power(x.dtype.type(10), x)


def integer_exponent_power(base: Array, exponent: Array) -> Array:
    """A float to the power of an integer."""
    return np.power(base, exponent.astype(base.dtype))


_OWN: dict[str, Callable[..., Array]] = {
    "erf": erf,
    "erfc": erfc,
    "exp10": exp10,
    "powi": integer_exponent_power,
    "round": round_half_away,
    "rsqrt": rsqrt,
}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    name: getattr(np, row.numpy) if row.numpy else _OWN[name]
    for name, row in BY_LIBDEVICE.items()
    if row.numpy or name in _OWN
}
"""libdevice's name without `__nv_` and the type's suffix -> a function of float32 or float64 arrays."""


def function(form: Form, name: str) -> Kernel:
    """FUNCTIONS[name] on lanes of `form`, each operand contiguous, the result rounded once."""
    compute = FUNCTIONS[name]

    def run(*operands: Array) -> Array:
        return compute(*(np.ascontiguousarray(operand) for operand in operands))

    return in_float(form, run)


def libdevice(callee: str) -> Kernel | None:
    """The kernel of libdevice's `callee` on float32 (`__nv_tanhf`) or float64 (`__nv_tanh`) lanes; None for another name."""
    if not callee.startswith("__nv_"):
        return None
    name = callee.removeprefix("__nv_").removeprefix("fast_")
    if name in ("fma", "fmaf"):
        return partial(scalars.fused_multiply_add, form_of(f64 if name == "fma" else f32))
    stem = next((stem for stem in (name, name.removesuffix("f")) if stem in FUNCTIONS), None)
    return function(form_of(f32), stem) if stem else None


def kernel_of(form: Form, name: str) -> Kernel:
    """libdevice's function `name` on lanes of `form`. Sign operations do not round, and `fma` rounds once in every form."""
    match name:
        case "fma":
            return partial(scalars.fused_multiply_add, form)
        case "fabs" | "copysign":
            return exact(form, FUNCTIONS[name])
        case _:
            return function(form, name)


def integer_power_of_float(op: Operation) -> Binary:
    form, exponent_form = (form_of(operand.type) for operand in op.operands)

    def run(base: Array, exponent: Array) -> Array:
        power = integer_exponent_power(scalars.widen(form, base), scalars.signed(exponent_form, exponent))
        return scalars.narrow(form, power)

    return run


RULES.elementwise(math.FPowIOp, llvm.INTRINSICS["powi"])(integer_power_of_float)
for _name, _row in BY_LIBDEVICE.items():
    _named = [name for name in (_row.op or "", *_row.intrinsics) if name.startswith(("math.", "llvm."))]
    if _name != "powi":
        RULES.of_form(partial(kernel_of, name=_name), *map(op_named, _named))


def _normal(form: Form, value: Array) -> Array:
    """Neither zero, subnormal, infinite nor NaN."""
    magnitude = np.abs(scalars.widen(form, value))
    least = dtype(form.name).float_format.smallest_normal
    return (magnitude >= magnitude.dtype.type(least)) & np.isfinite(magnitude)


def _widened(test: Unary, form: Form, value: Array) -> Array:
    return test(scalars.widen(form, value))


for _op, _test in {
    math.IsFiniteOp: np.isfinite,
    math.IsInfOp: np.isinf,
    math.IsNaNOp: np.isnan,
}.items():
    RULES.of_form(partial(partial, _widened, _test), _op)
RULES.of_form(partial(partial, _normal), math.IsNormalOp)


@RULES.elementwise(math.ClampFOp)
def clampf(op: Any) -> Ternary:
    form = form_of(op.value.type)
    maximum, minimum = exact(form, scalars.maximum), exact(form, scalars.minimum)
    return lambda value, low, high: minimum(maximum(value, low), high)


@RULES.op(math.SincosOp, llvm.INTRINSICS["sincos"])
def sincos(op: Operation) -> Kernel:
    sine, cosine = (function(form_of(op.operands[0].type), name) for name in ("sin", "cos"))

    def both(angle: Array) -> tuple[Array, Array]:
        return sine(angle), cosine(angle)

    return two_results(op, both)


for _function, _op, _name in (
    (scalars.absolute, math.AbsIOp, "abs"),
    (scalars.leading_zeros, math.CountLeadingZerosOp, "ctlz"),
    (scalars.trailing_zeros, math.CountTrailingZerosOp, "cttz"),
    (scalars.population_count, math.CtPopOp, "ctpop"),
):
    RULES.of_form(partial(partial, _function), _op, llvm.INTRINSICS[_name])
RULES.of_form(partial(partial, scalars.integer_power), math.IPowIOp)
