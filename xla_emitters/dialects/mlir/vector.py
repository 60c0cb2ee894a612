"""The `vector` dialect: xDSL's, with what it lacks of vectors of known size.

    %v = vector.from_elements %a, %b, %c, %d : vector<4xbf16>
    %e:4 = vector.to_elements %v : vector<4xbf16>
    %w = vector.shape_cast %v : vector<4xbf16> to vector<2x2xbf16>
    %s = vector.extract_strided_slice %v {offsets = [1], sizes = [2], strides = [1]} : vector<4xbf16> to vector<2xbf16>
    %g = vector.gather %m[%i] [%iv], %mask, %else : memref<?xbf16>, vector<4xi32>, vector<4xi1>, vector<4xbf16> into vector<4xbf16>

Also transpose, interleave, deinterleave, step, constant_mask, multi_reduction, scan, outerproduct, scatter, expandload, compressstore.
Source: MLIR 22, vector dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import ClassVar

from xdsl.dialects import vector as upstream
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.vector import (
    BitcastOp,
    BroadcastOp,
    CombiningKindAttr,
    CombiningKindFlag,
    CreateMaskOp,
    ExtractOp,
    FMAOp,
    InsertOp,
    LoadOp,
    MaskedLoadOp,
    MaskedStoreOp,
    PrintOp,
    ReductionOp,
    ShuffleOp,
    StoreOp,
    TransferReadOp,
    TransferWriteOp,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    eq,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl import base as irdl_base
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa


def _parse_vector_type(parser: Parser) -> VectorType:
    start = parser.pos
    type = parser.parse_type()
    if not isa(type, VectorType):
        parser.raise_error("expected a vector type", start, parser.pos)
    return type


def _vector_type(value: SSAValue) -> VectorType:
    assert isa(value.type, VectorType)
    return value.type


def _verify_elements(vector: VectorType, elements: Sequence[SSAValue]) -> None:
    wanted = prod(vector.get_shape())
    if len(elements) != wanted:
        raise VerifyException(f"{vector} has {wanted} elements, not {len(elements)}")
    for element in elements:
        if element.type != vector.element_type:
            raise VerifyException(f"an element of {vector} cannot be {element.type}")


@irdl_op_definition
class FromElementsOp(IRDLOperation):
    """A vector of its elements, the last dimension fastest."""

    name = "vector.from_elements"

    elements = var_operand_def()
    dest = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, elements: Sequence[SSAValue | Operation], result_type: VectorType):
        super().__init__(operands=[elements], result_types=[result_type])

    @classmethod
    def parse(cls, parser: Parser) -> FromElementsOp:
        elements = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = _parse_vector_type(parser)
        op = FromElementsOp([parser.resolve_operand(element, type.element_type) for element in elements], type)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.dest.type)

    def verify_(self) -> None:
        assert isa(self.dest.type, VectorType)
        _verify_elements(self.dest.type, self.elements)


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """The elements of a vector, the last dimension fastest."""

    name = "vector.to_elements"

    source = operand_def(VectorType)
    elements = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation):
        type = SSAValue.get(source).type
        assert isa(type, VectorType), "to_elements of a value that is no vector"
        super().__init__(operands=[source], result_types=[[type.element_type] * prod(type.get_shape())])

    @classmethod
    def parse(cls, parser: Parser) -> ToElementsOp:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = ToElementsOp(parser.resolve_operand(source, _parse_vector_type(parser)))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    def verify_(self) -> None:
        assert isa(self.source.type, VectorType)
        _verify_elements(self.source.type, self.elements)


# ---- elements in another order or shape -------------------------------------------------------------------------------------------------


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """The same elements, row major, in another shape."""

    name = "vector.shape_cast"

    source = operand_def(VectorType)
    result = result_def(VectorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, result_type: VectorType):
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        source, result = _vector_type(self.source), _vector_type(self.result)
        if source.element_type != result.element_type or prod(source.get_shape()) != prod(result.get_shape()):
            raise VerifyException(f"{source} and {result} do not hold the same elements")


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Dimension n of the result is dimension permutation[n] of the operand."""

    name = "vector.transpose"

    vector = operand_def(VectorType)
    permutation = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)

    assembly_format = "$vector `,` $permutation attr-dict `:` type($vector) `to` type($result)"

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, permutation: Sequence[int]):
        type = _vector_type(SSAValue.get(source))
        shape = type.get_shape()
        super().__init__(
            operands=[source],
            properties={"permutation": DenseArrayBase.from_list(i64, permutation)},
            result_types=[VectorType(type.element_type, [shape[n] for n in permutation])],
        )

    def verify_(self) -> None:
        source, result = _vector_type(self.vector), _vector_type(self.result)
        order = self.permutation.get_values()
        if sorted(order) != list(range(source.get_num_dims())):
            raise VerifyException(f"{list(order)} is no permutation of the dimensions of {source}")
        wanted = VectorType(source.element_type, [source.get_shape()[n] for n in order])
        if result != wanted:
            raise VerifyException(f"gives {wanted}, not {result}")


