"""Kernels as code of this CPU."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.cpu.cpu_code import cpu_ir


@pytest.mark.parametrize(
    "op", ["nvvm.barrier0", 'llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%c) : (i32) -> ()']
)
def test_an_op_of_a_gpu_is_refused(op: str) -> None:
    """LLVM would end the process."""
    module = parse_ir(f"llvm.func @kernel(%c: i32) {{\n  {op}\n  llvm.return\n}}")
    with pytest.raises(Unsupported, match="has no code on a CPU"):
        cpu_ir(module)
