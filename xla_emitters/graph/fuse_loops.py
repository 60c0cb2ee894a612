"""Runs a loop that XLA keeps on the host inside a kernel, where each iteration computes element by element. On HLO.

    w = (s32[], f32[4096], f32[4096]) while(t), condition=i < 16, body=b        f = f32[4096] fusion(x, y), calls=b.steps
    b: tuple(i + 1, fusion(x, y), y)                                      ->        b.steps: the body's instructions, 16 times
                                                                                w = (...) tuple(i, f, y)

Each iteration of such a loop reads and writes all of its arrays; the kernel reads and writes them once. A loop is taken if its trip count
follows from constants, and every array that it changes is computed from the same element of arrays of the same shape, of scalars that the
loop computes likewise, and of constants. A body that is too long to repeat that often is repeated `steps` times, where that divides the
trip count: the loop stays, with fewer iterations. Each element is computed by the same operations in the same order: no bit of a result
changes.
XLA unrolls such loops in the same way at most twice (its double buffering), and keeps them on the host.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TupleType, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp, IotaOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BroadcastOp
from xla_emitters.dialects.hlo.types import dims_of, is_array
from xla_emitters.graph.computation_steps import known_trip_count
from xla_emitters.graph.control_computations import control_computations, fusions_of
from xla_emitters.graph.entry import computation_of, tuple_elements
from xla_emitters.graph.fusion_parts import NewComputation, new_fusion
from xla_emitters.graph.loop_recurrences import proved_trips
from xla_emitters.graph.names import Names
from xla_emitters.graph.view import view_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

MOST_OPS = 256
"""Operations of an element, over all repetitions, that a kernel may have."""
MOST_TRIPS = 4096
"""Iterations of a loop that are counted."""


class FuseLoopsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect whose control computations hold fusions."""

    name = "xla-fuse-loops"

    def apply_to(self, op: ModuleOp) -> None:
        names = Names(op)
        for computation in control_computations(op):
            for loop in [each for each in computation.instructions if each.opcode == "while"]:
                found = _loop_of(loop)
                if isinstance(found, str):
                    self.skip(loop, found)
                    continue
                found.fuse(names)
                left = "" if found.steps == found.trips else f", {found.trips // found.steps} iterations are left"
                self.remark(loop, f"{found.steps} of {found.trips} iterations run in one kernel{left}")


