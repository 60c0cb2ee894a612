"""Whether the stages of a kernel that was given as IR compute the same: each is run on the CPU, and compared with the IR as it was given.

    stages_agree(compile_kernel_ir(text, "kernel.mlir", options))      ok  7 stages: 4096 of 4096 elements as the IR that was given

Nothing says what such a kernel should compute, so only the passes are judged. Where one of them may change bits (`verdict.TOLERANT`),
a stage behind it may differ by what rounding can do to the type.
"""

from __future__ import annotations

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.verdict import TOLERANT, Verdict
from xla_emitters.explore.check.watched_kernels import differing_much, largest_magnitude
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.program import Program
from xla_emitters.runtime.arrays import differing, random_arrays


def stages_agree(program: Program) -> Verdict:
    """Runs every recorded stage of a program of one kernel. raises DataError for arrays beyond the memory limit

    The arrays that the kernel only reads are drawn; those that it writes are zeros before.
    """
    arrays = random_arrays(program.parameters, 0)
    trace, first, is_free = program.trace, list[Array](), False
    stages = [stage for stage in trace.stages if stage in EXECUTABLE_STAGES]
    for stage in stages:
        passed = [step.name for step in trace.steps[: trace.steps.index(trace[stage]) + 1]]
        is_free = any(name in TOLERANT for name in passed)
        try:
            made = [np.asarray(each) for each in program.run(arrays, stage)]
        except ExecutionError as error:
            return Verdict(False, f"{stage}: fails: {error.message}", tuple(error.render().splitlines()))
        for number, (one, other) in enumerate(zip(made, first, strict=True) if first else ()):
            scale = largest_magnitude(other)
            wrong = differing_much(one, other, scale) if is_free else differing(one, other)
            if wrong.any():
                at = tuple(map(int, np.argwhere(wrong)[0]))
                said = f"r{number}{list(at)} is {one[at]}, was {other[at]} at {stages[0]}"
                return Verdict(
                    False, f"{stage}: {int(np.count_nonzero(wrong))} of {wrong.size} elements change", (said,)
                )
        first = first or made
    count = sum(each.size for each in first)
    return Verdict(True, f"ok  {len(stages)} stages: {count} of {count} elements as the IR that was given")
