"""Peak memory of a program in bytes: parameters and results all the time, temporaries from allocation to release."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xla_emitters.program.arrays import Slot
from xla_emitters.program.steps import Allocation, Branch, Loop, Release, Step


def peak_of_temporaries(steps: Sequence[Step], size: Callable[[Slot], int]) -> int:
    """The largest total size of temporaries at one time; `size` returns a slot's bytes."""
    most = now = 0
    for step in steps:
        match step:
            case Allocation():
                now += size(step.slot)
            case Release():
                now -= size(step.slot)
            case Loop():
                parts = (step.condition, step.body)
                most = max(most, *(now + peak_of_temporaries(part, size) for part in parts))
            case Branch():
                most = max([most, *(now + peak_of_temporaries(branch, size) for branch in step.branches)])
            case _:
                pass
        most = max(most, now)
    return most
