"""Proofs at full size: every launch and every simplification of a compilation; and that the prover refutes what is wrong."""

import math
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from repeatable import repeatable
from unit.algebra.enumeration import answers
from unit.algebra.random_maps import batches
from unit.algebra.random_sizes import Tape, build

from xla_emitters.algebra import map as map_module
from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.facts import AT_LEAST, AT_MOST, EQUAL, Fact, Facts
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import bitcast_map, linearize_physical_map, reshape_map, transpose_map
from xla_emitters.algebra.size import Size, as_size, maximum, minimum
from xla_emitters.device import device
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.errors import ToolError, Unsupported, VerifyError
from xla_emitters.explore import prove
from xla_emitters.explore.prove import Proof, prove_covers, prove_equal, prove_fact, prove_injective
from xla_emitters.graph.launch import launch_for, work_item_map
from xla_emitters.graph.thread_work import elements_per_thread
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import LaunchDimensions
from xla_emitters.support.extras import install_command
from xla_emitters.text.hlo import parse_hlo

pytest.importorskip("islpy", reason="proofs need the extra: pip install 'xla-emitters[prove]'")

parse = IndexingMap.parse
ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.hlo"))
CORPUS = sorted((ROOT / "tests" / "corpus" / "loop").glob("*.hlo"))
GRID = "domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]"


# ---- Launches and maps


@pytest.fixture
def simplified(monkeypatch):
    """{map: its normal form} of every simplification from here on, none of them remembered from before."""
    seen = {}
    work = map_module._normal_form.__wrapped__

    def recorded(m, replace_points):
        seen[m, replace_points] = work(m, replace_points)
        return seen[m, replace_points]

    monkeypatch.setattr(map_module, "_normal_form", recorded)
    return seen


def launches(files):
    """{(launch, shape, layout, unroll): a file that has it} of all fusions in the files, on an H200."""
    chip = device("h200")
    found = {}
    for file in files:
        for op in parse_hlo(file.read_text()).walk():
            if isinstance(op, FusionOp):
                view = view_of(op)
                unroll, result = elements_per_thread(view, chip), view.result_types[0]
                launch = launch_for(view.elements, unroll, chip)
                found[launch, dims_of(result), minor_to_major(result), unroll] = file.name
    return found


def in_memory_order(visits, launch, unroll):
    """The elements' offsets in memory as they ought to be: a thread's own together, then threads, then blocks."""
    v = {variable.name: Expr.variable(number) for number, variable in enumerate(visits.variables)}
    thread, block, own = (v.get(name, Expr.constant(0)) for name in ("th_x", "bl_x", "vector_index"))
    assert set(v) <= {"th_x", "bl_x", "vector_index"}
    offset = (block * launch.threads + thread) * unroll + own
    return IndexingMap((offset,), visits.dims, visits.range_vars, constraints=visits.constraints)


def test_every_launch_writes_every_element_once_and_in_memory_order(simplified):
    """At full size, for the fusions of real programs and the examples."""
    found = launches([*CORPUS, *EXAMPLES])
    assert len(found) > 50
    for (launch, shape, layout, unroll), file in found.items():
        visits = work_item_map(launch, shape, layout, unroll)
        assert str(prove_injective(visits)) == "proved: no index is computed twice", file
        assert prove_covers(visits, shape).holds, file
        offset = visits.compose(linearize_physical_map(shape, layout))
        assert prove_equal(offset, in_memory_order(visits, launch, unroll)) == Proof(
            "the same results on the same domain"
        ), file
    assert len(simplified) >= len(found)
    for (before, _), after in simplified.items():
        assert prove_equal(before, after).holds, before


def test_every_simplification_on_the_way_of_the_examples(simplified):
    """From emission to the last of our passes."""
    for file in EXAMPLES:
        compile_module(read_module(file), CompileOptions(stage="llvm-dialect", record="none"))
    assert len(simplified) > 20
    for (before, _), after in simplified.items():
        assert prove_equal(before, after).holds, before


@pytest.mark.parametrize(
    ("launch", "unroll"),
    [
        (LaunchDimensions((65535, 3, 2), (32, 4, 8)), 2),
        (LaunchDimensions((7, 1, 5), (96, 1, 2)), 4),  # too small: goes round in chunks
        (LaunchDimensions((2**31 - 1, 1, 1), (128, 1, 1)), 1),
    ],
)
def test_launches_that_no_loop_fusion_has_yet(launch, unroll):
    shape, layout = (3, 1021, 4096), (1, 2, 0)
    visits = work_item_map(launch, shape, layout, unroll)
    assert prove_injective(visits).holds
    assert prove_covers(visits, shape).holds


