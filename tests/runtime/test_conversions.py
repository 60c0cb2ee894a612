"""`convert` between all real types, through the whole pipeline: every value of the types of 16 bits and fewer, samples of wider ones.

One fusion per source type converts to all types. Expected values come from exact numbers: a value of 16 bits is a float32, which ml_dtypes
rounds once; a sample of a wider type is a fraction, which Python rounds. On a100 all narrow floats are integer code, on h200 there are
instructions for two of them.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from long_lists import but_long

from xla_emitters.dialects.hlo.convert import convert_array
from xla_emitters.dtypes import DTYPES, Array, DType, Kind, dtype
from xla_emitters.explore.check.module_stages import CheckOptions, StageComparison
from xla_emitters.explore.check.verdict import Verdict, reference_for
from xla_emitters.pipelines.compiler import compile, compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.cpu.cpu_launcher import buffers_of
from xla_emitters.runtime.reference.reference_run import Reaching
from xla_emitters.text.hlo import parse_hlo

TYPES = tuple(row for row in DTYPES if row.kind is not Kind.COMPLEX and row.name not in ("f6e3m2fn", "f6e2m3fn"))
NARROW = tuple(row for row in TYPES if row.bits <= 16)
WIDE = tuple(row for row in TYPES if row.bits > 16)
# Integers of other widths are the same code as those that stay; floats that stay have each rule about zero, infinity and NaN.
LONG = tuple(dtype(name) for name in ("s2", "u2", "u4", "s8", "s16", "u16", "f8e3m4", "f8e4m3b11fnuz", "f8e5m2fnuz"))
LONG_WIDE = (dtype("u32"), dtype("s64"), dtype("f64"))
INSTRUCTIONS = {"f8e4m3fn": "e4m3x2", "f8e5m2": "e5m2x2"}


def array(row: DType, elements: int) -> str:
    return f"{row.name}[{elements}]{{0{f':E({row.bits})' if row.bits < 8 else ''}}}"


def fusion_from(source: DType, targets: Sequence[DType], elements: int) -> str:
    results = f"({', '.join(array(row, elements) for row in targets)})"
    converts = "\n".join(f"  c{k} = {array(row, elements)} convert(p)" for k, row in enumerate(targets))
    names = ", ".join(f"c{k}" for k in range(len(targets)))
    return f"""HloModule m

f {{
  p = {array(source, elements)} parameter(0)
{converts}
  ROOT r = {results} tuple({names})
}}

