"""Which stages may differ in bits from the one before: only where the order of what is combined can change."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.explore.check import check, hands_on_over_several_variables

ONE = '#xla_gpu.indexing_map<"(th_x)[s0] -> (s0 * 4 + th_x), domain: th_x in [0, 3], s0 in [0, 5]">'
TWO = '#xla_gpu.indexing_map<"(th_x)[s0, s1] -> (s0 * 6 + s1 * 4 + th_x), domain: th_x in [0, 3], s0 in [0, 5], s1 in [0, 1]">'


def summing(map: str, variables: str) -> ModuleOp:
    """Of the elements of a tensor, in a scalar."""
    return parse_ir(f"""
func.func @k(%in: tensor<64xf32>, %t: index, %zero: f32) -> f32 {{
  %sum = xla_gpu.loop (%t)[{variables}] -> (%at) in {map} iter_args(%so_far = %zero) -> (f32) {{
    %x = tensor.extract %in[%at] : tensor<64xf32>
    %more = arith.addf %so_far, %x : f32
    xla_gpu.yield %more : f32
  }}
  return %sum : f32
}}""")


def copying(map: str, variables: str) -> ModuleOp:
    """Of the elements of a tensor, to another."""
    return parse_ir(f"""
func.func @k(%in: tensor<64xf32>, %t: index, %out: tensor<64xf32>) -> tensor<64xf32> {{
  %all = xla_gpu.loop (%t)[{variables}] -> (%at) in {map} iter_args(%so_far = %out) -> (tensor<64xf32>) {{
    %x = tensor.extract %in[%at] : tensor<64xf32>
    %more = tensor.insert %x into %so_far[%at] : tensor<64xf32>
    xla_gpu.yield %more : tensor<64xf32>
  }}
  return %all : tensor<64xf32>
}}""")


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (summing(TWO, "%i, %j"), True),
        (summing(ONE, "%i"), False),
        (copying(TWO, "%i, %j"), False),
        (copying(ONE, "%i"), False),
    ],
    ids=["sum over two", "sum over one", "copy over two", "copy over one"],
)
def test_peeling_may_change_bits_where_a_value_is_handed_on_over_several_variables(module: ModuleOp, expected: bool):
    assert hands_on_over_several_variables(module) == expected


@pytest.mark.parametrize(
    ("type", "root", "message"),
    [
        (
            "f32[<=8]",
            "f32[<=8] negate(x)",
            "no code for dimensions only known at run time (f32[<=8]) for HLO op 'parameter'",
        ),
        ("f32[8]", "token[] outfeed(x, none)", "no code for token[] for HLO op 'after-all'"),
        ("c64[8]", "c64[8] fft(x), fft_type=FFT, fft_length={8}", "no code for HLO op 'fft'"),
    ],
)
def test_what_has_no_code_is_refused_before_inputs_are_drawn(type: str, root: str, message: str):
    text = f"ENTRY main {{\n  x = {type} parameter(0)\n  none = token[] after-all()\n  ROOT made = {root}\n}}"
    with pytest.raises(Unsupported) as caught:
        check(text)
    assert caught.value.message.partition(" (instruction")[0] == message
    assert caught.value.place is not None


def test_some_blocks_answer_for_no_element_that_shares_a_byte_with_theirs():
    """Elements 426 and 427 lie in one byte: thread 0 of block 2 writes the first, thread 127 of block 1 the second."""
    verdict = check(
        """fused {
  p = s4[100,2] parameter(0)
  q = s4[100,3] parameter(1)
  ROOT c = s4[100,5] concatenate(p, q), dimensions={1}
}""",
        blocks=2,
    )
    assert verdict.ok, verdict.summary
