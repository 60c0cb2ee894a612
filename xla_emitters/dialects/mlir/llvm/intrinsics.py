"""The `llvm` dialect's intrinsics: functions of numbers, by name in `llvm.INTRINSICS`.

    %m = llvm.intr.maximum(%a, %b) {fastmathFlags = #llvm.fastmath<nnan>} : (f32, f32) -> f32
    %n = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32             those with a flag only have the generic form

Those about memory, which are read, kept and executed, never emitted: accesses of some elements of a vector, copies, hints about pointers.

    %v = llvm.intr.masked.load %p, %mask, %other {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
    "llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    llvm.intr.lifetime.start %p : !llvm.ptr

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from xdsl.dialects.builtin import (
    I1,
    I32,
    ArrayAttr,
    BoolAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import truth_type
from xla_emitters.dialects.mlir.llvm.values import FLOAT, INTEGER, NO_FLAGS
from xla_emitters.dialects.mlir.op_rows import AS_FUNCTION, GENERIC_FORM, op_of_row

_F = VarConstraint("T", FLOAT)
_N = VarConstraint("T", INTEGER)
_T = VarConstraint("T", AnyAttr())
_FASTMATH = {"fastmathFlags": prop_def(FastMathAttr, default_value=NO_FLAGS)}
_PURE = (Pure(),)

# ---- floats -----------------------------------------------------------------------------------------------------------------------------


def _of_floats(name: str, *operands: str) -> type[IRDLOperation]:
    """Operands and result are floats, or vectors of them, of one type."""
    values: dict[str, Any] = dict.fromkeys(operands, operand_def(_F))
    return op_of_row(name, AS_FUNCTION, properties=_FASTMATH, traits=_PURE, **values, res=result_def(_F))


def _verify_parts(op: Any) -> None:
    types = tuple(op.res.type.types)
    if len(types) != 2 or types[0] != op.val.type:
        raise VerifyException(f"the result is a struct of two numbers, the first {op.val.type}, not {op.res.type}")


_UNARY = (
    *("acos", "asin", "atan", "cosh", "exp10", "log10", "nearbyint", "rint", "round", "roundeven"),
    *("sinh", "tan", "tanh", "trunc"),
)

_FLOATS = (
    *(_of_floats(f"llvm.intr.{name}", "arg") for name in _UNARY),
    *(_of_floats(f"llvm.intr.{name}", "lhs", "rhs") for name in ("atan2", "maximum", "minimum")),
    _of_floats("llvm.intr.fmuladd", "a", "b", "c"),
    *(
        op_of_row(
            f"llvm.intr.{name}",
            AS_FUNCTION,
            properties=_FASTMATH,
            traits=_PURE,
            val=operand_def(_F),
            power=operand_def(INTEGER),
            res=result_def(_F),
        )
        for name in ("powi", "ldexp")
    ),
    # Rounded to an integer; poison if it does not fit.
    *(
        op_of_row(f"llvm.intr.{name}", AS_FUNCTION, traits=_PURE, val=operand_def(FLOAT), res=result_def(INTEGER))
        for name in ("lrint", "llrint", "lround", "llround")
    ),
    # Two results in one: `(f32) -> !llvm.struct<(f32, i32)>`.
    *(
        op_of_row(
            f"llvm.intr.{name}",
            AS_FUNCTION,
            properties=_FASTMATH,
            traits=_PURE,
            verify=_verify_parts,
            val=operand_def(FLOAT),
            res=result_def(LLVMStructType),
        )
        for name in ("frexp", "sincos")
    ),
    # Whether the value is of one of the classes in `bit` (1 and 2: NaN).
    op_of_row(
        "llvm.intr.is.fpclass",
        GENERIC_FORM,
        properties={"bit": prop_def(IntegerAttr[I32])},
        traits=_PURE,
        arg=operand_def(FLOAT),
        res=result_def(I1 | VectorType[I1]),
    ),
)

# ---- integers ---------------------------------------------------------------------------------------------------------------------------


def _of_integers(name: str, *operands: str) -> type[IRDLOperation]:
    """Operands and result are integers, or vectors of them, of one type."""
    values: dict[str, Any] = dict.fromkeys(operands, operand_def(_N))
    return op_of_row(name, AS_FUNCTION, traits=_PURE, **values, res=result_def(_N))


def _flagged(name: str, flag: str) -> type[IRDLOperation]:
    """With the flag set, the result is poison for one operand value: zero, or the smallest integer."""
    return op_of_row(
        name,
        GENERIC_FORM,
        properties={flag: prop_def(BoolAttr)},
        traits=_PURE,
        arg=operand_def(_N),
        res=result_def(_N),
    )


def _verify_overflow(op: Any) -> None:
    wanted = LLVMStructType.from_type_list([op.lhs.type, truth_type(op.lhs.type)])
    if op.res.type != wanted:
        raise VerifyException(f"the result is {op.res.type}; it must be {wanted}")


_BINARY = (
    *("smax", "smin", "umax", "umin"),
    *("sadd.sat", "uadd.sat", "ssub.sat", "usub.sat", "sshl.sat", "ushl.sat"),
)

_INTEGERS = (
    *(_of_integers(f"llvm.intr.{name}", "arg") for name in ("bitreverse", "bswap", "ctpop")),
    *(_of_integers(f"llvm.intr.{name}", "lhs", "rhs") for name in _BINARY),
    *(_of_integers(f"llvm.intr.{name}", "a", "b", "c") for name in ("fshl", "fshr")),
    *(_flagged(f"llvm.intr.{name}", "is_zero_poison") for name in ("ctlz", "cttz")),
    _flagged("llvm.intr.abs", "is_int_min_poison"),
    # -1, 0 or 1.
    *(
        op_of_row(
            f"llvm.intr.{name}",
            AS_FUNCTION,
            traits=_PURE,
            lhs=operand_def(_N),
            rhs=operand_def(_N),
            res=result_def(INTEGER),
        )
        for name in ("scmp", "ucmp")
    ),
    # The wrapped result, and whether it wrapped.
    *(
        op_of_row(
            f"llvm.intr.{name}.with.overflow",
            GENERIC_FORM,
            traits=_PURE,
            verify=_verify_overflow,
            lhs=operand_def(_N),
            rhs=operand_def(_N),
            res=result_def(LLVMStructType),
        )
        for name in ("sadd", "uadd", "ssub", "usub", "smul", "umul")
    ),
)

# ---- hints ------------------------------------------------------------------------------------------------------------------------------

_expect = partial(op_of_row, traits=_PURE, val=operand_def(_N), expected=operand_def(_N), res=result_def(_N))

_HINTS = (
    # The first operand; the expected value is the second, with the given probability.
    _expect("llvm.intr.expect", "$val `,` $expected attr-dict `:` type($val)"),
    _expect(
        "llvm.intr.expect.with.probability",
        "$val `,` $expected `,` $prob attr-dict `:` type($val)",
        properties={"prob": prop_def(FloatAttr.constr(base(Float64Type)))},
    ),
    # Whether LLVM's optimiser knows the value.
    op_of_row("llvm.intr.is.constant", GENERIC_FORM, traits=_PURE, val=operand_def(), res=result_def(I1)),
    op_of_row(
        "llvm.intr.ssa.copy",
        "$operand attr-dict `:` type($operand)",
        traits=_PURE,
        operand=operand_def(_T),
        res=result_def(_T),
    ),
    # End the kernel with an error.
    op_of_row("llvm.intr.trap", "attr-dict"),
    op_of_row("llvm.intr.debugtrap", "attr-dict"),
)


# ---- some elements of a vector ----------------------------------------------------------------------------------------------------------


def _verify_elements(**vectors: Attribute) -> None:
    """raises VerifyException unless all are vectors of one length"""
    (first, one), *others = vectors.items()
    for what, other in others:
        if not (isa(one, VectorType) and isa(other, VectorType) and one.get_shape() == other.get_shape()):
            raise VerifyException(
                f"the {first} is {one}, but the {what} is {other}: they must be vectors of one length"
            )


def _verify_load(op: Any) -> None:
    _verify_elements(result=op.res.type, mask=op.mask.type)
    rest = list(op.pass_thru.types)
    if rest not in ([], [op.res.type]):
        raise VerifyException(f"gives {op.res.type}, but elsewhere {', '.join(map(str, rest))}")


def _verify_gather(op: Any) -> None:
    _verify_elements(result=op.res.type, addresses=op.ptrs.type)
    _verify_load(op)


def _verify_store(op: Any) -> None:
    _verify_elements(value=op.value.type, mask=op.mask.type)


def _verify_scatter(op: Any) -> None:
    _verify_elements(value=op.value.type, addresses=op.ptrs.type, mask=op.mask.type)


_ALIGNMENT = {"alignment": prop_def(IntegerAttr)}
"""The alignment in bytes: of the first element if they are contiguous, else of each."""

_MASKED = (
    op_of_row(
        "llvm.intr.masked.load",
        "operands attr-dict `:` functional-type(operands, results)",
        properties=_ALIGNMENT | {"nontemporal": opt_prop_def(UnitAttr)},
        traits=(MemoryReadEffect(),),
        verify=_verify_load,
        data=operand_def(LLVMPointerType),
        mask=operand_def(VectorType[I1]),
        pass_thru=var_operand_def(),
        res=result_def(VectorType),
    ),
    op_of_row(
        "llvm.intr.masked.gather",
        "operands attr-dict `:` functional-type(operands, results)",
        properties=_ALIGNMENT,
        traits=(MemoryReadEffect(),),
        verify=_verify_gather,
        ptrs=operand_def(VectorType[LLVMPointerType]),
        mask=operand_def(VectorType[I1]),
        pass_thru=var_operand_def(),
        res=result_def(VectorType),
    ),
    op_of_row(
        "llvm.intr.masked.store",
        "$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)",
        properties=_ALIGNMENT,
        traits=(MemoryWriteEffect(),),
        verify=_verify_store,
        value=operand_def(VectorType),
        data=operand_def(LLVMPointerType),
        mask=operand_def(VectorType[I1]),
    ),
    op_of_row(
        "llvm.intr.masked.scatter",
        "$value `,` $ptrs `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($ptrs)",
        properties=_ALIGNMENT,
        traits=(MemoryWriteEffect(),),
        verify=_verify_scatter,
        value=operand_def(VectorType),
        ptrs=operand_def(VectorType[LLVMPointerType]),
        mask=operand_def(VectorType[I1]),
    ),
)

# ---- copies -----------------------------------------------------------------------------------------------------------------------------

_KEPT = ("access_groups", "alias_scopes", "noalias_scopes", "tbaa", "arg_attrs", "res_attrs")


def _writing(name: str, **source: Any) -> type[IRDLOperation]:
    """Writes `len` bytes: a copy, or one value."""
    properties: dict[str, Any] = {"isVolatile": prop_def(BoolAttr), **dict.fromkeys(_KEPT, opt_prop_def(ArrayAttr))}
    return op_of_row(
        name,
        GENERIC_FORM,
        properties=properties,
        dst=operand_def(LLVMPointerType),
        **source,
        len=operand_def(IntegerType),
    )


_COPIES = (
    _writing("llvm.intr.memcpy", src=operand_def(LLVMPointerType)),
    _writing("llvm.intr.memmove", src=operand_def(LLVMPointerType)),
    _writing("llvm.intr.memset", val=operand_def(IntegerType(8))),
)

# ---- hints ------------------------------------------------------------------------------------------------------------------------------


def _verify_ptrmask(op: Any) -> None:
    if op.ptr.type != op.res.type:
        raise VerifyException(f"masks {op.ptr.type} into {op.res.type}")


_POINTER_HINTS = (
    # The start or the end of the lifetime of an alloca's contents.
    *(
        op_of_row(f"llvm.intr.lifetime.{name}", "$ptr attr-dict `:` type($ptr)", ptr=operand_def(LLVMPointerType))
        for name in ("start", "end")
    ),
    # A prefetch to read (rw 0) or write (1); hint: reuse, none (0) to much (3); cache: instructions (0) or data (1).
    op_of_row(
        "llvm.intr.prefetch",
        GENERIC_FORM,
        properties=dict.fromkeys(("rw", "hint", "cache"), prop_def(IntegerAttr)),
        addr=operand_def(LLVMPointerType),
    ),
    # The same address, without what LLVM knew of it.
    *(
        op_of_row(
            f"llvm.intr.{name}.invariant.group",
            "$ptr attr-dict `:` type($ptr)",
            traits=(Pure(),),
            ptr=operand_def(_T),
            res=result_def(_T),
        )
        for name in ("launder", "strip")
    ),
    # The address and the mask.
    op_of_row(
        "llvm.intr.ptrmask",
        "$ptr `,` $mask attr-dict `:` functional-type(operands, results)",
        traits=(Pure(),),
        verify=_verify_ptrmask,
        ptr=operand_def(LLVMPointerType | VectorType[LLVMPointerType]),
        mask=operand_def(),
        res=result_def(),
    ),
)

OPERATIONS: tuple[type[IRDLOperation], ...] = (
    *(*_FLOATS, *_INTEGERS, *_HINTS),
    *(*_MASKED, *_COPIES, *_POINTER_HINTS),
)
