"""The ways to PTX: which there are, which is taken, and what PTX depends on besides the module.

    XLA_EMITTERS_TOOLCHAIN=auto     ->  Choice(Way.LLVM, "libLLVM is here")
    tools_fingerprint()             ->  "LLVM options -nvptx-prec-divf32=1 ...", the way, and path, size and time of each tool

`toolchain.py` goes these ways. This file loads neither xDSL nor a tool, so that a program that was compiled before is found without either.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from xla_emitters.errors import ToolError, UsageError
from xla_emitters.lowering.tools import STAGE, find_tool, variable_of

# XLA's options for LLVM: f32 division within 2 ulp (div.full.f32), bf16x2 arithmetic at most, its own inlining thresholds.
LLVM_OPTIONS = (
    "-nvptx-prec-divf32=1",
    "-slp-max-reg-size=32",
    "-slp-vectorize-hor=false",
    "-bonus-inst-threshold=2",
    "-inline-threshold=1100",
)

# Of line information: an instruction without a line says so, instead of having that of the one before; one that is made of several keeps
# the line of one of them. Without line information they do nothing.
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
"""The ways on which LLVM is a library in a process that stays."""


@dataclass(frozen=True)
class Choice:
    """The way that is taken, and why."""

    way: Way
    reason: str


def tools_of(way: Way) -> tuple[str, ...]:
    """The tools that the way starts; libdevice is looked for where a kernel calls it."""
    return _TOOLS[way]


def asked_way() -> Way | None:
    """The way that `XLA_EMITTERS_TOOLCHAIN` names; None for `auto` and where it is not set. raises UsageError for any other."""
    asked = os.environ.get(TOOLCHAIN) or AUTO
    if asked == AUTO:
        return None
    if asked not in tuple(Way):
        raise UsageError(f"{TOOLCHAIN} is '{asked}'", stage=STAGE, help=f"one of: {', '.join((AUTO, *Way))}")
    return Way(asked)


def choose_way() -> Choice:
    """The way that `XLA_EMITTERS_TOOLCHAIN` names; without it the first of llvm, mlir-opt and llvmlite whose tool is found.

    llvm stands for llvmlite too, where that is the LLVM library that is here. An mlir-opt or a library that the user names is taken or
    refused: nothing stands in for it.

    raises  UsageError for a way that there is not, ToolError when what the way needs is missing
    """
    if (asked := asked_way()) is not None:
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
    # The last is the one that Python's packages have.
    *others, last = missing
    first = others[-1]
    details = (*first.details, *(error.message for error in missing if error is not first))
    help = f"{first.help}; or, with Python packages alone: {last.help}"
    raise ToolError(first.message, stage=STAGE, details=details, help=help)


def ptx_reason_missing() -> str | None:
    """In one line, why no PTX can be made here, and what to install; None where it can. raises UsageError as `choose_way`."""
    try:
        choose_way()
        find_tool("libdevice")
        return None
    except ToolError as error:
        return f"{error.message} ({error.help})"


def tools_fingerprint(*, with_sass: bool = False) -> str:
    """What PTX depends on besides the module: the way to it, its tools, and libdevice. Changes when one of them is replaced.

    with_sass  the tools behind PTX too

    Cheap: it looks at the files, and does not ask them. raises ToolError when one is missing, UsageError.
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
