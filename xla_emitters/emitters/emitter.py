"""Emitters, and the alternative ways to make a fusion's kernel among which `--tune price` chooses.

    Way("4 a thread", LoopEmitter(ThreadWork(4)))                                the first of a fusion is XLA's choice
    Way("8 lanes a row by 4", ReductionEmitter(...), same_blocks, 2.1e-06)       sums in another order: the last bits may differ

A way may also be an emitter of another class: its kernel is priced and compared like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import Device
from xla_emitters.emitters.partitioner import PartitionedComputation
from xla_emitters.errors import InternalError, Place
from xla_emitters.graph.launch import launch_for
from xla_emitters.graph.thread_work import ThreadWork, blocks_of_same_work
from xla_emitters.graph.view import FusionView
from xla_emitters.support.late_dataclass import dataclass


class Emitter(Protocol):
    """One way to make a kernel of a fusion."""

    name: str

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None if this emitter can take the fusion, else the reason why not."""
        ...

    def partition(self, view: FusionView, device: Device) -> PartitionedComputation:
        """The functions of the fusion's computation."""
        ...

    def emit(self, view: FusionView, device: Device) -> ModuleOp:
        """The kernel module: the entry function first, then the functions it calls.

        raises   Unsupported, with its place, for an instruction without code
        """
        ...


FoundT = TypeVar("FoundT")


def expected(found: FoundT | str, view: FusionView, what: str) -> FoundT:
    """What the emitter's `applies` found too. raises InternalError if it is why there is no such thing"""
    if isinstance(found, str):
        raise InternalError(f"no {what} for fusion %{view.name}: {found}", stage="emit")
    return found


@dataclass(frozen=True)
class Way:
    """See the file's head.

    same_blocks  maps blocks of this way to the blocks of XLA's choice that write the same elements (or a superset); None: both kernels
                 visit the first result in memory order, so that an element's index tells which blocks write it
    tolerance    the largest difference from XLA's choice, relative to its value; 0: the results are bit-identical
    """

    name: str
    emitter: Emitter
    same_blocks: Callable[[Sequence[int]], Sequence[int]] | None = None
    tolerance: float = 0.0


@runtime_checkable
class TunableEmitter(Emitter, Protocol):
    """An emitter with several ways to make a fusion's kernel, all with the same results."""

    def candidates(self, view: FusionView, device: Device) -> Sequence[Way]:
        """The ways, each an emitter of its own; XLA's choice is the first."""
        ...


def ways_of_works(
    works: Sequence[ThreadWork],
    elements: int,
    device: Device,
    place: Place | None,
    emitter: Callable[[ThreadWork], Emitter],
) -> Sequence[Way]:
    """A way per work of a thread, XLA's choice first, for kernels whose threads share `elements` elements among them.

    emitter  makes the emitter of kernels with that work
    place    of the fusion, for messages
    raises   Unsupported where a grid does not fit
    """
    own, *_ = works
    own_launch = launch_for(elements, own.total, device, place)

    def way(work: ThreadWork) -> Way:
        launch = launch_for(elements, work.total, device, place)

        def same_blocks(blocks: Sequence[int]) -> Sequence[int]:
            return blocks_of_same_work(blocks, work, launch, own, own_launch)

        return Way(f"{work} a thread", emitter(work), same_blocks)

    return [way(work) for work in works]
