"""Kernels that compilers made of CUDA C++ and of Python have NumPy's numbers, and no fault: tests/corpus/cuda, tests/corpus/python_ptx."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.explore.check.any_ptx import Place, PtxKernel, launch_of

CORPUS = Path(__file__).parents[1] / "corpus"
I32, F16, F32 = np.int32, np.float16, np.float32
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Launched:
    """A kernel's launch and arguments, and what it leaves in arrays."""

    launch: str
    arguments: Sequence[Any]
    wanted: Mapping[Place, Array]
    inside: Mapping[tuple[int, ...], Array] = field(default_factory=dict[tuple[int, ...], Array])
    rtol: float = 0.0
    variables: Mapping[str, Array] = field(default_factory=dict[str, Array])
    maps: Mapping[Place, TensorMap] = field(default_factory=dict[Place, TensorMap])


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def bytes_of(*values: Any) -> Array:
    return np.frombuffer(b"".join(np.asarray(value).tobytes() for value in values), np.uint8).copy()


def scan() -> Launched:
    x, thirds = np.arange(256, dtype=I32), range(0, 256, 3)
    before = [[other for other in thirds if other // 32 == i // 32] for i in thirds]
    places = np.zeros(256, I32)
    places[::3] = [len(warp) * 100 + warp.index(i) for i, warp in zip(thirds, before, strict=True)]
    sums = x.reshape(16, 16).cumsum(axis=1).reshape(-1)
    return Launched("1x256", [x, np.zeros_like(x), np.zeros_like(x)], {1: sums, 2: places})


def cluster() -> Launched:
    x = np.arange(512, dtype=I32)
    return Launched("8x64", [x, np.zeros_like(x)], {1: np.roll(x.reshape(2, 256), -64, axis=1).reshape(-1)})


def pipeline() -> Launched:
    x = np.arange(1024, dtype=I32)
    return Launched("1x128+1024", [x, np.zeros(128, I32), I32(8)], {1: x.reshape(8, 128)[:, ::-1].sum(axis=0)})


def halves() -> Launched:
    x, y = numbers(256).astype(F16), numbers(256, seed=1).astype(F16)
    products = (x.astype(float) * y + np.maximum(x, y)).astype(F16)
    roots = np.abs(x[::2]) + np.sqrt(np.abs(y[1::2]).astype(F32)).astype(F16)
    arguments = [x, y, np.zeros(256, F16), np.zeros(128, F16), np.zeros(1, F16)]
    return Launched("1x128", arguments, {2: products, 3: roots, 4: np.full(1, 64, F16)})


def calls() -> Launched:
    i = np.arange(64)
    x = (i * 7 % 36).astype(I32)
    cases = np.choose(x % 9, [11, i * 2, i * i, -i, i ^ 85, i << 3, i >> 1, ~i, 1234])
    fibonacci = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
    wanted = {1: np.where(x % 2, i * 3, i - 100), 2: np.where(x % 2, 2 * x, x + 1), 3: fibonacci[x % 12], 4: cases}
    return Launched("1x64", [x, *(np.zeros(64, I32) for _ in wanted)], wanted)


def structure() -> Launched:
    i, x = np.arange(100), numbers(100).astype(F32)
    nowhere, offsets = np.uint64(0), np.array([1, 2, 3, 0], np.int16)
    given = bytes_of(I32(100), I32(0), nowhere, nowhere, nowhere, I32(2), I32(0), offsets)
    inside: dict[tuple[int, ...], Array] = {(0, 8): x, (0, 16): np.zeros(100, F32), (0, 24): np.zeros(2, np.uint64)}
    inside |= {(0, 24, 0): np.zeros(50, F32), (0, 24, 8): np.zeros(50, F32)}
    y = (x.astype(float) * (1 + i % 4) + (1 + i % 3)).astype(F32)
    return Launched("2x64", [given], {(0, 16): y, (0, 24, 0): x[::2], (0, 24, 8): x[1::2]}, inside)


def last_block() -> Launched:
    x = np.arange(512, dtype=I32)
    arguments = [np.zeros(1, np.uint32), x, np.zeros(16, I32), np.zeros(1, I32)]
    return Launched("16x32", arguments, {2: x.reshape(16, 32).sum(axis=1), 3: x.sum(keepdims=True)})


def lock() -> Launched:
    return Launched("8x32", [np.zeros(1, I32), np.zeros(1, I32)], {0: np.zeros(1), 1: np.full(1, 36)})


def wide() -> Launched:
    x, angles = np.random.default_rng(0).integers(1, 1 << 40, 64), (numbers(64, seed=1) * 1e8).astype(F32)
    products = [value**3 // ((value >> 3) + 1) for value in x.tolist()]
    y = [(p >> 64 ^ p) + value // 7 + value % 13 for p, value in zip(products, x.tolist(), strict=True)]
    exact = np.array([number & (1 << 64) - 1 for number in y], np.uint64).view(np.int64)
    arguments = [x, np.zeros(64, np.int64), angles, np.zeros(64, F32)]
    return Launched("1x64", arguments, {1: exact, 3: np.sin(angles.astype(float))}, rtol=2**-22)


def chain() -> Launched:
    x, left = np.arange(512, dtype=I32), np.eye(1, 9, dtype=I32)[0]
    return Launched("8x64", [left, x, np.zeros_like(x)], {2: x.cumsum()})


def grid() -> Launched:
    x, weights = numbers(512).astype(F32), numbers(3, seed=1).astype(F32)

    def weighted(y: Array) -> Array:
        return weights[0] * np.roll(y, 1).astype(float) + weights[1] * y.astype(float) + weights[2] * np.roll(y, -1)

    once = weighted(x)
    arguments = [x, np.zeros_like(x), np.zeros_like(x), I32(512)]
    return Launched("8x64", arguments, {2: weighted(once)}, rtol=1e-3, variables={"weights": weights})


def numba_grid() -> Launched:
    m, nowhere = np.zeros((6, 128), I32), np.int64(0)
    sizes = [nowhere, nowhere, *map(np.int64, (m.size, 4)), m, *map(np.int64, (*m.shape, *m.strides))]
    return Launched("4x32", sizes, {4: np.repeat(np.arange(6)[:, None], 128, axis=1)})


def warp_softmax() -> Launched:
    x = numbers(3, 200).astype(F32)
    powers = np.exp(x.astype(float))
    described = bytes_of(np.zeros(2, np.uint64), np.array([3, 200, 0, 0, 800, 4, 0, 0, 2, 0], I32))
    bounds = bytes_of(np.array([3, 1], I32), np.array([3 * 256, 256]))
    inside: dict[tuple[int, ...], Array] = {(1, 0): x, (2, 0): np.zeros_like(x)}
    wanted: dict[Place, Array] = {(2, 0): powers / powers.sum(axis=1, keepdims=True)}
    return Launched("3x256+64", [bounds, described, described], wanted, inside, rtol=1e-5)


def mosaic_sum() -> Launched:
    x, y, of_all = numbers(256).astype(F32), numbers(256, seed=1).astype(F32), TensorMap(box=(256,))
    arguments = [np.zeros(256, F32), np.zeros(256, np.uint8)]
    inside: dict[tuple[int, ...], Array] = {(1, 0): x, (1, 128): y}
    return Launched("1x128+3080", arguments, {0: x + y}, inside, maps=dict.fromkeys(inside, of_all))


def tinygrad_product() -> Launched:
    x, y = numbers(32, 32).astype(F32), numbers(32, 32, seed=1).astype(F32)
    return Launched("32,32x16", [np.zeros_like(x), x, y], {0: x.astype(float) @ y}, rtol=1e-3)


KERNELS: dict[str, Callable[[], Launched]] = {
    made.__name__: made
    for made in (scan, cluster, pipeline, halves, calls, structure, last_block, lock, wide, chain, grid)
}
OF_PYTHON: dict[str, Callable[[], Launched]] = {
    made.__name__: made for made in (numba_grid, warp_softmax, mosaic_sum, tinygrad_product)
}


def file_of(name: str) -> Path:
    return CORPUS / ("cuda" if name in KERNELS else "python_ptx") / f"{name}.ptx"


@pytest.mark.parametrize("name", KERNELS | OF_PYTHON)
def test_numbers_are_numpys_and_there_is_no_fault(name: str) -> None:
    given = (KERNELS | OF_PYTHON)[name]()
    launch, shared, _ = launch_of(given.launch)

    def expected(after: dict[Place, Array]) -> str:
        for place, wanted in given.wanted.items():
            np.testing.assert_allclose(after[place], wanted, rtol=given.rtol)
        return ""

    kernel = PtxKernel.read(file_of(name).read_text(), f"{name}.ptx").filled(given.variables)
    verdict = kernel.check(
        given.arguments,
        launch,
        shared_bytes=shared,
        inside=given.inside,
        tensor_maps=given.maps,
        expected=expected,
    )
    assert verdict.ok, verdict.details


def test_each_kernel_is_tried() -> None:
    assert KERNELS.keys() == {found.stem for found in (CORPUS / "cuda").glob("*.cu")}
    assert OF_PYTHON.keys() == {found.stem for found in (CORPUS / "python_ptx").glob("*.py")}


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("chain", r"bar\.sync", "a race"),
        ("chain", r"cp\.async\.wait_all", "a race"),
        ("numba_grid", r"call\.uni \(retval0\), *\n\s*cudaCGSynchronize", "a race"),
        ("warp_softmax", r"bar\.sync", "a race"),
        ("mosaic_sum", r"fence\.proxy\.async", "without fence.proxy.async"),
        ("tinygrad_product", r"bar\.sync", "a race"),
    ],
)
def test_an_instruction_that_is_left_out_is_found(name: str, line: str, found: str) -> None:
    given = (KERNELS | OF_PYTHON)[name]()
    file, (launch, shared, _) = file_of(name), launch_of(given.launch)
    text = re.sub(rf"\b{line}[^;]*;", "", file.read_text())
    kernel = PtxKernel.read(text, file.name).filled(given.variables)
    verdict = kernel.check(given.arguments, launch, inside=given.inside, tensor_maps=given.maps, shared_bytes=shared)
    assert found in verdict.details[0]
