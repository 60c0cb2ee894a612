"""A comparison with XLA as text: a row for each pass, then machine code; for several kernels or files, a row each.

        XLA                ours                  XLA  ours  IR after it
                                                 ops   ops
     0  emit               emit                   29    24  differs: arith.constant 2/4 ...
     3  cse                xla-cse                26    24  equal
    25  xla-lower-tensors  xla-lower-tensors      69    65  differs: vector.insert 4/0, vector.from_elements 0/1

Passes that change nothing on both sides have no row. After `differs` are the ops whose counts differ, ours/XLA's; of a row in which they
are those of the row before, "the same ops".
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xla_emitters.errors import UsageError
from xla_emitters.explore.compare.compare import Comparison, KernelComparison, KernelFigures
from xla_emitters.explore.compare.ir_difference import VERDICTS, Difference
from xla_emitters.explore.compare.pass_rows import ComparedPass
from xla_emitters.support.columns import aligned

_SHOWN_OPS = 3


def report_text(found: Comparison) -> str:
    """All kernels, each with its tables."""
    parts = [kernel_text(kernel, found.target) for kernel in found.kernels]
    if alone := _one_sided(found):
        parts.append("\n".join(alone))
    return "\n\n".join(parts) or "no kernels"


def _one_sided(found: Comparison) -> list[str]:
    sides = ("only ours", found.only_ours), ("only XLA's", found.only_xla)
    return [f"{side}: {', '.join(names)}" for side, names in sides if names]


def kernel_text(kernel: KernelComparison, target: str) -> str:
    """One kernel: passes, machine code."""
    lines = [f"{kernel.name} on {target}"]
    if kernel.passes:
        lines += [*aligned(_pass_cells(kernel.passes), right={0, 3, 4}), *_silent(kernel.passes)]
    else:
        lines.append("XLA's kernel is not of its emitters: there is no log of passes")
    return "\n".join([*lines, "", *aligned([["", "ours", "XLA"], *number_rows(kernel.ours, kernel.xla)], right={1, 2})])


def _pass_cells(rows: Sequence[ComparedPass]) -> list[list[str]]:
    cells = [["", "XLA", "ours", "XLA", "ours", "IR after it"], ["", "", "", "ops", "ops", ""]]
    for number, row, text in verdict_texts(rows):
        ops = ["" if count is None else str(count) for count in (row.xla_ops, row.ours_ops)]
        cells.append([str(number), row.xla or "-", row.ours or "-", *ops, text])
    return cells


def verdict_texts(rows: Sequence[ComparedPass]) -> list[tuple[int, ComparedPass, str]]:
    """Number, row, and verdict as text, of each pass that changed something."""
    before, found = None, list[tuple[int, ComparedPass, str]]()
    for number, row in enumerate(rows):
        if row.changed:
            found.append((number, row, _verdict_text(row.found, before)))
            before = row.found
    return found


def _verdict_text(found: Difference | None, before: Difference | None) -> str:
    """The difference of two states in one line; `before` is the difference in the row above."""
    if found is None:
        return "not in XLA's log"
    if found.verdict != "differs":
        return found.verdict
    if before is not None and before.verdict == "differs" and before.ops == found.ops:
        return "differs: the same ops"
    ops = [f"{name} {ours}/{xla}" for name, (ours, xla) in found.ops.items()]
    more = [f"{len(ops) - _SHOWN_OPS} more"] if len(ops) > _SHOWN_OPS else []
    return f"differs: {', '.join([*ops[:_SHOWN_OPS], *more]) or 'as many of each op'}"


def _silent(rows: Sequence[ComparedPass]) -> list[str]:
    """Passes without a row."""
    silent = [row.xla or row.ours for row in rows if not row.changed]
    return [f"changed nothing: {', '.join(dict.fromkeys(silent))}"] if silent else []


def number_rows(ours: KernelFigures, xla: KernelFigures) -> list[list[str]]:
    """Launch and machine code: (what, ours, XLA's), as text."""
    rows = {
        "grid": [_sizes(code.grid) for code in (ours, xla)],
        "block": [_sizes(code.block) for code in (ours, xla)],
        "registers": [str(code.registers) for code in (ours, xla)],
        "instructions of a thread": [_instructions(code) for code in (ours, xla)],
        "loads, bytes each": [accesses(code.loads) for code in (ours, xla)],
        "stores": [accesses(code.stores) for code in (ours, xla)],
        "atomic updates": [accesses(code.atomics) for code in (ours, xla)],
        "shared bytes": [str(code.shared_bytes) for code in (ours, xla)],
        "spilled bytes": [str(code.spill_bytes) for code in (ours, xla)],
        "PTX instructions": [str(code.ptx_instructions) for code in (ours, xla)],
    }
    kept = {name: both for name, both in rows.items() if name != "atomic updates" or both != ["-", "-"]}
    return [[name, *both] for name, both in kept.items()]


def _sizes(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _instructions(code: KernelFigures) -> str:
    return f"{code.instructions}{'?' if code.unknown_loops else ''}"


def accesses(counts: Mapping[int, int]) -> str:
    """
    >>> accesses({16: 4, 2: 1})
    '4x16+1x2'
    """
    return "+".join(f"{counts[width]}x{width}" for width in sorted(counts, reverse=True) if counts[width]) or "-"


# ---- several kernels, several files -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedFile:
    """A file of a directory: its comparison, or the reason why there is none."""

    file: str
    found: Comparison | None
    error: str = ""


def files_text(rows: Sequence[ComparedFile]) -> str:
    """A row for each kernel of each file, totals, then the files that were not compared."""
    titles = ["file", *VERDICTS, "launch", "registers", "instructions", "ratio", "loads", "stores", "shared", "spilled"]
    units = ["", *("passes" for _ in VERDICTS), "", "", "a thread", "ours/XLA", "bytes", "bytes", "bytes", "bytes"]
    cells, total = [titles, units], Counter[str]()
    for row in rows:
        kernels = row.found.kernels if row.found else ()
        for kernel in kernels:
            name = row.file if len(kernels) == 1 else f"{row.file} {kernel.name}"
            cells.append([name, *_summary(kernel)])
            total.update(_kinds(kernel))
    if len(cells) > 3:
        cells.append(["all", *(str(total[kind]) for kind in VERDICTS), *("" for _ in titles[len(VERDICTS) + 1 :])])
    lines = aligned(cells, right=range(1, len(titles))) if len(cells) > 2 else []
    for row in rows:
        if row.found is None:
            lines.append(f"{row.file}: {row.error}")
        else:
            lines += [f"{row.file}: {each}" for each in _one_sided(row.found)]
    if len(cells) > 2:
        lines.append(
            "passes by what is between the IR after them\n"
            "launch, registers ...: ours/XLA's where they differ; '?': a loop of unknown length counts once"
        )
    return "\n".join(lines)


def _kinds(kernel: KernelComparison) -> Counter[str]:
    return Counter(row.kind for row in kernel.passes if row.kind and row.changed)


def _summary(kernel: KernelComparison) -> list[str]:
    counts, ours, xla = _kinds(kernel), kernel.ours, kernel.xla
    return [
        *(str(counts[kind]) if kernel.passes else "-" for kind in VERDICTS),
        "same" if (ours.grid, ours.block) == (xla.grid, xla.block) else "other",
        _both(str(ours.registers), str(xla.registers)),
        _both(_instructions(ours), _instructions(xla)),
        f"{ours.instructions / max(xla.instructions, 1):.2f}",
        _both(accesses(ours.loads), accesses(xla.loads)),
        _both(accesses(ours.stores), accesses(xla.stores)),
        _both(str(ours.shared_bytes), str(xla.shared_bytes)),
        _both(str(ours.spill_bytes), str(xla.spill_bytes)),
    ]


def _both(ours: str, xla: str) -> str:
    return ours if ours == xla else f"{ours}/{xla}"


# ---- one point ---------------------------------------------------------------------------------------------------------------------------


def diff_text(found: Comparison, point: str) -> str:
    """How the two sides differ after a pass, or in PTX, as unified diffs from XLA's to ours.

    point   "ptx", a number in the table of passes, or the name of a pass of either side; the last of several passes of that name
    raises  UsageError for an unknown pass
    """
    return "\n".join(line for kernel in found.kernels for line in _diff_of(kernel, point))


def _diff_of(kernel: KernelComparison, point: str) -> list[str]:
    if point == "ptx":
        ours, xla = kernel.ours.ptx.splitlines(), kernel.xla.ptx.splitlines()
    else:
        named = [row for n, row in enumerate(kernel.passes) if point in (str(n), row.xla, row.ours)]
        if not named:
            near = difflib.get_close_matches(point, {row.ours for row in kernel.passes} | {"ptx"}, n=1)
            raise UsageError(
                f"no pass '{point}' of kernel {kernel.name} is compared",
                stage="compare",
                help=f"did you mean '{near[0]}'?" if near else "a name or number in the table of passes, or 'ptx'",
            )
        ours, xla = named[-1].lines()
    where = "PTX" if point == "ptx" else f"after {point}"
    names = f"{kernel.name} {where}, XLA", f"{kernel.name} {where}, ours"
    return list(difflib.unified_diff(xla, ours, *names, lineterm="", n=2)) or [f"{kernel.name}: no difference"]
