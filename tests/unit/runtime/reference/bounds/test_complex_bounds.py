"""Bounds of complex numbers: rectangles, discs around them, and the errors of the functions themselves."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import no_call
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.bounds.complex_bounds import off_by_ulps
from xla_emitters.runtime.reference.bounds.elementwise_bounds import bounds_after
from xla_emitters.runtime.reference.tolerance import Bounds, point
from xla_emitters.text.hlo import parse_hlo

F32 = np.float32


def number(*values: complex) -> Bounds:
    return point(np.array(values, np.complex64))


def op_of(opcode: str, operands: int, count: int, result: str = "c64") -> ElementwiseOp:
    names = ["a", "b", "c"][:operands]
    lines = [f"{name} = c64[{count}] parameter({at})" for at, name in enumerate(names)]
    lines.append(f"ROOT r = {result}[{count}] {opcode}({', '.join(names)})")
    op = entry_of(parse_hlo("ENTRY e {\n" + "\n".join(lines) + "\n}\n", "x.hlo")).root.owner
    assert isinstance(op, ElementwiseOp)
    return op


def after(opcode: str, *operands: Bounds, result: str = "c64") -> Bounds:
    op = op_of(opcode, len(operands), operands[0].low.size, result)
    return bounds_after(op, operands, lambda arrays: op.evaluate(arrays, no_call))


def test_a_complex_function_is_off_by_units_of_the_modulus_in_both_parts() -> None:
    """A part that is small beside the other is as far off as that one."""
    right = np.full(1, 1024 + 1e-6j, np.complex64)
    found = off_by_ulps("sqrt", right, right, [number(3 + 4j)])
    unit = 16 * 1024 * np.finfo(F32).eps
    np.testing.assert_allclose(found.high - found.low, 2 * unit * (1 + 1j), rtol=1e-2)
    assert found.admits(np.array([1024 + 1e-6j + 0.9 * unit * 1j], np.complex64)).all()
    assert not found.admits(np.array([1024 + 1.1 * unit * 1j], np.complex64)).any()


def test_a_quotient_is_anything_where_its_numerators_parts_add_to_too_much() -> None:
    """(2e38 + 2e38 i) / (1 + i) is 2e38, but 2e38 * 1 + 2e38 is not a number of f32."""
    numerators = number(2e38 + 2e38j, 1e38 + 2e38j)
    right = np.array([2e38, 1.5e38 + 5e37j], np.complex64)
    found = off_by_ulps("divide", right, right, [numerators, number(1 + 1j, 1 + 1j)])
    assert found.admits(right).tolist() == [True, True]
    assert found.admits(np.full(2, np.inf, np.complex64)).tolist() == [True, False]


def test_the_modulus_itself_may_be_off_but_not_a_part() -> None:
    found = after("abs", number(3 + 4j), result="f32")
    assert found.low[0] < 5 < found.high[0]
    assert after("real", number(3 + 4j), result="f32").low[0] == 3
    for opcode in ("add", "subtract", "multiply"):
        assert after(opcode, number(3 + 4j), number(1 - 2j)).is_point


FUNCTIONS = "exponential exponential-minus-one log log-plus-one sqrt rsqrt sine cosine tan tanh logistic sign abs negate real imag".split()


@pytest.mark.parametrize("opcode", [*FUNCTIONS, "divide", "power", "multiply", "add", "subtract", "maximum", "minimum"])
def test_all_of_a_rectangle_is_within(opcode: str) -> None:
    """Points drawn from rectangles of many sizes, corners among them: what the reference gives for them is admitted, and bounds of small
    rectangles that are away from cuts and poles are narrow."""
    rng = np.random.default_rng(7)
    count = 400
    result = "f32" if opcode in ("abs", "real", "imag") else "c64"
    rectangles = list[Bounds]()
    for _ in range(1 if opcode in FUNCTIONS else 2):
        middle = 2 * rng.standard_normal(count) + 2j * rng.standard_normal(count)
        size = 10 ** rng.uniform(-6, -0.5, count)
        low = (middle - size * (1 + 0.5j)).astype(np.complex64)
        rectangles.append(Bounds(low, (low + size * (2 + 1j)).astype(np.complex64)))
    found = after(opcode, *rectangles, result=result)
    op = op_of(opcode, len(rectangles), count, result)
    for turn in range(60):
        shares = [
            [rng.uniform(0, 1, count) if turn > 16 else np.full(count, float(turn >> bit & 1)) for bit in (at, at + 1)]
            for at in (0, 2)
        ]
        points = [
            (
                np.real(box.low)
                + np.real(box.high - box.low) * a
                + 1j * (np.imag(box.low) + np.imag(box.high - box.low) * b)
            ).astype(np.complex64)
            for box, (a, b) in zip(rectangles, shares, strict=False)
        ]
        points = [
            np.clip(np.real(z), np.real(box.low), np.real(box.high))
            + 1j * np.clip(np.imag(z), np.imag(box.low), np.imag(box.high))
            for z, box in zip(points, rectangles, strict=True)
        ]
        assert found.admits(op.evaluate([z.astype(np.complex64) for z in points], no_call)).all()
    narrow = np.abs(rectangles[0].high - rectangles[0].low) < 1e-4
    with np.errstate(all="ignore"):
        width = np.abs(np.real(found.high) - np.real(found.low))
    assert np.median(width[narrow]) < 0.1


def test_powers_are_off_by_more_where_their_logarithm_is_large() -> None:
    def width(exponent: complex) -> float:
        found = after("power", number(2), number(exponent))
        return float((np.real(found.high) - np.real(found.low))[0] / abs(2**exponent))

    assert 10 < width(30) / width(0.5) < 20  # 1 + 30 log 2 and 1 + 0.5 log 2


def test_an_infinite_power_points_either_way_beside_an_axis() -> None:
    """(1e-30 i)^-2 is -1e60 and a part that is 0; (2e30 + 1e30 i)^2 is infinite in both without doubt."""
    right = np.array([complex(-np.inf, -np.inf), complex(np.inf, np.inf)], np.complex64)
    found = off_by_ulps("power", right, right, [number(1e-30j, 2e30 + 1e30j), number(-2, 2)])
    for real, imaginary, admitted in ((-1, 1, [True, False]), (1, 1, [False, True]), (1, -1, [False, False])):
        value = np.full(2, complex(real * np.inf, imaginary * np.inf), np.complex64)
        assert found.admits(value).tolist() == admitted


def test_a_logistic_is_off_by_what_its_divisor_cancels() -> None:
    """Near i pi the exponential is almost -1, and a rounding of it moves the quotient by as much as that is large; elsewhere not."""
    z = np.array([1e-6 - 3.1337j, 1e-4 + 3.15j, 0.7 + 0.1j], np.complex64)
    right = (1 / (1 + np.exp(-z.astype(np.complex128)))).astype(np.complex64)
    found = off_by_ulps("logistic", right, right, [number(*z)])
    eps = np.finfo(F32).eps
    rounded = np.exp(-z) * F32(1 + 2 * eps)
    assert found.admits(np.complex64(1) / (np.complex64(1) + rounded)).all()
    off = np.abs(right) * 100 * eps
    assert found.admits(right + off.astype(np.complex64)).tolist() == [True, True, False]


@pytest.mark.parametrize("opcode", ["abs", "exponential"])
def test_beside_an_overflow_the_largest_number_will_do(opcode: str) -> None:
    """What the reference rounds up to infinity a kernel may round down, unless the operand was infinite or a zero made it."""
    most, infinity = np.finfo(F32).max, np.array([np.inf], F32)

    def admits_most(operand: Bounds) -> bool:
        return bool(off_by_ulps(opcode, infinity, infinity, [operand]).admits(np.full(1, most)).all())

    assert admits_most(number(3e38 + 3e38j))
    assert not admits_most(number(complex(np.inf, 1)))
    assert not admits_most(Bounds(np.zeros(1, F32), np.zeros(1, F32)))


def test_an_arc_tangent_beside_a_cut_is_any_angle() -> None:
    """i b over 0: x^2 + y^2 is -b^2, and a rounding says which of its roots is meant. 1 over 2 is far from any cut."""
    y, x = np.array([2j, 1], np.complex64), np.array([0, 2], np.complex64)
    right = np.array([1.5j, np.arctan2(1, 2)], np.complex64)
    bounds = off_by_ulps("atan2", right, right, [Bounds(y, y), Bounds(x, x)])
    turned = (right + np.float32(np.pi)).astype(np.complex64)
    assert bounds.admits(right).tolist() == [True, True]
    assert bounds.admits(turned).tolist() == [True, False]
    assert bounds.admits((right + 4).astype(np.complex64)).tolist() == [False, False]


def test_an_arc_tangent_beside_a_cut_is_any_angle_where_squares_vanish() -> None:
    """1e-30i over itself: y^2 + x^2 is less than the smallest number, but both are divided by their largest part first."""
    y = np.array([1e-30j], np.complex64)
    right = np.array([np.pi / 4], np.complex64)
    bounds = off_by_ulps("atan2", right, right, [Bounds(y, y), Bounds(y, y)])
    assert bounds.admits((right - np.float32(np.pi)).astype(np.complex64)).all()
    assert not bounds.admits((right + 4).astype(np.complex64)).any()


def test_a_small_arc_tangent_is_off_as_one_of_1_is() -> None:
    """In (x + i y) / sqrt(x^2 + y^2) a much larger x determines how many digits of y remain."""
    y, x = np.array([1e-20], np.complex64), np.array([1], np.complex64)
    bounds = off_by_ulps("atan2", y, y, [Bounds(y, y), Bounds(x, x)])
    assert bounds.admits(np.array([0], np.complex64)).all()
    assert not bounds.admits(np.array([1e-4], np.complex64)).any()
