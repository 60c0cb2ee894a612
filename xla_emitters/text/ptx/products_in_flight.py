"""Registers that are not written yet: used after `wgmma.mma_async`, or `tcgen05.ld`, without a wait in between.

    wgmma.mma_async ... {%f1, ...};  wgmma.commit_group;  add.f32 %f9, %f1, %f2;        uses %f1: a fault
    tcgen05.ld ... {%f1, ...}, [%r1];  add.f32 %f9, %f1, %f2;                           uses %f1: the load is complete then

Of `wgmma` only what is in flight on all ways to an instruction is reported. Triton 3.9 and NVIDIA's CuTe 4.8 use what `tcgen05.ld` loads
without `tcgen05.wait::ld`, which they leave to what must be ordered after the load. A `mov` of such a register makes another one: ptxas
takes it as a name. Source: PTX ISA 8.8, 9.7.15.7 "Asynchronous wgmma.wait_group".
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TypeAlias

from xla_emitters.text.ptx.flow import Flow, PtxBlock
from xla_emitters.text.ptx.syntax import Instruction, PtxLiteral, Register

_State: TypeAlias = tuple[frozenset[Register], ...]
"""The registers that may be in flight: those of loads, then those of each group of products, oldest first; the last group is open."""
_NONE: frozenset[Register] = frozenset()
PRODUCT, LOAD = "wgmma", "tcgen05.ld"


def unwaited_registers(flow: Flow) -> dict[int, tuple[str, Register]]:
    """id of an instruction -> a register that it uses before it was waited for, behind what writes it."""
    if not any(_writer(instruction) for node in flow.nodes for instruction in node.instructions):
        return {}
    at_start: dict[PtxBlock, _State] = {flow.nodes[0]: (_NONE, _NONE)}
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
            if (used := _used(flow, state, instruction)) is not None:
                found[id(instruction)] = LOAD if used in state[0] else PRODUCT, used
            state = _after(flow, state, instruction)
    return found


def _used(flow: Flow, state: _State, instruction: Instruction) -> Register | None:
    """A register in flight that an instruction uses."""
    if instruction.parts[0] == "mov" or _writer(instruction):
        return None
    written, read = flow.touched(instruction)
    return next((register for register in (*read, *written) if any(register in group for group in state)), None)


def _writer(instruction: Instruction) -> str:
    """What writes registers after it was issued; "" for what has written its registers at once."""
    if instruction.parts[0] == PRODUCT:
        return PRODUCT
    return LOAD if instruction.parts[:2] == ("tcgen05", "ld") else ""


def _common(a: _State, b: _State) -> _State:
    """The loads of either, and the products that are in flight in both, newest groups first."""
    pairs = zip_longest(reversed(a[1:]), reversed(b[1:]), fillvalue=_NONE)
    groups = [one & other for one, other in pairs]
    while len(groups) > 1 and not groups[-1]:
        groups.pop()
    return (a[0] | b[0], *reversed(groups))


def _after(flow: Flow, state: _State, instruction: Instruction) -> _State:
    parts = instruction.parts
    if parts[0] == "mov":
        written, read = flow.touched(instruction)
        return tuple(group | set(written) if not group.isdisjoint(read) else group - set(written) for group in state)
    if _used(flow, state, instruction) in state[0]:
        state = (_NONE, *state[1:])
    if parts[0] not in (PRODUCT, "tcgen05"):
        return state
    loaded, *closed, opened = state
    match parts[1], instruction.operands:
        case "ld", _:
            return (loaded | set(flow.touched(instruction)[0]), *closed, opened)
        case "wait::ld", _:
            return (_NONE, *closed, opened)
        case "mma_async", _:
            return (loaded, *closed, opened | set(flow.touched(instruction)[0]))
        case "commit_group", _:
            return (loaded, *closed, opened, _NONE)
        case "wait_group", (PtxLiteral(value=most),):
            return (loaded, *closed[max(0, len(closed) - most) :], opened)
        case _:
            return state
