"""For a CPU: the loop over a row whose reduction LLVM cannot vectorize, such as the place of the largest element, with 64 partial results.

    %v[0 .. 64], %i[0 .. 64] = the partial result of no elements
    scf.for %first = 0 to %cols step 64 {
      scf.for %lane = 0 to min(64, %cols - %first) {           each lane has its own partial result, and LLVM vectorizes
        %v[%lane], %i[%lane] = body(%v[%lane], %i[%lane], %x[%row, %first + %lane], ...)
      }
    }
    the lanes are combined from the first to the last

A sum, a maximum or another single op is a loop with a carried value: LLVM splits that itself.
Source: docs/reference/4 3.6 (partial results); a warp's lanes in `row_rounds`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.combine import Reducer, parts_of, starts_of
from xla_emitters.dynamic.loops.kernel_code import KernelCode, LoopBody
from xla_emitters.dynamic.loops.row_rounds import shared_array

LANES = 64


def needs_lanes(reducers: Sequence[Reducer]) -> bool:
    """Whether one of the reductions is not a single op on a single array."""
    return any(len(reducer.elements) > 1 or None in reducer.opcodes for reducer in reducers)


def loop_over_lanes(code: KernelCode, cols: Number, reducers: Sequence[Reducer], step: LoopBody) -> Sequence[SSAValue]:
    """The carried values after all elements of a row."""
    starts = starts_of(code, reducers)
    arrays = [shared_array(code, LANES, value.type) for value in starts]
    index = code.index
    used = index.minimum(cols, LANES)

    def put(inner: KernelCode, values: Sequence[SSAValue], lane: SSAValue) -> None:
        for value, array in zip(values, arrays, strict=True):
            inner.store(value, array, [lane])

    def get(inner: KernelCode, lane: SSAValue) -> list[SSAValue]:
        return [inner.load(array, [lane]) for array in arrays]

    def begin(inner: KernelCode, lane: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        put(inner, starts, lane)
        return ()

    def group(outer: KernelCode, first: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        def one(inner: KernelCode, lane: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            column = inner.index.value(inner.index.add(first, lane))
            put(inner, step(inner, column, get(inner, lane)), lane)
            return ()

        outer.loop(0, outer.index.minimum(outer.index.subtract(cols, first), LANES), 1, (), one)
        return ()

    def combine(inner: KernelCode, lane: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        both = zip(reducers, parts_of(reducers, carried), parts_of(reducers, get(inner, lane)), strict=True)
        return [value for reducer, one, other in both for value in reducer.combined(inner, one, other)]

    code.loop(0, used, 1, (), begin)
    code.loop(0, cols, LANES, (), group)
    return code.loop(0, used, 1, starts, combine)
