"""Programs by their kernels: every stage from loops to the LLVM dialect on real text, and code for every chip. All: `make kernels`."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from long_lists import but_long
from runtime import kernels_table
from runtime.kernels_table import CHIPS, EXECUTED, compiled, verdicts
from runtime.programs_table import programs
from tools_here import SASS, here, needs

from xla_emitters.device import device
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dtypes import dtype
from xla_emitters.errors import UsageError
from xla_emitters.explore.cost.program_cost import INDEX_BYTES, POINTER_BYTES, launches_of
from xla_emitters.lowering.toolchain.machine_code import assemble
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.pricing.occupancy import occupancy
from xla_emitters.pricing.price import machine_code_of
from xla_emitters.pricing.sass_thread import WARP, run_threads
from xla_emitters.program import LaunchDimensions, Program
from xla_emitters.runtime.simt.sized_kernels import SizedKernel
from xla_emitters.text.stablehlo import parse_stablehlo


@cache
def program(name: str) -> Program:
    return compiled(programs()[name])


# Rows that are stitched are at every stage in `test_stitched_programs.py` too.
@pytest.mark.parametrize("name", but_long(["masked_softmax", "histogram"], ["masked_softmax"]))
def test_each_stage_is_within_the_ops_bounds_and_later_ones_keep_the_bits(name: str) -> None:
    assert not verdicts(programs()[name], program(name))


def test_softmax_is_a_kernel_in_a_few_forms_and_the_host_takes_one() -> None:
    kernels = program("masked_softmax").compilation.lowering.kernels
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert {kernel.block for kernel in kernels} == {(128, 1, 1), (256, 1, 1), (512, 1, 1)}
    assert {kernel.schedule for kernel in kernels} == {"stitch"}


@needs(*SASS)
@pytest.mark.parametrize("chip", but_long([CHIPS[0], CHIPS[-1]], [CHIPS[-1]]))
def test_code_assembles_with_indices_of_both_widths(chip: str) -> None:
    made = compiled(programs()["gather_rows"], chip)
    for ptx in (made.compilation.lowering.ptx, made.compilation.lowering.wide_ptx):
        assert {entry.name for entry in assemble(ptx, chip, here()).entries} == {kernel.name for kernel in made.kernels}


@needs(*SASS)
def test_a_row_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels_table, "CHIPS", CHIPS[:1])
    is_right, text = kernels_table.row(programs()["largest_of_integers"])
    assert is_right
    assert f"3 kernels  ok  {CHIPS[0]} " in text


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


LAYER_NORM = """func.func public @main(%x: MATRIX, %scale: ROW, %bias: ROW) -> MATRIX {
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%part = stablehlo.constant dense<9.765625e-04> : tensor<f32>
%r = stablehlo.get_dimension_size %x, dim = 0 : (MATRIX) -> tensor<i32>
%c = stablehlo.get_dimension_size %x, dim = 1 : (MATRIX) -> tensor<i32>
%r1 = stablehlo.reshape %r : (tensor<i32>) -> tensor<1xi32>
%c1 = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>
%shape = stablehlo.concatenate %r1, %c1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%share = stablehlo.dynamic_broadcast_in_dim %part, %r1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
%t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (MATRIX, tensor<f32>) -> tensor<?xf32>
%m = stablehlo.multiply %t, %share : tensor<?xf32>
%mb = stablehlo.dynamic_broadcast_in_dim %m, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> MATRIX
%d = stablehlo.subtract %x, %mb : MATRIX
%p = stablehlo.multiply %d, %d : MATRIX
%s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [1] : (MATRIX, tensor<f32>) -> tensor<?xf32>
%i = stablehlo.rsqrt %s : tensor<?xf32>
%ib = stablehlo.dynamic_broadcast_in_dim %i, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> MATRIX
%n = stablehlo.multiply %d, %ib : MATRIX
%g = stablehlo.dynamic_broadcast_in_dim %scale, %shape, dims = [1] : (ROW, tensor<2xi32>) -> MATRIX
%q = stablehlo.multiply %n, %g : MATRIX
%h = stablehlo.dynamic_broadcast_in_dim %bias, %shape, dims = [1] : (ROW, tensor<2xi32>) -> MATRIX
%y = stablehlo.add %q, %h : MATRIX
return %y : MATRIX }"""
COLUMN_SUMS = """func.func public @main(%x: tensor<?x?xELEMENT>) -> tensor<?xELEMENT> {
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%w = stablehlo.convert %x : (tensor<?x?xELEMENT>) -> tensor<?x?xf32>
%e = stablehlo.exponential %w : tensor<?x?xf32>
%t = stablehlo.tanh %w : tensor<?x?xf32>
%p = stablehlo.multiply %e, %t : tensor<?x?xf32>
%s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
%y = stablehlo.convert %s : (tensor<?xf32>) -> tensor<?xELEMENT>
return %y : tensor<?xELEMENT> }"""


class Counted(NamedTuple):
    """Machine code that a program's launches execute: instructions of threads, bytes of the widest accesses, least occupancy."""

    instructions: float
    widest: tuple[int, int]
    occupancy: float


def counted(text: str, inputs: list[np.ndarray[Any, Any]]) -> Counted:
    made = compile_program(parse_stablehlo(text, "m.mlir"), CompileOptions(target="h200", record="none"))
    chip, total = device("h200"), 0.0
    code = machine_code_of(made.compilation.lowering.ptx, chip.architecture, here())
    loads, stores, shares = set[int](), set[int](), list[float]()
    for at in launches_of(made, inputs):
        widths = [POINTER_BYTES if isinstance(value, np.ndarray) else INDEX_BYTES for value in at.arguments]
        run = run_threads(code.sass[at.name], chip.architecture, at.launch, at.arguments, widths)
        total += run.warp_instructions * WARP * at.launch.blocks
        loads |= run.executed.loads.keys()
        stores |= run.executed.stores.keys()
        held = code.resources[at.name]
        shared_bytes = held.shared_bytes + at.shared_bytes
        shares.append(occupancy(chip, at.launch.threads, held.registers, shared_bytes).share)
    return Counted(total, (max(loads, default=0), max(stores, default=0)), min(shares))


@needs(*SASS)
@pytest.mark.parametrize(("columns", "per_element"), but_long([(32, 42.25), (1024, 23.44)], [(32, 42.25)]))
def test_a_layer_norm_in_registers_has_40_warps_and_fewer_instructions_than_the_static_kernels(
    columns: int, per_element: float
) -> None:
    """At divisible sizes; the static emitters' three kernels execute `per_element` (`2026-11-23-kernel-instructions.txt`).

    40 of a multiprocessor's 64 warps, each with loads of 16 bytes a thread in flight, saturate its memory.
    """
    x = np.zeros(((1 << 22) // columns, columns), np.float32)
    text = LAYER_NORM.replace("MATRIX", f"tensor<?x{columns}xf32>").replace("ROW", f"tensor<{columns}xf32>")
    found = counted(text, [x, x[0], x[0]])
    assert found.occupancy >= 40 / 64
    assert found.widest == (16, 16)
    assert found.instructions <= 0.7 * per_element * x.size


@pytest.mark.long
@needs(*SASS)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_sums_of_columns_of_long_code_fill_a_multiprocessor(element: str) -> None:
    x = np.zeros((512, 1024), dtype(element).numpy)
    assert counted(COLUMN_SUMS.replace("ELEMENT", element), [x]).occupancy == 1
