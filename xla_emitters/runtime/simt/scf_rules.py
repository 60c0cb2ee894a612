"""`scf`: structured control flow under masks.

scf.if      both regions where lanes disagree, one where they agree
scf.for     one round for all lanes while bounds are the same for all; else rounds until the last lane is done
scf.while   rounds until the condition fails for the last lane; a lane's results are those of its own last round
scf.parallel one iteration after the other in each thread, the last index fastest; reductions combine in that order
scf.forall  its iterations are assigned to the threads of each block as XLA does: iteration n (first index fastest) to thread n
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import scf
from xla_emitters.dialects.mlir.scf import DYNAMIC, ForallOp, InParallelOp
from xla_emitters.dialects.mlir.tensor import ParallelInsertSliceOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import FrameSlots, Rules, Step, merged, write
from xla_emitters.runtime.simt.gpu_rules import thread_numbers
from xla_emitters.runtime.simt.machine import Frame, Machine, Tensor, Value
from xla_emitters.runtime.simt.rounds import Rounds
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


@RULES.control(scf.IfOp)
def if_(op: scf.IfOp, scope: FrameSlots) -> Step:
    condition, results = scope.slot(op.cond), scope.slots(op.results)
    then = scope.body(op.true_region.block)
    otherwise = scope.body(op.false_region.block) if op.false_region.blocks else None

    def run(machine: Machine, frame: Frame) -> None:
        skip = partial(otherwise.run, machine, frame, ()) if otherwise else list[Value]
        write(frame, results, machine.choose(frame[condition], partial(then.run, machine, frame, ()), skip))

    return run


@RULES.control(scf.ForOp)
def for_(op: scf.ForOp, scope: FrameSlots) -> Step:
    bounds, inits, results = scope.slots((op.lb, op.ub, op.step)), scope.slots(op.iter_args), scope.slots(op.res)
    body = scope.body(op.body.block)
    form = form_of(op.lb.type)
    reading = partial(scalars.unsigned if "unsignedCmp" in op.properties else scalars.signed, form)

    def run(machine: Machine, frame: Frame) -> None:
        low, high, step = (reading(frame[slot]) for slot in bounds)
        values: list[Value] = [frame[slot] for slot in inits]
        machine.refuse(op, step <= 0, "steps by zero or less")
        first, end, stride = (machine.uniform(bound) for bound in (low, high, step))
        if first is not None and end is not None and stride is not None:
            for number in range(first, end, stride):
                machine.known.begin_round()
                values = body.run(machine, frame, [scalars.constant(form, number), *values])
        else:
            counter = scalars.wrap(form, low)
            while machine.split(unfinished := reading(counter) < high) is not False:
                machine.known.begin_round()
                advance = partial(body.run, machine, frame, [counter, *values])
                values = machine.choose(unfinished, advance, values.copy)
                counter = scalars.wrap(form, reading(counter) + step)
        write(frame, results, values)

    return run


@RULES.control(scf.WhileOp)
def while_(op: scf.WhileOp, scope: FrameSlots) -> Step:
    inits, results = scope.slots(op.arguments), scope.slots(op.res)
    before, after = scope.body(op.before_region.block), scope.body(op.after_region.block)

    def run(machine: Machine, frame: Frame) -> None:
        values: list[Value] = [frame[slot] for slot in inits]
        entered, outcome = machine.active, list[Value]()
        rounds = Rounds(machine, op)
        try:
            while True:
                rounds.begin(values)
                condition, *forwarded = before.run(machine, frame, values)
                lanes = machine.active
                outcome = forwarded if lanes is None or lanes is entered else merged(lanes, forwarded, outcome)
                assert isinstance(condition, np.ndarray)
                parts = machine.split(condition)
                if parts is False:
                    break
                if parts is not True:
                    machine.active = parts[0]
                values = after.run(machine, frame, forwarded)
        finally:
            machine.active = entered
        write(frame, results, outcome)

    return run


@RULES.control(scf.IndexSwitchOp)
def index_switch(op: scf.IndexSwitchOp, scope: FrameSlots) -> Step:
    argument, results = scope.slot(op.arg), scope.slots(op.output)
    default = scope.body(op.default_region.block)
    cases = [
        (int(number), scope.body(region.block))
        for number, region in zip(op.cases.get_values(), op.case_regions, strict=True)
    ]

    def run(machine: Machine, frame: Frame) -> None:
        chosen = frame[argument]

        def from_case(number: int) -> list[Value]:
            if number == len(cases):
                return default.run(machine, frame, ())
            value, body = cases[number]
            return machine.choose(
                chosen == value, partial(body.run, machine, frame, ()), partial(from_case, number + 1)
            )

        write(frame, results, from_case(0))

    return run


@RULES.control(scf.ExecuteRegionOp)
def execute_region(op: scf.ExecuteRegionOp, scope: FrameSlots) -> Step:
    code, results = scope.region(op.region), scope.slots(op.results)
    return lambda machine, frame: write(frame, results, code.run(machine, frame, ()))


@dataclass(frozen=True)
class Extents:
    """The bounds of a loop of several indices: ints, or slots of lanes.

    `is_last_fastest`: iterations are numbered with the last index fastest, as in nested loops; else with the first
    """

    bounds: Sequence[Sequence[int]]
    is_slot: Sequence[Sequence[bool]]
    is_last_fastest: bool

    def ranges(self, machine: Machine, op: Operation, frame: Frame) -> list[tuple[Array, Array, Array]]:
        """Start, step and number of values of each index. raises ExecutionError for a step of zero or less."""
        found: list[tuple[Array, Array, Array]] = []
        for numbers, are_slots in zip(self.bounds, self.is_slot, strict=True):
            low, high, step = (
                frame[number] if is_slot else np.full((1, 1), number, np.int64)
                for number, is_slot in zip(numbers, are_slots, strict=True)
            )
            machine.refuse(op, step <= 0, "steps by zero or less")
            step = np.where(step <= 0, 1, step)
            found.append((low, step, np.maximum(-((low - high) // step), 0)))
        return found

    def indices(self, ranges: Sequence[tuple[Array, Array, Array]], number: Array) -> list[Value]:
        """The indices of iteration `number`."""
        found: list[Value] = []
        for low, step, count in reversed(ranges) if self.is_last_fastest else ranges:
            count = np.maximum(count, 1)
            found.append(number % count * step + low)
            number = number // count
        return found[::-1] if self.is_last_fastest else found

    def run(
        self,
        machine: Machine,
        op: Operation,
        frame: Frame,
        values: list[Value],
        visit: Callable[[Sequence[Value], list[Value]], list[Value]],
        first: Array,
        step: int,
    ) -> list[Value]:
        """The values after those iterations of each lane whose numbers are `first`, `first` + `step` ..."""
        ranges = self.ranges(machine, op, frame)
        iterations = reduce(np.multiply, (count for _, _, count in ranges), np.ones((1, 1), np.int64))
        while machine.split(unfinished := first < iterations) is not False:
            values = machine.choose(unfinished, partial(visit, self.indices(ranges, first), values), values.copy)
            first = first + step
        return values


@RULES.control(scf.ParallelOp)
def parallel(op: scf.ParallelOp, scope: FrameSlots) -> Step:
    """One iteration after the other, in each thread."""
    slots = list(zip(*(scope.slots(bound) for bound in (op.lowerBound, op.upperBound, op.step)), strict=True))
    extents = Extents(slots, [(True, True, True)] * len(slots), is_last_fastest=True)
    inits, results = scope.slots(op.initVals), scope.slots(op.res)
    body = scope.body(op.body.block)
    terminator = op.body.block.last_op
    assert isinstance(terminator, scf.ReduceOp)
    combine = [scope.body(region.block) for region in terminator.reductions]

    def run(machine: Machine, frame: Frame) -> None:
        def visit(indices: Sequence[Value], values: list[Value]) -> list[Value]:
            pairs = zip(combine, values, body.run(machine, frame, indices), strict=True)
            return [reduction.run(machine, frame, [one, other])[0] for reduction, one, other in pairs]

        values: list[Value] = [frame[slot] for slot in inits]
        write(frame, results, extents.run(machine, op, frame, values, visit, np.zeros((1, 1), np.int64), 1))

    return run


@RULES.control(ForallOp)
def forall(op: ForallOp, scope: FrameSlots) -> Step:
    left = [iter(scope.slots(group)) for group in (op.dynamic_lower, op.dynamic_upper, op.dynamic_step)]
    static = zip(op.static_lower.get_values(), op.static_upper.get_values(), op.static_step.get_values(), strict=True)
    are_slots, bounds = list[tuple[bool, ...]](), list[tuple[int, ...]]()
    for numbers in static:
        are_slots.append(tuple(number == DYNAMIC for number in numbers))
        bounds.append(tuple(next(left[n]) if number == DYNAMIC else number for n, number in enumerate(numbers)))
    extents = Extents(bounds, are_slots, is_last_fastest=False)
    outputs, results = scope.slots(op.outputs), scope.slots(op.res)
    body = scope.body(op.body.block)
    put = _insertions(op, scope)

    def run(machine: Machine, frame: Frame) -> None:
        def visit(indices: Sequence[Value], values: list[Value]) -> list[Value]:
            body.run(machine, frame, [*indices, *values])
            return put(frame, values)

        values: list[Value] = [frame[slot] for slot in outputs]
        first, step = thread_numbers(machine), machine.launch.threads
        write(frame, results, extents.run(machine, op, frame, values, visit, first, step))

    return run


def _insertions(op: ForallOp, scope: FrameSlots) -> Callable[[Frame, list[Value]], list[Value]]:
    """The step of `in_parallel`, which replaces shared outs as a whole.

    raises Unsupported for another op, and for a part of an out; when it runs, for a tensor of another buffer
    """
    terminator = op.body.block.last_op
    assert isinstance(terminator, InParallelOp)
    pieces: list[tuple[int, int]] = []
    for piece in terminator.body.block.ops:
        if not isinstance(piece, ParallelInsertSliceOp):
            raise Unsupported(f"{piece.name} in {terminator.name}", stage="simt")
        shape = piece.dest.type.get_shape() if isa(piece.dest.type, TensorType[Attribute]) else ()
        static = (piece.static_offsets, piece.static_sizes, piece.static_strides)
        is_whole = [tuple(n.get_values()) for n in static] == [(0,) * len(shape), shape, (1,) * len(shape)]
        if not is_whole:
            raise Unsupported(f"{piece.name} into a part of a shared out", stage="simt", details=(str(piece),))
        pieces.append((list(op.shared_outs).index(piece.dest), scope.slot(piece.source)))  # pyright: ignore[reportArgumentType]

    def run(frame: Frame, values: list[Value]) -> list[Value]:
        found = list(values)
        for number, slot in pieces:
            source, out = frame[slot], found[number]
            if not isinstance(out, Tensor) or not isinstance(source, Tensor) or source.buffer is not out.buffer:
                raise Unsupported(
                    f"{ParallelInsertSliceOp.name} that replaces a shared out by another tensor", stage="simt"
                )
            found[number] = source
        return found

    return run
