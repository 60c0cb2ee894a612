"""What decides how often a `while` runs, where numbers of its state alone do: a loop that will run too long is known before it is run.

    condition: compare(fusion(i), n), direction=LT      ->      Recurrence(state=(0, 1), code=(n2 = add.s32 n0, 1;  n3 = lt n0, n1),
    body:      tuple(add(i, 1), f(x), n)                                   holds=n3, after=(n2, n1))

The state is followed from the condition's root: integers, truth values and floats that elementwise ops, through fusions, calls, tuples and
copies, make of each other and of constants. None is found where an element of an array, or an op without a form, decides: of floats those
have a form that are rounded correctly everywhere, so that the loop ends where the machine's does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CompareOp, CopyOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.program.float_forms import FLOATS, computed_float, constant
from xla_emitters.program.integer_forms import PRED, computed
from xla_emitters.program.steps import FUNCTIONS, INTEGERS, Compute, Extent, Number, Recurrence

_Leaf: TypeAlias = tuple[int]
"""(number of a leaf of the state,): not yet read."""
_Value: TypeAlias = "Extent | _Leaf | list[_Value | None] | None"
"""Of an instruction: a number, the values of a tuple, or None: not followed."""


def recurrence_of(loop: HloOp) -> Recurrence | None:
    """The recurrence that ends a `while`, over the leaves of its state; None where none is found."""
    if not isinstance(loop, RuleOp) or loop.opcode != "while" or len(loop.operands) != 1:
        return None
    types = leaf_types(loop.operands[0].type)
    condition, body = (find_computation(loop, loop.symbols(name)[0]) for name in ("condition", "body"))
    rows = _Rows(types)
    state: list[_Value] = [(number,) for number in range(len(types))]
    holds = rows.extent(_Followed(rows, condition, [state]).of(condition.root))
    body_of = _Followed(rows, body, [state])
    after = body_of.of(body.root)
    if holds is None or not isinstance(after, list) or len(after) != len(types):
        return None
    done = list[Extent]()
    while len(done) < len(rows.read):  # reading one may need another
        value = rows.extent(after[rows.read[len(done)]])
        if value is None:
            return None
        done.append(value)
    return rows.recurrence(holds, done)


def proved_trips(loop: HloOp, most: int) -> int | None:
    """How often a `while` runs, if that follows from constants alone; None if not, or if it runs more than `most` times.

    What XLA states is not used: a kernel that runs the iterations has no condition that could end it.
    """
    ends, initial = recurrence_of(loop), loop.operands[0].owner
    around = loop.parent_op()
    if ends is None or not isinstance(initial, TupleOp) or not isinstance(around, ComputationOp):
        return None
    count, outside = len(ends.state), _Followed(_Rows(()), around, [None for _ in around.parameters])
    needed, pending = set[int](), [ends.holds]
    while pending:
        extent = pending.pop()
        if isinstance(extent, Number) and extent.index not in needed:
            needed.add(extent.index)
            is_row = extent.index >= count
            pending += ends.code[extent.index - count].operands if is_row else [ends.after[extent.index]]
    numbers, rows = dict[int, int](), [row for row in ends.code if row.result.index in needed]
    for number in sorted(needed & set(range(count))):
        first = outside.of(initial.operands[ends.state[number]])
        if not isinstance(first, int):
            return None
        numbers[number] = first
    if any(row.function not in FUNCTIONS for row in rows):
        return None
    kept = tuple(numbers)

    def value(extent: Extent) -> int:
        return extent if isinstance(extent, int) else numbers[extent.index]

    for trips in range(most + 1):
        for row in rows:
            numbers[row.result.index] = FUNCTIONS[row.function](*map(value, row.operands))
        if not value(ends.holds):
            return trips
        numbers.update(zip(kept, [value(ends.after[number]) for number in kept], strict=True))
    return None


def deciding_leaves(loop: HloOp) -> frozenset[int] | None:
    """The leaves of a `while`'s state on which its end depends: once they come back, it never ends, whatever the others are.

    condition: compare(get-tuple-element(t, 1), ...)    body: tuple(add(i, 1), f(x), ...)  ->  {1}: the counter decides nothing

    returns  None where it is not known
    """
    if not isinstance(loop, RuleOp) or loop.opcode != "while" or len(loop.operands) != 1:
        return None
    condition, body = (find_computation(loop, loop.symbols(name)[0]) for name in ("condition", "body"))
    found, pending, needed = set[int](), [*_Needed().by(condition.root, 0)], _Needed()
    while pending:
        if (leaf := pending.pop()) not in found:
            found.add(leaf)
            pending += needed.by(body.root, leaf)
    return frozenset(found)


class _Needed:
    """The leaves of a computation's one parameter that a leaf of a value is made of. Other ops are made of all their operands."""

    def __init__(self) -> None:
        self._known = dict[tuple[SSAValue, int], frozenset[int]]()

    def by(self, value: SSAValue, leaf: int) -> frozenset[int]:
        if (value, leaf) not in self._known:
            self._known[value, leaf] = frozenset(self._by(value, leaf))
        return self._known[value, leaf]

    def _by(self, value: SSAValue, leaf: int) -> Iterator[int]:
        op = value.owner
        match op:
            case ParameterOp():
                yield leaf
            case TupleOp():
                for operand in op.operands:
                    if leaf < (count := len(leaf_types(operand.type))):
                        yield from self.by(operand, leaf)
                        return
                    leaf -= count
            case GetTupleElementOp():
                (whole,) = op.operands
                assert isinstance(whole.type, TupleType)
                before = whole.type.types.data[: op.index.value.data]
                yield from self.by(whole, leaf + sum(len(leaf_types(part)) for part in before))
            case HloOp():
                for operand in op.operands:
                    for each in range(len(leaf_types(operand.type))):
                        yield from self.by(operand, each)
            case _:
                raise AssertionError(f"{value} is not the result of an instruction")


