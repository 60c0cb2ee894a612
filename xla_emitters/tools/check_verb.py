"""`xla-emitters check`: runs every stage of each file and compares it with the NumPy reference; prints one row per file.

    a.hlo      ok  8 stages: 20 of 20 elements bit-identical to the NumPy reference
    b.hlo      not run                                        its message is on stderr
    1 of 2 files ok, 1 failed

A directory means all modules in it and below (`dump_directory`). A file that fails does not stop the others. With `-j` or `--timeout`
each file has a process of its own (`workers`), else all are checked in this process.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_emitters.errors import NumbersDiffer, UsageError
from xla_emitters.memory_limit import limited_memory
from xla_emitters.tools.crashes import reduced_crash
from xla_emitters.tools.dump_directory import files_in
from xla_emitters.tools.executors import FORMS, Kept, executor_named, run_on
from xla_emitters.tools.failures import INTERRUPTED, reported
from xla_emitters.tools.findings import Finding, add_findings_format, at_instruction, findings_of, print_findings
from xla_emitters.tools.given import INPUTS, Given, read_given, refuse_sizes_with_inputs, sizes_of, told_if_drawn
from xla_emitters.tools.input_output import (
    arrays_source,
    counted,
    print_left_out,
    print_warnings,
    refuse_second_reader,
)
from xla_emitters.tools.options import (
    add_arrays,
    add_compilation,
    add_input,
    add_keep_going,
    add_max_iterations,
    add_max_memory,
    add_mixed_precision,
    add_sizes,
    compile_options,
    max_iterations,
)
from xla_emitters.tools.ptx_files import add_launch, check_ptx, is_ptx
from xla_emitters.tools.terminal import marked_error, progress
from xla_emitters.tools.workers import Done, Job, run_jobs

if TYPE_CHECKING:
    from xla_emitters.explore.verdict import Verdict


@dataclass
class FileRow:
    """The outcome of one file.

    ok        everything was compiled, and all numbers are right
    summary   one line
    details   where numbers differ
    kernels   for a program of several kernels: the verdict of each (name, ok, summary, details)
    left_out  with --keep-going: name, computation, place and reason of each kernel that was not compiled
    findings  what is wrong, with its places
    exit_code of this file alone
    messages  what was printed on stderr
    """

    file: str
    ok: bool = False
    summary: str = "not run"
    details: tuple[str, ...] = ()
    kernels: tuple[dict[str, Any], ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    exit_code: int = 0
    messages: str = field(default="", repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/json.md says."""
        data = asdict(self)
        code, messages = data.pop("exit_code"), data.pop("messages")
        del data["findings"]
        data["error"] = None if self.ok else {"exit_code": code, "message": messages.rstrip("\n")}
        return data


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
    parser.add_argument(
        "--blocks", type=int, default=0, metavar="N", help="run at most N blocks, spread over the grid; 0: all"
    )
    parser.add_argument(
        "--devices", type=int, metavar="N", help="of a module with collectives: all of its N devices; needed above 16"
    )
    add_max_iterations(parser)
    add_max_memory(parser)
    parser.add_argument(
        "--no-sanitize",
        action="store_true",
        help="do not check for races and for reads of unwritten shared memory",
    )
    parser.add_argument(
        "--atol",
        "--abs_error_bound",
        type=float,
        help="allow this absolute difference instead of the error bounds of the ops",
    )
    parser.add_argument("--rtol", "--rel_error_bound", type=float, help="allow this relative difference instead")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="check N files at once; default 1")
    parser.add_argument("--executor", metavar="ENGINE", help=f"check files on the workers of an engine: {FORMS}")
    parser.add_argument(
        "--resume",
        metavar="RESULTS.jsonl",
        help="keep the row of each file there, and take those that are there already",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="a file that takes longer, without waiting for a busy CPU, has failed",
    )
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")
    add_findings_format(parser)


def run(options: argparse.Namespace) -> int:
    """Prints one row per file; a file that fails does not stop the others. Returns the highest exit code."""
    files = [file for name in options.files for file in files_in(name)]
    if options.inputs and len(files) > 1:
        raise UsageError(f"--inputs needs exactly one file, got {len(files)}", stage="check")
    if options.executor is not None and (options.jobs != 1 or options.timeout is not None or "-" in files):
        raise UsageError("--executor has workers of its own: no -j, no --timeout, no '-'", stage="check")
    if options.jobs < 1 or (options.timeout is not None and options.timeout <= 0):
        raise UsageError("-j and --timeout take numbers above 0", stage="check")
    if options.json and options.format:
        raise UsageError("--json and --format both say what is printed", stage="check")
    refuse_second_reader("check", *files, options.inputs)
    width, rows = max(map(len, files)), list[FileRow]()
    for row in checked(options, files):
        rows.append(row)
        sys.stderr.write(marked_error(row.messages, sys.stderr))
        if not options.json and options.format != "sarif":
            print(f"{row.file:<{width}}  {row.summary}", flush=True)
            for kernel in row.kernels:
                print(f"{'':<{width}}    kernel {kernel['name']}: {kernel['summary']}", flush=True)
        if row.exit_code == INTERRUPTED:
            break
    passed = sum(row.ok for row in rows)
    if options.json:
        data = {"files": [row.to_json() for row in rows], "passed": passed, "failed": len(rows) - passed}
        print(json.dumps(data, indent=2))
    elif options.format == "sarif":
        pass
    elif len(files) > 1:
        print(f"{passed} of {counted(len(files), 'file')} ok, {len(files) - passed} failed")
    if options.format:
        print_findings([finding for row in rows for finding in row.findings], options.format)
    return max(row.exit_code for row in rows)


