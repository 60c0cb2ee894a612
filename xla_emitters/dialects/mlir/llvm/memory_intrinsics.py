"""The `llvm` dialect's intrinsics about memory: accesses of some elements of a vector, copies, hints about pointers.

    %v = llvm.intr.masked.load %p, %mask, %other {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
    "llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    llvm.intr.lifetime.start %p : !llvm.ptr

Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    ArrayAttr,
    BoolAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    i32,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from xla_emitters.dialects.mlir.op_rows import op_of_family

# ---- some elements of a vector ----------------------------------------------------------------------------------------------------------


def _verify_elements(**vectors: Attribute) -> None:
    """raises VerifyException unless all are vectors of as many elements"""
    (first, one), *others = vectors.items()
    for what, other in others:
        if not (isa(one, VectorType) and isa(other, VectorType) and one.get_shape() == other.get_shape()):
            raise VerifyException(f"the {first} is {one}, but the {what} {other}: not vectors of one length")


def _number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
    """See the file's head: one address, from which the elements lie side by side."""

    name = "llvm.intr.masked.load"

    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType[I1])
    pass_thru = var_operand_def()
    alignment = prop_def(IntegerAttr)
    nontemporal = opt_prop_def(UnitAttr)
    res = result_def(VectorType)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        data: SSAValue | Operation,
        mask: SSAValue | Operation,
        pass_thru: SSAValue | Operation | None,
        res_type: Attribute,
        alignment: int,
    ):
        """`alignment` in bytes, of the first element."""
        super().__init__(
            operands=[data, mask, [] if pass_thru is None else [pass_thru]],
            properties={"alignment": _number(alignment)},
            result_types=[res_type],
        )

    def verify_(self) -> None:
        _verify_read(self)


@irdl_op_definition
class MaskedGatherOp(IRDLOperation):
    """`llvm.intr.masked.gather %ptrs, %mask, %other {alignment = 4 : i32} : (...) -> vector<4xf32>`: an address for each element."""

    name = "llvm.intr.masked.gather"

    ptrs = operand_def(VectorType[LLVMPointerType])
    mask = operand_def(VectorType[I1])
    pass_thru = var_operand_def()
    alignment = prop_def(IntegerAttr)
    res = result_def(VectorType)

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        ptrs: SSAValue | Operation,
        mask: SSAValue | Operation,
        pass_thru: SSAValue | Operation | None,
        res_type: Attribute,
        alignment: int,
    ):
        """`alignment` in bytes, of each element."""
        super().__init__(
            operands=[ptrs, mask, [] if pass_thru is None else [pass_thru]],
            properties={"alignment": _number(alignment)},
            result_types=[res_type],
        )

    def verify_(self) -> None:
        _verify_elements(result=self.res.type, addresses=self.ptrs.type)
        _verify_read(self)


def _verify_read(op: MaskedLoadOp | MaskedGatherOp) -> None:
    _verify_elements(result=op.res.type, mask=op.mask.type)
    rest = list(op.pass_thru.types)
    if rest not in ([], [op.res.type]):
        raise VerifyException(f"gives {op.res.type}, but elsewhere {', '.join(map(str, rest))}")


@irdl_op_definition
class MaskedStoreOp(IRDLOperation):
    """`llvm.intr.masked.store %v, %p, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr`"""

    name = "llvm.intr.masked.store"

    value = operand_def(VectorType)
    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType[I1])
    alignment = prop_def(IntegerAttr)

    assembly_format = "$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self, value: SSAValue | Operation, data: SSAValue | Operation, mask: SSAValue | Operation, alignment: int
    ):
        """`alignment` in bytes, of the first element."""
        super().__init__(operands=[value, data, mask], properties={"alignment": _number(alignment)})

    def verify_(self) -> None:
        _verify_elements(value=self.value.type, mask=self.mask.type)


@irdl_op_definition
class MaskedScatterOp(IRDLOperation):
    """`llvm.intr.masked.scatter %v, %ptrs, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into vector<4x!llvm.ptr>`"""

    name = "llvm.intr.masked.scatter"

    value = operand_def(VectorType)
    ptrs = operand_def(VectorType[LLVMPointerType])
    mask = operand_def(VectorType[I1])
    alignment = prop_def(IntegerAttr)

    assembly_format = "$value `,` $ptrs `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($ptrs)"
    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self, value: SSAValue | Operation, ptrs: SSAValue | Operation, mask: SSAValue | Operation, alignment: int
    ):
        """`alignment` in bytes, of each element."""
        super().__init__(operands=[value, ptrs, mask], properties={"alignment": _number(alignment)})

    def verify_(self) -> None:
        _verify_elements(value=self.value.type, addresses=self.ptrs.type, mask=self.mask.type)


