"""The `index` dialect in MLIR's text, and what its ops may do."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import assert_means_the_same

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import index
from xla_emitters.dialects.mlir.index import INDEX
from xla_emitters.errors import ParseError, VerifyError
from xla_emitters.rewrite.effects import is_pure, is_speculatable
from xla_emitters.transforms.canonicalize import CanonicalizePass

DIVISIONS = ("ceildivs", "ceildivu", "divs", "divu", "floordivs", "rems", "remu")
BINARY = ("add", "and", "maxs", "maxu", "mins", "minu", "mul", "or", "shl", "shrs", "shru", "sub", "xor", *DIVISIONS)


def in_function(*lines: str) -> str:
    return "func.func @f(%a: index, %b: index, %n: i32) {\n" + "\n".join(lines) + "\nreturn\n}"


def test_every_op_means_in_our_text_what_it_means_in_mlirs():
    lines = [f"%{name} = index.{name} %a, %b {{note}}" for name in BINARY]
    lines += [f"%{word} = index.cmp {word}(%a, %b)" for word in index.Predicate]
    lines += ["%s = index.casts %a {note} : index to i32", "%u = index.castu %n : i32 to index"]
    lines += ["%c = index.constant -4", "%t = index.bool.constant true", "%z = index.sizeof {note}"]
    covered = assert_means_the_same([in_function(*lines)])
    assert {op.name for op in INDEX.operations} <= covered


@pytest.mark.parametrize("name", BINARY)
def test_all_compute_and_divisions_may_fail(name: str):
    (op,) = [op for op in parse_ir(in_function(f"%r = index.{name} %a, %b")).walk() if op.name.startswith("index.")]
    assert is_pure(op)
    assert is_speculatable(op) is (name not in DIVISIONS)


def test_equal_ops_are_one_and_unused_ones_go():
    module = parse_ir(in_function("%c = index.constant 4", "%r = index.add %a, %c"))
    CanonicalizePass().apply(make_context(), module)
    assert not [op for op in module.walk() if op.name.startswith("index.")]


@pytest.mark.parametrize("line", ["%r = index.casts %n : i32 to i64", "%r = index.castu %a : index to index"])
def test_casts_between_index_and_integers_only(line: str):
    with pytest.raises(VerifyError, match="casts between index and integers"):
        parse_ir(in_function(line))


def test_a_comparison_has_one_of_ten_words():
    with pytest.raises(ParseError):
        parse_ir(in_function("%r = index.cmp less(%a, %b)"))
