"""The elements of a fusion's parameters that an element of its result needs, and the reverse: one map per path through the fusion.

    %t = transpose(%p), dimensions={1,0}     %r = reduce(%t, %zero), dimensions={0}

    p, from the result:  (d0)[s0] -> (d0, s0)          the result, from p:  (d0, d1) -> (d0)

Maps of the ops on a path are composed and simplified; equal maps are merged. A runtime variable (a start of a dynamic-slice, an index of a
gather) keeps its origin: the value that holds it, and the map to its element there, over the variables of the whole map, so that it is
still the right element after composition with more ops. A variable whose origin is a constant or an iota is replaced by its value.
For values behind an op without a map (a sort) the result is None.
Source: docs/reference/1 3.1, 3.2 (runtime variables), 3.3, 3.8. XLA binds the runtime variables of a map that is composed through
dynamic-update-slice to the wrong elements (openxla/xla#49119); here origins are composed with the map that they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.types import dims_of, leaf_types, type_text
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.graph.view import FusionView


@dataclass(frozen=True)
class Origin:
    """The value of a runtime variable: the element of `value` at the index that `map` gives, clamped to the variable's bounds.

    map   over the variables of the map that the runtime variable belongs to
    """

    value: SSAValue
    map: IndexingMap


@dataclass(frozen=True)
class Indexing:
    """A map, with an origin for each of its runtime variables."""

    map: IndexingMap
    origins: tuple[Origin, ...] = ()


Indexings = tuple[Indexing, ...]
"""One per distinct map; None if a path contains an op without a map."""


def indexing_of_operands(view: FusionView, root: HloOp) -> Mapping[SSAValue, Indexings | None]:
    """Maps from an index of `root`'s result to the elements that it needs of every value of the fusion.

    root     an instruction of the view; for a tuple, each element has its own maps
    returns  by value, for all that `root` needs, itself included
    """
    found: dict[SSAValue, Indexings | None] = {root.result: _start(root.result)}
    for op in reversed(view.instructions):
        if op.result not in found:
            continue
        maps = _maps(op, op.output_to_input)
        for i, operand in enumerate(op.operands):
            step = None if maps is None else Indexing(_inside(maps[i], _dims(operand)), _origins(op, i, maps[i]))
            _add(found, operand, _composed(found[op.result], step))
    return found


def indexing_of_results(view: FusionView, value: SSAValue) -> Mapping[SSAValue, Indexings | None]:
    """Maps from an index of `value`, in the fusion, to the elements of every value that depend on it; for a tuple, per element.

    returns  by value, for all values that depend on `value`, itself included
    """
    found: dict[SSAValue, Indexings | None] = {value: _start(value)}
    for op in view.instructions:
        for i, operand in enumerate(op.operands):
            if operand not in found or op.result is value:
                continue
            maps = _maps(op, op.input_to_output)
            step = None if maps is None else Indexing(maps[i], _origins_backwards(op, i, maps[i]))
            _add(found, op.result, _composed(found[operand], step))
    return found


def _start(value: SSAValue) -> Indexings:
    return (Indexing(identity_map(_dims(value))),)


def _dims(value: SSAValue) -> Sequence[int]:
    """Of an array; of a tuple, whose arrays have one shape here, of its first."""
    return dims_of(leaf_types(value.type)[0])


def _maps(op: HloOp, ask: Callable[[], tuple[IndexingMap, ...]]) -> tuple[IndexingMap, ...] | None:
    try:
        return ask()
    except Unsupported:
        return None


def _inside(indexing_map: IndexingMap, dims: Sequence[int]) -> IndexingMap:
    """The map restricted to results inside the array: the map of an update is valid only in its window."""
    bounds = tuple((result, Interval(0, size - 1)) for result, size in zip(indexing_map.results, dims, strict=True))
    return replace(indexing_map, constraints=(*indexing_map.parts.constraints, *bounds))


def _origins(op: HloOp, operand: int, indexing_map: IndexingMap) -> tuple[Origin, ...]:
    return tuple(Origin(op.operands[i], _over(place, indexing_map)) for i, place in op.runtime_origins(operand))


def _over(place: IndexingMap, indexing_map: IndexingMap) -> IndexingMap:
    """`place`, a map over the dims of `indexing_map`, as a map over all of its variables."""
    return _moved(place, map(Expr.variable, range(indexing_map.num_dims)), indexing_map)


def _moved(place: IndexingMap, variables: Iterable[Expr], to: IndexingMap) -> IndexingMap:
    """`place` over the variables of the map `to`, with these expressions for its own."""
    return place.with_variables_replaced(
        list(variables), dims=to.dims, range_vars=to.range_vars, runtime_vars=to.runtime_vars
    )


def _origins_backwards(op: HloOp, operand: int, indexing_map: IndexingMap) -> tuple[Origin, ...]:
    """The origins for a map from operand to result. The op gives them over the result's index, so they are composed with the map."""
    return tuple(Origin(op.operands[i], indexing_map.compose(place)) for i, place in op.runtime_origins(operand))


