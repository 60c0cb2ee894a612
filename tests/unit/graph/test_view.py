"""The fusion view."""

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo


def fusion_view(text: str) -> FusionView:
    return view_of(next(op for op in parse_hlo(text, "test.hlo").walk() if isinstance(op, FusionOp)))


TWO_RESULTS = """
HloModule m
f {
  p = f32[8,64] parameter(0)
  q = f32[8,64] parameter(1)
  dead = f32[8,64] abs(q)
  a = f32[8,64] negate(p)
  b = f32[512] reshape(a)
  ROOT t = (f32[8,64], f32[512]) tuple(a, b)
}
ENTRY main {
  x = f32[8,64] parameter(0)
  ROOT fusion.1 = (f32[8,64], f32[512]) fusion(x, x), kind=kLoop, calls=f
}
"""


def test_roots_parameters_instructions_users():
    view = fusion_view(TWO_RESULTS)
    names = [op.instruction_name.data for op in view.instructions]
    assert view.name == "fusion.1"
    assert names == ["p", "a", "b", "t"]
    assert [str(type) for type in view.result_types] == ["tensor<8x64xf32>", "tensor<512xf32>"]
    assert len(view.parameters) == 2
    assert view.operands[0] is view.operands[1]
    by_name = dict(zip(names, view.instructions, strict=True))
    assert [user.instruction_name.data for user in view.users[by_name["a"]]] == ["b", "t"]
    assert view.elements == 512
    assert view.smallest_output_bits == 32
    assert str(view) == "fusion.1: (f32[8,64], f32[8,64]) -> (f32[8,64], f32[512]), 4 instructions"


def test_a_computation_can_be_viewed_without_a_call():
    module = parse_hlo("ENTRY whole {\n p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p)\n}")
    view = view_of(entry_of(module))
    assert view.name == "whole"
    assert view.operands == (view.parameters[0].result,)
    assert view.call is None
