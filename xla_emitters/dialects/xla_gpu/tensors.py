"""The `xla_gpu` dialect's ops on tensors: guarded accesses, shared memory, barriers.

    %t = xla_gpu.predicated_insert %v into %dest[%i] if %condition : tensor<8xf32>
    %v = xla_gpu.predicated_extract %src[%i] if %condition else %fallback : tensor<8xf32>
    %n = xla_gpu.get_dynamic_dim_size %t 1 : tensor<16x8x4xf32>
    %s = xla_gpu.allocate_shared : tensor<32x1x33xf32>
    %y:2 = xla_gpu.sync_threads %a, %b : tensor<2xf32>, tensor<2xf32>

A guarded access happens in the threads where the condition holds; elsewhere the insert returns its tensor unchanged, and the extract the
fallback. The index may be outside the tensor where the condition does not hold.
`allocate_shared` returns a tensor that all threads of the block share, not initialised. `sync_threads` waits for all threads of the
block; its results contain the writes of all of them.
`pdl_wait` and `pdl_launch_dependents` are read from today's XLA and never emitted here. Import the ops from `xla_gpu.py`.
Source: docs/reference/1 1.1-1.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import I1, IndexType, IntegerAttr, TensorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    RangeOf,
    RangeVarConstraint,
    VarConstraint,
    base,
    eq,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.directives import Derived, DerivedRange
from xla_emitters.dialects.mlir.op_rows import op_of_row
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import QuickOp
from xla_emitters.dialects.xla_gpu.loops import comma_separated, verify_indices


def _tensor_type(value: SSAValue | Operation) -> TensorType:
    tensor_type = SSAValue.get(value).type
    assert isa(tensor_type, TensorType), f"{tensor_type} is not a tensor"
    return tensor_type


_TENSOR = VarConstraint("T", base(TensorType))
_ELEMENT = Derived("T", get_element_type_or_self, AnyAttr())


def _verify_static(tensor_type: Attribute) -> TensorType:
    assert isa(tensor_type, TensorType)
    if not tensor_type.has_static_shape():
        raise VerifyException(f"{tensor_type} must have a static shape")
    return tensor_type


# ---- guarded elements -------------------------------------------------------------------------------------------------------------------


@op_definition
class PredicatedInsertOp(QuickOp):
    """`%t = xla_gpu.predicated_insert %v into %dest[%i] if %condition : tensor<8xf32>`

    Not speculatable, because like tensor.insert it writes in place when tensors become memory.
    """

    name = "xla_gpu.predicated_insert"

    value = operand_def(_ELEMENT)
    dest = operand_def(_TENSOR)
    indices = var_operand_def(IndexType)
    condition = operand_def(I1)
    result = result_def(Derived("T", lambda tensor: tensor, base(TensorType)))

    assembly_format = "$value `into` $dest `[` $indices `]` `if` $condition attr-dict `:` type($dest)"

    traits = traits_def(NoMemoryEffect())

    def __init__(
        self,
        value: SSAValue | Operation,
        dest: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        condition: SSAValue | Operation,
    ):
        super().__init__(operands=[value, dest, indices, condition], result_types=[SSAValue.get(dest).type])

    def verify_(self) -> None:
        tensor_type = _verify_static(self.dest.type)
        verify_indices(self.indices, tensor_type)
        if self.value.type != tensor_type.element_type:
            raise VerifyException(f"inserts {self.value.type} into {tensor_type}")
        if self.result.type != tensor_type:
            raise VerifyException(f"the result is {self.result.type}, but the tensor is {tensor_type}")


@op_definition
class PredicatedExtractOp(QuickOp):
    """`%v = xla_gpu.predicated_extract %src[%i] if %condition else %fallback : tensor<8xf32>`"""

    name = "xla_gpu.predicated_extract"

    src = operand_def(_TENSOR)
    indices = var_operand_def(IndexType)
    condition = operand_def(I1)
    fallback = operand_def(_ELEMENT)
    result = result_def(_ELEMENT)

    assembly_format = "$src `[` $indices `]` `if` $condition `else` $fallback attr-dict `:` type($src)"

    traits = traits_def(NoMemoryEffect())

    def __init__(
        self,
        src: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        condition: SSAValue | Operation,
        fallback: SSAValue | Operation,
    ):
        super().__init__(operands=[src, indices, condition, fallback], result_types=[_tensor_type(src).element_type])

    def verify_(self) -> None:
        tensor_type = _verify_static(self.src.type)
        verify_indices(self.indices, tensor_type)
        for what, found in (("fallback", self.fallback.type), ("result", self.result.type)):
            if found != tensor_type.element_type:
                raise VerifyException(f"the {what} is {found}, but the tensor {tensor_type}")


def _verify_dim_size(op: Any) -> None:
    tensor_type, dim = _verify_static(op.tensor.type), op.dim.value.data
    if not 0 <= dim < tensor_type.get_num_dims():
        raise VerifyException(f"{tensor_type} has no dimension {dim}")


# The size of a dimension at run time.
GetDynamicDimSizeOp = op_of_row(
    "xla_gpu.get_dynamic_dim_size",
    "$tensor $dim attr-dict `:` type($tensor)",
    properties={"dim": prop_def(IntegerAttr.constr(eq(i64)))},
    traits=(Pure(),),
    verify=_verify_dim_size,
    tensor=operand_def(TensorType),
    result=result_def(i32),
)

# ---- shared memory ----------------------------------------------------------------------------------------------------------------------


@op_definition
class AllocateSharedOp(QuickOp):
    """`%s = xla_gpu.allocate_shared : tensor<32x1x33xf32>`. Each op is its own allocation, so equal ops are never merged."""

    name = "xla_gpu.allocate_shared"

    result = result_def(TensorType)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, tensor_type: TensorType):
        super().__init__(result_types=[tensor_type])

    def verify_(self) -> None:
        _verify_static(self.result.type)


@op_definition
class SyncThreadsOp(QuickOp):
    """`%y:2 = xla_gpu.sync_threads %a, %b : tensor<2xf32>, tensor<2xf32>`"""

    name = "xla_gpu.sync_threads"

    arguments = var_operand_def(RangeVarConstraint("T", RangeOf(base(TensorType))))
    outs = var_result_def(DerivedRange("T", list))

    assembly_format = "$arguments attr-dict (`:` type($arguments)^)?"

    def __init__(self, arguments: Sequence[SSAValue | Operation]):
        types = [SSAValue.get(argument).type for argument in arguments]
        super().__init__(operands=[arguments], result_types=[types])

    def verify_(self) -> None:
        if self.result_types != self.arguments.types:
            raise VerifyException(
                f"its operands are ({comma_separated(self.arguments.types)}), "
                f"but its results are ({comma_separated(self.result_types)})"
            )


# ---- other kernels ----------------------------------------------------------------------------------------------------------------------


@op_definition
class PdlWaitOp(QuickOp):
    """`"xla_gpu.pdl_wait"() : () -> ()`: waits for the kernels before this one. Read from today's XLA, never emitted here."""

    name = "xla_gpu.pdl_wait"


@op_definition
class PdlLaunchDependentsOp(QuickOp):
    """Lets the kernels after this one begin. Read from today's XLA, never emitted here."""

    name = "xla_gpu.pdl_launch_dependents"
