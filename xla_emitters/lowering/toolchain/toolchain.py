"""From the finished LLVM dialect to PTX, by llvmlite or by LLVM's own tools; every answer is checked alike.

    print_llvm_ir(module) | llvmlite                 llvmlite: a process that stays alive, for all modules that this process compiles

    module { llvm.func @fusion ... }                 mlir-opt: one process for all kernels of a module
      -> module attributes {gpu.container_module} {
           gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>] {
             llvm.func @fusion ...
         } }
      -> mlir-opt --gpu-module-to-binary=format=isa -> gpu.binary @kernels [#gpu.object<..., assembly = "PTX">] -> PTX

    mlir-translate | llvm-link libdevice and ids | opt | llc     steps: four processes, to look at intermediate results

`Toolchain.way` names the way; `auto`, the default, is llvmlite where it has a wheel, else mlir-opt. LLVM always runs in a separate
process: if it ends itself on IR that it cannot compile, the caller gets a ToolError, and the next module a new process.

mlir-opt exits with 0 for an unknown chip or feature and for a missing libdevice. So the answer is checked: the backend's messages
on stderr, `.version`, `.target`, an `.entry` for every kernel, and no `.extern .func` left over.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them the ways accept, and the traps).
"""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.lowering.llvm_ir.llvm_ir_printer import print_llvm_ir
from xla_emitters.lowering.llvm_ir.nodes import subprogram_of
from xla_emitters.lowering.llvm_ir.spelling import escaped
from xla_emitters.lowering.toolchain.tools import (
    LINE_OPTIONS,
    LLVM_OPTIONS,
    NVIDIA_HELP,
    PtxWay,
    borrow_llvmlite,
    choose_way,
    find_tool,
)
from xla_emitters.rewrite.id_functions import IdFunction, declared_by
from xla_emitters.settings import Toolchain
from xla_emitters.support.processes import STAGE, ResidentTool, RunningTool, run_tool

# Older drivers still accept PTX 8.6 (CUDA 12.7); these chips came later.
_PTX_VERSION = 86
_PTX_VERSION_OF_LATER_CHIPS = {"sm_103": 88, "sm_120": 87, "sm_121": 88}
_LIBDEVICE_PREFIX = "__nv_"


def compile_to_ptx(module: ModuleOp, architecture: str, toolchain: Toolchain) -> str:
    """PTX of a module in the LLVM dialect, by the chosen way.

    module        llvm.func ops (one or more kernels carry `nvvm.kernel`), llvm.mlir.global ops, as the last pass leaves them; not modified
    architecture  "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100" ...
    returns       the text, one `.entry` per kernel, for PTX 8.6 or the first version that supports the chip
    raises        ToolError: the tool is missing, fails, hangs, or does not know the chip; or libdevice lacks a function.
                  InternalError: the module has no kernel, or calls an undefined function. UsageError: see `choose_way`.
    """
    with start_compile(architecture, toolchain) as compiler:
        return compiler.finish(module)


def start_compile(architecture: str, toolchain: Toolchain) -> PtxCompiler:
    """Starts the way's tool for one module that comes later, because loading the tool takes longer than compiling a kernel.

    raises  ToolError if it is missing, cannot start, or has another version; UsageError
    """
    way = choose_way(toolchain).way
    tool: RunningTool | ResidentTool | None = None
    match way:
        case PtxWay.MLIR_OPT:
            options = (
                "--gpu-module-to-binary=format=isa",
                "--mlir-disable-threading",
                *LLVM_OPTIONS,
                *LINE_OPTIONS,
                "-",
            )
            tool = RunningTool([find_tool("mlir-opt", toolchain).path, *options])
        case PtxWay.LLVMLITE:
            tool = borrow_llvmlite(toolchain)
        case PtxWay.STEPS:
            pass
    return PtxCompiler(architecture, toolchain, tool)


@dataclass(frozen=True)
class ToolTexts:
    """What LLVM made of a module. llvm_ir: after O3, with libdevice, in `seconds`; "" where it was not asked for."""

    ptx: str
    llvm_ir: str = ""
    seconds: float = 0.0


