"""Collects the RUN lines of `tests/filecheck` and runs them in process.

    // RUN: xla-emitters-opt -p xla-cse %s | filecheck %s

Starting a Python process costs half a second, so the tools' `main` functions and `filecheck` are called here instead; the verdicts are
the same. `XLA_EMITTERS_TEST_SUBPROCESS=1` runs the very same lines as real processes through the installed console scripts.

A RUN line may hold `not TOOL` (the exit code must not be 0), `exit N TOOL` (must be N), `2>&1` (messages too), pipes into `filecheck`,
`%s` (the file) and `%t` (a fresh temporary path). Every `.hlo` file under `filecheck/emitters` that is not about a refusal is also a
numeric case: `xla-emitters check` over some blocks; every second one of a folder is long. `XLA_EMITTERS_TEST_BLESS=1` writes whole
listings anew (`bless.py`).
"""

import gc
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import long_lists
import pytest
from bless import bless, prefix_of
from in_process import call_main

# Every test compiles for itself; those of the cache turn it on in a directory of their own.
os.environ["XLA_EMITTERS_DISABLE_CACHE"] = "1"

# Before any module imports JAX, which reads it once: otherwise its plugin for GPUs looks for CUDA, without which it is not registered.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

FILECHECK_DIR = Path(__file__).parent / "filecheck"
EMITTERS_DIR = FILECHECK_DIR / "emitters"
SUFFIXES = {".mlir", ".hlo"}
# At the end; files of the corpus and the fuzzer's cases go through every stage.
NUMERIC = "xla-emitters check --blocks 8 --stages llvm-dialect %s"

# A run starts about a hundred Pythons; without bytecode each compiles the package anew, which takes 0.6 s of CPU.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Every dialect and thousands of tests are made before the first runs, and stay: the collector need not look at them again and again.
gc.set_threshold(1_000_000, 50, 50)


def pytest_configure(config: pytest.Config) -> None:
    long_lists.are_wanted = config.option.markexpr != "not long"


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    if file_path.suffix in SUFFIXES and FILECHECK_DIR in file_path.parents:
        return RunLines.from_parent(parent, path=file_path)
    return None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """`make tiny` makes no tests but those that it runs."""
    if collector.config.option.markexpr != "tiny" or not isinstance(obj, FunctionType):
        return None
    return None if "tiny" in (mark.name for mark in getattr(obj, "pytestmark", ())) else []


class RunLines(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        lines = [line.split("RUN:", 1)[1].strip() for line in self.path.read_text().splitlines() if "// RUN:" in line]
        if not lines:
            raise self.CollectError(f"{self.path} has no RUN line")
        for number, line in enumerate(lines):
            yield RunLine.from_parent(self, name=f"RUN{number}", line=line)
        is_refused = any(line.startswith(("not ", "exit ")) for line in lines)
        if EMITTERS_DIR in self.path.parents and self.path.suffix == ".hlo" and not is_refused:
            numeric = RunLine.from_parent(self, name="NUMERIC", line=NUMERIC)
            if sorted(self.path.parent.glob("*.hlo")).index(self.path) % 2:
                numeric.add_marker("long")
            yield numeric


class RunLineFailed(Exception):
    pass


class RunLine(pytest.Item):
    def __init__(self, *, line: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.line = line

    def runtest(self) -> None:
        text = b""
        temporary = Path(tempfile.gettempdir()) / f"{self.path.stem}-{os.getpid()}"
        line = self.line.replace("%s", shlex.quote(str(self.path))).replace("%t", str(temporary))
        for command in line.split(" | "):
            words = shlex.split(command)
            if os.environ.get("XLA_EMITTERS_TEST_BLESS") and words[0] == "filecheck":
                bless(self.path, prefix_of(words), text.decode())
            text = self.run_command(words, text)

    def run_command(self, words: list[str], stdin: bytes) -> bytes:
        wanted: int | None = 0
        if words[0] == "not":
            wanted, words = None, words[1:]
        elif words[0] == "exit":
            wanted, words = int(words[1]), words[2:]
        merge = "2>&1" in words
        words = [word for word in words if word != "2>&1"]
        if os.environ.get("XLA_EMITTERS_TEST_SUBPROCESS"):
            script = str(Path(sys.executable).parent / words[0])
            done = subprocess.run([script, *words[1:]], input=stdin, capture_output=True, timeout=120)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = call_main(words, stdin)
        if (code == 0) if wanted is None else (code != wanted):
            raise RunLineFailed(
                f"{shlex.join(words)}\nexit code {code}, wanted {'not 0' if wanted is None else wanted}\n"
                + err.decode()
                + out.decode()[:8000]
            )
        return out + err if merge else out

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, RunLineFailed):
            return f"{self.path}\nRUN: {self.line}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.line}"
