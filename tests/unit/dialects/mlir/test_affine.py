"""What the `affine` dialect has besides xDSL's ops."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import affine
from xla_emitters.errors import VerifyError

LINES = (
    "%r = affine.max affine_map<(d0)[s0] -> (d0 + s0, 8)>(%i)[%j] {note}",
    "%r:2 = affine.delinearize_index %i into (4, 8) : index, index",
    "%r:3 = affine.delinearize_index %i into (%j, 8) {note} : index, index, index",
    "%r = affine.linearize_index [%i, %j] by (4, %j) : index",
    "%r = affine.linearize_index disjoint [%i, %j] by (8) {note} : index",
)


def in_function(line: str) -> str:
    return f"func.func @f(%i: index, %j: index) {{\n{line}\nreturn\n}}"


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    covered = assert_means_the_same([in_function(line) for line in LINES])
    assert {affine.MaxOp.name, affine.DelinearizeIndexOp.name, affine.LinearizeIndexOp.name} <= covered


def test_disjoint_is_what_the_text_says():
    for line, wanted in ((LINES[3], False), (LINES[4], True)):
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
