"""Whole modules that XLA:GPU optimized compute on the CPU the values that XLA:CPU computes.

`make modules` runs all of them, here is each program once: one with Triton fusions as XLA optimizes it by default, the others with
Triton off.
"""

import re

import numpy as np
import pytest
from long_lists import every
from runtime.modules import SETTINGS, recipes
from runtime.modules_table import bytes_by_xla

from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile, read_module

# Each takes half a second or more, of what others show too.
SLOW = frozenset(
    {
        "attention_gradient",
        "batch_norm_gradient",
        "batch_norm_training",
        "bit_generators",
        "clip_by_global_norm",
        "cross_entropy_gradient",
        "cumulative",
        "edit_distance",
        "fori_power_iteration",
        "random_choices",
        "random_permutation",
        "runge_kutta",
        "sorts_of_narrow_types",
        "transformer_block",
        "unique_values",
        "wide_matmul_and_statistics",
    }
)

MODULES = [
    (name, ".triton" if '"kind":"__triton' in recipe.text(".triton").read_text() else "")
    for name, recipe in recipes().items()
    if name not in SLOW
]


@pytest.mark.parametrize(("name", "setting"), every(6, MODULES))
def test_a_module_computes_what_xla_cpu_computes(name: str, setting: str) -> None:
    recipe = recipes()[name]
    program = compile(recipe.text(setting), stage="llvm-dialect", record="none", cache=False)
    results = program.run_cpu(*recipe.arrays())
    assert not recipe.differs([results] if len(program.results) == 1 else results, program.results)


def test_there_are_sixty_programs_and_more_in_two_settings() -> None:
    assert len(recipes()) >= 60
    for recipe in recipes().values():
        assert all(recipe.text(setting).is_file() for setting in SETTINGS)
        assert recipe.expected.is_file()


def test_wrong_numbers_are_seen() -> None:
    """One element with more than the allowed error, or one bit if no error is allowed."""
    for name in ("softmax", "murmur_finalizer"):
        recipe = recipes()[name]
        program = compile(recipe.text(""), stage="llvm-dialect", record="none", cache=False)
        right = program.run_cpu(*recipe.arrays())
        wrong = right.copy()
        wrong.flat[7] += np.asarray(1e-3 if name == "softmax" else 1).astype(right.dtype)
        assert recipe.differs([right], program.results) == ()
        assert recipe.differs([wrong], program.results) == (f"r0: 1 of {right.size} differ",)


LOOP = """
HloModule loop
c {
  s = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}
b {
  s = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[100] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[100] negate(x)
  ROOT t = (s32[], f32[100]) tuple(j, y)
}
ENTRY main {
  s = (s32[], f32[100]) parameter(0)
  ROOT w = (s32[], f32[100]) while(s), condition=c, body=b, backend_config={"known_trip_count":{"n":"5"}}
}
"""


@pytest.mark.parametrize("said", [0, 4, 7])
def test_a_wrong_trip_count_changes_nothing_on_a_cpu(said: int) -> None:
    program = compile(LOOP.replace('"n":"5"', f'"n":"{said}"'))
    x = np.arange(100, dtype=np.float32)
    for stage in ("xla_gpu", "llvm-dialect"):
        counter, found = program.run_cpu(np.int32(0), x, stage=stage)
        assert counter == 5
        np.testing.assert_array_equal(found, -x)


def test_bytes_of_xlas_plan_are_those_of_operands_and_results() -> None:
    """Six comparisons of 4 + 4 bytes to 1, five additions of 4 + 4 to 4, and five negations of 400 to 400."""
    text = "\n".join(
        re.sub(r"  +", "\n", line) for line in LOOP.replace("{ ", "{\n").replace(" }\n", "\n}\n").splitlines()
    )
    assert bytes_by_xla(entry_of(read_module(text))) == 6 * 9 + 5 * 12 + 5 * 800
