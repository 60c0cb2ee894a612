"""The fusion view: a fusion's roots, parameters, operands and instructions, and the users of each.

    %f = hlo.fusion %x, %x calls @sum      ->   FusionView(name="f", computation=@sum, operands=(%x, %x),
                                                            parameters=(%p0, %p1), roots=(%add,), instructions=...)

Analyses and emitters read the module only through the view, so a computation that no fusion op calls (ENTRY itself, or a cluster made by
another compiler) can be compiled through a view, too.
A view is made once, after the passes on HLO, and passed on; analyses cache their results in it. It refuses nothing: see `refusals.py`.
The aliases of its results are those that HLO states; whether a kernel can write to such a buffer is decided in `buffers.py`:

    HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }         result 1 of ENTRY in the buffer of parameter 0
    fusion(a, b), output_to_operand_aliasing={{0}: (1, {})}             result 0 of the fusion in the buffer of b

Source: docs/reference/2 1.2, 1.3 point 1; seed document, "Tuples".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    aliased_operands,
    callees_of,
    enclosing_module,
    find_computation,
)
from xla_emitters.dialects.hlo.types import (
    AliasAttr,
    ArrayType,
    as_array,
    dims_of,
    element_of,
    leaf_types,
    type_text,
)
from xla_emitters.dialects.isa import isa
from xla_emitters.errors import Place
from xla_emitters.graph.entry import leaf_at
from xla_emitters.graph.overwrites import is_callers, is_last_use
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
SORTED_RUNS = "xla.sorted_runs"
"""Attribute of a computation whose kernel sorts runs of some elements along a dimension: both numbers (`pipelines/sorted_runs`)."""
SCANS = "xla.scans"
"""Attribute of a computation whose kernel scans rows, in an order of its own: the computations that it was merged from."""


@dataclass(frozen=True, eq=False)
class FusionView:
    """One computation that becomes one kernel, as analyses and emitters read it.

    name            of the fusion instruction (or of the computation): names the kernel
    computation     the computation that is cut into functions
    operands        the kernel's arguments at the call; a value that is passed twice is one buffer. Without a call, the parameters
    location        of the fusion instruction; also the location of the kernel's own loop and index code
    call            the fusion instruction, if there is one
    analyses        the cached results of `once_per_view` functions, by function and arguments
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
        """Number of a result -> the operand whose buffer it may be written to, if the kernel can."""
        return {} if self.call is None else declared_aliases(self.call, self.parameters)

    @property
    def other_compiler(self) -> str | None:
        """The kind of a fusion for another compiler, by its configuration; else None. `kind=` is ignored, as in XLA."""
        config = None if self.call is None else self.call.attributes.get("backend_config")
        named = _FOR_OTHER_COMPILERS.search(config.data) if isinstance(config, StringAttr) else None
        if named is None or (named.group(1) == "__custom_fusion" and _COPIED_SLICE.search(named.string)):
            return None
        return named.group(1)

    @cached_property
    def roots(self) -> tuple[HloOp, ...]:
        """The results: the computation's root, or the operands of the tuple at its root, nested ones flattened."""
        found, pending = list[HloOp](), [self.computation.root.owner]
        while pending:
            op = pending.pop()
            assert isinstance(op, HloOp)
            if isinstance(op, TupleOp):
                pending += [operand.owner for operand in reversed(op.operands)]
            else:
                found.append(op)
        return tuple(found)

    @cached_property
    def instructions(self) -> tuple[HloOp, ...]:
        """Those that the root needs, operands before users, else in program order; without unused parameters."""
        return _needed(self.computation)

    @cached_property
    def called(self) -> tuple[ComputationOp, ...]:
        """The distinct computations that instructions call for each element, directly or indirectly."""
        found, pending = dict[ComputationOp, None](), [self.computation]
        while pending:
            for op in _needed(pending.pop()):
                for callee in callees_of(op):
                    if callee not in found:
                        found[callee] = None
                        pending.append(callee)
        return tuple(found)

    @cached_property
    def users(self) -> dict[HloOp, tuple[HloOp, ...]]:
        """The users of each instruction that the root needs, once per operand."""
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
        """The source place of the fusion instruction, or of the computation that is compiled without a call."""
        return written_at(self.call or self.computation)

    @property
    def smallest_output_bits(self) -> int:
        """Storage bits of an element of the narrowest result."""
        return min(element_of(result).bits for result in self.result_types)

    def __str__(self) -> str:
        parameters = ", ".join(type_text(parameter) for parameter in self.parameter_types)
        results = ", ".join(type_text(result) for result in self.result_types)
        return f"{self.name}: ({parameters}) -> ({results}), {len(self.instructions)} instructions"


