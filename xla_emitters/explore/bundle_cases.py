"""Programs with drawn inputs and the bounds of their results, ready for `write_bundle`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dtypes import Array
from xla_emitters.dynamic.sizes import specialize
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.graph.control_computations import drawn_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_bundle import bundled_program
from xla_emitters.pipelines.program_inputs import drawn_inputs, result_specs
from xla_emitters.program import ArraySpec, Program
from xla_emitters.runtime.bundle.bundle import Case, ProgramCase, Shape
from xla_emitters.runtime.inputs import allowed_starts
from xla_emitters.runtime.reference.tolerance import Bounds


def bundle_case(module: ModuleOp, options: CompileOptions, *, name: str, seed: int = 0) -> Case:
    """A module with drawn inputs and the bounds of its results."""
    program = compile_module(module, replace(options, stage="ptx", record="none"))
    inputs = drawn_inputs(program, {}, seed)
    places = allowed_starts(drawn_for(module, options.fusion))
    bounds = reference_of(program, inputs, options=options, tf32=True).bounds
    return Case(name, program, program.hlo, seed, inputs, bounds, places=places)


def bundle_program(
    program: Program, text: str, sizes: Sequence[Mapping[str, int]], *, name: str, seed: int = 0
) -> ProgramCase:
    """A program with drawn inputs at each of these sizes, and the bounds of its results, ready for `write_bundle`.

    raises  DataError for unknown symbols, and sizes that the program refuses; Unsupported for what no kernel computes
    """
    shapes = [_shape(program, values, seed) for values in sizes]
    return ProgramCase(name, text, bundled_program(program), shapes)


def _shape(program: Program, values: Mapping[str, int], seed: int) -> Shape:
    inputs = drawn_inputs(program, values, seed)
    reference = reference_of(program, inputs, tf32=True)
    made = lowerings_of(program)
    parameters = [
        ArraySpec(spec.dtype, array.shape, tuple(reversed(range(array.ndim))))
        for spec, array in zip(program.parameters, inputs, strict=True)
    ]
    places = allowed_starts(entry_of(specialize(made.source, values, made.sizes)))
    bounds = [_known(*pair) for pair in zip(reference.bounds, reference.values, strict=True)]
    return Shape(values, seed, parameters, inputs, result_specs(program, reference.values), bounds, places)


ROUNDINGS = 64
"""Allowed error, in roundings of the largest element, if the ops' bounds are infinite."""


def _known(bounds: Bounds, value: Array) -> Bounds:
    """The bounds of a result; if they are infinite around a finite number, some roundings around the reference's number."""
    if value.dtype.kind in "biuc" or "int" in value.dtype.name:
        return bounds
    low, high, exact = (array.astype(np.float64) for array in (bounds.low, bounds.high, value))
    finite = np.isfinite(exact)
    room = (
        ROUNDINGS * float(cast(Any, ml_dtypes.finfo(value.dtype)).eps) * float(np.abs(exact[finite]).max(initial=0.0))
    )
    unknown = finite & ~np.isfinite(low) & ~np.isfinite(high)
    low, high = np.where(unknown, exact - room, low), np.where(unknown, exact + room, high)
    with np.errstate(over="ignore"):
        return Bounds(low.astype(value.dtype), high.astype(value.dtype))
