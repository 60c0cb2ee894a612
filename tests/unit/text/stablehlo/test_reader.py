"""Programs that check themselves."""

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import NumbersDiffer, ParseError, VerifyError
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo

SIGNATURE = "func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>)"
TYPES = "(tensor<?xf32>, tensor<?xf32>) -> ()"


def ran(check: str, x: list[float], y: list[float]) -> None:
    """Runs a program of one check, by its kernels' code and as read."""
    program = xe.compile(f"{SIGNATURE} {{\n  {check}\n  return\n}}")
    arrays = [np.asarray(values, np.float32) for values in (x, y)]
    for run in (program, lambda *given: program.run_cpu(*given, stage="hlo")):
        run(*arrays)


@pytest.mark.parametrize(
    ("check", "near", "far"),
    [
        ("check.expect_eq %x, %y : tensor<?xf32>", 1.0, np.nextafter(np.float32(1), 2)),
        ("check.expect_close %x, %y : tensor<?xf32>, tensor<?xf32>", 1 + 3 * 2**-23, 1 + 4 * 2**-23),
        ("check.expect_close %x, %y, max_ulp_difference = 5 : tensor<?xf32>", 1 + 5 * 2**-23, 1 + 6 * 2**-23),
        ("check.expect_almost_eq %x, %y : tensor<?xf32>", 1.00009, 1.0002),
        ('"check.expect_almost_eq"(%x, %y) {tolerance = 0.1 : f64} : ' + TYPES, 1.09, 1.11),
        (f"stablehlo.custom_call @check.expect_eq(%x, %y) {{has_side_effect = true}} : {TYPES}", 1.0, 1.5),
        (
            "stablehlo.custom_call @check.expect_close(%x, %y) {has_side_effect = true, "
            f"mhlo.backend_config = {{max_ulp_difference = 0 : i64}}}} : {TYPES}",
            1.0,
            1 + 2**-23,
        ),
    ],
)
def test_a_comparison_that_does_not_hold_ends_the_run(check: str, near: float, far: float) -> None:
    same = [np.nan, np.inf, 1.0]
    ran(check, [*same, 1.0], [*same, near])
    with pytest.raises(NumbersDiffer, match=r"does not hold at \[3\]: %x is 1.0, %y is ") as error:
        ran(check, [*same, 1.0], [*same, far])
    assert error.value.place.line == 2
    with pytest.raises(NumbersDiffer, match=r"%x has the sizes \[1\], %y has the sizes \[2\]"):
        ran(check, [1.0], [1.0, 1.0])


def test_a_literal_and_a_function_without_results() -> None:
    text = """
        func.func @main(%%n: tensor<2xi32>) { call @verify(%%n) : (tensor<2xi32>) -> () return }
        func.func private @verify(%%n: tensor<2xi32>) { check.expect_eq_const %%n, dense<[3, %d]> : tensor<2xi32> return }
    """
    numbers = np.asarray([3, 4], np.int32)
    xe.compile(text % 4)(numbers)
    with pytest.raises(NumbersDiffer, match=r"\(%n, the literal\) does not hold at \[1\]: %n is 4, the literal is 5"):
        xe.compile(text % 5)(numbers)


def test_it_is_printed_and_read_back() -> None:
    text = f"{SIGNATURE} {{ check.expect_almost_eq %x, %y, tolerance = 0.5 : tensor<?xf32> return }}"
    printed = print_stablehlo(parse_stablehlo(text))
    assert r"\22tolerance\22: 0.5" in printed
    assert print_stablehlo(parse_stablehlo(printed)) == printed


@pytest.mark.parametrize(
    ("check", "wanted"),
    [
        ("check.expect_eq %x, %n : tensor<4xf32>, tensor<4xi32>", "compares values of one type"),
        ("check.expect_eq %x : tensor<4xf32>", "compares two values and gives none"),
        ('check.expect_close %x, %x {max_ulp_difference = "a"} : tensor<4xf32>', "is a number"),
        ("check.expect_eq_const %x, 3 : tensor<4xf32>", "is a literal"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(check: str, wanted: str) -> None:
    with pytest.raises((ParseError, VerifyError), match=wanted) as error:
        parse_stablehlo(f"func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>) {{\n  {check}\n  return\n}}")
    assert error.value.place.line == 2
