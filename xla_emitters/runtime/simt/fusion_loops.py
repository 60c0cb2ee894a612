"""The loops of a fusion on buffers, on the CPU: each iteration of its parallel loops is a lane.

    lmhlo.fusion {
      scf.parallel (%i) = (%c0) to (%n) step (%c1) { ... memref.store %v, %y[%j, %k] }           n lanes, one an iteration
      scf.parallel (%block, %thread) = (%c0, %c0) to (%rows, %c256) step (%c1, %c1) { ... }     rows blocks of 256 threads
    }

    run = compile_loops(fusion)
    run.captured            the outside buffers and numbers that the loops use, in the order of their first uses
    run(x, y, 128)          runs all loops, one after the other; x and y are C-contiguous arrays of any sizes

In a loop of two variables the first is the block and the second the thread: barriers, exchanges within a warp and shared memory work as
in a kernel. A loop of three variables has a two-dimensional grid: the first variable is the block in y, the second the block in x. An
iteration of a loop of one variable is a block of its own, without exchanges. Loops inside these run in each lane.
Between the loops there are only ops that compute numbers. Elements take at least a byte each, as in NumPy.
Source: docs/reference/4 3.5; MLIR's `scf.parallel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dialects.mlir import scf
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, Unsupported
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.captures import captured_by
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import BlockCode, Compiler, FrameSlots, Rules, Step
from xla_emitters.runtime.simt.execute import RULES, chunks
from xla_emitters.runtime.simt.machine import Frame, Machine, Value
from xla_emitters.runtime.simt.memory import Memory, Watcher
from xla_emitters.runtime.simt.scalars import form_of
from xla_emitters.runtime.simt.scf_rules import parallel
from xla_emitters.runtime.simt.shared_calls import SharedFunctions

ALIGNMENT = 256
"""Bytes: the alignment of the runtime's allocations."""


@dataclass(frozen=True)
class Loops:
    """The loops of one fusion, compiled.

    captured   what a call passes, in order: arrays for buffers, numbers for the rest
    """

    captured: tuple[SSAValue, ...]
    inputs: tuple[int, ...] = field(repr=False)
    body: BlockCode = field(repr=False)
    slots: int = field(repr=False)
    name: str = "fusion"

    def __call__(self, *values: Array | complex, watchers: Sequence[Watcher] = ()) -> None:
        """Writes the results into the arrays. raises DataError for values that do not fit, ExecutionError as `execute`."""
        if len(values) != len(self.captured):
            raise DataError(f"{self.name} takes {len(self.captured)} values, not {len(values)}", stage="simt")
        host = LaunchDimensions((1, 1, 1), (1, 1, 1))
        memory = Memory(host, np.zeros(1, np.int64), watchers)
        machine = Machine(host, memory.blocks, memory)
        frame: Frame = [None] * self.slots
        for slot, captured, value in zip(self.inputs, self.captured, values, strict=True):
            frame[slot] = bind(machine, value, captured.type, captured.name_hint or "buffer")
        with np.errstate(all="ignore"):
            self.body.run(machine, frame, ())


def bind(machine: Machine, value: Array | complex, ir_type: Attribute, name: str) -> Value:
    """The value for a buffer (the array's memory) or a number. raises DataError for what does not fit"""
    if not isa(ir_type, MemRefType[Attribute]):
        if isinstance(value, np.ndarray):
            raise DataError(f"%{name} is {ir_type}, not an array", stage="simt")
        return scalars.constant(form_of(ir_type), value)
    form, wanted = form_of(ir_type.element_type), ir_type.get_shape()
    if (
        not isinstance(value, np.ndarray)
        or value.itemsize != form.size
        or not value.flags.c_contiguous
        or not fits(value.shape, wanted)
    ):
        found = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)
        raise DataError(f"%{name} is {ir_type}, but the array is {found}", stage="simt")
    data = value.reshape(-1).view(np.uint8)
    buffer = machine.memory.add(f"%{name}", data, ALIGNMENT, writable=value.flags.writeable)
    return machine.tensor(buffer, form, value.shape, row_major_strides(value.shape))


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether sizes agree with those of a type, some of which may be unknown."""
    return len(shape) == len(wanted) and all(size < 0 or size == have for have, size in zip(shape, wanted, strict=True))


def compile_loops(fusion: FusionOp) -> Loops:
    """The function that runs the loops of a fusion. raises Unsupported for an op without a rule"""
    scope = FrameSlots(Compiler(LOOP_RULES, {}, SharedFunctions({})))
    captured = captured_by(fusion)
    inputs = scope.slots(captured)
    body = scope.body(fusion.body.block)
    name = fusion.label
    return Loops(captured, inputs, body, scope.count, name)


# ---------------------------------------------------------------------------------------------- one loop as a launch

LOOP_RULES = Rules(RULES)


@LOOP_RULES.control(scf.ParallelOp)
def launched(op: scf.ParallelOp, scope: FrameSlots) -> Step:
    """A loop directly in a fusion: all its iterations are lanes. raises Unsupported for one of more than three variables"""
    if not isinstance(op.parent_op(), FusionOp):
        return parallel(op, scope)
    rank = len(op.lowerBound)
    if rank > 3 or op.initVals:
        what = "with results" if op.initVals else f"over {rank} variables"
        raise Unsupported(f"{op.name} {what}", stage="simt", details=(str(op).splitlines()[0],))
    bounds = [scope.slots(bound) for bound in (op.lowerBound, op.upperBound, op.step)]
    body = scope.body(op.body.block)

    def run(machine: Machine, frame: Frame) -> None:
        lows, highs, steps = ([int(frame[slot][0, 0]) for slot in slots] for slots in bounds)
        machine.refuse(op, np.array([[min(steps) <= 0]]), "steps by zero or less")
        counts = [max(0, -((low - high) // step)) for low, high, step in zip(lows, highs, steps, strict=True)]
        if not prod(counts):
            return
        *outer, threads = counts if rank > 1 else (*counts, 1)
        launch = LaunchDimensions((outer[-1], outer[0] if rank == 3 else 1, 1), (threads, 1, 1))
        for chunk in chunks(launch):
            inner = machine_for(machine, launch, chunk)
            ids = (inner.block_id(1), inner.block_id(0), inner.thread_id(0))[-max(rank, 2) :][:rank]
            body.run(inner, frame, [at * step + low for at, low, step in zip(ids, lows, steps, strict=True)])

    return run


def machine_for(machine: Machine, launch: LaunchDimensions, chunk: Array) -> Machine:
    """A machine for some blocks of a launch; the buffers of `machine` come first in its memory."""
    memory = Memory(launch, chunk, machine.memory.watchers, list(machine.memory.buffers))
    memory.tell(Watcher.begin)
    return Machine(launch, chunk, memory, machine.max_rounds)
