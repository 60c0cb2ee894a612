"""Registers that are not written yet: used after `wgmma.mma_async`, or `tcgen05.ld`, without a wait on any way in between.

    wgmma.mma_async ... {%f1, ...};  wgmma.commit_group;  add.f32 %f9, %f1, %f2;        uses %f1
    tcgen05.ld ... {%f1, ...}, [%r1];  add.f32 %f9, %f1, %f2;  tcgen05.wait::ld;        uses %f1

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


def unwaited_registers(flow: Flow) -> dict[int, tuple[str, Register]]:
    """id of an instruction -> a register that it uses too early, behind what writes it."""
    instructions = [instruction for node in flow.nodes for instruction in node.instructions]
    writers = {register: name for i in instructions if (name := _writer(i)) for register in flow.touched(i)[0]}
    if not writers:
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
    found = dict[int, tuple[str, Register]]()
    for node, state in at_start.items():
        for instruction in node.instructions:
            written, read = flow.touched(instruction)
            if instruction.parts[0] != "mov" and not _writer(instruction):
                early = [register for register in (*read, *written) if any(register in group for group in state)]
                found |= {id(instruction): (writers.get(register, ""), register) for register in early[:1]}
            state = _after(flow, state, instruction)
    return found


def _writer(instruction: Instruction) -> str:
    """`wgmma` or `tcgen05.ld`; "" for what has written its registers at once."""
    if instruction.parts[0] == "wgmma":
        return "wgmma"
    return "tcgen05.ld" if instruction.parts[:2] == ("tcgen05", "ld") else ""


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
    if parts[0] not in ("wgmma", "tcgen05"):
        return state
    *closed, opened = state
    match parts[1], instruction.operands:
        case "wait::ld", _:
            return (_NONE,)
        case "mma_async" | "ld", _:
            return (*closed, opened | set(flow.touched(instruction)[0]))
        case "commit_group", _:
            return (*closed, opened, _NONE)
        case "wait_group", (PtxLiteral(value=most),):
            return (*closed[max(0, len(closed) - most) :], opened)
        case _:
            return state
