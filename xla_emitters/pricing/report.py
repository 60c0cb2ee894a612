"""The cost of a program; and costs as text: one kernel with a column per device, several as a table with a row each.

target            h200                                a6000
registers         23, no spills                       24, no spills
occupancy         100 % (64 warps), by warps          ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xla_emitters.device import device
from xla_emitters.pricing.call_prices import COPY, CallCost
from xla_emitters.pricing.model import LEAST_GAIN, KernelCost
from xla_emitters.pricing.timeline import Timeline
from xla_emitters.program import Program
from xla_emitters.support.columns import aligned
from xla_emitters.support.units import bytes_text, microseconds

MOVES_AGAIN = 1.2
"""From this ratio of bytes moved to bytes needed on, a kernel's next step names it."""


@dataclass(frozen=True)
class ProgramCost:
    """The kernels and library calls of a program on one device.

    kernels        in the order of their first launches
    calls          priced library calls, in order
    unpriced       names of the library functions of the other calls, one per call
    is_estimate    whether `launches` of some kernel is a guess: a loop without a known trip count counts once, and so does each branch
    program        for a module: the priced program, with the decisions in its traces
    xlas           if kernels were chosen by price: the cost with XLA's choice of all kernels
    by_price       if they were not: the cost of the kernels that take the place of the dearest one if they are chosen by price
    by_rule        if they are XLA's: as by_price, chosen by rule
    timeline       when its kernels and calls, and its collectives, are expected to run
    as_calls       kernel -> what the products and convolutions that it computes itself would take as library calls
    """

    target: str
    kernels: tuple[KernelCost, ...]
    calls: tuple[CallCost, ...] = ()
    unpriced: tuple[str, ...] = ()
    is_estimate: bool = False
    program: Program | None = field(default=None, repr=False, compare=False)
    xlas: ProgramCost | None = None
    by_price: ProgramCost | None = None
    by_rule: ProgramCost | None = None
    as_calls: Mapping[str, tuple[CallCost, ...]] = field(default_factory=dict[str, tuple[CallCost, ...]])
    timeline: Timeline = field(default_factory=Timeline)

    @property
    def dearest(self) -> KernelCost | None:
        """The kernel that takes most time in one run."""
        return max(self.kernels, key=lambda each: each.time * each.launches, default=None)

    @property
    def next_step(self) -> str:
        """What the dearest kernel lacks, and what `--tune price` would make of it; "" if that is not known."""
        kernel = self.dearest
        if kernel is not None and kernel.bound == "launch":
            return f"next: fewer launches: the dearest kernel, {kernel.name}, is bound by its launch"
        if self.by_price is None or kernel is None:
            return ""
        if kernel.blocks < (cores := device(self.target).cores):
            lacks = f"{kernel.blocks} blocks on {cores} multiprocessors"
        elif kernel.spills:
            lacks = f"{kernel.spills} bytes of registers spilled"
        elif kernel.bytes_ratio > MOVES_AGAIN:
            lacks = f"moves its bytes {kernel.bytes_ratio:.1f} times"
        else:
            lacks = f"bound by {kernel.bound}, {kernel.bandwidth:.0%} of the bandwidth"
        found = sum(each.time for each in self.by_price.kernels)
        if found > kernel.time * (1 - LEAST_GAIN):
            return f"next: {kernel.name}: {lacks}; --tune price knows no faster kernel"
        number = f" in {count} kernels" if (count := len(self.by_price.kernels)) > 1 else ""
        ruled = self.by_rule.time if self.by_rule else kernel.time
        rule = f", --tune auto {microseconds(ruled)}" if ruled <= kernel.time * (1 - LEAST_GAIN) else ""
        return f"next: {kernel.name}: {lacks}: --tune price expects {microseconds(found)}{number}{rule}"

    @property
    def time(self) -> float:
        """Expected microseconds of all launches and library calls, one after the other."""
        return sum(each.time * each.launches for each in (*self.kernels, *self.calls))

    @property
    def library_calls(self) -> tuple[str, ...]:
        """The names of the functions of all calls."""
        return (*(call.name for call in self.calls if call.name != COPY), *self.unpriced)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "time": self.time,
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "calls": [call.to_json() for call in self.calls],
            "library_calls": list(self.library_calls),
            "next_step": self.next_step,
            "xlas_time": self.xlas.time if self.xlas else None,
            "launches_known": not self.is_estimate,
            "timeline": self.timeline.to_json() if self.timeline.communication else None,
            "as_calls": {name: [call.to_json() for call in calls] for name, calls in self.as_calls.items()},
        }


