"""`--tune auto`: the work of a thread by a rule, without a price: wide accesses, two rounds of them, where the grid stays large.

    s8[8192,8192] -> bf16   on h200     XLA: 4 a thread, 131,072 blocks     by rule: 2 x 8 a thread, 32,768 blocks

XLA gives a thread of a loop four elements at most, or one of a concatenate whose lengths are odd. In narrow types that is an access of 4 or
8 bytes, and so many blocks that starting them takes longer than moving the bytes. The rule takes the widest access of up to 16 bytes among
the candidates of `thread_work`, and two of them where that leaves `LEAST_WAVES` waves of threads. Every candidate computes each element by
the same code, so no bit of a result changes. `lab/prices.py` has what it gains.
"""

from __future__ import annotations

from math import prod

from xla_emitters.algebra.expression import Expr, linear_terms
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.emitters.emitter import Emitter, TunableEmitter, Way
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.indexing_analysis import indexing_of_operands
from xla_emitters.graph.thread_work import SHIFTING, WIDEST_BITS, ThreadWork
from xla_emitters.graph.view import FusionView
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.notes import decide

L1_BYTES_PER_CLOCK = 128
"""Of a multiprocessor's first-level cache: four sectors."""
LEAST_WAVES = 4
"""Threads that all elements give work to, in multiples of those that the GPU holds: fewer would leave multiprocessors idle at the end."""


def emitter_by_rule(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
    """The candidate that the rule takes, with the decision "tune"; or XLA's choice."""
    view, chip = planned.view, options.device
    xlas, *others = emitter.candidates(view, chip)
    if (tiles := next((way for way in others if _fills(way, chip)), None)) is not None:
        return _taken(tiles, xlas, "accesses of 8 bytes on both sides, longer rows of the memory")
    own, most = _work(xlas), view.elements // (LEAST_WAVES * chip.threads_max)
    widest = _widest_read_apart(view, chip, WIDEST_BITS // _widest_bits(view))
    works = [
        (work, way)
        for way in others
        if own is not None
        and (work := _work(way)) is not None
        and min(own.elements, widest) <= work.elements <= widest
        and work.total <= most
    ]
    best = max(works, key=lambda each: (each[0].elements, each[0].rounds), default=None)
    return xlas.emitter if best is None else _taken(best[1], xlas, "accesses of up to 16 bytes, fewer blocks")


def _taken(way: Way, xlas: Way, why: str) -> Emitter:
    """The candidate's emitter, with the decision."""
    decide("tune", f"{way.name}, by rule: {why}. XLA's choice: {xlas.name}", chosen=way.name, candidates=[])
    return way.emitter


def _fills(way: Way, chip: Device) -> bool:
    """Whether a candidate has tiles of a transpose, with `LEAST_WAVES` waves of the blocks for which the chip has room."""
    if (tiles := getattr(way.emitter, "tiles", None)) is None:
        return False
    from xla_emitters.emitters.transpose_tiles import PlainTiles  # imported here: few kernels have tiles

    if not isinstance(tiles, PlainTiles):
        return False
    shared = prod(tiles.shared_dims) * tiles.description.bits // 8
    of_one = min(chip.shared_bytes_per_core // shared, chip.threads_per_core // tiles.launch.threads)
    return tiles.launch.blocks >= LEAST_WAVES * chip.cores * of_one


def _widest_read_apart(view: FusionView, chip: Device, widest: int) -> int:
    """The most neighbouring elements, up to `widest`, for which reads that are no wide access leave the memory the bound.

    A thread of n elements reads one that is not aligned with n accesses, and each moves the sectors of all n in a warp from the first-level
    cache. A stencil has many of them.
    """
    if not any(op.opcode in SHIFTING for op in view.instructions):
        return widest
    root, moved = view.roots[0], _bytes_of_an_element(view)
    if not is_array(root.result.type):
        return widest
    found = indexing_of_operands(view, root)
    reads = [
        (each.map, parameter, element_of(parameter.result).bits / 8 * each.map.points_of_box / max(1, view.elements))
        for parameter in view.parameters
        for each in found.get(parameter.result) or ()
        if prod(dims_of(parameter.result)) > 1
    ]
    from_cache = chip.cores * L1_BYTES_PER_CLOCK * chip.rates.clock_hz / chip.bandwidth_bytes_per_s
    while widest > 1:
        apart = sum(
            size if _is_wide(read, root, parameter, widest) else size * widest for read, parameter, size in reads
        )
        if apart <= from_cache * moved:
            break
        widest //= 2
    return widest


def _is_wide(read: IndexingMap, root: HloOp, parameter: HloOp, count: int) -> bool:
    """Whether `count` neighbours of the result, from a multiple of it, read one element, or as many neighbours from a multiple of it."""
    dims, given = dims_of(root.result), dims_of(parameter.result)
    if not dims or not given or read.num_dims != len(dims) or read.num_symbols:
        return False
    last = Expr.variable(len(dims) - 1)
    if not any(len(dims) - 1 in each.variables() for each in read.results):
        return dims[-1] % count == 0
    terms, constant = linear_terms(read.results[-1])
    outer = any(len(dims) - 1 in each.variables() for each in read.results[:-1])
    return terms == {last: 1} and not outer and constant % count == dims[-1] % count == given[-1] % count == 0


def _bytes_of_an_element(view: FusionView) -> float:
    """Bytes that the memory moves for each element of the first result, if each is read once."""
    arrays = [*view.result_types, *(each.result.type for each in view.parameters if is_array(each.result.type))]
    return sum(prod(dims_of(each)) * element_of(each).bits / 8 for each in arrays) / max(1, view.elements)


def _work(way: Way) -> ThreadWork | None:
    """The elements of a thread, of emitters that differ in these."""
    work = getattr(way.emitter, "work", None)
    return work if isinstance(work, ThreadWork) else None


def _widest_bits(view: FusionView) -> int:
    """Of the elements of the results and of the parameters with more than one element."""
    given = [each.result.type for each in view.parameters if is_array(each.result.type)]
    arrays = [*view.result_types, *(each for each in given if any(size > 1 for size in dims_of(each)))]
    return max(element_of(each).bits for each in arrays)
