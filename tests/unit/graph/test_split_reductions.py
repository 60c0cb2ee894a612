"""Reductions in several kernels: the lengths that XLA chooses, unchanged values, and what is not split."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.errors import UsageError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.reduction_kinds import Reduction
from xla_emitters.graph.split_reductions import SplitReductionsPass, split_reductions
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

ADD = """
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b) }
"""


@pytest.mark.parametrize(
    ("shape", "outer", "inner"),
    [
        (Reduction(False, (1, 8192, 8192)), 64, 128),
        (Reduction(True, (1, 8, 100000)), 250, 400),
        (Reduction(True, (1, 1, 131072)), 256, 512),
        (Reduction(True, (1, 1, 50000)), 200, 250),
        (Reduction(True, (1, 1, 627 * 837)), 627, 837),
        (Reduction(True, (1, 1, 4194304)), 2048, 2048),
    ],
    ids=str,
)
def test_lengths_are_split_as_xla_does(shape: Reduction, outer: int, inner: int):
    """Source: fusions of JAX programs as XLA compiles them."""
    assert (shape.split.outer, shape.split.inner) == (outer, inner)


def test_the_parts_are_small_enough_and_all_of_it():
    for length in range(16385, 400000, 4099):
        split = Reduction(True, (2, 3, length)).split
        assert split.outer * split.inner >= length
        # Half a step of the search pads at most so much.
        assert split.outer * split.inner - length < split.outer
        assert split.first.is_race_free
        assert split.second.is_race_free
    assert Reduction(True, (8, 3, 16384)).split is None


def test_many_slices_are_reduced_after_the_rows():
    split = Reduction(True, (9, 3, 100)).split
    assert (split.first, split.second) == (Reduction(True, (1, 27, 100)), Reduction(False, (1, 9, 3)))
    split = Reduction(True, (9, 1, 100)).split
    assert split.second == Reduction(True, (1, 1, 9))


def split(text: str) -> tuple[ModuleOp, ModuleOp]:
    """The module, and it again after the split, read back from its text."""
    before, after = parse_hlo(text, "x.hlo"), parse_hlo(text, "x.hlo")
    split_reductions(after)
    after.verify()
    return before, parse_hlo(print_hlo(after), "x.hlo")


def fusions(module: ModuleOp) -> list[str]:
    return [op.instruction_name.data for op in entry_of(module).instructions if isinstance(op, FusionOp)]


def same(before: ModuleOp, after: ModuleOp, tolerance: float = 0.0) -> None:
    rng = np.random.default_rng(0)
    shapes = [dims_of(parameter.result) for parameter in entry_of(before).parameters]
    inputs = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    wanted, got = evaluate(entry_of(before), inputs), evaluate(entry_of(after), inputs)
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance)


@pytest.mark.parametrize(
    ("operand", "result", "dimensions"),
    [
        ("f32[4100,3]", "f32[3]", "0"),
        ("f32[2,4100,3]", "f32[2,3]", "1"),
        ("f32[3,4100]{0,1}", "f32[3]", "1"),
        ("f32[2,3,4100]{1,2,0}", "f32[2,3]", "2"),
        ("f32[2,3,4100]{0,2,1}", "f32[2,3]", "2"),
        ("f32[2,3,4100]{0,2,1}", "f32[2,3]{0,1}", "2"),
        ("f32[3,16411]", "f32[3]", "1"),
        ("f32[16411]", "f32[]", "0"),
        ("f32[2,3,16411]{1,2,0}", "f32[3]", "0,2"),
        ("f32[2,3,16411]", "f32[3]", "0,2"),
        ("f32[9,5,64]", "f32[5]", "0,2"),
        ("f32[9,5,16411]", "f32[5]", "0,2"),
        ("f32[5000,2,32]", "f32[2]", "0,2"),
    ],
)
def test_every_way_keeps_the_meaning(operand: str, result: str, dimensions: str):
    """Small integers: sums are exact in any order."""
    before, after = split(f"""{ADD} ENTRY f {{ p = {operand} parameter(0)
        z = f32[] constant(0)
        ROOT r = {result} reduce(p, z), dimensions={{{dimensions}}}, to_apply=add }}""")
    same(before, after)


def test_one_kernel_after_the_other():
    _, after = split(f"""{ADD} ENTRY f {{ p = f32[9,5,16411] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[5] reduce(p, z), dimensions={{0,2}}, to_apply=add }}""")
    # Rows of 16411 are two kernels, what they give is a third.
    assert fusions(after) == ["f.partial.partial", "f.partial", "f"]
    plan = plan_program(after)
    assert [[slot.kind for slot in kernel.results] for kernel in plan.kernels] == [
        ["temporary"],
        ["temporary"],
        ["result"],
    ]


ALL = f"""{ADD}
fused {{ p = f32[5000,40] parameter(0)
        start = f32[] parameter(1)
        w = f32[40] parameter(2)
        e = f32[5000,40] abs(p)
        wide = f32[5000,40] broadcast(w), dimensions={{1}}
        m = f32[5000,40] multiply(e, wide)
        r = f32[40] reduce(m, start), dimensions={{0}}, to_apply=add
        z = f32[] constant(0)
        s = f32[40] reduce(e, z), dimensions={{0}}, to_apply=add
        n = f32[40] negate(r)
        ROOT t = (f32[5000,40], f32[40], f32[40]) tuple(e, n, s) }}
