"""Computes bf16 and f16 arithmetic in f32, and conversions by code: on a CPU, LLVM would call functions that no library has.

    %z = arith.mulf %x, %y : bf16                         %a = arith.extf %x : bf16 to f32
                                                          %b = arith.extf %y : bf16 to f32
                                                    ->    %c = arith.mulf %a, %b : f32
                                                          %z = arith.truncf %c : f32 to bf16

    %a = arith.extf %x : bf16 to f32                ->    bits << 16
    %z = arith.truncf %c : f32 to bf16              ->    (bits + 0x7fff + (bits >> 16 & 1)) >> 16, or a quiet NaN
    %z = arith.truncf %c : f64 to bf16, f16         ->    to f32 rounded to odd, then as from f32
    %z = arith.sitofp %i : i32 to bf16              ->    to f64, then as from f64

f32 has more than twice the digits of either type, so sums, products, quotients and roots that are rounded twice are right. Conversions
between f32 and f16 stay where they are instructions (`f16` is false); else they are code too (`narrow_floats`). A type without instructions
is i16 after this pass: LLVM would make max(extf x, extf y) a max of bf16, and a select a select of f32, and round by a function. The bf16
instruction of x86 is not used: it treats subnormal numbers as zero.
Source: S. Figueroa, "When is double rounding innocuous?" (1995); `narrow_floats` for rounding to odd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ContainerType,
    Float16Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    f32,
    f64,
    i16,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.locations import located_builder
from xla_emitters.dialects.mlir import arith, llvm
from xla_emitters.dtypes import dtype_of
from xla_emitters.lowering.narrow_floats import (
    CONVERSIONS,
    MOVES,
    Integers,
    compute_wider,
    narrow,
    rounded_to_odd,
    widen,
)
from xla_emitters.rewrite.kernel_pass import KernelPass

HALVES = (BFloat16Type, Float16Type)


@dataclass(frozen=True)
class DiscWidenHalfFloatsPass(KernelPass):
    """See the file's head. Scalars only: kernels of a CPU have no vectors before LLVM.

    f16     conversions between f32 and f16 are code, for a CPU without instructions for them
    """

    name = "disc-widen-half-floats"

    f16: bool = False

    def apply_to(self, op: ModuleOp) -> None:
        for found in op.walk():
            self._refuse_arrays(found)
        for found in list(op.walk()):
            if found.name.startswith(("arith.", "math.")) and not isinstance(found, (*MOVES, *CONVERSIONS)):
                is_number = isinstance(found, arith.SIToFPOp | arith.UIToFPOp)
                compute_wider(found, _is_half, f64 if is_number else f32)
        for found in list(op.walk()):
            if isinstance(found, CONVERSIONS):
                self._convert(found)
        for found in list(op.walk()):
            self._hold_as_bits(found)

    def _refuse_arrays(self, op: Operation) -> None:
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*op.results, *arguments):
            if not isinstance(value.type, ContainerType):
                continue
            element = cast("ContainerType[Attribute]", value.type).get_element_type()
            if self._bits(element) is not element:
                raise self.refuse(op, f"{value.type} is no scalar", "tensors and buffers are pointers before this pass")

    def _bits(self, held: Attribute) -> Attribute:
        """A type of values, functions or memory, with integers in place of halves without instructions."""
        match held:
            case BFloat16Type():
                return i16
            case Float16Type() if self.f16:
                return i16
            case FunctionType():
                return FunctionType.from_lists(*(list(map(self._bits, types)) for types in (held.inputs, held.outputs)))
            case llvm.LLVMArrayType():
                return llvm.LLVMArrayType(held.size, self._bits(held.type))
            case _:
                return held

    def _hold_as_bits(self, op: Operation) -> None:
        """Gives an op, and its blocks, integers in place of halves without instructions."""
        for name, value in op.properties.items():
            if isa(value, FloatAttr[AnyFloat]):
                if self._bits(value.type) is not value.type:
                    number = np.float64(value.value.data).astype(dtype_of(value.type).numpy)
                    op.properties[name] = IntegerAttr(int(number.view(np.int16)), i16)
            else:
                op.properties[name] = self._bits(value)
        for value in (
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ):
            if (held := self._bits(value.type)) is not value.type:
                Rewriter.replace_value_with_new_type(value, held)
        if isinstance(op, arith.BitcastOp) and op.input.type == op.result.type:
            Rewriter.replace_op(op, [], [op.input])

    def _convert(self, op: arith.ExtFOp | arith.TruncFOp) -> None:
        """Expands a conversion from or to a half unless it is one instruction."""
        builder = located_builder(InsertPoint.before(op), op)
        source, target = op.input, op.result.type
        if isinstance(source.type, HALVES):
            source = self._widened(builder, source)
        if isinstance(target, HALVES):
            source = self._narrowed(builder, source, target)
        elif source is not op.input and isinstance(target, Float64Type):
            source = builder.insert(arith.ExtFOp(source, f64)).result
        if source is not op.input:
            Rewriter.replace_op(op, [], [source])

    def _widened(self, builder: Builder, x: SSAValue) -> SSAValue:
        """A half as f32."""
        if isinstance(x.type, BFloat16Type):
            bits, integers = builder.insert(arith.BitcastOp(x, i16)).result, Integers(builder)
            high = builder.insert(arith.ExtUIOp(bits, i32)).result
            return integers.as_float(integers.shift_left(high, 16))
        return widen(builder, x) if self.f16 else builder.insert(arith.ExtFOp(x, f32)).result

    def _narrowed(self, builder: Builder, x: SSAValue, target: BFloat16Type | Float16Type) -> SSAValue:
        """The half nearest to f32 or f64, ties to even."""
        if isinstance(target, Float16Type) and self.f16:
            return narrow(builder, x, target)
        if isinstance(target, BFloat16Type):
            is_wide = isinstance(x.type, Float64Type)
            return _bfloat(
                builder, rounded_to_odd(builder, x) if is_wide else builder.insert(arith.BitcastOp(x, i32)).result
            )
        if isinstance(x.type, Float64Type):
            x = builder.insert(arith.BitcastOp(rounded_to_odd(builder, x), f32)).result
        return builder.insert(arith.TruncFOp(x, target)).result


def _is_half(value_type: Attribute) -> bool:
    return isinstance(value_type, HALVES)


def _bfloat(builder: Builder, bits: SSAValue) -> SSAValue:
    """The bf16 nearest to the f32 with these bits, ties to even."""
    integers = Integers(builder)
    high = integers.shift_right(bits, 16)
    odd = integers.and_(high, 1)
    rounded = integers.shift_right(integers.add(integers.add(bits, 0x7FFF), odd), 16)
    nan = integers.or_(integers.and_(high, 0x8000), integers.constant(0x7FC0))
    code = integers.select("ugt", integers.and_(bits, 0x7FFFFFFF), 0x7F800000, nan, rounded)
    return builder.insert(arith.BitcastOp(builder.insert(arith.TruncIOp(code, i16)).result, BFloat16Type())).result
