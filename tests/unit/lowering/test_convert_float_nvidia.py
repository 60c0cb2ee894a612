"""Which conversions become instructions on which chips, and that ptxas takes them. The numbers: tests/runtime/test_conversions.py."""

import pytest

from xla_emitters.device import device
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.lowering.convert_float_nvidia import ConvertFloatNvidiaPass
from xla_emitters.rewrite.notes import take_notes

WIDE = ("f16", "bf16", "f32", "f64")


def after(source: str, target: str, chip: str, rounding: str = "") -> tuple[list[str], list[str]]:
    """The intrinsics called, and the remarks."""
    op = "extf" if source.startswith("f8") or source.startswith("f4") else "truncf"
    module = parse_ir(f"""
        func.func @f(%x: {source}) -> {target} {{
          %y = arith.{op} %x {rounding} : {source} to {target} loc("y")
          func.return %y : {target}
        }}""")
    with take_notes() as notes:
        ConvertFloatNvidiaPass(device(chip)).apply(make_context(), module)
    module.verify()
    calls = [op.intrin.data for op in module.walk() if isinstance(op, llvm.CallIntrinsicOp)]
    return calls, [remark.text for remark in notes.remarks]


@pytest.mark.parametrize("chip", ["h100", "h200", "b200"])
@pytest.mark.parametrize(("type", "word"), [("f8E4M3FN", "e4m3x2"), ("f8E5M2", "e5m2x2")])
def test_instructions(type: str, word: str, chip: str) -> None:
    for wide in WIDE:
        assert after(type, wide, chip) == ([f"llvm.nvvm.{word}.to.f16x2.rn"], [])
    assert after("f16", type, chip) == ([f"llvm.nvvm.f16x2.to.{word}.rn"], [])
    assert after("bf16", type, chip) == ([f"llvm.nvvm.ff.to.{word}.rn"], [])
    assert after("f32", type, chip) == ([f"llvm.nvvm.ff.to.{word}.rn"], [])


@pytest.mark.parametrize(
    ("source", "target", "chip", "remark"),
    [
        ("f32", "f8E4M3FN", "a100", "skipped arith.truncf: a100 has no instruction for it"),
        ("f8E5M2", "f32", "t4", "skipped arith.extf: t4 has no instruction for it"),
        ("f64", "f8E4M3FN", "h200", "skipped arith.truncf: it would round twice"),
        ("f32", "f8E4M3", "h200", "skipped arith.truncf: there is no instruction from f32 to f8E4M3"),
        ("f4E2M1FN", "f32", "b200", "skipped arith.extf: there is no instruction from f4E2M1FN to f32"),
        ("f4E2M1FN", "f8E5M2", "b200", "skipped arith.extf: there is no instruction from f4E2M1FN to f8E5M2"),
    ],
)
def test_what_stays_says_why(source: str, target: str, chip: str, remark: str) -> None:
    assert after(source, target, chip) == ([], [remark])


def test_rounding_that_the_instruction_has_not() -> None:
    calls, remarks = after("f32", "f8E5M2", "h200", "upward")
    assert (calls, remarks) == ([], ["skipped arith.truncf: it does not round to nearest even"])


def test_wide_conversions_are_not_its_business() -> None:
    assert after("f32", "bf16", "h200") == ([], [])
