"""Fusions that run again and again at the same sizes get kernels for these sizes, compiled in the background.

    heat = Heat(limits, ask)
    heat.run("main_kLoop_add_0", [x, y, z])      (False, ...): the kernels for all sizes must run. (True, None): those for these sizes ran
    print(heat.report())                         what was hot, what was replaced, what it gained

A spot is a fusion at given sizes: the shapes of its arrays and the numbers that its code depends on. Its calls are counted. After
`limits.calls` calls the spot is requested (`HotCompiler`), which returns at once; if the limit of kernels is reached and no kernel is
colder, the spot is considered again after `limits.calls` more calls. Until a kernel arrives, and whenever an array is not aligned as
kernels expect, the kernels for all sizes run. A kernel is installed by one assignment: a launch sees either none or the complete kernel.
The results of both are within the error bounds of the ops; sums may be added in another order.

On the CPU the machine code of both is timed, without Python's part of a launch, and a kernel that is not faster is removed. At the
limits the coldest kernel is removed for a hotter spot.
Plans (`plans`) are recorded after TIMED calls at the same sizes. They repeat what ran then, and count; if a kernel was installed or removed
since, they are recorded anew.
Source: docs/reference/4 5 ("Specialise on heat").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

from xla_emitters.errors import UsageError, XlaEmittersError
from xla_emitters.runtime.ral.hot_spots import HotKernel, Recorded, Spot, Timed, Watch

HEAT = "XLA_EMITTERS_HEAT"
TIMED = 64
"""Runs of a new kernel after which its fastest run is compared with the fastest run before."""


@dataclass(frozen=True)
class HeatLimits:
    """When a fusion counts as hot, and how much may be kept for hot fusions, per program.

    calls    of a fusion at the same sizes, after which it is compiled for them
    kernels  most kernels at a time
    bytes    most bytes of their code
    spots    most spots that are counted; above that the coldest are forgotten
    """

    calls: int = 100
    kernels: int = 64
    bytes: int = 64 * 2**20
    spots: int = 4096

    @staticmethod
    def asked(text: str = "") -> HeatLimits | None:
        """The limits in a text, or in `XLA_EMITTERS_HEAT`: None for "off" or "", defaults for "on", else as `parse`. raises UsageError"""
        text = (text or os.environ.get(HEAT, "")).strip()
        if text in ("", "0", "off"):
            return None
        return HeatLimits() if text in ("1", "on") else HeatLimits.parse(text)

    @staticmethod
    def parse(text: str) -> HeatLimits:
        """Limits from `calls=20,kernels=8,bytes=1000000,spots=100`, each of which is optional. raises UsageError"""
        found = dict[str, int]()
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            if name not in HeatLimits.__dataclass_fields__ or not value.isdecimal():
                names = ", ".join(f"{name}=N" for name in HeatLimits.__dataclass_fields__)
                raise UsageError(f"{HEAT}: '{part}' is not a limit", stage="heat", help=f"off, on, or some of {names}")
            found[name] = int(value)
        return HeatLimits(**found)


class Heat:
    """Counts the fusions of one program; see the file's head.

    limits    when a fusion is hot
    ask       called for a spot that is hot; returns at once; answered by `replace` or `keep`, at any time, in any thread
    is_known  whether a kernel for a spot was compiled before: then it is requested at its first call; returns at once
    is_timed  whether both kernels are timed and the faster one is kept; else launches are recorded, so that their work can be counted
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
        """Counts a call of a fusion on arrays and numbers, and runs its kernel for these sizes if there is one.

        returns  whether it ran; if not, the watch that must record the launches that follow, or None
        """
        spot = self.spot(fusion, values)
        calls = spot.called()
        if (kernel := spot.kernel) is not None:
            if self._has_run(kernel, spot, values[: len(spot.shapes)]):
                return True, None
        elif self._is_hot(spot, calls):
            if not self.is_timed:
                return False, Recorded(spot, self._request)
            self._request(spot)
        # A spot that was answered needs no watch.
        return False, Timed(spot) if self.is_timed and spot.state in ("counted", "asked") else None

    def spot(self, fusion: str, values: Sequence[Any]) -> Spot:
        """The fusion at the sizes of these arrays and numbers."""
        key = (fusion, *[getattr(value, "shape", value) for value in values])
        spot = self._spots.get(key)
        return self._met(key) if spot is None else spot

    def repeated(self, spot: Spot, times: int, *, is_hot: bool) -> None:
        """Counts calls by a plan, which ran the spot's kernel or the kernels for all sizes. Plans are not timed."""
        spot.repeats += times
        if is_hot:
            spot.repeated_runs += times
            if spot.runs - times < TIMED <= spot.runs:
                self._compare(spot)
        elif self._is_hot(spot, spot.calls):
            self._request(spot)

    def _is_hot(self, spot: Spot, calls: int) -> bool:
        """Whether a spot must be requested at this call."""
        if spot.state != "counted" or calls < spot.due + (self.limits.calls or 1):
            return False
        spot.due = calls
        return self._has_place(calls)

    def _has_run(self, kernel: HotKernel, spot: Spot, arrays: Sequence[Any]) -> bool:
        """Runs a kernel; returns whether it did."""
        is_timed = self.is_timed and spot.runs < TIMED
        try:
            if (nanoseconds := kernel(arrays)) is None:
                return False
        except (XlaEmittersError, MemoryError) as error:
            # The kernels for all sizes overwrite what it has written.
            self.keep(spot, f"it failed: {error}")
            return False
        runs = spot.ran()
        if is_timed:
            spot.took(nanoseconds, is_hot=True)
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
            self._request(found)
        return found

    def request_known(self) -> None:
        """Requests the spots whose kernels were found on disk meanwhile."""
        for spot in self.spots:
            if spot.state == "counted" and self._is_known(spot):
                self._request(spot)

    def _forget(self) -> None:
        """Forgets the colder half of the spots without a kernel. Using a spot that was forgotten does no harm."""
        spots = sorted((spot.calls, at) for at, (_, spot) in enumerate(self._spots.items()) if spot.kernel is None)
        cold = {at for _, at in spots[: max(1, len(spots) // 2)]}
        for at, spot in enumerate(self._spots.values()):
            spot.is_forgotten = at in cold
        self._spots = {key: spot for key, spot in self._spots.items() if not spot.is_forgotten}

    # ------------------------------------------------------------------------------------------------------- kernels

    def _has_place(self, calls: int) -> bool:
        """Whether a kernel of a spot with so many calls would be kept: if the limit is reached, a clearly colder one must be removed."""
        with self._lock:
            held = [spot.calls for spot in self._spots.values() if spot.kernel is not None]
        return len(held) < self.limits.kernels or min(held, default=calls) + self.limits.calls <= calls

    def _request(self, spot: Spot) -> None:
        with self._lock:
            if spot.state != "counted":
                return
            spot.state = "asked"
        self._ask(self, spot)

    def replace(self, spot: Spot, kernel: HotKernel) -> None:
        """Installs a kernel, if the limits allow it: later calls of the spot run it."""
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
        """Records that the spot keeps the kernels for all sizes, and why."""
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
        """All spots that are counted, the hottest first."""
        with self._lock:
            return sorted(self._spots.values(), key=lambda spot: -spot.calls)

    def report(self, most: int = 20) -> list[str]:
        """The hottest spots as lines of text."""
        spots = self.spots
        replaced = sum(spot.is_replaced for spot in spots)
        calls, runs = sum(spot.calls for spot in spots), sum(spot.runs for spot in spots)
        found = f"{len(spots)} fusion{'' if len(spots) == 1 else 's'} at sizes"
        lines = [f"{found}, {replaced} replaced: {runs} of {calls} runs took kernels for their sizes"]
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
