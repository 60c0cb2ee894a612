"""Instructions beside fusions, and in control computations, become fusions of their own; those that no kernel computes stay."""

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.entry import computation_of, entry_of
from xla_emitters.graph.wrap_instructions import WrapInstructionsPass
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

HEAD = """
less { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
most { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] maximum(a, b) }
both { a = s32[] parameter(0)
  i = s32[] parameter(1)
  b = s32[] parameter(2)
  j = s32[] parameter(3)
  c = s32[] maximum(a, b)
  d = s32[] minimum(i, j)
  ROOT t = (s32[], s32[]) tuple(c, d) }
turn { x = s32[2,3] parameter(0)
  ROOT n = s32[2,3] negate(x) }
"""
BESIDE = f"""{HEAD}
ENTRY main {{ p = s32[2,3] parameter(0)
  f = s32[2,3] fusion(p), kind=kLoop, calls=turn
  twice = s32[2,3] add(f, f)
  places = s32[2,3] iota(), iota_dimension=1
  k = s32[] constant(1)
  ones = s32[2,3] broadcast(k), dimensions={{}}
  sums = s32[2,3] subtract(places, ones)
  top = (s32[2], s32[2]) reduce(twice, sums, k, k), dimensions={{1}}, to_apply=both
  high = s32[2] get-tuple-element(top), index=0
  low = s32[2] get-tuple-element(top), index=1
  product = s32[2,2] dot(twice, sums), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  flat = s32[4] bitcast(product)
  kept = s32[4] copy(flat)
  ROOT t = (s32[2], s32[2], s32[4]) tuple(high, low, kept) }}
"""
X = np.array([[1, -5, 3], [0, 2, -7]], np.int32)
TWICE, SUMS = -2 * X, np.array([[-1, 0, 1]] * 2, np.int32)
WANTED = [[10, 14], [-1, -1], (TWICE @ SUMS.T).reshape(-1).tolist()]


def test_no_value_changes_and_each_step_is_one_fusion_or_none() -> None:
    module = parse_hlo(BESIDE)
    WrapInstructionsPass().apply_to(module)
    module.verify()
    assert [op.opcode for op in entry_of(module).instructions] == [
        *("parameter", "fusion", "fusion", "fusion", "constant", "fusion", "fusion", "fusion"),
        *("get-tuple-element", "get-tuple-element", "dot", "bitcast", "copy", "tuple"),
    ]
    for after in (module, parse_hlo(print_hlo(module))):
        assert [found.tolist() for found in evaluate(entry_of(after), [X])] == WANTED


def test_an_operand_that_is_there_twice_is_one_parameter() -> None:
    module = parse_hlo(BESIDE)
    WrapInstructionsPass().apply_to(module)
    (twice,) = (op for op in module.walk() if isinstance(op, FusionOp) and op.instruction_name.data == "twice")
    assert len(twice.operands) == len(computation_of(twice).parameters) == 1


def test_places_and_names_stay() -> None:
    module = parse_hlo(BESIDE, "x.hlo")
    before = [(op.instruction_name.data, op.location) for op in entry_of(module).instructions]
    WrapInstructionsPass().apply_to(module)
    assert [(op.instruction_name.data, op.location) for op in entry_of(module).instructions] == before
    assert all(written_at(op) is not None for op in module.walk() if isinstance(op, HloOp))


@pytest.mark.parametrize(
    ("instructions", "wanted"),
    [
        ("n = s32[2,3] negate(p)\n ROOT s = s32[2,3] sort(n), dimensions={1}, to_apply=less", ["fusion", "sort"]),
        ("n = s32[2,3] negate(p)\n ROOT s = s32[2,3] add(n, p)", ["negate", "add"]),
        ("k = s32[] constant(1)\n ROOT r = s32[2] reduce(p, k), dimensions={1}, to_apply=most", ["constant", "reduce"]),
        (
            'a = token[] after-all()\n ROOT c = s32[2,3] custom-call(p), custom_call_target="f"',
            ["after-all", "custom-call"],
        ),
    ],
)
def test_an_entry_that_is_one_kernel_stays_and_so_does_what_no_kernel_is_for(
    instructions: str, wanted: list[str]
) -> None:
    module = parse_hlo(f"{HEAD}ENTRY main {{ p = s32[2,3] parameter(0)\n {instructions} }}")
    WrapInstructionsPass().apply_to(module)
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", *wanted]


def test_what_loops_and_branches_do_becomes_fusions() -> None:
    text = """
      body { s = (s32[], f32[4]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        x = f32[4] get-tuple-element(s), index=1
        one = s32[] constant(1)
        j = s32[] add(i, one)
        ROOT t = (s32[], f32[4]) tuple(j, x) }
      condition { s = (s32[], f32[4]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(7)
        ROOT c = pred[] compare(i, n), direction=LT }
      ENTRY main { s = (s32[], f32[4]) parameter(0)
        ROOT w = (s32[], f32[4]) while(s), condition=condition, body=body }"""
    module = parse_hlo(text)
    WrapInstructionsPass().apply_to(module)
    module.verify()
    assert {c.sym_name.data: [op.opcode for op in c.instructions] for c in control_computations(module)} == {
        "condition": ["parameter", "get-tuple-element", "constant", "fusion"],
        "body": ["parameter", "get-tuple-element", "get-tuple-element", "constant", "fusion", "tuple"],
        "main": ["parameter", "while"],
    }


def test_an_instruction_may_have_the_name_of_a_parameter() -> None:
    text = f"""{HEAD}ENTRY main {{ p = s32[2,3] parameter(0)
      f = s32[2,3] fusion(p), kind=kLoop, calls=turn
      ROOT param_0 = s32[2,3] add(f, f) }}"""
    module = parse_hlo(text)
    WrapInstructionsPass().apply_to(module)
    again = parse_hlo(print_hlo(module))
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert (evaluate(entry_of(again), [x])[0] == -2 * x).all()
