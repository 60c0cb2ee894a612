"""Runs external programs: one job a process, or a process that stays for the next job. No other file starts one of our tools.

run_tool(command, data)          its answer; or an error with its messages, its exit code and the command
RunningTool(command)             started now, gets its input later: loading takes longer than working
borrow_tool(command, name)       a `ResidentTool`, which stays alive after an answer, for the next borrower

Limits are in time that the other process takes itself: a process that waits for a busy machine's CPU is not late.

    has_ended = within(120.0, process.pid, done.wait)       False: it took 120 s, and has not ended

A process takes the CPU time of itself and its descendants, and the time in which all of them sleep. Where the system does not tell (it has
no /proc), all time counts.
Source: proc(5), `/proc/pid/stat`.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from xla_emitters.errors import ToolError
from xla_emitters.support.late_dataclass import dataclass

STAGE = "toolchain"
"""The first words of messages about tools and their results."""

# A tool that is silent for this many seconds hangs; GELU takes 0.05 s.
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Answer:
    """The output of a tool: its result, and its messages on stderr."""

    result: bytes
    said: str

    @property
    def text(self) -> str:
        """The result as text."""
        return self.result.decode(errors="replace")


def run_tool(
    command: Sequence[str],
    data: bytes = b"",
    timeout_seconds: float = TIMEOUT_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> Answer:
    """Runs a tool with `data` on stdin. raises as `RunningTool` and its `finish`."""
    return RunningTool(command, environment=environment).finish(data, timeout_seconds)


class RunningTool:
    """A started tool that waits for its input.

    command  path and arguments
    environment  its variables; default: those of this process
    raises   ToolError if it cannot start
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.command = tuple(command)
        self.name = os.path.basename(self.command[0])
        self._process = _started(self.name, self.command, subprocess.PIPE, environment)

    def finish(self, data: bytes, timeout_seconds: float = TIMEOUT_SECONDS) -> Answer:
        """Sends the tool its input and waits for its answer. Can be called once.

        timeout_seconds  of the tool's own time (`own_time`)
        raises ToolError if it does not end in time, or its exit code is not 0: with its first line about an error, the rest below,
        and the command
        """
        # In a thread, as a call of `communicate` after one that timed out sends nothing of what the tool has not read by then.
        answers = list[tuple[bytes, bytes]]()
        exchange = threading.Thread(target=lambda: answers.append(self._process.communicate(data)), daemon=True)
        exchange.start()

        def has_ended(seconds: float) -> bool:
            exchange.join(seconds)
            return not exchange.is_alive()

        try:
            in_time = within(timeout_seconds, self._process.pid, has_ended)
        except KeyboardInterrupt:
            self._process.kill()
            raise
        if not in_time:
            self._process.kill()
            exchange.join()
            raise _late(self.name, self.command, timeout_seconds)
        ((out, err),) = answers
        if code := self._process.returncode:
            raise _failure(self.name, self.command, code, (err or out).decode(errors="replace"))
        return Answer(out, err.decode(errors="replace"))

    def stop(self) -> None:
        """Ends the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _started(
    name: str, command: Sequence[str], stderr: int | IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, env=environment)
    except OSError as error:
        raise _error(f"{name} could not be started: {error.strerror}", command) from error


def _error(reason: str, command: Sequence[str], *details: str) -> ToolError:
    return ToolError(reason, stage=STAGE, details=(*details, f"command: {shlex.join(command)}"))


def _late(name: str, command: Sequence[str], seconds: float) -> ToolError:
    return _error(f"{name} did not end within {seconds:g} s", command)


def _failure(name: str, command: Sequence[str], code: int, said: str) -> ToolError:
    """The error for a tool that failed: its first line about an error, with the rest below."""
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower() or "fatal" in line.lower()), "")
    how = f"exit {code}" if code >= 0 else f"signal {-code}"
    reason = f"{name} failed ({how})" + (f": {first.strip()}" if first else "")
    return _error(reason, command, *(line for line in lines[:12] if line != first))


class ResidentTool:
    """A tool that answers jobs one after the other: a line of JSON for a line of JSON.

    As a context manager, it returns the tool to the idle ones, or ends it if it failed or did not answer in time.

    command, name  as `RunningTool`
    raises   ToolError if it cannot start
    """

    def __init__(self, command: Sequence[str], name: str) -> None:
        self.command = tuple(command)
        self.name = name
        self._process_id = os.getpid()
        self._is_asked = False
        # A file, not a pipe: messages are read only after an answer, and a full pipe would block the tool.
        self._messages = tempfile.TemporaryFile()
        self._read = 0
        self._process = _started(self.name, self.command, self._messages)

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job: it runs, and was started by this process, not by the process that this one was forked from."""
        return self._process_id == os.getpid() and self._process.poll() is None

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, job: dict[str, Any], timeout_seconds: float = TIMEOUT_SECONDS) -> tuple[dict[str, Any], str]:
        """The answer to a job, and the tool's messages. raises ToolError as `RunningTool.finish`"""

        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # While this is set, an abandoned answer might be taken for the answer to the next job.
        self._is_asked = True
        late, answered = threading.Event(), threading.Event()

        def watch() -> None:
            if not within(timeout_seconds, self._process.pid, answered.wait):
                late.set()
                self._process.kill()

        threading.Thread(target=watch, daemon=True).start()
        try:
            self._process.stdin.write(f"{json.dumps(job)}\n".encode())
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        finally:
            answered.set()
        if line.endswith(b"\n"):
            self._is_asked = False
            return json.loads(line), self._heard()
        code, said = self._process.wait(), self._heard()
        self.end()
        if late.is_set():
            raise _late(self.name, self.command, timeout_seconds)
        raise _failure(self.name, self.command, code, said)

    def stop(self) -> None:
        """Returns it to the idle tools, or ends it if it cannot be used again. Can be called more than once."""
        if self._is_asked or not self.is_alive:
            self.end()
            return
        with _IDLE_LOCK:
            if self not in _IDLE:
                _IDLE.append(self)
            ended = _IDLE.pop(0) if len(_IDLE) > _MOST_IDLE else None
        if ended is not None:
            ended.end()

    def end(self) -> None:
        """Ends the process. In a fork of the process that started it, only forgets it."""
        if self._process_id != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._messages):
            if file is not None:
                with suppress(OSError):
                    file.close()

    def _heard(self) -> str:
        """The messages since the last answer."""
        self._messages.seek(self._read)
        data = self._messages.read()
        self._read += len(data)
        return data.decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


