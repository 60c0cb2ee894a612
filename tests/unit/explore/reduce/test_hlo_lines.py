"""HLO as lines: printed back it is the same module; what ENTRY does not need is removed, with calls and parameter numbers adjusted."""

import pytest

from xla_emitters.explore.reduce.hlo_lines import ModuleLines, shapes_in, split_at_commas, with_dims
from xla_emitters.text.hlo import parse_hlo, print_hlo

NESTED = """
HloModule nested, input_output_alias={ {0}: (1, {}, may-alias) }
add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
unused {
  ROOT %z = f32[] constant(0)
}
body {
  %s = (s32[], f32[4]) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %v = f32[4] get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %m = s32[] add(%n, %one)
  ROOT %t = (s32[], f32[4]) tuple(%m, %v)
}
condition {
  %s = (s32[], f32[4]) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %k = s32[] constant(3)
  ROOT %c = pred[] compare(%n, %k), direction=LT
}
fused {
  %x = f32[4,2]{0,1} parameter(0)
  %spare = f32[9] parameter(1)
  %z = f32[] parameter(2)
  ROOT %r = f32[4] reduce(%x, %z), dimensions={1}, to_apply=add, metadata={op_name="a, \\"b\\" (c)"}
}
ENTRY main {
  %x = f32[4,2]{0,1} parameter(0)
  %spare = f32[9] parameter(1)
  %z = f32[] constant(-0.5)
  %c = c64[2] constant({(1, 2), (3, -4)})
  %f = f32[4] fusion(%x, %spare, %z), kind=kInput, calls=fused
  %n = s32[] constant(0)
  %t = (s32[], f32[4]) tuple(%n, %f)
  ROOT %w = (s32[], f32[4]) while(%t), condition=condition, body=body
}
"""


@pytest.mark.tiny
def test_printed_back_it_is_the_same_module() -> None:
    assert print_hlo(parse_hlo(str(ModuleLines.of(NESTED)))) == print_hlo(parse_hlo(NESTED))


def test_cleaning_takes_what_is_not_needed() -> None:
    """The spare parameter is a parameter of ENTRY too, and stays there as long as an alias counts them."""
    module = ModuleLines.of(NESTED).cleaned()
    assert [one.name for one in module.computations] == ["add", "body", "condition", "fused", "main"]
    (call,) = [line for line in module.entry.lines if line.opcode == "fusion"]
    assert call.operands == ("x", "z")
    assert [line.tail.split(")")[0] for line in module.by_name["fused"].parameters] == ["0", "1"]
    assert "c" not in module.entry.by_name
    assert "spare" in module.entry.by_name
    parse_hlo(str(module))


def test_a_tail_is_split_at_its_own_commas() -> None:
    assert split_at_commas('), a={1,2}, b="x, (y", c={d={e,f}, g}') == [
        ")",
        " a={1,2}",
        ' b="x, (y"',
        " c={d={e,f}, g}",
    ]
    assert split_at_commas("{(1, 2), (3, -4)}), m=1") == ["{(1, 2), (3, -4)})", " m=1"]


def test_sizes_in_types() -> None:
    assert shapes_in("(f32[4,2]{0,1}, pred[], s8[7])") == [(4, 2), (), (7,)]
    assert with_dims("(f32[4,2]{0,1}, pred[])", {(4, 2): (1, 2)}) == "(f32[1,2]{0,1}, pred[])"
    assert with_dims("f32[4,2]{0,1}", {(4, 2): (2,)}) == "f32[2]{0}"
    assert with_dims("f32[4,2]{0,1}", {(4, 2): ()}) == "f32[]"
