"""Ops of narrow floats other than conversions. Formats: tests/unit/test_dtypes.py; values: tests/runtime/test_conversions.py."""

import ml_dtypes
import numpy as np
import pytest
from unit.runtime.simt.kernels import kernel

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dtypes import DTYPES
from xla_emitters.lowering.expand_float_ops import ExpandFloatOpsPass
from xla_emitters.lowering.narrow_floats import FORMATS, is_number_op
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.simt import execute

NUMPY = {name: getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}") for name in FORMATS}


def test_six_bits_have_no_code() -> None:
    assert {row.name for row in DTYPES if row.is_narrow_float} - {name.lower() for name in FORMATS} == {
        "f6e2m3fn",
        "f6e3m2fn",
    }


def expanded(ops: str, arguments: str) -> str:
    module = parse_ir(f"func.func @f({arguments}) {{\n{ops}\nfunc.return }}")
    with take_notes() as notes:
        ExpandFloatOpsPass().apply(make_context(), module)
    module.verify()
    assert not any(is_number_op(op) for op in module.walk()) or notes.remarks
    return "\n".join([*(op.name for op in module.walk()), *(remark.text for remark in notes.remarks)])


@pytest.mark.parametrize(
    "op",
    [
        "%r = arith.cmpf olt, %a, %b : f8E4M3FN",
        "%r = arith.addf %a, %b : f8E4M3FN",
        "%r = arith.fptosi %a : f8E4M3FN to i32",
        "%r = arith.sitofp %n : i32 to f8E4M3FN",
        "%r = math.fma %a, %b, %a : f8E4M3FN",
        "%r = math.tanh %a : f8E4M3FN",
    ],
)
def test_every_op_goes_through_f32(op: str) -> None:
    name = op.split()[2]
    assert name == "math.tanh" or name in expanded(op, "%a: f8E4M3FN, %b: f8E4M3FN, %n: i32").split("\n")


def test_moves_stay() -> None:
    ops = """%c = arith.constant 1.0 : f8E5M2
             %s = arith.select %p, %a, %c : f8E5M2
             %r = arith.bitcast %s : f8E5M2 to i8"""
    names = expanded(ops, "%a: f8E5M2, %p: i1").split("\n")
    assert names[2:5] == ["arith.constant", "arith.select", "arith.bitcast"]


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("%r = arith.extf %a : vector<2xf8E5M2> to vector<2xf32>", "skipped arith.extf: it computes on vectors"),
        ("%r = arith.truncf %x downward : f32 to f8E5M2", "skipped arith.truncf: it does not round to nearest even"),
    ],
)
def test_what_stays_says_why(op: str, why: str) -> None:
    assert expanded(op, "%a: vector<2xf8E5M2>, %x: f32").endswith(why)


def test_comparison_of_all_pairs() -> None:
    """By way of f32, what `ml_dtypes` says."""
    x, y = (
        codes.reshape(-1).view(ml_dtypes.float8_e5m2) for codes in np.meshgrid(*[np.arange(256).astype(np.uint8)] * 2)
    )
    module = kernel("%r = arith.cmpf olt, %a, %b : f8E5M2", "i1", {"a": "f8E5M2", "b": "f8E5M2"}, x.size, 256)
    ExpandFloatOpsPass().apply(make_context(), module)
    (got,) = execute(module, [x, y, np.zeros(x.size, np.bool_)], results=1)
    np.testing.assert_array_equal(got, x.astype(np.float32) < y.astype(np.float32))
