"""Softmax, norms and their like, each one stitched fusion: right at every length of rows, and each row is read once where it fits."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import but_long, every, long_case
from runtime.fused_programs import CASES, CORPUS
from runtime.loops_of_programs import with_loops
from runtime.stablehlo_programs import inputs_of
from xdsl.dialects.builtin import IntegerAttr, i64

from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.dynamic.buffers.fusion_rules import ROW_SCHEDULE
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_runs import load
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.simt_kernels import SimtKernels
from xla_emitters.runtime.simt.access_counts import AccessCounter
from xla_emitters.runtime.simt.fusion_loops import Loops
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches
from xla_emitters.text.stablehlo import parse_stablehlo

STITCHED = ("softmax", "log_softmax", "softmax_gradient", "layer_norm", "rms_norm")
SIZES = [{"b": 1, "s": 1}, {"b": 3, "s": 33}, {"b": 2, "s": 513}, {"b": 9, "s": 40}]


@cache
def fused(name: str) -> Program:
    path = CORPUS / f"{name}.mlir"
    return compile_program(parse_stablehlo(path.read_text(), path.name), CompileOptions(stage="fused"))


@cache
def with_schedule(name: str, hint: int | None) -> LoadedProgram:
    """The program with loops. hint: 1 a block per row, 2 a warp per row, None: by the length of rows."""
    module = fused(name).compilation.at("fused").clone()
    for fusion in (op for op in module.walk() if isinstance(op, FusionOp)):
        if hint is not None:
            fusion.attributes[ROW_SCHEDULE] = IntegerAttr(hint, i64)
    return load(with_loops(module))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Watcher]:
    """Watchers of all loops that run."""
    watchers, call = list[Watcher](), Loops.__call__

    def watched_call(self: Loops, *values: Any) -> None:
        call(self, *values, watchers=watchers)

    monkeypatch.setattr(Loops, "__call__", watched_call)
    return watchers


def assert_close(found: list[Array], wanted: list[Array]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("hint", [1, 2, None])
@pytest.mark.parametrize("name", but_long(STITCHED, ("softmax", "rms_norm", "layer_norm")))
def test_a_row_computed_by_a_block_or_a_warp(name: str, hint: int | None, watched: list[Watcher]) -> None:
    """Against the ops of the fusion one by one in NumPy; the sanitizer watches."""
    watched.append(SanitizerOfLaunches())
    for sizes in SIZES:
        inputs = inputs_of(name, sizes, CASES[name][0])
        found = with_schedule(name, hint).run(fused(name).compilation.checked(inputs))
        assert_close(found, fused(name).run(inputs))


def bytes_moved(name: str, sizes: dict[str, int], stage: str = "kernels") -> float:
    """Bytes that the kernels move, relative to the minimum: whole sectors of each request; bytes that several lanes read count once."""
    program = compiled(name)
    arrays = program.compilation.checked(inputs_of(name, sizes, CASES[name][0]))
    counter = AccessCounter()

    def counted(kernels: Kernels) -> Kernels:
        assert isinstance(kernels, SimtKernels)
        return kernels.watched_by(counter)

    results = program.compilation.lowering.watched(stage, print, counted).run(arrays)
    assert_close(results, program.run(arrays))
    moved = sum(count.requests * count.sectors * 32 for count in counter.counts() if count.space == "global")
    return moved / sum(array.nbytes for array in (*arrays, *results))


@cache
def compiled(name: str) -> Program:
    return compile_program(parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), name), CompileOptions(record="none"))


ROWS = [(9, 512), (70, 33), (9, 501), (9, 1001), (6, 5001), (3, 4096)]


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    every(len(ROWS) * 2, [(name, *row) for row in ROWS for name in ("softmax", "softmax_gradient")]),
)
def test_rows_that_fit_are_read_once(name: str, rows: int, columns: int) -> None:
    """If vectors do not divide a row, each request of a warp may touch one sector more than it fills: the caches have it then."""
    sectors = columns * 4 / 32
    if columns % 4:
        requests, left = divmod(columns, 32)
        sectors = requests * 5 + -(-left * 4 // 32) + 1
    assert bytes_moved(name, {"b": rows, "s": columns}) <= 1.05 * sectors * 32 / (columns * 4)


@pytest.mark.parametrize(
    ("name", "sizes"),
    every(3, [("log_softmax", {"b": 40, "s": 64}), ("softmax", {"b": 9, "s": 1000}), ("softmax", {"b": 40, "s": 72})]),
)
def test_the_machine_code_moves_no_more(name: str, sizes: dict[str, int]) -> None:
    assert bytes_moved(name, sizes, "llvm-dialect") <= 1.05


def test_weights_are_read_once_a_warp() -> None:
    """32 rows of 256 f32, a warp each: four arrays of 256 in each warp, of which two are the row and its result."""
    assert bytes_moved("layer_norm", {"b": 32, "s": 256}, "llvm-dialect") <= 2.05


def test_rows_that_do_not_fit_are_read_again() -> None:
    """Softmax reads a row three times then."""
    assert 1.95 <= bytes_moved("softmax", {"b": 2, "s": 16392}) <= 2.05


MOVED = """
module @moved {
  func.func public @main(%x: tensor<?x{n}xf32>) -> (tensor<?x{n}xf32>, tensor<?x{n}xf32>) {
    %none = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %kept = stablehlo.exponential %x : tensor<?x{n}xf32>
    MOVE
    %largest = stablehlo.reduce(%kept init: %none) applies stablehlo.maximum across dimensions = [1]
      : (tensor<?x{n}xf32>, tensor<f32>) -> tensor<?xf32>
    %rows = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x{n}xf32>) -> tensor<i32>
    %columns = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x{n}xf32>) -> tensor<i32>
    %r = stablehlo.reshape %rows : (tensor<i32>) -> tensor<1xi32>
    %c = stablehlo.reshape %columns : (tensor<i32>) -> tensor<1xi32>
    %shape = stablehlo.concatenate %r, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %spread = stablehlo.dynamic_broadcast_in_dim %largest, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x{n}xf32>
    %below = stablehlo.subtract %kept, %spread : tensor<?x{n}xf32>
    %sum = stablehlo.add %below, %moved : tensor<?x{n}xf32>
    return %moved, %sum : tensor<?x{n}xf32>, tensor<?x{n}xf32>
  }
}
"""
REVERSED = "%moved = stablehlo.reverse %kept, dims = [1] : tensor<?x{n}xf32>"
SHIFTED = """%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %wider = stablehlo.pad %kept, %zero, low = [0, 3], high = [0, 0], interior = [0, 0] : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x11xf32>
    %moved = "stablehlo.real_dynamic_slice"(%wider, %low, %high, %one)
      : (tensor<?x11xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x8xf32>"""
LIMITS = """%b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
    %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
    %eight = stablehlo.constant dense<8> : tensor<1xi32>
    %low = stablehlo.constant dense<0> : tensor<2xi32>
    %one = stablehlo.constant dense<1> : tensor<2xi32>
    %high = stablehlo.concatenate %b1, %eight, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    """


@pytest.mark.parametrize(("move", "columns"), [long_case((REVERSED, "?")), (REVERSED, "8"), (LIMITS + SHIFTED, "8")])
def test_a_value_that_a_row_keeps_and_that_is_read_at_other_columns(move: str, columns: str) -> None:
    """`moved` reads `kept` at other columns than the one whose element the loop holds."""
    text = MOVED.replace("MOVE", move).replace("{n}", columns)
    program = compile_program(parse_stablehlo(text, "moved.mlir"), CompileOptions(record="none"))
    stopped = compile_program(parse_stablehlo(text, "moved.mlir"), CompileOptions(stage="fused", record="none"))
    fusions = [op for op in stopped.compilation.at("fused").walk() if isinstance(op, FusionOp)]
    assert any(op.kind.data == "kStitch" for op in fusions)
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 8), np.float32)
        kept = np.exp(x)
        moved = np.pad(kept, ((0, 0), (3, 0)))[:, :8] if "pad" in text else kept[:, ::-1]
        wanted = [moved, (kept - kept.max(1, keepdims=True)) + moved]
        for stage in ("loops", "llvm-dialect", None):
            found = program.run([x], stage=stage)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


SQUARE = """
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x?xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %n = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %n, %n, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %s = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %w = stablehlo.dynamic_broadcast_in_dim %m, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %d = stablehlo.subtract %s, %w : tensor<?x?xf32>
  %e = stablehlo.exponential %d : tensor<?x?xf32>
  return %e : tensor<?x?xf32>
}
"""


def test_rows_of_a_square_array() -> None:
    """The number of rows is the number of columns: the grid's size and the rows' length are one value of the host."""
    program = compile_program(parse_stablehlo(SQUARE, "square.mlir"), CompileOptions(record="none"))
    for rows in (1, 6, 8, 300):
        x = np.random.default_rng(rows).standard_normal((rows, 4), np.float32)
        s = x @ x.T
        for stage in ("loops", "llvm-dialect", None):
            np.testing.assert_allclose(
                program.run([x], stage=stage)[0], np.exp(s - s.max(1, keepdims=True)), rtol=1e-5, atol=1e-6
            )
