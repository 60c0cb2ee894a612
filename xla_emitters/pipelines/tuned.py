"""`--tune price` of this map: lends its passes to the choices of `tuning/`, and takes the choices into its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context
from xla_emitters.emitters.emitter import Emitter, TunableEmitter
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.graph.plan import plan_program
from xla_emitters.graph.view import FusionView
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.passes import FOR_TOOLS, PassRow
from xla_emitters.pipelines.stitched_kernel import RowWay, StitchedFusion, emit_stitched, program_of, ways_of
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.text.hlo import print_hlo
from xla_emitters.trace import Remark
from xla_emitters.tuning import kernel_candidates, row_prices, split_candidates
from xla_emitters.tuning.priced_kernels import Passes, TriedKernel
from xla_emitters.tuning.row_prices import RowChoice

RunGraph = Callable[[ModuleOp, CompileOptions], ModuleOp]
"""Returns a module after all passes of the list "graph"."""


def cheapest_emitter(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
    """See `tuning/kernel_candidates.py`."""
    return kernel_candidates.cheapest_candidate(planned, _passes(options), emitter)


def with_cheapest_splits(
    module: ModuleOp, options: CompileOptions, run_graph: RunGraph
) -> tuple[CompileOptions, Sequence[Remark]]:
    """The options with the splits of `tuning/split_candidates.py`, and remarks with the figures of all that were priced."""

    def kernels_of(given: ModuleOp, splits: tuple[str, ...]) -> Sequence[PlannedKernel]:
        return plan_program(run_graph(given, replace(options, splits=splits))).kernels

    graph = partial(run_graph, module, options)
    splits, figures = split_candidates.cheapest_splits(graph, kernels_of, _passes(options))
    return replace(options, splits=splits), [Remark("tune", text, place) for text, place in figures]


def cheapest_rows(
    view: FusionView, found: StitchedFusion, plan: ModuleOp, options: CompileOptions
) -> RowChoice[RowWay]:
    """See `tuning/row_prices.py`. `plan`: a module with the fusion, named by `options.fusion`; None: with an ENTRY that is one kernel."""
    passes = _passes(options)

    def kernels_of_ways() -> list[tuple[RowWay, TriedKernel]]:
        arguments = kernel_arguments(view)
        return [
            (way, TriedKernel.of(view, arguments, emit_stitched(view, options.device, way), passes))
            for way in ways_of(found)
        ]

    def xlas_plan() -> Sequence[PlannedKernel]:
        module = plan.clone()
        _run(rows_of("graph"), replace(options, tune="xla", triton="split"), module)
        return plan_program(module).kernels

    key = (print_hlo(program_of(view)), repr(options.device), options.hero_rules)
    return row_prices.choose_way(key, (found.rows, found.columns), kernels_of_ways, xlas_plan, passes)


def _passes(options: CompileOptions) -> Passes:
    return Passes(
        options.device,
        options.toolchain,
        options.hero_rules,
        lower=partial(_run, rows_of("kernel"), options),
        to_ptx=partial(_to_ptx, options),
    )


def _to_ptx(options: CompileOptions, module: ModuleOp) -> str:
    _run(FOR_TOOLS, options, module)
    return compile_to_ptx(module, options.device.architecture, options.toolchain)


def _run(rows: Sequence[PassRow], options: CompileOptions, module: ModuleOp) -> None:
    context = make_context()
    for row in rows:
        run_pass(row.make(options), context, module)
