"""Loops that never end are found by a round that repeats; a loop that ends is never refused."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt import execute

NUMBERS = np.arange(64)


def while_loop(update: str, condition: str) -> str:
    """%r = the last %n of a loop that begins with %a; `update` makes %next, `condition` %more."""
    return f"""
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %forty = arith.constant 40 : i32
    %r = scf.while (%n = %a) : (i32) -> (i32) {{
      {condition}
      scf.condition(%more) %n : i32
    }} do {{
    ^bb0(%n: i32):
      {update}
      scf.yield %next : i32
    }}"""


def branches(update: str, condition: str) -> str:
    """The same with branches, in an execute_region."""
    return f"""
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %forty = arith.constant 40 : i32
    %r = scf.execute_region -> i32 {{
      cf.br ^head(%a : i32)
    ^head(%n: i32):
      {condition}
      cf.cond_br %more, ^body, ^end
    ^body:
      {update}
      cf.br ^head(%next : i32)
    ^end:
      scf.yield %n : i32
    }}"""


LOOPS = {"scf.while": while_loop, "cf.br": branches}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("update", "condition", "first"),
    [
        ("%next = arith.addi %n, %zero : i32", "%more = arith.cmpi sge, %n, %forty : i32", 40),  # stands still
        ("%next = arith.xori %n, %one : i32", "%more = arith.cmpi sge, %n, %forty : i32", 40),  # goes to and fro
        # 64 and above go down to 40 and stay; 33 to 39 end when they are 40
        (
            "%d = arith.cmpi eq, %n, %forty : i32\n%m = arith.subi %n, %one : i32\n%next = arith.select %d, %n, %m : i32",
            "%more = arith.cmpi sge, %n, %forty : i32",
            40,
        ),
    ],
)
def test_lanes_that_never_end_among_others_that_do(loop: str, update: str, condition: str, first: int) -> None:
    """The message names the first lane that goes on."""
    where = f"block {first // 32}, thread {first % 32} never ends: round \\d+ begins with the values of round \\d+"
    with pytest.raises(ExecutionError, match=where):
        per_thread(LOOPS[loop](update, condition), "i32", a=("i32", NUMBERS))


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_of_many_rounds_end(loop: str) -> None:
    """Each lane counts to its own limit: up to 3,000 rounds, in which single lanes go on alone."""
    start = -np.arange(0, 3000, 47)
    ops = LOOPS[loop]("%next = arith.addi %n, %one : i32", "%more = arith.cmpi slt, %n, %forty : i32")
    assert per_thread(ops, "i32", a=("i32", start)).tolist() == [40] * start.size


@pytest.mark.parametrize("loop", LOOPS)
def test_a_counter_without_end_is_stopped_by_the_callers_limit(loop: str) -> None:
    ops = LOOPS[loop]("%next = arith.addi %n, %two : i32", "%more = arith.cmpi ne, %n, %one : i32")
    with pytest.raises(ExecutionError, match="goes on for more than 500 rounds"):
        per_thread(ops, "i32", max_rounds=500, a=("i32", NUMBERS * 2))
    ends = LOOPS[loop]("%next = arith.addi %n, %one : i32", "%more = arith.cmpi slt, %n, %forty : i32")
    with pytest.raises(ExecutionError, match="goes on for more than 30 rounds"):
        per_thread(ends, "i32", max_rounds=30, a=("i32", NUMBERS))
    assert per_thread(ends, "i32", max_rounds=50, a=("i32", NUMBERS)).tolist() == [max(40, n) for n in range(64)]


def memory_loop(body: str, rounds: int) -> str:
    """Loops without values of their own: what goes on is in memory."""
    return f"""
llvm.func @main(%p: !llvm.ptr {{llvm.align = 16 : index}}) attributes {{nvvm.kernel, {launch(1, 1)}}} {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %end = llvm.mlir.constant({rounds} : i32) : i32
  llvm.br ^head
^head:
  %n = llvm.load %p : !llvm.ptr -> i32
  {body}
  %more = llvm.icmp "ne" %n, %end : i32
  llvm.cond_br %more, ^head, ^out
^out:
  llvm.return
}}"""


def test_a_loop_whose_counter_is_in_memory_ends() -> None:
    count = np.zeros(1, np.int32)
    execute(parse_ir(memory_loop("%m = llvm.add %n, %one : i32\n  llvm.store %m, %p : i32, !llvm.ptr", 700)), [count])
    assert count.tolist() == [701]


def test_waiting_for_what_is_never_written() -> None:
    with pytest.raises(ExecutionError, match=r"never ends.* nothing was written between"):
        execute(parse_ir(memory_loop("", 700)), [np.zeros(1, np.int32)])
    found = r"nothing was written between them; only 2 of the grid's 3 blocks run at once here"
    with pytest.raises(ExecutionError, match=found):
        execute(
            parse_ir(memory_loop("", 700)),
            [np.zeros(1, np.int32)],
            launch=LaunchDimensions((3, 1, 1), (1, 1, 1)),
            chunk_blocks=2,
        )
