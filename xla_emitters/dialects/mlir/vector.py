"""The `vector` dialect: xDSL's, with the ops on vectors of known size that it lacks.

    %v = vector.from_elements %a, %b, %c, %d : vector<4xbf16>
    %e:4 = vector.to_elements %v : vector<4xbf16>
    %w = vector.shape_cast %v : vector<4xbf16> to vector<2x2xbf16>
    %s = vector.extract_strided_slice %v {offsets = [1], sizes = [2], strides = [1]} : vector<4xbf16> to vector<2xbf16>
    %g = vector.gather %m[%i] [%iv], %mask, %else : memref<?xbf16>, vector<4xi32>, vector<4xi1>, vector<4xbf16> into vector<4xbf16>

Also transpose, interleave, deinterleave, step, constant_mask, multi_reduction, scan, outerproduct, scatter, expandload, compressstore.
Completed accesses are in `vector_accesses.py`.
Source: MLIR 22, vector dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any

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
from xdsl.dialects.vector import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    RangeOf,
    VarConstraint,
    eq,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl import base as irdl_base
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import Derived, DerivedRange
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.mlir.vector_accesses import LoadOp as LoadOp
from xla_emitters.dialects.mlir.vector_accesses import MaskedLoadOp as MaskedLoadOp
from xla_emitters.dialects.mlir.vector_accesses import MaskedStoreOp as MaskedStoreOp
from xla_emitters.dialects.mlir.vector_accesses import StoreOp as StoreOp
from xla_emitters.dialects.mlir.vector_accesses import TransferReadOp as TransferReadOp
from xla_emitters.dialects.mlir.vector_accesses import TransferWriteOp as TransferWriteOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp


def _parse_vector_type(parser: Parser) -> VectorType:
    start = parser.pos
    vector_type = parser.parse_type()
    if not isa(vector_type, VectorType):
        parser.raise_error("expected a vector type", start, parser.pos)
    return vector_type


def _vector_type(value: SSAValue) -> VectorType:
    assert isa(value.type, VectorType)
    return value.type


def _elements_of(vector: VectorType) -> list[Attribute]:
    return [vector.element_type] * prod(vector.get_shape())


def _verify_elements(vector: VectorType, elements: Sequence[SSAValue]) -> None:
    wanted = prod(vector.get_shape())
    if len(elements) != wanted:
        raise VerifyException(f"{vector} has {wanted} elements, not {len(elements)}")
    for element in elements:
        if element.type != vector.element_type:
            raise VerifyException(f"an element of {vector} cannot be {element.type}")


@op_definition
class FromElementsOp(PureOp):
    """A vector of its elements, the last dimension fastest."""

    name = "vector.from_elements"

    elements = var_operand_def(RangeOf(Derived("V", lambda vector: vector.element_type, AnyAttr())))
    dest = result_def(VarConstraint("V", irdl_base(VectorType)))

    assembly_format = "$elements attr-dict `:` type($dest)"

    def __init__(self, elements: Sequence[SSAValue | Operation], result_type: VectorType):
        super().__init__(operands=[elements], result_types=[result_type])

    def verify_(self) -> None:
        assert isa(self.dest.type, VectorType)
        _verify_elements(self.dest.type, self.elements)


@op_definition
class ToElementsOp(PureOp):
    """The elements of a vector, the last dimension fastest."""

    name = "vector.to_elements"

    source = operand_def(VarConstraint("V", irdl_base(VectorType)))
    elements = var_result_def(DerivedRange("V", _elements_of))

    assembly_format = "$source attr-dict `:` type($source)"

    def verify_(self) -> None:
        assert isa(self.source.type, VectorType)
        _verify_elements(self.source.type, self.elements)


# ---- elements in another order or shape -------------------------------------------------------------------------------------------------

_PURE = (Pure(),)
_V = VarConstraint("T", irdl_base(VectorType))


def _verify_shape_cast(op: Any) -> None:
    source, result = _vector_type(op.source), _vector_type(op.result)
    if source.element_type != result.element_type or prod(source.get_shape()) != prod(result.get_shape()):
        raise VerifyException(f"{source} and {result} do not hold the same elements")


def _verify_transpose(op: Any) -> None:
    source, result = _vector_type(op.vector), _vector_type(op.result)
    order: Sequence[int] = op.permutation.get_values()
    if sorted(order) != list(range(source.get_num_dims())):
        raise VerifyException(f"{list(order)} is not a permutation of the dimensions of {source}")
    wanted = VectorType(source.element_type, [source.get_shape()[n] for n in order])
    if result != wanted:
        raise VerifyException(f"gives {wanted}, not {result}")


def _verify_halves(one: SSAValue, both: SSAValue) -> None:
    half, whole = _vector_type(one), _vector_type(both)
    *outer, last = half.get_shape()
    if whole != VectorType(half.element_type, [*outer, 2 * last]):
        raise VerifyException(f"{whole} is not two of {half}")


# The same elements, row major, in another shape.
ShapeCastOp = op_of_row(
    "vector.shape_cast",
    "$source attr-dict `:` type($source) `to` type($result)",
    traits=_PURE,
    verify=_verify_shape_cast,
    source=operand_def(VectorType),
    result=result_def(VectorType),
)

# Dimension n of the result is dimension permutation[n] of the operand.
TransposeOp = op_of_row(
    "vector.transpose",
    "$vector `,` $permutation attr-dict `:` type($vector) `to` type($result)",
    properties={"permutation": prop_def(DenseArrayBase.constr(i64))},
    traits=_PURE,
    verify=_verify_transpose,
    vector=operand_def(VectorType),
    result=result_def(VectorType),
)

# Elements of the two operands in turn, along the last dimension.
InterleaveOp = op_of_row(
    "vector.interleave",
    "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
    traits=_PURE,
    verify=lambda op: _verify_halves(op.lhs, op.result),
    lhs=operand_def(_V),
    rhs=operand_def(_V),
    result=result_def(VectorType),
)

# Every other element along the last dimension: those of even numbers, those of odd ones.
DeinterleaveOp = op_of_row(
    "vector.deinterleave",
    "$source attr-dict `:` type($source) `->` type($res1)",
    traits=_PURE,
    verify=lambda op: _verify_halves(op.res1, op.source),
    source=operand_def(VectorType),
    res1=result_def(_V),
    res2=result_def(_V),
)

# ---- slices -----------------------------------------------------------------------------------------------------------------------------


def _integers(attribute: Attribute) -> list[int]:
    assert isa(attribute, ArrayAttr[IntegerAttr])
    return [number.value.data for number in attribute]


def _verify_slice(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int], whole: VectorType) -> None:
    """MLIR allows no stride other than 1."""
    if set(strides) - {1}:
        raise VerifyException(f"strides must be 1, not {list(strides)}")
    for dimension, (offset, size, extent) in enumerate(zip(offsets, sizes, whole.get_shape(), strict=False)):
        if offset < 0 or offset + size > extent:
            raise VerifyException(f"elements {offset} to {offset + size - 1} of dimension {dimension} of {whole}")


def _verify_extract_slice(op: Any) -> None:
    source, sizes = _vector_type(op.source), _integers(op.sizes)
    _verify_slice(_integers(op.offsets), sizes, _integers(op.strides), source)
    wanted = VectorType(source.element_type, [*sizes, *source.get_shape()[len(sizes) :]])
    if op.result.type != wanted:
        raise VerifyException(f"gives {wanted}, not {op.result.type}")


def _verify_insert_slice(op: Any) -> None:
    source, whole, offsets = _vector_type(op.source), _vector_type(op.dest), _integers(op.offsets)
    if source.element_type != whole.element_type or len(offsets) != whole.get_num_dims():
        raise VerifyException(f"{source} at {offsets} of {whole}")
    leading = len(offsets) - source.get_num_dims()
    _verify_slice(offsets, [*([1] * leading), *source.get_shape()], _integers(op.strides), whole)


def _numbers(*names: str) -> dict[str, Any]:
    return {name: prop_def(ArrayAttr[IntegerAttr]) for name in names}


# A part of a vector: `offsets`, `sizes` and `strides` of its first dimensions, the others whole.
ExtractStridedSliceOp = op_of_row(
    "vector.extract_strided_slice",
    "$source attr-dict `:` type($source) `to` type($result)",
    properties=_numbers("offsets", "sizes", "strides"),
    traits=_PURE,
    verify=_verify_extract_slice,
    source=operand_def(VectorType),
    result=result_def(VectorType),
)

# A vector with a part of it replaced: `strides` of the part's dimensions, which are the last of the whole's.
InsertStridedSliceOp = op_of_row(
    "vector.insert_strided_slice",
    "$source `,` $dest attr-dict `:` type($source) `into` type($dest)",
    properties=_numbers("offsets", "strides"),
    traits=_PURE,
    verify=_verify_insert_slice,
    source=operand_def(VectorType),
    dest=operand_def(_V),
    result=result_def(_V),
)

# ---- vectors from nothing ---------------------------------------------------------------------------------------------------------------


def _verify_mask(op: Any) -> None:
    sizes, mask_type = op.mask_dim_sizes.get_values(), _vector_type(op.mask)
    # A mask of rank 0 has one size too: 0 or 1.
    if len(sizes) != max(mask_type.get_num_dims(), 1):
        raise VerifyException(f"{len(sizes)} sizes for {mask_type}")


# 0, 1, 2 ...
StepOp = op_of_row(
    "vector.step",
    "attr-dict `:` type($result)",
    traits=_PURE,
    result=result_def(VectorType.constr(irdl_base(IndexType))),
)

# True for elements whose index in each dimension is below the size.
ConstantMaskOp = op_of_row(
    "vector.constant_mask",
    "$mask_dim_sizes attr-dict `:` type($mask)",
    properties={"mask_dim_sizes": prop_def(DenseArrayBase.constr(i64))},
    traits=_PURE,
    verify=_verify_mask,
    mask=result_def(VectorType.constr(eq(i1))),
)

# ---- reductions -------------------------------------------------------------------------------------------------------------------------


def _verify_multi_reduction(op: Any) -> None:
    source, reduced = _vector_type(op.source), op.reduction_dims.get_values()
    shape = [extent for n, extent in enumerate(source.get_shape()) if n not in reduced]
    wanted = VectorType(source.element_type, shape) if shape else source.element_type
    if op.dest.type != wanted:
        raise VerifyException(f"gives {wanted}, not {op.dest.type}")


_ANY = VarConstraint("T", AnyAttr())
_CARRIED = VarConstraint("A", irdl_base(VectorType))

# Elements along `reduction_dims` combined with each other and with `acc`.
MultiReductionOp = op_of_row(
    "vector.multi_reduction",
    "$kind `,` $source `,` $acc attr-dict $reduction_dims `:` type($source) `to` type($dest)",
    properties={"kind": prop_def(CombiningKindAttr), "reduction_dims": prop_def(DenseArrayBase.constr(i64))},
    traits=_PURE,
    verify=_verify_multi_reduction,
    source=operand_def(VectorType),
    acc=operand_def(_ANY),
    dest=result_def(_ANY),
)

# All partial results along one dimension, with or without the element itself; and the last one.
ScanOp = op_of_row(
    "vector.scan",
    "$kind `,` $source `,` $initial_value attr-dict `:` type($source) `,` type($initial_value)",
    properties={
        "kind": prop_def(CombiningKindAttr),
        "reduction_dim": prop_def(IntegerAttr.constr(type=eq(i64))),
        "inclusive": prop_def(BoolAttr),
    },
    traits=_PURE,
    source=operand_def(_V),
    initial_value=operand_def(_CARRIED),
    dest=result_def(_V),
    accumulated_value=result_def(_CARRIED),
)


@op_definition
class OuterProductOp(PureOp):
    """lhs[i] * rhs[j], combined with `acc`; of a vector and a scalar, lhs[i] * rhs."""

    name = "vector.outerproduct"

    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    result = result_def(VectorType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, acc: SSAValue | None = None):
        result = _outer_type(SSAValue.get(lhs), SSAValue.get(rhs))
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
        wanted = _outer_type(self.lhs, self.rhs)
        if self.result.type != wanted or (self.acc is not None and self.acc.type != wanted):
            raise VerifyException(f"gives {wanted}, not {self.result.type}")


def _outer_type(lhs: SSAValue, rhs: SSAValue) -> VectorType:
    rows, other = _vector_type(lhs), rhs.type
    columns = other.get_shape() if isinstance(other, VectorType) else ()
    return VectorType(rows.element_type, [*rows.get_shape(), *columns])


# ---- memory under a mask ----------------------------------------------------------------------------------------------------------------


def _verify_access(accessed: SSAValue, indices: Sequence[SSAValue], row: SSAValue) -> None:
    accessed_type, vector = accessed.type, _vector_type(row)
    assert isa(accessed_type, MemRefType | TensorType)
    if accessed_type.element_type != vector.element_type:
        raise VerifyException(f"elements of {accessed_type} are not those of {vector}")
    if len(indices) != accessed_type.get_num_dims():
        raise VerifyException(f"{len(indices)} indices into {accessed_type}")


def _verify_scatter(op: Any) -> None:
    _verify_access(op.base, op.offsets, op.value_to_store)
    if isinstance(op.base.type, TensorType) != (op.result is not None):
        raise VerifyException("a scatter gives a tensor if it takes one")


class EffectOfBase(MemoryEffect):
    """A gather from a tensor or a scatter into one has no effect; one from or into memory reads or writes it."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        if isinstance(op.operands[0].type, TensorType):
            return frozenset()
        kind = MemoryEffectKind.READ if isinstance(op, GatherOp) else MemoryEffectKind.WRITE
        return frozenset((EffectInstance(kind),))


