"""Lowers complex arithmetic to arithmetic on the two parts; of `complex`, only create, re and im remain.

    %r = complex.mul %a, %b : complex<f32>
->
    %0 = complex.re %a : complex<f32>                       likewise %1 is the imaginary part of %a, %2 and %3 the parts of %b
    %6 = %0 * %2 - %1 * %3                                  each product and sum rounded once
    %9 = %0 * %3 + %1 * %2
    %r = complex.create %6, %9 : complex<f32>               erased if only ops of this pass use %r

With m >= n the magnitudes of the parts, r = n / m and h = sqrt(1 + r^2), no intermediate value overflows unless the result does:

    abs             m h                                     infinite if one part is infinite, whatever the other is
    sqrt            sqrt(m) (w, p / 2w),  w = sqrt((h + q) / 2),  q = |re| / m,  p = |im| / m; parts swapped and signed by quadrant
    rsqrt           (w, -p / 2w) / h / sqrt(m)
    sign            (re / m, im / m) / h
    log             log m + log1p(r^2) / 2;  log1p((m - 1)(m + 1) + n^2) / 2 for m in (1/2, 2), where the answer may be small
    log1p           the same of 1 + re, im; there log1p(re (re + 2) + im^2) / 2
    exp             exp(re) (cos im, sin im); where exp(re) overflows, exp(re / 2) twice
    expm1           expm1(re) cos(im) + c,  exp(re) sin(im);  c = cos(im) - 1, or -sin(im)^2 / (cos(im) + 1) where cos(im) > 0
    sin, cos        by sinh and cosh of the imaginary part; halves as in exp
    tanh            (sinh re cosh re, sin im cos im) / (sinh(re)^2 + cos(im)^2);  tan z = -i tanh(i z)
    pow             exp(b log a), a real exponent by itself; anything to the power of 0 is 1
    div             Smith's: by the ratio of the divisor's smaller to its larger part; zeros and infinities by C's rules
    atan2           -i log((x + i y) / sqrt(x^2 + y^2)), with x and y divided by their largest part first

The error is a few units in the last place of the result's modulus, except for pow, where it grows with |b log a|, and atan2, where it is
relative to at least 1 and grows if x^2 + y^2 cancels. Special values are those of C's Annex G. MLIR's pass of this name is less
exact near 1 (log), 0 (sin, cos) and the poles (tan, tanh). Fastmath flags only permit changes; they are not used.
There are no vectors of complex numbers. Loops, branches, calls and selects carry complex numbers as before.
Source: docs/reference/2 3.3; MLIR 22, convert-complex-to-standard (div, abs, exp); Kahan, "Branch cuts for complex elementary functions".
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ComplexType, FloatAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.build import Number, Truth
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder, replace_by
from xla_emitters.dialects.mlir import arith, complex, math
from xla_emitters.dialects.mlir.complex import PowiOp
from xla_emitters.dialects.quick_op import walk
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

# (builder, parts of the operands) -> the result: a number, or its parts
_Parts = tuple[Number, Number]
_Expansion = Callable[..., Number | _Parts]


class ConvertComplexToStandardPass(KernelPass):
    name = "convert-complex-to-standard"

    def apply_to(self, op: ModuleOp) -> None:
        of_complex = [found for found in walk(op) if found.name.startswith("complex.")]
        if not of_complex:
            return
        for found in of_complex:
            if isinstance(found, complex.ConstantOp):
                _replace(found, _constant(found))
            elif isinstance(found, complex.ReOp | complex.ImOp):
                _fold_part(found)
            elif (expansion := _EXPANSIONS.get(type(found))) is not None:
                builder = located_builder(InsertPoint.before(found), found)
                _replace(found, expansion(*(_operand(builder, operand) for operand in found.operands)))
            elif not isinstance(found, complex.CreateOp):
                self.skip(found, "it has no expansion")
        for found in reversed(list(op.walk())):
            if isinstance(found, complex.CreateOp) and found.complex.first_use is None:
                Rewriter.erase_op(found)


def _operand(builder: Builder, value: SSAValue) -> Number | _Parts:
    """The parts of a complex number; any other value unchanged."""
    if not isinstance(value.type, ComplexType):
        return Number(builder, value)
    if isinstance(made := value.owner, complex.CreateOp):
        return Number(builder, made.real), Number(builder, made.imaginary)
    real, imaginary = builder.insert(complex.ReOp(value)), builder.insert(complex.ImOp(value))
    return Number(builder, real.result), Number(builder, imaginary.result)


def _fold_part(op: complex.ReOp | complex.ImOp) -> None:
    """`re` or `im` of a `complex.create` is the operand itself."""
    if isinstance(made := op.complex.owner, complex.CreateOp):
        part = made.real if isinstance(op, complex.ReOp) else made.imaginary
        op.results[0].replace_all_uses_with(part)
        Rewriter.erase_op(op)


def _constant(op: complex.ConstantOp) -> _Parts:
    builder = located_builder(InsertPoint.before(op), op)
    assert isa(op.value, ArrayAttr[FloatAttr])
    real, imaginary = (Number(builder, builder.insert(arith.ConstantOp(part)).result) for part in op.value)
    return real, imaginary


def _replace(op: Operation, answer: Number | _Parts) -> None:
    (result,) = op.results
    if isinstance(answer, Number):
        value = answer.value
    else:
        real, imaginary = answer
        assert isa(result.type, ComplexType[AnyFloat])
        made = complex.CreateOp(real.value, imaginary.value, result.type)
        value = real.builder.insert(made).complex
    replace_by(op, [value])


# --- modulus and argument --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Magnitudes:
    """The larger magnitude of a number's parts (infinity if either is), the smaller, and their ratio (0 if undefined); see the head."""

    larger: Number
    smaller: Number
    ratio: Number

    @property
    def h(self) -> Number:
        """The modulus divided by the larger part: between 1 and sqrt(2)."""
        return (self.ratio * self.ratio + 1.0).apply(math.SqrtOp)


