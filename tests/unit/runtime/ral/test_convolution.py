"""Convolutions by machine code and by NumPy, against sums over all pairs of places and points in double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.lowering.host_convolutions import WORDS
from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.pipelines.program_host import convolution_code, product_code
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.convolution import FEW_PLACES, Convolution
from xla_emitters.runtime.ral.gemm import Contraction
from xla_emitters.runtime.ral.host_kernels import HostKernels
from xla_emitters.runtime.ral.kernels import ConvolutionWork

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = np.ndarray[Any, Any]
BOUNDS = {"f32": 1e-5, "f64": 1e-13, "f16": 2e-3}
"""In units of the largest magnitude of the result: sums of at most some hundred terms."""
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
PRODUCTS, CONVOLUTIONS = (partial(code, cpu=host_cpu()) for code in (product_code, convolution_code))
CODE_OF_BOTH = HostKernels({}, {}, lambda name: 0, PRODUCTS, CONVOLUTIONS)
CODE = HostKernels({}, {}, lambda name: 0, None, CONVOLUTIONS)


class Drawn:
    """A random convolution; with `by_rows` one whose features are neighbours in all arrays.

    name    of its element type
    orders  of the dimensions: batch or features in, features, spatial ones; of image, kernel, result
    """

    def __init__(self, seed: int, *, by_rows: bool = False) -> None:
        rng = np.random.default_rng(seed)

        def each(low: int, high: int) -> list[int]:
            return [int(number) for number in rng.integers(low, high, rank)]

        self.name = ("f32", "f32", "f64", "f16")[seed % 4]
        rank = seed % 3 + 1
        self.batch, self.ins, self.outs = (int(rng.integers(1, high)) for high in (4, 9, 20))
        self.groups, self.batch_groups = [(1, 1), (3, 1), (1, 2), (1, 1)][int(rng.integers(4))]
        self.sizes, self.points = each(1, 14 if rank < 3 else 7), each(1, 12 if rank < 2 else 4)
        self.strides, self.dilations, self.low, self.high = each(1, 3), each(1, 3), each(-1, 4), each(0, 4)
        self.base = each(1, 4) if seed % 5 == 0 else [1] * rank
        self.orders = [list(map(int, rng.permutation(rank + 2))) for _ in range(3)]
        if by_rows:
            spatial = list(range(1, rank + 1))
            last = [0, rank + 1, *spatial]
            self.orders = [last, [rank, rank + 1, *range(rank)], last]
            self.name = ("f32", "f64")[seed % 2]
            self.outs, self.groups, self.batch_groups = int(rng.integers(8, 70)), 1, 1
            self.base, self.dilations[-1], self.sizes[-1] = [1] * rank, 1, int(rng.integers(4, 40))
        of_image = (self.batch * self.batch_groups, self.ins * self.groups, *self.sizes)
        of_kernel = (self.ins, self.outs * self.groups * self.batch_groups, *self.points)
        self.image, self.kernel = (
            rng.standard_normal([shape[order.index(dim)] for dim in range(rank + 2)]).astype(TYPES[self.name])
            for shape, order in zip((of_image, of_kernel), self.orders, strict=False)
        )

    @property
    def places(self) -> list[int]:
        reaches = ((points - 1) * dilation + 1 for points, dilation in zip(self.points, self.dilations, strict=True))
        spans = (
            (size - 1) * base + 1 + low + high
            for size, base, low, high in zip(self.sizes, self.base, self.low, self.high, strict=True)
        )
        return [max(0, (span - reach) // by + 1) for span, reach, by in zip(spans, reaches, self.strides, strict=True)]

    def exact(self) -> Array:
        """Result [batch, features, places ...] in double precision."""
        image = self.image.astype(np.float64).transpose(self.orders[0])
        kernel = self.kernel.astype(np.float64).transpose(self.orders[1])
        count = max(self.groups, self.batch_groups)
        images = np.split(image, count, axis=1 if self.groups > 1 else 0)
        found = [np.zeros((self.batch, self.outs, *self.places)) for _ in range(count)]
        for place, point in product(product(*map(range, self.places)), product(*map(range, self.points))):
            there = [
                p * by + k * dilation - low
                for p, k, by, dilation, low in zip(place, point, self.strides, self.dilations, self.low, strict=True)
            ]
            at = [divmod(number, base) for number, base in zip(there, self.base, strict=True)]
            if all(not hole and 0 <= index < size for (index, hole), size in zip(at, self.sizes, strict=True)):
                here = (slice(None), slice(None), *(index for index, _ in at))
                weights = np.split(kernel[(slice(None), slice(None), *point)], count, axis=1)
                for group in range(count):
                    found[group][(slice(None), slice(None), *place)] += images[group][here] @ weights[group]
        return np.concatenate(found, axis=1)

    def run(self, kernels: HostKernels | None) -> Array:
        """Result [batch, features, places ...] of the runtime's function."""
        rank = len(self.sizes)
        shape = (self.batch, self.outs * max(self.groups, self.batch_groups), *self.places)
        out = np.full([shape[self.orders[2].index(dim)] for dim in range(rank + 2)], np.nan, TYPES[self.name])
        numbers = [number for order in self.orders for number in order]
        numbers += [*self.strides, *self.dilations, 0, self.groups, self.batch_groups, *self.base]
        padding = np.array([self.low, self.high], np.int32).T
        function = Convolution([self.name, self.name, "s32", self.name])
        function(Call(Context(kernels), ()), None, self.image, self.kernel, padding, out, tuple(numbers))
        return out.transpose(self.orders[2])


