"""Runs the command of xDSL's own FileCheck files in one process, and prints what each said: `python stock_xdsl_opt.py [--alone] < FILES`.

--alone   without the entry points of other packages, as if none were installed
FILES     a JSON list of paths
"""

import importlib.metadata
import json
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

COMMAND = re.compile(r"RUN:\s*xdsl-opt\b([^|\n]*)")
ADDRESS = re.compile(r"0x[0-9a-f]{8,}|\b\d{12,}\b")
"""Of an object in memory, in a message: another one in each process."""


def commands(path: Path) -> list[list[str]]:
    """The arguments of each `xdsl-opt` in a file's RUN lines; the file alone if they have other names for it."""
    text = path.read_text().replace("\\\n// RUN:", "")
    found = [shlex.split(words.replace("%s", str(path))) for words in COMMAND.findall(text) if "%s" in words]
    return found or [[str(path)]]


def answer(args: list[str]) -> str:
    """What the driver prints for the arguments, and how it ends."""
    from xdsl.xdsl_opt_main import xDSLOptMain

    said, complained = StringIO(), StringIO()
    ended = ""
    with redirect_stdout(said), redirect_stderr(complained):
        try:
            xDSLOptMain(args=args).run()
        except SystemExit as error:
            ended = f"exit {error.code}"
        except Exception as error:
            ended = f"{type(error).__name__}: {error}"
    return ADDRESS.sub("ADDRESS", "\n".join((said.getvalue(), complained.getvalue(), ended)))


def main() -> None:
    if "--alone" in sys.argv:
        own: Any = importlib.metadata.entry_points
        xdsls = own(group="xdsl.universe", name="xdsl")
        importlib.metadata.entry_points = partial(lambda found, **_: found, xdsls)  # pyright: ignore[reportAttributeAccessIssue]
    answers = {file: [answer(args) for args in commands(Path(file))] for file in json.load(sys.stdin)}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