_MOST_IDLE = 2
_IDLE: list[ResidentTool] = []
_IDLE_LOCK = threading.Lock()


def borrow_tool(command: Sequence[str], name: str) -> ResidentTool:
    """An idle tool that was started by this command, or a new one. The caller stops it, or uses `with`. raises ToolError"""
    with _IDLE_LOCK:
        for tool in _IDLE:
            if tool.command == tuple(command) and tool.is_alive:
                _IDLE.remove(tool)
                return tool
    return ResidentTool(command, name)


def idle_processes() -> tuple[int, ...]:
    """The ids of the processes that stay alive, for measuring what they use."""
    with _IDLE_LOCK:
        return tuple(tool.process for tool in _IDLE)


def end_idle_tools() -> None:
    """Ends the idle tools; later ones are started anew."""
    with _IDLE_LOCK:
        while _IDLE:
            _IDLE.pop().end()


atexit.register(end_idle_tools)


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Ends a shell that was started in a session of its own, together with the commands that it has started."""
    kill_group = getattr(os, "killpg", None)  # not on every system
    if kill_group is None:
        process.kill()
        return
    with suppress(ProcessLookupError):
        kill_group(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


POLL_SECONDS = 0.2
PROCESSES = Path("/proc")


def within(seconds: float, process: int, wait: Callable[[float], bool]) -> bool:
    """Waits for a process, at most until it has taken so many seconds; returns whether it ended in time.

    process  its id
    wait     waits at most the given seconds; returns whether the process has ended, or answered
    """
    poll = min(POLL_SECONDS, seconds / 4)
    if wait(poll):  # most do, and need not be looked at
        return True
    taken = OwnTime(process)
    while not wait(poll):
        if taken.seconds() + poll >= seconds:
            return False
    return True


class OwnTime:
    """Counts the time that a process takes from now on; `seconds` is called again and again."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._total = 0.0
        self._cpu, _ = _used(process)
        self._at = time.monotonic()

    def seconds(self) -> float:
        """The time so far, as in the file's head."""
        (cpu, is_asleep), at = _used(self._process), time.monotonic()
        spent = max(0.0, cpu - self._cpu)
        self._total += at - self._at if is_asleep and not spent else spent
        self._cpu, self._at = cpu, at
        return self._total


def _used(process: int) -> tuple[float, bool]:
    """CPU seconds of a process and its descendants, and whether none of them runs, waits for a CPU or for a disk."""
    ticks, is_asleep = 0, True
    for each in _family(process):
        # The second field is the program's name in parentheses, and may contain some.
        with suppress(OSError):
            text = (PROCESSES / str(each) / "stat").read_text(encoding="utf-8", errors="replace")
            state, *numbers = text.rpartition(")")[2].split()
            # In user and system mode, its own and of children that it has waited for.
            ticks += sum(map(int, numbers[10:14]))
            is_asleep &= state not in "RD"
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0, is_asleep


def _family(process: int) -> Iterator[int]:
    yield process
    with suppress(OSError):
        for thread in (PROCESSES / str(process) / "task").iterdir():
            for child in (thread / "children").read_text(encoding="utf-8").split():
                yield from _family(int(child))
