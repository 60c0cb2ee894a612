"""Shape arithmetic runs on the host, data on the device, and copies are between them. On HLO.

    n = get_dimension_size(x), dimensions={0}          n {cpu}
    s = concatenate(n1, four)                          s {cpu}
    y = dynamic_reshape(x, s)                    ->    y {gpu}: reads s where it is, on the host
    i = convert(n)                                     t = h2d(n) {gpu}, i = convert(t) {gpu}

The attribute `disc.device` is "cpu" or "gpu", for a tuple one entry an array; no op is without it. On the host are:
  * what computes shape operands (`SHAPE_OPERANDS`), selectors of branches and conditions of loops, and what assertions check: the
    op and backwards what it is computed from, as long as that is integers or predicates, static, of at most 64 elements. A size is read
    on the host, from the array's description. What is larger, or of floats, is computed on the device, and its result copied;
  * with `i32-on-host`, all other ops on s32 too, as in the seed's second rule.
An array that a loop carries is in one place: its initial value, the body's parameter and result, and the loop's result. A branch likewise.
Parameters and results of the program are on the device. A constant that both sides read is one on each, not a copy.

The second rule is off by default: it moves the arithmetic of token ids and of masks made from them to the host, with a round
trip for each. Computations of scalars (what reductions and sorts apply) are part of their op and have no place of their own.
Source: seed document, "DhloPlacer"; BladeDISC mhlo_mark_shape_calc.cc, mhlo_placer.cc;
docs/decisions/14-where-the-passes-of-programs-differ.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TupleType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.placement import DEVICE, GPU, HOST, D2hOp, H2dOp, TransferOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.dtypes import Kind
from xla_emitters.graph.names import Names
from xla_emitters.rewrite.kernel_pass import KernelPass

MOST_ELEMENTS = 64
SHAPE_OPERANDS: dict[str, slice] = {
    "real-dynamic-slice": slice(1, 4),
    "dynamic-pad": slice(2, 5),
    "dynamic-reshape": slice(1, None),
    "dynamic-iota": slice(0, 1),
    "dynamic-broadcast-in-dim": slice(1, 2),
    "dynamic-gather": slice(2, 3),
    "dynamic-conv": slice(2, 3),
    "dynamic-reduce-window": slice(-5, None),
    "dynamic-top-k": slice(1, 2),
    "dynamic-rng-bit-generator": slice(1, 2),
    "set-dimension-size": slice(1, 2),
    "conditional": slice(0, 1),
    "shape-assertion": slice(0, None),
}
"""Opcode -> the operands that decide the sizes of the result, or what runs: they are read on the host."""
CONTROL = frozenset(("while", "conditional", "call", "fusion"))
_HOST_OPS = frozenset(
    ("constant", "iota", "reshape", "concatenate", "slice", "broadcast", "transpose", "reverse", "pad", "dynamic-slice",
     "dynamic-update-slice", "dynamic-reshape", "dynamic-broadcast-in-dim", "dynamic-iota", "reduce", "get-dimension-size")
)  # fmt: skip
_BY_RESULT = frozenset(("constant", "select", "iota", "dynamic-iota", "dynamic-update-slice"))
_BY_FIRST = frozenset(("gather", "dynamic-gather"))
_NEVER = frozenset(
    ("topk", "dynamic-top-k", "rng", "rng-bit-generator", "dynamic-rng-bit-generator", "custom-call", "sort")
)

Slot: TypeAlias = tuple[SSAValue, int]
"""An array of a value: its number among the value's arrays."""


