"""The `llvm` dialect's intrinsics on vectors: reductions, parts, and step vectors.

    %s = "llvm.intr.vector.reduce.add"(%w) : (vector<4xi32>) -> i32
    %m = llvm.intr.vector.reduce.fmax(%v) : (vector<4xf32>) -> f32
    %h = llvm.intr.vector.extract %v[2] : vector<2xf32> from vector<4xf32>
    %n = llvm.intr.stepvector : vector<4xi32>

They are read, kept and executed, never emitted.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    I1,
    AnyFloatConstr,
    IntegerAttr,
    IntegerType,
    SignlessIntegerConstraint,
    VectorType,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMStructType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, VarConstraint, base, eq, operand_def, prop_def, result_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.llvm.values import NO_FLAGS
from xla_emitters.dialects.mlir.op_rows import AS_FUNCTION, GENERIC_FORM, op_of_row

_PURE = (Pure(),)

# ---- reductions -------------------------------------------------------------------------------------------------------------------------

_F = VarConstraint("T", AnyFloatConstr)
_N = VarConstraint("T", SignlessIntegerConstraint)

# Sums and products of floats, which have an order and a start value, are xDSL's.
_REDUCTIONS = (
    *(
        op_of_row(
            f"llvm.intr.vector.reduce.{name}",
            GENERIC_FORM,
            traits=_PURE,
            arg=operand_def(VectorType.constr(_N)),
            res=result_def(_N),
        )
        for name in ("add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin")
    ),
    *(
        op_of_row(
            f"llvm.intr.vector.reduce.{name}",
            AS_FUNCTION,
            properties={"fastmathFlags": prop_def(FastMathAttr, default_value=NO_FLAGS)},
            traits=_PURE,
            arg=operand_def(VectorType.constr(_F)),
            res=result_def(_F),
        )
        for name in ("fmax", "fmin", "fmaximum", "fminimum")
    ),
)

# ---- parts ------------------------------------------------------------------------------------------------------------------------------


def _shape(vector_type: Attribute) -> tuple[Attribute, int]:
    """The element type and the number of elements of a vector."""
    assert isa(vector_type, VectorType[Attribute])
    return vector_type.element_type, vector_type.element_count()


def _verify_part(part: Attribute, whole: Attribute, position: int) -> None:
    """raises VerifyException unless `part` is inside `whole`, at a multiple of its own length"""
    (element, count), (of, available) = _shape(part), _shape(whole)
    if element != of or position % count or not 0 <= position <= available - count:
        raise VerifyException(f"{part} is not a part of {whole} at position {position}")


def _verify_extract(op: Any) -> None:
    _verify_part(op.res.type, op.srcvec.type, op.pos.value.data)


def _verify_insert(op: Any) -> None:
    _verify_part(op.srcvec.type, op.dstvec.type, op.pos.value.data)


def _verify_interleave(op: Any) -> None:
    element, count = _shape(op.vec1.type)
    if op.res.type != (wanted := VectorType(element, [2 * count])):
        raise VerifyException(f"two of {op.vec1.type} make {wanted}, not {op.res.type}")


def _verify_deinterleave(op: Any) -> None:
    element, count = _shape(op.vec.type)
    wanted = LLVMStructType.from_type_list([VectorType(element, [count // 2])] * 2)
    if op.res.type != wanted:
        raise VerifyException(f"{op.vec.type} is split into {wanted}, not {op.res.type}")


_POSITION = {"pos": prop_def(IntegerAttr.constr(type=eq(i64)))}
_V = VarConstraint("T", VectorType.constr())
_TARGET = VarConstraint("TARGET", base(VectorType))

_PARTS = (
    # The elements from `pos` on.
    op_of_row(
        "llvm.intr.vector.extract",
        "$srcvec `[` $pos `]` attr-dict `:` type($res) `from` type($srcvec)",
        properties=_POSITION,
        verify=_verify_extract,
        srcvec=operand_def(VectorType),
        res=result_def(VectorType),
    ),
    # `dstvec` with the elements from `pos` on replaced.
    op_of_row(
        "llvm.intr.vector.insert",
        "$srcvec `,` $dstvec `[` $pos `]` attr-dict `:` type($srcvec) `into` type($dstvec)",
        properties=_POSITION,
        verify=_verify_insert,
        dstvec=operand_def(_TARGET),
        srcvec=operand_def(VectorType),
        res=result_def(_TARGET),
    ),
    # a0 b0 a1 b1 ...
    op_of_row(
        "llvm.intr.vector.interleave2",
        GENERIC_FORM,
        traits=_PURE,
        verify=_verify_interleave,
        vec1=operand_def(_V),
        vec2=operand_def(_V),
        res=result_def(VectorType),
    ),
    # The elements of even index, and those of odd index.
    op_of_row(
        "llvm.intr.vector.deinterleave2",
        GENERIC_FORM,
        traits=_PURE,
        verify=_verify_deinterleave,
        vec=operand_def(VectorType),
        res=result_def(LLVMStructType),
    ),
)

# ---- numbers in a row -------------------------------------------------------------------------------------------------------------------

_NUMBERS = (
    # 0, 1, 2, 3.
    op_of_row(
        "llvm.intr.stepvector", "attr-dict `:` type($res)", traits=_PURE, res=result_def(VectorType[IntegerType])
    ),
    # Whether base + 0, base + 1 ... are below n, unsigned.
    op_of_row(
        "llvm.intr.get.active.lane.mask",
        "$base `,` $n attr-dict `:` type($base) `,` type($n) `to` type($res)",
        traits=_PURE,
        base=operand_def(_N),
        n=operand_def(_N),
        res=result_def(VectorType[I1]),
    ),
)

OPERATIONS: tuple[type[IRDLOperation], ...] = (*_REDUCTIONS, *_PARTS, *_NUMBERS)
