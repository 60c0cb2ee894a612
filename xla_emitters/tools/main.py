"""`xla-emitters VERB ...`: compile, run, check, bisect, reduce, compare, bundle, explain, doctor, cache, opt.

Each verb is a file in this directory with `add_arguments(parser)` and `run(options) -> exit code`. Only the file of the verb on the command
line is imported, so that no verb waits for another one's imports. All verbs have the flags that set what an environment variable sets:

    XLA_EMITTERS_MLIR_OPT=/opt/llvm/bin/mlir-opt xla-emitters compile gelu.hlo
    xla-emitters compile gelu.hlo --mlir-opt /opt/llvm/bin/mlir-opt               # the same

The parsed options have the result as `settings`. Source: docs/reference/contracts "Environment".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from xla_emitters.errors import UsageError
from xla_emitters.plugins import left_out
from xla_emitters.settings import VARIABLES, read_settings
from xla_emitters.tools.cold_start import begin
from xla_emitters.tools.failures import VerbParser, ended, reported
from xla_emitters.tools.terminal import marked_error

VERBS = {
    "list": (
        "list the fusions and library calls of a module: emitter, launch, or why one is not supported",
        "xla-emitters list examples/modules/loop.hlo",
    ),
    "compile": ("print the IR or code of a fusion at a stage", "xla-emitters compile examples/gelu.hlo --stage flat"),
    "run": (
        "run a program, on the GPU or on the CPU at any stage",
        "xla-emitters run examples/negate_20.hlo --platform cpu",
    ),
    "check": ("run every stage and compare with the NumPy reference", "xla-emitters check examples/negate_20.hlo"),
    "bisect": (
        "find the pass that makes the numbers wrong, the op that it changed, the first wrong element and its thread",
        "xla-emitters bisect examples/negate_20.hlo",
    ),
    "reduce": (
        "shrink a file as long as a command, a wrong number or a crash stays",
        "xla-emitters reduce examples/gelu.hlo --keep 'grep -q tanh'",
    ),
    "bundle": (
        "pack kernels for a machine that has only Python, NumPy, ml_dtypes and CuPy",
        "xla-emitters bundle examples/negate_20.hlo -o kernels.zip",
    ),
    "explain": (
        "say why the code is as it is: emitter, launch, partition, vectors, and what passes declined",
        "xla-emitters explain examples/gelu.hlo",
    ),
    "show": (
        "write one HTML file to look at: every pass, all stages side by side, which thread touches what",
        "xla-emitters show examples/gelu.hlo -o gelu.html",
    ),
    "serve": (
        "serve that page: recompiled while you type or save, priced and checked",
        "xla-emitters serve examples/gelu.hlo",
    ),
    "lsp": (
        "be an editor's server: diagnostics, hover, definitions (extra [lsp])",
        "xla-emitters lsp",
    ),
    "cost": (
        "say what each kernel costs, without a GPU: registers, instructions, bytes, expected time and its bound",
        "xla-emitters cost examples/gelu.hlo --target h200,a6000",
    ),
    "compare": (
        "compare with the real XLA, without a GPU: passes one by one, launch, registers, PTX (extras [xla,ptxas])",
        "xla-emitters compare examples/gelu.hlo",
    ),
    "optimize": (
        "print a module as the real XLA:GPU optimizes it, without a GPU (extras [xla,ptxas])",
        "xla-emitters optimize examples/softmax.mlir --flag xla_gpu_enable_triton_gemm=false",
    ),
    "maps": (
        "print which elements a result needs of each parameter, or a parameter gives to each result",
        "xla-emitters maps examples/gelu.hlo",
    ),
    "doctor": ("say what was found, what is missing, and what installs it", "xla-emitters doctor"),
    "cache": ("look at, or clear, the programs that were compiled before", "xla-emitters cache info"),
}
EPILOG = """\
'xla-emitters opt ...' is the same as 'xla-emitters-opt ...'.
exit codes: 0 ok, 1 the input is wrong or not supported, 2 usage, 3 numbers differ or a --fail-on holds, 4 a tool or an extra is missing,
70 a bug of ours (with a reproducer)"""


class PrintVersion(argparse.Action):
    """`--version`; the installed packages are read only when it is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"xla-emitters {version('xla-emitters')}")
        parser.exit()


class PrintCompletion(argparse.Action):
    """`--print-completion bash`: prints the shell's completion script, made by shtab."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        import shtab

        print(shtab.complete(build_parser(*VERBS), values))
        parser.exit()


def build_parser(*asked: str) -> argparse.ArgumentParser:
    """The parser of all verbs, with the arguments of those in `asked` only."""
    parser = VerbParser(
        prog="xla-emitters",
        description="XLA:GPU's emitters in Python: HLO fusions to PTX, readable and executable at every pass.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=PrintVersion, nargs=0, help="print the version and stop")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=("bash", "zsh", "fish", "tcsh"),
        metavar="SHELL",
        help="print the completion script for bash, zsh, fish or tcsh and stop",
    )

    def of_verb(**given: Any) -> Any:
        # Those of all verbs would take 4 ms; nothing asks one that is not in the words.
        return VerbParser(**given) if given["prog"].rpartition(" ")[2] in (*asked, "opt") else None

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=cast(Any, of_verb))
    for verb, (summary, example) in VERBS.items():
        sub = verbs.add_parser(
            verb,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if verb not in asked:
            continue
        module = import_module(f"xla_emitters.tools.{verb}_verb")
        module.add_arguments(sub)
        add_environment(sub, is_listed=verb == "doctor")
        sub.set_defaults(run=module.run, parser=sub)
    verbs.add_parser("opt", help="run passes on MLIR or HLO text (xDSL's opt driver)", add_help=False)
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Runs one verb; returns the exit code of docs/reference/contracts."""
    words = list(sys.argv[1:] if args is None else args)
    if words[:1] == ["opt"]:
        from xla_emitters.tools import opt

        return opt.main(words[1:])
    # A verb may come after an option of the whole command. Another word that equals a verb's name only costs an import.
    options, unknown = build_parser(*(word for word in words if word in VERBS)).parse_known_args(words)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    with left_out() if options.settings.no_plugins else nullcontext():
        return reported(lambda: options.run(options), partial(_reduced, options), debug=options.settings.debug)


def _reduced(options: argparse.Namespace, directory: Path) -> str:
    """Writes the smaller input for a bug of ours, for verbs that compile one file; `check` reduces its files itself."""
    if options.verb == "reduce" or "file" not in options or "pipeline" not in options:
        return ""
    from xla_emitters.tools.crashes import reduced_crash  # imported here: it loads multiprocessing

    return reduced_crash(options.file, options, directory)


def command() -> int:
    """The console script: `main` in a process of its own."""
    begin()
    return ended(main)


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


if __name__ == "__main__":
    sys.exit(command())
