"""The external programs: finds LLVM's and NVIDIA's tools, checks versions, runs them. No other file starts one of them.

    find_tool("ptxas", toolchain)    the file that the user names, else in its usual places; or an error that says how to install it
    run_tool(command, data)          its answer; or an error with its messages, its exit code and the command
    RunningTool(command)             started now, gets its input later: loading takes longer than working
    borrow_tool(command, name)       a `ResidentTool`, which stays alive after an answer, for the next borrower

LLVM must be version 22: tools are those that the user names, else found as `mlir-opt-22` or in LLVM 22's own directory, then on
PATH, and another major version is refused by name. llvmlite is LLVM 22 as a Python package, loaded in a separate Python process. ptxas,
nvdisasm and libdevice come from NVIDIA's wheels in the running environment, then from PATH and the CUDA toolkit's directories.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self

from xla_emitters.errors import ToolError
from xla_emitters.extras import install_command
from xla_emitters.late_dataclass import dataclass
from xla_emitters.settings import VARIABLES, Toolchain

LLVM_MAJOR = 22
_SYSTEM_HAS_APT = sys.platform == "linux"
_PACKAGES = f"apt-get install mlir-{LLVM_MAJOR}-tools llvm-{LLVM_MAJOR}"
LLVM_HELP = _PACKAGES if _SYSTEM_HAS_APT else f"install MLIR and LLVM {LLVM_MAJOR}"
LLVMLITE = ("0.50", "0.51")
"""The versions of llvmlite that are taken, as in pyproject.toml; `llvm_process` asks the package itself which LLVM it has."""
_LLVMLITE_WHEELS = {"linux": ("x86_64", "aarch64"), "darwin": ("arm64",), "win32": ("AMD64", "ARM64")}
_HAS_LLVMLITE = platform.machine() in _LLVMLITE_WHEELS.get(sys.platform, ())
LLVMLITE_HELP = install_command("llvmlite>=0.50,<0.52") if _HAS_LLVMLITE else "llvmlite has no package for this system"
_SYSTEM_HAS_WHEELS = sys.platform in ("linux", "win32")
NVIDIA_HELP = install_command(extras="ptxas") if _SYSTEM_HAS_WHEELS else "NVIDIA has no packages for this system"
LLVM_PROCESS = str(Path(__file__).with_name("llvm_process.py"))
"""The script that a separate Python runs for llvmlite; it imports nothing from this package."""
STAGE = "toolchain"
"""The first words of messages about tools and their results."""

# A tool that is silent for this many seconds hangs; GELU takes 0.05 s.
TIMEOUT_SECONDS = 120.0


# Finding them


@dataclass(frozen=True)
class _Row:
    """The possible places of one tool.

    inside    path inside a CUDA toolkit and inside NVIDIA's wheels, which are laid out alike; "" for LLVM's tools
    package   the Python package, if the tool is one
    """

    name: str
    inside: str = ""
    package: str = ""

    @property
    def help(self) -> str:
        """The command that installs it."""
        return LLVMLITE_HELP if self.package else NVIDIA_HELP if self.inside else LLVM_HELP


# Suffix of program names.
_PROGRAM = ".exe" if sys.platform == "win32" else ""
_ROWS = (
    _Row("mlir-opt"),
    _Row("mlir-translate"),
    _Row("llvm-link"),
    _Row("opt"),
    _Row("llc"),
    _Row("llvmlite", package="llvmlite"),
    _Row("ptxas", f"bin/ptxas{_PROGRAM}"),
    _Row("libdevice", "nvvm/libdevice/libdevice.10.bc"),
    _Row("nvdisasm", f"bin/nvdisasm{_PROGRAM}"),
)
# Packages of NVIDIA's wheels: for CUDA 12 one per component, for CUDA 13 one for all.
_WHEELS = ("nvidia.cuda_nvcc", "nvidia.cuda_nvdisasm", "nvidia.cu13")
TOOL_NAMES = tuple(row.name for row in _ROWS)
_VARIABLE_OF = {variable.tool: variable.name for variable in VARIABLES if variable.tool}


@dataclass(frozen=True)
class Tool:
    """One external program, or libdevice's bitcode."""

    name: str
    path: str

    @property
    def version(self) -> str:
        """The version that it prints: "22.1.8", "12.9.86"; "" for libdevice, which has none. raises ToolError."""
        if self.name == "llvmlite":
            return _version_of_package(self.name)
        if self.name == "libdevice":
            return ""
        return _version_of(self.path, os.stat(self.path).st_mtime_ns)


