"""Runs the PTX of programs with unknown sizes on the stand-in for a GPU, at two sets of sizes, against the reference.

    python lab/ptx/programs.py FOLDER [EVERY [FIRST]]

Prints a row for each program that is wrong or refused, then counts.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from unit.runtime.fake_gpu import fake_cupy  # noqa: E402

import xla_emitters as xe  # noqa: E402
from xla_emitters.errors import XlaEmittersError  # noqa: E402
from xla_emitters.explore.verdict import reference_of  # noqa: E402
from xla_emitters.pipelines.program_gpu import GpuProgram  # noqa: E402
from xla_emitters.pipelines.program_inputs import drawn_inputs  # noqa: E402


def main(folder: str, every: int = 1, first: int = 0) -> None:
    counts, start = Counter[str](), time.perf_counter()
    for path in sorted(Path(folder).rglob("*.mlir"))[first::every]:
        for least in (2, 5):
            with fake_cupy():
                try:
                    program = xe.compile(path)
                    assert isinstance(program, xe.Program)
                    sizes = {symbol: least + number for number, symbol in enumerate(program.symbols)}
                    inputs = drawn_inputs(program, sizes, 0)
                    found = GpuProgram(program.compilation).run(inputs)
                    verdict = reference_of(program, inputs).compare(found)
                    counts["right" if verdict.ok else "wrong"] += 1
                    if not verdict.ok:
                        print(f"{path.name} {sizes}: {verdict.summary}", flush=True)
                except XlaEmittersError as error:
                    counts[f"refused: {error.message[:60]}"] += 1
                    print(f"{path.name}: {error.message[:200]}", flush=True)
                except Exception as error:
                    counts["failed"] += 1
                    print(f"{path.name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s", dict(counts))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
