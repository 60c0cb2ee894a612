"""What the `affine` dialect has besides xDSL's ops."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import affine
from xla_emitters.errors import VerifyError


def in_function(line: str) -> str:
    return f"func.func @f(%i: index, %j: index) {{\n{line}\nreturn\n}}"


def test_disjoint_is_what_the_text_says():
    for word, wanted in (("", False), ("disjoint ", True)):
        line = f"%r = affine.linearize_index {word}[%i, %j] by (4, %j) : index"
        (op,) = [op for op in parse_ir(in_function(line)).walk() if isinstance(op, affine.LinearizeIndexOp)]
        assert op.is_disjoint is wanted
    text = in_function(
        '%r = "affine.linearize_index"(%i) <{disjoint = false, operandSegmentSizes = array<i32: 1, 0>,'
        " static_basis = array<i64: 4>}> : (index) -> index"
    )
    (op,) = [op for op in parse_ir(text).walk() if isinstance(op, affine.LinearizeIndexOp)]
    assert not op.is_disjoint


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = affine.max affine_map<(d0)[s0] -> (d0, s0)>(%i)", "its map takes 2 operands, not 1"),
        ("%r:2 = affine.delinearize_index %i into (2, 3, 4) : index, index", "3 extents for 2 coordinates"),
        ("%r = affine.linearize_index [%i, %i, %i] by (4) : index", "1 extents for 3 coordinates"),
        (
            '%r = "affine.linearize_index"(%i) <{operandSegmentSizes = array<i32: 1, 0>,'
            " static_basis = array<i64: -9223372036854775808>}> : (index) -> index",
            "its basis takes 1 operands, not 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(in_function(line))
