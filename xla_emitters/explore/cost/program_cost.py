"""Prices the launches and library calls of a program with unknown sizes, at given sizes.

    price_work(program, {"b": 32, "s": 1024})    ->   a KernelCost for each kernel and each size that it is launched at; CallCosts likewise

The program runs at these sizes and its launches are recorded (kernels, blocks, arguments), and its library calls. Kernels are executed
during this run only if the host reads what they compute (loops and branches on data); otherwise each is executed once, on some of its
blocks, to count its traffic. Instructions are those that threads of that launch execute (`pricing/sass_thread`): trip counts follow from
the arguments. Bytes that must move are those that the launch touched, each counted once, so the ratio says how often they move.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xla_emitters.device import Device, device
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pricing.call_prices import CallCost, price_call
from xla_emitters.pricing.model import KernelCost, NeededBytes, kernel_cost
from xla_emitters.pricing.occupancy import occupancy
from xla_emitters.pricing.price import MachineCode, machine_code_of
from xla_emitters.pricing.sass_thread import run_threads
from xla_emitters.pricing.timeline import Timeline, WorkSpan
from xla_emitters.pricing.traffic import Traffic, count_traffic
from xla_emitters.program import Extents, LaunchDimensions, Program
from xla_emitters.program.steps import Call, Launch
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sized_kernels import SizedKernel
from xla_emitters.runtime.walk import Frame, Run

POINTER_BYTES, INDEX_BYTES = 8, 4
READS_OF_THE_HOST = frozenset(("lmhlo.d2h", "lmhlo.while", "lmhlo.case", "lmhlo.if"))
"""With one of these ops, the launches of the host may depend on data."""


@dataclass(frozen=True)
class LaunchAt:
    """A launch of a kernel with its arguments: arrays and numbers."""

    name: str
    launch: LaunchDimensions
    arguments: tuple[Array | complex, ...]
    shared_bytes: int

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for launches that do the same on arrays of the same sizes."""
        said = (value.nbytes if isinstance(value, np.ndarray) else value for value in self.arguments)
        return (self.name, self.launch, self.shared_bytes, *said)


class RecordedKernels(Kernels):
    """Records launches; with `then`, executes them too.

    launches  in order; where a list is given for them, with what others add to it
    """

    def __init__(self, then: Kernels | None, launches: list[Any] | None = None) -> None:
        self.launches: list[Any] = [] if launches is None else launches
        self._then = then

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        self.launches.append(LaunchAt(name, LaunchDimensions(grid, block), tuple(arguments), shared_bytes))
        if self._then is not None:
            self._then.launch(name, grid, block, shared_bytes, arguments)


@dataclass(frozen=True)
class CallAt:
    """A library call: the function with its configuration as data, and its arrays' types and shapes."""

    name: str
    instruction: str
    config: str
    operands: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]


def work_of(program: Program, inputs: Sequence[Any]) -> list[LaunchAt | CallAt]:
    """The launches and library calls of a run on these arguments, in order. raises like `Program.run`"""
    made = lowerings_of(program)
    looks_at_data = made.fused is not None and any(op.name in READS_OF_THE_HOST for op in made.fused.walk())
    steps = list[LaunchAt | CallAt]()

    def record(kernels: Kernels) -> Kernels:
        return RecordedKernels(kernels if looks_at_data else None, steps)

    loaded = made.lowering.watched("kernels", kernels=record)

    def watch(frame: Frame, step: Call | Launch, run: Run) -> Run:
        op = loaded.made.ops[step.op] if isinstance(step, Call) else None
        if not isinstance(step, Call) or not isinstance(op, BufferOp) or not is_library_call(made := op.as_hlo()):
            return run
        operands = frame.operands((*step.reads, *step.writes))

        def call() -> None:
            steps.append(_call_at(op, made, operands()))
            run()

        return call

    loaded.run_watched(made.checked(inputs), watch)
    return steps


def launches_of(program: Program, inputs: Sequence[Any]) -> list[LaunchAt]:
    """The launches of a run on these arguments, in order. raises like `Program.run`"""
    return [step for step in work_of(program, inputs) if isinstance(step, LaunchAt)]


