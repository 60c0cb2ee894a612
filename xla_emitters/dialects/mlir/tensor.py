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
from typing import Any

from xdsl.dialects import tensor as upstream
from xdsl.dialects.builtin import DenseArrayBase, FixedBitwidthType, IndexType, TensorType, i64
from xdsl.dialects.tensor import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.tensor import YieldOp
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    result_def,
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
from xla_emitters.dialects.mlir.op_rows import op_of_row
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


def _element_bits(tensor_type: Attribute) -> int | None:
    element = get_element_type_or_self(tensor_type)
    return element.bitwidth if isinstance(element, FixedBitwidthType) else None


def _verify_bitcast(op: Any) -> None:
    if not have_compatible_shape(op.source.type, op.dest.type):
        raise VerifyException(f"{op.source.type} and {op.dest.type} differ in shape")
    bits = [_element_bits(value.type) for value in (op.source, op.dest)]
    if bits[0] != bits[1]:
        raise VerifyException(f"elements of {op.source.type} and {op.dest.type} differ in width")


# The same bits, as elements of another type of the same width.
BitcastOp = op_of_row(
    "tensor.bitcast",
    "$source attr-dict `:` type($source) `to` type($dest)",
    traits=(Pure(),),
    verify=_verify_bitcast,
    source=operand_def(TensorType),
    dest=result_def(TensorType),
)


# The number of dimensions of a tensor.
RankOp = op_of_row(
    "tensor.rank",
    "$tensor attr-dict `:` type($tensor)",
    traits=(Pure(),),
    tensor=operand_def(TensorType),
    result=result_def(IndexType()),
)


def _verify_generate(op: Any) -> None:
    assert isa(op.result.type, TensorType)
    shape = op.result.type.get_shape()
    if (wanted := sum(extent < 0 for extent in shape)) != len(op.dynamic_extents):
        raise VerifyException(f"{op.result.type} takes {wanted} extents, not {len(op.dynamic_extents)}")
    if op.body.block.arg_types != (IndexType(),) * len(shape):
        raise VerifyException(f"its body must take {len(shape)} indices")
    if op.body.block.last_op.operand_types != (op.result.type.element_type,):
        raise VerifyException(f"its body must yield one {op.result.type.element_type}")


# A tensor whose elements the body computes from their indices.
GenerateOp = op_of_row(
    "tensor.generate",
    "$dynamic_extents $body attr-dict `:` type($result)",
    traits=(RecursiveMemoryEffect(), RecursivelySpeculatable(), SingleBlockImplicitTerminator(YieldOp)),
    verify=_verify_generate,
    dynamic_extents=var_operand_def(IndexType),
    result=result_def(TensorType),
    body=region_def("single_block"),
)


TENSOR = dialect_of(upstream.Tensor, names=globals())
