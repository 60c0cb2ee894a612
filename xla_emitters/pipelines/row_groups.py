"""Merges fusions that compute numbers per row with the fusion that reads them beside the rows, so that rows are read once. On HLO.

    s = (f32[64], f32[64]) fusion(x, g)   two sums of each row             f = bf16[64,512] fusion(x, g), calls=c.rows
    n = f32[64] fusion(s#0, s#1)          a number per row         ->        c.rows: what s, n and f compute, in one computation
    f = bf16[64,512] fusion(x, g, n)      x and g again

A fusion joins the fusion that reads its results if each of the results is smaller than the reader's, and all other readers come later, so
that the merged fusion can be at the place of the last one. One of them must reduce. What two of them compute is computed once. XLA leaves
such a chain where its Triton emitter has no tile of whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TupleType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.reductions import ReduceOp
from xla_emitters.dialects.hlo.types import dims_of, is_array, leaf_types
from xla_emitters.graph.control_computations import fusions_of
from xla_emitters.graph.entry import computation_of
from xla_emitters.graph.fusion_parts import NewComputation, Part, is_fusible_bitcast, new_fusion
from xla_emitters.graph.names import Names
from xla_emitters.graph.view import view_of
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Fusions of one control computation, in program order.

    results  the values that are read outside of the group, or that the last fusion returns
    """

    members: tuple[FusionOp, ...]
    results: tuple[SSAValue, ...]

    @property
    def last(self) -> FusionOp:
        return self.members[-1]

    def merged(self, names: Names, suffix: str = "rows") -> FusionOp:
        """A fusion of all members, inserted before the last one. Its results are the leaves of `results`. `suffix`: of its computation."""
        inside = _Inside(self)
        leaves = [leaf for result in self.results for leaf in inside.leaves(result)]
        callee = computation_of(self.last)
        computation = inside.finish(f"{callee.sym_name.data}.{suffix}", leaves, self.last)
        computation.location = callee.location
        names.add_computation(computation, callee)
        made = new_fusion(inside.given, computation, self.last.instruction_name.data)
        names.add(made, self.last)
        return made

    def replace(self, names: Names, made: FusionOp) -> None:
        """Replaces the members' results by those of `made`, and erases the members."""
        leaves = iter(_elements(names, made, self.last))
        for result in self.results:
            own = [next(leaves) for _ in leaf_types(result.type)]
            value = own[0]
            if isinstance(result.type, TupleType):
                value = names.add(TupleOp(own, result.type, f"{made.instruction_name.data}.part"), self.last)
            result.replace_all_uses_with(value)
            _move_names(value, self.last)
        for member in reversed(self.members):
            _erase_unread(member.result)
            callee = computation_of(member)
            # The name is erased with the operation; its result has no readers left.
            names.replace(member, made.result)
            names.erase_uncalled(callee)

    def alone(self, module: ModuleOp) -> ModuleOp:
        """A module whose ENTRY has only the members, with a parameter for each array that they read."""
        around = self.last.parent_op()
        assert isinstance(around, ComputationOp)
        part = Part(around, self._is_outside)
        entry = part.finish("alone", [part.take(result) for result in self.results], around, is_entry=True)
        others = [op.clone() for op in module.ops if isinstance(op, ComputationOp) and not op.is_entry]
        return ModuleOp([*others, entry])

    def _is_outside(self, op: HloOp) -> bool:
        is_of_member = _producer(op.result) in self.members
        return not (is_of_member or isinstance(op, ConstantOp) or is_fusible_bitcast(op))


def _is_smaller(op: FusionOp, last: FusionOp) -> bool:
    """Whether a fusion's results are numbers of rows for another one: all have fewer elements than that one's."""
    if op is last:
        return any(map(_producer, last.operands))
    most = max(map(_size, leaf_types(last.result.type)))
    return all(_size(leaf) < most for leaf in leaf_types(op.result.type))


def _has_reductions(group: RowGroup) -> bool:
    return any(map(_reduces, group.members[:-1]))


def groups_in(
    around: ComputationOp,
    joins: Callable[[FusionOp, FusionOp], bool] = _is_smaller,
    wanted: Callable[[RowGroup], bool] = _has_reductions,
) -> list[RowGroup]:
    """The groups of a control computation, without common fusions; those with the last readers first.

    joins    (fusion, last): whether a fusion may be in the group of a last reader
    wanted   whether a group is kept
    """
    places: dict[Operation | Block, int] = {op: place for place, op in enumerate(around.instructions)}
    taken, found = set[FusionOp](), list[RowGroup]()
    for fusion in reversed(fusions_of(around)):
        members = _members(fusion, places, joins) - taken if fusion not in taken else set[FusionOp]()
        if not members:
            continue
        inner = members - {fusion}
        results = [
            value
            for member in inner
            for value in _values(member)
            if any(user not in members for user in _readers(value))
        ]
        results.sort(key=lambda value: places[value.owner])
        group = RowGroup(tuple(sorted(members, key=lambda op: places[op])), (fusion.result, *results))
        if wanted(group):
            taken |= members
            found.append(group)
    return found


def _members(
    last: FusionOp, places: dict[Operation | Block, int], joins: Callable[[FusionOp, FusionOp], bool]
) -> set[FusionOp]:
    """A fusion and those before it that it can be merged with."""
    if not joins(last, last) or not _can_join(last):
        return set()
    found, grows = {last}, True
    while grows:
        before = (_producer(operand) for member in found for operand in member.operands)
        joined = {
            op
            for op in before
            if op is not None
            and op not in found
            and joins(op, last)
            and _can_join(op)
            and all(user in found or places.get(user, -1) > places[last] for user in _readers(op.result))
        }
        found |= joined
        grows = bool(joined)
    return found


