"""From the finished LLVM dialect to PTX, by LLVM's tools. There are three ways; all end with the same checks.

    module { llvm.func @fusion ... }                 mlir-opt: one process for all kernels of a module
      -> module attributes {gpu.container_module} {
           gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>] {
             llvm.func @fusion ...
         } }
      -> mlir-opt --gpu-module-to-binary=format=isa -> gpu.binary @kernels [#gpu.object<..., assembly = "PTX">] -> PTX

    mlir-translate | llvm-link libdevice and ids | opt | llc     steps: four processes, for looking at what is between

    print_llvm_ir(module) | LLVM inside llvmlite                 llvm: one process, for which Python packages are enough

`XLA_EMITTERS_TOOLCHAIN` names the way; without it (`auto`) it is mlir-opt where there is one, else llvm. On every way LLVM is in a process
of its own: where it ends itself, on IR that it cannot compile, the caller gets a ToolError.

mlir-opt answers 0 for a chip or a feature that it does not know, and for a missing libdevice. So the answer is checked: what the
backend said on stderr, `.version`, `.target`, an `.entry` for every kernel, and no `.extern .func` left over.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept, and the traps).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import InternalError, ToolError, UsageError, XlaEmittersError
from xla_emitters.kernels.id_functions import IdFunction, declared_by
from xla_emitters.lowering import llvmlite_process
from xla_emitters.lowering.llvm_ir.debug_nodes import subprogram_of
from xla_emitters.lowering.llvm_ir.printer import print_llvm_ir
from xla_emitters.lowering.tools import (
    NVIDIA_HELP,
    STAGE,
    TIMEOUT_SECONDS,
    Answer,
    RunningTool,
    find_tool,
    run_tool,
    variable_of,
)

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

# PTX 8.6 (CUDA 12.7) is what older drivers still take; these chips came later.
_PTX_VERSION = 86
_PTX_VERSION_OF_LATER_CHIPS = {"sm_103": 88, "sm_120": 87, "sm_121": 88}
_LIBDEVICE_PREFIX = "__nv_"
_BLOCK_IDS = 2**24


TOOLCHAIN = "XLA_EMITTERS_TOOLCHAIN"
AUTO = "auto"


class Way(StrEnum):
    """How PTX is made; see the file's head."""

    MLIR_OPT = "mlir-opt"
    STEPS = "steps"
    LLVM = "llvm"


_TOOLS = {
    Way.MLIR_OPT: ("mlir-opt",),
    Way.STEPS: ("mlir-translate", "llvm-link", "opt", "llc"),
    Way.LLVM: ("llvmlite",),
}


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
    """The way that `XLA_EMITTERS_TOOLCHAIN` names; without it mlir-opt where it is found, else llvm where llvmlite is installed.

    An mlir-opt that the user names is taken or refused: nothing stands in for it.

    raises  UsageError for a way that there is not, ToolError when what the way needs is missing
    """
    if (way := asked_way()) is not None:
        for name in tools_of(way):
            find_tool(name)
        return Choice(way, f"{TOOLCHAIN} says so")
    try:
        find_tool("mlir-opt")
        return Choice(Way.MLIR_OPT, "mlir-opt is here")
    except ToolError as error:
        if os.environ.get(variable_of("mlir-opt")):
            raise
        missing = error
    try:
        find_tool("llvmlite")
    except ToolError as error:
        both = f"{missing.help}; or, with Python packages alone: {error.help}"
        raise ToolError(missing.message, stage=STAGE, details=(*missing.details, error.message), help=both) from None
    return Choice(Way.LLVM, f"{missing.message}; llvmlite is here")


def ptx_reason_missing() -> str | None:
    """In one line, why no PTX can be made here, and what to install; None where it can. raises UsageError as `choose_way`."""
    try:
        choose_way()
        find_tool("libdevice")
        return None
    except ToolError as error:
        return f"{error.message} ({error.help})"


