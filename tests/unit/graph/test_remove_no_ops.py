"""Instructions that compute nothing are replaced by their operand;
those with control dependencies, or with sizes known only at run time, stay.
"""

from __future__ import annotations

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.remove_no_ops import remove_no_ops
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
    remove_no_ops(module)
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
    remove_no_ops(module)
    assert print_hlo(module) == before
