"""Plans of random modules compute what the modules say, and no step reads memory that was freed, or that nothing has written."""

from collections.abc import Sequence

import numpy as np
import pytest
from unit.graph.random_modules import random_module

from xla_emitters.dtypes import Array
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import plan_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program.executable import executable_of
from xla_emitters.runtime.arrays import writable_buffer
from xla_emitters.runtime.layouts import from_buffer
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_run import ReferencePlatform, arguments_of
from xla_emitters.text.hlo import parse_hlo

INPUTS = (np.array([1, -2, 3, 0.5], np.float32), np.array([-4, 5, 0.25, 7], np.float32), np.array(1, np.int32))


def run_plan(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Each array has memory of its own, which is garbage at first; what was freed is not there."""
    plan = plan_module(parse_hlo(text), CompileOptions())
    made = executable_of(plan.arrays, plan.steps, plan.calls, arguments_of(plan))
    buffers = list(map(writable_buffer, inputs, plan.arrays.parameters))
    results = LoadedProgram(made, ReferencePlatform(plan)).run_on_garbage(buffers)
    return list(map(from_buffer, results, plan.arrays.results))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_plan_computes_what_the_module_says(first: int) -> None:
    for seed in range(first, first + 20):
        text = random_module(seed)
        wanted = evaluate(entry_of(parse_hlo(text)), INPUTS)
        for made, right in zip(run_plan(text, INPUTS), wanted, strict=True):
            assert made.tolist() == right.tolist(), f"seed {seed}"
