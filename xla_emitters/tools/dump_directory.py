"""A directory as an input: which of its files are modules. XLA's dump of one compilation has dozens of files for each module.

    module_0003.jit_f.before_optimizations.txt
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations.txt                       this one is taken,
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations.hlo.pb                    or this one, where the text leaves out elements of constants
    module_0003.jit_f.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt
    module_0003.jit_f.snapshot.113772781.pb                                     or, without either, a snapshot, with its arguments
    module_0003.jit_f/module.mlir

Source: the names that XLA writes with --xla_dump_to (xla/service/dump.cc).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from xla_emitters.errors import DataError

# Patterns are texts here and in the other files of commands: `re` compiles them when a command needs one.
_OF_DUMP = r"module_\d+\.[^.]*|.*before_optimizations\."
"""How the names of files and folders of a dump begin, up to the module's name."""
_FORMS = (
    r".*after_optimizations\.txt",
    r".*after_optimizations\.hlo\.pb(?:\.gz)?",
    r".*\.(?:snapshot\.-?\d+|hlo_\w*snapshot)(?:\.pb)?(?:\.gz)?",
)
"""The files of a module that are taken, the best first."""
_ALONE = (".hlo", ".mlirbc", ".stablehlo", ".pb", ".pb.gz", ".hlo_snapshot")
"""Endings of files that are a module each."""
_PROGRAM = ".mlir"
"""The ending that StableHLO has, and IR of any stage: such files are taken where there are no others."""
_ELIDED = b"constant({...})"


def modules_in(directory: str) -> list[Path]:
    """The files of modules in a directory and below, sorted; a note on stderr says which were chosen among XLA's dumps.

    raises DataError where there are none
    """
    root = Path(directory)
    dumped: dict[tuple[Path, str], list[Path]] = {}
    alone: list[Path] = []
    for path in (path for path in sorted(root.rglob("*")) if path.is_file()):
        if (found := re.match(_OF_DUMP, path.name)) or any(re.fullmatch(form, path.name) for form in _FORMS):
            dumped.setdefault((path.parent, found[0] if found else path.stem), []).append(path)
        elif not any(re.match(_OF_DUMP, part) for part in path.relative_to(root).parts[:-1]):
            alone.append(path)
    chosen: list[Path] = []
    for paths in dumped.values():
        if (best := _chosen(paths)) is not None:
            chosen.append(best)
            if len(paths) > 1:
                print(f"note: {best} is taken of the {len(paths)} files that XLA wrote for its module", file=sys.stderr)
    chosen += [path for path in alone if path.name.endswith(_ALONE)]
    if not (chosen := sorted(chosen or [path for path in alone if path.suffix == _PROGRAM])):
        earlier = next((paths[0].name for paths in dumped.values()), "")
        raise DataError(
            f"no module is in the directory {directory}",
            stage="file",
            help=(f"{earlier} is of another pass: XLA did not get further, or did not dump it; " if earlier else "")
            + f"files named *after_optimizations.txt or .hlo.pb are read, which XLA_FLAGS=--xla_dump_to={directory} writes,"
            f" and those that end in {', '.join((*_ALONE, _PROGRAM))}",
        )
    return chosen


def files_in(name: str) -> list[str]:
    """The file itself, '-' too, or the modules in a directory and below. raises DataError where there are none."""
    return [name] if name == "-" or not Path(name).is_dir() else [*map(str, modules_in(name))]


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


def _chosen(paths: list[Path]) -> Path | None:
    """The text, which a user can open; the proto if the text leaves out elements of constants, or is not there; or a snapshot."""
    found = [path for form in _FORMS for path in paths if re.fullmatch(form, path.name)]
    if len(found) > 1 and re.fullmatch(_FORMS[1], found[1].name) and _ELIDED in found[0].read_bytes():
        return found[1]
    return next(iter(found), None)
