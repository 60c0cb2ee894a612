"""`vector`: tuples of lane arrays, so that taking or replacing an element moves no data; reads and writes of whole rows of a tensor.

vector.extract %v[%i]          the array of element i; where i differs between lanes, a choice among all elements
vector.transfer_read %t[%k]    elements k, k + 1 ... of each lane at once; k must be a multiple of the vector's length, as the GPU's
                               vector loads trap otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import TensorType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xla_emitters.dialects.vector import FromElementsOp, ToElementsOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import Unsupported
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.arith import FLOAT_OPS, INTEGER_OPS
from xla_emitters.runtime.simt.code import Kernel, Rules, Ternary
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import row_major_strides
from xla_emitters.runtime.simt.scalars import Form, form_of
from xla_emitters.runtime.simt.tensor import element_index

RULES = Rules()

Elements = tuple[Array, ...]


def shape_of(value_type: Attribute) -> tuple[int, ...]:
    """Extents of a vector; () for a scalar."""
    return value_type.get_shape() if isinstance(value_type, VectorType) else ()


def count_of(value_type: Attribute) -> int:
    """Elements of a vector; 1 for a scalar."""
    return int(np.prod(shape_of(value_type)))


def elements_of(value: Value) -> Elements:
    """The elements of a vector, or a scalar as the only one."""
    return value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportReturnType]  # a vector holds arrays


# ---------------------------------------------------------------------------------------------- elements


def position_of(machine: Machine, op: Operation, shape: Sequence[int], position: Sequence[Array | int]) -> Array | int:
    """Row-major number of the element or subvector at `position`: an int when all active lanes mean the same.

    raises ExecutionError for an active lane whose position leaves the vector
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
    """`count` elements from `start`, which may differ between lanes."""
    if isinstance(start, int):
        return elements[start : start + count]
    starts = range(0, len(elements), count)
    return tuple(
        reduce(lambda found, first: np.where(start == first, elements[first + k], found), starts, elements[k])
        for k in range(count)
    )


def with_elements(elements: Elements, start: Array | int, new: Elements) -> Elements:
    """`elements` with `new` from `start` on."""
    if isinstance(start, int):
        return elements[:start] + new + elements[start + len(new) :]
    count = len(new)
    return tuple(np.where(start == k - k % count, new[k % count], old) for k, old in enumerate(elements))


def mixed(position: Sequence[SSAValue | int]) -> Callable[[Sequence[Array]], list[Array | int]]:
    """Where a position's numbers come from: constants stay, each value is the next of the dynamic operands."""

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


@RULES.op(FromElementsOp)
def from_elements(op: FromElementsOp) -> Kernel:
    def run(machine: Machine, *elements: Array) -> Value:
        return elements

    return run


@RULES.op(ToElementsOp)
def to_elements(op: ToElementsOp) -> Kernel:
    def run(machine: Machine, source: Elements) -> Array | list[Array]:
        return source[0] if len(source) == 1 else list(source)

    return run


@RULES.op(vector.CreateMaskOp)
def create_mask(op: vector.CreateMaskOp) -> Kernel:
    positions = list(np.ndindex(*shape_of(op.mask_vector.type)))

    def run(machine: Machine, *sizes: Array) -> Value:
        inside = (reduce(np.logical_and, map(np.less, position, sizes)) for position in positions)
        return tuple(inside)

    return run


@RULES.elementwise(vector.FMAOp)
def fma(op: vector.FMAOp) -> Ternary:
    return partial(scalars.fused_multiply_add, form_of(op.lhs.type))


@RULES.op(vector.BitcastOp)
def bitcast(op: vector.BitcastOp) -> Kernel:
    return vector_bits(op.source.type, op.result.type)


def vector_bits(source_type: Attribute, target_type: Attribute) -> Kernel:
    """The same bytes as another vector or scalar. raises Unsupported for types that share a byte."""
    source, target = form_of(source_type), form_of(target_type)
    is_scalar = not isinstance(target_type, VectorType)
    if source.bits == target.bits:

        def one_by_one(machine: Machine, value: Value) -> Value:
            return _as(is_scalar, tuple(scalars.reinterpret(source, target, e) for e in elements_of(value)))

        return one_by_one
    if source.bits % 8 or target.bits % 8:
        raise Unsupported(f"bits of {source_type} as {target_type}", stage="simt")

    def run(machine: Machine, value: Value) -> Value:
        return _as(is_scalar, columns(target, rows_of(source, elements_of(value)).view(target.storage)))

    return run


