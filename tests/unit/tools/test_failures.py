"""How failures leave a command: a message, an exit code, a reproducer for our own bugs, and never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.utils.exceptions import VerifyException

from xla_emitters.errors import InternalError, NumbersDiffer, Place, ToolError, Unsupported, UsageError
from xla_emitters.settings import DEBUG
from xla_emitters.tools.failures import INTERRUPTED, reported


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
    monkeypatch.setattr("sys.argv", ["xla-emitters", "compile", "my file.hlo"])
    assert reported(raising(error)) == 70
    _, err = capsys.readouterr()
    assert "Traceback" not in err
    found = re.search(r"please report it with (\S+)", err)
    assert found
    text = Path(found[1]).read_text()
    assert "# xla-emitters compile 'my file.hlo'" in text
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
