"""The `llvm` dialect's atomic accesses: atomic reads and writes, and their order for other threads.

    %0 = llvm.atomicrmw fadd %p, %x syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr, f32      returns the old value
    %1 = llvm.cmpxchg %p, %old, %new acq_rel monotonic : !llvm.ptr, i32                    returns the old value, and whether it was %old
    llvm.fence syncscope("agent") seq_cst

They have no effect trait, so no pass moves, merges or erases them.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, IntegerAttr, StringAttr, UnitAttr, VectorType, i1, i64
from xdsl.dialects.llvm import LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import Derived, numbered_word
from xla_emitters.dialects.mlir.llvm.memory_ops import (
    ORDERINGS,
    SCOPE,
    AccessOp,
    Ordering,
    is_atomic_float,
    is_atomic_integer,
    ordering_number,
    verify_ordering,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

ATOMIC_OPERATIONS = (
    *("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin", "uinc_wrap", "udec_wrap", "usub_cond", "usub_sat", "fmaximum", "fminimum"),
)
"""The operations of atomicrmw, by number."""

AtomicOperation = numbered_word(
    "AtomicOperation",
    dict(enumerate(ATOMIC_OPERATIONS)),
    "unknown atomic operation '{word}'; one of: {words}",
)

FLOAT_OPERATIONS = ("fadd", "fsub", "fmax", "fmin", "fmaximum", "fminimum")
"""The operations on floats; the others are on integers, `xchg` on any type."""

_ORDERED = tuple(word for word in ORDERINGS.values() if word != "unordered")


@op_definition
class AtomicRMWOp(AccessOp):
    """`llvm.atomicrmw add %p, %i monotonic : !llvm.ptr, i32`: returns the old value."""

    name = "llvm.atomicrmw"

    T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    bin_op = prop_def(IntegerAttr)
    ordering = prop_def(IntegerAttr)
    res = result_def(T)

    assembly_format = (
        f"(`volatile` $volatile_^)? custom<AtomicOperation>($bin_op) $ptr `,` $val {SCOPE} custom<Ordering>($ordering)"
        " attr-dict `:` type($ptr) `,` type($val)"
    )
    custom_directives = (AtomicOperation, Ordering)

    def __init__(
        self,
        operation: str,
        ptr: SSAValue | Operation,
        val: SSAValue | Operation,
        ordering: str = "monotonic",
        syncscope: str | None = None,
        alignment: int | None = None,
        volatile: bool = False,
    ):
        """`operation` is one of ATOMIC_OPERATIONS, `ordering` one of ORDERINGS' words, `alignment` in bytes."""
        super().__init__(
            operands=[ptr, val],
            result_types=[SSAValue.get(val).type],
            properties={
                "bin_op": IntegerAttr(ATOMIC_OPERATIONS.index(operation), i64),
                "ordering": ordering_number(ordering),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
                "alignment": None if alignment is None else IntegerAttr(alignment, i64),
                "volatile_": UnitAttr() if volatile else None,
            },
        )

    @property
    def operation(self) -> str:
        """`xchg`, `add`, `fmax` ..."""
        return ATOMIC_OPERATIONS[self.bin_op.value.data]

    def verify_(self) -> None:
        if not 0 <= self.bin_op.value.data < len(ATOMIC_OPERATIONS):
            raise VerifyException(f"there is no atomic operation {self.bin_op.value.data}")
        verify_ordering(self.ordering, _ORDERED)
        value_type = self.val.type
        if self.operation == "xchg":
            wanted = "a pointer, or a number of 8 to 64 bits"
            fits = (
                is_atomic_integer(value_type) or is_atomic_float(value_type) or isinstance(value_type, LLVMPointerType)
            )
        elif self.operation in FLOAT_OPERATIONS:
            wanted = "a float or a vector of floats"
            fits = isinstance(value_type, AnyFloat) or isa(value_type, VectorType[AnyFloat])
        else:
            wanted = "an integer of 8, 16, 32 or 64 bits"
            fits = is_atomic_integer(value_type)
        if not fits:
            raise VerifyException(f"{self.operation} is of {wanted}, not of {value_type}")


def _exchanged(value_type: Attribute) -> LLVMStructType:
    """The old value, and whether it was the one expected."""
    return LLVMStructType.from_type_list([value_type, i1])


@op_definition
class AtomicCmpXchgOp(AccessOp):
    """`llvm.cmpxchg weak volatile %p, %old, %new syncscope("device") seq_cst acquire : !llvm.ptr, i32`

    Returns the old value, and whether it was `cmp`; if so, `val` was written. `weak`: may fail even then. The first ordering is for
    success, the second for failure.
    """

    name = "llvm.cmpxchg"

    T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(LLVMPointerType)
    cmp = operand_def(T)
    val = operand_def(T)
    success_ordering = prop_def(IntegerAttr)
    failure_ordering = prop_def(IntegerAttr)
    weak = opt_prop_def(UnitAttr)
    res = result_def(Derived("T", _exchanged, base(LLVMStructType)))

    assembly_format = (
        f"(`weak` $weak^)? (`volatile` $volatile_^)? $ptr `,` $cmp `,` $val {SCOPE} custom<Ordering>($success_ordering)"
        " custom<Ordering>($failure_ordering) attr-dict `:` type($ptr) `,` type($val)"
    )
    custom_directives = (Ordering,)

    def __init__(
        self,
        ptr: SSAValue | Operation,
        cmp: SSAValue | Operation,
        val: SSAValue | Operation,
        success: str = "monotonic",
        failure: str = "monotonic",
        syncscope: str | None = None,
        alignment: int | None = None,
        weak: bool = False,
        volatile: bool = False,
    ):
        super().__init__(
            operands=[ptr, cmp, val],
            result_types=[_exchanged(SSAValue.get(val).type)],
            properties={
                "success_ordering": ordering_number(success),
                "failure_ordering": ordering_number(failure),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
                "alignment": None if alignment is None else IntegerAttr(alignment, i64),
                "weak": UnitAttr() if weak else None,
                "volatile_": UnitAttr() if volatile else None,
            },
        )

    def verify_(self) -> None:
        verify_ordering(self.success_ordering, _ORDERED, "ordering of success")
        verify_ordering(self.failure_ordering, ("monotonic", "acquire", "seq_cst"), "ordering of failure")
        if not (is_atomic_integer(self.val.type) or isinstance(self.val.type, LLVMPointerType)):
            raise VerifyException(f"compares pointers or integers of 8, 16, 32 or 64 bits, not {self.val.type}")
        wanted = _exchanged(self.val.type)
        if self.res.type != wanted:
            raise VerifyException(f"the result is {self.res.type}; it must be {wanted}")


@op_definition
class FenceOp(QuickOp):
    """`llvm.fence syncscope("agent") seq_cst`: orders accesses before it and after it."""

    name = "llvm.fence"

    ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)

    assembly_format = f"{SCOPE} custom<Ordering>($ordering) attr-dict"
    custom_directives = (Ordering,)

    def __init__(self, ordering: str, syncscope: str | None = None):
        super().__init__(
            properties={
                "ordering": ordering_number(ordering),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
            }
        )

    def verify_(self) -> None:
        verify_ordering(self.ordering, ("acquire", "release", "acq_rel", "seq_cst"))
