"""Structured control flow: threads that take different branches, or run a loop a different number of times."""

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch, per_thread

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError, Unsupported
from xla_emitters.runtime.simt import execute

NUMBERS = np.arange(-20, 44, dtype=np.int32)


def test_if_merges_both_ways():
    ops = """
    %zero = arith.constant 0 : i32
    %negative = arith.cmpi slt, %a, %zero : i32
    %r = scf.if %negative -> (i32) {
      %m = arith.subi %zero, %a : i32
      scf.yield %m : i32
    } else {
      %d = arith.addi %a, %a : i32
      scf.yield %d : i32
    }"""
    got = per_thread(ops, "i32", a=("i32", NUMBERS))
    np.testing.assert_array_equal(got, np.where(NUMBERS < 0, -NUMBERS, 2 * NUMBERS))


def test_nested_ifs():
    ops = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %low = arith.andi %a, %c1 : i32
    %high = arith.andi %a, %c2 : i32
    %odd = arith.cmpi ne, %low, %c0 : i32
    %second = arith.cmpi ne, %high, %c0 : i32
    %r = scf.if %odd -> (i32) {
      %x = scf.if %second -> (i32) { scf.yield %c3 : i32 } else { scf.yield %c1 : i32 }
      scf.yield %x : i32
    } else {
      %y = scf.if %second -> (i32) { scf.yield %c2 : i32 } else { scf.yield %c0 : i32 }
      scf.yield %y : i32
    }"""
    np.testing.assert_array_equal(per_thread(ops, "i32", a=("i32", NUMBERS)), NUMBERS % 4)


@pytest.mark.parametrize("is_uniform", [True, False])
def test_for_with_bounds_and_step_of_each_thread(is_uniform):
    low = np.full(64, 3) if is_uniform else np.arange(64) % 7
    high = np.full(64, 40) if is_uniform else np.arange(64) % 11 * 3
    step = np.full(64, 2) if is_uniform else np.arange(64) % 4 + 1
    ops = """
    %zero = arith.constant 0 : index
    %r = scf.for %i = %a to %b step %c iter_args(%sum = %zero) -> (index) {
      %square = arith.muli %i, %i : index
      %next = arith.addi %sum, %square : index
      scf.yield %next : index
    }"""
    got = per_thread(ops, "index", a=("index", low), b=("index", high), c=("index", step))
    wanted = [sum(i * i for i in range(*bounds)) for bounds in zip(low, high, step, strict=True)]
    assert got.tolist() == wanted


def test_a_step_of_zero_is_an_error():
    ops = """
    %r = scf.for %i = %a to %b step %a iter_args(%sum = %a) -> (index) {
      scf.yield %sum : index
    }"""
    with pytest.raises(ExecutionError, match=r"scf\.for in block 0, thread 0 steps by zero or less"):
        per_thread(ops, "index", a=("index", np.zeros(32)), b=("index", np.ones(32)))


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def test_while_until_the_last_thread_is_done():
    start = np.arange(1, 65, dtype=np.int64)
    ops = """
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c2 = arith.constant 2 : i64
    %c3 = arith.constant 3 : i64
    %end, %r = scf.while (%n = %a, %steps = %c0) : (i64, i64) -> (i64, i64) {
      %more = arith.cmpi ne, %n, %c1 : i64
      scf.condition(%more) %n, %steps : i64, i64
    } do {
    ^bb0(%n: i64, %steps: i64):
      %half = arith.divsi %n, %c2 : i64
      %rest = arith.remsi %n, %c2 : i64
      %triple = arith.muli %n, %c3 : i64
      %up = arith.addi %triple, %c1 : i64
      %even = arith.cmpi eq, %rest, %c0 : i64
      %next = arith.select %even, %half, %up : i64
      %count = arith.addi %steps, %c1 : i64
      scf.yield %next, %count : i64, i64
    }"""
    assert per_thread(ops, "i64", a=("i64", start)).tolist() == [collatz(int(n)) for n in start]


def test_index_switch():
    values = np.arange(64) % 5
    ops = """
    %ten = arith.constant 10 : index
    %twenty = arith.constant 20 : index
    %r = scf.index_switch %a -> index
    case 1 { scf.yield %ten : index }
    case 3 { scf.yield %twenty : index }
    default { scf.yield %a : index }"""
    assert per_thread(ops, "index", a=("index", values)).tolist() == [{1: 10, 3: 20}.get(v, v) for v in values]


def test_an_endless_loop_ends_with_an_error():
    ops = """
    %true = arith.constant true
    %r = scf.while (%n = %a) : (i32) -> (i32) {
      scf.condition(%true) %n : i32
    } do {
    ^bb0(%n: i32):
      scf.yield %n : i32
    }"""
    with pytest.raises(ExecutionError, match=r"scf\.while in block 0, thread 0 never ends"):
        per_thread(ops, "i32", a=("i32", NUMBERS))


def forall(extents: str, map: str, rank: int, threads: int) -> str:
    """Each iteration writes its own number, which `map` gives, to its element of %out."""
    indices = ", ".join(f"%i{n}" for n in range(rank))
    return f"""
