"""What a program in StableHLO is lowered to: IR of its stages, kernels for a GPU, the code of a call on the CPU; all made on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.locations import first_position, instructions_of
from xla_emitters.dialects.mlir import func
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.buffers.buffer_uses import leaves_the_block, writes
from xla_emitters.dynamic.buffers.disc_legalize_to_lhlo import is_donated
from xla_emitters.dynamic.sizes import ArgumentFacts, Sizes
from xla_emitters.dynamic.sizes.program import result_specs
from xla_emitters.errors import UsageError
from xla_emitters.graph.entry import entry_of
from xla_emitters.library.arguments import element_name
from xla_emitters.pipelines.cpu_lowering import CpuBackend, choose_backend
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.pass_lists import program_rows
from xla_emitters.pipelines.program_passes import ON_KERNELS, RUN_ON_KERNELS
from xla_emitters.program import Program
from xla_emitters.program.compiled import refuse_left_out
from xla_emitters.runtime.arrays import copy_donated, host_array
from xla_emitters.runtime.loaded import MOST_BINDINGS, LoadedProgram
from xla_emitters.trace import Trace

# Kernels for a GPU are imported where they are asked for: a call on the CPU needs none.
if TYPE_CHECKING:
    from xla_emitters.pipelines.program_kernels import GpuLowering

_LOADING = RLock()
"""Held while a program is loaded, so that threads that call it first at the same time share one context."""


@dataclass(frozen=True, eq=False)
class Lowerings:
    """A program in StableHLO: the passes that have run, and what is made of them when it is first asked for.

    name     of the module
    source   the module that was read
    sizes    its sizes over the program's symbols, and the conditions that a call's arguments must satisfy
    stage    the last stage of the compilation
    module   the IR of that stage; for a stage of `GpuLowering`, the buffers from which a call in NumPy is made
    fused    buffers and fusions, before the two branches; None if compilation stopped before
    passes   what each pass up to `fused` did, with the IR of each stage
    options  of the compilation
    plain    the module before mixed precision; None without it
    kept     the IR of some stages on tensors, which explanations and pages read; of others the text is read again
    """

    name: str
    source: ModuleOp = field(repr=False)
    sizes: Sizes = field(repr=False)
    stage: str
    module: ModuleOp = field(repr=False)
    fused: ModuleOp | None = field(repr=False)
    passes: Trace = field(repr=False)
    options: CompileOptions = field(repr=False)
    plain: ModuleOp | None = field(default=None, repr=False)
    kept: Mapping[str, ModuleOp] = field(default_factory=dict[str, ModuleOp], repr=False)

    @cached_property
    def lowering(self) -> GpuLowering:
        """Compiles the fusions to kernels. raises UsageError if compilation stopped before, Unsupported for what no kernel computes"""
        if self.fused is None:
            raise UsageError(
                f"{self.name} was compiled up to '{self.stage}' only", stage="program", help="compile without `stage`"
            )
        from xla_emitters.pipelines.program_kernels import GpuLowering

        return GpuLowering(self.name, self.fused, self.options)

    # ------------------------------------------------------------------------------------------------------------ record

    @property
    def lines(self) -> dict[str, int]:
        """Instruction -> the line, counted from 1, on which it starts in the text that was read."""
        found = (
            (names[0], at[1])
            for op in self.source.walk()
            if (names := instructions_of(op)) and (at := first_position(op))
        )
        return dict(found)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that `run` executes: those whose IR was recorded, and all of `GpuLowering`."""
        recorded = tuple(step.stage for step in self.passes.steps if step.stage and step.ir)
        if self.stage not in ON_KERNELS:
            return recorded
        later = program_rows(self.options)[1]
        return (*recorded, *(RUN_ON_KERNELS if later is None else RUN_ON_KERNELS[2:]))

    def at(self, stage: str) -> ModuleOp:
        """The module at the end of a stage. raises UsageError for a stage that was not reached, or not recorded."""
        if stage in ON_KERNELS:
            return self.lowering.at(stage)
        if stage == self.stage:
            return self.module
        if stage in self.kept:
            return self.kept[stage]
        text = next((step.ir for step in self.passes.steps if step.stage == stage), None)
        if text is None:
            raise UsageError(f"no IR of stage '{stage}'", stage="run", help=f"recorded: {', '.join(self.stages)}")
        return parse_ir(text, f"<{stage}>")

    # -------------------------------------------------------------------------------------------------------------- runs

    # --------------------------------------------------------------------------------------------------------- arguments

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """The constants whose data the text omits: the code has zeros for them, and does not run."""
        return tuple(f"%{op.instruction_name.data}" for op in elided_in(self.source))

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The element types of the results."""
        return tuple(spec.dtype for spec in result_specs(self.source, self.sizes))

    @property
    def donated(self) -> tuple[int, ...]:
        """Indices of the arguments that the text declares donated by the caller."""
        parameters = entry_of(self.source).parameters
        return tuple(number for number, parameter in enumerate(parameters) if is_donated(parameter))

    @cached_property
    def overwritten(self) -> tuple[int, ...]:
        """The donated arguments that the program writes into or returns; it frees the other ones."""
        if self.fused is None:
            return self.donated
        (function,) = (op for op in self.fused.ops if isinstance(op, func.FuncOp) and not op.is_declaration)
        arguments = [(number, function.args[number]) for number in self.donated]
        return tuple(
            number for number, buffer in arguments if any(writes(use) or leaves_the_block(use) for use in buffer.uses)
        )

    def owned(self, arrays: list[Array], *, donate: bool = False) -> list[Array]:
        """The arguments, with copies of those that a run overwrites: of all of them, or if `donate`, of those that cannot be donated."""
        copy_donated(arrays, self.overwritten, donate=donate)
        return arrays

    def checked(self, inputs: Sequence[Any]) -> list[Array]:
        """The arguments as row-major arrays in the machine's byte order. raises DataError naming the argument that does not fit."""
        return self.checked_with_sizes(inputs)[0]

    def checked_with_sizes(self, inputs: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """The arguments like `checked`, and the values of the program's symbols."""
        refuse_left_out(self.name, self.left_out)
        arrays: list[Array] = [
            value if type(value) is np.ndarray else self.host_array(value, number)
            for number, value in enumerate(inputs)
        ]
        key = tuple([(array.dtype, array.shape) for array in arrays])
        if (values := self._fitting.get(key)) is None:
            values = self.sizes.guards.check(
                [ArgumentFacts(element_name(array.dtype), array.shape) for array in arrays]
            )
            if len(self._fitting) >= MOST_BINDINGS:
                self._fitting.clear()
            self._fitting[key] = values
        # Copies arrays that are strided or in the other byte order; rank 0 stays rank 0, unlike with `ascontiguousarray`.
        return [
            array
            if type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.isnative
            else np.asarray(array, array.dtype.newbyteorder("="), order="C")
            for array in arrays
        ], {**values}

    def host_array(self, value: Any, number: int) -> Array:
        """An argument in the host's memory as an array. raises DataError for nested sequences that are no array"""
        types = self.sizes.guards.types
        return host_array(value, types[number] if number < len(types) else "", f"argument {number} (p{number})")

    @cached_property
    def _fitting(self) -> dict[tuple[Any, ...], dict[str, int]]:
        """Types and sizes of arguments that fit -> the values of the symbols."""
        return {}

    # ----------------------------------------------------------------------------------------------------------- the CPU

    @cached_property
    def cpu(self) -> CpuBackend:
        """How a call is computed: machine code by LLVM, or NumPy, and why. raises like `choose_backend`"""
        if self.fused is None:
            return CpuBackend("numpy", f"compilation stopped at '{self.stage}'")
        return choose_backend(self.name, self.fused, self.options, self.sizes)

    @cached_property
    def loaded(self) -> LoadedProgram:
        """The steps that a call runs. raises UsageError at a stage on tensors, which has none; like `cpu`; ToolError from LLVM"""
        with _LOADING:
            if (lowering := self.cpu.lowering) is not None:
                return self.__dict__.get("loaded") or lowering.loaded
            from xla_emitters.pipelines.program_runs import load  # imported here: machine code runs without it

            return self.__dict__.get("loaded") or load(self.module, constants=self.options.constants)


def lowerings_of(program: Program) -> Lowerings:
    """Those of a program in StableHLO. raises UsageError for a program of HLO text"""
    if not isinstance(program.compilation, Lowerings):
        raise UsageError(f"{program.name} is HLO text, not a program in StableHLO", stage="program")
    return program.compilation


def elided_in(module: ModuleOp) -> Iterator[ConstantOp]:
    """The constants without data."""
    return (op for op in module.walk() if isinstance(op, ConstantOp) and op.is_elided)
