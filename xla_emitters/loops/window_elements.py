"""Code of one element of an op on windows: a loop of its own.

    reduce_window    a = init; for each position of the window that is inside the array: a = body(a, x[position])
                     without gaps (no base dilation, window dilation 1) the loop visits only the positions inside:
                       for %w = max(0, low - %i * stride) to min(size, n + low - %i * stride)

A CPU computes most windows row by row, and both compute sums of prefixes otherwise (`window_schedule`). Elements of a window are combined
in row-major order, in the array's own type, as the op defines. `dynamic_reduce_window` has its window in operands: a dilation that is not
positive there counts as 1. Several arrays are reduced together.
Source: StableHLO specification, "reduce_window".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir import SSAValue

from xla_emitters.buffers.buffer_sizes import BufferSizes
from xla_emitters.buffers.fusion_rules import computation_of
from xla_emitters.buffers.index_code import IndexCode, Number
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.dynamic_shape_ops import DynamicReduceWindowOp
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.loops.buffer_numbers import BufferNumbers
from xla_emitters.loops.element_context import BufferElement
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.scalar_code import emit_scalars


def has_window_code(op: BufferOp) -> bool:
    """Whether the op's computation has code, and its arrays are known to have one shape: loops do not check this, the runtime does."""
    sizes = BufferSizes()
    first, *others = (sizes.of(array) for array in op.inputs[: len(op.outputs)])
    return has_scalar_code(computation_of(op)) and all(other == first for other in others)


class Along(NamedTuple):
    """The window along one dimension."""

    size: Number
    stride: Number
    base_dilation: Number
    window_dilation: Number
    low: Number

    @property
    def is_without_gaps(self) -> bool:
        return self.base_dilation == 1 and self.window_dilation == 1

    @property
    def is_point(self) -> bool:
        return self.size == 1 and self.is_without_gaps and self.low == 0


Visit: TypeAlias = Callable[[KernelCode, Sequence[Number], Sequence[SSAValue]], Sequence[SSAValue]]
"""(code, indices of an element of the array, carried values) -> the next carried values."""


def window_of(e: BufferElement) -> list[Along]:
    """The window of an op, along each dimension."""
    return _window(e.op, e.hlo, e.held, e.index)


def window_on_host(numbers: BufferNumbers, op: BufferOp) -> list[Along]:
    """The window of an op as host values before the fusion. A window in the device's memory has no host values: its sizes are 0."""
    lists = op.inputs[len(op.inputs) - len(DynamicReduceWindowOp.WINDOW) :]
    is_known = "window" in op.properties or all(space_of(buffer.type) == HOST for buffer in lists)

    def held(i: int, *indices: int) -> Number:
        return numbers.held(op.inputs[i], *indices) if is_known else 0

    return _window(op, op.as_hlo(), held, numbers.code)


def _window(op: BufferOp, hlo: HloOp, held: Callable[..., Number], index: IndexCode) -> list[Along]:
    attribute = hlo.properties.get("window")
    if isinstance(attribute, WindowAttr):
        return [
            Along(along.size, along.stride, along.base_dilation, along.window_dilation, along.low)
            for along in attribute.data.dims
        ]
    first = len(op.inputs) - len(DynamicReduceWindowOp.WINDOW)

    def positive(number: Number) -> Number:
        return number if isinstance(number, int) else index.maximum(number, 1)

    return [
        Along(
            held(first, dim),
            held(first + 1, dim),
            positive(held(first + 2, dim)),
            positive(held(first + 3, dim)),
            held(first + 4, dim, 0),
        )
        for dim in range(tensor_of(op.outputs[0].type).get_num_dims())
    ]


def over_window(
    code: KernelCode,
    window: Sequence[Along],
    sizes: Sequence[Number],
    at: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    visit: Visit,
) -> Sequence[SSAValue]:
    """Visits the elements of an array of these sizes that are in the window at position `at`, in row-major order."""

    def nest(code: KernelCode, place: Sequence[Number], so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
        dim = len(place)
        if dim == len(window):
            return visit(code, place, so_far)
        along, size, index = window[dim], sizes[dim], code.index
        begin = index.subtract(index.multiply(at[dim], along.stride), along.low)
        if along.is_point:
            return nest(code, [*place, begin], so_far)
        low: Number = 0
        high = along.size
        if along.is_without_gaps:
            low = index.maximum(0, index.subtract(0, begin))
            high = index.minimum(high, index.subtract(size, begin))

        def step(inner: KernelCode, offset: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            there = inner.index.add(begin, inner.index.multiply(offset, along.window_dilation))
            if along.is_without_gaps:
                return nest(inner, [*place, there], carried)
            element = inner.index.quotient(there, along.base_dilation)
            checks = [
                inner.index.compare("sge", there, 0),
                inner.index.compare("eq", inner.index.remainder(there, along.base_dilation), 0),
                inner.index.compare("ult", element, size),
            ]
            return inner.branch(
                inner.index.every(checks),
                [value.type for value in carried],
                lambda then: nest(then, [*place, element], carried),
                lambda _: carried,
            )

        return code.loop(low, high, 1, so_far, step)

    return nest(code, [], inits)


def emit_window(e: BufferElement) -> Sequence[SSAValue]:
    """One element of each result of an op on windows."""
    body, count = computation_of(e.op), len(e.op.outputs)

    def combined(code: KernelCode, place: Sequence[Number], so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
        indices = [code.index.value(index) for index in place]
        return emit_scalars(code, body, [*so_far, *(code.load(array, indices) for array in e.op.inputs[:count])])

    inits = [e.operand(count + number, ()) for number in range(count)]
    return over_window(e.code, window_of(e), e.sizes(0), e.indices, inits, combined)
