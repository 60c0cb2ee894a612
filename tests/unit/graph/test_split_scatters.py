"""Scatters that cannot update in place: two fusions, of which the second updates what the first has written."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.split_scatters import SplitScattersPass
from xla_emitters.program import Slot
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

COMBINE = """
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}
"""
ATTRIBUTES = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
FUSED = f"""
fused {{
  p = s32[9] parameter(0)
  rows = s32[5] parameter(1)
  u = s32[5] parameter(2)
  ROOT s = s32[9] scatter(p, rows, u), {ATTRIBUTES}
}}
"""
READS = f"""
fused {{
  p = s32[9] parameter(0)
  rows = s32[5] parameter(1)
  u = s32[5] parameter(2)
  part = s32[5] slice(p), slice={{[0:5]}}
  both = s32[5] add(u, part)
  ROOT s = s32[9] scatter(p, rows, both), {ATTRIBUTES}
}}
"""
ENTRY = """
ENTRY main {
  p = s32[9] parameter(0)
  rows = s32[5] parameter(1)
  u = s32[5] parameter(2)
  ROOT fusion = s32[9] fusion(p, rows, u), kind=kInput, calls=fused
}
"""
ALIAS = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
INPUTS = [np.arange(9, dtype=np.int32), np.array([3, 8, 3, 9, -1], np.int32), np.array([1, 20, 300, 4, 5], np.int32)]
WANTED = [0, 1, 2, 304, 4, 5, 6, 7, 28]


def test_what_is_in_place_stays_one_fusion() -> None:
    module = parse_hlo(ALIAS + COMBINE + FUSED + ENTRY)
    before = print_hlo(module)
    SplitScattersPass().apply_to(module)
    assert print_hlo(module) == before


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (COMBINE + FUSED + ENTRY, "fusion"),
        (ALIAS + COMBINE + READS + ENTRY, "fusion"),
        (COMBINE + FUSED.replace("fused {", "ENTRY main {"), "main"),
    ],
)
def test_else_a_first_fusion_writes_the_array(text: str, name: str) -> None:
    before, after = parse_hlo(text), parse_hlo(text)
    SplitScattersPass().apply_to(after)
    after.verify()
    fusions = [op for op in entry_of(after).instructions if isinstance(op, FusionOp)]
    assert [op.instruction_name.data for op in fusions] == [f"{name}.arrays", name]
    assert fusions[1].output_to_operand_aliasing.data == "{{}: (0, {})}"
    (one,), (two,) = evaluate(entry_of(before), INPUTS), evaluate(entry_of(after), INPUTS)
    assert one.tolist() == two.tolist()
    assert evaluate(entry_of(parse_hlo(print_hlo(after))), INPUTS)[0].tolist() == two.tolist()


def test_both_kernels_have_the_result_and_it_is_whole_after_the_second() -> None:
    module = parse_hlo(COMBINE + FUSED + ENTRY)
    assert evaluate(entry_of(module), INPUTS)[0].tolist() == WANTED
    SplitScattersPass().apply_to(module)
    first, second = plan_program(module).kernels
    result = Slot("result", 0)
    assert (first.operands, first.results) == ((Slot("parameter", 0),), (result,))
    assert (second.operands[0], second.results) == (result, (result,))


def test_an_array_that_another_fusion_makes_needs_no_copy() -> None:
    make = "make {\n  x = s32[9] parameter(0)\n  ROOT n = s32[9] negate(x)\n}\n"
    entry = ENTRY.replace("  ROOT fusion", "  made = s32[9] fusion(p), kind=kLoop, calls=make\n  ROOT fusion").replace(
        "fusion(p, rows", "fusion(made, rows"
    )
    module = parse_hlo(COMBINE + make + FUSED + entry)
    SplitScattersPass().apply_to(module)
    kernels = plan_program(module).kernels
    assert [kernel.name for kernel in kernels] == ["made", "fusion"]
    assert kernels[0].results == kernels[1].results == kernels[1].operands[:1]


def test_an_array_that_is_used_again_is_copied() -> None:
    make = "make {\n  x = s32[9] parameter(0)\n  ROOT n = s32[9] negate(x)\n}\n"
    entry = (
        ENTRY.replace("  ROOT fusion", "  made = s32[9] fusion(p), kind=kLoop, calls=make\n  fusion")
        .replace("fusion(p, rows", "fusion(made, rows")
        .replace("calls=fused\n", "calls=fused\n  ROOT both = (s32[9], s32[9]) tuple(fusion, made)\n")
    )
    module = parse_hlo(COMBINE + make + FUSED + entry)
    wanted = [array.tolist() for array in evaluate(entry_of(module), INPUTS)]
    SplitScattersPass().apply_to(module)
    module.verify()
    kernels = plan_program(module).kernels
    assert [kernel.name for kernel in kernels] == ["made", "fusion.arrays", "fusion"]
    assert kernels[0].results != kernels[1].results == kernels[2].results
    assert [array.tolist() for array in evaluate(entry_of(module), INPUTS)] == wanted


@pytest.mark.parametrize(
    ("results", "wanted"), [("fusion, rows, u", ["fusion"]), ("p, rows, u", ["fusion.arrays", "fusion"])]
)
def test_a_loops_body_scatters_into_its_state_unless_that_is_a_result(results: str, wanted: list[str]) -> None:
    types = "(s32[9], s32[5], s32[5])"
    text = f"""{COMBINE}{FUSED}
      body {{ s = {types} parameter(0)
        p = s32[9] get-tuple-element(s), index=0
        rows = s32[5] get-tuple-element(s), index=1
        u = s32[5] get-tuple-element(s), index=2
        fusion = s32[9] fusion(p, rows, u), kind=kInput, calls=fused
        ROOT t = {types} tuple({results}) }}
      never {{ s = {types} parameter(0)
        ROOT no = pred[] constant(false) }}
      ENTRY main {{ s = {types} parameter(0)
        ROOT w = {types} while(s), condition=never, body=body }}"""
    module = parse_hlo(text)
    SplitScattersPass().apply_to(module)
    module.verify()
    fusions = fusions_run_by(entry_of(module))
    assert [op.instruction_name.data for op in fusions] == wanted
    assert fusions[-1].output_to_operand_aliasing is not None
