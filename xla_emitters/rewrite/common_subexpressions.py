"""Common subexpression elimination: of two equal pure ops, the dominating one stays and gets both locations.

    %0 = arith.mulf %a, %b loc("square")
    %1 = arith.mulf %a, %b loc("cube")         ->   %0 = arith.mulf %a, %b loc(fused["square", "cube"])

Equal means: same op, operands (in any order for commutative ops), attributes, result types, and structurally equal regions. An op is
merged into an equal one of the same block, of a dominating block, or of an enclosing region, so functions with branches (`cf`, `llvm.br`)
are covered; xDSL's pass skips them. An op that only reads memory is merged if nothing may have written in between: any write, call,
barrier or block boundary starts a new epoch, and the epoch is part of the key. Dead ops are erased, and then the ops that only they used.

Cost: one dictionary look-up per op, none for an op with an operand that has no other use (equal ops have equal operands). Another use
may appear by a merge, so such ops are kept aside and looked up then. Each attribute object gets a number at its first use
(`AttributeNumbers`), so that an indexing map is hashed once and not once per op that has it.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import cache
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import LocationAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface

from xla_emitters.dialects.attributes import AttributeNumbers, numbers_of
from xla_emitters.dialects.locations import fuse_all
from xla_emitters.dialects.quick_op import operands_of
from xla_emitters.dialects.verification import successors
from xla_emitters.rewrite.effects import (
    has_trait_type,
    is_commutative_type,
    is_dead,
    is_effect_free_type,
    may_write,
    memory_use,
)
from xla_emitters.support.late_dataclass import dataclass

Key = tuple[object, ...]
ANY_EPOCH = -1
"""The epoch of ops that read no memory."""


def cse(root: Operation) -> bool:
    """Merges equal ops inside `root`; returns whether anything changed."""
    driver = _Cse(numbers_of(root))
    for region in root.regions:
        driver.region(region)
    for op, merged in driver.merged.items():
        op.location = fuse_all([op.location, *merged])
    return driver.changed


class _Kind(NamedTuple):
    """Cached properties of an op type."""

    stays: bool
    is_pure: bool
    is_commutative: bool
    is_isolated: bool


@cache
def _kind_of(op_type: type[Operation]) -> _Kind:
    return _Kind(
        stays=has_trait_type(op_type, IsTerminator) or has_trait_type(op_type, SymbolOpInterface),
        is_pure=is_effect_free_type(op_type),
        is_commutative=is_commutative_type(op_type),
        is_isolated=has_trait_type(op_type, IsolatedFromAbove) or issubclass(op_type, UnregisteredOp),
    )


@dataclass
class _Scope:
    """The current block: ops found in it, until its end."""

    found: list[Key] = field(default_factory=list[Key])
    is_open: bool = True


_Alone: TypeAlias = tuple[Operation, _Scope, int]
"""An op without an equal, because one of its operands has no other use; with the block and epoch where it was found."""


@dataclass
class _Cse:
    numbers: AttributeNumbers
    known: dict[Key, Operation] = field(default_factory=dict[Key, Operation])
    alone: dict[int, _Alone] = field(default_factory=dict[int, _Alone])  # by the id of the op, which is kept alive
    epoch: int = 0  # reads in the same epoch see the same memory
    epochs: int = 0
    changed: bool = False
    merged: dict[Operation, list[LocationAttr]] = field(default_factory=dict[Operation, list[LocationAttr]])
    """Where ops come from that others were merged into: fused once, since thousands may be one constant."""

    def region(self, region: Region) -> None:
        """Merges in all blocks of a region, with the ops known outside; ops found inside are forgotten at its end."""
        if (entry := region.first_block) is None:
            return
        if entry is region.last_block:
            self._block(entry, _Scope())
            return
        children = _dominator_tree(entry)
        # Depth first, without recursion: unrolled code has chains of thousands of blocks.
        stack: list[tuple[Iterator[Block], _Scope]] = [(iter((entry,)), _Scope())]
        while stack:
            siblings, scope = stack[-1]
            block = next(siblings, None)
            if block is None:
                self._forget(scope)
                stack.pop()
                continue
            below = _Scope()
            self._new_epoch()
            self._ops(block, below)
            stack.append((iter(children[block]), below))
        self._new_epoch()

    def _block(self, block: Block, scope: _Scope) -> None:
        self._ops(block, scope)
        self._forget(scope)

    def _forget(self, scope: _Scope) -> None:
        scope.is_open = False
        for key in scope.found:
            self.known.pop(key, None)

    def _new_epoch(self) -> None:
        self.epochs += 1
        self.epoch = self.epochs

    def _ops(self, block: Block, scope: _Scope) -> None:
        op = block.first_op
        while op is not None:
            after = op.next_op
            writes = bool(op.regions) and self._nested(op)
            self._op(op, scope, writes=writes)
            op = after

    def _nested(self, op: Operation) -> bool:
        """Merges inside `op`; returns whether it may write."""
        writes = may_write(op)
        if writes:
            self._new_epoch()  # a loop's body also runs after writes of its earlier iterations
        if _kind_of(type(op)).is_isolated:
            outside, self.known = self.known, {}
            for region in op.regions:
                self.region(region)
            self.known = outside
            return writes
        for region in op.regions:
            self.region(region)
            if writes:
                self._new_epoch()
        return writes

    def _op(self, op: Operation, scope: _Scope, *, writes: bool) -> None:
        """Merges or erases one op; `writes`: whether it is known that it may write."""
        kind = _kind_of(type(op))
        if kind.stays or op._successor_uses:
            return
        if writes:
            self._new_epoch()
            return
        if is_dead(op):
            self._erase(op)
            return
        if kind.is_pure and not op.regions:
            epoch = ANY_EPOCH
        else:
            pure, may_change_memory = memory_use(op)
            if may_change_memory:
                self._new_epoch()
                return
            epoch = ANY_EPOCH if pure else self.epoch
        for operand in operands_of(op):
            if (
                use := operand.first_use
            ) is not None and use._next_use is None:  # `has_one_use`, without a call for each operand
                self.alone[id(op)] = op, scope, epoch
                return
        key = self._key(op, kind, epoch)
        existing = self.known.get(key)
        if existing is None or existing.parent is None:  # None: it was erased with its last user
            self.known[key] = op
            scope.found.append(key)
        elif all(
            one.is_structurally_equivalent(other) for one, other in zip(existing.regions, op.regions, strict=True)
        ):
            self._merge(op, existing)

    def _key(self, op: Operation, kind: _Kind, epoch: int) -> Key:
        operands = [id(operand) for operand in operands_of(op)]
        if kind.is_commutative:
            operands.sort()
        numbers = self.numbers
        return (
            epoch,
            op.name,  # unregistered ops share one name; their attribute op_name__ distinguishes them
            tuple(operands),
            self._dictionary(op.properties) if op.properties else (),
            self._dictionary(op.attributes) if op.attributes else (),
            tuple([numbers[result.type] for result in op.results]),
            len(op.regions),
        )

    def _dictionary(self, attributes: dict[str, Attribute]) -> tuple[tuple[str, int], ...]:
        numbers = self.numbers
        numbered = [(name, numbers[value]) for name, value in attributes.items()]
        if len(numbered) > 1:
            numbered.sort()
        return tuple(numbered)

    def _merge(self, op: Operation, existing: Operation) -> None:
        self.merged.setdefault(existing, []).append(op.location)
        for old, new in zip(op.results, existing.results, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            if new.has_one_use():
                self._no_longer_alone(new)
            old.replace_all_uses_with(new)
        self._erase(op)

    def _no_longer_alone(self, operand: SSAValue) -> None:
        """If the only user of `operand` was visited already, makes it known: other ops may be equal to it from now on."""
        use = operand.first_use
        assert use is not None
        user = self.alone.pop(id(use.operation), None)
        if user is None:
            return
        op, scope, epoch = user
        if scope.is_open and op.parent is not None:
            key = self._key(op, _kind_of(type(op)), epoch)
            self.known[key] = op
            scope.found.append(key)

    def _erase(self, op: Operation) -> None:
        """Erases `op`, and then the ops that only it used."""
        self.changed = True
        doomed = [op]
        while doomed:
            op = doomed.pop()
            operands = operands_of(op)
            Rewriter.erase_op(op)
            for operand in operands:
                owner = operand.owner
                if isinstance(owner, Operation) and owner.parent is not None and owner not in doomed and is_dead(owner):
                    doomed.append(owner)


def _dominator_tree(entry: Block) -> dict[Block, list[Block]]:
    """The blocks that each reachable block immediately dominates, in reverse post order."""
    from xla_emitters.support.dominance import immediate_dominators  # imported here: most regions have one block

    dominators = immediate_dominators(entry, successors)
    children: dict[Block, list[Block]] = {block: [] for block in dominators}
    for block, dominator in dominators.items():
        if block is not entry:
            children[dominator].append(block)
    return children
