"""Kernels that several processes compile are those of one process, and so are errors."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace

import pytest

from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.pipelines import parallel_kernels
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Program
from xla_emitters.trace import Step

SHAPE = "f32[64,100]"


def module(kernels: int) -> str:
    """Each adds its number to the one before it."""
    functions = [
        f"g{n} {{ p = {SHAPE} parameter(0)\n c = f32[] constant({n})\n b = {SHAPE} broadcast(c), dimensions={{}}\n"
        f" ROOT s = {SHAPE} add(p, b) }}"
        for n in range(kernels)
    ]
    calls = [f" w{n} = {SHAPE} fusion({f'w{n - 1}' if n else 'p'}), kind=kLoop, calls=g{n}" for n in range(kernels)]
    calls[-1] = calls[-1].replace(" w", " ROOT w", 1)
    return "\n".join(["HloModule m", *functions, "ENTRY e {", f" p = {SHAPE} parameter(0)", *calls, "}"]) + "\n"


def without_time(program: Program) -> tuple[list[list[Step]], Program]:
    steps = [[replace(step, seconds=0.0) for step in trace.steps] for trace in program.traces]
    return steps, replace(program, traces=(), graph=replace(program.graph, steps=[]))


@pytest.mark.parametrize("stage", ["xla_gpu", "llvm-dialect"])
def test_several_processes_make_the_same_program(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    received = list[bytes]()
    read = parallel_kernels.ir_from_bytes
    monkeypatch.setattr(parallel_kernels, "ir_from_bytes", lambda data: received.append(data) or read(data))
    alone, together = (compile(module(9), stage=stage, cache=False, jobs=jobs) for jobs in (1, 2))
    assert len(received) == 4
    assert without_time(together) == without_time(alone)
    assert together.code == alone.code


def test_a_kernel_that_a_child_cannot_compile_is_an_error_here() -> None:
    def refuse() -> None:
        raise Unsupported(f"no, says {os.getpid()}")

    with pytest.raises(Unsupported, match=f"says {os.getpid()}$"):
        parallel_kernels.compile_kernels([refuse] * 9, [], 2)


def test_a_child_that_dies_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    text = module(9)
    emit = parallel_kernels.ir_to_bytes
    monkeypatch.setattr(
        parallel_kernels, "ir_to_bytes", lambda made: os._exit(1) if os.getpid() != here else emit(made)
    )
    assert compile(text, stage="scf", cache=False, jobs=2).code == compile(text, stage="scf", cache=False).code


def test_no_process_is_left() -> None:
    compile(module(8), stage="xla_gpu", cache=False, jobs=2)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_process_compiles_nothing(jobs: int) -> None:
    with pytest.raises(UsageError, match="cannot compile"):
        compile(module(1), jobs=jobs, cache=False)


def test_the_cache_does_not_depend_on_the_number_of_processes() -> None:
    assert repr(CompileOptions(jobs=2)) == repr(CompileOptions())
