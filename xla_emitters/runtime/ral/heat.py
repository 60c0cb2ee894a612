"""Fusions that run again and again at the same sizes get kernels for these sizes, compiled in the background.

    heat = Heat(limits, ask)
    heat.run("main_kLoop_add_0", [x, y, z])      (False, ...): now the kernels for all sizes run. (True, None): that for these sizes did
    print(heat.report())                         what was hot, what was replaced, what it gained

A spot is a fusion at sizes: the shapes of its arrays and the numbers that its code depends on. Its calls are counted. At `limits.calls` the
spot is asked for (`HotCompiler`), which returns at once; where no kernel more is allowed and none is colder, it is not, until it was called
so often again. Until a kernel arrives, and whenever an array is not aligned as kernels expect,
the kernels for all sizes run. A kernel is put in by one assignment: a launch sees it or not, whole. The answers of both are within the
bounds of the ops; sums may be added in another order.

On the CPU both are timed, and a kernel that is not faster goes. Beyond the limits the coldest kernel goes, if a hotter spot is there.
Source: docs/reference/4 5 ("Specialise on heat").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from time import perf_counter_ns
from typing import Any, Protocol, TypeAlias, cast

from xla_emitters.errors import UsageError, XlaEmittersError
from xla_emitters.runtime.arrays import element_name

Grid: TypeAlias = tuple[int, int, int]
HEAT = "XLA_EMITTERS_HEAT"
TIMED = 64
"""Runs of a new kernel after which its fastest is compared with the fastest before."""


@dataclass(frozen=True)
class HeatLimits:
    """When a fusion is hot, and how much may be kept for hot ones, in each program.

    calls    of a fusion at the same sizes after which it is compiled for them
    kernels  that are there at once
    bytes    of code that they take
    spots    fusions at sizes that are counted; beyond, the coldest are forgotten
    """

    calls: int = 100
    kernels: int = 64
    bytes: int = 64 * 2**20
    spots: int = 4096

    @staticmethod
    def asked(text: str = "") -> HeatLimits | None:
        """What a text says, or without one `XLA_EMITTERS_HEAT`: None for "off" or nothing, "on", limits as `parse`. raises UsageError"""
        text = (text or os.environ.get(HEAT, "")).strip()
        if text in ("", "0", "off"):
            return None
        return HeatLimits() if text in ("1", "on") else HeatLimits.parse(text)

    @staticmethod
    def parse(text: str) -> HeatLimits:
        """Limits from `calls=20,kernels=8,bytes=1000000,spots=100`, each of which may be missing. raises UsageError"""
        found = dict[str, int]()
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            if name not in HeatLimits.__dataclass_fields__ or not value.isdecimal():
                names = ", ".join(f"{name}=N" for name in HeatLimits.__dataclass_fields__)
                raise UsageError(f"{HEAT}: '{part}' is no limit", stage="heat", help=f"off, on, or some of {names}")
            found[name] = int(value)
        return HeatLimits(**found)


@dataclass(frozen=True)
class Gain:
    """What one run of a fusion takes with the kernels for all sizes, and with its own, as counted; None: not counted.

    instructions  executed by all threads
    bytes         moved to and from memory
    """

    instructions: tuple[int, int] | None = None
    bytes: tuple[int, int] | None = None


class HotKernel(Protocol):
    """Code for a fusion at fixed sizes.

    what   how it was made, for reports
    bytes  that its code takes
    gain   as counted
    """

    @property
    def what(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def gain(self) -> Gain: ...
    def __call__(self, arrays: Sequence[Any]) -> bool:
        """Runs it on arrays of exactly these sizes; returns whether it did: not where one begins at an address that it cannot take."""
        ...


@dataclass(eq=False)
class Spot:
    """A fusion at sizes.

    fusion   its name
    shapes   of its arrays
    numbers  what else its code depends on
    state    "counted", "asked", "replaced", or why it is not
    kernel   that runs in its place
    runs     of that kernel
    launches of the kernels for all sizes, where they are recorded
    fastest  nanoseconds of a run with the kernels for all sizes, and with this
    """

    fusion: str
    shapes: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    state: str = "counted"
    kernel: HotKernel | None = None
    gain: Gain = field(default_factory=Gain)
    what: str = ""
    calls: int = 0
    runs: int = 0
    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], repr=False)
    fastest: list[int | None] = field(default_factory=lambda: [None, None])
    _ticks: count[int] = field(default_factory=lambda: count(1), repr=False)
    _run_ticks: count[int] = field(default_factory=lambda: count(1), repr=False)

    def called(self) -> int:
        """Counts a call, also where threads do so at once; returns how many there were."""
        calls = next(self._ticks)
        if calls > self.calls:
            self.calls = calls
        return calls

    def ran(self) -> int:
        """Counts a run of the kernel."""
        runs = next(self._run_ticks)
        if runs > self.runs:
            self.runs = runs
        return runs

    def took(self, nanoseconds: int, *, is_hot: bool) -> None:
        """Keeps the fastest run of either kind."""
        before = self.fastest[is_hot]
        if before is None or nanoseconds < before:
            self.fastest[is_hot] = nanoseconds

    def has_kernel(self, name: str) -> bool:
        """Whether a kernel for all sizes is one of this fusion, by its name."""
        return name == self.fusion or name.startswith(f"{self.fusion}_")

    @property
    def sizes(self) -> str:
        """For reports: `[4,32] [32] n=3`."""
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
    """Is told of the launches of a fusion for which no kernel of its own ran."""

    def launched(self, name: str, grid: Grid, block: Grid, shared_bytes: int, arguments: Sequence[Any]) -> None:
        """A launch ended: of this fusion, if its name begins like that."""
        ...

    def ended(self) -> None:
        """What follows is of another fusion."""
        ...


class Timed(Watch):
    """The time from when a fusion was asked for until the last of its launches ended."""

    __slots__ = ("_nanoseconds", "_spot", "_start")

    def __init__(self, spot: Spot) -> None:
        self._spot = spot
        self._nanoseconds = 0
        self._start = perf_counter_ns()

    def launched(self, name: str, grid: Grid, block: Grid, shared_bytes: int, arguments: Sequence[Any]) -> None:
        if self._spot.has_kernel(name):
            self._nanoseconds = perf_counter_ns() - self._start

    def ended(self) -> None:
        if self._nanoseconds:
            self._spot.took(self._nanoseconds, is_hot=False)


class Recorded(Watch):
    """The launches of a fusion that is hot, by which what they do can be counted; then the fusion is asked for."""

    __slots__ = ("_ask", "_launches", "_spot")

    def __init__(self, spot: Spot, ask: Callable[[Spot], None]) -> None:
        self._spot = spot
        self._ask = ask
        self._launches = list[dict[str, Any]]()

    def launched(self, name: str, grid: Grid, block: Grid, shared_bytes: int, arguments: Sequence[Any]) -> None:
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


class Heat:
    """See the file's head.

    limits    when a fusion is hot
    ask       is called for a spot that is hot; returns at once; `replace` or `keep` answers, at any time, in any thread
    is_known  whether a kernel for a spot was compiled before: then it is asked for when it is met first; returns at once
    is_timed  whether the fastest of both is kept, as measured; else launches are recorded, to be counted where kernels are compiled
    """

    def __init__(
        self,
        limits: HeatLimits,
        ask: Callable[[Heat, Spot], None],
        is_known: Callable[[Spot], bool] = lambda spot: False,
        *,
        is_timed: bool = False,
    ) -> None:
        self.limits = limits
        self.is_timed = is_timed
        self._ask = ask
        self._is_known = is_known
        self._spots = dict[tuple[Any, ...], Spot]()
        self._lock = Lock()

    # ---------------------------------------------------------------------------------------------------------- calls

    def run(self, fusion: str, values: Sequence[Any]) -> tuple[bool, Watch | None]:
        """Counts a call of a fusion on arrays and numbers, and runs its kernel for these sizes where there is one.

        returns  whether it ran; if not, what is to be told of the launches that follow
        """
        key = (fusion, *[getattr(value, "shape", value) for value in values])
        spot = self._spots.get(key)
        if spot is None:
            spot = self._met(key)
        calls = spot.called()
        if (kernel := spot.kernel) is not None:
            if self._has_run(kernel, spot, values[: len(spot.shapes)]):
                return True, None
        elif spot.state == "counted" and calls % (self.limits.calls or 1) == 0 and self._has_place(calls):
            if not self.is_timed:
                return False, Recorded(spot, self._wish)
            self._wish(spot)
        # Of a spot that has its answer there is nothing more to know.
        return False, Timed(spot) if self.is_timed and spot.state in ("counted", "asked") else None

    def _has_run(self, kernel: HotKernel, spot: Spot, arrays: Sequence[Any]) -> bool:
        """Runs a kernel; returns whether it did."""
        is_timed = self.is_timed and spot.runs < TIMED
        start = perf_counter_ns() if is_timed else 0
        try:
            if not kernel(arrays):
                return False
        except (XlaEmittersError, MemoryError) as error:
            # What it has written, the kernels for all sizes write again.
            self.keep(spot, f"it failed: {error}")
            return False
        runs = spot.ran()
        if is_timed:
            spot.took(perf_counter_ns() - start, is_hot=True)
            if runs == TIMED:
                self._compare(spot)
        return True

    def _met(self, key: tuple[Any, ...]) -> Spot:
        shapes = tuple(cast(tuple[int, ...], value) for value in key[1:] if isinstance(value, tuple))
        with self._lock:
            if len(self._spots) >= self.limits.spots:
                self._forget()
            found = self._spots.get(key)
            if found is None:
                numbers = tuple(int(value) for value in key[1 + len(shapes) :])
                found = self._spots[key] = Spot(key[0], shapes, numbers)
        if self._is_known(found):
            self._wish(found)
        return found

    def look_again(self) -> None:
        """Asks for the spots that are known by now."""
        for spot in self.spots:
            if spot.state == "counted" and self._is_known(spot):
                self._wish(spot)

    def _forget(self) -> None:
        """Forgets the colder half of what has no kernel. What goes on with a spot that was forgotten does no harm."""
        spots = sorted((spot.calls, at) for at, (_, spot) in enumerate(self._spots.items()) if spot.kernel is None)
        cold = {at for _, at in spots[: max(1, len(spots) // 2)]}
        self._spots = {key: spot for at, (key, spot) in enumerate(self._spots.items()) if at not in cold}

    # ------------------------------------------------------------------------------------------------------- kernels

    def _has_place(self, calls: int) -> bool:
        """Whether a kernel of a spot with so many calls would be kept: while the limit is reached, one that is clearly colder must go."""
        with self._lock:
            held = [spot.calls for spot in self._spots.values() if spot.kernel is not None]
        return len(held) < self.limits.kernels or min(held, default=calls) + self.limits.calls <= calls

    def _wish(self, spot: Spot) -> None:
        with self._lock:
            if spot.state != "counted":
                return
            spot.state = "asked"
        self._ask(self, spot)

    def replace(self, spot: Spot, kernel: HotKernel) -> None:
        """Puts a kernel in, if the limits allow: later calls of the spot run it."""
        with self._lock:
            held = sorted(
                (
                    (other.calls, other.kernel.bytes, other)
                    for other in self._spots.values()
                    if other.kernel is not None
                ),
                key=lambda each: each[0],
            )
            total, colder = sum(size for _, size, _ in held), list[Spot]()
            for calls, size, other in held:
                if len(held) - len(colder) < self.limits.kernels and total + kernel.bytes <= self.limits.bytes:
                    break
                if calls < spot.calls:
                    total -= size
                    colder.append(other)
            if len(held) - len(colder) >= self.limits.kernels or total + kernel.bytes > self.limits.bytes:
                spot.state = "not replaced: the limit is reached"
                return
            for other in colder:
                other.kernel, other.state = None, "let go: others were hotter"
            spot.gain, spot.what, spot.state = kernel.gain, kernel.what, "replaced"
            spot.kernel = kernel

    def keep(self, spot: Spot, reason: str) -> None:
        """The kernels for all sizes stay."""
        spot.kernel, spot.state = None, f"not replaced: {reason}"

    def _compare(self, spot: Spot) -> None:
        before, after = spot.fastest
        if before is not None and after is not None and after >= before:
            self.keep(spot, "not faster")

    # -------------------------------------------------------------------------------------------------------- report

    def __str__(self) -> str:
        return "\n".join(self.report())

    @property
    def spots(self) -> list[Spot]:
        """All that are counted, the hottest first."""
        with self._lock:
            return sorted(self._spots.values(), key=lambda spot: -spot.calls)

    def report(self, most: int = 20) -> list[str]:
        """The hottest spots as lines of text."""
        spots = self.spots
        replaced = sum(spot.is_replaced for spot in spots)
        calls, runs = sum(spot.calls for spot in spots), sum(spot.runs for spot in spots)
        lines = [
            f"{len(spots)} fusions at sizes, {replaced} replaced: {runs} of {calls} runs took kernels for their sizes"
        ]
        for spot in spots[:most]:
            lines.append(f"  {spot.fusion}  {spot.sizes}  {spot.calls} calls  {spot.state}")
            lines += [f"    {line}" for line in _gained(spot)]
        if len(spots) > most:
            lines.append(f"  ... and {len(spots) - most} colder")
        return lines


def _gained(spot: Spot) -> list[str]:
    lines = [f"{spot.what}: {spot.runs} runs"] if spot.what else []
    before, after = spot.fastest
    if before is not None and after is not None:
        lines.append(f"fastest run {before / 1000:.2f} us -> {after / 1000:.2f} us")
    for name, counted in (("instructions", spot.gain.instructions), ("bytes", spot.gain.bytes)):
        if counted is not None:
            change = f" ({(counted[1] / counted[0] - 1) * 100:+.0f} %)" if counted[0] else ""
            lines.append(f"{name} {counted[0]} -> {counted[1]}{change}")
    return lines