@irdl_op_definition
class InterleaveOp(IRDLOperation):
    """Elements of the two operands in turn, along the last dimension."""

    name = "vector.interleave"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(VectorType)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_halves(_vector_type(self.lhs), _vector_type(self.result))


@irdl_op_definition
class DeinterleaveOp(IRDLOperation):
    """Every other element along the last dimension: those of even numbers, those of odd ones."""

    name = "vector.deinterleave"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))

    source = operand_def(VectorType)
    res1 = result_def(T)
    res2 = result_def(T)

    assembly_format = "$source attr-dict `:` type($source) `->` type($res1)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_halves(_vector_type(self.res1), _vector_type(self.source))


def _verify_halves(half: VectorType, whole: VectorType) -> None:
    *outer, last = half.get_shape()
    if whole != VectorType(half.element_type, [*outer, 2 * last]):
        raise VerifyException(f"{whole} is not two of {half}")


# ---- slices -----------------------------------------------------------------------------------------------------------------------------


def _integers(attribute: Attribute) -> list[int]:
    assert isa(attribute, ArrayAttr[IntegerAttr])
    return [number.value.data for number in attribute]


class _Slice(IRDLOperation):
    """Strides other than 1 are not MLIR's."""

    offsets = prop_def(ArrayAttr[IntegerAttr])
    strides = prop_def(ArrayAttr[IntegerAttr])

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())


def _verify_slice(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int], whole: VectorType) -> None:
    if set(strides) - {1}:
        raise VerifyException(f"strides are 1, not {list(strides)}")
    for dimension, (offset, size, extent) in enumerate(zip(offsets, sizes, whole.get_shape(), strict=False)):
        if offset < 0 or offset + size > extent:
            raise VerifyException(f"elements {offset} to {offset + size - 1} of dimension {dimension} of {whole}")


@irdl_op_definition
class ExtractStridedSliceOp(_Slice):
    """A part of a vector: `offsets`, `sizes` and `strides` of its first dimensions, the others whole."""

    name = "vector.extract_strided_slice"

    source = operand_def(VectorType)
    sizes = prop_def(ArrayAttr[IntegerAttr])
    result = result_def(VectorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        source, sizes = _vector_type(self.source), _integers(self.sizes)
        _verify_slice(_integers(self.offsets), sizes, _integers(self.strides), source)
        wanted = VectorType(source.element_type, [*sizes, *source.get_shape()[len(sizes) :]])
        if self.result.type != wanted:
            raise VerifyException(f"gives {wanted}, not {self.result.type}")


@irdl_op_definition
class InsertStridedSliceOp(_Slice):
    """A vector with a part of it replaced: `strides` of the part's dimensions, which are the last of the whole's."""

    name = "vector.insert_strided_slice"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))

    source = operand_def(VectorType)
    dest = operand_def(T)
    result = result_def(T)

    assembly_format = "$source `,` $dest attr-dict `:` type($source) `into` type($dest)"

    def verify_(self) -> None:
        source, whole, offsets = _vector_type(self.source), _vector_type(self.dest), _integers(self.offsets)
        if source.element_type != whole.element_type or len(offsets) != whole.get_num_dims():
            raise VerifyException(f"{source} at {offsets} of {whole}")
        leading = len(offsets) - source.get_num_dims()
        _verify_slice(offsets, [*([1] * leading), *source.get_shape()], _integers(self.strides), whole)


# ---- vectors from nothing ---------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class StepOp(IRDLOperation):
    """0, 1, 2 ..."""

    name = "vector.step"

    result = result_def(VectorType.constr(irdl_base(IndexType)))

    assembly_format = "attr-dict `:` type($result)"

    traits = traits_def(Pure())

    def __init__(self, result_type: VectorType):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class ConstantMaskOp(IRDLOperation):
    """True for elements whose index in each dimension is below the size."""

    name = "vector.constant_mask"

    mask_dim_sizes = prop_def(DenseArrayBase.constr(i64))
    mask = result_def(VectorType.constr(eq(i1)))

    assembly_format = "$mask_dim_sizes attr-dict `:` type($mask)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        sizes, type = self.mask_dim_sizes.get_values(), _vector_type(self.mask)
        # A mask of rank 0 has one size too: 0 or 1.
        if len(sizes) != max(type.get_num_dims(), 1):
            raise VerifyException(f"{len(sizes)} sizes for {type}")


