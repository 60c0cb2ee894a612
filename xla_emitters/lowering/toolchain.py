"""From the finished LLVM dialect to PTX, and on to machine code: the one place that starts LLVM's and NVIDIA's tools.

    module { llvm.func @fusion ... }                one process: compile_to_ptx
      -> module attributes {gpu.container_module} {
           gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx86", link = ["libdevice.10.bc"]>] {
             llvm.func @fusion ...
         } }
      -> mlir-opt --gpu-module-to-binary=format=isa -> gpu.binary @kernels [#gpu.object<..., assembly = "PTX">] -> PTX

    mlir-translate | llvm-link libdevice and ids | opt | llc   four processes: compile_to_ptx_by_steps, for looking at what is between
    ptxas -v -> Assembly(cubin, registers ...)         nvdisasm -> SASS, count_instructions

LLVM must be version 22: tools are found by environment variable, then as `mlir-opt-22` or in LLVM 22's own directory, then on
PATH, and another major version is refused by name. ptxas, nvdisasm and libdevice come from NVIDIA's wheels in the running
environment, then from PATH and the CUDA toolkit's directories.

mlir-opt answers 0 for a chip or a feature that it does not know, and for a missing libdevice. So the answer is checked: what the
backend said on stderr, `.version`, `.target`, an `.entry` for every kernel, and no `.extern .func` left over.
Source: docs/reference/2 4.2 (XLA's LLVM options), docs/reference/3 section 6 (which of them both ways accept, and the traps).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.printer import print_ir
from xla_emitters.errors import InternalError, ToolError
from xla_emitters.extras import install_command

LLVM_MAJOR = 22
LLVM_HELP = f"apt-get install mlir-{LLVM_MAJOR}-tools llvm-{LLVM_MAJOR}"
NVIDIA_HELP = install_command(extras="ptxas")

# A tool that says nothing for so long hangs; GELU takes 0.05 s.
TIMEOUT_SECONDS = 120.0

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
_STAGE = "toolchain"


# Finding the tools


@dataclass(frozen=True)
class _Row:
    """Where one tool can be.

    variable  the environment variable that names the file
    inside    path inside a CUDA toolkit and inside NVIDIA's wheels, which are laid out alike; "" for LLVM's tools
    """

    name: str
    variable: str
    inside: str = ""


_ROWS = (
    _Row("mlir-opt", "XLA_EMITTERS_MLIR_OPT"),
    _Row("mlir-translate", "XLA_EMITTERS_MLIR_TRANSLATE"),
    _Row("llvm-link", "XLA_EMITTERS_LLVM_LINK"),
    _Row("opt", "XLA_EMITTERS_OPT"),
    _Row("llc", "XLA_EMITTERS_LLC"),
    _Row("ptxas", "XLA_EMITTERS_PTXAS", "bin/ptxas"),
    _Row("libdevice", "XLA_EMITTERS_LIBDEVICE", "nvvm/libdevice/libdevice.10.bc"),
    _Row("nvdisasm", "XLA_EMITTERS_NVDISASM", "bin/nvdisasm"),
)
# Packages of NVIDIA's wheels: for CUDA 12 one for each component, for CUDA 13 one for all.
_WHEELS = ("nvidia.cuda_nvcc", "nvidia.cuda_nvdisasm", "nvidia.cu13")
TOOL_NAMES = tuple(row.name for row in _ROWS)


@dataclass(frozen=True)
class Tool:
    """One external program, or libdevice's bitcode."""

    name: str
    path: str

    @property
    def version(self) -> str:
        """As it says itself when asked: "22.1.8", "12.9.86"; "" for libdevice, which does not say. raises ToolError."""
        return "" if self.name == "libdevice" else _version_of(self.path, os.stat(self.path).st_mtime_ns)


def find_tool(name: str) -> Tool:
    """The tool called `name`, one of `TOOL_NAMES`.

    raises ToolError when it is missing or, for LLVM's tools, of another major version than 22; the help says what to install.
    """
    row = next(row for row in _ROWS if row.name == name)
    help = NVIDIA_HELP if row.inside else LLVM_HELP
    path, tried = _locate(row)
    if path is None:
        raise ToolError(
            f"{name} was not found",
            stage=_STAGE,
            details=(f"looked at: {', '.join(tried)}",),
            help=f"{help}, or set {row.variable} to its path",
        )
    tool = Tool(name, path)
    # To ask costs as much as to compile a kernel. The distribution's own names say the version.
    is_named = tried[-1] in _named_places(row)
    if not row.inside and not is_named and tool.version.partition(".")[0] != str(LLVM_MAJOR):
        raise ToolError(
            f"{name} is of version {tool.version or 'unknown'}, and {LLVM_MAJOR} is needed: {path}",
            stage=_STAGE,
            help=f"{help}, or set {row.variable} to the path of one of version {LLVM_MAJOR}",
        )
    return tool


