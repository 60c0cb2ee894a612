"""Decides whether the loops of a host program are worth compiling to machine code.

    ^bb1: ... cond_br %p, ^bb2, ^bb3          in a loop: ^bb1, ^bb2
    ^bb2: ... br ^bb1
    ^bb3: return

A loop whose body only launches kernels, allocates buffers, and computes with host integers needs no Python: an iteration takes less than a
microsecond in machine code, and some tens in Python. A loop that calls the runtime's library gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.dialects.hlo.elementwise import is_elementwise
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of

OF_THE_HOST = frozenset(
    (
        *("alloc", "d2d", "d2h", "dealloc", "h2d", "h2h", "inc_ref"),
        *("ral_const", "ral_kernel_launch", "sync_on_stream"),
    )
)
"""Calls of the runtime that machine code does itself (`disc-direct-calls`)."""


def has_plain_loop(host: ModuleOp) -> bool:
    """Whether a host program (without regions) has a loop, and no loop calls the runtime's library."""
    found = False
    for function in [op for op in host.ops if isinstance(op, func.FuncOp)]:
        if any(isinstance(op, scf.ForOp | scf.WhileOp) for op in function.walk()):
            return False
        for block in _in_loops(list(function.body.blocks)):
            found = True
            if not all(map(_is_plain, block.ops)):
                return False
    return found


def _in_loops(blocks: list[Block]) -> Iterator[Block]:
    """The blocks that can be reached from themselves."""
    for block in blocks:
        seen, waiting = set[Block](), list(_following(block))
        while waiting:
            other = waiting.pop()
            if other not in seen:
                seen.add(other)
                waiting += _following(other)
        if block in seen:
            yield block


def _following(block: Block) -> tuple[Block, ...]:
    return tuple(block.last_op.successors) if block.last_op is not None else ()


def _is_plain(op: Operation) -> bool:
    if isinstance(op, DispatchOp):
        return op.call.data in OF_THE_HOST
    if isinstance(op, BufferOp):
        are_scalars = all(
            space_of(buffer.type) == "cpu" and not tensor_of(buffer.type).get_num_dims() for buffer in op.operands
        )
        return are_scalars and is_elementwise(op.as_hlo())
    return not op.regions
