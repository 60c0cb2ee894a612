"""The `llvm` dialect's memory: addresses, loads, stores.

    %p = llvm.getelementptr inbounds %arg0[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %v = llvm.load %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
    llvm.store %v, %q {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr

An invariant load reads what nobody writes while the kernel runs: it has no effect that another op could see.
Source: MLIR 22, LLVM dialect.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from xdsl.dialects import llvm as upstream
from xdsl.dialects.builtin import (
    I32,
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
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

DYNAMIC_INDEX = upstream.GEP_USE_SSA_VAL
"""Stands in a getelementptr's constant indices where an operand is meant."""

ORDERINGS = upstream.ATOMIC_ORDERING_KEYWORDS
"""Atomic ordering's number -> keyword; 0 is not atomic and has none."""

# The bits of getelementptr's flags, and the keywords that stand for them, longest first.
_WRAP_FLAGS = {"inbounds": 3, "nusw": 2, "nuw": 4}


@irdl_op_definition
class GEPOp(IRDLOperation):
    """`llvm.getelementptr inbounds %p[%i, 1] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<4 x f32>`: an address.

    The first index counts whole elements of `elem_type`, the others go into one. `noWrapFlags` is 3 for `inbounds` (it implies `nusw`, 2);
    `nuw` is 4.
    """

    name = "llvm.getelementptr"

    ptr = operand_def(LLVMPointerType | VectorType[LLVMPointerType])
    ssa_indices = var_operand_def(IntegerType)
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr[I32], default_value=IntegerAttr(0, 32))
    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))
    result = result_def(LLVMPointerType | VectorType[LLVMPointerType])

    traits = traits_def(Pure())

    def __init__(
        self,
        ptr: SSAValue | Operation,
        indices: Sequence[int],
        pointee_type: Attribute,
        ssa_indices: Sequence[SSAValue | Operation] | None = None,
        result_type: Attribute | None = None,
        inbounds: bool = False,
        nuw: bool = False,
    ):
        """`indices` holds DYNAMIC_INDEX where the next of `ssa_indices` is meant; `from_mixed_indices` does without."""
        super().__init__(
            operands=[ptr, ssa_indices or []],
            properties={
                "elem_type": pointee_type,
                "noWrapFlags": IntegerAttr(3 * inbounds + 4 * nuw, 32),
                "rawConstantIndices": DenseArrayBase.from_list(i32, indices),
            },
            result_types=[result_type or LLVMPointerType()],
        )

    @staticmethod
    def from_mixed_indices(
        ptr: SSAValue | Operation,
        indices: Sequence[int | SSAValue | Operation],
        pointee_type: Attribute,
        result_type: Attribute | None = None,
        inbounds: bool = False,
        nuw: bool = False,
    ) -> GEPOp:
        """The op from indices that are numbers or values."""
        return GEPOp(
            ptr,
            [index if isinstance(index, int) else DYNAMIC_INDEX for index in indices],
            pointee_type,
            [index for index in indices if not isinstance(index, int)],
            result_type,
            inbounds,
            nuw,
        )

    @property
    def inbounds(self) -> bool:
        return self.noWrapFlags.value.data & 3 == 3

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
        type = parser.parse_function_type()
        parser.parse_punctuation(",")
        elem_type = parser.parse_type()
        base, *rest = parser.resolve_operands([ptr, *values], type.inputs.data, start)
        constants = [index if isinstance(index, int) else DYNAMIC_INDEX for index in indices]
        op = GEPOp(base, constants, elem_type, rest, type.outputs.data[0])
        op.properties["noWrapFlags"] = IntegerAttr(flags, 32)
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
                f"{indices.count(DYNAMIC_INDEX)} indices are to be operands, but there are {len(self.ssa_indices)}"
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


class _AccessEffect(MemoryEffect):
    """What a load or store does, apart from its value: a load reads, unless nobody ever writes there; volatile and atomic: anything."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        assert isinstance(op, LoadOp | StoreOp)
        if op.volatile_ is not None or op.ordering.value.data:
            return None
        if isinstance(op, StoreOp):
            return frozenset((EffectInstance(MemoryEffectKind.WRITE),))
        if op.invariant is not None:
            return frozenset()
        return frozenset((EffectInstance(MemoryEffectKind.READ),))


def _flags(**flags: bool) -> dict[str, Attribute | None]:
    return {name: UnitAttr() if is_set else None for name, is_set in flags.items()}


def _parse_atomic(parser: Parser, properties: dict[str, Attribute | None]) -> None:
    """`atomic syncscope("agent") monotonic`, if it is there."""
    if parser.parse_optional_keyword("atomic") is None:
        return
    if parser.parse_optional_keyword("syncscope") is not None:
        with parser.in_parens():
            properties["syncscope"] = StringAttr(parser.parse_str_literal())
    word = parser.parse_identifier()
    number = next((number for number, keyword in ORDERINGS.items() if keyword == word), None)
    if number is None:
        parser.raise_error(f"unknown atomic ordering '{word}'; one of: {', '.join(ORDERINGS.values())}")
    properties["ordering"] = IntegerAttr(number, i64)


def _print_atomic(printer: Printer, op: LoadOp | StoreOp) -> None:
    if not (ordering := op.ordering.value.data):
        return
    scope = ""
    printer.print_string(" atomic")
    if op.syncscope is not None:
        scope = f'syncscope("{op.syncscope.data}") '
    printer.print_string(f" {scope}{ORDERINGS[ordering]}")


# Properties that stand in the attribute dictionary: what an access says of itself besides what it does.
METADATA = ("alignment", "nontemporal", "access_groups", "alias_scopes", "noalias_scopes", "tbaa")


def _print_access_attributes(printer: Printer, op: LoadOp | StoreOp) -> None:
    properties = {name: op.properties[name] for name in METADATA if name in op.properties}
    printer.print_op_attributes(properties | op.attributes)


def move_properties(
    names: Sequence[str],
    attributes: dict[str, Attribute],
    properties: MutableMapping[str, Attribute] | MutableMapping[str, Attribute | None],
) -> None:
    """Moves those of `names` that an op's dictionary holds to its properties."""
    for name in names:
        if (value := attributes.pop(name, None)) is not None:
            properties[name] = value


