"""What is kept of a recorded call: buffers, events, and segments between reads of data.

`recording` makes them, `segment_code` repeats them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.runtime.ral.context import Context, compute_by_library

KNOWN = frozenset[int]()
"""Sources of a buffer that depends on no data."""


class Slot:
    """A buffer of a recorded call.

    memory   its elements; of an argument those of the recorded call
    number   of the argument that it is; None: a buffer of the program
    segment  in which it was made
    is_own   no other buffer has had its memory, and no later segment writes it
    sources  numbers of the arguments whose elements went into it, if these are single integers; None: other data did too
    writes   how often it was written
    """

    __slots__ = ("is_own", "memory", "number", "segment", "sources", "writes")

    def __init__(
        self,
        memory: Array,
        segment: Segment,
        number: int | None = None,
        *,
        sources: frozenset[int] | None = None,
        is_own: bool = True,
    ) -> None:
        self.is_own = is_own
        self.memory = memory
        self.segment = segment
        self.number = number
        self.sources = sources
        self.writes = 0

    @property
    def known(self) -> bool:
        """Whether only sizes, constants, and arguments whose values have a segment of their own went into it."""
        return self.sources == KNOWN

    @property
    def is_constant(self) -> bool:
        """Whether its memory keeps what is known of it from one call to the next."""
        return self.known and self.writes <= 1 and self.is_own and self.number is None


@dataclass(frozen=True)
class Place:
    """A slot as an argument, in the shape and type that the function sees."""

    slot: Slot
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def array(self) -> Array:
        """It in the plan's own memory."""
        return self.slot.memory.reshape(-1).view(np.uint8).view(self.dtype).reshape(self.shape)


Argument: TypeAlias = Any
"""A `Place`, or what is the same in each call."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel."""

    name: str
    grid: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Run:
    """A call of a function of the runtime."""

    function: Callable[..., None]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Repeated:
    """What a function of the runtime takes for the call when it is repeated: the part of `Call` that functions use."""

    context: Context
    is_on_host: ClassVar[bool] = True
    compute = staticmethod(compute_by_library)


@dataclass(frozen=True)
class Set:
    """A buffer gets elements that are known, or those of another buffer."""

    target: Slot
    source: Slot | Array


Event: TypeAlias = Launch | Run | Set


@dataclass(eq=False)
class Segment:
    """What a call does from one read of data to the next, or to its end.

    slots     buffers that are made in it, in order
    events    in order
    read      which element the program reads then; None: it ends
    children  what follows, by the value that is read
    results   of the last segment: the buffers that are returned
    refused   whether it cannot be repeated
    """

    slots: list[Slot] = field(default_factory=list[Slot])
    events: list[Event] = field(default_factory=list[Event])
    read: tuple[Place, tuple[int, ...]] | None = None
    children: dict[Any, Segment] = field(default_factory=dict[Any, "Segment"])
    results: list[Place] = field(default_factory=list[Place])
    refused: bool = False
    allocations: int = 0
    peak_bytes: int = 0
    code: Any = None


@dataclass(eq=False)
class Plan:
    """What a program does at some sizes.

    root      its first segment
    deciding  numbers of the arguments on whose values it depends what is done: they are read first
    takes     whether it writes or returns memory of donated arguments
    calls     at these sizes by the host program
    is_recorded  whether there is something to repeat
    usable    whether calls can be recorded and repeated
    """

    root: Segment = field(default_factory=Segment)
    deciding: set[int] = field(default_factory=set[int])
    takes: bool = False
    calls: int = 0
    is_recorded: bool = False
    usable: bool = True
    bytes: int = 0

    def refuses(self, inputs: Sequence[Array]) -> bool:
        """Whether calls with these values of the arguments that decide cannot be recorded."""
        segment: Segment | None = self.root
        for number in sorted(self.deciding):
            segment = segment.children.get(inputs[number].item()) if segment is not None else None
        return segment is not None and segment.refused
