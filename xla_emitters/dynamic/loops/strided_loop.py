"""A thread's loop over every n-th element, or every n-th group of adjacent ones, unrolled by several steps.

    for %j = %first to %end step n { body(%j) }
->
    for %j = %first to max(%end - 3n, 0) step 4n { for %k = 0 to 4 { body(%j + %k * n) } }       the inner loop is unrolled later
    for %j = (where that ended) to %end step n { body(%j) }

With a `width` of 4, body(%j) above is `for %v = 0 to 4 { body(%j + %v) }`, with accesses of four elements. Loads of eight
elements (four if a thread takes single ones) are independent of each other. The order in which a thread combines its elements stays
the same. If sizes are known and every thread has equally many elements, there is one loop with a known number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode, LoopBody

TOGETHER = 4
"""Steps in an unrolled iteration."""
MOST_TOGETHER = 8
"""Elements in an unrolled iteration."""


def strided_loop(
    code: KernelCode,
    first: SSAValue,
    end: Number,
    step: int,
    inits: Sequence[SSAValue],
    body: LoopBody,
    width: int = 1,
    *,
    waits: bool = True,
) -> Sequence[SSAValue]:
    """The final carried values; `first` and `end` are not negative. If a block is one thread, elements are taken in order.

    first  less than `step`, unless `end` is unknown
    width  adjacent elements of a step; divides `first`, `end` and `step`
    waits  whether a step waits for memory: several steps are then taken at a time
    """
    index, together = code.index, min(TOGETHER, MOST_TOGETHER // width) if waits else 1
    stride, reach = together * step, (together - 1) * step

    def one(inner: KernelCode, start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if width == 1:
            return body(inner, start, carried)

        def element(innermost: KernelCode, number: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return body(innermost, innermost.index.value(innermost.index.add(start, number)), values)

        return inner.neighbours(width, carried, element)

    def numbered(
        inner: KernelCode, start: SSAValue, number: SSAValue, values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        at = inner.index.add(start, inner.index.multiply(number, step))
        return one(inner, inner.index.value(at), values)

    if step > 1 and isinstance(end, int) and end and end % step == 0:
        if end == step:
            return one(code, first, inits)
        return code.loop(0, end // step, 1, inits, lambda inner, number, values: numbered(inner, first, number, values))
    if step == 1 or together == 1 or (isinstance(end, int) and end <= reach):
        return code.loop(first, end, step, inits, one)

    def group(inner: KernelCode, start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return inner.loop(0, together, 1, carried, lambda c, number, values: numbered(c, start, number, values))

    last = index.maximum(index.subtract(end, reach), 0)
    found = code.loop(first, last, stride, inits, group)
    left = index.maximum(index.subtract(last, first), 0)
    groups = index.quotient(index.add(left, stride - 1), stride)
    return code.loop(index.add(first, index.multiply(groups, stride)), end, step, found, one)
