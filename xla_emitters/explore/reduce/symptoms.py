"""The property that a reduction keeps: wrong numbers at a stage, or one crash of ours. Each is tested in a process that may crash.

wrong = wrong_in(text, options)                        wrong at the stage flat    where `bisect` finds the first wrong pass
wrong(smaller)                                         True                       still wrong there
wrong = wrong_in(text, options, {"b": 2, "s": 16})     wrong at the stage loops   a program with unknown sizes
wrong.sizes_in(smaller)                                {"d0": 16}: still wrong at that size; None: it is not
crash_of(text, options)                                "KeyError in lower_tensors.py:_stored"

A smaller program has fewer sizes, and without JAX's checks they have new names. A size whose name was given gets its given value;
for the others the given values are tried.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Any

from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.errors import DataError, InternalError, XlaEmittersError
from xla_emitters.explore.bisect.bisect import bisect
from xla_emitters.explore.bisect.program_bisect import CPU_STAGE
from xla_emitters.explore.check.check import check
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.explore.compile import compile_text
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program
from xla_emitters.text.stablehlo import is_stablehlo

PACKAGE = str(Path(__file__).parents[2])
ALL = "all"
PASSES = "passes"
MOST_AXES = 8
MOST_CHOICES = 8
"""Most choices of sizes that are tried for one program."""
WITHOUT_NAMES = (3, 2)
"""Values of sizes if none was given: a program with only known sizes may get unknown ones when checks are removed."""


@dataclass(frozen=True)
class Wrong:
    """Numbers are wrong.

    stage       what is executed: a stage, ALL of them, the IR after each of PASSES, or of a program also CPU_STAGE
    sizes       of a program: given for the whole of it
    blocks      of a module: how many blocks of each kernel are run; 0: all
    seed        of the inputs, which are drawn anew for every text
    near        names of the instructions that were found to be wrong: where to look first
    open_sizes  most parameters of a program that may be sizes: one with more might take sizes from drawn numbers, and have huge arrays
    """

    options: CompileOptions
    stage: str
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    blocks: int = 0
    seed: int = 0
    near: tuple[str, ...] = ()
    open_sizes: int = 0

    def __call__(self, text: str) -> bool:
        """Whether `text` is wrong in this way; False for a text that cannot be compiled or run."""
        return self.sizes_in(text) is not None

    def sizes_in(self, text: str) -> dict[str, int] | None:
        """The sizes at which `text` is wrong, {} for a module; None if it is not."""
        try:
            if not is_stablehlo(text):
                return {} if self._is_wrong(text, None) else None
            stage = self.options.stage if self.stage == CPU_STAGE else "stablehlo"
            how = replace(self.options, record="none", verify=False, stage=stage)
            program = compile_text(text, "candidate.mlir", how)
            choices = choices_of(program.symbols, self.sizes) if open_sizes_of(program) <= self.open_sizes else ()
            return next((sizes for sizes in choices if self._is_wrong(program, sizes)), None)
        except Exception:
            # A crash, for example: that is another bug than the one looked for.
            return None

    def _is_wrong(self, source: Any, sizes: Mapping[str, int] | None) -> bool:
        try:
            if self.stage == CPU_STAGE:
                inputs = drawn_inputs(source, sizes or {}, self.seed)
                return not reference_of(source, inputs).compare(source.run(inputs)).ok
            keywords = replace(self.options, verify=False).as_keywords()
            return not check(source, stages=self.stage, sizes=sizes, blocks=self.blocks, seed=self.seed, **keywords).ok
        except DataError:
            # The program refuses these sizes.
            return False

    def __str__(self) -> str:
        where = {PASSES: "after single passes", CPU_STAGE: "in the code of the CPU", ALL: "at some stage"}
        return f"wrong {where.get(self.stage, f'at the stage {self.stage}')}"


def wrong_in(
    text: str, options: CompileOptions, sizes: Mapping[str, int] | None = None, *, blocks: int = 0, seed: int = 0
) -> Wrong | None:
    """How a module or a program is wrong; None if it is not.

    sizes   of a program: symbol -> size
    raises  what `bisect` raises, except the InternalError of a pass; DataError for unknown symbols
    """
    if is_stablehlo(text):
        program = compile_text(text, "program.mlir", replace(options, record="none"))
        culprit = bisect(program, sizes=sizes, seed=seed).culprit
        open_sizes, others = open_sizes_of(program), (ALL, CPU_STAGE, PASSES)
    else:
        culprit = bisect(text, blocks=blocks, seed=seed, **replace(options, verify=True).as_keywords()).culprit
        open_sizes, others = 0, (ALL, PASSES)
    if culprit is None:
        return None
    wrong = Wrong(options, culprit.stage, sizes or {}, blocks, seed, culprit.blame.instructions, open_sizes)
    # A pass that fails may leave IR that runs; a later pass may hide the error of an earlier one; what only the tools need has no stage.
    tried = (replace(wrong, stage=stage) for stage in (culprit.stage, *others))
    return next((each for each in tried if each(text)), None)


def open_sizes_of(program: Program) -> int:
    """Number of parameters that are an integer, or a list of integers no longer than a list of sizes."""
    results = [parameter.result for parameter in entry_of(lowerings_of(program).source).parameters]
    integers = [dims_of(result) for result in results if element_of(result).numpy.kind in "iu"]
    return sum(len(dims) < 2 and all(0 <= size <= MOST_AXES for size in dims) for dims in integers)


def choices_of(symbols: Sequence[str], given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """At most `MOST_CHOICES` values of the symbols, equal ones first: the given value of a symbol, else any of the given values."""
    known = {symbol: given[symbol] for symbol in symbols if symbol in given}
    others = [symbol for symbol in symbols if symbol not in known]
    values = tuple(dict.fromkeys(given.values())) or WITHOUT_NAMES
    for chosen in islice(product(values, repeat=len(others)), MOST_CHOICES):
        yield known | dict(zip(others, chosen, strict=True))


@dataclass(frozen=True)
class Crash:
    """Compiling fails by one particular bug of ours."""

    options: CompileOptions
    signature: str

    def __call__(self, text: str) -> bool:
        return crash_of(text, self.options) == self.signature

    def __str__(self) -> str:
        return self.signature


def crash_of(text: str, options: CompileOptions) -> str | None:
    """The signature of the bug of ours by which compiling and verifying a text fails; None if it does not: see `signature_of`."""
    verified = replace(options, verify=True)
    if is_stablehlo(text):
        return crash_in(lambda: compile_text(text, "program.mlir", verified).code)
    return crash_in(lambda: compile_module(read_module(text), verified))


def crash_in(work: Callable[[], object]) -> str | None:
    """The signature of the bug that calling `work` shows; None for errors that are meant for users."""
    try:
        work()
    except InternalError as error:
        return signature_of(error)
    except (XlaEmittersError, OSError, RecursionError, MemoryError):
        return None
    except Exception as error:
        return signature_of(error)
    return None


_PARTICULAR = re.compile(r"%[\w.\-]+|'[^']*'|\d+|\[[^]]*\]|<[^>]*>")


def signature_of(error: BaseException) -> str:
    """Identifies a crash: its type, our innermost function, and its message without names and numbers.

    For IR that does not verify: the pass and the message.
    """
    cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ is not None else error
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.filename.startswith(PACKAGE)]
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    message = error.message if isinstance(error, InternalError) else str(error)
    return f"{type(cause).__name__}{place}: {_PARTICULAR.sub('_', message.splitlines()[0] if message else '')}"
