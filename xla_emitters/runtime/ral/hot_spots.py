"""A spot, which is a fusion at given sizes: counts of its calls, the kernel that replaces it, and the watches of its launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from xla_emitters.program.arrays import Extents
from xla_emitters.runtime.arrays import element_name


@dataclass(frozen=True)
class Gain:
    """The counted work of one run of a fusion, with the kernels for all sizes and with its own; None: not counted.

    instructions  executed by all threads
    bytes         moved to and from memory
    """

    instructions: tuple[int, int] | None = None
    bytes: tuple[int, int] | None = None


class HotKernel(Protocol):
    """Code for a fusion at fixed sizes.

    what   how it was made, for reports
    bytes  size of its code
    gain   as counted
    """

    @property
    def what(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def gain(self) -> Gain: ...
    def __call__(self, arrays: Sequence[Any]) -> int | None:
        """Runs it on arrays of exactly these sizes.

        returns  the nanoseconds that its kernels ran, 0 where that is not measured; None: it did not run, because an array is not aligned
                 as it needs
        """
        ...


@dataclass(eq=False)
class Spot:
    """A fusion at given sizes.

    fusion   its name
    shapes   of its arrays
    numbers  what else its code depends on
    state    "counted", "asked", "replaced", or why it is not replaced
    kernel   that runs in its place
    launches of the kernels for all sizes, where they are recorded
    fastest  nanoseconds that the kernels of one run took: those for all sizes, and this. Python's part of a launch is in neither
    repeats  calls by plans, of which one is made at a time; repeated_runs: those that ran the kernel
    due      number of calls at which it was last considered for a request
    is_forgotten  whether calls are counted by another spot by now
    """

    fusion: str
    shapes: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    state: str = "counted"
    kernel: HotKernel | None = None
    gain: Gain = field(default_factory=Gain)
    what: str = ""
    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], repr=False)
    fastest: list[int | None] = field(default_factory=lambda: [None, None])
    repeats: int = 0
    repeated_runs: int = 0
    due: int = 0
    is_forgotten: bool = False
    _calls: int = field(default=0, repr=False)
    _runs: int = field(default=0, repr=False)
    _ticks: count[int] = field(default_factory=lambda: count(1), repr=False)
    _run_ticks: count[int] = field(default_factory=lambda: count(1), repr=False)

    def called(self) -> int:
        """Counts a call by the host program; returns the number of calls. Thread-safe."""
        calls = next(self._ticks)
        if calls > self._calls:
            self._calls = calls
        return calls + self.repeats

    def ran(self) -> int:
        """Counts a run of the kernel by the host program; returns the number of runs."""
        runs = next(self._run_ticks)
        if runs > self._runs:
            self._runs = runs
        return runs + self.repeated_runs

    @property
    def calls(self) -> int:
        """Number of calls, by the host program and by plans."""
        return self._calls + self.repeats

    @property
    def runs(self) -> int:
        """Number of calls that ran the kernel."""
        return self._runs + self.repeated_runs

    def took(self, nanoseconds: int, *, is_hot: bool) -> None:
        """Records the fastest run with, and without, the kernel."""
        before = self.fastest[is_hot]
        if before is None or nanoseconds < before:
            self.fastest[is_hot] = nanoseconds

    def has_kernel(self, name: str) -> bool:
        """Whether a kernel for all sizes belongs to this fusion, judging by its name."""
        return name == self.fusion or name.startswith(f"{self.fusion}_")

    @property
    def sizes(self) -> str:
        """Sizes for reports: `[4,32] [32] n=3`."""
        shapes = [f"[{','.join(map(str, shape))}]" for shape in self.shapes]
        return " ".join([*shapes, *(f"n={number}" for number in self.numbers)])

    @property
    def is_replaced(self) -> bool:
        return self.kernel is not None

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        before, after = self.fastest
        return {
            "fusion": self.fusion,
            "shapes": [list(shape) for shape in self.shapes],
            "numbers": list(self.numbers),
            "calls": self.calls,
            "runs_replaced": self.runs,
            "state": self.state,
            "kernel": self.what,
            "nanoseconds": {"all_sizes": before, "these_sizes": after},
            "instructions": _pair(self.gain.instructions),
            "bytes": _pair(self.gain.bytes),
        }


class Watch(Protocol):
    """Receives the launches of a fusion that did not run by a kernel of its own."""

    def launched(
        self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any], nanoseconds: int
    ) -> None:
        """Called after a launch; it is of this fusion if its name begins with the fusion's. nanoseconds: of its code, 0 if not measured."""
        ...

    def ended(self) -> None:
        """Called when the launches of another fusion begin."""
        ...


class Timed(Watch):
    """How long the code of a fusion's launches took."""

    __slots__ = ("_nanoseconds", "_spot")

    def __init__(self, spot: Spot) -> None:
        self._spot = spot
        self._nanoseconds = 0

    def launched(
        self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any], nanoseconds: int
    ) -> None:
        if self._spot.has_kernel(name):
            self._nanoseconds += nanoseconds

    def ended(self) -> None:
        if self._nanoseconds:
            self._spot.took(self._nanoseconds, is_hot=False)


class Recorded(Watch):
    """Records the launches of a hot fusion, so that their work can be counted; then requests the fusion's kernels."""

    __slots__ = ("_ask", "_launches", "_spot")

    def __init__(self, spot: Spot, ask: Callable[[Spot], None]) -> None:
        self._spot = spot
        self._ask = ask
        self._launches = list[dict[str, Any]]()

    def launched(
        self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any], nanoseconds: int
    ) -> None:
        if self._spot.has_kernel(name):
            values = [
                (element_name(value.dtype), value.shape) if hasattr(value, "dtype") else value for value in arguments
            ]
            launch = {"kernel": name, "grid": grid, "block": block, "shared_bytes": shared_bytes, "arguments": values}
            self._launches.append(launch)

    def ended(self) -> None:
        self._spot.launches = self._launches
        self._ask(self._spot)


def _pair(counted: tuple[int, int] | None) -> dict[str, int] | None:
    return None if counted is None else {"all_sizes": counted[0], "these_sizes": counted[1]}