def find_tool(name: str, toolchain: Toolchain) -> Tool:
    """The tool called `name`, one of `TOOL_NAMES`.

    raises ToolError if it is missing or, for LLVM's tools, has another major version than 22; the help says what to install.
    """
    row = next(row for row in _ROWS if row.name == name)
    if row.package:
        return _find_package(row)
    help = row.help
    path, tried = _locate(row, toolchain)
    if path is None:
        raise ToolError(
            f"{name} was not found",
            stage=STAGE,
            details=(f"looked at: {', '.join(tried)}",),
            help=f"{help}, or set {_VARIABLE_OF[name]} to its path",
        )
    tool = Tool(name, path)
    # Asking a tool costs as much as compiling a kernel, so names with a version, as in distributions, are trusted.
    if not row.inside and tried[-1] not in _named_places(row) and tool.version.partition(".")[0] != str(LLVM_MAJOR):
        raise ToolError(
            f"{name} is of version {tool.version or 'unknown'}, and {LLVM_MAJOR} is needed: {path}",
            stage=STAGE,
            help=f"{help}, or set {_VARIABLE_OF[name]} to the path of one of version {LLVM_MAJOR}",
        )
    return tool


def _find_package(row: _Row) -> Tool:
    """`find_tool` for a Python package; the tool's path is the package's directory."""
    roots = _package_roots(row.package)
    if not roots:
        raise ToolError(f"{row.name} is not installed", stage=STAGE, help=row.help)
    tool = Tool(row.name, roots[0])
    if tool.version.rpartition(".")[0] not in LLVMLITE:
        raise ToolError(
            f"{row.name} is of version {tool.version}, and {' or '.join(LLVMLITE)} is needed, which has LLVM {LLVM_MAJOR}: {tool.path}",
            stage=STAGE,
            help=row.help,
        )
    return tool


def find_tools(toolchain: Toolchain) -> dict[str, Tool | ToolError]:
    """Every tool of `TOOL_NAMES`, or the error that says why it is missing and how to install it."""
    found: dict[str, Tool | ToolError] = {}
    for name in TOOL_NAMES:
        try:
            found[name] = find_tool(name, toolchain)
        except ToolError as error:
            found[name] = error
    return found


def _locate(row: _Row, toolchain: Toolchain) -> tuple[str | None, list[str]]:
    """The path of the row's file and the places that were tried; the path is None if nothing was found.

    A path that the user names is used or refused; no other place is tried then.
    """
    if given := toolchain.file_of(row.name):
        path = given if os.path.isfile(given) else shutil.which(given)
        return path, [f"{_VARIABLE_OF[row.name]}={given}"]
    tried: list[str] = []
    for place in _places(row, toolchain.cuda_home):
        tried.append(place)
        if path := place if os.path.isfile(place) else shutil.which(place):
            return path, tried
    return None, tried


def _places(row: _Row, cuda_home: str) -> list[str]:
    """Paths and command names to try for a row, in order."""
    if not row.inside:
        return [*_named_places(row), row.name]
    toolkits = [toolkit for toolkit in (cuda_home, "/usr/local/cuda") if toolkit]
    commands = [] if row.name == "libdevice" else [row.name]
    wheels = [root for package in _WHEELS for root in _package_roots(package)]
    return [*_inside(wheels, row), *commands, *_inside(toolkits, row)]


def _named_places(row: _Row) -> list[str]:
    """The places of LLVM's tools that have the version in the name."""
    return [f"{row.name}-{LLVM_MAJOR}", f"/usr/lib/llvm-{LLVM_MAJOR}/bin/{row.name}"]


