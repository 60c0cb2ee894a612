"""What the `math` dialect has besides xDSL's ops."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.effects import is_pure, is_speculatable

LINES = (
    "%r = math.erfc %f fastmath<nnan> : f32",
    "%r:2 = math.sincos %v : vector<4xf32>",
    "%r = math.clampf %f to [%f, %f] fastmath<nnan> {note} : f32",
    "%r = math.isnan %v {note} : vector<4xf32>",
    "%r = math.isinf %f : f32",
    "%r = math.isfinite %f : f32",
    "%r = math.isnormal %f : f32",
)


def in_function(line: str) -> str:
    return f"func.func @f(%f: f32, %v: vector<4xf32>) {{\n{line}\nreturn\n}}"


@pytest.mark.parametrize("line", LINES)
def test_all_only_compute(line: str):
    (op,) = [op for op in parse_ir(in_function(line)).walk() if op.name.startswith("math.")]
    assert is_pure(op)
    assert is_speculatable(op)


def test_a_test_of_a_vector_gives_a_vector():
    with pytest.raises(VerifyError, match="the result for vector<4xf32> is i1; it must be vector<4xi1>"):
        parse_ir(in_function('%r = "math.isnan"(%v) : (vector<4xf32>) -> i1'))
