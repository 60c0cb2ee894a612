"""Decides which arrays of a program are on the host: the rules of `disc-placer`.

    placement = Placement(entry); placement.decide(i32_on_host=False)
    placement.place((value, 0))                 "cpu" or "gpu"
    placement.follows_data(start)               whether a list of integers is computed from data that only the device has

Arrays that share a place form a class: an array that a loop carries, an operand of a branch, an element of a tuple. A class is on the host
if a member is needed there and all of its members may be there: see `disc-placer` for both.
Source: seed document, "DhloPlacer"; BladeDISC mhlo_mark_shape_calc.cc, mhlo_placer.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    find_computation,
    reached_from,
)
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.placement import GPU, HOST
from xla_emitters.dialects.hlo.types import element_of, is_array, leaf_types
from xla_emitters.dynamic.sizes.numbers import small_count

_DECIDING = {"conditional": slice(0, 1), "shape-assertion": slice(0, None)}
"""Opcode -> the operands that determine control flow."""
CONTROL = frozenset(("while", "conditional", "call", "fusion"))
_HOST_OPS = frozenset(
    ("constant", "iota", "reshape", "concatenate", "slice", "broadcast", "transpose", "reverse", "pad", "dynamic-slice",
     "dynamic-update-slice", "dynamic-reshape", "dynamic-broadcast-in-dim", "dynamic-iota", "reduce", "get-dimension-size")
)  # fmt: skip
_BY_RESULT = frozenset(("constant", "select", "iota", "dynamic-iota", "dynamic-update-slice"))
_BY_FIRST = frozenset(("gather", "dynamic-gather"))
_NEVER = frozenset(
    (
        "topk",
        "dynamic-top-k",
        "rng",
        "dynamic-rng",
        "rng-bit-generator",
        "dynamic-rng-bit-generator",
        "custom-call",
        "sort",
    )
)


def host_operands(op: HloOp) -> Sequence[int]:
    """The numbers of the operands that are read on the host: they determine the sizes of the result, or control flow."""
    return op.number_operands or range(len(op.operands))[_DECIDING.get(op.opcode, slice(0, 0))]


Slot: TypeAlias = tuple[SSAValue, int]
"""(value, number): one of a value's arrays, numbered across its tuple's leaves."""


@dataclass(eq=False)
class Placement:
    """The slots on the host: classes of slots that share a place, by union-find. Before `decide`: the slots that must be on the host.

    on_host   roots of classes
    callers   computation -> the loops and branches that run it
    """

    entry: ComputationOp
    computations: list[ComputationOp] = field(init=False)
    on_host: set[Slot] = field(default_factory=set[Slot])
    conditions: list[ComputationOp] = field(default_factory=list[ComputationOp])
    callers: dict[ComputationOp, list[CallingOp]] = field(default_factory=dict[ComputationOp, list[CallingOp]])
    _parents: dict[Slot, Slot] = field(default_factory=dict[Slot, Slot])
    _members: dict[Slot, list[Slot]] = field(default_factory=dict[Slot, list[Slot]])
    _on_device: set[Slot] = field(default_factory=set[Slot])

    def __post_init__(self) -> None:
        self.computations = list(reached_from([self.entry], lambda op: op.opcode in CONTROL))
        for computation in self.computations:
            for op in computation.instructions:
                self._share(op)
        for parameter in self.entry.parameters:
            self._on_device.update(self.find(slot) for slot in slots_of(parameter.result))
        for slot in list(self._parents):
            if not _may_be_on_host(slot):
                self._on_device.add(self.find(slot))

    def captured(self, value: SSAValue) -> tuple[CallingOp, SSAValue] | None:
        """The loop whose body or condition has the parameter `value` and passes it on unchanged, and the value before the loop."""
        owner = value.owner
        computation = owner.parent_op() if isinstance(owner, ParameterOp) and owner.number.value.data else None
        callers = self.callers.get(computation, []) if isinstance(computation, ComputationOp) else []
        if len(callers) != 1 or callers[0].opcode != "while":
            return None
        assert isinstance(owner, ParameterOp)
        return callers[0], callers[0].operands[owner.number.value.data]

    def is_on_host(self, slot: Slot) -> bool:
        return self.find(slot) in self.on_host

    def place(self, slot: Slot) -> str:
        return HOST if self.is_on_host(slot) else GPU

    def decide(self, *, i32_on_host: bool) -> None:
        for computation in self.computations:
            for op in computation.instructions:
                if op.opcode == "get-dimension-size":
                    self._mark((op.result, 0))
                for number in host_operands(op):
                    self._mark((op.operands[number], 0))
                if i32_on_host and _is_on_s32(op):
                    self.on_host.add(self.find((op.result, 0)))
        for condition in self.conditions:
            self._mark((condition.root, 0))

    def _mark(self, slot: Slot) -> None:
        """Puts this slot on the host if that is possible, and the slots that it is computed from."""
        pending = [slot]
        while pending:
            root = self.find(pending.pop())
            if root in self.on_host or root in self._on_device:
                continue
            self.on_host.add(root)
            pending += self._inputs(root)

    def follows_data(self, value: SSAValue) -> bool:
        """Whether an integer list is computed from data that only the device has, so that it would be copied to the host."""
        pending, seen = [(value, 0)], set[Slot]()
        while pending:
            root = self.find(pending.pop())
            if root in self._on_device:
                return True
            if root not in seen:
                seen.add(root)
                pending += self._inputs(root)
        return False

    def _inputs(self, root: Slot) -> Iterator[Slot]:
        """The slots from which the members of a class are computed."""
        for value, number in self._members[root]:
            owner = value.owner
            if isinstance(owner, TupleOp):
                yield _operand_of_tuple(owner, number)
            elif isinstance(owner, HloOp) and owner.opcode not in CONTROL and owner.opcode != "get-dimension-size":
                yield from ((operand, 0) for operand in owner.operands if is_array(operand.type))

    def _share(self, op: HloOp) -> None:
        """Merges the classes of slots that an op passes on unchanged."""
        if isinstance(op, CallingOp) and op.opcode in CONTROL:
            for callee in op.callees():
                self.callers.setdefault(find_computation(op, callee.symbol), []).append(op)
        for slot in slots_of(op.result):
            self.find(slot)
        match op:
            case GetTupleElementOp():
                first = _first_slot(op.operands[0].type, op.index.value.data)
                for slot in slots_of(op.result):
                    self._join(slot, (op.operands[0], first + slot[1]))
            case CallingOp() if op.opcode == "while":
                body, condition = reversed(callees_of(op))
                self.conditions.append(condition)
                self._join_values(op.result, op.operands[0], body.root)
                for number, operand in enumerate(op.operands):
                    inside = [called.parameters[number].result for called in (body, condition)]
                    self._join_values(operand, *inside)
            case CallingOp() if op.opcode in CONTROL:
                given = (
                    [[operand] for operand in op.operands[1:]] if op.opcode == "conditional" else [list(op.operands)]
                )
                for callee, operands in zip(op.callees(), given, strict=True):
                    called = find_computation(op, callee.symbol)
                    self._join_values(op.result, called.root)
                    for parameter, operand in zip(called.parameters, operands, strict=True):
                        self._join_values(operand, parameter.result)
            case _ if op.opcode == "opt-barrier":
                self._join_values(op.result, op.operands[0])
            case _:
                pass

    def _join_values(self, first: SSAValue, *others: SSAValue) -> None:
        for other in others:
            for a, b in zip(slots_of(first), slots_of(other), strict=True):
                self._join(a, b)

    def _join(self, a: Slot, b: Slot) -> None:
        kept, gone = self.find(a), self.find(b)
        if kept != gone:
            self._parents[gone] = kept
            self._members[kept] += self._members.pop(gone)

    def find(self, slot: Slot) -> Slot:
        if slot not in self._parents:
            self._parents[slot] = slot
            self._members[slot] = [slot]
        while (parent := self._parents[slot]) != slot:
            self._parents[slot] = self._parents[parent]
            slot = parent
        return slot


def slots_of(value: SSAValue) -> list[Slot]:
    return [(value, number) for number, part in enumerate(leaf_types(value.type)) if is_array(part)]


def _first_slot(ir_type: Attribute, index: int) -> int:
    """The number of the first array of a tuple's element."""
    assert isinstance(ir_type, TupleType)
    return sum(len(leaf_types(part)) for part in ir_type.types.data[:index])


