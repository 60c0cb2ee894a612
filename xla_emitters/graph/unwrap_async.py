"""Replaces asynchronous instructions by the plain ones, at the place of their start. On HLO.

    wrapped { x = f32[8] parameter(0)
              ROOT f = f32[8] fusion(x), calls=g }
    s = ((f32[8]), f32[8]) async-start(a), calls=wrapped    ->      f = f32[8] fusion(a), calls=g
    d = f32[8] async-done(s)

    s = (f32[8], f32[8], u32[]) copy-start(a)               ->      d = f32[8] copy(a)
    d = f32[8] copy-done(s)

    s = (f32[4], f32[8]) all-gather-start(a), ...                  s = f32[8] all-gather(a), ...
    ...                                                            ...
    d = f32[8] all-gather-done(s)                                  b = (f32[8], f32[4]) opt-barrier(tuple(s, a))
                                                                   d = f32[8] get-tuple-element(b), index=0

`fusion-start`, `custom-call-start`, `call-start` ... are read as `async-start` of a computation with that one instruction, which gets the
start's attributes (`backend_config`, `metadata` ...) unless it has its own. XLA starts
early what may overlap with other work; one stream gives the same values. Where several devices take part, the barrier is the place where
the program waits: until there the operands stay as they are, and their memory is in use. A start with other readers than its updates
and its done stays, and planning refuses it.
Source: docs/reference/1 6.8; XLA async_wrapper.cc, the inverse.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.collectives import is_alone
from xla_emitters.dialects.hlo.computation import (
    CallingOp,
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    find_computation,
)
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.library_calls import is_collective
from xla_emitters.dialects.hlo.rule_ops import WAITS_FOR, RuleOp
from xla_emitters.dialects.hlo.types import is_array, tuple_type
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.inlining import erase_unused, inline, insert
from xla_emitters.rewrite.kernel_pass import KernelPass

_COLLECTIVES = ("all-reduce", "all-gather", "collective-permute")
_DONES = {
    "async-start": "async-done",
    "copy-start": "copy-done",
    **{f"{name}-start": f"{name}-done" for name in _COLLECTIVES},
}


class UnwrapAsyncPass(KernelPass):
    name = "xla-unwrap-async"

    def apply_to(self, op: ModuleOp) -> None:
        wrapped = dict[ComputationOp, None]()
        for computation in control_computations(op):
            starts = [each for each in computation.instructions if each.opcode in _DONES]
            names = {each.instruction_name.data for each in computation.instructions} if starts else set[str]()
            for start in starts:
                updates, ends = _followers(start)
                others = [end for end in ends if not (isinstance(end, HloOp) and end.opcode == _DONES[start.opcode])]
                if others:
                    self.skip(start, f"'{others[0].name}' reads what it gives")
                    continue
                if isinstance(start, CallingOp):
                    wrapped |= dict.fromkeys(callees_of(start))
                _unwrap(start, updates, ends, names)
        erase_unused(op, wrapped)


def _followers(start: HloOp) -> tuple[list[HloOp], list[Operation]]:
    """The updates of a start, each after its operand, and all other readers of the start or of an update."""
    updates, ends = [start], list[Operation]()
    for op in updates:
        for use in op.result.uses:
            user = use.operation
            if isinstance(user, HloOp) and user.opcode == "async-update":
                updates.append(user)
            else:
                ends.append(user)
    return updates[1:], ends


def _unwrap(start: HloOp, updates: list[HloOp], dones: list[Operation], names: set[str]) -> None:
    """Replaces a start by the instructions that it runs, and each done by their value."""
    names -= {op.instruction_name.data for op in (start, *updates, *dones) if isinstance(op, HloOp)}
    if dones:
        done = dones[0]
        assert isinstance(done, HloOp)
        waits = False
        if isinstance(start, CallingOp) and start.opcode == "async-start":
            (callee,) = start.callees()
            callee = find_computation(start, callee.symbol)
            waits = any(isinstance(op, RuleOp) and is_collective(op) and not is_alone(op) for op in callee.instructions)
            value = inline(start, callee, start.operands, done.result.type, names)
            _hand_on_attributes(start, callee, value)
        elif start.opcode.removesuffix("-start") in _COLLECTIVES:
            properties = {name: value for name, value in start.properties.items() if name != "name"}
            plain_class = HLO_OPS[start.opcode.removesuffix("-start")]
            assert isinstance(start, RuleOp)
            waits = not is_alone(start)
            name = (start if waits else done).instruction_name.data
            plain = plain_class(list(start.operands), done.result.type, name, properties)
            plain.attributes = dict(start.attributes)
            value = insert(plain, start, start if waits else done, names)
        else:
            copy = CopyOp([start.operands[0]], done.result.type, done.instruction_name.data)
            value = insert(copy, start, done, names)
        for op in dones:
            assert isinstance(op, HloOp)
            Rewriter.replace_op(op, (), [_waited_for(op, value, start, names) if waits else value])
    for op in (*reversed(updates), start):
        Rewriter.erase_op(op)


def _waited_for(done: HloOp, value: SSAValue, start: HloOp, names: set[str]) -> SSAValue:
    """The value behind a barrier at the place of the done; the barrier reads what the start reads."""
    name = done.instruction_name.data
    read = [value, *(operand for operand in dict.fromkeys(start.operands) if is_array(operand.type))]
    whole = tuple_type([each.type for each in read])
    operand = insert(TupleOp(read, whole, f"{name}.reads"), done, done, names)
    made = HLO_OPS["opt-barrier"]([operand], whole, name, {})
    barrier = insert(made, done, done, names)
    made.attributes["frontend_attributes"] = StringAttr(f'{{{WAITS_FOR}="{start.instruction_name.data}"}}')
    element = GetTupleElementOp([barrier], value.type, f"{name}.value", {"index": IntegerAttr(0, i64)})
    return insert(element, done, done, names)


def _hand_on_attributes(start: HloOp, callee: ComputationOp, value: SSAValue) -> None:
    """Copies the start's attributes to the one instruction that it runs, whose value is `value`."""
    root, made = callee.root.owner, value.owner
    is_alone = all(isinstance(op, ParameterOp) or op is root for op in callee.instructions)
    if is_alone and isinstance(made, HloOp) and isinstance(root, HloOp) and made.opcode == root.opcode:
        made.attributes = {**start.attributes, **made.attributes}