def find_tools() -> dict[str, Tool | ToolError]:
    """Every tool of `TOOL_NAMES`, or the error that says why not and how to get it."""
    found: dict[str, Tool | ToolError] = {}
    for name in TOOL_NAMES:
        try:
            found[name] = find_tool(name)
        except ToolError as error:
            found[name] = error
    return found


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


def _locate(row: _Row) -> tuple[str | None, list[str]]:
    """The path of the row's file and the places that were tried; (None, places) without one.

    A path that the user gave by variable is taken or refused; nothing else is tried then.
    """
    if given := os.environ.get(row.variable):
        path = given if os.path.isfile(given) else shutil.which(given)
        return path, [f"{row.variable}={given}"]
    tried: list[str] = []
    for place in _places(row):
        tried.append(place)
        if path := place if os.path.isfile(place) else shutil.which(place):
            return path, tried
    return None, tried


def _places(row: _Row) -> list[str]:
    """Paths and command names to try for a row, in order."""
    if not row.inside:
        return [*_named_places(row), row.name]
    toolkits = [toolkit for toolkit in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if toolkit]
    commands = [] if row.name == "libdevice" else [row.name]
    wheels = [root for package in _WHEELS for root in _package_roots(package)]
    return [*_inside(wheels, row), *commands, *_inside(toolkits, row)]


def _named_places(row: _Row) -> list[str]:
    """Those of LLVM's tools whose version is in the name."""
    return [f"{row.name}-{LLVM_MAJOR}", f"/usr/lib/llvm-{LLVM_MAJOR}/bin/{row.name}"]


def _inside(roots: Sequence[str], row: _Row) -> list[str]:
    return [str(Path(root) / row.inside) for root in roots]


