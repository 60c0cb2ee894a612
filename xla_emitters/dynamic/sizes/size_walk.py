"""Walks a module from its entry: computes the sizes of every value's axes, and the elements of small integer arrays.

    ENTRY, and each execution of a computation by `call`, `fusion`, `while` and `conditional`: a computation that is called twice
    has two sets of sizes.

An op that is executed in every run is *certain*: if it requires two sizes to be equal, this is a fact, and a guard of the program
(`program.py`). Inside branches and loop bodies, which may not run, requirements do not become facts: the sizes must be equal by the
facts, or the op checks itself when it runs (`unproved`). Sizes that cannot be equal are an error at the op, everywhere.

A loop is walked as if it changed nothing; what its body then changes is not known, and it is walked again until nothing new changes.
These walks are trials: they record nothing and report no error. A branch's result has the sizes in which all branches agree.

Inside a loop or a branch, an op that runs again on the same operands has the same result, and so has an inner loop or branch in which all
ops do. What was found is remembered up to the end of the outermost one: each level of nested loops would else triple the number of walks.
Source: docs/reference/4 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import StringAttr, TupleType
from xdsl.ir import Attribute, SSAValue

from xla_emitters.algebra.axes import Axes
from xla_emitters.algebra.facts import Facts, Source
from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import HloOp, integer, integers, no_call, written_at
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import (
    DynamicBroadcastInDimOp,
    DynamicReshapeOp,
    GetDimensionSizeOp,
    ShapeAssertionOp,
)
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.dtypes import Array, Kind
from xla_emitters.dynamic.sizes.numbers import FEWEST_BITS, SizeArithmetic, assume, in_range, is_data, small_count
from xla_emitters.dynamic.sizes.sizing import Entry, SizeSizing
from xla_emitters.dynamic.sizes.walked_array import AxisKey, Leaf, Number, Value, leaves
from xla_emitters.errors import DataError, Place, VerifyError

_SAME = frozenset({"opt-barrier", "copy", "all-reduce", "collective-permute", "add-dependency", "domain"})
_Key: TypeAlias = tuple[HloOp | int, ...]
"""An op, and the numbers of the arrays that it is given."""


@dataclass(frozen=True)
class Assertion:
    """A `shape_assertion` that every run checks.

    condition  the asserted predicate
    shown      the sizes in the message; None for an unknown one
    """

    op: ShapeAssertionOp
    condition: Number
    shown: tuple[Size | None, ...]


@dataclass
class Walk:
    """The results of walking an entry: see the file's head.

    values     SSA value -> its value in each context in which its computation ran
    named      (name, size) pairs from the text
    assertions in program order
    computed   size in a shape operand -> the op that first required it
    ranges     (start, limit, size of the axis, op) of slices whose ranges follow from sizes
    repeated   (size of an axis, size of the result's) of broadcasts -> the first op: the axis has one element or as many as the result
    unproved   ops that must check their operands' sizes themselves
    until      the op of the entry with which the walk ends; None: all ops are walked

    _results     what ops gave inside the loop or branch that is walked
    _unsaid      those of them that a trial computed, and that have something to record or to report
    _sources     what messages call an op
    _called      what arithmetic on scalars gave for their numbers with the facts `_called_with`, outside of loops and branches
    _arithmetic_ones  whether a computation is such arithmetic
    _others      ops met there that are not known to be functions of their operands
    """

    axes: Axes
    values: dict[SSAValue, list[Value]] = field(default_factory=dict[SSAValue, list[Value]])
    named: list[tuple[str, Size]] = field(default_factory=list[tuple[str, Size]])
    assertions: list[Assertion] = field(default_factory=list[Assertion])
    computed: dict[Size, HloOp] = field(default_factory=dict[Size, HloOp])
    ranges: list[tuple[Size, Size, Size, HloOp]] = field(default_factory=list[tuple[Size, Size, Size, HloOp]])
    repeated: dict[tuple[Size, Size], HloOp] = field(default_factory=dict[tuple[Size, Size], HloOp])
    unproved: dict[HloOp, None] = field(default_factory=dict[HloOp, None])
    until: HloOp | None = None
    _arithmetic: SizeArithmetic = field(default_factory=SizeArithmetic)
    _open: set[AxisKey | int] = field(default_factory=set[AxisKey | int])
    _results: dict[_Key, Value] = field(default_factory=dict[_Key, Value])
    _unsaid: set[_Key] = field(default_factory=set[_Key])
    _sources: dict[HloOp, str] = field(default_factory=dict[HloOp, str])
    _called: dict[tuple[ComputationOp, tuple[Number, ...]], Value] = field(
        default_factory=dict["tuple[ComputationOp, tuple[Number, ...]]", "Value"]
    )
    _called_with: Facts | None = None
    _arithmetic_ones: dict[ComputationOp, bool] = field(default_factory=dict[ComputationOp, bool])
    _count: int = 0
    _others: int = 0
    _is_certain: bool = True
    _is_trial: bool = False
    _is_silenced: bool = False

    @property
    def facts(self) -> Facts:
        return self.axes.facts

    # ------------------------------------------------------------------------------------------------------ computations

    def entry(self, entry: ComputationOp, shapes: Sequence[Sequence[Size] | None], places: Sequence[str]) -> None:
        """Walks the entry with parameters of these shapes; None: not an array, so the type decides."""
        operands = [
            self.made(parameter.result.type, None if shape is None else [shape], place)
            for parameter, shape, place in zip(entry.parameters, shapes, places, strict=True)
        ]
        self.run(entry, operands)

    def run(self, computation: ComputationOp, operands: Sequence[Value]) -> Value:
        """The value of a computation's root."""
        local: dict[SSAValue, Value] = {}
        for op in computation.instructions:
            if isinstance(op, ParameterOp):
                local[op.result] = operands[op.number.value.data]
                self._note_name(op, operands[op.number.value.data])
            else:
                local[op.result] = self._step(op, [local[operand] for operand in op.operands])
            if not self._is_trial:
                self.values.setdefault(op.result, []).append(local[op.result])
            if op is self.until:
                return ()
        return local[computation.root]

    def _note_name(self, op: ParameterOp, value: Value) -> None:
        """Records the attribute with which JAX's functions name their arguments that are sizes of dimensions."""
        name = op.attributes.get("jax.global_constant")
        if isinstance(name, StringAttr) and isinstance(value, Leaf) and self._is_certain:
            (size,) = value.sizes_in(1)
            if size is not None:
                self.named.append((name.data.strip('"'), size))

    def _step(self, op: HloOp, operands: Sequence[Value]) -> Value:
        match op.opcode:
            case "tuple":
                return tuple(operands)
            case "get-tuple-element":
                (parts,), index = operands, integer(op.properties["index"])
                assert isinstance(parts, tuple)
                return parts[index]
            case "call" | "fusion":
                assert isinstance(op, CallOp | FusionOp)
                return self._call(callees_of(op)[0], operands)
            case "while":
                return self._loop(op, operands[0], operands[1:])
            case "conditional":
                return self._branch(op, operands[1:])
            case "shape-assertion":
                return self._assert(op, operands)
            case _:
                if op.opcode in _SAME and len(operands) in (1, 2):
                    return operands[0]
                arrays = [leaf for value in operands for leaf in leaves(value)]
                return self._array_op(op, arrays) if self._is_certain else self._uncertain(op, arrays)

    def _call(self, computation: ComputationOp, operands: Sequence[Value]) -> Value:
        """`run`, once for the same numbers: JAX calls a function for each division of sizes."""
        if self.facts is not self._called_with:
            self._called, self._called_with = {}, self.facts
        numbers = tuple(_known_scalar(value) for value in operands)
        if None in numbers or not self._is_certain or not is_arithmetic(computation, self._arithmetic_ones):
            return self.run(computation, operands)
        key = (computation, numbers)
        if key not in self._called:
            self._called[key] = self.run(computation, operands)
        return self._called[key]

    def _uncertain(self, op: HloOp, operands: Sequence[Leaf]) -> Value:
        """The result of an op that may not run, computed once for the same operands, and again to report what a trial could not."""
        if not _is_function(op):
            self._others += 1
            return self._array_op(op, operands)
        key = _key(op, operands)
        if key in self._results and (self._is_trial or key not in self._unsaid):
            return self._results[key]
        self._is_silenced = False
        found = self._array_op(op, operands)
        if self._is_silenced:
            self._unsaid.add(key)
        else:
            self._unsaid.discard(key)
        return self._results.setdefault(key, found)

    # ------------------------------------------------------------------------------------------------ loops and branches

    def _loop(self, op: HloOp, init: Value, same: Sequence[Value]) -> Value:
        assert isinstance(op, RuleOp)
        condition, body = (find_computation(op, op.symbols(name)[0]) for name in ("condition", "body"))
        outside = (self._is_certain, self._is_trial)
        self._enter()
        try:
            self._is_trial = True
            carried = self._unchanging(op, body, init, same)
            self._is_trial = outside[1]
            if not self._is_trial:
                self.run(condition, [carried, *same])
                self.run(body, [carried, *same])
        finally:
            self._is_certain, self._is_trial = outside
        return carried

    def _unchanging(self, op: HloOp, body: ComputationOp, init: Value, same: Sequence[Value]) -> Value:
        """What a loop carries, as far as no iteration changes it."""
        key, others = _key(op, [init, *same]), self._others
        if key in self._results:
            return self._results[key]
        carried = init
        while _changed(kept := self._merged([carried, self.run(body, [carried, *same])], op.result.type), carried):
            carried = kept
        return self._remember(key, carried, others)

    def _branch(self, op: HloOp, operands: Sequence[Value]) -> Value:
        assert isinstance(op, RuleOp)
        was_certain = self._is_certain
        self._enter()
        key, others = _key(op, operands), self._others
        if self._is_trial and key in self._results:
            return self._results[key]
        try:
            results = [
                self.run(find_computation(op, callee.symbol), [operand])
                for callee, operand in zip(op.callees(), operands, strict=True)
            ]
        finally:
            self._is_certain = was_certain
        return self._remember(key, self._merged(results, op.result.type), others)

    def _enter(self) -> None:
        """What follows may not run."""
        if self._is_certain:
            self._results.clear()
            self._unsaid.clear()
        self._is_certain = False

    def _remember(self, key: _Key, found: Value, others: int) -> Value:
        """The result to use for `key`: the first one found, unless ops that are not functions ran since `others` was their count."""
        return self._results.setdefault(key, found) if self._others == others else found

    def _merged(self, values: Sequence[Value], ir_type: Attribute) -> Value:
        """The common facts of all `values`: per array, the first if all agree, or a new one of which less is known."""
        first = values[0]
        if isinstance(first, tuple):
            types = ir_type.types.data if isinstance(ir_type, TupleType) else [ir_type] * len(first)
            parts = [
                self._merged([value[i] for value in values if isinstance(value, tuple)], types[i])
                for i in range(len(first))
            ]
            return first if all(a is b for a, b in zip(parts, first, strict=True)) else tuple(parts)
        others = [value for value in values[1:] if isinstance(value, Leaf)]
        same = [
            first.axis(k) in self._open
            or all(other.number == first.number or self._are_equal(first.axis(k), other.axis(k)) for other in others)
            for k in range(first.rank)
        ]
        is_same = first.number in self._open or all(other.elements == first.elements for other in others)
        if all(same) and is_same:
            return first
        shape = [first.axis(k) if same[k] else None for k in range(first.rank)]
        elements = first.elements if is_same else None
        made = self.made(ir_type, [shape], "a loop or a branch", elements=elements)
        assert isinstance(made, Leaf)
        self._open.update(made.axis(k) for k in range(first.rank) if not same[k] or first.axis(k) in self._open)
        if not is_same or first.number in self._open:
            self._open.add(made.number)
        return made

    def _are_equal(self, a: AxisKey, b: AxisKey) -> bool:
        return self.axes.same(a, b) is True

    # -------------------------------------------------------------------------------------------------------- assertions

    def _assert(self, op: HloOp, operands: Sequence[Value]) -> Value:
        assert isinstance(op, ShapeAssertionOp)
        condition, *shown = (leaf.elements[0] if leaf.elements else None for leaf in map(_leaf, operands))
        if not self._is_certain:
            self.unproved[op] = None
            return ()
        sizes = tuple(size if isinstance(size, Size) else None for size in shown)
        self.assertions.append(Assertion(op, condition, sizes))
        if isinstance(condition, frozenset):
            self.axes.facts = assume(self.facts, condition, self._source(op))
        return ()

    # ------------------------------------------------------------------------------------------------------------ arrays

    def _array_op(self, op: HloOp, operands: Sequence[Leaf]) -> Value:
        shapes = SizeSizing(op, operands, self).shapes()
        for size in (entry for shape in shapes or () for entry in shape if isinstance(entry, Size)):
            if size.value is None and self._is_certain and not is_data(size):
                self.computed.setdefault(size, op)
        return self.made(op.result.type, shapes, self._source(op), op, self._elements(op, operands))

    def _elements(self, op: HloOp, operands: Sequence[Leaf]) -> tuple[Number, ...] | None:
        """The elements of the result, if it is a small array of integers or predicates."""
        result = op.result.type
        count = small_count(result)
        if count is None:
            return None
        element = element_of(result)
        if isinstance(op, ConstantOp) and not op.is_elided:
            values = op.array().reshape(-1)
            if element.kind is Kind.PRED:
                return tuple(bool(value) for value in values)
            return tuple(Size.constant(int(value)) for value in values)
        if isinstance(op, GetDimensionSizeOp):
            return (self.size(operands[0].axis(integers(op.dimensions)[0])),)
        if isinstance(op, IotaOp):
            return self._moved(op, operands)
        if any(leaf.elements is None for leaf in operands):
            return None
        if is_elementwise(op) and operands:
            rows = [leaf.elements or () for leaf in operands]
            wide = [row * count if len(row) == 1 else row for row in rows]
            if any(len(row) != count for row in wide):
                return None
            return tuple(self._arithmetic.elementwise(op, numbers, self.facts) for numbers in zip(*wide, strict=True))
        if isinstance(op, DynamicBroadcastInDimOp) and len(operands[0].elements or ()) == 1:
            return (operands[0].elements or ()) * count
        return self._moved(op, operands) if op.moved_operands else None

    def _moved(self, op: HloOp, operands: Sequence[Leaf]) -> tuple[Number, ...] | None:
        """An op that only moves elements also moves their numbers: it is evaluated on positions to find where each element comes from."""
        if isinstance(op, IotaOp):
            along, dims = op.iota_dimension.value.data, dims_of(op.result)
            return tuple(
                in_range(Size.constant(i[along]), element_of(op.result), self.facts) for i in np.ndindex(*dims)
            )
        if isinstance(op, DynamicReshapeOp):
            return operands[0].elements
        numbers, data = list[Number](), list[Array]()
        for i, (leaf, operand) in enumerate(zip(operands, op.operands, strict=True)):
            elements = leaf.elements or ()
            if i in op.moved_operands:
                places: Array = np.arange(len(numbers), len(numbers) + len(elements), dtype=np.int64)
                numbers += elements
            else:
                known = [size.value if size is not None else None for size in leaf.sizes_in(len(elements))]
                if None in known:
                    return None
                places = np.asarray(known, np.int64)
            data.append(places.reshape(dims_of(operand)))
        try:
            moved: Array = np.asarray(op.evaluate(data, no_call))
        except DataError:  # numbers that the op forbids: it says so when it runs
            return None
        return tuple(numbers[int(place)] for place in moved.reshape(-1))

    # ------------------------------------------------------------------------------------------------------------- sizes

    def made(
        self,
        ir_type: Attribute,
        shapes: Sequence[Sequence[Entry]] | None,
        source: Source,
        op: HloOp | None = None,
        elements: tuple[Number, ...] | None = None,
    ) -> Value:
        """A new value of that type with these sizes of its arrays; None: the sizes in the type."""
        pending = iter(shapes) if shapes is not None else None

        def value_of(part: Attribute) -> Value:
            if isinstance(part, TupleType):
                return tuple(value_of(inner) for inner in part.types)
            if not is_array(part):
                return ()
            dims = dims_of(part)
            leaf = Leaf(self._count, len(dims), self._numbered(part, elements))
            self._count += 1
            shape: Iterable[Entry] = next(pending, ()) if pending is not None else ()
            for axis, size in enumerate(dims):
                if size >= 0:
                    self.axes.tie(leaf.axis(axis), size, "the type")
            for axis, entry in enumerate(shape):
                if isinstance(entry, Size):
                    if is_data(entry):
                        continue
                    self._tie(leaf.axis(axis), entry, source, op)
                elif entry is not None:
                    self._join(leaf.axis(axis), entry, source, op)
            return leaf

        return value_of(ir_type)

    def _numbered(self, ir_type: Attribute, elements: tuple[Number, ...] | None) -> tuple[Number, ...] | None:
        """The elements; unknown ones of a small array of signed integers become symbols for data."""
        count, element = small_count(ir_type), element_of(ir_type)
        if count is None or element.kind is not Kind.SIGNED or element.bits < FEWEST_BITS:
            return None if elements is None or all(number is None for number in elements) else elements
        return tuple(self._arithmetic.data() if number is None else number for number in elements or (None,) * count)

    @property
    def changing(self) -> list[AxisKey]:
        """The axes of loops and branches whose size may differ each time."""
        return [key for key in self._open if isinstance(key, tuple)]

    def size(self, key: AxisKey) -> Size | None:
        return self.axes.size_of(key)

    def join(self, a: AxisKey, b: AxisKey, op: HloOp) -> None:
        self._join(a, b, self._source(op), op)

    def equal_products(self, a: Sequence[Entry], b: Sequence[Entry], op: HloOp) -> None:
        products = [Size.constant(1), Size.constant(1)]
        for side, entries in enumerate((a, b)):
            for entry in entries:
                size = self.size(entry) if isinstance(entry, tuple) else entry
                if size is None or (is_data(size) and side):
                    return
                products[side] = products[side] * size
        self._meet(products[0], products[1], self._source(op), op, "the numbers of elements differ")

    def equals(self, own: Size | None, size: Size | None, op: HloOp) -> None:
        if own is not None and size is not None and not is_data(own) and not is_data(size):
            self._meet(own, size, self._source(op), op)
        elif self._is_trial:
            self._is_silenced = True
        else:
            self.unproved[op] = None

    def inside(self, start: Size, limit: Size, size: Size, op: HloOp) -> None:
        if self._is_certain and not any(map(is_data, (start, limit, size))):
            self.ranges.append((start, limit, size, op))

    def fits(self, window: Size, size: Size, op: HloOp) -> None:
        """Checked even if `op` may not run: at known sizes, a window larger than its array is invalid HLO, and no kernel checks it."""
        if is_data(window) or is_data(size):
            return
        if self._is_trial:
            self._is_silenced = True
        else:
            self.ranges.append((Size.constant(0), window, size, op))

    def repeats(self, own: Size, size: Size, op: HloOp) -> None:
        """Checked even if `op` may not run, like `fits`."""
        if is_data(own) or is_data(size) or own == Size.constant(1):
            return
        if self.facts.equal(own, size) is not True:
            if self._is_trial:
                self._is_silenced = True
            else:
                self.repeated.setdefault((own, size), op)

    def _join(self, a: AxisKey, b: AxisKey, source: Source, op: HloOp | None) -> None:
        left, right = self.size(a), self.size(b)
        if left is not None and right is not None and not self._meet(left, right, source, op):
            return
        self.axes.join(a, b, source)

    def _tie(self, key: AxisKey, size: Size, source: Source, op: HloOp | None) -> None:
        known = self.size(key)
        if known is None or self._meet(known, size, source, op):
            self.axes.tie(key, size, source)

    def _meet(self, a: Size, b: Size, source: Source, op: HloOp | None, what: str = "sizes differ") -> bool:
        """Whether the sizes are equal from here on: by the facts, or because the op always runs and requires it."""
        equal = self.facts.equal(a, b)
        if equal:
            return True
        if equal is None and self._is_certain:
            try:
                self.axes.facts = self.facts.with_equal(a, b, source)
            except VerifyError as error:
                raise self._conflict(a, b, op, what, error.notes) from error
            return True
        if self._is_trial:
            self._is_silenced = True
            return False
        if equal is False:
            raise self._conflict(a, b, op, what, ())
        if op is not None:
            self.unproved[op] = None
        return False

    def _conflict(
        self, a: Size, b: Size, op: HloOp | None, what: str, notes: tuple[tuple[Place | None, str], ...]
    ) -> VerifyError:
        name = "" if op is None else f"%{op.instruction_name.data} = {op.opcode}: "
        place = None if op is None else written_at(op)
        return VerifyError(f"{name}{what}: {a} and {b}", stage="sizes", place=place, notes=notes)

    def _source(self, op: HloOp) -> str:
        """The op, and its line: what a message says after "as"."""
        if op not in self._sources:
            place = written_at(op)
            line = f" at line {place.line}" if place is not None else ""
            self._sources[op] = f"%{op.instruction_name.data} = {op.opcode}{line}"
        return self._sources[op]


def last_assertion(entry: ComputationOp) -> HloOp | None:
    """The entry's last assertion about sizes; None if other computations have some, too."""
    module = entry.parent_op()
    assert module is not None
    found = [op for op in module.walk() if isinstance(op, ShapeAssertionOp)]
    return found[-1] if found and all(op.parent_op() is entry for op in found) else None


def is_arithmetic(computation: ComputationOp, known: dict[ComputationOp, bool]) -> bool:
    """Whether a computation has elementwise ops, constants and tuples alone, and calls of such computations.

    known  the answers for other computations, to which this one is added
    """
    if computation not in known:
        known[computation] = all(
            is_elementwise(op)
            or isinstance(op, ParameterOp | ConstantOp | TupleOp | GetTupleElementOp)
            or (isinstance(op, CallOp) and is_arithmetic(callees_of(op)[0], known))
            for op in computation.instructions
        )
    return known[computation]


def _is_function(op: HloOp) -> bool:
    """Whether an op has the same sizes whenever it has the same operands. Calls of libraries need not."""
    return (op.has_shape_rule() and op.opcode != "custom-call") or isinstance(
        op, ConstantOp | IotaOp | GetDimensionSizeOp
    )


def _key(op: HloOp, operands: Sequence[Value]) -> _Key:
    return (op, *(leaf.number for value in operands for leaf in leaves(value)))


def _known_scalar(value: Value) -> Number:
    """The number of a scalar; None if it is not known, and for other values."""
    return value.elements[0] if isinstance(value, Leaf) and value.rank == 0 and value.elements else None


def _leaf(value: Value) -> Leaf:
    assert isinstance(value, Leaf)
    return value


def _changed(a: Value, b: Value) -> bool:
    """Whether an array of `a` is a different one in `b`."""
    return any(x is not y for x, y in zip(leaves(a), leaves(b), strict=True))
