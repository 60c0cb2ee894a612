"""Compile time against the size of what is compiled, and start-up times: `python -m benchmarks.growth`.

    n element-wise ops in a chain with side inputs; HLO text to the LLVM dialect (our passes), and on to PTX where LLVM takes it
    n kernels of twelve ops in one module, by one process and by two (-j 2), to PTX
    n instructions of HLO text, read
    import xla_emitters; a command from cold, as a user's shell starts it: the first time, and where the program was compiled before

The time per op, kernel and instruction should not grow with n. Best of `--rounds`. Two clocks: `wall`, and `CPU`, the processor time of
this process and of its children, which other work on the machine disturbs less; with -j 2 it is that of both processes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

import xla_emitters as xe
from benchmarks.compile_time import cpu_seconds
from benchmarks.table import header, print_table
from xla_emitters.text.hlo import parse_hlo

SIZES = (10, 100, 1000, 5000)
TO_PTX_AT_MOST = 1000
"""Number of ops; above this, most of the time is LLVM's."""
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


def seconds(function: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Best wall time and best processor time of one call."""
    wall = cpu = float("inf")
    for _ in range(rounds):
        start, used = time.perf_counter(), cpu_seconds()
        function()
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, cpu_seconds() - used)
    return wall, cpu


def print_starts(cache: str) -> None:
    """New processes; `cache` is an empty directory."""
    python, command = [sys.executable, "-c"], [sys.executable, "-m", "xla_emitters.tools.main"]
    starts = {
        "python alone": [*python, "pass"],
        "import xla_emitters": [*python, "import xla_emitters"],
        "import numpy, xdsl": [*python, "import numpy, xdsl.dialects.builtin"],
        "xla-emitters --help": [*command, "--help"],
        "xla-emitters compile, to PTX": [*command, "compile", "examples/gelu.hlo"],
        "xla-emitters compile, compiled before": [*command, "compile", "examples/gelu.hlo"],
    }
    environment = os.environ | {"XLA_EMITTERS_CACHE_DIR": cache, "XLA_EMITTERS_DISABLE_CACHE": "1"}
    rows = list[list[str]]()
    for name, words in starts.items():
        if name.endswith("before"):
            del environment["XLA_EMITTERS_DISABLE_CACHE"]
            subprocess.run(words, check=True, capture_output=True, env=environment)
        start = partial(subprocess.run, words, check=True, capture_output=True, env=environment)
        rows.append([name, *(f"{each * 1e3:.0f}" for each in seconds(start, 10))])
    print_table(["ms", "wall", "CPU"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile time against fusion size; start-up times.")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(header("Start-up, best of ten"))
    with tempfile.TemporaryDirectory() as cache:
        print_starts(cache)
    xe.compile(fusion(10), cache=False, record="none")
    print(header(f"Compile time of n element-wise ops, best of {rounds}"))
    rows = list[list[str]]()
    for ops in SIZES:
        compiled = partial(xe.compile, fusion(ops), cache=False, record="none")
        wall, cpu = seconds(partial(compiled, stage="llvm-dialect"), rounds)
        ptx = [f"{each * 1e3:.0f}" for each in seconds(compiled, 1)] if ops <= TO_PTX_AT_MOST else ["", ""]
        rows.append([f"{ops} ops", f"{wall * 1e3:.0f}", f"{cpu * 1e3:.0f}", f"{cpu / ops * 1e6:.0f}", *ptx])
    print_table(["ms", "passes, wall", "CPU", "CPU, us per op", "to PTX, wall", "CPU"], rows)
    print(header(f"A module of n kernels of {OPS_A_KERNEL} ops to PTX, best of {rounds}"))
    rows = list[list[str]]()
    for kernels in KERNELS:
        compiled = partial(xe.compile, module(kernels), cache=False, record="none")
        taken = [each for jobs in (1, 2) for each in seconds(partial(compiled, jobs=jobs), rounds)]
        rows.append([f"{kernels} kernels", *(f"{each / kernels * 1e3:.1f}" for each in taken)])
    print_table(["ms a kernel", "wall", "CPU", "-j 2, wall", "CPU"], rows)
    print(header(f"HLO text of n instructions, read, best of {rounds}"))
    rows = list[list[str]]()
    for instructions in INSTRUCTIONS:
        wall, cpu = seconds(partial(parse_hlo, fusion(instructions)), rounds)
        row = [f"{wall * 1e3:.0f}", f"{cpu * 1e3:.0f}", f"{cpu / instructions * 1e6:.0f}"]
        rows.append([f"{instructions} instructions", *row])
    print_table(["ms", "wall", "CPU", "CPU, us per instruction"], rows)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
