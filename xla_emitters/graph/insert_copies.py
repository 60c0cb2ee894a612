"""Inserts copies that HLO leaves implicit: of results without an array of their own, and of updated arrays that are still needed. On HLO.

    ROOT all = tuple(f, p, f)               tuple(f, copy(p), copy(f))
    u = fusion(p, ...), an update of p      fusion(copy(p), ...), output_to_operand_aliasing={{}: (0, {})}

A copy is an instruction of the control computation, not a kernel: a step that copies memory, as XLA's thunk does.

An update is in place if the result is in the updated array's buffer: as the module's `input_output_alias` says, or if the array is a
temporary of the program that is not needed any more (`graph/overwrites.py`); so a loop's body updates the loop's state without a copy.
Otherwise the update works on a copy. In a loop's body, a kernel that computes each element of the state's next value from the same element
of the old value is an update in place too:

    x = f32[8] get-tuple-element(s), index=1      n = fusion(x), output_to_operand_aliasing={{}: (0, {})}
    n = fusion(x), of a negate             else the plan has a temporary for n, and a copy to x at the end
    ROOT t = tuple(i, n)

Guarantees that planning relies on:
- ENTRY's results are distinct arrays made by instructions. Loops and conditionals may still return one array twice, or one of their
  operands: their bodies and branches are not changed.
- An `output_to_operand_aliasing` of a fusion names arrays that it may overwrite, and the result then has that buffer: results of fusions
  and of library calls, and the state of a loop in its body. For parameters of ENTRY it is only a wish: they belong to the caller.
- An array that is overwritten is not read by a later instruction of its computation under any name, nor by any loop, conditional or call,
  and is not a result of the computation; so loops, conditionals and calls may share buffers between operands and results.
Source: XLA copy_insertion.cc, and the behaviour of the real XLA without any HLO pass: a copy, then the update in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Operation

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, ParameterOp, ReturnOp, TupleOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.graph.buffers import can_be_in_place
from xla_emitters.graph.control_computations import fusions_run_by, is_one_kernel, loop_bodies
from xla_emitters.graph.entry import entry_of, producers_of
from xla_emitters.graph.fusion_parts import Part, Parting, aliasing, may_write, wrap_entry
from xla_emitters.graph.in_place_updates import find_in_place_updates
from xla_emitters.graph.kinds import kind_of
from xla_emitters.graph.names import Names
from xla_emitters.graph.overwrites import may_overwrite, next_values, state_leaf
from xla_emitters.graph.refusals import supported_view
from xla_emitters.graph.view import FusionView, is_scheduled
from xla_emitters.rewrite.kernel_pass import KernelPass


class InsertCopiesPass(KernelPass):
    name = "xla-insert-copies"

    def apply_to(self, op: ModuleOp) -> None:
        insert_copies(op)


def insert_copies(module: ModuleOp) -> None:
    """Copies ENTRY's results that are parameters or repeated, and arrays that fusions (or a kernel ENTRY) cannot update in place."""
    entry = entry_of(module)
    if is_one_kernel(entry):
        view = supported_view(entry)
        if view is None or not _updates_elsewhere(view, frozenset()):
            return
        entry = wrap_entry(entry)
    names = Names(module)
    for user, number in list(_results_of_others(entry)):
        user.operands[number] = names.add(CopyOp([user.operands[number]], user.operands[number].type, "copy"), user)
    bodies = loop_bodies(entry)
    made = {key: numbers for body in bodies for key, numbers in next_values(body).items()}
    for fusion in list(fusions_run_by(entry)):
        view = supported_view(fusion)
        if view is None:
            continue
        if updated := _updates_elsewhere(view, bodies):
            if any(view.operands[number].type != held for number, held in zip(updated, view.result_types, strict=True)):
                fusion = _in_types_of_operands(names, fusion, view)
                view = supported_view(fusion)
                assert view is not None
                updated = _updates_elsewhere(view, bodies)
            _update_copies(names, fusion, view, updated, bodies)
        elif may_write(view, bodies) != view.wanted_aliases:
            fusion.output_to_operand_aliasing = None
        elif not view.wanted_aliases and (places := _next_state(fusion, view, bodies, made)):
            fusion.output_to_operand_aliasing = aliasing(places, is_tuple=isinstance(fusion.result.type, TupleType))


