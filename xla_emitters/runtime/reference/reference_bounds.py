"""The bounds of any correct kernel's results: every op's tolerance carried through a computation (`tolerance`).

evaluate_bounds(computation, [x])   -> [Bounds]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr, TupleType
from xdsl.ir import Attribute

from xla_emitters.dialects.hlo import routines
from xla_emitters.dialects.hlo.base import HloOp, integers, no_call
from xla_emitters.dialects.hlo.called import MapOp
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    enclosing_module,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp, DynamicReduceWindowOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import GetDimensionSizeOp
from xla_emitters.dialects.hlo.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from xla_emitters.dialects.hlo.elementwise import CopyOp, ElementwiseOp, is_elementwise
from xla_emitters.dialects.hlo.gather_scatter import GatherOp, ScatterOp
from xla_emitters.dialects.hlo.library_calls import is_collective, is_library_call
from xla_emitters.dialects.hlo.reductions import ReduceOp, ReduceWindowOp, ReducingOp
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.dialects.hlo.types import dims_of, element_of, is_array, leaf_types
from xla_emitters.dtypes import Array
from xla_emitters.graph.cuts import chains_of_cuts, cut_bodies
from xla_emitters.graph.reduction_kinds import chains_of_heroes
from xla_emitters.runtime.reference.bounds.collective_bounds import bounds_of_collective
from xla_emitters.runtime.reference.bounds.contraction_bounds import bounds_of_contraction
from xla_emitters.runtime.reference.bounds.elementwise_bounds import bounds_after, reinterpreted
from xla_emitters.runtime.reference.bounds.indexed_windows import bounds_of_window
from xla_emitters.runtime.reference.bounds.library_bounds import bounds_of_library_call, rounded_factors
from xla_emitters.runtime.reference.bounds.reduction_bounds import (
    Run,
    bounds_of_reduction,
    in_scan,
    nothing_known,
    taken,
)
from xla_emitters.runtime.reference.bounds.relations import by_relations
from xla_emitters.runtime.reference.bounds.scatter_bounds import bounds_of_scatter
from xla_emitters.runtime.reference.bounds.sensitivity import Tape, is_worth_a_tape, narrowed
from xla_emitters.runtime.reference.reference import Schedule, evaluate, leaves_of, limited
from xla_emitters.runtime.reference.tolerance import Bounds, everything, point

NO_CHAINS: Mapping[int | str, int] = {}


def evaluate_bounds(
    computation: ComputationOp,
    inputs: Sequence[Any],
    *,
    any_order: bool = False,
    row_chains: Mapping[int | str, int] = NO_CHAINS,
    tf32: bool = False,
) -> list[Bounds]:
    """The bounds of each leaf of the root, given exact inputs: by intervals, and for small chains by derivatives (`Tape`) too.

    inputs      as for `evaluate`
    any_order   reductions may combine in any order: they are not in fusions of XLA's
    row_chains  elements of a reduction, or a computation that a kernel computes as a scan -> additions of its longest chain in kernels
                that read rows once (`row_chains`)
    tf32        tensor cores may round f32 factors of products and convolutions where the module lets them (`rounds_to_tf32`)
    """
    known = [_known(value) for value in inputs]
    is_plain = not any(isinstance(op, RuleOp) for op in computation.instructions)
    # Derivatives take a product's factors as they are, and additions in their order.
    is_scanned = any(isinstance(key, str) for key in row_chains)
    tape = Tape() if is_plain and not tf32 and not is_scanned and is_worth_a_tape(computation) else None
    carrying = _Carrying(computation, tape, any_order=any_order, row_chains=row_chains, tf32=tf32)
    found = leaves_of(carrying.of(computation, known, is_outward=False))
    if tape is None:
        return found
    with np.errstate(all="ignore"):
        return [narrowed(bounds, tape.bounds_of(bounds)) for bounds in found]


class _Carrying:
    """Bounds carried through a computation and the computations that it calls.

    around           the computation being evaluated
    tape             records the steps and narrows their bounds; None: no derivatives
    any_order        reductions may combine in any order
    row_chains, tf32 as for `evaluate_bounds`
    """

    def __init__(
        self,
        around: ComputationOp,
        tape: Tape | None = None,
        *,
        any_order: bool = False,
        row_chains: Mapping[int | str, int] = NO_CHAINS,
        tf32: bool = False,
    ) -> None:
        self.around = around
        self.tf32 = tf32
        self.row_chains = row_chains
        self.any_order = any_order
        self.tape = tape
        self._schedules = dict[ComputationOp, Schedule]()
        self._chains = dict[ComputationOp, dict[ReduceOp, int]]()

    @cached_property
    def _cut_bodies(self) -> frozenset[ComputationOp]:
        module = enclosing_module(self.around)
        return cut_bodies(module) if module is not None else frozenset()

    def of(self, computation: ComputationOp, values: Sequence[Any], *, is_outward: bool) -> Any:
        """The bounds of a computation's root from those of its parameters.

        is_outward  the bounds contain the exact values too, not only the rounded ones
        """
        if computation not in self._schedules:
            self._schedules[computation] = Schedule.of(computation)

        def step(op: HloOp, operands: Sequence[Any]) -> Any:
            factors = rounded_factors(op, operands) if self.tf32 else operands
            found = self._after(op, factors, is_outward=is_outward)
            if factors is not operands:
                return found
            if isinstance(found, Bounds) and not isinstance(op, FusionOp | CallOp | GetTupleElementOp | CopyOp):
                found = by_relations(op, operands, found)
            if (
                self.tape is None
                or not all(isinstance(value, Bounds) for value in (found, *operands))
                or isinstance(op, FusionOp | CallOp | GetTupleElementOp | CopyOp)
            ):
                return found
            with np.errstate(all="ignore"):
                return self.tape.record(op, operands, found, self._chain_of(op) if isinstance(op, ReduceOp) else None)

        return self._schedules[computation].run(values, step)

    def _after(self, op: HloOp, operands: Sequence[Any], *, is_outward: bool) -> Any:
        evaluate = self._evaluating(op)
        match op:
            case FusionOp() | CallOp():
                return self.of(self._called(op.callees()[0].symbol), operands, is_outward=is_outward)
            case TupleOp() | GetTupleElementOp() | CopyOp():
                return op.evaluate(operands, no_call)
            case MapOp():
                (found,) = self._on_elements(op.to_apply)(operands, is_outward=is_outward)
                return found
            case ReducingOp():
                return self._after_reduction(op, operands, evaluate)
            case DynamicReduceWindowOp():
                if not all(bounds.is_single.all() for bounds in operands[2 * op.count :]):
                    return nothing_known(op)
                static = op.static([bounds.low for bounds in operands])
                return self._after_reduction(static, operands[: 2 * op.count], self._evaluating(static))
            case ScatterOp():
                body, run = self._called(op.to_apply), self._on_elements(op.to_apply)
                with np.errstate(all="ignore"):
                    return bounds_of_scatter(op, body, operands, evaluate, run)
            case ContractingOp():
                return bounds_of_contraction(op, operands, evaluate)
            case RuleOp() if op.ROW.meaning is not None:
                return self._after_rule(op, operands, evaluate, is_outward=is_outward)
            case GatherOp() | DynamicSliceOp() | DynamicUpdateSliceOp():
                return bounds_of_window(op, operands, evaluate)
            case ElementwiseOp():
                found = bounds_after(op, operands, evaluate, is_outward=is_outward)
                scan = self._scan_of(op)
                return found if scan is None else in_scan(op, operands, found, scan)
            case _ if all(isinstance(bounds, Bounds) and bounds.is_point for bounds in operands):
                return _known(evaluate([bounds.low for bounds in operands]))
            case BitcastOp() if not op.moved_operands:
                return reinterpreted(operands[0], evaluate)
            case GetDimensionSizeOp():
                return self._after_moves(op, operands, 1, evaluate)
            case DynamicConvOp():
                if not all(bounds.is_single.all() for bounds in operands[2:]):
                    return nothing_known(op)
                static = op.static([bounds.low for bounds in operands])
                return bounds_of_contraction(static, operands[:2], self._evaluating(static))
            case _ if op.moved_operands:
                return self._after_moves(op, operands, len(op.moved_operands), evaluate)
            case _:
                return nothing_known(op)

    def _after_reduction(
        self, op: ReducingOp, operands: Sequence[Bounds], evaluate: Callable[[Sequence[Array]], Any]
    ) -> Any:
        chain, scan = self._chain_of(op), self._scan_of(op) if isinstance(op, ReduceWindowOp) else None
        with np.errstate(all="ignore"):
            return bounds_of_reduction(op, operands, chain, evaluate, self._on_elements(op.to_apply), scan)

    def _after_moves(
        self, op: HloOp, operands: Sequence[Bounds], count: int, evaluate: Callable[[Sequence[Array]], Any]
    ) -> Bounds:
        """Bounds of ops that move the elements of the first `count` operands: evaluated on bounds of these if the others are known."""
        arrays, numbers = operands[:count], operands[count:]
        if not all(bounds.is_single.all() for bounds in numbers):
            return nothing_known(op)
        known = [bounds.low for bounds in numbers]
        return Bounds(*(evaluate([*ends, *known]) for ends in zip(*(bounds.ends for bounds in arrays), strict=True)))

    def _after_rule(
        self, op: RuleOp, operands: Sequence[Any], evaluate: Callable[[Sequence[Array]], Any], *, is_outward: bool
    ) -> Any:
        """Library functions have bounds of their own. Ops that order, move, branch or loop apply to bounds as to arrays, if the choice
        is certain."""
        if is_collective(op) and op.operands:
            reducer = self._called(op.symbols("to_apply")[0]) if op.symbols("to_apply") else None
            return bounds_of_collective(op, operands, evaluate, reducer)
        if op.opcode == "custom-call" or is_library_call(op):
            return bounds_of_library_call(op, operands, evaluate)
        if isinstance(op, routines.OPS):
            return nothing_known(op)

        def call(name: str, values: Sequence[Any]) -> Any:
            found = self.of(find_computation(self.around, name), values, is_outward=is_outward)
            return _decided(found) if name == condition else found

        condition = op.symbols("condition")[0].root_reference.data if op.opcode == "while" else None
        try:
            if op.opcode == "conditional":
                operands = [_decided(operands[0]), *operands[1:]]
            return _known(op.evaluate(operands, limited(call, op)))
        except _Undecided:
            return _unknown_of(op.result.type)

    def _evaluating(self, op: HloOp) -> Callable[[Sequence[Array]], Any]:
        """The reference: the op's value on arrays."""

        def evaluate_once(operands: Sequence[Array]) -> Any:
            with np.errstate(all="ignore"):
                return op.evaluate(operands, self._call)

        return evaluate_once

    def _call(self, name: str, operands: Sequence[Any]) -> Any:
        leaves = evaluate(find_computation(self.around, name), operands)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def _called(self, symbol: SymbolRefAttr) -> ComputationOp:
        return find_computation(self.around, symbol)

    def _on_elements(self, symbol: SymbolRefAttr) -> Run:
        """A scalar computation applied to bounds of arrays of one shape. The result is unknown unless all its ops are elementwise."""
        body, plain = self._called(symbol), _Carrying(self.around)
        goes_by_element = all(
            is_elementwise(op) or isinstance(op, ParameterOp | TupleOp | ConstantOp) for op in body.instructions
        )

        def run(values: Sequence[Bounds], *, is_outward: bool = False) -> Sequence[Bounds]:
            shape = values[0].low.shape
            if goes_by_element:
                found = leaves_of(plain.of(body, values, is_outward=is_outward))
            else:
                found = [everything(element_of(leaf).numpy, shape) for leaf in leaf_types(body.root.type)]
            return [taken(bounds, lambda end: np.broadcast_to(end, shape)) for bounds in found]

        return run

    def _chain_of(self, op: ReducingOp) -> int | None:
        """Most combinations in a row, if threads share the reduction; None: it combines in the reference's order."""
        if isinstance(op, ReduceWindowOp):
            is_open = self.any_order or self._scan_of(op) is not None
            return math.prod(dim.size for dim in op.window.data.dims) if is_open else None
        assert isinstance(op, ReduceOp)
        count = math.prod(dims_of(op.arrays[0])[dim] for dim in integers(op.dimensions))
        if self.any_order:
            return count
        inside = op.parent_op()
        assert isinstance(inside, ComputationOp)
        if inside not in self._chains:
            is_cut = inside in self._cut_bodies
            self._chains[inside] = chains_of_cuts(inside) if is_cut else chains_of_heroes(inside)
        own, by_row = self._chains[inside].get(op), self.row_chains.get(count)
        return own if by_row is None else max(own or 0, by_row)

    def _scan_of(self, op: HloOp) -> int | None:
        """Most combinations in a row of the kernel that scans what the op's computation combines; None: no kernel does."""
        inside = op.parent_op()
        return self.row_chains.get(inside.sym_name.data) if isinstance(inside, ComputationOp) else None


class _Undecided(Exception):
    """Raised when the direction of a branch or a loop depends on roundings."""


def _decided(selector: Any) -> Array:
    """The value of a selector that has one possible value. raises _Undecided otherwise."""
    if not selector.is_single.all():
        raise _Undecided
    return selector.low


def _known(value: Any) -> Any:
    """Values as bounds: arrays become points."""
    if isinstance(value, tuple):
        return tuple(_known(part) for part in cast("tuple[Any, ...]", value))
    return value if isinstance(value, Bounds) else point(np.asarray(value))


def _unknown_of(ir_type: Attribute) -> Any:
    """The bounds of an unknown value of that type."""
    if isinstance(ir_type, TupleType):
        return tuple(map(_unknown_of, ir_type.types))
    return everything(element_of(ir_type).numpy, dims_of(ir_type)) if is_array(ir_type) else ()
