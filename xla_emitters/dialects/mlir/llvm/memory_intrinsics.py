"""The `llvm` dialect's intrinsics about memory: accesses of some elements of a vector, copies, hints about pointers.

    %v = llvm.intr.masked.load %p, %mask, %other {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
    "llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    llvm.intr.lifetime.start %p : !llvm.ptr

They are read, kept and executed, never emitted.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import I1, ArrayAttr, BoolAttr, IntegerAttr, IntegerType, UnitAttr, VectorType
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.op_rows import GENERIC_FORM, op_of_row

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


_T = VarConstraint("T", AnyAttr())

_HINTS = (
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

OPERATIONS: tuple[type[IRDLOperation], ...] = (*_MASKED, *_COPIES, *_HINTS)
