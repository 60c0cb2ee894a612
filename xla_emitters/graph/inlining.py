"""Replaces an instruction by the instructions of the computation that it runs, for `inline_calls`, `disc_inliner` and `unwrap_async`.

    g { x = f32[8] parameter(0)                                    n = f32[8] negate(a)
        n = f32[8] negate(x)
        ROOT s = f32[8] add(n, x) }                        ->      s = f32[8] add(n, a)
    ... c = f32[8] call(a), to_apply=g

Names that are taken get a number. HLO allows a parameter another layout than its operand, and the root another one than the result:
a copy converts between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TupleType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    CallOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dtypes import dtype
from xla_emitters.errors import VerifyError
from xla_emitters.graph.control_computations import callees_first
from xla_emitters.graph.names import rename
from xla_emitters.rewrite.symbols import symbols_in

MOST_INLINED = 1 << 20
"""Of a computation with those that it calls, once for each call: functions that call two others each double it."""


def inline(
    at: HloOp, callee: ComputationOp, operands: Sequence[SSAValue], ir_type: Attribute, names: set[str]
) -> SSAValue:
    """Clones the instructions of `callee` before the instruction `at`; returns the value of the root.

    operands  values for its parameters
    type      the type that the returned value must have
    names     of the instructions around `at`; new ones are added
    """
    values = dict[SSAValue, SSAValue]()
    for op in callee.instructions:
        if isinstance(op, ParameterOp):
            values[op.result] = laid_out(at, operands[op.number.value.data], op.result.type, names)
            continue
        made = op.clone()
        made.operands = [values[operand] for operand in op.operands]
        values[op.result] = insert(made, at, op, names)
    return laid_out(at, values[callee.root], ir_type, names)


def insert(made: HloOp, at: Operation, of: HloOp, names: set[str]) -> SSAValue:
    """Inserts an instruction made from `of` before `at`, under a name that is not in `names`; returns its value."""
    rename(made, names)
    made.location = of.location
    Rewriter.insert_op(made, InsertPoint.before(at))
    return made.result


def laid_out(at: HloOp, value: SSAValue, ir_type: Attribute, names: set[str], *, always_copy: bool = False) -> SSAValue:
    """`value` in the layouts of `ir_type`, before the instruction `at`: itself, or a copy; for a tuple, element by element."""
    return _laid_out(at, at, value, ir_type, names, always_copy=always_copy)


def lay_out_root(computation: ComputationOp, ir_type: Attribute) -> None:
    """The computation's root becomes one in the layouts of `ir_type`."""
    end, owner = computation.body.block.last_op, computation.root.owner
    if computation.root.type != ir_type and end is not None and isinstance(owner, HloOp):
        names = {op.instruction_name.data for op in computation.instructions}
        end.operands[0] = _laid_out(end, owner, computation.root, ir_type, names)


def lay_out_parameter(computation: ComputationOp, ir_type: Attribute) -> None:
    """The computation's only parameter becomes one in the layouts of `ir_type`; what reads it reads those that it had."""
    (parameter,) = computation.parameters
    wanted, behind = parameter.result.type, parameter.next_op
    if wanted == ir_type or behind is None:
        return
    names = {op.instruction_name.data for op in computation.instructions}
    value = Rewriter.replace_value_with_new_type(parameter.result, ir_type)
    readers = [(use.operation, use.index) for use in value.uses]
    found = _laid_out(behind, parameter, value, wanted, names)
    for reader, index in readers:
        reader.operands[index] = found


def _laid_out(
    at: Operation, of: HloOp, value: SSAValue, ir_type: Attribute, names: set[str], *, always_copy: bool = False
) -> SSAValue:
    if value.type == ir_type and not always_copy:
        return value
    name = of.instruction_name.data
    if not isinstance(ir_type, TupleType):
        return insert(CopyOp([value], ir_type, f"{name}.copy"), at, of, names)
    assert isinstance(value.type, TupleType)
    parts = list[SSAValue]()
    for index, (part, wanted) in enumerate(zip(value.type.types, ir_type.types, strict=True)):
        if (element := element_of_tuple(value, index)) is None:
            taken = GetTupleElementOp([value], part, f"{name}.{index}", {"index": IntegerAttr(index, i64)})
            element = insert(taken, at, of, names)
        parts.append(_laid_out(at, of, element, wanted, names, always_copy=always_copy))
    return insert(TupleOp(parts, ir_type, f"{name}.tuple"), at, of, names)


