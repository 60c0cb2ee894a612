"""The environment variables that the commands read, each with its flag: one table for `--help`, for parsing and for `doctor`.

    XLA_EMITTERS_MLIR_OPT=/opt/llvm/bin/mlir-opt xla-emitters compile gelu.hlo
    xla-emitters compile gelu.hlo --mlir-opt /opt/llvm/bin/mlir-opt               # the same

Source: docs/reference/contracts "Environment".
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.late_dataclass import dataclass
from xla_emitters.plugins import DISABLE
from xla_emitters.tools.failures import DEBUG


@dataclass(frozen=True)
class Variable:
    """One variable. `metavar` is "" for a switch, whose flag sets it to 1."""

    name: str
    flag: str
    metavar: str
    help: str


VARIABLES = (
    Variable(
        "XLA_EMITTERS_TOOLCHAIN",
        "--toolchain",
        "WAY",
        "what makes PTX: auto (default), mlir-opt, steps, llvm, llvmlite",
    ),
    Variable("XLA_EMITTERS_CPU", "--cpu", "WAY", "what computes programs on the CPU: auto (default), llvm, numpy"),
    Variable(
        "XLA_EMITTERS_CPU_FEATURES",
        "--cpu-features",
        "CPU",
        "the CPU that programs' machine code is for: native (default), x86-64-v2, x86-64-v3, znver4,-avx512bf16, ...",
    ),
    Variable("XLA_EMITTERS_LIBLLVM", "--libllvm", "FILE", "LLVM 22's shared library, which makes PTX"),
    Variable("XLA_EMITTERS_MLIR_OPT", "--mlir-opt", "PATH", "the mlir-opt of LLVM 22, which then makes PTX"),
    Variable("XLA_EMITTERS_MLIR_TRANSLATE", "--mlir-translate", "PATH", "for --keep-intermediates"),
    Variable("XLA_EMITTERS_LLVM_LINK", "--llvm-link", "PATH", "for --keep-intermediates"),
    Variable("XLA_EMITTERS_OPT", "--llvm-opt", "PATH", "LLVM's opt, for --keep-intermediates"),
    Variable("XLA_EMITTERS_LLC", "--llc", "PATH", "for --keep-intermediates"),
    Variable("XLA_EMITTERS_LIBDEVICE", "--libdevice", "FILE", "libdevice.10.bc"),
    Variable("XLA_EMITTERS_PTXAS", "--ptxas", "PATH", "NVIDIA's assembler"),
    Variable("XLA_EMITTERS_NVDISASM", "--nvdisasm", "PATH", "NVIDIA's disassembler"),
    Variable("XLA_EMITTERS_CACHE_DIR", "--cache-dir", "DIR", "where compiled programs are kept"),
    Variable("XLA_EMITTERS_DISABLE_CACHE", "--no-cache", "", "compile anew, and keep nothing"),
    Variable(DISABLE, "--no-plugins", "", "load no entry point of other packages"),
    Variable(DEBUG, "--debug", "", "let tracebacks through"),
)


REMOVED = {
    "--host": "programs are run as steps; the ahead-of-time form is: bundle --abi c",
    "--heat": "kernels are compiled once, for all sizes",
}
"""Flag of an earlier version -> what there is instead."""


class _Removed(argparse.Action):
    """Refuses a flag of an earlier version."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        raise UsageError(f"{option} was removed", help=REMOVED[option or ""])


class _Set(argparse.Action):
    """Sets the environment variable to the option's value; the library reads it there."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        os.environ[self.dest] = values or "1"


def add_environment(parser: argparse.ArgumentParser, *, is_listed: bool) -> None:
    """Adds the flags that set environment variables.

    is_listed  whether `--help` has a line for each flag, or one line that says where they are listed
    """
    where = (
        "each is also the variable named in brackets"
        if is_listed
        else "flags and variables: xla-emitters doctor --help"
    )
    group = parser.add_argument_group("environment", where)
    for flag in REMOVED:
        group.add_argument(flag, action=_Removed, nargs="?", help=argparse.SUPPRESS)
    for variable in VARIABLES:
        group.add_argument(
            variable.flag,
            action=_Set,
            dest=variable.name,
            default=argparse.SUPPRESS,
            nargs=None if variable.metavar else 0,
            metavar=variable.metavar or None,
            help=f"{variable.help} [{variable.name}]" if is_listed else argparse.SUPPRESS,
        )
