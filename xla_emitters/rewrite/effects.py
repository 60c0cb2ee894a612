"""The side effects of ops; cached per op type where the type determines them.

    is_pure(op)          no reads, no writes: may be erased when unused, merged with an equal op
    is_read_only(op)     reads memory, writes none: may be erased when unused, merged when nothing writes in between
    is_dead(op)          unused and without effects: may be erased
    is_speculatable(op)  pure, and cannot fail: may run where it would not have run

xDSL calls every op with the `Pure` trait speculatable. Here an access is not, and a division only if its divisor shows that it cannot
fail: an index outside its tensor is an error in the CPU executor and reads other memory on a GPU, and x / 0 is undefined in LLVM.

What ops of MLIR may claim about memory and about failing, and xDSL's classes do not say, is a table beside the traits of the class itself.
An op without a memory effect counts as "anything may happen": it is never dropped, merged or hoisted. An op without speculatability
is never hoisted. xDSL leaves one or the other off many ops that compute and do nothing else.
Source: docs/reference/3 section 0, trap 5 (enumerated by experiment); MLIR's op definitions for what each op may claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Operation
from xdsl.traits import (
    AlwaysSpeculatable,
    Commutative,
    ConditionallySpeculatable,
    ConstantLike,
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    OpTrait,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith, scf, tensor, vector
from xla_emitters.dialects.quick_op import blocks_of, ops_of
from xla_emitters.dialects.ranges import constant_of


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


UNSIGNED_DIVISIONS = (arith.DivUIOp, arith.RemUIOp, arith.CeilDivUIOp)
SIGNED_DIVISIONS = (arith.DivSIOp, arith.RemSIOp, arith.CeilDivSIOp, arith.FloorDivSIOp)
ACCESSES = (tensor.ExtractOp, tensor.InsertOp, vector.TransferReadOp, vector.TransferWriteOp)
CALLS = frozenset({"xla_gpu.pure_call", "xla_gpu.shuffle_reduce", "func.call"})  # their callees may access memory

# xDSL has the trait Commutative on addi, muli, andi, ori and xori only.
COMMUTATIVE = (
    *(arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
    *(arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp),
)


@cache
def _traits_of(op_type: type[Operation]) -> tuple[OpTrait, ...]:
    """The traits of the class, and those that it lacks."""
    return (*op_type.traits.traits, *ADDED_TRAITS.get(op_type.name, ()))


@cache
def has_trait_type(op_type: type[Operation], trait_type: type[OpTrait]) -> bool:
    """Whether ops of `op_type` have a trait of `trait_type`; cached, because drivers call this for every op."""
    return any(isinstance(trait, trait_type) for trait in _traits_of(op_type))


@cache
def is_commutative_type(op_type: type[Operation]) -> bool:
    """Whether the two operands of ops of `op_type` may be exchanged."""
    return op_type in COMMUTATIVE or has_trait_type(op_type, Commutative)


@cache
def is_effect_free_type(op_type: type[Operation]) -> bool:
    """Whether ops of this type have no effects except those of the ops inside them, whatever their attributes."""
    effects = _effect_traits(op_type)
    return bool(effects) and all(type(trait) in (NoMemoryEffect, Pure, RecursiveMemoryEffect) for trait in effects)


@cache
def _effect_traits(op_type: type[Operation]) -> tuple[MemoryEffect, ...]:
    return tuple(trait for trait in _traits_of(op_type) if isinstance(trait, MemoryEffect))


def _effects_of(op: Operation) -> AbstractSet[EffectInstance] | None:
    """xDSL's `get_effects`: the effects of all traits; None if the effects of the op are unknown."""
    traits = _effect_traits(type(op))
    if len(traits) == 1:
        return traits[0].get_effects(op)
    found = set[EffectInstance]()
    for trait in traits:
        if (effects := trait.get_effects(op)) is None:
            return None
        found |= effects
    return found if traits else None


