"""Softmax, norms and their like, each one stitched fusion: right at every length of rows, and each row is read once where it fits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from runtime.fused_programs import CASES, CORPUS
from runtime.loops_of_programs import with_loops
from runtime.stablehlo_programs import inputs_of
from xdsl.dialects.builtin import IntegerAttr, i64

from xla_emitters.buffers.disc_specialize_fusion_with_speculation import ROW_SCHEDULE
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_runs import load
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.ral.kernels import Kernels
from xla_emitters.runtime.ral.simt_kernels import SimtKernels
from xla_emitters.runtime.simt.access_counts import AccessCounter
from xla_emitters.runtime.simt.loops import Loops
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches
from xla_emitters.stablehlo_text import parse_stablehlo

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
@pytest.mark.parametrize("name", but_long(STITCHED, ("softmax", "rms_norm")))
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
    return compile_program(parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), name))


@pytest.mark.parametrize("name", ["softmax", "softmax_gradient"])
@pytest.mark.parametrize(
    ("rows", "columns"), but_long(ROWS := [(9, 512), (70, 33), (9, 501), (9, 1001), (6, 5001), (3, 4096)], ROWS[3:5])
)
def test_rows_that_fit_are_read_once(name: str, rows: int, columns: int) -> None:
    """For any length: if vectors do not divide it, rows are copied as one range."""
    assert bytes_moved(name, {"b": rows, "s": columns}) <= 1.05


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("log_softmax", {"b": 40, "s": 64}),
        ("softmax", {"b": 9, "s": 1000}),
        ("softmax", {"b": 40, "s": 65}),
        ("layer_norm", {"b": 64, "s": 10}),
        ("rms_norm", {"b": 5, "s": 13}),
    ],
)
def test_the_machine_code_moves_no_more(name: str, sizes: dict[str, int]) -> None:
    """Weights too: a block reads them once for 32 rows."""
    assert bytes_moved(name, sizes, "llvm-dialect") <= 1.05


def test_rows_that_do_not_fit_are_read_again() -> None:
    """Softmax reads a row three times then."""
    assert 1.95 <= bytes_moved("softmax", {"b": 2, "s": 10248}) <= 2.05
