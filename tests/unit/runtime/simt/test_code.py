"""The order in which blocks run, and that values are dropped after their last use."""

from itertools import pairwise

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from xdsl.ir import Block, Region

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir.cf import BranchOp
from xla_emitters.dialects.mlir.func import FuncOp, ReturnOp
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt.block_order import loops_together, reachable
from xla_emitters.runtime.simt.code import Compiler
from xla_emitters.runtime.simt.execute import RULES
from xla_emitters.runtime.simt.machine import Machine
from xla_emitters.runtime.simt.memory import Memory


def order_of(edges: dict[str, list[str]]) -> list[str]:
    """The names of the blocks of a graph, in the order in which they run."""
    text = "func.func private @f(%c: i1) {\n  cf.br ^entry\n"
    for name, successors in edges.items():
        match successors:
            case []:
                branch = "return"
            case [one]:
                branch = f"cf.br ^{one}"
            case [one, two]:
                branch = f"cf.cond_br %c, ^{one}, ^{two}"
            case _:
                raise AssertionError
        text += f"^{name}:\n  {branch}\n"
    function = parse_ir(text + "}").body.block.first_op
    assert isinstance(function, FuncOp)
    names = {block: name for block, name in zip(function.body.blocks, ["start", *edges], strict=True)}
    blocks: list[Block] = loops_together(reachable(function.body))
    return [names[block] for block in blocks][1:]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_loop_comes_before_what_follows_it(is_swapped):
    """Whichever way round the branch is written."""
    head = ["exit", "body"] if is_swapped else ["body", "exit"]
    assert order_of({"entry": ["head"], "head": head, "body": ["head"], "exit": []}) == [
        "entry",
        "head",
        "body",
        "exit",
    ]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_nested_loops_stand_together(is_swapped):
    turn = (lambda pair: pair[::-1]) if is_swapped else (lambda pair: pair)
    edges = {
        "entry": ["outer"],
        "outer": turn(["pre", "exit"]),
        "pre": ["inner"],
        "inner": turn(["body", "latch"]),
        "body": ["inner"],
        "latch": ["outer"],
        "exit": [],
    }
    assert order_of(edges) == ["entry", "outer", "pre", "inner", "body", "latch", "exit"]


def test_both_sides_come_before_the_join():
    order = order_of({"entry": ["left", "right"], "left": ["join"], "right": ["join"], "join": []})
    assert order[0] == "entry"
    assert order[-1] == "join"


def test_unreachable_blocks_are_left_out():
    assert order_of({"entry": ["exit"], "dead": ["exit"], "exit": []}) == ["entry", "exit"]


def test_a_chain_longer_than_pythons_stack():
    blocks = [Block() for _ in range(2000)]
    for block, following in pairwise(blocks):
        block.add_op(BranchOp(following))
    blocks[-1].add_op(ReturnOp())
    region = Region(blocks)
    assert loops_together(reachable(region)) == blocks


def test_values_are_dropped_after_their_last_use():
    """Of the frame's values only the returned one and what is not yet used is left after the body has run."""
    module = parse_ir(f"""
func.func @main(%a: index, %b: index) -> index attributes {{xla.entry, {launch(2, 1)}}} {{
  %c = arith.addi %a, %b : index
  %unused = arith.muli %c, %c : index
  %true = arith.constant true
  %d = scf.if %true -> (index) {{
    %e = arith.addi %c, %c : index
    scf.yield %e : index
  }} else {{
    scf.yield %a : index
  }}
  return %d : index
}}""")
    function = Compiler.of(module, RULES).function("main")
    launched = LaunchDimensions((1, 1, 1), (2, 1, 1))
    machine = Machine(launched, np.zeros(1, np.int64), Memory(launched, np.zeros(1, np.int64)))
    frame = [None] * function.slots
    one = np.ones((1, 1), np.int64)
    (result,) = function.code.run(machine, frame, [one, one])
    assert result[0, 0] == 4
    left = [value for value in frame if value is not None]
    # The result, under the two names %d and %e.
    assert len(left) == 2
    assert all(value is result for value in left)
