"""Time of the host in a warm call of a program on a GPU: on a stand-in for CuPy whose launches, copies and products do nothing.

    python -m benchmarks.gpu_calls                a table of all rows
    python -m benchmarks.gpu_calls layer          of these

A row: the sizes, launches and steps of a call, microseconds of a call on device arrays (the least of many), and what a step takes when
10 us are for the call itself. What a launch, a copy and an allocation take on the device and in the driver is not in these numbers, what
the stand-in takes to make an array is.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.executed_steps import steps_of
from xla_emitters.runtime.cuda.cupy_steps import CupyMemory

ROOT = Path(__file__).parents[1]
OF_A_CALL = 10.0
"""Microseconds that a call may take besides its steps."""
ROWS: Mapping[str, Mapping[str, int]] = {
    "rope": {},
    "one_hot": {},
    "cross_entropy": {},
    "layer": {"b": 8, "s": 128},
    "scan": {"b": 2, "s": 100},
    "decoder": {"b": 2, "s": 100},
    "until_large": {},
}
"""Program of tests/runtime/programs_table -> its sizes; those that are left out are the case's first ones."""


def measured(name: str, sizes: Mapping[str, int], seconds: float = 0.5) -> tuple[dict[str, int], int, int, float]:
    """Sizes, launches, steps and seconds of a call."""
    cupy: Any = import_module("cupy")
    cupy.decides = 1  # loops go on as long as the counters of the host allow
    programs = import_module("runtime.programs_table").programs
    case = programs()[name]
    program = case.compiled()
    program.compilation.lowering.__dict__.update(ptx="", wide_ptx="")  # launches do nothing
    sizes = {**case.case.sizes[0], **sizes}
    inputs = [cupy.asarray(array) for array in case.inputs(sizes)]
    on_gpu = program.on("gpu")
    on_gpu.run(inputs)
    before = on_gpu.platform.launches
    on_gpu.run(inputs)
    launches = on_gpu.platform.launches - before
    steps = steps_of(on_gpu.loaded, inputs, CupyMemory(cupy))
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        on_gpu.run(inputs)
        least = min(least, time.perf_counter() - start)
    return sizes, launches, steps, least


def main(names: Sequence[str]) -> int:
    os.environ["GPU_PROJECT"] = str(ROOT)
    sys.path[:0] = [str(ROOT / "lab/gpu/rehearsal"), str(ROOT / "tests")]
    print(f"{'program':16} {'sizes':24} {'launches':>8} {'steps':>6} {'us':>8} {'us a step':>10}")
    for name in names or ROWS:
        sizes, launches, steps, seconds = measured(name, ROWS.get(name, {}))
        each = max(0.0, 1e6 * seconds - OF_A_CALL) / max(steps, 1)
        said = " ".join(f"{symbol}={size}" for symbol, size in sizes.items())
        print(f"{name:16} {said:24} {launches:8} {steps:6} {1e6 * seconds:8.1f} {each:10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