def _inside(roots: Sequence[str], row: _Row) -> list[str]:
    return [str(Path(root) / row.inside) for root in roots]


@lru_cache
def _package_roots(package: str) -> tuple[str, ...]:
    """Directories of an installed package such as nvidia.cuda_nvcc; () if it is not installed. Imports only its parents."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # its parent is missing
        return ()
    return tuple(spec.submodule_search_locations or ()) if spec else ()


@cache
def _version_of_package(name: str) -> str:
    """The version of an installed package, which is read from its files: once in a process, that would load the same one again."""
    from importlib.metadata import version  # imported here: it takes long to load

    return version(name)


@lru_cache
def _version_of(path: str, modified_ns: int) -> str:
    """The version in the output of `path --version`, e.g. "22.1.8"; "" if there is none. Cached by file and modification time."""
    said = RunningTool([path, "--version"]).finish(b"", timeout_seconds=10.0).text
    found = re.search(r"LLVM version (\d+[.\d]*)|\bV(\d+[.\d]*)", said)
    return (found[1] or found[2]).rstrip(".") if found else ""


# Running them


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
    name     for messages; default: the file's name
    environment  its variables; default: those of this process
    raises   ToolError if it cannot start
    """

    def __init__(self, command: Sequence[str], name: str = "", environment: Mapping[str, str] | None = None) -> None:
        self.command = tuple(command)
        self.name = name or os.path.basename(self.command[0])
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        except OSError as error:
            reason = f"{self.name} could not be started: {error.strerror}"
            raise ToolError(reason, stage=STAGE, details=(f"command: {shlex.join(command)}",)) from error

    def finish(self, data: bytes, timeout_seconds: float = TIMEOUT_SECONDS) -> Answer:
        """Sends the tool its input and waits for its answer. Can be called once.

        timeout_seconds  of the tool's own time (`own_time`)
        raises ToolError if it does not end in time, or its exit code is not 0: with its first line about an error, the rest below,
        and the command
        """
        shown = shlex.join(self.command)
        from xla_emitters.own_time import within  # only where a tool runs

        given, answers = [data], list[tuple[bytes, bytes]]()

        def has_ended(seconds: float) -> bool:
            with suppress(subprocess.TimeoutExpired):
                answers.append(self._process.communicate(given.pop() if given else None, timeout=seconds))
            return bool(answers)

        if not within(timeout_seconds, self._process.pid, has_ended):
            self._process.kill()
            self._process.communicate()
            reason = f"{self.name} did not end within {timeout_seconds:g} s"
            raise ToolError(reason, stage=STAGE, details=(f"command: {shown}",))
        ((out, err),) = answers
        if code := self._process.returncode:
            raise _failure(self.name, self.command, code, (err or out).decode(errors="replace"))
        return Answer(out, err.decode(errors="replace"))

    def stop(self) -> None:
        """Ends the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _failure(name: str, command: Sequence[str], code: int, said: str) -> ToolError:
    """The error for a tool that failed: its first line about an error, with the rest below."""
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower() or "fatal" in line.lower()), "")
    how = f"exit {code}" if code >= 0 else f"signal {-code}"
    return ToolError(
        f"{name} failed ({how})" + (f": {first.strip()}" if first else ""),
        stage=STAGE,
        details=(*(line for line in lines[:12] if line != first), f"command: {shlex.join(command)}"),
    )


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
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=self._messages)
        except OSError as error:
            reason = f"{self.name} could not be started: {error.strerror}"
            raise ToolError(reason, stage=STAGE, details=(f"command: {shlex.join(command)}",)) from error

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
        from xla_emitters.own_time import within

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
        code = self._process.wait()
        self.end()
        if late.is_set():
            raise ToolError(
                f"{self.name} did not end within {timeout_seconds:g} s",
                stage=STAGE,
                details=(f"command: {shlex.join(self.command)}",),
            )
        raise _failure(self.name, self.command, code, self._heard())

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
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

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
