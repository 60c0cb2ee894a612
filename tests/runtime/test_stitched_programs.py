"""Softmax, norms and their like, each one stitched fusion: right at every length of rows, and each row is read once where it fits."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from runtime.fused_programs import CASES, CORPUS
from runtime.loops_of_programs import with_loops
from runtime.stablehlo_programs import inputs_of
from xdsl.dialects.builtin import IntegerAttr, i64

from xla_emitters.buffers.disc_specialize_fusion_with_speculation import ROW_SCHEDULE
from xla_emitters.dialects.lmhlo import FusionOp
from xla_emitters.dtypes import Array
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import DynamicProgram, compile_program, load
from xla_emitters.runtime.ral.context import Kernels
from xla_emitters.runtime.ral.program import LoadedProgram
from xla_emitters.runtime.ral.simt_kernels import SimtKernels
from xla_emitters.runtime.simt.access_counts import AccessCounter
from xla_emitters.runtime.simt.loops import Loops
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import SanitizerOfLaunches
from xla_emitters.stablehlo_text import parse_stablehlo

STITCHED = ("softmax", "log_softmax", "softmax_gradient", "layer_norm", "rms_norm")
SIZES = [{"b": 1, "s": 1}, {"b": 3, "s": 33}, {"b": 2, "s": 513}, {"b": 9, "s": 40}]


@cache
def fused(name: str) -> DynamicProgram:
    path = CORPUS / f"{name}.mlir"
    return compile_program(parse_stablehlo(path.read_text(), path.name), CompileOptions(stage="fused"))


@cache
def with_schedule(name: str, hint: int | None) -> LoadedProgram:
    """The program with loops. hint: 1 a block a row, 2 a warp, None as the length of rows says."""
    module = fused(name).at("fused").clone()
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
@pytest.mark.parametrize("name", STITCHED)
def test_a_row_computed_by_a_block_or_a_warp(name: str, hint: int | None, watched: list[Watcher]) -> None:
    """Against the ops of the fusion one by one in NumPy; the sanitizer watches."""
    watched.append(SanitizerOfLaunches())
    for sizes in SIZES:
        inputs = inputs_of(name, sizes, CASES[name][0])
        found = with_schedule(name, hint).run(fused(name).checked(inputs))
        assert_close(found, fused(name).run(inputs))


def bytes_moved(name: str, sizes: dict[str, int], watched: list[Watcher]) -> tuple[float, float]:
    """Bytes that the loops move in global memory, arrays of matrices and the rest (vectors, scalars), over the least possible."""
    inputs = inputs_of(name, sizes, CASES[name][0])
    arrays = fused(name).checked(inputs)
    watched.append(counter := AccessCounter())
    results = with_schedule(name, None).run(arrays)
    assert_close(results, fused(name).run(inputs))
    whole = {f"%p{number}" for number, array in enumerate(arrays) if array.size == results[0].size}
    moved = Counter[bool]()
    for count in counter.counts():
        if count.space == "global":
            moved[count.is_store or count.memory in whole] += round(count.requests * count.sectors * 32)
    least = sum(array.nbytes for array in (*arrays, *results))
    return moved[True] / least, moved[False] / least


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmax_gradient"])
@pytest.mark.parametrize("columns", [256, 512, 4096, 5120])
def test_rows_that_fit_are_read_once(name: str, columns: int, watched: list[Watcher]) -> None:
    whole, rest = bytes_moved(name, {"b": 24, "s": columns}, watched)
    assert whole + rest <= 1.05


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms_read_their_rows_once(name: str, watched: list[Watcher]) -> None:
    """The vectors that all rows read are counted apart: a cache has them."""
    whole, _ = bytes_moved(name, {"b": 64, "s": 10}, watched)
    assert whole <= 1.05


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("softmax", {"b": 40, "s": 64}),
        ("softmax", {"b": 9, "s": 1000}),
        ("softmax_gradient", {"b": 33, "s": 128}),
        ("layer_norm", {"b": 64, "s": 10}),
        ("rms_norm", {"b": 5, "s": 13}),
    ],
)
@pytest.mark.parametrize("stage", ["kernels", "llvm-dialect"])
def test_all_that_kernels_move_is_hardly_more_than_the_least(name: str, sizes: dict[str, int], stage: str) -> None:
    """Sectors of each request, weights too: a block reads them once for 32 rows. What several lanes read together counts once."""
    program = compile_program(parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), name))
    arrays = program.checked(inputs_of(name, sizes, CASES[name][0]))
    counter = AccessCounter()

    def counted(kernels: Kernels) -> Kernels:
        assert isinstance(kernels, SimtKernels)
        return kernels.watched_by(counter)

    results = program.road.watched(stage, print, counted).run(arrays)
    assert_close(results, program.run(arrays))
    moved = sum(count.requests * count.sectors * 32 for count in counter.counts() if count.space == "global")
    assert moved <= 1.05 * sum(array.nbytes for array in (*arrays, *results))


def test_rows_that_do_not_fit_are_read_again(watched: list[Watcher]) -> None:
    """Softmax reads a row three times then."""
    whole, _ = bytes_moved("softmax", {"b": 2, "s": 10248}, watched)
    assert 1.95 <= whole <= 2.05