@dataclass(frozen=True)
class DiscPlacerPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    i32_on_host   the seed's second rule too
    """

    name = "disc-placer"

    i32_on_host: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entries = [
            computation for computation in op.ops if isinstance(computation, ComputationOp) and computation.is_entry
        ]
        if not entries:
            raise self.refuse(op, "no computation is the entry: nothing says what is a parameter of the program")
        for copy in [inner for inner in op.walk() if isinstance(inner, TransferOp)]:
            Rewriter.replace_op(copy, (), [copy.operands[0]])  # of an earlier run: places are decided anew
        placement = _Placement(entries[0])
        placement.decide(i32_on_host=self.i32_on_host)
        _Placing(placement, Names(op)).apply()


@dataclass(eq=False)
class _Placement:
    """Which slots are on the host: classes of slots that share a place, by union-find.

    on_host   roots of classes
    """

    entry: ComputationOp
    computations: list[ComputationOp] = field(init=False)
    on_host: set[Slot] = field(default_factory=set[Slot])
    conditions: list[ComputationOp] = field(default_factory=list[ComputationOp])
    _parents: dict[Slot, Slot] = field(default_factory=dict[Slot, Slot])
    _members: dict[Slot, list[Slot]] = field(default_factory=dict[Slot, list[Slot]])
    _on_device: set[Slot] = field(default_factory=set[Slot])

    def __post_init__(self) -> None:
        self.computations = list(_reached(self.entry))
        for computation in self.computations:
            for op in computation.instructions:
                self._share(op)
        for parameter in self.entry.parameters:
            self._on_device.update(self.find(slot) for slot in _slots(parameter.result))
        for slot in list(self._parents):
            if not _may_be_on_host(slot):
                self._on_device.add(self.find(slot))

    def is_on_host(self, slot: Slot) -> bool:
        return self.find(slot) in self.on_host

    def place(self, slot: Slot) -> str:
        return HOST if self.is_on_host(slot) else GPU

    def decide(self, *, i32_on_host: bool) -> None:
        for computation in self.computations:
            for op in computation.instructions:
                if op.opcode == "get-dimension-size":
                    self._mark((op.result, 0))
                for operand in op.operands[SHAPE_OPERANDS[op.opcode]] if op.opcode in SHAPE_OPERANDS else ():
                    self._mark((operand, 0))
                if i32_on_host and _is_on_s32(op):
                    self.on_host.add(self.find((op.result, 0)))
        for condition in self.conditions:
            self._mark((condition.root, 0))

    def _mark(self, slot: Slot) -> None:
        """This slot is on the host, if it may be, and what it is computed from."""
        pending = [slot]
        while pending:
            root = self.find(pending.pop())
            if root in self.on_host or root in self._on_device:
                continue
            self.on_host.add(root)
            for value, number in self._members[root]:
                owner = value.owner
                if isinstance(owner, TupleOp):
                    pending.append(_operand_of_tuple(owner, number))
                elif isinstance(owner, HloOp) and owner.opcode not in CONTROL and owner.opcode != "get-dimension-size":
                    pending += [(operand, 0) for operand in owner.operands if is_array(operand.type)]

    def _share(self, op: HloOp) -> None:
        """Slots that an op leaves where they are."""
        for slot in _slots(op.result):
            self.find(slot)
        match op:
            case GetTupleElementOp():
                first = _first_slot(op.operands[0].type, op.index.value.data)
                for slot in _slots(op.result):
                    self._join(slot, (op.operands[0], first + slot[1]))
            case CallingOp() if op.opcode == "while":
                body, condition = (find_computation(op, callee.symbol) for callee in reversed(op.callees()))
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
            for a, b in zip(_slots(first), _slots(other), strict=True):
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


@dataclass(eq=False)
class _Placing:
    """Writes the places down, and adds the copies.

    copies   (value, place) -> the value there, in the computation that is looked at
    """

    placement: _Placement
    names: Names
    copies: dict[tuple[SSAValue, str], SSAValue] = field(default_factory=dict[tuple[SSAValue, str], SSAValue])

    def apply(self) -> None:
        conditions = set(self.placement.conditions)
        for computation in self.placement.computations:
            self.copies.clear()
            for op in list(computation.instructions):
                places = [self.placement.place(slot) for slot in _slots(op.result)]
                is_single = not isinstance(op.result.type, TupleType)
                op.attributes[DEVICE] = (
                    StringAttr(places[0] if places else HOST)
                    if is_single
                    else ArrayAttr([StringAttr(place) for place in places])
                )
                for number, wanted in self._wanted(op, places[0] if places and is_single else GPU):
                    op.operands[number] = self._at(op.operands[number], wanted, op)
            terminator = computation.body.block.last_op
            assert isinstance(terminator, ReturnOp)
            wanted = HOST if computation in conditions else GPU if computation is self.placement.entry else None
            if wanted is not None and is_array(terminator.root.type):
                terminator.operands[0] = self._at(terminator.root, wanted, terminator)

    def _wanted(self, op: HloOp, place: str) -> Iterator[tuple[int, str]]:
        """(operand, place) of the operands that must be in a certain place."""
        shape = range(len(op.operands))[SHAPE_OPERANDS[op.opcode]] if op.opcode in SHAPE_OPERANDS else range(0)
        if isinstance(op, TupleOp):
            first = 0
            for number, operand in enumerate(op.operands):
                if is_array(operand.type):
                    yield number, self.placement.place((op.result, first))
                first += len(leaf_types(operand.type))
        elif op.opcode in CONTROL or op.opcode == "opt-barrier":
            yield from ((number, HOST) for number in shape)
        elif not isinstance(op, GetTupleElementOp | ParameterOp) and op.opcode != "get-dimension-size":
            for number, operand in enumerate(op.operands):
                if is_array(operand.type):
                    yield number, HOST if number in shape else place

    def _at(self, value: SSAValue, wanted: str, before: Operation) -> SSAValue:
        if self.placement.place((value, 0)) == wanted:
            return value
        if (value, wanted) not in self.copies:
            owner = value.owner
            name = owner.instruction_name.data if isinstance(owner, HloOp) else "value"
            made: HloOp
            if isinstance(owner, ConstantOp):
                made = owner.clone()
            else:
                op_class: type[TransferOp] = H2dOp if wanted == GPU else D2hOp
                made = op_class([value], value.type, f"{name}.{op_class.name.removeprefix('hlo.')}")
            made.attributes[DEVICE] = StringAttr(wanted)
            self.copies[value, wanted] = self.names.add(made, before)
        return self.copies[value, wanted]


def _reached(entry: ComputationOp) -> Iterator[ComputationOp]:
    """The entry, and the computations that loops and branches run, each once."""
    seen, pending = {entry}, [entry]
    while pending:
        computation = pending.pop()
        yield computation
        for op in computation.instructions:
            for callee in op.callees() if isinstance(op, CallingOp) and op.opcode in CONTROL else ():
                called = find_computation(op, callee.symbol)
                if called not in seen:
                    seen.add(called)
                    pending.append(called)


def _slots(value: SSAValue) -> list[Slot]:
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


def _is_small(ir_type: Attribute) -> bool:
    """Integers or predicates, static, few."""
    if not is_array(ir_type) or any(size < 0 for size in dims_of(ir_type)) or prod(dims_of(ir_type)) > MOST_ELEMENTS:
        return False
    return element_of(ir_type).kind in (Kind.SIGNED, Kind.UNSIGNED, Kind.PRED)


def _may_be_on_host(slot: Slot) -> bool:
    """Whether this array is small, and made from small ones by an op that the host may run, or handed on."""
    value, number = slot
    if not _is_small(leaf_types(value.type)[number]):
        return False
    owner = value.owner
    if not isinstance(owner, HloOp) or isinstance(owner, TupleOp | GetTupleElementOp | ParameterOp):
        return True
    if owner.opcode in CONTROL or owner.opcode in ("opt-barrier", "get-dimension-size"):
        return True
    return (is_elementwise(owner) or owner.opcode in _HOST_OPS) and all(_is_small(one.type) for one in owner.operands)


def _is_on_s32(op: HloOp) -> bool:
    """The seed's second rule."""

    def is_s32(value: SSAValue) -> bool:
        return is_array(value.type) and element_of(value).name == "s32"

    if op.opcode in CONTROL | _NEVER or isinstance(op, TupleOp | GetTupleElementOp | ParameterOp):
        return False
    if op.opcode in _BY_RESULT:
        return is_s32(op.result)
    if op.opcode in _BY_FIRST:
        return is_s32(op.operands[0])
    shape = range(len(op.operands))[SHAPE_OPERANDS[op.opcode]] if op.opcode in SHAPE_OPERANDS else range(0)
    return is_array(op.result.type) and any(is_s32(value) for i, value in enumerate(op.operands) if i not in shape)
