"""The sizes of each op's result: axes kept from operands, and sizes that follow from attributes and shape operands.

    transpose %x {dimensions = [1, 0]}               (axis 1 of x, axis 0 of x)
    concatenate %x, %y {dimensions = [0]}            (size of x's axis 0 + size of y's axis 0, axis 1 of x and of y)
    dynamic_reshape %x, %shape                       the elements of %shape

A rule returns, for each array of the result, one entry per axis: the key of an operand's axis, a `Size`, or None if it depends on
data.
It also joins axes that the op requires to be equal. An op without a rule has the sizes in its type.
Source: docs/reference/4 3.1; the ops' shape rules in docs/reference/1 5.5, 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from xla_emitters.dialects.hlo.backend_configs import shape_operands
from xla_emitters.dialects.hlo.base import HloOp, integer, integers
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, DotOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicConvOp, DynamicGatherOp, DynamicReduceWindowOp
from xla_emitters.dialects.hlo.elementwise import BitcastConvertOp
from xla_emitters.dialects.hlo.gather_scatter import GatherOp, ScatterOp
from xla_emitters.dialects.hlo.implicit_broadcast import BROADCAST, DONE, broadcast_axes
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReduceWindowOp
from xla_emitters.dialects.hlo.routines import ragged_dot_places
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp, PadOp, SliceOp, TransposeOp
from xla_emitters.dialects.hlo.types import dims_of, leaf_types
from xla_emitters.dialects.hlo.windows import WindowAttr, WindowDim
from xla_emitters.shapes import Facts, Size, floordiv, maximum
from xla_emitters.sizes.arrays import AxisKey, Leaf
from xla_emitters.sizes.numbers import is_data

Entry: TypeAlias = AxisKey | Size | None
Shape: TypeAlias = Sequence[Entry]


class Known(Protocol):
    """The interface of the walk for rules."""

    @property
    def facts(self) -> Facts: ...

    def size(self, key: AxisKey) -> Size | None:
        """The size of an axis; None if unknown."""
        ...

    def join(self, a: AxisKey, b: AxisKey, op: HloOp) -> None:
        """Records that `op` requires these axes to be equal."""
        ...

    def equal_products(self, a: Sequence[AxisKey], b: Sequence[Entry], op: HloOp) -> None:
        """Records that `op` requires the same number of elements on both sides."""
        ...

    def equals(self, key: AxisKey, size: Size | None, op: HloOp) -> None:
        """Records that `op` requires the axis to have this size, which a kernel does not check."""
        ...

    def inside(self, start: Size, limit: Size, key: AxisKey, op: HloOp) -> None:
        """Records that `op` requires 0 <= start <= limit <= the axis's size."""
        ...

    def fits(self, window: Size | None, key: AxisKey, op: HloOp) -> None:
        """Records that `op` requires window <= the axis's size, whether it runs or not."""
        ...

    def repeats(self, key: AxisKey, size: Size | None, op: HloOp) -> None:
        """Records that `op` requires the axis to have one element, or `size` of them, whether it runs or not."""
        ...


Rule: TypeAlias = Callable[[HloOp, Sequence[Leaf], Known], Sequence[Shape]]
"""(op, its operands, the walk) -> the sizes of each array of the result."""


def joined(op: HloOp, arrays: Sequence[Leaf], known: Known) -> Shape:
    """The axes of the first of `arrays`; all non-scalar ones have the same shape."""
    first = max(arrays, key=lambda leaf: leaf.rank)
    for other in arrays:
        if other is not first and other.rank == first.rank:
            for a, b in zip(first.axes, other.axes, strict=True):
                known.join(a, b, op)
    return first.axes