@lru_cache
def _package_roots(package: str) -> tuple[str, ...]:
    """Directories of an installed namespace package such as nvidia.cuda_nvcc; () when it is not installed."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # its parent is missing
        return ()
    return tuple(spec.submodule_search_locations or ()) if spec else ()


@lru_cache
def _version_of(path: str, modified_ns: int) -> str:
    """What `path --version` says, e.g. "22.1.8"; "" when it says nothing like it. Asked once for a file as last modified."""
    said = _run([path, "--version"], timeout_seconds=10.0).stdout.decode(errors="replace")
    found = re.search(r"LLVM version (\d+[.\d]*)|\bV(\d+[.\d]*)", said)
    return (found[1] or found[2]).rstrip(".") if found else ""


# Running them


def _run(
    command: Sequence[str], data: bytes = b"", timeout_seconds: float = TIMEOUT_SECONDS
) -> subprocess.CompletedProcess[bytes]:
    """Run a tool with `data` on stdin.

    raises ToolError when it cannot start, does not end in time, or ends with another exit code than 0: with the first
    line that it said about an error, the rest below, and the command.
    """
    return _finish(_start(command), command, data, timeout_seconds)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The tool, waiting for its input. raises ToolError when it cannot start."""
    try:
        pipe = subprocess.PIPE
        return subprocess.Popen(list(command), stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        reason = f"{os.path.basename(command[0])} could not be started: {error.strerror}"
        raise ToolError(reason, stage=_STAGE, details=(f"command: {shlex.join(command)}",)) from error


def _finish(
    process: subprocess.Popen[bytes], command: Sequence[str], data: bytes, timeout_seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Gives a started tool its input and waits for its answer; raises as `_run`."""
    name = os.path.basename(command[0])
    shown = shlex.join(command)
    try:
        out, err = process.communicate(data, timeout=timeout_seconds)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        reason = f"{name} did not end within {timeout_seconds:g} s"
        raise ToolError(reason, stage=_STAGE, details=(f"command: {shown}",)) from error
    done = subprocess.CompletedProcess(list(command), process.returncode, out, err)
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).decode(errors="replace").splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line.lower() or "fatal" in line.lower()), "")
        how = f"exit {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise ToolError(
            f"{name} failed ({how})" + (f": {first.strip()}" if first else ""),
            stage=_STAGE,
            details=(*(line for line in lines[:12] if line != first), f"command: {shown}"),
        )
    return done


# PTX


def compile_to_ptx(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """PTX of a module in the LLVM dialect, by one mlir-opt process.

    module        llvm.func ops (kernels carry `nvvm.kernel`), llvm.mlir.global ops; left as it is
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
    return PtxCompiler(architecture, command, _start(command), timeout_seconds)


class PtxCompiler:
    """A started mlir-opt; a context manager, which ends the process if it was never given a module."""

    def __init__(
        self, architecture: str, command: Sequence[str], process: subprocess.Popen[bytes], timeout_seconds: float
    ) -> None:
        self._architecture = architecture
        self._command = command
        self._process = process
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
            done = _finish(self._process, self._command, text.encode(), self._timeout_seconds)
        ptx = _assembly_of(done.stdout.decode(errors="replace"))
        _check_ptx(ptx, module, self._architecture, self._command, done.stderr.decode(errors="replace"))
        return ptx

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def compile_to_llvm_ir(module: ModuleOp, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """LLVM IR of a module in the LLVM dialect, libdevice linked and optimised: what `llc` would make PTX of. raises as `compile_to_ptx`."""
    with _linked(module) as (body, libraries):
        data = f"module {{\n{body}}}\n".encode()
        for _, command in _steps_to_llvm_ir(libraries, architecture):
            data = _run(command, data, timeout_seconds).stdout
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
            done = _run(command, data, timeout_seconds)
            data = done.stdout
            said.append(done.stderr.decode(errors="replace"))
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
    """What LLVM gets of the module: its ops as text, and the files to link with them: libdevice, and thread and block ids.

    The range of an id would be an attribute of a call, by which LLVM's correlated value propagation rewrites the arithmetic around it: for
    one, it divides in 16 bits what fits there, and the machine has no 16-bit integers. XLA's ranges are metadata, which that pass does
    not read and MLIR cannot write. So ids come from functions in LLVM IR, which are inlined. Of block ids an attribute says as well that
    there are fewer than 2^24, or than the launch has: with blocks of 128 threads the number of a thread then has no sign and does not wrap.
    """
    ids: dict[str, tuple[str, ...]] = {}

    def called(found: re.Match[str]) -> str:
        name = ".".join(("sreg", *found.groups()))
        ids[name] = found.groups()
        return f"llvm.call @{name}() : () -> i32"

    body = _RANGED_ID.sub(called, module_body_text(module))
    body += "".join(f"llvm.func @{name}() -> i32\n" for name in ids)
    libraries = [find_tool("libdevice").path] if _calls_libdevice(module) else []
    with tempfile.TemporaryDirectory() as directory:
        if ids:
            _keep(directory, "ids.ll", _ids_text(ids).encode())
            libraries.append(str(Path(directory) / "ids.ll"))
        yield body, libraries


_RANGED_ID = re.compile(
    r'"nvvm\.read\.ptx\.sreg\.((?:cta|t)id\.\w)"\(\) <\{range = #llvm\.constant_range<i32, (\d+), (\d+)>\}> : \(\) -> i32'
)


def _ids_text(ids: Mapping[str, Sequence[str]]) -> str:
    """LLVM IR of functions of a name, that each read a register whose values are at least the first bound and below the second."""
    lines = [
        f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()" for register in dict.fromkeys(id[0] for id in ids.values())
    ]
    for number, (name, (register, low, high)) in enumerate(ids.items()):
        wide = f"range(i32 0, {max(int(high), _BLOCK_IDS)}) " if register.startswith("cta") else ""
        lines += (
            f"define linkonce_odr i32 @{name}() alwaysinline nounwind willreturn memory(none) {{",
            f"  %id = call {wide}i32 @llvm.nvvm.read.ptx.sreg.{register}(), !range !{number}",
            "  ret i32 %id",
            "}",
            f"!{number} = !{{i32 {low}, i32 {high}}}",
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
            stage=_STAGE,
            details=details,
            help="sm_75, sm_80, sm_86, sm_90 and sm_100 are known to work",
        )
    if not re.search(r"^\.version \d+\.\d+$", ptx, re.M) or not re.search(
        rf"^\.target {re.escape(architecture)}\b", ptx, re.M
    ):
        raise ToolError(
            f"{name} made no PTX for {architecture}", stage=_STAGE, details=(*said.splitlines()[:12], *details)
        )
    entries = set(re.findall(r"^\.visible \.entry (\S+?)\(", ptx, re.M))
    kernels = {symbol for symbol, op in _functions(module) if "nvvm.kernel" in op.attributes}
    if not kernels or not kernels <= entries:
        missing = ", ".join(sorted(kernels - entries)) or "no function with nvvm.kernel in the module"
        raise InternalError(f"the PTX lacks an entry: {missing}", stage=_STAGE, details=details)
    for line in re.findall(r"^\.extern \.func .*(?:\n\(?.*)?", ptx, re.M):
        symbol = next(
            (word for word in re.findall(r"[\w$.]+", line) if not word.startswith((".", "func_retval"))), line
        )
        if symbol.startswith(_LIBDEVICE_PREFIX):
            raise ToolError(f"libdevice does not define {symbol}", stage=_STAGE, details=details, help=NVIDIA_HELP)
        raise InternalError(f"the kernel calls {symbol}, which nothing defines", stage=_STAGE, details=details)


# Machine code


@dataclass(frozen=True)
class EntryResources:
    """What one kernel takes, as ptxas counts: registers a thread, spilled bytes a thread (stores and loads), static shared bytes."""

    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Assembly:
    """Machine code of one PTX text, and what each of its kernels takes, in the text's order."""

    cubin: bytes
    entries: tuple[EntryResources, ...]

    @property
    def registers(self) -> int:
        """The most registers that a kernel takes."""
        return max(entry.registers for entry in self.entries)

    @property
    def spill_bytes(self) -> int:
        return sum(entry.spill_bytes for entry in self.entries)

    @property
    def shared_bytes(self) -> int:
        """The most static shared memory that a kernel takes."""
        return max(entry.shared_bytes for entry in self.entries)


def assemble(ptx: str, architecture: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Assembly:
    """Assemble PTX by ptxas -v.

    raises ToolError when ptxas is missing or refuses the text (with its line), InternalError when it has no entry.
    """
    ptxas = find_tool("ptxas")
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        source, cubin = Path(directory) / "kernel.ptx", Path(directory) / "kernel.cubin"
        source.write_text(ptx)
        command = [ptxas.path, "-v", f"-arch={architecture}", str(source), "-o", str(cubin)]
        done = _run(command, timeout_seconds=timeout_seconds)
        said = (done.stderr + done.stdout).decode(errors="replace")
        entries = _resources(said, re.findall(r"^\s*(?:\.visible |\.weak )?\.entry ([\w$]+)", ptx, re.M))
        if not entries:
            raise InternalError("ptxas met no entry", stage=_STAGE, details=(f"command: {shlex.join(command)}",))
        return Assembly(cubin.read_bytes(), entries)


def _resources(said: str, names: Sequence[str]) -> tuple[EntryResources, ...]:
    """What `ptxas -v` said of each entry in `names`.

    ptxas info    : Compiling entry function 'fusion' for 'sm_90'
    ptxas info    : Function properties for fusion
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 23 registers, used 0 barriers, 4224 bytes smem
    """
    found: dict[str, EntryResources] = {}
    for part in said.split("Compiling entry function '")[1:]:
        name = part.partition("'")[0]
        used = re.search(r"Used (\d+) registers", part)
        spilled = re.findall(r"(\d+) bytes spill", part)
        shared = re.search(r"(\d+) bytes smem", part)
        found[name] = EntryResources(
            name, int(used[1]) if used else 0, sum(map(int, spilled)), int(shared[1]) if shared else 0
        )
    return tuple(found[name] for name in names if name in found)


def disassemble(cubin: bytes, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """SASS of a cubin, by nvdisasm. raises ToolError."""
    nvdisasm = find_tool("nvdisasm")
    with tempfile.TemporaryDirectory(prefix="xla-emitters-") as directory:
        path = Path(directory) / "kernel.cubin"
        path.write_bytes(cubin)
        return _run([nvdisasm.path, "-c", str(path)], timeout_seconds=timeout_seconds).stdout.decode(errors="replace")


def count_instructions(sass: str, entry: str | None = None) -> int:
    """Instructions in what `disassemble` answers, NOP left out: of one kernel, or of all.

    Counted as they stand, each once; an instruction in a loop counts once.

    raises KeyError when there is no kernel called `entry`.
    """
    counts: dict[str, int] = {}
    section = ""
    for line in sass.splitlines():
        if header := re.match(r"\s*\.section\s+\.text\.([\w$]+)", line):
            section = header[1]
            counts[section] = 0
        elif (instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\w+)", line)) and instruction[
            1
        ] != "NOP":
            counts[section] = counts.get(section, 0) + 1
    return sum(counts.values()) if entry is None else counts[entry]