def _magnitudes(x: Number, y: Number) -> _Magnitudes:
    a, b = abs(x), abs(y)
    smaller = a.minimum(b)
    larger = (a.is_infinite() | b.is_infinite()).choose(python_math.inf, a.maximum(b))
    ratio = smaller / larger
    return _Magnitudes(larger, smaller, ratio.is_nan().choose(0.0, ratio))


def _modulus(z: _Parts) -> Number:
    magnitudes = _magnitudes(*z)
    return magnitudes.larger * magnitudes.h


def _argument(z: _Parts) -> Number:
    x, y = z
    return y.angle_from(x)


def _log(z: _Parts) -> _Parts:
    magnitudes = _magnitudes(*z)
    m, n = magnitudes.larger, magnitudes.smaller
    return _log_modulus(magnitudes, (m - 1.0) * (m + 1.0) + n * n), _argument(z)


def _log1p(z: _Parts) -> _Parts:
    x, y = z
    moved = x + 1.0
    return _log_modulus(_magnitudes(moved, y), x * (x + 2.0) + y * y), y.angle_from(moved)


def _log_modulus(magnitudes: _Magnitudes, square_less_one: Number) -> Number:
    """square_less_one  the modulus squared minus 1, for a modulus near 1"""
    m, r = magnitudes.larger, magnitudes.ratio
    is_near = m.holds("ogt", 0.5) & m.holds("olt", 2.0)
    root = is_near.choose(square_less_one, r * r).apply(math.Log1pOp) * 0.5
    return is_near.choose(root, m.apply(math.LogOp) + root)


def _sign(z: _Parts) -> _Parts:
    x, y = z
    magnitudes = _magnitudes(x, y)
    m, h = magnitudes.larger, magnitudes.h
    is_zero, is_axis = m.holds("oeq", 0.0), m.is_infinite() & magnitudes.smaller.holds("une", python_math.inf)
    along, across = _infinities_as_one(z)
    return (
        is_zero.choose(x, is_axis.choose(along, x / m / h)),
        is_zero.choose(y, is_axis.choose(across, y / m / h)),
    )


# --- sums, products, quotients ---------------------------------------------------------------------------------------------------


