"""The `llvm` dialect's memory: addresses, loads, stores.

    %p = llvm.getelementptr inbounds %arg0[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %v = llvm.load %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    llvm.store %v, %q {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr

An invariant load reads memory that is not written while the kernel runs, so it has no effect.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from xdsl.dialects import llvm as upstream
from xdsl.dialects.builtin import (
    I32,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMPointerType, LLVMStructType
from xdsl.dialects.utils import print_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.attributes import UNIT, integer
from xla_emitters.dialects.mlir.directives import numbered_word
from xla_emitters.dialects.mlir.llvm.metadata import DereferenceableAttr
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp

DYNAMIC_INDEX = upstream.GEP_USE_SSA_VAL
"""In a getelementptr's constant indices: the index is an operand."""


@lru_cache(1024)
def _raw_indices(indices: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, indices)


ORDERINGS = upstream.ATOMIC_ORDERING_KEYWORDS
"""Atomic ordering's number -> keyword; 0 is not atomic and has none."""

Ordering = numbered_word("Ordering", ORDERINGS, "unknown atomic ordering '{word}'; one of: {words}")

SCOPE = "(`syncscope` `(` $syncscope^ `)`)?"
"""`syncscope("agent")` in a format: the threads that observe the order; by default all of the system."""

OF_BLOCK = "block"
"""As a scope: the threads of the block."""

_ATOMIC = f"(`atomic` {SCOPE} custom<Ordering>($ordering)^)?"

# The bits of getelementptr's flags, and their keywords, longest first.
_WRAP_FLAGS = {"inbounds": 3, "nusw": 2, "nuw": 4}


@op_definition
class GEPOp(PureOp):
    """`llvm.getelementptr inbounds %p[%i, 1] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x f32>`: an address.

    The first index counts whole elements of `elem_type`, the others select a part of one. `noWrapFlags` is 3 for `inbounds` (it implies
    `nusw`, 2); `nuw` is 4.
    """

    name = "llvm.getelementptr"

    ptr = operand_def(LLVMPointerType | VectorType[LLVMPointerType])
    ssa_indices = var_operand_def(IntegerType)
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr[I32], default_value=integer(0, 32))
    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))
    result = result_def(LLVMPointerType | VectorType[LLVMPointerType])

    def __init__(
        self,
        ptr: SSAValue | Operation,
        indices: Sequence[int | SSAValue | Operation],
        pointee_type: Attribute,
        result_type: Attribute | None = None,
        inbounds: bool = False,
        nuw: bool = False,
    ):
        constants = tuple(index if isinstance(index, int) else DYNAMIC_INDEX for index in indices)
        super().__init__(
            operands=[ptr, [index for index in indices if not isinstance(index, int)]],
            properties={
                "elem_type": pointee_type,
                "noWrapFlags": integer(3 * inbounds + 4 * nuw, 32),
                "rawConstantIndices": _raw_indices(constants),
            },
            result_types=[result_type or _POINTER],
        )

    @classmethod
    def parse(cls, parser: Parser) -> GEPOp:
        flags = 0
        while (word := parser.parse_optional_keyword_in(_WRAP_FLAGS)) is not None:
            flags |= _WRAP_FLAGS[word]
            if parser.parse_optional_punctuation("|") is None:
                break
        ptr = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_index(parser))
        values = [index for index in indices if isinstance(index, UnresolvedOperand)]
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        function_type = parser.parse_function_type()
        parser.parse_punctuation(",")
        elem_type = parser.parse_type()
        base, *rest = parser.resolve_operands([ptr, *values], function_type.inputs.data, start)
        following = iter(rest)
        mixed = [index if isinstance(index, int) else next(following) for index in indices]
        op = GEPOp(base, mixed, elem_type, function_type.outputs.data[0])
        op.properties["noWrapFlags"] = integer(flags, 32)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        flags, words = self.noWrapFlags.value.data, list[str]()
        for word, bits in _WRAP_FLAGS.items():
            if flags & bits == bits:
                words.append(word)
                flags &= ~bits
        printer.print_string(f" {'|'.join(words)} " if words else " ")
        printer.print_ssa_value(self.ptr)
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.ssa_indices, self.rawConstantIndices.iter_values())
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
        printer.print_string(", ")
        printer.print_attribute(self.elem_type)

    def verify_(self) -> None:
        indices = tuple(self.rawConstantIndices.iter_values())
        if indices.count(DYNAMIC_INDEX) != len(self.ssa_indices):
            raise VerifyException(
                f"{indices.count(DYNAMIC_INDEX)} indices are operands, but there are {len(self.ssa_indices)}"
            )
        current: Attribute = self.elem_type
        for number, index in enumerate(indices[1:], start=1):
            match current:
                case LLVMArrayType():
                    current = current.type
                case LLVMStructType(types=types):
                    if not 0 <= index < len(types):
                        raise VerifyException(f"index {number} must be a number below {len(types)}, as {current} has")
                    current = types.data[index]
                case _:
                    raise VerifyException(f"index {number} goes into {current}, which has no elements")


