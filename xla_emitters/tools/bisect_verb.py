"""`xla-emitters bisect`: the first kernel, stage and pass after which the numbers are wrong, and what that pass changed.

    kernel fusion, stage flat: xla-flatten-tensors (pass 12 of 41) changes results
      element   r0[0, 0, 3] is 0.5 after the pass, was 0.25; the reference has 0.25
      thread    block (0, 0, 0), thread (3, 0, 0)
      from      %multiply_1 (gelu.hlo:18:3)
      op        %9 = arith.addf %8, %extracted : bf16
      diff      - %9 = arith.mulf %8, %extracted : bf16
                + %9 = arith.addf %8, %extracted : bf16
      searched  7 executions
      since     git bisect start BAD GOOD, then: git bisect run sh -c '... check gelu.hlo ...'

Exit 3 where a pass is found, 70 where a pass itself fails, 0 where every execution is right.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from xla_emitters.errors import NumbersDiffer
from xla_emitters.support.limits import limited_iterations
from xla_emitters.tools.given import INPUTS, Given, read_given, refuse_sizes_with_inputs, sizes_given, told_if_drawn
from xla_emitters.tools.input_output import arrays_source, counted, refuse_second_reader
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import (
    add_arrays,
    add_comparison,
    add_compilation,
    add_input,
    add_max_iterations,
    add_sizes,
    compile_options,
)

if TYPE_CHECKING:
    from xla_emitters.explore.bisect.blame import Culprit, Search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    add_arrays(parser)
    add_sizes(parser)
    add_comparison(parser)
    add_max_iterations(parser)
    parser.add_argument(
        "--sanitize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="races, and reads of unwritten shared memory, are wrong too; on by default",
    )
    parser.add_argument("--json", action="store_true", help="as JSON: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    """Prints what was found. Returns 3 where a pass is wrong, else 0. raises the InternalError of a pass that fails."""
    refuse_second_reader("bisect", options.file, options.inputs)
    given = read_given(options)
    with progress(f"bisecting {options.file}"):
        search = _bisected(options, given)
    culprit = search.culprit
    if options.json:
        found = culprit and culprit.to_json()
        on = {} if search.device is None else {"device": search.device}
        print(json.dumps({"found": found, **on, "executed": search.executed, "kernels": search.kernels}, indent=2))
    elif culprit is None:
        kernels = counted(search.kernels, "kernel")
        print(f"no pass is wrong: {kernels}, {counted(search.executed, 'execution')}, one after every pass among them")
    else:
        where = [] if search.device is None else [f"on device {search.device}:"]
        print(*where, *culprit_lines(culprit), sep="\n")
        if not options.replace:  # a kernel that a person replaced was never right in any version
            print(f"  since     git bisect start BAD GOOD, then: {recipe(options, culprit.kind)}")
    if culprit is None:
        return 0
    if culprit.error is not None:
        sys.stdout.flush()
        raise culprit.error
    return NumbersDiffer.exit_code


def _bisected(options: argparse.Namespace, given: Given) -> Search:
    from xla_emitters.explore.bisect.bisect import bisect

    refuse_sizes_with_inputs(options)
    how, source = compile_options(options), given.checked_source(options)
    with (
        limited_iterations(options.max_iterations),
        told_if_drawn(given.is_program and not (options.inputs or given.inputs)),
    ):
        return bisect(
            source,
            sizes=sizes_given(options.sizes),
            blocks=options.blocks,
            sanitize=options.sanitize,
            inputs=arrays_source(options.inputs or given.inputs),
            seed=options.seed,
            atol=options.atol,
            rtol=options.rtol,
            devices=options.devices,
            instead=INPUTS,
            **replace(how, verify=True).as_keywords(),
        )


VERDICTS = {"crash": "0|3) exit 0;; 70) exit 1;;"}
"""Kind of a culprit -> what the exit codes of `check` say about a version. Any other code: it cannot be judged."""


def recipe(options: argparse.Namespace, kind: str) -> str:
    """The `git bisect` commands that find, in a clone of the sources, the commit since which `check` gives the same verdict on the file.

    kind  of the culprit: a version with the crash is bad, and one with wrong numbers has no crash
    """
    words = ["check", os.path.abspath(options.file) if options.file != "-" else "FILE"]
    for name in (
        "target",
        "hero_rules",
        "triton",
        "tune",
        "pipeline",
        "pass_options",
        "entry",
        "fusion",
        "sizes",
        "inputs",
        "seed",
        "blocks",
        "atol",
        "rtol",
    ):
        value = getattr(options, name)
        if value is not None and value != options.parser.get_default(name):
            value = os.path.abspath(value) if name == "inputs" and value != "-" else value
            words += [f"--{name.replace('_', '-')}", str(value)]
    if not options.sanitize:
        words.append("--no-sanitize")
    verdicts = VERDICTS.get(kind, "0) exit 0;; 3) exit 1;;")
    checked = f"PYTHONPATH=$PWD python -m xla_emitters.tools.main {shlex.join(words)}"
    return f"git bisect run sh -c {shlex.quote(f'{checked}; case $? in {verdicts} *) exit 125;; esac')}"


def culprit_lines(culprit: Culprit) -> list[str]:
    """The culprit as lines of the report."""
    where = f"kernel {culprit.kernel}, stage {culprit.stage}" if culprit.kernel else f"stage {culprit.stage}"
    place = f"pass {culprit.number} of {culprit.passes}" if culprit.number else "before the first pass"
    if (before := {"llvm": "llvm-dialect", "ptx": "llvm"}.get(culprit.stage)) is not None:
        place = f"behind the last of our passes, between {before} and {culprit.stage}"
    what = {"numbers": "changes results", "execution": "leaves code that fails", "crash": "fails"}[culprit.kind]
    if culprit.number == 0:
        what = {"numbers": "makes wrong results", "execution": "makes code that fails", "crash": "fails"}[culprit.kind]
    rows = list[tuple[str, str]]()
    if (element := culprit.element) is not None:
        was = f", was {element.was}" if element.was else ""
        after = "after it" if culprit.number else "as emitted"
        name = f"{element.result}{list(element.index)}"
        rows.append(("element", f"{name} is {element.now} {after}{was}; the reference has {element.wanted}"))
    else:
        rows += [("what" if number == 0 else "", line) for number, line in enumerate(culprit.details[:8])]
    rows += [("or", f"{name}: what is between them cannot be executed") for name in culprit.alternatives]
    if (thread := culprit.thread) is not None:
        writes = f", which writes {thread.writes}" if thread.writes else ""
        rows.append(("thread", f"block {thread.block_id}, thread {thread.thread_id}{writes}"))
    blame = culprit.blame
    if blame.place:
        rows.append(("from", blame.place))
    if blame.op:
        rows.append(("gone" if blame.is_gone else "op", blame.op))
    rows += [("diff" if number == 0 else "", line) for number, line in enumerate(blame.diff)]
    rows.append(("searched", counted(culprit.executed, "execution")))
    return [f"{where}: {culprit.name} ({place}) {what}", *(f"  {label:<8}  {text}".rstrip() for label, text in rows)]