@irdl_op_definition
class LoadOp(IRDLOperation):
    """`llvm.load volatile %p invariant {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>`

    invariant   nobody writes there while the kernel runs: the load may be moved and merged, and goes through the read-only cache
    alignment   bytes; without it LLVM takes the natural alignment of the type
    """

    name = "llvm.load"

    ptr = operand_def(LLVMPointerType)
    alignment = opt_prop_def(IntegerAttr)
    volatile_ = opt_prop_def(UnitAttr)
    nontemporal = opt_prop_def(UnitAttr)
    invariant = opt_prop_def(UnitAttr)
    invariantGroup = opt_prop_def(UnitAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    ordering = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    syncscope = opt_prop_def(StringAttr)
    dereferenced_value = result_def()

    traits = traits_def(_AccessEffect())

    def __init__(
        self,
        ptr: SSAValue | Operation,
        result_type: Attribute,
        alignment: int | None = None,
        ordering: int = 0,
        invariant: bool = False,
        volatile: bool = False,
        nontemporal: bool = False,
    ):
        super().__init__(
            operands=[ptr],
            result_types=[result_type],
            properties={
                "alignment": None if alignment is None else IntegerAttr(alignment, i64),
                "ordering": IntegerAttr(ordering, i64),
                **_flags(invariant=invariant, volatile_=volatile, nontemporal=nontemporal),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        properties = _flags(volatile_=parser.parse_optional_keyword("volatile") is not None)
        ptr = parser.parse_unresolved_operand()
        _parse_atomic(parser, properties)
        properties |= _flags(
            invariant=parser.parse_optional_keyword("invariant") is not None,
            invariantGroup=parser.parse_optional_keyword("invariant_group") is not None,
        )
        attributes = parser.parse_optional_attr_dict()
        move_properties(METADATA, attributes, properties)
        parser.parse_punctuation(":")
        pointer = parser.resolve_operand(ptr, parser.parse_type())
        parser.parse_punctuation("->")
        op = LoadOp(pointer, parser.parse_type())
        op.properties |= {name: value for name, value in properties.items() if value is not None}
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" volatile " if self.volatile_ is not None else " ")
        printer.print_ssa_value(self.ptr)
        _print_atomic(printer, self)
        if self.invariant is not None:
            printer.print_string(" invariant")
        if self.invariantGroup is not None:
            printer.print_string(" invariant_group")
        _print_access_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.ptr.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.dereferenced_value.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """`llvm.store %v, %p {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr`"""

    name = "llvm.store"

    value = operand_def()
    ptr = operand_def(LLVMPointerType)
    alignment = opt_prop_def(IntegerAttr)
    volatile_ = opt_prop_def(UnitAttr)
    nontemporal = opt_prop_def(UnitAttr)
    invariantGroup = opt_prop_def(UnitAttr)
    access_groups = opt_prop_def(ArrayAttr)
    alias_scopes = opt_prop_def(ArrayAttr)
    noalias_scopes = opt_prop_def(ArrayAttr)
    tbaa = opt_prop_def(ArrayAttr)
    ordering = prop_def(IntegerAttr, default_value=IntegerAttr(0, i64))
    syncscope = opt_prop_def(StringAttr)

    traits = traits_def(_AccessEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        ptr: SSAValue | Operation,
        alignment: int | None = None,
        ordering: int = 0,
        volatile: bool = False,
        nontemporal: bool = False,
    ):
        super().__init__(
            operands=[value, ptr],
            properties={
                "alignment": None if alignment is None else IntegerAttr(alignment, i64),
                "ordering": IntegerAttr(ordering, i64),
                **_flags(volatile_=volatile, nontemporal=nontemporal),
            },
        )

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        properties = _flags(volatile_=parser.parse_optional_keyword("volatile") is not None)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        ptr = parser.parse_unresolved_operand()
        _parse_atomic(parser, properties)
        properties |= _flags(invariantGroup=parser.parse_optional_keyword("invariant_group") is not None)
        attributes = parser.parse_optional_attr_dict()
        move_properties(METADATA, attributes, properties)
        parser.parse_punctuation(":")
        stored = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation(",")
        op = StoreOp(stored, parser.resolve_operand(ptr, parser.parse_type()))
        op.properties |= {name: value for name, value in properties.items() if value is not None}
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" volatile " if self.volatile_ is not None else " ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.ptr)
        _print_atomic(printer, self)
        if self.invariantGroup is not None:
            printer.print_string(" invariant_group")
        _print_access_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_attribute(self.ptr.type)