def element_of_tuple(value: SSAValue, index: int) -> SSAValue | None:
    """The element's own value, if `value` is the result of a `tuple`."""
    return value.owner.operands[index] if isinstance(value.owner, TupleOp) else None


def constant_instead(op: HloOp, value: int, element: str, names: set[str]) -> SSAValue:
    """A constant in place of an instruction, under its name."""
    found = dtype(element)
    names.discard(name := op.instruction_name.data)
    return insert(ConstantOp.from_array(np.array(value, found.numpy), found, name), op, op, names)


def erase_unused(module: ModuleOp, computations: Iterable[ComputationOp]) -> None:
    """Erases those of `computations` that no op refers to."""
    pending = [computation for computation in computations if not computation.is_entry]
    while pending:
        used = set(symbols_in(module))
        unused = [computation for computation in pending if computation.sym_name.data not in used]
        for computation in unused:
            Rewriter.erase_op(computation)
        pending = [computation for computation in pending if computation not in unused] if unused else []


def refuse_many_calls(module: ModuleOp) -> None:
    """raises VerifyError for a cycle of calls, and for calls that would be more than MOST_INLINED instructions"""
    sizes = dict[ComputationOp, int]()
    for each in callees_first([op for op in module.ops if isinstance(op, ComputationOp)], _called):
        sizes[each] = sum(1 for _ in each.instructions) + sum(map(sizes.__getitem__, _called(each)))
        if sizes[each] > MOST_INLINED:
            message = f"calls make more than {MOST_INLINED} instructions of computation '{each.sym_name.data}'"
            raise VerifyError(message, stage="plan", place=written_at(each))


def inline_calls(module: ModuleOp) -> None:
    """Inlines every `call`, also inside of computations that calls or loops run.

    raises as `refuse_many_calls`
    """
    calls = [op for op in module.walk() if isinstance(op, CallOp)]
    if not calls:
        return
    refuse_many_calls(module)
    called = {find_computation(op, op.to_apply) for op in calls}
    others = (op for op in module.walk() if isinstance(op, CallingOp) and not isinstance(op, CallOp))
    kept = {callee.symbol.root_reference.data for op in others for callee in op.callees()}
    gone = {op for op in called if not op.is_entry and op.sym_name.data not in kept}
    for computation in module.ops:
        if isinstance(computation, ComputationOp) and computation not in gone:
            _inline_into(computation)
    for computation in gone:
        Rewriter.erase_op(computation)


def _called(computation: ComputationOp) -> Iterator[ComputationOp]:
    return (find_computation(op, op.to_apply) for op in computation.instructions if isinstance(op, CallOp))


def _inline_into(computation: ComputationOp) -> None:
    """Inlines the calls in a computation, in program order, including those that inlining inserts."""
    pending = [op for op in computation.instructions if isinstance(op, CallOp)][::-1]
    names = {op.instruction_name.data for op in computation.instructions if not isinstance(op, CallOp)}
    inner = set[CallOp]()
    while pending:
        call = pending.pop()
        if call in inner:
            names.discard(call.instruction_name.data)
        before = call.prev_op
        made = inline(call, find_computation(call, call.to_apply), call.operands, call.result.type, names)
        first = before.next_op if before is not None else computation.body.block.first_op
        came = list(_calls_between(first, call))
        inner.update(came)
        pending += reversed(came)
        Rewriter.replace_op(call, (), [made])


def _calls_between(first: Operation | None, end: Operation) -> Iterator[CallOp]:
    while first is not None and first is not end:
        if isinstance(first, CallOp):
            yield first
        first = first.next_op