@dataclass(frozen=True, eq=False)
class _ElementwiseLoop:
    """A loop of this file's head.

    body     its computation
    after    what the body makes of each leaf of the state
    changed  the leaves that the body changes
    trips    how often it runs
    steps    iterations of one kernel
    """

    loop: RuleOp
    body: ComputationOp
    after: tuple[SSAValue, ...]
    changed: tuple[int, ...]
    trips: int
    steps: int

    def fuse(self, names: Names) -> None:
        """Replaces the loop, or what its body computes."""
        if self.steps == self.trips:
            initial = self._leaves(names, self.loop.operands[0], self.loop)
            read = {n for use in self.loop.result.uses for n in _leaves_read(use.operation)}
            wanted = [n for n in self.changed if n in read or None in read]
            self._replace_leaves(names, self._results(names, initial, self.loop, wanted))
            return
        root = self.body.root.owner
        assert isinstance(root, TupleOp)
        leaves = self._leaves(names, self.body.parameters[0].result, root)
        root.operands = self._results(names, leaves, root, self.changed)
        for op in reversed(list(self.body.instructions)):
            if op.result.first_use is None and op is not root and not isinstance(op, ParameterOp):
                Rewriter.erase_op(op)
        _state_fewer_trips(self.loop, self.steps)

    def _leaves(self, names: Names, state: SSAValue, before: HloOp) -> list[SSAValue]:
        """The arrays of a state."""
        if isinstance(state.owner, TupleOp):
            return list(state.owner.operands)
        return tuple_elements(state, lambda op: names.add(op, before), "state")

    def _results(
        self, names: Names, leaves: Sequence[SSAValue], before: HloOp, changed: Sequence[int]
    ) -> list[SSAValue]:
        """The leaves, those of `changed` after `steps` iterations, by a new fusion for each shape."""
        found, shapes = list(leaves), dict.fromkeys(dims_of(leaves[n]) for n in changed)
        for shape in shapes:
            wanted = [n for n in changed if dims_of(leaves[n]) == shape]
            made = _Steps(self, leaves).computation(wanted)
            names.add_computation(made.callee, self.body)
            value = names.add(new_fusion(made.given, made.callee, f"{self.loop.instruction_name.data}.steps"), before)
            for number, element in zip(wanted, tuple_elements(value, lambda op: names.add(op, before)), strict=True):
                found[number] = element
        return found

    def _replace_leaves(self, names: Names, leaves: Sequence[SSAValue]) -> None:
        """Replaces the loop's results, and erases it."""
        for user in [use.operation for use in self.loop.result.uses]:
            if isinstance(user, GetTupleElementOp):
                names.replace(user, leaves[user.index.value.data])
        whole = self.loop.operands[0]
        if self.loop.result.first_use is not None:
            name = self.loop.instruction_name.data
            whole = names.add(TupleOp(list(leaves), self.loop.result.type, f"{name}.state"), self.loop)
        given = self.loop.operands[0].owner
        run = callees_of(self.loop)
        names.replace(self.loop, whole)
        if isinstance(given, TupleOp) and given.result.first_use is None:
            initial = [leaf.owner for leaf in given.operands]
            Rewriter.erase_op(given)
            for op in initial:
                if isinstance(op, FusionOp) and op.result.first_use is None:
                    callee = computation_of(op)
                    names.replace(op, op.result)  # it has no readers
                    names.erase_uncalled(callee)
        for computation in set(run).difference(control_computations(names.module)):
            callees = [computation_of(fusion) for fusion in fusions_of(computation)]
            names.erase_uncalled(computation)
            for callee in dict.fromkeys(callees):
                names.erase_uncalled(callee)


@dataclass(frozen=True, eq=False)
class _Made:
    callee: ComputationOp
    given: list[SSAValue]


@dataclass(eq=False)
class _Steps(NewComputation):
    """A computation of several iterations, under construction. `leaves`: the state before the first one."""

    of: _ElementwiseLoop
    leaves: Sequence[SSAValue]
    given: list[SSAValue] = field(default_factory=list[SSAValue])

    def computation(self, wanted: Sequence[int]) -> _Made:
        """Of the leaves `wanted`, in this order."""
        state: list[SSAValue] = [
            self.insert(ParameterOp(n, leaf.type, f"state.{n}"), self.of.loop) for n, leaf in enumerate(self.leaves)
        ]
        for _ in range(self.of.steps):
            state = self._iteration(state)
        made = self.finish(f"{self.of.body.sym_name.data}.steps", [state[number] for number in wanted], self.of.loop)
        made.location = self.of.body.location
        for op in reversed([op for op in self.block.ops if isinstance(op, HloOp)]):
            if op.result.first_use is None:
                Rewriter.erase_op(op)
        parameters = [op for op in self.block.ops if isinstance(op, ParameterOp)]
        given = [self.leaves[op.number.value.data] for op in parameters]
        for number, op in enumerate(parameters):
            op.number = IntegerAttr(number, i64)
        return _Made(made, given)

    def _iteration(self, state: Sequence[SSAValue]) -> list[SSAValue]:
        values = dict[SSAValue, list[SSAValue]]()
        for op in self.of.body.instructions:
            if isinstance(op, ParameterOp):
                values[op.result] = list(state)
            elif isinstance(op, GetTupleElementOp):
                values[op.result] = [values[op.operands[0]][op.index.value.data]]
            elif isinstance(op, FusionOp):
                values[op.result] = self._fusion(op, [values[operand][0] for operand in op.operands])
        return [values[value][0] for value in self.of.after]

    def _fusion(self, fusion: FusionOp, operands: Sequence[SSAValue]) -> list[SSAValue]:
        view = view_of(fusion)
        values: dict[SSAValue, SSAValue] = {
            parameter.result: operands[parameter.number.value.data] for parameter in view.parameters
        }
        for op in view.instructions:
            if not isinstance(op, ParameterOp | TupleOp):
                values[op.result] = self.copy(op, [values[operand] for operand in op.operands])
        return [values[root.result] for root in view.roots]