def _add(a: _Parts, b: _Parts) -> _Parts:
    return a[0] + b[0], a[1] + b[1]


def _subtract(a: _Parts, b: _Parts) -> _Parts:
    return a[0] - b[0], a[1] - b[1]


def _negate(z: _Parts) -> _Parts:
    return -z[0], -z[1]


def _conjugate(z: _Parts) -> _Parts:
    return z[0], -z[1]


def _multiply(a: _Parts, b: _Parts) -> _Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _divide(a: _Parts, b: _Parts) -> _Parts:
    """Smith's quotient, replaced by C's results where zeros or infinities occur."""
    (x, y), (u, v) = a, b
    ratio = u / v
    scale = u * ratio + v
    by_imaginary = (x * ratio + y) / scale, (y * ratio - x) / scale
    ratio = v / u
    scale = u + v * ratio
    by_real = (x + y * ratio) / scale, (y - x * ratio) / scale
    is_imaginary_larger = abs(u).holds("olt", abs(v))
    real, imaginary = (is_imaginary_larger.choose(one, other) for one, other in zip(by_imaginary, by_real, strict=True))

    for applies, special in (_over_infinity(a, b), _of_infinity(a, b), _over_zero(a, b)):
        real, imaginary = applies.choose(special[0], real), applies.choose(special[1], imaginary)
    return real, imaginary


def _over_zero(a: _Parts, b: _Parts) -> tuple[Truth, _Parts]:
    (x, y), (u, v) = a, b
    is_zero = abs(u).holds("oeq", 0.0) & abs(v).holds("oeq", 0.0)
    has_number = x.holds("ord", x) | y.holds("ord", y)
    infinity = u.of(python_math.inf).with_sign_of(u)
    return is_zero & has_number, (infinity * x, infinity * y)


def _of_infinity(a: _Parts, b: _Parts) -> tuple[Truth, _Parts]:
    """An infinite number over a finite one: infinite, in the direction of the quotient."""
    (u, v), (x, y) = b, _infinities_as_one(a)
    applies = _is_any_infinite(a) & _are_finite(b)
    return applies, ((x * u + y * v) * python_math.inf, (y * u - x * v) * python_math.inf)


def _over_infinity(a: _Parts, b: _Parts) -> tuple[Truth, _Parts]:
    """A finite number over an infinite one: zero."""
    (x, y), (u, v) = a, _infinities_as_one(b)
    applies = _are_finite(a) & _is_any_infinite(b)
    return applies, ((x * u + y * v) * 0.0, (y * u - x * v) * 0.0)


def _is_any_infinite(z: _Parts) -> Truth:
    return abs(z[0]).is_infinite() | abs(z[1]).is_infinite()


def _are_finite(z: _Parts) -> Truth:
    return abs(z[0]).holds("olt", python_math.inf) & abs(z[1]).holds("olt", python_math.inf)


def _infinities_as_one(z: _Parts) -> _Parts:
    """Infinite parts as 1, finite ones as 0, with their signs."""
    x, y = (abs(part).is_infinite().choose(1.0, part.of(0.0)).with_sign_of(part) for part in z)
    return x, y


def _equal(a: _Parts, b: _Parts) -> Number:
    both = a[0].holds("oeq", b[0]) & a[1].holds("oeq", b[1])
    return Number(both.builder, both.value)


def _not_equal(a: _Parts, b: _Parts) -> Number:
    either = a[0].holds("une", b[0]) | a[1].holds("une", b[1])
    return Number(either.builder, either.value)


# --- roots -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Root:
    """The square root of |re| + i |im|, divided by the square root of the larger magnitude; `one` and `other` are its parts."""

    magnitudes: _Magnitudes
    one: Number
    other: Number


def _root(x: Number, y: Number) -> _Root:
    magnitudes = _magnitudes(x, y)
    is_imaginary_larger = abs(x).holds("olt", abs(y))
    ratio, unit = magnitudes.ratio, x.of(1.0)
    along, across = is_imaginary_larger.choose(ratio, unit), is_imaginary_larger.choose(unit, ratio)
    one = ((magnitudes.h + along) * 0.5).apply(math.SqrtOp)
    return _Root(magnitudes, one, across * 0.5 / one)


