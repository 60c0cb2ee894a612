"""The tools called in process, as a shell calls them: starting a Python process costs half a second."""

from __future__ import annotations

import contextlib
import io
import sys
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
