"""What a page of `show`, `compare` and `serve` is about, compiled and priced: its index, for a module, a program, or a kernel's IR.

    module_index(read_module("gelu.hlo"), how, "gelu.hlo", chunks)
    program_index(compiled, "layer.mlir", how, {"b": 2}, chunks)        compiled(options) makes the program
    kernel_index(text, "kernel.mlir", how, chunks)

All go to the last stage that the installed tools can make.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from xla_emitters.errors import ToolError
from xla_emitters.runtime.block_threads import thread_count
from xla_emitters.settings import Toolchain
from xla_emitters.support.forked import Forked
from xla_emitters.tools.terminal import progress

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.explore.check.verdict import Verdict
    from xla_emitters.explore.cost.program_cost import LaunchAt
    from xla_emitters.explore.page.data import Chunks, Costs
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.pipelines.program_kernels import GpuLowering
    from xla_emitters.program import Program
    from xla_emitters.trace import Trace

JUDGED = "llvm-dialect"
"""The stage whose numbers are compared first."""
CHECKED_BLOCKS = 4
DEAREST = 4
"""Kernels of a program with the IR after each pass, if no other number was asked for."""
EVERY_PASS = 1.3
"""A kernel with the IR after each pass takes about so many times as long as one with the stages; the tools take alike for both."""


class Judgement(NamedTuple):
    """What is said of a text first: what it costs, and whether the numbers of one stage are right. None: it cannot be said."""

    costs: Costs | None
    verdict: Verdict | None


def module_index(
    module: ModuleOp,
    how: CompileOptions,
    file: str,
    chunks: Chunks,
    verdict: Verdict | None = None,
    *,
    priced: bool = True,
) -> dict[str, Any]:
    """The index of a module's page, with cost reports where the installed tools can make machine code; its texts are added to `chunks`.

    file    the file's name, for the progress line
    priced  whether it has cost reports at all
    """
    from xla_emitters.explore.cost.cost import cost
    from xla_emitters.explore.page.data import costs_of, program_data
    from xla_emitters.pipelines.compiler import compile_module

    how = to_the_last_stage(how)
    with progress(f"compiling {file}"):
        program = compile_module(module, how)
    costs = None
    if priced and how.stage == "sass":
        with progress(f"pricing {file}"):
            found = cost(module, targets=[how.target], **replace(how, line_info=False, verify=False).as_keywords())
        costs = costs_of(found)
    return program_data(program, chunks, verdict=verdict, costs=costs)


def module_verdict(module: ModuleOp, how: CompileOptions, file: str, *, keep_going: bool = False) -> Verdict:
    """Whether each stage's numbers are right, in some blocks of each kernel."""
    from xla_emitters.explore.check.check import check

    with progress(f"checking {file}"):
        keywords = replace(how, verify=True, record="none", line_info=False).as_keywords()
        return check(module, blocks=CHECKED_BLOCKS, keep_going=keep_going, **keywords)


def program_index(
    compiled: Callable[[CompileOptions], Program],
    name: str,
    how: CompileOptions,
    sizes: Mapping[str, int],
    chunks: Chunks,
    *,
    most: int = DEAREST,
    checked: bool = False,
) -> dict[str, Any]:
    """The index of a program's page; if sizes are given with its costs and accesses, and if `checked` its verdict at these sizes.

    compiled  compiles the program with options
    most      kernels with the IR after each pass, the dearest; sys.maxsize: all
    """
    from xla_emitters.explore.page.data import costs_of, dynamic_data
    from xla_emitters.pipelines.program_inputs import drawn_inputs

    how = replace(how, jobs=thread_count())
    every = _every_pass(how)
    program = compiled(every if most == sys.maxsize else replace(how, record="stages"))
    if len(program.outline.fusions) <= most < sys.maxsize:
        program = compiled(every)  # again: it is a small one
    stage = last_stage(how.toolchain)
    verdict = costs = None
    launches: list[LaunchAt] = []
    if checked:
        from xla_emitters.explore.check.program_stages import check_program

        with progress(f"checking {name}"):
            verdict = check_program(program, drawn_inputs(program, sizes, 0))
    if sizes or not program.symbols:
        from xla_emitters.explore.cost.cost import cost
        from xla_emitters.explore.cost.program_cost import launches_of

        with progress(f"running the host of {name}"):
            launches = launches_of(program, drawn_inputs(program, sizes, 0))
        if stage == "sass":
            with progress(f"pricing {name}"):
                priced = cost(program, sizes=sizes, targets=[program.target])
            costs = costs_of(priced)
    with progress(f"compiling the kernels of {name}"):
        traced = partial(_traces, stage)
        return dynamic_data(program, chunks, traced, sizes, most=most, verdict=verdict, costs=costs, launches=launches)