# ---- copies -----------------------------------------------------------------------------------------------------------------------------


class CopyOp(IRDLOperation):
    """`"llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}>`: so many bytes from one place to another. No custom form."""

    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    len = operand_def(IntegerType)
    isVolatile = prop_def(BoolAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)

    def __init__(
        self, dst: SSAValue | Operation, src: SSAValue | Operation, bytes: SSAValue | Operation, volatile: bool = False
    ):
        super().__init__(operands=[dst, src, bytes], properties={"isVolatile": BoolAttr.from_bool(volatile)})


MemcpyOp = op_of_family(CopyOp, "llvm.intr.memcpy")
MemmoveOp = op_of_family(CopyOp, "llvm.intr.memmove")


@irdl_op_definition
class MemsetOp(IRDLOperation):
    """`"llvm.intr.memset"(%to, %byte, %bytes) <{isVolatile = false}>`: one byte so many times. No custom form."""

    name = "llvm.intr.memset"

    dst = operand_def(LLVMPointerType)
    val = operand_def(IntegerType(8))
    len = operand_def(IntegerType)
    isVolatile = prop_def(BoolAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)

    def __init__(
        self, dst: SSAValue | Operation, val: SSAValue | Operation, bytes: SSAValue | Operation, volatile: bool = False
    ):
        super().__init__(operands=[dst, val, bytes], properties={"isVolatile": BoolAttr.from_bool(volatile)})


# ---- hints ------------------------------------------------------------------------------------------------------------------------------


class LifetimeOp(IRDLOperation):
    """`llvm.intr.lifetime.start %p : !llvm.ptr`: from here on, or no longer, what an alloca holds matters."""

    ptr = operand_def(LLVMPointerType)

    assembly_format = "$ptr attr-dict `:` type($ptr)"

    def __init__(self, ptr: SSAValue | Operation):
        super().__init__(operands=[ptr])


LifetimeStartOp = op_of_family(LifetimeOp, "llvm.intr.lifetime.start")
LifetimeEndOp = op_of_family(LifetimeOp, "llvm.intr.lifetime.end")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """`"llvm.intr.prefetch"(%p) <{rw = 0 : i32, hint = 3 : i32, cache = 1 : i32}>`: will be read (rw 0) or written soon. No custom form."""

    name = "llvm.intr.prefetch"

    addr = operand_def(LLVMPointerType)
    rw = prop_def(IntegerAttr)
    hint = prop_def(IntegerAttr)
    cache = prop_def(IntegerAttr)

    def __init__(self, addr: SSAValue | Operation, rw: int = 0, hint: int = 3, cache: int = 1):
        """`hint` is 0 (used once) to 3 (used again and again), `cache` 0 of instructions, 1 of data."""
        super().__init__(
            operands=[addr],
            properties={"rw": _number(rw), "hint": _number(hint), "cache": _number(cache)},
        )


class InvariantGroupOp(IRDLOperation):
    """`llvm.intr.launder.invariant.group %p : !llvm.ptr`: the same address, of which nothing is known from before."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(T)
    res = result_def(T)

    assembly_format = "$ptr attr-dict `:` type($ptr)"

    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue | Operation):
        super().__init__(operands=[ptr], result_types=[SSAValue.get(ptr).type])


LaunderInvariantGroupOp = op_of_family(InvariantGroupOp, "llvm.intr.launder.invariant.group")
StripInvariantGroupOp = op_of_family(InvariantGroupOp, "llvm.intr.strip.invariant.group")


@irdl_op_definition
class PtrMaskOp(IRDLOperation):
    """`llvm.intr.ptrmask %p, %mask : (!llvm.ptr, i64) -> !llvm.ptr`: the address and the mask."""

    name = "llvm.intr.ptrmask"

    ptr = operand_def(LLVMPointerType | VectorType[LLVMPointerType])
    mask = operand_def()
    res = result_def()

    assembly_format = "$ptr `,` $mask attr-dict `:` functional-type(operands, results)"

    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue | Operation, mask: SSAValue | Operation):
        super().__init__(operands=[ptr, mask], result_types=[SSAValue.get(ptr).type])

    def verify_(self) -> None:
        if self.ptr.type != self.res.type:
            raise VerifyException(f"masks {self.ptr.type} into {self.res.type}")
