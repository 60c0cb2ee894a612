"""The real XLA's PTX of the corpus's fusions beside ours, on the same arrays, whole grids up to 16 MB: which differ, and by how much.

`lab/gpu/xla_corpus.json.gz` holds XLA's PTX and the launches of its kernels, made by `lab/gpu/xla_ptx.py` for an H100.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime.corpus import CORPUS

from lab.ptx.corpus import blocks_of
from lab.ptx.rows import Row
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.compare.run_beside import OtherCode, ResultRow, run_beside
from xla_emitters.pipelines.compiler import plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import LaunchDimensions

CODES = Path(__file__).parents[1] / "gpu/xla_corpus.json.gz"
OPTIONS = CompileOptions(target="h100")


def rows(every: int, first: int) -> Iterator[Row]:
    with gzip.open(CODES, "rt") as stream:
        codes = json.load(stream)
    for name, code in list(codes.items())[first::every]:
        yield from rows_of(name, code)


def rows_of(name: str, code: dict[str, Any]) -> Iterator[Row]:
    launches = [numbers for _, numbers in code.get("thunks", ()) if numbers]
    if not (CORPUS / name).exists():
        yield Row(f"{name:58} is not in the corpus here", True, ("left out",))
        return
    if len(launches) != 1:
        yield Row(f"{name:58} XLA launches {len(launches)} kernels: {code.get('error', '')}", True, ("left out",))
        return
    try:
        planned = plan_module(read_module(CORPUS / name), OPTIONS).kernels
        if len(planned) != 1:
            yield Row(f"{name:58} has {len(planned)} kernels here", True, ("left out",))
            return
        (gx, gy, gz, bx, by, bz, shared) = launches[0]
        other = OtherCode(code["ptx"], LaunchDimensions((gx, gy, gz), (bx, by, bz)), shared_bytes=shared)
        blocks = blocks_of(name, "h100")
        found = run_beside(CORPUS / name, {planned[0].name: other}, OPTIONS, blocks=blocks)
        for each in found:
            yield row(name, each)
        if any("a race" in each.other for each in found):
            for each in run_beside(CORPUS / name, {planned[0].name: other}, OPTIONS, blocks=blocks, sanitize=False):
                yield row(f"{name}, races allowed", each)
    except XlaEmittersError as error:
        yield Row(f"{name:58} {error.message}", False, ("refused",))


def row(name: str, found: ResultRow) -> Row:
    ulps = "" if found.ulps is None else f", at most {found.ulps} ulp"
    text = f"{name:58} {found.result:32} ours {found.ours}, XLA's {found.other}, {found.differ} of {found.total} differ{ulps}"
    counted = (
        f"ours {'right' if found.ours == 'right' else 'wrong'}",
        f"XLA's {'right' if found.other == 'right' else 'wrong'}",
        "of other bits" if found.differ else "of the same bits",
    )
    return Row(text, found.ours == found.other == "right", counted)
