"""The ways to PTX: which exist, which one is chosen, and what PTX depends on besides the module.

    choose_way(Toolchain("auto"))    ->  Choice(Way.LLVMLITE, "llvmlite is here")
    tools_fingerprint(toolchain)     ->  "LLVM options -nvptx-prec-divf32=1 ...", the way, and path, size and time of each tool

`toolchain.py` implements them. This file loads neither xDSL nor a tool, so that a program compiled before is found without either.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept).
"""

from __future__ import annotations

import os
from enum import StrEnum

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.settings import AUTO, TOOLCHAIN, Toolchain
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.support.processes import STAGE

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


class Way(StrEnum):
    """How PTX is made; see the file's head."""

    LLVMLITE = "llvmlite"
    MLIR_OPT = "mlir-opt"
    STEPS = "steps"


_TOOLS = {
    Way.LLVMLITE: ("llvmlite",),
    Way.MLIR_OPT: ("mlir-opt",),
    Way.STEPS: ("mlir-translate", "llvm-link", "opt", "llc"),
}


@dataclass(frozen=True)
class Choice:
    """The chosen way, and the reason."""

    way: Way
    reason: str


def tools_of(way: Way) -> tuple[str, ...]:
    """The tools that the way starts; libdevice is searched for only if a kernel calls it."""
    return _TOOLS[way]


def candidates(toolchain: Toolchain) -> tuple[Way, ...]:
    """The ways of which the first that is found is taken: the one that the toolchain names; if it is `auto`, mlir-opt
    where the user names its file, else llvmlite and mlir-opt.

    raises  UsageError for an unknown way
    """
    asked = toolchain.way
    if asked == AUTO:
        return (Way.MLIR_OPT,) if toolchain.file_of("mlir-opt") else (Way.LLVMLITE, Way.MLIR_OPT)
    if asked not in tuple(Way):
        raise UsageError(f"{TOOLCHAIN} is '{asked}'", stage=STAGE, help=f"one of: {', '.join((AUTO, *Way))}")
    return (Way(asked),)


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
