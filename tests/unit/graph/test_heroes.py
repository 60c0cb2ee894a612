"""Which instruction is the hero, rule by rule. XLA's choice for real fusions: tests/runtime/test_corpus.py."""

import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.heroes import TransposeHeroes, find_non_trivial_hero, find_transposes, place_map
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo


def view(body: str, called: str = "") -> FusionView:
    module = parse_hlo(f"{called}\nENTRY f {{\n{body}\n}}")
    return view_of(entry_of(module))


def heroes(body: str, called: str = "") -> list[str]:
    """The hero of each root."""
    fusion = view(body, called)
    return [find_non_trivial_hero(fusion, root).instruction_name.data for root in fusion.roots]


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Prologue and epilogue.
        (
            """p = f32[64,32] parameter(0)
            e = f32[64,32] exponential(p)
            t = f32[32,64] transpose(e), dimensions={1,0}
            ROOT a = f32[32,64] abs(t)""",
            ["t"],
        ),
        # Up to three operands of an epilogue.
        (
            """p = f32[64,32] parameter(0)
            c = pred[32,64] parameter(1)
            x = f32[32,64] parameter(2)
            t = f32[32,64] transpose(p), dimensions={1,0}
            ROOT s = f32[32,64] select(c, t, x)""",
            ["t"],
        ),
        # Bitcasts and reshapes of row-major arrays leave elements where they are.
        (
            """p = f32[64,32] parameter(0)
            t = f32[32,64] transpose(p), dimensions={1,0}
            b = f32[2048] bitcast(t)
            ROOT r = f32[16,128] reshape(b)""",
            ["t"],
        ),
        # A copy to another layout does not.
        (
            """p = f32[64,32] parameter(0)
            t = f32[32,64] transpose(p), dimensions={1,0}
            ROOT c = f32[32,64]{0,1} copy(t)""",
            ["c"],
        ),
        # Nor does an elementwise op between layouts.
        (
            """p = f32[64,32] parameter(0)
            t = f32[32,64] transpose(p), dimensions={1,0}
            ROOT n = f32[32,64]{0,1} negate(t)""",
            ["n"],
        ),
        # Two transposes are none.
        (
            """p = f32[64,32] parameter(0)
            q = f32[64,32] parameter(1)
            t = f32[32,64] transpose(p), dimensions={1,0}
            u = f32[32,64] transpose(q), dimensions={1,0}
            ROOT a = f32[32,64] add(t, u)""",
            ["a"],
        ),
        # Someone else reads the transpose at other indices.
        (
            """p = f32[64,32] parameter(0)
            t = f32[32,64] transpose(p), dimensions={1,0}
            a = f32[32,64] abs(t)
            s = f32[16,64] slice(t), slice={[0:16], [0:64]}
            ROOT r = (f32[32,64], f32[16,64]) tuple(a, s)""",
            ["a", "s"],
        ),
        # A transpose too small for shared memory is an ordinary instruction.
        (
            """p = f32[4,4] parameter(0)
            t = f32[4,4] transpose(p), dimensions={1,0}
            ROOT a = f32[4,4] abs(t)""",
            ["a"],
        ),
        (
            """p = f32[64,32] parameter(0)
            q = f32[64,32] parameter(1)
            c = f32[128,32] concatenate(p, q), dimensions={0}
            ROOT a = f32[128,32] abs(c)""",
            ["c"],
        ),
        # A transpose behind another hero is not looked for.
        (
            """p = f32[64,32] parameter(0)
            t = f32[32,64] transpose(p), dimensions={1,0}
            u = f32[64,32] transpose(t), dimensions={1,0}
            ROOT a = f32[64,32] abs(u)""",
            ["u"],
        ),
        (
            """p = f32[64,32] parameter(0)
            ROOT a = f32[64,32] abs(p)""",
            ["a"],
        ),
    ],
)
def test_hero(body: str, expected: list[str]):
    assert heroes(body) == expected


