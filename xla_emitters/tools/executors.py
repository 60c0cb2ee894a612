"""Jobs in this process, in others of this machine, or on the workers of an existing engine; and results that are kept from run to run.

    -j N                            N processes of this machine; with --timeout SECONDS a job that takes longer is ended
    --executor dask://HOST:PORT     workers of dask.distributed (the extra [cluster]); `dask scheduler`, `dask worker HOST:PORT`
    --executor mpi                  ranks of mpi4py.futures: mpirun -n 9 python -m mpi4py.futures -m xla_emitters check DIR --executor mpi
    --resume RESULTS.jsonl          one line a job that is done, written at once; what is in it already is not done again

Workers have this package installed and see the same files. Both engines are used through `concurrent.futures`. A worker that dies loses the
job that it had, which dask gives to another one; after three workers died of it the job has failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from xla_emitters.errors import ToolError, UsageError, file_errors
from xla_emitters.support.extras import installed
from xla_emitters.tools.input_output import counted
from xla_emitters.tools.terminal import progress
from xla_emitters.tools.verb_options import ENGINE, ENGINES, check_engine
from xla_emitters.tools.workers import Done, NamedWork, run_jobs


def carried_out(
    options: argparse.Namespace,
    jobs: Sequence[NamedWork],
    doing: str,
    made: Callable[..., Any],
    *,
    depends: Callable[[NamedWork], bytes] = lambda job: b"",
    apart: Sequence[str] = (),
    processes: int = 1,
    timeout_seconds: float | None = None,
) -> Iterator[Done]:
    """Yields the outcome of each job, in their order, where the options of `add_engine` say. Results are values of dataclasses.

    doing            the word that the progress line begins with
    made             makes a result from its fields: what `--resume` keeps
    depends          what a result depends on besides the job's name, the options and this package: of a job that has ended, or not begun
    apart            options that no result depends on
    processes        and timeout_seconds: without `-j` and `--timeout`; without any limit and process the jobs are done in this process
    raises           UsageError as `check_engine`, `executor_named` and `Kept`
    """

    def said(name: str, left: int) -> str:
        return f"{doing} {name}, {counted(left, 'more job')} to go" if left else f"{doing} {name}"

    def by_engine(jobs: Sequence[NamedWork], done: Callable[[Done], object]) -> Iterator[Done]:
        at_once, limit = options.jobs or processes, options.timeout or timeout_seconds
        if options.executor is not None:
            yield from run_on(executor_named(options.executor), jobs, said, done)
            return
        for outcome in _in_turn(jobs, said) if (at_once, limit) == (1, None) else run_jobs(jobs, at_once, limit, said):
            done(outcome)
            yield outcome

    check_engine(options)
    if options.resume is None:
        yield from by_engine(jobs, lambda done: None)
        return
    kept, plain = Kept(options.resume), _plain(options, apart)

    def key(job: NamedWork) -> str:
        return hashlib.sha256(f"{job.name} {plain}".encode() + depends(job)).hexdigest()

    known = {job.name: fields for job in jobs if (fields := kept.get(key(job))) is not None}
    left = {job.name: job for job in jobs if job.name not in known}

    def keep(done: Done) -> None:
        if not done.failure:
            kept.put(key(left[done.name]), asdict(done.result))

    outcomes = by_engine([*left.values()], keep)
    for job in jobs:
        yield Done(job.name, made(**known[job.name])) if job.name in known else next(outcomes)


def _plain(options: argparse.Namespace, apart: Sequence[str]) -> str:
    """What all results depend on."""
    from xla_emitters.runtime.cache import own_fingerprint

    left_out = ("run", "parser", *ENGINE, *apart)
    return repr([own_fingerprint(), *sorted((k, repr(v)) for k, v in vars(options).items() if k not in left_out)])


def _in_turn(jobs: Sequence[NamedWork], said: Callable[[str, int], str]) -> Iterator[Done]:
    for number, job in enumerate(jobs):
        with progress(said(job.name, len(jobs) - number - 1)):
            outcome = Done(job.name, job.work())
        yield outcome


def executor_named(name: str) -> AbstractContextManager[Executor]:
    """The executor that `--executor` names. raises UsageError for another name, ToolError where the engine is not there"""
    if name == "mpi":
        with installed("MPI", "executor", extras="mpi"):
            return import_module("mpi4py.futures").MPIPoolExecutor()
    if not name.startswith("dask://") or not name[7:]:
        raise UsageError(f"no executor '{name}'", stage="executor", help=ENGINES)
    return _dask(name[7:])


@contextmanager
def _dask(address: str) -> Generator[Executor]:
    with installed("dask.distributed", "executor", extras="cluster"):
        distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(f"tcp://{address}", timeout="30s")
    except (OSError, ValueError) as error:
        raise ToolError(f"no scheduler of dask at {address} ({error})", stage="executor") from error
    with client:
        yield client.get_executor(pure=False)


def run_on(
    executor: AbstractContextManager[Executor],
    jobs: Sequence[NamedWork],
    said: Callable[[str, int], str],
    done: Callable[[Done], object] = lambda done: None,
) -> Iterator[Done]:
    """Yields the outcome of each job, in their order.

    said  as for `run_jobs`
    done  is called for each outcome as soon as it is there, in any order, from another thread
    """
    with executor as pool:
        futures = [pool.submit(job.work) for job in jobs]
        for job, future in zip(jobs, futures, strict=True):
            future.add_done_callback(lambda ended, job=job: done(_outcome(job, ended)))
        for number, (job, future) in enumerate(zip(jobs, futures, strict=True)):
            with progress(said(job.name, len(jobs) - number - 1)):
                outcome = _outcome(job, future)
            yield outcome


def _outcome(job: NamedWork, future: Any) -> Done:
    try:
        return Done(job.name, future.result())
    except Exception as error:  # of the engine: the worker died, or was lost
        return Done(job.name, None, f"{type(error).__name__}: {error}")


class Kept:
    """Lines of a file of results, by a key of what they depend on.

    raises  UsageError for a file that holds something else
    """

    def __init__(self, path: str) -> None:
        self._path, self._held = Path(path), dict[str, Any]()
        with file_errors(f"cannot read {path}", "resume"):
            lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                self._held[row["key"]] = row["result"]
            except (ValueError, KeyError, TypeError):
                if number < len(lines):  # the last line may have been cut off
                    raise UsageError(f"{path}:{number} is no result of an earlier run", stage="resume") from None

    def get(self, key: str) -> Any:
        """The result kept under a key, or None."""
        return self._held.get(key)

    def put(self, key: str, result: Any) -> None:
        """Appends one. raises UsageError where the file cannot be written"""
        with file_errors(f"cannot write {self._path}", "resume"):
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({'key': key, 'result': result})}\n")
