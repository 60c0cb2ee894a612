"""A trace as text: dumps of the IR, numbered files, tables of times.

// -----// IR after xla-flatten-tensors //----- //          pass          ops        ms
module @gelu { ...                                           emit           24      14.1

00-hlo.hlo  01-partition.txt  02-emit.mlir ...  09-xla-loop-invariant-code-motion.mlir  ("// unchanged by ..." in its first line)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from xla_emitters.errors import file_errors
from xla_emitters.support.columns import aligned
from xla_emitters.trace.records import Trace

_SUFFIXES = {"partition": "txt", "llvm": "ll", "ptx": "ptx", "sass": "sass"}


def dumps(trace: Trace, *, changed_only: bool = False) -> Iterator[str]:
    """The IR after each recorded step, each with a line that names the step."""
    for step, is_changed in zip(trace, trace.changed(), strict=True):
        if step.ir is not None and (is_changed or not changed_only):
            yield f"// -----// IR after {step.name} //----- //\n{step.ir}"


def write_tree(trace: Trace, directory: Path) -> None:
    """One numbered file per recorded step; a file that the step did not change says so in its first line.

    raises UsageError where the directory cannot be made
    """
    with file_errors(f"cannot write to {directory}", "dump"):
        directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.glob("[0-9][0-9]-*"):
        stale.unlink()
    for number, (step, is_changed) in enumerate(zip(trace, trace.changed(), strict=True)):
        if step.ir is None:
            continue
        head = "" if is_changed else f"// unchanged by {step.name}\n"
        # A fusion's stage hlo is HLO text, a program's is MLIR.
        ending = "hlo" if step.ir.startswith("HloModule") else _SUFFIXES.get(step.stage or "", "mlir")
        (directory / f"{number:02d}-{step.name}.{ending}").write_text(f"{head}{step.ir}\n", "utf-8")


def stage_table(trace: Trace, *, every_pass: bool = False) -> str:
    """One row per stage (or per pass): name, ops, milliseconds."""
    timed = [*trace.timed(every_pass=every_pass)]
    rows = [("pass" if every_pass else "stage", "ops", "ms")]
    for step, seconds in timed:
        rows.append((step.name if every_pass else step.stage or "", str(step.ops or ""), f"{seconds * 1e3:.1f}"))
    rows.append(("total", "", f"{sum(seconds for _, seconds in timed) * 1e3:.1f}"))
    return "\n".join(aligned(rows, right={1, 2}))
