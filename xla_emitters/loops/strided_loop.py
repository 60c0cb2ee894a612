"""A thread's loop over every n-th element, four at a time as long as there are four.

    for %j = %first to %end step n { body(%j) }
->
    for %j = %first to max(%end - 3n, 0) step 4n { for %k = 0 to 4 { body(%j + %k * n) } }       the inner loop is unrolled later
    for %j = (where that ended) to %end step n { body(%j) }

Loads of four elements do not wait for each other; the order in which a thread combines its elements stays the same.
A loop of less than four steps, by sizes that are known, has the second part alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.buffers.index_code import Number
from xla_emitters.loops.kernel_code import KernelCode, LoopBody

TOGETHER = 4


def strided_loop(
    code: KernelCode, first: SSAValue, end: Number, step: int, inits: Sequence[SSAValue], body: LoopBody
) -> Sequence[SSAValue]:
    """What the carried values are in the end; `first` and `end` are not negative. One thread alone takes elements as they come."""
    index, stride, reach = code.index, TOGETHER * step, (TOGETHER - 1) * step
    if step == 1 or (isinstance(end, int) and end <= reach):
        return code.loop(first, end, step, inits, body)

    def group(inner: KernelCode, start: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        def one(innermost: KernelCode, number: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = innermost.index.add(start, innermost.index.multiply(number, step))
            return body(innermost, innermost.index.value(at), values)

        return inner.loop(0, TOGETHER, 1, carried, one)

    last = index.maximum(index.subtract(end, reach), 0)
    found = code.loop(first, last, stride, inits, group)
    left = index.maximum(index.subtract(last, first), 0)
    groups = index.quotient(index.add(left, stride - 1), stride)
    return code.loop(index.add(first, index.multiply(groups, stride)), end, step, found, body)
