"""What the page shows, as plain data: an index that is parsed at once, and texts that are unpacked when they are viewed.

    index   {"title", "target", "units": [{"name", "steps": [{"name", "stage", "changed", "text": 4, "lines": 5, ...}], ...}], ...}
    chunks  ["...", ...]      by number; a text that several steps share is stored once

A unit is anything with a trace: a kernel, the passes on HLO of a module, or a program with unknown sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dtypes import dtype, dtype_of
from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.explore.instruction_graph import fusion_graphs, instruction_graph
from xla_emitters.explore.page.own_code import own_steps
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.pipelines.program_kernels import LoweredKernel
from xla_emitters.pipelines.program_passes import EXECUTABLE_PROGRAM_STAGES
from xla_emitters.pipelines.program_report import report_of_passes
from xla_emitters.program import Kernel, Program
from xla_emitters.program.outline import Work, work_named
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.trace import Rewrite, Trace
from xla_emitters.trace.graph import Graph
from xla_emitters.trace.python_source import source_decision

# What makes these values is not loaded for a page without them.
if TYPE_CHECKING:
    from xla_emitters.explore.check.verdict import Verdict
    from xla_emitters.explore.cost.cost import CostReport
    from xla_emitters.explore.cost.program_cost import LaunchAt
    from xla_emitters.pipelines.program_kernels import GpuLowering

_EXECUTED = frozenset((*EXECUTABLE_STAGES, *EXECUTABLE_PROGRAM_STAGES[1:]))
"""The stages that `check` runs, for fusions and for programs: a program's other stages are compared with its first."""
Costs = Mapping[str, Sequence[Sequence[str]]]
"""Kernel name -> rows of its cost report: a label, and the value with its unit."""


