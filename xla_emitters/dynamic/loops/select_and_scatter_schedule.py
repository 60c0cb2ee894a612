"""The schedules of a select_and_scatter: one source after the other on a CPU, a thread for each element of the result on a GPU.

    select_and_scatter %x, %s, %init -> %y

    CPU     parallel: %y[...] = %init                             GPU     parallel for each element %at of the result:
            parallel of one:                                                a = %init
              for each source, in row-major order:                          for each source whose window holds %at, in row-major order:
                %at = the element that its window selects                     if its window selects %at: a = body(a, source)
                %y[%at] = body(%y[%at], source)                             %y[%at] = a

Both combine the sources of an element in the same order. A thread visits as many windows as hold its element, and all elements of each: of
a pooling whose windows do not overlap, those of one window.
Source: StableHLO specification, "select_and_scatter".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.element_context import BufferElement
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.scalar_code import emit_scalars
from xla_emitters.dynamic.loops.scatter_schedule import NAME, fill, one_after_the_other
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.dynamic.loops.window_schedule import Along, over_window, window_of

S64 = dtype("s64")


def has_select_and_scatter_schedule(op: BufferOp) -> bool:
    """Whether its computations have code."""
    return all(map(has_scalar_code, _computations(op)))


def _computations(op: BufferOp) -> list[ComputationOp]:
    """`select`, and the one that combines."""
    made = op.as_hlo()
    assert isinstance(made, RuleOp)
    return [find_computation(op, made.symbols(name)[0]) for name in ("select", "scatter")]


def emit_select_and_scatter(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one op."""
    (root,) = fusion.roots
    (buffer,), (_, sources, init) = root.outputs, root.inputs
    _, combine = _computations(root)
    if not fusion.is_cpu:
        return _by_elements(fusion)
    fill(fusion, buffer, init, is_scalar=True)

    def visit(code: KernelCode, at: list[SSAValue]) -> None:
        e = BufferElement(code, root, at)
        number = _selected(e, at)
        is_any = code.insert(arith.CmpiOp(number, constant(code, 0, i64), "sge")).result
        with code.where(is_any) as inner:
            indices = inner.index.delinearize(inner.index.of(number, S64), e.sizes(0))
            old = inner.load(buffer, indices)
            (value,) = emit_scalars(inner, combine, [old, inner.load(sources, at)])
            inner.store(value, buffer, indices)

    return one_after_the_other(fusion, sources, visit)


def _by_elements(fusion: FusionLoops) -> None:
    (root,) = fusion.roots
    (buffer,), (_, sources, init) = root.outputs, root.inputs
    _, combine = _computations(root)
    sizes, of_sources = fusion.numbers.sizes(buffer), fusion.numbers.sizes(sources)

    def body(code: KernelCode, ids: Sequence[SSAValue]) -> None:
        at = code.index.delinearize(ids[0], sizes)
        window = window_of(BufferElement(code, root, at))

        def nest(code: KernelCode, place: list[SSAValue], so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
            dim = len(place)
            if dim == len(window):
                e = BufferElement(code, root, place)
                here = code.insert(arith.IndexCastOp(code.index.linearize(at, sizes), i64)).result
                is_here = code.insert(arith.CmpiOp(_selected(e, place), here, "eq")).result
                return code.branch(
                    is_here,
                    [value.type for value in so_far],
                    lambda inner: emit_scalars(inner, combine, [*so_far, inner.load(sources, place)]),
                    lambda _: so_far,
                )
            low, high = _windows_with(code, window[dim], at[dim], of_sources[dim])
            return code.loop(low, high, 1, so_far, lambda inner, index, carried: nest(inner, [*place, index], carried))

        (found,) = nest(code, [], [code.load(init, ())])
        code.store(found, buffer, at)

    fusion.parallel(NAME, [fusion.numbers.count(buffer)], [1], body)


def _windows_with(code: KernelCode, along: Along, at: SSAValue, count: Number) -> tuple[Number, Number]:
    """The first window that holds an element, and the one after the last: all w with w * stride - low <= at < w * stride - low + size."""
    index = code.index
    there = index.add(at, along.low)
    first = index.maximum(index.subtract(there, index.subtract(along.size, 1)), 0)
    low = index.quotient(index.add(first, index.subtract(along.stride, 1)), along.stride)
    high = index.quotient(index.maximum(index.add(there, along.stride), 0), along.stride)
    return low, index.minimum(high, count)


def _selected(e: BufferElement, at: Sequence[SSAValue]) -> SSAValue:
    """The number (i64), in row-major order, of the element that the window of the source at these indices selects; -1 if it has none."""
    select, _ = _computations(e.op)
    array, sizes, code = e.op.inputs[0], e.sizes(0), e.code

    def choose(inner: KernelCode, place: Sequence[Number], so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
        chosen, number = so_far
        indices = [inner.index.value(index) for index in place]
        value = inner.load(array, indices)
        (keeps,) = emit_scalars(inner, select, [chosen, value])
        is_kept = inner.insert(arith.CmpiOp(keeps, constant(inner, 0, keeps.type), "ne")).result
        is_chosen = inner.insert(arith.CmpiOp(number, constant(inner, 0, i64), "sge")).result
        stays = inner.insert(arith.AndIOp(is_kept, is_chosen)).result
        here = inner.insert(arith.IndexCastOp(inner.index.linearize(indices, sizes), i64)).result
        return (
            inner.insert(arith.SelectOp(stays, chosen, value)).result,
            inner.insert(arith.SelectOp(stays, number, here)).result,
        )

    nothing = constant(code, 0, element_of(e.hlo.operands[0]).storage_type)
    none = constant(code, -1, i64)
    return over_window(code, window_of(e), sizes, at, (nothing, none), choose)[1]
