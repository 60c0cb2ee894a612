"""`complex.powi`."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.rewrite.effects import is_speculatable


def in_function(line: str) -> str:
    return f"func.func @f(%z: complex<f32>, %n: i32) {{\n{line}\nreturn\n}}"


def test_it_only_computes():
    (op,) = [
        op
        for op in parse_ir(in_function("%r = complex.powi %z, %n : complex<f32>, i32")).walk()
        if op.name == "complex.powi"
    ]
    assert is_speculatable(op)


def test_the_exponent_is_an_integer():
    with pytest.raises(VerifyError):
        parse_ir(in_function('%r = "complex.powi"(%z, %z) : (complex<f32>, complex<f32>) -> complex<f32>'))