def _sqrt(z: _Parts) -> _Parts:
    x, y = z
    root = _root(x, y)
    m = root.magnitudes.larger
    scale = m.apply(math.SqrtOp)
    # The root of an infinite real number has a zero imaginary part unless the imaginary part is infinite or NaN.
    is_flat = m.is_infinite() & abs(y).holds("olt", python_math.inf)
    one, other = scale * root.one, is_flat.choose(0.0, scale * root.other)
    is_left = x.holds("olt", 0.0)
    real, imaginary = is_left.choose(other, one), is_left.choose(one, other).with_sign_of(y)
    is_vertical = abs(y).is_infinite()
    return is_vertical.choose(python_math.inf, real), is_vertical.choose(y, imaginary)


def _rsqrt(z: _Parts) -> _Parts:
    x, y = z
    root = _root(x, y)
    scale = root.magnitudes.larger.apply(math.RsqrtOp)
    h = root.magnitudes.h
    one, other = scale * (root.one / h), scale * (root.other / h)
    is_left = x.holds("olt", 0.0)
    real, imaginary = is_left.choose(other, one), is_left.choose(one, other).with_sign_of(-y)
    return real, root.magnitudes.larger.holds("oeq", 0.0).choose(python_math.nan, imaginary)


# --- exponentials ----------------------------------------------------------------------------------------------------------------


def _scaled_exp(x: Number, *factors: Number) -> tuple[Number, ...]:
    """exp(x) times each factor. Factors have a magnitude of at most 1, which may bring the product back into range."""
    whole, half = x.apply(math.ExpOp), (x * 0.5).apply(math.ExpOp)
    overflows = whole.is_infinite()
    return tuple(overflows.choose(half * factor * half, whole * factor) for factor in factors)


def _cos_sin(x: Number) -> _Parts:
    return x.apply(math.CosOp), x.apply(math.SinOp)


def _exp(z: _Parts) -> _Parts:
    x, y = z
    cosine, sine = _cos_sin(y)
    # exp(-inf) is 0 for every imaginary part, NaN too.
    vanishes = x.holds("oeq", -python_math.inf)
    real, imaginary = _scaled_exp(x, vanishes.choose(1.0, cosine), vanishes.choose(0.0, sine))
    return _infinite_if_lost(x, real), y.holds("oeq", 0.0).choose(y, imaginary)


def _infinite_if_lost(x: Number, part: Number) -> Number:
    """For infinite x: an infinite result part, of either sign, if the argument's other part is NaN."""
    return (x.is_infinite() & part.is_nan()).choose(python_math.inf, part)


def _expm1(z: _Parts) -> _Parts:
    x, y = z
    less_one = x.apply(math.ExpM1Op)
    cosine, sine = _cos_sin(y)
    # Use each form where it does not cancel.
    cosine_less_one = cosine.holds("ogt", 0.0).choose(-(sine * sine) / (cosine + 1.0), cosine - 1.0)
    vanishes = x.holds("oeq", -python_math.inf)
    large, imaginary = _scaled_exp(x, cosine, vanishes.choose(0.0, sine))
    real = less_one.is_infinite().choose(large, less_one * cosine + cosine_less_one)
    return vanishes.choose(-1.0, real), y.holds("oeq", 0.0).choose(y, imaginary)


def _hyperbolic(x: Number, for_cosh: Number, for_sinh: Number) -> _Parts:
    """cosh(x) and sinh(x), times factors of magnitude at most 1, which may bring the product back into range."""
    cosh, sinh = x.apply(math.CoshOp), x.apply(math.SinhOp)
    half = (abs(x) * 0.5).apply(math.ExpOp)
    overflows = cosh.is_infinite()
    return (
        overflows.choose(half * 0.5 * for_cosh * half, cosh * for_cosh),
        overflows.choose((half * 0.5 * for_sinh * half) * x.of(1.0).with_sign_of(x), sinh * for_sinh),
    )


