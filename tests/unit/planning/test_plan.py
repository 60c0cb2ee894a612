"""Plans: which kernels, in which order, on which arrays; and what stands in the way of one."""

from __future__ import annotations

import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.planning.plan import ProgramPlan, plan_program
from xla_emitters.program import Slot

BODIES = """
one {
  x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x)
}
pair {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  m = s32[8] convert(x)
  ROOT t = (f32[8], s32[8]) tuple(n, m)
}
sum {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT s = f32[8] add(x, y)
}
"""


def plan(entry: str) -> ProgramPlan:
    return plan_program(parse_hlo(BODIES + f"ENTRY main {{\n{entry}\n}}\n"))


def flow(entry: str) -> list[tuple[str, str, str]]:
    """Per kernel: name, what it reads, what it writes, as p0 t1 r2."""

    def names(slots: tuple[Slot, ...]) -> str:
        return " ".join(f"{slot.kind[0]}{slot.index}" for slot in slots)

    return [(kernel.name, names(kernel.operands), names(kernel.results)) for kernel in plan(entry).kernels]


CHAIN = """
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[8] fusion(x, y), kind=kLoop, calls=sum
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=one
"""


@pytest.mark.tiny
def test_a_chain_goes_through_a_temporary() -> None:
    """The example at the head of the file."""
    assert flow(CHAIN) == [("a", "p0 p1", "t0"), ("b", "t0", "r0")]
    planned = plan(CHAIN)
    assert [str(type) for type in planned.temporaries] == ["tensor<8xf32>"]
    assert (len(planned.parameters), len(planned.results)) == (2, 1)


def test_an_entry_without_fusions_is_a_kernel() -> None:
    entry = """
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  m = f32[8] multiply(x, y)
  ROOT t = (f32[8], f32[8]) tuple(m, x)
"""
    (kernel,) = plan(entry).kernels
    assert flow(entry) == [("main", "p0 p1", "r0 r1")]
    assert kernel.view.computation.is_entry


def test_tuples_between_fusions_are_looked_through() -> None:
    """A leaf that is a result is written there; one that is not is a temporary."""
    entry = """
  x = f32[8] parameter(0)
  p = (f32[8], s32[8]) fusion(x), kind=kLoop, calls=pair
  f = f32[8] get-tuple-element(p), index=0
  i = s32[8] get-tuple-element(p), index=1
  g = f32[8] fusion(f, x), kind=kLoop, calls=sum
  ROOT t = (s32[8], f32[8]) tuple(i, g)
"""
    assert flow(entry) == [("p", "p0", "t0 r0"), ("g", "t0 p0", "r1")]
    (first, _) = plan(entry).kernels
    assert first.view.computation.sym_name.data == "pair"


def test_nested_tuples_are_numbered_by_leaf() -> None:
    entry = """
  x = f32[8] parameter(0)
  p = (f32[8], s32[8]) fusion(x), kind=kLoop, calls=pair
  n = f32[8] fusion(x), kind=kLoop, calls=one
  inner = ((f32[8], s32[8]), f32[8]) tuple(p, n)
  ROOT t = (f32[8], ((f32[8], s32[8]), f32[8])) tuple(n2, inner)
""".replace("  inner", "  n2 = f32[8] fusion(n), kind=kLoop, calls=one\n  inner")
    assert flow(entry) == [("p", "p0", "r1 r2"), ("n", "p0", "r3"), ("n2", "r3", "r0")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "  x = f32[8] parameter(0)\n  a = f32[8] fusion(x), kind=kLoop, calls=one\n  ROOT b = f32[8] negate(a)",
            "no kernel outside fusions",
        ),
        (
            "  x = f32[8] parameter(0)\n  a = f32[8] fusion(x), kind=kLoop, calls=one\n"
            "  ROOT t = (f32[8], f32[8]) tuple(a, x)",
            "no kernel for a result that is passed through",
        ),
        (
            "  x = f32[8] parameter(0)\n  a = f32[8] fusion(x), kind=kLoop, calls=one\n"
            "  ROOT t = (f32[8], f32[8]) tuple(a, a)",
            "results 0 and 1 of 'main' are one value",
        ),
        (
            "  t = (f32[8], f32[8]) parameter(0)\n  x = f32[8] get-tuple-element(t), index=0\n"
            "  ROOT a = f32[8] fusion(x), kind=kLoop, calls=one",
            "no buffer for a tuple",
        ),
    ],
)
def test_what_is_refused(entry: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        plan(entry)