def is_terminator(op: Operation) -> bool:
    return has_trait_type(type(op), IsTerminator)


def is_constant(op: Operation) -> bool:
    """Whether `op` only makes a value from an attribute: `arith.constant`, `llvm.mlir.constant`, ..."""
    return is_constant_type(type(op))


@cache
def is_constant_type(op_type: type[Operation]) -> bool:
    """`is_constant` of ops of `op_type`."""
    return has_trait_type(op_type, ConstantLike)


def is_pure(op: Operation) -> bool:
    """Whether `op` and everything inside it neither reads nor writes memory."""
    if is_effect_free_type(type(op)):
        return not op.regions or all(is_pure(inner) or is_terminator(inner) for inner in _inner_ops(op))
    effects = _effects_of(op)
    return effects is not None and not effects


def may_write(op: Operation) -> bool:
    """Whether `op` may change memory. Terminators are taken to write nothing."""
    writes = _writes_of_type(type(op))
    if writes is _NEVER:
        return False
    if writes is _INSIDE:
        for region in op.regions:
            for block in blocks_of(region):
                for inner in ops_of(block):
                    if may_write(inner):
                        return True
        return False
    effects = _effects_of(op)
    return effects is None or any(effect.kind is not MemoryEffectKind.READ for effect in effects)


_NEVER, _INSIDE, _ASK = range(3)


@cache
def _writes_of_type(op_type: type[Operation]) -> int:
    """Whether ops of `op_type` write never, if an op inside them does, or depending on the op."""
    if has_trait_type(op_type, IsTerminator):
        return _NEVER
    return _INSIDE if is_effect_free_type(op_type) else _ASK


def is_read_only(op: Operation) -> bool:
    """Whether `op` reads memory and does nothing else."""
    return not is_pure(op) and not may_write(op)


def memory_use(op: Operation) -> tuple[bool, bool]:
    """(`is_pure`, `may_write`) of an op that is not a terminator, from one query of its effects."""
    if is_effect_free_type(type(op)):
        return is_pure(op), may_write(op)
    effects = _effects_of(op)
    if effects is None:
        return False, True
    return not effects, any(effect.kind is not MemoryEffectKind.READ for effect in effects)


def is_dead(op: Operation) -> bool:
    """Whether erasing `op` changes nothing: no result is used and it has no effect."""
    for result in op.results:
        if result.first_use is not None:
            return False
    return _may_be_dead_type(type(op)) and not may_write(op)


@cache
def _may_be_dead_type(op_type: type[Operation]) -> bool:
    """Whether ops of `op_type` do nothing besides their declared effects and results."""
    return not has_trait_type(op_type, IsTerminator) and not has_trait_type(op_type, SymbolOpInterface)


def is_speculatable(op: Operation) -> bool:
    """Whether `op` is pure and cannot fail, so that it may run where it would not have run."""
    if not is_pure(op) or isinstance(op, ACCESSES) or op.name in CALLS:
        return False
    if isinstance(op, UNSIGNED_DIVISIONS):
        return constant_of(op.operands[1]) not in (None, 0)
    if isinstance(op, SIGNED_DIVISIONS):
        return constant_of(op.operands[1]) not in (None, 0, -1)  # -1: the smallest integer divided by -1 overflows
    trait = _speculatability(type(op))
    # The trait of an op that is speculatable if its body is asks xDSL's, which knows nothing of the traits added here.
    if trait is None or not (isinstance(trait, RecursivelySpeculatable) or trait.is_speculatable(op)):
        return False
    return all(is_speculatable(inner) or is_terminator(inner) for inner in _inner_ops(op))


@cache
def _speculatability(op_type: type[Operation]) -> ConditionallySpeculatable | None:
    return next((trait for trait in _traits_of(op_type) if isinstance(trait, ConditionallySpeculatable)), None)


def _inner_ops(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in blocks_of(region):
            yield from ops_of(block)