def is_near(found: Array, exact: Array, bound: float) -> bool:
    return bool(np.abs(found - exact).max(initial=0) <= bound * np.abs(exact).max(initial=0))


@pytest.mark.parametrize("seed", range(60))
def test_all_layouts_windows_and_groups(seed: int) -> None:
    drawn = Drawn(seed)
    exact = drawn.exact()
    for kernels in (CODE, None):
        assert is_near(drawn.run(kernels), exact, BOUNDS[drawn.name])


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_images_with_neighbouring_features(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, taken = Drawn(seed, by_rows=True), list[int]()

    def convolve(element: str, work: ConvolutionWork) -> bool:
        taken.append(work.rows)
        return HostKernels.convolve(CODE, element, work._replace(is_shared=seed % 3 == 0))

    monkeypatch.setattr(CODE, "convolve", convolve)
    assert is_near(drawn.run(CODE), drawn.exact(), BOUNDS[drawn.name])
    assert taken == [drawn.batch * math.prod(drawn.places[:-1]) if drawn.places[-1] >= FEW_PLACES else 0]


def test_threads_that_share_it_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    image, kernel = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 9, 20, 30), (70, 9, 3, 3)))
    numbers = (0, 1, 2, 3, 1, 0, 2, 3, 0, 1, 2, 3, 1, 1, 1, 1, 0)
    found = list[Array]()
    for is_shared in (True, False):
        taken = list[ConvolutionWork]()

        def convolve(element: str, work: ConvolutionWork, shared: bool = is_shared, to: list[Any] = taken) -> bool:
            to.append(work._replace(is_shared=shared, features=work.features // (1 + shared), parts=1 + shared))
            return HostKernels.convolve(CODE, element, to[-1])

        kernels = HostKernels({}, {}, lambda name: 0, None, CONVOLUTIONS)
        monkeypatch.setattr(kernels, "convolve", convolve)
        out = np.empty((2, 70, 20, 30), np.float32)
        padding = np.ones((2, 2), np.int32)
        Convolution(["f32", "f32", "s32", "f32"])(
            Call(Context(kernels), ()), None, image, kernel, padding, out, numbers
        )
        assert taken
        found.append(out)
    np.testing.assert_array_equal(*found)


def test_a_window_reads_nothing_beside_the_image() -> None:
    """NaN before and behind the image are not seen, not even times zero."""
    memory = np.full(4 + 35 + 40, np.nan, np.float32)
    image = memory[4 : 4 + 35].reshape(1, 1, 35)
    image[...] = 1
    out = np.empty((1, 1, 37), np.float32)
    numbers = (0, 1, 2, 1, 0, 2, 0, 1, 2, 1, 1, 0)
    call, padding = Call(Context(CODE), ()), np.full((1, 2), 2, np.int32)
    Convolution(["f32", "f32", "s32", "f32"])(call, None, image, np.ones((1, 1, 3), np.float32), padding, out, numbers)
    np.testing.assert_array_equal(out[0, 0], [1, 2, *[3] * 33, 2, 1])


def words_of(work: ConvolutionWork) -> Sequence[int]:
    return (0, 0, 0, 0, *work.words(0, work.items(1)))


def test_there_are_as_many_words_as_the_step_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = list[ConvolutionWork]()
    monkeypatch.setattr(CODE, "convolve", lambda element, work: taken.append(work) is None)
    Drawn(1).run(CODE)
    assert len(words_of(taken[0])) == len(WORDS)


@pytest.mark.parametrize(
    ("dimensions", "left", "right", "letters"),
    [
        (((0, 2), (0, 2), (3,), (3,)), (2, 5, 3, 4), (2, 6, 3, 4), "bqhd,bkhd->bhqk"),
        (((1,), (2,), (2, 3), (0, 1)), (5, 2, 3, 4), (3, 4, 2, 7), "abcd,cdbe->bae"),
        (((), (), (0, 1), (1, 0)), (3, 4), (4, 3), "ij,ji->"),
        (((), (), (), ()), (3,), (5,), "i,j->ij"),
        (((0,), (0,), (1,), (1,)), (2, 0, 3), (2, 0, 3), "bki,bkj->bij"),
    ],
)
def test_products_in_any_dimensions(dimensions: Any, left: Any, right: Any, letters: str) -> None:
    def never(*arrays: Array) -> None:
        raise AssertionError("no machine code")

    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 10, shape).astype(np.float32) for shape in (left, right))
    wanted = np.einsum(letters, x, y)
    out = np.full(wanted.shape, np.nan, np.float32)
    Contraction(dimensions, "f32", CODE_OF_BOTH, never)(x, y, out)
    np.testing.assert_array_equal(out, wanted)


def test_sizes_that_do_not_fit_are_left_to_the_other_function() -> None:
    asked = list[Any]()
    product = Contraction(((), (), (1,), (0,)), "f32", CODE_OF_BOTH, lambda *arrays: asked.append(arrays))
    product(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones((2, 5), np.float32))
    assert len(asked) == 1
