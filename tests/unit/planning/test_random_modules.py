"""Plans of random modules compute what the modules say, and no step reads memory that was freed, or that nothing has written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from unit.planning.random_modules import random_module

from xla_emitters.dtypes import Array
from xla_emitters.fusions.entry import entry_of
from xla_emitters.hlo_text import parse_hlo
from xla_emitters.pipelines.compiler import compile_module, plan_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Slot
from xla_emitters.runtime.cpu_launcher import allocate, results_of
from xla_emitters.runtime.reference import evaluate
from xla_emitters.runtime.reference_run import ReferenceRun
from xla_emitters.runtime.steps import run_steps

INPUTS = (np.array([1, -2, 3, 0.5], np.float32), np.array([-4, 5, 0.25, 7], np.float32), np.array(1, np.int32))


class Poisoned(ReferenceRun):
    """Memory that comes and memory that goes holds what no computation here makes."""

    def allocate(self, slot: Slot) -> None:
        super().allocate(slot)
        self.poison(slot)

    def release(self, slot: Slot) -> None:
        self.poison(slot)
        super().release(slot)

    def poison(self, slot: Slot) -> None:
        buffer = self.slots[slot.kind, slot.index]
        self.slots[slot.kind, slot.index] = np.full_like(buffer, 77 if buffer.dtype.kind in "ib" else np.nan)


def run_plan(text: str, inputs: Sequence[Array]) -> list[Array]:
    module = parse_hlo(text)
    plan = plan_module(module, CompileOptions())
    program = compile_module(module, CompileOptions(stage="hlo"))
    slots = allocate(program, inputs)
    platform = Poisoned(program, slots, {}, lambda kernel: (), [kernel.view.computation for kernel in plan.kernels])
    run_steps(plan.steps, platform)
    return results_of(program.results, slots)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_plan_computes_what_the_module_says(first: int) -> None:
    for seed in range(first, first + 20):
        text = random_module(seed)
        wanted = evaluate(entry_of(parse_hlo(text)), INPUTS)
        for made, right in zip(run_plan(text, INPUTS), wanted, strict=True):
            assert made.tolist() == right.tolist(), f"seed {seed}"
