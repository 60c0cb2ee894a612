"""`vector`: tuples of lane arrays, so that extracting or replacing an element moves no data; reads and writes of rows of a tensor.

vector.extract %v[%i]          the array of element i; where i differs between lanes, a choice among all elements
vector.transfer_read %t[%k]    elements k, k + 1 ... of each lane at once; k must be a multiple of the vector's length, as the GPU's
                               vector loads trap otherwise
Kernels have no transfers that are masked, permuted or possibly out of bounds: they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.algebra.shape_maps import row_major_strides
from xla_emitters.dialects.mlir import llvm, vector
from xla_emitters.dialects.mlir.vector import (
    ExtractStridedSliceOp,
    FromElementsOp,
    InsertStridedSliceOp,
    InterleaveOp,
    ShapeCastOp,
    ToElementsOp,
    TransposeOp,
)
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith_rules import FLOAT_OPS, INTEGER_OPS
from xla_emitters.runtime.simt.code import Kernel, Rules, Ternary
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.scalars import Form, form_of
from xla_emitters.runtime.simt.tensor_rules import element_index, element_of, store

RULES = Rules()

Elements = tuple[Array, ...]
OpT = TypeVar("OpT", bound=Operation)


def shape_of(value_type: Attribute) -> tuple[int, ...]:
    """Extents of a vector; () for a scalar."""
    return value_type.get_shape() if isinstance(value_type, VectorType) else ()


def count_of(value_type: Attribute) -> int:
    """Elements of a vector; 1 for a scalar."""
    return prod(shape_of(value_type))


def elements_of(value: Value) -> Elements:
    """The elements of a vector; a scalar is its own only element."""
    return value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportReturnType]  # a vector holds arrays


# ---------------------------------------------------------------------------------------------- elements


def position_of(machine: Machine, op: Operation, shape: Sequence[int], position: Sequence[Array | int]) -> Array | int:
    """Row-major number of the element or subvector at `position`: an int when it is the same for all active lanes.

    raises ExecutionError for an active lane whose position is outside the vector
    """
    index: Array | int = 0
    for number, extent, stride in zip(position, shape, row_major_strides(shape), strict=False):
        if not isinstance(number, int):
            machine.refuse(
                op, (number < 0) | (number >= extent), f"has a position outside of the vector's {extent} elements"
            )
            uniform = machine.uniform(number)
            number = number if uniform is None else uniform
        index = index + number * stride
    return index


def element_at(elements: Elements, start: Array | int, count: int) -> Elements:
    """`count` elements from number `start` on; `start` may differ between lanes."""
    if isinstance(start, int):
        return elements[start : start + count]
    starts = range(0, len(elements), count)
    return tuple(
        reduce(lambda found, first: np.where(start == first, elements[first + k], found), starts, elements[k])
        for k in range(count)
    )


def with_elements(elements: Elements, start: Array | int, new: Elements) -> Elements:
    """`elements`, those from number `start` on replaced by `new`."""
    if isinstance(start, int):
        return elements[:start] + new + elements[start + len(new) :]
    count = len(new)
    return tuple(np.where(start == k - k % count, new[k % count], old) for k, old in enumerate(elements))


def mixed(position: Sequence[SSAValue | int]) -> Callable[[Sequence[Array]], list[Array | int]]:
    """A function from the dynamic operands to the position: constants are kept, each SSA value becomes the next operand."""

    def numbers(operands: Sequence[Array]) -> list[Array | int]:
        left = iter(operands)
        return [number if isinstance(number, int) else next(left) for number in position]

    return numbers


@RULES.op(vector.ExtractOp)
def extract(op: vector.ExtractOp) -> Kernel:
    shape, count = shape_of(op.vector.type), count_of(op.result.type)
    is_scalar = not isinstance(op.result.type, VectorType)
    numbers = mixed(op.get_mixed_position())

    def run(machine: Machine, source: Elements, *position: Array) -> Value:
        found = element_at(source, position_of(machine, op, shape, numbers(position)), count)
        return found[0] if is_scalar else found

    return run


@RULES.op(vector.InsertOp)
def insert(op: vector.InsertOp) -> Kernel:
    shape = shape_of(op.dest.type)
    numbers = mixed(op.get_mixed_position())

    def run(machine: Machine, source: Value, target: Elements, *position: Array) -> Value:
        return with_elements(target, position_of(machine, op, shape, numbers(position)), elements_of(source))

    return run


@RULES.op(vector.BroadcastOp)
def broadcast(op: vector.BroadcastOp) -> Kernel:
    target = shape_of(op.vector.type)
    source = shape_of(op.source.type)
    order = np.arange(count_of(op.source.type)).reshape(source)
    picks = tuple(int(pick) for pick in np.broadcast_to(order, target).flat)

    def run(machine: Machine, value: Value) -> Value:
        elements = elements_of(value)
        return tuple(elements[pick] for pick in picks)

    return run


@RULES.op(vector.ShuffleOp)
def shuffle(op: vector.ShuffleOp) -> Kernel:
    picks = [int(pick) for pick in op.mask.get_values()]
    form = form_of(op.result.type)
    # One entry of the mask picks one element of rank-1 operands, one row of others.
    row = count_of(op.v1.type) // shape_of(op.v1.type)[0] if shape_of(op.v1.type) else 1

    def run(machine: Machine, one: Value, other: Value) -> Value:
        return shuffled(form, elements_of(one) + elements_of(other), picks, row)

    return run


def shuffled(form: Form, elements: Elements, picks: Sequence[int], row: int = 1) -> Elements:
    """Rows of `elements` in the order of `picks`; -1 is poison."""
    poison = (scalars.poison(form),) * row
    rows = (poison if pick < 0 else elements[pick * row : (pick + 1) * row] for pick in picks)
    return tuple(element for picked in rows for element in picked)


# ---------------------------------------------------------------------------------------------- elements in another order


def picking(picks: Callable[[OpT], Sequence[int]]) -> Callable[[OpT], Kernel]:
    """A rule for an op that rearranges elements; `picks` returns their numbers among the elements of all operands in order."""

    def rule(op: OpT) -> Kernel:
        numbers = [int(number) for number in picks(op)]

        def run(machine: Machine, *operands: Value) -> Value:
            elements = [element for operand in operands for element in elements_of(operand)]
            return tuple(elements[number] for number in numbers)

        return run

    return rule


def numbered(value_type: Attribute, start: int = 0) -> Array:
    """An array of a vector's shape in which each element is its own row-major number, counted from `start`."""
    return np.arange(start, start + count_of(value_type)).reshape(shape_of(value_type))


