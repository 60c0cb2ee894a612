"""Faster values, names and lists of uses: as xDSL 0.74, in fewer calls.

    op.operands[0]                 a view made by a dataclass's __init__, then two look-ups  ->  the view without __init__
    op.operands = (%a, %b)         a Use made, then added, per operand                       ->  made in place, at the head of the list
    %a.replace_all_uses_with(%b)   a tuple of uses; a view per use                           ->  one walk over the list
    op.erase()                     a stand-in value per result, in place of no use           ->  only where uses are left
    value.name_hint = "x_1"        two regular expressions per value                         ->  per name

The lists of uses keep xDSL's order (a new use comes first), on which passes depend. Errors are xDSL's own: cases that are not plain go
to its functions. Source: xDSL 0.74, xdsl/ir/core.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpOperands, OpResult, Region, SSAValue, Use
from xdsl.ir.core import IRWithName, IRWithUses, OpSuccessors, SSAValues

from xla_emitters.dialects.xdsl_patches.patch import Member

_new = object.__new__
operands_of: Callable[[Operation], Sequence[SSAValue]] = attrgetter("_operands")
"""The operands as they are now: what `op.operands` shows by a view, which follows changes and is made anew each time that it is read."""
item: Callable[[Any, int | slice], Any] = cast(Any, tuple).__getitem__
"""An element of a tuple; that of `SSAValues` is a method in Python, which asks whether it is a slice."""


def _element(self: SSAValues[SSAValue], idx: int | slice) -> Any:
    return SSAValues(item(self, idx)) if type(idx) is slice else item(self, idx)


def _value_of(own: Callable[..., SSAValue]) -> Callable[..., SSAValue]:
    def get(arg: SSAValue | Operation, **wanted: Any) -> SSAValue:
        if not wanted:
            if isinstance(arg, SSAValue):
                return arg
            if len(arg.results) == 1:
                return item(arg.results, 0)
        return own(arg, **wanted)

    return get


@lru_cache(65_536)
def _valid_name(holder: type[IRWithName], name: str) -> str:
    return holder.extract_valid_name(name)


def _set_name_hint(self: IRWithName, name: str | None) -> None:
    self._name = None if name is None else _valid_name(type(self), name)


def _name_hint(self: IRWithName) -> str | None:
    return self._name


def use_of(op: Operation, index: int, value: IRWithUses) -> Use:
    """A new use of `value` by operand `index` of `op`, at the head of the value's list."""
    use = _new(Use)
    use._operation = op
    use._index = index
    use._prev_use = None
    use._next_use = first = value.first_use
    if first is not None:
        first._prev_use = use
    value.first_use = use
    return use


def _put_first(value: IRWithUses, use: Use) -> None:
    first = value.first_use
    use._prev_use = None
    use._next_use = first
    if first is not None:
        first._prev_use = use
    value.first_use = use


def _remove_use(self: IRWithUses, use: Use) -> None:
    before, after = use._prev_use, use._next_use
    if before is None:
        self.first_use = after
    else:
        before._next_use = after
    if after is not None:
        after._prev_use = before


def _operands(self: Operation) -> OpOperands:
    view = _new(OpOperands)
    view._op = self
    return view


def _set_operands(self: Operation, new: Sequence[SSAValue]) -> None:
    values = SSAValues(new)
    for operand, use in zip(self._operands, self._operand_uses, strict=False):
        _remove_use(operand, use)
    self._operands = values
    self._operand_uses = tuple([use_of(self, index, value) for index, value in enumerate(values)])


def _operand(self: OpOperands, idx: int | slice) -> Any:
    return item(self._op._operands, idx) if type(idx) is int else self._op._operands[idx]


def _set_operand(self: OpOperands, idx: int, operand: SSAValue) -> None:
    op = self._op
    values, use = list(op._operands), op._operand_uses[idx]
    _remove_use(values[idx], use)
    _put_first(operand, use)
    values[idx] = operand
    op._operands = SSAValues(values)


def _operand_types(self: Operation) -> tuple[Attribute, ...]:
    return tuple([value._type for value in self._operands])


def _result_types(self: Operation) -> tuple[Attribute, ...]:
    return tuple([value._type for value in self.results])


def _successors(self: Operation) -> OpSuccessors:
    view = _new(OpSuccessors)
    view._op = self
    return view


def _replace_all_uses_with(self: SSAValue, value: SSAValue) -> None:
    if value is self:
        return
    use = self.first_use
    while use is not None:
        after = use._next_use
        op = use._operation
        values = list(op._operands)
        values[use._index] = value
        op._operands = SSAValues(values)
        _put_first(value, use)
        use = after
    self.first_use = None
    if value._name is None:
        value.name_hint = self._name


def _erased_where_used(own: Callable[[SSAValue, bool], None]) -> Callable[[SSAValue, bool], None]:
    def erase(self: SSAValue, safe_erase: bool = True) -> None:
        if self.first_use is not None:
            own(self, safe_erase)

    return erase


def drop_all_references(self: Operation) -> None:
    """`Operation.drop_all_references`; most ops have neither successors nor regions."""
    self.parent = None
    for operand, use in zip(self._operands, self._operand_uses, strict=False):
        _remove_use(operand, use)
    self._operand_uses = ()
    if self._successors:
        for successor, use in zip(self._successors, self._successor_uses, strict=False):
            successor.remove_use(use)
        self._successor_uses = ()
        self._successors = ()
    for region in self.regions:
        region.drop_all_references()


