"""`xla_gpu`: loops over an indexing map's range variables, maps applied to lanes, calls, combining across a warp.

    xla_gpu.loop (%th_x, %bl_x)[%v] -> (%i, %j) in #map iter_args(%t = %init)
    xla_gpu.shuffle_reduce(%a) to 16 combiner=@add : f32            the shuffles down by 16, 8, 4, 2, 1 to which it is lowered

A loop has one round per point of the range variables, the last fastest. A lane takes part where the map's constraints hold and its dims
are in their bounds; elsewhere it keeps its iter args.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.xla_gpu.xla import WorkgroupIdOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import FrameSlots, Kernel, Rules, Step, write
from xla_emitters.runtime.simt.func_rules import call_step
from xla_emitters.runtime.simt.gpu_rules import (
    WARP_SIZE,
    check_sources,
    check_warps,
    exchanged,
    lane_numbers,
    position_kernel,
)
from xla_emitters.runtime.simt.machine import Frame, Machine, Value
from xla_emitters.runtime.simt.scalars import BOOL, INDEX, Form, form_of

RULES = Rules()


def as_lanes(form: Form, value: Array | int) -> Array:
    """A number or an array as lanes: a map's result is a plain number if it has no variables."""
    return value if isinstance(value, np.ndarray) else scalars.constant(form, value)


def in_bounds(op: xla_gpu.LoopOp, dims: Sequence[Array]) -> Array:
    """The lanes whose dims are all in the bounds of the map's variables; none for a map that is known to be empty."""
    inside = as_lanes(BOOL, not op.map.is_known_empty)
    for dim, variable in zip(dims, op.map.dims, strict=True):
        inside = inside & (dim >= variable.bounds.lower) & (dim <= variable.bounds.upper)
    return inside


@RULES.op(xla_gpu.ApplyIndexingOp)
def apply_indexing(op: xla_gpu.ApplyIndexingOp) -> Kernel:
    index_map, dims = op.map, op.map.num_dims

    def run(machine: Machine, *operands: Array) -> Value | list[Value]:
        results: list[Value] = [
            as_lanes(INDEX, result) for result in index_map.evaluate(operands[:dims], operands[dims:])
        ]
        return results[0] if len(results) == 1 else results

    return run


@RULES.control(xla_gpu.LoopOp)
def loop(op: xla_gpu.LoopOp, scope: FrameSlots) -> Step:
    index_map = op.map
    if index_map.runtime_vars:
        raise Unsupported("xla_gpu.loop over a map with runtime variables", stage="simt")
    dims, inits, results = scope.slots(op.dims), scope.slots(op.inits), scope.slots(op.results)
    body = scope.body(op.body.block)
    ranges = [range(variable.bounds.lower, variable.bounds.upper + 1) for variable in index_map.range_vars]

    def run(machine: Machine, frame: Frame) -> None:
        values: list[Value] = [frame[slot] for slot in inits]
        point: list[Array] = [frame[slot] for slot in dims]
        inside = in_bounds(op, point)
        for numbers in product(*ranges):
            machine.known.begin_round()
            symbols = [scalars.constant(INDEX, number) for number in numbers]
            in_domain = inside & index_map.constraints_satisfied(point, symbols)

            def visit(symbols: list[Array] = symbols, values: list[Value] = values) -> list[Value]:
                indices = [as_lanes(INDEX, result) for result in index_map.evaluate(point, symbols)]
                return body.run(machine, frame, [*symbols, *indices, *values])

            values = machine.choose(in_domain, visit, values.copy)
        write(frame, results, values)

    return run


@RULES.control(xla_gpu.PureCallOp)
def pure_call(op: xla_gpu.PureCallOp, scope: FrameSlots) -> Step:
    return call_step(scope, op.callee, op.operands, op.results)


@RULES.op(WorkgroupIdOp)
def workgroup_id(op: WorkgroupIdOp) -> Callable[[Machine], Array]:
    return position_kernel(op, "block_id", op.dimension.word.data)


@RULES.control(xla_gpu.ShuffleReduceOp)
def shuffle_reduce(op: xla_gpu.ShuffleReduceOp, scope: FrameSlots) -> Step:
    combiner = scope.compiler.function(op.combiner)
    forms = [form_of(argument.type) for argument in op.arguments]
    inputs, results = scope.slots(op.arguments), scope.slots(op.results)
    distances = [op.max_distance >> step for step in range(op.max_distance.bit_length())]

    def run(machine: Machine, frame: Frame) -> None:
        lane = lane_numbers(machine)
        check_warps(machine, op, np.ones((1, 1), np.bool_))
        values: list[Value] = [frame[slot] for slot in inputs]
        for distance in distances:
            source = lane + distance
            valid = source < WARP_SIZE
            check_sources(machine, op, source, valid)
            others = [exchanged(machine, *pair, source, valid) for pair in zip(forms, values, strict=True)]
            values = combiner.call(machine, [*values, *others])
        write(frame, results, values)

    return run
