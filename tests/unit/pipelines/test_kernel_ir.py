"""IR of any stage is a kernel of its own: the passes after that stage make the same PTX as of the module."""

from pathlib import Path

import numpy as np
import pytest
from tools_here import PTX, needs

import xla_emitters as xe
from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.explore.check.kernel_stages import stages_agree
from xla_emitters.pipelines.kernel_ir import compile_kernel_ir, stage_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.cpu.cpu_launcher import STAGES

EXAMPLES = Path(__file__).parents[3] / "examples"
SCALED = """
func.func @scaled(
    %x: tensor<8xf32> {llvm.dereferenceable = 32 : index, xla.invariant, xla.slice_index = 0 : index},
    %y: tensor<8xf32> {llvm.dereferenceable = 32 : index, xla.slice_index = 1 : index}) -> tensor<8xf32>
    attributes {xla.entry, gpu.known_block_size = array<i32: 8, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %i = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
  %a = tensor.extract %x[%i] : tensor<8xf32>
  %b = arith.addf %a, %a : f32
  %r = tensor.insert %b into %y[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}
"""
SUM = """
func.func @sum(%x: tensor<32xf32> {xla.invariant, xla.slice_index = 0 : index}, %y: tensor<1xf32> {xla.slice_index = 1 : index})
    -> tensor<1xf32> attributes {xla.entry, gpu.known_block_size = array<i32: 32, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>} {
  %i = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %0 = arith.constant 0 : index
  %a = tensor.extract %x[%i] : tensor<32xf32>
  %s = xla_gpu.shuffle_reduce(%a) to 16 combiner=@add : f32
  %first = arith.cmpi eq, %i, %0 : index
  %r = xla_gpu.predicated_insert %s into %y[%0] if %first : tensor<1xf32>
  return %r : tensor<1xf32>
}
func.func private @add(%a: f32, %b: f32) -> f32 {
  %s = arith.addf %a, %b : f32
  return %s : f32
}
"""


@needs(*PTX)
@pytest.mark.parametrize("name", ["transpose", "row_sum"])
def test_the_code_is_that_of_the_module(name: str) -> None:
    program = xe.compile(EXAMPLES / f"{name}.hlo", cache=False)
    for stage in STAGES:
        assert xe.compile(str(program.trace[stage].ir)).kernels[0].ptx == program.kernels[0].ptx, stage


def test_a_kernel_written_by_hand_runs() -> None:
    program = xe.compile(SCALED, stage="llvm-dialect")
    x = np.arange(8, dtype=np.float32)
    assert np.array_equal(program.run_cpu(x), 2 * x)
    assert stage_of(parse_ir(SCALED)) == "scf"
    verdict = stages_agree(program)
    assert verdict.ok
    assert verdict.summary.startswith("ok  5 stages: 8 of 8 elements")


def test_what_it_lacks_is_named() -> None:
    code = xe.compile(SCALED, stage="llvm-dialect").code
    with pytest.raises(UsageError, match="stage llvm-dialect, which is behind flat"):
        compile_kernel_ir(code, "k.mlir", CompileOptions(stage="flat"))
    bare = code.replace("llvm.dereferenceable", "llvm.other")
    with pytest.raises(
        Unsupported, match=r"argument 0 of the kernel is !llvm\.ptr; how many bytes it has is not known"
    ):
        compile_kernel_ir(bare, "k.mlir", CompileOptions(stage="llvm-dialect"))
    with pytest.raises(Unsupported, match="nothing says what it should compute"):
        xe.check(SCALED)
    on_buffers = (
        SCALED.replace("tensor<8xf32>", "memref<8xf32>").split("%i =")[0].replace("-> memref<8xf32>", "") + "return\n}"
    )
    with pytest.raises(
        Unsupported, match=r"argument 0 of the kernel is memref<8xf32>; a kernel's arrays are tensors"
    ) as caught:
        compile_kernel_ir(on_buffers, "k.mlir", CompileOptions())
    assert caught.value.place is not None


@pytest.mark.parametrize("stage", ["inlined", "scf", "llvm-dialect"])
def test_guarded_accesses_and_reductions_over_a_warp_are_of_the_first_stage(stage: str) -> None:
    x = np.arange(32, dtype=np.float32)
    assert np.array_equal(xe.compile(SUM, stage=stage).run_cpu(x), [np.float32(31 * 32 / 2)])