# ---- reductions -------------------------------------------------------------------------------------------------------------------------


@irdl_op_definition
class MultiReductionOp(IRDLOperation):
    """Elements along `reduction_dims` combined with each other and with `acc`."""

    name = "vector.multi_reduction"

    T: ClassVar = VarConstraint("T", AnyAttr())

    kind = prop_def(CombiningKindAttr)
    source = operand_def(VectorType)
    acc = operand_def(T)
    reduction_dims = prop_def(DenseArrayBase.constr(i64))
    dest = result_def(T)

    assembly_format = "$kind `,` $source `,` $acc attr-dict $reduction_dims `:` type($source) `to` type($dest)"

    traits = traits_def(Pure())

    def verify_(self) -> None:
        source, reduced = _vector_type(self.source), self.reduction_dims.get_values()
        shape = [extent for n, extent in enumerate(source.get_shape()) if n not in reduced]
        wanted = VectorType(source.element_type, shape) if shape else source.element_type
        if self.dest.type != wanted:
            raise VerifyException(f"gives {wanted}, not {self.dest.type}")


@irdl_op_definition
class ScanOp(IRDLOperation):
    """All partial results along one dimension, with or without the element itself; and the last one."""

    name = "vector.scan"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))
    A: ClassVar = VarConstraint("A", irdl_base(VectorType))

    kind = prop_def(CombiningKindAttr)
    source = operand_def(T)
    initial_value = operand_def(A)
    reduction_dim = prop_def(IntegerAttr.constr(type=eq(i64)))
    inclusive = prop_def(BoolAttr)
    dest = result_def(T)
    accumulated_value = result_def(A)

    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$kind `,` $source `,` $initial_value attr-dict `:` type($source) `,` type($initial_value)"

    traits = traits_def(Pure())


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """lhs[i] * rhs[j], combined with `acc`; of a vector and a scalar, lhs[i] * rhs."""

    name = "vector.outerproduct"

    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, acc: SSAValue | None = None):
        rows, other = _vector_type(SSAValue.get(lhs)), SSAValue.get(rhs).type
        columns = other.get_shape() if isinstance(other, VectorType) else ()
        result = VectorType(rows.element_type, [*rows.get_shape(), *columns])
        super().__init__(operands=[lhs, rhs, acc], result_types=[result])

    @classmethod
    def parse(cls, parser: Parser) -> OuterProductOp:
        start = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        rows = _parse_vector_type(parser)
        parser.parse_punctuation(",")
        lhs, rhs = parser.resolve_operands(operands[:2], [rows, parser.parse_type()], start)
        op = OuterProductOp(lhs, rhs)
        if len(operands) > 2:
            op = OuterProductOp(lhs, rhs, parser.resolve_operand(operands[2], op.result.type))
        if (kind := attributes.pop("kind", None)) is not None:
            op.properties["kind"] = kind
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({"kind": self.kind} | self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.lhs.type, self.rhs.type), printer.print_attribute)

    def verify_(self) -> None:
        wanted = VectorType(_vector_type(self.lhs).element_type, _outer_shape(self))
        if self.result.type != wanted or (self.acc is not None and self.acc.type != wanted):
            raise VerifyException(f"gives {wanted}, not {self.result.type}")


def _outer_shape(op: OuterProductOp) -> list[int]:
    rows, other = _vector_type(op.lhs), op.rhs.type
    return [*rows.get_shape(), *(other.get_shape() if isinstance(other, VectorType) else ())]


# ---- memory under a mask ----------------------------------------------------------------------------------------------------------------


class _Aligned(IRDLOperation):
    """An access of the elements for which `mask` is true, which may say on which multiple of bytes it lies."""

    alignment = opt_prop_def(IntegerAttr.constr(type=eq(i64)))

    irdl_options = (ParsePropInAttrDict(),)


def _verify_access(op: Operation, accessed: SSAValue, indices: Sequence[SSAValue], row: SSAValue) -> None:
    type, vector = accessed.type, _vector_type(row)
    assert isa(type, MemRefType | TensorType)
    if type.element_type != vector.element_type:
        raise VerifyException(f"elements of {type} are not those of {vector}")
    if len(indices) != type.get_num_dims():
        raise VerifyException(f"{len(indices)} indices into {type}")


