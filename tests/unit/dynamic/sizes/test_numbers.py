"""Arithmetic on sizes: repeated expressions are computed once, unless more is known the second time."""

from __future__ import annotations

from typing import Any

import pytest

from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dynamic.sizes import numbers, sizes_of
from xla_emitters.text.stablehlo import parse_stablehlo

HALF = """    %two{n} = stablehlo.constant dense<2> : tensor<i32>
    %{n} = stablehlo.divide %s, %two{n} : tensor<i32>
"""


def program(times: int) -> str:
    """The size of %x halved `times` times, each in words of its own."""
    halves = "".join(HALF.format(n=f"q{n}") for n in range(times))
    return f"""module @m {{
  func.func public @main(%x: tensor<?xf32>) -> tensor<i32> {{
    %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
{halves}    return %q0 : tensor<i32>
  }}
}}
"""


def op_of(text: str, opcode: str) -> HloOp:
    (entry,) = (op for op in parse_stablehlo(text, "m.mlir").ops if isinstance(op, ComputationOp))
    return next(op for op in entry.instructions if op.opcode == opcode)


def test_what_is_said_again_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, real = list[HloOp](), numbers._elementwise

    def counted(op: HloOp, *rest: Any) -> Any:
        computed.append(op)
        return real(op, *rest)

    monkeypatch.setattr(numbers, "_elementwise", counted)
    counts = list[int]()
    for times in (1, 20):
        computed.clear()
        found = sizes_of(parse_stablehlo(program(times), "m.mlir"))
        counts.append(len(computed))
        quotients = {str(size) for value in found.walk.values for size in found.numbers(value) or ()} - {"2", "d0"}
        assert quotients == {"floordiv(d0, 2)"}
    assert counts[0] == counts[1] > 0


def test_another_fact_counts() -> None:
    """HLO rounds toward zero: x / 2 is floordiv(x, 2) only where x is not negative."""
    divide, memory, x = op_of(program(1), "divide"), numbers.SizeArithmetic(), Size.symbol("x")
    unknown = memory.elementwise(divide, [x, Size.constant(2)], Facts())
    assert unknown != x // 2
    assert memory.elementwise(divide, [x, Size.constant(2)], Facts().with_at_least(x, 0, "a test")) == x // 2
