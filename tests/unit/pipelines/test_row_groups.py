"""Which fusions of a module are merged so that rows are read once, and that the module's values do not change."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.verification import verify_ir
from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.view import is_scheduled, view_of
from xla_emitters.pipelines.row_groups import groups_in
from xla_emitters.pipelines.stitch_rows import StitchRowsPass
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

HEAD = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
pair { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  m = f32[] maximum(a, b)
  n = s32[] minimum(i, j)
  ROOT r = (f32[], s32[]) tuple(m, n) }
sums { x = f32[6,64] parameter(0)
  z = f32[] constant(0)
  s = f32[6] reduce(x, z), dimensions={1}, to_apply=add
  q = f32[6,64] multiply(x, x)
  t = f32[6] reduce(q, z), dimensions={1}, to_apply=add
  ROOT both = (f32[6], f32[6]) tuple(s, t) }
roots { s = f32[6] parameter(0)
  t = f32[6] parameter(1)
  u = f32[6] add(s, t)
  ROOT r = f32[6,1] bitcast(u) }
columns { x = f32[6,64] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[64] reduce(x, z), dimensions={0}, to_apply=add }
shifted { x = f32[6,64] parameter(0)
  c = f32[64] parameter(1)
  b = f32[6,64] broadcast(c), dimensions={1}
  ROOT y = f32[6,64] subtract(x, b) }
first { x = f32[6,64] parameter(0)
  i = s32[6,64] iota(), iota_dimension=1
  z = f32[] constant(0)
  k = s32[] constant(0)
  ROOT s = (f32[6], s32[6]) reduce(x, i, z, k), dimensions={1}, to_apply=pair }
scaled { x = f32[6,64] parameter(0)
  r = f32[6,1] parameter(1)
  v = f32[6] bitcast(r)
  b = f32[6,64] broadcast(v), dimensions={0}
  ROOT y = f32[6,64] divide(x, b) }
"""
CHAIN = """ENTRY e { x = f32[6,64] parameter(0)
  s = (f32[6], f32[6]) fusion(x), kind=kInput, calls=sums
  sum0 = f32[6] get-tuple-element(s), index=0
  sum1 = f32[6] get-tuple-element(s), index=1
  r = f32[6,1] fusion(sum0, sum1), kind=kLoop, calls=roots
"""
END = "y = f32[6,64] fusion(x, r), kind=kLoop, calls=scaled"


def module(text: str) -> ModuleOp:
    return parse_hlo(HEAD + CHAIN + text, "m")


def after(text: str) -> ModuleOp:
    found = module(text)
    StitchRowsPass(by="rule", every=True).apply_to(found)
    verify_ir(found)
    return found


def names(found: ModuleOp) -> list[str]:
    return [fusion.instruction_name.data for fusion in fusions_run_by(entry_of(found))]


@pytest.mark.parametrize(
    "text",
    [
        f"ROOT {END} }}",
        # What else reads a number of each row gets it from the same fusion.
        f"{END}\n  n = f32[6] negate(sum1)\n  ROOT out = (f32[6,64], f32[6]) tuple(y, n) }}",
        f"{END}\n  ROOT out = (f32[6,64], f32[6,1], f32[6]) tuple(y, r, sum0) }}",
        # A bitcast between the fusions comes after the one that they become.
        f"c = f32[6,1] bitcast(sum0)\n  d = f32[1,6] bitcast(c)\n  {END}\n  ROOT o = (f32[6,64], f32[1,6]) tuple(y, d) }}",
    ],
)
def test_a_chain_becomes_one_fusion_with_the_same_values(text: str) -> None:
    found, x = after(text), np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    assert names(found) == ["y"]
    assert is_scheduled(view_of(fusions_run_by(entry_of(found))[0]))
    wanted = evaluate(entry_of(module(text)), [x])
    assert all(np.array_equal(a, b) for a, b in zip(evaluate(entry_of(found), [x]), wanted, strict=True))


def test_what_two_fusions_compute_is_there_once() -> None:
    (group,) = groups_in(entry_of(module(f"ROOT {END} }}")))
    assert [member.instruction_name.data for member in group.members] == ["s", "r", "y"]
    found = after(f"ROOT {END} }}")
    (fusion,) = fusions_run_by(entry_of(found))
    opcodes = [op.opcode for op in view_of(fusion).instructions]
    assert opcodes.count("constant") == 1
    assert opcodes.count("parameter") == 1


@pytest.mark.parametrize(
    "text",
    [
        # A reader that comes before the last fusion could not wait for it.
        f"n = f32[6] negate(sum0)\n  m = f32[6,64] broadcast(n), dimensions={{0}}\n  {END}\n  ROOT o = f32[6,64] add(y, m) }}",
        "ROOT n = f32[6,1] negate(r) }",
        # What sums of columns give belongs to no row.
        f"""{END}
  c = f32[64] fusion(y), kind=kInput, calls=columns
  ROOT o = f32[6,64] fusion(y, c), kind=kLoop, calls=shifted }}""",
    ],
)
def test_other_chains_stay(text: str) -> None:
    kept = names(after(text))
    assert {"s", "c"} & set(kept)


def test_a_reduction_of_several_arrays_joins_no_other() -> None:
    text = """ENTRY e { x = f32[6,64] parameter(0)
  p = (f32[6], s32[6]) fusion(x), kind=kInput, calls=first
  m = f32[6] get-tuple-element(p), index=0
  r = f32[6,1] bitcast(m)
  ROOT y = f32[6,64] fusion(x, r), kind=kLoop, calls=scaled }"""
    assert not groups_in(entry_of(parse_hlo(HEAD + text, "m")))
