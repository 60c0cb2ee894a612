"""Compiles in the background: a thread, and a separate process in which the kernels that programs request are compiled.

    HotCompiler.of_process().ask(job)       returns at once; the thread passes the answer to the job later

A job is looked up in the cache, else sent to the process (`pipelines/hot_process`) as a line of JSON; the answer is a line too. Calls of
programs wait for neither: the thread unpacks a kernel's code and installs it. The process is started for the first job, with low
priority, and ends when this one does. If it dies, or does not answer in time, it is restarted and the job is repeated once; for a job that
fails twice the kernels for all sizes stay, and likewise for all jobs after `MOST_FAULTS` failures in a row.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Protocol

import xla_emitters
from xla_emitters.errors import ToolError, XlaEmittersError
from xla_emitters.own_time import within
from xla_emitters.runtime.entry_cache import EntryCache
from xla_emitters.runtime.program_cache import cache_directory, is_disabled

TIMEOUT_SECONDS = 120.0
MOST_FAULTS = 3
LIMIT_BYTES = 64 * 2**20
"""Bytes of the kernels on disk."""
MODULE = "xla_emitters.pipelines.hot_process"


def _can_be_read(pipe: IO[bytes], seconds: float) -> bool:
    return bool(select.select([pipe], [], [], seconds)[0])


class HotJob(Protocol):
    """A kernel to compile."""

    def key(self) -> str | None:
        """Its key in the cache; None: it is not cached."""
        ...

    def request(self) -> Mapping[str, Any]:
        """The request for the process, as plain data."""
        ...

    def answered(self, answer: Mapping[str, Any]) -> None:
        """Takes the answer: the compiled kernel, or "declined" with the reason."""
        ...


def hot_entries(directory: Path) -> EntryCache:
    """The hot kernels in a directory for caches."""
    return EntryCache(directory / "hot", LIMIT_BYTES)


def kernel_cache() -> EntryCache | None:
    """The cache of hot kernels of this user; None when caches are disabled."""
    return None if is_disabled() else hot_entries(cache_directory())


class HotCompiler:
    """The background compiler; see the file's head.

    command  starts the process
    timeout  seconds per answer, of the process's own time (`own_time`)
    """

    def __init__(
        self, command: tuple[str, ...] = (sys.executable, "-m", MODULE), timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.command = command
        self.timeout = timeout
        self.compiled = self.found = 0
        self._jobs = SimpleQueue[Callable[[], None]]()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._faults = 0
        self._fault = ""
        self._lock = threading.Lock()

    _of_process: HotCompiler | None = None

    @classmethod
    def of_process(cls) -> HotCompiler:
        """The compiler of this process."""
        if cls._of_process is None:
            made = cls._of_process = HotCompiler()
            atexit.register(made.abandon)
        return cls._of_process

    @classmethod
    def forget(cls) -> None:
        """Called in a forked process, which has no such thread, and must not use its parent's pipes."""
        cls._of_process = None

    @property
    def pid(self) -> int | None:
        """The id of the compiling process; None if it is not running."""
        return self._process.pid if self._process is not None else None

    def ask(self, job: HotJob) -> None:
        """Queues a job; returns at once."""
        self.do(lambda: self._answer(job))

    def do(self, what: Callable[[], None]) -> None:
        """Queues a function for the thread; returns at once. Functions run in order."""
        self._jobs.put(what)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="xla-emitters-heat", daemon=True)
                self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all jobs are answered; returns whether they are. For reports and tests: calls of programs never wait."""
        done = threading.Event()

        def settle() -> None:
            # A job may have queued another one.
            if self._jobs.empty():
                done.set()
            else:
                self._jobs.put(settle)

        self.do(settle)
        return done.wait(timeout)

    def close(self) -> None:
        """Ends the process; it is restarted when needed."""
        self.wait(self.timeout)
        self._end()

    def abandon(self) -> None:
        """Kills the process, whatever it is doing."""
        self._end()

    # --------------------------------------------------------------------------------------------------- in the thread

    def _work(self) -> None:
        while True:
            what = self._jobs.get()
            with suppress(Exception):
                what()

    def _answer(self, job: HotJob) -> None:
        try:
            job.answered(self._found(job))
        except XlaEmittersError as error:
            job.answered({"declined": error.message})
        except Exception as error:  # whatever it is, the program continues with its present kernels
            job.answered({"declined": f"{type(error).__name__}: {error}"})

    def _found(self, job: HotJob) -> Mapping[str, Any]:
        """The answer, from the cache or from the process. raises ToolError"""
        key, cache = job.key(), kernel_cache()
        if key is not None and cache is not None and (data := cache.get(key)) is not None:
            with suppress(ValueError):
                self.found += 1
                return json.loads(data)
        line = self._compile(json.dumps(job.request()).encode() + b"\n")
        answer = json.loads(line)
        self.compiled += 1
        if key is not None and cache is not None and not answer.get("is_fault"):
            cache.put(key, line)
        return answer

    def _compile(self, line: bytes) -> bytes:
        """The process's answer to a line; if it dies, the line is sent a second time. raises ToolError"""
        for _ in range(2):
            if self._faults >= MOST_FAULTS:
                break
            try:
                answer = self._exchange(line)
            except OSError as error:
                self._end()
                self._faults, self._fault = self._faults + 1, str(error)
                continue
            self._faults = 0
            return answer
        raise ToolError(f"the process that compiles in the background fails: {self._fault}", stage="heat")

    def _exchange(self, line: bytes) -> bytes:
        """Sends a line and returns the answer. raises OSError if the process cannot be started, dies, or takes too long"""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        parts = list[bytes]()
        while not (parts and parts[-1].endswith(b"\n")):
            if not within(self.timeout, process.pid, partial(_can_be_read, process.stdout)):
                raise OSError(f"no answer in {self.timeout:g} s")
            data = os.read(process.stdout.fileno(), 1 << 20)
            if not data:
                raise OSError(f"it ended with status {process.wait(self.timeout)}")
            parts.append(data)
        return b"".join(parts)

    def _start(self) -> subprocess.Popen[bytes]:
        # Lets the process import this package from where it is.
        paths = [str(Path(xla_emitters.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HotCompiler.forget)
