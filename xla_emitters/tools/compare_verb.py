"""`xla-emitters compare`: our kernels against those that the real XLA:GPU makes of the same module, pass by pass and in machine code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.errors import ToolError, Unsupported, UsageError, XlaEmittersError
from xla_emitters.tools.dump_directory import modules_in
from xla_emitters.tools.given import Given, read_given
from xla_emitters.tools.page_index import module_index
from xla_emitters.tools.show_verb import write_page
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import add_compilation, add_input, compile_options

if TYPE_CHECKING:
    from xla_emitters.explore.compare.compare import Comparison
    from xla_emitters.pipelines.options import CompileOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_compilation(parser)
    outputs = parser.add_mutually_exclusive_group()
    outputs.add_argument(
        "--diff",
        metavar="PASS",
        help="print how the IR after a pass differs, both in one form: its name, or its number in the table; or 'ptx'",
    )
    outputs.add_argument(
        "-o",
        "--output",
        metavar="PAGE.html",
        help="write the page of `show` with XLA's states, numbers and PTX beside ours",
    )
    outputs.add_argument(
        "--run",
        dest="run_both",
        action="store_true",
        help="execute both PTX texts of each kernel on the same arrays, on the CPU, and print where their results differ",
    )
    outputs.add_argument("--json", action="store_true", help="as JSON, with both PTX texts: see docs/json.md")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.compare.compare import compare
    from xla_emitters.explore.compare.compare_report import ComparedFile, diff_text, files_text, report_text

    how = compile_options(options)
    if options.file != "-" and Path(options.file).is_dir():
        return _directory(options, how)
    given = read_given(options)
    if given.is_program:
        raise Unsupported(
            f"{options.file} is a program in StableHLO",
            stage="compare",
            help=f"what XLA makes of it: xla-emitters optimize {options.file} -o module.hlo, then compare module.hlo",
        )
    if options.run_both:
        print(_run_both(given, how))
        return 0
    with progress(f"comparing {options.file}"):
        found = compare(given.source, how)
    if options.output is not None:
        _page(options, how, given.source, found)
    elif options.json:
        print(json.dumps(found.to_json(), indent=2))
    elif options.diff is not None:
        print(diff_text(found, options.diff))
    elif len(found.kernels) > 1:
        print(f"{files_text([ComparedFile(options.file, found)])}\none kernel in full: --fusion NAME")
    else:
        print(report_text(found))
    return 0


def _run_both(given: Given, how: CompileOptions) -> str:
    """The table of both sides' results."""
    from xla_emitters.explore.compare.compare import kernels_of_xla, same_kernels
    from xla_emitters.explore.compare.run_beside import OtherCode, beside_text, run_beside
    from xla_emitters.pipelines.compiler import plan_module, read_module
    from xla_emitters.rewrite.kernel_entry import sanitize

    with progress(f"asking XLA for {given.name}"):
        theirs = {kernel.name: kernel for kernel in kernels_of_xla(given.text, given.name, how) if kernel.ptx}
    ours = {sanitize(planned.name): planned.name for planned in plan_module(read_module(given.source), how).kernels}
    others = dict[str, OtherCode]()
    for name, of_xla in same_kernels(ours, theirs).items():
        kernel = theirs[of_xla]
        others[ours[name]] = OtherCode(kernel.ptx, kernel.launch, kernel.name, kernel.shared_bytes)
    with progress("running both"):
        return beside_text(run_beside(given.source, others, how))


def _page(options: argparse.Namespace, how: CompileOptions, source: str | Path, found: Comparison) -> None:
    from xla_emitters.explore.page.comparison import with_comparison
    from xla_emitters.explore.page.data import Chunks
    from xla_emitters.explore.page.write import page_html
    from xla_emitters.pipelines.compiler import read_module

    chunks = Chunks()
    index = with_comparison(module_index(read_module(source), how, options.file, chunks), found, chunks)
    write_page(options.output, page_html(index, chunks.texts))


def _directory(options: argparse.Namespace, how: CompileOptions) -> int:
    """Prints a row for each file; returns the exit code of the first file that cannot be compared."""
    from xla_emitters.explore.compare.compare import compare
    from xla_emitters.explore.compare.compare_report import ComparedFile, files_text

    of_one_file = {"--diff": options.diff is not None, "-o": options.output is not None, "--run": options.run_both}
    for option in (name for name, is_given in of_one_file.items() if is_given):
        raise UsageError(f"{option} is for one file", stage="compare")
    rows, code = list[ComparedFile](), 0
    for path in modules_in(options.file):
        name = str(path.relative_to(options.file))
        try:
            with progress(f"comparing {name}"):
                rows.append(ComparedFile(name, compare(path, how)))
        except XlaEmittersError as error:
            if isinstance(error, ToolError) and not rows:
                raise  # a missing tool or extra is missing for every file
            code = code or error.exit_code
            rows.append(ComparedFile(name, None, error.message))
    if options.json:
        files = [
            {"file": row.file, "error": row.error or None, **(row.found.to_json() if row.found else {})} for row in rows
        ]
        print(json.dumps({"files": files}, indent=2))
    else:
        print(files_text(rows))
    return code
