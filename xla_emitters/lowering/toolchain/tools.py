"""The external programs and the ways to PTX: finds LLVM's and NVIDIA's tools, checks their versions, and chooses a way.

    find_tool("ptxas", toolchain)    the file that the user names, else in its usual places; or an error that says how to install it
    choose_way(Toolchain("auto"))    Choice(Way.LLVMLITE, "llvmlite is here")
    tools_fingerprint(toolchain)     what PTX depends on besides the module: LLVM's options, the way, the tools' files

LLVM must be version 22: tools are those that the user names, else found as `mlir-opt-22` or in LLVM 22's own directory, then on
PATH, and another major version is refused by name. llvmlite is LLVM 22 as a Python package, loaded in a separate Python process. ptxas,
nvdisasm and libdevice come from NVIDIA's wheels in the running environment, then from PATH and the CUDA toolkit's directories.
`processes` runs them, `toolchain.py` implements the ways. This file loads neither xDSL nor a tool: a program compiled before
is found without either. Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.settings import AUTO, TOOLCHAIN, VARIABLES, Toolchain
from xla_emitters.support.extras import install_command, version_read
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.support.processes import STAGE, ResidentTool, RunningTool, borrow_tool

LLVM_MAJOR = 22
_SYSTEM_HAS_APT = sys.platform == "linux"
_PACKAGES = f"apt-get install mlir-{LLVM_MAJOR}-tools llvm-{LLVM_MAJOR}"
LLVM_HELP = _PACKAGES if _SYSTEM_HAS_APT else f"install MLIR and LLVM {LLVM_MAJOR}"
LLVMLITE = ("0.50", "0.51")
"""The versions of llvmlite that are taken, as in pyproject.toml; `llvm_process` asks the package itself which LLVM it has."""
_LLVMLITE_WHEELS = {"linux": ("x86_64", "aarch64"), "darwin": ("arm64",), "win32": ("AMD64", "ARM64")}
_HAS_LLVMLITE = platform.machine() in _LLVMLITE_WHEELS.get(sys.platform, ())
LLVMLITE_HELP = install_command("llvmlite>=0.50,<0.52") if _HAS_LLVMLITE else "llvmlite has no package for this system"
_SYSTEM_HAS_WHEELS = sys.platform in ("linux", "win32")
NVIDIA_HELP = install_command(extras="ptxas") if _SYSTEM_HAS_WHEELS else "NVIDIA has no packages for this system"
LLVM_PROCESS = str(Path(__file__).with_name("llvm_process.py"))
"""The script that a separate Python runs for llvmlite; it imports nothing from this package."""


# Finding them


@dataclass(frozen=True)
class _Row:
    """The possible places of one tool.

    inside    path inside a CUDA toolkit and inside NVIDIA's wheels, which are laid out alike; "" for LLVM's tools
    package   the Python package, if the tool is one
    """

    name: str
    inside: str = ""
    package: str = ""

    @property
    def help(self) -> str:
        """The command that installs it."""
        return LLVMLITE_HELP if self.package else NVIDIA_HELP if self.inside else LLVM_HELP


# Suffix of program names.
_PROGRAM = ".exe" if sys.platform == "win32" else ""
_ROWS = (
    _Row("mlir-opt"),
    _Row("mlir-translate"),
    _Row("llvm-link"),
    _Row("opt"),
    _Row("llc"),
    _Row("llvmlite", package="llvmlite"),
    _Row("ptxas", f"bin/ptxas{_PROGRAM}"),
    _Row("libdevice", "nvvm/libdevice/libdevice.10.bc"),
    _Row("nvdisasm", f"bin/nvdisasm{_PROGRAM}"),
)
# Packages of NVIDIA's wheels: for CUDA 12 one per component, for CUDA 13 one for all.
_WHEELS = ("nvidia.cuda_nvcc", "nvidia.cuda_nvdisasm", "nvidia.cu13")
TOOL_NAMES = tuple(row.name for row in _ROWS)
_VARIABLE_OF = {variable.tool: variable.name for variable in VARIABLES if variable.tool}


@dataclass(frozen=True)
class Tool:
    """One external program, or libdevice's bitcode."""

    name: str
    path: str

    @property
    def version(self) -> str:
        """The version that it prints: "22.1.8", "12.9.86"; "" for libdevice, which has none. raises ToolError."""
        if self.name == "llvmlite":
            return version_read(self.name)
        if self.name == "libdevice":
            return ""
        return _version_of(self.path, os.stat(self.path).st_mtime_ns)


