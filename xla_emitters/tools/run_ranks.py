"""`run --comm mpi|nccl`: this process is one device of the program, the others are processes beside it.

    mpirun -n 8 xla-emitters run module.hlo --comm mpi --outputs out.npz          process 0 gathers the results
    mpirun -n 8 xla-emitters run module.hlo --comm mpi --outputs out.%r.npz       each writes its own

Process 0 prints. What fails before the first step is reported once; a process that fails later ends the job with its message.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, Protocol

from xla_emitters.errors import NumbersDiffer, file_errors
from xla_emitters.settings import job_variables
from xla_emitters.tools.failures import reported

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from xla_emitters.dtypes import Array
    from xla_emitters.library.devices import Exchange
    from xla_emitters.program import Program
    from xla_emitters.runtime.comm.jobs import Job


class Runner(Protocol):
    """What `run` knows of a module: see `run_verb`."""

    program: Program
    module: ModuleOp
    stage: str

    def compile(self) -> Program: ...
    def arrays(self, file: str | None) -> Sequence[Array]: ...


def run_as_rank(options: argparse.Namespace, runner: Runner, source: str | None, target: str | None) -> int:
    """Runs once; returns the exit code. raises ToolError without the library of `--comm`, UsageError for another number of processes"""
    job, connect = _job(options.comm)
    options.devices = job.size
    try:
        held = list[Sequence[Any]]()

        def prepare() -> int:
            program = runner.compile()
            held.append(runner.arrays(source)[job.rank * len(program.parameters) :][: len(program.parameters)])
            return 0

        if code := _together(job, prepare):
            return code
        code = reported(lambda: _run(options, runner, job, connect(runner.program), held[0], target))
        if code not in (0, NumbersDiffer.exit_code):
            job.abort(code)
        return code
    except BaseException:
        job.abort(1)


def _job(comm: str) -> tuple[Job, Callable[[Program], Exchange]]:
    """The job of this process, and what makes its exchange for a program."""
    if comm == "nccl":
        from xla_emitters.runtime.comm.jobs import TcpJob
        from xla_emitters.runtime.comm.mpi import MpiJob
        from xla_emitters.runtime.comm.nccl import NcclExchange

        job = TcpJob(launched) if "RANK" in (launched := job_variables()) else MpiJob()
        return job, lambda program: NcclExchange(job, groups_of(program))
    from xla_emitters.runtime.comm.mpi import MpiExchange, MpiJob

    by_mpi = MpiJob()
    return by_mpi, lambda program: MpiExchange(by_mpi)


def groups_of(program: Program) -> set[tuple[int, ...]]:
    """The groups of devices that a program's collectives name."""
    return {tuple(group) for call in program.calls for group in call.config.get("groups", ())}


def _together(job: Job, work: Callable[[], int]) -> int:
    """Does the same work in all processes; 0, or the highest exit code after process 0 has printed each message once."""
    messages = io.StringIO()
    with redirect_stderr(messages), redirect_stdout(sys.stdout if job.rank == 0 else io.StringIO()):
        code = reported(work)
    found = job.gather((code, messages.getvalue()))
    if job.rank == 0:
        for text in dict.fromkeys(text for _, text in found):
            sys.stderr.write(text)
    return max(code for code, _ in found)


def _run(
    options: argparse.Namespace,
    runner: Runner,
    job: Job,
    exchange: Exchange,
    given: Sequence[Array],
    target: str | None,
) -> int:
    from xla_emitters.library.devices import Participant, of_device
    from xla_emitters.runtime.cpu.cpu_launcher import run_program
    from xla_emitters.runtime.cuda.cupy_launcher import launch_program

    program, start = runner.program, time.perf_counter()
    with of_device(Participant(job.rank, exchange)):
        if options.comm == "nccl":
            results = launch_program(program, given)
        else:
            results = run_program(program, given, runner.stage)
        seconds = time.perf_counter() - start
        verdict = None if options.no_reference or options.comm == "nccl" else _verdict(runner, given, results)
    exchange.end(job.rank)
    if target and "%r" in target:
        names = [f"r{number}" for number in range(len(results))]
        _save(target.replace("%r", str(job.rank)), names, results, program.results)
    found = job.gather((seconds, verdict, results if target and "%r" not in target else None))
    if job.rank > 0:
        return 0
    return _report(options, runner, [seconds for seconds, _, _ in found], found, target)


def _verdict(runner: Runner, given: Sequence[Array], results: Sequence[Array]) -> tuple[bool, str, tuple[str, ...]]:
    """The comparison with the reference, which exchanges arrays as the program does."""
    from xla_emitters.explore.check.on_devices import reference_of_device

    verdict = reference_of_device(runner.module, given).compare(results)
    return verdict.ok, verdict.summary, verdict.details


def _report(
    options: argparse.Namespace, runner: Runner, seconds: Sequence[float], found: Sequence[Any], target: str | None
) -> int:
    from xla_emitters.runtime.device_arrays import named_results, whole_specs

    program, where = runner.program, "GPUs" if options.comm == "nccl" else f"processes at stage {runner.stage}"
    for number, spec in enumerate(whole_specs(program)[len(program.parameters) :]):
        print(f"r{number} = {spec}")
    print(f"ran on {len(found)} {where} in {max(seconds):.3f} s")
    if target and "%r" not in target:
        _save(target, *named_results(program, [results for _, _, results in found]))
    if target:
        print(f"results: {target}")
    verdicts = [verdict for _, verdict, _ in found]
    for device, verdict in enumerate(verdicts):
        if verdict is not None and not verdict[0]:
            raise NumbersDiffer(f"device {device}: {verdict[1]}", stage="run", details=verdict[2])
    if verdicts[0] is not None:
        print(f"{verdicts[0][1]}, on each of {len(found)} devices")
    sys.stdout.flush()
    return 0


def _save(path: str, names: Sequence[str], arrays: Sequence[Any], specs: Sequence[Any]) -> None:
    from xla_emitters.runtime.arrays import save_named

    with file_errors(f"cannot write {path}", "run"):
        save_named(path, names, arrays, specs)
