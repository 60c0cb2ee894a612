"""What ops of MLIR may claim about memory and about failing, and xDSL's classes do not say.

An op without a memory effect counts as "anything may happen": it is never dropped, merged or hoisted. An op without speculatability
is never hoisted. xDSL leaves one or the other off many ops that compute and do nothing else. `effects.py` reads this table beside the
traits of the class itself.
Source: docs/reference/3 section 0, trap 5 (enumerated by experiment); MLIR's op definitions for what each op may claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Operation
from xdsl.traits import (
    AlwaysSpeculatable,
    ConditionallySpeculatable,
    ConstantLike,
    EffectInstance,
    MemoryEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    OpTrait,
    Pure,
    RecursiveMemoryEffect,
)

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import affine, arith, gpu, llvm, memref, scf, tensor, vector


class TransferEffect(MemoryEffect):
    """A transfer from or to a tensor only computes a value; one from or to memory reads or writes it."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        assert isinstance(op, vector.TransferReadOp | vector.TransferWriteOp)
        if isinstance(op.source.type, TensorType):
            return frozenset()
        memory = MemoryReadEffect if isinstance(op, vector.TransferReadOp) else MemoryWriteEffect
        return memory.get_effects(op)


class SpeculatableWithPositiveStep(ConditionallySpeculatable):
    """A loop that surely ends (its step is a positive constant) may be hoisted if its body may."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        assert isinstance(op, scf.ForOp)
        step = ConstantLike.get_constant_value(op.step)
        return isinstance(step, IntegerAttr) and step.value.data > 0


class SpeculatableInRank(ConditionallySpeculatable):
    """`tensor.dim` may be hoisted if its dimension is a constant that the tensor has."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        assert isinstance(op, tensor.DimOp)
        dim = ConstantLike.get_constant_value(op.index)
        return (
            isinstance(dim, IntegerAttr)
            and isa(op.source.type, TensorType)
            and 0 <= dim.value.data < op.source.type.get_num_dims()
        )


_PURE: tuple[type[Operation], ...] = (
    *(arith.RemUIOp, arith.ExtSIOp),
    *(vector.BitcastOp, vector.CreateMaskOp, vector.ReductionOp),
    *(gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp),
    *(gpu.LaneIdOp, gpu.NumSubgroupsOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp),
    *(affine.MinOp, llvm.FAbsOp),
)

# Effect-free in xDSL, but not speculatable. Integer division stays so: by zero it is undefined.
_SPECULATABLE: tuple[type[Operation], ...] = (
    *(tensor.EmptyOp, vector.ShuffleOp),
    *(memref.CastOp, memref.MemorySpaceCastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.RankOp),
    *(memref.GetGlobalOp, memref.ExtractAlignedPointerAsIndexOp),
    *(llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.AndOp, llvm.OrOp, llvm.XOrOp, llvm.ShlOp, llvm.LShrOp, llvm.AShrOp),
    *(llvm.ZExtOp, llvm.SExtOp, llvm.BitcastOp, llvm.SIToFPOp, llvm.FPExtOp, llvm.FPTruncOp),
    *(llvm.IntToPtrOp, llvm.PtrToIntOp, llvm.AddressOfOp, llvm.UndefOp),
    *(llvm.InsertElementOp, llvm.InsertValueOp, llvm.ExtractValueOp, llvm.ShuffleVectorOp),
)

_READS = (vector.LoadOp, vector.MaskedLoadOp, affine.LoadOp, affine.VectorLoadOp)
_WRITES = (vector.StoreOp, vector.MaskedStoreOp, affine.StoreOp, affine.VectorStoreOp)
_AS_THEIR_BODIES = (affine.ForOp, affine.ParallelOp, scf.ExecuteRegionOp)

ADDED_TRAITS: Mapping[type[Operation], tuple[OpTrait, ...]] = {
    **dict.fromkeys(_PURE, (Pure(),)),
    **dict.fromkeys(_SPECULATABLE, (AlwaysSpeculatable(),)),
    **dict.fromkeys(_READS, (MemoryReadEffect(),)),
    **dict.fromkeys(_WRITES, (MemoryWriteEffect(),)),
    **dict.fromkeys(_AS_THEIR_BODIES, (RecursiveMemoryEffect(),)),
    vector.TransferReadOp: (TransferEffect(),),
    vector.TransferWriteOp: (TransferEffect(),),
    scf.ForOp: (SpeculatableWithPositiveStep(),),
    tensor.DimOp: (SpeculatableInRank(),),
}
"""Traits by op, of a kind (a memory effect, or speculatability) that its class has none of."""
