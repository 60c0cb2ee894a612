"""`xla-emitters-opt`: xDSL's opt driver with our dialects, our passes, our printer, and `.hlo` as an input format.

    xla-emitters-opt kernel.mlir -p xla-lower-xla-loops-to-scf,xla-flatten-tensors --remarks
    xla-emitters-opt kernel.mlir -xla-lower-xla-loops-to-scf -cse       # flags, as XLA's own driver takes them (`pass_list.py`)
    xla-emitters-opt gelu.hlo                                  # the `hlo` dialect
    xla-emitters-opt layer.mlir                                # StableHLO, MHLO and xla_hlo: the `hlo` dialect too
    xla-emitters-opt listing.mlir                              # std, loop and xla_lhlo of 2020: today's spelling (`other_spelling`)

A name that MLIR's passes share with ours (`canonicalize`, `cse`, `lower-affine` ...) means ours: they keep locations and know our ops.
xDSL's other passes keep their names. Exit code 1, with a located message, for a wrong input; 2 for an unknown pass or option.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import DiagnosticException
from xdsl.xdsl_opt_main import xDSLOptMain

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dialects.other_spelling import is_older, modernized, of_dictionaries
from xla_emitters.errors import ParseError, ToolError, Unsupported, VerifyError, XlaEmittersError, file_errors
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.support.decoding import BinaryKind, kind_of
from xla_emitters.support.extras import install_command
from xla_emitters.text.binary.reading import text_of
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.tools.failures import VerbParser, ended, reported
from xla_emitters.tools.pass_list import (
    MLIR_NAMES,
    NOTHING_TO_DO,
    PIPELINES,
    available,
    multiverse,
    parse_passes,
    pass_flags,
    passes_of,
)
from xla_emitters.universe import PASSES, all_passes

# Possessive: what was taken for a space or a comment is not tried again in another way.
_HLO = re.compile(rb"(?:\s|//[^\n]*+)*+HloModule\b")

_STABLEHLO = re.compile(
    r'^[ \t]*(?:%[^=\n]*=[ \t]*)?"?(?:stablehlo|chlo|mhlo|xla_hlo|xla_chlo|vhlo)\.\w|^[ \t]*"?func\.func"?[^\n]*!vhlo\.',
    re.MULTILINE,
)
"""An op of a program's text, which the reader of programs turns into ops of `hlo`."""

_ALIASES = {
    "passes": ("--pass-pipeline", "-pass-pipeline"),
    "print_between_passes": (
        *("--mlir-print-ir-after-all", "-mlir-print-ir-after-all"),
        *("--print-ir-after-all", "-print-ir-after-all"),
    ),
    "print_op_generic": ("--mlir-print-op-generic", "-mlir-print-op-generic"),
    "print_debuginfo": ("--mlir-print-debuginfo", "-mlir-print-debuginfo"),
}
"""MLIR's names for options of xDSL's driver. As in MLIR, each long option may also begin with one dash."""


class HelpFormatter(argparse.HelpFormatter):
    """Leaves the names of passes in one piece: argparse would break lines at their hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


class OptParser(VerbParser):
    """The parser of xDSL's driver; its help ends with the passes, which are imported only for it."""

    def format_help(self) -> str:
        aliases: dict[str, list[str]] = {}
        for alias, name in MLIR_NAMES.items():
            aliases.setdefault(name, []).append(alias)
        parts = [super().format_help(), "passes (xDSL's own can be named too; `xdsl-opt --help` lists them):"]
        for name, factory in all_passes().items():
            names = ", ".join((name, *aliases.get(name, ())))
            parts.append(f"  {names}\n{textwrap.indent(textwrap.fill(first_sentence(factory()), 112), ' ' * 8)}")
        return "\n".join(parts) + "\n"


