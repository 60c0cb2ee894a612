"""Registers of products that are not there yet: used after `wgmma.mma_async` without a `wgmma.wait_group` on any way in between.

    wgmma.mma_async ... {%f1, ...};  wgmma.commit_group;  add.f32 %f9, %f1, %f2;        uses %f1

Only what is in flight on all ways to an instruction is reported. A `mov` of such a register makes another one: ptxas takes it as a name.
Source: PTX ISA 8.8, 9.7.15.7 "Asynchronous wgmma.wait_group".
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TypeAlias

from xla_emitters.text.ptx.flow import Flow, PtxBlock
from xla_emitters.text.ptx.syntax import Instruction, PtxLiteral, Register

_State: TypeAlias = tuple[frozenset[Register], ...]
"""The registers of each group that may be in flight, oldest first; the last group is open."""
_NONE: frozenset[Register] = frozenset()


def unwaited_registers(flow: Flow) -> dict[int, Register]:
    """id of an instruction -> a register that it uses too early."""
    if not any(instruction.parts[0] == "wgmma" for node in flow.nodes for instruction in node.instructions):
        return {}
    at_start: dict[PtxBlock, _State] = {flow.nodes[0]: (_NONE,)}
    pending = [flow.nodes[0]]
    while pending:
        node = pending.pop()
        state = at_start[node]
        for instruction in node.instructions:
            state = _after(flow, state, instruction)
        for way in node.ways:
            known = at_start.get(way)
            merged = state if known is None else _common(known, state)
            if merged != known:
                at_start[way] = merged
                pending.append(way)
    found = dict[int, Register]()
    for node, state in at_start.items():
        for instruction in node.instructions:
            written, read = flow.touched(instruction)
            if instruction.parts[0] not in ("mov", "wgmma"):
                early = [register for register in (*read, *written) if any(register in group for group in state)]
                found |= {id(instruction): register for register in early[:1]}
            state = _after(flow, state, instruction)
    return found


def _common(a: _State, b: _State) -> _State:
    """What is in flight in both states, newest groups first."""
    pairs = zip_longest(reversed(a), reversed(b), fillvalue=_NONE)
    groups = [one & other for one, other in pairs]
    while len(groups) > 1 and not groups[-1]:
        groups.pop()
    return tuple(reversed(groups))


def _after(flow: Flow, state: _State, instruction: Instruction) -> _State:
    parts = instruction.parts
    if parts[0] == "mov":
        written, read = flow.touched(instruction)
        return tuple(group | set(written) if not group.isdisjoint(read) else group - set(written) for group in state)
    if parts[0] != "wgmma":
        return state
    *closed, opened = state
    match parts[1], instruction.operands:
        case "mma_async", _:
            return (*closed, opened | set(flow.touched(instruction)[0]))
        case "commit_group", _:
            return (*closed, opened, _NONE)
        case "wait_group", (PtxLiteral(value=most),):
            return (*closed[max(0, len(closed) - most) :], opened)
        case _:
            return state