def _add(found: dict[SSAValue, Indexings | None], value: SSAValue, indexings: Indexings | None) -> None:
    before = found.get(value, ())
    found[value] = None if indexings is None or before is None else tuple(dict.fromkeys((*before, *indexings)))


def _composed(firsts: Indexings | None, second: Indexing | None) -> Indexings | None:
    if firsts is None or second is None:
        return None
    composed = (_compose(first, second) for first in firsts)
    return tuple(dict.fromkeys(indexing for indexing in composed if not indexing.map.is_known_empty))


def _compose(first: Indexing, second: Indexing) -> Indexing:
    """`second` after `first`: the range and runtime variables of `second` come before those of `first`, and so do the origins."""
    composed = first.map.compose(second.map)
    origins = [Origin(origin.value, first.map.compose(origin.map)) for origin in second.origins]
    dims, ranges = first.map.num_dims, len(second.map.range_vars)
    own = [
        *range(dims),
        *range(dims + ranges, dims + ranges + len(first.map.range_vars)),
        *range(len(composed.variables) - len(first.map.runtime_vars), len(composed.variables)),
    ]
    origins += [Origin(origin.value, _moved(origin.map, map(Expr.variable, own), composed)) for origin in first.origins]
    return _settled(composed, origins)


def _settled(indexing_map: IndexingMap, origins: Sequence[Origin]) -> Indexing:
    """The simplified map, without runtime variables of known value and without unused symbols."""
    indexing_map = indexing_map.simplify()
    first = len(indexing_map.variables) - len(indexing_map.runtime_vars)
    replacements = [Expr.variable(number) for number in range(len(indexing_map.variables))]
    for number, (variable, origin) in enumerate(zip(indexing_map.runtime_vars, origins, strict=True), first):
        known = _known(origin, variable, indexing_map)
        replacements[number] = replacements[number] if known is None else known
    indexing_map = _moved(indexing_map, replacements, indexing_map).simplify()
    # An origin's map is valid in the whole domain of the map that it belongs to.
    places = [_moved(replace(origin.map, constraints=()), replacements, indexing_map).simplify() for origin in origins]
    smaller, removed = indexing_map.remove_unused_symbols()
    if not removed:
        return Indexing(indexing_map, _named(origins, places))
    kept = [number for number in range(len(origins)) if not removed[len(indexing_map.range_vars) + number]]
    gone = sum(1 << indexing_map.num_dims + number for number, is_removed in enumerate(removed) if is_removed)
    if any(result.variable_mask & gone for number in kept for result in places[number].results):
        return Indexing(indexing_map, _named(origins, places))
    staying = [number for number in range(len(indexing_map.variables)) if not gone >> number & 1]
    position = [
        Expr.variable(staying.index(n)) if n in staying else Expr.constant(0)
        for n in range(len(indexing_map.variables))
    ]
    shrunk = [_moved(places[number], position, smaller) for number in kept]
    return Indexing(smaller, _named([origins[number] for number in kept], shrunk))


