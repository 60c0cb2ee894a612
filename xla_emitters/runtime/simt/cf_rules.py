"""`cf`: branches between blocks. `code.Graph` joins the lanes that take different branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from xla_emitters.dialects.mlir import cf
from xla_emitters.dtypes import Array
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import BranchRuleResult, Parts, Rules
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.scalars import form_of

RULES = Rules()


def all_lanes(machine: Machine) -> Parts:
    """All active lanes take the first branch."""
    return [(None, 0)]


def by_condition(machine: Machine, condition: Array) -> Parts:
    """Lanes for which the condition holds take the first branch, the others the second."""
    parts = machine.split(condition)
    if isinstance(parts, bool):
        return [(None, 0 if parts else 1)]
    return [(parts[0], 0), (parts[1], 1)]


def by_case(cases: Sequence[Array], machine: Machine, flag: Array) -> Parts:
    """Branch 0 is the default, branch n + 1 that of cases[n]."""
    found: Parts = []
    entered = machine.active
    try:
        for way, case in enumerate(cases, start=1):
            parts = machine.split(flag == case)
            if parts is True:
                return [*found, (machine.active if found else None, way)]
            if parts is not False:
                found.append((parts[0], way))
                machine.active = parts[1]
        return [*found, (machine.active if found else None, 0)]
    finally:
        machine.active = entered


@RULES.branch(cf.BranchOp)
def branch(op: cf.BranchOp) -> BranchRuleResult:
    return (), all_lanes, [op.arguments]


@RULES.branch(cf.ConditionalBranchOp)
def conditional_branch(op: cf.ConditionalBranchOp) -> BranchRuleResult:
    return (op.cond,), by_condition, [op.then_arguments, op.else_arguments]


@RULES.branch(cf.SwitchOp)
def switch(op: cf.SwitchOp) -> BranchRuleResult:
    form = form_of(op.flag.type)
    cases: Sequence[int] = op.case_values.get_values() if op.case_values else ()
    wanted = [scalars.constant(form, case) for case in cases]
    left = iter(op.case_operands)
    operands = [tuple(islice(left, count)) for count in op.case_operand_segments.get_values()]
    return (op.flag,), partial(by_case, wanted), [op.default_operands, *operands]


@RULES.op(cf.AssertOp)
def assert_(op: cf.AssertOp) -> Callable[[Machine, Array], None]:
    return lambda machine, condition: machine.refuse(op, ~condition, f"fails: {op.msg.data}")
