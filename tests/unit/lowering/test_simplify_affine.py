"""What the FileCheck cases do not show: locations, names, remarks. Values are in test_index_arithmetic.py."""

import pytest
from xdsl.dialects.builtin import UnknownLoc

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.locations import instructions_of, place_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
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


SHARED = """
func.func @f(%x: index, %c: i1) -> (index, index) {{
  %a = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 7]">(%x) loc("one"("x.hlo":1:1))
  %r = scf.if %c -> (index) {{
    %b = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * {then} + 3), domain: d0 in [0, 7]">(%x) loc("two"("x.hlo":2:1))
    scf.yield %b : index
  }} else {{
    %d = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * {other} + 3), domain: d0 in [0, 7]">(%x) loc("three"("x.hlo":3:1))
    scf.yield %d : index
  }}
  func.return %a, %r : index, index
}}
"""


@pytest.mark.parametrize(("then", "other", "products"), [(4, 4, 1), (5, 5, 3), (4, 5, 2)])
def test_equal_arithmetic_is_made_once_where_it_dominates(then: int, other: int, products: int) -> None:
    """Of the block and of blocks around it; what one branch makes the other does not see."""
    module = parse_ir(SHARED.format(then=then, other=other))
    SimplifyAffinePass().apply(make_context(), module)
    module.verify()
    made = [op for op in module.walk() if isinstance(op, arith.MuliOp)]
    assert len(made) == products
    if products == 1:
        assert instructions_of(made[0]) == ("one", "two", "three")
