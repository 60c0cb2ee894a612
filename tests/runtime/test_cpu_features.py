"""Programs as machine code for other CPUs than this one: the lower levels of x86-64, which need no machine of their own.

All programs at more CPUs: `make cpu-features`.
"""

import platform
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.cpu_ways import at_level, compiled
from runtime.programs_table import programs

from xla_emitters.errors import ToolError
from xla_emitters.explore.compile import compile as compile_any
from xla_emitters.pipelines.c_bundle import c_bundle
from xla_emitters.program import Program
from xla_emitters.tools.main import main

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels are of x86-64")

LEVELS = ("x86-64-v2", "x86-64-v3")
# bf16 and f16; reductions by row and window; conversions; f64; integers.
PROGRAMS = (
    *(("bfloat_softmax", "x86-64-v2"), ("half_channels_last", "x86-64-v3"), ("average_pool", "x86-64-v2")),
    *(("double", "x86-64-v3"), ("integer_division", "x86-64-v2")),
)


@pytest.mark.parametrize(("name", "level"), PROGRAMS)
def test_it_has_the_values_that_jax_gave(name: str, level: str) -> None:
    known = programs()[name]
    program = at_level(known.compiled(), level)
    assert program.compilation.cpu.name == "llvm"
    assert max(known.differences(program)) <= known.case.tolerance


# ---------------------------------------------------------------------------------------------- conversions of 16-bit floats

HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
TYPES = (*HALVES, *FLOATS, "i64")
SAME = """  %{to}_{f} = stablehlo.convert %{f} : (tensor<?x{f}>) -> tensor<?x{to}>
"""
ALL_PAIRS = [(f, to) for f in (*HALVES, *FLOATS) for to in (*HALVES, *FLOATS) if f != to] + [
    ("i64", to) for to in HALVES
]


@cache
def conversions() -> Program:
    """Every conversion between two of four types, and those of integers to halves, as one program."""
    arguments = ", ".join(f"%{f}: tensor<?x{f}>" for f in TYPES)
    body = "".join(SAME.format(f=f, to=to) for f, to in ALL_PAIRS)
    results = ", ".join(f"tensor<?x{to}>" for _, to in ALL_PAIRS)
    names = ", ".join(f"%{to}_{f}" for f, to in ALL_PAIRS)
    text = (
        f"module @m {{ func.func public @main({arguments}) -> ({results}) {{\n{body}  return {names} : {results} }} }}"
    )
    return compiled(text)


def patterns(held: Any) -> Any:
    return np.arange(1 << 16, dtype=np.uint16).view(held)


def hard_cases(wide: Any) -> Any:
    """For each finite half: itself, the middle to the next one, and what is just beside both; then what no half is near to."""
    found = list[Any]()
    for held in HALVES.values():
        with np.errstate(invalid="ignore"):
            halves = np.unique(patterns(held).astype(np.float64))
        halves = halves[np.isfinite(halves)]
        step = np.float64(halves[-1] - halves[-2])
        middles = np.append((halves[1:] + halves[:-1]) / 2, (halves[-1] + step / 2, -halves[-1] - step / 2))
        with np.errstate(over="ignore"):
            exact = np.concatenate([halves, middles]).astype(wide)
        found += [exact, np.nextafter(exact, wide(np.inf)), np.nextafter(exact, wide(-np.inf))]
    largest, least = np.finfo(wide).max, np.finfo(wide).smallest_subnormal
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, largest, -largest, least, -least], wide)
    return np.concatenate([*found, special])


def rounded(x: Any, held: Any) -> Any:
    """By ml_dtypes and NumPy, once: ml_dtypes rounds f64 to bf16 by way of f32, so f64 is first rounded to odd in f32."""
    if x.dtype != np.float64 or held != ml_dtypes.bfloat16:
        return x.astype(held)
    near = x.astype(np.float32)
    is_inexact = np.isfinite(x) & (near.astype(np.float64) != x)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = (toward_zero.view(np.uint32) | is_inexact.astype(np.uint32)).view(np.float32)
    return odd.astype(held)


def same_bits(found: Any, wanted: Any) -> Any:
    """Where two arrays have the same bits, or are both NaN."""
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[found.dtype.itemsize]
    with np.errstate(invalid="ignore"):
        return (found.view(bits) == wanted.view(bits)) | (np.isnan(found) & np.isnan(wanted))


@pytest.mark.parametrize("level", [*LEVELS, "native"])
def test_conversions_of_halves_are_exact_or_rounded_once(level: str) -> None:
    given = {**{name: patterns(held) for name, held in HALVES.items()}, **{n: hard_cases(t) for n, t in FLOATS.items()}}
    given["i64"] = given["f64"][np.abs(given["f64"]) < 2.0**40].astype(np.int64)
    with np.errstate(all="ignore"):
        results = at_level(conversions(), level).run(list(given.values()))
        for (f, to), found in zip(ALL_PAIRS, results, strict=True):
            x = given[f].astype(np.float64) if f == "i64" else given[f]  # which holds these integers
            wanted = rounded(x, {**HALVES, **FLOATS}[to])
            wrong = ~same_bits(found, wanted)
            assert not wrong.any(), (f, to, given[f][wrong][:4], found[wrong][:4], wanted[wrong][:4])


