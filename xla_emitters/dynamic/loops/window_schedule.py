"""The schedules of windows: a cumulative op is computed in one pass over its array, other windows on a CPU row by row.

    lmhlo.reduce_window %x, %init -> %y                  parallel for each row along d, if the window is a prefix or a suffix of rows:
                                             ->            a = init;  for i in 0 .. n:  a = body(a, x[i]);  y[i] = a
                                                         parallel for each row of %y, otherwise:
                                                           for j: y[j] = init
                                                           for each position w of the window, in row-major order:
                                                             for j with w inside the array: y[j] = body(y[j], x[j * stride + w - low])

    prefix    element i reads 0 .. i      size >= n, low = size - 1             the same operations in the same order as defined by the op
    suffix    element i reads i .. n - 1  size >= n, low = 0                    from the end: only for a commutative body, as the order
                                                                                of a sum of floats differs
    both      size 1, no padding along all other dimensions; no stride, no dilation; as many elements as the array has

JAX exports cumsum, cummax ... as such windows, with sizes known at run time. So the host decides which of the loops has
blocks. A window that cannot be as large as the array has one loop only.

Row by row, each element is combined in the order that the op defines, and LLVM vectorizes over the row: channels, in NHWC. Each element is
a loop of its own on a GPU, where the array itself is dilated along its rows, where several arrays are reduced together,
and if the window is in the device's memory.

An element of a window:

    a = init; for each position of the window that is inside the array: a = body(a, x[position])
    without gaps (no base dilation, window dilation 1) the loop visits only the positions inside:
      for %w = max(0, low - %i * stride) to min(size, n + low - %i * stride)

Elements are combined in row-major order, in the array's own type, as the op defines. `dynamic_reduce_window` has its window in operands: a
dilation that is not positive there counts as 1. Several arrays are reduced together.

On a GPU a row along the last dimension is scanned by eight lanes, a warp or a block, by its length; four elements of each thread at a time
(`row_scans`), to which what came before is carried. Other rows are a thread's each, beside each other in memory.
Source: StableHLO specification, "reduce_window".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.dynamic_routines import DynamicReduceWindowOp
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.hlo.windows import WindowAttr
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes
from xla_emitters.dynamic.buffers.fusion_rules import computation_of
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.dynamic.loops.buffer_numbers import BufferNumbers
from xla_emitters.dynamic.loops.element_context import BufferElement
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.row_loop import BLOCK_A_ROW, LANES_A_ROW, WARP_A_ROW, for_each_row
from xla_emitters.dynamic.loops.row_rounds import RowPlace, RowThreads
from xla_emitters.dynamic.loops.row_scans import RowScan, scan_held
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.graph.scans import PREFIX, commutes

NAME = "loop"
ROW_THREADS, LONGEST, STEPS = (LANES_A_ROW, WARP_A_ROW, BLOCK_A_ROW), (64, 1024), 4
"""Threads that share a row, the longest rows of all but the last of these, and the elements of a thread at a time."""


def emit_windows(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one op on windows."""
    (root,) = fusion.roots
    buffer, array, is_one = root.outputs[0], root.inputs[0], len(root.outputs) == 1
    sizes, of_array = fusion.numbers.sizes(buffer), fusion.numbers.sizes(array)
    window = window_on_host(fusion.numbers, root)
    is_scan: list[SSAValue] = []
    if is_one and all(along.stride == along.base_dilation == along.window_dilation == 1 for along in window):
        for dim, along in enumerate(window):
            if _may_be_whole(along.size, of_array[dim]) and all(
                _may_be_one(other.size) for at, other in enumerate(window) if at != dim
            ):
                is_scan += _scans(fusion, root, window, dim)
    host, first = fusion.numbers.code, sizes[0] if sizes else 1
    for holds in is_scan:
        first = host.select(holds, 0, first)
    # Not its bound alone: `disc-nest-loops` takes the bounds of loops over rows from the coordinates.
    left = [first, *sizes[1:]] if sizes else []
    if is_one and fusion.is_cpu and window and window[-1].base_dilation == 1:
        _rows(fusion, root, window, left)
        return

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        indices = code.index.delinearize(variables[0], left)
        for value, result in zip(emit_window(BufferElement(code, root, indices)), root.outputs, strict=True):
            code.store(value, result, indices)

    fusion.parallel(NAME, [host.product(left)], [1], body)