def _results_of_others(entry: ComputationOp) -> Iterator[tuple[Operation, int]]:
    """Operands of the root that are parameters, or repeat another result: the tuple or return, and the number of its operand."""
    made = set[tuple[HloOp, int]]()
    terminator = entry.body.block.last_op
    pending = [terminator]
    while pending:
        owner = pending.pop(0)
        if not isinstance(owner, TupleOp | ReturnOp):
            continue
        for number, operand in enumerate(owner.operands):
            if isinstance(operand.type, TupleType):
                assert isinstance(operand.owner, Operation)
                pending.append(operand.owner)
                continue
            (producer,) = producers_of(operand)
            if isinstance(producer[0], ParameterOp) or producer in made:
                yield owner, number
            made.add(producer)


def _updates_elsewhere(view: FusionView, bodies: AbstractSet[ComputationOp]) -> tuple[int, ...]:
    """Per result, the number of the parameter that it updates; () if all are in place, or some are not updates."""
    updates = find_in_place_updates(view)
    if isinstance(updates, str):
        return ()
    numbers = tuple(update.parameter.number.value.data for update in updates)
    # HLO may say that the elements of one of them are packed: then they are not the same array in memory.
    is_one = all(view.operands[number].type == view.parameters[number].result.type for number in numbers)
    return () if not is_one or all(_in_place(view, numbers, bodies)) else numbers


def _next_state(
    fusion: FusionOp,
    view: FusionView,
    bodies: AbstractSet[ComputationOp],
    made: Mapping[tuple[HloOp, int], Sequence[int]],
) -> tuple[int | None, ...]:
    """Per result, the number of the operand that has the state's old value of it, if the kernel may overwrite that; () if there are none.

    made    as `next_values` returns it, for all bodies
    """
    types = view.result_types
    forms = {(dims_of(array_type), minor_to_major(array_type)) for array_type in types}
    # In a loop emitter's kernel one thread computes element i of all results, if these have one shape; it reads x[i] before it writes.
    is_loop = not is_scheduled(view) and all(kind_of(view, root) == "loop" for root in view.roots)
    if fusion.parent_op() not in bodies or len(forms) > 1 or not is_loop:
        return ()
    places: list[int | None] = []
    for result in range(len(types)):
        numbers = made.get((fusion, result), ())
        places.append(
            next(
                (
                    number
                    for number, operand in enumerate(fusion.operands)
                    if state_leaf(operand) in numbers
                    and number not in places
                    and operand.type == types[result]
                    and can_be_in_place(view, operand, result)
                    and may_overwrite(operand, fusion, bodies)
                ),
                None,
            )
        )
    return tuple(places) if any(place is not None for place in places) else ()


def _in_place(view: FusionView, numbers: tuple[int, ...], bodies: AbstractSet[ComputationOp]) -> list[bool]:
    """Per result, whether it is in the buffer of that operand, and of no other."""
    wanted = may_write(view, bodies)
    operands = [view.operands[number] for number in numbers]
    return [wanted.get(at) is value and view.operands.count(value) == 1 for at, value in enumerate(operands)]


def _in_types_of_operands(names: Names, fusion: FusionOp, view: FusionView) -> FusionOp:
    """The fusion with its updates in the types of the arrays that they update; bitcasts convert its results back.

    Aliased arrays have one type; in the fusion, the update or the array may be a bitcast.
    """
    updates = find_in_place_updates(view)
    assert not isinstance(updates, str)
    parting, part = Parting(names, fusion, view.computation), Part(view.computation)
    results = [
        value
        if value.type == (wanted := update.parameter.result.type)
        else part.insert(BitcastOp([value], wanted, "updated"), update.op)
        for update in updates
        for value in [part.take(update.op.result)]
    ]
    made = parting.call(part, f"{view.computation.sym_name.data}.in_place", results, [], ".in_place")
    found = [
        value
        if value.type == update.root.result.type
        else parting.before(BitcastOp([value], update.root.result.type, update.root.instruction_name.data))
        for update, value in zip(updates, parting.elements(made.result), strict=True)
    ]
    parting.replace([(update.root, value) for update, value in zip(updates, found, strict=True)])
    return made


def _update_copies(
    names: Names,
    fusion: FusionOp,
    view: FusionView,
    updated: tuple[int, ...],
    bodies: AbstractSet[ComputationOp],
) -> None:
    """Aliases results with these operands; an operand is copied first unless it is in place already or may be overwritten."""
    for number, is_there in zip(updated, _in_place(view, updated, bodies), strict=True):
        operand = fusion.operands[number]
        if not (is_there or may_overwrite(operand, fusion, bodies)):
            name = f"{fusion.instruction_name.data}.copy"
            fusion.operands[number] = names.add(CopyOp([operand], operand.type, name), fusion)
    fusion.output_to_operand_aliasing = aliasing(updated, is_tuple=isinstance(fusion.result.type, TupleType))
