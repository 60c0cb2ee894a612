"""What a verb was given: HLO text or StableHLO, read once, with the options that are for the other kind refused.

    given = read_given(options)
    program = given.compiled(compile_options(options))        the same for a fusion, a module and a program with unknown sizes

A *module* is HLO text, all of whose sizes are known; a *program* is StableHLO. Which of them a file is, its text says.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xla_emitters.errors import AS_TEXT, DataError, Unsupported, UsageError
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.tools.input_output import arrays_source, read_source
from xla_emitters.tools.terminal import progress

if TYPE_CHECKING:
    from xla_emitters.dtypes import Array
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.program import Program
    from xla_emitters.runtime.arrays import StandardInput

INPUTS = "--inputs IN.npz"
"""The arguments that replace --sizes in verbs that run a program on arrays."""
_SIZE = r"([A-Za-z_]\w*)=(\d{1,18})"


@dataclass(frozen=True)
class Only:
    """An option that makes sense for one kind of text.

    of_programs  whether that kind is StableHLO; None: PTX and LLVM IR, which are not read here
    why          what the message says besides
    verbs        that refuse it for the other kind; (): all that have it
    """

    option: str
    of_programs: bool | None
    why: str = ""
    verbs: tuple[str, ...] = ()

    def is_in(self, options: argparse.Namespace) -> bool:
        """Whether the option was given, to a verb that refuses it."""
        return (not self.verbs or options.verb in self.verbs) and bool(
            getattr(options, self.option[2:].replace("-", "_"), None)
        )

    def refused(self, file: str, verb: str) -> UsageError:
        help_text = f"leave out {self.option}"
        if self.of_programs is None:
            return UsageError(f"{self.option} is for PTX and LLVM IR; {file} is neither", stage=verb, help=help_text)
        if self.of_programs:
            return UsageError(f"{self.option} is for programs (StableHLO); {self.why}", stage=verb, help=help_text)
        why = f"; {self.why}" if self.why else ""
        message = f"{self.option} is for modules of HLO text; {file} is a program in StableHLO{why}"
        return UsageError(message, stage=verb, help=help_text)


ONLY = (
    Only("--sizes", True, "the sizes of HLO text are known"),
    Only("--kernels", True, "the page of a module has each pass of all kernels"),
    Only("--mixed-precision", True, "the types of HLO text are XLA's choice"),
    Only("--fusion", False),
    Only("--hero-rules", False),
    Only("--triton", False),
    Only("--replace", False, "its kernels share functions"),
    Only("--tune", False, "a price needs known sizes"),
    Only("--keep-intermediates", False),
    Only("--keep-going", False),
    Only("--blocks", False, "its kernels run whole"),
    Only("--access-report", False, "cost has its accesses", verbs=("run",)),
    Only("--sanitize", False, "check runs its kernels under the sanitizer", verbs=("run",)),
    Only("--devices", False, "it is for one device, or still to be partitioned", verbs=("bisect", "check")),
    Only("--pipeline", False, verbs=("bisect", "cost", "reduce", "show")),
    Only("--launch", None),
    Only("--tensor-map", None),
)
"""All options that one kind of text does not have. Where several files were given, such an option is for those of its kind."""

OF_KERNELS = ("compile", "serve")
"""The verbs that take a kernel's IR without the module that it is from."""


@dataclass(frozen=True)
class Given:
    """A text, and the kind that it is.

    source      as `read_source` returns it; of a binary form on standard input the text
    name        of the file in messages; `text_name` of its text, where that was made of a binary form
    is_program  whether it is StableHLO
    inputs      the arguments in an HLO snapshot, as `--inputs` takes them; else None
    """

    source: str | Path
    text: str
    name: str
    text_name: str
    is_program: bool
    inputs: StandardInput | None = None

    @property
    def stem(self) -> str:
        """The name of a file without its ending; "stdin" for standard input."""
        return "stdin" if self.name == "<stdin>" else Path(self.name).stem

    def checked_source(self, options: argparse.Namespace) -> str | Path | Program:
        """What `check` and `bisect` take: of StableHLO a program that is not lowered yet, for its symbols; else the text."""
        if not self.is_program:
            return self.source
        from xla_emitters.tools.verb_options import compile_options

        return self.compiled(replace(compile_options(options), stage="stablehlo", record="none"))

    def compiled(self, how: CompileOptions, *, cache: bool = False) -> Program:
        """The program. raises what the compiler raises

        cache  whether a module may be taken from the cache of programs, and is kept there
        """
        from xla_emitters.explore.compile import compile, compile_text

        with progress(f"compiling {self.name}"):
            if self.is_program:
                return compile_text(self.text, self.text_name, how)
            return compile(self.source, cache=cache, **how.as_keywords())


