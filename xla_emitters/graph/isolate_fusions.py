"""Builds a module of independent fusions: each gets parameters of its own, whatever computation it was in.

    ENTRY main, a body of a loop ...             ENTRY main
      %a = fusion(%x, %y), calls=first             %p0, %p1, %p2 = parameters
      %c = custom-call(%a)               ->        %a = fusion(%p0, %p1), calls=first
      %b = fusion(%c), calls=second                %b = fusion(%p2), calls=second
                                                   ROOT %results = tuple(%a, %b)

For kernels of a module that cannot run as a whole, and to look at one fusion without the rest. The new module contains only the
computations that the fusions call, and none of the old module's attributes about ENTRY's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
    find_computation,
    fresh_name,
    reached_from,
)
from xla_emitters.graph.fusion_parts import NewComputation
from xla_emitters.graph.names import rename


def isolate_fusions(module: ModuleOp, fusions: Sequence[FusionOp]) -> ModuleOp:
    """A new module whose ENTRY calls these fusions of `module`, which stays as it is; see the file's head.

    The result is a tuple, one element per fusion; for one fusion it is that fusion's result. Names that two fusions share get a number.
    """
    reached = set(reached_from(find_computation(fusion, fusion.calls) for fusion in fusions))
    called = [op for op in module.ops if isinstance(op, ComputationOp) and op in reached]
    inside, count, results = NewComputation(), 0, list[SSAValue]()
    for fusion in fusions:
        call, given = fusion.clone(), dict[SSAValue, SSAValue]()
        rename(call, inside.names)
        for operand in dict.fromkeys(fusion.operands):
            parameter = ParameterOp(count, operand.type, f"{call.instruction_name.data}.{len(given)}")
            given[operand], count = inside.insert(parameter, fusion), count + 1
        call.operands = [given[operand] for operand in fusion.operands]
        inside.names.discard(call.instruction_name.data)
        results.append(inside.insert(call, fusion))
    name = fresh_name("main", {op.sym_name.data for op in called})
    entry = inside.finish(name, results, module, is_entry=True)
    alone = ModuleOp([*(computation.clone() for computation in called), entry], {}, module.sym_name)
    alone.location = module.location
    return alone
