"""A file for each kernel of a program, at a stage that has kernels.

    compile module.hlo -o DIR/              DIR/fusion.ptx, DIR/fusion_1.ptx ...       each has one entry and can be loaded alone
    compile module.hlo --stage flat -o DIR/ DIR/fusion.mlir ...

Files and entries have the kernels' names in `compile --json`. At `llvm` and `ptx` all kernels of a program are one text; each file gets
one entry and everything in the text that is not an entry: tables, shared memory and functions, which several kernels may use.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.errors import UsageError
from xla_emitters.tools.input_output import write_file

if TYPE_CHECKING:
    from xla_emitters.program import Program

_SUFFIXES = {
    **{"ptx": ".ptx", "llvm": ".ll", "sass": ".sass"},
    **{"json": ".json", "diff": ".diff", "HLO": ".hlo"},
}
"""Kind of a text, a stage for most -> the ending of its file; all others are MLIR."""
_ENTRIES = {
    "ptx": re.compile(
        r"^(?:\t// \.globl[^\n]*\n)?\.visible \.entry (?P<name>[\w$.]+)\(.*?^\}\n(?:[^\S\n]*// -- End function\n)?\n?",
        re.MULTILINE | re.DOTALL,
    ),
    "llvm": re.compile(r'^define ptx_kernel void @"?(?P<name>[\w$.]+)"?\(.*?^\}\n\n?', re.MULTILINE | re.DOTALL),
    "sass": re.compile(r"^//-+ \.text\.(?P<name>[\w$.]+) .*?(?=^//-|\Z)", re.MULTILINE | re.DOTALL),
}
"""Matches the definition of a kernel's entry in the text of a stage."""


def is_directory(output: str) -> bool:
    """Whether a value of `-o` names a directory: one that exists, or a name that ends in a slash."""
    return output != "-" and (output.endswith("/") or Path(output).is_dir())


def make_directory(directory: Path) -> None:
    """Makes the directory if it does not exist. raises UsageError where it cannot be made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {directory}: {error.strerror}", stage="output") from error


def write_kernel_files(program: Program, directory: Path, source: object = None) -> list[Path]:
    """Writes the files, and makes the directory; returns their paths. raises UsageError where they cannot be written.

    source  the file that was read, which is not overwritten
    """
    texts = {kernel.name: _text(program, number) for number, kernel in enumerate(program.kernels)}
    suffix, written = _SUFFIXES.get(program.stage, ".mlir"), list[Path]()
    make_directory(directory)
    try:
        for name, text in texts.items():
            written.append(_other_than(source, directory / f"{name}{suffix}"))
            written[-1].write_text(text if text.endswith("\n") else text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {directory}: {error.strerror}", stage="output") from error
    return written


def file_stem(name: str) -> str:
    """The name of a file without the characters that one may not have."""
    return re.sub(r"\W", "_", name)


def write_whole(text: str, kind: str, directory: Path, name: str, source: object = None) -> None:
    """Writes one text for all that was compiled, and makes the directory. raises UsageError as `write_kernel_files`"""
    make_directory(directory)
    path = _other_than(source, directory / f"{file_stem(name)}{_SUFFIXES.get(kind, '.mlir')}")
    write_file(str(path), text.rstrip("\n") + "\n")


def _other_than(source: object, path: Path) -> Path:
    """`path` itself. raises UsageError where it is the file that was read"""
    if isinstance(source, Path) and path.exists() and path.samefile(source):
        raise UsageError(
            f"{path} is the file that was read: it would be overwritten", stage="output", help="-o another directory"
        )
    return path


def _text(program: Program, number: int) -> str:
    """A kernel's text at the program's stage."""
    kernels = program.kernels
    name = kernels[number].name
    if len(kernels) == 1:
        return program.code
    if (entry := _ENTRIES.get(program.stage)) is not None:
        others = {kernel.name for kernel in kernels} - {name}
        return entry.sub(lambda found: "" if found["name"] in others else found[0], program.code)
    trace = program.traces[number]
    text = trace[program.stage].ir
    if text is None:
        raise UsageError("the program was compiled without recording its IR", stage="output")
        # In a file of its own the entry gets its original name, without the suffix that kept it apart from others in the module.
    return re.sub(rf"@{re.escape(_entry_in(text))}(?![\w$.])", f"@{name}", text)


def _entry_in(text: str) -> str:
    """The name of the entry of one kernel's module: its first function with a launch."""
    found = re.search(r"^\s*(?:func\.func|llvm\.func)(?: \w+)* @([\w$.]+)", text, re.MULTILINE)
    assert found is not None
    return found[1]
