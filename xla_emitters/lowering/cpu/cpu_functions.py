"""LLVM IR for CPUs of the libdevice functions that kernels call.

    declare float @__nv_expf(float)        ->        define internal float @__nv_expf(float %0) alwaysinline { ... }

exp, log, expm1 and log1p on f32 are written out without branches, so that LLVM vectorizes loops that call them. Functions with a CPU
instruction are LLVM intrinsics. All others call the C library, one element at a time.

    exp    n = rint(x / ln 2);  r = x - n ln 2, in two steps;  2^n (1 + r + r^2 q(r)); 2^n is two factors, as 2^128 is none
    expm1  2^n ((1 - 2^-n) + (r + r^2 q(r)))
    log    x = 2^e m, m in [sqrt(1/2), sqrt(2));  f = m - 1;  e ln 2 + f - f^2/2 + f^3 q(f)
    log1p  u = 1 + x;  log u + (x - (u - 1)) / u

All are within 2 units in the last place, but for subnormal values of exp, which are 0 (tests/runtime/test_cpu_programs.py: every
4099th float).
Source: S. Moshier, Cephes mathematical library, `expf` and `logf` (method and coefficients); Cody and Waite, "Software manual for the
elementary functions" (1980; reduction).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xla_emitters.dialects.mlir import llvm
from xla_emitters.errors import Unsupported
from xla_emitters.functions import FUNCTIONS
from xla_emitters.lowering.llvm_ir.spelling import type_text

INTRINSICS = frozenset(("sqrt", "floor", "ceil", "trunc", "round", "rint", "nearbyint", "fabs", "copysign", "fma"))
"""Functions that a CPU has an instruction for, or LLVM a short sequence."""
KNOWN = frozenset(row.libdevice for row in FUNCTIONS if row.libdevice)
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
"""Coefficients of q, highest power first."""


def definition(function: llvm.FuncOp) -> str:
    """LLVM IR that defines a declared function of libdevice. raises Unsupported for another function"""
    name = function.sym_name.data
    types = [type_text(ir_type) for ir_type in function.function_type.inputs]
    result = type_text(function.function_type.output)
    stem = name.removeprefix("__nv_").removeprefix("fast_")
    if result == "float":
        stem = stem.removesuffix("f")
    if not name.startswith("__nv_") or stem not in KNOWN or result not in ("float", "double"):
        raise Unsupported(f"no function '{name}' for a CPU", stage="cpu")
    parameters = ", ".join(f"{ir_type} %{number}" for number, ir_type in enumerate(types))
    lines, declared = _body(stem, types, result)
    return "\n".join(
        (
            *declared,
            f"define internal {result} @{name}({parameters}) alwaysinline {{",
            *(f"  {line}" for line in lines),
            "}",
        )
    )


def _body(stem: str, types: Sequence[str], result: str) -> tuple[list[str], list[str]]:
    """Lines of the function, whose arguments are %0, %1 ..., and the declarations that they need."""
    is_float = result == "float"
    if is_float and stem in _WRITTEN_OUT:
        return _WRITTEN_OUT[stem](), []
    if stem == "rsqrt":
        root = f"%root = call {result} @llvm.sqrt.{_suffix(result)}({result} %0)"
        return [root, f"%y = fdiv {result} {_number(1.0)}, %root", f"ret {result} %y"], []
    if stem == "powi":
        power = f"%power = sitofp {types[1]} %1 to {result}"
        call = f"%y = call {result} @{_c_name('pow', result)}({result} %0, {result} %power)"
        return [power, call, f"ret {result} %y"], [_declared(_c_name("pow", result), [result, result], result)]
    given = ", ".join(f"{ir_type} %{number}" for number, ir_type in enumerate(types))
    if stem in INTRINSICS:
        return [f"%y = call {result} @llvm.{stem}.{_suffix(result)}({given})", f"ret {result} %y"], []
    called = _c_name(stem, result)
    return [f"%y = call {result} @{called}({given})", f"ret {result} %y"], [_declared(called, types, result)]


def _declared(name: str, types: Sequence[str], result: str) -> str:
    return f"declare {result} @{name}({', '.join(types)}) nounwind willreturn memory(none)"


def _c_name(stem: str, result: str) -> str:
    return f"{stem}f" if result == "float" else stem


def _suffix(result: str) -> str:
    return "f32" if result == "float" else "f64"


def _number(value: float) -> str:
    """A float in LLVM IR's spelling: the bits of the f64 of the same value."""
    (narrow,) = struct.unpack("<f", struct.pack("<f", value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', narrow))[0]:016X}"


def _horner(coefficients: Sequence[float], x: str, name: str) -> tuple[list[str], str]:
    """Lines that compute a polynomial by fused multiply-add, and the name of its value."""
    lines, value = list[str](), _number(coefficients[0])
    for number, coefficient in enumerate(coefficients[1:]):
        found = f"%{name}{number}"
        lines.append(f"{found} = call float @llvm.fma.f32(float {value}, float {x}, float {_number(coefficient)})")
        value = found
    return lines, value


def _exp() -> list[str]:
    return [
        # Results below the smallest normal number become zero: a CPU takes a hundred times as long with subnormals.
        *_reduced(-87.33654022, 0.0),
        f"%whole = fadd float %rest, {_number(1.0)}",
        *_power_of_two("half", "%half"),
        *_power_of_two("other", "%other"),
        "%once = fmul float %whole, %half_factor",
        "%whole_y = fmul float %once, %other_factor",
        f"%y = select i1 %is_low, float {_number(0.0)}, float %whole_y",
        "ret float %y",
    ]


def _expm1() -> list[str]:
    return [
        *_reduced(-30.0, -30.0),
        "%negative = sub i32 0, %integer",
        "%opposite = call i32 @llvm.smax.i32(i32 %negative, i32 -127)",  # whose power is written as 0
        *_power_of_two("inverse", "%opposite"),
        f"%one = fsub float {_number(1.0)}, %inverse_factor",
        "%whole = fadd float %rest, %one",
        *_power_of_two("half", "%half"),
        *_power_of_two("other", "%other"),
        "%once = fmul float %whole, %half_factor",
        "%whole_y = fmul float %once, %other_factor",
        *_zero_kept("%whole_y"),
    ]


def _reduced(least: float, instead: float) -> list[str]:
    """Lines for `%rest`, exp(r) - 1, `%integer`, n, and its halves `%half` and `%other`; below `least`, those of `instead`."""
    low, high = _number(least), _number(89.0)
    polynomial, q = _horner(_EXP, "%r", "q")
    return [
        f"%is_high = fcmp ogt float %0, {high}",
        f"%at_most = select i1 %is_high, float {high}, float %0",
        f"%is_low = fcmp olt float %at_most, {low}",
        f"%x = select i1 %is_low, float {_number(instead)}, float %at_most",
        f"%scaled = fmul float %x, {_number(1.4426950408889634)}",
        "%n = call float @llvm.rint.f32(float %scaled)",
        f"%r0 = call float @llvm.fma.f32(float %n, float {_number(-0.693359375)}, float %x)",
        f"%r = call float @llvm.fma.f32(float %n, float {_number(2.12194440054690583e-4)}, float %r0)",
        *polynomial,
        "%square = fmul float %r, %r",
        f"%rest = call float @llvm.fma.f32(float {q}, float %square, float %r)",
        # The integer converted from NaN does not matter, because the product is NaN.
        "%is_number = fcmp ord float %n, %n",
        f"%m = select i1 %is_number, float %n, float {_number(0.0)}",
        "%integer = fptosi float %m to i32",
        "%half = ashr i32 %integer, 1",
        "%other = sub i32 %integer, %half",
    ]


def _power_of_two(name: str, exponent: str) -> list[str]:
    """Lines for `%<name>_factor`."""
    return [
        f"%{name}_biased = add i32 {exponent}, 127",
        f"%{name}_bits = shl i32 %{name}_biased, 23",
        f"%{name}_factor = bitcast i32 %{name}_bits to float",
    ]


def _zero_kept(value: str) -> list[str]:
    """Lines that return `value`; zeros as they are, with their sign."""
    return [
        f"%is_zero_itself = fcmp oeq float %0, {_number(0.0)}",
        f"%signed = select i1 %is_zero_itself, float %0, float {value}",
        "ret float %signed",
    ]


def _log() -> list[str]:
    return [*_logarithm("%0"), "ret float %y"]


def _log1p() -> list[str]:
    return [
        f"%u = fadd float %0, {_number(1.0)}",
        *_logarithm("%u"),
        f"%taken = fadd float %u, {_number(-1.0)}",
        "%lost = fsub float %0, %taken",
        "%correction = fdiv float %lost, %u",
        "%corrected = fadd float %y, %correction",
        # Infinities and NaN of the logarithm are final.
        "%difference = fsub float %y, %y",
        f"%is_finite = fcmp oeq float %difference, {_number(0.0)}",
        "%final = select i1 %is_finite, float %corrected, float %y",
        *_zero_kept("%final"),
    ]


def _logarithm(argument: str) -> list[str]:
    """Lines for `%y`, the logarithm of `argument`."""
    polynomial, q = _horner(_LOG, "%f", "q")
    infinity, nan = "0x7FF0000000000000", "0x7FF8000000000000"
    return [
        f"%is_small = fcmp olt float {argument}, {_number(1.17549435e-38)}",
        f"%larger = fmul float {argument}, {_number(8388608.0)}",
        f"%x = select i1 %is_small, float %larger, float {argument}",
        "%shift = select i1 %is_small, i32 -23, i32 0",
        "%bits = bitcast float %x to i32",
        f"%above = sub i32 %bits, {0x3F3504F3}",
        "%exponent = ashr i32 %above, 23",
        "%moved = shl i32 %exponent, 23",
        "%m_bits = sub i32 %bits, %moved",
        "%m = bitcast i32 %m_bits to float",
        "%total = add i32 %exponent, %shift",
        "%e = sitofp i32 %total to float",
        f"%f = fadd float %m, {_number(-1.0)}",
        "%z = fmul float %f, %f",
        *polynomial,
        "%cube = fmul float %f, %z",
        f"%low = fmul float %e, {_number(-2.12194440e-4)}",
        f"%y0 = call float @llvm.fma.f32(float {q}, float %cube, float %low)",
        f"%y1 = call float @llvm.fma.f32(float %z, float {_number(-0.5)}, float %y0)",
        "%y2 = fadd float %f, %y1",
        f"%y3 = call float @llvm.fma.f32(float %e, float {_number(0.693359375)}, float %y2)",
        f"%is_infinite = fcmp oeq float {argument}, {infinity}",
        f"%y4 = select i1 %is_infinite, float {infinity}, float %y3",
        f"%is_zero = fcmp oeq float {argument}, {_number(0.0)}",
        "%y5 = select i1 %is_zero, float 0xFFF0000000000000, float %y4",
        f"%is_good = fcmp oge float {argument}, {_number(0.0)}",
        f"%y = select i1 %is_good, float %y5, float {nan}",
    ]


_WRITTEN_OUT = {"exp": _exp, "expm1": _expm1, "log": _log, "log1p": _log1p}
