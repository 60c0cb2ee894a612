"""What decides how often a `while` runs, where small arrays of its state alone do: a loop that will run too long is known before it is run.

    condition: compare(fusion(i), n), direction=LT      ->      LoopEnd(leaves=(0, 1), rows=(constant 1; add 0, 2; compare 0, 1),
    body:      tuple(add(i, 1), f(x), n)                                holds=4, after=(3, 1))

The state is followed from the condition's root: what ops on elements, moves of elements, and reductions whose order does not matter make
of arrays and constants, through fusions, calls, tuples and copies. Where all these ops have the same value on every machine
(`has_one_value`), the loop ends where the machine's does. Such an end as HLO text is a part of a program's steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers, no_call
from xla_emitters.dialects.hlo.called import FOLDS
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
    callees_of,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.elementwise import CompareOp, CopyOp, ElementwiseOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp
from xla_emitters.dialects.hlo.types import (
    default_order,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    leaf_types,
    minor_to_major,
    tuple_type,
)
from xla_emitters.dtypes import Array
from xla_emitters.graph.entry import leaves_of_element
from xla_emitters.graph.names import rename
from xla_emitters.graph.reduction_starts import combining_opcodes

MOST_ELEMENTS = 1 << 16
"""Of an array that is followed."""
MOST_NUMBERS = 1024
"""Of a constant that is followed: a program's steps hold it as text."""
MOST_FORESEEN = 1 << 33
"""Elements: the most work for which what ends a loop is computed alone, which takes less than ten seconds."""
_ROW = 256
"""Elements that take as long as the call of a row."""

_INTEGERS = frozenset(f"{letter}{bits}" for letter in "su" for bits in (8, 16, 32, 64))
_FLOATS = frozenset(("f32", "f64"))
_NARROW = frozenset(("pred", *(kind for kind in _INTEGERS if not kind.endswith("64")), *_FLOATS))
"""The types whose elements become floats with one rounding."""
_OF_TRUTH = frozenset("and clamp maximum minimum not or select xor".split())
_ARITHMETIC = frozenset("abs add clamp maximum minimum multiply negate select subtract".split())
_OF_INTEGERS = _OF_TRUTH | _ARITHMETIC | {"divide", "remainder", "sign"}
_OF_FLOATS = _ARITHMETIC | {"ceil", "divide", "floor", "is-finite", "round-nearest-even", "sqrt"}
_CHOICES = frozenset(("and", "maximum", "minimum", "or", "xor"))

_Leaf: TypeAlias = tuple[int]
"""(number of a leaf of the state,): not yet read."""
_Value: TypeAlias = "int | _Leaf | list[_Later] | None"
"""Of an instruction: the number of an array, the values of a tuple, or None: not followed."""
_Later: TypeAlias = "Callable[[], _Value]"
"""A value that is followed only if it is read."""


def has_one_value(op: HloOp) -> bool:
    """Whether an op on small arrays has the same value on every machine.

    op  is followed (`_is_followed`)

    Not so: functions whose last bit differs between libraries (exp, power ...), divisions of f32, for which GPUs have `div.full`, sums of
    floats, whose order is a kernel's, conversions of floats to integers, types that a machine computes in a wider one.
    """
    result = element_of(op.result).name
    types = [element_of(operand).name for operand in op.operands]
    match op:
        case ConstantOp() | IotaOp() | MoveOp():
            return True
        case ReduceOp():
            (opcode, *others) = combining_opcodes(find_computation(op, op.to_apply))
            if result == "pred":
                return not others and opcode in ("and", "or", "xor")
            return not others and (opcode in _CHOICES or (opcode == "add" and result in _INTEGERS))
        case CompareOp():
            return True
        case ElementwiseOp() if op.opcode == "convert":
            return types[0] in _NARROW if result in _FLOATS else result == "pred" or types[0] not in _FLOATS
        case ElementwiseOp():
            if types[-1] in _FLOATS:
                return op.opcode in _OF_FLOATS and (op.opcode, types[-1]) != ("divide", "f32")
            return op.opcode in (_OF_TRUTH if types[-1] == "pred" else _OF_INTEGERS)
        case _:
            return False


def _is_followed(op: HloOp) -> bool:
    """Whether the value of an op on small arrays is computed by `_function_of`."""
    match op:
        case ConstantOp():
            return not op.is_elided and prod(dims_of(op.result)) <= MOST_NUMBERS
        case IotaOp():
            return True
        case MoveOp():
            return element_of(op.operands[0]) == element_of(op.result)
        case ReduceOp():
            (opcode, *others) = combining_opcodes(find_computation(op, op.to_apply))
            return not others and opcode in FOLDS
        case CompareOp():
            return not op.is_total_order
        case _:
            return isinstance(op, ElementwiseOp)


