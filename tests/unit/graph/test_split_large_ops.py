"""disc-split-large-ops on programs: names stay unique, which is verified after each pass on HLO."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.kernel_pass import verify_after

CONCATENATION = """
hlo.computation @m entry {
  %p = hlo.parameter 0 {name = "p"} : tensor<1xf32>
  %q = hlo.parameter 1 {name = "q"} : tensor<1xf32>
  %c = hlo.concatenate %p, %q {dimensions = array<i64: 0>, name = "c"} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  hlo.return %c : tensor<2xf32>
}
"""


def test_two_instructions_of_one_name_do_not_verify() -> None:
    module = parse_ir(CONCATENATION, "c.mlir")
    (computation,) = (op for op in module.ops if isinstance(op, ComputationOp))
    first, second, *_ = computation.instructions
    second.properties["name"] = first.instruction_name
    with pytest.raises(
        InternalError,
        match=r"after some-pass does not verify: .* instruction 'p' is defined twice",
    ):
        verify_after("some-pass", module)
