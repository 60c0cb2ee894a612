"""Where a block is split, what moves, and that no block of the region is counted."""

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Region

from xla_emitters.rewrite.split import split_before


def refuse(*_: object) -> int:
    raise AssertionError("the blocks of the region are counted")


@pytest.mark.parametrize("at", range(4))
def test_ops_from_there_on_move_to_a_new_block_behind(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Region, "get_block_index", refuse)
    monkeypatch.setattr(Region, "insert_block", refuse)
    ops = [test.TestOp() for _ in range(4)]
    first, last = Block(ops), Block()
    region = Region([first, last])
    behind = split_before(ops[at], (i32, i32))
    assert [block for block in region.blocks] == [first, behind, last]
    assert [*first.ops] == ops[:at]
    assert [*behind.ops] == ops[at:]
    assert [argument.type for argument in behind.args] == [i32, i32]
    assert all(op.parent is behind for op in ops[at:])
