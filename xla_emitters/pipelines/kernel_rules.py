"""`--tune auto`: the work of a thread by a rule, without a price: wide accesses, two rounds of them, where the grid stays large.

    s8[8192,8192] -> bf16   on h200     XLA: 4 a thread, 131,072 blocks     by rule: 2 x 8 a thread, 32,768 blocks

XLA gives a thread of a loop four elements at most, or one of a concatenate whose lengths are odd. In narrow types that is an access of 4 or
8 bytes, and so many blocks that starting them takes longer than moving the bytes. The rule takes the widest access of up to 16 bytes among
the candidates of `thread_work`, and two of them where that leaves `LEAST_WAVES` waves of threads. Every candidate computes each element by
the same code, so no bit of a result changes. `lab/prices.py` has what it gains.
"""

from __future__ import annotations

from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array
from xla_emitters.emitters.emitter import Emitter, TunableEmitter, Way
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.thread_work import WIDEST_BITS, ThreadWork
from xla_emitters.graph.view import FusionView
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.rewrite.notes import decide

LEAST_WAVES = 4
"""Threads that all elements give work to, in multiples of those that the GPU holds: fewer would leave multiprocessors idle at the end."""


def emitter_by_rule(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
    """The candidate that the rule takes, with the decision "tune"; or XLA's choice."""
    xlas, *others = emitter.candidates(planned.view, options.device)
    own, most = _work(xlas), planned.view.elements // (LEAST_WAVES * options.device.threads_max)
    works = [
        (work, way)
        for way in others
        if own is not None
        and (work := _work(way)) is not None
        and own.elements <= work.elements <= WIDEST_BITS // _widest_bits(planned.view)
        and work.total <= most
    ]
    best = max(works, key=lambda each: (each[0].elements, each[0].rounds), default=None)
    if best is None:
        return xlas.emitter
    decide(
        "tune",
        f"{best[1].name}, by rule: accesses of up to 16 bytes, fewer blocks. XLA's choice: {xlas.name}",
        chosen=best[1].name,
        candidates=[],
    )
    return best[1].emitter


def _work(way: Way) -> ThreadWork | None:
    """The elements of a thread, of emitters that differ in these."""
    work = getattr(way.emitter, "work", None)
    return work if isinstance(work, ThreadWork) else None


def _widest_bits(view: FusionView) -> int:
    """Of the elements of the results and of the parameters with more than one element."""
    given = [each.result.type for each in view.parameters if is_array(each.result.type)]
    arrays = [*view.result_types, *(each for each in given if any(size > 1 for size in dims_of(each)))]
    return max(element_of(each).bits for each in arrays)
