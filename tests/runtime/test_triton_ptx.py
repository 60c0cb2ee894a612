"""Triton's kernels for sm_100 have NumPy's numbers, and no fault: tests/corpus/triton_ptx, where their sources are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.explore.check.any_ptx import Place, PtxKernel
from xla_emitters.program import LaunchDimensions

KERNELS = Path(__file__).parents[1] / "corpus" / "triton_ptx"
Array = np.ndarray[Any, Any]
I32, I64, F16, F32, F8 = np.int32, np.int64, np.float16, np.float32, ml_dtypes.float8_e4m3fn


@dataclass(frozen=True)
class Launched:
    """Arguments without Triton's two buffers behind them; `result` is the argument that becomes `wanted`; threads of a block."""

    arguments: Sequence[Any]
    result: int
    wanted: Array
    shared_bytes: int
    grid: tuple[int, int, int] = (1, 1, 1)
    threads: int = 128
    tensor_maps: dict[Place, TensorMap] = field(default_factory=dict[Place, TensorMap])
    atol: float = 0.0


def drawn(low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(low, high, shape)


def product() -> Launched:
    """The last rows, columns and part of the sums are outside."""
    m, n, k = 144, 80, 160
    a, b = drawn(-2, 3, m, k), drawn(-2, 3, n, k)
    arguments = [a.astype(F8), b.astype(F8), np.zeros((m, n), F16), *map(I32, (m, n, k, k, k, n))]
    return Launched(arguments, 2, a @ b.T, 24592, (2, 2, 1))


def by_warps() -> Launched:
    m, n, k = 256, 256, 192
    a, b = drawn(-2, 3, m, k), drawn(-2, 4, n, k)
    sizes = [[I32(rows), I32(columns), I64(columns), I64(1)] for rows, columns in ((m, k), (n, k), (m, n))]
    arrays = [a.astype(F16), b.astype(F16), np.zeros((m, n), F16)]
    arguments = [each for array, of in zip(arrays, sizes, strict=True) for each in (array, *of)]
    maps: dict[Place, TensorMap] = {place: TensorMap(box=(128, 64), swizzle=128) for place in (0, 5, 10)}
    return Launched([*arguments, *map(I32, (m, n, k))], 10, a @ b.T, 98372, (2, 1, 1), 256, maps)


def attention() -> Launched:
    length, depth, scale = 128, 64, 0.18
    q, k, v = np.random.default_rng(0).standard_normal((3, length, depth)).astype(F16)
    scores = q.astype(float) @ k.T.astype(float) * scale
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
    wanted = weights @ v.astype(float) / weights.sum(axis=1, keepdims=True)
    arguments = [q, k, v, np.zeros((length, depth), F16), I32(length), F32(scale)]
    return Launched(arguments, 3, wanted, 49184, atol=2e-3)


def scaled() -> Launched:
    a, b, of_a, of_b = drawn(-2, 3, 128, 128), drawn(-2, 4, 128, 128), drawn(126, 129, 128, 4), drawn(125, 128, 128, 4)
    factors = [np.repeat(2.0 ** (each - 127), 32, axis=1) for each in (of_a, of_b)]
    arguments = [a.astype(F8), of_a.astype(np.uint8), b.astype(F8), of_b.astype(np.uint8), np.zeros((128, 128), F32)]
    return Launched(arguments, 4, (a * factors[0]) @ (b * factors[1].T), 33280)


def histogram() -> Launched:
    x = drawn(0, 64, 1024)
    return Launched([x.astype(I32), np.zeros(64, I32)], 1, np.bincount(x, minlength=64), 256)


@pytest.mark.parametrize("made", [product, by_warps, attention, scaled, histogram])
def test_numbers_are_numpys_and_there_is_no_fault(made: Callable[[], Launched]) -> None:
    given, file = made(), KERNELS / f"{made.__name__}.ptx"
    kernel = PtxKernel.read(file.read_text(), file.name)

    def expected(after: dict[Place, Array]) -> str:
        np.testing.assert_allclose(after[given.result].astype(float), given.wanted, rtol=0, atol=given.atol)
        return ""

    buffers = [np.zeros(1, np.uint8)] * (len(kernel.parameters) - len(given.arguments))
    verdict = kernel.check(
        [*given.arguments, *buffers],
        LaunchDimensions(given.grid, (given.threads, 1, 1)),
        shared_bytes=given.shared_bytes,
        tensor_maps=given.tensor_maps,
        expected=expected,
    )
    assert verdict.ok, verdict.details
