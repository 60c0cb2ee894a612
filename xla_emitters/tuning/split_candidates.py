"""`--tune price`: splits reductions with few results, whose blocks leave most multiprocessors idle, into parts for several blocks.

    r = f32[8,512] reduce(f32[8,4096,512]), dimensions={1}     64 blocks on 132 multiprocessors
    -> options with splits=("r=8",)                            512 blocks compute 8 parts of each result, a second kernel adds them

The second kernel costs a launch, so short reductions stay whole, for example f32[8,16384]: the time of both kernels is compared with
that of the best single kernel. Parts are added in a fixed order, the same in each run, but different from XLA's choice: both versions run
completely on the CPU, on positive numbers, and must agree within the error that reordering additions allows. How the kernels of the parts
are made is chosen later, as for other kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array, dtype
from xla_emitters.emitters.emit import emitter_for
from xla_emitters.emitters.emitter import TunableEmitter, Way
from xla_emitters.emitters.reduction_plans import plan_for
from xla_emitters.errors import Unsupported
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.control_computations import fusions_run_by
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.isolate_fusions import isolate_fusions
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.reduction_kinds import FusionReductions, find_reductions
from xla_emitters.graph.reduction_starts import identities_needed, rounding_of_sums
from xla_emitters.graph.view import is_scheduled
from xla_emitters.pricing.model import LEAST_GAIN, least_time
from xla_emitters.program import Slot
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.runtime.simt.execute import execute
from xla_emitters.tuning.agreement import differing, drawn_for
from xla_emitters.tuning.kernel_candidates import Candidate, priced_candidates
from xla_emitters.tuning.priced_kernels import Passes

BLOCKS_WANTED = (1, 2)
"""Numbers of blocks to try for the first kernel, in multiples of the multiprocessors."""
SHORTEST_PART = 32

KernelsOf = Callable[[ModuleOp, tuple[str, ...]], Sequence[PlannedKernel]]
"""(module, splits) -> its kernels with these reductions in parts."""


def cheapest_splits(
    graph_of: Callable[[], ModuleOp], kernels_of: KernelsOf, passes: Passes
) -> tuple[tuple[str, ...], Sequence[tuple[str, str]]]:
    """The splits that are expected to be faster, and the figures of all splits that were priced, each as a text and its place.

    graph_of  returns the module after the passes on its graph, without splits
    raises    ToolError without LLVM or ptxas and nvdisasm; errors of the executor
    """
    with take_notes():  # discarded: these kernels are candidates
        graph = graph_of()
        fusions = {fusion.instruction_name.data: fusion for fusion in fusions_run_by(entry_of(graph))}
        splits, figures = list[str](), list[tuple[str, str]]()
        for planned in plan_program(graph).kernels:
            if not (counts := _counts(planned, passes)):
                continue
            fusion = fusions.get(planned.name)
            alone = graph if fusion is None else isolate_fusions(graph, [fusion])
            chosen, reason = _cheapest(planned.name, counts, alone, kernels_of, passes)
            figures.append((f"%{planned.name}: {reason}", str(planned.view.place or "")))
            if chosen is not None:
                splits.append(f"{planned.name}={chosen}")
    return tuple(splits), figures


def _counts(planned: PlannedKernel, passes: Passes) -> Sequence[int]:
    """Numbers of parts to try; none if one kernel reads rows once, or has enough blocks, or the reduction cannot be split."""
    if is_scheduled(planned.view):
        return ()
    found, chip = find_reductions(planned.view), passes.device
    if isinstance(found, str) or emitter_for(planned.view, chip, passes.hero_rules).name != "reduction":
        return ()
    blocks, length = plan_for(found, chip).launch.blocks * len(found.groups), found.shape.length
    if blocks >= chip.cores or any(isinstance(identities_needed(hero), str) for hero in found.reduce_heroes):
        return ()
    counts, most = dict[int, None](), length // SHORTEST_PART
    for times in BLOCKS_WANTED if most > 1 else ():
        least = min(-(-times * chip.cores // blocks), most)
        # Equal parts need no padding, and parts that are multiples of vectors can be read as vectors.
        equal = [count for count in range(least, min(2 * least, most + 1)) if length % count == 0]
        counts[max(equal, key=lambda count: (length // count) & -(length // count), default=least)] = None
    return tuple(counts)


def _cheapest(
    name: str, counts: Sequence[int], alone: ModuleOp, kernels_of: KernelsOf, passes: Passes
) -> tuple[int | None, str]:
    """The best number of parts for the fusion in `alone`, None for one kernel; and the figures, as text."""

    def kernels(count: int) -> Sequence[PlannedKernel]:
        return kernels_of(alone, (f"{name}={count}",) if count else ())

    chip, rules = passes.device, passes.hero_rules
    (whole,) = kernels(0)
    emitter = emitter_for(whole.view, chip, rules)
    xlas, *others = (
        emitter.candidates(whole.view, chip) if isinstance(emitter, TunableEmitter) else [Way(emitter.name, emitter)]
    )
    (by_rule,) = priced_candidates([(whole, xlas)], passes)
    least = least_time(by_rule.cost.bytes_needed, chip) + least_time(0, chip)
    alone_text = f"one kernel of {by_rule.cost.blocks} blocks: {by_rule.cost.time:.4g} us"
    if least > (1 - LEAST_GAIN) * by_rule.cost.time:
        return None, f"{alone_text}; two kernels take {least:.4g} us at least"
    ways, of_parts = dict[int, Sequence[PlannedKernel]](), dict[int, list[tuple[PlannedKernel, Way]]]()
    for count in counts:
        parts = kernels(count)
        try:
            of_parts[count] = [(part, Way("", emitter_for(part.view, chip, rules))) for part in parts]
        except Unsupported:  # a part may be too short for a reduction, and have results besides it that no loop writes
            continue
        ways[count] = parts
    if not ways:
        return None, f"{alone_text}; no emitter takes its parts"
    pairs = [*((whole, way) for way in others), *(pair for parts in of_parts.values() for pair in parts)]
    priced = iter(priced_candidates(pairs, passes))
    whole_priced = [by_rule, *(next(priced) for _ in others)]
    best = min(whole_priced, key=lambda each: each.cost.time)
    parts_priced = {count: [next(priced) for _ in parts] for count, parts in of_parts.items()}
    times = {count: sum(each.cost.time for each in parts) for count, parts in parts_priced.items()}
    prices = [
        f"one kernel of {best.cost.blocks} blocks: {best.cost.time:.4g} us",
        *(
            f"{count} parts, {parts_priced[count][0].cost.blocks} blocks: {time:.4g} us"
            for count, time in times.items()
        ),
    ]
    chosen: int | None = None
    for count in sorted(times, key=lambda each: times[each]):
        if times[count] > (1 - LEAST_GAIN) * best.cost.time:
            break
        if (why := _disagreement(whole, by_rule, ways[count], parts_priced[count])) is None:
            chosen = count
            break
        prices.append(f"{count} parts not taken: {why}")
    ending = f"by expected times{', with sums in another, fixed order' if chosen else ''}"
    return chosen, f"{f'{chosen} parts' if chosen else 'one kernel'}, {ending}. {'; '.join(prices)}"


def _disagreement(
    whole: PlannedKernel, one: Candidate, parts: Sequence[PlannedKernel], candidates: Sequence[Candidate]
) -> str | None:
    """None if the kernels of the parts compute the same as the one kernel, within the error that reordering additions allows."""
    found = find_reductions(whole.view)
    assert isinstance(found, FusionReductions)
    tolerance = (
        rounding_of_sums(found.reduce_heroes) * 2 * found.shape.longest_chain(min(found.input_bits, found.output_bits))
    )
    arrays = drawn_for(whole.view, whole.arguments, tolerance)
    drawn = dict(zip((*whole.operands, *whole.results), arrays, strict=True))
    wanted = _run([whole], [one], drawn)
    made = _run(parts, candidates, drawn)
    for number, slot in enumerate(whole.results):
        differ = differing(made[slot].reshape(-1), wanted[slot].reshape(-1), tolerance)
        if differ.any():
            return f"result {number}: {int(differ.sum())} of {differ.size} elements differ"
    return None


def _run(
    kernels: Sequence[PlannedKernel], candidates: Sequence[Candidate], given: Mapping[Slot, Array]
) -> Mapping[Slot, Array]:
    """The arrays after the kernels ran one after the other, on copies of the given arrays."""
    arrays = {slot: array.copy() for slot, array in given.items()}
    for planned, candidate in zip(kernels, candidates, strict=True):
        slots, own = (*planned.operands, *planned.results), planned.arguments
        for slot, argument in zip(slots, own, strict=True):
            element = dtype(argument.array.dtype).numpy
            arrays.setdefault(slot, np.zeros(argument.array.elements, element))
        written = {argument.slice_index for argument in own if argument.written}
        execute(candidate.module, [arrays[slot].reshape(-1) for slot in slots], results=len(written))
    return arrays
