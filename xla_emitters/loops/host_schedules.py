"""Schedules of ops that are loops only on a CPU; in this file: ops that update an array at indices computed from data.

    scatter %x, %i, %u -> %y                        select_and_scatter %x, %s, %init -> %y
      parallel: %y[...] = %x[...]                     parallel: %y[...] = %init
      parallel of one:                                parallel of one:
        for each update, in row-major order:            for each source, in row-major order:
          %at = starts of its window + place in it        %at = the element that its window selects
          if the window is inside: %y[%at] = body(%y[%at], update)
                                                          %y[%at] = body(%y[%at], source)

Updates are one after the other, in the order in which NumPy's reference takes those of one element. An update whose window begins where
it is not inside the array is left out. Ops with several arrays, or a computation that is not of scalars alone, stay with the runtime.
`host_sorts`, `host_top_k`, `host_random_bits` and `host_scans` have the others.
Source: StableHLO specification, "scatter", "select_and_scatter".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from operator import eq

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from xla_emitters.buffers.buffer_sizes import BufferSizes
from xla_emitters.buffers.index_code import INDEX, Number
from xla_emitters.dialects.hlo.base import integers
from xla_emitters.dialects.hlo.called import has_scalar_code
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.dialects.hlo.convert import constant
from xla_emitters.dialects.hlo.gather_scatter import ScatterOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.loops.element_context import BufferElement
from xla_emitters.loops.host_elements import has_host_element, over_window, window_of
from xla_emitters.loops.host_random_bits import emit_random_bits, has_random_schedule
from xla_emitters.loops.host_scans import emit_windows
from xla_emitters.loops.host_sorts import emit_sort, has_sort_schedule
from xla_emitters.loops.host_top_k import emit_top_k, has_top_k_schedule
from xla_emitters.loops.kernel_code import KernelCode
from xla_emitters.loops.scalar_code import emit_scalars
from xla_emitters.loops.schedule import FusionLoops, Schedule

NAME = "loop"


def has_host_schedule(op: BufferOp) -> bool:
    """Whether the op alone is a fusion that has a schedule here."""
    match op.HLO.name:
        case "hlo.sort":
            return has_sort_schedule(op)
        case "hlo.dynamic_top_k" | "hlo.topk":
            return has_top_k_schedule(op)
        case "hlo.dynamic_reduce_window" | "hlo.reduce_window":
            return has_host_element(op)
        case "hlo.rng_bit_generator" | "hlo.dynamic_rng_bit_generator":
            return has_random_schedule(op)
        case name if name not in HOST_SCHEDULES or len(op.outputs) != 1:
            return False
        case _:
            pass
    return _fits(op) and all(map(has_scalar_code, _computations(op)))


def _fits(op: BufferOp) -> bool:
    """Whether the sizes of a scatter's updates are known to be those that it needs: loops do not check it, the runtime does.

    Windows whose sizes have names are checked before a run (`sizes`).
    """
    made = op.as_hlo()
    if not isinstance(made, ScatterOp):
        return True
    sizes = BufferSizes()
    array, rows, updates = map(sizes.of, op.inputs)
    windows = integers(made.update_window_dims)
    dropped = {*integers(made.inserted_window_dims), *integers(made.input_batching_dims)}
    limits = (size for dim, size in enumerate(array) if dim not in dropped)
    of_rows = (size for dim, size in enumerate(rows) if dim != made.index_vector_dim.value.data)
    kept = (size for dim, size in enumerate(updates) if dim not in windows)
    return all(starmap(eq, zip(kept, of_rows, strict=True))) and all(
        updates[dim] == limit or (sizes.is_named(updates[dim]) and sizes.is_named(limit))
        for dim, limit in zip(windows, limits, strict=True)
    )


def _computations(op: BufferOp) -> list[ComputationOp]:
    """The called computations; for select_and_scatter, first `select`."""
    made = op.as_hlo()
    if isinstance(made, ScatterOp):
        return [find_computation(op, made.to_apply)]
    assert isinstance(made, RuleOp)
    return [find_computation(op, made.symbols(name)[0]) for name in ("select", "scatter")]


def _fill(fusion: FusionLoops, source: int, *, is_scalar: bool) -> None:
    """The loop that initializes the result with elements of an operand."""
    (root,) = fusion.roots
    (buffer,) = root.outputs
    if buffer is root.inputs[source]:
        return

    def body(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        indices = code.index.delinearize(variables[0], fusion.numbers.sizes(buffer))
        code.store(code.load(root.inputs[source], () if is_scalar else indices), buffer, indices)

    fusion.parallel(NAME, [fusion.numbers.count(buffer)], [1], body)


def _one_after_the_other(
    fusion: FusionLoops, visited: SSAValue, visit: Callable[[KernelCode, list[SSAValue]], None]
) -> None:
    """Loops in one block, over all indices of a buffer in row-major order."""
    sizes = fusion.numbers.sizes(visited)

    def nest(code: KernelCode, at: list[SSAValue]) -> None:
        if len(at) == len(sizes):
            return visit(code, at)

        def step(inner: KernelCode, index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            nest(inner, [*at, index])
            return ()

        code.loop(0, sizes[len(at)], 1, (), step)
        return None

    fusion.parallel(NAME, [1], [1], lambda code, _: nest(code, []))


def _emit_scatter(fusion: FusionLoops) -> None:
    (root,) = fusion.roots
    (buffer,), (_, _, updates) = root.outputs, root.inputs
    (combine,) = _computations(root)
    _fill(fusion, 0, is_scalar=False)

    def visit(code: KernelCode, at: list[SSAValue]) -> None:
        e = BufferElement(code, root, at)
        checks, place = _target(e)

        def update(inner: KernelCode) -> Sequence[SSAValue]:
            indices = [inner.index.value(index) for index in place]
            old = inner.load(buffer, indices)
            (value,) = emit_scalars(inner, combine, [old, inner.load(updates, at)])
            inner.store(value, buffer, indices)
            return ()

        if checks:
            code.branch(code.index.every(checks), (), update)
        else:
            update(code)

    _one_after_the_other(fusion, updates, visit)


def _target(e: BufferElement) -> tuple[list[SSAValue], list[Number]]:
    """Conditions under which the element of the updates at `e.indices` updates the array, and the index that it updates."""
    hlo = e.hlo
    assert isinstance(hlo, ScatterOp)
    sizes, rank, of_updates = e.sizes(0), len(e.sizes(1)), e.sizes(2)
    windows, along = integers(hlo.update_window_dims), hlo.index_vector_dim.value.data
    batching, batched = e.lists("input_batching_dims"), e.lists("scatter_indices_batching_dims")
    dropped, mapped = {*e.lists("inserted_window_dims"), *batching}, e.lists("scatter_dims_to_operand_dims")
    kept = (dim for dim in range(len(of_updates)) if dim not in windows)
    row_of = dict(zip((dim for dim in range(rank) if dim != along), kept, strict=True))
    window, checks, place = iter(windows), list[SSAValue](), list[Number]()
    for dim, size in enumerate(sizes):
        at: Number = 0
        extent: Number = 1
        if dim not in dropped:
            in_updates = next(window)
            at, extent = e.indices[in_updates], of_updates[in_updates]
        if dim in batching:
            at = e.indices[row_of[batched[batching.index(dim)]]]
        if dim in mapped:
            number = e.index.value(mapped.index(dim))
            row = [number if i == along else e.indices[row_of[i]] for i in range(rank)]
            start = e.index.of(e.operand(1, row), element_of(hlo.operands[1]))
            # As unsigned numbers: a negative start is large; an array without elements has no last start.
            last = e.index.subtract(size, extent)
            checks.append(e.index.compare("ule", start, last))
            if not isinstance(last, int) or last < 0:
                checks.append(e.index.compare("sge", last, 0))
            at = e.index.add(at, start)
        place.append(at)
    return checks, place


def _emit_select_and_scatter(fusion: FusionLoops) -> None:
    (root,) = fusion.roots
    (buffer,), (array, sources, _) = root.outputs, root.inputs
    select, combine = _computations(root)
    _fill(fusion, 2, is_scalar=True)

    def visit(code: KernelCode, at: list[SSAValue]) -> None:
        e = BufferElement(code, root, at)
        sizes = e.sizes(0)

        def choose(inner: KernelCode, place: Sequence[Number], so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
            chosen, number = so_far
            indices = [inner.index.value(index) for index in place]
            value = inner.load(array, indices)
            (keeps,) = emit_scalars(inner, select, [chosen, value])
            is_kept = inner.insert(arith.CmpiOp(keeps, constant(inner, 0, keeps.type), "ne")).result
            is_chosen = inner.index.compare("sge", number, 0)
            stays = inner.insert(arith.AndIOp(is_kept, is_chosen)).result
            here = inner.index.linearize(indices, sizes)
            return (
                inner.insert(arith.SelectOp(stays, chosen, value)).result,
                inner.index.select(stays, number, here),
            )

        nothing = constant(code, 0, element_of(e.hlo.operands[0]).storage_type)
        none = code.insert(arith.ConstantOp.from_int_and_width(-1, INDEX)).result
        _, number = over_window(code, window_of(e), sizes, at, (nothing, none), choose)

        def update(inner: KernelCode) -> Sequence[SSAValue]:
            indices = inner.index.delinearize(number, sizes)
            old = inner.load(buffer, indices)
            (value,) = emit_scalars(inner, combine, [old, inner.load(sources, at)])
            inner.store(value, buffer, indices)
            return ()

        code.branch(code.index.compare("sge", number, 0), (), update)

    _one_after_the_other(fusion, sources, visit)


HOST_SCHEDULES: Mapping[str, Schedule] = {
    "hlo.dynamic_reduce_window": emit_windows,
    "hlo.dynamic_rng_bit_generator": emit_random_bits,
    "hlo.dynamic_top_k": emit_top_k,
    "hlo.reduce_window": emit_windows,
    "hlo.rng_bit_generator": emit_random_bits,
    "hlo.scatter": _emit_scatter,
    "hlo.select_and_scatter": _emit_select_and_scatter,
    "hlo.sort": emit_sort,
    "hlo.topk": emit_top_k,
}
"""Op alone in a fusion -> function that writes its loops."""
