"""The property that a reduction of a StableHLO program keeps: wrong numbers at a stage, at sizes that may be renamed when it is reduced.

    wrong = wrong_program(text, options, {"b": 2, "s": 16})       wrong at the stage loops
    wrong.sizes_in(smaller)                                       {"d0": 16}: still wrong at that size; None: it is not

A smaller program has fewer sizes, and without JAX's checks they have new names. A size whose name was given gets its given value;
for the others the given values are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.errors import DataError
from xla_emitters.explore.check import Verdict
from xla_emitters.explore.program_bisect import CPU_STAGE, bisect_program
from xla_emitters.explore.programs import check_passes, check_program, compile_text, reference_of
from xla_emitters.fusions.entry import entry_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.pipelines.program_passes import PROGRAM_STAGES
from xla_emitters.pipelines.programs import DynamicProgram

ALL = "all"
PASSES = "passes"
MOST_AXES = 8
MOST_CHOICES = 8
"""Most choices of sizes that are tried for one program."""
WITHOUT_NAMES = (3, 2)
"""Values of sizes if none was given: a program with only known sizes may get unknown ones when checks are removed."""


@dataclass(frozen=True)
class WrongProgram:
    """Numbers are wrong.

    stage       what is executed: a stage, `CPU_STAGE`, ALL of them, or the IR after each of PASSES
    sizes       given for the whole program
    seed        of the inputs, which are drawn anew for every text
    near        names of the instructions that were found to be wrong: where to look first
    open_sizes  most parameters that may be sizes: a program with more might take sizes from drawn numbers, and have huge arrays
    """

    options: CompileOptions
    stage: str
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    seed: int = 0
    near: tuple[str, ...] = ()
    open_sizes: int = 0

    def __call__(self, text: str) -> bool:
        """Whether `text` is wrong in this way; False for a text that cannot be compiled or run."""
        return self.sizes_in(text) is not None

    def sizes_in(self, text: str) -> dict[str, int] | None:
        """The sizes at which `text` is wrong; None if it is not."""
        record = "passes" if self.stage == PASSES else "stages"
        try:
            program = compile_text(text, "candidate.mlir", replace(self.options, record=record, verify=False))
            if open_sizes_of(program) > self.open_sizes:
                return None
            for sizes in choices_of(program.symbols, self.sizes):
                if not self._verdict(program, sizes).ok:
                    return sizes
        except Exception:
            # A crash, for example: that is another bug than the one looked for.
            pass
        return None

    def _verdict(self, program: DynamicProgram, sizes: Mapping[str, int]) -> Verdict:
        try:
            inputs = drawn_inputs(program, sizes, self.seed)
            if self.stage == PASSES:
                return check_passes(program, inputs)
            if self.stage == CPU_STAGE:
                return reference_of(program, inputs).compare(program.run(inputs))
            return check_program(program, inputs, PROGRAM_STAGES[1:-1] if self.stage == ALL else [self.stage])
        except DataError as error:
            return Verdict(True, f"the program refuses these sizes: {error.message}")

    def __str__(self) -> str:
        where = {PASSES: "after single passes", CPU_STAGE: "in the code of the CPU", ALL: "at some stage"}
        return f"wrong {where.get(self.stage, f'at the stage {self.stage}')}"


def open_sizes_of(program: DynamicProgram) -> int:
    """Number of parameters that are an integer, or a list of integers no longer than a list of sizes."""
    results = [parameter.result for parameter in entry_of(program.source).parameters]
    integers = [dims_of(result) for result in results if element_of(result).numpy.kind in "iu"]
    return sum(len(dims) < 2 and all(0 <= size <= MOST_AXES for size in dims) for dims in integers)


def choices_of(symbols: Sequence[str], given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """At most `MOST_CHOICES` values of the symbols, equal ones first: the given value of a symbol, else any of the given values."""
    known = {symbol: given[symbol] for symbol in symbols if symbol in given}
    others = [symbol for symbol in symbols if symbol not in known]
    values = tuple(dict.fromkeys(given.values())) or WITHOUT_NAMES
    for chosen in islice(product(values, repeat=len(others)), MOST_CHOICES):
        yield known | dict(zip(others, chosen, strict=True))


def wrong_program(text: str, options: CompileOptions, sizes: Mapping[str, int], seed: int = 0) -> WrongProgram | None:
    """How a program is wrong; None if it is not. raises what `bisect_program` raises, DataError for unknown symbols in `sizes`"""
    program = compile_text(text, "program.mlir", replace(options, record="none"))
    culprit = bisect_program(program, drawn_inputs(program, sizes, seed)).culprit
    if culprit is None:
        return None
    near, open_sizes = culprit.blame.instructions, open_sizes_of(program)
    # A pass that fails may leave IR that runs; a later pass may hide the error of an earlier one.
    stages = (culprit.stage, ALL, CPU_STAGE, PASSES)
    tried = (WrongProgram(options, stage, sizes, seed, near, open_sizes) for stage in stages)
    return next((wrong for wrong in tried if wrong(text)), None)
