"""Instructions that compute nothing are replaced by their operand;
those with control dependencies, or with sizes known only at run time, stay.
"""

from itertools import product

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.remove_no_ops import RemoveNoOpsPass
from xla_emitters.pipelines.compiler import compile
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo

X = np.arange(6, dtype=np.float32).reshape(2, 3)
# The instructions of ENTRY after its parameter %p, the opcodes that are left, the values of the root.
CASES: dict[str, tuple[str, list[str], list[object]]] = {
    "a barrier": (
        """t = (f32[2,3], f32[2,3]) tuple(p, p)
           b = (f32[2,3], f32[2,3]) opt-barrier(t)
           ROOT r = f32[2,3] get-tuple-element(b), index=1""",
        [],
        [X],
    ),
    "a tuple that is taken apart": (
        """t = (f32[2,3], f32[2,3]) tuple(p, p)
           u = ((f32[2,3], f32[2,3]), f32[2,3]) tuple(t, p)
           v = (f32[2,3], f32[2,3]) get-tuple-element(u), index=0
           w = f32[2,3] get-tuple-element(v), index=1
           n = f32[2,3] negate(w)
           ROOT r = (f32[2,3], f32[2,3]) tuple(n, w)""",
        ["negate", "tuple"],
        [-X, X],
    ),
    "a copy of a tuple": (
        """n = f32[2,3] negate(p)
           t = (f32[2,3], f32[2,3]) tuple(p, n)
           ROOT c = (f32[2,3]{0,1}, f32[2,3]) copy(t)""",
        ["negate", "copy", "copy", "tuple"],
        [X, -X],
    ),
    "a conversion": (
        """a = f32[2,3] convert(p)
           b = bf16[2,3] convert(a)
           c = f32[2,3] convert(b)
           ROOT d = f32[2,3] convert(c)""",
        ["convert", "convert"],
        [X],
    ),
    "a conversion of the layout": ("ROOT c = f32[2,3]{0,1} convert(p)", ["copy"], [X]),
    "a size": ("ROOT s = s32[] get-dimension-size(p), dimensions={1}", ["constant"], [3]),
    "a marker of a layout": (
        'ROOT m = f32[2,3]{0,1} custom-call(p), custom_call_target="LayoutConstraint"',
        ["copy"],
        [X],
    ),
}


def entry(instructions: str) -> str:
    return f"ENTRY main {{ p = f32[2,3] parameter(0)\n {instructions} }}"


@pytest.mark.parametrize("case", CASES)
def test_they_give_what_they_are_given(case: str) -> None:
    text, opcodes, wanted = CASES[case]
    module = parse_hlo(entry(text))
    RemoveNoOpsPass().apply_to(module)
    module.verify()
    assert [op.opcode for op in entry_of(module).instructions] == ["parameter", *opcodes]
    for after in (module, parse_hlo(print_hlo(module))):
        for found, value in zip(evaluate(entry_of(after), [X]), wanted, strict=True):
            assert found.tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "a = token[] after-all()\n i = (f32[2,3], token[]) infeed(a)\n ROOT r = f32[2,3] get-tuple-element(i), index=0",
        """n = s32[] constant(1)
           d = f32[<=2,3] set-dimension-size(p, n), dimensions={0}
           ROOT s = s32[] get-dimension-size(d), dimensions={0}""",
    ],
)
def test_what_does_something_stays(text: str) -> None:
    module = parse_hlo(entry(text))
    before = print_hlo(module)
    RemoveNoOpsPass().apply_to(module)
    assert print_hlo(module) == before


MIXED = """
HloModule m
grown { a = f32[2,2] parameter(0)
        t = f32[2,2]{0,1} transpose(a), dimensions={1,0}
        ROOT r = (f32[2,2]{0,1}, f32[2,2]) tuple(t, a) }
kept { b = f32[2,2] parameter(0)
       ROOT r = (f32[2,2], f32[2,2]) tuple(b, b) }
turned { c = f32[2,2] parameter(0)
         ROOT t = f32[2,2]{0,1} transpose(c), dimensions={1,0} }
same { d = f32[2,2] parameter(0)
       ROOT n = f32[2,2] negate(d) }
more { s = (s32[], f32[2,2]{0,1}) parameter(0)
       i = s32[] get-tuple-element(s), index=0
       n = s32[] constant(3)
       ROOT l = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[2,2]) parameter(0)
       i = s32[] get-tuple-element(s), index=0
       x = f32[2,2] get-tuple-element(s), index=1
       o = s32[] constant(1)
       j = s32[] add(i, o)
       t = f32[2,2]{0,1} transpose(x), dimensions={1,0}
       ROOT r = (s32[], f32[2,2]{0,1}) tuple(j, t) }
ENTRY main {
  p = pred[] parameter(0)
  x = f32[2,2] parameter(1)
  t = f32[2,2]{0,1} transpose(x), dimensions={1,0}
  pair = (f32[2,2], f32[2,2]) conditional(p, x, t), true_computation=grown, false_computation=kept
  one = f32[2,2] conditional(p, x, x), true_computation=turned, false_computation=same
  first = f32[2,2] get-tuple-element(pair), index=0
  zero = s32[] constant(0)
  start = (s32[], f32[2,2]{0,1}) tuple(zero, t)
  end = (s32[], f32[2,2]) while(start), condition=more, body=next
  last = f32[2,2] get-tuple-element(end), index=1
  ROOT all = (f32[2,2], f32[2,2], f32[2,2]) tuple(first, one, last) }
"""


def test_loops_and_branches_whose_layouts_are_not_assigned() -> None:
    """In HLO that XLA has not laid out, as JAX lowers it, a transpose has another layout than the result of the branch that returns it."""
    x, program = np.asarray([[1, 2], [3, 4]], np.float32), compile(MIXED)
    for taken, stage in product((True, False), ("hlo", "llvm-dialect")):
        first, one, last = program.run_cpu(np.bool_(taken), x, stage=stage)
        np.testing.assert_array_equal(first, x.T)
        np.testing.assert_array_equal(one, x.T if taken else -x)
        np.testing.assert_array_equal(last, x)  # transposed once, and three times


TURNING = """
HloModule m
more { s = (s32[], f32[2,3]{0,1}) parameter(0)
       i = s32[] get-tuple-element(s), index=0
       n = s32[] constant(3)
       ROOT l = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[2,3]{0,1}) parameter(0)
       i = s32[] get-tuple-element(s), index=0
       x = f32[2,3]{0,1} get-tuple-element(s), index=1
       o = s32[] constant(1)
       j = s32[] add(i, o)
       c = f32[2,3]{0,1} iota(), iota_dimension=1
       y = f32[2,3]{0,1} add(x, c)
       ROOT r = (s32[], f32[2,3]{0,1}) tuple(j, y) }
ENTRY main {
  x = f32[2,3] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[2,3]) tuple(zero, x)
  end = (s32[], f32[2,3]) while(start), condition=more, body=next
  ROOT last = f32[2,3] get-tuple-element(end), index=1 }
"""


def test_a_loop_whose_parameter_has_another_layout() -> None:
    x, program = np.arange(6, dtype=np.float32).reshape(2, 3), compile(TURNING)
    for stage in ("hlo", "llvm-dialect"):
        np.testing.assert_array_equal(program.run_cpu(x, stage=stage), x + 3 * np.arange(3, dtype=np.float32))
