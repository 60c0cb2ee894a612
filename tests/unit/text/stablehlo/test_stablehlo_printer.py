"""StableHLO text that we print: read back it is the same module, and what StableHLO lacks is refused by name."""

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.traits import is_side_effect_free

from xla_emitters.dialects.hlo.dialect import HLO
from xla_emitters.dialects.hlo.dynamic_shape_ops import ShapeAssertionOp
from xla_emitters.errors import Unsupported
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.stablehlo import parse_stablehlo, print_stablehlo
from xla_emitters.text.stablehlo.computations import op_names
from xla_emitters.text.stablehlo.op_table import PRINTED
from xla_emitters.text.stablehlo.reader import RULES

CORPUS = Path(__file__).parents[3] / "corpus" / "stablehlo"
TEXT = """HloModule m
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
fused { p = f32[3,4] parameter(0)  z = f32[] constant(1.5)  ROOT r = f32[3] reduce(p, z), dimensions={1}, to_apply=add }
ENTRY main {
  p = f32[3,4] parameter(0)
  f = f32[3] fusion(p), kind=kInput, calls=fused
  b = f32[3,4] broadcast(f), dimensions={0}
  t = f32[4,3] transpose(b), dimensions={1,0}
  ROOT out = (f32[4,3], f32[3]) tuple(t, f)
}"""


def test_hlo_text_becomes_stablehlo_of_the_same_values() -> None:
    import numpy as np

    module = parse_hlo(TEXT)
    again = parse_stablehlo(print_stablehlo(module))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for one, other in zip(evaluate(entry_of(module), [x]), evaluate(entry_of(again), [x]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_in_any_characters_are_read_and_printed() -> None:
    """MLIR prints the bytes of UTF-8 as hexadecimal numbers; HLO escapes quotes as C does."""
    text = r"""func.func @main(%x: tensor<3xf32> {jax.arg_name = "x['gr\C3\B6\C3\9Fe \22q\22 \\']"},
                            %y: tensor<3xf32> loc("y['模\C3\B6']")) -> tensor<3xf32> {
      %0 = stablehlo.add %x, %y : tensor<3xf32> loc("sum/\C3\B6 \22")
      return %0 : tensor<3xf32> }"""
    module = parse_stablehlo(text)
    for read in (module, parse_stablehlo(print_stablehlo(module))):
        names = [parameter.attributes["jax.arg_name"].data for parameter in entry_of(read).parameters]  # type: ignore[attr-defined]
        assert names == ["x['größe \"q\" \\']", "y['模ö']"]
        assert r'loc("sum/\C3\B6 \22")' in print_stablehlo(read)
    named = TEXT.replace("dimensions={1,0}", r"""dimensions={1,0}, metadata={op_name="d[\'a\']/\"b\""}""")
    assert r"""loc("d['a']/\22b\22")""" in print_stablehlo(parse_hlo(named))


def test_every_op_that_is_printed_is_read() -> None:
    names = {name for name, _, _ in PRINTED.values()}
    assert names <= {"stablehlo.while", *op_names(RULES)}


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
    "instruction", ["f32[12] bitcast(p)", "f32[3,4] stochastic-convert(p, u)", 'f32[3,4] domain(p), domain={kind="x"}']
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


COLLECTIVES = """module @m {
  sdy.mesh @mesh = <["a"=2]> {stablehlo.mesh = {axes = []}}
  func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
    %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %1 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}>
        : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %2 : tensor<8x8xf32>, tensor<4x8xf32>
  }
}"""


def test_groups_of_devices_are_kept_and_meshes_left_out() -> None:
    printed = print_stablehlo(parse_stablehlo(COLLECTIVES))
    assert "dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>" in printed
    assert "handle = 2" in printed
    assert "mesh" not in printed
    assert print_stablehlo(parse_stablehlo(printed)) == printed


@pytest.mark.parametrize("name", ["outer", "branches", "narrow"])
def test_the_dialect_itself_is_printed_and_read(name: str) -> None:
    module = parse_stablehlo((CORPUS / f"{name}.mlir").read_text())
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(HLO)
    again = Parser(context, str(module)).parse_module()
    again.verify()
    assert str(again) == str(module)
    assert print_stablehlo(again) == print_stablehlo(module)


def test_an_assertion_is_not_removed_as_unused() -> None:
    module = parse_stablehlo((CORPUS / "outer.mlir").read_text())
    found = [op for op in module.walk() if isinstance(op, ShapeAssertionOp)]
    assert len(found) == 2
    assert not any(map(is_side_effect_free, found))
