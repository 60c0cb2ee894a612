"""The parser reads what xDSL's refuses. When a call of xDSL's parser does not fail any more, xDSL has caught up."""

from __future__ import annotations

import pytest
from unit.dialects.mlir_opt import mlir_reads
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import ParseError as OurParseError

REFUSED_BY_XDSL = {
    "a complex number with one hexadecimal part": "module attributes {c = dense<(0x7F800000, 1.5)> : tensor<2xcomplex<f32>>} {}",
    "a distinct attribute": "module attributes {c = distinct[0]<>} {}",
}


@pytest.mark.parametrize("what", REFUSED_BY_XDSL)
def test_what_xdsl_refuses(what: str):
    text = REFUSED_BY_XDSL[what]
    printed = print_ir(parse_ir(text))
    assert print_ir(parse_ir(printed)) == printed
    with pytest.raises(ParseError):
        Parser(make_context(), text).parse_module()


def test_blocks_are_named_by_numbers_too():
    """As in MLIR; xDSL's own `is_default_block_name` makes xDSL refuse the label."""
    text = "func.func @f(%c: i1) {\n  cf.cond_br %c, ^1, ^0\n^0:\n  return\n^1:\n  cf.br ^0\n}"
    assert mlir_reads(text)
    printed = print_ir(parse_ir(text))
    assert "cf.cond_br %c, ^bb2, ^bb1" in printed
    assert print_ir(parse_ir(printed)) == printed
    with pytest.raises(ValueError, match="Invalid"):
        Parser(make_context(), text).parse_module()


def test_a_block_has_one_place():
    with pytest.raises(OurParseError, match="re-declaration of block '0'"):
        parse_ir("func.func @f() {\n  cf.br ^0\n^0:\n  cf.br ^0\n^0:\n  return\n}")
