"""Finds a scan in a computation that builds it from smaller pieces, by following which elements of a row each value combines.

    x = f32[64,4096]                                                  element i of a row: elements [i, i + 1) of the row
    t = reduce-window(bitcast x to [64,256,16]), size 1x1x16, ...     element (k, j): [16 k, 16 k + j + 1)
    c = (scan of t's last column)[64,256], one place later            element k: [0, 16 k)
    y = t + broadcast c                                               element (k, j): [0, 16 k + j + 1): a scan of x

XLA cuts a cumulative op into such trees of windows of 16 (its ReduceWindowRewriter); `jax.lax.associative_scan` makes a tree of slices,
sums and interleaved pads. Neither is recognised by its form: each op of the computation is evaluated on ranges of a row's elements, as
NumPy arrays for one row, since all rows are alike. A combination needs ranges that touch. A padding with the body's identity combines
nothing. If element i of a value combines [0, i + 1) for every i of the row, or [i, n), the value is a scan, up to the order in which an
associative and commutative body combines: the reductions' rule of HLO.

    f32 additions of values that were rounded to bf16 before and after are bf16's       XLA's float normalization
    zeros between the elements, summed with another array's elements there, are these   interleaving, whatever the body is
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.called import MapOp
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, find_computation
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.reductions import ReduceWindowOp
from xla_emitters.dialects.hlo.shape_ops import (
    BitcastOp,
    BroadcastOp,
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
)
from xla_emitters.dialects.hlo.types import default_order, dims_of, element_of, is_array, minor_to_major
from xla_emitters.dtypes import Array, DType, Kind
from xla_emitters.graph.entry import changes_width
from xla_emitters.graph.reduction_starts import IDENTITY
from xla_emitters.graph.scans import COMMUTING, PREFIX, SUFFIX
from xla_emitters.graph.view import FusionView, once_per_view
from xla_emitters.support.late_dataclass import dataclass

MOST_COLUMNS = 1 << 22
"""Longest row whose elements are followed one by one, which takes half a second then."""
NOTHING, ZERO = -1, -2
"""The start of a range without elements: the body's identity, or a zero between the elements of an interleaved array."""
PIECES = (BitcastOp, BroadcastOp, ConcatenateOp, CopyOp, PadOp, ReduceWindowOp, ReshapeOp, ReverseOp, SliceOp)
"""Ops that trees of scans are made of, besides their bodies."""
_LOWEST = {"maximum": -np.inf, "minimum": np.inf}


class ScanBody(NamedTuple):
    """What a scan combines with.

    key      equal for computations that compute the same, in the type of the elements
    opcode   of a body that is one op; else ""
    initial  the initial value of its windows; None if none was seen
    """

    key: Any
    opcode: str
    initial: Any = None


@dataclass(frozen=True, eq=False)
class FoundScan:
    """`result` is the scan of `array` along `dim`.

    way       PREFIX or SUFFIX
    op        a window, a map or an op with the body, in the type of the elements where one has it
    opcode    of a body that is one op; else ""
    ops       all that combine
    initial   what the body combines to nothing, of the elements' type
    """

    array: SSAValue
    dim: int
    result: SSAValue
    way: str
    op: HloOp
    opcode: str
    ops: tuple[HloOp, ...]
    initial: Any

    @property
    def columns(self) -> int:
        return dims_of(self.array)[self.dim]


def has_pieces(ops: Iterable[HloOp]) -> bool:
    """Whether ops may be a part of a tree: they take elements of a row apart or put them together."""
    return any(isinstance(op, PadOp | ReduceWindowOp | SliceOp | ConcatenateOp) for op in ops)


def starts_tree(op: HloOp) -> bool:
    """Whether an op is one that each tree has: a window, or a padding between the elements of one of two interleaved arrays."""
    return isinstance(op, ReduceWindowOp) or (isinstance(op, PadOp) and any(integers(each)[2] for each in op.edges))


@once_per_view
def scan_of(view: FusionView) -> FoundScan | None:
    """The scan of a fusion's longest rows."""
    return find_scan(view.instructions)


