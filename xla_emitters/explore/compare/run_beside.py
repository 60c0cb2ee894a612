"""Executes somebody else's PTX of a fusion beside ours, on the same arrays, without a GPU: two kernels, one table of differences.

    found = run_beside("gelu.hlo", {"fusion": OtherCode(xla_ptx, LaunchDimensions((24576, 1, 1), (128, 1, 1)))})
    print(beside_text(found))

      kernel   result         ours        other       differ            most
      fusion   r0 f32[6,512]  right       right       12 of 3072        1 ulp

Both are judged by the bounds of the HLO's ops (`explore.check.check`), with the sanitizer. Source: docs/ptx.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xla_emitters.dtypes import Array
from xla_emitters.explore.check.module_stages import CheckOptions, KernelCheck, StageComparison
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.library import expect
from xla_emitters.pipelines.compiler import compile_module, read_module, with_splits
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Kernel, LaunchDimensions
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.layouts import from_buffer
from xla_emitters.runtime.simt.raised_kernels import module_of_ptx
from xla_emitters.support.columns import aligned
from xla_emitters.text.ptx import read_ptx


@dataclass(frozen=True)
class OtherCode:
    """PTX with one kernel of that name, or only one, and how it is launched; shared_bytes: of dynamic shared memory."""

    ptx: str
    launch: LaunchDimensions
    name: str = ""
    shared_bytes: int = 0


@dataclass(frozen=True)
class ResultRow:
    """One result of one kernel.

    ours, other  "right", or what is wrong
    differ       elements that differ, of `total`
    ulps         the largest difference of numbers, in units in the last place; None for integers and for a result that only one side has
    """

    kernel: str
    result: str
    ours: str
    other: str
    differ: int
    total: int
    ulps: int | None


def run_beside(
    source: str | Path,
    others: Mapping[str, OtherCode],
    options: CompileOptions | None = None,
    *,
    blocks: int = 0,
    sanitize: bool = True,
) -> list[ResultRow]:
    """Runs each kernel of a module, and the other code for it, on drawn arrays.

    others  by the name of the kernel here
    sanitize  whether races are errors
    blocks  how many blocks of each to run; 0: all. Where the two launches differ, all are run
    raises  what `compile` and `module_of_ptx` raise
    """
    module = read_module(source)
    options = replace(options or CompileOptions(), record="none")
    options, _ = with_splits(module, options)
    how = CheckOptions("llvm-dialect", blocks, sanitize)
    comparison = StageComparison.of(module, options, how)
    options = replace(options, stage="ptx")
    program = compile_module(module, options, observers=comparison.observer, graph_observer=comparison.graph_observer)
    rows = list[ResultRow]()
    for own, kernel in zip(comparison.observed, program.kernels, strict=True):
        if (other := others.get(own.planned.name)) is not None:
            if other.launch != kernel.launch:
                own.run_all()
            rows += _rows(own, kernel, other)
    return rows


def _rows(own: KernelCheck, kernel: Kernel, other: OtherCode) -> list[ResultRow]:
    name = other.name or read_ptx(other.ptx, "").entries[0].name
    theirs = replace(kernel, name=name, ptx=other.ptx, launch=other.launch)
    ours_made, taken = own.run("ours", module_of_ptx(kernel)), len(read_ptx(other.ptx, "").functions[name].parameters)
    if taken != len(kernel.arguments):
        # XLA has an argument for a constant of ENTRY, which is in our kernel.
        made = Verdict(False, f"not run: takes {taken} arguments, ours {len(kernel.arguments)}")
    else:
        made = own.run("other", module_of_ptx(theirs, f"{name}.other.ptx", other.shared_bytes))
    rows = list[ResultRow]()
    for number, (slot, spec) in enumerate(zip(own.planned.results, own.result_arrays, strict=True)):
        label, part, words, arrays = f"{slot} {spec}", own.compared(number), list[str](), list[Array]()
        for found in (ours_made, made):
            if isinstance(found, Verdict):
                words.append(found.summary)
                continue
            array = from_buffer(found[number], spec)
            wrong = differing(array, own.reference.values[number]) & ~own.reference.bounds[number].admits(array) & part
            words.append("right" if not wrong.any() else f"{int(wrong.sum())} wrong")
            arrays.append(array)
        different = differing(*arrays) & part if len(arrays) == 2 else np.zeros((), np.bool_)
        ulps = ulps_apart(*(array[different] for array in arrays)) if len(arrays) == 2 and different.any() else None
        total = int(np.count_nonzero(part))
        rows.append(ResultRow(own.planned.name, label, words[0], words[1], int(different.sum()), total, ulps))
    return rows


def ulps_apart(one: Array, other: Array) -> int | None:
    """The largest number of floats between two; None for other types and where one of them is NaN."""
    if one.dtype.kind == "c":
        found = [ulps_apart(part(one), part(other)) for part in (np.real, np.imag)]
        return max((each for each in found if each is not None), default=None)
    if "float" not in one.dtype.name or np.isnan(one).any() or np.isnan(other).any():
        return None
    return int(expect.ulps_apart(one, other).max())


def beside_text(rows: list[ResultRow]) -> str:
    """The table."""
    cells = [("kernel", "result", "ours", "XLA's", "differ", "most")]
    for row in rows:
        most = "" if row.ulps is None else f"{row.ulps} ulp"
        cells.append((row.kernel, row.result, row.ours, row.other, f"{row.differ} of {row.total}", most))
    return "\n".join(aligned(cells))
