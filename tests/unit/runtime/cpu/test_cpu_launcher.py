"""Programs on the CPU: buffers in order, sampled blocks, parameters that are never written."""

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from runtime.small_programs import PROGRAMS, TARGET, buffers_for

from xla_emitters.dialects.context import parse_ir
from xla_emitters.pipelines.compiler import compile
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.runtime.arrays import random_arrays, same_bits
from xla_emitters.runtime.cpu import cpu_launcher
from xla_emitters.runtime.cpu.cpu_launcher import recorded_kernels, run_kernel, run_program

TWO_FUSIONS = """
HloModule chain
first {
  %x = f32[6,8]{0,1} parameter(0)
  ROOT %n = f32[6,8]{0,1} negate(%x)
}
second {
  %x = f32[6,8]{0,1} parameter(0)
  %y = f32[6,8]{0,1} parameter(1)
  ROOT %m = f32[6,8]{0,1} multiply(%x, %y)
}
ENTRY main {
  %x = f32[6,8]{0,1} parameter(0)
  %a = f32[6,8]{0,1} fusion(%x), kind=kLoop, calls=first
  ROOT %b = f32[6,8]{0,1} fusion(%a, %x), kind=kLoop, calls=second
}
"""


def test_kernels_in_order_through_a_temporary() -> None:
    """At every stage. Column-major in memory, logical for the caller."""
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    program = compile(TWO_FUSIONS, stage="llvm-dialect")
    for stage in EXECUTABLE_STAGES:
        (result,) = run_program(program, [x], stage)
        assert np.array_equal(result, -x * x), stage


def test_the_callers_array_is_not_written() -> None:
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    before = x.copy()
    x.flags.writeable = False
    run_program(compile(TWO_FUSIONS, stage="llvm-dialect"), [x], "llvm-dialect")
    assert np.array_equal(x, before)


def test_one_fusion_of_several_at_the_hlo_stage() -> None:
    """The text is the whole module's; what is run is the fusion that was chosen."""
    program = compile(TWO_FUSIONS, fusion="b", stage="hlo")
    x, y = (np.full((6, 8), value, np.float32) for value in (3, 5))
    (result,) = run_program(program, [x, y], "hlo")
    assert np.array_equal(result, x * y)


def test_some_blocks_write_their_part_only() -> None:
    """Three of 81 blocks: what they write is right, what they do not write is zero as allocated."""
    program = compile(PROGRAMS["ragged"], target=TARGET, stage="llvm-dialect")
    inputs = random_arrays(program.parameters, 1)
    (whole,) = run_program(program, inputs, "llvm-dialect")
    (kernel,) = program.kernels
    blocks = [0, 40, kernel.launch.blocks - 1]
    ir = program.trace["llvm-dialect"].ir
    assert ir is not None
    buffers = buffers_for(program, inputs, kernel.arguments)
    (sampled,), written = run_kernel(parse_ir(ir), kernel.arguments, buffers, blocks)
    assert written is not None
    (part,) = written
    assert part.shape == (41_000,)
    # 512 elements a block; the last holds what is left of 41,000.
    assert [int(run.sum()) for run in np.array_split(part, range(512, 41_000, 512))].count(512) == 2
    assert int(part.sum()) == 2 * 512 + 41_000 % 512
    assert same_bits(sampled[part], whole.reshape(-1)[part])
    assert not sampled[~part].any()


def test_threads_that_read_the_kernels_of_a_program_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either has read; when the program is gone, it is forgotten once, and no error is printed."""
    gc.freeze()  # what other tests have left is not looked through below
    both, faults = threading.Barrier(2, timeout=60), list[Any]()
    made = cpu_launcher.ExecutableKernel

    def late(*parts: Any) -> cpu_launcher.ExecutableKernel:
        both.wait()
        return made(*parts)

    monkeypatch.setattr(cpu_launcher, "ExecutableKernel", late)
    monkeypatch.setattr(sys, "unraisablehook", faults.append)
    program = compile(TWO_FUSIONS, stage="llvm-dialect")
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(recorded_kernels, [program] * 2, ["llvm-dialect"] * 2))
    gc.collect()
    before = len(cpu_launcher._kept)
    del program
    gc.collect()
    assert len(cpu_launcher._kept) == before - 1
    assert not faults
