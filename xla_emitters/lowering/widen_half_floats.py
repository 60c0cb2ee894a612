"""Computes bf16 and f16 arithmetic in f32, and conversions to them by code: on a CPU, LLVM would call functions that no library has.

    %z = arith.mulf %x, %y : bf16                         %a = arith.extf %x : bf16 to f32
                                                          %b = arith.extf %y : bf16 to f32
                                                    ->    %c = arith.mulf %a, %b : f32
                                                          %z = arith.truncf %c : f32 to bf16

    %z = arith.truncf %c : f32 to bf16              ->    (bits + 0x7fff + (bits >> 16 & 1)) >> 16, or a quiet NaN
    %z = arith.truncf %c : f64 to bf16, f16         ->    to f32 rounded to odd, then as from f32
    %z = arith.sitofp %i : i32 to bf16              ->    to f64, then as from f64

f32 has more than twice the digits of either type, so sums, products, quotients and roots that are rounded twice are right. Conversions
between f32 and f16 stay: they are instructions. The bf16 instruction of x86 is not used: it treats subnormal numbers as zero.
Source: S. Figueroa, "When is double rounding innocuous?" (1995); `narrow_floats` for rounding to odd.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    ModuleOp,
    f32,
    f64,
    i16,
    i32,
)
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.lowering.narrow_floats import CONVERSIONS, MOVES, rounded_to_odd
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.locations import located_builder

HALVES = (BFloat16Type, Float16Type)


@dataclass(frozen=True)
class WidenHalfFloatsPass(KernelPass):
    """See the file's head. Scalars only: kernels of a CPU have no vectors before LLVM."""

    name = "disc-widen-half-floats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in list(op.walk()):
            if found.name.startswith(("arith.", "math.")) and not isinstance(found, (*MOVES, *CONVERSIONS)):
                _widen(found)
        for found in list(op.walk()):
            if isinstance(found, CONVERSIONS):
                _convert(found)


def _widen(op: Operation) -> None:
    """Inserts conversions around an op on halves."""
    builder = located_builder(InsertPoint.before(op), op)
    for number, operand in enumerate(op.operands):
        if isinstance(operand.type, HALVES):
            op.operands[number] = builder.insert(arith.ExtFOp(operand, f32)).result
    if len(op.results) == 1 and isinstance(own := op.results[0].type, HALVES):
        is_number = isinstance(op, arith.SIToFPOp | arith.UIToFPOp)
        wide = Rewriter.replace_value_with_new_type(op.results[0], f64 if is_number else f32)
        rounded = arith.TruncFOp(wide, own)
        wide.replace_uses_with_if(rounded.result, lambda use: use.operation is not rounded)
        located_builder(InsertPoint.after(op), op).insert(rounded)


def _convert(op: arith.ExtFOp | arith.TruncFOp) -> None:
    """Expands a conversion from or to a half unless it is one instruction."""
    builder = located_builder(InsertPoint.before(op), op)
    source, target = op.input, op.result.type
    match source.type, target:
        case (BFloat16Type() | Float16Type(), Float64Type()):
            op.operands[0] = builder.insert(arith.ExtFOp(source, f32)).result
        case (Float64Type(), BFloat16Type()):
            Rewriter.replace_op(op, [], [_bfloat(builder, rounded_to_odd(builder, source))])
        case (Float32Type(), BFloat16Type()):
            bits = builder.insert(arith.BitcastOp(source, i32)).result
            Rewriter.replace_op(op, [], [_bfloat(builder, bits)])
        case (Float64Type(), Float16Type()):
            op.operands[0] = builder.insert(arith.BitcastOp(rounded_to_odd(builder, source), f32)).result
        case (BFloat16Type(), Float16Type()) | (Float16Type(), BFloat16Type()):
            wide = builder.insert(arith.ExtFOp(source, f32)).result
            made = builder.insert(arith.TruncFOp(wide, target))
            Rewriter.replace_op(op, [], [made.result])
            _convert(made)
        case _:
            pass


def _bfloat(builder: Builder, bits: SSAValue) -> SSAValue:
    """The bf16 nearest to the f32 with these bits, ties to even."""

    def constant(value: int) -> SSAValue:
        return builder.insert(arith.ConstantOp(IntegerAttr(value, i32, truncate_bits=True))).result

    high = builder.insert(arith.ShRUIOp(bits, constant(16))).result
    odd = builder.insert(arith.AndIOp(high, constant(1))).result
    raised = builder.insert(arith.AddiOp(builder.insert(arith.AddiOp(bits, constant(0x7FFF))).result, odd)).result
    rounded = builder.insert(arith.ShRUIOp(raised, constant(16))).result
    sign = builder.insert(arith.AndIOp(high, constant(0x8000))).result
    nan = builder.insert(arith.OrIOp(sign, constant(0x7FC0))).result
    magnitude = builder.insert(arith.AndIOp(bits, constant(0x7FFFFFFF))).result
    is_nan = builder.insert(arith.CmpiOp(magnitude, constant(0x7F800000), "ugt")).result
    code = builder.insert(arith.SelectOp(is_nan, nan, rounded)).result
    return builder.insert(arith.BitcastOp(builder.insert(arith.TruncIOp(code, i16)).result, BFloat16Type())).result
