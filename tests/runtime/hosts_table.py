"""Both hosts of all programs with unknown sizes, by Python and as machine code: the same bits, the same calls of the runtime.

    python -m runtime.hosts_table                   all programs; exit code 1 where a host differs
    python -m runtime.hosts_table rope layer        of these

A row: the program, how many shapes, calls of the runtime over all of them, microseconds of a run of the host program at the first shape by
Python and as machine code (arguments already checked), launches, and microseconds of a repeated call with either host, where there is a
plan; `-` where NumPy computes the program. A program without a plan runs its host program in each call.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from runtime.programs_table import Program, programs

from xla_emitters.dialects.context import make_context
from xla_emitters.errors import XlaEmittersError
from xla_emitters.host.disc_convert_const_to_ral import constants_of
from xla_emitters.host.disc_convert_memory_marker import DiscConvertMemoryMarkerPass
from xla_emitters.host.python_program import python_program
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_llvm import without_kernels
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Context
from xla_emitters.runtime.ral.dispatch_log import Dispatch, DispatchLog
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.stablehlo_text import parse_stablehlo

LAUNCH = "ral_kernel_launch"


@dataclass(frozen=True)
class Seen:
    """The host program by Python, each of whose calls a log notes."""

    loaded: LoadedProgram
    log: DispatchLog

    @property
    def context(self) -> Context:
        return self.loaded.context

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        return self.loaded.run_seen(inputs, self.log.watch)


def by_python(program: DynamicProgram, calls: list[Dispatch]) -> Seen:
    """The host program by Python, which also calls the runtime for the host's buffers, like machine code does."""
    lowering = program.cpu.lowering
    host = without_kernels(lowering.host if lowering else program.module)
    DiscConvertMemoryMarkerPass(cpu_too=True).apply(make_context(), host)
    made = python_program(host)
    kernels = program.loaded.context.kernels
    log = DispatchLog(made.functions)
    log.entries = calls
    constants = Constants(constants_of(host))
    return Seen(LoadedProgram(made.source, made.functions, made.dtypes, constants, kernels, made.donated), log)


def compare(program: DynamicProgram, inputs: Sequence[Sequence[Any]]) -> list[Dispatch]:
    """The runtime calls of all runs. raises AssertionError if the hosts differ in a bit, a call, or in what they allocate

    Each host gets its own copies of the arguments: Python's writes into donated ones. Machine code copies donated ones once
    more, and counts these copies.
    """
    wanted_calls, machine = list[Dispatch](), program.llvm_host()
    log = DispatchLog(machine.ops)
    calls = log.entries
    python = by_python(program, wanted_calls)
    hosts = python, program.llvm_host(log).program, machine.program
    for given in inputs:
        arrays = program.checked(given)
        wanted, asked, direct = (host.run([array.copy() for array in arrays]) for host in hosts)
        for found in (asked, direct):
            assert [(a.dtype, a.shape) for a in found] == [(a.dtype, a.shape) for a in wanted]
            assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]
        assert calls == wanted_calls, next(
            pair for pair in zip(calls, wanted_calls, strict=False) if pair[0] != pair[1]
        )
    counted, *by_code = (host.context.counters for host in hosts)
    copies = len(inputs) * len(python.loaded.donated)
    expected = replace(counted, allocations=counted.allocations + copies)
    assert by_code == [expected, expected], (counted, *by_code)
    return calls


def microseconds(run: Callable[[], Any]) -> float:
    """The least of five means over a hundredth of a second."""
    count, found = 1, float("inf")
    while count < 1000:
        start = time.perf_counter()
        for _ in range(count):
            run()
        if (seconds := time.perf_counter() - start) > 0.01:
            break
        count *= 2
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            run()
        seconds = time.perf_counter() - start
        found = min(found, 1e6 * seconds / count)
    return found


def row(program: Program) -> tuple[bool, str]:
    """Whether hosts agree, and the row."""
    try:
        compiled = program.compiled()
        calls = compare(compiled, [program.inputs(sizes) for sizes in program.case.sizes])
    except XlaEmittersError as error:
        return False, f"{program.name:24} {error.message}"
    except AssertionError as error:
        return False, f"{program.name:24} differs: {error}"
    first = compiled.checked(program.inputs(program.case.sizes[0]))
    machine = compiled.llvm_host().program
    launches = sum(call.name.startswith(LAUNCH) for call in calls) // len(program.case.sizes)
    repeated = repeats(compiled, first), repeats(with_llvm_host(program), first)
    loaded = compiled.loaded
    loaded.plans = loaded.native = loaded._by_code = None  # pyright: ignore[reportPrivateUsage]
    python, llvm = (microseconds(lambda host=host: host.run(first)) for host in (loaded, machine))
    again = " ".join(f"{'-':>10}" if each is None else f"{each:10.1f}" for each in repeated)
    return (
        True,
        f"{program.name:24} {len(program.case.sizes):6} {len(calls):6} {python:10.1f} {llvm:9.1f} {launches:8} {again}",
    )


def with_llvm_host(program: Program) -> DynamicProgram:
    """The program, with machine code for calls without a plan."""
    compiled = compile_program(parse_stablehlo(program.text(), program.name), CompileOptions(record="none"))
    compiled.loaded.take_native(compiled.llvm_host().program)
    return compiled


def repeats(program: DynamicProgram, inputs: Sequence[Any]) -> float | None:
    """Microseconds of a repeated call; None if no call is repeated. Donated arguments are copied in each call."""
    if program.loaded.plans is None:
        return None
    for _ in range(4):
        program.run(inputs)
    return microseconds(lambda: program.run(inputs))


def main(names: Sequence[str]) -> int:
    known = programs()
    if unknown := sorted({*names} - {*known}):
        sys.exit(f"no such program: {', '.join(unknown)}; there are: {', '.join(known)}")
    print(
        f"{'program':24} {'shapes':>6} {'calls':>6} {'python us':>10} {'llvm us':>9} {'launches':>8} {'repeated':>10} {'with llvm':>10}"
    )
    all_right, ratios, again = True, list[float](), list[float]()
    for name in names or known:
        right, line = row(known[name])
        all_right &= right
        print(line, flush=True)
        if right and len(fields := line.split()) == 8:
            ratios.append(float(fields[3]) / float(fields[4]))
            again += [float(fields[7]) / float(fields[6])] if fields[6] != "-" else []
    for what, found in (("host programs by Python", ratios), ("repeated calls with the LLVM host", again)):
        if found:
            print(
                f"{what} {np.exp(np.mean(np.log(found))):.2f} times as long in the geometric mean of {len(found)} programs"
            )
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
