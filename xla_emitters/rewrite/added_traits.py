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
from xla_emitters.dialects.mlir import scf, tensor, vector


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


def _named(dialect: str, names: str) -> tuple[str, ...]:
    return tuple(f"{dialect}.{name}" for name in names.split())


_PURE = (
    *_named("arith", "remui extsi"),
    *_named("vector", "bitcast create_mask reduction"),
    *_named("gpu", "thread_id block_id block_dim grid_dim global_id"),
    *_named("gpu", "lane_id num_subgroups subgroup_id subgroup_size"),
    *("affine.min", "llvm.intr.fabs"),
)

# Effect-free in xDSL, but not speculatable. Integer division stays so: by zero it is undefined.
_SPECULATABLE = (
    *("tensor.empty", "vector.shuffle"),
    *_named("memref", "cast memory_space_cast collapse_shape expand_shape rank"),
    *_named("memref", "get_global extract_aligned_pointer_as_index"),
    *_named("llvm", "add sub mul and or xor shl lshr ashr"),
    *_named("llvm", "zext sext bitcast sitofp fpext fptrunc"),
    *_named("llvm", "inttoptr ptrtoint mlir.addressof mlir.undef"),
    *_named("llvm", "insertelement insertvalue extractvalue shufflevector"),
)

_READS = (*_named("vector", "load maskedload"), *_named("affine", "load vector_load"))
_WRITES = (*_named("vector", "store maskedstore"), *_named("affine", "store vector_store"))
_AS_THEIR_BODIES = ("affine.for", "affine.parallel", "scf.execute_region")

ADDED_TRAITS: Mapping[str, tuple[OpTrait, ...]] = {
    **dict.fromkeys(_PURE, (Pure(),)),
    **dict.fromkeys(_SPECULATABLE, (AlwaysSpeculatable(),)),
    **dict.fromkeys(_READS, (MemoryReadEffect(),)),
    **dict.fromkeys(_WRITES, (MemoryWriteEffect(),)),
    **dict.fromkeys(_AS_THEIR_BODIES, (RecursiveMemoryEffect(),)),
    "vector.transfer_read": (TransferEffect(),),
    "vector.transfer_write": (TransferEffect(),),
    "scf.for": (SpeculatableWithPositiveStep(),),
    "tensor.dim": (SpeculatableInRank(),),
}
"""Traits by the name of an op, of a kind (a memory effect, or speculatability) that its class has none of. Names, so that the dialects of
the table are not loaded."""
