"""Programs with loops of many trips become machine code as a whole: when, with which results, and which programs do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xla_emitters.errors import DataError
from xla_emitters.host.loop_blocks import has_plain_loop
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_host import CPU
from xla_emitters.pipelines.programs import DynamicProgram, compile_program
from xla_emitters.runtime.ral.program import MOST_STEPS
from xla_emitters.stablehlo_text import parse_stablehlo

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

LOOP = """module @m {{ func.func public @main(%n: tensor<i32>, %x: tensor<?x?xf32>{donated}) -> (tensor<i32>, tensor<?x?xf32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?x?xf32>
   cond {{ %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }}
   do {{ %j = stablehlo.add %i, %one : tensor<i32>
     %z = {body}
     stablehlo.return %j, %z : tensor<i32>, tensor<?x?xf32> }}
  return %0#0, %0#1 : tensor<i32>, tensor<?x?xf32> }} }}"""
NEGATED = "stablehlo.negate %y : tensor<?x?xf32>"
MULTIPLIED = (
    "stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
)
UNTIL_LARGE = """module @m {{ func.func public @main(%x: tensor<?xf32>{donated}) -> tensor<?xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %0 = stablehlo.while(%y = %x) : tensor<?xf32>
   cond {{
     %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
       : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
     %c = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }}
   do {{ %z = stablehlo.add %y, %x : tensor<?xf32>
     stablehlo.return %z : tensor<?xf32> }}
  return %0 : tensor<?xf32> }} }}"""
LONG = 4 * MOST_STEPS


@pytest.fixture(autouse=True)
def by_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CPU, "llvm")


def compiled(body: str = NEGATED, donated: str = "") -> DynamicProgram:
    text = LOOP.format(body=body, donated=donated)
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


def trips(program: DynamicProgram, count: int, x: Any) -> None:
    """Calls it, and checks the results: each trip negates."""
    number, y = program.run([np.int32(count), x])
    assert int(number) == max(0, count)
    np.testing.assert_array_equal(y, -x if max(0, count) % 2 else x)


def test_the_first_long_call_is_right_and_makes_machine_code() -> None:
    program, x = compiled(), np.arange(6, dtype=np.float32).reshape(2, 3)
    for count in (3, LONG + 1, 0, 5, LONG, -1):
        trips(program, count, x)
    assert program.loaded.native is not None
    assert program.counters.runs == 6
    assert program.counters.live == 0


def test_short_calls_add_up() -> None:
    program, x = compiled(), np.ones((2, 2), np.float32)
    for count in range(5):
        trips(program, count, x[:, : count % 2 + 1].copy())
    assert program.loaded.native is None
    for size in range(1, 30):  # each at sizes of its own, of which there is no plan
        trips(program, MOST_STEPS // 20, np.ones((size, 1), np.float32))
    assert program.loaded.native is not None


def test_a_recording_that_reads_too_much_stops() -> None:
    """The second call at the same sizes would make a plan; it would need a segment for each number of trips."""
    program, x = compiled(), np.ones((1, 3), np.float32)
    trips(program, 2, x)
    trips(program, 1000, x)
    assert program.loaded.native is not None
    trips(program, 2, x)


def until_large(program: DynamicProgram, x: Any) -> None:
    """Calls it, and checks the result: a multiple of x whose sum is 100 or more."""
    times = max(1, int(np.ceil(100 / x.sum())))
    np.testing.assert_array_equal(program.run([x])[0], np.float32(times) * x)


def reading(donated: str = "") -> DynamicProgram:
    text = UNTIL_LARGE.format(donated=donated)
    return compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))


def test_repeated_calls_with_many_reads_of_data_become_machine_code() -> None:
    program, x = reading(), np.ones(2, np.float32)  # 51 reads
    for _ in range(4):
        until_large(program, x)
    assert program.loaded.native is None
    for _ in range(MOST_STEPS // 51 + 1):
        until_large(program, x)
    assert program.loaded.native is not None
    until_large(program, x)  # the last one by the plan
    assert program.loaded.repeat([x]) is None
    until_large(program, x)
    until_large(program, np.full(2, 10.0, np.float32))


def test_repeated_calls_with_few_reads_of_data_stay_with_their_plan() -> None:
    program, x = reading(), np.full(2, 10.0, np.float32)  # 6 reads
    for _ in range(MOST_STEPS):
        program.run([x])
    until_large(program, x)
    assert program.loaded.native is None


def test_donated_arguments_are_not_copied_for_machine_code() -> None:
    """Machine code works on copies of them."""
    program, x = reading("{tf.aliasing_output = 0 : i32}"), np.ones(2, np.float32)
    for _ in range(MOST_STEPS // 51 + 5):
        until_large(program, x)
    assert program.loaded.native is None


def test_messages_are_the_same_afterwards() -> None:
    program, x = compiled(), np.ones((1, 3), np.float32)
    trips(program, LONG, x)
    with pytest.raises(DataError):
        program.run([np.int32(1), x[0]])
    trips(program, 3, x)


def test_loops_that_call_the_library_stay() -> None:
    program = compiled(MULTIPLIED)
    assert program.cpu.lowering is not None
    assert not has_plain_loop(program.cpu.lowering.host)
    x = np.eye(3, dtype=np.float32)
    number, y = program.run([np.int32(LONG // 4), x])
    assert int(number) == LONG // 4
    np.testing.assert_array_equal(y, x)
    assert program.loaded.native is None


def test_a_program_without_loops_is_none_of_them() -> None:
    text = """module @m { func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.negate %x : tensor<?xf32>
      return %y : tensor<?xf32> } }"""
    program = compile_program(parse_stablehlo(text, "<test>"), CompileOptions(record="none"))
    assert program.cpu.lowering is not None
    assert not has_plain_loop(program.cpu.lowering.host)
