"""StableHLO text that we print: read back it is the same, and what StableHLO has not is refused by name."""

from __future__ import annotations

import pytest

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.errors import Unsupported
from xla_emitters.hlo_text import parse_hlo, print_hlo
from xla_emitters.runtime.reference import evaluate
from xla_emitters.stablehlo_text import parse_stablehlo, print_stablehlo
from xla_emitters.stablehlo_text.printer import PRINTED
from xla_emitters.stablehlo_text.reader import RULES

HLO = """HloModule m
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
fused { p = f32[3,4] parameter(0)  z = f32[] constant(1.5)  ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=add }
ENTRY main {
  p = f32[3,4] parameter(0)
  f = f32[3] fusion(p), kind=kInput, calls=fused
  b = f32[3,4] broadcast(f), dimensions={0}
  t = f32[4,3] transpose(b), dimensions={1,0}
  ROOT out = (f32[4,3], f32[3]) tuple(t, f)
}"""


def entry(module: object) -> ComputationOp:
    (found,) = (op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry)  # type: ignore[attr-defined]
    return found


def test_hlo_text_becomes_stablehlo_of_the_same_values() -> None:
    import numpy as np

    module = parse_hlo(HLO)
    again = parse_stablehlo(print_stablehlo(module))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for one, other in zip(evaluate(entry(module), [x]), evaluate(entry(again), [x]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_op_that_is_printed_is_read() -> None:
    names = {name for name, _, _ in PRINTED.values()}
    assert names <= RULES.keys() | {"stablehlo.while"}


def test_a_loop_prints_only_what_it_changes() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
      %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<?xf32>
      cond {
        %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %y, %x : tensor<?xf32>
        stablehlo.return %i, %1 : tensor<i32>, tensor<?xf32>
      }
      return %0#1 : tensor<?xf32>
    }"""
    printed = print_stablehlo(parse_stablehlo(text))
    assert '"stablehlo.while"(%0) ({' in printed
    assert "^bb0(%3: tensor<?xf32>):" in printed
    assert print_stablehlo(parse_stablehlo(printed)) == printed


@pytest.mark.parametrize(
    "instruction",
    ["f32[12] bitcast(p)", "f32[3,4] stochastic-convert(p, u)", 'f32[3,4] domain(p), domain={kind="x"}'],
)
def test_what_stablehlo_has_not_is_refused_by_name(instruction: str) -> None:
    text = f"ENTRY e {{ p = f32[3,4] parameter(0)  u = u32[3,4] parameter(1)  ROOT r = {instruction} }}"
    with pytest.raises(Unsupported, match="no StableHLO for HLO op"):
        print_stablehlo(parse_hlo(text))


def test_a_size_that_is_a_value_is_no_hlo_text() -> None:
    text = """func.func @main(%x: tensor<f32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    with pytest.raises(Unsupported, match="no HLO text for HLO op 'dynamic-broadcast-in-dim'"):
        print_hlo(parse_stablehlo(text))
