"""The `tensor` dialect: xDSL's, with ops that it lacks. `parallel_insert_slice` is read from today's XLA and never emitted here.
Completed: extract and insert, which count no indices.

    %b = tensor.bitcast %t : tensor<4xf32> to tensor<4xi32>
    %r = tensor.rank %t : tensor<4xf32>
    %g = tensor.generate %n { ^bb0(%i: index): ... tensor.yield %e : f32 } : tensor<?xf32>
    tensor.parallel_insert_slice %t into %o[0, 0] [6, 512] [1, 1] : tensor<6x512xbf16> into tensor<6x512xbf16>

Source: MLIR 22, tensor dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor as upstream
from xdsl.dialects.builtin import DenseArrayBase, FixedBitwidthType, IndexType, TensorType, i64
from xdsl.dialects.tensor import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.tensor import YieldOp
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    HasParent,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

from xla_emitters.dialects.completion import dialect_of
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.scf import InParallelOp
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp


def _verify_indices(tensor: SSAValue, indices: Sequence[SSAValue]) -> None:
    """There is one index for each dimension of the tensor."""
    if isa(tensor.type, TensorType) and len(indices) != tensor.type.get_num_dims():
        raise VerifyException(f"{len(indices)} indices into {tensor.type}")


class ExtractOp(upstream.ExtractOp, QuickOp):
    """One element of a tensor."""

    def verify_(self) -> None:
        super().verify_()
        _verify_indices(self.tensor, self.indices)


class InsertOp(upstream.InsertOp, QuickOp):
    """The tensor with one element replaced."""

    def verify_(self) -> None:
        super().verify_()
        _verify_indices(self.dest, self.indices)


@op_definition
class ParallelInsertSliceOp(QuickOp):
    """The write of one iteration of an `scf.forall` into a shared out."""

    name = "tensor.parallel_insert_slice"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    assembly_format = (
        "$source `into` $dest ``"
        "custom<DynamicIndexList>($offsets, $static_offsets)"
        "custom<DynamicIndexList>($sizes, $static_sizes)"
        "custom<DynamicIndexList>($strides, $static_strides)"
        "attr-dict `:` type($source) `into` type($dest)"
    )
    custom_directives = (DynamicIndexList,)

    traits = lazy_traits_def(lambda: (HasParent(InParallelOp),))


@op_definition
class BitcastOp(QuickOp):
    """The same bits, as elements of another type of the same width."""

    name = "tensor.bitcast"

    source = operand_def(TensorType)
    dest = result_def(TensorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, target_type: Attribute):
        super().__init__(operands=[source], result_types=[target_type])

    def verify_(self) -> None:
        if not have_compatible_shape(self.source.type, self.dest.type):
            raise VerifyException(f"{self.source.type} and {self.dest.type} differ in shape")
        bits = [_element_bits(value.type) for value in (self.source, self.dest)]
        if bits[0] != bits[1]:
            raise VerifyException(f"elements of {self.source.type} and {self.dest.type} differ in width")


def _element_bits(tensor_type: Attribute) -> int | None:
    element = get_element_type_or_self(tensor_type)
    return element.bitwidth if isinstance(element, FixedBitwidthType) else None


@op_definition
class RankOp(QuickOp):
    """The number of dimensions of a tensor."""

    name = "tensor.rank"

    tensor = operand_def(TensorType)
    result = result_def(IndexType)

    assembly_format = "$tensor attr-dict `:` type($tensor)"

    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue | Operation):
        super().__init__(operands=[tensor], result_types=[IndexType()])


@op_definition
class GenerateOp(QuickOp):
    """A tensor whose elements the body computes from their indices."""

    name = "tensor.generate"

    dynamic_extents = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    assembly_format = "$dynamic_extents $body attr-dict `:` type($result)"

    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable(), SingleBlockImplicitTerminator(YieldOp))

    def __init__(self, dynamic_extents: Sequence[SSAValue | Operation], body: Region, result_type: Attribute):
        super().__init__(operands=[dynamic_extents], result_types=[result_type], regions=[body])

    def verify_(self) -> None:
        assert isa(self.result.type, TensorType)
        shape = self.result.type.get_shape()
        if (wanted := sum(extent < 0 for extent in shape)) != len(self.dynamic_extents):
            raise VerifyException(f"{self.result.type} takes {wanted} extents, not {len(self.dynamic_extents)}")
        if self.body.block.arg_types != (IndexType(),) * len(shape):
            raise VerifyException(f"its body must take {len(shape)} indices")
        terminator = self.body.block.last_op
        assert terminator is not None
        if terminator.operand_types != (self.result.type.element_type,):
            raise VerifyException(f"its body must yield one {self.result.type.element_type}")


TENSOR = dialect_of(
    upstream.Tensor, (ExtractOp, InsertOp, BitcastOp, GenerateOp, ParallelInsertSliceOp, RankOp), names=globals()
)
