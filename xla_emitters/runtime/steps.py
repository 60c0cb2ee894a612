"""Runs the steps of a program: what their order, loops and branches mean, the same on every platform.

A launcher says what each single step is there (`Platform`): the CPU's executes IR on NumPy arrays, CuPy's launches kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xla_emitters.errors import ExecutionError
from xla_emitters.program import Allocation, Branch, Copy, Kernel, LibraryCall, Loop, Release, Slot, Step

MOST_ITERATIONS = 10_000_000
"""A loop of a program that goes on longer is taken for one that never ends."""


class Platform(Protocol):
    """Where steps run."""

    def launch(self, kernel: Kernel) -> None: ...

    def call(self, call: LibraryCall) -> None:
        """raises Unsupported naming the function where the platform has none of that name."""
        ...

    def allocate(self, slot: Slot) -> None: ...

    def release(self, slot: Slot) -> None: ...

    def copy(self, source: Slot, target: Slot) -> None: ...

    def read(self, slot: Slot) -> int:
        """The one element of an array, a predicate as 0 or 1."""
        ...

    def is_predicate(self, slot: Slot) -> bool:
        """Whether the elements of an array are true or false."""
        ...


def run_steps(steps: Sequence[Step], platform: Platform, *, most_iterations: int = MOST_ITERATIONS) -> None:
    """Runs steps in order.

    most_iterations  of one loop
    raises           ExecutionError for a loop that goes on longer, and what the platform raises
    """
    for step in steps:
        match step:
            case Kernel():
                platform.launch(step)
            case LibraryCall():
                platform.call(step)
            case Allocation():
                platform.allocate(step.slot)
            case Release():
                platform.release(step.slot)
            case Copy():
                platform.copy(step.source, step.target)
            case Loop():
                _run_loop(step, platform, most_iterations)
            case Branch():
                chosen = step.branches[_number_of_branch(step, platform)]
                run_steps(chosen, platform, most_iterations=most_iterations)


def _run_loop(loop: Loop, platform: Platform, most_iterations: int) -> None:
    iterations = 0
    run_steps(loop.condition, platform, most_iterations=most_iterations)
    while platform.read(loop.proceeds):
        if iterations == most_iterations:
            raise ExecutionError(f"a loop of the program does not end within {most_iterations} iterations", stage="run")
        iterations += 1
        run_steps(loop.body, platform, most_iterations=most_iterations)
        run_steps(loop.condition, platform, most_iterations=most_iterations)


def _number_of_branch(branch: Branch, platform: Platform) -> int:
    """A true predicate chooses the first of two; a number out of range the last of all."""
    number, last = platform.read(branch.selector), len(branch.branches) - 1
    if platform.is_predicate(branch.selector):
        return 0 if number else 1
    return number if 0 <= number <= last else last
