"""CHLO: formulas against the functions' definitions, and implicit broadcasting with sizes known and unknown."""

import math
import re

import numpy as np
import pytest

from xla_emitters.dtypes import dtype
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo


def run(body: str, arguments: dict[str, tuple[str, np.ndarray]], result: str) -> np.ndarray:
    listed = ", ".join(f"%{name}: {ir_type}" for name, (ir_type, _) in arguments.items())
    module = parse_stablehlo(f"func.func @main({listed}) -> {result} {{\n{body}\nreturn %r : {result}\n}}")
    return evaluate(entry_of(module), [array for _, array in arguments.values()])[0]


def apply(name: str, *arrays: np.ndarray, element: str = "f64") -> np.ndarray:
    ir_type = f"tensor<?x{element}>"
    given = {f"x{i}": (ir_type, np.atleast_1d(array)) for i, array in enumerate(arrays)}
    types = ir_type if len(arrays) == 1 else ", ".join([ir_type] * len(arrays))
    operands = ", ".join(f"%{key}" for key in given)
    return run(f"%r = chlo.{name} {operands} : {types} -> {ir_type}", given, ir_type)


X = np.concatenate([np.linspace(-3.4, 6, 23), [1e-9, 0.5, 20.3]])


def test_the_error_functions() -> None:
    np.testing.assert_allclose(apply("erfc", X), [math.erfc(x) for x in X], rtol=1e-14)
    y = np.asarray([-0.999999, -0.5, 0.0, 1e-12, 0.3, 0.9, 1 - 1e-9])
    np.testing.assert_allclose([math.erf(x) for x in apply("erf_inv", y)], y, rtol=1e-14)
    assert apply("erf_inv", np.asarray([1.0, -1.0])).tolist() == [math.inf, -math.inf]


def test_the_gamma_functions() -> None:
    np.testing.assert_allclose(apply("lgamma", X), [math.lgamma(x) for x in X], rtol=1e-13, atol=1e-14)
    # digamma(x + 1) = digamma(x) + 1 / x, digamma(1) = -gamma
    assert apply("digamma", np.asarray([1.0]))[0] == pytest.approx(-0.5772156649015329, rel=1e-14)
    x = X[np.abs(X) > 1e-3]
    np.testing.assert_allclose(apply("digamma", x + 1), apply("digamma", x) + 1 / x, rtol=1e-11)
    # zeta(2, 1) = pi^2 / 6; polygamma(1, 1) is the same number
    one, two = np.asarray([1.0]), np.asarray([2.0])
    assert apply("zeta", two, one)[0] == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert apply("polygamma", one, one)[0] == pytest.approx(math.pi**2 / 6, rel=1e-14)
    assert np.isnan(apply("digamma", np.asarray([0.0, -2.0]))).all()


def test_the_bessel_function_is_its_power_series() -> None:
    x = np.asarray([-9.0, -3.0, 0.0, 0.1, 1.0, 7.9, 8.1, 12.0])
    series = [sum((v / 2) ** (2 * k + 1) / (math.factorial(k) * math.factorial(k + 1)) for k in range(80)) for v in x]
    np.testing.assert_allclose(apply("bessel_i1e", x), np.asarray(series) * np.exp(-np.abs(x)), rtol=1e-12)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_the_next_number_is_numpys(element: str) -> None:
    kind = dtype(element).numpy
    x = np.asarray([0.0, -0.0, 1.0, -1.0, 0.0, 2.0, np.inf, np.nan, 1.0]).astype(kind)
    y = np.asarray([1.0, -1.0, 2.0, 2.0, 0.0, -3.0, 0.0, 1.0, np.nan]).astype(kind)
    expected = np.nextafter(x, y)
    found = apply("next_after", x, y, element=element)
    assert found.dtype == kind
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_narrow_floats_are_rounded_once() -> None:
    x = np.linspace(0.1, 3, 40).astype(dtype("bf16").numpy)
    exact = np.asarray([math.erfc(float(v)) for v in x])
    found = apply("erfc", x, element="bf16").astype(np.float64)
    assert (np.abs(found - exact) <= 2**-8 * exact).all()


