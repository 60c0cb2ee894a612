"""Indices of the operand elements that an op which moves elements reads, for run-time sizes.

    transpose     %i, %j -> %j, %i                         slice           %i -> start + %i * stride
    broadcast     %i, %j -> %j                             reverse         %i -> size - 1 - %i
    dynamic_broadcast_in_dim                               concatenate     %i < n0 ? operand 0 at %i : operand 1 at %i - n0
      a size that may be 1: %i -> size == 1 ? 0 : %i       pad             inside ? operand at (%i - low) / step : the padding value
    reshape       the coordinates of the same element      gather          starts, clamped into [0, size - slice]
    dynamic_slice %i -> clamp(start) + %i                  dynamic_update_slice   in the window ? update : operand

Ops in `MOVES` copy each element of the result from operand 0: a row gives its indices. A row in `ELEMENTS` emits the element's value.
Known sizes are folded (`KernelIndex`); two sizes that are one value are equal. Dividends are never negative, so divisions are
unsigned. Indices into an operand are in bounds for each element of the result; a value that is not selected is not loaded.
Source: StableHLO specification; docs/reference/4 1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp, emit_scalar
from xla_emitters.dialects.hlo.convert import emit_convert
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicIotaOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp, PadOp, SliceOp, rows
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.arith import IndexCastUIOp
from xla_emitters.dtypes import Kind, dtype
from xla_emitters.dynamic.buffers.buffer_sizes import product
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.element_context import BufferElement

Indices: TypeAlias = Sequence[Number]
Move: TypeAlias = Callable[[BufferElement], Indices]
"""Returns the element's indices in operand 0."""
Element: TypeAlias = Callable[[BufferElement], SSAValue]
"""Emits the element's value."""


def read(e: BufferElement, i: int, indices: Indices) -> SSAValue:
    """The element of operand `i` at these indices."""
    return e.operand(i, [e.index.value(index) for index in indices])


# ----------------------------------------------------------------------------------------------------------------- moves


def _broadcast(e: BufferElement) -> Indices:
    return [e.indices[dim] for dim in e.lists("dimensions")]


def _dynamic_broadcast_in_dim(e: BufferElement) -> Indices:
    """A size 1 is repeated; whether an unknown size is 1 is decided at run time, unless it is known to be the result's size."""
    found = list[Number]()
    result, repeated, kept = e.result_sizes, e.lists("known_expanding"), e.lists("known_nonexpanding")
    for number, (size, dim) in enumerate(zip(e.sizes(0), e.lists("dimensions"), strict=True)):
        index = e.indices[dim]
        if size == 1 or number in repeated:
            found.append(0)
        elif isinstance(size, int) or size == result[dim] or number in kept:
            found.append(index)
        else:
            found.append(e.index.select(e.index.compare("eq", size, 1), 0, index))
    return found


def _transpose(e: BufferElement) -> Indices:
    found = dict(zip(e.lists("dimensions"), e.indices, strict=True))
    return [found[dim] for dim in range(len(found))]


def _slice(e: BufferElement) -> Indices:
    assert isinstance(e.hlo, SliceOp)
    return [
        e.index.add(e.index.multiply(index, stride), start)
        for index, (start, _, stride) in zip(e.indices, rows(e.hlo.ranges), strict=True)
    ]


def _real_dynamic_slice(e: BufferElement) -> Indices:
    return [e.index.add(e.index.multiply(index, e.held(3, dim)), e.held(1, dim)) for dim, index in enumerate(e.indices)]


def _reverse(e: BufferElement) -> Indices:
    return [
        e.index.subtract(e.index.subtract(size, 1), index) if dim in e.lists("dimensions") else index
        for dim, (index, size) in enumerate(zip(e.indices, e.result_sizes, strict=True))
    ]


def _same(e: BufferElement) -> Indices:
    return e.indices


def _reshape(e: BufferElement) -> Indices:
    """The same element in row-major order, by groups of dimensions with equal numbers of elements on both sides."""
    numbers = e.code.numbers
    shapes = numbers.shape(e.op.outputs[0]), numbers.shape(e.op.inputs[0])
    found = list[Number]()
    for after, before in _groups(*shapes):
        ours = [dim for dim in after if e.result_sizes[dim] != 1]
        theirs = [dim for dim in before if e.sizes(0)[dim] != 1]
        indices: Indices = [e.indices[dim] for dim in ours]
        if theirs and (len(ours) != 1 or len(theirs) != 1):
            linear = e.index.linearize([e.indices[dim] for dim in ours], [e.result_sizes[dim] for dim in ours])
            indices = e.index.delinearize(linear, [e.sizes(0)[dim] for dim in theirs])
        by_dim = dict(zip(theirs, indices, strict=False))
        found += [by_dim.get(dim, 0) for dim in before]
    return found


