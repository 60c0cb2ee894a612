"""Where bodies of Triton's fusions are cut: which instructions are written to memory, in which parts, and which are not."""

import pytest

from xla_emitters.graph.cuts import find_cuts
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import view_of
from xla_emitters.text.hlo import parse_hlo

ADD = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  x = f32[] select(p, a, b)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y)
}
"""

Parts = list[tuple[str, list[str], list[str]]]


def parts(body: str) -> Parts:
    """Role, names of the cuts and of the values that are read, of each part."""
    module = parse_hlo(ADD + "ENTRY e {\n z = f32[] constant(0)\n" + body + "\n}")
    return [
        (
            part.role,
            [op.instruction_name.data for op in part.cuts],
            sorted(value.owner.instruction_name.data for value in part.reads),
        )
        for part in find_cuts(view_of(entry_of(module)))
    ]


X = " x = f32[64,512] parameter(0)\n"


def test_without_reductions_and_contractions_there_is_one_part() -> None:
    assert parts(X + " n = f32[64,512] negate(x)\n ROOT e = f32[64,512] exponential(n)") == [("epilogue", ["e"], [])]


def test_two_reductions_of_one_input_are_one_part() -> None:
    """Mean and mean of squares: the input is read once for both."""
    found = parts(
        X
        + """ q = f32[64,512] multiply(x, x)
 s = f32[64] reduce(x, z), dimensions={1}, to_apply=add
 t = f32[64] reduce(q, z), dimensions={1}, to_apply=add
 ROOT v = f32[64] subtract(t, s)"""
    )
    assert found == [("reduce", ["s", "t"], []), ("epilogue", ["v"], ["s", "t"])]


def test_a_result_as_large_as_what_is_reduced_is_written_by_the_same_part() -> None:
    found = parts(
        X
        + """ q = f32[64,512] negate(x)
 s = f32[64] reduce(q, z), dimensions={1}, to_apply=add
 ROOT t = (f32[64,512], f32[64]) tuple(q, s)"""
    )
    assert found == [("reduce", ["q", "s"], [])]


def test_reductions_of_different_shapes_are_parts_of_their_own() -> None:
    found = parts(
        X
        + """ s = f32[64] reduce(x, z), dimensions={1}, to_apply=add
 t = f32[512] reduce(x, z), dimensions={0}, to_apply=add
 ROOT all = (f32[64], f32[512]) tuple(s, t)"""
    )
    assert found == [("reduce", ["s"], []), ("reduce", ["t"], [])]


@pytest.mark.parametrize(("type", "end"), [("f16", "c"), ("f32", "c"), ("f64", "s")])
def test_after_a_reduction_unary_ops_are_taken_along_that_make_it_no_wider(type: str, end: str) -> None:
    found = parts(
        X
        + f""" s = f32[64] reduce(x, z), dimensions={{1}}, to_apply=add
 c = {type}[64] convert(s)
 ROOT b = {type}[64,512] broadcast(c), dimensions={{0}}"""
    )
    assert found == [("reduce", [end], []), ("epilogue", ["b"], [end])]


def test_what_two_instructions_use_ends_the_chain() -> None:
    found = parts(
        X
        + """ s = f32[64] reduce(x, z), dimensions={1}, to_apply=add
 l = f32[64] log(s)
 m = f32[64] multiply(l, s)
 ROOT b = f32[64,512] broadcast(m), dimensions={0}"""
    )
    assert found == [("reduce", ["s"], []), ("epilogue", ["b"], ["s"])]


SHORT = " x = f32[4,64,512] parameter(0)\n s = f32[64,512] reduce(x, z), dimensions={0}, to_apply=add\n"


def test_a_short_reduction_used_once_is_a_loop_in_the_part_that_uses_it() -> None:
    """The sum over parts of a split contraction, with what follows it."""
    assert parts(SHORT + " n = f32[64,512] multiply(s, s)\n ROOT e = f32[64,512] exponential(n)") == [
        ("epilogue", ["e"], [])
    ]


def test_a_short_reduction_of_which_elements_are_used_several_times_is_written() -> None:
    found = parts(SHORT + " ROOT b = f32[64,512,8] broadcast(s), dimensions={0,1}")
    assert found == [("reduce", ["s"], []), ("epilogue", ["b"], ["s"])]


def test_a_short_reduction_that_is_used_as_a_scalar_for_every_element_is_written() -> None:
    found = parts(
        X
        + """ y = f32[4,2] parameter(1)
 s = f32[2] reduce(y, z), dimensions={0}, to_apply=add
 t = f32[1] slice(s), slice={[1:2]}
 u = f32[] bitcast(t)
 ROOT c = f32[64,512] clamp(z, x, u)"""
    )
    assert found == [("reduce", ["s"], []), ("epilogue", ["c"], ["s"])]


def test_a_short_reduction_of_several_parts_is_written() -> None:
    found = parts(
        SHORT
        + """ r = f32[64] reduce(s, z), dimensions={1}, to_apply=add
 rows = f32[64,512] broadcast(r), dimensions={0}
 ROOT d = f32[64,512] divide(s, rows)"""
    )
    assert found == [("reduce", ["s"], []), ("reduce", ["r"], ["s"]), ("epilogue", ["d"], ["r", "s"])]


def test_elements_of_a_reduction_of_several_arrays_are_read_one_by_one() -> None:
    found = parts(
        X
        + """ i = s32[64,512] iota(), iota_dimension=1
 n = s32[] constant(0)
 r = (f32[64], s32[64]) reduce(x, i, z, n), dimensions={1}, to_apply=argmax
 k = s32[64] get-tuple-element(r), index=1
 ROOT b = s32[64,512] broadcast(k), dimensions={0}"""
    )
    assert found == [("reduce", ["r"], []), ("epilogue", ["b"], ["k"])]


def test_a_contraction_reads_memory() -> None:
    """Operand 0 is a bitcast of a parameter, in memory already; operand 1 is computed."""
    found = parts(
        """ p = f32[512,64]{0,1} parameter(0)
 w = f16[512,32] parameter(1)
 t = f32[64,512] transpose(p), dimensions={1,0}
 c = f32[512,32] convert(w)
 d = f32[64,32] dot(t, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 u = f32[32,64]{0,1} transpose(d), dimensions={1,0}
 ROOT n = f32[2048] bitcast(u)"""
    )
    assert found == [("prologue", ["c"], []), ("dot", ["d"], ["c"])]


def test_one_contraction_after_the_other() -> None:
    found = parts(
        """ p = f32[64,64] parameter(0)
 d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 e = f32[64,64] exponential(d)
 f = f32[64,64] dot(e, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT n = f32[64,64] add(f, d)"""
    )
    assert found == [
        ("dot", ["d"], []),
        ("prologue", ["e"], ["d"]),
        ("dot", ["f"], ["d", "e"]),
        ("epilogue", ["n"], ["d", "f"]),
    ]


def test_a_parameter_as_result_is_no_part() -> None:
    assert parts(" ROOT x = f32[64,512] parameter(0)") == []


def test_what_is_a_result_too_is_computed_again() -> None:
    """And a short reduction before it, if two parts would compute it, is written."""
    found = parts(
        SHORT
        + """ n = f32[64,512] multiply(s, s)
 r = f32[64] reduce(n, z), dimensions={1}, to_apply=add
 rows = f32[64,512] broadcast(r), dimensions={0}
 d = f32[64,512] divide(n, rows)
 ROOT all = (f32[64,512], f32[64,512]) tuple(n, d)"""
    )
    assert found == [("reduce", ["s"], []), ("reduce", ["n", "r"], ["s"]), ("epilogue", ["d"], ["r", "s"])]
