"""disc-split-large-ops on programs: names stay unique, which is verified after each pass on HLO."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.kernel_pass import verify_after


def concatenation(operands: int) -> str:
    parameters = [f'  %p{n} = hlo.parameter {n} {{name = "p{n}"}} : tensor<1xf32>' for n in range(operands)]
    names = ", ".join(f"%p{n}" for n in range(operands))
    types = ", ".join(["tensor<1xf32>"] * operands)
    whole = f'  %c = hlo.concatenate {names} {{dimensions = array<i64: 0>, name = "concatenate.0"}} : ({types}) -> tensor<{operands}xf32>'
    return "\n".join(
        ["hlo.computation @m entry {", *parameters, whole, f"  hlo.return %c : tensor<{operands}xf32>", "}"]
    )


def test_two_instructions_of_one_name_do_not_verify() -> None:
    module = parse_ir(concatenation(2), "c.mlir")
    (computation,) = (op for op in module.ops if isinstance(op, ComputationOp))
    first, second, *_ = computation.instructions
    second.properties["name"] = first.instruction_name
    with pytest.raises(
        InternalError,
        match=r"after some-pass does not verify: .* instruction 'p0' is defined twice",
    ):
        verify_after("some-pass", module)
