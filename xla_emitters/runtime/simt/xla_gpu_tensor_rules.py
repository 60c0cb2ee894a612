"""`xla_gpu`'s ops on whole tensors: guarded elements, shared memory, waiting.

xla_gpu.predicated_extract %t[%i] if %c else %f      lanes where the condition fails access no memory: their index may be anything
xla_gpu.allocate_shared : tensor<32x33xf32>          one instance per block; one allocation however often the op runs, as on the GPU
xla_gpu.sync_threads %t                              checks that whole blocks reach it, and returns the tensors
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from xla_emitters.dialects import xla_gpu
from xla_emitters.dialects.isa import isa
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt.code import Rules, nothing
from xla_emitters.runtime.simt.gpu_rules import meet
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Space
from xla_emitters.runtime.simt.scalars import form_of
from xla_emitters.runtime.simt.tensor_rules import element_of, tensor_strides, with_element

RULES = Rules()

SHARED_ALIGNMENT = 16
"""Bytes: a vector of four f32, the widest single access."""


@RULES.kernel(xla_gpu.PredicatedInsertOp)
def predicated_insert(
    op: xla_gpu.PredicatedInsertOp, machine: Machine, scalar: Array, target: Tensor, *operands: Array
) -> Value:
    *indices, condition = operands
    return machine.choose(condition, lambda: [with_element(machine, op, target, indices, scalar)], lambda: [target])[0]


@RULES.kernel(xla_gpu.PredicatedExtractOp)
def predicated_extract(op: xla_gpu.PredicatedExtractOp, machine: Machine, source: Tensor, *operands: Array) -> Value:
    *indices, condition, fallback = operands
    return machine.choose(condition, lambda: [element_of(machine, op, source, indices)], lambda: [fallback])[0]


@RULES.op(xla_gpu.AllocateSharedOp)
def allocate_shared(op: xla_gpu.AllocateSharedOp) -> Callable[[Machine], Tensor]:
    tensor_type = op.result.type
    assert isa(tensor_type, TensorType[Attribute])
    form, shape, strides = form_of(tensor_type), tensor_type.get_shape(), tensor_strides(tensor_type)
    name, size = f"the shared {tensor_type}", math.prod(shape) * form.size

    def run(machine: Machine) -> Tensor:
        memory = machine.memory
        buffer = memory.once(op, lambda: memory.allocate(name, Space.SHARED, size, SHARED_ALIGNMENT))
        return machine.tensor(buffer, form, shape, strides)

    return run


@RULES.kernel(xla_gpu.SyncThreadsOp)
def sync_threads(op: xla_gpu.SyncThreadsOp, machine: Machine, *tensors: Tensor) -> Value | list[Value]:
    meet(machine, op)
    for tensor in tensors:
        machine.check_newest(op, tensor)
    return tensors[0] if len(tensors) == 1 else list(tensors)


# Kernels run one after the other here, so there is none to wait for.
RULES.kernel(xla_gpu.PdlWaitOp, xla_gpu.PdlLaunchDependentsOp)(nothing)
