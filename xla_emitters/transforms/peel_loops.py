"""The last iteration of a loop goes into a loop of its own, where that frees the others from a check.

    xla_gpu.loop (%t)[%s] in (t)[s] -> (s * 64 + t), s in [0, 3],        xla_gpu.loop ... s in [0, 2]
                             s * 64 + t in [0, 249]                  ->   xla_gpu.loop ... s in [3, 3], t in [0, 57]

Range variables are looked at from the last, while the loops inside of them run less than 64 times in all: a body is copied only where it
is unrolled later. A variable whose loop without its last iteration would still be checked is left, and so is one that no constraint
mentions. The last iterations of an inner variable come after all others of the outer ones: what a loop hands on may not depend on
the order, as in reductions, or where each iteration writes elsewhere.
Source: docs/reference/2 3.3 "xla-gpu-peel-loops"; XLA peel_loops.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.xla_gpu import LoopOp
from xla_emitters.indexing import IndexingMap, Interval
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.locations import located_builder

MOST_ITERATIONS = 64
"""Beyond so many iterations of the loops inside, a variable is not peeled."""


@dataclass(frozen=True)
class PeelLoopsPass(KernelPass):
    """See the head of the file."""

    name = "xla-gpu-peel-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pending = [found for found in op.walk() if isinstance(found, LoopOp)]
        while pending:
            loop = pending.pop()
            parts = peeled(loop.map)
            if len(parts) > 1:
                pending += _replace(loop, parts)


def peeled(map: IndexingMap) -> list[IndexingMap]:
    """The main part, then the parts that were peeled off, those of outer variables first; only `map` if there are none."""
    main, tails = map, list[IndexingMap]()
    iterations = 1
    for number in reversed(range(len(map.range_vars))):
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


def _bounded(map: IndexingMap, number: int, bounds: Interval) -> IndexingMap:
    """`map` where range variable `number` is within `bounds`."""
    variables = list(map.range_vars)
    variables[number] = replace(variables[number], bounds=bounds)
    return replace(map, range_vars=tuple(variables)).simplify()


def _replace(loop: LoopOp, maps: list[IndexingMap]) -> list[LoopOp]:
    """Puts loops over `maps` for `loop`, each going on with what the one before hands on."""
    builder = located_builder(InsertPoint.before(loop), loop)
    values: tuple[SSAValue, ...] = tuple(loop.inits)
    made = list[LoopOp]()
    for map in maps:
        if map.is_known_empty:
            continue
        part = builder.insert(LoopOp(loop.dims, values, map, loop.body.clone()))
        part.attributes.update(loop.attributes)
        for result, old in zip(part.results, loop.results, strict=True):
            result.name_hint = old.name_hint
        values = tuple(part.results)
        made.append(part)
    Rewriter.replace_op(loop, (), values)
    return made
