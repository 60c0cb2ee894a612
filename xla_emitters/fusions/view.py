"""The fusion view: what is computed (roots), from what (parameters, operands), by which instructions, who uses whom.

    %f = hlo.fusion %x, %x calls @sum      ->   FusionView(name="f", computation=@sum, operands=(%x, %x),
                                                            parameters=(%p0, %p1), roots=(%add,), instructions=...)

Analyses and emitters read this and nothing else of the module, so a computation that is not called by a fusion op (ENTRY itself, or a
cluster that some other compiler cut out) is compiled by making a view of it.
A view is made once, where its HLO is done changing, and handed on; analyses keep on it what they found. It refuses nothing: `refusals.py`.
Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, place_of
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    FusionOp,
    ParameterOp,
    find_computation,
)
from xla_emitters.dialects.hlo.types import ArrayType, as_array, dims_of, element_of, leaf_types, type_text
from xla_emitters.errors import Place

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class FusionView:
    """One computation that becomes one kernel.

    name       of the fusion instruction (or of the computation): names the kernel
    operands   what the kernel's arguments are at the call; a value that stands twice is one buffer. Without a call, the parameters
    location   of the fusion instruction: what the kernel's own loop and index code comes from
    call       the fusion instruction itself, if there is one
    analyses   what functions `once_per_view` found, by function and arguments
    """

    name: str
    computation: ComputationOp
    operands: tuple[SSAValue, ...]
    location: LocationAttr
    call: FusionOp | None = None
    analyses: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)

    @property
    def parameters(self) -> tuple[ParameterOp, ...]:
        return self.computation.parameters

    @cached_property
    def instructions(self) -> tuple[HloOp, ...]:
        """What the root needs, operands before users, in program order otherwise; parameters that nothing uses are left out."""
        return _needed(self.computation)

    @cached_property
    def called(self) -> tuple[ComputationOp, ...]:
        """The computations that instructions call for each element, and those that they call, each once."""
        found = dict[ComputationOp, None]()
        pending = [self.computation]
        while pending:
            for op in _needed(pending.pop()):
                callees = op.callees() if isinstance(op, CallingOp) else ()
                for callee in (find_computation(op, called.symbol) for called in callees):
                    if callee not in found:
                        found[callee] = None
                        pending.append(callee)
        return tuple(found)

    @cached_property
    def users(self) -> dict[HloOp, tuple[HloOp, ...]]:
        """Who reads each instruction: once per operand slot, only instructions that are needed themselves."""
        found: dict[HloOp, list[HloOp]] = {op: [] for op in self.instructions}
        for op in self.instructions:
            for operand in op.operands:
                if isinstance(operand.owner, HloOp):
                    found[operand.owner].append(op)
        return {op: tuple(users) for op, users in found.items()}

    def with_opcode(self, *opcodes: str) -> Iterable[HloOp]:
        return (op for op in self.instructions if op.opcode in opcodes)

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        """One per array in the root, in the order of the kernel's results; nested tuples are flattened."""
        return tuple(as_array(leaf) for leaf in leaf_types(self.computation.root.type))

    @property
    def parameter_types(self) -> tuple[ArrayType, ...]:
        return tuple(as_array(parameter.result.type) for parameter in self.parameters)

    @property
    def elements(self) -> int:
        """Elements of the first result."""
        return math.prod(dims_of(self.result_types[0]))

    @property
    def place(self) -> Place | None:
        """Where the fusion instruction, or the computation that is compiled without a call, is written."""
        return place_of(self.call or self.computation)

    @property
    def smallest_output_bits(self) -> int:
        """Storage bits of an element of the narrowest result."""
        return min(element_of(type).bits for type in self.result_types)

    def __str__(self) -> str:
        parameters = ", ".join(type_text(type) for type in self.parameter_types)
        results = ", ".join(type_text(type) for type in self.result_types)
        return f"{self.name}: ({parameters}) -> ({results}), {len(self.instructions)} instructions"


def view_of(op: FusionOp | ComputationOp) -> FusionView:
    """The view of a fusion, or of a computation as if a fusion called it."""
    if isinstance(op, ComputationOp):
        return FusionView(op.sym_name.data, op, tuple(p.result for p in op.parameters), op.location)
    return FusionView(op.instruction_name.data, find_computation(op, op.calls), tuple(op.operands), op.location, op)


def once_per_view(
    analysis: Callable[Concatenate[FusionView, Arguments], Found],
) -> Callable[Concatenate[FusionView, Arguments], Found]:
    """A function of a view that computes what it answers once for each view: HLO that is viewed does not change."""

    @wraps(analysis)
    def found(view: FusionView, *args: Arguments.args, **named: Arguments.kwargs) -> Found:
        key = (analysis, args, tuple(named.items()))
        if key not in view.analyses:
            view.analyses[key] = analysis(view, *args, **named)
        return view.analyses[key]

    return found


def _needed(computation: ComputationOp) -> tuple[HloOp, ...]:
    """The instructions that the root needs, in program order."""
    needed = set[Operation]()
    pending = [computation.root.owner]
    while pending:
        op = pending.pop()
        if isinstance(op, HloOp) and op not in needed:
            needed.add(op)
            pending += [operand.owner for operand in op.operands]
    return tuple(op for op in computation.instructions if op in needed)
