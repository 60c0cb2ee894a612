"""What divisions and powers by constants become has the values that exact fractions give, within the units that the pass states."""

from fractions import Fraction

import numpy as np
import pytest

from xla_emitters.dialects.context import make_context
from xla_emitters.dtypes import Array, dtype
from xla_emitters.dynamic.passes.disc_algebraic_simplifier import DiscAlgebraicSimplifierPass
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]
DIVISORS = [3.0, -7.0, 0.1, 8.0, 1.0, 1e30, -3e-30, 1.5e-38, 8e37]
KEPT = [0.0, -0.0, 1e-39, 3e38, np.inf, np.nan]


def simplified(opcode: str, element: str, number: float, x: Array) -> tuple[list[str], Array]:
    """The opcodes of `opcode`(x, number) after the pass, and its value."""
    text = f"{element}[{x.size}]"
    module = parse_hlo(f"""HloModule m
        ENTRY e {{
          x = {text} parameter(0)
          c = {element}[] constant({number})
          b = {text} broadcast(c), dimensions={{}}
          ROOT r = {text} {opcode}(x, b)
        }}""")
    DiscAlgebraicSimplifierPass().apply(make_context(), module)
    module.verify()
    computation = entry_of(module)
    opcodes = [op.name.removeprefix("hlo.") for op in computation.walk() if op is not computation]
    (value,) = evaluate(computation, [x])
    return opcodes, value


def drawn(element: str, exponents: tuple[int, int]) -> Array:
    """Numbers with all exponents in the range, and those that are no ordinary ones."""
    random = np.random.default_rng(0)
    numbers = random.uniform(1, 2, 2000) * 2.0 ** random.integers(*exponents, 2000) * random.choice([-1, 1], 2000)
    return np.concatenate([SPECIAL, numbers]).astype(dtype(element).numpy)


def in_units(found: Array, exact: list[Fraction]) -> float:
    """The largest distance in units in the last place of `found`."""
    return max(
        abs(Fraction(float(f)) - e) / Fraction(float(np.spacing(abs(f)))) for f, e in zip(found, exact, strict=True)
    )


@pytest.mark.parametrize("divisor", DIVISORS)
def test_a_division_is_a_product_within_a_unit_and_a_half(divisor: float) -> None:
    x = drawn("f32", (-149, 127))
    opcodes, found = simplified("divide", "f32", divisor, x)
    assert opcodes.count("multiply") == 1
    assert "divide" not in opcodes
    with np.errstate(all="ignore"):
        wanted = x / np.float32(divisor)
    special = len(SPECIAL)
    np.testing.assert_array_equal(found[:special], wanted[:special])
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(wanted[:2]))
    finite = np.isfinite(wanted) & np.isfinite(x)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    exact = [Fraction(float(each)) / Fraction(float(np.float32(divisor))) for each in x[finite]]
    assert in_units(found[finite], exact) <= 1.5


@pytest.mark.parametrize("divisor", KEPT)
def test_a_divisor_without_a_normal_reciprocal_keeps_its_division(divisor: float) -> None:
    x = drawn("f32", (-149, 127))
    opcodes, found = simplified("divide", "f32", divisor, x)
    assert "divide" in opcodes
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, x / np.float32(divisor))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_floats_have_exact_reciprocals_alone(element: str) -> None:
    x = drawn(element, (-20, 15))
    opcodes, found = simplified("divide", element, 16.0, x)
    assert "multiply" in opcodes
    np.testing.assert_array_equal(
        found.astype(np.float32), (x.astype(np.float32) / 16).astype(found.dtype).astype(np.float32)
    )
    opcodes, _ = simplified("divide", element, 3.0, x)
    assert "divide" in opcodes


@pytest.mark.parametrize(
    ("element", "exponent", "units"), [("f32", 2, 0.5), ("f32", 3, 1.5), ("f64", 3, 1.5), ("f16", 2, 0.5)]
)
def test_small_powers_are_products(element: str, exponent: int, units: float) -> None:
    x = drawn(element, (-149, 127) if element == "f32" else (-7, 5))
    opcodes, found = simplified("power", element, float(exponent), x)
    assert "power" not in opcodes
    assert opcodes.count("multiply") == exponent - 1
    finite = np.isfinite(found) & np.isfinite(x)
    assert in_units(found[finite], [Fraction(float(each)) ** exponent for each in x[finite]]) <= units
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), exponent).astype(x.dtype)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(wanted[:2]))


def test_a_cube_in_f16_stays_a_power() -> None:
    opcodes, _ = simplified("power", "f16", 3.0, drawn("f16", (-7, 5)))
    assert "power" in opcodes


def test_integers_wrap_as_their_power_does() -> None:
    x = np.array([0, 1, -3, 46341, -2147483648, 2147483647], np.int32)
    for exponent in (2, 3):
        opcodes, found = simplified("power", "s32", exponent, x)
        assert "power" not in opcodes
        wanted = [(int(each) ** exponent + 2**31) % 2**32 - 2**31 for each in x]
        assert found.tolist() == wanted
