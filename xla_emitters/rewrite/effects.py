"""The side effects of ops; cached per op type where the type determines them.

    is_pure(op)          no reads, no writes: may be erased when unused, merged with an equal op
    is_read_only(op)     reads memory, writes none: may be erased when unused, merged when nothing writes in between
    is_dead(op)          unused and without effects: may be erased
    is_speculatable(op)  pure, and cannot fail: may run where it would not have run

xDSL calls every op with the `Pure` trait speculatable. Here an access is not, and a division only if its divisor shows that it cannot
fail: an index outside its tensor is an error in the CPU executor and reads other memory on a GPU, and x / 0 is undefined in LLVM. Traits
that xDSL's classes lack are in `added_traits.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import cache

from xdsl.ir import Operation, OpTrait
from xdsl.traits import (
    Commutative,
    ConditionallySpeculatable,
    ConstantLike,
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from xla_emitters.dialects.mlir import arith, tensor, vector
from xla_emitters.dialects.quick_op import blocks_of, ops_of
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.rewrite.added_traits import ADDED_TRAITS

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
