"""`scf.forall` and `tensor.parallel_insert_slice`, which are in the first IR that today's XLA prints."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError


def in_function(line: str) -> str:
    return f"func.func @f(%n: index, %t: tensor<8xf32>) {{\n{line}\n return }}"


def test_the_body_takes_the_indices_and_the_shared_outs():
    """In the generic form: the custom one cannot be wrong."""
    with pytest.raises(VerifyError, match="its body must take 1 indices and the shared outs"):
        parse_ir(
            in_function(
                '"scf.forall"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, staticLowerBound = array<i64: 0>, '
                "staticUpperBound = array<i64: 8>, staticStep = array<i64: 1>}> ({\n ^bb0(%i: i32):\n"
                '"scf.forall.in_parallel"() ({}) : () -> () }) : () -> ()'
            )
        )
