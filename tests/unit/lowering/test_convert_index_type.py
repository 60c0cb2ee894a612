"""What the FileCheck cases do not show: no new op without a location, no value converted twice."""

import pytest
from xdsl.dialects.builtin import UnknownLoc
from xdsl.traits import IsTerminator

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.convert_index_type import ConvertIndexTypePass

TEXT = """
module attributes {{dlti.dl_spec = #dlti.dl_spec<{entry}>}} {{
  func.func @f(%x: index) -> i{width} {{
    %c3 = arith.constant 3 : index loc("a"("x.hlo":1:1))
    %0 = arith.muli %x, %c3 : index loc("b"("x.hlo":2:1))
    %1 = arith.addi %0, %c3 : index loc("c"("x.hlo":3:1))
    %2 = arith.remui %1, %c3 : index loc("d"("x.hlo":4:1))
    %3 = arith.index_castui %2 : index to i{width} loc("e"("x.hlo":5:1))
    func.return %3 : i{width}
  }}
}}
"""


@pytest.mark.parametrize("entry", ["index = {width} : i32", "#dlti.dl_entry<index, {width} : i32>"])
@pytest.mark.parametrize("width", [32, 64])
def test_chain_is_converted_once(width: int, entry: str) -> None:
    module = parse_ir(TEXT.format(width=width, entry=entry.format(width=width)))
    ConvertIndexTypePass().apply(make_context(), module)
    module.verify()
    ops = [op for op in module.walk() if op.name.startswith("arith.")]
    assert [op.name for op in ops] == ["arith.constant", "arith.index_cast", "arith.muli", "arith.addi", "arith.remui"]
    assert {str(result.type) for op in ops for result in op.results} == {f"i{width}"}
    assert not any(isinstance(op.location, UnknownLoc) for op in ops if not op.has_trait(IsTerminator))


BORDER = """
func.func @f(%x: index, %t: tensor<64xf32>, %c: i1) -> (f32, f32) {
  %c3 = arith.constant 3 : index
  %0 = arith.muli %x, %c3 : index loc("b"("x.hlo":2:1))
  %1 = arith.addi %0, %x : index loc("c"("x.hlo":3:1))
  %a = tensor.extract %t[%1] : tensor<64xf32>
  %b = tensor.extract %t[%1] : tensor<64xf32>
  %r = scf.if %c -> (f32) {
    %2 = arith.addi %x, %0 : index
    %d = tensor.extract %t[%2] : tensor<64xf32>
    scf.yield %d : f32
  } else {
    scf.yield %b : f32
  }
  func.return %a, %r : f32, f32
}
"""


def test_casts_are_at_the_border_alone() -> None:
    """One of %x, also for the branch, and one back for each result that an access reads; none between the sums."""
    module = parse_ir(BORDER)
    ConvertIndexTypePass().apply(make_context(), module)
    module.verify()
    casts = [op for op in module.walk() if op.name == "arith.index_cast"]
    assert sorted(str(op.results[0].type) for op in casts) == ["i64", "index", "index"]
    assert [str(op.results[0].type) for op in module.walk() if op.name in ("arith.muli", "arith.addi")] == ["i64"] * 3
