"""How failures leave a command: a message, an exit code, a reproducer for our own bugs, and never a traceback."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.utils.exceptions import VerifyException

from xla_emitters.errors import InternalError, NumbersDiffer, Place, ToolError, Unsupported, UsageError
from xla_emitters.settings import DEBUG
from xla_emitters.tools.failures import INTERRUPTED, TERMINATED, Terminated, reported


def raising(error: BaseException) -> Callable[[], int]:
    def run() -> int:
        raise error

    return run


@pytest.fixture(autouse=True)
def no_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEBUG, raising=False)


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (Unsupported("no code for 'sort'", place=Place("a.hlo", 3, 4)), 1, "a.hlo:3:4: error: no code for 'sort'"),
        (UsageError("unknown stage 'x'"), 2, "error: unknown stage 'x'"),
        (NumbersDiffer("r0 differs"), 3, "error: r0 differs"),
        (
            ToolError("llc was not found", help="apt-get install"),
            4,
            "error: llc was not found\n    help: apt-get install",
        ),
        (VerifyException("operand 0 is i32"), 1, "error: [verify] operand 0 is i32"),
        (
            FileNotFoundError(2, "No such file or directory", "a.hlo"),
            1,
            "error: [file] a.hlo: No such file or directory",
        ),
        (RecursionError("maximum depth"), 1, "error: [limits] the input is nested too deeply"),
        (MemoryError(), 1, "error: [limits] out of memory"),
        (MemoryError("Unable to allocate 12.0 GiB"), 1, "error: [limits] out of memory: Unable to allocate 12.0 GiB"),
        (KeyboardInterrupt(), INTERRUPTED, ""),
        (Terminated(), TERMINATED, ""),
    ],
)
def test_each_kind(error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(raising(error)) == code
    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", message)


@pytest.mark.parametrize(
    "error", [InternalError("the IR after x does not verify", stage="x"), ZeroDivisionError("by 0")]
)
def test_a_bug_of_ours_leaves_a_reproducer(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 70, and a file with the command line and the traceback."""
    monkeypatch.setattr("sys.argv", ["xla-emitters", "compile", "my file.hlo", "\udcfc"])  # a byte that is no text
    assert reported(raising(error)) == 70
    _, err = capsys.readouterr()
    assert "Traceback" not in err
    found = re.search(r"please report it with (\S+)", err)
    assert found
    text = Path(found[1]).read_text()
    assert "# xla-emitters compile 'my file.hlo' '\\udcfc'" in text
    assert f"# cd {Path.cwd()}" in text
    assert "Traceback" in text
    assert type(error).__name__ in text


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(DEBUG, "1")
    assert reported(raising(UsageError("unknown stage 'x'"))) == 2
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        reported(raising(ZeroDivisionError("by 0")))


def test_what_runs_well() -> None:
    assert [reported(lambda code=code: code) for code in (0, 3)] == [0, 3]


COMMAND = (
    f"{sys.executable} -c 'import sys; from xla_emitters.tools.failures import ended; sys.exit(ended(lambda: %s))'"
)
SAYS, FAILS = 'print("a result") or 3', 'open("/nowhere/a.hlo")'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it needs Linux")
@pytest.mark.parametrize(
    ("work", "streams", "code", "message"),
    [
        (SAYS, "| true", 3, ""),
        (SAYS, ">/dev/full", 1, "error: [file] No space left on device"),
        (SAYS, ">&-", 3, ""),
        (SAYS, "2>&-", 3, ""),
        (FAILS, ">/dev/full", 1, "error: [file] /nowhere/a.hlo: No such file or directory"),
        (FAILS, "2>&-", 1, ""),
        (FAILS, "2>/dev/full", 1, ""),
        (FAILS, "2>&1 | true", 1, ""),
        ("sys.exit(print(1))", ">/dev/full", 0, ""),  # as --help
    ],
)
def test_output_that_cannot_be_written(work: str, streams: str, code: int, message: str) -> None:
    """Each is written, dropped because nobody wants it, or an error; the exit code is still that of the work."""
    shell = ["bash", "-c", f"(sleep 0.1; {COMMAND % work}) {streams}; exit ${{PIPESTATUS[0]}}"]
    # Python writes at the end, as for a user.
    environment = os.environ | {"PYTHONUNBUFFERED": ""}
    done = subprocess.run(shell, env=environment, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (code, message)


def test_sigterm_ends_the_other_processes_too() -> None:
    """They are ended as after Ctrl-C; the exit code is the one that shells report."""
    program = """
import os, sys, time
from xla_emitters.tools.failures import ended
from xla_emitters.tools.workers import NamedWork, run_jobs

def work():
    print(os.getpid(), flush=True)
    time.sleep(600)

sys.exit(ended(lambda: len(list(run_jobs([NamedWork("w", work)], 1, None, lambda *_: "")))))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        worker = Path(f"/proc/{process.stdout.readline().strip()}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == TERMINATED == 128 + signal.SIGTERM
    assert not worker.exists()
