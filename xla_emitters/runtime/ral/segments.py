"""The data of a recorded call: buffers, events, and segments between reads of data.

`recording` makes them, `segment_code` repeats them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.ral.context import Context, compute_by_library
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.hot_spots import Spot

KNOWN = frozenset[int]()
"""Sources of a buffer that does not depend on data."""


class Slot:
    """A buffer of a recorded call.

    memory   its elements; for an argument, those in the recorded call
    number   index of the argument; None: a buffer of the program
    segment  the segment in which it was allocated
    is_own   no other buffer has had its memory, and no later segment writes it
    sources  indices of the arguments from which it was computed, if these are single integers; None: other data too
    writes   number of writes
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
        """Whether it was computed only from sizes, constants, and arguments whose values select a segment."""
        return self.sources == KNOWN

    @property
    def is_constant(self) -> bool:
        """Whether its known elements stay in its memory from one call to the next."""
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
        """The view of it in the plan's own memory."""
        return self.slot.memory.reshape(-1).view(np.uint8).view(self.dtype).reshape(self.shape)


Argument: TypeAlias = Any
"""A `Place`, or a value that is the same in each call."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel of the program, or of a kernel compiled for a fusion at its sizes."""

    name: str
    grid: Extents
    shared_bytes: int
    arguments: tuple[Argument, ...]
    kernels: HostKernels


@dataclass(frozen=True)
class Run:
    """A call of a function of the runtime."""

    function: Callable[..., None]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Repeated:
    """The object that functions of the runtime get as their call when a plan repeats them: the part of `Call` that they use."""

    context: Context
    is_on_host: ClassVar[bool] = True
    compute = staticmethod(compute_by_library)


@dataclass(frozen=True)
class Set:
    """Copies known elements, or those of another buffer, into a buffer."""

    target: Slot
    source: Slot | Array


Event: TypeAlias = Launch | Run | Set


UNCLEAR = object()
"""Instead of a kernel: the segment is stale at once."""


@dataclass(eq=False)
class Segment:
    """The events of a call from one read of data to the next, or to its end.

    slots     buffers that are allocated in it, in order
    events    in order
    spots     fusions that are counted, with the kernel that ran (None: those for all sizes; UNCLEAR: installed meanwhile), and how often
    read      the element that the program reads at the end; None: the program ends
    children  value that is read -> the next segment
    results   in the last segment: the buffers that are returned
    refused   whether it cannot be repeated
    count     of its events
    """

    slots: list[Slot] = field(default_factory=list[Slot])
    events: list[Event] = field(default_factory=list[Event])
    spots: dict[tuple[Spot, object], int] = field(default_factory=dict[tuple[Spot, object], int])
    read: tuple[Place, tuple[int, ...]] | None = None
    children: dict[Any, Segment] = field(default_factory=dict[Any, "Segment"])
    results: list[Place] = field(default_factory=list[Place])
    refused: bool = False
    count: int = 0
    allocations: int = 0
    peak_bytes: int = 0
    code: Any = None

    @property
    def is_stale(self) -> bool:
        """Whether a fusion has got a kernel of its own, or has lost it, since the recording."""
        for spot, kernel in self.spots:
            if spot.kernel is not kernel or spot.is_forgotten:
                return True
        return False


@dataclass(eq=False)
class Plan:
    """The segments of a program at given sizes.

    root      its first segment
    deciding  indices of the arguments whose values determine what is done: they are read first
    takes     whether it writes or returns memory of donated arguments
    calls     number of calls at these sizes by the host program
    is_recorded  whether there is something to repeat
    usable    whether calls can be recorded and repeated
    has_constants  whether known buffers that are written once keep their elements between calls
    """

    root: Segment = field(default_factory=Segment)
    deciding: set[int] = field(default_factory=set[int])
    takes: bool = False
    calls: int = 0
    is_recorded: bool = False
    usable: bool = True
    has_constants: bool = True
    bytes: int = 0

    def refuses(self, inputs: Sequence[Array]) -> bool:
        """Whether calls with these values of the deciding arguments cannot be recorded."""
        segment: Segment | None = self.root
        for number in sorted(self.deciding):
            segment = segment.children.get(inputs[number].item()) if segment is not None else None
        return segment is not None and segment.refused
