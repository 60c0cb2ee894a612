"""The `index` dialect in MLIR's text, and what its ops may do."""

import pytest

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.errors import ParseError, VerifyError
from xla_emitters.rewrite.effects import is_pure, is_speculatable
from xla_emitters.transforms.canonicalize import CanonicalizePass

DIVISIONS = ("ceildivs", "ceildivu", "divs", "divu", "floordivs", "rems", "remu")
BINARY = ("add", "and", "maxs", "maxu", "mins", "minu", "mul", "or", "shl", "shrs", "shru", "sub", "xor", *DIVISIONS)


def in_function(*lines: str) -> str:
    return "func.func @f(%a: index, %b: index, %n: i32) {\n" + "\n".join(lines) + "\nreturn\n}"


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
