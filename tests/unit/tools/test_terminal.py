"""Colours and progress are shown on terminals only."""

import io
import re
import sys
import time

import pytest

from xla_emitters.tools import terminal
from xla_emitters.tools.terminal import coloured, marked_error, progress, wants_colour

IR = 'func.func @f(%x: f32) -> f32 {\n  return %x : f32 loc("a":1:2)\n}\n'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_who_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


@pytest.mark.parametrize("kind", ["hlo", "partition", "flat", "llvm", "ptx", "diff", "json"])
def test_the_text_is_the_same_under_its_colours(kind: str) -> None:
    painted = coloured(IR, kind, Terminal())
    assert painted != IR
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == IR
    assert coloured(IR, kind, io.StringIO()) == IR


def test_an_error_is_red() -> None:
    assert marked_error("a.hlo:1:2: error: [x] no", Terminal()) == "a.hlo:1:2: \x1b[1;31merror:\x1b[0m [x] no"
    assert marked_error("error: no", io.StringIO()) == "error: no"
    two = "a.hlo:1:2: error: [x] no\n    error: quoted\na.hlo:3:4: error: [x] error: neither"
    assert marked_error(two, Terminal()).split("\x1b[1;31merror:\x1b[0m") == [
        "a.hlo:1:2: ",
        " [x] no\n    error: quoted\na.hlo:3:4: ",
        " [x] error: neither",
    ]


def test_progress_comes_late_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PROGRESS_AFTER_SECONDS", 0.01)
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress("checking"):
        deadline = time.monotonic() + 10
        while "checking ..." not in stderr.getvalue() and time.monotonic() < deadline:
            time.sleep(0.005)
    assert stderr.getvalue() == "checking ...\r            \r"


def test_no_progress_for_what_is_quick_or_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress("checking"):
        pass
    assert stderr.getvalue() == ""
    monkeypatch.setattr(terminal, "PROGRESS_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress("checking"):
        time.sleep(0.02)
    assert sys.stderr.getvalue() == ""