_ALIGNMENT = {"alignment": opt_prop_def(IntegerAttr.constr(type=eq(i64)))}
"""The alignment of the access in bytes."""

_BESIDE: dict[str, Any] = {
    "base": operand_def(MemRefType),
    "indices": var_operand_def(IndexType),
    "mask": operand_def(VectorType.constr(eq(i1))),
}
_INDEXED: dict[str, Any] = {
    "base": operand_def(MemRefType | TensorType),
    "offsets": var_operand_def(IndexType),
    "indices": operand_def(VectorType),
    "mask": operand_def(VectorType.constr(eq(i1))),
}
"""The elements are at `offsets` plus `indices`."""

# Reads one element per true in the mask, contiguous in memory, into the positions of the trues.
ExpandLoadOp = op_of_row(
    "vector.expandload",
    "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
    " `:` type($base) `,` type($mask) `,` type($pass_thru) `into` type($result)",
    properties=_ALIGNMENT,
    traits=(MemoryReadEffect(),),
    verify=lambda op: _verify_access(op.base, op.indices, op.result),
    **_BESIDE,
    pass_thru=operand_def(_V),
    result=result_def(_V),
)

# Writes the elements for which the mask is true, contiguous in memory.
CompressStoreOp = op_of_row(
    "vector.compressstore",
    "$base `[` $indices `]` `,` $mask `,` $value_to_store attr-dict"
    " `:` type($base) `,` type($mask) `,` type($value_to_store)",
    properties=_ALIGNMENT,
    traits=(MemoryWriteEffect(),),
    verify=lambda op: _verify_access(op.base, op.indices, op.value_to_store),
    **_BESIDE,
    value_to_store=operand_def(VectorType),
)

# Reads; elements whose mask is false are those of `pass_thru`.
GatherOp = op_of_row(
    "vector.gather",
    "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $pass_thru attr-dict"
    " `:` type($base) `,` type($indices) `,` type($mask) `,` type($pass_thru) `into` type($result)",
    properties=_ALIGNMENT,
    traits=(EffectOfBase(),),
    verify=lambda op: _verify_access(op.base, op.offsets, op.result),
    **_INDEXED,
    pass_thru=operand_def(_V),
    result=result_def(_V),
)

# Writes in the order of the elements; a scatter into a tensor returns the new tensor.
ScatterOp = op_of_row(
    "vector.scatter",
    "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $value_to_store attr-dict"
    " `:` type($base) `,` type($indices) `,` type($mask) `,` type($value_to_store) (`->` type($result)^)?",
    properties=_ALIGNMENT,
    traits=(EffectOfBase(),),
    verify=_verify_scatter,
    **_INDEXED,
    value_to_store=operand_def(VectorType),
    result=opt_result_def(TensorType),
)

VECTOR = dialect_of(upstream.Vector, names=globals())