func.func @main(%out: tensor<24xindex>) -> tensor<24xindex> attributes {{xla.entry, {launch(threads, 1)}}} {{
  %r = scf.forall ({indices}) {extents} shared_outs(%o = %out) -> (tensor<24xindex>) {{
    %k = xla_gpu.apply_indexing #xla_gpu.indexing_map<"{map}">({indices})
    %t = tensor.insert %k into %o[%k] : tensor<24xindex>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %t into %o[0] [24] [1] : tensor<24xindex> into tensor<24xindex>
    }}
  }}
  return %r : tensor<24xindex>
}}"""


@pytest.mark.parametrize("threads", [7, 24, 32])
def test_iterations_of_a_forall_are_dealt_to_threads(threads):
    """Fewer threads take several each, of more some have none."""
    map = "(a, b, c) -> ((c * 3 + b) * 4 + a), domain: a in [0, 3], b in [0, 2], c in [0, 1]"
    out = np.full(24, -1, np.int64)
    execute(parse_ir(forall("in (4, 3, 2)", map, 3, threads)), [out])
    assert out.tolist() == list(range(24))


def test_a_forall_with_bounds_and_steps():
    map = "(a, b) -> (b + a), domain: a in [0, 23], b in [0, 23]"
    out = np.full(24, -1, np.int64)
    execute(parse_ir(forall("= (1, 5) to (4, 17) step (2, 4)", map, 2, 4)), [out])
    visited = {a + b for a in (1, 3) for b in (5, 9, 13)}
    assert out.tolist() == [k if k in visited else -1 for k in range(24)]


def test_a_part_of_a_shared_out_is_refused():
    text = forall("in (24)", "(a) -> (a), domain: a in [0, 23]", 1, 24)
    text = text.replace("%t into %o[0] [24] [1] : tensor<24xindex>", "%t into %o[0] [12] [1] : tensor<24xindex>")
    with pytest.raises(Unsupported, match="parallel_insert_slice into a part of a shared out"):
        execute(parse_ir(text), [np.zeros(24, np.int64)])


@pytest.mark.parametrize("is_uniform", [True, False])
def test_an_unsigned_loop_counts_past_the_greatest_signed_number(is_uniform):
    low = np.full(64, 100, np.int8) if is_uniform else np.arange(64).astype(np.int8) + 60
    high = np.full(64, 180 - 256, np.int8) if is_uniform else (np.arange(64) * 2 + 100).astype(np.int8)
    ops = """
    %zero = arith.constant 0 : i32
    %step = arith.constant 7 : i8
    %r = scf.for unsigned %i = %a to %b step %step iter_args(%sum = %zero) -> (i32) : i8 {
      %wide = arith.extui %i : i8 to i32
      %next = arith.addi %sum, %wide : i32
      scf.yield %next : i32
    }"""
    got = per_thread(ops, "i32", a=("i8", low), b=("i8", high))
    wanted = [sum(range(one, other, 7)) for one, other in zip(low.view(np.uint8), high.view(np.uint8), strict=True)]
    assert got.tolist() == wanted


def test_a_signed_loop_over_the_same_bits_does_not_run():
    ops = """
    %step = arith.constant 7 : i8
    %r = scf.for %i = %a to %b step %step iter_args(%last = %a) -> (i8) : i8 { scf.yield %i : i8 }"""
    got = per_thread(ops, "i8", a=("i8", np.full(32, 100)), b=("i8", np.full(32, -76)))
    assert got.tolist() == [100] * 32


@pytest.mark.parametrize("is_uniform", [True, False])
def test_a_parallel_loop_runs_in_order(is_uniform):
    """acc * 3 + (i * 10 + j) shows the order."""
    high = np.full(32, 6) if is_uniform else np.arange(32) % 7
    ops = """
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c10 = arith.constant 10 : index
    %r = scf.parallel (%i, %j) = (%c1, %c2) to (%a, %c10) step (%c2, %c3) init (%c1) -> index {
      %tens = arith.muli %i, %c10 : index
      %value = arith.addi %tens, %j : index
      scf.reduce(%value : index) {
      ^bb0(%old: index, %new: index):
        %scaled = arith.muli %old, %c3 : index
        %sum = arith.addi %scaled, %new : index
        scf.reduce.return %sum : index
      }
    }"""
    got = per_thread(ops, "index", a=("index", high))

    def run(end: int) -> int:
        total = 1
        for i in range(1, end, 2):
            for j in range(2, 10, 3):
                total = total * 3 + i * 10 + j
        return total

    assert got.tolist() == [run(int(end)) for end in high]
