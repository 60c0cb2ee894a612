"""What a user sets once for a machine: the tools, the CPU's way, the cache. The only file that reads environment variables.

    XLA_EMITTERS_MLIR_OPT=/opt/llvm/bin/mlir-opt xla-emitters compile gelu.hlo
    xla-emitters compile gelu.hlo --mlir-opt /opt/llvm/bin/mlir-opt                                    # the same
    xe.compile("gelu.hlo", settings=Settings(Toolchain(files=(("mlir-opt", "/opt/llvm/bin/mlir-opt"),))))    # the same

`read_settings()` is the default of `CompileOptions.settings`; from there the value is passed on, so that compilations of one process may
differ. Source: docs/reference/contracts "Environment".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

TOOLCHAIN = "XLA_EMITTERS_TOOLCHAIN"
CPU = "XLA_EMITTERS_CPU"
CPU_FEATURES = "XLA_EMITTERS_CPU_FEATURES"
CACHE_DIR = "XLA_EMITTERS_CACHE_DIR"
DISABLE_CACHE = "XLA_EMITTERS_DISABLE_CACHE"
DISABLE_PLUGINS = "XLA_EMITTERS_DISABLE_PLUGINS"
DEBUG = "XLA_EMITTERS_DEBUG"
AUTO = "auto"


@dataclass(frozen=True)
class EnvironmentVariable:
    """One variable, with the flag of all commands that sets the same.

    metavar  "" for a switch: on for any value but "" and "0"; the flag sets 1
    tool     the tool whose file it names, else ""
    """

    name: str
    flag: str
    metavar: str
    help: str
    tool: str = ""


VARIABLES = (
    EnvironmentVariable(TOOLCHAIN, "--toolchain", "WAY", "what makes PTX: auto (default), llvmlite, mlir-opt, steps"),
    EnvironmentVariable(CPU, "--cpu", "WAY", "what computes programs on the CPU: auto (default), llvm, numpy"),
    EnvironmentVariable(
        CPU_FEATURES,
        "--cpu-features",
        "CPU",
        "the CPU that programs' machine code is for: native (default), x86-64-v2, x86-64-v3, znver4,-avx512bf16, ...",
    ),
    EnvironmentVariable(
        "XLA_EMITTERS_MLIR_OPT", "--mlir-opt", "PATH", "the mlir-opt of LLVM 22, which then makes PTX", "mlir-opt"
    ),
    EnvironmentVariable(
        "XLA_EMITTERS_MLIR_TRANSLATE", "--mlir-translate", "PATH", "for --keep-intermediates", "mlir-translate"
    ),
    EnvironmentVariable("XLA_EMITTERS_LLVM_LINK", "--llvm-link", "PATH", "for --keep-intermediates", "llvm-link"),
    EnvironmentVariable("XLA_EMITTERS_OPT", "--llvm-opt", "PATH", "LLVM's opt, for --keep-intermediates", "opt"),
    EnvironmentVariable("XLA_EMITTERS_LLC", "--llc", "PATH", "for --keep-intermediates", "llc"),
    EnvironmentVariable("XLA_EMITTERS_LIBDEVICE", "--libdevice", "FILE", "libdevice.10.bc", "libdevice"),
    EnvironmentVariable("XLA_EMITTERS_PTXAS", "--ptxas", "PATH", "NVIDIA's assembler", "ptxas"),
    EnvironmentVariable("XLA_EMITTERS_NVDISASM", "--nvdisasm", "PATH", "NVIDIA's disassembler", "nvdisasm"),
    EnvironmentVariable(CACHE_DIR, "--cache-dir", "DIR", "where compiled programs are kept"),
    EnvironmentVariable(DISABLE_CACHE, "--no-cache", "", "compile anew, and keep nothing"),
    EnvironmentVariable(DISABLE_PLUGINS, "--no-plugins", "", "load no entry point of other packages"),
    EnvironmentVariable(DEBUG, "--debug", "", "let tracebacks through"),
)
_BY_NAME = {variable.name: variable for variable in VARIABLES}


@dataclass(frozen=True)
class Toolchain:
    """What makes PTX and machine code of a GPU; `lowering/toolchain/tools` looks for it.

    way        "auto", "llvmlite", "mlir-opt" or "steps"
    files      (tool, its file): such a tool is used or refused, and searched for nowhere else
    cuda_home  the directory of a CUDA toolkit; "": /usr/local/cuda alone is looked at
    """

    way: str = AUTO
    files: tuple[tuple[str, str], ...] = ()
    cuda_home: str = ""

    def file_of(self, tool: str) -> str | None:
        """The file that the user names for a tool."""
        return dict(self.files).get(tool)


@dataclass(frozen=True)
class Settings:
    """What a user sets once for a machine; each field but `toolchain` and `given` is called like its flag.

    toolchain     what makes PTX
    cpu           what computes programs on the CPU: "auto", "llvm" or "numpy"
    cpu_features  the CPU that machine code is made for, see `lowering/cpu/cpu_target`
    cache_dir     where programs are kept; "": the platform's directory for caches of this user
    no_cache      programs are compiled anew, and not kept
    no_plugins    entry points of other packages are not loaded
    debug         a command prints tracebacks of errors
    given         (variable, value) for each that was set
    """

    toolchain: Toolchain = Toolchain()
    cpu: str = AUTO
    cpu_features: str = "native"
    cache_dir: str = ""
    no_cache: bool = False
    no_plugins: bool = False
    debug: bool = False
    given: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    def with_variable(self, name: str, value: str) -> Settings:
        """These settings with one of `VARIABLES` set to a value that is not empty."""
        variable, toolchain = _BY_NAME[name], self.toolchain
        fields: dict[str, Any] = {"given": tuple({**dict(self.given), name: value}.items())}
        if variable.tool:
            files = {**dict(toolchain.files), variable.tool: value}
            fields["toolchain"] = replace(toolchain, files=tuple(files.items()))
        elif name == TOOLCHAIN:
            fields["toolchain"] = replace(toolchain, way=value)
        else:
            fields[variable.flag[2:].replace("-", "_")] = value if variable.metavar else value != "0"
        return replace(self, **fields)


def read_settings(variables: Mapping[str, str] = os.environ) -> Settings:
    """The settings of environment variables; an empty value is none."""
    settings = Settings(Toolchain(cuda_home=variables.get("CUDA_HOME", "")))
    for variable in VARIABLES:
        if value := variables.get(variable.name):
            settings = settings.with_variable(variable.name, value)
    return settings


def wishes_colour() -> bool | None:
    """What the user says about colours: `NO_COLOR` (any value) none, `FORCE_COLOR` always, a dumb terminal none; None: nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def job_variables() -> dict[str, str]:
    """What a launcher says about this process's place in a job, as PyTorch's does."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {name: os.environ[name] for name in names if name in os.environ}


def child_environment(**added: str) -> dict[str, str]:
    """The environment of a child process: this process's, with variables added."""
    return {**os.environ, **added}
