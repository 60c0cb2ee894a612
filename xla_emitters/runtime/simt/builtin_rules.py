"""`builtin` and `ub`: poison, and the casts that exist between two types of one value while types are being converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import ub
from xdsl.dialects.builtin import ComplexType, IndexType, IntegerType, TensorType, UnrealizedConversionCastOp
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.complex_meaning import from_parts
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import Kernel, Rules
from xla_emitters.runtime.simt.llvm_rules import constantly
from xla_emitters.runtime.simt.machine import Machine, Value
from xla_emitters.runtime.simt.scalars import INDEX, form_of, signed
from xla_emitters.runtime.simt.tensor_rules import tensor_strides
from xla_emitters.runtime.simt.vector_rules import vector_bits

RULES = Rules()


@RULES.op(UnrealizedConversionCastOp)
def cast(op: UnrealizedConversionCastOp) -> Kernel:
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        raise Unsupported("a cast of several values to several others", stage="simt")
    return cast_kernel(op.inputs[0].type, op.outputs[0].type)


def cast_kernel(source: Attribute, target: Attribute) -> Callable[[Machine, Any], Value]:
    """A kernel that converts a value between two representations. raises Unsupported for types that represent different things."""
    if source == target:
        return lambda machine, value: value
    if isa(source, IndexType | IntegerType) and isa(target, IndexType | IntegerType):
        of, to = form_of(source), form_of(target)
        return lambda machine, value: scalars.wrap(to, signed(of, value))
    if isa(source, TensorType) and isa(target, TensorType):
        shape, strides = target.get_shape(), tensor_strides(target)
        return lambda machine, value: replace(value, shape=shape, strides=strides)
    if isa(source, TensorType) and isinstance(target, llvm.LLVMPointerType):
        return lambda machine, value: scalars.constant(INDEX, value.buffer.base)
    if isa(source, ComplexType) and isinstance(target, llvm.LLVMStructType):
        return _parts
    if isinstance(source, llvm.LLVMStructType) and isa(target, ComplexType):
        return lambda machine, parts: from_parts(*parts)
    return vector_bits(source, target)


def _parts(machine: Machine, value: Array) -> Value:
    return np.real(value), np.imag(value)


RULES.op(ub.PoisonOp)(partial(constantly, fill=scalars.poison))
