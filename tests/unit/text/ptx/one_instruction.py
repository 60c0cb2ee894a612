"""Runs one instruction on lanes of numbers: a kernel that loads each operand, executes the text, and stores the result."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.any_ptx import PtxKernel
from xla_emitters.program import LaunchDimensions

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
_WIDTHS = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def kernel_text(body: str, operands: Sequence[np.dtype], result: np.dtype, more: str = "") -> str:
    """`body` reads %a0, %a1 ... and writes %d; all are untyped registers of the operands' sizes (of 16 bits for bytes)."""
    parameters = ",".join(f".param .u64 p{n}" for n in range(len(operands) + 1))
    lines = [
        f".visible .entry k({parameters}) {{",
        ".reg .b64 %at<9>; .reg .b32 %i, %t<9>; .reg .pred %p<9>; .reg .b64 %w<9>;",
    ]
    lines += [f".reg .{_WIDTHS[of.itemsize]} %a{n};" for n, of in enumerate(operands)]
    lines += [f".reg .{_WIDTHS[result.itemsize]} %d;", more, "mov.u32 %i, %tid.x;"]
    for n, of in enumerate((*operands, result)):
        lines += [f"ld.param.u64 %at{n}, [p{n}];", f"mad.wide.u32 %at{n}, %i, {of.itemsize}, %at{n};"]
    lines += [f"ld.global.b{8 * of.itemsize} %a{n}, [%at{n}];" for n, of in enumerate(operands)]
    lines += [body, f"st.global.b{8 * result.itemsize} [%at{len(operands)}], %d;", "ret; }"]
    return HEAD + "\n".join(lines)


def run_checked(kernel: PtxKernel, arrays: list[np.ndarray], launch: LaunchDimensions, **how: Any) -> list[np.ndarray]:
    """The arrays after a run, if the sanitizer finds nothing; else what it finds is an error."""
    verdict = kernel.check(arrays, launch, **how)
    if not verdict.ok:
        raise ExecutionError("\n".join([verdict.summary, *verdict.details]), stage="simt")
    return kernel.run(arrays, launch, **how)


def executed(body: str, *operands: np.ndarray, result: np.dtype | type, more: str = "") -> np.ndarray:
    """The results of all lanes."""
    wanted = np.dtype(result)
    count = operands[0].size
    text = kernel_text(body, [each.dtype for each in operands], wanted, more)
    kernel = PtxKernel.read(text, "one.ptx")
    after = kernel.run([*operands, np.zeros(count, wanted)], LaunchDimensions((1, 1, 1), (count, 1, 1)))
    return after[len(operands)]
