"""Mixed precision of programs: which products are narrow, their values by NumPy, and that the reported deviation is the true one."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.programs_table import programs

import xla_emitters as xe
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.errors import UsageError
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import Deviation, compile_program, deviations_of
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import parse_stablehlo

NARROW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
PRODUCT = """module @m { func.func public @main(%x: tensor<?x64xf32>, %w: tensor<64x8xf32>) -> tensor<?x8xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32>, tensor<64x8xf32>) -> tensor<?x8xf32>
  %z = stablehlo.tanh %y : tensor<?x8xf32>
  return %z : tensor<?x8xf32> } }"""


@cache
def compiled(text: str, to: str) -> Program:
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(mixed_precision=to))


def drawn() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((5, 64), (64, 8))]


@pytest.mark.parametrize("to", NARROW)
def test_operands_are_rounded_and_sums_and_results_stay_in_f32(to: str) -> None:
    x, w = drawn()
    narrow = [array.astype(NARROW[to]).astype(np.float64) for array in (x, w)]
    np.testing.assert_allclose(compiled(PRODUCT, to)(x, w), np.tanh(narrow[0] @ narrow[1]), atol=2e-6)
    assert np.abs(np.tanh(narrow[0] @ narrow[1]) - np.tanh(x.astype(np.float64) @ w)).max() > 1e-4


def test_a_sum_beyond_f16_is_no_infinity() -> None:
    """64 times 60 * 60 is more than f16 holds."""
    x, w = np.full((2, 64), 60, np.float32), np.full((64, 8), 60, np.float32)
    program = compiled(PRODUCT.replace("stablehlo.tanh", "stablehlo.negate"), "f16")
    np.testing.assert_array_equal(program(x, w), np.full((2, 8), -64 * 3600.0, np.float32))


@pytest.mark.parametrize("to", NARROW)
def test_the_deviation_is_the_largest_difference_from_the_plain_program(to: str) -> None:
    inputs = drawn()
    mixed, plain = compiled(PRODUCT, to), compiled(PRODUCT, "")
    wanted = np.abs(mixed(*inputs).astype(np.float64) - plain(*inputs)).max()
    (deviation,) = deviations_of(mixed, inputs)
    assert deviation == Deviation(0, wanted, float(np.abs(plain(*inputs)).max()))
    assert wanted > 0
    assert deviations_of(plain, inputs) == []


def test_an_infinity_on_one_side_is_an_infinite_deviation() -> None:
    a = np.array([1.0, np.inf, np.nan])
    assert Deviation.of(0, a, a).largest == 0
    assert Deviation.of(0, a, np.array([1.0, 2.0, np.nan])).largest == np.inf


def test_convolutions_are_narrow_and_so_get_the_layout_of_narrow_types() -> None:
    program = programs()["channels_first"]
    mixed = compile_program(parse_stablehlo(program.text(), "<test>"), CompileOptions(mixed_precision="f16"))
    (call,) = (
        op for op in mixed.compilation.at("fused").walk() if isinstance(op, BufferOp) and op.name.endswith("conv")
    )
    made = call.as_hlo()
    assert element_of(made.operands[0]).name == "f16"
    assert isinstance(made, DynamicConvOp)
    assert made.dim_labels.data.startswith("b01f_")


def test_a_product_that_says_its_algorithm_is_left() -> None:
    text = PRODUCT.replace(
        "[1] x [0] :",
        "[1] x [0], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, "
        "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> :",
    )
    assert deviations_of(compiled(text, "f16"), drawn())[0].largest == 0


def test_explain_says_the_deviation_and_other_types_are_refused() -> None:
    said = compiled(PRODUCT, "bf16").explain(d0=3).splitlines()
    at = said.index("mixed precision (bf16), against the program in its own types")
    assert said[at + 1].startswith("  r0 differs by at most ")
    with pytest.raises(UsageError, match="no mixed precision in 'f8'"):
        CompileOptions(mixed_precision="f8")
    with pytest.raises(UsageError, match="mixed precision is for programs"):
        xe.compile("examples/gelu.hlo", mixed_precision="f16")
