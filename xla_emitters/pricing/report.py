"""Costs as text: one kernel as rows of figures with a column per device; several kernels as a table with a row each.

target            h200                                a6000
registers         23, no spills                       24, no spills
occupancy         100 % (64 warps), by warps          ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xla_emitters.pricing.model import KernelCost
from xla_emitters.texts.units import bytes_text, microseconds

Program = tuple[Sequence[KernelCost], Sequence[str], bool]
"""Kernels, library calls that are not priced, and whether the numbers of launches are estimates."""


def report_text(name: str, programs: Sequence[Program]) -> str:
    """The report of a program on several devices."""
    if all(len(kernels) == 1 and not calls for kernels, calls, _ in programs):
        return kernel_text([kernels[0] for kernels, _, _ in programs])
    return "\n\n".join(program_text(name, *program) for program in programs)


def kernel_text(costs: Sequence[KernelCost]) -> str:
    """One kernel, a column for each device."""
    rows = kernel_rows(costs)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"kernel {costs[0].name}", *lines])


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


def _needed(cost: KernelCost) -> str:
    return f"{'' if cost.bytes_needed_exact else 'about '}{bytes_text(cost.bytes_needed)}"


_ROWS: tuple[tuple[str, Callable[[KernelCost], str]], ...] = (
    ("target", lambda cost: cost.target),
    ("expected time", lambda cost: microseconds(cost.time)),
    ("  between", lambda cost: f"{microseconds(cost.time_low)} and {microseconds(cost.time_high)}"),
    ("bound", lambda cost: cost.bound),
    ("bandwidth", lambda cost: f"{'under 1%' if cost.bandwidth < 0.01 else f'{cost.bandwidth:.0%}'} of the device's"),
    ("must move", _needed),
    ("does move", lambda cost: f"{bytes_text(cost.bytes_moved)}, {cost.bytes_ratio:.2f} times"),
    ("through L2", lambda cost: bytes_text(cost.l2_bytes)),
    ("loads in flight", _in_flight),
    ("bank conflicts", _banks),
    ("launch", lambda cost: f"{cost.blocks:,} x {cost.threads} threads"),
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


def program_text(name: str, kernels: Sequence[KernelCost], library_calls: Sequence[str], is_estimate: bool) -> str:
    """Several kernels on one device: a row each, the longest time first; then the sum, and the calls that are not priced."""
    target = f" on {kernels[0].target}" if kernels else ""
    lines = [f"{name}{target}: expected times"]
    total = sum(kernel.time * kernel.launches for kernel in kernels)
    rows = [
        (
            "kernel",
            "launches",
            "time",
            "share",
            "bound",
            "registers",
            "spills",
            "occupancy",
            "must move",
            "ratio",
            "waves",
        )
    ]
    for kernel in sorted(kernels, key=lambda each: -each.time * each.launches):
        rows.append(
            (
                kernel.name,
                str(kernel.launches),
                microseconds(kernel.time),
                f"{kernel.time * kernel.launches / total:.0%}",
                kernel.bound,
                str(kernel.registers),
                str(kernel.spills),
                f"{kernel.occupancy:.0%}",
                _needed(kernel),
                f"{kernel.bytes_ratio:.2f}",
                f"{kernel.waves:.1f}",
            )
        )
    if kernels:
        left = {0, 4}
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (
                f"{c:<{w}}" if n in left else f"{c:>{w}}" for n, (c, w) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join(cells).rstrip())
        low = sum(kernel.time_low * kernel.launches for kernel in kernels)
        high = sum(kernel.time_high * kernel.launches for kernel in kernels)
        lines.append(f"all launches: {microseconds(total)}, between {microseconds(low)} and {microseconds(high)}")
    if is_estimate:
        lines.append("loops of unknown length are counted once, and every branch is")
    if library_calls:
        counted = {call: library_calls.count(call) for call in dict.fromkeys(library_calls)}
        calls = ", ".join(f"{call} ({count})" if count > 1 else call for call, count in counted.items())
        lines.append(f"not priced: library calls {calls}")
    if not kernels:
        lines.append("no kernels")
    return "\n".join(lines)
