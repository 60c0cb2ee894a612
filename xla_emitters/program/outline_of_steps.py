"""The outline of a program of steps: one that XLA optimized, or one fusion. See `outline.py`.

A kernel moves the bytes of its arrays, each memory once; a gemm multiplies its two first operands. What a kernel's compilation said, its
emitter and its lines of Python, is in its trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from xla_emitters.device import Device
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.communication import WAIT
from xla_emitters.program.outline import Outline, Work, counted_work, factors_of, least_time, product_operations
from xla_emitters.program.step_values import Arrays
from xla_emitters.program.steps import (
    Branch,
    Call,
    Compute,
    Copy,
    Extent,
    Launch,
    Load,
    Loop,
    Step,
    steps_within,
    weighted,
)
from xla_emitters.trace import Trace
from xla_emitters.trace.python_source import SOURCE


def contents_of(
    steps: Sequence[Step],
    kernels: Sequence[Kernel],
    calls: Sequence[LibraryCall],
    traces: Sequence[Trace],
    arrays: Arrays,
    chip: Device,
) -> Outline:
    """What steps do, in the order of first runs; `traces` say how kernels were made."""
    by_name = {_plain(trace.name): trace for trace in traces}
    said = {
        kernel.name: _said(kernel.name, by_name.get(kernel.name) or traces[number])
        for number, kernel in enumerate(kernels)
        if kernel.name in by_name or len(traces) == len(kernels)
    }
    work = work_of(steps, kernels, calls, arrays, chip, said)
    return Outline(counted_work(work), work, tuple(host_decisions(steps, arrays)))


def _said(name: str, trace: Trace) -> Work:
    """What a kernel's compilation says about it."""
    data = {decision.topic: decision.data for decision in trace.decisions}
    how = data.get("emitter", {}).get("name", "kernel")
    return Work(name, how, "", 0, None, source=tuple(data.get(SOURCE, {}).get("lines", ())))


def _plain(name: str) -> str:
    """The entry's name of a kernel, unless two kernels have one name."""
    return re.sub(r"[^A-Za-z0-9_$]", "_", name)


def work_of(
    steps: Sequence[Step],
    kernels: Sequence[Kernel],
    calls: Sequence[LibraryCall],
    arrays: Arrays,
    chip: Device,
    said: Mapping[str, Work],
) -> tuple[Work, ...]:
    """The kernels, library calls and copies among steps, each once, in the order of first runs.

    said  kernel name -> what its compilation said: how, source, unusual
    """
    found, named = dict[str, Work](), {kernel.name: kernel for kernel in kernels}
    for step, runs in weighted(steps):
        match step:
            case Launch():
                kernel = named[step.kernel]
                moved = {a.slice_index: a.bytes for a in kernel.arguments}
                known = said.get(kernel.name, Work(kernel.name, "kernel", "", 0, None))
                made = replace(known, launch=_shortened(kernel), runs=runs, time=least_time(chip, sum(moved.values())))
                made = replace(made, unusual=(*made.unusual, *_launch_lacks(kernel, chip)))
            case Call() if calls[step.op].name == WAIT:
                continue
            case Call():
                call, operations = calls[step.op], 0.0
                if call.name == "gemm" and len(call.operands) >= 2:
                    shapes = [each.shape for each in (*call.operands[:2], call.results[0])]
                    batch = prod(shapes[0][int(dim)] for dim in call.config.get("lhs_batch", ()))
                    operations = product_operations(shapes, batch) if all(map(prod, shapes)) else 0.0
                factors = factors_of(call.operands[0].dtype if call.operands else "f32")
                time = least_time(
                    chip, sum(spec.bytes for spec in (*call.operands, *call.results)), operations, factors
                )
                made = Work(call.instruction, f"call {call.name}", "", runs, time, source=call.source)
            case Copy(source, target):
                slots = arrays.slot(source.slot), arrays.slot(target.slot)
                time = least_time(chip, sum(arrays.spec(slot).bytes for slot in slots))
                made = Work(f"{slots[0]} -> {slots[1]}", "copy", "", runs, time)
            case _:
                continue
        key = f"{type(step).__name__} {made.name}"
        before = found.get(key)
        found[key] = made if before is None else replace(before, runs=before.runs + runs)
    return tuple(found.values())


def host_decisions(steps: Sequence[Step], arrays: Arrays) -> list[str]:
    """Loops of unknown length and branches: the host waits for a number of the device at each."""
    found, read = list[str](), dict[Extent, object]()
    every = list(steps_within(steps))
    for step in every:
        if isinstance(step, Load):
            read[step.result] = arrays.slot(step.array.slot)
        elif isinstance(step, Compute):
            read[step.result] = read.get(step.operands[0])
    for step in every:
        if isinstance(step, Loop) and step.trips is None:
            found.append(
                f"loop {step.name} has no known length: it is counted once, and the host reads {read.get(step.holds)} before each turn"
            )
        if isinstance(step, Branch):
            found.append(f"branch {step.name}: the host reads {read.get(step.selector)}; every branch is counted")
    return found


def _shortened(kernel: Kernel) -> str:
    return f"{kernel.launch.blocks} x {kernel.launch.threads}"


def _launch_lacks(kernel: Kernel, chip: Device) -> Iterator[str]:
    """What a launch that moves enough to fill the chip leaves idle: multiprocessors, or threads that each could hold."""
    launch, moved = kernel.launch, sum(argument.bytes for argument in kernel.arguments)
    if moved < chip.cores * _ENOUGH_BYTES:
        return
    if 2 * launch.blocks < chip.cores:
        yield f"fewer blocks than half of the {chip.cores} multiprocessors"
        return
    limits = chip.multiprocessor
    blocks = min(limits.blocks_max, chip.threads_per_core // launch.threads)
    if kernel.shared_bytes:
        blocks = min(blocks, chip.shared_bytes_per_core // (kernel.shared_bytes + limits.shared_reserved_bytes))
    if (share := blocks * launch.threads / chip.threads_per_core) < _LOW_OCCUPANCY:
        yield f"occupancy at most {share:.0%}: {launch.threads} threads and {kernel.shared_bytes} bytes of shared memory a block"


_LOW_OCCUPANCY = 0.5
_ENOUGH_BYTES = 512
"""Per multiprocessor: with less, a kernel is too small for its launch to matter."""
