"""Builds a module of independent fusions: each gets parameters of its own, whatever computation it was in.

    ENTRY main, a body of a loop ...             ENTRY main
      %a = fusion(%x, %y), calls=first             %p0, %p1, %p2 = parameters
      %c = custom-call(%a)               ->        %a = fusion(%p0, %p1), calls=first
      %b = fusion(%c), calls=second                %b = fusion(%p2), calls=second
                                                   ROOT %fusions = tuple(%a, %b)

For kernels of a module that cannot run as a whole, and to look at one fusion without the rest. The new module contains only the
computations that the fusions call, and none of the old module's attributes about ENTRY's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
    find_computation,
    fresh_name,
    reached_from,
)
from xla_emitters.dialects.hlo.types import tuple_type
from xla_emitters.graph.names import rename


def isolate_fusions(module: ModuleOp, fusions: Sequence[FusionOp]) -> ModuleOp:
    """A new module whose ENTRY calls these fusions of `module`, which stays as it is; see the file's head.

    The result is a tuple, one element per fusion; for one fusion it is that fusion's result. Names that two fusions share get a number.
    """
    reached = set(reached_from(find_computation(fusion, fusion.calls) for fusion in fusions))
    called = [op for op in module.ops if isinstance(op, ComputationOp) and op in reached]
    names = set[str]()
    parameters, calls = list[ParameterOp](), list[FusionOp]()
    for fusion in fusions:
        call = fusion.clone()
        rename(call, names)
        given = dict[SSAValue, SSAValue]()
        for operand in dict.fromkeys(fusion.operands):
            parameter = ParameterOp(len(parameters), operand.type, f"{call.instruction_name.data}.{len(given)}")
            rename(parameter, names)
            parameter.location = fusion.location
            parameters.append(parameter)
            given[operand] = parameter.result
        call.operands = [given[operand] for operand in fusion.operands]
        call.location = fusion.location
        calls.append(call)
    results = [call.result for call in calls]
    made = list[HloOp]([*parameters, *calls])
    if len(results) > 1:
        made.append(TupleOp(results, tuple_type([result.type for result in results]), fresh_name("fusions", names)))
    block = Block([*made, ReturnOp(made[-1].result)])
    entry = ComputationOp(fresh_name("main", {op.sym_name.data for op in called}), block, entry=True)
    alone = ModuleOp([*(computation.clone() for computation in called), entry], {}, module.sym_name)
    for op in (made[-1], entry, alone):
        op.location = module.location
    return alone
