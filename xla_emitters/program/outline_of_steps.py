"""The outline of a program of steps: one that XLA optimized, or one fusion. See `outline.py`.

A kernel moves the bytes of its arrays, each memory once; a gemm multiplies its two first operands. What a kernel's compilation said, its
emitter and its lines of Python, is in its trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Protocol

from xla_emitters.device import Device, device
from xla_emitters.dtypes import dtype
from xla_emitters.program.arrays import Arrays, ArraySpec
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.communication import WAIT
from xla_emitters.program.outline import (
    Outline,
    Work,
    counted_work,
    factors_of,
    least_time,
    no_kernels,
    product_operations,
)
from xla_emitters.program.steps import Branch, Call, Compute, Extent, Launch, Load, Loop, Step, steps_within
from xla_emitters.texts.units import bytes_text
from xla_emitters.trace import Trace
from xla_emitters.trace.python_source import SOURCE


class Described(Protocol):
    """The part of `Program` that this file uses."""

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def parameters(self) -> tuple[ArraySpec, ...]: ...
    @property
    def results(self) -> tuple[ArraySpec, ...]: ...
    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def kernels(self) -> tuple[Kernel, ...]: ...
    @property
    def calls(self) -> tuple[LibraryCall, ...]: ...
    @property
    def graph(self) -> Trace: ...
    @property
    def traces(self) -> tuple[Trace, ...]: ...
    @property
    def arrays(self) -> Arrays: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def is_one_kernel(self) -> bool: ...
    @property
    def devices(self) -> int: ...


def outline_of(program: Described) -> Outline:
    """See the file's head."""
    by_name = {_plain(trace.name): trace for trace in program.traces}
    said = {
        kernel.name: _said(kernel.name, by_name.get(kernel.name) or program.traces[number])
        for number, kernel in enumerate(program.kernels)
        if kernel.name in by_name or len(program.traces) == len(program.kernels)
    }
    work = work_of(program, device(program.target), said)
    arguments = sum(map(_bytes, (*program.parameters, *program.results)))
    facts = [f"does not run: its text leaves out the data of {', '.join(program.left_out)}"] if program.left_out else []
    if program.steps and not program.is_one_kernel:
        temporaries = bytes_text(program.peak_bytes - arguments)
        facts.append(f"memory: {bytes_text(arguments)} of parameters and results, {temporaries} of temporaries at once")
    remarks = [remark for trace in (program.graph, *program.traces) for remark in trace.remarks if remark.help]
    trace = "p.trace" if len(program.traces) == 1 else "p.traces[0]"
    more = (
        [f'{trace}["{program.stage}"].ir', "xe.cost(p)", "xla-emitters show FILE -o page.html"]
        if program.traces
        else []
    )
    kind = "one kernel" if program.is_one_kernel else counted_work(work)
    chips = f"{program.devices} {program.target}" if program.devices > 1 else program.target
    return Outline(
        f"{program.name} for {chips}: {kind if program.steps else no_kernels(program.stage)}",
        (list(map(str, program.parameters)), list(map(str, program.results))),
        work,
        (*dict.fromkeys(remark.text for remark in remarks), *host_decisions(program)),
        tuple(facts),
        ("print(p.explain())", *more),
    )


def _said(name: str, trace: Trace) -> Work:
    """What a kernel's compilation says about it."""
    data = {decision.topic: decision.data for decision in trace.decisions}
    how = data.get("emitter", {}).get("name", "kernel")
    return Work(name, how, "", 0, None, source=tuple(data.get(SOURCE, {}).get("lines", ())))


def _plain(name: str) -> str:
    """The entry's name of a kernel, unless two kernels have one name."""
    return re.sub(r"[^A-Za-z0-9_$]", "_", name)


def _bytes(spec: ArraySpec) -> int:
    return dtype(spec.dtype).size_bytes(spec.elements)


def work_of(
    program: Described,
    chip: Device,
    said: Mapping[str, Work],
) -> tuple[Work, ...]:
    """The kernels and library calls among steps, each once, in the order of first runs.

    said  kernel name -> what its compilation said: how, source, unusual
    """
    found, kernels = dict[str, Work](), {kernel.name: kernel for kernel in program.kernels}
    for step, runs in _runs(program.steps, 1):
        match step:
            case Launch():
                kernel = kernels[step.kernel]
                moved = {a.slice_index: a.bytes for a in kernel.arguments}
                known = said.get(kernel.name, Work(kernel.name, "kernel", "", 0, None))
                made = replace(known, launch=_shortened(kernel), runs=runs, time=least_time(chip, sum(moved.values())))
                made = replace(made, unusual=(*made.unusual, *_launch_lacks(kernel, chip)))
            case Call() if program.calls[step.op].name == WAIT:
                continue
            case Call():
                call, operations = program.calls[step.op], 0.0
                if call.name == "gemm" and len(call.operands) >= 2:
                    shapes = [each.shape for each in (*call.operands[:2], call.results[0])]
                    batch = prod(shapes[0][int(dim)] for dim in call.config.get("lhs_batch", ()))
                    operations = product_operations(shapes, batch) if all(map(prod, shapes)) else 0.0
                factors = factors_of(call.operands[0].dtype if call.operands else "f32")
                time = least_time(chip, sum(map(_bytes, (*call.operands, *call.results))), operations, factors)
                made = Work(call.instruction, f"call {call.name}", "", runs, time, source=call.source)
            case _:
                continue
        key = f"{type(step).__name__} {made.name}"
        before = found.get(key)
        found[key] = made if before is None else replace(before, runs=before.runs + runs)
    return tuple(found.values())


def _runs(steps: Sequence[Step], times: int) -> Iterator[tuple[Step, int]]:
    """Steps and those inside them, with how often one run of the program executes each."""
    for step in steps:
        yield step, times
        match step:
            case Loop():
                yield from _runs((*step.condition, *step.body), times * (step.trips or 1))
            case Branch():
                for branch in step.branches:
                    yield from _runs(branch, times)
            case _:
                pass


def host_decisions(program: Described) -> list[str]:
    """Loops of unknown length and branches: the host waits for a number of the device at each."""
    found, read = list[str](), dict[Extent, object]()
    steps = list(steps_within(program.steps))
    for step in steps:
        if isinstance(step, Load):
            read[step.result] = program.arrays.slot(step.array.slot)
        elif isinstance(step, Compute):
            read[step.result] = read.get(step.operands[0])
    for step in steps:
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
