"""`xla-emitters cost`: the expected cost of each kernel of a fusion or a module on one or several devices, without a GPU."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.errors import NumbersDiffer, UsageError, XlaEmittersError
from xla_emitters.tools.findings import add_findings_format, at_instruction, findings_of, print_findings
from xla_emitters.tools.given import read_given, sizes_given
from xla_emitters.tools.input_output import write_chrome
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import (
    add_compilation,
    add_input,
    add_sizes,
    add_trace_format,
    check_trace_format,
    compile_options,
)

if TYPE_CHECKING:
    from xla_emitters.explore.cost.cost import CostReport
    from xla_emitters.explore.cost.cost_by_source import LineCost

EPILOG = """\
--fail-on takes an expression over the fields of docs/json.md, "cost --json". Where it holds for a kernel, the exit code is 3:
  xla-emitters cost FILE.hlo --fail-on 'spills > 0' --fail-on 'occupancy < 50' --fail-on 'bytes_ratio > 1.5 and bytes_needed > 1e6'
Times are what a model expects, not measurements: docs/cost_model.md"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}\n\n{EPILOG}"
    add_input(parser)
    add_compilation(parser)
    add_sizes(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="end with exit code 3 if the condition holds for a kernel: 'spills > 0'; may be given several times",
    )
    parser.add_argument(
        "--access-report", action="store_true", help="print also sectors and bank conflicts of each load and store"
    )
    parser.add_argument(
        "--by",
        choices=("kernel", "instruction", "source"),
        default="kernel",
        help="print a row for each kernel (default); below them, which HLO instructions the machine code of each is for; "
        "or a row for each line of the Python that the module was made from",
    )
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")
    parser.add_argument(
        "--trace", metavar="OUT.json", help="with --trace-format chrome: write the expected timeline of each device"
    )
    add_trace_format(parser, "the expected timeline")
    add_findings_format(parser)


def _by_source(report: CostReport, program: Any, sizes: Mapping[str, int] | None, *, as_json: bool) -> str:
    """The costs by line of Python, for each device. `program`: with unknown sizes, or a module that was read."""
    from xla_emitters.explore.cost.cost_by_source import by_source, source_table

    found: list[tuple[str, list[LineCost]]] = []
    for cost in report.costs:
        priced = cost.program
        outline = priced.outline if priced is not None else program.outlined(**(sizes or {}))
        found.append((cost.target, by_source(cost, outline.work)))
    if as_json:
        rows = [{"target": target, "lines": [line.to_json() for line in lines]} for target, lines in found]
        return json.dumps({"name": report.name, "by_source": rows}, indent=2)
    return "\n\n".join(source_table(report.name, *each) for each in found)


def run(options: argparse.Namespace) -> int:
    check_trace_format(options)
    if options.trace and options.trace_format != "chrome":
        raise UsageError("--trace of cost is a timeline", stage="cost", help="--trace-format chrome")
    if not options.format:
        return _run(options)
    if options.json or options.access_report or options.by != "kernel":
        raise UsageError("--format prints findings: without --json, --access-report and --by", stage="cost")
    try:
        return _run(options)
    except XlaEmittersError as error:
        print_findings(list(findings_of(error, options.file)), options.format)
        raise


def _run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.cost.cost import cost
    from xla_emitters.pipelines.compiler import read_module
    from xla_emitters.pricing.fail_on import condition
    from xla_emitters.pricing.report import origins_text
    from xla_emitters.runtime.simt.access_counts import access_table

    conditions = [condition(text) for text in options.fail_on]
    if options.json and (options.access_report or options.by == "instruction"):
        given = "--access-report" if options.access_report else "--by instruction"
        raise UsageError(f"{given} is text; it cannot be combined with --json", stage="cost")
    given, how = read_given(options), compile_options(options)
    targets = tuple(target.strip() for target in options.target.split(","))
    program: Any
    if given.is_program:
        program = given.compiled(replace(how, target=DEFAULT_DEVICE, record="none"))
        sizes = sizes_given(options.sizes)
    else:
        program, sizes = read_module(given.source), None
    with progress(f"pricing {options.file}"):
        report = cost(program, sizes=sizes, targets=targets, compared=True, **how.as_keywords())
    if options.trace:
        _write_timelines(options, report)
    if options.format == "sarif":
        pass
    elif options.by == "source":
        print(_by_source(report, program, sizes, as_json=options.json))
    else:
        print(json.dumps(report.to_json(), indent=2) if options.json else report)
    if options.access_report:
        for kernel in report.kernels:
            assert kernel.traffic is not None
            blocks = f"{kernel.traffic.sampled} of {kernel.blocks} blocks"
            print(f"\naccesses of {kernel.name} on {kernel.target}, {blocks}\n{access_table(kernel.traffic.accesses)}")
    for name, counts in (_origins(options, program, targets[0]) if options.by == "instruction" else {}).items():
        print(f"\n{origins_text(name, counts)}")
    sys.stdout.flush()
    failed = [(each, kernel) for each in conditions for kernel in report.kernels if each.holds(kernel)]
    if options.format:
        text = "" if given.is_program else given.text
        findings = [
            at_instruction(
                text, kernel.name, options.file, "fail-on", f"{each.text}: kernel {kernel.name} on {kernel.target}"
            )
            for each, kernel in failed
        ]
        print_findings(findings, options.format)
    for each, kernel in failed:
        print(f"failed: {each.text}: kernel {kernel.name} on {kernel.target}", file=sys.stderr)
    return NumbersDiffer.exit_code if failed else 0


def _write_timelines(options: argparse.Namespace, report: CostReport) -> None:
    """Writes when each kernel and call is expected to run, for each device."""
    from xla_emitters.trace.chrome import Span, Track

    tracks = [
        Track(
            f"{cost.target}: {stream}",
            [Span(s.name, s.start, s.end - s.start) for s in cost.timeline.spans if s.stream == stream],
        )
        for cost in report.costs
        for stream in dict.fromkeys(span.stream for span in cost.timeline.spans)
    ]
    write_chrome(options, tracks)


def _origins(options: argparse.Namespace, program: Any, target: str) -> dict[str, Mapping[str, int]]:
    """Of each kernel, the instructions of its machine code by HLO instruction."""
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.explore.cost.cost import instructions_by_origin
    from xla_emitters.pipelines.compiler import compile_module

    if isinstance(program, ModuleOp):
        how = replace(compile_options(options), target=target, stage="sass", record="stages", line_info=True)
        program = compile_module(program, how)
    return instructions_by_origin(program)
