"""Runs the steps of a program, its loops and branches included, the same way on every platform.

A launcher implements the single steps (`Platform`): the CPU's executes IR on NumPy arrays, CuPy's launches kernels.
A bundle holds this file, so it imports only files of the bundle (`bundle.FILES`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from xla_emitters.errors import EndlessLoop, ExecutionError, Place, UsageError
from xla_emitters.program.arrays import Slot
from xla_emitters.program.steps import Allocation, Branch, Copy, Kernel, LibraryCall, Loop, Release, Step, steps_in

MOST_ITERATIONS = 100_000
"""Most iterations of one loop; a longer loop is taken to be endless."""

LARGER_LIMIT = "a larger limit can be set: --max-iterations, in Python most_iterations; where the bound was drawn, --inputs sets it"


def refuse_limit(most_iterations: int, stage: str) -> None:
    """raises UsageError for a negative limit of iterations."""
    if most_iterations < 0:
        raise UsageError(
            f"{most_iterations} iterations are no limit", stage=stage, help=f"the default is {MOST_ITERATIONS}"
        )


class Repetition:
    """Finds out that a loop is in a state in which it was before: then it never ends.

    The state of an iteration whose number is a power of two is compared with those of the following ones, until the next power: so the loop
    runs at most about three times as long as it takes to come back to a state. Source: R. P. Brent, "An improved Monte Carlo factorization
    algorithm" (1980).

    count  iterations so far; since: the one whose state is kept
    """

    def __init__(self, count: int = 0) -> None:
        self.count, self.since = count, 0
        self._kept = list[bytes]()

    def is_found(self, state: Callable[[], Iterable[bytes]]) -> bool:
        """Called once in each iteration. `state`: the parts of the state, small ones first; read until one differs"""
        self.count += 1
        if self._kept and all(kept == part for kept, part in zip(self._kept, state(), strict=True)):
            return True
        if self.count & (self.count - 1) == 0:
            self._kept, self.since = list(state()), self.count
        return False

    def error(self, loop: str, stage: str, place: Place | None = None) -> EndlessLoop:
        """The error for a loop that is back in the state of iteration `since`."""
        same = f"the state after {self.count - 1} iterations is the one after {self.since - 1}"
        return EndlessLoop(f"loop %{loop} does not end: {same}", stage=stage, place=place)


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

    def contents(self, slot: Slot) -> bytes | None:
        """The bytes of an array, b"" where it has no memory now; None on a platform where reading them is slow."""
        return None


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
    iterations, repetition = 0, Repetition()
    states = _changing(loop, platform) if loop.trips is None else []
    run_steps(loop.condition, platform, most_iterations=most_iterations)
    while platform.read(loop.proceeds):
        if iterations == most_iterations:
            raise ExecutionError(
                f"loop %{loop.name} does not end within {most_iterations} iterations",
                stage="run",
                help=LARGER_LIMIT,
            )
        if states and repetition.is_found(lambda: (platform.contents(slot) or b"" for slot in states)):
            raise repetition.error(loop.name, "run")
        iterations += 1
        run_steps(loop.body, platform, most_iterations=most_iterations)
        run_steps(loop.condition, platform, most_iterations=most_iterations)


def _changing(loop: Loop, platform: Platform) -> list[Slot]:
    """The arrays that a loop writes, small ones first; none on a platform where they are not read."""
    written = dict[Slot, int]()
    for step in steps_in((*loop.condition, *loop.body)):
        slots: Iterable[Slot] = ()
        match step:
            case Kernel():
                slots = (argument.slot for argument in step.arguments if argument.written)
            case LibraryCall():
                slots = (result.slot for result in step.results)
            case Copy():
                slots = (step.target,)
            case _:
                pass
        for slot in slots:
            contents = platform.contents(slot)
            if contents is None:
                return []
            written[slot] = len(contents)
    return sorted(written, key=written.__getitem__)


def _number_of_branch(branch: Branch, platform: Platform) -> int:
    """Index of the chosen branch: true is the first of two; a number out of range is the last."""
    number, last = platform.read(branch.selector), len(branch.branches) - 1
    if platform.is_predicate(branch.selector):
        return 0 if number else 1
    return number if 0 <= number <= last else last
