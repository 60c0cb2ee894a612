"""Copies of arrays that are updated in place but needed elsewhere, and of results without an array of their own."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.graph.control_computations import control_computations, fusions_of, fusions_run_by
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.graph.insert_copies import insert_copies
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.view import SORTED_RUNS, STITCHED, view_of
from xla_emitters.program import Slot
from xla_emitters.program.steps import Copy, Launch
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

UPDATE = """
update {
  p = s32[9] parameter(0)
  u = s32[2] parameter(1)
  at = s32[] parameter(2)
  ROOT new = s32[9] dynamic-update-slice(p, u, at)
}
negate {
  x = s32[9] parameter(0)
  ROOT n = s32[9] negate(x)
}
"""
ENTRY = """
ENTRY main {
  p = s32[9] parameter(0)
  u = s32[2] parameter(1)
  at = s32[] parameter(2)
  ROOT fusion = s32[9] fusion(p, u, at), kind=kLoop, calls=update
}
"""
MADE = ENTRY.replace("  ROOT", "  n = s32[9] fusion(p), kind=kLoop, calls=negate\n  ROOT").replace(
    "fusion(p, u", "fusion(n, u"
)
ALIAS = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
BARE = UPDATE.partition("negate")[0].replace("update {", "ENTRY main {")
INPUTS = [np.arange(9, dtype=np.int32), np.array([20, 30], np.int32), np.array(8, np.int32)]


def flow(text: str) -> list[tuple[str, tuple[Slot, ...], tuple[Slot, ...]]]:
    """Kernels and copies in the order of the steps: the kernel's name or "copy", what it reads, what it writes."""
    module = parse_hlo(text)
    insert_copies(module)
    plan = plan_program(module)
    arrays = [
        Slot(kind, number)
        for kind, types in (("parameter", plan.parameters), ("result", plan.results), ("temporary", plan.temporaries))
        for number in range(len(types))
    ]
    found = list[tuple[str, tuple[Slot, ...], tuple[Slot, ...]]]()
    for step in plan.steps:
        match step:
            case Launch():
                kernel = plan.kernels[int(step.kernel)]
                found.append((kernel.name, kernel.operands, kernel.results))
            case Copy():
                found.append(("copy", (arrays[step.source.slot],), (arrays[step.target.slot],)))
            case _:
                pass
    return found


def assert_stays(module: ModuleOp) -> None:
    before = print_hlo(module)
    insert_copies(module)
    assert print_hlo(module) == before


def test_what_is_in_place_stays_as_it_is() -> None:
    assert_stays(parse_hlo(ALIAS + UPDATE + ENTRY))


def test_an_array_that_is_packed_in_the_fusion_alone_is_not_copied() -> None:
    packed = UPDATE.replace("s32[9] parameter", "s4[9]{0:E(4)} parameter").replace("s32[2]", "s4[2]")
    packed = packed.replace("new = s32[9]", "new = s4[9]{0:E(4)}").partition("negate")[0]
    assert_stays(parse_hlo(packed + ENTRY.replace("s32[9]", "s4[9]").replace("s32[2]", "s4[2]")))


P, U, AT, R = Slot("parameter", 0), Slot("parameter", 1), Slot("parameter", 2), Slot("result", 0)


@pytest.mark.parametrize(("text", "name"), [(UPDATE + ENTRY, "fusion"), (BARE, "main")])
def test_an_update_that_is_wanted_elsewhere_goes_into_a_copy(text: str, name: str) -> None:
    assert flow(text) == [("copy", (P,), (R,)), (name, (R, U, AT), (R,))]


def test_an_update_goes_into_what_a_fusion_makes_for_it_alone() -> None:
    assert flow(UPDATE + MADE) == [("n", (P,), (R,)), ("fusion", (R, U, AT), (R,))]


def test_what_a_fusion_makes_for_several_is_not_overwritten() -> None:
    wanted_too = MADE.replace("ROOT fusion", "fusion").replace(
        "calls=update\n",
        """calls=update
  ROOT all = (s32[9], s32[9]) tuple(n, fusion)
""",
    )
    made, updated = Slot("result", 0), Slot("result", 1)
    assert flow(UPDATE + wanted_too) == [
        ("n", (P,), (made,)),
        ("copy", (made,), (updated,)),
        ("fusion", (updated, U, AT), (updated,)),
    ]