@pytest.mark.parametrize(
    ("m", "shape"),
    [
        (transpose_map((4096, 6, 513), (2, 0, 1)), (6, 513, 4096)),
        (reshape_map((12288, 1026), (6, 513, 4096)), (6, 513, 4096)),
        (reshape_map((6, 513, 4096), (27, 466944)), (27, 466944)),
        (bitcast_map((4096, 3078), (0, 1), (6, 513, 4096), (2, 1, 0)), (6, 513, 4096)),
        (bitcast_map((3, 4096, 1026), (0, 2, 1), (6, 513, 4096), (2, 1, 0)), (6, 513, 4096)),
    ],
    ids=str,
)
def test_reordering_shapes_loses_and_repeats_nothing(m, shape):
    assert math.prod(v.bounds.trip_count for v in m.dims) == math.prod(shape)
    assert prove_injective(m).holds
    assert prove_covers(m, shape).holds


# ---- What is wrong is refuted, with the place


@pytest.mark.parametrize(
    ("before", "after", "counterexample"),
    [
        (
            f"(th_x, bl_x)[v] -> ((bl_x * 128 + th_x) * 4 + v), {GRID}",
            f"(th_x, bl_x)[v] -> (bl_x * 512 + th_x * 4 + v), {GRID}",
            "",
        ),
        (
            "(a) -> (a, a mod 1000), domain: a in [0, 999999]",
            "(a) -> (a, a - a / 1001 * 1001), domain: a in [0, 1000]",
            "(a = 1001) is in the domain before only",
        ),
        (
            "(a) -> (a), domain: a in [0, 99], a mod 7 in [3, 3]",
            "(a) -> (a), domain: a in [0, 99]",
            "(a = 0) is in the domain after only",
        ),
        (
            "(a) -> (a, max(a, 1)), domain: a in [0, 999999]",
            "(a) -> (a, a), domain: a in [0, 999999]",
            "at (a = 0) result 1 is 1 before, 0 after",
        ),
        # Outside the domain anything may differ.
        ("(a) -> (a mod 40), domain: a in [80, 111]", "(a) -> (a - 80), domain: a in [80, 111]", ""),
        # Rounding is toward minus infinity, and remainders have the divisor's sign.
        (
            "(a) -> (a / -4, a mod -4), domain: a in [-9, 9]",
            "(a) -> (-a / 4, a + a / -4 * 4), domain: a in [-9, 9]",
            "",
        ),
        ("(a) -> (a ceildiv 4), domain: a in [-9, 9]", "(a) -> ((a + 3) / 4), domain: a in [-9, 9]", ""),
        # A variable of one value is that value, in a product too.
        (
            "(a, b) -> (a * b), domain: a in [0, 9], b in [3, 3]",
            "(a, b) -> (a * 3), domain: a in [0, 9], b in [3, 3]",
            "",
        ),
        ("(a) -> (a), domain: a in [0, 9], a * 2 in [30, 40]", "(a) -> (7), domain: a in [0, -1]", ""),
        ("() -> (3)", "() -> (4)", "at () result 0 is 3 before, 4 after"),
    ],
)
def test_equality(before, after, counterexample):
    assert prove_equal(parse(before), parse(after)).counterexample == counterexample


def test_two_points_with_one_index():
    m = parse(f"(th_x, bl_x)[v] -> ((bl_x * 127 + th_x) * 4 + v), {GRID}")
    proof = prove_injective(m)
    assert not proof.holds
    assert str(proof).startswith("refuted: no index is computed twice: (th_x = ")


@pytest.mark.parametrize(
    ("text", "shape", "counterexample"),
    [
        ("(a)[v] -> (a, v), domain: a in [0, 9], v in [0, 3]", (10, 4), ""),
        ("(a)[v] -> (a, v), domain: a in [0, 9], v in [0, 3]", (10, 5), "nothing gives (0, 4)"),
        (
            "(a)[v] -> (a, v), domain: a in [0, 9], v in [3, 3]",
            (10, 3),
            "(a = 0, v = 3) gives (0, 3), which is outside",
        ),
        ("(a) -> (), domain: a in [0, 9]", (), ""),
        ("(a) -> (a), domain: a in [0, -1]", (0,), ""),
        ("(a){r} -> ((a + r) mod 10), domain: a in [0, 9], r in [0, 6]", (10,), ""),
        ("(a){r} -> (max(a, r)), domain: a in [0, 9], r in [0, 1]", (10,), "nothing gives (0) when r = 1"),
    ],
)
def test_covering(text, shape, counterexample):
    assert prove_covers(parse(text), shape).counterexample == counterexample


def test_runtime_variables_have_one_value_at_a_time():
    """Two slices that overlap do not write anything twice: only one of them happens."""
    assert prove_injective(parse("(a){r} -> (a + r), domain: a in [0, 9], r in [0, 6]")).holds
    assert not prove_injective(parse("(a)[r] -> (a + r), domain: a in [0, 9], r in [0, 6]")).holds