def _parse_index(parser: Parser) -> int | UnresolvedOperand:
    if (operand := parser.parse_optional_unresolved_operand()) is not None:
        return operand
    return parser.parse_integer(allow_boolean=False)


@op_definition
class AllocaOp(QuickOp):
    """`llvm.alloca %n x f32 {alignment = 4 : i64} : (i32) -> !llvm.ptr`: memory of the thread's own, for `n` elements.

    `inalloca`: the memory of an argument, in some hosts' calling conventions.
    """

    name = "llvm.alloca"

    size = operand_def(IntegerType)
    alignment = opt_prop_def(IntegerAttr)
    elem_type = prop_def()
    inalloca = opt_prop_def(UnitAttr)
    res = result_def(LLVMPointerType)

    assembly_format = "(`inalloca` $inalloca^)? $size `x` $elem_type attr-dict `:` functional-type(operands, results)"
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        size: SSAValue | Operation,
        elem_type: Attribute,
        alignment: int | None = None,
        result_type: LLVMPointerType | None = None,
    ):
        """`alignment` in bytes; by default the type's own."""
        super().__init__(
            operands=[size],
            properties={
                "alignment": None if alignment is None else integer(alignment, i64),
                "elem_type": elem_type,
            },
            result_types=[result_type or _POINTER],
        )


_POINTER = LLVMPointerType()
_READS = frozenset((EffectInstance(MemoryEffectKind.READ),))
_WRITES = frozenset((EffectInstance(MemoryEffectKind.WRITE),))
_NOTHING = frozenset[EffectInstance]()


class _AccessEffect(MemoryEffect):
    """The effects of a load or store: a load reads, unless it is invariant; a volatile or atomic access may have any effect."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        assert isinstance(op, LoadOp | StoreOp)
        if op.volatile_ is not None or op.ordering.value.data:
            return None
        if isinstance(op, StoreOp):
            return _WRITES
        return _NOTHING if op.invariant is not None else _READS


def _flags(**flags: bool) -> dict[str, Attribute | None]:
    return {name: UNIT if is_set else None for name, is_set in flags.items()}


def ordering_number(word: str) -> IntegerAttr:
    """The number of an ordering such as `monotonic` in an op's property."""
    return integer(next(number for number, keyword in ORDERINGS.items() if keyword == word), i64)


def verify_ordering(ordering: IntegerAttr, allowed: Collection[str], of_what: str = "ordering") -> None:
    """raises VerifyException naming the allowed orderings"""
    word = ORDERINGS.get(ordering.value.data, str(ordering.value.data))
    if word not in allowed:
        raise VerifyException(f"{of_what} is {word}; it can be {', '.join(allowed)}")


_ATOMIC_BITS = (8, 16, 32, 64)


def is_atomic_integer(accessed: Attribute) -> bool:
    """Whether hardware can access integers of the type atomically."""
    return isinstance(accessed, IntegerType) and accessed.bitwidth in _ATOMIC_BITS


def is_atomic_float(accessed: Attribute) -> bool:
    """As `is_atomic_integer`, for floats."""
    return isinstance(accessed, AnyFloat) and accessed.bitwidth in _ATOMIC_BITS


