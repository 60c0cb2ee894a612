"""All programs as machine code for several CPUs: run where this machine has the instructions, else made and checked for missing functions.

    python -m runtime.cpu_features_table                 a table; exit code 1 where a number or a symbol is wrong
    python -m runtime.cpu_features_table rope layer      of these programs
    python -m runtime.cpu_features_table --jobs 4        by so many processes

For each CPU: programs that ran at all their sizes with JAX's values, programs whose code was only made, what is no machine code (NumPy
computes sizes that nothing proves equal), and what is wrong. Code that is only made is an object file for a linker, of the kernels and,
where there is one, the host program.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from runtime.programs_table import programs

from xla_emitters.errors import Unsupported, XlaEmittersError
from xla_emitters.lowering.cpu.cpu_code import cpu_object
from xla_emitters.lowering.cpu.cpu_steps import ENTRY
from xla_emitters.lowering.cpu.cpu_target import CpuTarget, cpu_target
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_llvm import MAIN, LlvmHost
from xla_emitters.settings import CPU

RUN, MADE = ("native", "x86-64-v3", "x86-64-v2"), ("x86-64-v4", "znver5", "sapphirerapids")
"""CPUs for which programs are run if this machine has their instructions, and for which code is only made."""
OTHER_MACHINES = (
    ("aarch64-unknown-linux-gnu", "generic", "+neon"),
    ("aarch64-apple-macosx", "apple-m1", "+neon"),
)
"""Machines for which code is only made: triple, CPU, features. They convert f16 by instructions."""
KNOWN = ("ran", "made", "NumPy")


def cpus() -> dict[str, CpuTarget]:
    """The CPUs of the table, by name."""
    names = (*RUN, *MADE) if cpu_target("native").triple.startswith("x86_64") else ("native",)
    others = (
        CpuTarget(f"{name} {triple}", triple, name, more, ("another machine",), 16)
        for triple, name, more in OTHER_MACHINES
    )
    return {cpu.asked: cpu for cpu in (*map(cpu_target, names), *others)}


def verdicts(name: str) -> dict[str, str]:
    """CPU -> "ran", "made", "NumPy", or what is wrong."""
    os.environ[CPU] = "llvm"
    program = programs()[name]
    compiled = program.compiled()
    made = lowerings_of(compiled)
    assert made.fused is not None
    if made.sizes.unresolved:
        return dict.fromkeys(cpus(), "NumPy")
    texts, found = dict[bool, tuple[str, tuple[str, ...]]](), dict[str, str]()
    for cpu_name, cpu in cpus().items():
        is_other = cpu.triple != cpu_target("native").triple
        options = replace(made.options, cpu_features="native" if is_other else cpu_name)
        try:
            if cpu_name in RUN and not cpu.lacking:
                worst = max(program.differences(replace(compiled, compilation=replace(made, options=options))))
                found[cpu_name] = "ran" if worst <= program.case.tolerance else f"differs by {worst:.1e}"
                continue
            if cpu.converts_f16 not in texts:
                texts[cpu.converts_f16] = _text(CpuLowering(name, made.fused, options))
            text, seen = texts[cpu.converts_f16]
            cpu_object(text, {function: function for function in seen}, cpu)
            found[cpu_name] = "made"
        except Unsupported:
            found[cpu_name] = "NumPy"
        except (XlaEmittersError, AssertionError) as error:
            found[cpu_name] = str(error).splitlines()[0]
    return found


def _text(lowering: CpuLowering) -> tuple[str, tuple[str, ...]]:
    """A program's kernels and host program as LLVM IR, and the functions that a linker sees."""
    try:
        host = LlvmHost("program", lowering, CompileOptions())
        return host.ir, (MAIN, *(f"{kernel}{ENTRY}" for kernel in lowering.parameters))
    except Unsupported:
        return lowering.ir, tuple(lowering.parameters)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    names, start = given.names or list(programs()), time.perf_counter()
    wrong = list[str]()
    rows = dict[str, dict[str, str]]()
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for name, row in zip(names, pool.map(verdicts, names), strict=True):
            rows[name] = row
            wrong += [f"{cpu}: {name}: {said}" for cpu, said in row.items() if said not in KNOWN]
            if sys.stderr.isatty():
                print(f"\r{len(rows)} of {len(names)}, {len(wrong)} wrong", end="\r", file=sys.stderr)
    print(f"{'CPU':34}" + "".join(f"{each:>8}" for each in (*KNOWN, "wrong")))
    for name, cpu in cpus().items():
        counts = Counter(row[name] if row[name] in KNOWN else "wrong" for row in rows.values())
        lacking = f"   lacks {', '.join(cpu.lacking[:3])}{' ...' * (len(cpu.lacking) > 3)}" if cpu.lacking else ""
        print(f"{name:34}" + "".join(f"{counts[each]:8}" for each in (*KNOWN, "wrong")) + lacking)
    print(f"{len(names)} programs in {time.perf_counter() - start:.0f} s", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