def find_tool(name: str, toolchain: Toolchain) -> Tool:
    """The tool called `name`, one of `TOOL_NAMES`.

    raises ToolError if it is missing or, for LLVM's tools, has another major version than 22; the help says what to install.
    """
    row = next(row for row in _ROWS if row.name == name)
    if row.package:
        return _find_package(row)
    help = row.help
    path, tried = _locate(row, toolchain)
    if path is None:
        raise ToolError(
            f"{name} was not found",
            stage=STAGE,
            details=(f"looked at: {', '.join(tried)}",),
            help=f"{help}, or set {_VARIABLE_OF[name]} to its path",
        )
    tool = Tool(name, path)
    # Asking a tool costs as much as compiling a kernel, so names with a version, as in distributions, are trusted.
    if not row.inside and tried[-1] not in _named_places(row) and tool.version.partition(".")[0] != str(LLVM_MAJOR):
        raise ToolError(
            f"{name} is of version {tool.version or 'unknown'}, and {LLVM_MAJOR} is needed: {path}",
            stage=STAGE,
            help=f"{help}, or set {_VARIABLE_OF[name]} to the path of one of version {LLVM_MAJOR}",
        )
    return tool


def _find_package(row: _Row) -> Tool:
    """`find_tool` for a Python package; the tool's path is the package's directory."""
    roots = _package_roots(row.package)
    if not roots:
        raise ToolError(f"{row.name} is not installed", stage=STAGE, help=row.help)
    tool = Tool(row.name, roots[0])
    if tool.version.rpartition(".")[0] not in LLVMLITE:
        raise ToolError(
            f"{row.name} is of version {tool.version}, and {' or '.join(LLVMLITE)} is needed, which has LLVM {LLVM_MAJOR}: {tool.path}",
            stage=STAGE,
            help=row.help,
        )
    return tool


def find_tools(toolchain: Toolchain) -> dict[str, Tool | ToolError]:
    """Every tool of `TOOL_NAMES`, or the error that says why it is missing and how to install it."""
    found: dict[str, Tool | ToolError] = {}
    for name in TOOL_NAMES:
        try:
            found[name] = find_tool(name, toolchain)
        except ToolError as error:
            found[name] = error
    return found


def _locate(row: _Row, toolchain: Toolchain) -> tuple[str | None, list[str]]:
    """The path of the row's file and the places that were tried; the path is None if nothing was found.

    A path that the user names is used or refused; no other place is tried then.
    """
    if given := toolchain.file_of(row.name):
        path = given if os.path.isfile(given) else shutil.which(given)
        return path, [f"{_VARIABLE_OF[row.name]}={given}"]
    tried: list[str] = []
    for place in _places(row, toolchain.cuda_home):
        tried.append(place)
        if path := place if os.path.isfile(place) else shutil.which(place):
            return path, tried
    return None, tried


def _places(row: _Row, cuda_home: str) -> list[str]:
    """Paths and command names to try for a row, in order."""
    if not row.inside:
        return [*_named_places(row), row.name]
    toolkits = [toolkit for toolkit in (cuda_home, "/usr/local/cuda") if toolkit]
    commands = [] if row.name == "libdevice" else [row.name]
    wheels = [root for package in _WHEELS for root in _package_roots(package)]
    return [*_inside(wheels, row), *commands, *_inside(toolkits, row)]


def _named_places(row: _Row) -> list[str]:
    """The places of LLVM's tools that have the version in the name."""
    return [f"{row.name}-{LLVM_MAJOR}", f"/usr/lib/llvm-{LLVM_MAJOR}/bin/{row.name}"]


def _inside(roots: Sequence[str], row: _Row) -> list[str]:
    return [str(Path(root) / row.inside) for root in roots]


@lru_cache
def _package_roots(package: str) -> tuple[str, ...]:
    """Directories of an installed package such as nvidia.cuda_nvcc; () if it is not installed. Imports only its parents."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # its parent is missing
        return ()
    return tuple(spec.submodule_search_locations or ()) if spec else ()


@lru_cache
def _version_of(path: str, modified_ns: int) -> str:
    """The version in the output of `path --version`, e.g. "22.1.8"; "" if there is none. Cached by file and modification time."""
    said = RunningTool([path, "--version"]).finish(b"", timeout_seconds=10.0).text
    found = re.search(r"LLVM version (\d+[.\d]*)|\bV(\d+[.\d]*)", said)
    return (found[1] or found[2]).rstrip(".") if found else ""


# XLA's options for LLVM: f32 division within 2 ulp (div.full.f32), bf16x2 arithmetic at most, its own inlining thresholds.
LLVM_OPTIONS = (
    "-nvptx-prec-divf32=1",
    "-slp-max-reg-size=32",
    "-slp-vectorize-hor=false",
    "-bonus-inst-threshold=2",
    "-inline-threshold=1100",
)

# For line information: an instruction without a line is marked so, instead of inheriting the previous line; an instruction merged from
# several keeps the line of one of them. Without line information these options do nothing.
LINE_OPTIONS = ("-use-unknown-locations=Enable", "-pick-merged-source-locations")


class PtxWay(StrEnum):
    """How PTX is made; see the file's head."""

    LLVMLITE = "llvmlite"
    MLIR_OPT = "mlir-opt"
    STEPS = "steps"


