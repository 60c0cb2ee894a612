"""The fusion view: what is computed (roots), from what (parameters, operands), by which instructions, who uses whom.

    %f = hlo.fusion %x, %x calls @sum      ->   FusionView(name="f", computation=@sum, operands=(%x, %x),
                                                            parameters=(%p0, %p1), roots=(%add,), instructions=...)

Analyses and emitters read this and nothing else of the module, so a computation that is not called by a fusion op (ENTRY itself, or a
cluster that some other compiler cut out) is compiled by making a view of it.
What no emitter takes is refused here, by name: custom and Triton fusions, dimensions only known at run time, tuples inside.
Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, place_of
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    FusionOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import (
    ArrayType,
    as_array,
    dims_of,
    element_of,
    has_dynamic_dims,
    is_array,
    leaf_types,
    type_text,
)
from xla_emitters.errors import Place, Unsupported

# Triton's, custom and cuDNN's fusions of XLA:GPU; fusions that XLA:CPU gives to its libraries.
_FOR_OTHER_COMPILERS = re.compile(
    r'"kind"\s*:\s*"(__triton[^"]*|__custom_fusion|__cudnn[^"]*|__(?:ynn|xnn|onednn)_fusion)"'
)


@dataclass(frozen=True, eq=False)
class FusionView:
    """One computation that becomes one kernel.

    name       of the fusion instruction (or of the computation): names the kernel
    operands   what the kernel's arguments are at the call; a value that stands twice is one buffer. Without a call, the parameters
    location   of the fusion instruction: what the kernel's own loop and index code comes from
    call       the fusion instruction itself, if there is one
    """

    name: str
    computation: ComputationOp
    operands: tuple[SSAValue, ...]
    location: LocationAttr
    call: FusionOp | None = None

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
    """The view of a fusion, or of a computation as if a fusion called it.

    raises   Unsupported, with its place, for fusions that no emitter here compiles
    """
    if isinstance(op, ComputationOp):
        view = FusionView(op.sym_name.data, op, tuple(p.result for p in op.parameters), op.location)
    else:
        _refuse_kind(op)
        view = FusionView(op.instruction_name.data, find_computation(op, op.calls), tuple(op.operands), op.location, op)
    _refuse_values(view)
    return view


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


def _refuse_kind(fusion: FusionOp) -> None:
    """What XLA gives to another compiler says so in its configuration; the `kind=` decides nothing, there and here."""
    config = fusion.attributes.get("backend_config")
    named = _FOR_OTHER_COMPILERS.search(config.data) if isinstance(config, StringAttr) else None
    if named:
        raise Unsupported(
            f"fusion %{fusion.instruction_name.data} is of kind '{named.group(1)}'",
            stage="emit",
            place=place_of(fusion),
            help="fusions for Triton, cuDNN, custom kernels and XLA:CPU's libraries are not compiled; all others are",
        )


def _refuse_values(view: FusionView) -> None:
    for op in (*view.instructions, *(parameter for parameter in view.parameters if parameter not in view.users)):
        leaves = leaf_types(op.result.type)
        if not leaves or not all(map(is_array, leaves)):
            raise op.unsupported(f"no code for {type_text(op.result.type)}")
        if has_dynamic_dims(op.result.type):
            raise op.unsupported(f"no code for dimensions only known at run time ({type_text(op.result.type)})")
        if isinstance(op, ParameterOp | ConstantOp) and not is_array(op.result.type):
            raise op.unsupported("no code inside a fusion", help="only the root of a fusion may be a tuple")
        for user in view.users.get(op, ()):
            if isinstance(op, TupleOp) and not isinstance(user, TupleOp):
                raise user.unsupported("no code for a tuple", help="only the root of a fusion may be a tuple")
    for leaf in leaf_types(view.computation.root.type):
        if not is_array(leaf):
            raise Unsupported(
                f"a result of fusion %{view.name} is {type_text(leaf)}",
                stage="emit",
                place=place_of(view.computation.root.owner) if isinstance(view.computation.root.owner, HloOp) else None,
                help="results must be arrays",
            )
