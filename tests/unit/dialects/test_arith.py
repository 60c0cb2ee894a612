"""`arith.index_castui`."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError

LINES = (
    "%r = arith.index_castui %n : index to i32",
    "%r = arith.index_castui %i : i32 to index",
    "%r = arith.index_cast %n : index to i32",
    "%r = arith.remui %n, %n : index",
    "%r = arith.extsi %i : i32 to i64",
    "%r = arith.constant 0xFF800000 : f32",
    "%r = arith.constant 4.467770e-02 : bf16",
)


def in_function(line: str) -> str:
    return f"func.func @f(%n: index, %i: i32) {{ {line}\n return }}"


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    assert_means_the_same([in_function(line) for line in LINES])


@pytest.mark.parametrize("types", ["i32 to i64", "index to index"])
def test_casts_between_index_and_integers_only(types: str):
    value = "%i" if types.startswith("i3") else "%n"
    with pytest.raises(VerifyError, match="casts between index and integers"):
        parse_ir(in_function(f"%r = arith.index_castui {value} : {types}"))
