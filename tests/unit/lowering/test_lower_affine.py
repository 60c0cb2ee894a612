"""Nothing is left of a map, and locations are kept. Values are in test_index_arithmetic.py."""

from xdsl.dialects.builtin import UnknownLoc
from xdsl.traits import IsTerminator

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.lowering.lower_affine import LowerAffinePass

TEXT = """
#map = #xla_gpu.indexing_map<"(d0) -> (d0 mod 4 + d0 floordiv 3), domain: d0 in [-7, 7]">
func.func @f(%x: index) -> index {
  %low = xla_gpu.apply_indexing #map(%x) loc("add_0"("gelu.hlo":20:3))
  %up = affine.apply affine_map<(d0) -> (d0 ceildiv 4)> (%low) loc("add_1"("gelu.hlo":21:3))
  func.return %up : index
}
"""


def test_nothing_is_left_and_all_is_located() -> None:
    module = parse_ir(TEXT)
    LowerAffinePass().apply(make_context(), module)
    module.verify()
    ops = [op for op in module.walk() if op.name.startswith(("arith.", "affine.", "xla_gpu."))]
    assert {op.name.partition(".")[0] for op in ops} == {"arith"}
    assert not any(isinstance(op.location, UnknownLoc) for op in ops if not op.has_trait(IsTerminator))