_NONE: SSAValues[Any] = SSAValues(())


def _erase(self: Operation, safe_erase: bool = True, drop_references: bool = True) -> None:
    """`Operation.erase`; afterwards the op and its results do not refer to each other: they are freed without the cyclic collector."""
    assert self.parent is None, "Operation with parents should first be detached before erasure."
    if drop_references:
        drop_all_references(self)
    for result in self.results:
        if result.first_use is not None:
            result.erase(safe_erase=safe_erase)
    self.results = _NONE


def _parent_op(self: Operation) -> Operation | None:
    block = self.parent
    region = None if block is None else block.parent
    return None if region is None else region.parent


def _parent_region(self: Operation) -> Region | None:
    block = self.parent
    return None if block is None else block.parent


def _attach_op(self: Block, operation: Operation) -> None:
    if operation.parent is not None:
        raise ValueError("Can't add to a block an operation already attached to a block.")
    if operation.regions and operation.is_ancestor(self):
        raise ValueError("Can't add an operation to a block contained in the operation.")
    operation.parent = self


def _link(block: Block, before: Operation | None, op: Operation, after: Operation | None) -> None:
    """Puts an op between two neighbours in a block; None: the block begins or ends there."""
    op.parent = block
    op._prev_op, op._next_op = before, after
    if before is None:
        block._first_op = op
    else:
        before._next_op = op
    if after is None:
        block._last_op = op
    else:
        after._prev_op = op


def _insert_op_before(own: Callable[..., None]) -> Callable[..., None]:
    def insert_op_before(self: Block, new_op: Operation, existing_op: Operation) -> None:
        if existing_op.parent is not self or new_op.parent is not None or new_op.regions:
            own(self, new_op, existing_op)
        else:
            _link(self, existing_op._prev_op, new_op, existing_op)

    return insert_op_before


def _insert_op_after(own: Callable[..., None]) -> Callable[..., None]:
    def insert_op_after(self: Block, new_op: Operation, existing_op: Operation) -> None:
        if existing_op.parent is not self or new_op.parent is not None or new_op.regions:
            own(self, new_op, existing_op)
        else:
            _link(self, existing_op, new_op, existing_op._next_op)

    return insert_op_after


def _row(holder: Any, name: str, why: str, ours: Any) -> Member:
    return Member(holder, name, why, lambda _: ours)


_GETTERS: tuple[tuple[type, str, str], ...] = (
    (SSAValue, "type", "_type"),
    (OpResult, "owner", "op"),
    (BlockArgument, "owner", "block"),
    (Use, "operation", "_operation"),
    (Use, "index", "_index"),
    (Operation, "next_op", "_next_op"),
    (Operation, "prev_op", "_prev_op"),
    (Operation, "successor_uses", "_successor_uses"),
    (Block, "args", "_args"),
    (Block, "first_op", "_first_op"),
    (Block, "last_op", "_last_op"),
    (Block, "next_block", "_next_block"),
    (Block, "prev_block", "_prev_block"),
    (Region, "first_block", "_first_block"),
    (Region, "last_block", "_last_block"),
)
"""Properties that only read a field: class, property, field. `attrgetter` reads it without a Python call."""


FAST_VALUES: tuple[Member, ...] = (
    *(_row(holder, name, "calls a function", property(attrgetter(field))) for holder, name, field in _GETTERS),
    _row(IRWithName, "name_hint", "matches two regular expressions per value", property(_name_hint, _set_name_hint)),
    _row(IRWithUses, "remove_use", "reads the list's links twice", _remove_use),
    _row(Operation, "operands", "makes each Use by a dataclass's __init__", property(_operands, _set_operands)),
    _row(Operation, "operand_types", "a generator, and a view of the operands", property(_operand_types)),
    _row(Operation, "result_types", "a generator", property(_result_types)),
    _row(OpOperands, "__getitem__", "two calls for an operand", _operand),
    _row(OpOperands, "__setitem__", "copies the operands three times", _set_operand),
    Member(
        Operation,
        "successors",
        "makes its view by a dataclass's __init__",
        lambda own: property(_successors, own.fset),
    ),
    _row(
        SSAValue, "replace_all_uses_with", "copies the list of uses, and makes a view per use", _replace_all_uses_with
    ),
    _row(SSAValues, "__getitem__", "asks through `super` for an element", _element),
    Member(SSAValue, "get", "imports a module, and takes types apart", lambda own: staticmethod(_value_of(own))),
    Member(SSAValue, "erase", "makes a stand-in for values without uses", _erased_where_used),
    _row(Operation, "drop_all_references", "looks for successors in every op", drop_all_references),
    _row(Operation, "erase", "leaves a circle of the op and its results to the collector", _erase),
    _row(Operation, "parent_op", "calls two functions, and one for a truth value", _parent_op),
    _row(Operation, "parent_region", "calls a function", _parent_region),
    Member(Block, "insert_op_before", "four calls for ops without regions", _insert_op_before),
    Member(Block, "insert_op_after", "four calls for ops without regions", _insert_op_after),
    _row(Block, "_attach_op", "looks for the block in ops without regions", _attach_op),
)