def _groups(after: Sequence[Size], before: Sequence[Size]) -> Iterator[tuple[range, range]]:
    """Dimensions of two shapes with equally many elements, in the smallest provable groups of equal products."""
    products = [product(before[:end]) for end in range(len(before) + 1)]
    begin, start = 0, 0
    for end in range(1, len(after)):
        at = next((i for i in range(start, len(products)) if products[i] == product(after[:end])), None)
        if at is not None:
            yield range(begin, end), range(start, at)
            begin, start = end, at
    yield range(begin, len(after)), range(start, len(before))


def _dynamic_slice(e: BufferElement) -> Indices:
    return [
        e.index.add(start, index)
        for start, index in zip(_starts(e, 1, e.lists("dynamic_slice_sizes")), e.indices, strict=True)
    ]


def _starts(e: BufferElement, first: int, window: Indices) -> Indices:
    """The start of a window in operand 0, from the operands from `first` on, clamped so that the window is inside."""
    found = list[Number]()
    for dim, (whole, size) in enumerate(zip(e.sizes(0), window, strict=True)):
        last = 0 if whole == size else e.index.subtract(whole, size)
        found.append(
            0 if last == 0 else e.index.clamp(e.operand(first + dim, ()), element_of(e.hlo.operands[first + dim]), last)
        )
    return found


def _gather(e: BufferElement) -> Indices:
    """One slice per row of indices: the result's batch dimensions select the row, the others the position in the slice."""
    held = e.hlo.properties["index_vector_dim"]
    assert isinstance(held, IntegerAttr)
    offsets, along = e.lists("offset_dims"), held.value.data
    batching, of_rows = e.lists("operand_batching_dims"), e.lists("start_indices_batching_dims")
    dropped, mapped = {*e.lists("collapsed_slice_dims"), *batching}, e.lists("start_index_map")
    rank = len(e.sizes(1))
    batch = [e.indices[dim] for dim in range(len(e.indices)) if dim not in offsets]
    row_of = dict(zip((dim for dim in range(rank) if dim != along), batch, strict=True))
    window = iter(offsets)
    indices_type = element_of(e.hlo.operands[1])
    found = list[Number]()
    for dim, whole in enumerate(e.sizes(0)):
        at: Number = 0
        size: Number = 1
        if dim not in dropped:
            in_result = next(window)
            at, size = e.indices[in_result], e.result_sizes[in_result]
        if dim in batching:
            at = row_of[of_rows[batching.index(dim)]]
        if dim in mapped:
            last = 0 if whole == size else e.index.subtract(whole, size)
            if last != 0:
                number = e.index.value(mapped.index(dim))
                row = [number if i == along else row_of[i] for i in range(rank)]
                at = e.index.add(at, e.index.clamp(e.operand(1, row), indices_type, last))
        found.append(at)
    return found


MOVES: Mapping[str, Move] = {
    "hlo.broadcast": _broadcast,
    "hlo.dynamic_broadcast_in_dim": _dynamic_broadcast_in_dim,
    "hlo.dynamic_gather": _gather,
    "hlo.dynamic_reshape": _reshape,
    "hlo.dynamic_slice": _dynamic_slice,
    "hlo.gather": _gather,
    "hlo.h2d": _same,
    "hlo.real_dynamic_slice": _real_dynamic_slice,
    "hlo.reshape": _reshape,
    "hlo.reverse": _reverse,
    "hlo.slice": _slice,
    "hlo.transpose": _transpose,
}


# -------------------------------------------------------------------------------------------------------------- elements


def _bitcast(e: BufferElement) -> SSAValue:
    """The same memory in another shape, or as another type of the same width."""
    value = read(e, 0, _reshape(e))
    assert isinstance(e.hlo, BitcastOp)
    target = element_of(e.hlo.result)
    source = element_of(e.hlo.operands[0])
    if source == target:
        return value
    if source.bits != target.bits or {source.kind, target.kind} & {Kind.PRED, Kind.COMPLEX}:
        raise e.hlo.unsupported(
            f"no code from {source.name} to {target.name}", help="supported: integers and floats of one width"
        )
    return value if value.type == target.storage_type else e.insert(arith.BitcastOp(value, target.storage_type)).result


