"""Lexers: kinds of tokens, no text is lost, and no input makes them slow."""

import time
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String

import xla_emitters as xe
from xla_emitters.trace.lexers import HloLexer, MlirLexer

ROOT = Path(__file__).parents[3]
HLO_TEXTS = sorted((ROOT / "tests" / "corpus" / "hlo_text").glob("*.hlo"))
MLIR_TEXTS = sorted((ROOT / "tests" / "corpus" / "mlir").glob("*.mlir"))


def kinds(lexer, text: str) -> dict[str, object]:
    return {value: kind for kind, value in lexer.get_tokens(text)}


def test_hlo() -> None:
    found = kinds(HloLexer(), 'ENTRY e { ROOT %a.1 = f8e4m3fn[2,3]{1,0} fusion(%b), kind=kLoop, m={s="x"} /* c */ }')
    assert found["ENTRY"] in Keyword
    assert found["f8e4m3fn"] in Keyword.Type
    assert found["%a.1"] in Name.Variable
    assert found["fusion"] in Name.Function
    assert found["kind"] in Name.Attribute
    assert found["kLoop"] in Name.Constant
    assert found['"x"'] in String
    assert found["/* c */"] in Comment
    assert found["3"] in Number


def test_mlir() -> None:
    found = kinds(
        MlirLexer(), '%0:2 = xla_gpu.apply_indexing #map(%i#1) {n.a = "x"} : tensor<4x?xbf16> ^bb1 @f 1.5e+3 // c'
    )
    assert found["%0"] in Name.Variable
    assert found["%i#1"] in Name.Variable
    assert found["xla_gpu.apply_indexing"] in Name.Builtin
    assert found["#map"] in Name.Constant
    assert found["tensor"] in Keyword.Type
    assert found["bf16"] in Keyword.Type
    assert found["^bb1"] in Name.Label
    assert found["@f"] in Name.Function
    assert found["1.5e+3"] in Number
    assert found["// c"] in Comment


def test_hexadecimal_numbers_and_arrows() -> None:
    """A number after 0x is whole, but an extent of 0 is none; an arrow is an operator in HLO, and the digits of a name are no number."""
    found = kinds(MlirLexer(), "dense<0xFF800000> : tensor<0xf32>")
    assert found["0xFF800000"] in Number
    assert found["0x"] in Number
    assert found["f32"] in Keyword.Type
    found = kinds(HloLexer(), "HloModule negate_20x40, l={(f32[])->f32[]}")
    assert found["negate_20x40"] is Name
    assert found["->"] in Operator


@pytest.mark.parametrize(("lexer", "paths"), [(HloLexer, HLO_TEXTS), (MlirLexer, MLIR_TEXTS)], ids=["hlo", "mlir"])
def test_no_character_is_lost_or_wrong(lexer, paths: list[Path]) -> None:
    assert paths
    for path in paths:
        text = path.read_text()
        tokens = list(lexer(stripnl=False, ensurenl=False).get_tokens(text))
        assert "".join(value for _, value in tokens) == text
        assert not [value for kind, value in tokens if kind in Error], path.name


def test_our_own_ir_has_an_op_in_nearly_every_line() -> None:
    trace = xe.compile(ROOT / "examples" / "gelu.hlo", stage="llvm-dialect").trace
    for stage in ("xla_gpu", "flat", "unrolled", "llvm-dialect"):
        lines = [
            line
            for line in trace[stage].ir.splitlines()
            if " = " in line and "attributes {" not in line and line[0] != "#"
        ]
        named = [any(kind in Name.Builtin for kind, _ in MlirLexer().get_tokens(line)) for line in lines]
        assert all(named), stage


def test_pygments_finds_them() -> None:
    assert isinstance(get_lexer_by_name("hlo"), HloLexer)
    assert isinstance(get_lexer_for_filename("a.mlir"), MlirLexer)


@pytest.mark.parametrize("lexer", [HloLexer, MlirLexer])
@pytest.mark.parametrize(
    "text", ['"' * 20_000, "/*" * 20_000, "a" * 50_000, "%" * 20_000, "4x" * 20_000, "a." * 20_000]
)
def test_odd_text_takes_no_longer_than_its_length_says(lexer, text: str) -> None:
    """A pattern that backtracks would take hours here, not seconds."""
    start = time.perf_counter()
    assert "".join(value for _, value in lexer(stripnl=False, ensurenl=False).get_tokens(text)) == text
    assert time.perf_counter() - start < 20
