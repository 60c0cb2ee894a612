"""The flags of all verbs that set what an environment variable sets (`settings`).

    XLA_EMITTERS_MLIR_OPT=/opt/llvm/bin/mlir-opt xla-emitters compile gelu.hlo
    xla-emitters compile gelu.hlo --mlir-opt /opt/llvm/bin/mlir-opt               # the same

The parsed options have the result as `settings`. Source: docs/reference/contracts "Environment".
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from xla_emitters.errors import UsageError
from xla_emitters.settings import VARIABLES, read_settings
from xla_emitters.tools.terminal import marked_error

REMOVED = {
    "--host": "programs are run as steps; the ahead-of-time form is: bundle --abi c",
    "--heat": "kernels are compiled once, for all sizes",
    "--libllvm": "llvmlite makes PTX (pip install xla-emitters brings it), or the user's own tools: --toolchain mlir-opt",
}
"""Flag of an earlier version -> what there is instead."""


class _Removed(argparse.Action):
    """Refuses a flag of an earlier version."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        error = UsageError(f"{option_string} was removed", stage="usage", help=REMOVED[option_string or ""])
        print(marked_error(error.render(), sys.stderr), file=sys.stderr)
        parser.exit(UsageError.exit_code)


class _Set(argparse.Action):
    """Sets what the variable sets."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        namespace.settings = namespace.settings.with_variable(self.dest, "1" if values == [] else values)


def add_environment(parser: argparse.ArgumentParser, *, is_listed: bool) -> None:
    """Adds the flags that set what environment variables set, and the default of `settings`.

    is_listed  whether `--help` has a line for each flag, or one line that says where they are listed
    """
    where = (
        "each is also the variable named in brackets"
        if is_listed
        else "flags and variables: xla-emitters doctor --help"
    )
    group = parser.add_argument_group("environment", where)
    parser.set_defaults(settings=read_settings())
    for flag in REMOVED:
        group.add_argument(flag, action=_Removed, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
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
