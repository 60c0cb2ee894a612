"""What HLO text is printed, of whole modules and of a computation alone; `test_corpus.py` reads it back."""

from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.hlo.hlo_printer import print_alone


def test_an_alias_names_arrays_inside_tuples():
    text = """HloModule m, input_output_alias={ {1,0}: (0, {0,2}, must-alias) }

ENTRY %main {
  %t = ((f32[8]{0}, s32[], f32[4]{0})) parameter(0)
  %u = (f32[8]{0}, s32[], f32[4]{0}) get-tuple-element(%t), index=0
  %x = f32[4]{0} get-tuple-element(%u), index=2
  %v = (f32[4]{0}) tuple(%x)
  ROOT %r = ((f32[8]{0}, s32[], f32[4]{0}), (f32[4]{0})) tuple(%u, %v)
}
"""
    assert print_hlo(parse_hlo(text)) == text


def test_what_is_printed():
    text = """HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b), metadata={op_name="add"}
}, execution_thread="host"

ENTRY %main {
  %x = f32[8,64]{0,1} parameter(0), sharding={replicated}
  %zero = f32[] constant(-0.0)
  %t = s32[2]{0} constant({1, -2})
  %e = f32[1000]{0} constant({...})
  %u = (f32[2]{0}, pred[]) constant(({1, nan(0x7)}, true))
  %r = f32[8]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add
  %s = f32[2]{0} slice(%r), slice={[2:8:3]}
  ROOT %p = f32[5]{0} pad(%s, %zero), padding=1_0_2, control-predecessors={%t}
}
"""
    assert print_hlo(parse_hlo(text)) == text


def calls_twice(depth: int) -> str:
    """Each computation calls the one before twice: 2**depth ways lead from the last one to the first."""
    parts = ["HloModule m", "g0 { p = f32[] parameter(0) ROOT r = f32[] abs(p) }"]
    for n in range(1, depth + 1):
        called = f"to_apply=g{n - 1}"
        parts.append(f"g{n} {{ p = f32[] parameter(0) a = f32[] call(p), {called} ROOT r = f32[] call(a), {called} }}")
    return "\n".join([*parts, f"ENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=g{depth} }}\n"])


def names_in(text: str) -> list[str]:
    """Of the computations of a module that is read."""
    return [op.sym_name.data for op in parse_hlo(text).ops if isinstance(op, ComputationOp)]


def test_a_computation_alone_has_each_that_it_calls_once() -> None:
    """In time that does not grow with the number of ways that lead to them."""
    depth = 60
    module = parse_hlo(calls_twice(depth))
    text = print_alone(find_computation(next(iter(module.ops)), f"g{depth}"))
    assert names_in(text) == [f"g{n}" for n in range(depth + 1)]


def test_a_computation_alone_is_after_those_that_it_calls() -> None:
    """Also where one of them calls another that was called before it."""
    text = """HloModule m
    b { p = f32[] parameter(0) ROOT r = f32[] abs(p) }
    c { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=b }
    other { p = f32[] parameter(0) ROOT r = f32[] negate(p) }
    a { p = f32[] parameter(0) x = f32[] call(p), to_apply=b ROOT r = f32[] call(x), to_apply=c }
    ENTRY e { p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=a }
    """
    module = parse_hlo(text)
    assert names_in(print_alone(find_computation(next(iter(module.ops)), "a"))) == ["b", "c", "a"]
