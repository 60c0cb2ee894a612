"""What is completed in xDSL's definitions is still missing there, and is right here."""

from __future__ import annotations

from dataclasses import fields

import pytest
from unit.dialects.mlir_opt import assert_means_the_same, generic_text
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr, VectorType, f32, i1, i32, i64
from xdsl.ir import Block

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dialects.xdsl_patches.definitions import GLOBAL, ROWS, SAMPLE_ARGUMENTS, XDSLS_DEFINITIONS, Row
from xla_emitters.dialects.xdsl_patches.patch import XDSLS_OWN
from xla_emitters.errors import ParseError, VerifyError

MEMBERS = ("__init__", "parse", "print", "verify_")
IDS = [row.op.name for row in ROWS]


def module(row: Row) -> str:
    if row is GLOBAL:
        return row.sample
    return f"func.func @f({SAMPLE_ARGUMENTS}) {{\n{row.sample}\nreturn\n}}"


def test_every_sample_means_here_what_it_means_in_mlir():
    names = assert_means_the_same([module(row) for row in ROWS])
    assert {row.op.name for row in ROWS} <= names


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_xdsls_own_definition_still_lacks_it(row: Row, monkeypatch: pytest.MonkeyPatch):
    """When this fails, xDSL has caught up: take the row out of ROWS, or what xDSL now has out of the row."""
    text = module(row)
    generic = generic_text([text])[0]
    own = XDSLS_DEFINITIONS[row.op]
    members = {name: member for (holder, name), member in XDSLS_OWN.items() if holder is row.op and name in MEMBERS}
    definition = row.op.get_irdl_definition()
    right = print_ir(parse_ir(text))
    for field in fields(own):
        monkeypatch.setattr(definition, field.name, getattr(own, field.name))
    for name, method in members.items():
        if method is not None:
            monkeypatch.setattr(row.op, name, method)
        else:
            monkeypatch.delattr(row.op, name)

    def is_read(form: str) -> bool:
        try:
            return print_ir(parse_ir(form)) == right
        except (ParseError, VerifyError):
            return False

    assert not (is_read(text) and is_read(generic))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = arith.extsi %iv : vector<4xi32> to vector<2xi64>", "differ in shape"),
        ("%r = arith.extsi %i : i32 to i16", "i16 is not wider than i32"),
        ("%r = arith.trunci %iv : vector<4xi32> to vector<4xi32>", "is not narrower than"),
        ("%r = arith.truncf %f : f32 to f64", "is not narrower than"),
        ("%r = arith.extf %f : f32 to f16", "is not wider than"),
        ("%r = arith.index_cast %iv : vector<4xi32> to vector<4xi64>", "casts between index and integers"),
        ("%r = arith.index_cast %x : index to index", "casts between index and integers"),
        ("%r = arith.sitofp %iv : vector<4xi32> to f32", "differ in shape"),
    ],
)
def test_conversions_that_mlir_refuses_are_refused(line: str, message: str):
    with pytest.raises(VerifyError, match=message):
        parse_ir(f"func.func @f({SAMPLE_ARGUMENTS}) {{\n{line}\nreturn\n}}")


def test_a_comparison_of_vectors_gives_a_vector():
    block = Block(arg_types=[VectorType(i64, [4]), i32, VectorType(f32, [2, 2])])
    assert arith.CmpiOp(block.args[0], block.args[0], "slt").result.type == VectorType(i1, [4])
    assert arith.CmpiOp(block.args[1], block.args[1], 2).result.type == i1
    assert arith.CmpfOp(block.args[2], block.args[2], "oeq").result.type == VectorType(i1, [2, 2])


def test_properties_have_names_in_python():
    loop = parse_ir(module(next(row for row in ROWS if row.op is scf.ForOp)))
    (op,) = [op for op in loop.walk() if isinstance(op, scf.ForOp)]
    assert op.properties["unsignedCmp"] == UnitAttr()
    assert isinstance(op.lb.type, IndexType)
