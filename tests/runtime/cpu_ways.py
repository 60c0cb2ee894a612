"""Programs with unknown sizes as a CPU computes them, by machine code or by NumPy; a test module that imports this needs llvmlite."""

from dataclasses import replace
from functools import cache

import pytest

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import Settings
from xla_emitters.text.stablehlo import parse_stablehlo

pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")


@cache
def compiled(text: str, way: str = "llvm") -> Program:
    """The program of a StableHLO text, compiled once for all tests that ask for it. way: "llvm" or "numpy" """
    options = CompileOptions(record="none", settings=Settings(cpu=way))
    program = compile_program(parse_stablehlo(text, "<test>"), options)
    assert program.compilation.cpu.name == way
    return program


def at_level(program: Program, features: str) -> Program:
    """The program, whose machine code is made for the CPU of that name."""
    options = replace(program.compilation.options, cpu_features=features)
    return replace(program, compilation=replace(program.compilation, options=options))


def host_ops(program: Program) -> set[str]:
    """Names of the ops of the host program: those that are not here, but in the text, are in kernels."""
    return {op.name for op in program.compilation.cpu.lowering.host.walk()}
