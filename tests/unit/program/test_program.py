"""`Program`: one value, whatever it was compiled from; what its JSON says of a program with unknown sizes is what runs."""

import copy
import json
import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import UsageError
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import rows_of
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program
from xla_emitters.program.executable import Constants, executable_of_arrays
from xla_emitters.program.steps import Allocate, Branch, Call, Launch, Load, Loop, Move, Release, steps_within
from xla_emitters.program.steps_text import StepsText
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.numpy_platform import NumpyPlatform
from xla_emitters.runtime.ral.simt_kernels import SimtKernels

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = ("stablehlo/scan", "stablehlo/branches", "programs/given_trips", "loops/ends_early", "stablehlo/reversed")


@cache
def compiled(file: str) -> Program:
    """With kernels, but without PTX."""
    return xe.compile(CORPUS / f"{file}.mlir", stage="llvm-dialect", record="none")


@pytest.mark.parametrize("file", FILES)
def test_a_program_of_unknown_sizes_is_the_same_after_json(file: str) -> None:
    program = compiled(file)
    again = Program.from_json(json.loads(json.dumps(program.to_json())))
    for name in ("parameters", "results", "temporaries", "constants", "kernels", "calls", "steps", "symbols", "guards"):
        assert getattr(again, name) == getattr(program, name), name
    assert program.steps
    assert again.to_json() == program.to_json()
    if program.symbols:
        with pytest.raises(UsageError, match="was read from JSON, which describes a program with unknown sizes"):
            again(*drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0))


@pytest.mark.parametrize("file", FILES)
def test_its_steps_are_those_that_run(file: str) -> None:
    """Read as docs/json.md says, parameters first, then results, then temporaries, they give the numbers of the reference."""
    program, made = compiled(file), lowerings_of(compiled(file))
    before, own = len(program.parameters) + len(program.results), made.lowering.steps
    constants = [
        (replace(place, slot=before + number), lambda array=array: array)
        for number, (place, array) in zip(program.constants, own.constants, strict=True)
    ]
    again = executable_of_arrays(program.arrays, program.steps, own.ops, Constants(constants), sorted(own.donated))
    kernels = SimtKernels(lambda name, _: made.lowering.lowered(name))
    loaded = LoadedProgram(again, NumpyPlatform(own.ops, kernels))
    inputs = drawn_inputs(program, dict.fromkeys(program.symbols, 3), 0)
    wanted = program.run(inputs, stage="llvm-dialect")
    for one, other in zip(loaded.run(made.owned(made.checked(inputs))), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_programs_have_many_kinds_of_steps() -> None:
    kinds = {type(step) for file in FILES for step in steps_within(compiled(file).steps)}
    assert kinds >= {Allocate, Branch, Call, Launch, Load, Loop, Move, Release}


@pytest.mark.parametrize("file", FILES)
def test_all_steps_are_a_line_of_text(file: str) -> None:
    program = compiled(file)
    text = StepsText(program.arrays, program.calls, {kernel.name: kernel.arguments for kernel in program.kernels})
    lines = text.of(program.steps).splitlines()
    assert len(lines) >= len(list(steps_within(program.steps)))
    assert not any("Place(" in line or "Number(" in line for line in lines)


def test_a_trace_ends_at_the_stage_of_the_compilation() -> None:
    """Kernels are not lowered for a program whose host program is all that was asked for."""
    for stage in ("host", "llvm-dialect"):
        assert xe.compile(CORPUS / "stablehlo/reversed.mlir", stage=stage).trace.stages[-1] == stage


def test_a_module_says_its_memory_and_what_it_launches() -> None:
    """Two kernels of 4 kB each: the first result lives when the second kernel reads it, and is returned, so they are not merged."""
    text = """HloModule m
f { p = f32[1000] parameter(0)
  ROOT n = f32[1000] negate(p) }
ENTRY e { x = f32[1000] parameter(0)
  first = f32[1000] fusion(x), kind=kLoop, calls=f
  second = f32[1000] fusion(first), kind=kLoop, calls=f
  ROOT both = (f32[1000], f32[1000]) tuple(first, second) }
"""
    program = xe.compile(text, stage="llvm-dialect")
    x = np.ones(1000, np.float32)
    assert [(each.call, each.name) for each in program.dispatches([x])] == [("launch", "first"), ("launch", "second")]
    assert program.memory([x]).peak == 8000


def test_a_host_program_of_the_callers_passes_has_kernels_and_no_steps() -> None:
    options = CompileOptions()
    lists = ("program", "program-loops", "program-host")
    own = tuple(row.make(options) for name in lists for row in rows_of(name))
    data = xe.compile(CORPUS / "stablehlo/reversed.mlir", pipeline=own, stage="llvm-dialect").to_json()
    assert data["kernels"]
    assert data["kernels"][0]["grid"] == [None, None, None]
    assert data["steps"] == data["calls"] == []


@pytest.mark.parametrize("source", [CORPUS / "stablehlo/scan.mlir", "ENTRY e { ROOT p = f32[2] parameter(0) }"])
def test_a_program_is_its_own_copy_and_is_not_pickled(source: Path | str) -> None:
    """A copy of all that it holds would be its IR again, of any depth."""
    program = xe.compile(source, stage="hlo")
    assert copy.copy(program) is copy.deepcopy(program) is copy.deepcopy([program])[0] is program
    with pytest.raises(UsageError, match=r"a program is not pickled\n *help: send its text"):
        pickle.dumps({"model": program})