def report_text(name: str, programs: Sequence[ProgramCost]) -> str:
    """The report of a program on several devices."""
    if all(_is_one_kernel(each) and (each.xlas is None or _is_one_kernel(each.xlas)) for each in programs):
        columns = [(each.target, each.kernels[0]) for each in programs]
        columns += [(f"{each.target}, XLA's choice", each.xlas.kernels[0]) for each in programs if each.xlas]
        steps = dict.fromkeys(line for each in programs for line in (*calls_lines(each), each.next_step) if line)
        return "\n".join([kernel_text([replace(cost, target=title) for title, cost in columns]), *steps])
    return "\n\n".join(program_text(name, each) for each in programs)


def _is_one_kernel(program: ProgramCost) -> bool:
    return len(program.kernels) == 1 and not program.calls and not program.unpriced


def kernel_text(costs: Sequence[KernelCost]) -> str:
    """One kernel, a column for each device."""
    rows = kernel_rows(costs)
    return "\n".join([f"kernel {costs[0].name}", *aligned(rows)])


def kernel_rows(costs: Sequence[KernelCost]) -> list[tuple[str, ...]]:
    """The figures of one kernel with their units: what each is, and its value on each device. What is part of the row above is indented."""
    rows = [(label, *map(shown, costs)) for label, shown in _ROWS]
    rows[_BOUNDS:_BOUNDS] = [
        (f"  {name}", *(microseconds(cost.bounds[name]) for cost in costs))
        for name in costs[0].bounds
        if any(cost.bounds[name] >= 0.005 for cost in costs)
    ]
    if len(costs) > 1:
        names = dict.fromkeys(name for cost in costs for name in cost.classes)
        after = next(number for number, row in enumerate(rows) if row[0] == "  by class")
        rows[after : after + 1] = [
            (f"  {name}", *(f"{cost.classes.get(name, 0):,}" for cost in costs)) for name in names
        ]
    return [row for row in rows if any(row[1:])]


def _waves(cost: KernelCost) -> str:
    if cost.waves < 1:
        return f"{cost.waves:.2g}, the GPU is not full"
    return f"{cost.waves:.1f}, the last one {cost.last_wave:.0%} full"


def _registers(cost: KernelCost) -> str:
    stack = f", {cost.stack} bytes of stack" if cost.stack else ""
    return f"{cost.registers}, {f'{cost.spills} bytes spilled' if cost.spills else 'no spills'}{stack}"


def _instructions(cost: KernelCost) -> str:
    unknown = f", {cost.unknown_loops} unknown loops once" if cost.unknown_loops else ""
    return f"at most {cost.instructions:,}{unknown}"


def _in_flight(cost: KernelCost) -> str:
    if not cost.bytes_in_flight:
        return ""
    return f"{bytes_text(cost.bytes_in_flight)} a multiprocessor, {bytes_text(cost.bytes_in_flight_needed)} needed"


def _banks(cost: KernelCost) -> str:
    if not cost.bank_ways:
        return ""
    return (
        "no conflicts" if cost.worst_bank_ways == 1 else f"{cost.bank_ways:.3g} ways, {cost.worst_bank_ways} at worst"
    )


def _percent(share: float) -> str:
    return "under 1%" if share < 0.01 else f"{share:.0%}"


def _needed(cost: KernelCost) -> str:
    return f"{'' if cost.bytes_needed_exact else 'about '}{bytes_text(cost.bytes_needed)}"


_ROWS: tuple[tuple[str, Callable[[KernelCost], str]], ...] = (
    ("target", lambda cost: cost.target),
    ("expected time", lambda cost: microseconds(cost.time)),
    ("  between", lambda cost: f"{microseconds(cost.time_low)} and {microseconds(cost.time_high)}"),
    ("bound", lambda cost: cost.bound),
    ("bandwidth", lambda cost: f"{_percent(cost.bandwidth)} of the device's"),
    ("compute", lambda cost: f"{_percent(cost.compute)} of the peak of multiplications and additions"),
    ("must move", _needed),
    ("does move", lambda cost: f"{bytes_text(cost.bytes_moved)}, {cost.bytes_ratio:.2f} times"),
    ("through L2", lambda cost: bytes_text(cost.l2_bytes)),
    ("loads in flight", _in_flight),
    ("bank conflicts", _banks),
    ("launch", lambda cost: f"{cost.blocks:,} x {cost.threads} threads, on {cost.multiprocessors} multiprocessors"),
    ("waves", _waves),
    ("occupancy", lambda cost: f"{cost.occupancy:.0%}, {cost.warps} warps, by {cost.occupancy_limit}"),
    ("registers", _registers),
    ("shared memory", lambda cost: f"{cost.shared_bytes:,} bytes a block" if cost.shared_bytes else ""),
    ("instructions", _instructions),
    ("  by class", lambda cost: ", ".join(f"{name} {count:,}" for name, count in cost.classes.items())),
    ("operations", lambda cost: f"{cost.operations:,}, {cost.intensity:.3g} a byte"),
)
_BOUNDS = 4
"""The position of the bounds in the table."""


