"""`builtin` and `ub`: casts between two types of one value while types are being converted, and poison."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from xdsl.dialects import ub
from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, TensorType, UnrealizedConversionCastOp
from xdsl.ir import Attribute

from xla_emitters.dialects import llvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.llvm import filled
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.scalars import INDEX, form_of, signed
from xla_emitters.runtime.simt.tensor import tensor_strides
from xla_emitters.runtime.simt.vector import vector_bits

RULES = Rules()


@RULES.op(UnrealizedConversionCastOp)
def cast(op: UnrealizedConversionCastOp) -> Kernel:
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        raise Unsupported("a cast of several values to several others", stage="simt")
    return cast_kernel(op.inputs[0].type, op.outputs[0].type)


def cast_kernel(source: Attribute, target: Attribute) -> Kernel:
    """One value as the other type that stands for it. raises Unsupported for types that stand for different things."""
    match source, target:
        case _ if source == target:
            return lambda machine, value: value
        case IndexType() | IntegerType(), IndexType() | IntegerType():
            return lambda machine, value: scalars.wrap(form_of(target), signed(form_of(source), value))
        case TensorType(), TensorType():
            return partial(_as_tensor, target)
        case TensorType(), llvm.LLVMPointerType():
            return lambda machine, value: scalars.constant(INDEX, value.buffer.base)
        case ComplexType(), llvm.LLVMStructType():
            return lambda machine, value: (value.real, value.imag)
        case llvm.LLVMStructType(), ComplexType():
            return lambda machine, value: complex_of(*value)
        case _:
            return vector_bits(source, target)


def _as_tensor(target: TensorType[Attribute], machine: Machine, value: Tensor) -> Value:
    return replace(value, shape=target.get_shape(), strides=tensor_strides(target))


def complex_of(real: Array, imaginary: Array) -> Array:
    """Complex lanes from their parts, infinities and NaNs kept."""
    made = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real.dtype, np.complex64))
    made.real, made.imag = real, imaginary
    return made


@RULES.op(ub.PoisonOp)
def poison(op: ub.PoisonOp) -> Kernel:
    value = filled(op.result.type, scalars.poison)
    return lambda machine: value
