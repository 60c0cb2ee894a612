"""The runtime's functions by name, against NumPy in double precision; convolutions against sums over all pairs of places and points."""

import itertools
from collections.abc import Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Block

from xla_emitters.dialects.disc_ral import CONTEXT, STREAM, DispatchOp
from xla_emitters.dialects.lmhlo import buffer_type
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import dtype
from xla_emitters.errors import DataError, Unsupported
from xla_emitters.library.arguments import element_name
from xla_emitters.runtime.ral.ral_calls import function_of_call

Array = np.ndarray[Any, Any]
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def call(name: str, *buffers: Array, flags: Sequence[bool] = (), config: Sequence[int] | str | None = None) -> None:
    """Calls a function on buffers of unknown sizes."""
    types = [
        buffer_type(dtype(element_name(each.dtype)).ir_type, [DYNAMIC_INDEX] * each.ndim, "gpu") for each in buffers
    ]
    values = Block(arg_types=[CONTEXT, STREAM, *types]).args
    constants = [arith.ConstantOp(IntegerAttr.from_bool(flag)).result for flag in flags]
    said = StringAttr(config) if isinstance(config, str) else DenseArrayBase.from_list(i64, list(config or ()))
    op = DispatchOp(name, "gpu", [*values, *constants], config=None if config is None else said)
    function_of_call(op)(*buffers)


def gemm(lhs: Array, rhs: Array, out: Array, flags: tuple[bool, bool]) -> None:
    call("ral_gemm", lhs, rhs, out, flags=(*flags, False))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_products_transposed_and_in_batches(name: str, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((*batch, 4, 5)), rng.standard_normal((*batch, 5, 6))
    for flags in itertools.product((False, True), (False, True)):
        lhs, rhs = (
            np.array(np.swapaxes(array, -1, -2) if flag else array, TYPES[name], order="C")
            for array, flag in zip((a, b), flags, strict=True)
        )
        out = np.empty((*batch, 4, 6), TYPES[name])
        gemm(lhs, rhs, out, flags)
        exact = np.matmul(
            *(
                np.swapaxes(x, -1, -2) if f else x
                for x, f in zip((lhs.astype(float), rhs.astype(float)), flags, strict=True)
            )
        )
        unit = 2.0 ** -{"f32": 23, "f64": 52, "f16": 10, "bf16": 7}[name]
        assert np.abs(out.astype(float) - exact).max() <= 8 * unit


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_narrow_products_add_in_f32(name: str) -> None:
    """2048 ones: in f16 a sum stops at 2048 + 1, in bf16 at 256."""
    out = np.empty((1, 1), TYPES[name])
    gemm(np.ones((1, 4096), TYPES[name]), np.ones((4096, 1), TYPES[name]), out, (False, False))
    assert float(out[0, 0]) == 4096


def test_rows_in_several_dimensions_are_one_matrix() -> None:
    lhs, rhs = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(8, dtype=np.float32).reshape(4, 2)
    out = np.empty((2, 3, 2), np.float32)
    gemm(lhs, rhs, out, (False, False))
    np.testing.assert_array_equal(out, lhs @ rhs)


SHAPES = {
    "summed": ((2, 3), (4, 5), (2, 5)),
    "batches": ((1, 2, 3), (5, 3, 4), (5, 2, 4)),
    "result": ((2, 3), (3, 4), (1, 4)),
}


@pytest.mark.parametrize("what", SHAPES)
def test_sizes_that_do_not_fit_are_refused_and_not_broadcast(what: str) -> None:
    lhs, rhs, out = (np.zeros(shape, np.float32) for shape in SHAPES[what])
    with pytest.raises(DataError):
        gemm(lhs, rhs, out, (False, False))


def test_the_largest_elements_equal_ones_in_order() -> None:
    values, places = np.empty((1, 3), np.float32), np.empty((1, 3), np.int32)
    call("topk", np.array([[1, 4, 2, 4]], np.float32), values, places)
    assert (values.tolist(), places.tolist()) == ([[4, 4, 2]], [[1, 3, 2]])


def test_a_copy_is_no_broadcast() -> None:
    target = np.zeros(3, np.float32)
    call("h2d", np.arange(3, dtype=np.float32), target)
    assert target.tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="h2d"):
        call("h2d", np.zeros(1, np.float32), target)


def test_a_name_that_the_runtime_does_not_have() -> None:
    with pytest.raises(Unsupported, match="no function 'ral_tea'"):
        call("ral_tea")


# ----------------------------------------------------------------------------------------------------------- convolutions

BOUNDS = {"f32": 1e-5, "f64": 1e-13, "f16": 2e-3}
"""In units of the largest magnitude of the result: sums of at most some hundred terms."""


class Drawn:
    """A random convolution.

    name    of its element type
    orders  of the dimensions: batch or features in, features, spatial ones; of image, kernel, result
    """

    def __init__(self, seed: int) -> None:
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

    def run(self) -> Array:
        """Result [batch, features, places ...] of the runtime's function."""
        rank = len(self.sizes)
        shape = (self.batch, self.outs * max(self.groups, self.batch_groups), *self.places)
        out = np.full([shape[self.orders[2].index(dim)] for dim in range(rank + 2)], np.nan, TYPES[self.name])
        numbers = [number for order in self.orders for number in order]
        numbers += [*self.strides, *self.dilations, 0, self.groups, self.batch_groups, *self.base]
        padding = np.array([self.low, self.high], np.int32).T
        call("ral_conv", self.image, self.kernel, padding, out, config=numbers)
        return out.transpose(self.orders[2])


def is_near(found: Array, exact: Array, bound: float) -> bool:
    return bool(np.abs(found - exact).max(initial=0) <= bound * np.abs(exact).max(initial=0))


@pytest.mark.parametrize("seed", range(60))
def test_all_layouts_windows_and_groups(seed: int) -> None:
    drawn = Drawn(seed)
    assert is_near(drawn.run(), drawn.exact(), BOUNDS[drawn.name])


def test_a_window_reads_nothing_beside_the_image() -> None:
    """NaN before and behind the image are not seen, not even times zero."""
    memory = np.full(4 + 35 + 40, np.nan, np.float32)
    image = memory[4 : 4 + 35].reshape(1, 1, 35)
    image[...] = 1
    out = np.empty((1, 1, 37), np.float32)
    numbers = (0, 1, 2, 1, 0, 2, 0, 1, 2, 1, 1, 0)
    call("ral_conv", image, np.ones((1, 1, 3), np.float32), np.full((1, 2), 2, np.int32), out, config=numbers)
    np.testing.assert_array_equal(out[0, 0], [1, 2, *[3] * 33, 2, 1])