def _can_join(op: FusionOp) -> bool:
    view = view_of(op)
    leaves = leaf_types(op.result.type)
    # A reduction of several arrays counts as one root; a nested tuple has fewer operands than leaves.
    parts = op.result.type.types.data if isinstance(op.result.type, TupleType) else (op.result.type,)
    flat = len(parts) == len(leaves) == len(view.roots)
    nested = any(isinstance(inner, FusionOp | CallOp) for inner in view.computation.instructions)
    return flat and not nested and view.other_compiler is None and op.output_to_operand_aliasing is None


def _reduces(op: FusionOp) -> bool:
    return any(isinstance(inner, ReduceOp) for inner in computation_of(op).instructions)


def _size(ir_type: Attribute) -> int:
    return prod(dims_of(ir_type)) if is_array(ir_type) else 0


def _producer(value: SSAValue) -> FusionOp | None:
    op = value.owner
    while isinstance(op, GetTupleElementOp) or is_fusible_bitcast(op):
        op = op.operands[0].owner
    return op if isinstance(op, FusionOp) else None


def _values(member: FusionOp) -> Iterator[SSAValue]:
    """The arrays of a member: its result, or the elements of it that are read."""
    if not isinstance(member.result.type, TupleType):
        yield member.result
        return
    for use in member.result.uses:
        yield use.operation.results[0] if isinstance(use.operation, GetTupleElementOp) else member.result


def _readers(value: SSAValue) -> Iterator[Operation]:
    """The ops that read an array, through elements of tuples and bitcasts."""
    for use in value.uses:
        if isinstance(use.operation, GetTupleElementOp) or is_fusible_bitcast(use.operation):
            yield from _readers(use.operation.results[0])
        else:
            yield use.operation


def _elements(names: Names, made: FusionOp, before: FusionOp) -> Sequence[SSAValue]:
    if not isinstance(made.result.type, TupleType):
        return [made.result]
    name = made.instruction_name.data
    return [
        names.add(GetTupleElementOp([made.result], ir_type, f"{name}.{n}", {"index": IntegerAttr(n, i64)}), before)
        for n, ir_type in enumerate(made.result.type.types)
    ]


def _move_names(value: SSAValue, before: Operation) -> None:
    """Moves the elements and bitcasts of a value to `before`: they may precede a value that is new there."""
    for user in [use.operation for use in value.uses]:
        if isinstance(user, GetTupleElementOp) or is_fusible_bitcast(user):
            user.detach()
            Rewriter.insert_op(user, InsertPoint.before(before))
            _move_names(user.results[0], before)


def erase_fusion(names: Names, fusion: FusionOp) -> None:
    """Erases a fusion without readers, and its computation."""
    computation = computation_of(fusion)
    # The name is erased with the operation; its result has no readers.
    names.replace(fusion, fusion.result)
    names.erase_uncalled(computation)


def _erase_unread(value: SSAValue) -> None:
    """Erases the elements and bitcasts of a value that have no readers."""
    for user in [use.operation for use in value.uses]:
        if isinstance(user, GetTupleElementOp) or is_fusible_bitcast(user):
            _erase_unread(user.results[0])
            if user.results[0].first_use is None:
                Rewriter.erase_op(user)


@dataclass(eq=False)
class _Inside(NewComputation):
    """The computation of a group under construction.

    given  arrays of other instructions that the members read; the arguments of its parameters
    known  a value of the control computation -> its arrays inside
    made   (class, operands, properties) of an instruction -> its result
    """

    group: RowGroup
    given: list[SSAValue] = field(default_factory=list[SSAValue])
    known: dict[SSAValue, list[SSAValue]] = field(default_factory=dict[SSAValue, list[SSAValue]])
    made: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])

    def leaves(self, value: SSAValue) -> list[SSAValue]:
        """The arrays inside that correspond to a value of the control computation."""
        if value not in self.known:
            self.known[value] = self._leaves(value)
        return self.known[value]

    def _leaves(self, value: SSAValue) -> list[SSAValue]:
        op = value.owner
        assert isinstance(op, HloOp)
        if isinstance(op, FusionOp) and op in self.group.members:
            return self._body(op)
        if isinstance(op, GetTupleElementOp) and op.operands[0].owner in self.group.members:
            whole: SSAValue = op.operands[0]
            return [self.leaves(whole)[op.index.value.data]]
        if isinstance(op, ConstantOp) or is_fusible_bitcast(op):
            return [self.add(op, [self.leaves(operand)[0] for operand in op.operands])]
        self.given.append(value)
        return [self.insert(ParameterOp(len(self.given) - 1, value.type, op.instruction_name.data), op)]

    def _body(self, member: FusionOp) -> list[SSAValue]:
        view = view_of(member)
        values: dict[SSAValue, SSAValue] = {
            parameter.result: self.leaves(operand)[0]
            for parameter, operand in zip(view.parameters, view.operands, strict=True)
        }
        for op in view.instructions:
            if not isinstance(op, ParameterOp | TupleOp):
                values[op.result] = self.add(op, [values[operand] for operand in op.operands])
        return [values[root.result] for root in view.roots]

    def add(self, op: HloOp, operands: Sequence[SSAValue]) -> SSAValue:
        """Adds a copy of an instruction, or returns the result of an equal one."""
        said = (*sorted((name, value) for name, value in op.properties.items() if name != "name"), op.result.type)
        key = (op.name, *operands, *said)
        if key not in self.made:
            self.made[key] = self.copy(op, operands)
        return self.made[key]
