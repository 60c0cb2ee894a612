"""Packages: the command that installs an extra, as messages and `doctor` print it, ready to be pasted, and versions.

/home/me/xla-emitters/.venv/bin/python -m pip install '/home/me/xla-emitters[ptxas]'

It names the running interpreter, because a bare `pip` may belong to another one, and the source tree if the package runs from one.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from xla_emitters.errors import ToolError

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


@contextmanager
def installed(what: str, stage: str, *, extras: str = "", help: str = "") -> Generator[None]:
    """For the import of a package that may be missing, or not fit what is installed.

    raises  ToolError that says so, with the command that installs the extras, or `help`
    """
    try:
        yield
    except (ImportError, RuntimeError) as error:
        reason = f"{what} is not installed ({error})"
        raise ToolError(reason, stage=stage, help=help or install_command(extras=extras)) from error


@cache
def version_read(package: str) -> str:
    """The version of an installed package, from the name of a folder beside it ("numpy-2.4.6.dist-info"); "" if there is none.

    Once in a process, which would import the same one again. `importlib.metadata` says the same, and takes longer to load than a cached
    program takes to be found, or a tenth of what a small kernel takes to be compiled.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    found = sorted(path.name for path in Path(spec.origin).parents[1].glob(f"{package}-*.dist-info"))
    return found[0].removeprefix(f"{package}-").removesuffix(".dist-info") if found else ""