class PtxCompiler:
    """A started tool. As a context manager, it ends the process if no module was given to it, or returns it if it is to stay alive."""

    def __init__(self, architecture: str, toolchain: Toolchain, tool: RunningTool | ResidentTool | None) -> None:
        self._architecture = architecture
        self._toolchain = toolchain
        self._tool = tool

    @property
    def takes_more(self) -> bool:
        """Whether `finish` can be called more than once."""
        return isinstance(self._tool, ResidentTool)

    def finish(self, module: ModuleOp, directory: str | Path | None = None) -> str:
        """PTX of the module; see `compile_to_ptx`, of a `directory` `compile_to_ptx_by_steps`. Can be called once, unless `takes_more`."""
        return self._finish(module, "ptx", directory).ptx

    def finish_both(self, module: ModuleOp) -> ToolTexts:
        """As `finish`, with the LLVM IR that the PTX was made from; see `compile_to_llvm_ir`."""
        if isinstance(self._tool, RunningTool):
            start = time.perf_counter()  # mlir-opt does not print it
            llvm_ir = compile_to_llvm_ir(module, self._architecture, self._toolchain)
            seconds = time.perf_counter() - start
            return ToolTexts(self._finish(module, "ptx").ptx, llvm_ir, seconds)
        return self._finish(module, "both")

    def _finish(self, module: ModuleOp, wanted: str, directory: str | Path | None = None) -> ToolTexts:
        answer: dict[str, Any] = {}
        match self._tool:
            case None:
                return _texts_by_steps(module, self._architecture, self._toolchain, directory)
            case ResidentTool() as tool:
                job = _job(module, self._architecture, self._toolchain, wanted, directory)
                answer, said = _answer(tool, job)
                ptx = answer["result"]
                _keep(directory, "kernel.ptx", ptx.encode())
            case RunningTool() as tool:
                with _linked(module, self._toolchain) as libraries:
                    text = _gpu_module(module, libraries, self._architecture)
                    binary = tool.finish(text.encode())
                ptx, said = _assembly_of(binary.text), binary.said
        _check_ptx(ptx, module, self._architecture, tool, said)
        return ToolTexts(ptx, answer.get("llvm", ""), answer.get("seconds", 0.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tool is not None:
            self._tool.stop()


def compile_to_llvm_ir(module: ModuleOp, architecture: str, toolchain: Toolchain) -> str:
    """Optimised LLVM IR of a module in the LLVM dialect, with libdevice linked: the input of PTX generation. raises as `compile_to_ptx`."""
    if choose_way(toolchain).way is PtxWay.LLVMLITE:
        with borrow_llvmlite(toolchain) as tool:
            return _answer(tool, _job(module, architecture, toolchain, "llvm"))[0]["result"]
    with _linked(module, toolchain) as libraries:
        data = f"module {{\n{module_body_text(module)}}}\n".encode()
        for _, command in _steps_to_llvm_ir(libraries, architecture, toolchain):
            data = run_tool(command, data).result
    return data.decode(errors="replace")


def compile_to_ptx_by_steps(
    module: ModuleOp, architecture: str, toolchain: Toolchain, directory: str | Path | None = None
) -> str:
    """The same PTX as `compile_to_ptx`, with intermediate results.

    directory  where to write kernel.mlir, kernel.ll, kernel-linked.ll, kernel-opt.ll and kernel.ptx; None: nowhere
    raises     as `compile_to_ptx`

    Uses llvmlite if that is the way, else mlir-translate, llvm-link, opt and llc.
    """
    tool = borrow_llvmlite(toolchain) if choose_way(toolchain).way is PtxWay.LLVMLITE else None
    with PtxCompiler(architecture, toolchain, tool) as compiler:
        return compiler.finish(module, directory)


# ---- llvmlite: a process that stays -----------------------------------------------------------------------------------------------------


def _job(
    module: ModuleOp, architecture: str, toolchain: Toolchain, wanted: str, directory: str | Path | None = None
) -> dict[str, Any]:
    """A job for `llvm_process`; see there."""
    called, text = _called_of_libdevice(module), print_llvm_ir(module)
    if directory is not None:
        _keep(directory, "kernel.mlir", f"module {{\n{module_body_text(module)}}}\n".encode())
        _keep(directory, "kernel.ll", text.encode())
    return {
        "text": text,
        "wanted": wanted,
        "chip": architecture,
        "features": f"+ptx{_ptx_version(architecture)}",
        "libdevice": find_tool("libdevice", toolchain).path if called else None,
        "called": called,
        "keep": None if directory is None else str(directory),
    }


def _answer(tool: ResidentTool, job: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer to a job, and LLVM's messages. raises ToolError with LLVM's message if it refuses."""
    answer, said = tool.ask(job)
    if (refused := answer.get("error")) is None:
        return answer, said
    first, *rest = refused.splitlines() or ["no reason given"]
    details = (*rest[:12], *said.splitlines()[:12], f"command: {shlex.join(tool.command)}")
    raise ToolError(f"{tool.name} failed: {first}", stage=STAGE, details=details)


# ---- mlir-opt: one process --------------------------------------------------------------------------------------------------------------


def _gpu_module(module: ModuleOp, libraries: Sequence[str], architecture: str) -> str:
    """The module in the form that mlir-opt takes, with the target around it."""
    features = f"+ptx{_ptx_version(architecture)}"
    link = ", ".join(f'"{escaped(path.encode())}"' for path in libraries)
    target = f'#nvvm.target<O = 3, chip = "{escaped(architecture.encode())}", features = "{features}", link = [{link}]>'
    body = module_body_text(module)
    return f"module attributes {{gpu.container_module}} {{\ngpu.module @kernels [{target}] {{\n{body}}}\n}}\n"


# ---- steps: four processes --------------------------------------------------------------------------------------------------------------


def _texts_by_steps(
    module: ModuleOp, architecture: str, toolchain: Toolchain, directory: str | Path | None
) -> ToolTexts:
    said: list[str] = []
    start = time.perf_counter()
    last = RunningTool([find_tool("llc", toolchain).path, "-O3", *_machine(architecture), "-"])
    with _linked(module, toolchain) as libraries:
        data = f"module {{\n{module_body_text(module)}}}\n".encode()
        _keep(directory, "kernel.mlir", data)
        for name, command in _steps_to_llvm_ir(libraries, architecture, toolchain):
            answer = run_tool(command, data)
            data = answer.result
            said.append(answer.said)
            _keep(directory, name, data)
        llvm_ir, seconds = data.decode(errors="replace"), time.perf_counter() - start
        answer = last.finish(data)
    _keep(directory, "kernel.ptx", answer.result)
    _check_ptx(answer.text, module, architecture, last, "\n".join((*said, answer.said)))
    return ToolTexts(answer.text, llvm_ir, seconds)


def _steps_to_llvm_ir(libraries: Sequence[str], architecture: str, toolchain: Toolchain) -> list[tuple[str, list[str]]]:
    """(file name of the result, command) of each tool up to optimised LLVM IR; each reads the previous tool's result."""
    steps = [("kernel.ll", [find_tool("mlir-translate", toolchain).path, "--mlir-to-llvmir", "-"])]
    if libraries:
        link = [find_tool("llvm-link", toolchain).path, "-S", "-", "--internalize", "--only-needed", *libraries]
        steps.append(("kernel-linked.ll", link))
    steps.append(("kernel-opt.ll", [find_tool("opt", toolchain).path, "-S", "-O3", *_machine(architecture), "-"]))
    return steps


def _machine(architecture: str) -> list[str]:
    """LLVM's options for the target, and XLA's."""
    return [
        "-mtriple=nvptx64-nvidia-cuda",
        f"-mcpu={architecture}",
        f"-mattr=+ptx{_ptx_version(architecture)}",
        *LLVM_OPTIONS,
        *LINE_OPTIONS,
    ]


def module_body_text(module: ModuleOp) -> str:
    """The module's ops in MLIR's generic form, one after the other, without the enclosing `module`.

    Locations are written if functions have subprograms (xla-add-line-info).
    """
    has_lines = any(subprogram_of(op) for op in module.body.ops)
    return "".join(f"{print_ir(op, generic=True, locations=has_lines)}\n" for op in module.body.ops)


@contextmanager
def _linked(module: ModuleOp, toolchain: Toolchain) -> Generator[list[str]]:
    """The files to link with the module: libdevice, and functions that read ids."""
    libraries = [find_tool("libdevice", toolchain).path] if _called_of_libdevice(module) else []
    ids = [function for op in module.body.ops if (function := declared_by(op))]
    with tempfile.TemporaryDirectory() as directory:
        if ids:
            _keep(directory, "ids.ll", _ids_text(ids).encode())
            libraries.append(str(Path(directory) / "ids.ll"))
        yield libraries


def _ids_text(ids: Sequence[IdFunction]) -> str:
    """LLVM IR that defines the functions, for tools that read MLIR, which cannot write the range of an id as metadata."""
    registers = dict.fromkeys(own_id.register for own_id in ids)
    lines = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()" for register in registers]
    for number, own_id in enumerate(ids):
        lines += (own_id.llvm_ir("linkonce_odr", f"!{number}"), f"!{number} = {own_id.bounds_text}")
    return "\n".join((*lines, ""))


def _keep(directory: str | Path | None, name: str, data: bytes) -> None:
    if directory is not None:
        Path(directory).mkdir(parents=True, exist_ok=True)
        (Path(directory) / name).write_bytes(data)


def _ptx_version(architecture: str) -> int:
    return _PTX_VERSION_OF_LATER_CHIPS.get(architecture.rstrip("af"), _PTX_VERSION)


def _called_of_libdevice(module: ModuleOp) -> list[str]:
    return [name for name, op in _functions(module) if not op.body.blocks and name.startswith(_LIBDEVICE_PREFIX)]


def _functions(module: ModuleOp) -> list[tuple[str, llvm.FuncOp]]:
    return [(op.sym_name.data, op) for op in module.body.ops if isinstance(op, llvm.FuncOp)]


def _assembly_of(binary: str) -> str:
    """The PTX inside mlir-opt's `gpu.binary`, unescaped; "" if there is none."""
    _, marker, rest = binary.partition('assembly = "')
    if not marker:
        return ""
    text = rest.partition('"')[0]  # a quote inside is spelled \22
    return re.sub(r"\\([0-9A-F]{2}|\\)", lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)


def _check_ptx(ptx: str, module: ModuleOp, architecture: str, tool: RunningTool | ResidentTool, said: str) -> None:
    """Checks the backend's answer; see the file's head."""
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
