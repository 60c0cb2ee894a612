"""What the `arith` dialect has besides xDSL's ops."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError

LINES = (
    "%r = arith.index_castui %n : index to i32",
    "%r = arith.index_castui %i : i32 to index",
    "%r = arith.index_castui %v : vector<4xi32> to vector<4xindex>",
    "%r = arith.remf %f, %f fastmath<nnan> {note} : f32",
    "%r = arith.scaling_extf %h, %s fastmath<nnan> {note} : bf16, f8E8M0FNU to f32",
    "%r = arith.scaling_truncf %f, %s : f32, f8E8M0FNU to f8E4M3FN",
    "%r = arith.scaling_truncf %f, %s toward_zero fastmath<nnan> : f32, f8E8M0FNU to f8E4M3FN",
    "%r = arith.index_cast %n : index to i32",
    "%r = arith.remui %n, %n : index",
    "%r = arith.extsi %i : i32 to i64",
    "%r = arith.constant 0xFF800000 : f32",
    "%r = arith.constant 4.467770e-02 : bf16",
)


def in_function(line: str) -> str:
    return (
        f"func.func @f(%n: index, %i: i32, %v: vector<4xi32>, %f: f32, %h: bf16, %s: f8E8M0FNU) {{ {line}\n return }}"
    )


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    assert_means_the_same([in_function(line) for line in LINES])


@pytest.mark.parametrize("types", ["i32 to i64", "index to index"])
def test_casts_between_index_and_integers_only(types: str):
    value = "%i" if types.startswith("i3") else "%n"
    with pytest.raises(VerifyError, match="casts between index and integers"):
        parse_ir(in_function(f"%r = arith.index_castui {value} : {types}"))


@pytest.mark.parametrize("ops", ["%r = arith.scaling_extf %h, %t : bf16, vector<4xf32> to f32"])
def test_scales_have_the_shape_of_what_they_scale(ops: str):
    with pytest.raises(VerifyError, match="differ in shape"):
        parse_ir(in_function(f"%t = arith.constant dense<1.0> : vector<4xf32>\n{ops}"))
