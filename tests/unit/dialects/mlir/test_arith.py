"""What the `arith` dialect has besides xDSL's ops."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError


def in_function(line: str) -> str:
    return (
        f"func.func @f(%n: index, %i: i32, %v: vector<4xi32>, %f: f32, %h: bf16, %s: f8E8M0FNU) {{ {line}\n return }}"
    )


@pytest.mark.parametrize("types", ["i32 to i64", "index to index"])
def test_casts_between_index_and_integers_only(types: str):
    value = "%i" if types.startswith("i3") else "%n"
    with pytest.raises(VerifyError, match="casts between index and integers"):
        parse_ir(in_function(f"%r = arith.index_castui {value} : {types}"))


@pytest.mark.parametrize("ops", ["%r = arith.scaling_extf %h, %t : bf16, vector<4xf32> to f32"])
def test_scales_have_the_shape_of_what_they_scale(ops: str):
    with pytest.raises(VerifyError, match="differ in shape"):
        parse_ir(in_function(f"%t = arith.constant dense<1.0> : vector<4xf32>\n{ops}"))
