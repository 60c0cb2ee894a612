"""Runs a few instructions of LLVM IR on lanes of numbers: a kernel that loads each operand, executes the text, and stores the result."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel
from xla_emitters.program import LaunchDimensions

_NAMES = {"float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double", "bool": "i8"}
BF16 = np.dtype(ml_dtypes.bfloat16)


def type_of(of: np.dtype) -> str:
    """LLVM's type of a NumPy type."""
    return _NAMES.get(of.name) or f"i{8 * of.itemsize}"


def kernel_text(body: str, operands: Sequence[np.dtype], result: np.dtype, more: str = "") -> str:
    """`body` reads %a0, %a1 ... and defines %d."""
    parameters = ", ".join(f"ptr %p{n}" for n in range(len(operands) + 1))
    lines = [more, f"define ptx_kernel void @k({parameters}) {{", "entry:"]
    lines.append("  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    for n, of in enumerate(operands):
        lines.append(f"  %q{n} = getelementptr {type_of(of)}, ptr %p{n}, i32 %i")
        lines.append(f"  %a{n} = load {type_of(of)}, ptr %q{n}, align {of.itemsize}")
    lines.append(f"  %r = getelementptr {type_of(result)}, ptr %p{len(operands)}, i32 %i")
    lines += [body, f"  store {type_of(result)} %d, ptr %r, align {result.itemsize}", "  ret void", "}"]
    return "\n".join(lines)


def executed(body: str, *operands: np.ndarray, result: np.dtype | type, more: str = "") -> np.ndarray:
    """The results of all lanes."""
    wanted = np.dtype(result)
    text = kernel_text(body, [each.dtype for each in operands], wanted, more)
    count = operands[0].size
    after = LlvmIrKernel.read(text, "one.ll").run(
        [*operands, np.zeros(count, wanted)], LaunchDimensions((1, 1, 1), (count, 1, 1))
    )
    return after[len(operands)]