ENTRY main {{
  a = {array(source, elements)} parameter(0)
  ROOT o = {results} fusion(a), kind=kLoop, calls=f
}}
"""


def verdict_on(text: str, x: Array, device: str) -> Verdict:
    """As `check`, without the verifier after each pass, which takes longer than all the rest."""
    module = parse_hlo(text)
    shapes = compile_module(module, CompileOptions(stage="hlo", record="none"))
    how = CheckOptions("xla_gpu,llvm-dialect")
    reference = reference_for(module, [x])
    results = [np.zeros(spec.elements, dtype(spec.dtype).numpy) for spec in shapes.results]
    comparison = StageComparison(
        reference, shapes, {0: Reaching([*buffers_of(shapes, [x]), *results], reference.values)}, how
    )
    program = compile_module(
        module, CompileOptions(target=device, stage=how.last_stage, record="none"), observers=comparison.observer
    )
    return comparison.verdict(program)


def check_conversions(x: Array, source: DType, wanted: Callable[[Array, DType], Array]) -> None:
    """The reference against exact numbers, kernels against the reference: bit by bit.

    All types as emitted and as integer code; those that h200 has instructions for by these, too.
    """
    others = [row for row in TYPES if row is not source]
    for row in others:
        got, exact = convert_array(x, source, row), wanted(x, row)
        wrong = np.flatnonzero(differing(got, exact))
        lines = [f"{row.name} of {x[k]} is {got[k]}, wanted {exact[k]}" for k in wrong[:5]]
        assert not wrong.size, "\n".join((f"{wrong.size} of {x.size} differ", *lines))
    # If a result shares bytes, a thread computes several elements of all results: such types get a fusion of their own.
    kernels = [("a100", [row for row in others if row.bits < 8]), ("a100", [row for row in others if row.bits >= 8])]
    if source.name in INSTRUCTIONS:
        kernels.append(("h200", [row for row in others if row.kind is Kind.FLOAT and row.bits > 8]))
    elif source.kind is Kind.FLOAT:
        kernels.append(("h200", [row for row in others if row.name in INSTRUCTIONS]))
    for device, targets in kernels:
        verdict = verdict_on(fusion_from(source, targets, x.size), x, device)
        assert verdict.ok, verdict.details
        assert "bit-identical" in verdict.summary


# ---------------------------------------------------------------------------------------------- all values


def all_values(source: DType) -> Array:
    if source.kind is Kind.PRED:
        return np.array([False, True])
    codes = np.arange(1 << source.significant_bits)
    if source.is_integer:
        return (codes - (1 << source.significant_bits - 1 if source.kind is Kind.SIGNED else 0)).astype(source.numpy)
    return codes.astype(f"u{source.numpy.itemsize}").view(source.numpy)


def limits(target: DType) -> tuple[int, int]:
    if target.kind is Kind.SIGNED:
        return -(1 << target.significant_bits - 1), (1 << target.significant_bits - 1) - 1
    return 0, (1 << target.significant_bits) - 1


def wanted_of_narrow(x: Array, source: DType, target: DType) -> Array:
    """Every value of 16 bits is a float32."""
    exact = x.astype(np.float32)
    if target.kind is Kind.PRED:
        return exact != 0
    with np.errstate(all="ignore"):
        if target.kind is Kind.FLOAT:
            return exact.astype(target.numpy)
        low, high = limits(target)
        if source.kind is not Kind.FLOAT:
            whole = [int(value) & (1 << target.significant_bits) - 1 for value in exact]
            whole = [value - (1 << target.significant_bits) if value > high else value for value in whole]
            return np.array(whole, object).astype(np.uint64 if low == 0 else np.int64).astype(target.numpy)
        wide = np.uint64 if low == 0 else np.int64
        inside = np.where((exact > low) & (exact < float(high)), np.trunc(exact), 0).astype(wide)
        whole = np.where(exact >= float(high), wide(high), np.where(exact <= low, wide(low), inside))
        return np.where(np.isnan(exact), wide(0), whole).astype(target.numpy)


# Integers of 16 bits take the code of those of 8; each float has its own format.
@pytest.mark.parametrize("source", but_long(NARROW, LONG), ids=lambda row: row.name)
def test_every_value_of_a_narrow_type(source: DType) -> None:
    check_conversions(all_values(source), source, lambda x, target: wanted_of_narrow(x, source, target))


# ---------------------------------------------------------------------------------------------- samples


@cache
def samples(source: DType) -> Array:
    """Around the powers of two and three times those, where every narrower type has ties and limits; specials; random bits."""
    random = np.random.default_rng(source.bits)
    codes = random.integers(0, 1 << source.bits - 1, 100, np.uint64) << np.uint64(1)
    if source.is_integer:
        low, high = limits(source)
        around = {
            sign * (odd << k) + step for k in range(64) for odd in (1, 3, 5) for sign in (1, -1) for step in (-1, 0, 1)
        }
        edges = [value for value in sorted(around | {low, high}) if low <= value <= high]
        return np.concatenate([np.array(edges, object).astype(source.numpy), codes.astype(source.numpy)])
    scales = np.ldexp(
        1.0, [*range(-152, -145), *range(-130, -122), *range(-30, 19), *range(30, 34), *range(62, 66), 126, 127, 128]
    )
    with np.errstate(over="ignore"):
        ties = np.outer(scales, [1.0, 1.5, 1.875, 1.0625]).reshape(-1).astype(source.numpy)
    around = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    drawn = codes.astype(f"u{source.numpy.itemsize}").view(source.numpy)
    specials = np.array([np.nan, np.inf, 0.0, 464, 448, 61440, 57344, 248, 240, 15.5, 15.75, 30, 31, 7], source.numpy)
    positive = np.concatenate([around, drawn, specials])
    return np.concatenate([positive, -positive[::2]])


def rounded(value: Fraction, target: DType) -> float:
    """To nearest, ties to even; what is beyond the largest finite value is infinite."""
    about = cast("Any", ml_dtypes.finfo(target.numpy))
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    last = Fraction(2) ** max(exponent - about.nmant, int(np.log2(float(about.smallest_subnormal))))
    nearest = round(size / last) * last
    beyond = nearest > Fraction(float(about.max))
    return math.copysign(math.inf if beyond else float(nearest), 1 if value > 0 else -1)


def power_of_two(value: Fraction) -> float:
    """f8e8m0fnu's: ties up, and nothing but its NaN for what is not positive. Below 2^-126 only 2^-127 and less go down."""
    if value <= 0:
        return np.nan
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > value
    if exponent < -126:
        return 2.0**-127 if value <= Fraction(2) ** -127 else 2.0**-126
    return float(Fraction(2) ** (exponent + (value >= Fraction(3, 2) * Fraction(2) ** exponent)))


def wanted_of_sample(x: Array, target: DType) -> Array:
    is_float = x.dtype.kind == "f"
    values: list[object] = []
    for number in x.tolist():
        match target.kind:
            case Kind.PRED:
                values.append(number != 0)
            case Kind.FLOAT if is_float and (number == 0 or not np.isfinite(number)):
                values.append(number)
            case Kind.FLOAT if number == 0:
                values.append(0.0)
            case Kind.FLOAT if target.name == "f8e8m0fnu":
                values.append(power_of_two(Fraction(number)))
            case Kind.FLOAT:
                values.append(rounded(Fraction(number), target))
            case _ if is_float:
                low, high = limits(target)
                values.append(
                    0 if np.isnan(number) else low if number <= low else high if number >= high else int(number)
                )
            case _:
                low, high = limits(target)
                values.append((int(number) - low) % (1 << target.significant_bits) + low)
    if target.kind is Kind.FLOAT:
        with np.errstate(all="ignore"):
            return np.array(values, np.float64 if target.bits == 64 else np.float32).astype(target.numpy)
    return np.array(values, object).astype(np.int64 if target.name != "u64" else np.uint64).astype(target.numpy)


@pytest.mark.parametrize("source", but_long(WIDE, LONG_WIDE), ids=lambda row: row.name)
def test_samples_of_a_wide_type(source: DType) -> None:
    check_conversions(samples(source), source, wanted_of_sample)


def test_there_are_instructions_on_hopper_only() -> None:
    """Shows that the two targets above are two implementations."""
    text = fusion_from(dtype("f32"), [dtype(name) for name in INSTRUCTIONS], 64)
    irs = [
        str(compile(text, target=device, stage="llvm-dialect", cache=False).traces[0]["llvm-dialect"].ir)
        for device in ("a100", "h200")
    ]
    assert [[word in ir for word in INSTRUCTIONS.values()] for ir in irs] == [[False, False], [True, True]]