BOTH = """module @m {{ func.func public @main(%x: tensor<?x{t}>, %y: tensor<?x{t}>)
    -> (tensor<?x{t}>, tensor<?x{t}>, tensor<?x{t}>, tensor<?x{t}>) {{
  %0 = stablehlo.maximum %x, %y : tensor<?x{t}>
  %1 = stablehlo.minimum %x, %y : tensor<?x{t}>
  %2 = stablehlo.abs %x : tensor<?x{t}>
  %3 = stablehlo.multiply %x, %y : tensor<?x{t}>
  return %0, %1, %2, %3 : tensor<?x{t}>, tensor<?x{t}>, tensor<?x{t}>, tensor<?x{t}> }} }}"""


@pytest.mark.parametrize("name", HALVES)
def test_halves_are_compared_and_multiplied_at_all_patterns(name: str) -> None:
    """max of bf16 was a call of a function that no library has: the process ended by a signal."""
    held = HALVES[name]
    x = patterns(held)
    y = np.random.default_rng(0).permutation(x)
    program = compiled(BOTH.format(t=name))
    a, b = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = [value.astype(held) for value in (np.maximum(a, b), np.minimum(a, b), np.abs(a), a * b)]
    for level in LEVELS:
        for found, right in zip(at_level(program, level).run([x, y]), wanted, strict=True):
            # Either zero is the larger one of +0 and -0 here: NumPy's choice depends on the order.
            are_zeros = ((a == 0) | (b == 0)) & (found.astype(np.float32) == 0)
            assert (same_bits(found, right) | are_zeros).all()


# ------------------------------------------------------------------------------------------------------------- bundles in C


def test_a_bundle_is_made_for_the_cpu_that_was_asked_for() -> None:
    made = {level: c_bundle(at_level(compiled(MAXIMUM), level), "maximum") for level in ("x86-64-v2", "znver4")}
    assert len({files["maximum.o"] for files in made.values()}) == 2
    for level, files in made.items():
        assert f"the instructions of {level}\n".encode() in files["maximum.h"]


def test_a_bundle_that_no_linker_would_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that is left to LLVM, as all extensions of bf16 were."""

    def leave(*_: object) -> None: ...

    monkeypatch.setattr("xla_emitters.lowering.cpu.disc_widen_half_floats.DiscWidenHalfFloatsPass.apply", leave)
    with pytest.raises(ToolError, match="the C library has no function '__truncsfbf2'"):
        c_bundle(at_level(compiled(BOTH.format(t="bf16")), "x86-64-v2"), "both")


# ------------------------------------------------------------------------------------------------------------- the commands

MAXIMUM = """module @m { func.func public @main(%x: tensor<?x?xbf16>) -> tensor<?xbf16> {
  %low = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %y = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<?x?xbf16>, tensor<bf16>) -> tensor<?xbf16>
  return %y : tensor<?xbf16> } }"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "--cpu-features", "x86-64-v2", "--sizes", "d0=2,d1=7"), 0, "2 of 2 elements bit-identical"),
        (("run", "--cpu-features", "x86-64-v9", "--sizes", "d0=2,d1=7"), 2, "makes no code for the CPU 'x86-64-v9'"),
        (("run", "--cpu-features", "x86-64-v2,+fast", "--sizes", "d0=2,d1=7"), 2, "knows no instructions '+fast'"),
        (("bundle", "--abi", "c", "--cpu-features", "znver4"), 0, ""),
        (("bundle", "--abi", "c", "--cpu-features", "help"), 2, "'help' names no CPU"),
    ],
)
def test_a_command_names_the_cpu(words: tuple[str, ...], code: int, said: str, tmp_path: Path, capfd: Any) -> None:
    file = tmp_path / "maximum.mlir"
    file.write_text(MAXIMUM)
    verb, *options = words
    output = ["-o", str(tmp_path / "made")] if verb == "bundle" else []
    assert main([verb, str(file), *options, *output]) == code
    out, err = capfd.readouterr()
    assert said in out + err
    if verb == "bundle" and not code:
        assert b"the instructions of znver4\n" in (tmp_path / "made" / "maximum.h").read_bytes()


def test_a_python_argument_names_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "maximum.mlir").write_text(MAXIMUM)
    program = compile_any(tmp_path / "maximum.mlir", cpu_features="x86-64-v2")
    x = np.arange(-6, 6).reshape(2, 6).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(program(x), np.array([-1, 5], ml_dtypes.bfloat16))