def _constant(e: BufferElement) -> SSAValue:
    """A literal of equal elements becomes a constant in the code; another one a table."""
    assert isinstance(e.hlo, ConstantOp)
    array = e.hlo.array()
    first, whole = array.reshape(-1)[:1], array.tobytes()
    if array.size and whole == first.tobytes() * array.size:
        return emit_scalar(e, first.reshape(()), element_of(e.hlo.result))
    return e.hlo.emit_element(e)[0]


def _iota(e: BufferElement) -> SSAValue:
    """The index as an integer of the result's width, wrapped; for other types via 64 bits, which the size may need."""
    assert isinstance(e.hlo, IotaOp | DynamicIotaOp)
    element = element_of(e.hlo.result)
    is_integer = element.is_integer and element.significant_bits >= 8
    held = element if is_integer else dtype("s64")
    index = e.insert(IndexCastUIOp(e.indices[e.hlo.iota_dimension.value.data], held.storage_type)).results[0]
    return emit_convert(e, index, held, element)


def _concatenate(e: BufferElement) -> SSAValue:
    """Finds the operand with the element by bisection."""
    (along,) = e.lists("dimensions")
    lengths: Indices = [e.sizes(i)[along] for i in range(len(e.op.inputs))]
    offsets = [0, *accumulate(lengths, e.index.add)]

    def among(first: int, end: int) -> Sequence[SSAValue]:
        if end - first == 1:
            index = e.index.subtract(e.indices[along], offsets[first])
            return (read(e, first, [*e.indices[:along], index, *e.indices[along + 1 :]]),)
        middle = (first + end) // 2
        is_before = e.index.compare("ult", e.indices[along], offsets[middle])
        return e.branch(is_before, lambda: among(first, middle), lambda: among(middle, end))

    return among(0, len(e.op.inputs))[0]


def _pad(e: BufferElement) -> SSAValue:
    """The operand's element, if the index is not in the padding before, behind or between its elements."""
    if isinstance(e.hlo, PadOp):
        edges: Sequence[tuple[Number, ...]] = rows(e.hlo.edges)
    else:
        edges = [tuple(e.held(i, dim) for i in (2, 3, 4)) for dim in range(len(e.indices))]
    checks, places = list[SSAValue](), list[Number]()
    for index, size, (low, high, interior) in zip(e.indices, e.sizes(0), edges, strict=True):
        place = e.index.subtract(index, low)
        step = e.index.add(interior, 1)
        begins_inside, ends_inside = (isinstance(edge, int) and edge <= 0 for edge in (low, high))
        if step != 1:
            if not begins_inside:
                checks.append(e.index.compare("sge", index, low))
            checks.append(e.index.compare("eq", e.index.remainder(place, step), 0))
            place = e.index.quotient(place, step)
        if not ends_inside or (step == 1 and not begins_inside):
            checks.append(e.index.compare("ult", place, size))  # unsigned: false before it too
        places.append(place)
    if not checks:
        return read(e, 0, places)
    return e.branch(e.index.every(checks), lambda: (read(e, 0, places),), lambda: (e.operand(1, ()),))[0]


def _dynamic_update_slice(e: BufferElement) -> SSAValue:
    """The update's element in its window, the operand's elsewhere."""
    window = e.sizes(1)
    places, checks = list[Number](), list[SSAValue]()
    for index, start, whole, size in zip(e.indices, _starts(e, 2, window), e.sizes(0), window, strict=True):
        places.append(e.index.subtract(index, start))
        if whole != size:
            checks.append(e.index.compare("ult", places[-1], size))
    if not checks:
        return read(e, 1, places)
    return e.branch(e.index.every(checks), lambda: (read(e, 1, places),), lambda: (e.operand(0),))[0]


def updated(e: BufferElement) -> Indices:
    """The index in the result of a dynamic_update_slice of the update's element at `e.indices`."""
    starts = _starts(e, 2, e.sizes(1))
    return [e.index.add(start, index) for start, index in zip(starts, e.indices, strict=True)]


ELEMENTS: Mapping[str, Element] = {
    "hlo.bitcast": _bitcast,
    "hlo.concatenate": _concatenate,
    "hlo.constant": _constant,
    "hlo.dynamic_iota": _iota,
    "hlo.dynamic_pad": _pad,
    "hlo.dynamic_update_slice": _dynamic_update_slice,
    "hlo.iota": _iota,
    "hlo.pad": _pad,
}
