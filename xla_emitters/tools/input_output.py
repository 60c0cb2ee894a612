"""What verbs read and print: files and standard input, dumps, warnings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xla_emitters.errors import UsageError, file_errors

if TYPE_CHECKING:
    from xla_emitters.explore.listing import LeftOut
    from xla_emitters.program import Program
    from xla_emitters.runtime.arrays import StandardInput
    from xla_emitters.trace.chrome import Track


def print_left_out(left_out: Sequence[LeftOut]) -> int:
    """Prints what was not compiled to standard error; returns the exit code: 1 if there is any."""
    for each in left_out:
        print(each, file=sys.stderr)
    return 1 if left_out else 0


def read_source(name: str) -> str | Path | bytes:
    """A file argument as `compile` takes it: a path, also of the only module in a directory; for '-' the text of standard input, or the
    bytes of a binary form.

    raises ParseError if that is neither, DataError for a directory with no module or with several
    """
    if name != "-":
        if not Path(name).is_dir():
            return Path(name)
        from xla_emitters.tools.dump_directory import only_module_in  # imported here: most names are those of files

        return only_module_in(name)
    from xla_emitters.support.decoding import decoded, kind_of

    data = standard_input()
    if kind_of(data):
        return data
    text = decoded(data, "standard input", "read")
    return text if "\n" in text else text + "\n"


def arrays_source(name: str | StandardInput | None) -> str | StandardInput | None:
    """The value of `--inputs` as `load_arrays` takes it; None where it was not given. Bytes are left as they are."""
    if name != "-":
        return name
    from xla_emitters.runtime.arrays import StandardInput

    return StandardInput(standard_input())


def standard_input() -> bytes:
    """All bytes of standard input. raises UsageError where it is closed."""
    if sys.stdin is None:
        raise UsageError("standard input is closed", stage="read")
    return sys.stdin.buffer.read()


def refuse_second_reader(stage: str, *names: str | None) -> None:
    """raises UsageError where more than one of the names is '-'."""
    if names.count("-") > 1:
        raise UsageError("'-' is given more than once, but standard input can be read only once", stage=stage)


def print_dumps(options: argparse.Namespace, program: Program, more: Sequence[Track] = ()) -> None:
    """Prints and writes the dumps of `add_dumps`: first the passes on HLO, if they changed anything, then each kernel.

    Remarks are printed last: those of all passes on HLO, then kernel by kernel. Files of passes on HLO are written to the directory itself,
    a kernel's files to a subdirectory with its name, or to the directory itself if there is only one trace.
    more  what a trace for Perfetto has besides passes
    raises UsageError where the directory cannot be made.
    """
    graph = [program.graph] if sum(program.graph.changed()) > 1 else []
    traces = (*graph, *program.compilation.recorded)
    for trace in traces:
        if options.print_ir_after_all or options.print_ir_after_change:
            from xla_emitters.trace.dumps import dumps  # imported here, and below: most commands print none

            for dump in dumps(trace, changed_only=not options.print_ir_after_all):
                print(dump, file=sys.stderr)
        if options.print_ir_tree_dir:
            from xla_emitters.trace.dumps import write_tree

            folder = "" if trace is program.graph or len(traces) == 1 else trace.name
            write_tree(trace, Path(options.print_ir_tree_dir) / folder)
        if options.time_passes and options.trace_format == "json":
            from xla_emitters.trace.dumps import stage_table

            print(stage_table(trace, every_pass=True), file=sys.stderr)
    if options.remarks:
        for trace in (program.graph, *program.compilation.recorded):
            for remark in trace.remarks:
                if not remark.help:  # a remark with help is a warning: `print_warnings` always prints it
                    print(remark, file=sys.stderr)
    if options.trace_format == "chrome":
        from xla_emitters.trace.chrome import pass_track

        write_chrome(options, [*map(pass_track, traces), *more])
    elif options.trace:
        write_file(options.trace, json.dumps([trace.to_json() for trace in traces]) + "\n")


def write_chrome(options: argparse.Namespace, tracks: Sequence[Track]) -> None:
    """Writes tracks for Perfetto to the file of --trace; with --time-passes alone to standard error."""
    from xla_emitters.trace.chrome import chrome_trace

    text = json.dumps(chrome_trace(tracks)) + "\n"
    if options.trace:
        write_file(options.trace, text)
    else:
        sys.stderr.write(text)


def print_warnings(program: Program) -> None:
    """Prints the warnings of the passes, and what the HLO text left out, to standard error."""
    if program.left_out:
        names = ", ".join(program.left_out)
        print(
            f"warning: the text leaves out the data of {names}; the code has zeros for it, and does not run",
            file=sys.stderr,
        )
    for remark in (remark for trace in (program.graph, *program.compilation.recorded) for remark in trace.remarks):
        if remark.help:
            place = f" at {remark.place}" if remark.place else ""
            print(f"warning: {remark.text}{place}\n  help: {remark.help}", file=sys.stderr)


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural unless the number is 1.

    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_file(path: str, text: str | bytes) -> None:
    """Writes `text` to a file, or for '-' to standard output. raises UsageError where it cannot be written, and for bytes to a terminal."""
    if path == "-" and isinstance(text, str):
        sys.stdout.write(text)
        return
    if path == "-":
        if sys.stdout.isatty():
            raise UsageError("a binary form is not written to a terminal", stage="output", help="-o FILE")
        sys.stdout.flush()
        sys.stdout.buffer.write(cast(bytes, text))
        return
    with file_errors(f"cannot write {path}", "output"):
        Path(path).write_bytes(text.encode() if isinstance(text, str) else text)
