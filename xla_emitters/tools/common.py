"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from xla_emitters.errors import ParseError, UsageError
from xla_emitters.trace import Step, Trace


def add_input(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    parser.add_argument(
        "files" if several else "file",
        metavar="FILE.hlo",
        nargs="+" if several else None,
        help="HLO text; '-' is standard input",
    )
    parser.add_argument(
        "--target",
        default="h200",
        metavar="DEVICE",
        help="device (h200, a6000 ...) or architecture (sm_90); default h200",
    )
    parser.add_argument("--fusion", metavar="NAME", help="only the fusion instruction of this name")


def add_dumps(parser: argparse.ArgumentParser) -> None:
    """The options that print what the pipeline did."""
    parser.add_argument(
        "--print-ir-after-all",
        "--mlir-print-ir-after-all",
        action="store_true",
        help="the IR after every pass, on stderr",
    )
    parser.add_argument(
        "--print-ir-tree-dir", "--xla_dump_to", metavar="DIR", help="the IR after every pass, as numbered files in DIR"
    )
    parser.add_argument("--time-passes", action="store_true", help="milliseconds of every pass, on stderr")
    parser.add_argument("--remarks", action="store_true", help="what passes declined, and why, on stderr")


def read_source(name: str) -> str | Path:
    """What `pipeline.compile` takes for a file argument: a path, or the text on standard input. raises ParseError."""
    if name != "-":
        return Path(name)
    text = decoded(sys.stdin.buffer.read(), "standard input")
    return text if "\n" in text else text + "\n"


def decoded(data: bytes, name: str) -> str:
    """`data` as UTF-8 text. raises ParseError naming the first bad byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{name} is not text: byte {error.start} is 0x{data[error.start]:02x}", stage="read"
        ) from error


def record_wanted(options: argparse.Namespace, otherwise: str) -> str:
    """How much IR the trace must hold for the dumps that were asked for."""
    return "passes" if options.print_ir_after_all or options.print_ir_tree_dir else otherwise


def print_dumps(options: argparse.Namespace, traces: tuple[Trace, ...]) -> None:
    """Prints and writes what `add_dumps` offers.

    raises UsageError where the directory cannot be made.
    """
    for trace in traces:
        if options.print_ir_after_all:
            for step in trace:
                print(f"// -----// IR after {step.name} //----- //\n{step.ir}", file=sys.stderr)
        if options.print_ir_tree_dir:
            directory = Path(options.print_ir_tree_dir) / (trace.name if len(traces) > 1 else "")
            write_tree(trace, directory)
        if options.time_passes:
            print(stage_table(trace, every_pass=True), file=sys.stderr)
        if options.remarks:
            for remark in trace.remarks:
                print(remark, file=sys.stderr)


def write_tree(trace: Trace, directory: Path) -> None:
    """One numbered file per step: `07-inline.mlir`; a file that the step did not change says so in its first line."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {directory}: {error.strerror}", stage="dump") from error
    for stale in directory.glob("[0-9][0-9]-*"):
        stale.unlink()
    before: str | None = None
    for number, step in enumerate(trace):
        suffix = {"hlo": "hlo", "partition": "txt", "llvm": "ll", "ptx": "ptx"}.get(step.stage or "", "mlir")
        head = f"// unchanged by {step.name}\n" if step.ir == before else ""
        (directory / f"{number:02d}-{step.name}.{suffix}").write_text(f"{head}{step.ir}\n")
        before = step.ir


def stage_table(trace: Trace, *, every_pass: bool = False) -> str:
    """One row per stage (or per pass): name, ops, milliseconds; a stage's time is that of all passes since the one before."""
    rows: list[tuple[str, str, float]] = []
    seconds = 0.0
    for step in trace:
        seconds += step.seconds
        if every_pass or step.stage:
            rows.append((step.name if every_pass else step.stage or "", ops_of(step), seconds * 1e3))
            seconds = 0.0
    width = max((len(name) for name, _, _ in rows), default=0)
    header = f"{'pass' if every_pass else 'stage':<{width}}  {'ops':>6}  {'ms':>8}"
    lines = [f"{name:<{width}}  {ops:>6}  {ms:>8.1f}" for name, ops, ms in rows]
    total = f"{'total':<{width}}  {'':>6}  {sum(ms for _, _, ms in rows):>8.1f}"
    return "\n".join([header, *lines, total])


def ops_of(step: Step) -> str:
    return str(step.ops) if step.op_counts else ""