_TOOLS = {
    PtxWay.LLVMLITE: ("llvmlite",),
    PtxWay.MLIR_OPT: ("mlir-opt",),
    PtxWay.STEPS: ("mlir-translate", "llvm-link", "opt", "llc"),
}


@dataclass(frozen=True)
class Choice:
    """The chosen way, and the reason."""

    way: PtxWay
    reason: str


def tools_of(way: PtxWay) -> tuple[str, ...]:
    """The tools that the way starts; libdevice is searched for only if a kernel calls it."""
    return _TOOLS[way]


def candidates(toolchain: Toolchain) -> tuple[PtxWay, ...]:
    """The ways of which the first that is found is taken: the one that the toolchain names; if it is `auto`, mlir-opt
    where the user names its file, else llvmlite and mlir-opt.

    raises  UsageError for an unknown way
    """
    asked = toolchain.way
    if asked == AUTO:
        return (PtxWay.MLIR_OPT,) if toolchain.file_of("mlir-opt") else (PtxWay.LLVMLITE, PtxWay.MLIR_OPT)
    if asked not in tuple(PtxWay):
        raise UsageError(f"{TOOLCHAIN} is '{asked}'", stage=STAGE, help=f"one of: {', '.join((AUTO, *PtxWay))}")
    return (PtxWay(asked),)


def choose_way(toolchain: Toolchain) -> Choice:
    """The first of `candidates` whose tools are found. raises UsageError as `candidates`, ToolError if there is none"""
    missing = list[ToolError]()
    for way in candidates(toolchain):
        try:
            for name in tools_of(way):
                find_tool(name, toolchain)
        except ToolError as error:
            missing.append(error)
        else:
            return Choice(way, "; ".join((*(error.message for error in missing), f"{tools_of(way)[0]} is here")))
    first, *others = missing
    if not others:
        raise first
    details = (*first.details, *(line for error in others for line in (error.message, *error.details)))
    help = "; or: ".join(filter(None, (error.help for error in missing)))
    raise ToolError(first.message, stage=STAGE, details=details, help=help)


def borrow_llvmlite(toolchain: Toolchain) -> ResidentTool:
    """A process with llvmlite, ready for jobs; starts one if none is idle."""
    tool = find_tool("llvmlite", toolchain)
    # -I -S: it needs the standard library and llvmlite alone, and starts faster without the rest.
    command = (sys.executable, "-I", "-S", LLVM_PROCESS, str(Path(tool.path).parent), _libdevice_of(toolchain))
    return borrow_tool((*command, *LLVM_OPTIONS, *LINE_OPTIONS), tool.name)


def _libdevice_of(toolchain: Toolchain) -> str:
    """The file of libdevice; "" without one, which only kernels that call it refuse."""
    try:
        return find_tool("libdevice", toolchain).path
    except ToolError:
        return ""


def start_llvmlite(toolchain: Toolchain) -> None:
    """Starts llvmlite if it is the way to PTX, to load while the compiler is imported; what is missing, the compilation says."""
    with suppress(ToolError, UsageError):
        if choose_way(toolchain).way is PtxWay.LLVMLITE:
            borrow_llvmlite(toolchain).stop()


def ptx_reason_missing(toolchain: Toolchain) -> str | None:
    """Why no PTX can be made here and what to install, in one line; None if it can. raises UsageError as `choose_way`."""
    try:
        choose_way(toolchain)
        find_tool("libdevice", toolchain)
        return None
    except ToolError as error:
        return f"{error.message} ({error.help})"


def tools_fingerprint(toolchain: Toolchain, *, with_sass: bool = False) -> str:
    """A text of all that PTX depends on besides the module: the way, its tools, and libdevice. Changes when one of them is replaced.

    with_sass  include the tools that assemble PTX

    Cheap: it only looks at the files. raises ToolError if one is missing, UsageError.
    """
    way = choose_way(toolchain).way
    parts = [f"LLVM options {' '.join((*LLVM_OPTIONS, *LINE_OPTIONS))}", way.value]
    for name in (*tools_of(way), "libdevice", *(("ptxas", "nvdisasm") if with_sass else ())):
        tool = find_tool(name, toolchain)
        path = os.path.realpath(tool.path)
        status = os.stat(path)
        size = tool.version if os.path.isdir(path) else status.st_size
        parts.append(f"{path} {size} {status.st_mtime_ns}")
    return "\n".join(parts)
