"""Random inputs for a computation, as `random_arrays` draws them, except that the starts of windows are mostly inside the array.

    f32[500,64] scatter(p, rows, u), s32[64] rows          rows from [-126, 624], not from all s32: only some windows are outside
    the same with unique_indices                           64 different rows of [0, 499]
    f32[8,64] dynamic-slice(p, row, zero), s32[] row       row from [-125, 617]: most of s32 would be clamped to the first or last row
    while (i < n), s32[] n                                 n from [-4, 12]: half of s32 would be a loop of a thousand million steps
    set_dimension_size(x[5,4], n), dynamic_iota(m)         n from [0, 5], m from [0, 64]: other sizes are refused, or larger than memory

Scatter, gather, dynamic-slice and dynamic-update-slice have windows. A parameter holds their starts if the indices are computed from it by
ops of `_KEEPS_INDICES` alone, which move, select, add or clamp integers. A scalar parameter bounds a loop if the loop's condition compares
with it, or with a value that such ops compute from it; nested loops, branches and calls are followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    find_computation,
)
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import element_of, is_array
from xla_emitters.dtypes import Array
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import random_array
from xla_emitters.runtime.draws import Places

_KEEPS_INDICES = frozenset(("add", "clamp", "convert", "copy", "maximum", "minimum", "select"))
"""Opcodes whose results are indices if their operands are; so are those of ops that move elements."""


_DECIDES = _KEEPS_INDICES | {"and", "compare", "fusion", "not", "or"}


def draw_inputs(computation: ComputationOp, specs: Sequence[ArraySpec], seed: int) -> list[Array]:
    """One array per parameter of `computation`, the same on every machine."""
    places = allowed_starts(computation)
    return [random_array(spec, seed, number, places.get(number)) for number, spec in enumerate(specs)]


def allowed_starts(computation: ComputationOp) -> dict[int, Places]:
    """Number of each parameter that holds starts of windows -> the allowed starts; where several ops use it, the smallest range."""
    found = dict[int, Places]()

    def note(value: SSAValue, places: Places) -> None:
        for number in _parameters_behind(value):
            if number not in found or places.last < found[number].last:
                found[number] = places

    for op in computation.instructions:
        match op:
            case HloOp(opcode="scatter") if (starts := _starts_of_scatter(op)) is not None:
                note(*starts)
            case FusionOp():
                inside = allowed_starts(find_computation(op, op.calls))
                for operand, places in inside.items():
                    note(op.operands[operand], places)
            case HloOp(opcode="gather" | "dynamic-slice" | "dynamic-update-slice"):
                for operand, index_map in enumerate(op.output_to_input()):
                    origins = op.runtime_origins(operand)
                    for (start, _), variable in zip(origins, index_map.runtime_vars, strict=True):
                        if variable.bounds.upper > 0:
                            note(op.operands[start], Places(variable.bounds.upper, 1, unique=False))
            case _:
                for operand, numbers in enumerate(op.operands):
                    if (allowed := op.drawn_numbers(operand)) is not None:
                        note(numbers, _between(*allowed))
    for value in _bounds_of_loops(computation):
        note(value, TRIPS)
    return found


def _starts_of_scatter(op: HloOp) -> tuple[SSAValue, Places] | None:
    """The operand with the starts of a scatter's windows, and the allowed ones; None where no dimension has starts."""
    from xla_emitters.dialects.hlo.gather_scatter import ScatterOp  # imported here: few computations have one

    assert isinstance(op, ScatterOp)
    if not op.mapped:
        return None
    windows = [op.window_sizes[dim] for dim in op.mapped]
    return op.indices, Places(min(op.last_starts), max(windows), op.has_unique_indices)


def exchanged_rows(computation: ComputationOp) -> Iterator[tuple[RuleOp, list[list[int]]]]:
    """The ragged-all-to-alls of a computation and of what it calls, with the numbers of the parameters that hold the starts, sizes, places
    and expected sizes of each."""
    for op in computation.instructions:
        if isinstance(op, RuleOp) and op.opcode == "ragged-all-to-all":
            yield op, [_parameters_behind(op.operands[operand]) for operand in range(2, 6)]
        elif isinstance(op, CallingOp) and op.opcode in ("call", "async-start"):
            (callee,) = op.callees()
            for found, numbers in exchanged_rows(find_computation(op, callee.symbol)):
                yield found, [[n for k in each for n in _parameters_behind(op.operands[k])] for each in numbers]


def _between(least: int, most: int) -> Places:
    return Places(most, 1, unique=False, least=least)


TRIPS = Places(8, 1, unique=False)
"""Range of a parameter that bounds a loop."""


def _bounds_of_loops(computation: ComputationOp) -> Iterator[SSAValue]:
    """The values in a computation that determine its loops' trip counts, including loops in called computations."""
    for op in computation.instructions:
        if not isinstance(op, CallingOp):
            continue
        if op.opcode == "while":
            condition, body = callees_of(op)
            for inside in (condition.root, *_bounds_of_loops(body)):
                for parameter, element in _leaves(inside, _DECIDES):
                    yield from _passed(op.operands[parameter.number.value.data], element)
        elif op.opcode in ("call", "fusion"):
            (called,) = callees_of(op)
            for inside in _bounds_of_loops(called):
                for parameter, element in _leaves(inside, _KEEPS_INDICES):
                    yield from _passed(op.operands[parameter.number.value.data], element)
        elif op.opcode == "conditional":
            for branch, callee in enumerate(op.callees()):
                for inside in _bounds_of_loops(find_computation(op, callee.symbol)):
                    for _, element in _leaves(inside, _KEEPS_INDICES):
                        yield from _passed(op.operands[1 + branch], element)


def _leaves(value: SSAValue, through: frozenset[str]) -> Iterator[tuple[ParameterOp, int | None]]:
    """The parameters from which ops of the opcodes `through` compute `value`, with the index of the element for a tuple."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        op = current.owner
        if current in seen or not isinstance(op, HloOp):
            continue
        seen.add(current)
        if isinstance(op, ParameterOp):
            yield op, None
        elif isinstance(op, GetTupleElementOp) and isinstance(op.operands[0].owner, ParameterOp):
            yield op.operands[0].owner, op.index.value.data
        elif op.opcode in through:
            pending += op.operands[1:] if op.opcode == "select" else op.operands
        else:
            pending += [op.operands[i] for i in op.moved_operands]


def _passed(value: SSAValue, element: int | None) -> Iterator[SSAValue]:
    """`value`, or, for a tuple instruction, its operand `element`."""
    if element is None:
        yield value
    elif isinstance(value.owner, TupleOp):
        yield value.owner.operands[element]


def _parameters_behind(value: SSAValue) -> list[int]:
    """Numbers of the integer parameters from which ops of `_KEEPS_INDICES` compute `value`."""
    return [
        parameter.number.value.data
        for parameter, element in _leaves(value, _KEEPS_INDICES)
        if element is None and is_array(parameter.result.type) and element_of(parameter.result).is_integer
    ]