def find_scan(ops: Sequence[HloOp]) -> FoundScan | None:
    """The scan of the longest rows in a computation; of two, the one of the array computed last.

    ops  operands before users
    """
    values = [op.result for op in reversed(ops) if _may_be_rows(op)]
    sources = [(size, value, dim) for value in values for dim, size in enumerate(dims_of(value)) if size > 1]
    for size, value, dim in sorted(sources, key=lambda source: -source[0]):
        for body in _bodies(ops, element_of(value)) if size <= MOST_COLUMNS else ():
            if (found := _Ranges(value, dim, body).find(ops)) is not None:
                return found
    return None


def _may_be_rows(op: HloOp) -> bool:
    """Whether an op's result may be an array of which another one is the scan, or the same elements in another shape."""
    is_piece = isinstance(op, PIECES) and not isinstance(op, BitcastOp | ReshapeOp)
    return not is_piece and not isinstance(op, ConstantOp) and is_array(op.result.type)


def _bodies(ops: Sequence[HloOp], element: DType) -> list[ScanBody]:
    """What ops combine with; windows first, whose initial values are known."""
    windows = [(body_of(op, element), op) for op in ops if isinstance(op, ReduceWindowOp) and len(op.operands) == 2]
    found = {body.key: body._replace(initial=_scalar(op.operands[1])) for body, op in windows if body is not None}
    for op in ops if not found else ():
        body = body_of(op, element)
        if body is not None and body.opcode in {*IDENTITY, *_LOWEST}:
            found[body.key] = body
    return list(found.values())


def body_of(op: HloOp, element: DType) -> ScanBody | None:
    """How an op combines elements of a type; None if it does not."""
    if isinstance(op, ReduceWindowOp | MapOp):
        computation = find_computation(op, op.to_apply)
        return _body_of_computation(computation, element) if len(computation.parameters) == 2 else None
    if op.name in COMMUTING and element_of(op.result) == element and op.operands[0] is not op.operands[1]:
        return ScanBody((op.name, ("parameter", 0), ("parameter", 1)), op.opcode)
    return None


def computes_alike(one: ComputationOp, other: ComputationOp, element: DType) -> bool:
    """Whether two bodies combine elements of a type in the same way."""
    bodies = [_body_of_computation(each, element) for each in (one, other) if len(each.parameters) == 2]
    return len(bodies) == 2 and bodies[0] is not None and bodies[0] == bodies[1]


