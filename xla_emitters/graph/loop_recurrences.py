"""What decides how often a `while` runs, where small arrays of its state alone do: a loop that will run too long is known before it is run.

    condition: compare(fusion(i), n), direction=LT      ->      Recurrence(state=(0, 1), holds=n4, after=(n3, n1),
    body:      tuple(add(i, 1), f(x), n)                       code=(n2 = array.s32 0, 1; n3 = array.int.add n0, n2; n4 = array.lt n0, n1))

The state is followed from the condition's root: what ops on elements, moves of elements, and reductions make of arrays and constants,
through fusions, calls, tuples and copies. None is found where an op without a form (`program/array_forms.py`) decides. Where all its rows
are rounded correctly everywhere, the loop ends where the machine's does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.elementwise import CompareOp, CopyOp, ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp
from xla_emitters.dialects.hlo.types import (
    default_order,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    leaf_types,
    minor_to_major,
)
from xla_emitters.graph.reduction_starts import combining_opcodes
from xla_emitters.program.array_forms import (
    ARRAY_FUNCTIONS,
    TYPES,
    computed_array,
    constant,
    is_exact,
    reduced,
    taken,
)
from xla_emitters.program.steps import Compute, Extent, Number, Recurrence

MOST_ELEMENTS = 1 << 16
"""Of an array that is followed."""

_Leaf: TypeAlias = tuple[int]
"""(number of a leaf of the state,): not yet read."""
_Value: TypeAlias = "Extent | _Leaf | list[_Later] | None"
"""Of an instruction: an array, the values of a tuple, or None: not followed."""
_Later: TypeAlias = "Callable[[], _Value]"
"""A value that is followed only if it is read."""


def recurrence_of(loop: HloOp) -> Recurrence | None:
    """The recurrence that ends a `while`, over the leaves of its state; None where none is found."""
    if not isinstance(loop, RuleOp) or loop.opcode != "while" or len(loop.operands) != 1:
        return None
    types = leaf_types(loop.operands[0].type)
    condition, body = (find_computation(loop, loop.symbols(name)[0]) for name in ("condition", "body"))
    rows = _Rows(types)
    leaves: list[_Value] = [(number,) for number in range(len(types))]
    state: list[_Later] = [partial(_same, leaf) for leaf in leaves]
    holds = rows.extent(_Followed(rows, condition, [partial(_same, state)]).of(condition.root))
    body_of = _Followed(rows, body, [partial(_same, state)])
    after = body_of.of(body.root)
    if holds is None or not isinstance(after, list) or len(after) != len(types):
        return None
    done = list[Extent]()
    while len(done) < len(rows.read):  # reading one may need another
        value = rows.extent(after[rows.read[len(done)]]())
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
    if ends is None or not is_exact(ends) or not isinstance(initial, TupleOp) or not isinstance(around, ComputationOp):
        return None
    rows = _Rows(())
    outside = _Followed(rows, around, [partial(_same, None) for _ in around.parameters])
    state = [extent for leaf in ends.state if (extent := rows.extent(outside.of(initial.operands[leaf]))) is not None]
    if len(state) < len(ends.state):
        return None
    arrays, made = list[Any](), [(ARRAY_FUNCTIONS[function], operands) for function, operands in rows.code]

    def value(extent: Extent) -> Any:
        return extent if isinstance(extent, int) else arrays[extent.index]

    with np.errstate(all="ignore"):
        for function, operands in made:
            arrays.append(function(*map(value, operands)))
        arrays = [*map(value, state), *(None for _ in ends.code)]
        for trips in range(most + 1):
            for row in ends.code:
                arrays[row.result.index] = ARRAY_FUNCTIONS[row.function](*map(value, row.operands))
            if not value(ends.holds):
                return trips
            arrays[: len(state)] = map(value, ends.after)
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


def _same(value: _Value) -> _Value:
    return value


def _is_small(ir_type: Attribute) -> bool:
    """Whether an array is one that is followed: its elements are in row-major order, in the program's steps too."""
    if not is_array(ir_type) or has_dynamic_dims(ir_type) or element_of(ir_type).name not in TYPES:
        return False
    dims = dims_of(ir_type)
    return prod(dims) <= MOST_ELEMENTS and minor_to_major(ir_type) == default_order(len(dims))


class _Rows:
    """The code of a recurrence. Leaves are numbered from -1 down until it is known how many are read."""

    def __init__(self, types: Sequence[Attribute]) -> None:
        self.types = types
        self.read = list[int]()
        self.code = list[tuple[str, tuple[Extent, ...]]]()

    def extent(self, value: _Value) -> Extent | None:
        """The array that a value is; None if it is not followed."""
        if isinstance(value, tuple):
            (leaf,) = value
            if not _is_small(self.types[leaf]):
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
        arrays = tuple((element_of(self.types[leaf]).name, tuple(dims_of(self.types[leaf]))) for leaf in self.read)
        return Recurrence(tuple(self.read), code, placed(holds), tuple(map(placed, after)), arrays)


class _Followed:
    """The values of a computation. From the root on: other instructions are not looked at."""

    def __init__(self, rows: _Rows, computation: ComputationOp, arguments: Sequence[_Later]) -> None:
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
                return self.arguments[op.number.value.data]()
            case TupleOp():
                return [partial(self.of, operand) for operand in op.operands]
            case GetTupleElementOp():
                whole = self.of(op.operands[0])
                return whole[op.index.value.data]() if isinstance(whole, list) else None
            case CopyOp():
                return self.of(op.operands[0])
            case FusionOp() | CallOp():
                computation = find_computation(op, op.callees()[0].symbol)
                inner = _Followed(self.rows, computation, [partial(self.of, operand) for operand in op.operands])
                return inner.of(computation.root)
            case HloOp() if _is_small(value.type):
                return self._made(op)
            case _:
                return None

    def _made(self, op: HloOp) -> Extent | None:
        """The result of an op on small arrays; None for an op without a form."""
        compute, result = self.rows.compute, element_of(op.result.type).name
        match op:
            case ConstantOp():
                return None if op.is_elided else constant(op.array(), result, compute)
            case IotaOp():
                return constant(op.evaluate((), not_called), result, compute)
            case _ if not all(_is_small(operand.type) for operand in op.operands):
                return None
            case _:
                pass
        operands = [extent for operand in op.operands if (extent := self.rows.extent(self.of(operand))) is not None]
        if len(operands) != len(op.operands):
            return None
        types = [element_of(operand.type).name for operand in op.operands]
        match op:
            case MoveOp() if types[0] == result:
                dims = dims_of(op.operands[0])
                return taken(operands[0], op.evaluate([np.arange(prod(dims)).reshape(dims)], not_called), compute)
            case ReduceOp() if len(operands) == 2:
                (opcode,) = combining_opcodes(find_computation(op, op.callees()[0].symbol))
                source, start = operands
                return reduced(opcode, result, source, start, integers(op.dimensions), compute)
            case CompareOp():
                return (
                    None
                    if op.is_total_order
                    else computed_array(op.direction.data.lower(), types, result, operands, compute)
                )
            case ElementwiseOp():
                return computed_array(op.opcode, types, result, operands, compute)
            case _:
                return None


def not_called(name: str, operands: Sequence[Any]) -> Any:
    """Stands for calls of an op that calls no computation."""
    raise AssertionError(f"no op calls %{name} with {len(operands)} arrays")