def _named(origins: Iterable[Origin], places: Iterable[IndexingMap]) -> tuple[Origin, ...]:
    return tuple(Origin(origin.value, place) for origin, place in zip(origins, places, strict=True))


def _known(origin: Origin, variable: Variable, indexing_map: IndexingMap) -> Expr | None:
    """The runtime variable's value as an expression over the map's variables if its origin is a constant or an iota; else None."""
    op = origin.value.owner
    if isinstance(op, ConstantOp) and not dims_of(op.result):
        value = int(op.array())
        return Expr.constant(min(max(value, variable.bounds.lower), variable.bounds.upper))
    if isinstance(op, IotaOp):
        index = origin.map.results[op.dimension]
        return index if variable.bounds.contains(indexing_map.range_of(index)) else None
    return None


# ------------------------------------------------------------------------------------------- output for users


@dataclass(frozen=True)
class OperandRow:
    """The maps from an index of one value to the elements of another."""

    source: HloOp
    target: HloOp
    indexings: Indexings | None


def indexing_rows(view: FusionView, *, to_output: bool = False, instruction: str = "") -> list[OperandRow]:
    """Maps from every root to the parameters that it needs; with `to_output`, from every parameter to the roots that need it.

    instruction  only from the instruction of that name
    raises       UsageError if the fusion has no such instruction
    """
    roots = list(view.roots)
    parameters: list[HloOp] = [parameter for parameter in view.parameters if parameter in view.users]
    sources, targets = (parameters, roots) if to_output else (roots, parameters)
    if instruction:
        sources = [op for op in view.instructions if op.instruction_name.data == instruction]
        if not sources:
            names = ", ".join(op.instruction_name.data for op in view.instructions)
            raise UsageError(f"fusion %{view.name} has no instruction '{instruction}'", help=f"one of: {names}")
    rows = list[OperandRow]()
    for source in sources:
        found = indexing_of_results(view, source.result) if to_output else indexing_of_operands(view, source)
        rows += [OperandRow(source, target, found[target.result]) for target in targets if target.result in found]
    return rows


def print_rows(rows: Iterable[OperandRow]) -> str:
    """The rows as text, one map per line.

    %sum f32[20]
      %p f32[20,40]
        (d0)[s0] -> (d0, s0), domain: d0 in [0, 19], s0 in [0, 39]
    """
    lines, source = list[str](), None
    for row in rows:
        if row.source is not source:
            lines.append(_described(row.source))
            source = row.source
        lines.append(f"  {_described(row.target)}")
        if row.indexings is None:
            lines.append("    unknown")
        for indexing in row.indexings or ():
            lines.append(f"    {indexing.map}")
            for number, origin in enumerate(indexing.origins):
                name = indexing.map.runtime_vars[number].name or f"rt{number}"
                place = str(origin.map).partition(" -> ")[2].partition(", domain")[0]
                lines.append(f"      {name}: %{_name(origin.value.owner)} at {place}, clamped")
    return "\n".join(lines)


def rows_as_json(rows: Iterable[OperandRow]) -> list[dict[str, Any]]:
    """The rows as plain data: see docs/json.md."""
    return [
        {
            "from": row.source.instruction_name.data,
            "to": row.target.instruction_name.data,
            "maps": row.indexings
            and [
                {
                    "map": str(indexing.map),
                    "runtime_variables": [
                        {"instruction": _name(origin.value.owner), "map": str(origin.map)}
                        for origin in indexing.origins
                    ],
                }
                for indexing in row.indexings
            ],
        }
        for row in rows
    ]


def _name(op: Operation | Block) -> str:
    assert isinstance(op, HloOp)
    return op.instruction_name.data


def _described(op: Operation | Block) -> str:
    assert isinstance(op, HloOp)
    return f"%{_name(op)} {type_text(op.result.type)}"
