"""The fusion view: a fusion's roots, parameters, operands and instructions, and the users of each.

    %f = hlo.fusion %x, %x calls @sum      ->   HloFusion(name="f", computation=@sum, operands=(%x, %x),
                                                           parameters=(%p0, %p1), roots=(%add,), instructions=...)

Analyses and emitters read the module only through the view, so a computation that no fusion op calls (ENTRY itself, or a cluster made by
another compiler) can be compiled through a view, too. `FusionView` is the protocol; `HloFusion` is the view of HLO. Other forms of fusions,
such as fusions on buffers, have their own views.
A view is made once, after the passes on HLO, and passed on; analyses cache their results in it. It refuses nothing: see `refusals.py`.
Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    FusionOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.types import ArrayType, as_array, dims_of, element_of, leaf_types, type_text
from xla_emitters.errors import Place
from xla_emitters.graph.declared_aliases import declared_aliases
from xla_emitters.support.late_dataclass import dataclass

# Fusions of XLA:GPU for Triton and cuDNN and custom ones; fusions that XLA:CPU passes to its libraries.
_FOR_OTHER_COMPILERS = re.compile(
    r'"kind"\s*:\s*"(__triton[^"]*|__custom_fusion|__cudnn[^"]*|__(?:ynn|xnn|onednn)_fusion)"'
)

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")
# A copy of, or into, a slice: XLA may use a copy engine, but its computation is complete HLO.
_COPIED_SLICE = re.compile(r'"name"\s*:\s*"dynamic_slice_fusion"')


STITCHED = "xla.stitched"
"""Attribute of a computation whose kernel reads each row once, although it needs its reductions: how (`pipelines/stitched_kernel`)."""


class FusionView(Protocol):
    """One computation that becomes one kernel, as analyses and emitters read it.

    name            of the fusion instruction (or of the computation): names the kernel
    computation     the computation that is cut into functions
    operands        the kernel's arguments at the call; a value that is passed twice is one buffer. Without a call, the parameters
    wanted_aliases  number of a result -> the operand whose buffer it may be written to, if the kernel can
    roots           the results: the computation's root, or the operands of the tuple at its root, nested ones flattened
    instructions    those that the root needs, operands before users, else in program order; without unused parameters
    called          the distinct computations that instructions call for each element, directly or indirectly
    users           the users of each instruction that the root needs, once per operand
    result_types    one per array in the root, in the order of the kernel's results; nested tuples are flattened
    location        of the fusion instruction; also the location of the kernel's own loop and index code
    place           the source place of the fusion instruction, or of the computation that is compiled without a call
    other_compiler  the kind of a fusion for another compiler; else None
    analyses        the cached results of `once_per_view` functions, by function and arguments
    """

    @property
    def name(self) -> str: ...
    @property
    def computation(self) -> ComputationOp: ...
    @property
    def operands(self) -> tuple[SSAValue, ...]: ...
    @property
    def wanted_aliases(self) -> Mapping[int, SSAValue]: ...
    @property
    def parameters(self) -> tuple[ParameterOp, ...]: ...
    @property
    def roots(self) -> tuple[HloOp, ...]: ...
    @property
    def instructions(self) -> tuple[HloOp, ...]: ...
    @property
    def called(self) -> tuple[ComputationOp, ...]: ...
    @property
    def users(self) -> Mapping[HloOp, tuple[HloOp, ...]]: ...
    @property
    def result_types(self) -> tuple[ArrayType, ...]: ...
    @property
    def parameter_types(self) -> tuple[ArrayType, ...]: ...
    @property
    def elements(self) -> int:
        """Elements of the first result."""
        ...

    @property
    def smallest_output_bits(self) -> int:
        """Storage bits of an element of the narrowest result."""
        ...

    @property
    def location(self) -> LocationAttr: ...
    @property
    def place(self) -> Place | None: ...
    @property
    def other_compiler(self) -> str | None: ...
    @property
    def analyses(self) -> dict[object, Any]: ...
    def with_opcode(self, *opcodes: str) -> Iterable[HloOp]: ...


@dataclass(frozen=True, eq=False)
class HloFusion:
    """The view of a computation in an HLO module.

    call       the fusion instruction, if there is one
    The other fields are those of `FusionView`.
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

    @property
    def wanted_aliases(self) -> Mapping[int, SSAValue]:
        return {} if self.call is None else declared_aliases(self.call, self.parameters)

    @property
    def other_compiler(self) -> str | None:
        """The kind in the fusion's configuration; `kind=` is ignored, as in XLA."""
        config = None if self.call is None else self.call.attributes.get("backend_config")
        named = _FOR_OTHER_COMPILERS.search(config.data) if isinstance(config, StringAttr) else None
        if named is None or (named.group(1) == "__custom_fusion" and _COPIED_SLICE.search(named.string)):
            return None
        return named.group(1)

    @property
    def roots(self) -> tuple[HloOp, ...]:
        return _roots(self)

    @property
    def instructions(self) -> tuple[HloOp, ...]:
        return _instructions(self)

    @property
    def called(self) -> tuple[ComputationOp, ...]:
        return _called(self)

    @property
    def users(self) -> dict[HloOp, tuple[HloOp, ...]]:
        return _users(self)

    def with_opcode(self, *opcodes: str) -> Iterable[HloOp]:
        return (op for op in self.instructions if op.opcode in opcodes)

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        return tuple(as_array(leaf) for leaf in leaf_types(self.computation.root.type))

    @property
    def parameter_types(self) -> tuple[ArrayType, ...]:
        return tuple(as_array(parameter.result.type) for parameter in self.parameters)

    @property
    def elements(self) -> int:
        return math.prod(dims_of(self.result_types[0]))

    @property
    def place(self) -> Place | None:
        return written_at(self.call or self.computation)

    @property
    def smallest_output_bits(self) -> int:
        return min(element_of(result).bits for result in self.result_types)

    def __str__(self) -> str:
        parameters = ", ".join(type_text(parameter) for parameter in self.parameter_types)
        results = ", ".join(type_text(result) for result in self.result_types)
        return f"{self.name}: ({parameters}) -> ({results}), {len(self.instructions)} instructions"