def compile_to_ptx(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """PTX of a module in the LLVM dialect, by the way that is chosen.

    module        llvm.func ops (one or more kernels carry `nvvm.kernel`), llvm.mlir.global ops, as the last pass leaves them; left as it is
    architecture  "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100" ...
    returns       the text, one `.entry` a kernel, for PTX 8.6 or the first version that knows the chip
    raises        ToolError: the tool is missing, fails, hangs, does not know the chip; libdevice lacks a function.
                  InternalError: the module has no kernel, or calls a function that nothing defines. UsageError: see `choose_way`.
    """
    with start_compile(architecture, timeout_seconds=timeout_seconds) as compiler:
        return compiler.finish(module)


def start_compile(architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> PtxCompiler:
    """Starts the way's tool for one module that is still to come: loading it takes longer than compiling a kernel.

    raises  ToolError when it is missing, cannot start, or is of another version; UsageError
    """
    way = choose_way().way
    match way:
        case Way.MLIR_OPT:
            options = (
                "--gpu-module-to-binary=format=isa",
                "--mlir-disable-threading",
                *LLVM_OPTIONS,
                *LINE_OPTIONS,
                "-",
            )
            tool = RunningTool([find_tool("mlir-opt").path, *options])
        case Way.LLVM:
            tool = _start_llvmlite("ptx", architecture)
        case Way.STEPS:
            tool = None
    return PtxCompiler(architecture, way, tool, timeout_seconds)


class PtxCompiler:
    """A started tool; a context manager, which ends the process if it was never given a module."""

    def __init__(self, architecture: str, way: Way, tool: RunningTool | None, timeout_seconds: float) -> None:
        self._architecture = architecture
        self._way = way
        self._tool = tool
        self._timeout_seconds = timeout_seconds

    def finish(self, module: ModuleOp) -> str:
        """PTX of the module; see `compile_to_ptx`. Can be called once."""
        tool = self._tool
        if tool is None:
            return _ptx_by_steps(module, self._architecture, None, self._timeout_seconds)
        if self._way is Way.LLVM:
            answer = _finish_llvmlite(tool, module, None, self._timeout_seconds)
            ptx = answer.text
        else:
            with _linked(module) as libraries:
                text = _gpu_module(module, libraries, self._architecture)
                answer = tool.finish(text.encode(), self._timeout_seconds)
            ptx = _assembly_of(answer.text)
        _check_ptx(ptx, module, self._architecture, tool, answer.said)
        return ptx

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tool is not None:
            self._tool.stop()


def compile_to_llvm_ir(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """LLVM IR of a module in the LLVM dialect, libdevice linked and optimised: what PTX is made of. raises as `compile_to_ptx`."""
    if choose_way().way is Way.LLVM:
        return _finish_llvmlite(_start_llvmlite("llvm", architecture), module, None, timeout_seconds).text
    with _linked(module) as libraries:
        data = f"module {{\n{module_body_text(module)}}}\n".encode()
        for _, command in _steps_to_llvm_ir(libraries, architecture):
            data = run_tool(command, data, timeout_seconds).result
    return data.decode(errors="replace")


def compile_to_ptx_by_steps(
    module: ModuleOp,
    architecture: str,
    directory: str | Path | None = None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> str:
    """The same PTX as `compile_to_ptx`, with what is between.

    directory  where kernel.mlir, kernel.ll, kernel-linked.ll, kernel-opt.ll and kernel.ptx are left to read; None: nowhere
    raises     as `compile_to_ptx`

    By mlir-translate, llvm-link, opt and llc, or by llvmlite where that is the way.
    """
    if choose_way().way is not Way.LLVM:
        return _ptx_by_steps(module, architecture, directory, timeout_seconds)
    _keep(directory, "kernel.mlir", f"module {{\n{module_body_text(module)}}}\n".encode())
    _keep(directory, "kernel.ll", print_llvm_ir(module).encode())
    tool = _start_llvmlite("ptx", architecture)
    answer = _finish_llvmlite(tool, module, directory, timeout_seconds)
    _keep(directory, "kernel.ptx", answer.result)
    _check_ptx(answer.text, module, architecture, tool, answer.said)
    return answer.text


# ---- llvm: a Python process with llvmlite -----------------------------------------------------------------------------------------------


def _start_llvmlite(wanted: str, architecture: str) -> RunningTool:
    """Starts LLVM for one module; `wanted` is "ptx" or "llvm"."""
    find_tool("llvmlite")
    features = f"+ptx{_ptx_version(architecture)}"
    # Not beside this file: -P keeps its directory from hiding other modules.
    command = [
        sys.executable,
        "-P",
        llvmlite_process.__file__,
        wanted,
        architecture,
        features,
        *LLVM_OPTIONS,
        *LINE_OPTIONS,
    ]
    return RunningTool(command, "llvmlite")


def _finish_llvmlite(
    tool: RunningTool, module: ModuleOp, directory: str | Path | None, timeout_seconds: float
) -> Answer:
    try:
        text = print_llvm_ir(module)
    except XlaEmittersError:
        tool.stop()
        raise
    with _linked(module) as libraries:
        job = {"libraries": libraries, "keep": None if directory is None else str(directory)}
        return tool.finish(f"{json.dumps(job)}\n{text}".encode(), timeout_seconds)


# ---- mlir-opt: one process --------------------------------------------------------------------------------------------------------------


def _gpu_module(module: ModuleOp, libraries: Sequence[str], architecture: str) -> str:
    """The module as mlir-opt takes it, with the target around it."""
    features = f"+ptx{_ptx_version(architecture)}"
    link = ", ".join(f'"{_escape(path)}"' for path in libraries)
    target = f'#nvvm.target<O = 3, chip = "{_escape(architecture)}", features = "{features}", link = [{link}]>'
    body = module_body_text(module)
    return f"module attributes {{gpu.container_module}} {{\ngpu.module @kernels [{target}] {{\n{body}}}\n}}\n"


# ---- steps: four processes --------------------------------------------------------------------------------------------------------------


def _ptx_by_steps(module: ModuleOp, architecture: str, directory: str | Path | None, timeout_seconds: float) -> str:
    said: list[str] = []
    last = RunningTool([find_tool("llc").path, "-O3", *_machine(architecture), "-"])
    with _linked(module) as libraries:
        data = f"module {{\n{module_body_text(module)}}}\n".encode()
        _keep(directory, "kernel.mlir", data)
        for name, command in _steps_to_llvm_ir(libraries, architecture):
            answer = run_tool(command, data, timeout_seconds)
            data = answer.result
            said.append(answer.said)
            _keep(directory, name, data)
        answer = last.finish(data, timeout_seconds)
    _keep(directory, "kernel.ptx", answer.result)
    _check_ptx(answer.text, module, architecture, last, "\n".join((*said, answer.said)))
    return answer.text


def _steps_to_llvm_ir(libraries: Sequence[str], architecture: str) -> list[tuple[str, list[str]]]:
    """(file name of its result, command) of each tool on the way to optimised LLVM IR; each reads what the one before writes."""
    steps = [("kernel.ll", [find_tool("mlir-translate").path, "--mlir-to-llvmir", "-"])]
    if libraries:
        link = [find_tool("llvm-link").path, "-S", "-", "--internalize", "--only-needed", *libraries]
        steps.append(("kernel-linked.ll", link))
    steps.append(("kernel-opt.ll", [find_tool("opt").path, "-S", "-O3", *_machine(architecture), "-"]))
    return steps


def _machine(architecture: str) -> list[str]:
    """The options that name the target, and XLA's."""
    return [
        "-mtriple=nvptx64-nvidia-cuda",
        f"-mcpu={architecture}",
        f"-mattr=+ptx{_ptx_version(architecture)}",
        *LLVM_OPTIONS,
        *LINE_OPTIONS,
    ]


def module_body_text(module: ModuleOp) -> str:
    """The module's ops in MLIR's generic form, one after the other, without the `module` around them.

    Locations are written where functions have subprograms (xla-add-line-info).
    """
    has_lines = any(subprogram_of(op) for op in module.body.ops)
    return "".join(f"{print_ir(op, generic=True, locations=has_lines)}\n" for op in module.body.ops)


@contextmanager
def _linked(module: ModuleOp) -> Generator[list[str]]:
    """The files to link with the module: libdevice, and functions that read ids."""
    libraries = [find_tool("libdevice").path] if _calls_libdevice(module) else []
    ids = [function for op in module.body.ops if (function := declared_by(op))]
    with tempfile.TemporaryDirectory() as directory:
        if ids:
            _keep(directory, "ids.ll", _ids_text(ids).encode())
            libraries.append(str(Path(directory) / "ids.ll"))
        yield libraries


def _ids_text(ids: Sequence[IdFunction]) -> str:
    """LLVM IR that defines the functions: the range of an id is metadata, which MLIR cannot write (see xla-convert-ids-to-calls).

    Of block ids an attribute says as well that there are fewer than 2^24, or than the launch has: with blocks of 128 threads the number
    of a thread then has no sign and does not wrap.
    """
    lines = [
        f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()"
        for register in dict.fromkeys(own_id.register for own_id in ids)
    ]
    for number, own_id in enumerate(ids):
        wide = f"range(i32 0, {max(own_id.high, _BLOCK_IDS)}) " if own_id.register.startswith("cta") else ""
        lines += (
            f"define linkonce_odr i32 @{own_id.name}() alwaysinline nounwind willreturn memory(none) {{",
            f"  %id = call {wide}i32 @llvm.nvvm.read.ptx.sreg.{own_id.register}(), !range !{number}",
            "  ret i32 %id",
            "}",
            f"!{number} = !{{i32 {own_id.low}, i32 {own_id.high}}}",
        )
    return "\n".join((*lines, ""))


def _keep(directory: str | Path | None, name: str, data: bytes) -> None:
    if directory is not None:
        Path(directory).mkdir(parents=True, exist_ok=True)
        (Path(directory) / name).write_bytes(data)


def _ptx_version(architecture: str) -> int:
    return _PTX_VERSION_OF_LATER_CHIPS.get(architecture.rstrip("af"), _PTX_VERSION)


def _calls_libdevice(module: ModuleOp) -> bool:
    return any(_is_declared(op) and name.startswith(_LIBDEVICE_PREFIX) for name, op in _functions(module))


def _functions(module: ModuleOp) -> list[tuple[str, llvm.FuncOp]]:
    return [(op.sym_name.data, op) for op in module.body.ops if isinstance(op, llvm.FuncOp)]


def _is_declared(op: Operation) -> bool:
    return not op.regions[0].blocks


def _escape(text: str) -> str:
    """`text` between the quotes of an MLIR string."""
    return "".join(c if c.isprintable() and c.isascii() and c not in '"\\' else _hex(c) for c in text)


def _hex(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def _assembly_of(binary: str) -> str:
    """The PTX inside mlir-opt's `gpu.binary`, unescaped; "" when there is none."""
    _, marker, rest = binary.partition('assembly = "')
    if not marker:
        return ""
    escaped = rest.partition('"')[0]  # a quote inside is spelled \22
    return re.sub(r"\\([0-9A-F]{2}|\\)", lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), escaped)


def _check_ptx(ptx: str, module: ModuleOp, architecture: str, tool: RunningTool, said: str) -> None:
    """Hold the backend to its word; see the file's head."""
    details = (f"command: {shlex.join(tool.command)}",)
    name = tool.name
    if refused := re.search(r"'(\S+)' is not a recognized (processor|feature) for this target", said):
        raise ToolError(
            f"{name} does not know the {refused[2]} '{refused[1]}'",
            stage=STAGE,
            details=details,
            help="sm_75, sm_80, sm_86, sm_90 and sm_100 are known to work",
        )
    if not re.search(r"^\.version \d+\.\d+$", ptx, re.M) or not re.search(
        rf"^\.target {re.escape(architecture)}\b", ptx, re.M
    ):
        raise ToolError(
            f"{name} made no PTX for {architecture}", stage=STAGE, details=(*said.splitlines()[:12], *details)
        )
    entries = set(re.findall(r"^\.visible \.entry (\S+?)\(", ptx, re.M))
    kernels = {symbol for symbol, op in _functions(module) if "nvvm.kernel" in op.attributes}
    if not kernels or not kernels <= entries:
        missing = ", ".join(sorted(kernels - entries)) or "no function with nvvm.kernel in the module"
        raise InternalError(f"the PTX lacks an entry: {missing}", stage=STAGE, details=details)
    for line in re.findall(r"^\.extern \.func .*(?:\n\(?.*)?", ptx, re.M):
        symbol = next(
            (word for word in re.findall(r"[\w$.]+", line) if not word.startswith((".", "func_retval"))), line
        )
        if symbol.startswith(_LIBDEVICE_PREFIX):
            raise ToolError(f"libdevice does not define {symbol}", stage=STAGE, details=details, help=NVIDIA_HELP)
        raise InternalError(f"the kernel calls {symbol}, which nothing defines", stage=STAGE, details=details)


def tools_fingerprint(*, with_sass: bool = False) -> str:
    """What PTX depends on besides the module: the way to it, its tools, and libdevice. Changes when one of them is replaced.

    with_sass  the tools behind PTX too

    Cheap: it looks at the files, and does not ask them. raises ToolError when one is missing, UsageError.
    """
    way = choose_way().way
    parts = [f"LLVM options {' '.join((*LLVM_OPTIONS, *LINE_OPTIONS))}", way.value]
    for name in (*_TOOLS[way], "libdevice", *(("ptxas", "nvdisasm") if with_sass else ())):
        tool = find_tool(name)
        path = os.path.realpath(tool.path)
        status = os.stat(path)
        size = tool.version if os.path.isdir(path) else status.st_size
        parts.append(f"{path} {size} {status.st_mtime_ns}")
    return "\n".join(parts)
