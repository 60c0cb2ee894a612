"""Tests that the tests can fail: at every stage, one-op mutations change the results, or provably change nothing."""

import random

import numpy as np
import pytest
from long_lists import but_long
from runtime.mutations import mutated, mutations_of, why_harmless
from runtime.small_programs import PROGRAMS, TARGET, buffers_for
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from xla_emitters.errors import ExecutionError
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.runtime.arrays import random_arrays, same_bits
from xla_emitters.runtime.cpu.cpu_launcher import run_kernel

MUTATIONS_PER_STAGE = 20


def stages_of(text: str) -> dict[str, tuple[PlannedKernel, ModuleOp]]:
    """Stage -> a copy of the kernel's module there."""
    found: dict[str, tuple[PlannedKernel, ModuleOp]] = {}

    def observer(planned: PlannedKernel) -> Observer:
        def observe(name: str, stage: str | None, module: ModuleOp) -> None:
            if stage:
                found[stage] = planned, module.clone()

        return observe

    compile_module(
        read_module(text), CompileOptions(target=TARGET, stage=EXECUTABLE_STAGES[-1], record="none"), observers=observer
    )
    return found


@pytest.mark.parametrize("program", but_long(["gelu", "ragged", "bytes"], ["gelu"]))
@pytest.mark.parametrize("stage", EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :])
def test_mutations_are_caught(program: str, stage: str) -> None:
    text = PROGRAMS[program]
    planned, module = stages_of(text)[stage]
    arguments = planned.arguments
    arrays = random_arrays([a.array for a in arguments if a.kind == "parameter"], seed=7)
    shapes = compile_module(read_module(text), CompileOptions(target=TARGET, stage="hlo", record="none"))

    def run(kernel: ModuleOp) -> list[np.ndarray]:
        return run_kernel(kernel, arguments, buffers_for(shapes, arrays, arguments))[0]

    expected = run(module)
    candidates = mutations_of(module)
    assert len(candidates) >= 5, "too few places to mutate: is the stage what it says?"
    # One seed for all: the same mutations every time, others at every stage.
    chosen = random.Random(f"{program} {stage}").sample(candidates, min(MUTATIONS_PER_STAGE, len(candidates)))
    caught = 0
    for mutation in chosen:
        changed, original = mutated(module, mutation)
        try:
            changed.verify()
            same = all(same_bits(got, wanted) for got, wanted in zip(run(changed), expected, strict=True))
        except (ExecutionError, VerifyException):
            same = False
        if same:
            assert why_harmless(original), f"not noticed: {mutation.what}"
        caught += not same
    assert caught >= len(chosen) // 3, f"only {caught} of {len(chosen)} mutations changed anything"
