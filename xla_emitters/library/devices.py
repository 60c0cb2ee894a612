"""The device that a thread stands for, and what devices exchange: what a collective needs beside its arrays.

    with of_device(Participant(3, exchange)):       in one thread for each device: all runs in this thread are those of device 3
        library.call("all_reduce", ...)             meets the other members of its group

A platform of one device has none: then only collectives whose groups have one member have a value.
Only NumPy and the package's errors are imported: this file runs in unpacked bundles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array
from xla_emitters.support.late_dataclass import dataclass

Shares: TypeAlias = list[list[Array]]
"""The arrays of each member of a group, in the group's order."""


_CHANNEL = "channel "


def channel_named(number: int) -> str:
    """The name under which the arrays of a channel are sent."""
    return f"{_CHANNEL}{number}"


def is_channel(name: str) -> bool:
    """Whether what is sent under a name waits for its receiver; else all members of a group send and receive under it."""
    return name.startswith(_CHANNEL)


class Exchange(ABC):
    """What connects the devices of a run: threads of one process, processes, GPUs. Arrays come in the order they were sent."""

    def end(self, device: int) -> None:
        """A device sends and receives nothing more."""
        return

    @abstractmethod
    def send(self, device: int, to: int, name: str, arrays: Sequence[Array]) -> None:
        """Sends arrays from this device to another, or to itself. Does not wait for the receiver."""
        ...

    @abstractmethod
    def receive(self, device: int, source: int, name: str, like: Sequence[Array] = ()) -> list[Array]:
        """The arrays that `source` sends next under that name. Waits for them.

        like   arrays of their shapes and types, which not all exchanges need
        raises ExecutionError where they can never come
        """
        ...

    def meet(
        self, device: int, name: str, group: tuple[int, ...], arrays: Sequence[Array], among: Callable[[Shares], Shares]
    ) -> list[Array]:
        """What `among` gives this member, of the arrays of all members. Waits until all have come.

        name   of the instruction: members of a group meet at the same one
        raises ExecutionError where they can never meet
        """
        for member in group:
            if member != device:
                self.send(device, member, name, arrays)
        shares = [list(arrays) if member == device else self.receive(device, member, name, arrays) for member in group]
        return among(shares)[group.index(device)]

    def all_reduce(
        self, group: tuple[int, ...], arrays: Sequence[Array], reduction: str | None, types: Sequence[str]
    ) -> list[Array] | None:
        """The arrays of a group combined by the library that connects it, in an order of its own; None: it does not.

        reduction  HLO's opcode; None for another computation
        types      HLO's names of the arrays' element types
        """
        return None


@dataclass(frozen=True)
class Participant:
    """One of the devices of a run: number replica * partitions + partition."""

    number: int
    exchange: Exchange


_CURRENT: ContextVar[Participant | None] = ContextVar("device", default=None)


def current_device(instruction: str) -> Participant:
    """The device of this thread. raises Unsupported if the run has none"""
    device = _CURRENT.get()
    if device is None:
        raise Unsupported(
            f"%{instruction} needs the other devices that the program runs on",
            stage="run",
            help="xla-emitters run FILE --devices N runs all of them here; in Python run_on_devices",
        )
    return device


def is_one_of_several() -> bool:
    """Whether this thread stands for a device."""
    return _CURRENT.get() is not None


@contextmanager
def of_device(device: Participant) -> Generator[None]:
    """What is run inside is that device's."""
    token = _CURRENT.set(device)
    try:
        yield
    finally:
        _CURRENT.reset(token)
