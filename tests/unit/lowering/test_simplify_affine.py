"""What the FileCheck cases do not show: locations, names, remarks. Values are in test_index_arithmetic.py."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnknownLoc

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.rewrite.locations import place_of
from xla_emitters.rewrite.notes import take_notes

TEXT = """
func.func @f(%x: index) -> (index, index) {
  %address = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("tanh_0"("gelu.hlo":19:3))
  %low = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 4), domain: d0 in [-7, 7]">(%x) loc("add_0"("gelu.hlo":20:3))
  func.return %address, %low : index, index
}
"""


def test_locations_and_names_are_kept() -> None:
    module = parse_ir(TEXT)
    SimplifyAffinePass().apply(make_context(), module)
    module.verify()
    made = [op for op in module.walk() if isinstance(op, arith.AddiOp | arith.MuliOp | arith.ConstantOp)]
    assert {place_of(op) for op in made} == {"tanh_0 (gelu.hlo:19:3)"}
    assert not any(isinstance(op.location, UnknownLoc) for op in made)
    (total,) = (op for op in made if isinstance(op, arith.AddiOp))
    assert total.result.name_hint == "address"


def test_a_refusal_says_why_and_where() -> None:
    with take_notes() as notes:
        SimplifyAffinePass().apply(make_context(), parse_ir(TEXT))
    (remark,) = notes.remarks
    assert str(remark) == (
        "xla-simplify-affine: skipped xla_gpu.apply_indexing: a dividend, or an operand of max or min, may be negative"
        " at add_0 (gelu.hlo:20:3)"
    )
