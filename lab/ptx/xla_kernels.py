"""Executes the real XLA's PTX of a corpus beside ours, on the same arrays: a table of what differs.

    python lab/ptx/xla_kernels.py XLA.json.gz CORPUS [BLOCKS [EVERY [FIRST]]]

XLA.json.gz holds, for each file of the corpus, XLA's PTX and the launches of its kernels. BLOCKS: how many blocks of each kernel (default
4; 0: all). EVERY: only each n-th file. Prints a row for each result that differs or is wrong, then counts.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections import Counter
from pathlib import Path

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.run_beside import OtherCode, run_beside
from xla_emitters.pipelines.compiler import plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Launch


def main(codes: str, corpus: str, blocks: int = 4, every: int = 1, first: int = 0) -> None:
    with gzip.open(codes, "rt") as stream:
        rows = json.load(stream)
    counts, worst, start = Counter[str](), Counter[int](), time.perf_counter()
    for name, row in list(rows.items())[first::every]:
        launches = [numbers for _, numbers in row.get("thunks", ()) if numbers]
        path = Path(corpus, name)
        if len(launches) != 1 or not path.exists():
            counts["left out: not one kernel"] += 1
            continue
        try:
            options = CompileOptions(target="h100")
            planned = plan_module(read_module(path), options).kernels
            if len(planned) != 1:
                counts["left out: several kernels here"] += 1
                continue
            (gx, gy, gz, bx, by, bz, _) = launches[0]
            other = OtherCode(row["ptx"], Launch((gx, gy, gz), (bx, by, bz)))
            for found in run_beside(path, {planned[0].name: other}, options, blocks=blocks):
                counts[f"ours {'right' if found.ours == 'right' else 'wrong'}"] += 1
                counts[f"XLA's {'right' if found.other == 'right' else 'wrong'}"] += 1
                if found.ulps is not None:
                    worst[found.ulps] += 1
                counts["same bits" if not found.differ else "other bits"] += 1
                if (found.ours, found.other) != ("right", "right"):
                    print(f"{name}  {found.result}  ours: {found.ours}; XLA's: {found.other}", flush=True)
        except XlaEmittersError as error:
            counts[f"refused: {error.message[:90]}"] += 1
            print(f"{name}  {error.message[:150]}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s")
    for text, count in sorted(counts.items()):
        print(f"{count:6} {text}")
    print("largest difference in ulps -> results:", dict(sorted(worst.items())))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