def first_sentence(pass_type: type[ModulePass]) -> str:
    """What a pass does: the first sentence of its file's head; of a plugin's pass, of its own description."""
    own = pass_type.__module__.startswith("xla_emitters.")
    head = (inspect.getdoc(inspect.getmodule(pass_type) if own else pass_type) or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", " ".join(head.split()), maxsplit=1)[0].rstrip(".:")


class OptMain(xDSLOptMain):
    """xDSL's driver; only registration, parsing and printing are ours."""

    def register_all_dialects(self) -> None:
        self.ctx = make_context()

    def register_all_passes(self) -> None:
        for name, factory in available().items():
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        self.available_targets = multiverse().all_targets | self.available_targets

    def register_all_frontends(self) -> None:
        def mlir(stream: IO[bytes]) -> ModuleOp:
            text, name = text_of(stream.read(), self.get_input_name())
            if _STABLEHLO.search(text):
                from xla_emitters.text.stablehlo import parse_stablehlo

                return parse_stablehlo(text, name)
            return parse_ir(
                of_dictionaries(modernized(text) if is_older(text) else text),
                name,
                allow_unregistered=bool(self.args.allow_unregistered_dialect),
                verify=not self.args.disable_verify,
                locate=True,
            )

        def hlo(stream: IO[bytes]) -> ModuleOp:
            return parse_hlo(*text_of(stream.read(), self.get_input_name()))

        self.available_frontends = {"mlir": mlir, "hlo": hlo}

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """As xDSL's; a text whose name does not say what it is (standard input, XLA's dumps `*.txt`) is HLO if it begins so, else MLIR."""
        stream, extension = super().get_input_stream()
        if self.args.frontend or (self.args.input_file and extension in self.available_frontends):
            return stream, extension
        text = stream.read()
        if self.args.input_file:
            stream.close()
        is_hlo = _HLO.match(text) or kind_of(text) in (BinaryKind.MODULE, BinaryKind.SNAPSHOT)
        return BytesIO(text), "hlo" if is_hlo else "mlir"

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        """`chunk` begins `start_offset` lines into the input; as many empty lines before it let messages give the file's line."""
        text = BytesIO(b"\n" * start_offset + chunk.read()) if start_offset else chunk
        try:
            with self._as_diagnostics():
                return super().parse_chunk(text, file_extension)
        except ParseError as error:
            if not self.args.parsing_diagnostics:
                raise
            print(error.render())
            return None

    @contextmanager
    def _as_diagnostics(self) -> Generator[None]:
        """Under `--verify-diagnostics` our errors become xDSL's, which its driver then prints instead of failing."""
        try:
            yield
        except (VerifyError, Unsupported) as error:
            if not self.args.verify_diagnostics:
                raise
            raise DiagnosticException(error.render()) from error

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.__class__ = OptParser  # xDSL's driver makes the parser itself
        arg_parser.formatter_class, arg_parser.prog = HelpFormatter, "xla-emitters-opt"
        arg_parser.add_argument("--remarks", action="store_true", help="print to stderr what passes declined, and why")
        arg_parser.add_argument(
            "--spelling",
            choices=("seed", "upstream"),
            default="seed",
            help="print xla_gpu.loop (seed, default), or xla.loop as in today's XLA (upstream)",
        )
        for action in arg_parser._actions:  # pyright: ignore[reportPrivateUsage]
            if action.dest in ("input_file", "output_file"):
                action.type = _file
            long = [option for option in action.option_strings if option.startswith("--")]
            # argparse offers no public way to add an option string to an inherited argument.
            for alias in (*_ALIASES.get(action.dest, ()), *(option[1:] for option in long)):
                if alias.startswith("--"):
                    action.option_strings = [*action.option_strings, alias]
                arg_parser._option_string_actions[alias] = action  # pyright: ignore[reportPrivateUsage]
            if action.dest == "passes":
                action.help = "comma-separated passes, or each as a flag; they are listed below"

    def setup_pipeline(self) -> None:
        self.pipeline = PassPipeline(passes_of(parse_passes(self.args.passes), self.available_passes))

    def apply_passes(self, prog: ModuleOp) -> None:
        """xDSL's driver prints times and IR between passes to standard output; this prints them to stderr, apart from the result."""
        passes = self.pipeline.passes
        with take_notes() as notes, self._as_diagnostics():
            for number, module_pass in enumerate(passes, 1):
                start = time.perf_counter()
                run_pass(module_pass, self.ctx, prog, verify=not self.args.disable_verify)
                if self.args.time_passes:
                    print(f"{module_pass.name}  {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)
                if self.args.print_between_passes and number < len(passes):
                    print(f"// -----// IR after {module_pass.name} //----- //\n{print_ir(prog)}", file=sys.stderr)
        if self.args.remarks:
            for remark in notes.remarks:
                print(remark, file=sys.stderr)

    def prepare_output(self) -> IO[str]:
        with file_errors(f"cannot write {self.args.output_file}", "output"):
            return super().prepare_output()

    def output_resulting_program(self, prog: ModuleOp) -> str:
        if self.args.target != "mlir" or self.args.print_no_properties or self.args.syntax_highlight:
            try:
                return super().output_resulting_program(prog)
            except ImportError as error:
                why = f"xDSL's target '{self.args.target}' needs a package that is not installed: {error.name}"
                raise ToolError(why, stage="output", help=install_command(error.name or "")) from error
            except XlaEmittersError:
                raise  # a target of ours
            except Exception as error:
                why = f"xDSL's target '{self.args.target}' does not take this IR: {error}"
                raise Unsupported(why, stage="output") from error
        text = print_ir(
            prog,
            locations=bool(self.args.print_debuginfo),
            generic=bool(self.args.print_op_generic),
            spelling=self.args.spelling,
        )
        return text if text.endswith("\n") else text + "\n"


def _file(name: str) -> str | None:
    """None for `-`: xDSL's driver uses standard input or output when no file is named."""
    return None if name == "-" else name


def _is_pass(name: str) -> bool:
    """Whether the flag `name` is one of our passes or a name of MLIR's or XLA's that is accepted for them."""
    return any(name in names for names in (PASSES, MLIR_NAMES, NOTHING_TO_DO, PIPELINES))


def main(args: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code of docs/reference/contracts."""

    def run() -> int:
        words = pass_flags(sys.argv[1:] if args is None else args, _is_pass)
        driver: Any = OptMain("xDSL's opt driver with the dialects and passes of xla_emitters", words)
        driver.run()
        return 0

    return reported(run)


def command() -> int:
    """The console script: `main` in a process of its own."""
    return ended(main)


if __name__ == "__main__":
    sys.exit(command())
