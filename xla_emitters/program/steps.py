"""The steps of a program; steps of loops and branches contain other steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xla_emitters.program.arrays import Argument, Launch, Slot, SlotArray


@dataclass(frozen=True)
class Kernel:
    """Code of one entry function, its launch, and its arguments.

    ptx             text of the module that contains the entry, and the program's other kernels; "" when the compilation stopped
                    before PTX
    architecture    target of the compilation, e.g. "sm_90"
    shared_bytes    static shared memory of one block
    arguments       in the order of the entry's parameters
    """

    name: str
    ptx: str = field(repr=False)
    architecture: str
    launch: Launch
    shared_bytes: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library's function.

    name         of our function, a row of `library.FUNCTIONS` such as "gemm"; not HLO's custom_call_target, "__cublas$gemm"
    instruction  the HLO instruction that it computes
    operands     arrays that are read
    results      arrays that are written
    config       the call's configuration, as plain data
    source       the lines of Python that it computes: `hlo_text.stack_frames.PythonLines.data_of`; () if the text has none
    """

    name: str
    instruction: str
    operands: tuple[SlotArray, ...]
    results: tuple[SlotArray, ...]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Allocation:
    """Allocates a temporary, uninitialized."""

    slot: Slot


@dataclass(frozen=True)
class Release:
    """Frees a temporary."""

    slot: Slot


@dataclass(frozen=True)
class Copy:
    """Copies the bytes of `source` to `target`, an array of equal size."""

    source: Slot
    target: Slot


@dataclass(frozen=True)
class Loop:
    """Runs `condition`; while the predicate `proceeds` is then true, runs `body` and `condition` again.

    name    of the HLO instruction
    trips   how often the body runs, if known
    """

    name: str
    condition: tuple[Step, ...]
    proceeds: Slot
    body: tuple[Step, ...]
    trips: int | None = None


@dataclass(frozen=True)
class Branch:
    """Runs one of `branches`, chosen by `selector`.

    name      of the HLO instruction
    selector  a predicate: true is the first of two; or an s32: the number of a branch, the last one for all numbers out of range
    """

    name: str
    selector: Slot
    branches: tuple[tuple[Step, ...], ...]


Step = Kernel | LibraryCall | Allocation | Release | Copy | Loop | Branch


def on_slots(kernel: Kernel, slots: Sequence[Slot]) -> Kernel:
    """The same kernel on other arrays of the same types, one for each argument."""
    pairs = zip(kernel.arguments, slots, strict=True)
    return replace(kernel, arguments=tuple(replace(a, kind=slot.kind, index=slot.index) for a, slot in pairs))


def steps_in(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps and the steps inside them, in program order."""
    for step in steps:
        yield step
        match step:
            case Loop():
                yield from steps_in((*step.condition, *step.body))
            case Branch():
                for branch in step.branches:
                    yield from steps_in(branch)
            case _:
                pass


def kernels_in(steps: Sequence[Step]) -> Iterator[Kernel]:
    """The kernels among steps and the steps inside them, in program order."""
    return (step for step in steps_in(steps) if isinstance(step, Kernel))
