"""The tools called in process, as a shell calls them: starting a Python process costs half a second; and files for them."""

import contextlib
import io
import sys
from pathlib import Path
from unittest import mock


def call_main(words: list[str], stdin: bytes) -> tuple[int, bytes, bytes]:
    """Calls the `main` of a console script; returns (exit code, stdout, stderr)."""
    match words[0]:
        case "xla-emitters":
            from xla_emitters.tools.main import main
        case "xla-emitters-opt":
            from xla_emitters.tools.opt import main
        case "filecheck":
            from filecheck.main import main
        case other:
            raise ValueError(f"unknown tool '{other}'")
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    code = 0
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main() or 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    for stream in (out, err):
        stream.flush()
    return code, out.buffer.getvalue(), err.buffer.getvalue()


def called(*words: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `xla-emitters WORDS`."""
    code, out, err = call_main(["xla-emitters", *map(str, words)], stdin)
    return code, out.decode(), err.decode()


def printed(*words: str | Path, code: int = 0) -> str:
    """What `xla-emitters WORDS` prints to stdout; its exit code is `code`. If that is 0, there is nothing on stderr."""
    found, out, err = called(*words)
    assert (found, "" if code else err) == (code, ""), err
    return out


def messages(wanted: int, *words: str | Path) -> str:
    """What `xla-emitters WORDS` prints to stderr; its exit code is `wanted`."""
    code, _, err = called(*words)
    assert code == wanted, err
    return err


def written(path: Path, text: str) -> Path:
    """The path, after the text was written there."""
    path.write_text(text)
    return path
