"""Peak memory of a program in bytes: parameters and results all the time, temporaries from allocation to release."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xla_emitters.program.steps import Allocate, Branch, Loop, Release, Step


def peak_of_temporaries(steps: Sequence[Step], size: Callable[[int], int]) -> int:
    """The largest total size of temporaries at one time; `size` returns a slot's bytes."""
    most = now = 0
    for step in steps:
        match step:
            case Allocate(array):
                now += size(array.slot)
            case Release(slot):
                now -= size(slot)
            case Loop():
                parts = (step.condition, step.body)
                most = max(most, *(now + peak_of_temporaries(part, size) for part in parts))
            case Branch():
                most = max([most, *(now + peak_of_temporaries(branch, size) for branch in step.branches)])
            case _:
                pass
        most = max(most, now)
    return most