def test_a_reduce_leads_through_single_operands_only():
    reduce = """p = f32[64,32] parameter(0)
        z = f32[] constant(0)
        r = f32[64] reduce(p, z), dimensions={1}, to_apply=add
        l = f32[64] log(r)"""
    assert heroes(f"{reduce}\nROOT b = f32[8,8] bitcast(l)", ADD) == ["r"]
    assert heroes(f"{reduce}\nROOT s = f32[64] add(l, r)", ADD) == ["s"]


def test_a_map_keeps_places():
    """As for XLA, which calls `map` elementwise."""
    double = "double {\na = f32[] parameter(0)\nROOT r = f32[] add(a, a)\n}"
    body = """p = f32[50,30] parameter(0)
        q = f32[90,30] parameter(1)
        c = f32[140,30] concatenate(p, q), dimensions={0}
        ROOT m = f32[140,30] map(c), dimensions={0,1}, to_apply=double"""
    assert heroes(body, double) == ["c"]
    assert heroes(body.replace("map(c)", "map(b)").replace("ROOT", "b = f32[140,30]{0,1} copy(c)\nROOT"), double) == [
        "m"
    ]


def test_roots_are_the_leaves_of_the_tuple():
    body = """p = f32[8] parameter(0)
        n = f32[8] negate(p)
        a = f32[8] abs(p)
        inner = (f32[8], f32[8]) tuple(a, n)
        ROOT r = (f32[8], (f32[8], f32[8])) tuple(n, inner)"""
    assert [op.instruction_name.data for op in view(body).roots] == ["n", "a", "n"]


TWO = """p = f32[64,32] parameter(0)
    q = f32[64,32] parameter(1)
    e = f32[64,32] exponential(p)
    t = f32[32,64] transpose(e), dimensions={1,0}
    u = f32[32,64] transpose(q), dimensions={1,0}"""


def test_one_kernel_for_transposes_alike_and_side_outputs():
    found = find_transposes(view(f"{TWO}\nROOT r = (f32[32,64], f32[32,64], f32[64,32]) tuple(t, u, e)"))
    assert isinstance(found, TransposeHeroes)
    assert [op.instruction_name.data for op in found.heroes] == ["t", "u"]
    assert [op.instruction_name.data for op in found.side_outputs] == ["e"]
    assert str(found.first) == "[64, 32] by {1,0} of 32 bits"


def test_a_side_output_has_the_elements_that_the_transpose_reads():
    found = find_transposes(
        view(f"{TWO}\ns = f32[16,32] slice(e), slice={{[0:16], [0:32]}}\nROOT r = (f32[32,64], f32[16,32]) tuple(t, s)")
    )
    assert found == "a result is f32[16,32], and the transpose reads f32[64,32]"


def test_transposes_of_two_kinds_are_not_one_kernel():
    found = find_transposes(
        view(
            """p = f32[64,32] parameter(0)
            q = f32[32,32] parameter(1)
            t = f32[32,64] transpose(p), dimensions={1,0}
            u = f32[32,32] transpose(q), dimensions={1,0}
            ROOT r = (f32[32,64], f32[32,32]) tuple(t, u)"""
        )
    )
    assert found == "transposes of two kinds: [64, 32] by {1,0} of 32 bits and [32, 32] by {1,0} of 32 bits"


def test_place_map_follows_memory():
    """f32[32,64] in rows, f32[64,32] in columns: element (i, j) of the one lies where (j, i) of the other does."""
    fusion = view(
        """p = f32[32,64] parameter(0)
        ROOT b = f32[64,32]{0,1} bitcast(p)"""
    )
    (root,) = fusion.roots
    (owner,) = (op for op in fusion.instructions if op is not root)
    assert str(place_map(owner, root)) == "(d0, d1) -> (d1, d0), domain: d0 in [0, 31], d1 in [0, 63]"


def test_a_deep_diamond_takes_linear_time():
    """Ways from root to hero double with each row: 2^200."""
    lines = ["p = f32[64,32] parameter(0)", "x0 = f32[32,64] transpose(p), dimensions={1,0}"]
    lines += [f"x{i + 1} = f32[32,64] add(x{i}, x{i})" for i in range(200)]
    lines[-1] = f"ROOT {lines[-1]}"
    assert heroes("\n".join(lines)) == ["x0"]
