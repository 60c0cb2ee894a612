"""The command that installs an extra, as messages and `doctor` print it, ready to be pasted.

/home/me/xla-emitters/.venv/bin/python -m pip install '/home/me/xla-emitters[ptxas]'

It names the running interpreter, because a bare `pip` may belong to another one, and the source tree if the package runs from one.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

PACKAGE = "xla-emitters"


def install_command(*packages: str, extras: str = "") -> str:
    """The command that installs packages by name, or extras of this one ("ptxas", "xla,ptxas").

    >>> install_command("ml_dtypes").endswith("-m pip install ml_dtypes")
    True
    """
    if extras:
        tree = Path(__file__).resolve().parents[2]
        source, editable = (str(tree), ["-e"]) if (tree / "pyproject.toml").is_file() else (PACKAGE, [])
        packages = (*packages, *editable, f"{source}[{extras}]")
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])
