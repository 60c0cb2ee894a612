"""`complex.powi`."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.effects import is_speculatable

LINES = (
    "%r = complex.powi %z, %n : complex<f32>, i32",
    "%r = complex.powi %z, %n fastmath<nnan> {note} : complex<f32>, i32",
)


def in_function(line: str) -> str:
    return f"func.func @f(%z: complex<f32>, %n: i32) {{\n{line}\nreturn\n}}"


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    assert_means_the_same([in_function(line) for line in LINES])


def test_it_only_computes():
    (op,) = [op for op in parse_ir(in_function(LINES[0])).walk() if op.name == "complex.powi"]
    assert is_speculatable(op)


def test_the_exponent_is_an_integer():
    with pytest.raises(VerifyError):
        parse_ir(in_function('%r = "complex.powi"(%z, %z) : (complex<f32>, complex<f32>) -> complex<f32>'))
