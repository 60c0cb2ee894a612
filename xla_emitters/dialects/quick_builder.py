"""Insertion of single ops, in fewer calls than xDSL's builder makes; an op of xDSL's own class becomes one of ours (`completion.py`).

    builder.insert(op)       tuples of one op, through the rewriter, and a walk up from the block     ->  one insertion

Source: xDSL, xdsl/builder.py, xdsl/rewriter.py, xdsl/ir/core.py.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from xdsl import builder as xdsls
from xdsl.builder import Builder
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.completion import adopt
from xla_emitters.dialects.quick_op import QuickOp


class QuickBuilder(Builder):
    """xDSL's builder."""

    def insert(self, op: Any, insertion_point: InsertPoint | None = None) -> Any:
        """Inserts an op, or several, and returns what it was given."""
        if isinstance(op, QuickOp) and self._name_hint is None and xdsls._current_builder.builder is None:
            insert_op(op, self.insertion_point if insertion_point is None else insertion_point)
            for callback in self.operation_insertion_handler:
                callback(op)
            return op
        for each in (op,) if isinstance(op, Operation) else op:
            adopt(each)
        return super().insert(op, insertion_point)


def insert_op(op: Operation, point: InsertPoint) -> None:
    """`Rewriter.insert_op` for one op. raises ValueError if it is in a block already, or the block is inside of it"""
    block, after = point.block, point.insert_before
    if op.regions or op.parent is not None:
        if after is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, after)
        return
    before = block._last_op if after is None else after._prev_op
    op.parent = block
    op._prev_op, op._next_op = before, after
    if before is None:
        block._first_op = op
    else:
        before._next_op = op
    if after is None:
        block._last_op = op
    else:
        after._prev_op = op
