"""Functions that HLO lacks, as formulas of its ops: the error functions, gamma functions, a Bessel function, the next float.

    erf_inv(x)     Giles' polynomials in -log(1 - x^2)                digamma(x)        the derivative of lgamma's formula
    erfc(x)        exp(-x^2) times Cephes' polynomials in 1/x^2       zeta(x, q)        Euler-Maclaurin summation
    lgamma(x)      Lanczos' approximation, g = 7                      polygamma(n, x)   n! zeta(n + 1, x), up to the sign
    bessel_i1e(x)  Chebyshev series of Cephes                         next_after(x, y)  the bits of x plus or minus one

A formula is a function of `ScalarValue`s of one type, f32 or f64 (narrower floats are widened first). `Scalars` turns it into a computation
of scalars, which `hlo.map` applies to arrays of any sizes: constants need no shape, and a `?` needs no shape arithmetic.
Source: M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011); S. Moshier, Cephes (netlib.org/cephes: ndtr, i1);
C. Lanczos, "A precision approximation of the gamma function" (1964); DLMF 25.11.43 and 5.15.1 (dlmf.nist.gov).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.types import array_type, element_of
from xla_emitters.dtypes import DType, dtype
from xla_emitters.text.stablehlo.computations import Conversion


class Scalars:
    """Adds ops on scalars of one floating type; each distinct constant is added once."""

    def __init__(self, c: Conversion, element: DType):
        self.c = c
        self.element = element
        self.bits = dtype(f"u{element.bits}")
        self._constants: dict[tuple[str, str], SSAValue] = {}

    @property
    def is_double(self) -> bool:
        return self.element.bits == 64

    def constant(self, value: float, element: DType | None = None) -> ScalarValue:
        element = element or self.element
        key = (element.name, repr(value))
        if key not in self._constants:
            array = np.asarray(value).astype(element.numpy)
            self._constants[key] = self.c.constant(array, array_type(element.ir_type, ()))
        return ScalarValue(self, self._constants[key])

    def number(self, value: SSAValue) -> ScalarValue:
        return ScalarValue(self, value)

    def apply(
        self, opcode: str, *operands: ScalarValue | float, result: DType | None = None, **properties: str
    ) -> ScalarValue:
        """Adds an op; plain numbers become constants of the first operand's type."""
        first = next(operand for operand in operands if isinstance(operand, ScalarValue))
        values = [
            operand.value if isinstance(operand, ScalarValue) else self.constant(operand, element_of(first.value)).value
            for operand in operands
        ]
        element = result or element_of(values[0])
        attributes = {key: StringAttr(value) for key, value in properties.items()}
        return ScalarValue(self, self.c.add(opcode, values, array_type(element.ir_type, ()), **attributes))

    def select(self, condition: ScalarValue, then: ScalarValue | float, otherwise: ScalarValue | float) -> ScalarValue:
        values = [
            part.value if isinstance(part, ScalarValue) else self.constant(part).value for part in (then, otherwise)
        ]
        return ScalarValue(self, self.c.add("select", [condition.value, *values], values[0].type))


@dataclass(frozen=True, eq=False)
class ScalarValue:
    """A scalar value, with Python's operators."""

    of: Scalars
    value: SSAValue

    def __add__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("add", self, other)

    def __radd__(self, other: float) -> ScalarValue:
        return self.of.apply("add", self, other)

    def __sub__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("subtract", self, other)

    def __rsub__(self, other: float) -> ScalarValue:
        return self.of.apply("subtract", other, self)

    def __mul__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("multiply", self, other)

    def __rmul__(self, other: float) -> ScalarValue:
        return self.of.apply("multiply", self, other)

    def __truediv__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("divide", self, other)

    def __rtruediv__(self, other: float) -> ScalarValue:
        return self.of.apply("divide", other, self)

    def __neg__(self) -> ScalarValue:
        return self.of.apply("negate", self)

    def __abs__(self) -> ScalarValue:
        return self.of.apply("abs", self)

    def __pow__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("power", self, other)

    def __and__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("and", self, other)

    def __or__(self, other: ScalarValue | float) -> ScalarValue:
        return self.of.apply("or", self, other)

    def is_(self, direction: str, other: ScalarValue | float) -> ScalarValue:
        """The comparison of this number with the other; direction is LT, LE, EQ, NE, GE or GT."""
        return self.of.apply("compare", self, other, result=dtype("pred"), direction=direction)

    def fn(self, opcode: str) -> ScalarValue:
        """A function of one argument, given by HLO's opcode."""
        return self.of.apply(opcode, self)