def _body_of_computation(computation: ComputationOp, element: DType) -> ScanBody | None:
    known = dict[SSAValue, Any]()
    for op in computation.instructions:
        if isinstance(op, ParameterOp):
            known[op.result] = ("parameter", op.number.value.data)
            continue
        given = tuple(known[operand] for operand in op.operands)
        kinds = {element_of(value) for value in (*op.operands, op.result)}
        if op.opcode == "convert" and element in kinds and all(_holds(kind, element) for kind in kinds):
            known[op.result] = given[0]  # of a value that was rounded to the elements' type
            continue
        said = tuple(sorted((name, str(value)) for name, value in op.properties.items() if name != "name"))
        known[op.result] = (op.name, *given, said, str(op.result.type))
    root = computation.root.owner
    while isinstance(root, HloOp) and root.opcode == "convert":
        root = root.operands[0].owner
    if not isinstance(root, HloOp) or element_of(root.result) != element:
        return None
    key, plain = known[computation.root], (("parameter", 0), ("parameter", 1))
    is_plain = root.name in COMMUTING and set(key[1:3]) == set(plain)
    return ScanBody((root.name, *plain), root.opcode) if is_plain else ScanBody(key, "")


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether a float type has all values of another one."""
    if wide == narrow:
        return True
    floats = wide.kind is Kind.FLOAT and narrow.kind is Kind.FLOAT
    return floats and narrow.name in ("bf16", "f16") and wide.name in ("f32", "f64")


def _scalar(value: SSAValue) -> Any:
    """The number of a constant, perhaps converted or broadcast; None if it is not known."""
    op = value.owner
    while isinstance(op, HloOp) and op.opcode in ("convert", "broadcast", "bitcast", "copy", "reshape"):
        op = op.operands[0].owner
    if not isinstance(op, ConstantOp) or op.is_elided or dims_of(op.result):
        return None
    return op.array().reshape(())[()]


def is_same_number(one: Any, other: Any) -> bool:
    return one is not None and other is not None and complex(one) == complex(other)


class _Row(NamedTuple):
    """A value whose elements combine elements of rows.

    lead, trail   how many of its dimensions number the rows: the first and the last ones
    low, high     for each element of a row, by the other dimensions: the range that it combines
    """

    lead: int
    trail: int
    low: Array
    high: Array

    def mapped(self, change: Callable[[Array], Array]) -> _Row:
        return self._replace(low=change(self.low), high=change(self.high))


@dataclass(eq=False)
class _Ranges:
    """The values that are computed from the rows of one array along one dimension, with one body."""

    source: SSAValue
    dim: int
    body: ScanBody

    @cached_property
    def element(self) -> DType:
        return element_of(self.source)

    @cached_property
    def around(self) -> tuple[int, int]:
        """The rows: elements of the dimensions before and behind."""
        dims = dims_of(self.source)
        return prod(dims[: self.dim]), prod(dims[self.dim + 1 :])

    @cached_property
    def identity(self) -> Any:
        """What combines to nothing: the table's, or the initial value of the windows, as HLO asks of it."""
        known = {**IDENTITY, **_LOWEST}.get(self.body.opcode)
        if known is not None and self.body.opcode in _LOWEST and self.element.is_integer:
            known = self.element.integers[0 if self.body.opcode == "maximum" else -1]
        return self.body.initial if known is None else known

    def find(self, ops: Sequence[HloOp]) -> FoundScan | None:
        """The last value of the elements' type that scans the whole rows."""
        if self.body.initial is not None and not is_same_number(self.body.initial, self.identity):
            return None
        size = dims_of(self.source)[self.dim]
        start = np.arange(size, dtype=np.int32)
        dims = dims_of(self.source)
        rows: dict[SSAValue, _Row] = {self.source: _Row(self.dim, len(dims) - self.dim - 1, start, start + 1)}
        found: tuple[HloOp, str] | None = None
        combining, uses = list[HloOp](), _last_uses(ops)
        for place, op in enumerate(ops):
            if op.result is self.source or not any(operand in rows for operand in op.operands):
                continue
            row = self._row(op, rows)
            if row is None:
                continue
            rows[op.result] = row
            if isinstance(op, ReduceWindowOp | MapOp) or body_of(op, self.element) is not None:
                combining.append(op)
            # Behind the scan its elements may be converted to a wider type, in which a kernel does not scan.
            is_whole = prod(dims_of(op.result)) == prod(dims) and element_of(op.result) == self.element
            if is_whole and (way := _way(row, size)) is not None:
                found = op, way
            for operand in op.operands:
                if uses.get(operand) == place and operand is not self.source:
                    rows.pop(operand, None)
        if found is None or not combining:
            return None
        own = [op for op in combining if element_of(op.result) == self.element] or combining
        by_window = next((op for op in own if isinstance(op, ReduceWindowOp)), own[0])
        return FoundScan(
            self.source,
            self.dim,
            found[0].result,
            found[1],
            by_window,
            self.body.opcode,
            tuple(combining),
            self.identity,
        )

    # ----------------------------------------------------------------------------------------------------------- ops

    def _row(self, op: HloOp, rows: Mapping[SSAValue, _Row]) -> _Row | None:
        """The ranges of an op's result; None if it combines anything else."""
        given = [rows.get(operand) for operand in op.operands]
        first = given[0]
        if not is_array(op.result.type) or not self._keeps_order(op):
            return None
        match op:
            case ReduceWindowOp() if first is not None:
                return self._window(op, first)
            case PadOp() if first is not None:
                return self._pad(op, first)
            case BitcastOp() | ReshapeOp() | CopyOp() if first is not None:
                return self._reshaped(first, dims_of(op.result))
            case SliceOp() if first is not None:
                return self._slice(op, first)
            case BroadcastOp() if first is not None:
                return self._broadcast(op, first)
            case ReverseOp() if first is not None:
                return self._reverse(op, first)
            case ConcatenateOp():
                return self._concatenate(op, given)
            case _ if op.opcode == "convert":
                holds = all(_holds(element_of(value), self.element) for value in (op.operands[0], op.result))
                return first if holds else None
            case _ if len(given) == 2:
                return self._combined(op, given)
            case _:
                return None

    def _keeps_order(self, op: HloOp) -> bool:
        values = [op.result, *(operand for operand in op.operands if is_array(operand.type))]
        plain = all(minor_to_major(value.type) == default_order(len(dims_of(value))) for value in values)
        return plain and not (isinstance(op, BitcastOp) and changes_width(op))

    def _middle(self, row: _Row, dims: Sequence[int]) -> range:
        return range(row.lead, len(dims) - row.trail)

    def _reshaped(self, row: _Row, dims: Sequence[int]) -> _Row | None:
        lead = next((n for n in range(len(dims) + 1) if prod(dims[:n]) == self.around[0]), None)
        trail = next((n for n in range(len(dims) + 1) if prod(dims[len(dims) - n :]) == self.around[1]), None)
        if lead is None or trail is None or lead + trail > len(dims):
            return None
        middle = dims[lead : len(dims) - trail]
        if prod(middle) != row.low.size:
            return None
        return _Row(lead, trail, row.low.reshape(middle), row.high.reshape(middle))

    def _slice(self, op: SliceOp, row: _Row) -> _Row | None:
        dims, ranges = dims_of(op.operands[0]), [integers(each) for each in op.ranges]
        middle = self._middle(row, dims)
        if any(tuple(ranges[at]) != (0, size, 1) for at, size in enumerate(dims) if at not in middle):
            return None
        cut = tuple(slice(*ranges[at]) for at in middle)
        return row.mapped(lambda array: array[cut])

    def _pad(self, op: PadOp, row: _Row) -> _Row | None:
        dims, edges = dims_of(op.operands[0]), [integers(each) for each in op.edges]
        middle, filler = self._middle(row, dims), _scalar(op.operands[1])
        if any(any(edges[at]) for at in range(len(dims)) if at not in middle):
            return None
        if is_same_number(filler, self.identity):
            mark = NOTHING
        elif is_same_number(filler, 0):
            mark = ZERO
        else:
            return None
        around = [tuple(edges[at]) for at in middle]
        return row.mapped(lambda array: _padded(array, around, mark))

    def _broadcast(self, op: BroadcastOp, row: _Row) -> _Row | None:
        given, dims, places = dims_of(op.operands[0]), dims_of(op.result), integers(op.dimensions)
        lead, trail = row.lead, row.trail
        is_kept = list(places[:lead]) == list(range(lead)) and list(places[len(given) - trail :]) == list(
            range(len(dims) - trail, len(dims))
        )
        if not is_kept or list(places) != sorted(places):
            return None
        middle = dims[lead : len(dims) - trail]
        shape = [1] * len(middle)
        for at, size in zip(places[lead : len(given) - trail], row.low.shape, strict=True):
            shape[at - lead] = size
        return row.mapped(lambda array: np.broadcast_to(array.reshape(shape), middle))

    def _reverse(self, op: ReverseOp, row: _Row) -> _Row | None:
        middle = self._middle(row, dims_of(op.result))
        axes = tuple(dim - row.lead for dim in integers(op.dimensions) if dim in middle)
        return row.mapped(lambda array: np.flip(array, axes)) if len(axes) == len(integers(op.dimensions)) else None

    def _concatenate(self, op: ConcatenateOp, given: Sequence[_Row | None]) -> _Row | None:
        known = [row for row in given if row is not None]
        if len(known) < len(given) or len({(row.lead, row.trail) for row in known}) > 1:
            return None
        axis = op.dimension - known[0].lead
        if op.dimension not in self._middle(known[0], dims_of(op.result)):
            return None
        low, high = (np.concatenate(parts, axis) for parts in zip(*((row.low, row.high) for row in known), strict=True))
        return known[0]._replace(low=low, high=high)

    def _combined(self, op: HloOp, given: Sequence[_Row | None]) -> _Row | None:
        one, other = given
        if one is None or other is None or (one.lead, one.trail) != (other.lead, other.trail):
            return None
        if one.low.shape != other.low.shape:
            return None
        body = body_of(op, self.element)
        is_body = body is not None and body.key == self.body.key
        if not is_body and op.opcode not in ("add", "or"):
            return None
        return _joined(one, other, is_body=is_body)

    def _window(self, op: ReduceWindowOp, row: _Row) -> _Row | None:
        body = body_of(op, self.element)
        if body is None or body.key != self.body.key or not is_same_number(_scalar(op.operands[1]), self.identity):
            return None
        dims, window = dims_of(op.operands[0]), op.window.data.dims
        middle = self._middle(row, dims)
        plain = [(along.size, along.low, along.high, along.steps) == (1, 0, 0, (1, 1, 1)) for along in window]
        moved = [at for at, is_plain in enumerate(plain) if not is_plain]
        if len(moved) != 1 or moved[0] not in middle or window[moved[0]].steps != (1, 1, 1):
            return None
        along = window[moved[0]]
        return _windows(row, moved[0] - row.lead, along.size, along.low, along.high)


