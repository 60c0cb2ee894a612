"""XLA's column of the page: each of XLA's states of a kernel beside ours; launch, registers, instructions, PTX.

    unit["xla"]   {"numbers": [["registers", "23", "23"], ...], "rows": [{"xla": "cse", "ours": "xla-cse", "verdict": "equal",
                   "texts": [7, 8], ...}], "ptx": [9, 10]}
    index["xla"]  {"only_ours": [...], "only_xla": [...]}

Numbers in `texts` and `ptx` are chunk numbers: XLA's text, then ours, both in the form in which the states are compared. A row
without `texts` is a state that XLA's log does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xla_emitters.explore.compare.compare import Comparison, KernelComparison
from xla_emitters.explore.compare.compare_report import number_rows, verdict_texts
from xla_emitters.explore.compare.pass_rows import ComparedPass
from xla_emitters.explore.page.data import Chunks
from xla_emitters.rewrite.kernel_entry import sanitize


def with_comparison(index: Mapping[str, Any], found: Comparison, chunks: Chunks) -> dict[str, Any]:
    """Adds XLA's side to the index of `data.program_data`, for each kernel that both compilers have."""
    kernels = {kernel.name: kernel for kernel in found.kernels}
    units = list[dict[str, Any]]()
    for unit in index["units"]:
        kernel = kernels.get(sanitize(unit["name"]))
        units.append({**unit, "xla": kernel and kernel_data(kernel, chunks)})
    first = max(range(len(units)), key=lambda number: _difference(units[number]["xla"]), default=0)
    only = {"only_ours": found.only_ours, "only_xla": found.only_xla}
    return {**index, "units": units, "xla": only, "first": first, "view": "xla"}


def _difference(xla: Mapping[str, Any] | None) -> tuple[int, ...]:
    """How much a kernel differs from XLA's: in its numbers, then in its states; the page opens on the one with most."""
    if xla is None:
        return (-1,)
    kinds = [row["kind"] for row in xla["rows"]]
    return sum(ours != theirs for _, ours, theirs in xla["numbers"]), kinds.count("differs")


def kernel_data(kernel: KernelComparison, chunks: Chunks) -> dict[str, Any]:
    """One kernel's comparison as plain data; its texts are added to `chunks`."""
    rows = [{"number": number, **_row(row, text, chunks)} for number, row, text in verdict_texts(kernel.passes)]
    return {
        "numbers": number_rows(kernel.ours, kernel.xla),
        "rows": rows,
        "ptx": [chunks.add(kernel.xla.ptx), chunks.add(kernel.ours.ptx)],
    }


def _row(row: ComparedPass, verdict: str, chunks: Chunks) -> dict[str, Any]:
    ours, xla = row.lines() if row.found else ([], [])
    return {
        "xla": row.xla,
        "ours": row.ours,
        "ops": [row.xla_ops, row.ours_ops],
        "kind": row.kind,
        "verdict": verdict,
        "texts": [chunks.add("\n".join(xla)), chunks.add("\n".join(ours))] if row.found else None,
    }