def test_results_that_are_parameters_or_others_too_are_copied() -> None:
    text = f"""{UPDATE}
ENTRY main {{
  p = s32[9] parameter(0)
  n = s32[9] fusion(p), kind=kLoop, calls=negate
  inner = (s32[9], s32[9]) tuple(p, n)
  ROOT all = (s32[9], (s32[9], s32[9])) tuple(n, inner)
}}"""
    made = [("n", (P,), (R,)), ("copy", (P,), (Slot("result", 1),)), ("copy", (R,), (Slot("result", 2),))]
    assert flow(text) == made


@pytest.mark.parametrize("text", [UPDATE + ENTRY, UPDATE + MADE, BARE])
def test_copies_change_no_value(text: str) -> None:
    before, after = parse_hlo(text), parse_hlo(text)
    insert_copies(after)
    after.verify()
    assert print_hlo(parse_hlo(print_hlo(after))) == print_hlo(after)
    (one,), (two,) = evaluate(entry_of(before), INPUTS), evaluate(entry_of(after), INPUTS)
    assert one.tolist() == two.tolist()
    assert all(op.location for op in entry_of(after).instructions if isinstance(op, FusionOp | CopyOp))


LOOP = """
keep {{ x = s32[9] parameter(0)
  ROOT n = s32[2] slice(x), slice={{[0:2]}} }}
body {{ s = (s32[9], s32[2], s32[]) parameter(0)
  p = s32[9] get-tuple-element(s), index=0
  u = s32[2] get-tuple-element(s), index=1
  at = s32[] get-tuple-element(s), index=2
  {before}
  fusion = s32[9] fusion(p, u, at), kind=kLoop, calls=update
  {after}
  ROOT t = (s32[9], s32[2], s32[]) tuple({results}, at) }}
never {{ s = (s32[9], s32[2], s32[]) parameter(0)
  ROOT no = pred[] constant(false) }}
ENTRY main {{ s = (s32[9], s32[2], s32[]) parameter(0)
  ROOT w = (s32[9], s32[2], s32[]) while(s), condition=never, body=body }}
"""
READ = "kept = s32[2] fusion(p), kind=kLoop, calls=keep"
SAID = ", output_to_operand_aliasing={{}: (0, {})}"
BODIES = {
    "updated alone": ("", "", "fusion, u", ["fusion"]),
    "read before": (READ, "", "fusion, kept", ["kept", "fusion"]),
    "read after": ("", READ, "fusion, kept", ["fusion", "kept"]),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_loops_body_updates_its_state_in_place_unless_that_is_read_later(case: str) -> None:
    before, after, results, wanted = BODIES[case]
    module = parse_hlo(UPDATE + LOOP.format(before=before, after=after, results=results))
    insert_copies(module)
    module.verify()
    fusions = [op for computation in control_computations(module) for op in fusions_of(computation)]
    assert [op.instruction_name.data for op in fusions] == wanted
    (updating,) = (op for op in fusions if op.instruction_name.data == "fusion")
    assert updating.output_to_operand_aliasing is not None
    (updated,) = view_of(updating).wanted_aliases.values()
    assert updated is updating.operands[0]
    assert isinstance(updated.owner, CopyOp) == (case == "read after")


STATE = """
negate {{ x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x) }}
subtract {{ x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT n = f32[8] subtract(x, y) }}
both {{ x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  s = f32[8] add(x, y)
  d = f32[8] subtract(x, y)
  ROOT t = (f32[8], f32[8]) tuple(s, d) }}
flip {{ x = f32[8] parameter(0)
  ROOT r = f32[8] reverse(x), dimensions={{0}} }}
body {{ s = (f32[8], f32[8]) parameter(0)
  x = f32[8] get-tuple-element(s), index=0
  y = f32[8] get-tuple-element(s), index=1
  {made}
  ROOT t = (f32[8], f32[8]) tuple({results}) }}
never {{ s = (f32[8], f32[8]) parameter(0)
  ROOT no = pred[] constant(false) }}
ENTRY main {{ s = (f32[8], f32[8]) parameter(0)
  ROOT w = (f32[8], f32[8]) while(s), condition=never, body=body }}
"""
NEGATED = "n = f32[8] fusion(x), kind=kLoop, calls=negate"
PAIR = """p = (f32[8], f32[8]) fusion(x, y), kind=kLoop, calls=both
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1"""


@pytest.mark.parametrize(
    ("made", "results", "said"),
    [
        (NEGATED, "n, y", "{{}: (0, {})}"),
        ("n = f32[8] fusion(y, x), kind=kLoop, calls=subtract", "n, y", "{{}: (1, {})}"),
        (PAIR, "a, b", "{{0}: (0, {}), {1}: (1, {})}"),
        (PAIR, "a, y", "{{0}: (0, {})}"),
        (PAIR, "b, a", "{{0}: (1, {}), {1}: (0, {})}"),
        (NEGATED, "y, n", None),  # x goes, but where n is wanted is y
        (NEGATED, "n, x", None),
        (NEGATED + "\n  m = f32[8] fusion(x, y), kind=kLoop, calls=subtract", "n, m", None),
        ("n = f32[8] fusion(x, x), kind=kLoop, calls=subtract", "n, y", None),  # not read once
        ("n = f32[8] fusion(x), kind=kLoop, calls=flip", "n, y", None),
    ],
)
def test_a_loops_state_gives_way_to_what_is_made_of_it_element_by_element(
    made: str, results: str, said: str | None
) -> None:
    module = parse_hlo(STATE.format(made=made, results=results))
    insert_copies(module)
    module.verify()
    first = next(op for computation in control_computations(module) for op in fusions_of(computation))
    aliasing = first.output_to_operand_aliasing
    assert (aliasing and aliasing.data) == said


def test_a_loops_state_that_is_doubled_many_times_is_walked_once() -> None:
    """Paths through 60 sums are 2^60."""
    sums = "".join(f"  x{i + 1} = f32[8] add(x{i}, x{i})\n" for i in range(60))
    text = f"""
grow {{
  x0 = f32[8] parameter(0)
{sums}  ROOT r = f32[8] negate(x60)
}}
body {{
  x = f32[8] parameter(0)
  ROOT y = f32[8] fusion(x), kind=kLoop, calls=grow
}}
less {{
  x = f32[8] parameter(0)
  ROOT c = pred[] constant(false)
}}
ENTRY main {{
  x = f32[8] parameter(0)
  ROOT w = f32[8] while(x), condition=less, body=body
}}"""
    module = parse_hlo(text)
    insert_copies(module)
    (fusion,) = fusions_run_by(entry_of(module))
    assert fusion.output_to_operand_aliasing is not None


@pytest.mark.parametrize("schedule", [STITCHED, SORTED_RUNS])
def test_a_kernel_with_a_schedule_of_programs_writes_no_buffer_that_it_reads(schedule: str) -> None:
    """Its threads read an element more than once, or after another thread wrote it."""
    module = parse_hlo(STATE.format(made=NEGATED, results="n, y"))
    (fusion,) = (op for computation in control_computations(module) for op in fusions_of(computation))
    computation_of(fusion).attributes[schedule] = UnitAttr()
    insert_copies(module)
    assert fusion.output_to_operand_aliasing is None


def test_a_branch_updates_a_copy_whatever_is_said() -> None:
    """What a conditional is given may be read after it."""
    text = f"""{UPDATE}
      part {{ s = (s32[9], s32[2], s32[]) parameter(0)
        p = s32[9] get-tuple-element(s), index=0
        u = s32[2] get-tuple-element(s), index=1
        at = s32[] get-tuple-element(s), index=2
        ROOT fusion = s32[9] fusion(p, u, at), kind=kLoop, calls=update{SAID} }}
      ENTRY main {{ c = pred[] parameter(0)
        s = (s32[9], s32[2], s32[]) parameter(1)
        ROOT r = s32[9] conditional(c, s, s), true_computation=part, false_computation=part }}"""
    module = parse_hlo(text)
    insert_copies(module)
    (fusion,) = fusions_run_by(entry_of(module))
    assert isinstance(fusion.operands[0].owner, CopyOp)


def test_what_is_said_of_an_array_that_is_not_its_own_is_left_out() -> None:
    """Of any other fusion than an update: it never has to be known for the right answer."""
    text = f"""{UPDATE}
      part {{ p = s32[9] parameter(0)
        ROOT fusion = s32[9] fusion(p), kind=kLoop, calls=negate{SAID} }}
      ENTRY main {{ c = pred[] parameter(0)
        p = s32[9] parameter(1)
        a = s32[9] fusion(p), kind=kLoop, calls=negate{SAID}
        b = s32[9] fusion(a), kind=kLoop, calls=negate{SAID}
        ROOT r = s32[9] conditional(c, b, b), true_computation=part, false_computation=part }}"""
    module = parse_hlo(text)
    insert_copies(module)
    said = {op.instruction_name.data: op.output_to_operand_aliasing for op in fusions_run_by(entry_of(module))}
    assert said["fusion"] is None
    assert said["a"] is not None
    assert said["b"] is not None


def test_results_of_loops_and_branches_stay_as_they_are_but_not_entrys() -> None:
    text = """
      body { s = (s32[9], s32[9]) parameter(0)
        p = s32[9] get-tuple-element(s), index=0
        ROOT t = (s32[9], s32[9]) tuple(p, p) }
      never { s = (s32[9], s32[9]) parameter(0)
        ROOT no = pred[] constant(false) }
      ENTRY main { p = s32[9] parameter(0)
        s = (s32[9], s32[9]) tuple(p, p)
        w = (s32[9], s32[9]) while(s), condition=never, body=body
        x = s32[9] get-tuple-element(w), index=0
        ROOT t = (s32[9], s32[9], s32[9]) tuple(x, x, p) }"""
    module = parse_hlo(text)
    insert_copies(module)
    copies = [
        [op.instruction_name.data for op in computation.instructions if isinstance(op, CopyOp)]
        for computation in control_computations(module)
    ]
    assert copies == [*[[]] * (len(copies) - 1), ["copy", "copy.1"]]


def test_a_root_that_is_a_parameter_is_copied() -> None:
    module = parse_hlo(
        f"{UPDATE}ENTRY main {{ ROOT p = s32[9] parameter(0)\n n = s32[9] fusion(p), kind=kLoop, calls=negate }}"
    )
    insert_copies(module)
    assert isinstance(entry_of(module).root.owner, CopyOp)


OF_THE_RESULT = """f { p = s32[4,6] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  new = s32[4,6] dynamic-update-slice(p, u, at, at)
  ROOT r = s32[3,8] bitcast(new) }
ENTRY main { p = s32[4,6] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  ROOT fusion = s32[3,8] fusion(p, u, at), kind=kLoop, calls=f }"""
OF_THE_ARRAY = """f { p = s32[24] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  held = s32[4,6] bitcast(p)
  ROOT new = s32[4,6] dynamic-update-slice(held, u, at, at) }
ENTRY main { p = s32[24] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  ROOT fusion = s32[4,6] fusion(p, u, at), kind=kLoop, calls=f }"""
OF_ONE_OF_TWO = """f { p = s32[4,6] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  q = s32[4,6] parameter(3)
  new = s32[4,6] dynamic-update-slice(p, u, at, at)
  r = s32[3,8] bitcast(new)
  other = s32[4,6] dynamic-update-slice(q, u, at, at)
  ROOT both = (s32[3,8], s32[4,6]) tuple(r, other) }
ENTRY main { p = s32[4,6] parameter(0)
  u = s32[2,3] parameter(1)
  at = s32[] parameter(2)
  q = s32[4,6] parameter(3)
  ROOT fusion = (s32[3,8], s32[4,6]) fusion(p, u, at, q), kind=kLoop, calls=f }"""


@pytest.mark.parametrize("text", [OF_THE_RESULT, OF_THE_ARRAY, OF_ONE_OF_TWO])
def test_an_update_under_a_bitcast_lies_where_the_array_does(text: str) -> None:
    """The aliasing is of two arrays of one type, as HLO wants it."""
    module = parse_hlo(text)
    insert_copies(module)
    module.verify()
    (update,) = (op for op in fusions_run_by(entry_of(module)) if op.output_to_operand_aliasing is not None)
    assert update.output_to_operand_aliasing is not None
    arrays = [np.arange(24, dtype=np.int32), np.full((2, 3), -1, np.int32), np.array(1, np.int32), np.arange(100, 124)]
    shapes = [dims_of(parameter.result) for parameter in entry_of(module).parameters]
    inputs = [array.astype(np.int32).reshape(shape) for array, shape in zip(arrays, shapes, strict=False)]
    for result, first in zip(evaluate(entry_of(module), inputs), (0, 100), strict=False):
        wanted = np.arange(first, first + 24).reshape(4, 6)
        wanted[1:3, 1:4] = -1
        np.testing.assert_array_equal(result.reshape(4, 6), wanted)
