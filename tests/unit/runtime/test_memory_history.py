"""The memory of a call over time, counted by hand."""

import json

import numpy as np
import pytest

from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.settings import Settings
from xla_emitters.text.stablehlo import parse_stablehlo

TEXT = """
module @m {
  func.func public @main(%x: tensor<?x2xf32>, %n: tensor<i32>) -> (tensor<?x2xf32>, tensor<3x1xf32>) {
    %a = stablehlo.exponential %x : tensor<?x2xf32>
    %b = stablehlo.add %a, %x : tensor<?x2xf32>
    %c = stablehlo.multiply %b, %b : tensor<?x2xf32>
    %part = stablehlo.slice %c [0:3, 0:1] : (tensor<?x2xf32>) -> tensor<3x1xf32>
    %e = stablehlo.negate %part : tensor<3x1xf32>
    return %c, %e : tensor<?x2xf32>, tensor<3x1xf32>
  }
}
"""
# Of 5 rows: what each step leaves. `a` and `b` are not needed after the op that follows them; 5 * 2 * 4 bytes each, `d` and `e` 3 * 4.
STEPS = [
    ("made", "a", 40, 40),
    ("made", "b", 40, 80),
    ("freed", "a", 40, 40),
    ("made", "c", 40, 80),
    ("freed", "b", 40, 40),
    ("made", "part", 12, 52),
    ("made", "e", 12, 64),
    ("freed", "part", 12, 52),
    ("returned", "c", 40, 12),
    ("returned", "e", 12, 0),
]


# As many steps as the text has ops: machine code computes all of them in one.
BY_NUMPY = CompileOptions(settings=Settings(cpu="numpy"))


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_program(parse_stablehlo(TEXT.lstrip()), BY_NUMPY)


def test_each_step_says_what_lives_after_it(program: Program) -> None:
    memory = program.memory([np.ones((5, 2), np.float32), np.int32(0)])
    assert [(event.what, event.buffer.name, event.buffer.bytes, event.live) for event in memory.events] == STEPS
    assert (memory.peak, [buffer.name for buffer in memory.at_peak]) == (80, ["a", "b"])
    assert [(row.name, row.live) for row in memory.rows()] == [(s[1], s[3]) for s in STEPS if s[0] == "made"]


def test_it_is_drawn(program: Program) -> None:
    said = program.explain(**{program.symbols[0]: 5}).splitlines()
    made = said.index("    made  bytes  live")
    assert said[made + 1] == "    a        40    40  " + 20 * "#"
    assert said[made + 5] == "    e        12    64  " + 32 * "#"
    assert "  5 buffers, at most 80 bytes of them at once:" in said
    assert "  44 bytes of arguments, 52 of results" in said


def test_it_is_plain_data(program: Program) -> None:
    data = json.loads(json.dumps(program.explained(**{program.symbols[0]: 5})))["memory"]
    assert (data["peak"], data["buffers"], data["arguments"], data["results"]) == (80, 5, 44, 52)
    assert [step["live"] for step in data["steps"]] == [step[3] for step in STEPS]
    assert [buffer["name"] for buffer in data["at_peak"]] == ["a", "b"]


LOOP = """
module @loop {
  func.func public @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?xf32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %z = stablehlo.exponential %y : tensor<?xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %z : tensor<i32>, tensor<?xf32>
      }
    return %r#1 : tensor<?xf32>
  }
}
"""


def test_a_loop_has_a_row_for_each_statement() -> None:
    memory = compile_program(parse_stablehlo(LOOP.lstrip()), BY_NUMPY).memory([np.zeros(3, np.float32), np.int32(4)])
    (row,) = (row for row in memory.rows() if row.name == "z")
    assert (row.times, row.bytes) == (4, 12)
    assert any(line.startswith(f"{row.name} x4 ") for line in memory.lines())
    assert memory.events[-1].live == 0
