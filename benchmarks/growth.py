"""Compile time against the size of what is compiled, and start-up times: `python -m benchmarks.growth`.

    n element-wise ops in a chain with side inputs; HLO text to the LLVM dialect (our passes), and on to PTX where LLVM takes it
    n kernels of twelve ops in one module, by one process and by two (-j 2), to PTX
    n instructions of HLO text, read
    import xla_emitters; a command from cold, as a user's shell starts it

The time per op, kernel and instruction should not grow with n. Best of `--rounds`; wall time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import xla_emitters as xe
from benchmarks.table import header, print_table
from xla_emitters.hlo_text import parse_hlo

SIZES = (10, 100, 1000, 5000)
TO_PTX_AT_MOST = 1000
"""Ops; beyond, the time is LLVM's."""
KERNELS = (25, 100, 400)
OPS_A_KERNEL = 12
INSTRUCTIONS = (1000, 5000, 20_000)
OPCODES = ("add", "multiply", "subtract", "maximum", "minimum")
SHAPE = "f32[1024,1024]"


def fusion(ops: int) -> str:
    """HLO text: each op uses the one before it and one of two parameters."""
    body = [f"  v{n} = {SHAPE} {OPCODES[n % len(OPCODES)]}({f'v{n - 1}' if n else 'p0'}, p{n % 2})" for n in range(ops)]
    body[-1] = body[-1].replace("  v", "  ROOT v", 1)
    parameters = [f"  p{n} = {SHAPE} parameter({n})" for n in range(2)]
    root = f"  ROOT fusion = {SHAPE} fusion(p0, p1), kind=kLoop, calls=f"
    return "\n".join(["HloModule chain", "f {", *parameters, *body, "}", "ENTRY e {", *parameters, root, "}"]) + "\n"


def module(kernels: int) -> str:
    """HLO text: a chain of fusions, no two of which are equal."""
    parameters = [f"  p{n} = {SHAPE} parameter({n})" for n in range(2)]
    lines = ["HloModule many"]
    for kernel in range(kernels):
        body = [
            f"  v{n} = {SHAPE} {OPCODES[(n + kernel) % len(OPCODES)]}({f'v{n - 1}' if n else 'p0'}, p{n % 2})"
            for n in range(OPS_A_KERNEL)
        ]
        body[-1] = body[-1].replace("  v", "  ROOT v", 1)
        lines += [f"g{kernel} {{", *parameters, *body, "}"]
    calls = [
        f"  w{n} = {SHAPE} fusion({f'w{n - 1}' if n else 'p0'}, p1), kind=kLoop, calls=g{n}" for n in range(kernels)
    ]
    calls[-1] = calls[-1].replace("  w", "  ROOT w", 1)
    return "\n".join([*lines, "ENTRY e {", *parameters, *calls, "}"]) + "\n"


def seconds(function: Callable[[], object], rounds: int) -> float:
    """Best wall time of one call."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile time against fusion size; start-up times.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    python = [sys.executable, "-c"]
    command = [str(Path(sys.executable).parent / "xla-emitters"), "compile", "examples/gelu.hlo", "--no-cache"]
    starts = {
        "python alone": [*python, "pass"],
        "import xla_emitters": [*python, "import xla_emitters"],
        "import numpy, xdsl": [*python, "import numpy, xdsl.dialects.builtin"],
        "xla-emitters compile, cold": command,
    }
    print(header("Start-up, best of ten"))
    rows = [
        [name, f"{seconds(partial(subprocess.run, words, check=True, capture_output=True), 10) * 1e3:.0f}"]
        for name, words in starts.items()
    ]
    print_table(["", "ms"], rows)
    xe.compile(fusion(10), cache=False, record="none")
    print(header(f"Compile time of n element-wise ops, best of {options.rounds}"))
    rows = list[list[str]]()
    for ops in SIZES:
        compiled = partial(xe.compile, fusion(ops), cache=False, record="none")
        passes = seconds(partial(compiled, stage="llvm-dialect"), options.rounds)
        ptx = f"{seconds(compiled, 1) * 1e3:.0f}" if ops <= TO_PTX_AT_MOST else ""
        rows.append([f"{ops} ops", f"{passes * 1e3:.0f}", f"{passes / ops * 1e6:.0f}", ptx])
    print_table(["", "passes, ms", "us per op", "to PTX, ms"], rows)
    print(header(f"A module of n kernels of {OPS_A_KERNEL} ops to PTX, best of {options.rounds}"))
    rows = list[list[str]]()
    for kernels in KERNELS:
        compiled = partial(xe.compile, module(kernels), cache=False, record="none")
        taken = [seconds(partial(compiled, jobs=jobs), options.rounds) for jobs in (1, 2)]
        rows.append([f"{kernels} kernels", *(f"{each / kernels * 1e3:.1f}" for each in taken)])
    print_table(["", "ms a kernel", "ms a kernel, -j 2"], rows)
    print(header(f"HLO text of n instructions, read, best of {options.rounds}"))
    rows = list[list[str]]()
    for instructions in INSTRUCTIONS:
        taken = seconds(partial(parse_hlo, fusion(instructions)), options.rounds)
        rows.append([f"{instructions} instructions", f"{taken * 1e3:.0f}", f"{taken / instructions * 1e6:.0f}"])
    print_table(["", "ms", "us per instruction"], rows)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
