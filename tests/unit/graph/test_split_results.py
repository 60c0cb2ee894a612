"""Fusions whose results no one kernel makes: which results stay together, unchanged values, and what is not split."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.split_results import SplitResultsPass, parts_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

VALUES = {
    "row": "f32[40] reduce(p, z), dimensions={1}, to_apply=add",
    "long": "f32[40] reduce(w, z), dimensions={1}, to_apply=add",
    "twice": "f32[40] add(row, row)",
    "column": "f32[96] reduce(p, z), dimensions={0}, to_apply=add",
    "short": "f32[2] slice(row), slice={[0:2]}",
    "scaled": "f32[40,96] multiply(p, p)",
    "flat": "f32[3840] bitcast(p)",
    "corner": "f32[1,1] slice(p), slice={[0:1], [0:1]}",
    "total": "f32[] reduce(p, z), dimensions={0,1}, to_apply=add",
    "joined": "f32[80,96] concatenate(p, p), dimensions={0}",
    "turned": "f32[96,40] transpose(p), dimensions={1,0}",
}


def module(*roots: str) -> ModuleOp:
    types = ", ".join(VALUES[root].split()[0] for root in roots)
    body = "\n".join(f"{name} = {value}" for name, value in VALUES.items())
    return parse_hlo(
        f"""add {{ a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] add(a, b) }}
        fused {{ p = f32[40,96] parameter(0)
                w = f32[40,17000] parameter(1)
                z = f32[] constant(0)
                {body}
                ROOT t = ({types}) tuple({", ".join(roots)}) }}
        ENTRY f {{ p = f32[40,96] parameter(0)
                w = f32[40,17000] parameter(1)
                ROOT g = ({types}) fusion(p, w), kind=kInput, calls=fused }}""",
        "x.hlo",
    )


def only_fusion(of: ModuleOp) -> FusionOp:
    (found,) = (op for op in entry_of(of).instructions if isinstance(op, FusionOp))
    return found


@pytest.mark.parametrize(
    ("roots", "parts"),
    [
        (("row", "column"), ["row", "column"]),
        (("row", "corner"), ["row", "corner"]),
        # An epilogue of two operands is no reduction's, so it is as any result of its size.
        (("twice", "scaled"), ["twice", "scaled"]),
        (("row", "column", "scaled"), ["row scaled", "column"]),
        (("scaled", "column", "short", "row"), ["scaled column", "short", "row"]),
        (("scaled", "short", "flat"), ["scaled flat", "short"]),
        (("twice", "row", "short"), ["twice", "row", "short"]),
        (("long", "short"), ["long", "short"]),
        # Whose element comes first, or who would lose another emitter, stays alone.
        (("corner", "scaled"), ["corner", "scaled"]),
        (("joined", "corner"), ["joined", "corner"]),
        (("turned", "corner"), ["turned", "corner"]),
        (("scaled", "short", "corner"), ["scaled corner", "short"]),
        # One kernel makes these.
        (("scaled", "corner", "flat"), []),
        (("row", "scaled", "flat"), []),
        (("twice", "row"), []),
        (("row", "row"), []),
        (("turned", "flat"), []),
    ],
)
def test_what_goes_together(roots: tuple[str, ...], parts: list[str]):
    found = parts_of(only_fusion(module(*roots)))
    assert [" ".join(op.instruction_name.data for op in part) for part in found] == parts


def test_each_part_is_a_fusion_that_reads_what_it_needs():
    before, after = (module("scaled", "column", "short", "row", "column") for _ in range(2))
    SplitResultsPass().apply_to(after)
    after.verify()
    text = print_hlo(after)
    parts = [text.split(f"%fused.{number} {{")[1].split("\n}")[0] for number in range(3)]
    assert ["f32[40,17000]" in part for part in parts] == [False, False, False]
    assert [" slice(" in part for part in parts] == [False, True, False]
    plan = plan_program(after)
    assert [kernel.name for kernel in plan.kernels] == ["g.0", "g.1", "g.2"]
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-3, 4, dims_of(p.result)).astype(np.float32) for p in entry_of(before).parameters]
    wanted, got = evaluate(entry_of(before), inputs), evaluate(entry_of(parse_hlo(text)), inputs)
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_entry_without_fusions_is_wrapped_first():
    after = parse_hlo(
        """ENTRY f { p = f32[8] parameter(0)
          q = f32[4] parameter(1)
          n = f32[8] negate(p)
          ROOT t = (f32[8], f32[4]) tuple(n, q) }"""
    )
    SplitResultsPass().apply_to(after)
    assert [kernel.name for kernel in plan_program(after).kernels] == ["f.0", "f.1"]


def test_what_needs_no_split_stays_as_it_is():
    after = module("row", "scaled")
    SplitResultsPass().apply_to(after)
    assert print_hlo(after) == print_hlo(module("row", "scaled"))


@pytest.mark.parametrize("rows", [16384, 20011], ids=["too little for a warp", "padded"])
def test_partial_results_and_copies_of_another_size(rows: int) -> None:
    """The sums of two long columns and two arrays of the columns' size: the parts of the sums have a kernel of their own."""
    text = f"""
    add {{ a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT s = s32[] add(a, b) }}
    fused {{ p = s32[{rows},2] parameter(0)
      n = s32[{rows},2] negate(p)
      d = s32[{rows},2] add(p, p)
      z = s32[] constant(5)
      sum = s32[2] reduce(n, z), dimensions={{0}}, to_apply=add
      m = s32[2] negate(sum)
      ROOT all = (s32[{rows},2], s32[2], s32[{rows},2]) tuple(n, m, d) }}
    ENTRY main {{ p = s32[{rows},2] parameter(0)
      ROOT f = (s32[{rows},2], s32[2], s32[{rows},2]) fusion(p), kind=kInput, calls=fused }}"""
    given = np.random.default_rng(0).integers(-9, 9, (rows, 2)).astype(np.int32)
    program = xe.compile(text)
    negated, total, doubled = program.run_cpu(given)
    np.testing.assert_array_equal(negated, -given)
    np.testing.assert_array_equal(total, given.sum(0) - 5)
    np.testing.assert_array_equal(doubled, 2 * given)
    assert len(program.kernels) == 3