def _sin(z: _Parts) -> _Parts:
    x, y = z
    cosine, sine = _cos_sin(x)
    real, imaginary = _hyperbolic(y, sine, cosine)
    imaginary = _infinite_if_lost(abs(y), imaginary)
    return x.holds("oeq", 0.0).choose(x, real), y.holds("oeq", 0.0).choose(y, imaginary)


def _cos(z: _Parts) -> _Parts:
    x, y = z
    cosine, sine = _cos_sin(x)
    real, imaginary = _hyperbolic(y, cosine, -sine)
    is_real = x.holds("oeq", 0.0) | y.holds("oeq", 0.0)
    return _infinite_if_lost(abs(y), real), is_real.choose(0.0, imaginary)


def _tanh(z: _Parts) -> _Parts:
    x, y = z
    cosine, sine = _cos_sin(y)
    cosh, sinh = x.apply(math.CoshOp), x.apply(math.SinhOp)
    square, turn = sinh * sinh, sine * cosine
    scale = square + cosine * cosine
    # For such large real parts the result is 1 + 0i.
    is_far = square.is_infinite() & (abs(x).is_infinite() | turn.holds("ord", turn))
    real = is_far.choose(x.of(1.0).with_sign_of(x), sinh * cosh / scale)
    imaginary = is_far.choose(x.of(0.0).with_sign_of(turn), turn / scale)
    return x.holds("oeq", 0.0).choose(x, real), y.holds("oeq", 0.0).choose(y, imaginary)


def _tan(z: _Parts) -> _Parts:
    x, y = z
    real, imaginary = _tanh((-y, x))
    return imaginary, -real


# --- powers ----------------------------------------------------------------------------------------------------------------------


def _pow(a: _Parts, b: _Parts) -> _Parts:
    (length, angle), (u, v) = _log(a), b
    # For a real exponent the products with its imaginary part are left out: 0 times an infinite logarithm would be NaN.
    is_real = v.holds("oeq", 0.0)
    exponent = (
        u * length - is_real.choose(0.0, v * angle),
        u * angle + is_real.choose(0.0, v * length),
    )
    real, imaginary = _exp(exponent)
    is_one = u.holds("oeq", 0.0) & is_real
    return is_one.choose(1.0, real), is_one.choose(0.0, imaginary)


def _powi(a: _Parts, n: Number) -> _Parts:
    real = a[0]
    assert isa(real.value.type, AnyFloat)
    exponent = Number(n.builder, n.builder.insert(arith.SIToFPOp(n.value, real.value.type)).result)
    return _pow(a, (exponent, real.of(0.0)))


def _atan2(y: _Parts, x: _Parts) -> _Parts:
    largest = abs(y[0]).maximum(abs(y[1])).maximum(abs(x[0]).maximum(abs(x[1])))
    y, x = (y[0] / largest, y[1] / largest), (x[0] / largest, x[1] / largest)
    numerator = x[0] - y[1], x[1] + y[0]
    norm = _sqrt(_add(_multiply(x, x), _multiply(y, y)))
    real, imaginary = _log(_divide(numerator, norm))
    return imaginary, -real


_EXPANSIONS: dict[type[Operation], _Expansion] = {
    complex.AbsOp: _modulus,
    complex.AddOp: _add,
    complex.AngleOp: _argument,
    complex.Atan2Op: _atan2,
    complex.ConjOp: _conjugate,
    complex.CosOp: _cos,
    complex.DivOp: _divide,
    complex.EqualOp: _equal,
    complex.ExpOp: _exp,
    complex.Expm1Op: _expm1,
    complex.Log1pOp: _log1p,
    complex.LogOp: _log,
    complex.MulOp: _multiply,
    complex.NegOp: _negate,
    complex.NotEqualOp: _not_equal,
    complex.PowOp: _pow,
    PowiOp: _powi,
    complex.RsqrtOp: _rsqrt,
    complex.SignOp: _sign,
    complex.SinOp: _sin,
    complex.SqrtOp: _sqrt,
    complex.SubOp: _subtract,
    complex.TanOp: _tan,
    complex.TanhOp: _tanh,
}