def _function_of(op: HloOp) -> Callable[..., Array]:
    """The value of such an op, as a function of its operands."""
    match op:
        case ReduceOp():
            (opcode,), dims = combining_opcodes(find_computation(op, op.to_apply)), tuple(integers(op.dimensions))
            function, kind = FOLDS[opcode or ""], element_of(op.result).numpy

            def reduce(array: Array, start: Array) -> Array:
                return function(function.reduce(array, axis=dims, initial=start, dtype=kind), start)

            return reduce
        case CompareOp():
            return op.FUNCTIONS[op.direction.data]
        case ElementwiseOp() if (ufunc := op.ufunc()) is not None:
            return ufunc
        case _:
            return lambda *operands: op.evaluate(operands, no_call)


@dataclass(frozen=True, eq=False)
class LoopEnd:
    """While `holds`, the leaves of a loop's state that decide become `after`.

    leaves  their numbers in the state
    rows    ops and the numbers of their operands: the leaves come first, then the rows
    """

    leaves: tuple[int, ...]
    rows: tuple[tuple[HloOp, tuple[int, ...]], ...]
    holds: int
    after: tuple[int, ...]

    @staticmethod
    def of(computation: ComputationOp) -> LoopEnd:
        """The inverse of `text`: of its entry."""
        numbers: dict[SSAValue, int] = {
            parameter.result: number for number, parameter in enumerate(computation.parameters)
        }
        rows, root = list[tuple[HloOp, tuple[int, ...]]](), computation.root.owner
        for op in computation.instructions:
            if op is not root and not isinstance(op, ParameterOp):
                rows.append((op, tuple([numbers[operand] for operand in op.operands])))
                numbers[op.result] = len(numbers)
        assert isinstance(root, TupleOp)
        holds, *after = (numbers[operand] for operand in root.operands)
        return LoopEnd(tuple(range(len(after))), tuple(rows), holds, tuple(after))

    def text(self, types: Sequence[Attribute]) -> str:
        """As HLO text: its entry takes the leaves that decide, of all leaves of these types, and returns `holds` and `after`."""
        from xla_emitters.text.hlo import print_hlo  # imported here: few modules have loops

        block, names, callees = Block(), set[str](), dict[ComputationOp, None]()
        values = list[SSAValue]()
        for number, leaf in enumerate(self.leaves):
            values.append(_added(block, ParameterOp(number, types[leaf], f"s{number}"), names))
        for op, operands in self.rows:
            copy = op.clone()
            copy.operands = [values[operand] for operand in operands]
            callees |= dict.fromkeys(find_computation(op, each.symbol) for each in _callees(op))
            values.append(_added(block, copy, names))
        results = [values[number] for number in (self.holds, *self.after)]
        root = _added(block, TupleOp(results, tuple_type([value.type for value in results]), "next"), names)
        block.add_op(ReturnOp(root))
        entry = ComputationOp("state", block, entry=True)
        return print_hlo(ModuleOp([*(callee.clone() for callee in callees), entry], sym_name=StringAttr("end")))

    @property
    def is_exact(self) -> bool:
        """Whether the loop runs as often on every machine."""
        return all(has_one_value(op) for op, _ in self.rows)

    @cached_property
    def _again(self) -> frozenset[int]:
        """The rows, by the numbers of their values, that are not the same in each iteration."""
        count = len(self.leaves)
        changing = {number for number, after in enumerate(self.after) if after != number}
        for number, (_, operands) in enumerate(self.rows, count):
            if not changing.isdisjoint(operands):
                changing.add(number)
        return frozenset(number for number in changing if number >= count)

    def trips(self, state: Sequence[Array], most: int) -> int | None:
        """How often the loop runs from these leaves on; None if more than `most` times."""
        count = len(self.leaves)
        rows = [(number, _function_of(op), operands) for number, (op, operands) in enumerate(self.rows, count)]
        again = [row for row in rows if row[0] in self._again]
        arrays = list[Any](state) + [None] * len(rows)
        with np.errstate(all="ignore"):
            for number, function, operands in rows:
                arrays[number] = function(*[arrays[operand] for operand in operands])
            for trips in range(most + 1):
                if not arrays[self.holds]:
                    return trips
                arrays[:count] = [arrays[number] for number in self.after]
                for number, function, operands in again:
                    arrays[number] = function(*[arrays[operand] for operand in operands])
        return None

    def outlasts(self, state: Sequence[Array], most: int) -> bool:
        """Whether the loop runs more than `most` times from these leaves on; False too where that is more work than MOST_FORESEEN."""
        count = len(self.leaves)
        work = sum(_ROW + prod(dims_of(self.rows[number - count][0].result)) for number in self._again)
        return work * most <= MOST_FORESEEN and self.trips(state, most) is None