def view_of(op: FusionOp | ComputationOp) -> HloFusion:
    """The view of a fusion, or of a computation as if a fusion called it."""
    if isinstance(op, ComputationOp):
        return HloFusion(op.sym_name.data, op, tuple(p.result for p in op.parameters), op.location)
    return HloFusion(op.instruction_name.data, find_computation(op, op.calls), tuple(op.operands), op.location, op)


def is_stitched(view: FusionView) -> bool:
    """Whether its kernel was decided to read each row once: passes leave such a fusion whole."""
    return STITCHED in view.computation.attributes


def once_per_view(
    analysis: Callable[Concatenate[FusionView, Arguments], Found],
) -> Callable[Concatenate[FusionView, Arguments], Found]:
    """Caches the results of a function of a view in the view, whose HLO does not change."""

    @wraps(analysis)
    def found(view: FusionView, *args: Arguments.args, **named: Arguments.kwargs) -> Found:
        key = (analysis, args, tuple(named.items()))
        if key not in view.analyses:
            view.analyses[key] = analysis(view, *args, **named)
        return view.analyses[key]

    return found


@once_per_view
def _instructions(view: FusionView) -> tuple[HloOp, ...]:
    return _needed(view.computation)


@once_per_view
def _roots(view: FusionView) -> tuple[HloOp, ...]:
    found = list[HloOp]()
    pending = [view.computation.root.owner]
    while pending:
        op = pending.pop()
        assert isinstance(op, HloOp)
        if isinstance(op, TupleOp):
            pending += [operand.owner for operand in reversed(op.operands)]
        else:
            found.append(op)
    return tuple(found)


@once_per_view
def _called(view: FusionView) -> tuple[ComputationOp, ...]:
    found = dict[ComputationOp, None]()
    pending = [view.computation]
    while pending:
        for op in _needed(pending.pop()):
            callees = op.callees() if isinstance(op, CallingOp) else ()
            for callee in (find_computation(op, called.symbol) for called in callees):
                if callee not in found:
                    found[callee] = None
                    pending.append(callee)
    return tuple(found)


@once_per_view
def _users(view: FusionView) -> dict[HloOp, tuple[HloOp, ...]]:
    found: dict[HloOp, list[HloOp]] = {op: [] for op in view.instructions}
    for op in view.instructions:
        for operand in op.operands:
            if isinstance(operand.owner, HloOp):
                found[operand.owner].append(op)
    return {op: tuple(users) for op, users in found.items()}


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
