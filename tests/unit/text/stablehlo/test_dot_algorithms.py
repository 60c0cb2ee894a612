"""Algorithms of a dot: HLO's name for StableHLO's fields, and back."""

import pytest

from xla_emitters.dialects.hlo.contractions import ALGORITHMS, DotOp
from xla_emitters.errors import VerifyError
from xla_emitters.graph.entry import entry_of
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo


def text(lhs: str, rhs: str, summed: str, times: int = 1, *, fast: bool = False, elements: str = "f32") -> str:
    return f"""func.func @main(%x: tensor<2x3x{elements}>, %y: tensor<3x4x{elements}>) -> tensor<2x4xf32> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0],
        algorithm = <lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, accumulation_type = {summed}, lhs_component_count = 1,
          rhs_component_count = 1, num_primitive_operations = {times}, allow_imprecise_accumulation = {str(fast).lower()}>
        : (tensor<2x3x{elements}>, tensor<3x4x{elements}>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }}"""


@pytest.mark.parametrize(
    ("program", "algorithm"),
    [
        (text("tf32", "tf32", "f32"), "dot_tf32_tf32_f32"),
        (text("tf32", "tf32", "f32", 3), "dot_tf32_tf32_f32_x3"),
        (text("bf16", "bf16", "f32", 9), "dot_bf16_bf16_f32_x9"),
        (text("f16", "f16", "f16", fast=True), "dot_f16_f16_f16"),
        (text("f8E5M2", "f8E4M3FN", "f32", elements="f8E5M2"), "dot_any_f8_any_f8_f32"),
        (text("f8E5M2", "f8E5M2", "f32", fast=True, elements="f8E5M2"), "dot_any_f8_any_f8_f32_fast_accum"),
    ],
)
def test_an_algorithm_of_stablehlo_is_one_of_hlo(program: str, algorithm: str) -> None:
    module = parse_stablehlo(program)
    again = parse_stablehlo(print_stablehlo(module))
    for found in (module, again):
        (dot,) = (op for op in entry_of(found).instructions if isinstance(op, DotOp))
        assert dot.algorithm.data == algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_of_hlo_is_printed_as_stablehlo(algorithm: str) -> None:
    element = "f64" if algorithm.endswith("f64") else "f8e5m2" if "f8" in algorithm else "f32"
    result = "f64" if element == "f64" else "f32"
    module = parse_hlo(f"""ENTRY e {{ x = {element}[2,3] parameter(0)
      ROOT d = {result}[2,2] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, algorithm={algorithm} }}""")
    (dot,) = (op for op in entry_of(parse_stablehlo(print_stablehlo(module))).instructions if isinstance(op, DotOp))
    said = dot.algorithm.data if dot.algorithm is not None else "unset"
    # StableHLO has no type "any": sums are in the type of the result.
    assert said == algorithm.replace("f8_any_fast", "f8_f32_fast").replace("f8_any_f8_any", "f8_any_f8_f32")


def test_an_algorithm_that_hlo_lacks_is_refused_when_it_is_read() -> None:
    with pytest.raises(VerifyError, match="no algorithm 'dot_f32_f32_f64'"):
        parse_stablehlo(text("f32", "f32", "f64"))
