"""`xla-emitters check`: runs every stage of each file and compares it with the NumPy reference; prints one row per file.

    a.hlo      ok  8 stages: 20 of 20 elements bit-identical to the NumPy reference
    b.hlo      not run                                        its message is on stderr
    1 of 2 files ok, 1 failed

A directory means all modules in it and below (`dump_directory`). A file that fails does not stop the others. Where they are checked:
`executors`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from xla_emitters.errors import NumbersDiffer, UsageError, XlaEmittersError
from xla_emitters.support.limits import limited_iterations, limited_memory
from xla_emitters.tools.dump_directory import files_in
from xla_emitters.tools.file_rows import FileRow, rows_of
from xla_emitters.tools.findings import Finding, add_findings_format, at_instruction, findings_of, print_findings
from xla_emitters.tools.given import INPUTS, Given, read_given, refuse_sizes_with_inputs, sizes_of, told_if_drawn
from xla_emitters.tools.input_output import (
    arrays_source,
    counted,
    print_left_out,
    print_warnings,
    refuse_second_reader,
)
from xla_emitters.tools.ptx_files import check_ptx, refuse_options_of_modules
from xla_emitters.tools.verb_options import (
    add_arrays,
    add_comparison,
    add_compilation,
    add_engine,
    add_input,
    add_keep_going,
    add_launch,
    add_max_iterations,
    add_max_memory,
    add_mixed_precision,
    add_sizes,
    compile_options,
    is_ptx,
)

if TYPE_CHECKING:
    from xla_emitters.explore.check.verdict import Verdict


@dataclass
class CheckedFile(FileRow):
    """The outcome of one file.

    summary   one line
    details   where numbers differ
    kernels   for a program of several kernels: the verdict of each (name, ok, summary, details)
    left_out  with --keep-going: name, computation, place and reason of each kernel that was not compiled
    findings  what is wrong, with its places
    """

    summary: str = "not run"
    details: tuple[str, ...] = ()
    kernels: tuple[dict[str, Any], ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def kept(cls, **fields: Any) -> Self:
        fields["findings"] = tuple(Finding(**each) for each in fields["findings"])
        return cls(**fields)

    @property
    def ok(self) -> bool:
        """Whether all was compiled, and all numbers are right."""
        return self.exit_code == 0

    def saw(self, error: XlaEmittersError) -> None:
        self.findings += tuple(findings_of(error, self.file))

    def lost(self, why: str) -> None:
        self.summary, self.findings = f"not run: {why}", (Finding("check", why, self.file),)

    def all_findings(self) -> Sequence[Finding]:
        """Its findings; of a file that failed without any, its messages."""
        if self.ok or self.findings:
            return self.findings
        return (Finding("check", self.messages.strip() or self.summary, self.file),)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        names = ("summary", "details", "kernels", "left_out")
        return {"file": self.file, "ok": self.ok, **{k: getattr(self, k) for k in names}, "error": self.error}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser, several=True)
    add_compilation(parser)
    add_keep_going(parser)
    parser.add_argument(
        "--stages", default="all", help="all (default), passes (after every pass), or a comma-separated list of stages"
    )
    add_arrays(parser)
    add_sizes(parser)
    add_launch(parser)
    add_mixed_precision(parser)
    add_comparison(parser)
    add_max_iterations(parser)
    add_max_memory(parser)
    parser.add_argument(
        "--no-sanitize",
        action="store_true",
        help="do not check for races and for reads of unwritten shared memory",
    )
    add_engine(parser, "file")
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")
    add_findings_format(parser)


def run(options: argparse.Namespace) -> int:
    """Prints one row per file; a file that fails does not stop the others. Returns the highest exit code."""
    files = [file for name in options.files for file in files_in(name)]
    if options.inputs and len(files) > 1:
        raise UsageError(f"--inputs needs exactly one file, got {len(files)}", stage="check")
    if options.json and options.format:
        raise UsageError("--json and --format both say what is printed", stage="check")
    refuse_second_reader("check", *files, options.inputs)
    if all(map(is_ptx, files)):  # of several files, an option may be for the others
        refuse_options_of_modules(options, files[0])
    import_module("xla_emitters.explore.check.check")  # before processes are forked, which then share it
    width, rows = max(map(len, files)), list[CheckedFile]()
    for row in rows_of(options, files, "checking", CheckedFile, check_file):
        rows.append(row)
        if not options.json and options.format != "sarif":
            print(f"{row.file:<{width}}  {row.summary}", flush=True)
            for kernel in row.kernels:
                print(f"{'':<{width}}    kernel {kernel['name']}: {kernel['summary']}", flush=True)
    passed = sum(row.ok for row in rows)
    if options.json:
        data = {"files": [row.to_json() for row in rows], "passed": passed, "failed": len(rows) - passed}
        print(json.dumps(data, indent=2))
    elif options.format == "sarif":
        pass
    elif len(files) > 1:
        print(f"{passed} of {counted(len(files), 'file')} ok, {len(files) - passed} failed")
    if options.format:
        print_findings([finding for row in rows for finding in row.all_findings()], options.format)
    return max(row.exit_code for row in rows)


def check_file(options: argparse.Namespace, name: str, row: CheckedFile) -> int:
    """Fills in a row; returns the file's exit code. raises what `check` raises."""
    with limited_memory(options.max_memory), limited_iterations(options.max_iterations):
        return _check_within(options, name, row)


def _check_within(options: argparse.Namespace, name: str, row: CheckedFile) -> int:
    from xla_emitters.explore.check.check import check
    from xla_emitters.program import Program

    if is_ptx(name):
        report = check_ptx(options, name)
        row.summary, row.details = report.summary, report.details
        for detail in report.details:
            print(f"    {detail}", file=sys.stderr)
        return 0 if report.ok else NumbersDiffer.exit_code
    given = read_given(options, name)
    source = given.checked_source(options)
    sizes = sizes_of(source, options.sizes, options.files) if isinstance(source, Program) else None
    if given.is_program:
        refuse_sizes_with_inputs(options)
    with told_if_drawn(given.is_program and not (options.inputs or given.inputs)):
        report = check(
            source,
            stages=options.stages,
            sizes=sizes,
            instead=INPUTS,
            seed=options.seed,
            inputs=arrays_source(options.inputs or given.inputs),
            blocks=options.blocks,
            atol=options.atol,
            rtol=options.rtol,
            sanitize=not options.no_sanitize,
            keep_going=options.keep_going,
            devices=options.devices,
            **replace(compile_options(options), verify=True).as_keywords(),
        )
    row.summary, row.details = report.summary, report.details
    fields = ("name", "ok", "summary", "details")
    row.kernels = tuple({name: getattr(kernel, name) for name in fields} for kernel in report.kernels)
    row.left_out = tuple(map(asdict, report.left_out))
    if not report.ok:
        row.findings = tuple(_different(report, given, name))
    if row.left_out:
        row.summary += f"; {len(row.left_out)} left out"
    if report.program is not None:
        print_warnings(report.program)
    for detail in report.details:
        print(f"    {detail}", file=sys.stderr)
    code = print_left_out(report.left_out)
    return code if report.ok else NumbersDiffer.exit_code


def _different(report: Verdict, given: Given, name: str) -> Iterator[Finding]:
    """The kernels whose numbers are wrong, each at its instruction; or the whole file."""
    wrong = [kernel for kernel in report.kernels if not kernel.ok] or [report]
    for each in wrong:
        message = "\n".join((each.summary, *each.details))
        yield at_instruction("" if given.is_program else given.text, each.name, name, "numbers", message)