def _added(block: Block, op: HloOp, names: set[str]) -> SSAValue:
    rename(op, names)
    block.add_op(op)
    return op.result


def _callees(op: HloOp) -> Sequence[Any]:
    return op.callees() if isinstance(op, ReduceOp) else ()


def loop_end_of(loop: HloOp) -> LoopEnd | None:
    """What ends a `while`, over the leaves of its state; None where that is not found."""
    if loop.opcode != "while" or len(loop.operands) != 1:
        return None
    types, (condition, body) = leaf_types(loop.operands[0].type), callees_of(loop)
    rows = _Rows(types)
    leaves: list[_Value] = [(number,) for number in range(len(types))]
    state: list[_Later] = [partial(_same, leaf) for leaf in leaves]
    holds = rows.number(_Followed(rows, condition, [partial(_same, state)]).of(condition.root))
    body_of = _Followed(rows, body, [partial(_same, state)])
    after = body_of.of(body.root)
    if holds is None or not isinstance(after, list) or len(after) != len(types):
        return None
    done = list[int]()
    while len(done) < len(rows.read):  # reading one may need another
        value = rows.number(after[rows.read[len(done)]]())
        if value is None:
            return None
        done.append(value)
    return rows.end(holds, done)


def proved_trips(loop: HloOp, most: int) -> int | None:
    """How often a `while` runs, if that follows from constants alone; None if not, or if it runs more than `most` times.

    What XLA states is not used: a kernel that runs the iterations has no condition that could end it.
    """
    ends, initial = loop_end_of(loop), loop.operands[0].owner
    around = loop.parent_op()
    if ends is None or not ends.is_exact or not isinstance(initial, TupleOp) or not isinstance(around, ComputationOp):
        return None
    rows = _Rows(())
    outside = _Followed(rows, around, [partial(_same, None) for _ in around.parameters])
    state = [number for leaf in ends.leaves if (number := rows.number(outside.of(initial.operands[leaf]))) is not None]
    if len(state) < len(ends.leaves):
        return None
    arrays = list[Array]()
    with np.errstate(all="ignore"):
        for op, operands in rows.code:
            arrays.append(_function_of(op)(*[arrays[operand] for operand in operands]))
    return ends.trips([arrays[number] for number in state], most)


def deciding_leaves(loop: HloOp) -> frozenset[int] | None:
    """The leaves of a `while`'s state on which its end depends: once they come back, it never ends, whatever the others are.

    condition: compare(get-tuple-element(t, 1), ...)    body: tuple(add(i, 1), f(x), ...)  ->  {1}: the counter decides nothing

    returns  None where it is not known
    """
    if loop.opcode != "while" or len(loop.operands) != 1:
        return None
    condition, body = callees_of(loop)
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
                yield from self.by(op.operands[0], leaf + leaves_of_element(op)[0])
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
    if not is_array(ir_type) or has_dynamic_dims(ir_type) or element_of(ir_type).name not in _NARROW | _INTEGERS:
        return False
    dims = dims_of(ir_type)
    return prod(dims) <= MOST_ELEMENTS and minor_to_major(ir_type) == default_order(len(dims))


class _Rows:
    """The rows of an end. Leaves are numbered from -1 down until it is known how many are read."""

    def __init__(self, types: Sequence[Attribute]) -> None:
        self.types = types
        self.read = list[int]()
        self.code = list[tuple[HloOp, tuple[int, ...]]]()

    def number(self, value: _Value) -> int | None:
        """The number of the array that a value is; None if it is not followed."""
        if isinstance(value, tuple):
            (leaf,) = value
            if not _is_small(self.types[leaf]):
                return None
            if leaf not in self.read:
                self.read.append(leaf)
            return -1 - self.read.index(leaf)
        return value if isinstance(value, int) else None

    def end(self, holds: int, after: Sequence[int]) -> LoopEnd:
        count = len(self.read)

        def placed(number: int) -> int:
            return -1 - number if number < 0 else count + number

        rows = tuple((op, tuple(map(placed, operands))) for op, operands in self.code)
        return LoopEnd(tuple(self.read), rows, placed(holds), tuple(map(placed, after)))


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
                computation = callees_of(op)[0]
                inner = _Followed(self.rows, computation, [partial(self.of, operand) for operand in op.operands])
                return inner.of(computation.root)
            case HloOp() if _is_small(value.type):
                return self._made(op)
            case _:
                return None

    def _made(self, op: HloOp) -> int | None:
        """The result of an op on small arrays; None for one that is not followed."""
        if not all(_is_small(operand.type) for operand in op.operands) or not _is_followed(op):
            return None
        operands = [number for operand in op.operands if (number := self.rows.number(self.of(operand))) is not None]
        if len(operands) != len(op.operands):
            return None
        self.rows.code.append((op, tuple(operands)))
        return len(self.rows.code) - 1
