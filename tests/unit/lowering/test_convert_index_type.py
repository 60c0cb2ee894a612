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