def _last_uses(ops: Sequence[HloOp]) -> dict[SSAValue, int]:
    return {operand: place for place, op in enumerate(ops) for operand in op.operands}


def _way(row: _Row, size: int) -> str | None:
    """PREFIX or SUFFIX if element i of a row combines all elements up to it, or from it on."""
    if row.low.size != size:
        return None
    low, high, place = row.low.reshape(-1), row.high.reshape(-1), np.arange(size, dtype=np.int32)
    if not low.any() and np.array_equal(high, place + 1):
        return PREFIX
    if (high == size).all() and np.array_equal(low, place):
        return SUFFIX
    return None


def _padded(array: Array, edges: Sequence[Sequence[int]], mark: int) -> Array:
    for axis, (low, high, interior) in enumerate(edges):
        moved = np.moveaxis(array, axis, 0)
        size = moved.shape[0]
        spread = np.full((size + max(size - 1, 0) * interior, *moved.shape[1:]), mark, np.int32)
        spread[:: interior + 1] = moved
        spread = spread[max(-low, 0) : len(spread) - max(-high, 0)]
        ends = [np.full((max(count, 0), *moved.shape[1:]), mark, np.int32) for count in (low, high)]
        array = np.moveaxis(np.concatenate([ends[0], spread, ends[1]]), 0, axis)
    return array