@pytest.mark.parametrize("unknown", [False, True])
def test_operands_are_broadcast_along_their_last_dimensions(unknown: bool) -> None:
    x, y = np.arange(6.0, dtype=np.float32).reshape(2, 3, 1), np.arange(12.0, dtype=np.float32).reshape(3, 4)
    types = ("tensor<?x?x?xf32>", "tensor<?x?xf32>") if unknown else ("tensor<2x3x1xf32>", "tensor<3x4xf32>")
    result = "tensor<?x?x?xf32>" if unknown else "tensor<2x3x4xf32>"
    body = f"%r = chlo.broadcast_subtract %x, %y : ({types[0]}, {types[1]}) -> {result}"
    found = run(body, {"x": (types[0], x), "y": (types[1], y)}, result)
    np.testing.assert_array_equal(found, x - y)


@pytest.mark.parametrize("shapes", [((1, 3), (2, 1)), ((1, 0), (2, 1)), ((2, 3), (2, 3))])
def test_operands_of_one_type_may_have_different_sizes(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    x, y = (np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape) for shape in shapes)
    of = "tensor<?x?xf32>"
    body = f"%r = chlo.broadcast_subtract %x, %y : ({of}, {of}) -> {of}"
    np.testing.assert_array_equal(run(body, {"x": (of, x), "y": (of, y)}, of), x - y)


RAGGED = {
    # dimension numbers, shapes of lhs and rhs, the einsum of a group, and whether the ragged dimension 1 of lhs is summed over
    "free": ("[0] x [1], [2] x [2], 1, [0]", (2, 9, 4), (3, 2, 4, 5), "bmk,bkn->bmn", False),
    "summed": ("[0] x [0], [1] x [1], 1, []", (2, 9, 4), (2, 9, 5), "bkm,bkn->bmn", True),
}


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("groups", [(2, 3, 4), (0, 1, 2), (5, 9, 3)])
@pytest.mark.parametrize("name", RAGGED)
def test_a_ragged_dot_is_a_dot_for_each_group(name: str, groups: tuple[int, int, int], unknown: bool) -> None:
    dimensions, of_x, of_w, einsum, is_summed = RAGGED[name]
    batch, summed, ragged, group = re.split(r", (?=[\[\d])", dimensions)
    parts = {"batching": batch, "contracting": summed}
    numbers = [
        f"{side}_{kind}_dimensions = {part.split(' x ')[i]}"
        for i, side in enumerate(("lhs", "rhs"))
        for kind, part in parts.items()
    ]
    numbers += [f"lhs_ragged_dimensions = [{ragged}]", f"rhs_group_dimensions = {group}"]
    draws = np.random.default_rng(3)
    x, w = draws.standard_normal(of_x), draws.standard_normal(of_w)
    wanted = np.zeros((3, 2, 4, 5) if is_summed else (2, 9, 5))
    for number, (size, end) in enumerate(zip(groups, np.cumsum(groups), strict=True)):
        rows = slice(end - size, end)
        if is_summed:
            wanted[number] = np.einsum(einsum, x[:, rows], w[:, rows])
        else:
            wanted[:, rows] = np.einsum(einsum, x[:, rows], w[number])

    def type_of(shape: tuple[int, ...]) -> str:
        return f"tensor<{''.join('?x' if unknown and size in (2, 9) else f'{size}x' for size in shape)}f64>"

    types = [type_of(of_x), type_of(of_w), "tensor<3xi32>"]
    result = type_of(wanted.shape)
    body = (
        f'%r = "chlo.ragged_dot"(%x, %w, %g) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{", ".join(numbers)}>}}>'
        f" : ({', '.join(types)}) -> {result}"
    )
    sizes = np.asarray(groups, np.int32)
    found = run(body, {"x": (types[0], x), "w": (types[1], w), "g": (types[2], sizes)}, result)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_serialized_op_is_the_op() -> None:
    text = "%r = stablehlo.custom_call @mhlo.erf(%x) : (tensor<3xf64>) -> tensor<3xf64>"
    x = np.asarray([-1.0, 0.2, 2.0])
    np.testing.assert_allclose(run(text, {"x": ("tensor<3xf64>", x)}, "tensor<3xf64>"), [math.erf(v) for v in x])
    infinite = "%r = chlo.is_inf %x : tensor<?xf64> -> tensor<?xi1>"
    values = np.asarray([np.inf, -np.inf, np.nan, 1.0])
    assert run(infinite, {"x": ("tensor<?xf64>", values)}, "tensor<?xi1>").tolist() == [True, True, False, False]