@dataclass
class Chunks:
    """Texts by number, without duplicates."""

    texts: list[str] = field(default_factory=list[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, text: str) -> int:
        """Returns the number of the text, adding it if it is new."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def add_json(self, value: Any) -> int:
        return self.add(json.dumps(value, separators=(",", ":")))


def costs_of(report: CostReport) -> Costs:
    """The costs of a program's kernels on one device, the dearest kernel first."""
    from xla_emitters.pricing.report import kernel_rows  # a page without costs does not load what prices them

    kernels = sorted(report.kernels, key=lambda each: -each.time * each.launches)
    found = dict[str, Sequence[Sequence[str]]]()
    for kernel in kernels:
        found.setdefault(kernel.name, kernel_rows([kernel]))
    return found


def _first(units: Sequence[Mapping[str, Any]], kernels: Sequence[str], costs: Costs | None) -> int:
    """The unit that the page opens on: that of the dearest kernel; without costs, of the kernel with the most ops.

    units  those of the kernels are the last ones, in the order of `kernels`
    """
    if not kernels:
        return 0
    before = len(units) - len(kernels)
    if dearest := next((name for name in costs or () if name in kernels), None):
        return before + kernels.index(dearest)
    sizes = [
        max((step["ops"] for step in unit["steps"] if step["stage"] == EXECUTABLE_STAGES[-1]), default=0)
        for unit in units[before:]
    ]
    return before + sizes.index(max(sizes))


def by_time(names: Sequence[str], works: Sequence[Work], costs: Costs | None) -> list[str]:
    """A program's kernels, those that are expected to take longest first.

    works   the program's fusions with their times; of one that has several kernels, the first comes before those of other fusions
    costs   of the kernels that run at the given sizes; they come first
    """
    fusions = dict[str, list[str]]()
    for name in names:
        work = work_named(works, name)
        fusions.setdefault(work.name if work else name, []).append(name)
    times = {work.name: work.total for work in works}
    dearest = sorted(fusions, key=lambda fusion: -times.get(fusion, 0.0))
    ranked = [name for name in costs or () if name in names]
    ranked += (fusions[fusion][0] for fusion in dearest)
    ranked += (name for fusion in dearest for name in fusions[fusion])
    return [*dict.fromkeys(ranked)]


def program_data(
    program: Program, chunks: Chunks, *, verdict: Verdict | None = None, costs: Costs | None = None
) -> dict[str, Any]:
    """The index of a module's page; its texts are added to `chunks`.

    program  compiled with its IR recorded, and with `line_info` for lines of PTX and SASS
    verdict  the result of `check`; None: it was not run
    """
    text = _recorded(program.graph, "graph") or program.hlo
    module = parse_hlo(text, f"<{program.name}>") if text else None  # of a kernel that is given as IR there is none
    graphs = fusion_graphs(module) if module else dict[str, Graph]()
    verdicts = {each.name: each for each in verdict.kernels} if verdict else {}
    units = list[dict[str, Any]]()
    for kernel, trace in zip(program.kernels, program.traces, strict=False):
        own = verdicts.get(trace.name) or verdict
        unit = unit_data(trace, chunks, own, kernel.name)
        unit |= _kernel_data(kernel, trace, chunks)
        unit |= {"graph": _nodes(graphs.get(kernel.name)), "cost": (costs or {}).get(kernel.name)}
        units.append(unit)
    if len(units) != 1:
        unit = unit_data(program.graph, chunks, verdict) | {
            "name": f"{program.name} (HLO)",
            "graph": _nodes(instruction_graph("", entry_of(module)) if module else None),
        }
        units.insert(0, unit)
    return {
        "title": program.name,
        "target": program.target,
        "explain": program.explain(),
        "verdict": _verdict(verdict),
        "units": units,
        "first": _first(units, [kernel.name for kernel in program.kernels][: len(program.traces)], costs),
    }


def dynamic_data(
    program: Program,
    chunks: Chunks,
    traced: Callable[[GpuLowering, Collection[str]], Sequence[Trace]],
    sizes: Mapping[str, int],
    *,
    most: int,
    verdict: Verdict | None = None,
    costs: Costs | None = None,
    launches: Sequence[LaunchAt] = (),
) -> dict[str, Any]:
    """The index of the page of a program with unknown sizes: first the program, then its kernels.

    traced   the traces of all kernels, with the IR after each pass of the kernels of these names
    sizes    of symbols, those that are given
    most     how many kernels have the IR after each pass, the first of `by_time`
    verdict  the result of `check_program` at these sizes; None: it was not run
    costs    at these sizes
    launches those of a run at them; the accesses of a kernel are those of its first one
    raises   like `traced`
    """
    made, outline = lowerings_of(program), program.outlined(**sizes)
    names = [kernel.name for kernel in made.lowering.kernels]
    ranked = by_time(names, outline.work, costs)
    in_full = ranked[:most]
    traces, hlo = traced(made.lowering, in_full), made.at("hlo")
    # Kernels are units of their own.
    whole = Trace(made.passes.name, [*made.passes.steps, *made.lowering.before_kernels.steps])
    units = [
        unit_data(whole, chunks, verdict)
        | {
            "graph": _nodes(instruction_graph("", entry_of(hlo), sizes_of(hlo))),
            "short": any(step.ir is None for step in whole),
        }
    ]
    for kernel, trace in zip(made.lowering.kernels, traces, strict=True):
        unit = unit_data(trace, chunks, None, kernel.name)
        if (work := work_named(outline.work, kernel.name)) and work.source:
            said = source_decision(work.source)
            unit["steps"][0]["decisions"].append({"topic": said.topic, "text": said.text})
        unit |= {"cost": (costs or {}).get(kernel.name)}
        own = [launch for launch in launches if launch.name == kernel.name]
        unit |= {"idle": bool(launches) and not own, "short": kernel.name not in in_full}
        units.append(unit | (_launch_data(kernel, own, trace, chunks) if own else {}))
    return {
        "title": program.name,
        "target": program.target,
        "explain": "\n".join([*outline.summary(), *report_of_passes(made)]),
        "verdict": _verdict(verdict),
        "units": units,
        "first": 1 + names.index(ranked[0]) if ranked else 0,
    }


def unit_data(trace: Trace, chunks: Chunks, verdict: Verdict | None, kernel: str = "") -> dict[str, Any]:
    """The steps of a trace, and for each of their lines the HLO instructions that it comes from, as indices into `names`.

    kernel  the kernel's name in PTX and SASS
    """
    # Most lines are from the same instructions as another.
    names, numbers = dict[str, int](), dict[tuple[str, ...], list[int]]()

    def numbered(line: tuple[str, ...]) -> list[int]:
        if line not in numbers:
            numbers[line] = [names.setdefault(name, len(names)) for name in line]
        return numbers[line]

    steps, of_stage, before = list[dict[str, Any]](), _verdicts(trace, verdict), ""
    for step, is_changed in zip(own_steps(trace, kernel), trace.changed(), strict=True):
        sources = list(map(numbered, step.sources))
        lines = {"s": sources, "o": list(step.origins)}
        steps.append(
            {
                "name": step.name,
                "stage": step.stage,
                "changed": is_changed,
                "ms": round(step.seconds * 1e3, 2),
                "ops": step.ops,
                "text": None if step.ir is None else chunks.add(step.ir),
                "lines": None if step.ir is None else chunks.add_json(lines),
                "remarks": [asdict(remark) for remark in step.remarks],
                "decisions": [{"topic": each.topic, "text": each.text} for each in step.decisions],
                "verdict": of_stage.get(step.stage or ""),
                "rewrites": chunks.add_json(edits_of(before, step.rewrites)) if step.rewrites else None,
                "left_out": step.left_out,
            }
        )
        before = step.ir if step.ir is not None else before
    return {"name": trace.name, "names": list(names), "steps": steps, "verdict": _verdict(verdict)}


def _nodes(graph: Graph | None) -> list[dict[str, Any]] | None:
    """A graph as the page draws it. Hidden nodes, ops that compute sizes, are shown when they are asked for."""
    return graph and [
        {
            "name": node.label,
            "op": node.kind,
            "type": node.type,
            "reads": [int(read) for read in node.reads],
            "root": node.is_root,
            "hidden": node.is_hidden,
        }
        for node in graph.nodes
    ]


def edits_of(before: str, rewrites: Sequence[Rewrite]) -> list[dict[str, Any]]:
    """The rewrites of a pass. Each text is an edit of the last: [line, count, lines] puts `lines` for `count` of them from `line` on."""
    rows, was = list[dict[str, Any]](), before.split("\n")
    for rewrite in rewrites:
        now, row = rewrite.ir.split("\n"), asdict(rewrite)
        del row["ir"]
        first = _equal(was, now)
        last = _equal(was[first:][::-1], now[first:][::-1])
        rows.append(row | {"edit": [first, len(was) - last - first, now[first : len(now) - last]]})
        was = now
    return rows


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many elements are equal before the first one that differs."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (left, right) in pairs if left != right), min(len(one), len(other)))


def _kernel_data(kernel: Kernel, trace: Trace, chunks: Chunks) -> dict[str, Any]:
    launch = {"grid": kernel.launch.grid, "block": kernel.launch.block, "shared": kernel.shared_bytes}
    ir = _recorded(trace, "llvm-dialect")
    found = None
    if ir is not None:
        # The executor is loaded where there is something to run.
        from xla_emitters.explore.page.thread_accesses import launch_of, touched

        found = touched(launch_of(kernel), ir)
    arguments = [
        _argument(f"{a.kind} {a.index}", str(a.array), dtype(a.array.dtype).bits, a.array.shape, a.array.minor_to_major)
        for a in kernel.arguments
    ]
    return _of_launch(launch, arguments, found, chunks)


def _launch_data(kernel: LoweredKernel, launches: Sequence[LaunchAt], trace: Trace, chunks: Chunks) -> dict[str, Any]:
    """As `_kernel_data`, of the first of these launches of a program's kernel."""
    at, shared = launches[0], kernel.shared_bytes + launches[0].shared_bytes
    on_buffers, ir = _recorded(trace, "kernels"), _recorded(trace, "llvm-dialect")
    if on_buffers is None or ir is None:
        return {}
    from xla_emitters.explore.page.thread_accesses import touched  # imported here, as above

    found = touched(at, ir)
    (function,) = (op for op in parse_ir(on_buffers).walk() if isinstance(op, gpu.FuncOp))
    arguments = list[dict[str, Any]]()
    for given, value in zip(function.body.blocks[0].args, at.arguments, strict=False):
        of = str(value), 0, (), ()
        if isinstance(value, np.ndarray):
            assert isa(given.type, MemRefType[Attribute])
            element = dtype_of(given.type.element_type)
            of = f"{element.name}[{value.size}]", element.bits, (value.size,), (0,)
        arguments.append(_argument(f"%{given.name_hint}", *of))
    launch = {"grid": at.launch.grid, "block": at.launch.block, "shared": shared, "launches": len(launches)}
    return _of_launch(launch, arguments, found, chunks)


def _argument(what: str, of: str, bits: int, shape: Sequence[int], order: Sequence[int]) -> dict[str, Any]:
    return {"what": what, "type": of, "bits": bits, "shape": shape, "order": order}


def _of_launch(
    launch: Mapping[str, Any], arguments: Sequence[dict[str, Any]], found: Mapping[str, Any] | None, chunks: Chunks
) -> dict[str, Any]:
    named = [{"name": f"argument {number}", **each} for number, each in enumerate(arguments)]
    return {"launch": launch, "arguments": named, "threads": None if found is None else chunks.add_json(found)}


def _recorded(trace: Trace, stage: str) -> str | None:
    return next((step.ir for step in trace if step.stage == stage), None)


def _verdict(verdict: Verdict | None) -> dict[str, Any] | None:
    return verdict and {"ok": verdict.ok, "summary": verdict.summary, "details": list(verdict.details)}


def _verdicts(trace: Trace, verdict: Verdict | None) -> dict[str, str]:
    """ "ok", "wrong" or "not run" for each stage that can be executed; the check ends at the first wrong stage."""
    if verdict is None:
        return {}
    stages: Sequence[str] = [stage for stage in trace.stages if stage in _EXECUTED]
    if verdict.ok:
        return dict.fromkeys(stages, "ok")
    said = verdict.summary.removeprefix("stage ")
    wrong = next((stage for stage in stages if said.startswith((f"{stage}:", f"{stage} "))), None)
    if wrong is None:
        return {}
    place = stages.index(wrong)
    return {stage: "ok" if n < place else "wrong" if n == place else "not run" for n, stage in enumerate(stages)}
