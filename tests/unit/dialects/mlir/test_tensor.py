"""What the `tensor` dialect has besides xDSL's ops; `test_scf.py` has `parallel_insert_slice` in its loop."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError


def test_it_stands_nowhere_else():
    text = """
      func.func @f(%t: tensor<8xf32>) {
        tensor.parallel_insert_slice %t into %t[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
        return
      }"""
    with pytest.raises(VerifyError, match=r"expects parent op 'scf\.forall\.in_parallel'"):
        parse_ir(text)


BODY = "{\n^bb0(%i: index):\n tensor.yield %f : f32\n }"


def in_function(line: str) -> str:
    return f"func.func @f(%t: tensor<8xf32>, %f: f32, %n: index) {{\n{line}\nreturn\n}}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = tensor.bitcast %t : tensor<8xf32> to tensor<4xi32>", "differ in shape"),
        ("%r = tensor.bitcast %t : tensor<8xf32> to tensor<8xi16>", "differ in width"),
        (f"%r = tensor.generate {BODY} : tensor<?xf32>", "takes 1 extents, not 0"),
        (f"%r = tensor.generate {BODY} : tensor<4x4xf32>", "its body must take 2 indices"),
        (f"%r = tensor.generate {BODY} : tensor<4xi32>", "its body must yield one i32"),
    ],
)
def test_what_does_not_fit_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(in_function(line))
