"""Arrays for a program: random arguments, those in a file, and a description of its results.

    drawn_inputs(program, {"b": 2, "s": 16}, seed=0)       one array a parameter, the same on every machine

Indices are mostly in range: the ranges are read from a copy of the program at these sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError
from xla_emitters.graph.control_computations import drawn_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.program import ArraySpec, Compiled, Program
from xla_emitters.runtime.arrays import StandardInput, load_arrays, load_given
from xla_emitters.runtime.inputs import draw_inputs

STAGE = "run"


def drawn_inputs(program: Program, values: Mapping[str, int], seed: int, *, instead: str = "") -> list[Array]:
    """Random arrays for the parameters, generated from the seed; indices are mostly in range.

    values   symbol -> size
    instead  the caller's alternative to sizes, for the message: "--inputs IN.npz"
    raises   DataError for a symbol without a value, a name that is not a symbol, and sizes that the program refuses
    """
    refuse_other_sizes(program, values, "inputs cannot be drawn", f"--sizes {{}}{f', or {instead}' if instead else ''}")
    if isinstance(program.compilation, Compiled):
        from xla_emitters.pipelines.compiler import source_of  # imported here: a program in StableHLO loads no emitters

        return draw_inputs(drawn_for(source_of(program), program.fusion), program.parameters, seed)
    # Imported here, so that HLO does not load the second system.
    from xla_emitters.dynamic.sizes import specialize
    from xla_emitters.dynamic.sizes.program import arguments_at
    from xla_emitters.pipelines.lowerings import lowerings_of

    made = lowerings_of(program)
    specs = arguments_at(made.sizes, values)
    module = specialize(made.source, values, made.sizes)
    return draw_inputs(entry_of(module), specs, seed)


def refuse_other_sizes(program: Program, values: Mapping[str, int], what: str, way: str) -> None:
    """raises DataError for a symbol without a value, and a name that is not a symbol

    what  cannot be done without
    way   out, for the message; {} stands for all sizes
    """
    symbols = program.symbols
    if unknown := [name for name in values if name not in symbols]:
        there = f"its sizes are {', '.join(symbols)}" if symbols else "all its sizes are known"
        raise DataError(f"{program.name} has no size '{unknown[0]}': {there}", stage=STAGE)
    if missing := [name for name in symbols if name not in values]:
        names = ", ".join(f"'{name}'" for name in missing)
        wanted = ",".join(f"{name}={values.get(name, 2)}" for name in symbols)
        raise DataError(
            f"{what}: the size{'s' * (len(missing) > 1)} {names} of {program.name} "
            f"{'are' if len(missing) > 1 else 'is'} unknown",
            stage=STAGE,
            help=way.replace("{}", wanted, 1),
        )


def given_inputs(
    program: Program,
    values: Mapping[str, int],
    inputs: str | Path | StandardInput | Sequence[Array] | None,
    seed: int,
    *,
    instead: str = "",
) -> Sequence[Array]:
    """The arrays, those in an `.npz`, or random ones as `drawn_inputs`. raises like it and `load_given`"""
    if inputs is None:
        return drawn_inputs(program, values, seed, instead=instead)
    if isinstance(inputs, str | Path | StandardInput):
        if isinstance(program.compilation, Compiled):
            return load_arrays(inputs, "p", program.parameters)
        return load_given(inputs, "p", range(len(program.parameters)))
    return inputs


def result_specs(program: Program, results: Sequence[Array]) -> list[ArraySpec]:
    """Descriptions of the results of a run."""
    return [
        ArraySpec(spec.dtype, array.shape, _row_major(array.ndim))
        for spec, array in zip(program.results, results, strict=True)
    ]


def _row_major(rank: int) -> tuple[int, ...]:
    return tuple(reversed(range(rank)))