def _loop_of(loop: HloOp) -> _ElementwiseLoop | str:
    """The loop, or the reason why no kernel can run it."""
    trips = proved_trips(loop, MOST_TRIPS)
    if not isinstance(loop, RuleOp) or trips is None or trips < 1:
        return "how often it runs does not follow from constants"
    body = find_computation(loop, loop.symbols("body")[0])
    root, types = body.root.owner, loop.result.type
    if not isinstance(root, TupleOp) or not isinstance(types, TupleType) or not all(map(is_array, types.types)):
        return "its state is not a tuple of arrays"
    changed, operations = list[int](), 0
    for number, value in enumerate(root.operands):
        owner = value.owner
        is_leaf = isinstance(owner, GetTupleElementOp) and isinstance(owner.operands[0].owner, ParameterOp)
        if not is_leaf or _leaves_read(owner) != [number]:
            changed.append(number)
    for op in body.instructions:
        if isinstance(op, FusionOp):
            if (why := _why_not(op)) is not None:
                return why
            operations += sum(isinstance(each, ElementwiseOp) for each in view_of(op).instructions)
        elif not isinstance(op, ParameterOp | GetTupleElementOp) and op is not root:
            return f"its body has a '{op.opcode}' (%{op.instruction_name.data})"
    if not any(dims_of(types.types.data[number]) for number in changed):
        return "it changes scalars only"
    most = max(1, MOST_OPS // max(1, operations))
    steps = next(count for count in range(min(most, trips), 0, -1) if trips % count == 0)
    if steps == 1:
        return f"{operations} operations of an element are too many to repeat, or {trips} iterations have no divisor"
    return _ElementwiseLoop(loop, body, tuple(root.operands), tuple(changed), trips, steps)


def _leaves_read(user: object) -> Sequence[int | None]:
    """The leaf of a state that an instruction reads; [None]: all."""
    return [user.index.value.data] if isinstance(user, GetTupleElementOp) else [None]


def _why_not(fusion: FusionOp) -> str | None:
    """Why the elements of a fusion's results need more than the same elements of its operands and scalars; or None."""
    view = view_of(fusion)
    if view.other_compiler is not None:
        return f"its body has a fusion for another compiler (%{view.name})"
    shape = dims_of(view.result_types[0])
    for op in view.instructions:
        if isinstance(op, TupleOp):
            continue
        of_scalar = isinstance(op, BroadcastOp) and not dims_of(op.operands[0])
        is_simple = of_scalar or isinstance(op, ParameterOp | ConstantOp | IotaOp | ElementwiseOp)
        if not is_simple or dims_of(op.result) not in (shape, ()):
            return f"'{op.opcode}' (%{op.instruction_name.data}) is not computed element by element"
    return None


def _state_fewer_trips(loop: HloOp, steps: int) -> None:
    """The loop's configuration, if it states how often it runs, has `steps` iterations in one."""
    if (trips := known_trip_count(loop)) is not None:
        config = loop.attributes["backend_config"]
        assert isinstance(config, StringAttr)
        found = json.loads(config.data)
        found["known_trip_count"]["n"] = str(trips // steps)
        found.pop("known_init_step", None)
        loop.attributes["backend_config"] = StringAttr(json.dumps(found, separators=(",", ":")))