def _traces(stage: str, lowering: GpuLowering, in_full: Collection[str]) -> list[Trace]:
    """The traces of a program's kernels up to a stage, several made at once. raises like `GpuLowering.kernel_traces`"""
    sizes = {kernel.name: lowering.size_of(kernel.name) for kernel in lowering.kernels}
    groups = _groups_alike({name: size * (EVERY_PASS if name in in_full else 1) for name, size in sizes.items()})
    made = [Forked(partial(lowering.kernel_traces, stage, in_full, group)) for group in groups]
    traces = {trace.name: trace for group in made for trace in group.answer()}
    return [traces[name] for name in sizes]


def _groups_alike(sizes: Mapping[str, float]) -> list[list[str]]:
    """Names in groups whose sizes sum to about the same: as many groups as there are cores."""
    groups = [(0.0, list[str]()) for _ in range(min(thread_count(), len(sizes)))]
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        total, names = groups.pop(groups.index(min(groups, key=itemgetter(0))))
        groups.append((total + sizes[name], [*names, name]))
    return [names for _, names in groups]


def module_judgement(module: ModuleOp, how: CompileOptions) -> Judgement:
    """The prices of a module's kernels, where there are tools for them; whether the IR before LLVM is right, in some blocks."""
    from xla_emitters.explore.check.check import check
    from xla_emitters.explore.cost.cost import cost
    from xla_emitters.explore.page.data import costs_of

    keywords = replace(how, verify=False, record="none", line_info=False).as_keywords()
    costs = None
    if last_stage(how.toolchain) == "sass":
        costs = costs_of(cost(module, targets=[how.target], **keywords))
    return Judgement(costs, check(module, stages=JUDGED, blocks=CHECKED_BLOCKS, **keywords))


def program_judgement(
    compiled: Callable[[CompileOptions], Program], how: CompileOptions, sizes: Mapping[str, int]
) -> Judgement:
    """`module_judgement` of a program at these sizes: all elements of its results. Nothing, if a size is missing."""
    from xla_emitters.explore.check.program_stages import results_at
    from xla_emitters.explore.cost.cost import cost
    from xla_emitters.explore.page.data import costs_of
    from xla_emitters.pipelines.program_inputs import drawn_inputs

    program = compiled(replace(how, record="none", stage="ptx"))
    if program.symbols and not sizes:
        return Judgement(None, None)
    costs = None
    if last_stage(how.toolchain) == "sass":
        costs = costs_of(cost(program, sizes=sizes, targets=[program.target]))
    return Judgement(costs, results_at(program, drawn_inputs(program, sizes, 0), JUDGED))


def kernel_index(text: str, name: str, how: CompileOptions, chunks: Chunks, *, checked: bool = False) -> dict[str, Any]:
    """The index of the page of a kernel that is given as IR; if `checked`, with whether its stages agree."""
    from xla_emitters.explore.check.kernel_stages import stages_agree
    from xla_emitters.explore.page.data import program_data
    from xla_emitters.pipelines.kernel_ir import compile_kernel_ir

    program = compile_kernel_ir(text, name, to_the_last_stage(how))
    return program_data(program, chunks, verdict=stages_agree(program) if checked else None)


def to_the_last_stage(how: CompileOptions) -> CompileOptions:
    """The options with the last stage that can be made, every pass recorded, and the lines that each line comes from."""
    return replace(_every_pass(how), stage=last_stage(how.toolchain), line_info=True)


def _every_pass(how: CompileOptions) -> CompileOptions:
    """The options with the IR after every pass; after every rewrite, if that was asked for."""
    return how if how.record == "rewrites" else replace(how, record="passes")


def last_stage(toolchain: Toolchain) -> str:
    """The last stage that the installed tools can make. raises UsageError where the toolchain names a wrong tool."""
    from xla_emitters.lowering.toolchain.tools import find_tool, ptx_reason_missing

    if ptx_reason_missing(toolchain) is not None:
        return "llvm-dialect"
    try:
        for name in ("ptxas", "nvdisasm"):
            find_tool(name, toolchain)
    except ToolError:
        return "ptx"
    return "sass"
