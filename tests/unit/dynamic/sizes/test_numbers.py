"""Arithmetic on sizes: repeated expressions are computed once, unless more is known the second time."""

from typing import Any

import pytest

from xla_emitters.algebra.facts import Facts
from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dynamic.sizes import numbers, sizes_of
from xla_emitters.dynamic.sizes.size_walk import Walk
from xla_emitters.graph.entry import entry_of
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
    return next(op for op in entry_of(parse_stablehlo(text, "m.mlir")).instructions if op.opcode == opcode)


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


DATA = """module @m {{
  func.func public @main(%x: tensor<4x{0}>) -> tensor<4x{0}> {{
    %one = stablehlo.constant dense<1> : tensor<4x{0}>
    %sum = stablehlo.add %x, %one : tensor<4x{0}>
    %back = stablehlo.subtract %sum, %x : tensor<4x{0}>
    %none = stablehlo.subtract %x, %x : tensor<4x{0}>
    %mixed = stablehlo.xor %sum, %x : tensor<4x{0}>
    %all = stablehlo.add %mixed, %back : tensor<4x{0}>
    %end = stablehlo.add %all, %none : tensor<4x{0}>
    return %end : tensor<4x{0}>
  }}
}}
"""


@pytest.mark.parametrize(
    ("element", "computed"),
    [("i32", {"add", "subtract"}), ("ui32", set[str]()), ("i8", set[str]()), ("ui64", set[str]())],
)
def test_numbers_that_depend_on_data_are_computed_where_something_may_follow(
    element: str, computed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random numbers are thousands of xors and unsigned sums of data, of which nothing is known: signed x + 1 - x is 1, x ^ y is data."""
    seen, real = set[str](), numbers._elementwise

    def counted(op: HloOp, *rest: Any) -> Any:
        seen.add(op.opcode)
        return real(op, *rest)

    monkeypatch.setattr(numbers, "_elementwise", counted)
    found = sizes_of(parse_stablehlo(DATA.format(element), "m.mlir"))
    known = {value.name_hint: found.numbers(value) for value in found.walk.values}
    assert seen - {"convert"} == computed
    nothing = (None,) * 4 if element == "i32" else None
    assert known["none"] == ((Size.constant(0),) * 4 if element == "i32" else nothing)
    assert known["back"] == ((Size.constant(1),) * 4 if element == "i32" else nothing)
    assert known["mixed"] == known["all"] == nothing


@pytest.mark.parametrize(("size", "walks"), [("4", 1), ("?", 2)])
def test_a_program_of_known_sizes_is_walked_once(size: str, walks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second walk is with the names that the first one found for open axes."""
    walked, real = list[ComputationOp](), Walk.entry

    def counted(self: Walk, entry: ComputationOp, *rest: Any) -> None:
        walked.append(entry)
        real(self, entry, *rest)

    monkeypatch.setattr(Walk, "entry", counted)
    found = sizes_of(parse_stablehlo(program(1).replace("tensor<?xf32>", f"tensor<{size}xf32>"), "m.mlir"))
    (quotient,) = (found.numbers(value) for value in found.walk.values if value.name_hint == "q0")
    assert len(walked) == walks
    assert quotient == ((Size.constant(2),) if size == "4" else (Size.symbol("d0") // 2,))