def _operand_of_tuple(op: TupleOp, slot: int) -> Slot:
    for operand in op.operands:
        if slot < (count := len(leaf_types(operand.type))):
            return operand, slot
        slot -= count
    raise AssertionError(slot)


def _may_be_on_host(slot: Slot) -> bool:
    """Whether this array is small and either passed on unchanged, or computed from small ones by an op that the host supports."""
    value, number = slot
    if small_count(leaf_types(value.type)[number]) is None:
        return False
    owner = value.owner
    if not isinstance(owner, HloOp) or isinstance(owner, TupleOp | GetTupleElementOp | ParameterOp):
        return True
    if owner.opcode in CONTROL or owner.opcode in ("opt-barrier", "get-dimension-size"):
        return True
    is_known = is_elementwise(owner) or owner.opcode in _HOST_OPS
    return is_known and all(small_count(operand.type) is not None for operand in owner.operands)


def _is_on_s32(op: HloOp) -> bool:
    """Whether the seed's second rule applies to the op."""

    def is_s32(value: SSAValue) -> bool:
        return is_array(value.type) and element_of(value).name == "s32"

    if op.opcode in CONTROL | _NEVER or isinstance(op, TupleOp | GetTupleElementOp | ParameterOp):
        return False
    if op.opcode in _BY_RESULT:
        return is_s32(op.result)
    if op.opcode in _BY_FIRST:
        return is_s32(op.operands[0])
    shape = host_operands(op)
    return is_array(op.result.type) and any(is_s32(value) for i, value in enumerate(op.operands) if i not in shape)
