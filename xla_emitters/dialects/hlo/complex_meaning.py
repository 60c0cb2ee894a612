"""Functions of complex numbers that NumPy lacks or does not compute exactly enough.

    quotient(a, b)        infinite over 0, 0 over infinity
    product(a, b)         by parts, each operation rounded once: NumPy's own may be fused
    exp_minus_one(z)      (expm1 re cos im - 2 sin(im / 2)^2, exp re sin im)
    power(a, b)           exp(b log a)                      a^0 = 1      0^2 = 0       0^-1 = inf
    log_plus_one(z)       log|1 + z| from |1 + z|^2 - 1 if that is small: 1 + z would lose digits
    reciprocal_sqrt(z)    conj(sqrt z) / |z|                0 at infinity; (inf, NaN) at 0
    sign(z)               z / |z| of z 2^k with a part near 1: |z| may be infinite, or so small that it has few bits

All but `product` take and return complex128; a caller in complex64 rounds their value once. Special values are those of C's
Annex G. Source: docs/reference/1 5.2, 5.3; C 23, Annex G; Kahan, "Branch cuts for complex elementary functions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xla_emitters.dtypes import Array


def from_parts(real: Array, imaginary: Array) -> Array:
    """Complex numbers from float32 or float64 parts, infinities and NaNs unchanged; `real + 1j * imaginary` would mix them."""
    both = np.stack(np.broadcast_arrays(real, imaginary), axis=-1)
    return both.view(np.result_type(real.dtype, np.complex64))[..., 0]


def product(one: Array, other: Array) -> Array:
    (a, b), (c, d) = (np.real(one), np.imag(one)), (np.real(other), np.imag(other))
    return from_parts(a * c - b * d, a * d + b * c)


def quotient(one: Array, other: Array) -> Array:
    """NumPy's quotient, except as in C 23, G.5.1: number / 0, infinity / number and infinity / 0 are infinite, number / infinity is 0."""
    value = np.asarray(one / other)
    real, imaginary = np.real(value), np.imag(value)
    (a, b), (c, d) = (np.real(one), np.imag(one)), (np.real(other), np.imag(other))
    with_number = ~(np.isnan(a) & np.isnan(b)) & (other == 0)
    infinite, finite = np.isinf(one) & np.isfinite(other), np.isfinite(one) & np.isinf(other)
    (p, q), (u, v) = _infinities_as_one(a, b), _infinities_as_one(c, d)
    for applies, parts in (
        (infinite, (np.inf * (p * c + q * d), np.inf * (q * c - p * d))),
        (finite, (0 * (a * u + b * v), 0 * (b * u - a * v))),
        (with_number, (np.copysign(np.inf, c) * a, np.copysign(np.inf, c) * b)),
    ):
        real, imaginary = np.where(applies, parts[0], real), np.where(applies, parts[1], imaginary)
    return from_parts(real, imaginary)


def _infinities_as_one(*parts: Array) -> tuple[Array, Array]:
    """Infinite parts as 1, others as 0, with their signs."""
    one, other = (np.copysign(np.isinf(part).astype(np.float64), part) for part in parts)
    return one, other


def power(base: Array, exponent: Array) -> Array:
    """exp(b log a). A real exponent scales both parts of the logarithm, without a product 0 * infinity."""
    logarithm = np.log(base)
    length, angle = np.real(logarithm), np.imag(logarithm)
    real, imaginary = np.real(exponent), np.imag(exponent)
    is_real = imaginary == 0
    along = real * length - np.where(is_real, 0, imaginary * angle)
    across = real * angle + np.where(is_real, 0, imaginary * length)
    return np.where(exponent == 0, 1, np.exp(from_parts(along, across)))


def exp_minus_one(z: Array) -> Array:
    real, imaginary = np.real(z), np.imag(z)
    half = np.sin(imaginary / 2)
    along = np.expm1(real) * np.cos(imaginary) - 2 * half * half
    return from_parts(np.where(real == -np.inf, -1, along), np.imag(np.exp(z)))


def log_plus_one(z: Array) -> Array:
    real, imaginary = np.real(z), np.imag(z)
    moved = real + 1
    size = np.hypot(moved, imaginary)
    near = np.log1p(real * (real + 2) + imaginary * imaginary) / 2
    return from_parts(np.where((size > 0.5) & (size < 2), near, np.log(size)), np.arctan2(imaginary, moved))


def reciprocal_sqrt(z: Array) -> Array:
    root = np.sqrt(z)
    value = np.conj(root) / np.abs(root) / np.abs(root)
    value = np.where(np.isinf(root), 0, value)
    return np.where(z == 0, complex(np.inf, np.nan), value)


def arc_tangent_of_quotient(y: Array, x: Array) -> Array:
    """-i log((x + i y) / sqrt(x^2 + y^2)). Both are divided by their largest part first, since their squares may overflow."""
    y, x = over_largest_part(*np.broadcast_arrays(y, x))
    turned = from_parts(np.real(x) - np.imag(y), np.imag(x) + np.real(y))
    value = np.log(turned / np.sqrt(x * x + y * y))
    return from_parts(np.imag(value), -np.real(value))


def over_largest_part(*numbers: Array) -> list[Array]:
    """Complex numbers of one shape, divided by the largest of all their parts: by parts, since NumPy's complex division overflows."""
    largest = np.maximum.reduce([np.abs(part) for z in numbers for part in (np.real(z), np.imag(z))])
    return [from_parts(np.real(z) / largest, np.imag(z) / largest) for z in numbers]


def stands(strictly: Callable[..., Array], order: Callable[..., Array], one: Array, other: Array) -> Array:
    """Whether `one` precedes `other` in the given order: by the real part, then by the imaginary one.

    strictly  the same order without equality
    """
    real = np.real(one), np.real(other)
    return strictly(*real) | ((real[0] == real[1]) & order(np.imag(one), np.imag(other)))


def sign(z: Array) -> Array:
    largest = np.maximum(np.abs(np.real(z)), np.abs(np.imag(z))).astype(np.float64)
    exponents = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    real, imaginary = (np.ldexp(part.astype(np.float64), -exponents) for part in (np.real(z), np.imag(z)))
    return np.asarray(np.sign(from_parts(real, imaginary)))
