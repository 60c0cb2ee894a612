"""The `llvm` dialect's atomic accesses: atomic reads and writes, and their order for other threads.

    %0 = llvm.atomicrmw fadd %p, %x syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr, f32      returns the old value
    %1 = llvm.cmpxchg %p, %old, %new acq_rel monotonic : !llvm.ptr, i32                    returns the old value, and whether it was %old
    llvm.fence syncscope("agent") seq_cst

They have no effect trait, so no pass moves, merges or erases them.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, IntegerAttr, StringAttr, UnitAttr, VectorType, i1, i64
from xdsl.dialects.llvm import LLVMPointerType, LLVMStructType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.llvm.memory import (
    METADATA,
    ORDERINGS,
    is_atomic_float,
    is_atomic_integer,
    move_properties,
    ordering_number,
    parse_ordering,
    parse_scope,
    print_order,
    verify_ordering,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp

ATOMIC_OPERATIONS = (
    *("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin", "uinc_wrap", "udec_wrap", "usub_cond", "usub_sat", "fmaximum", "fminimum"),
)
"""The operations of atomicrmw, by number."""

FLOAT_OPERATIONS = ("fadd", "fsub", "fmax", "fmin", "fmaximum", "fminimum")
"""The operations on floats; the others are on integers, `xchg` on any type."""

_METADATA = tuple(name for name in METADATA if name != "nontemporal")

_ORDERED = tuple(word for word in ORDERINGS.values() if word != "unordered")


def _print_tail(printer: Printer, op: AtomicRMWOp | AtomicCmpXchgOp) -> None:
    properties = {name: op.properties[name] for name in _METADATA if name in op.properties}
    printer.print_op_attributes(properties | op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.ptr.type)
    printer.print_string(", ")
    printer.print_attribute(op.val.type)


@op_definition
class AtomicRMWOp(QuickOp):
    """`llvm.atomicrmw add %p, %i monotonic : !llvm.ptr, i32`: returns the old value."""

    name = "llvm.atomicrmw"

    T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    bin_op = prop_def(IntegerAttr)
    ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr)
    volatile_ = opt_prop_def(UnitAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    res = result_def(T)

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

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        volatile = parser.parse_optional_keyword("volatile") is not None
        start = parser.pos
        operation = parser.parse_identifier()
        if operation not in ATOMIC_OPERATIONS:
            parser.raise_error(
                f"unknown atomic operation '{operation}'; one of: {', '.join(ATOMIC_OPERATIONS)}",
                start,
                start + len(operation),
            )
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        val = parser.parse_unresolved_operand()
        scope, ordering = parse_scope(parser), parse_ordering(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pointer = parser.resolve_operand(ptr, parser.parse_type())
        parser.parse_punctuation(",")
        op = AtomicRMWOp(operation, pointer, parser.resolve_operand(val, parser.parse_type()), volatile=volatile)
        op.ordering, op.syncscope = ordering, scope
        move_properties(_METADATA, attributes, op.properties)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        volatile = "volatile " if self.volatile_ is not None else ""
        printer.print_string(f" {volatile}{self.operation} ")
        printer.print_list((self.ptr, self.val), printer.print_ssa_value)
        print_order(printer, self.syncscope, self.ordering)
        _print_tail(printer, self)

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


@op_definition
class AtomicCmpXchgOp(QuickOp):
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
    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr)
    weak = opt_prop_def(UnitAttr)
    volatile_ = opt_prop_def(UnitAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    res = result_def(LLVMStructType)

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
            result_types=[LLVMStructType.from_type_list([SSAValue.get(val).type, i1])],
            properties={
                "success_ordering": ordering_number(success),
                "failure_ordering": ordering_number(failure),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
                "alignment": None if alignment is None else IntegerAttr(alignment, i64),
                "weak": UnitAttr() if weak else None,
                "volatile_": UnitAttr() if volatile else None,
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> AtomicCmpXchgOp:
        weak = parser.parse_optional_keyword("weak") is not None
        volatile = parser.parse_optional_keyword("volatile") is not None
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        cmp = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        val = parser.parse_unresolved_operand()
        scope, success, failure = parse_scope(parser), parse_ordering(parser), parse_ordering(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pointer = parser.resolve_operand(ptr, parser.parse_type())
        parser.parse_punctuation(",")
        value_type = parser.parse_type()
        old, new = (parser.resolve_operand(operand, value_type) for operand in (cmp, val))
        op = AtomicCmpXchgOp(pointer, old, new, weak=weak, volatile=volatile)
        op.success_ordering, op.failure_ordering, op.syncscope = success, failure, scope
        move_properties(_METADATA, attributes, op.properties)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        for flag, word in ((self.weak, " weak"), (self.volatile_, " volatile")):
            if flag is not None:
                printer.print_string(word)
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_order(printer, self.syncscope, self.success_ordering, self.failure_ordering)
        _print_tail(printer, self)

    def verify_(self) -> None:
        verify_ordering(self.success_ordering, _ORDERED, "ordering of success")
        verify_ordering(self.failure_ordering, ("monotonic", "acquire", "seq_cst"), "ordering of failure")
        if not (is_atomic_integer(self.val.type) or isinstance(self.val.type, LLVMPointerType)):
            raise VerifyException(f"compares pointers or integers of 8, 16, 32 or 64 bits, not {self.val.type}")
        wanted = LLVMStructType.from_type_list([self.val.type, i1])
        if self.res.type != wanted:
            raise VerifyException(f"the result is {self.res.type}; it must be {wanted}")


@op_definition
class FenceOp(QuickOp):
    """`llvm.fence syncscope("agent") seq_cst`: orders accesses before it and after it."""

    name = "llvm.fence"

    ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)

    def __init__(self, ordering: str, syncscope: str | None = None):
        super().__init__(
            properties={
                "ordering": ordering_number(ordering),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
            }
        )

    @classmethod
    def parse(cls, parser: Parser) -> FenceOp:
        scope = parse_scope(parser)
        op = FenceOp("seq_cst", scope and scope.data)
        op.ordering = parse_ordering(parser)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        print_order(printer, self.syncscope, self.ordering)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        verify_ordering(self.ordering, ("acquire", "release", "acq_rel", "seq_cst"))


OPERATIONS: tuple[type[IRDLOperation], ...] = (AtomicRMWOp, AtomicCmpXchgOp, FenceOp)
