"""The ways to PTX: which exist, which one is chosen, and what PTX depends on besides the module.

    XLA_EMITTERS_TOOLCHAIN=auto     ->  Choice(Way.LLVM, "libLLVM is here")
    tools_fingerprint()             ->  "LLVM options -nvptx-prec-divf32=1 ...", the way, and path, size and time of each tool

`toolchain.py` implements them. This file loads neither xDSL nor a tool, so that a program compiled before is found without either.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept).
"""

from __future__ import annotations

import os
from enum import StrEnum

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.late_dataclass import dataclass
from xla_emitters.lowering.tools import STAGE, find_tool, variable_of

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

TOOLCHAIN = "XLA_EMITTERS_TOOLCHAIN"
AUTO = "auto"


class Way(StrEnum):
    """How PTX is made; see the file's head."""

    MLIR_OPT = "mlir-opt"
    STEPS = "steps"
    LLVM = "llvm"
    LLVMLITE = "llvmlite"


_TOOLS = {
    Way.MLIR_OPT: ("mlir-opt",),
    Way.STEPS: ("mlir-translate", "llvm-link", "opt", "llc"),
    Way.LLVM: ("libLLVM",),
    Way.LLVMLITE: ("llvmlite",),
}
LIBRARIES = (Way.LLVM, Way.LLVMLITE)
"""The ways that run LLVM as a library in a process that stays alive."""


@dataclass(frozen=True)
class Choice:
    """The chosen way, and the reason."""

    way: Way
    reason: str


def tools_of(way: Way) -> tuple[str, ...]:
    """The tools that the way starts; libdevice is searched for only if a kernel calls it."""
    return _TOOLS[way]


def requested_way() -> Way | None:
    """The way that `XLA_EMITTERS_TOOLCHAIN` names; None if it is `auto` or not set. raises UsageError for any other value."""
    asked = os.environ.get(TOOLCHAIN) or AUTO
    if asked == AUTO:
        return None
    if asked not in tuple(Way):
        raise UsageError(f"{TOOLCHAIN} is '{asked}'", stage=STAGE, help=f"one of: {', '.join((AUTO, *Way))}")
    return Way(asked)


def choose_way() -> Choice:
    """The way that `XLA_EMITTERS_TOOLCHAIN` names; without it the first of llvm, mlir-opt and llvmlite whose tool is found.

    llvm falls back to llvmlite if that is the only LLVM library here. An mlir-opt or a library that the user names is used or
    refused; there is no fallback for it.

    raises  UsageError for an unknown way, ToolError if a tool of the way is missing
    """
    if (asked := requested_way()) is not None:
        ways, why = (LIBRARIES if asked is Way.LLVM else (asked,)), f"{TOOLCHAIN} says so"
    else:
        ways, why = (Way.LLVM, Way.MLIR_OPT, Way.LLVMLITE), ""
    named = [way for way in ways if any(os.environ.get(variable_of(name)) for name in tools_of(way))]
    if asked is None and named:
        ways = named[:1]
    missing = list[ToolError]()
    for way in ways:
        try:
            for name in tools_of(way):
                find_tool(name)
        except ToolError as error:
            if way in named:
                raise
            missing.append(error)
        else:
            return Choice(way, why or "; ".join((*(error.message for error in missing), f"{tools_of(way)[0]} is here")))
    if len(missing) == 1:
        raise missing[0]
    # The last one is the package for Python.
    *others, last = missing
    first = others[-1]
    details = (*first.details, *(error.message for error in missing if error is not first))
    help = f"{first.help}; or, with Python packages alone: {last.help}"
    raise ToolError(first.message, stage=STAGE, details=details, help=help)


def ptx_reason_missing() -> str | None:
    """Why no PTX can be made here and what to install, in one line; None if it can. raises UsageError as `choose_way`."""
    try:
        choose_way()
        find_tool("libdevice")
        return None
    except ToolError as error:
        return f"{error.message} ({error.help})"


def tools_fingerprint(*, with_sass: bool = False) -> str:
    """A text of all that PTX depends on besides the module: the way, its tools, and libdevice. Changes when one of them is replaced.

    with_sass  include the tools that assemble PTX

    Cheap: it only looks at the files. raises ToolError if one is missing, UsageError.
    """
    way = choose_way().way
    parts = [f"LLVM options {' '.join((*LLVM_OPTIONS, *LINE_OPTIONS))}", way.value]
    for name in (*tools_of(way), "libdevice", *(("ptxas", "nvdisasm") if with_sass else ())):
        tool = find_tool(name)
        path = os.path.realpath(tool.path)
        status = os.stat(path)
        size = tool.version if os.path.isdir(path) else status.st_size
        parts.append(f"{path} {size} {status.st_mtime_ns}")
    return "\n".join(parts)
