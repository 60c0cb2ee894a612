"""Kernels of programs follow the rules of a launch: threads end, others never come."""

import numpy as np
import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import ExecutionError
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.simt.sized_kernels import SizedKernel

KERNEL = """
llvm.func @k(%x: !llvm.ptr) attributes {{nvvm.kernel}} {{
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %threads = llvm.mlir.constant(64 : i32) : i32
  %limit = llvm.mlir.constant(32 : i32) : i32
  %late = llvm.icmp "uge" %t, %limit : i32
  llvm.cond_br %late, ^end, ^work
^work:
  {barrier}
  llvm.br ^store
^store:
  %p = llvm.getelementptr %x[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  llvm.store %one, %p : i32, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
"""


def run(barrier: str) -> np.ndarray:
    found = np.zeros(64, np.int32)
    SizedKernel.of(parse_ir(KERNEL.format(barrier=barrier)))(LaunchDimensions((1, 1, 1), (64, 1, 1)), [found])
    return found


def test_a_barrier_does_not_wait_for_a_warp_that_has_ended() -> None:
    """CUDA C++ Programming Guide, "Independent Thread Scheduling"."""
    np.testing.assert_array_equal(run("nvvm.barrier0"), np.arange(64) < 32)


def test_a_barrier_whose_threads_never_come_is_named() -> None:
    with pytest.raises(ExecutionError, match=r"block 0, thread 0 waits for threads that never come"):
        run("nvvm.barrier id = %one number_of_threads = %threads")
