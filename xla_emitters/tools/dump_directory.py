"""A directory as an input: which of its files are modules. XLA's dump of one compilation has dozens of files for each module.

    module_0003.jit_f.before_optimizations.txt
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations.txt                       this one is taken, or its proto
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations.hlo.pb                    where the text leaves out elements of constants
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt

Source: the names that XLA writes with --xla_dump_to (xla/service/dump.cc).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from xla_emitters.errors import DataError

_OPTIMIZED = re.compile(
    r"(?P<module>.*?)\.?(?:[^.]*(?:\.\w+)?_)?(?:gpu|cpu)?_?after_optimizations\.(?:txt|hlo\.pb|hlo_snapshot)"
)
_EARLIER = re.compile(r"module_\d+\..*(?:\.txt|\.pb)|.*before_optimizations\..*")
_ALONE = (".hlo", ".mlirbc", ".stablehlo", ".pb", ".hlo_snapshot")
"""Endings of files that are a module each, but for those of a dump."""
_PROGRAM = ".mlir"
"""The ending that StableHLO has, and IR of any stage: such files are taken where there are no others."""
ELIDED = b"constant({...})"


def modules_in(directory: str) -> list[Path]:
    """The files of modules in a directory and below, sorted; a note on stderr says which were chosen among XLA's dumps.

    raises DataError where there are none
    """
    files = [path for path in sorted(Path(directory).rglob("*")) if path.is_file()]
    dumped: dict[tuple[Path, str], list[Path]] = {}
    for path in files:
        if found := _OPTIMIZED.fullmatch(path.name):
            dumped.setdefault((path.parent, found["module"]), []).append(path)
    chosen = [_chosen(paths) for paths in dumped.values()]
    for path, number in zip(chosen, _numbers_of(dumped, files), strict=True):
        if number > 1:
            print(f"note: {path} is taken of the {number} files that XLA wrote for its module", file=sys.stderr)
    others = [path for path in files if not _OPTIMIZED.fullmatch(path.name) and not _EARLIER.fullmatch(path.name)]
    chosen += [path for path in others if path.name.endswith(_ALONE)]
    if not (chosen := sorted(chosen or [path for path in others if path.suffix == _PROGRAM])):
        earlier = next((path for path in files if _EARLIER.fullmatch(path.name)), None)
        is_cut = (
            f"{earlier.name} is of an earlier pass: XLA did not get further, or did not dump it; " if earlier else ""
        )
        raise DataError(
            f"no module is in the directory {directory}",
            stage="file",
            help=f"{is_cut}files named *after_optimizations.txt or .hlo.pb are read, which XLA_FLAGS=--xla_dump_to={directory} writes,"
            f" and those that end in {', '.join((*_ALONE, _PROGRAM))}",
        )
    return chosen


def only_module_in(directory: str) -> Path:
    """raises DataError for a directory with no module or with several"""
    only, *others = modules_in(directory)
    if others:
        raise DataError(
            f"{len(others) + 1} modules are in the directory {directory}",
            stage="file",
            help=f"give one of them: {only}",
        )
    return only


def _chosen(paths: list[Path]) -> Path:
    """The text, which a user can open; the proto if there is no text, or the text leaves out elements of constants."""
    texts, protos = ([path for path in paths if (path.suffix == ".txt") == is_text] for is_text in (True, False))
    if texts and (not protos or ELIDED not in texts[0].read_bytes()):
        return texts[0]
    return protos[0]


def _numbers_of(dumped: dict[tuple[Path, str], list[Path]], files: list[Path]) -> Iterator[int]:
    """How many files each dumped module has."""
    for folder, module in dumped:
        yield sum(path.parent == folder and path.name.startswith(f"{module}.") for path in files)