Formula = Callable[[Scalars, Sequence[ScalarValue]], ScalarValue]


def polynomial(x: ScalarValue, coefficients: Sequence[float]) -> ScalarValue:
    """A polynomial by Horner's rule; the coefficient of the highest power is first."""
    found = x.of.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        found = found * x + coefficient
    return found


def piecewise(x: ScalarValue, limits: Sequence[float], pieces: Sequence[ScalarValue]) -> ScalarValue:
    """The first piece if x is below the first limit, and so on; the last piece otherwise."""
    found = pieces[-1]
    for limit, piece in zip(reversed(limits), reversed(pieces[:-1]), strict=True):
        found = x.of.select(x.is_("LT", limit), piece, found)
    return found


# ------------------------------------------------------------------------------------------------------- error functions

_ERF_INV_SINGLE = (
    (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
     0.246640727, 1.50140941),
    (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
     1.00167406, 2.83297682),
)  # fmt: skip
_ERF_INV_DOUBLE = (
    (-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
     -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
     -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
     1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
     -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
     -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356),
    (2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
     1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
     -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
     0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
     0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635),
    (-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
     7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
     2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
     7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
     4.8499064014085844221),
)  # fmt: skip


def erf_inv(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    (x,) = arguments
    w = -(-x * x).fn("log-plus-one")
    if s.is_double:
        limits, shifts = (6.25, 16.0), (w - 3.125, w.fn("sqrt") - 3.25, w.fn("sqrt") - 5.0)
        tables: Sequence[Sequence[float]] = _ERF_INV_DOUBLE
    else:
        limits, shifts, tables = (5.0,), (w - 2.5, w.fn("sqrt") - 3.0), _ERF_INV_SINGLE
    p = piecewise(w, limits, [polynomial(t, table) for t, table in zip(shifts, tables, strict=True)])
    return s.select(abs(x).is_("EQ", 1.0), x * math.inf, p * x)


_ERFC_SINGLE = (
    (2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1, 6.210004621745983e-1,
     -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1),
    (-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786, -1.015265279202700,
     4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1),
)  # fmt: skip
_ERFC_DOUBLE = (
    (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1,
     1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
     5.57535335369399327526e2),
    (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
     1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2),
    (5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195,
     7.40974269950448939160, 2.97886665372100240670),
    (1.0, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1, 1.70814450747565897222e1,
     9.60896809063285878198, 3.36907645100081516050),
)  # fmt: skip


def erfc(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    """1 - erf(x) near zero, where nothing cancels; else Cephes' approximation of the tail."""
    (x,) = arguments
    size = abs(x)
    # For |x| <= 1 the tail is not selected; it must only be free of errors there.
    far = s.apply("maximum", size, 1.0)
    scale = (-(far * far)).fn("exponential")
    if s.is_double:
        near_top, near_bottom, far_top, far_bottom = (polynomial(far, table) for table in _ERFC_DOUBLE)
        tail = scale * piecewise(far, (8.0,), (near_top / near_bottom, far_top / far_bottom))
    else:
        q = 1.0 / far
        tail = scale * q * piecewise(far, (2.0,), [polynomial(q * q, table) for table in _ERFC_SINGLE])
    tail = s.select(size.is_("EQ", math.inf), 0.0, tail)
    return s.select(size.is_("LT", 1.0), 1.0 - x.fn("erf"), s.select(x.is_("LT", 0.0), 2.0 - tail, tail))


# ------------------------------------------------------------------------------------------------------- gamma functions

_LANCZOS_G = 7
_LANCZOS_BASE = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
    -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707,
    9.984369578019570859563e-6, 1.50563273514931155834e-7,
)  # fmt: skip


def _reflected(x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """Whether x is reflected, and z such that gamma(z + 1) is needed: z = -x if reflected, else x - 1."""
    low = x.is_("LT", 0.5)
    return low, x.of.select(low, -x, x - 1.0)


def _log_t(z: ScalarValue) -> ScalarValue:
    """log(z + g + 1/2), accurate for small z."""
    half = _LANCZOS_G + 0.5
    return (z / half).fn("log-plus-one") + math.log(half)


def lgamma(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    (x,) = arguments
    low, z = _reflected(x)
    series = s.constant(_LANCZOS_BASE)
    for i, coefficient in enumerate(_LANCZOS):
        series = series + coefficient / (z + (i + 1))
    t, log_t = z + (_LANCZOS_G + 0.5), _log_t(z)
    # (z + 1/2) log(t) - t, in a form with less cancellation.
    main = (z + 0.5 - t / log_t) * log_t + (0.5 * math.log(2 * math.pi)) + series.fn("log")
    size = abs(x)
    part = size - size.fn("floor")
    part = s.select(part.is_("GT", 0.5), 1.0 - part, part)
    log_sine = (part * math.pi).fn("sine").fn("log")
    mirrored = s.select(
        s.apply("is-finite", log_sine, result=dtype("pred")), math.log(math.pi) - log_sine - main, -log_sine
    )
    found = s.select(low, mirrored, main)
    return s.select(size.is_("EQ", math.inf), math.inf, found)


def digamma(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    (x,) = arguments
    low, z = _reflected(x)
    series, slope = s.constant(_LANCZOS_BASE), s.constant(0.0)
    for i, coefficient in enumerate(_LANCZOS):
        term = coefficient / (z + (i + 1))
        series, slope = series + term, slope - term / (z + (i + 1))
    t = z + (_LANCZOS_G + 0.5)
    main = _log_t(z) + slope / series - _LANCZOS_G / t
    # The cotangent has period 1: near a pole the distance to it is exact.
    part = (x - (x + 0.5).fn("floor")) * math.pi
    mirrored = main - math.pi * part.fn("cosine") / part.fn("sine")
    found = s.select(low, mirrored, main)
    is_pole = x.is_("LE", 0.0) & x.is_("EQ", x.fn("floor"))
    return s.select(is_pole, math.nan, found)


def _bernoulli_terms(count: int) -> list[float]:
    """B_2k / (2k)! for k = 1, 2 ..."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        known = sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0))
        numbers.append(-known / (m + 1))
    return [float(numbers[2 * k] / math.factorial(2 * k)) for k in range(1, count + 1)]


_TERMS = 9
_BERNOULLI = _bernoulli_terms(12)


def zeta(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    """Hurwitz' zeta function: the first terms of the sum, and the Euler-Maclaurin formula for the rest."""
    x, q = arguments
    total, a = q ** (-x), q
    for _ in range(_TERMS):
        a = a + 1.0
        total = total + a ** (-x)
    power = a ** (-x)
    total = total + power * a / (x - 1.0) - 0.5 * power
    factor = x
    for k, coefficient in enumerate(_BERNOULLI):
        power = power / a
        term = coefficient * factor * power
        total = total + term
        factor = factor * (x + (2 * k + 1.0)) * (x + (2 * k + 2.0))
        power = power / a
    is_whole = q.is_("EQ", q.fn("floor"))
    total = s.select(q.is_("LE", 0.0) & x.is_("NE", x.fn("floor")), math.nan, total)
    total = s.select(q.is_("LE", 0.0) & is_whole, math.inf, total)
    total = s.select(x.is_("LT", 1.0), math.nan, total)
    return s.select(x.is_("EQ", 1.0), math.inf, total)


def polygamma(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    n, x = arguments
    next_n = n + 1.0
    size = lgamma(s, [next_n]).fn("exponential") * zeta(s, [next_n, x])
    is_odd = (next_n * 0.5).is_("NE", (next_n * 0.5).fn("floor"))
    found = s.select(n.is_("EQ", 0.0), digamma(s, [x]), s.select(is_odd, -size, size))
    is_legal = n.is_("EQ", n.fn("floor")) & n.is_("GE", 0.0)
    return s.select(is_legal, found, math.nan)


# ------------------------------------------------------------------------------------------------------------ I1 e^-|x|

_I1E_NEAR = (
    2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16, -1.10559694773538630805e-15,
    7.60068429473540693410e-15, -5.04218550472791168711e-14, 3.22379336594557470981e-13, -1.98397439776494371520e-12,
    1.17361862988909016308e-11, -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9,
    9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7, -8.56872026469545474066e-7,
    3.47025130813767847674e-6, -1.32731636560394358279e-5, 4.78156510755005422638e-5, -1.61760815825896745588e-4,
    5.12285956168575772895e-4, -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
    2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1, -1.76416518357834055153e-1,
    2.52587186443633654823e-1,
)  # fmt: skip
_I1E_FAR = (
    7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17, -3.20952592199342395980e-17,
    2.96262899764595013876e-16, 3.30820231092092828324e-16, -1.88035477551078244854e-15, -3.81440307243700780478e-15,
    1.04202769841288027642e-14, 4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13,
    -7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11, 3.25260358301548823856e-11,
    -1.89749581235054123450e-11, -5.58974346219658380687e-10, -3.83538038596423702205e-9, -2.63146884688951950684e-8,
    -2.51223623787020892529e-7, -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3,
    7.78576235018280120474e-1,
)  # fmt: skip
_SINGLE_NEAR, _SINGLE_FAR = _I1E_NEAR[12:], _I1E_FAR[18:]


def _chebyshev(x: ScalarValue, coefficients: Sequence[float]) -> ScalarValue:
    """Clenshaw's recurrence for coefficients of T_n(x / 2), the highest first; the last one counts half."""
    older = old = x.of.constant(0.0)
    new = x.of.constant(0.0)
    for coefficient in coefficients:
        older, old = old, new
        new = x * old - older + coefficient
    return 0.5 * (new - older)


def bessel_i1e(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    (x,) = arguments
    size = abs(x)
    near, far = (_I1E_NEAR, _I1E_FAR) if s.is_double else (_SINGLE_NEAR, _SINGLE_FAR)
    small = _chebyshev(size * 0.5 - 2.0, near) * size
    large = _chebyshev(32.0 / size - 2.0, far) / size.fn("sqrt")
    found = s.select(size.is_("LE", 8.0), small, large)
    return found * x.fn("sign")


# ----------------------------------------------------------------------------------------------------------- next number


def next_after(s: Scalars, arguments: Sequence[ScalarValue]) -> ScalarValue:
    """The bits of x as an integer, plus one away from zero, minus one towards it. From zero: the smallest number with y's sign."""
    x, y = arguments
    unsigned = s.bits

    def bits(value: ScalarValue) -> ScalarValue:
        return s.apply("bitcast-convert", value, result=unsigned)

    sign = 1 << unsigned.bits - 1
    of_x, of_y = bits(x), bits(y)
    size_x, size_y = of_x & (sign - 1), of_y & (sign - 1)
    same_sign = (of_x & sign).is_("EQ", of_y & sign)
    toward_zero = size_x.is_("GT", size_y) | s.apply("not", same_sign)
    step = s.select(toward_zero, s.constant((1 << unsigned.bits) - 1, unsigned), s.constant(1, unsigned))
    moved = s.select(size_x.is_("EQ", 0), (of_y & sign) | 1, of_x + step)
    found = s.apply("bitcast-convert", moved, result=s.element)
    found = s.select(x.is_("EQ", y), y, found)
    return s.select(x.is_("NE", x) | y.is_("NE", y), math.nan, found)


FORMULAS: dict[str, tuple[int, Formula]] = {
    "bessel_i1e": (1, bessel_i1e),
    "digamma": (1, digamma),
    "erf_inv": (1, erf_inv),
    "erfc": (1, erfc),
    "lgamma": (1, lgamma),
    "next_after": (2, next_after),
    "polygamma": (2, polygamma),
    "zeta": (2, zeta),
}
"""Function -> (its number of arguments, its formula)."""

KEEPS_TYPE = frozenset(("next_after",))
"""Functions of the bits, which must not be computed in a wider type."""
