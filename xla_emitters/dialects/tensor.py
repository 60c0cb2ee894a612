"""The `tensor` dialect: xDSL's, with `parallel_insert_slice`, which is read from today's XLA and never emitted here.

    tensor.parallel_insert_slice %t into %o[0, 0] [6, 512] [1, 1] : tensor<6x512xbf16> into tensor<6x512xbf16>

Source: MLIR 22, tensor dialect.
"""

from __future__ import annotations

from xdsl.dialects import tensor as upstream
from xdsl.dialects.builtin import DenseArrayBase, IndexType, TensorType, i64
from xdsl.dialects.tensor import (
    CastOp,
    CollapseShapeOp,
    ConcatOp,
    DimOp,
    EmptyOp,
    ExpandShapeOp,
    ExtractOp,
    ExtractSliceOp,
    FromElementsOp,
    InsertOp,
    InsertSliceOp,
    PadOp,
    ReshapeOp,
    SplatOp,
    YieldOp,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Dialect
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    var_operand_def,
)
from xdsl.traits import HasParent

from xla_emitters.dialects import upstream_patches as upstream_patches
from xla_emitters.dialects.scf import InParallelOp


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """What one thread of an `scf.forall` puts into a shared out."""

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


TENSOR = Dialect("tensor", [*upstream.Tensor.operations, ParallelInsertSliceOp], list(upstream.Tensor.attributes))

__all__ = [
    "TENSOR",
    "CastOp",
    "CollapseShapeOp",
    "ConcatOp",
    "DimOp",
    "EmptyOp",
    "ExpandShapeOp",
    "ExtractOp",
    "ExtractSliceOp",
    "FromElementsOp",
    "InsertOp",
    "InsertSliceOp",
    "PadOp",
    "ParallelInsertSliceOp",
    "ReshapeOp",
    "SplatOp",
    "YieldOp",
]
