"""How many steps one kernel does: counted by hand, and by the loads that the executor sees."""

import numpy as np
import pytest

from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.recomputation import recomputation_of
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import compile
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.simt.access_counts import AccessCounter
from xla_emitters.text.hlo import parse_hlo

ADD = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
"""
SOFTMAX = f"""{ADD}
ENTRY main {{
  x = f32[16,64] parameter(0)
  e = f32[16,64] exponential(x)
  z = f32[] constant(0)
  s = f32[16] reduce(e, z), dimensions={{1}}, to_apply=add
  b = f32[16,64] broadcast(s), dimensions={{0}}
  ROOT d = f32[16,64] divide(e, b)
}}"""
# ENTRY after `x = f32[4,6] parameter(0)`; steps, steps if nothing were computed again, what does most steps again.
CASES = {
    "a chain": ("n = f32[4,6] negate(x)\n ROOT s = f32[4,6] sine(n)", 48, 48, None),
    "used twice": ("n = f32[4,6] negate(x)\n ROOT s = f32[4,6] add(n, n)", 48, 48, None),
    "a row for each element": (
        """n = f32[4,6] negate(x)
           z = f32[] constant(0)
           r = f32[4] reduce(n, z), dimensions={1}, to_apply=add
           ROOT b = f32[4,5] broadcast(r), dimensions={0}""",
        20 * 6 + 20 * 6 + 20,
        24 + 24 + 20,
        "n",
    ),
    "a reduction that is the result": (
        """n = f32[4,6] negate(x)
           z = f32[] constant(0)
           ROOT r = f32[4] reduce(n, z), dimensions={1}, to_apply=add""",
        48,
        48,
        None,
    ),
    "parts": (
        """n = f32[4,6] negate(x)
           a = f32[2,6] slice(n), slice={[0:2], [0:6]}
           z = f32[] constant(0)
           p = f32[3,6] pad(a, z), padding=1_0x0_0
           ROOT c = f32[7,6] concatenate(n, p), dimensions={0}""",
        24 + 12 + 18 + 42,
        24 + 12 + 18 + 42,
        None,
    ),
    "a product": (
        """n = f32[4,6] negate(x)
           y = f32[6,9] parameter(1)
           m = f32[6,9] sine(y)
           ROOT d = f32[4,9] dot(n, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
        36 * 6 + 36 * 6 + 36 * 6,
        24 + 54 + 36 * 6,
        "n",
    ),
    "an update": (
        """u = f32[1,6] parameter(1)
           n = f32[1,6] negate(u)
           i = s32[] parameter(2)
           ROOT d = f32[4,6] dynamic-update-slice(x, n, i, i)""",
        30,
        30,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_elements_are_counted_from_the_results_backwards(case: str) -> None:
    text, steps, once, worst = CASES[case]
    module = parse_hlo(f"{ADD}ENTRY main {{ x = f32[4,6] parameter(0)\n {text} }}")
    found = recomputation_of(view_of(entry_of(module)))
    assert (found.steps, found.once) == (steps, once)
    assert worst is None or found.worst.instruction_name.data == worst


def test_what_is_computed_again_is_loaded_again() -> None:
    """Each element of %e is one load of %x: 16 * 64 rows of 64 for the sums, which are counted, and 16 * 64 that may share these."""
    found = recomputation_of(view_of(entry_of(parse_hlo(SOFTMAX))))
    assert found.steps == 2 * 16 * 64 * 64 + 2 * 16 * 64
    counter = AccessCounter()
    program = compile(SOFTMAX, stage="llvm-dialect", record="stages", cache=False)
    run_program(program, [np.ones((16, 64), np.float32)], "llvm-dialect", lambda kernel: [counter])
    loads = sum(32 * count.requests for count in counter.counts() if not count.is_store)
    assert loads == 16 * 64 * 64 + 16 * 64


def test_what_computes_nothing_has_no_count() -> None:
    assert recomputation_of(view_of(entry_of(parse_hlo("ENTRY main { ROOT x = f32[4] parameter(0) }")))) is None