@irdl_op_definition
class ExpandLoadOp(_Aligned):
    """Reads as many elements as the mask has trues, side by side, to where the trues are."""

    name = "vector.expandload"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    mask = operand_def(VectorType.constr(eq(i1)))
    pass_thru = operand_def(T)
    result = result_def(T)

    assembly_format = (
        "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
        " `:` type($base) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        _verify_access(self, self.base, self.indices, self.result)


@irdl_op_definition
class CompressStoreOp(_Aligned):
    """Writes the elements for which the mask is true, side by side."""

    name = "vector.compressstore"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    mask = operand_def(VectorType.constr(eq(i1)))
    value_to_store = operand_def(VectorType)

    assembly_format = (
        "$base `[` $indices `]` `,` $mask `,` $value_to_store attr-dict"
        " `:` type($base) `,` type($mask) `,` type($value_to_store)"
    )

    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        _verify_access(self, self.base, self.indices, self.value_to_store)


class EffectOfBase(MemoryEffect):
    """A gather from a tensor and a scatter into one only compute a value; those of memory read or write it."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        assert isinstance(op, GatherOp | ScatterOp)
        if isinstance(op.base.type, TensorType):
            return frozenset()
        kind = MemoryEffectKind.READ if isinstance(op, GatherOp) else MemoryEffectKind.WRITE
        return frozenset((EffectInstance(kind),))


class _IndexedAccess(_Aligned):
    """Accesses of the elements that lie `indices` behind `offsets`."""

    traits = traits_def(EffectOfBase())


@irdl_op_definition
class GatherOp(_IndexedAccess):
    """Reads; elements whose mask is false are those of `pass_thru`."""

    name = "vector.gather"

    T: ClassVar = VarConstraint("T", irdl_base(VectorType))

    base = operand_def(MemRefType | TensorType)
    offsets = var_operand_def(IndexType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType.constr(eq(i1)))
    pass_thru = operand_def(T)
    result = result_def(T)

    assembly_format = (
        "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
        " `:` type($base) `,` type($indices) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def verify_(self) -> None:
        _verify_access(self, self.base, self.offsets, self.result)


@irdl_op_definition
class ScatterOp(_IndexedAccess):
    """Writes, in the order of the elements; into a tensor it gives the tensor that then is."""

    name = "vector.scatter"

    base = operand_def(MemRefType | TensorType)
    offsets = var_operand_def(IndexType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType.constr(eq(i1)))
    value_to_store = operand_def(VectorType)
    result = opt_result_def(TensorType)

    assembly_format = (
        "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $value_to_store attr-dict"
        " `:` type($base) `,` type($indices) `,` type($mask) `,` type($value_to_store) (`->` type($result)^)?"
    )

    def verify_(self) -> None:
        _verify_access(self, self.base, self.offsets, self.value_to_store)
        if isinstance(self.base.type, TensorType) != (self.result is not None):
            raise VerifyException("a scatter gives a tensor if it takes one")


ADDED_OPS: tuple[type[IRDLOperation], ...] = (
    *(CompressStoreOp, ConstantMaskOp, DeinterleaveOp, ExpandLoadOp, ExtractStridedSliceOp, FromElementsOp, GatherOp),
    *(InsertStridedSliceOp, InterleaveOp, MultiReductionOp, OuterProductOp, ScanOp, ScatterOp, ShapeCastOp, StepOp),
    *(ToElementsOp, TransposeOp),
)

VECTOR = Dialect("vector", [*upstream.Vector.operations, *ADDED_OPS], list(upstream.Vector.attributes))

__all__ = [
    "VECTOR",
    "BitcastOp",
    "BroadcastOp",
    "CombiningKindAttr",
    "CombiningKindFlag",
    "CompressStoreOp",
    "ConstantMaskOp",
    "CreateMaskOp",
    "DeinterleaveOp",
    "ExpandLoadOp",
    "ExtractOp",
    "ExtractStridedSliceOp",
    "FMAOp",
    "FromElementsOp",
    "GatherOp",
    "InsertOp",
    "InsertStridedSliceOp",
    "InterleaveOp",
    "LoadOp",
    "MaskedLoadOp",
    "MaskedStoreOp",
    "MultiReductionOp",
    "OuterProductOp",
    "PrintOp",
    "ReductionOp",
    "ScanOp",
    "ScatterOp",
    "ShapeCastOp",
    "ShuffleOp",
    "StepOp",
    "StoreOp",
    "ToElementsOp",
    "TransferReadOp",
    "TransferWriteOp",
    "TransposeOp",
]
