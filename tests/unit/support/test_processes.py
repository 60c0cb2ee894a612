"""Limits in a process's own time: waiting for a CPU does not count; computing, sleeping, and children do."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from xla_emitters.errors import ToolError
from xla_emitters.support import processes
from xla_emitters.support.processes import OwnTime, run_tool, within

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
COMPUTES, SLEEPS = "while True: pass", "import time; time.sleep(60)"
HAS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{COMPUTES}'])"


@contextmanager
def started(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        yield process
    finally:
        import os
        import signal

        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def waits(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


@pytest.mark.parametrize("code", [COMPUTES, SLEEPS, HAS_A_CHILD], ids=["computes", "sleeps", "has a child"])
def test_a_process_that_does_not_end_is_late(code: str) -> None:
    with started(code) as process:
        assert not within(0.5, process.pid, lambda seconds: waits(process, seconds))


def test_a_process_that_ends_is_not() -> None:
    with started("print()") as process:
        assert within(30.0, process.pid, lambda seconds: waits(process, seconds))


@needs_proc
def test_a_process_that_waits_for_a_cpu_takes_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The states of proc(5): 2 s of CPU at the first look; then nothing while it is runnable; then it sleeps."""
    monkeypatch.setattr(processes, "PROCESSES", tmp_path)
    hertz = processes.os.sysconf("SC_CLK_TCK")
    now = [100.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])

    def says(state: str, cpu_seconds: float) -> None:
        (tmp_path / "7").mkdir(exist_ok=True)
        user, system = int(cpu_seconds * hertz) - 3, 3
        (tmp_path / "7" / "stat").write_text(
            f"7 (a ) R b) {state} 1 7 7 0 -1 4194304 9 0 0 0 {user} {system} 0 0 20 0 1 0"
        )

    says("R", 2.0)
    taken = OwnTime(7)
    now[0] += 500.0
    assert taken.seconds() == 0.0  # a busy machine
    says("D", 2.0)
    now[0] += 500.0
    assert taken.seconds() == 0.0  # a busy disk
    says("R", 5.0)
    now[0] += 100.0
    assert taken.seconds() == pytest.approx(3.0)
    says("S", 5.0)
    now[0] += 7.0
    assert taken.seconds() == pytest.approx(10.0)


@needs_proc
def test_a_child_that_computes_counts_for_its_parent() -> None:
    with started(HAS_A_CHILD) as process:
        taken, begin = OwnTime(process.pid), time.monotonic()
        while taken.seconds() < 0.3 and time.monotonic() - begin < 60:
            time.sleep(0.05)
        assert len(list(processes._family(process.pid))) == 2


READS_LATE = "import sys, time; time.sleep(0.6); print(len(sys.stdin.buffer.read()))"


def test_a_tool_that_reads_late_gets_all_of_its_input() -> None:
    """An input that is longer than a pipe, and a tool that loads for longer than a poll."""
    assert run_tool([sys.executable, "-c", READS_LATE], bytes(3_000_000), timeout_seconds=20.0).text == "3000000\n"


def test_a_tool_that_does_not_read_is_late() -> None:
    with pytest.raises(ToolError, match=r"did not end within 0\.5 s"):
        run_tool([sys.executable, "-c", "import time; time.sleep(60)"], bytes(3_000_000), timeout_seconds=0.5)


def test_a_tool_that_ends_before_it_has_read() -> None:
    with pytest.raises(ToolError, match=r"failed \(exit 3\)"):
        run_tool([sys.executable, "-c", "raise SystemExit(3)"], bytes(3_000_000), timeout_seconds=20.0)


def test_a_resident_tool_that_ends_with_the_process_leaves_no_open_file() -> None:
    """With `-W error` Python says which file it had to close."""
    code = """
import sys
from xla_emitters.support.processes import borrow_tool

answers = "import sys\\nfor line in sys.stdin: print('{}', flush=True)"
with borrow_tool([sys.executable, "-c", answers], "answers") as tool:
    print(tool.ask({}))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "({}, '')\n", "")
