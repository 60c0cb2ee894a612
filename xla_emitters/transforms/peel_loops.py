"""Peel the last iteration of a loop into a separate loop if the other iterations then need no bounds check.

    xla_gpu.loop (%t)[%s] in (t)[s] -> (s * 64 + t), s in [0, 3],        xla_gpu.loop ... s in [0, 2]
                             s * 64 + t in [0, 249]                  ->   xla_gpu.loop ... s in [3, 3], t in [0, 57]

Range variables are tried from the last to the first, as long as the loops inside run less than 64 times in all: only a body that is
unrolled later is copied. A variable is left alone if no constraint mentions it, or if its loop would need the check even without its last
iteration. The peeled iterations of an inner variable run after all other iterations of the outer variables. So the loop's results must not
depend on the order of iterations, which holds for reductions, and for loops whose iterations write different elements.
Source: docs/reference/2 3.3 "xla-gpu-peel-loops"; XLA peel_loops.cc.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.locations import located_builder, take_over
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dialects.xla_gpu import LoopOp
from xla_emitters.rewrite.kernel_pass import KernelPass

MOST_ITERATIONS = 64
"""A variable is not peeled if the loops inside run this many times or more."""


class PeelLoopsPass(KernelPass):
    name = "xla-gpu-peel-loops"

    def apply_to(self, op: ModuleOp) -> None:
        pending = [found for found in walk(op) if isinstance(found, LoopOp)]
        while pending:
            loop = pending.pop()
            parts = peeled(loop.map)
            if len(parts) > 1:
                pending += _replace(loop, parts)


def peeled(loop_map: IndexingMap) -> list[IndexingMap]:
    """The main part, then the peeled parts, those of outer variables first; `[loop_map]` if nothing is peeled."""
    main, tails = loop_map, list[IndexingMap]()
    iterations = 1
    for number in reversed(range(len(loop_map.range_vars))):
        if iterations >= MOST_ITERATIONS:
            break
        bounds = main.range_vars[number].bounds
        iterations *= bounds.trip_count
        if bounds.is_point or not main.is_symbol_constrained(number):
            continue
        shorter = _bounded(main, number, Interval(bounds.lower, bounds.upper - 1))
        if shorter.is_symbol_constrained(number):
            continue
        tails.append(_bounded(main, number, Interval(bounds.upper, bounds.upper)))
        main = shorter
    return [main, *reversed(tails)]


def _bounded(loop_map: IndexingMap, number: int, bounds: Interval) -> IndexingMap:
    """`loop_map` with range variable `number` limited to `bounds`."""
    variables = list(loop_map.range_vars)
    variables[number] = replace(variables[number], bounds=bounds)
    return replace(loop_map, range_vars=tuple(variables)).simplify()


def _replace(loop: LoopOp, maps: list[IndexingMap]) -> list[LoopOp]:
    """Replaces `loop` by loops over `maps`, each with the results of the one before as its initial values."""
    builder = located_builder(InsertPoint.before(loop), loop)
    values: tuple[SSAValue, ...] = tuple(loop.inits)
    made = list[LoopOp]()
    for part_map in maps:
        if part_map.is_known_empty:
            continue
        part = builder.insert(LoopOp(loop.dims, values, part_map, loop.body.clone()))
        values = tuple(take_over(loop, part).results)
        made.append(part)
    Rewriter.replace_op(loop, (), values)
    return made
