"""CPU time of each pass against the size of what it is given: `python -m benchmarks.growth_passes`.

    a program of n ops with unknown sizes: functions, sums, products, reductions, broadcasts, transposes; so many kernels
    a program of n sines, each of the one before; few kernels
    a module of n instructions in fusions of twelve, and one fusion of n instructions

Each list of passes is run once for each of SIZES; a pass that a list has several times is one row. `exponent` is the slope of the straight
line through the logarithms of the least of ROUNDS times: 1 where the time grows with n, 2 with its square. It is left out below LEAST
milliseconds, where it is noise.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from benchmarks.growth import OPS_A_KERNEL, fusion, module
from benchmarks.table import header, print_table
from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dynamic.host.steps_of_buffers import steps_of_buffers
from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.graph.plan import plan_program
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import GRAPH, KERNEL, PassRow
from xla_emitters.pipelines.program_llvm import without_kernels
from xla_emitters.pipelines.program_passes import (
    CPU_KERNEL,
    CPU_LOOPS,
    HOST_BY_LLVM,
    PROGRAM_FUSED,
    PROGRAM_HOST,
    PROGRAM_KERNEL,
    PROGRAM_LOOPS,
    PROGRAM_OPS,
)
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

T = TypeVar("T")
SIZES = (250, 500, 1000, 2000)
ROUNDS = 2
LEAST = 20.0
Times = dict[tuple[str, str], dict[int, float]]
"""(list, pass) -> number of instructions -> milliseconds"""

OPS = (
    "%V = stablehlo.sine %U : tensor<?x8xf32>",
    "%V = stablehlo.add %U, %T : tensor<?x8xf32>",
    "%V = stablehlo.dot_general %U, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>",
    """%rN = stablehlo.reduce(%U init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
    %V = stablehlo.dynamic_broadcast_in_dim %rN, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x8xf32>""",
    """%tN = stablehlo.transpose %U, dims = [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
    %V = stablehlo.transpose %tN, dims = [1, 0] : (tensor<8x?xf32>) -> tensor<?x8xf32>""",
)


def mixed(n: int) -> str:
    """StableHLO of about n ops, each of the one before."""
    lines, last = list[str](), "x"
    for number in range(n * len(OPS) // 7):  # the five texts have seven ops
        line = OPS[number % len(OPS)].replace("N", str(number))
        lines.append(f"    {line.replace('%V', f'%v{number}').replace('%U', f'%{last}').replace('%T', '%x')}")
        last = f"v{number}"
    return "\n".join(
        (
            "module @m { func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {",
            "    %z = stablehlo.constant dense<0.0> : tensor<f32>",
            "    %eight = stablehlo.constant dense<8> : tensor<1xi32>",
            "    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>",
            "    %one = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>",
            "    %shape = stablehlo.concatenate %one, %eight, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>",
            *lines,
            f"    return %{last} : tensor<?x8xf32> }} }}",
        )
    )


def sines(n: int) -> str:
    """StableHLO of n sines, each of the one before."""
    lines = [f"    %{i + 1} = stablehlo.sine %{i} : tensor<?xf32>" for i in range(n)]
    head = "module @m { func.func @main(%0: tensor<?xf32>) -> tensor<?xf32> {"
    return "\n".join([head, *lines, f"    return %{n} : tensor<?xf32> }} }}"])


class Clock:
    """Times of passes on inputs of n instructions."""

    def __init__(self, times: Times, n: int) -> None:
        self.times, self.n = times, n

    def run(self, name: str, rows: Sequence[PassRow], ir: ModuleOp) -> ModuleOp:
        """Runs a list of passes."""
        options, context = CompileOptions(), make_context()
        for row in rows:
            made = row.make(options)
            self.measure(name, made.name, lambda made=made: run_pass(made, context, ir))
        return ir

    def measure(self, name: str, what: str, function: Callable[[], T]) -> T:
        start = time.process_time()
        result = function()
        spent = self.times.setdefault((name, what), {})
        spent[self.n] = spent.get(self.n, 0) + (time.process_time() - start) * 1e3
        return result


def program(clock: Clock, text: str) -> None:
    """All lists of a program with unknown sizes."""
    read = clock.measure("read", "StableHLO", lambda: parse_stablehlo(text, "m.mlir"))
    clock.measure("read", "sizes of the program", lambda: sizes_of(read))
    fused = clock.run("graph and buffers", PROGRAM_FUSED, read)
    on_numpy = clock.run("steps of NumPy", PROGRAM_OPS, fused.clone())
    clock.measure("steps of NumPy", "steps", lambda: steps_of_buffers(on_numpy))
    for name, loops, kernel in (("GPU", PROGRAM_LOOPS, PROGRAM_KERNEL), ("CPU", CPU_LOOPS, CPU_KERNEL)):
        host = clock.run(f"loops and host, {name}", (*loops, *PROGRAM_HOST), fused.clone())
        for found in [op for op in host.ops if isinstance(op, gpu.ModuleOp)]:
            clock.run(f"kernels, {name}", kernel, ModuleOp([found.clone()]))
    clock.run("host by LLVM", HOST_BY_LLVM, without_kernels(host))


def modules(clock: Clock) -> None:
    """The lists of modules and kernels."""
    many = clock.measure("read", "HLO text", lambda: parse_hlo(module(clock.n // OPS_A_KERNEL)))
    clock.run("graph of a module", GRAPH, many)
    clock.measure("graph of a module", "plan", lambda: plan_program(many))
    one = parse_hlo(fusion(clock.n))
    clock.run("graph of one fusion", GRAPH, one)
    device = CompileOptions().device
    (planned,) = plan_program(one).kernels
    emitted = clock.measure("kernel of one fusion", "emit", lambda: emit_fusion(planned.view, device))
    clock.run("kernel of one fusion", KERNEL, emitted)


def exponent(spent: dict[int, float]) -> str:
    if spent[SIZES[-1]] < LEAST:
        return ""
    numbers = [max(spent[n], 1e-3) for n in SIZES]
    return f"{np.polyfit(np.log(SIZES), np.log(numbers), 1)[0]:.2f}"


def main() -> int:
    argparse.ArgumentParser(description="CPU time of each pass against the size of its input.").parse_args()
    kinds: dict[str, Callable[[Clock, int], None]] = {
        "A program of n ops of all kinds": lambda clock, n: program(clock, mixed(n)),
        "A program of n sines": lambda clock, n: program(clock, sines(n)),
        "Modules of n instructions": lambda clock, n: modules(clock),
    }
    for title, run in kinds.items():
        rounds: list[Times] = []
        for _ in range(ROUNDS):
            rounds.append({})
            for n in (SIZES[0], *SIZES):  # the first is not counted: it imports
                if n == SIZES[0]:
                    rounds[-1].clear()
                gc.collect()
                gc.disable()  # it would run in some pass or other
                run(Clock(rounds[-1], n), n)
                gc.enable()
        times = {key: {n: min(each[key][n] for each in rounds) for n in SIZES} for key in rounds[0]}
        print(header(f"{title}; ms of CPU"))
        rows = [
            [name, what, *(f"{spent[n]:.0f}" for n in SIZES), exponent(spent)] for (name, what), spent in times.items()
        ]
        print_table(["list", "pass", *map(str, SIZES), "exponent"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