def read_given(options: argparse.Namespace, file: str | None = None) -> Given:
    """Reads a file, by default the only one of the command.

    raises  what `read_source` raises, ParseError for a file that is not text; UsageError for an option that its kind does not have
    """
    # Imported here: --help of a verb loads none of it.
    from xla_emitters.explore.compile import is_torch_archive
    from xla_emitters.pipelines.kept_programs import read_text
    from xla_emitters.text.stablehlo import is_kernel_ir, is_stablehlo, module_for_devices

    file = file or str(options.file)
    source = read_source(file)
    inputs = None
    if is_torch_archive(source):
        from xla_emitters.explore.from_torch.torch_program import text_of_archive

        with progress(f"exporting {file}"):
            text, name = text_of_archive(file), file
    else:
        text, name = read_text(source)
        inputs = _inputs_of(source, name)
    if not isinstance(source, Path):
        source, name = text, "<stdin>"
    if (module := module_for_devices(text, name, getattr(options, "entry", ""))) is not None:
        source = text = module
    given = Given(source, text, name.removesuffix(AS_TEXT), name, is_stablehlo(text), inputs)
    if is_kernel_ir(text) and options.verb not in OF_KERNELS:
        raise Unsupported(
            f"{given.name} is a kernel's IR: nothing says what it should compute",
            stage=options.verb,
            help=f"{' and '.join(OF_KERNELS)} take it; or a module with it: MODULE.hlo --replace STAGE={given.name}",
        )
    if len(getattr(options, "files", ())) < 2:
        for each in ONLY:
            if each.of_programs != given.is_program and each.is_in(options):
                raise each.refused(file, options.verb)
    return given


def _inputs_of(source: str | Path | bytes, name: str) -> StandardInput | None:
    """The arguments in a snapshot, whose text has the name of a binary form, as an `.npz`."""
    if isinstance(source, str) or not name.endswith(AS_TEXT):
        return None
    from xla_emitters.text.binary.reading import read_binary

    data = source.read_bytes() if isinstance(source, Path) else source
    inputs = read_binary(data, name.removesuffix(AS_TEXT)).inputs
    if inputs is None:
        return None
    from xla_emitters.program import ArraySpec
    from xla_emitters.runtime.arrays import StandardInput, save_named

    arrays = [array for _, array in inputs.values()]
    specs = [ArraySpec(name, array.shape, tuple(reversed(range(array.ndim)))) for name, array in inputs.values()]
    stream = StandardInput()
    save_named(stream, list(inputs), arrays, specs)
    stream.seek(0)
    return stream


def sizes_given(text: str | None) -> dict[str, int]:
    """The value of --sizes. raises UsageError for text that is not a list of NAME=NUMBER, and for a name that is given twice."""
    found: dict[str, int] = {}
    for part in text.split(",") if text is not None else ():
        match = re.fullmatch(_SIZE, part.strip())
        if match is None or match[1] in found:
            why = "is given twice" if match else "is not NAME=NUMBER"
            raise UsageError(f"--sizes {text}: '{part.strip()}' {why}", stage="usage", help="--sizes b=2,s=16")
        found[match[1]] = int(match[2])
    return found


def sizes_of(program: Program, text: str | None, files: Sequence[str]) -> dict[str, int]:
    """The value of --sizes for a program; of several files, each takes the sizes that it has."""
    sizes = sizes_given(text)
    return {name: size for name, size in sizes.items() if name in program.symbols} if len(files) > 1 else sizes


def inputs_of(
    options: argparse.Namespace, program: Program, values: Mapping[str, int], file: str | StandardInput | None
) -> Sequence[Array]:
    """The arrays in a file of --inputs, or without one random arrays at these sizes. raises UsageError for both"""
    from xla_emitters.pipelines.program_inputs import given_inputs

    if file is not None:
        refuse_sizes_with_inputs(options)
    return given_inputs(program, values, arrays_source(file), options.seed, instead=INPUTS)


def refuse_sizes_with_inputs(options: argparse.Namespace) -> None:
    """raises UsageError where both are given"""
    if options.inputs and options.sizes is not None:
        raise UsageError("--sizes with --inputs: the arrays have sizes", stage=options.verb, help="leave out --sizes")


@contextmanager
def told_if_drawn(is_drawn: bool) -> Generator[None]:
    """An error about the arguments says that they were drawn."""
    try:
        yield
    except DataError as error:
        if is_drawn:
            error.notes = (*error.notes, (None, f"the arguments are random numbers; {INPUTS} gives others"))
        raise
