"""What partial results begin with: the initial value if counting it twice changes nothing, else the identity of the body."""

import pytest

from xla_emitters.dialects.hlo.computation import find_computation
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.graph.reduction_starts import combining_opcodes, identities_needed, only_chooses
from xla_emitters.text.hlo import parse_hlo


def reduce(body: str, init: str, dtype: str = "f32") -> ReduceOp:
    """A reduction of `dtype` by `body`, lines over %a and %b that end in ROOT, from `init`."""
    text = f"""
      combine {{ a = {dtype}[] parameter(0)
                b = {dtype}[] parameter(1)
                {body} }}
      ENTRY f {{ p = {dtype}[8,64] parameter(0)
                start = {dtype}[] {init}
                ROOT r = {dtype}[8] reduce(p, start), dimensions={{1}}, to_apply=combine }}"""
    (found,) = (op for op in parse_hlo(text, "x.hlo").walk() if isinstance(op, ReduceOp))
    return found


def argmax(value: str, init: str) -> ReduceOp:
    text = f"""
      combine {{ a = f32[] parameter(0)
                i = s32[] parameter(1)
                b = f32[] parameter(2)
                j = s32[] parameter(3)
                keep = pred[] compare(a, b), direction=GE
                v = f32[] {value}
                n = s32[] select(keep, i, j)
                ROOT t = (f32[], s32[]) tuple(v, n) }}
      ENTRY f {{ p = f32[8,64] parameter(0)
                least = f32[] {init}
                n = s32[8,64] iota(), iota_dimension=1
                zero = s32[] constant(0)
                ROOT r = (f32[8], s32[8]) reduce(p, n, least, zero), dimensions={{1}}, to_apply=combine }}"""
    (found,) = (op for op in parse_hlo(text, "x.hlo").walk() if isinstance(op, ReduceOp))
    return found


@pytest.mark.parametrize(
    ("body", "init", "dtype", "wanted"),
    [
        ("ROOT s = f32[] add(a, b)", "constant(0)", "f32", None),
        ("ROOT s = f32[] add(a, b)", "constant(-0)", "f32", None),
        ("ROOT s = f32[] add(a, b)", "constant(7)", "f32", (0,)),
        ("ROOT s = f32[] add(a, b)", "constant(inf)", "f32", None),
        ("ROOT s = f32[] add(a, b)", "constant(nan)", "f32", None),
        ("ROOT s = f32[] add(b, a)", "parameter(1)", "f32", (0,)),
        ("ROOT s = f32[] multiply(a, b)", "constant(1)", "f32", None),
        ("ROOT s = f32[] multiply(a, b)", "constant(2)", "f32", (1,)),
        ("ROOT s = s32[] xor(a, b)", "parameter(1)", "s32", (0,)),
        ("ROOT s = f32[] maximum(a, b)", "parameter(1)", "f32", None),
        ("ROOT s = s32[] and(a, b)", "parameter(1)", "s32", None),
        ("w = f32[] convert(a)\n x = f32[] convert(b)\n y = f32[] add(w, x)\n ROOT s = bf16[] convert(y)",
         "constant(3)", "bf16", (0,)),
        # a + a, b alone, a - b: nothing is known that leaves the other side as it is.
        ("ROOT s = f32[] add(a, a)", "constant(7)", "f32", "%r"),
        ("ROOT s = f32[] subtract(a, b)", "constant(7)", "f32", "%r"),
        # Infinity times 1 + 0i is NaN, so 1 leaves not all complex numbers as they are.
        ("ROOT s = c64[] add(a, b)", "parameter(1)", "c64", (0,)),
        # One part is NaN whatever is added, the other is not.
        ("ROOT s = c64[] add(a, b)", "constant((7, nan))", "c64", (0,)),
        ("ROOT s = c64[] add(a, b)", "constant((inf, nan))", "c64", None),
        ("ROOT s = c64[] multiply(a, b)", "parameter(1)", "c64", "%r"),
        # It gives 0 back from 0 and 0, whatever it is.
        ("t = f32[] multiply(a, b)\n u = f32[] add(a, b)\n ROOT s = f32[] add(t, u)", "constant(0)", "f32", None),
    ],
)  # fmt: skip
def test_what_threads_begin_with(body: str, init: str, dtype: str, wanted: tuple[int, ...] | str | None):
    found = identities_needed(reduce(body, init, dtype))
    if isinstance(wanted, str):
        assert found == (
            f"the initial value of {wanted} would count once for each thread, and its computation has no known identity"
        )
    else:
        assert found == wanted


def test_what_is_chosen_may_be_there_twice():
    """Whatever the initial value is, also if only the run knows it."""
    assert identities_needed(argmax("select(keep, a, b)", "parameter(1)")) is None
    assert identities_needed(argmax("maximum(a, b)", "parameter(1)")) is None
    # Of two results one is a sum: from 0 it may be there twice, from 1 not.
    assert identities_needed(argmax("add(a, b)", "constant(0)")) is None
    assert isinstance(identities_needed(argmax("add(a, b)", "constant(1)")), str)


def test_each_result_has_a_start_of_its_own_where_it_comes_from_its_own_candidates():
    text = """
      combine { a = f32[] parameter(0)
                c = f32[] parameter(1)
                b = f32[] parameter(2)
                d = f32[] parameter(3)
                s = f32[] add(a, b)
                m = f32[] FUNCTION(c, d)
                ROOT t = (f32[], f32[]) tuple(s, m) }
      ENTRY f { p = f32[8,64] parameter(0)
                one = f32[] constant(1)
                ROOT r = (f32[8], f32[8]) reduce(p, p, one, one), dimensions={1}, to_apply=combine }"""

    def needed(function: str):
        module = parse_hlo(text.replace("FUNCTION", function), "x.hlo")
        return identities_needed(next(op for op in module.walk() if isinstance(op, ReduceOp)))

    assert needed("maximum") == (0, None)
    assert needed("multiply") == (0, 1)
    assert isinstance(needed("power"), str)


def test_what_combines_each_result():
    hero = argmax("add(b, a)", "constant(0)")
    body = find_computation(hero, hero.to_apply)
    assert combining_opcodes(body) == ("add", None)
    assert not only_chooses(body)


@pytest.mark.parametrize(("first", "holds"), [("maximum(a, b)", True), ("add(a, b)", False)])
def test_a_body_with_many_paths_to_its_candidates_is_walked_once(first: str, holds: bool) -> None:
    """Paths through 60 maxima of a value and itself are 2^60."""
    again = "\n".join(f"m{i + 1} = f32[] maximum(m{i}, m{i})" for i in range(60))
    hero = reduce(f"m0 = f32[] {first}\n{again}\nROOT r = f32[] minimum(m60, a)", "constant(0)")
    assert only_chooses(find_computation(hero, hero.to_apply)) == holds