def elementwise(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    if BROADCAST in op.attributes and DONE not in op.attributes:
        return [[_broadcast_size(op, operands, dim, known) for dim in range(len(dims_of(op.result)))]]
    return [joined(op, operands, known)]


def _broadcast_size(op: HloOp, operands: Sequence[Leaf], dim: int, known: Known) -> Entry:
    """The size of an implicit broadcast's result: the one that all operands have, or the only one that may differ from 1."""
    keys = [leaf.axis(axes.index(dim)) for i, leaf in enumerate(operands) if dim in (axes := broadcast_axes(op, i))]
    sizes = [known.size(key) for key in keys]
    large = [key for key, size in zip(keys, sizes, strict=True) if size is None or size != Size.constant(1)]
    if not large:
        return Size.constant(1)
    for key in large:
        size = known.size(key)
        if len(large) == 1 or (size is not None and known.facts.at_least(size, 2)):
            return key
    first = sizes[0]
    return (
        keys[0]
        if first is not None and all(size is not None and known.facts.equal(first, size) for size in sizes)
        else None
    )


def _fft(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """As the operand, but for lengths of the transform, which the type says."""
    dims = dims_of(op.result)
    return [[Size.constant(size) if size >= 0 else axis for size, axis in zip(dims, operands[0].axes, strict=True)]]


def _bitcast_convert(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """Between widths: the parts of a wide element are the last dimension of the narrow array."""
    assert isinstance(op, BitcastConvertOp)
    axes = operands[0].axes[: len(dims_of(op.result))]
    return [[*axes, Size.constant(op.parts)] if len(axes) < len(dims_of(op.result)) else axes]


def _as_operand(number: int) -> Rule:
    return lambda op, operands, known: [operands[number].axes]


def _broadcast(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """A static broadcast: the type has the sizes; an axis of the operand is an axis of the result unless it has size 1."""
    result = dims_of(op.result)
    found: list[Entry] = [Size.constant(size) if size >= 0 else None for size in result]
    for axis, dim in enumerate(integers(op.properties["dimensions"])):
        if dims_of(op.operands[0])[axis] != 1 or result[dim] == 1:
            found[dim] = operands[0].axis(axis)
    return [found]


def _transpose(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, TransposeOp)
    return [[operands[0].axis(dim) for dim in integers(op.dimensions)]]


def _concatenate(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, ConcatenateOp)
    (along,) = integers(op.dimensions)
    found: list[Entry] = list(operands[0].axes)
    for other in operands[1:]:
        for axis in range(other.rank):
            if axis != along:
                known.join(operands[0].axis(axis), other.axis(axis), op)
    found[along] = _sum([known.size(leaf.axis(along)) for leaf in operands])
    return [found]


def _sum(sizes: Sequence[Size | None]) -> Size | None:
    total = Size.constant(0)
    for size in sizes:
        if size is None:
            return None
        total = total + size
    return total


def _slice(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, SliceOp)
    return [[Size.constant(max(0, -((start - limit) // stride))) for start, limit, stride in map(integers, op.ranges)]]


def _padded(size: Size | None, low: Size | None, high: Size | None, interior: Size | None, facts: Facts) -> Size | None:
    if size is None or low is None or high is None or interior is None:
        return None
    if interior == Size.constant(0):
        return size + low + high
    gaps = size - 1 if facts.at_least(size, 1) else maximum(size - 1, 0)
    return size + gaps * interior + low + high


def _pad(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, PadOp)
    found = list[Entry]()
    for axis, edges in enumerate(map(integers, op.edges)):
        low, high, interior = (Size.constant(edge) for edge in (*edges, 0)[:3])
        found.append(_padded(known.size(operands[0].axis(axis)), low, high, interior, known.facts))
    return [found]


def _dynamic_pad(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    x, rank = operands[0], operands[0].rank
    edges = zip(*(operands[i].sizes_in(rank) for i in range(2, 5)), strict=True)
    return [
        [
            _padded(known.size(x.axis(axis)), low, high, interior, known.facts)
            for axis, (low, high, interior) in enumerate(edges)
        ]
    ]


def _real_dynamic_slice(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    found = list[Entry]()
    ranges = zip(*(operands[i].sizes_in(operands[0].rank) for i in range(1, 4)), strict=True)
    for axis, (start, limit, stride) in enumerate(ranges):
        if start is None or limit is None or stride is None:
            found.append(None)
        else:
            known.inside(start, limit, operands[0].axis(axis), op)
            size = limit - start if stride == 1 else floordiv(limit - start + stride - 1, stride)
            found.append(None if is_data(size) else size)
    return [found]


def _from_shape_operand(number: int) -> Rule:
    """The sizes are the elements of operand `number`."""

    def rule(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
        return [operands[number].sizes_in(len(dims_of(op.result)))]

    return rule


def _reshape(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    found: list[Entry] = [Size.constant(size) if size >= 0 else None for size in dims_of(op.result)]
    known.equal_products(operands[0].axes, found, op)
    return [found]


def _dynamic_reshape(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    rank = len(dims_of(op.result))
    if len(operands) == 2 and operands[1].rank == 1:
        found: Shape = operands[1].sizes_in(rank)
    else:
        found = [leaf.sizes_in(1)[0] for leaf in operands[1:]]
    known.equal_products(operands[0].axes, found, op)
    return [found]


def _dynamic_broadcast(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """An axis of the operand is the result's if it is known not to be repeated: static and not 1, or known to be equal."""
    found: list[Entry] = list(operands[1].sizes_in(len(dims_of(op.result))))
    one, equal = (integers(op.properties.get(name)) for name in ("known_expanding", "known_nonexpanding"))
    for axis, dim in enumerate(integers(op.properties["dimensions"])):
        key, wanted = operands[0].axis(axis), found[dim]
        assert wanted is None or isinstance(wanted, Size)
        if axis in one or axis in equal:
            known.equal_products([key], [Size.constant(1) if axis in one else wanted], op)
        else:
            known.repeats(key, wanted, op)
        size = known.size(key)
        if found[dim] is None and size is not None and known.facts.at_least(size, 2):
            found[dim] = operands[0].axis(axis)
    return [found]


def _set_size(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """The given size. One that depends on data is checked by the op itself, so without the op it is unknown."""
    found: list[Entry] = list(operands[0].axes)
    (dim,), (size,) = integers(op.properties["dimensions"]), operands[1].sizes_in(1)
    found[dim] = None if size is None or is_data(size) else size
    if size is not None:
        known.inside(Size.constant(0), size, operands[0].axis(dim), op)
    return [found]


def _reduce(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, ReduceOp)
    arrays, reduced = operands[: len(op.arrays)], integers(op.dimensions)
    axes = joined(op, arrays, known)
    return [[axis for dim, axis in enumerate(axes) if dim not in reduced]] * len(arrays)


def _slid(size: Size | None, window: WindowDim, facts: Facts) -> Size | None:
    """The number of positions of a window along an axis."""
    if size is None:
        return None
    if size.value is not None:
        return Size.constant(window.output_size(size.value)) if size.value >= 0 else None
    one = Size.constant
    gaps = size - 1 if facts.at_least(size, 1) else maximum(size - 1, -1)
    dilated = gaps * window.base_dilation + 1 if window.base_dilation > 1 else size
    room = dilated + window.low + window.high - ((window.size - 1) * window.window_dilation + 1)
    if facts.at_least(room, -window.stride):
        return floordiv(room, window.stride) + 1
    return maximum(floordiv(room, window.stride) + one(1), 0)


def _reduce_window(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, ReduceWindowOp)
    arrays = operands[: len(op.arrays)]
    axes = joined(op, arrays, known)
    found = [
        _slid(known.size(leaf), window, known.facts)
        for leaf, window in zip(_keys(axes), op.window.data.dims, strict=True)
    ]
    return [found] * len(arrays)


def _select_and_scatter(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """As the array; the source has an element for each position of the window."""
    array, source = operands[:2]
    window = op.properties["window"]
    assert isinstance(window, WindowAttr)
    for axis, along in enumerate(window.data.dims):
        known.equals(source.axis(axis), _slid(known.size(array.axis(axis)), along, known.facts), op)
    return [array.axes]


def _keys(axes: Shape) -> list[AxisKey]:
    return [axis for axis in axes if isinstance(axis, tuple)]


def _dynamic_reduce_window(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, DynamicReduceWindowOp)
    arrays, rank = operands[: op.count], operands[0].rank
    axes = _keys(joined(op, arrays, known))
    lists = [leaf.sizes_in(rank) for leaf in operands[2 * op.count : -1]]
    pads = operands[-1].sizes_in(2 * rank)
    found = list[Entry]()
    for axis, key in enumerate(axes):
        size, (window, stride, base, dilation) = known.size(key), (numbers[axis] for numbers in lists)
        low, high = pads[2 * axis : 2 * axis + 2]
        if size is None or window is None or low is None or high is None or dilation is None:
            found.append(None)
            continue
        steps = (None if stride is None else stride.value, None if base is None else base.value)
        if steps[0] is None or steps[1] != 1:
            found.append(None)
            continue
        room = size + low + high - ((window - 1) * dilation + 1)
        found.append(known.facts.simplify(maximum(floordiv(room, steps[0]) + 1, 0)))
    return [found] * len(arrays)


def _dot(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, DotOp)
    pairing, (lhs, rhs) = op.pairing, operands
    for a, b in (
        *zip(pairing.lhs_batch, pairing.rhs_batch, strict=True),
        *zip(pairing.lhs_contracting, pairing.rhs_contracting, strict=True),
    ):
        known.join(lhs.axis(a), rhs.axis(b), op)
    left = [dim for dim in range(lhs.rank) if dim not in (*pairing.lhs_batch, *pairing.lhs_contracting)]
    right = [dim for dim in range(rhs.rank) if dim not in (*pairing.rhs_batch, *pairing.rhs_contracting)]
    return [[*(lhs.axis(dim) for dim in (*pairing.lhs_batch, *left)), *(rhs.axis(dim) for dim in right)]]


def _ragged_dot(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """Paired dimensions are equal, as in a dot; rhs has as many groups as there are sizes of groups."""
    assert isinstance(op, RuleOp)
    for kind in ("batch", "contracting"):
        for a, b in zip(op.numbers(f"lhs_{kind}_dims"), op.numbers(f"rhs_{kind}_dims"), strict=True):
            known.join(operands[0].axis(a), operands[1].axis(b), op)
    for dim in op.numbers("rhs_group_dims"):
        known.join(operands[1].axis(dim), operands[2].axes[-1], op)
    return [[operands[operand].axis(dim) for operand, dim in ragged_dot_places(op)]]


def _convolved(
    op: HloOp, labels: Sequence[str], operands: Sequence[Leaf], along: Sequence[Entry], batch_groups: int, known: Known
) -> Sequence[Shape]:
    """The axes of a convolution's result: `along` for the spatial ones, batches of the image, features of the kernel."""
    in_image, in_kernel, in_result = labels
    found: dict[str, Entry] = {str(i): size for i, size in enumerate(along)}
    batch = operands[0].axis(in_image.index("b"))
    size = known.size(batch)
    found["b"] = batch if batch_groups == 1 else None if size is None else floordiv(size, batch_groups)
    found["f"] = operands[1].axis(in_kernel.index("o"))
    return [[found[label] for label in in_result]]


def _convolution(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, ConvolutionOp)
    windows = op.window.data.dims if op.window else ()
    along = [
        _slid(known.size(operands[0].axis(op.labels[0].index(str(i)))), window, known.facts)
        for i, window in enumerate(windows)
    ]
    return _convolved(op, op.labels, operands, along, op.batch_groups, known)


def _dynamic_conv(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, DynamicConvOp)
    labels = op.dim_labels.data.replace("->", "_").split("_")
    pads = operands[2].sizes_in(2 * (len(labels[0]) - 2))
    along = list[Entry]()
    for i, window in enumerate(op.window.data.dims):
        size = known.size(operands[0].axis(labels[0].index(str(i))))
        kernel = known.size(operands[1].axis(labels[1].index(str(i))))
        low, high = pads[2 * i : 2 * i + 2]
        if size is None or kernel is None or low is None or high is None:
            along.append(None)
            continue
        dilated = known.facts.simplify(maximum(size - 1, -1) * window.base_dilation + 1)
        room = dilated + low + high - ((kernel - 1) * window.window_dilation + 1)
        along.append(known.facts.simplify(maximum(floordiv(room, window.stride) + 1, 0)))
    groups = op.batch_group_count.value.data if op.batch_group_count else 1
    return _convolved(op, labels, operands, along, groups, known)


def _gathered(
    op: GatherOp | DynamicGatherOp, operands: Sequence[Leaf], sizes: Sequence[Size | None], known: Known
) -> Shape:
    for axis, size in enumerate(sizes):
        known.fits(size, operands[0].axis(axis), op)
    indices, offsets = operands[1], integers(op.offset_dims)
    for dim, other in zip(*map(integers, (op.operand_batching_dims, op.start_indices_batching_dims)), strict=True):
        known.join(operands[0].axis(dim), indices.axis(other), op)
    left_out = (*integers(op.collapsed_slice_dims), *integers(op.operand_batching_dims))
    vector = op.index_vector_dim.value.data
    batch = iter([indices.axis(dim) for dim in range(indices.rank) if dim != vector])
    window = iter([size for dim, size in enumerate(sizes) if dim not in left_out])
    return [next(window) if dim in offsets else next(batch) for dim in range(len(dims_of(op.result)))]


def _gather(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, GatherOp)
    return [_gathered(op, operands, [Size.constant(size) for size in integers(op.slice_sizes)], known)]


def _dynamic_gather(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    assert isinstance(op, DynamicGatherOp)
    return [_gathered(op, operands, operands[2].sizes_in(operands[0].rank), known)]


def _scatter(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """As the arrays, which are the operands before the indices; windows of updates fit into them, one for each row of indices."""
    assert isinstance(op, ScatterOp)
    count = len(operands) // 2
    first, indices, updates = operands[0], operands[count], operands[count + 1]
    joined(op, operands[:count], known)
    joined(op, operands[count + 1 :], known)
    for dim, other in zip(*map(integers, (op.input_batching_dims, op.scatter_indices_batching_dims)), strict=True):
        known.join(first.axis(dim), indices.axis(other), op)
    kept = [dim for dim in range(updates.rank) if dim not in integers(op.update_window_dims)]
    of_rows = [dim for dim in range(indices.rank) if dim != op.index_vector_dim.value.data]
    for dim, other in zip(kept, of_rows, strict=True):
        known.join(updates.axis(dim), indices.axis(other), op)
    dropped = {*integers(op.inserted_window_dims), *integers(op.input_batching_dims)}
    for array, updates in zip(operands[:count], operands[count + 1 :], strict=True):
        limits = (key for dim, key in enumerate(array.axes) if dim not in dropped)
        for dim, limit in zip(integers(op.update_window_dims), limits, strict=True):
            known.fits(known.size(updates.axis(dim)), limit, op)
    return [array.axes for array in operands[:count]]


def _sort(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    return [joined(op, operands, known)] * len(operands)


def _top_k(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    k = operands[1].sizes_in(1)[0] if len(operands) > 1 else Size.constant(integer(op.properties["k"]))
    known.fits(k, operands[0].axes[-1], op)
    return [[*operands[0].axes[:-1], k]] * 2


def _batch_norm(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """The operand's sizes, and in training and in the gradient two arrays of one element per feature."""
    assert isinstance(op, RuleOp)
    first, feature = operands[0], op.number("feature_index")
    for other in operands[1:]:
        axes = first.axes if other.rank == first.rank > 1 else [first.axis(feature)]
        for a, b in zip(axes, other.axes, strict=True):
            known.join(a, b, op)
    return [first.axes, [first.axis(feature)], [first.axis(feature)]][: len(leaf_types(op.result.type))]


def _custom_call(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    """The elements of the operands that list the sizes; without such operands the results have the sizes in their types."""
    listed = [operands[number] for number in shape_operands(op)]
    return [leaf.sizes_in(len(leaf.elements or ())) for leaf in listed]


def _dynamic_rng(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    return [operands[0].axes, operands[1].sizes_in(len(operands[1].elements or ()))]


def _dynamic_slice(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    window = [Size.constant(size) for size in integers(op.properties["dynamic_slice_sizes"])]
    for axis, size in enumerate(window):
        known.fits(size, operands[0].axis(axis), op)
    return [window]


def _dynamic_update_slice(op: HloOp, operands: Sequence[Leaf], known: Known) -> Sequence[Shape]:
    for axis in range(operands[0].rank):
        known.fits(known.size(operands[1].axis(axis)), operands[0].axis(axis), op)
    return [operands[0].axes]


RULES: dict[str, Rule] = {
    "bitcast-convert": _bitcast_convert,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "slice": _slice,
    "pad": _pad,
    "dynamic-pad": _dynamic_pad,
    "reverse": _as_operand(0),
    "real-dynamic-slice": _real_dynamic_slice,
    "reshape": _reshape,
    "dynamic-reshape": _dynamic_reshape,
    "dynamic-broadcast-in-dim": _dynamic_broadcast,
    "dynamic-iota": _from_shape_operand(0),
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "set-dimension-size": _set_size,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "dynamic-reduce-window": _dynamic_reduce_window,
    "select-and-scatter": _select_and_scatter,
    "map": elementwise,
    "dot": _dot,
    "ragged-dot": _ragged_dot,
    "convolution": _convolution,
    "dynamic-conv": _dynamic_conv,
    "gather": _gather,
    "dynamic-gather": _dynamic_gather,
    "scatter": _scatter,
    "fft": _fft,
    "sort": _sort,
    "topk": _top_k,
    "dynamic-top-k": _top_k,
    "dynamic-rng": _from_shape_operand(2),
    "dynamic-rng-bit-generator": _dynamic_rng,
    "batch-norm-grad": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-training": _batch_norm,
    "custom-call": _custom_call,
    "cholesky": _as_operand(0),
    "triangular-solve": _as_operand(1),
}
"""By opcode; elementwise ops use `elementwise`."""