def _is_number(ir_type: Attribute) -> bool:
    return is_array(ir_type) and not dims_of(ir_type) and element_of(ir_type).name in (PRED, *INTEGERS, *FLOATS)


class _Rows:
    """The code of a recurrence. Leaves are numbered from -1 down until it is known how many are read."""

    def __init__(self, types: Sequence[Attribute]) -> None:
        self.types = types
        self.read = list[int]()
        self.code = list[tuple[str, tuple[Extent, ...]]]()

    def extent(self, value: _Value) -> Extent | None:
        """The number that a value is; None if it is none."""
        if isinstance(value, tuple):
            (leaf,) = value
            if not _is_number(self.types[leaf]):
                return None
            if leaf not in self.read:
                self.read.append(leaf)
            return Number(-1 - self.read.index(leaf))
        return value if isinstance(value, int | Number) else None

    def compute(self, function: str, operands: Sequence[Extent]) -> Extent:
        """The result of a new row."""
        self.code.append((function, tuple(operands)))
        return Number(len(self.code) - 1)

    def recurrence(self, holds: Extent, after: Sequence[Extent]) -> Recurrence:
        count = len(self.read)

        def placed(extent: Extent) -> Extent:
            if isinstance(extent, int):
                return extent
            return Number(-1 - extent.index if extent.index < 0 else count + extent.index)

        code = tuple(
            Compute(Number(count + row), function, tuple(map(placed, operands)))
            for row, (function, operands) in enumerate(self.code)
        )
        return Recurrence(tuple(self.read), code, placed(holds), tuple(map(placed, after)))


class _Followed:
    """The values of a computation. From the root on: other instructions are not looked at."""

    def __init__(self, rows: _Rows, computation: ComputationOp, arguments: Sequence[_Value]) -> None:
        self.rows, self.computation, self.arguments = rows, computation, arguments
        self._known = dict[SSAValue, _Value]()

    def of(self, value: SSAValue) -> _Value:
        if value not in self._known:
            self._known[value] = self._followed(value)
        return self._known[value]

    def _followed(self, value: SSAValue) -> _Value:
        op = value.owner
        match op:
            case ParameterOp():
                return self.arguments[op.number.value.data]
            case TupleOp():
                return [self.of(operand) for operand in op.operands]
            case GetTupleElementOp():
                whole = self.of(op.operands[0])
                return whole[op.index.value.data] if isinstance(whole, list) else None
            case CopyOp():
                return self.of(op.operands[0])
            case FusionOp() | CallOp():
                computation = find_computation(op, op.callees()[0].symbol)
                inner = _Followed(self.rows, computation, [self.of(operand) for operand in op.operands])
                return inner.of(computation.root)
            case ConstantOp():
                if not _is_number(op.result.type) or op.is_elided:
                    return None
                kind = element_of(op.result.type).name
                return constant(op.array()[()], kind, self.rows.compute) if kind in FLOATS else int(op.array())
            case HloOp() if _is_number(value.type) and all(_is_number(operand.type) for operand in op.operands):
                return self._elementwise(op)
            case _:
                return None

    def _elementwise(self, op: HloOp) -> Extent | None:
        operands = [extent for operand in op.operands if (extent := self.rows.extent(self.of(operand))) is not None]
        if len(operands) != len(op.operands) or not operands:
            return None
        if isinstance(op, CompareOp):
            return None if op.is_total_order else self.rows.compute(op.direction.data.lower(), operands)
        types, result = [element_of(operand.type).name for operand in op.operands], element_of(op.result.type).name
        of_kind = computed if FLOATS.keys().isdisjoint((*types, result)) else computed_float
        return of_kind(op.opcode, types, result, operands, self.rows.compute)
