"""Programs by their kernels: every stage from loops to the LLVM dialect on real text, and code for every chip. All: `make kernels`."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from long_lists import but_long
from runtime import kernel_instructions
from runtime.kernels_table import CHIPS, EXECUTED, compiled, verdicts
from runtime.programs_table import programs
from tools_here import SASS, here, needs

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import UsageError
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import LaunchDimensions, Program
from xla_emitters.runtime.simt.sized_kernels import SizedKernel
from xla_emitters.text.stablehlo import parse_stablehlo


@cache
def program(name: str) -> Program:
    return compiled(programs()[name])


@pytest.mark.parametrize("name", ["masked_softmax", "histogram"])
def test_each_stage_is_within_the_ops_bounds_and_later_ones_keep_the_bits(name: str) -> None:
    assert not verdicts(programs()[name], program(name))


def test_softmax_is_a_kernel_in_a_few_forms_and_the_host_takes_one() -> None:
    made = program("masked_softmax")
    names = [kernel.name for kernel in made.kernels]
    assert len(names) == len(set(names))
    assert {kernel.launch.block for kernel in made.kernels} == {(128, 1, 1), (256, 1, 1), (512, 1, 1)}
    assert {kernel.schedule for kernel in made.compilation.lowering.kernels} == {"stitch"}


@needs(*SASS)
@pytest.mark.parametrize("chip", but_long([CHIPS[0], CHIPS[-1]], [CHIPS[-1]]))
def test_code_assembles_with_indices_of_both_widths(chip: str) -> None:
    made = compiled(programs()["gather_rows"], chip)
    for ptx in (made.compilation.lowering.ptx, made.compilation.lowering.wide_ptx):
        assert {entry.name for entry in assemble(ptx, chip, here()).entries} == {kernel.name for kernel in made.kernels}


def test_a_kernel_is_launched_at_any_size_and_nothing_beyond_is_written() -> None:
    text = """
    gpu.module @k {
      gpu.func @k(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index) kernel {
        %b = gpu.block_id x
        %t = gpu.thread_id x
        %c64 = arith.constant 64 : index
        %s = arith.muli %b, %c64 : index
        %i = arith.addi %s, %t : index
        %in = arith.cmpi slt, %i, %n : index
        scf.if %in {
          %v = memref.load %x[%i] : memref<?xf32, "gpu">
          memref.store %v, %y[%i] : memref<?xf32, "gpu">
        }
        gpu.return
      }
    }"""
    kernel = SizedKernel.of(parse_ir(text))
    for n in (1, 64, 65, 1000):
        x, y = np.arange(1001, dtype=np.float32), np.full(1001, -1, np.float32)
        kernel(LaunchDimensions((-(-n // 64), 1, 1), (64, 1, 1)), [x, y, n])
        np.testing.assert_array_equal(y, np.where(np.arange(1001) < n, x, -1))


def test_a_program_that_stopped_before_has_no_kernels() -> None:
    text = (programs()["halves"].folder / "halves.mlir").read_text()
    made = compile_program(parse_stablehlo(text), CompileOptions(stage="fused"))
    with pytest.raises(UsageError, match="up to 'fused' only"):
        _ = made.compilation.lowering.kernels
    assert EXECUTED[0] not in made.compilation.stages


def test_a_program_without_recorded_stages_says_so_where_it_is_explained() -> None:
    with pytest.raises(UsageError, match="no stage was recorded"):
        program("halves").explain()


@needs(*SASS)
@pytest.mark.parametrize(("columns", "per_element"), but_long([(32, 42.25), (1024, 23.44)], [(32, 42.25)]))
def test_a_layer_norm_in_registers_has_40_warps_and_fewer_instructions_than_the_static_kernels(
    columns: int, per_element: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At divisible sizes; the static emitters' three kernels execute `per_element` (`python -m runtime.kernel_instructions`).

    40 of a multiprocessor's 64 warps, each with loads of 16 bytes a thread in flight, saturate its memory.
    """
    monkeypatch.setattr(kernel_instructions, "COLUMNS", columns)
    monkeypatch.setattr(kernel_instructions, "ROWS", (1 << 22) // columns)
    found = kernel_instructions.dynamic(kernel_instructions.CASES["layer_norm"], "f32")
    assert found.occupancy >= 40 / 64
    assert found.widest == (16, 16)
    assert found.per_element <= 0.7 * per_element


@pytest.mark.long
@needs(*SASS)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_sums_of_columns_of_long_code_fill_a_multiprocessor(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_instructions, "ROWS", 512)
    assert kernel_instructions.dynamic(kernel_instructions.CASES["column_sums_of_products"], element).occupancy == 1