def _rows(fusion: FusionLoops, root: BufferOp, window: Sequence[Along], sizes: Sequence[Number]) -> None:
    """One block for each row of the result: for each position of the window, the elements of the row that have it inside the array."""
    buffer, (array, init), combine = root.outputs[0], root.inputs[:2], computation_of(root)
    *above, along = window
    *of_above, of_row = fusion.numbers.sizes(array)
    *rows, count = sizes

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        at = code.index.delinearize(variables[0], rows)
        start = code.load(init, ())
        code.written.add(buffer)

        def position(code: KernelCode, source: Sequence[Number], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def visit(inner: KernelCode, offset: Number) -> None:
                index = inner.index
                shift = index.subtract(index.multiply(offset, along.window_dilation), along.low)

                def behind(number: Number) -> Number:
                    """The first element of the row whose window begins at `number` or later."""
                    if along.stride == 1:
                        return index.maximum(number, 0)
                    stride = index.maximum(along.stride, 1)
                    return index.quotient(index.add(index.maximum(number, 0), index.subtract(stride, 1)), stride)

                low = behind(index.subtract(0, shift))
                high = index.minimum(behind(index.subtract(of_row, shift)), count)
                with inner.each(low, high) as (innermost, place):
                    there = innermost.index.add(innermost.index.multiply(place, along.stride), shift)
                    value = innermost.load(array, [innermost.index.value(number) for number in (*source, there)])
                    (found,) = emit_scalars(innermost, combine, [innermost.load(buffer, [*at, place]), value])
                    innermost.store(found, buffer, [*at, place])

            if along.size == 1:
                visit(code, 0)
            else:
                with code.each(0, along.size) as (inner, offset):
                    visit(inner, offset)
            return ()

        with code.each(0, count) as (inner, place):
            inner.store(start, buffer, [*at, place])
        over_window(code, above, of_above, at, (), position)

    fusion.parallel(NAME, [fusion.numbers.code.product(rows)], [1], body)


def _may_be_whole(size: Number, of: Number) -> bool:
    """Whether a window of this size may cover all of a dimension, for some run-time sizes."""
    return not isinstance(size, int) or (isinstance(of, int) and size >= of > 1)


def _may_be_one(size: Number) -> bool:
    return not isinstance(size, int) or size == 1


def _scans(fusion: FusionLoops, root: BufferOp, window: Sequence[Along], dim: int) -> list[SSAValue]:
    """Writes the loops of a scan along a dimension, forwards and backwards; returns the host's i1 that say which one runs."""
    host, sizes = fusion.numbers.code, fusion.numbers.sizes(root.inputs[0])
    results, along, size = fusion.numbers.sizes(root.outputs[0]), window[dim], sizes[dim]
    holds = [host.compare("sge", along.size, size)]
    holds += [host.compare("eq", result, of) for result, of in zip(results, sizes, strict=True) if result is not of]
    for at, other in enumerate(window):
        if at != dim:
            holds += [host.compare("eq", other.size, 1), host.compare("eq", other.low, 0)]
    is_prefix = host.compare("eq", along.low, host.subtract(along.size, 1))
    found = [host.every([*holds, is_prefix])]
    _scan(fusion, root, dim, found[0], is_reversed=False)
    if commutes(computation_of(root)):
        # A window of one element is both prefix and suffix.
        is_other = host.compare("ne", along.low, host.subtract(along.size, 1))
        found.append(host.every([*holds, host.compare("eq", along.low, 0), is_other]))
        _scan(fusion, root, dim, found[1], is_reversed=True)
    return found


def _scan(fusion: FusionLoops, root: BufferOp, dim: int, holds: SSAValue, *, is_reversed: bool) -> None:
    """The loop of each row; without blocks if `holds` is false."""
    host, (array, init), buffer = fusion.numbers.code, root.inputs[:2], root.outputs[0]
    sizes, combine = fusion.numbers.sizes(array), computation_of(root)
    first, *others = [size for at, size in enumerate(sizes) if at != dim] or [1]
    if not fusion.is_cpu and dim == len(sizes) - 1:
        return _scan_by_rows(fusion, root, holds, is_reversed=is_reversed)
    # Not the loop's bound alone: `disc-nest-loops` takes the bounds of loops over rows from the coordinates.
    rows = [host.select(holds, first, 0), *others]

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        at = code.index.delinearize(variables[0], rows) if len(sizes) > 1 else []
        last = code.index.subtract(sizes[dim], 1)

        def step(inner: KernelCode, number: SSAValue, so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
            place = inner.index.value(inner.index.subtract(last, number)) if is_reversed else number
            indices = [*at[:dim], place, *at[dim:]]
            (value,) = emit_scalars(inner, combine, [*so_far, inner.load(array, indices)])
            inner.store(value, buffer, indices)
            return (value,)

        code.loop(0, sizes[dim], 1, [code.load(init, ())], step)

    fusion.parallel(NAME, [host.product(rows)], [1], body)
    return None


def _scan_by_rows(fusion: FusionLoops, root: BufferOp, holds: SSAValue, *, is_reversed: bool) -> None:
    """Some threads of a block for each row along the last dimension, by its length; no blocks if `holds` is false."""
    host, (array, init), buffer = fusion.numbers.code, root.inputs[:2], root.outputs[0]
    *rows, size = fusion.numbers.sizes(array)
    # Reversed, a body that commutes scans the row's elements in the other order.
    scan = RowScan(root, PREFIX)

    def visit(code: KernelCode, place: RowPlace, threads: RowThreads) -> None:
        above, last = code.index.delinearize(place.row, rows), code.index.subtract(size, 1)

        def indices(inner: KernelCode, number: Number) -> list[SSAValue]:
            return [*above, inner.index.value(inner.index.subtract(last, number) if is_reversed else number)]

        def tile(inner: KernelCode, first: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            index, (so_far,) = inner.index, carried
            start = index.add(first, place.lane)
            numbers = [index.add(start, step * threads.per_row) for step in range(STEPS)]
            # What is beyond the row is read by nothing that is in it.
            held = [[inner.load(array, indices(inner, index.minimum(number, last)))] for number in numbers]
            found, whole = scan_held(inner, scan, threads, place, held, so_far)
            for number, (value,) in zip(numbers, found, strict=True):
                is_inside = index.compare("slt", number, size)
                has_place = is_inside if place.is_row is None else index.every([is_inside, place.is_row])
                with inner.where(has_place) as innermost:
                    innermost.store(value, buffer, indices(innermost, number))
            total = whole()
            if threads.warps_per_row > 1:
                inner.insert(gpu.BarrierOp())
            return (total,)

        code.loop(0, size, threads.per_row * STEPS, [code.load(init, ())], tile)

    for at, threads in enumerate(ROW_THREADS):
        least, most = LONGEST[at - 1] if at else 0, LONGEST[at] if at < len(LONGEST) else None
        if isinstance(size, int) and (size <= least or (most is not None and size > most)):
            continue
        fits = [holds]
        if not isinstance(size, int):
            fits += [host.compare("sgt", size, least)] if least else []
            fits += [host.compare("sle", size, most)] if most is not None else []
        count = host.select(host.every(fits), host.product(rows), 0)
        for_each_row(fusion, NAME, threads, count, partial(visit, threads=threads))


# ---------------------------------------------------------------------------------------------------------------- windows


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
