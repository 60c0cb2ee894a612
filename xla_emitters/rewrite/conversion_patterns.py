"""Canonical form of conversions between integers and floats, and of what is compared after one. As MLIR's canonicalizer.

    %1 = arith.extui %0 : i1 to i8
    %2 = arith.extsi %1 : i8 to i32             ->   %2 = arith.extui %0 : i1 to i32
    %3 = arith.sitofp %1 : i8 to f32            ->   %3 = arith.uitofp %0 : i1 to f32
    %4 = arith.cmpf ogt, %3, 0.0 : f32          ->   %4 = arith.cmpi ugt, %0, false : i1

A comparison of a converted integer with a constant is left alone where rounding of the integer could change its answer.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import FloatAttr, i1
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import WIDE_FLOATS
from xla_emitters.rewrite.folders import constant_op, constant_value, integer_attr, width

# Bits that hold a value without rounding, the implicit one included; the exponent of the largest value.
_FLOATS = {"bf16": (8, 127), "f16": (11, 15), "f32": (24, 127), "f64": (53, 1023)}
# cmpf's predicates oeq ogt oge olt ole one, by number; 7 more for ueq to une.
_ORDERED, _UNORDERED, _MIXED_TO_ORDERED = 7, 14, 7
_FALSE, _TRUE = 0, 15
_EQ, _GT, _GE, _LT, _LE, _NE = range(1, 7)
_SIGNED = {_EQ: 0, _GT: 4, _GE: 5, _LT: 2, _LE: 3, _NE: 1}
_UNSIGNED = {_EQ: 0, _GT: 8, _GE: 9, _LT: 6, _LE: 7, _NE: 1}


class ExtensionOfExtension(RewritePattern):
    """`extui(extui x)` → `extui x`; `extsi(extsi x)` → `extsi x`; `extsi(extui x)` → `extui x`, whose sign bit is 0."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if isinstance(inner, arith.ExtUIOp) or (isinstance(inner, arith.ExtSIOp) and isinstance(op, arith.ExtSIOp)):
            rewriter.replace(op, type(inner).create(operands=[inner.input], result_types=[op.results[0].type]))


class FloatOfExtension(RewritePattern):
    """`uitofp(extui x)` → `uitofp x`; `sitofp(extsi x)` → `sitofp x`; `sitofp(extui x)` → `uitofp x`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        if isinstance(inner, arith.ExtUIOp):
            kind = arith.UIToFPOp
        elif isinstance(inner, arith.ExtSIOp) and isinstance(op, arith.SIToFPOp):
            kind = arith.SIToFPOp
        else:
            return
        rewriter.replace(op, kind.create(operands=[inner.input], result_types=[op.results[0].type]))


class FloatOfIntegerCompared(RewritePattern):
    """`cmpf ogt, (uitofp %x), 2.5` → `cmpi ugt, %x, 2`; a constant outside of the integer's range decides the comparison."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.CmpfOp, rewriter: PatternRewriter) -> None:
        converted, constant = op.lhs.owner, constant_value(op.rhs)
        if not isinstance(converted, arith.SIToFPOp | arith.UIToFPOp) or not isinstance(constant, FloatAttr):
            return
        kind, number, is_signed = converted.input.type, constant.value.data, isinstance(converted, arith.SIToFPOp)
        bits = width(kind)
        if bits is None or not isinstance(op.rhs.type, WIDE_FLOATS) or math.isnan(number):
            return
        if not _is_compared_exactly(bits - is_signed, op.rhs.type.name, number, is_signed):
            return
        found = _integer_comparison(op.predicate.value.data, number, bits, is_signed)
        if isinstance(found, bool):
            rewriter.replace(op, constant_op(integer_attr(found, i1)))
        else:
            bound = constant_op(integer_attr(found[1], kind))
            predicate = (_SIGNED if is_signed else _UNSIGNED)[found[0]]
            rewriter.replace(op, (bound, arith.CmpiOp(converted.input, bound, predicate)))


def _is_compared_exactly(bits: int, name: str, number: float, is_signed: bool) -> bool:
    """Whether rounding to the float type moves no integer of `bits` bits, and a sign, from one side of `number` to the other or onto it."""
    significand, largest_exponent = _FLOATS[name]
    if bits + is_signed <= significand:
        return True
    if math.isinf(number):
        return largest_exponent >= bits
    # An integer that is rounded is at least 2^significand, before and after; none becomes larger than 2^bits.
    exponent = math.frexp(number)[1] - 1 if number else -1
    return exponent < significand or exponent > bits


def _integer_comparison(predicate: int, number: float, bits: int, is_signed: bool) -> bool | tuple[int, int]:
    """`x predicate number` for integers x: its answer for each of them, or one of _EQ to _NE and an integer to compare with."""
    if predicate in (_FALSE, _UNORDERED):
        return False
    if predicate in (_TRUE, _ORDERED):
        return True
    if predicate > _ORDERED:
        predicate -= _MIXED_TO_ORDERED
    smallest = -(1 << (bits - 1)) if is_signed else 0
    largest = smallest + (1 << bits) - 1
    if number > largest:
        return predicate in (_NE, _LT, _LE)
    if number < smallest:
        return predicate in (_NE, _GT, _GE)
    whole = math.trunc(number)
    if whole == number:
        return predicate, whole
    if predicate in (_EQ, _NE):
        return predicate == _NE
    if predicate in (_GT, _GE):
        return _GE if number < 0 else _GT, whole
    return _LT if number < 0 else _LE, whole


CONVERSION_PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    arith.ExtUIOp: (ExtensionOfExtension(),),
    arith.ExtSIOp: (ExtensionOfExtension(),),
    arith.UIToFPOp: (FloatOfExtension(),),
    arith.SIToFPOp: (FloatOfExtension(),),
    arith.CmpfOp: (FloatOfIntegerCompared(),),
}