def _joined(one: _Row, other: _Row, *, is_body: bool) -> _Row | None:
    """Two values combined, in either order; without the body, a zero and an element."""
    low, high = np.where(one.low < 0, other.low, one.low), np.where(one.low < 0, other.high, one.high)
    empty_one, empty_other = one.low < 0, other.low < 0
    both = ~(empty_one | empty_other)
    if not is_body:
        wrong = both | (one.low == NOTHING) | (other.low == NOTHING)
        return None if wrong.any() else one._replace(low=low, high=high)
    if ((one.low == ZERO) | (other.low == ZERO)).any():
        return None
    after, before = both & (one.high == other.low), both & (other.high == one.low)
    if (both & ~after & ~before).any():
        return None
    low = np.where(before, other.low, low)
    high = np.where(after, other.high, high)
    return one._replace(low=low, high=high)


def _windows(row: _Row, axis: int, size: int, before: int, behind: int) -> _Row | None:
    """The ranges of windows along an axis, whose elements must be adjacent."""
    low, high = np.moveaxis(row.low, axis, 0), np.moveaxis(row.high, axis, 0)
    if (low == ZERO).any():
        return None
    count, far = low.shape[0], np.int32(2**31 - 1)
    empty = low < 0
    ends = np.maximum.accumulate(np.where(empty, NOTHING, high))
    starts = np.minimum.accumulate(np.where(empty, far, low)[::-1])[::-1]
    if (~empty[1:] & (low[1:] < ends[:-1])).any():
        return None  # not in the order of the row
    lengths = np.zeros((count + 1, *low.shape[1:]), np.int64)
    np.cumsum(np.where(empty, 0, high - low), axis=0, out=lengths[1:])
    holds = np.zeros((count + 1, *low.shape[1:]), np.int32)
    np.cumsum(~empty, axis=0, out=holds[1:])
    places = np.arange(-before, count + behind - size + 1, dtype=np.int64)
    first, last = np.clip(places, 0, count), np.clip(places + size, 0, count)
    some = holds[last] > holds[first]
    found_low = np.where(some, starts[np.minimum(first, count - 1)], NOTHING)
    found_high = np.where(some, ends[np.maximum(last, 1) - 1], NOTHING)
    if (some & (lengths[last] - lengths[first] != found_high - found_low)).any():
        return None  # with a gap
    return row._replace(low=np.moveaxis(found_low, 0, axis), high=np.moveaxis(found_high, 0, axis))