_COLUMNS = (
    *("kernel", "launches", "time", "share", "bound", "of bandwidth", "of peak", "multiprocessors"),
    *("registers", "spills", "occupancy", "must move", "ratio", "waves"),
)
_LEFT = frozenset((0, 4))
"""Columns of text; the others are numbers, aligned on the right."""


def program_text(name: str, program: ProgramCost) -> str:
    """Several kernels and calls on one device: a row each, the longest time first; then the sum, and the calls that are not priced."""
    lines = [f"{name} on {program.target}: expected times"]
    priced = sorted((*program.kernels, *program.calls), key=lambda each: -each.time * each.launches)
    total = sum(each.time * each.launches for each in priced)
    if priced:
        rows = [_COLUMNS, *(_row(each, total) for each in priced)]
        if program.xlas:
            times = {kernel.name: microseconds(kernel.time) for kernel in program.xlas.kernels}
            rows = [
                (*row, cell)
                for row, cell in zip(rows, ("XLA's", *(times.get(each.name, "") for each in priced)), strict=True)
            ]
        lines += aligned(rows, right={*range(len(rows[0]))} - _LEFT)
        low, high = (sum(getattr(each, end) * each.launches for each in priced) for end in ("time_low", "time_high"))
        xlas = f"; XLA's choice: {microseconds(program.xlas.time)}" if program.xlas else ""
        lines.append(f"in all: {microseconds(total)}, between {microseconds(low)} and {microseconds(high)}{xlas}")
        lines += [*calls_lines(program), program.next_step]
    for call in program.calls:
        if call.members:
            lines.append(
                f"{call.instruction}: each of {call.members} sends {bytes_text(call.wire_bytes)}: {microseconds(call.time)};"
                f" by a network of 400 Gb/s a GPU alone {microseconds(call.network_time)}"
            )
    if program.timeline.communication:
        lines.append(str(program.timeline))
    if lower := dict.fromkeys(call.name for call in program.calls if call.is_lower_bound):
        lines.append(f"priced by their bytes alone, at least: {', '.join(lower)}")
    if program.is_estimate:
        lines.append("loops of unknown length are counted once, and every branch is")
    if program.unpriced:
        counted = {call: program.unpriced.count(call) for call in dict.fromkeys(program.unpriced)}
        calls = ", ".join(f"{call} ({count})" if count > 1 else call for call, count in counted.items())
        lines.append(f"not priced: library calls {calls}")
    if not program.kernels:
        lines.append("no kernels")
    return "\n".join(filter(None, lines))


def calls_lines(program: ProgramCost) -> Iterator[str]:
    """What products and convolutions that kernels compute themselves would take as library calls."""
    for kernel, calls in program.as_calls.items():
        for call in calls:
            name = " ".join(filter(None, (call.name, call.factors)))
            yield f"{kernel} computes {call.instruction} itself: as a call of {name} it would take {microseconds(call.time)}"


def _row(each: KernelCost | CallCost, total: float) -> tuple[str, ...]:
    """The cells of `_COLUMNS`."""
    shared = (
        str(each.launches),
        microseconds(each.time),
        f"{each.time * each.launches / total:.0%}",
        each.bound,
        f"{each.bandwidth:.0%}",
        f"{each.compute:.0%}",
        str(each.multiprocessors or ""),
    )
    if isinstance(each, CallCost):
        name = " ".join(filter(None, (each.name, each.factors, each.instruction)))
        return (name, *shared, "", "", "", bytes_text(each.bytes_needed), "", "")
    return (
        each.name,
        *shared,
        str(each.registers),
        str(each.spills),
        f"{each.occupancy:.0%}",
        _needed(each),
        f"{each.bytes_ratio:.2f}",
        f"{each.waves:.1f}",
    )


def origins_text(kernel: str, counts: Mapping[str, int]) -> str:
    """The instructions that a thread of a kernel executes, by the HLO instruction that they come from: most first."""
    total = sum(counts.values())
    rows = [("HLO instruction", "instructions", "share")]
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        rows.append((name or "(none: addresses, loops, the end)", str(count), f"{count / total:.0%}"))
    return "\n".join(
        [f"instructions of {kernel} that a thread executes, by HLO instruction", *aligned(rows, right={1, 2})]
    )
