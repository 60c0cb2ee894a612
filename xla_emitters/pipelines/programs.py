"""Programs with unknown sizes: StableHLO to a host program, straight down the list PROGRAM of `passes.py`.

    parse_stablehlo -> PROGRAM -> python_program -> a function of arrays

    program = compile_program(parse_stablehlo(text))        once
    program.run([x])                                        at any sizes, again and again
    program.run([x], stage="lmhlo")                         the same bits from what an earlier stage left

Source: seed document, "DHLO2Executable"; docs/reference/4 1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.hlo.types import element_of, is_array
from xla_emitters.dialects.printer import print_ir
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import UsageError
from xla_emitters.fusions.program_plan import entry_of
from xla_emitters.host.disc_convert_const_to_ral import constants_of
from xla_emitters.host.python_program import python_program
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import PROGRAM, PROGRAM_STAGES
from xla_emitters.rewrite.recorder import Observer, Recorder
from xla_emitters.runtime.ral.buffer_ops import value_of
from xla_emitters.runtime.ral.constants import Constants
from xla_emitters.runtime.ral.context import Counters
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.runtime.reference import evaluate
from xla_emitters.shapes import Size
from xla_emitters.sizes.program import Argument, ProgramGuards, sizes_of
from xla_emitters.trace import Trace

ON_TENSORS = frozenset(("stablehlo", "hlo", "graph", "placed"))
"""The stages that are computations of tensors: the NumPy reference runs them."""


@dataclass(frozen=True)
class DynamicProgram:
    """A compiled program with unknown sizes.

    name     of the module
    target   the device that is compiled for
    guards   types and shapes of the arguments over the program's symbols, and what a run checks of them before it computes anything
    results  the types of the results, and their shapes over the symbols; None for a size that depends on data
    stage    where compilation stopped
    code     what is printed there: IR, or for "host" Python
    trace    what each pass did, with the IR of each stage
    module   the IR of the last stage
    """

    name: str
    target: str
    guards: ProgramGuards
    results: tuple[tuple[str, tuple[Size | None, ...]], ...]
    stage: str
    code: str = field(repr=False)
    trace: Trace = field(repr=False, compare=False)
    module: ModuleOp = field(repr=False, compare=False)

    def run(self, inputs: Sequence[Any], stage: str | None = None) -> list[Array]:
        """The results for these arguments, NumPy arrays or what becomes one.

        stage   the stage that is executed, by default the last one; the bits are the same
        raises  DataError for arguments that do not fit the program, ExecutionError
        """
        arrays = self.checked(inputs)
        stage = stage or self.stage
        if stage in ON_TENSORS:
            return evaluate(entry_of(self.at(stage)), arrays, value_of=value_of)
        return self.loaded_at(stage).run(arrays)

    def checked(self, inputs: Sequence[Any]) -> list[Array]:
        """The arguments as row-major arrays in the machine's byte order. raises DataError naming the one that does not fit."""
        arrays = [np.asarray(value) for value in inputs]
        types = [*self.guards.types, *("",) * (len(arrays) - len(self.guards.types))]
        self.guards.check([_argument(array, name) for array, name in zip(arrays, types, strict=False)])
        return [_as_declared(array, name) for array, name in zip(arrays, types, strict=True)]

    def at(self, stage: str) -> ModuleOp:
        """The module that a stage left. raises UsageError for a stage that was not reached, or not recorded."""
        if stage not in self._modules:
            text = next((step.ir for step in self.trace.steps if step.stage == stage), None)
            if text is None:
                reached = [step.stage for step in self.trace.steps if step.stage and step.ir]
                raise UsageError(f"no IR of stage '{stage}'", help=f"recorded: {', '.join(reached)}")
            self._modules[stage] = parse_ir(text, f"<{stage}>")
        return self._modules[stage]

    def loaded_at(self, stage: str) -> LoadedProgram:
        """The program as a function of arrays, with a context of its own, from what a stage left. raises as `at` and `python_program`."""
        if stage not in self._loaded:
            module = self.at(stage)
            made = python_program(module)
            self._loaded[stage] = LoadedProgram(
                made.source, made.functions, made.dtypes, Constants(constants_of(module))
            )
        return self._loaded[stage]

    @cached_property
    def _modules(self) -> dict[str, ModuleOp]:
        return {self.stage: self.module}

    @cached_property
    def _loaded(self) -> dict[str, LoadedProgram]:
        return {}

    @property
    def counters(self) -> Counters:
        """What the context of the last stage did so far. raises as `loaded_at`."""
        return self.loaded_at(self.stage).context.counters


def compile_program(
    module: ModuleOp, options: CompileOptions | None = None, *, observe: Observer | None = None
) -> DynamicProgram:
    """A program from a module of the `hlo` dialect, which is left as it was.

    options  `stage` is one of PROGRAM_STAGES; another one stands for the last
    observe  is called after each pass
    raises   Unsupported with the place in the text, VerifyError
    """
    options = options or CompileOptions()
    stage = options.stage if options.stage in PROGRAM_STAGES else PROGRAM_STAGES[-1]
    name = module.sym_name.data if module.sym_name else "program"
    recorder = Recorder(name, options.record, options.verify, observe)
    copy, context = module.clone(), make_context()
    sizes = sizes_of(copy)
    results = tuple((element_of(root).name, sizes.of(root)) for root in entry_of(copy).roots if is_array(root.type))
    recorder.read("stablehlo", copy)
    for row in PROGRAM[: _count(stage)]:
        recorder.run(row.make(options), row.stage, context, copy)
    code = python_program(copy).source if stage == "host" else print_ir(copy)
    return DynamicProgram(name, options.target, sizes.guards, results, stage, code, recorder.trace, copy)


def _count(stage: str) -> int:
    """How many rows lead to a stage."""
    ends = [number for number, row in enumerate(PROGRAM, 1) if row.stage == stage]
    return ends[0] if ends else 0


def _argument(array: Array, wanted: str) -> Argument:
    """An array as the guards see it: its type by HLO's name where it is the wanted one, else by NumPy's."""
    fits = wanted and array.dtype.newbyteorder("=") == dtype(wanted).numpy
    return Argument(wanted if fits else array.dtype.name, array.shape)


def _as_declared(array: Array, name: str) -> Array:
    """Contiguous and in the machine's byte order: the array itself, or a copy."""
    # Not `ascontiguousarray`, which makes rank 1 of rank 0.
    return np.asarray(array, dtype(name).numpy, order="C")
