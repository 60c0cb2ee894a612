"""Runs the steps of a program, its loops and branches included, the same way on every platform.

A launcher implements the single steps (`Platform`): the CPU's executes IR on NumPy arrays, CuPy's launches kernels.
A bundle holds this file, so it imports only files of the bundle (`bundle.FILES`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xla_emitters.errors import ExecutionError
from xla_emitters.program.arrays import Slot
from xla_emitters.program.steps import Allocation, Branch, Copy, Kernel, LibraryCall, Loop, Release, Step

MOST_ITERATIONS = 100_000
"""Most iterations of one loop; a longer loop is taken to be endless."""

LARGER_LIMIT = "a larger limit can be set: --max-iterations, in Python most_iterations; where the bound was drawn, --inputs sets it"


class Platform(Protocol):
    """A place where steps run; a launcher implements it."""

    def launch(self, kernel: Kernel) -> None: ...

    def call(self, call: LibraryCall) -> None:
        """Calls a function of the platform's library. raises Unsupported if it has none of that name."""
        ...

    def allocate(self, slot: Slot) -> None: ...

    def release(self, slot: Slot) -> None: ...

    def copy(self, source: Slot, target: Slot) -> None: ...

    def read(self, slot: Slot) -> int:
        """The only element of an array; a predicate is 0 or 1."""
        ...

    def is_predicate(self, slot: Slot) -> bool:
        """Whether the array's type is pred."""
        ...


def run_steps(steps: Sequence[Step], platform: Platform, *, most_iterations: int = MOST_ITERATIONS) -> None:
    """Runs steps in order.

    most_iterations  the limit of every single loop
    raises           ExecutionError for a loop beyond the limit, and what the platform raises
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
            raise ExecutionError(
                f"loop %{loop.name} does not end within {most_iterations} iterations",
                stage="run",
                help=LARGER_LIMIT,
            )
        iterations += 1
        run_steps(loop.body, platform, most_iterations=most_iterations)
        run_steps(loop.condition, platform, most_iterations=most_iterations)


def _number_of_branch(branch: Branch, platform: Platform) -> int:
    """Index of the chosen branch: true is the first of two; a number out of range is the last."""
    number, last = platform.read(branch.selector), len(branch.branches) - 1
    if platform.is_predicate(branch.selector):
        return 0 if number else 1
    return number if 0 <= number <= last else last
