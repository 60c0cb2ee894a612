"""Intrinsics of wrong types are refused."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError


@pytest.mark.parametrize(
    "line",
    [
        "%0 = llvm.intr.maximum(%x, %d) : (f32, f64) -> f32",
        "%0 = llvm.intr.roundeven(%i) : (i32) -> i32",
        "%0 = llvm.intr.smax(%x, %x) : (f32, f32) -> f32",
        "%0 = llvm.intr.roundeven(%x) : (f32) -> f64",
    ],
)
def test_operands_and_result_have_one_type(line: str):
    with pytest.raises(VerifyError, match=r"llvm\.intr\."):
        parse_ir(f"llvm.func @f(%x: f32, %d: f64, %i: i32) {{ {line}\n llvm.return }}")
