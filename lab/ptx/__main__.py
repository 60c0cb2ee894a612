"""PTX on a CPU: the whole corpus, modules, programs, XLA's own kernels, hostile texts; a row for each, then counts.

    make lab NAME=ptx                               all parts; an hour on one processor
    make lab NAME="ptx corpus xla --every 10"       these parts, each tenth of their rows

    corpus     PTX of the 410 fusions for sm_90, of 60 each for sm_75, sm_80 and sm_100, against the LLVM dialect and the reference
    xla        the real XLA's PTX of the same fusions beside ours, on the same arrays
    triton     the real XLA's Triton kernels, against NumPy
    programs   the 134 programs with unknown sizes, at two sets of sizes each, against JAX's values
    modules    the 140 modules, whole, against JAX's values
    llvm_ir    programs, modules and hostile texts once more, by the LLVM IR that PTX is made from
    hostile    cut and mutated PTX: a message with a place, a located fault, or numbers, and soon

Ends with 1 if a row is wrong. `programs` and `modules` launch their PTX through the stand-in for CuPy of the tests.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from benchmarks.table import header
from lab.ptx import corpus, hostile, llvm_ir, modules, programs, triton_kernels, xla_kernels
from lab.ptx.rows import Row

PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {
    "corpus": corpus.rows,
    "xla": xla_kernels.rows,
    "triton": triton_kernels.rows,
    "programs": programs.rows,
    "modules": modules.rows,
    "llvm_ir": llvm_ir.rows,
    "hostile": hostile.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="PTX on a CPU, over everything that there is.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="by default all")
    parser.add_argument("--every", type=int, default=1, help="each n-th row only")
    parser.add_argument("--first", type=int, default=0, help="leave out so many rows")
    options = parser.parse_args()
    wrong = 0
    for part in options.parts or PARTS:
        print(header(f"PTX on a CPU: {part}"), flush=True)
        counts, start = Counter[str](), time.perf_counter()
        for row in PARTS[part](options.every, options.first):
            counts.update(row.counted)
            wrong += not row.ok
            if row.text:
                print(row.text, flush=True)
        print(
            f"{time.perf_counter() - start:.0f} s: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}\n"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
