"""The memcpy emitter: every result is a contiguous range of bytes of a parameter. XLA copies it without a kernel; here it gets one.

    copy(p)                                                         all of p, in its own order
    f32[1,1,32,32] slice(p), slice={[0:1], [1:2], [0:32], [0:32]}    of f32[3,3,32,32]: 1024 neighbours

A copy needs no code of its own: this is the loop emitter under a name that tells users that a memcpy would do.
Source: docs/reference/2 1.3 "Memcpy thunk".
"""

from __future__ import annotations

from xla_emitters.device import Device
from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.shape_ops import SliceOp, rows
from xla_emitters.dialects.hlo.types import dims_of, minor_to_major
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.graph.heroes import is_bitcast
from xla_emitters.graph.view import FusionView


class MemcpyEmitter(LoopEmitter):
    """See the file's head."""

    name = "memcpy"

    def applies(self, view: FusionView, device: Device) -> str | None:
        """None, or why not: a result is computed, or it is not contiguous in a parameter."""
        for root in view.roots:
            if (reason := _why_no_run(root)) is not None:
                return reason
        return super().applies(view, device)


def _why_no_run(root: HloOp) -> str | None:
    op, moves = root, 0
    while not isinstance(op, ParameterOp):
        name = f"%{op.instruction_name.data}"
        match op:
            case CopyOp() if minor_to_major(op.result.type) == minor_to_major(op.operands[0].type):
                moves += 1
            case SliceOp() if _is_run(op):
                moves += 1
            case _ if is_bitcast(op):
                pass
            case _:
                return f"{name} ('{op.opcode}') is not a contiguous range of its operand"
        operand = owner_of(op.operands[0])
        op = operand
    return None if moves else f"%{root.instruction_name.data} is a parameter itself, or a bitcast of one"


def _is_run(op: SliceOp) -> bool:
    """Whether the elements are contiguous in memory: one index of each slower dimension, a range of one, all of each faster dimension."""
    whole, part = dims_of(op.operands[0]), dims_of(op.result)
    order = minor_to_major(op.result.type)
    has_gaps = any(stride != 1 and size > 1 for (_, _, stride), size in zip(rows(op.ranges), part, strict=True))
    if order != minor_to_major(op.operands[0].type) or has_gaps:
        return False
    cut = [dim for dim in order if part[dim] != whole[dim]]
    return all(part[dim] == 1 for dim in order[order.index(cut[0]) + 1 :]) if cut else True
