"""Names in a text: where they are defined and used, in HLO text and in MLIR, with faults too."""

from pathlib import Path

import pytest

from xla_emitters.explore.hover import Described, completions
from xla_emitters.explore.opcodes import sentences
from xla_emitters.explore.text_index import TextIndex
from xla_emitters.text.hlo import parse_hlo

EXAMPLES = Path(__file__).parents[3] / "examples"
TWICE = """HloModule m
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b) // %b
}
ENTRY main {
  %a = f32[4,8] parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[4]{0} reduce(%a, %zero), dimensions={1}, to_apply=%add
}
"""


def defined(index: TextIndex, line: int, word: str) -> tuple[str, int] | None:
    use = index.name_at(line, index.lines[line].index(word))
    assert use is not None
    symbol = index.definition(use)
    return (symbol.kind, symbol.line) if symbol else None


@pytest.mark.parametrize("text", ["", "HloModule m", "}", ".version 8.0\n{\n}\n", "module {\n}"])
def test_a_text_may_have_no_computation(text: str) -> None:
    """As a new file has none."""
    assert TextIndex(text).symbols == []
    assert TextIndex(text).scope_at(0) == -1


def test_names_of_hlo_are_those_of_their_computation() -> None:
    index = TextIndex(TWICE)
    assert [(each.name, each.detail, each.line, each.last) for each in index.scopes] == [
        ("add", "", 1, 5),
        ("main", "ENTRY", 6, 10),
    ]
    assert defined(index, 4, "%a,") == ("instruction", 2)
    assert defined(index, 9, "%a,") == ("instruction", 7)
    assert defined(index, 9, "%add") == ("computation", 1)
    assert defined(index, 9, "dimensions") is None
    assert index.name_at(4, index.text.split("\n")[4].index("// %b") + 4) is None
    definition = index.definition(next(filter(None, [index.name_at(2, 3)])))
    assert definition is not None
    assert [(use.line, use.start) for use in index.uses(definition)] == [(1, 6), (2, 2), (4, 22)]


@pytest.mark.parametrize("name", ["gelu.hlo", "transpose.hlo", "modules/loop.hlo"])
def test_every_instruction_that_the_parser_reads_is_in_the_index(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    module, index = parse_hlo(text, name), TextIndex(text)
    wanted = {op.instruction_name.data for op in module.walk() if hasattr(op, "instruction_name")}
    assert {each.name for each in index.symbols if each.kind == "instruction"} == wanted


def test_values_of_mlir_are_those_of_their_function() -> None:
    index = TextIndex("""module {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0:2 = call @two(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#1 : tensor<4xf32>
  }
  func.func private @two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
}""")
    assert defined(index, 3, "%0#1") == ("value", 2)
    assert defined(index, 2, "@two") == ("function", 5)
    assert defined(index, 2, "%x)") == ("value", 1)
    assert defined(index, 6, "%x,") == ("value", 5)


def test_hover_has_shape_layout_and_maps() -> None:
    index = TextIndex(TWICE)
    said = Described(TWICE, "m.hlo", index).of("r", 9, {"r": "2.1 us on h200"})
    assert "%r = f32[4] reduce" in said
    assert "f32[4]: 16 B, row major" in said
    assert "%a: (d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 7]" in said
    assert said.endswith("kernel r: 2.1 us on h200")


@pytest.mark.parametrize(
    ("text", "line", "opcode"),
    [
        ("e {\n  p = f32[8,8] parameter(0)\n  ROOT a = pred[8,8] is-finite(p)\n}\n", 2, "is-finite"),
        (
            "func.func @main(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {\n"
            "  %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [0] : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>\n"
            "  return %0 : tensor<?xf32>\n}\n",
            1,
            "dynamic-broadcast-in-dim",
        ),
    ],
)
def test_an_opcode_of_several_words_has_its_sentence(text: str, line: int, opcode: str) -> None:
    said = Described(text, "m.mlir" if "func" in text else "m.hlo").of("", line)
    assert f" {opcode}\n" in said
    assert sentences()["hlo"][opcode] in said


def test_what_fits_is_offered() -> None:
    index = TextIndex(TWICE)

    def words(line: str) -> list[str]:
        return [each.word for each in completions(line, 9, index)]

    assert "reduce-window" in words("  ROOT %r = f32[4]{0} reduce")
    assert words("  ROOT %r = f32[4]{0} reduce(%") == ["%a", "%zero"]
    assert words("  ROOT %r = f32[4]{0} reduce(%a, %zero), dim")[:2] == ["dimensions=", "to_apply="]
    assert words("  ROOT %r = f32[4]{0} reduce(%a, %zero), dimensions={1}, to_apply=%") == ["%add", "%main"]
    of_mlir = TextIndex("func.func @f(%x: tensor<f32>) {\n  %0 = stablehlo.\n}")
    assert "stablehlo.cosine" in [each.word for each in completions("  %0 = stablehlo.", 1, of_mlir)]
    assert [each.word for each in completions("  %0 = stablehlo.pad %x, ", 1, of_mlir)] == [
        "low = ",
        "high = ",
        "interior = ",
    ]
