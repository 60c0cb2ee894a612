"""`scf`: structured control flow under masks.

scf.if      both regions where lanes disagree, one where they agree
scf.for     one round for all lanes while bounds are the same for all; else rounds until the last lane is done
scf.while   rounds until the condition fails for the last lane; a lane's results are those of its own last round
scf.forall  its iterations are dealt to the threads of each block, as XLA maps them: iteration n (first index fastest) to thread n
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from xla_emitters.dialects.scf import ForallOp, InParallelOp
from xla_emitters.dialects.tensor import ParallelInsertSliceOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Rules, Scope, Step, merged, write
from xla_emitters.runtime.simt.gpu import thread_numbers
from xla_emitters.runtime.simt.machine import Frame, Machine, Tensor, Value
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


@RULES.control(scf.IfOp)
def if_(op: scf.IfOp, scope: Scope) -> Step:
    condition, results = scope.slot(op.cond), scope.slots(op.results)
    then = scope.body(op.true_region.block)
    otherwise = scope.body(op.false_region.block) if op.false_region.blocks else None

    def run(machine: Machine, frame: Frame) -> None:
        skip = partial(otherwise.run, machine, frame, ()) if otherwise else list[Value]
        write(frame, results, machine.choose(frame[condition], partial(then.run, machine, frame, ()), skip))

    return run


@RULES.control(scf.ForOp)
def for_(op: scf.ForOp, scope: Scope) -> Step:
    bounds, inits, results = scope.slots((op.lb, op.ub, op.step)), scope.slots(op.iter_args), scope.slots(op.res)
    body = scope.body(op.body.block)
    form = form_of(op.lb.type)

    def run(machine: Machine, frame: Frame) -> None:
        low, high, step = (frame[slot] for slot in bounds)
        values: list[Value] = [frame[slot] for slot in inits]
        machine.refuse(op, step <= 0, "steps by zero or less")
        first, end, stride = (machine.uniform(bound) for bound in (low, high, step))
        if first is not None and end is not None and stride is not None:
            for number in range(first, end, stride):
                values = body.run(machine, frame, [scalars.constant(form, number), *values])
        else:
            counter = low
            while machine.split(unfinished := counter < high) is not False:
                advance = partial(body.run, machine, frame, [counter, *values])
                values = machine.choose(unfinished, advance, values.copy)
                counter = scalars.wrap(form, counter + step)
        write(frame, results, values)

    return run


@RULES.control(scf.WhileOp)
def while_(op: scf.WhileOp, scope: Scope) -> Step:
    inits, results = scope.slots(op.arguments), scope.slots(op.res)
    before, after = scope.body(op.before_region.block), scope.body(op.after_region.block)

    def run(machine: Machine, frame: Frame) -> None:
        values: list[Value] = [frame[slot] for slot in inits]
        entered, outcome = machine.active, list[Value]()
        try:
            while True:
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
def index_switch(op: scf.IndexSwitchOp, scope: Scope) -> Step:
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
def execute_region(op: scf.ExecuteRegionOp, scope: Scope) -> Step:
    code, results = scope.region(op.region), scope.slots(op.results)
    return lambda machine, frame: write(frame, results, code.run(machine, frame, ()))


@RULES.control(ForallOp)
def forall(op: ForallOp, scope: Scope) -> Step:
    if op.dynamic_lower or op.dynamic_upper or op.dynamic_step:
        raise Unsupported("scf.forall with bounds that are no constants", stage="simt")
    bounds = zip(op.static_lower.get_values(), op.static_upper.get_values(), op.static_step.get_values(), strict=True)
    ranges = [range(*numbers) for numbers in bounds]
    iterations = math.prod(map(len, ranges))
    outputs, results = scope.slots(op.outputs), scope.slots(op.res)
    body = scope.body(op.body.block)
    written = _written_outs(op, scope)

    def run(machine: Machine, frame: Frame) -> None:
        values: list[Value] = [frame[slot] for slot in outputs]
        for first in range(0, iterations, machine.launch.threads):
            number = thread_numbers(machine) + first

            def visit(number: Array = number, values: list[Value] = values) -> list[Value]:
                indices: list[Value] = []
                for values_of_index in ranges:
                    indices.append(number % len(values_of_index) * values_of_index.step + values_of_index.start)
                    number = number // len(values_of_index)
                body.run(machine, frame, [*indices, *values])
                return [_newest(op, values[out], frame[slot]) for out, slot in enumerate(written)]

            values = machine.choose(number < iterations, visit, values.copy)
        write(frame, results, values)

    return run


def _written_outs(op: ForallOp, scope: Scope) -> list[int]:
    """Per shared out the slot of the tensor that replaces it. raises Unsupported for an insertion of less than a whole tensor."""
    slots = list(scope.slots(op.shared_outs))
    terminator = op.body.block.last_op
    assert isinstance(terminator, InParallelOp)
    for piece in terminator.body.block.ops:
        if not isinstance(piece, ParallelInsertSliceOp):
            raise Unsupported(f"{piece.name} in {terminator.name}", stage="simt")
        shape = piece.dest.type.get_shape() if isa(piece.dest.type, TensorType[Attribute]) else ()
        static = (piece.static_offsets, piece.static_sizes, piece.static_strides)
        if [tuple(numbers.get_values()) for numbers in static] != [(0,) * len(shape), shape, (1,) * len(shape)]:
            raise Unsupported(f"{piece.name} of less than the whole tensor", stage="simt", details=(str(piece),))
        slots[list(op.shared_outs).index(piece.dest)] = scope.slot(piece.source)  # pyright: ignore[reportArgumentType]
    return slots


def _newest(op: ForallOp, out: Value, source: Value) -> Value:
    """The tensor that a thread puts in the place of a shared out: the same, written to."""
    if not isinstance(out, Tensor) or not isinstance(source, Tensor) or source.buffer is not out.buffer:
        raise Unsupported(f"{op.name} that puts another tensor into a shared out", stage="simt")
    return source
