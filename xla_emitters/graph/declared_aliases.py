"""The aliases of a fusion's results that HLO states: `input_output_alias` of the module, `output_to_operand_aliasing` of the fusion.

    HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }         result 1 of ENTRY in the buffer of parameter 0
    fusion(a, b), output_to_operand_aliasing={{0}: (1, {})}             result 0 of the fusion in the buffer of b

Whether a kernel can write to that buffer is decided in `buffers.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    aliased_operands,
    enclosing_module,
)
from xla_emitters.dialects.hlo.types import AliasAttr, leaf_types, tuple_types
from xla_emitters.dialects.isa import isa
from xla_emitters.graph.overwrites import is_callers, is_last_use


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
    leaf, part_type = 0, value.type
    for number in path:
        before = tuple_types(part_type)[:number]
        leaf, part_type = leaf + sum(len(leaf_types(part)) for part in before), tuple_types(part_type)[number]
    return leaf if value.owner is call else None