def view_of(op: FusionOp | ComputationOp) -> FusionView:
    """The view of a fusion, or of a computation as if a fusion called it."""
    if isinstance(op, ComputationOp):
        return FusionView(op.sym_name.data, op, tuple(p.result for p in op.parameters), op.location)
    return FusionView(op.instruction_name.data, find_computation(op, op.calls), tuple(op.operands), op.location, op)


def is_scheduled(view: FusionView) -> bool:
    """Whether its kernel was decided to have a schedule of programs, and which: passes leave such a fusion whole."""
    return not {STITCHED, SORTED_RUNS}.isdisjoint(view.computation.attributes)


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


def declared_aliases(call: FusionOp, parameters: Sequence[ParameterOp]) -> dict[int, SSAValue]:
    """Number of a result of a fusion -> the operand whose buffer it is written to, as the module or the fusion states.

    parameters   of the computation that the fusion calls
    """
    return _declared_by_module(call, parameters) | _declared_by_call(call)


def _declared_by_module(call: FusionOp, parameters: Sequence[ParameterOp]) -> dict[int, SSAValue]:
    """The aliases of the fusion's results and operands by the module's `input_output_alias`."""
    module, entry = enclosing_module(call), call.parent_op()
    aliases = module and module.attributes.get("hlo.input_output_alias")
    assert entry is None or isinstance(entry, ComputationOp)
    if entry is None or not entry.is_entry or aliases is None or not isa(aliases, ArrayAttr[AliasAttr]):
        return {}
    wanted = dict[int, SSAValue]()
    for alias in aliases:
        if alias.index:
            continue
        result = _leaf_at(entry.root, alias.output, call)
        operand = entry.parameters[alias.parameter].result
        # Donated or not, an array that a later instruction reads must be kept: then the result is copied, or has other memory.
        if result is not None and _is_as_the_fusion_has_it(operand, call, parameters) and is_last_use(operand, call):
            wanted[result] = operand
    return wanted


def _is_as_the_fusion_has_it(operand: SSAValue, call: FusionOp, parameters: Sequence[ParameterOp]) -> bool:
    """Whether ENTRY's array and the fusion's have the same storage: HLO may declare only one of them as packed."""
    given = zip(call.operands, parameters, strict=True)
    types = [parameter.result.type for value, parameter in given if value is operand]
    return bool(types) and all(result_type == operand.type for result_type in types)


def _declared_by_call(call: FusionOp) -> dict[int, SSAValue]:
    """The aliases stated by the fusion's own `output_to_operand_aliasing`."""
    if call.output_to_operand_aliasing is None:
        return {}
    wanted = dict[int, SSAValue]()
    for output, operand, inside in aliased_operands(call.output_to_operand_aliasing):
        result, value = _leaf_at(call.result, output, call), call.operands[operand]
        # The caller's array must keep its value; any other array may be overwritten by the last instruction that reads it.
        if result is not None and not inside and (is_callers(value) or is_last_use(value, call)):
            wanted[result] = value
    return wanted


def _leaf_at(value: SSAValue, path: Sequence[int], call: FusionOp) -> int | None:
    """The number of `call`'s result at `path` in the value of ENTRY; None if another instruction makes it."""
    path = list(path)
    while not isinstance(value.owner, FusionOp):
        match value.owner:
            case TupleOp() if path:
                value = value.owner.operands[path.pop(0)]
            case GetTupleElementOp():
                path.insert(0, value.owner.index.value.data)
                value = value.owner.operands[0]
            case _:
                return None
    return leaf_at(value.type, path) if value.owner is call else None