@repeatable(10)
@given(batches(4))
def test_proofs_agree_with_enumeration(maps):
    """Whatever the claim and whether it is true: a map and its normal form, and the map with its results the other way round."""
    for m in maps:
        points = answers(m)
        swapped = IndexingMap(m.results[::-1], m.dims, m.range_vars, m.runtime_vars, m.parts.constraints)
        for other in (m.simplify(), swapped):
            assert prove_equal(m, other).holds == (answers(other) == points), (m, other)
        ranges = len(m.range_vars)
        written = [(symbols[ranges:], index) for (_, symbols), index in points.items()]
        assert prove_injective(m).holds == (len(set(written)) == len(written)), m
        shape = [max((0, *(index[axis] + 1 for _, index in written))) for axis in range(m.num_results)]
        is_inside = all(i >= 0 for _, index in written for i in index)
        indices = math.prod(shape) * math.prod(v.bounds.trip_count for v in m.runtime_vars)
        assert prove_covers(m, shape).holds == (is_inside and len(set(written)) == indices), m


# ---- What cannot be answered


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("a * b", "a product of two variables cannot be decided: v0 * v1"),
        ("a / b", "a division by a variable cannot be decided: v0 floordiv v1"),
        ("a mod b", "a division by a variable cannot be decided: v0 mod v1"),
    ],
)
def test_what_is_not_quasi_affine_is_refused(result, message):
    m = parse(f"(a, b) -> ({result}), domain: a in [0, 9], b in [1, 9]")
    with pytest.raises(Unsupported) as caught:
        prove_equal(m, m)
    assert caught.value.message == message


def test_a_budget_that_is_spent(monkeypatch, capfd):
    monkeypatch.setattr(prove, "BUDGET", 100)
    m = parse(f"(th_x, bl_x)[v] -> ((bl_x * 128 + th_x) mod 999, (bl_x * 4 + v) / 7), {GRID}")
    with pytest.raises(Unsupported, match="isl gives up"):
        prove_injective(m)
    assert capfd.readouterr() == ("", "")


def test_maps_that_cannot_be_compared():
    one, other = parse("(a) -> (a), domain: a in [0, 1]"), parse("()[a] -> (a), domain: a in [0, 1]")
    with pytest.raises(ValueError, match="different numbers of variables or results"):
        prove_equal(one, other)
    with pytest.raises(ValueError, match="1 results and a shape of rank 2"):
        prove_covers(one, (2, 1))


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "islpy", None)
    with pytest.raises(ToolError) as caught:
        prove_injective(parse("(a) -> (a), domain: a in [0, 1]"))
    assert caught.value.exit_code == 4
    assert caught.value.help == install_command(extras="prove")


# ---- Sizes

B, S = Size.symbol("b"), Size.symbol("s")


@pytest.mark.parametrize(
    ("claim", "stated", "is_true"),
    [
        (Fact(EQUAL, S % 2 + S // 2 * 2, S, ""), [], True),
        (Fact(AT_LEAST, S - S // 2, Size.constant(1), ""), [Fact(AT_LEAST, S, Size.constant(1), "")], True),
        (Fact(AT_LEAST, S - S // 2, Size.constant(1), ""), [], False),
        (Fact(EQUAL, S % 4, Size.constant(0), ""), [Fact(EQUAL, S, 8 * B, "")], True),
        (Fact(AT_MOST, maximum(B, S), B + S, ""), [Fact(AT_LEAST, minimum(B, S), Size.constant(0), "")], True),
        (Fact(AT_MOST, maximum(B, S), B + S, ""), [Fact(AT_LEAST, B, Size.constant(0), "")], False),
    ],
    ids=str,
)
def test_facts_about_sizes(claim, stated, is_true):
    proof = prove_fact(claim, stated)
    assert proof.holds is is_true
    assert str(proof).startswith(f"{'proved' if is_true else 'refuted'}: {claim}")


def test_what_isl_cannot_decide_of_sizes_is_refused():
    for left, right in ((B * S, S), (B // S, B)):
        with pytest.raises(Unsupported, match="cannot be decided"):
            prove_fact(Fact(EQUAL, left, right, ""), [])


@given(st.lists(st.binary(min_size=80, max_size=80), min_size=6, max_size=6))
@repeatable(15)
def test_what_facts_answer_about_sizes_is_proved(batch):
    """For all values of the symbols, where enumeration (in test_facts.py) takes some."""
    asked = 0
    for data in batch:
        tape, facts = Tape(data), Facts()
        with suppress(VerifyError):  # one that contradicts the others is left out
            for _ in range(tape.choose((1, 2, 3))):
                relation = tape.choose((EQUAL, AT_LEAST, AT_MOST))
                facts = facts.with_fact(Fact(relation, as_size(build(tape.tree(1))), as_size(build(tape.tree(1))), ""))
        left, right = (as_size(build(tape.tree(2))) for _ in range(2))
        claims = [Fact(EQUAL, left, facts.simplify(left), "")]
        claims += [Fact(AT_LEAST, left, right, "")] * (facts.at_least(left, right) is True)
        claims += [Fact(AT_LEAST, right, left + 1, "")] * (facts.at_least(left, right) is False)
        claims += [Fact(EQUAL, left, right, "")] * (facts.equal(left, right) is True)
        for claim in claims:
            with suppress(Unsupported):  # products and quotients of symbols
                assert prove_fact(claim, facts.stated).holds, (claim, facts.stated)
                asked += 1
    event(f"{asked} proofs")