ENTRY f {{ p = f32[5000,40] parameter(0)
        start = f32[] parameter(1)
        w = f32[40] parameter(2)
        ROOT g = (f32[5000,40], f32[40], f32[40]) fusion(p, start, w), kind=kInput, calls=fused }}"""


def test_prologue_side_outputs_and_epilogue_go_where_they_belong():
    before, after = split(ALL)
    same(before, after)
    text = print_hlo(after)
    partial, rest = (text.split(f"%fused.{name} {{")[1].split("\n}")[0] for name in ("partial", "rest"))
    # The initial value that is not neutral counts in the second kernel only.
    looked_for = ("abs(", "multiply(", "negate(", "%start", "[5000,40]")
    assert [word for word in looked_for if word in partial] == ["abs(", "multiply(", "[5000,40]"]
    assert [word for word in looked_for if word in rest] == ["negate(", "%start"]
    assert "%fused {" not in text


def test_an_instruction_that_is_several_results_is_made_as_often():
    """Each result has a buffer of its own, which one kernel writes."""
    text = ALL.replace("(f32[5000,40], f32[40], f32[40])", "(f32[5000,40], f32[40], f32[40], f32[40], f32[5000,40])")
    before, after = split(text.replace("tuple(e, n, s)", "tuple(e, s, n, s, e)"))
    same(before, after)
    assert [len(kernel.results) for kernel in plan_program(after).kernels] == [4, 3]


def test_padding_is_what_leaves_the_rest_as_it_is():
    _, after = split(ALL.replace("5000", "4099"))
    padded = [line.split(" pad(")[1] for line in print_hlo(after).splitlines() if " pad(" in line]
    # 4099 is prime, and 50 * 82 is the next number that is a product of two like ones.
    assert [line.split(", ")[1:] for line in padded] == [
        ["%identity.0)", "padding=0_0x0_1x0_0"],
        ["%z)", "padding=0_0x0_1x0_0"],
    ]


def test_a_reduction_of_unknown_identity_is_left():
    text = ALL.replace("s = f32[] add(a, b)", "s = f32[] subtract(a, b)")
    before, after = split(text)
    assert print_hlo(before) == print_hlo(after)
    with take_notes() as notes:
        SplitReductionsPass().apply_to(before)
    (remark,) = notes.remarks
    assert str(remark) == (
        "xla-split-reductions: skipped hlo.reduce: the initial value of %r would count once for each thread, "
        "and its computation has no known identity at r (x.hlo:12:9)"
    )


def test_what_needs_no_split_stays_as_it_is():
    before, after = split(ALL.replace("5000", "4000"))
    assert print_hlo(before) == print_hlo(after)


@pytest.mark.parametrize("count", [2, 5, 7])
@pytest.mark.parametrize(
    ("operand", "result", "dimensions"), [("f32[3,100]", "f32[3]", "1"), ("f32[100,40]", "f32[40]", "0")]
)
def test_parts_that_are_asked_for(operand: str, result: str, dimensions: str, count: int):
    """One block could do it. 7 does not divide 100, so that the last part is padded."""
    before, _ = split(
        text := f"""{ADD} ENTRY f {{ p = {operand} parameter(0)
        z = f32[] constant(0)
        ROOT r = {result} reduce(p, z), dimensions={{{dimensions}}}, to_apply=add }}"""
    )
    after = parse_hlo(text, "x.hlo")
    SplitReductionsPass((f"f={count}",)).apply_to(after)
    same(before, after)
    assert fusions(after) == ["f.partial", "f"]
    (partial, _) = (op for op in after.walk() if isinstance(op, FusionOp))
    assert count in dims_of(partial.result)


@pytest.mark.parametrize("text", ["f", "f=", "f=x", "=3", "f=1", "f=-2"])
def test_parts_that_make_no_sense(text: str):
    with pytest.raises(UsageError, match="into how many parts"):
        SplitReductionsPass((text,)).apply_to(parse_hlo("ENTRY f { ROOT p = f32[2] parameter(0) }"))
