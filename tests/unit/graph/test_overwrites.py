"""What a fusion may write over: the program's own arrays, and only where nothing needs them any more."""

import pytest

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.control_computations import loop_bodies
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.overwrites import may_overwrite
from xla_emitters.text.hlo import parse_hlo

HEAD = """
turn { x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x) }
two { x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] sine(x)
  ROOT t = (f32[4], f32[4]) tuple(a, b) }
sum { x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y) }
same { s = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(s), index=0
  b = f32[4] get-tuple-element(s), index=1
  ROOT t = (f32[4], f32[4]) tuple(a, b) }
never { s = (f32[4], f32[4]) parameter(0)
  ROOT c = pred[] constant(false) }
"""
FUSE = "kind=kLoop, calls="
# The instructions before %u, which would write over %v; what follows it; whether it may.
CASES = {
    "a fusion's result": (f"v = f32[4] fusion(p), {FUSE}turn", "", True),
    "a library's result": ('v = f32[4] custom-call(p), custom_call_target="f"', "", True),
    "one of several results": (
        f"m = (f32[4], f32[4]) fusion(p), {FUSE}two\n v = f32[4] get-tuple-element(m), index=1",
        "",
        True,
    ),
    "a bitcast of one": (f"m = f32[2,2] fusion(q), {FUSE}turned\n v = f32[4] bitcast(m)", "", True),
    "read before": (f"v = f32[4] fusion(p), {FUSE}turn\n o = f32[4] fusion(v), {FUSE}turn", "", True),
    "read after": (f"v = f32[4] fusion(p), {FUSE}turn", f"o = f32[4] fusion(v), {FUSE}turn", False),
    "read after under another name": (
        f"m = (f32[4], f32[4]) fusion(p), {FUSE}two\n v = f32[4] get-tuple-element(m), index=1\n"
        "w = f32[4] get-tuple-element(m), index=1\n w2 = f32[2,2] bitcast(w)",
        'o = f32[2,2] custom-call(w2), custom_call_target="f"',
        False,
    ),
    "its neighbour is read after": (
        f"m = (f32[4], f32[4]) fusion(p), {FUSE}two\n v = f32[4] get-tuple-element(m), index=1\n"
        "w = f32[4] get-tuple-element(m), index=0",
        f"o = f32[4] fusion(w), {FUSE}turn",
        True,
    ),
    "a loop was given it": (
        f"v = f32[4] fusion(p), {FUSE}turn\n t = (f32[4], f32[4]) tuple(v, p)\n"
        "w = (f32[4], f32[4]) while(t), condition=never, body=same",
        "",
        False,
    ),
    "a loop's result": (
        "t = (f32[4], f32[4]) tuple(p, p)\n w = (f32[4], f32[4]) while(t), condition=never, body=same\n"
        "v = f32[4] get-tuple-element(w), index=0",
        "",
        False,
    ),
    "a parameter": ("v = f32[4] bitcast(p)", "", False),
    "a constant": ("v = f32[4] constant({1,2,3,4})", "", False),
}


def may_write_over(text: str, operand: int = 0) -> bool:
    """Whether the fusion %u may write over that operand."""
    module = parse_hlo(text)
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp) and op.instruction_name.data == "u")
    return may_overwrite(fusion.operands[operand], fusion, loop_bodies(entry_of(module)))


@pytest.mark.parametrize("case", CASES)
def test_only_what_is_the_programs_own_and_not_needed_any_more(case: str) -> None:
    before, after, wanted = CASES[case]
    turned = "turned { x = f32[2,2] parameter(0)\n ROOT r = f32[2,2] negate(x) }"
    text = f"""{HEAD}{turned}
      ENTRY main {{ p = f32[4] parameter(0)
        q = f32[2,2] parameter(1)
        {before}
        u = f32[4] fusion(v, p), {FUSE}sum
        {after}
        ROOT r = f32[4] copy(u) }}"""
    assert may_write_over(text) == wanted


def test_what_is_a_result_or_read_twice_is_kept() -> None:
    made = f"v = f32[4] fusion(p), {FUSE}turn"
    result = f"""{HEAD}ENTRY main {{ p = f32[4] parameter(0)
        {made}
        u = f32[4] fusion(v, p), {FUSE}sum
        inner = (f32[4]) tuple(v)
        ROOT r = (f32[4], (f32[4])) tuple(u, inner) }}"""
    assert not may_write_over(result)
    twice = f"{HEAD}ENTRY main {{ p = f32[4] parameter(0)\n {made}\n ROOT u = f32[4] fusion(v, v), {FUSE}sum }}"
    assert not may_write_over(twice)


RUN = {
    "a loop's body": ("w = (f32[4], f32[4]) while(t), condition=never, body=part", True),
    "a branch": ("w = (f32[4], f32[4]) conditional(c, t, t), true_computation=part, false_computation=same", False),
    "both": (
        "v = (f32[4], f32[4]) while(t), condition=never, body=part\n"
        "w = (f32[4], f32[4]) conditional(c, t, t), true_computation=part, false_computation=same",
        False,
    ),
}


@pytest.mark.parametrize("by", RUN)
def test_the_state_of_a_loop_is_its_bodys_own(by: str) -> None:
    run, wanted = RUN[by]
    text = f"""{HEAD}part {{ s = (f32[4], f32[4]) parameter(0)
        a = f32[4] get-tuple-element(s), index=0
        b = f32[4] get-tuple-element(s), index=1
        u = f32[4] fusion(a, b), {FUSE}sum
        ROOT t = (f32[4], f32[4]) tuple(u, b) }}
      ENTRY main {{ t = (f32[4], f32[4]) parameter(0)
        c = pred[] parameter(1)
        {run}
        ROOT r = f32[4] get-tuple-element(w), index=0 }}"""
    assert may_write_over(text) == wanted
    assert not may_write_over(text, 1)  # %b is a result
