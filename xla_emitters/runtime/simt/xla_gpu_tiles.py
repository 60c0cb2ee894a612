"""`xla_gpu`'s tiles: vectors whose elements are spread over threads, and reductions of a thread's tensors.

    %m = xla_gpu.materialize @fn(%in) at #map(%i) : ... -> !xla_gpu.indexed_vector<32x64xf32, #held>
    %t = xla_gpu.insert %m(%i) into %dst at #map : ...

A thread's part of an indexed vector is a tuple with one element per point of the map's range variables, the last fastest. Points outside
the map's domain are poison and are not inserted.
Source: docs/reference/1 1.1-1.3; docs/reference/2 3.3 "xla-lower-xla-to-scf".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.indexing import IndexingMap
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel, Rules, Scope, Step, write
from xla_emitters.runtime.simt.machine import Frame, Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Space, row_major_strides
from xla_emitters.runtime.simt.scalars import BOOL, INDEX, form_of
from xla_emitters.runtime.simt.tensor import element_of, store, with_element
from xla_emitters.runtime.simt.xla_gpu import as_lanes, in_bounds

RULES = Rules()


def points(index_map: IndexingMap, dims: list[Array]) -> Iterator[tuple[Array, list[Array]]]:
    """For each point of the range variables: the lanes for which it is in the map's domain, and the map's results."""
    inside = in_bounds(index_map, dims)
    for numbers in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in index_map.range_vars)):
        symbols = [scalars.constant(INDEX, number) for number in numbers]
        in_domain = as_lanes(BOOL, inside & index_map.constraints_satisfied(dims, symbols))
        yield in_domain, [as_lanes(INDEX, result) for result in index_map.evaluate(dims, symbols)]


@RULES.control(xla_gpu.MaterializeOp)
def materialize(op: xla_gpu.MaterializeOp, scope: Scope) -> Step:
    vector = op.result.type
    assert isinstance(vector, xla_gpu.IndexedVectorType)
    inputs, indices, result = scope.slots(op.input), scope.slots(op.indices), scope.slot(op.result)
    callee, poison = scope.compiler.function(op.callee), scalars.poison(form_of(vector.element_type))

    def run(machine: Machine, frame: Frame) -> None:
        given: list[Value] = [frame[slot] for slot in inputs]
        elements: list[Value] = []
        for in_domain, results in points(op.map, [frame[slot] for slot in indices]):

            def call(results: list[Array] = results) -> list[Value]:
                return callee.call(machine, [*given, *results])

            elements += machine.choose(in_domain, call, lambda: [poison])
        frame[result] = tuple(elements)

    return run


@RULES.op(xla_gpu.InsertOp)
def insert(op: xla_gpu.InsertOp) -> Kernel:
    vector = op.source.type
    assert isinstance(vector, xla_gpu.IndexedVectorType)
    held = vector.map.data

    def run(machine: Machine, source: tuple[Array, ...], *operands: Array | Tensor) -> Value:
        *indices, dest = operands
        dims = [index for index in indices if isinstance(index, np.ndarray)]
        for element, (in_domain, results) in zip(source, points(held, dims), strict=True):
            target = [as_lanes(INDEX, number) for number in op.map.evaluate(results, [])]

            def put(element: Array = element, target: list[Array] = target, dest: Value = dest) -> list[Value]:
                assert isinstance(dest, Tensor)
                return [with_element(machine, op, dest, target, element)]

            def keep(dest: Value = dest) -> list[Value]:
                return [dest]

            (dest,) = machine.choose(in_domain, put, keep)
        return dest

    return run


@RULES.control(xla_gpu.ReduceOp)
def reduce(op: xla_gpu.ReduceOp, scope: Scope) -> Step:
    combiner = scope.compiler.function(op.combiner)
    inputs, inits, results = scope.slots(op.inputs), scope.slots(op.inits), scope.slots(op.results)
    (shape,) = {tensor_type.get_shape() for tensor_type in op.inputs.types if isa(tensor_type, TensorType[Attribute])}
    kept = [dim for dim in range(len(shape)) if dim not in op.dimensions]
    reduced_shape = [shape[dim] for dim in kept]
    # For each element of the result, in row-major order, the input elements that it combines, in row-major order too.
    order = [*kept, *op.dimensions]
    rows = (
        np.moveaxis(np.indices(shape), 0, -1)
        .transpose(*order, len(shape))
        .reshape(math.prod(reduced_shape), -1, len(shape))
    )
    forms = [form_of(init.type) for init in op.inits]

    def run(machine: Machine, frame: Frame) -> None:
        tensors: list[Tensor] = [frame[slot] for slot in inputs]
        made: list[Value] = []
        for form in forms:
            buffer = machine.memory.allocate(op.name, Space.PRIVATE, len(rows) * form.size, alignment=16)
            made.append(machine.tensor(buffer, form, reduced_shape, row_major_strides(reduced_shape)))
        for number, row in enumerate(rows):
            values: list[Value] = [frame[slot] for slot in inits]
            for place in row:
                position = [scalars.constant(INDEX, int(index)) for index in place]
                values = combiner.call(machine, [*values, *(element_of(machine, op, t, position) for t in tensors)])
            for tensor, value in zip(made, values, strict=True):
                if not isinstance(tensor, Tensor) or not isinstance(value, np.ndarray):
                    raise Unsupported(f"{op.name} of values that are not scalars", stage="simt")
                store(machine, op, tensor, np.full(machine.shape, number, np.int64), value)
        write(frame, results, made)

    return run