def _call_at(op: BufferOp, made: HloOp, buffers: Sequence[Array]) -> CallAt:
    count = len(op.inputs)
    types = [dtype_of(tensor_of(value.type).element_type).name for value in op.operands]
    sized = [(name, buffer.shape) for name, buffer in zip(types, buffers, strict=True)]
    known = made.static(buffers[:count]) if isinstance(made, DynamicConvOp) else made
    name, config = library_call_of(known)
    return CallAt(name, made.instruction_name.data, json.dumps(config), tuple(sized[:count]), tuple(sized[count:]))


def price_work(
    program: Program, values: Mapping[str, int]
) -> tuple[tuple[KernelCost, ...], tuple[CallCost, ...], Timeline]:
    """The cost of each launch and each library call at these sizes; equal ones are priced once, with their count. And when they run.

    values  symbol -> size
    raises  DataError like `drawn_inputs`, ToolError without ptxas and nvdisasm, errors of the executor
    """
    chip = device(program.target)
    work = work_of(program, drawn_inputs(program, values, 0))
    calls = {
        at: replace(priced, launches=count)
        for at, count in Counter(step for step in work if isinstance(step, CallAt)).items()
        if (priced := price_call(at.name, at.instruction, json.loads(at.config), at.operands, at.results, chip))
    }
    kernels = _price_launches(program, [step for step in work if isinstance(step, LaunchAt)], chip)
    timeline, now = Timeline(), 0.0
    for step in work:
        cost = kernels[step.key] if isinstance(step, LaunchAt) else calls.get(step)
        if cost is not None:
            name = step.name if isinstance(step, LaunchAt) else step.instruction
            timeline.spans.append(WorkSpan(name, "compute", now, now + cost.time))
            now += cost.time
    return tuple(kernels.values()), tuple(calls.values()), timeline


def _price_launches(
    program: Program, launches: Sequence[LaunchAt], chip: Device
) -> Mapping[tuple[Any, ...], KernelCost]:
    """`LaunchAt.key` -> the cost, in the order of first launches."""
    if not launches:
        return {}
    lowering = lowerings_of(program).lowering
    code = machine_code_of(
        lowering.ptx_of({launch.name for launch in launches}), chip.architecture, lowering.options.toolchain
    )
    kernels = dict[str, SizedKernel]()
    found = dict[tuple[Any, ...], KernelCost]()
    first = {launch.key: launch for launch in reversed(launches)}
    for key, count in Counter(launch.key for launch in launches).items():
        launch = first[key]
        if launch.name not in kernels:
            kernels[launch.name] = SizedKernel.of(lowering.lowered(launch.name))
        found[key] = replace(price_launch(launch, kernels[launch.name], chip, code), launches=count)
    return found


def price_launch(at: LaunchAt, kernel: SizedKernel, chip: Device, code: MachineCode) -> KernelCost:
    """The cost of one launch. `kernel` is at the stage "llvm-dialect"."""
    resources = code.resources[at.name]
    resources = replace(resources, shared_bytes=resources.shared_bytes + at.shared_bytes)
    held = occupancy(chip, at.launch.threads, resources.registers, resources.shared_bytes)
    arrays: list[Array] = [value for value in at.arguments if isinstance(value, np.ndarray)]

    def run(blocks: range, watcher: Watcher) -> None:
        kernel(at.launch, at.arguments, at.shared_bytes, [watcher], blocks)

    traffic = count_traffic(run, [array.nbytes for array in arrays], at.launch, held.blocks * chip.cores)
    widths = [POINTER_BYTES if isinstance(value, np.ndarray) else INDEX_BYTES for value in at.arguments]
    sass = code.sass[at.name]
    threads = run_threads(sass, chip.architecture, at.launch, at.arguments, widths)
    return kernel_cost(at.name, chip, at.launch, resources, sass, traffic, _needed(arrays, traffic), threads)


def _needed(arrays: Sequence[Array], traffic: Traffic) -> NeededBytes:
    """Bytes that the launch touches, each counted once. An array with scattered reads counts in whole sectors, at most its size."""
    pairs = list(zip(arrays, traffic.arguments, strict=True))
    read = sum(min(array.nbytes, seen.read_waves) for array, seen in pairs)
    written = sum(min(array.nbytes, seen.write_waves) for array, seen in pairs)
    return NeededBytes(read, written, is_exact=False)