def _verify_atomic(op: LoadOp | StoreOp, accessed: Attribute, allowed: Collection[str]) -> None:
    if not op.ordering.value.data:
        if op.syncscope is not None:
            raise VerifyException("has a syncscope, but is not atomic")
        return
    verify_ordering(op.ordering, allowed)
    if not (is_atomic_integer(accessed) or is_atomic_float(accessed) or isinstance(accessed, LLVMPointerType)):
        raise VerifyException(
            f"{accessed} cannot be accessed atomically: it is neither a pointer nor a number of 8, 16, 32 or 64 bits"
        )
    if op.alignment is None:
        raise VerifyException("is atomic, so it needs an alignment")


class AccessOp(QuickOp):
    """An access to memory, with the properties that all kinds have.

    alignment   bytes; by default the natural alignment of the type
    syncscope   the threads that observe the order of an atomic access
    """

    alignment = opt_prop_def(IntegerAttr)
    volatile_ = opt_prop_def(UnitAttr)
    syncscope = opt_prop_def(StringAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)

    irdl_options = (ParsePropInAttrDict(),)


@op_definition
class LoadOp(AccessOp):
    """`llvm.load volatile %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>`

    invariant   the memory is not written while the kernel runs: the load may be moved and merged, and uses the read-only cache
    """

    name = "llvm.load"

    ptr = operand_def(LLVMPointerType)
    nontemporal = opt_prop_def(UnitAttr)
    invariant = opt_prop_def(UnitAttr)
    invariantGroup = opt_prop_def(UnitAttr)
    ordering = prop_def(IntegerAttr, default_value=integer(0, i64))
    dereferenceable = opt_prop_def(DereferenceableAttr)
    dereferenced_value = result_def()

    assembly_format = (
        f"(`volatile` $volatile_^)? $ptr {_ATOMIC} (`invariant` $invariant^)? (`invariant_group` $invariantGroup^)?"
        " (`dereferenceable` `` $dereferenceable^)? attr-dict `:` type($ptr) `->` type($dereferenced_value)"
    )
    custom_directives = (Ordering,)

    traits = traits_def(_AccessEffect())

    def __init__(
        self,
        ptr: SSAValue | Operation,
        result_type: Attribute,
        alignment: int | None = None,
        ordering: int = 0,
        invariant: bool = False,
        volatile: bool = False,
        syncscope: str | None = None,
    ):
        super().__init__(
            operands=[ptr],
            result_types=[result_type],
            properties={
                "alignment": None if alignment is None else integer(alignment, i64),
                "ordering": integer(ordering, i64),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
                **_flags(invariant=invariant, volatile_=volatile),
            },
        )

    def verify_(self) -> None:
        _verify_atomic(self, self.dereferenced_value.type, ("unordered", "monotonic", "acquire", "seq_cst"))
        if self.dereferenceable is not None and not isinstance(self.dereferenced_value.type, LLVMPointerType):
            raise VerifyException(
                f"says that its result can be dereferenced, but that is {self.dereferenced_value.type}"
            )


@op_definition
class StoreOp(AccessOp):
    """`llvm.store %v, %p {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr`"""

    name = "llvm.store"

    value = operand_def()
    ptr = operand_def(LLVMPointerType)
    nontemporal = opt_prop_def(UnitAttr)
    invariantGroup = opt_prop_def(UnitAttr)
    ordering = prop_def(IntegerAttr, default_value=integer(0, i64))

    assembly_format = (
        f"(`volatile` $volatile_^)? $value `,` $ptr {_ATOMIC} (`invariant_group` $invariantGroup^)? attr-dict"
        " `:` type($value) `,` type($ptr)"
    )
    custom_directives = (Ordering,)

    traits = traits_def(_AccessEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        ptr: SSAValue | Operation,
        alignment: int | None = None,
        ordering: int = 0,
        volatile: bool = False,
        syncscope: str | None = None,
    ):
        super().__init__(
            operands=[value, ptr],
            properties={
                "alignment": None if alignment is None else integer(alignment, i64),
                "ordering": integer(ordering, i64),
                "syncscope": None if syncscope is None else StringAttr(syncscope),
                **_flags(volatile_=volatile),
            },
        )

    def verify_(self) -> None:
        _verify_atomic(self, self.value.type, ("unordered", "monotonic", "release", "seq_cst"))