@RULES.op(ShapeCastOp)
@picking
def shape_cast(op: Any) -> Sequence[int]:
    return range(count_of(op.source.type))


@RULES.op(TransposeOp)
@picking
def transpose(op: Any) -> Sequence[int]:
    return list(numbered(op.vector.type).transpose(op.permutation.get_values()).flat)


@RULES.op(InterleaveOp)
@picking
def interleave(op: Any) -> Sequence[int]:
    one, other = numbered(op.lhs.type), numbered(op.rhs.type, count_of(op.lhs.type))
    return list(np.stack([one, other], axis=-1).flat)


def _box(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


def _numbers(attribute: ArrayAttr[IntegerAttr]) -> list[int]:
    return [number.value.data for number in attribute]


@RULES.op(ExtractStridedSliceOp)
@picking
def extract_strided_slice(op: Any) -> Sequence[int]:
    return list(numbered(op.source.type)[_box(_numbers(op.offsets), _numbers(op.sizes))].flat)


@RULES.op(InsertStridedSliceOp)
@picking
def insert_strided_slice(op: Any) -> Sequence[int]:
    part, offsets = numbered(op.source.type), _numbers(op.offsets)
    whole = numbered(op.dest.type, part.size)
    sizes = [*([1] * (whole.ndim - part.ndim)), *part.shape]
    whole[_box(offsets, sizes)] = part.reshape(sizes)
    return list(whole.flat)


@RULES.kernel(FromElementsOp)
def from_elements(op: FromElementsOp, machine: Machine, *elements: Array) -> Value:
    return elements


@RULES.kernel(ToElementsOp)
def to_elements(op: ToElementsOp, machine: Machine, source: Elements) -> Array | list[Array]:
    return source[0] if len(source) == 1 else list(source)


@RULES.elementwise(vector.FMAOp)
def fma(op: vector.FMAOp) -> Ternary:
    return partial(scalars.fused_multiply_add, form_of(op.lhs.type))


@RULES.op(vector.BitcastOp)
def bitcast(op: vector.BitcastOp) -> Kernel:
    return vector_bits(op.source.type, op.result.type)


def vector_bits(source_type: Attribute, target_type: Attribute) -> Kernel:
    """The same bits as another vector or scalar, the first element in the lowest bits."""
    source, target = form_of(source_type), form_of(target_type)
    is_scalar = not isinstance(target_type, VectorType)
    if source.bits == target.bits:

        def one_by_one(machine: Machine, value: Value) -> Value:
            return _as(is_scalar, tuple(scalars.reinterpret(source, target, e) for e in elements_of(value)))

        return one_by_one
    if source.bits % 8 or target.bits % 8:

        def bit_by_bit(machine: Machine, value: Value) -> Value:
            words = [scalars.to_bits(source, element).astype(np.uint64) for element in elements_of(value)]
            bits = [word >> np.uint64(place) & np.uint64(1) for word in words for place in range(source.bits)]
            parts = [bits[start : start + target.bits] for start in range(0, len(bits), target.bits)]
            found = (sum(bit << np.uint64(place) for place, bit in enumerate(part)) for part in parts)
            return _as(
                is_scalar, tuple(scalars.from_bits(target, np.asarray(each).astype(target.storage)) for each in found)
            )

        return bit_by_bit

    def run(machine: Machine, value: Value) -> Value:
        return _as(is_scalar, columns(target, rows_of(source, elements_of(value)).view(target.storage)))

    return run


def _as(is_scalar: bool, elements: Elements) -> Value:
    return elements[0] if is_scalar else elements


def rows_of(form: Form, elements: Sequence[Array]) -> Array:
    """The elements in their memory format, contiguous: (blocks or 1, threads or 1, elements)."""
    shape = np.broadcast_shapes(*(element.shape for element in elements))
    rows = np.empty((*shape, len(elements)), form.storage)
    for number, element in enumerate(elements):
        rows[..., number] = scalars.to_bits(form, element)
    return rows


def columns(form: Form, rows: Array) -> Elements:
    """The inverse of `rows_of`."""
    return tuple(scalars.from_bits(form, rows[..., number]) for number in range(rows.shape[-1]))


_KINDS = {
    **{"minsi": "mins", "maxsi": "maxs", "minui": "minu", "maxui": "maxu"},
    **{"smin": "mins", "smax": "maxs", "umin": "minu", "umax": "maxu"},
    **{"minimumf": "minimum", "maximumf": "maximum", "minnumf": "minnum", "maxnumf": "maxnum"},
    **{"fminimum": "minimum", "fmaximum": "maximum", "fmin": "minnum", "fmax": "maxnum"},
}
"""Kind of a reduction in `vector` and in LLVM -> our name of what it combines by, where they differ."""
_OF_LLVM = ("add", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax", "fminimum", "fmaximum", "fmin", "fmax")


def _reduction(op: Any, kind: str) -> Kernel:
    form = form_of(op.operands[0].type)
    combine = (FLOAT_OPS if form.is_float else INTEGER_OPS)[_KINDS.get(kind, kind)](form)

    def run(machine: Machine, value: Elements, *start: Array) -> Value:
        return reduce(combine, value, *start)

    return run


@RULES.op(vector.ReductionOp)
def reduction(op: vector.ReductionOp) -> Kernel:
    return _reduction(op, op.kind.data.value)


@RULES.op(*(llvm.INTRINSICS[f"vector.reduce.{name}"] for name in _OF_LLVM))
def llvm_reduction(op: Operation) -> Kernel:
    return _reduction(op, op.name.rpartition(".")[2])


@RULES.op(llvm.INTRINSICS["vector.reduce.fadd"], llvm.INTRINSICS["vector.reduce.fmul"])
def ordered_reduction(op: Operation) -> Callable[[Machine, Array, Elements], Array]:
    """From a start, in order."""
    combine = _reduction(op, op.name[-3:])
    return lambda machine, start, elements: combine(machine, elements, start)


# ---------------------------------------------------------------------------------------------- tensors and memory


def refuse_other_than_row(op: vector.TransferReadOp | vector.TransferWriteOp) -> None:
    """raises Unsupported unless `op` accesses a row of a tensor's last dimension, whole and without mask"""
    dims = op.permutation_map.data.num_dims
    is_row = (
        isinstance(op.source.type, TensorType)
        and op.mask is None
        and [str(result) for result in op.permutation_map.data.results] == [f"d{dims - 1}"]
        and all(flag.value.data for flag in op.in_bounds)
    )
    if not is_row:
        what = f"{op.name} of other elements than a whole row of a tensor's last dimension"
        raise Unsupported(what, stage="simt", details=(str(op).splitlines()[0],))


def row_index(machine: Machine, op: Operation, tensor: Tensor, count: int, indices: Sequence[Array]) -> Array:
    """Number of the row of `count` elements that starts at `indices`. raises ExecutionError where no row starts there."""
    start = element_index(machine, op, tensor, indices)
    if tensor.strides[-1] != 1:
        raise Unsupported(f"{op.name} along a dimension that is not the fastest", stage="simt")
    inside_row = start % count != 0
    if inside_row.any():
        machine.refuse(op, inside_row, f"accesses {count} elements from an index that is not a multiple of {count}")
    return start // count


def _row_read(op: Operation, count: int, machine: Machine, source: Tensor, *indices: Array) -> Value:
    """The elements of a row, all at once."""
    machine.check_newest(op, source)
    index = row_index(machine, op, source, count, indices)
    storage = source.element.storage
    return columns(source.element, machine.memory.gather(op, source.buffer, index, storage, machine.active, count))


def _write_row(op: Operation, count: int, machine: Machine, value: Elements, target: Tensor, *indices: Array) -> None:
    machine.check_newest(op, target)
    index = row_index(machine, op, target, count, indices)
    machine.memory.scatter(op, target.buffer, index, rows_of(target.element, value), machine.active)


@RULES.op(vector.TransferReadOp)
def transfer_read(op: vector.TransferReadOp) -> Kernel:
    refuse_other_than_row(op)
    count = count_of(op.result.type)

    def run(machine: Machine, source: Tensor, *operands: Array) -> Value:
        return _row_read(op, count, machine, source, *operands[:-1])

    return run


@RULES.op(vector.TransferWriteOp)
def transfer_write(op: vector.TransferWriteOp) -> Kernel:
    refuse_other_than_row(op)
    count = count_of(op.vector.type)

    def run(machine: Machine, value: Elements, target: Tensor, *indices: Array) -> Tensor:
        _write_row(op, count, machine, value, target, *indices)
        return machine.updated(target)

    return run


# ---------------------------------------------------------------------------------------------- element by element


def _row(indices: Sequence[Array], shape: Sequence[int]) -> Iterator[list[Array]]:
    """Indices of the elements of a vector of `shape` along the last dimensions; the first element is at `indices`."""
    for position in np.ndindex(*shape):
        moved = list(indices)
        for back, number in enumerate(reversed(position), start=1):
            moved[-back] = moved[-back] + number
        yield moved


def is_one_access(op: vector.LoadOp | vector.StoreOp, shape: Sequence[int]) -> bool:
    """Whether an op promises that its elements start at a multiple of their total size: they are accessed together."""
    return len(shape) == 1 and "alignment" in op.properties


@RULES.op(vector.LoadOp)
def load(op: vector.LoadOp) -> Kernel:
    shape = shape_of(op.result.type)
    if is_one_access(op, shape):
        return partial(_row_read, op, *shape)

    def run(machine: Machine, source: Tensor, *indices: Array) -> Value:
        return tuple(element_of(machine, op, source, place) for place in _row(indices, shape))

    return run


@RULES.op(vector.StoreOp)
def store_row(op: vector.StoreOp) -> Kernel:
    shape = shape_of(op.vector.type)
    if is_one_access(op, shape):
        return partial(_write_row, op, *shape)

    def run(machine: Machine, value: Elements, target: Tensor, *indices: Array) -> None:
        for place, element in zip(_row(indices, shape), value, strict=True):
            store(machine, op, target, element_index(machine, op, target, place), element)

    return run
