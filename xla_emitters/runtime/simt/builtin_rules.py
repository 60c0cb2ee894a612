"""`builtin` and `ub`: poison, and the casts that exist between two types of one value while types are being converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

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
from xla_emitters.runtime.simt.llvm_rules import filled
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of, signed
from xla_emitters.runtime.simt.tensor_rules import tensor_strides
from xla_emitters.runtime.simt.vector_rules import vector_bits

RULES = Rules()


@RULES.op(UnrealizedConversionCastOp)
def cast(op: UnrealizedConversionCastOp) -> Kernel:
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        raise Unsupported("a cast of several values to several others", stage="simt")
    return cast_kernel(op.inputs[0].type, op.outputs[0].type)


def cast_kernel(source: Attribute, target: Attribute) -> Kernel:
    """A kernel that converts a value between two representations. raises Unsupported for types that represent different things."""
    if source == target:
        return _unchanged
    if isa(source, IndexType | IntegerType) and isa(target, IndexType | IntegerType):
        return partial(_resized, form_of(source), form_of(target))
    if isa(source, TensorType) and isa(target, TensorType):
        return partial(_as_tensor, target)
    if isa(source, TensorType) and isinstance(target, llvm.LLVMPointerType):
        return _address_of
    if isa(source, ComplexType) and isinstance(target, llvm.LLVMStructType):
        return _parts_of
    if isinstance(source, llvm.LLVMStructType) and isa(target, ComplexType):
        return _complex_of
    return vector_bits(source, target)


def _unchanged(machine: Machine, value: Value) -> Value:
    return value


def _resized(source: Form, target: Form, machine: Machine, value: Array) -> Value:
    return scalars.wrap(target, signed(source, value))


def _as_tensor(target: TensorType[Attribute], machine: Machine, value: Tensor) -> Value:
    return replace(value, shape=target.get_shape(), strides=tensor_strides(target))


def _address_of(machine: Machine, value: Tensor) -> Value:
    return scalars.constant(INDEX, value.buffer.base)


def _parts_of(machine: Machine, value: Array) -> Value:
    return np.real(value), np.imag(value)


def _complex_of(machine: Machine, parts: tuple[Array, Array]) -> Value:
    return from_parts(*parts)


@RULES.op(ub.PoisonOp)
def poison(op: ub.PoisonOp) -> Callable[[Machine], Value]:
    value = filled(op.result.type, scalars.poison)
    return lambda machine: value
