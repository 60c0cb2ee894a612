"""From the finished LLVM dialect to PTX, by LLVM's tools.

    module { llvm.func @fusion ... }                one process for all kernels of a module: compile_to_ptx
      -> module attributes {gpu.container_module} {
           gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>] {
             llvm.func @fusion ...
         } }
      -> mlir-opt --gpu-module-to-binary=format=isa -> gpu.binary @kernels [#gpu.object<..., assembly = "PTX">] -> PTX

    mlir-translate | llvm-link libdevice and ids | opt | llc   four processes: compile_to_ptx_by_steps, for looking at what is between

mlir-opt answers 0 for a chip or a feature that it does not know, and for a missing libdevice. So the answer is checked: what the
backend said on stderr, `.version`, `.target`, an `.entry` for every kernel, and no `.extern .func` left over.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them both ways accept, and the traps).
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.kernels.id_functions import IdFunction, declared_by
from xla_emitters.lowering.tools import NVIDIA_HELP, STAGE, TIMEOUT_SECONDS, RunningTool, find_tool, run_tool

# XLA's options for LLVM: f32 division within 2 ulp (div.full.f32), bf16x2 arithmetic at most, its own inlining thresholds.
LLVM_OPTIONS = (
    "-nvptx-prec-divf32=1",
    "-slp-max-reg-size=32",
    "-slp-vectorize-hor=false",
    "-bonus-inst-threshold=2",
    "-inline-threshold=1100",
)

# PTX 8.6 (CUDA 12.7) is what older drivers still take; these chips came later.
_PTX_VERSION = 86
_PTX_VERSION_OF_LATER_CHIPS = {"sm_103": 88, "sm_120": 87, "sm_121": 88}
_LIBDEVICE_PREFIX = "__nv_"
_BLOCK_IDS = 2**24


def compile_to_ptx(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """PTX of a module in the LLVM dialect, by one mlir-opt process.

    module        llvm.func ops (one or more kernels carry `nvvm.kernel`), llvm.mlir.global ops, as the last pass leaves them; left as it is
    architecture  "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100" ...
    returns       the text, one `.entry` a kernel, for PTX 8.6 or the first version that knows the chip
    raises        ToolError: mlir-opt is missing, fails, hangs, does not know the chip; libdevice lacks a function.
                  InternalError: the module has no kernel, or calls a function that nothing defines.
    """
    with start_compile(architecture, timeout_seconds=timeout_seconds) as compiler:
        return compiler.finish(module)


def start_compile(architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> PtxCompiler:
    """Starts mlir-opt for one module that is still to come: loading it takes longer than compiling a kernel.

    raises  ToolError when it is missing, cannot start, or is of another version
    """
    command = [
        find_tool("mlir-opt").path,
        "--gpu-module-to-binary=format=isa",
        "--mlir-disable-threading",
        *LLVM_OPTIONS,
        "-",
    ]
    return PtxCompiler(architecture, RunningTool(command), timeout_seconds)


class PtxCompiler:
    """A started mlir-opt; a context manager, which ends the process if it was never given a module."""

    def __init__(self, architecture: str, tool: RunningTool, timeout_seconds: float) -> None:
        self._architecture = architecture
        self._tool = tool
        self._timeout_seconds = timeout_seconds

    def finish(self, module: ModuleOp) -> str:
        """PTX of the module; see `compile_to_ptx`. Can be called once."""
        features = f"+ptx{_ptx_version(self._architecture)}"
        with _linked(module) as (body, libraries):
            link = ", ".join(f'"{_escape(path)}"' for path in libraries)
            target = (
                f'#nvvm.target<O = 3, chip = "{_escape(self._architecture)}", features = "{features}", link = [{link}]>'
            )
            text = f"module attributes {{gpu.container_module}} {{\ngpu.module @kernels [{target}] {{\n{body}}}\n}}\n"
            answer = self._tool.finish(text.encode(), self._timeout_seconds)
        ptx = _assembly_of(answer.text)
        _check_ptx(ptx, module, self._architecture, self._tool.command, answer.said)
        return ptx

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tool.stop()


def compile_to_llvm_ir(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """LLVM IR of a module in the LLVM dialect, libdevice linked and optimised: what `llc` would make PTX of. raises as `compile_to_ptx`."""
    with _linked(module) as (body, libraries):
        data = f"module {{\n{body}}}\n".encode()
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
    """The same PTX as `compile_to_ptx`, by mlir-translate, llvm-link, opt and llc.

    directory  where kernel.mlir, kernel.ll, kernel-linked.ll, kernel-opt.ll and kernel.ptx are left to read; None: nowhere
    raises     as `compile_to_ptx`
    """
    said: list[str] = []
    last = [find_tool("llc").path, "-O3", *_machine(architecture), "-"]
    with _linked(module) as (body, libraries):
        data = f"module {{\n{body}}}\n".encode()
        _keep(directory, "kernel.mlir", data)
        for name, command in (*_steps_to_llvm_ir(libraries, architecture), ("kernel.ptx", last)):
            answer = run_tool(command, data, timeout_seconds)
            data = answer.result
            said.append(answer.said)
            _keep(directory, name, data)
    ptx = data.decode(errors="replace")
    _check_ptx(ptx, module, architecture, last, "\n".join(said))
    return ptx


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
    ]


def module_body_text(module: ModuleOp) -> str:
    """The module's ops in MLIR's generic form, one after the other, without the `module` around them."""
    return "".join(f"{print_ir(op, generic=True)}\n" for op in module.body.ops)


@contextmanager
def _linked(module: ModuleOp) -> Generator[tuple[str, list[str]]]:
    """What LLVM gets of the module: its ops as text, and the files to link with them: libdevice, and functions that read ids."""
    libraries = [find_tool("libdevice").path] if _calls_libdevice(module) else []
    ids = [function for op in module.body.ops if (function := declared_by(op))]
    with tempfile.TemporaryDirectory() as directory:
        if ids:
            _keep(directory, "ids.ll", _ids_text(ids).encode())
            libraries.append(str(Path(directory) / "ids.ll"))
        yield module_body_text(module), libraries


def _ids_text(ids: Sequence[IdFunction]) -> str:
    """LLVM IR that defines the functions: the range of an id is metadata, which MLIR cannot write (see xla-convert-ids-to-calls).

    Of block ids an attribute says as well that there are fewer than 2^24, or than the launch has: with blocks of 128 threads the number
    of a thread then has no sign and does not wrap.
    """
    lines = [
        f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()"
        for register in dict.fromkeys(function.register for function in ids)
    ]
    for number, function in enumerate(ids):
        wide = f"range(i32 0, {max(function.high, _BLOCK_IDS)}) " if function.register.startswith("cta") else ""
        lines += (
            f"define linkonce_odr i32 @{function.name}() alwaysinline nounwind willreturn memory(none) {{",
            f"  %id = call {wide}i32 @llvm.nvvm.read.ptx.sreg.{function.register}(), !range !{number}",
            "  ret i32 %id",
            "}",
            f"!{number} = !{{i32 {function.low}, i32 {function.high}}}",
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


def _check_ptx(ptx: str, module: ModuleOp, architecture: str, command: Sequence[str], said: str) -> None:
    """Hold the backend to its word; see the file's head."""
    details = (f"command: {shlex.join(command)}",)
    name = os.path.basename(command[0])
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


def tools_fingerprint() -> str:
    """What PTX depends on besides the module: which mlir-opt and which libdevice. Changes when one of them is replaced.

    Cheap: it looks at the files, and does not ask them. raises ToolError when one is missing.
    """
    parts = [f"LLVM options {' '.join(LLVM_OPTIONS)}"]
    for name in ("mlir-opt", "libdevice"):
        path = os.path.realpath(find_tool(name).path)
        status = os.stat(path)
        parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)