def _as(is_scalar: bool, elements: Elements) -> Value:
    return elements[0] if is_scalar else elements


def rows_of(form: Form, elements: Sequence[Array]) -> Array:
    """The elements as memory holds them, side by side: (blocks or 1, threads or 1, elements), contiguous."""
    shape = np.broadcast_shapes(*(element.shape for element in elements))
    rows = np.empty((*shape, len(elements)), form.storage)
    for number, element in enumerate(elements):
        rows[..., number] = scalars.to_bits(form, element)
    return rows


def columns(form: Form, rows: Array) -> Elements:
    """The inverse of `rows_of`."""
    return tuple(scalars.from_bits(form, rows[..., number]) for number in range(rows.shape[-1]))


_REDUCTIONS: dict[str, tuple[str, str]] = {
    "add": ("add", "add"),
    "mul": ("mul", "mul"),
    "and": ("and", ""),
    "or": ("or", ""),
    "xor": ("xor", ""),
    "minsi": ("mins", ""),
    "maxsi": ("maxs", ""),
    "minui": ("minu", ""),
    "maxui": ("maxu", ""),
    "minimumf": ("", "minimum"),
    "maximumf": ("", "maximum"),
    "minnumf": ("", "minnum"),
    "maxnumf": ("", "maxnum"),
}
"""Kind of a reduction -> its integer op, its float op."""


@RULES.op(vector.ReductionOp)
def reduction(op: vector.ReductionOp) -> Kernel:
    form = form_of(op.vector.type)
    integer, float_ = _REDUCTIONS[op.kind.data.value]
    combine = FLOAT_OPS[float_](form) if form.is_float else INTEGER_OPS[integer](form)

    def run(machine: Machine, value: Elements, *start: Array) -> Value:
        return reduce(combine, value, *start)

    return run


# ---------------------------------------------------------------------------------------------- tensors


def _check_transfer(op: vector.TransferReadOp | vector.TransferWriteOp) -> int:
    """The vector's length. raises Unsupported for what is not a row of the tensor's last dimension, whole and without mask."""
    vector_type = op.result.type if isinstance(op, vector.TransferReadOp) else op.vector.type
    dims = op.permutation_map.data.num_dims
    is_row = [str(result) for result in op.permutation_map.data.results] == [f"d{dims - 1}"]
    if (
        not isinstance(op.source.type, TensorType)
        or op.mask
        or not is_row
        or not all(flag.value.data for flag in op.in_bounds)
    ):
        raise Unsupported(f"{op.name} that is not an unmasked row of a tensor", stage="simt", details=(str(op),))
    return count_of(vector_type)


def row_index(machine: Machine, op: Operation, tensor: Tensor, count: int, indices: Sequence[Array]) -> Array:
    """Which row of `count` elements starts at `indices`. raises ExecutionError where that is inside a row."""
    start = element_index(machine, op, tensor, indices)
    if tensor.strides[-1] != 1:
        raise Unsupported(f"{op.name} along a dimension that is not the fastest", stage="simt")
    inside_row = start % count != 0
    if inside_row.any():
        machine.refuse(op, inside_row, f"accesses {count} elements from an index that is no multiple of {count}")
    return start // count


@RULES.op(vector.TransferReadOp)
def transfer_read(op: vector.TransferReadOp) -> Kernel:
    count = _check_transfer(op)

    def run(machine: Machine, source: Tensor, *operands: Array) -> Value:
        machine.check_newest(op, source)
        index = row_index(machine, op, source, count, operands[:-1])
        rows = machine.memory.view(source.buffer, source.element.storage, count)
        return columns(source.element, machine.memory.gather(op, source.buffer, index, rows, machine.active))

    return run


@RULES.op(vector.TransferWriteOp)
def transfer_write(op: vector.TransferWriteOp) -> Kernel:
    count = _check_transfer(op)

    def run(machine: Machine, value: Elements, target: Tensor, *indices: Array) -> Tensor:
        machine.check_newest(op, target)
        index = row_index(machine, op, target, count, indices)
        rows = machine.memory.view(target.buffer, target.element.storage, count)
        values = rows_of(target.element, value)
        machine.memory.scatter(op, target.buffer, index, rows, values, machine.active)
        return machine.updated(target)

    return run