def checked(options: argparse.Namespace, files: Sequence[str]) -> Iterator[FileRow]:
    """A row for each file, in order."""
    if options.resume is None:
        yield from _checked(options, files, lambda row: None)
        return
    kept = Kept(options.resume)
    keys = {name: _key(options, name) for name in files}
    known = {name: row for name in files if (row := kept.get(keys[name])) is not None}
    made = _checked(
        options, [name for name in files if name not in known], lambda row: kept.put(keys[row.file], asdict(row))
    )
    for name in files:
        if name not in known:
            yield next(made)
            continue
        findings = tuple(Finding(**each) for each in known[name].pop("findings", ()))
        yield FileRow(**known[name], findings=findings)


def _key(options: argparse.Namespace, name: str) -> str:
    """What the row of a file depends on: its bytes, the options, and this version of the package."""
    from xla_emitters.runtime.cache import own_fingerprint

    apart = {"run", "parser", "files", "jobs", "executor", "resume", "json", "timeout"}
    plain = sorted((key, repr(value)) for key, value in vars(options).items() if key not in apart)
    data = Path(name).read_bytes() if name != "-" else b""
    return hashlib.sha256(repr((name, plain, own_fingerprint())).encode() + data).hexdigest()


def _checked(options: argparse.Namespace, files: Sequence[str], done: Callable[[FileRow], object]) -> Iterator[FileRow]:
    """The same without `--resume`; `done` gets each row as soon as it is there."""
    if options.executor is None and options.jobs == 1 and options.timeout is None:
        for number, name in enumerate(files):
            with progress(said(f"checking {name}", len(files) - number - 1)):
                row = check_one(options, name)
            done(row)
            yield row
        return
    # Loaded once, before the fork: the forked processes share it.
    import_module("xla_emitters.explore.check")
    plain = argparse.Namespace(
        **{name: value for name, value in vars(options).items() if name not in ("run", "parser")}
    )
    jobs = [Job(name, partial(check_one, plain, name)) for name in files]

    def line(name: str, left: int) -> str:
        return said(f"checking {name}", left)

    if options.executor is not None:
        for outcome in run_on(executor_named(options.executor), jobs, line, lambda outcome: done(_row_of(outcome))):
            yield _row_of(outcome)
        return
    for outcome in run_jobs(jobs, options.jobs, options.timeout, line):
        row = _row_of(outcome)
        done(row)
        yield row


def _row_of(done: Done) -> FileRow:
    if isinstance(done.result, FileRow):
        return done.result
    message = f"error: [check] {done.name}: {done.failure}\n"
    findings = (Finding("check", done.failure, done.name),)
    return FileRow(done.name, summary=f"not run: {done.failure}", findings=findings, exit_code=1, messages=message)


def said(what: str, left: int) -> str:
    return f"{what}, {counted(left, 'more file')} to go" if left else what


def check_one(options: argparse.Namespace, name: str) -> FileRow:
    """Checks one file. Its errors and messages are recorded in the row, not raised."""
    row, messages = FileRow(name), io.StringIO()
    with redirect_stderr(messages):
        reduced = partial(reduced_crash, name, options)
        found = list[Finding]()
        row.exit_code = reported(
            partial(_check, options, name, row),
            reduced,
            lambda error: found.extend(findings_of(error, name)),
            debug=options.settings.debug,
        )
    row.findings += tuple(found)
    if row.exit_code and not row.findings:
        row.findings = (Finding("check", messages.getvalue().strip() or row.summary, name),)
    row.ok, row.messages = row.ok and row.exit_code == 0, messages.getvalue()
    return row


def _check(options: argparse.Namespace, name: str, row: FileRow) -> int:
    """Fills in a row; returns the file's exit code. raises what `check` raises."""
    with limited_memory(options.max_memory):
        return _check_within(options, name, row)


def _check_within(options: argparse.Namespace, name: str, row: FileRow) -> int:
    from xla_emitters.explore.check import check
    from xla_emitters.program import Program

    if is_ptx(name):
        report = check_ptx(options, name)
        row.ok, row.summary, row.details = report.ok, report.summary, report.details
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
            most_iterations=max_iterations(options, "check"),
            keep_going=options.keep_going,
            devices=options.devices,
            **replace(compile_options(options), verify=True).as_keywords(),
        )
    row.ok, row.summary, row.details = report.ok, report.summary, report.details
    row.kernels = rows_of_kernels(report)
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


def rows_of_kernels(verdict: Verdict) -> tuple[dict[str, Any], ...]:
    """Each kernel's verdict as plain data."""
    return tuple(
        {"name": kernel.name, "ok": kernel.ok, "summary": kernel.summary, "details": list(kernel.details)}
        for kernel in verdict.kernels
    )
