"""Kernels that several processes compile are those of one process, and so are errors."""

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from xla_emitters.dialects import ir_bytes
from xla_emitters.errors import ToolError, Unsupported, UsageError
from xla_emitters.lowering.toolchain import ptx_parts
from xla_emitters.pipelines import parallel_kernels
from xla_emitters.pipelines.compiler import compile, compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Program
from xla_emitters.trace import Step

SHAPE = "f32[64,100]"
# `auto` would make one kernel of fusions that each read the one before.
compiled = partial(compile, tune="xla")


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
    graph = replace(program.graph, steps=[])
    return steps, replace(program, compilation=replace(program.compilation, traces=(), graph=graph))


@pytest.mark.parametrize("stage", ["xla_gpu", "llvm-dialect"])
def test_several_processes_make_the_same_program(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    received = list[bytes]()
    read = ir_bytes.ir_from_bytes
    monkeypatch.setattr(ir_bytes, "ir_from_bytes", lambda data: received.append(data) or read(data))
    alone, together = (compiled(module(9), stage=stage, cache=False, jobs=jobs) for jobs in (1, 2))
    assert len(received) == 4
    assert without_time(together) == without_time(alone)
    assert together.code == alone.code


def test_a_kernel_that_a_child_cannot_compile_is_an_error_here() -> None:
    def refuse() -> None:
        raise Unsupported(f"no, says {os.getpid()}")

    kernels = parallel_kernels.compile_kernels([refuse] * 9, [], CompileOptions(jobs=2))
    with pytest.raises(Unsupported, match=f"says {os.getpid()}$"), kernels:
        pass


def test_a_child_that_dies_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    text = module(9)
    emit = ir_bytes.ir_to_bytes
    monkeypatch.setattr(ir_bytes, "ir_to_bytes", lambda made: os._exit(1) if os.getpid() != here else emit(made))
    assert compiled(text, stage="scf", cache=False, jobs=2).code == compiled(text, stage="scf", cache=False).code


@pytest.mark.parametrize("dies", [False, True])
def test_a_child_without_ptx_is_replaced(monkeypatch: pytest.MonkeyPatch, dies: bool) -> None:
    here = os.getpid()
    text = module(9)
    alone = compiled(text, record="none", cache=False)
    own = parallel_kernels.merge_modules

    def fails(*given: Any) -> Any:
        if os.getpid() == here:
            return own(*given)
        if dies:
            os._exit(1)
        raise ToolError("no")

    monkeypatch.setattr(parallel_kernels, "merge_modules", fails)
    assert compiled(text, record="none", cache=False, jobs=2).kernels == alone.kernels


@pytest.mark.parametrize(("opcode", "joined", "jobs"), [("tanh", True, 3), ("sine", False, 2)])
def test_ptx_of_several_processes(monkeypatch: pytest.MonkeyPatch, opcode: str, joined: bool, jobs: int) -> None:
    """Each process makes PTX of its kernels; sines share libdevice's table, so that one process makes it all."""
    text = module(12).replace(" add(p, b)", f" {opcode}(p)")
    alone = compiled(text, record="none", cache=False)
    seen = list[bool]()
    own = ptx_parts.join_ptx

    def watched(parts: Sequence[str], kernels: Sequence[str]) -> str | None:
        answer = own(parts, kernels)
        assert [part.count(".visible .entry") for part in parts] == [12 // jobs] * jobs
        seen.append(answer is not None)
        return answer

    monkeypatch.setattr(ptx_parts, "join_ptx", watched)
    together = compiled(text, record="none", cache=False, jobs=jobs)
    assert seen == [joined]
    assert without_time(together) == without_time(alone)


@pytest.mark.parametrize("way", ["mlir-opt", "steps"])
def test_a_tool_that_takes_one_module_gets_the_whole(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A child has a copy of its standard input, so that the tool would wait for the end of that."""
    monkeypatch.setenv("XLA_EMITTERS_TOOLCHAIN", way)
    alone, together = (compiled(module(8), record="none", cache=False, jobs=jobs) for jobs in (1, 2))
    assert together.kernels == alone.kernels


@pytest.mark.parametrize(
    "options",
    [CompileOptions(), CompileOptions(record="none", verify=True), CompileOptions(record="none", line_info=True)],
)
def test_what_is_told_of_the_whole_module_is_told(options: CompileOptions) -> None:
    read = read_module(module(8))
    alone, together = (compile_module(read, replace(options, jobs=jobs, tune="xla")) for jobs in (1, 2))
    assert without_time(together) == without_time(alone)


def test_no_process_is_left() -> None:
    for stage in ("xla_gpu", "ptx"):
        compiled(module(8), stage=stage, record="none", cache=False, jobs=2)
        assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_process_compiles_nothing(jobs: int) -> None:
    with pytest.raises(UsageError, match="cannot compile"):
        compiled(module(1), jobs=jobs, cache=False)


def test_the_cache_does_not_depend_on_the_number_of_processes() -> None:
    assert repr(CompileOptions(jobs=2)) == repr(CompileOptions())
