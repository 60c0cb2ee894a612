"""Convolutions: the implementation of `ral_conv`.

    convolution = Convolution(["f32", "f32", "s32", "f32"])
    convolution(ctx, stream, image, kernel, padding, out, numbers)

`numbers` is the metadata: the positions of the dimensions (batch, features, spatial ...) in image, kernel (input features first) and
result; strides; dilations of the kernel; whether the kernel is a constant; then, if there are any, the groups of features and of the batch;
and last, if there are any, the dilations of the image.

f32 and f64 are computed by the machine code of `ctx`'s kernels, if it has any (`lowering/host_convolutions`); everything else by the
package `library`. (`disc-widen-half-products` makes f32 of f16 and bf16 where machine code is used.)
Source: docs/reference/4 1.3, 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array
from xla_emitters.runtime.ral.context import STAGE, Call, check_result
from xla_emitters.runtime.ral.kernels import ConvolutionWork, Kernels

RANK = 3
"""Most spatial dimensions that machine code supports."""
MOST_FEATURES, FEWEST_FEATURES = 512, 32
"""Output features that a thread computes at once."""
FEWEST_COLUMNS = 1 << 10
"""If positions times blocks of features are fewer than this, threads compute fewer features at once."""
FEW_FEATURES, FEW_PLACES = 8, 4
"""A convolution by rows computes vectors of features at some places of a row: not if there are fewer."""
SHARED = 1 << 23
"""Scalar multiplications from which on threads share a convolution."""
BY_CODE = frozenset(("f32", "f64"))
"""Element types for which there is machine code."""


class Layout(NamedTuple):
    """Positions of the dimensions of an array: batch or input features, features, spatial dimensions."""

    first: int
    second: int
    spatial: tuple[int, ...]

    @classmethod
    def of(cls, order: Sequence[int]) -> Layout:
        return cls(order[0], order[1], tuple(order[2:]))

    def label(self, letters: str) -> str:
        """The letter or number of each dimension, in the notation of `library`."""
        order = (self.first, self.second, *self.spatial)
        names = dict(zip(order, (*letters, *map(str, range(len(self.spatial)))), strict=True))
        return "".join(names[dim] for dim in range(len(order)))


@dataclass(frozen=True)
class Along:
    """The window along one spatial dimension; it has the fields of `library`'s configuration."""

    size: int
    stride: int
    pad: tuple[int, int]
    base_dilation: int
    window_dilation: int

    def places(self, size: int) -> int:
        """Number of positions of the window."""
        if not self.size:
            return 0
        spread = (size - 1) * self.base_dilation + 1 if size else 0
        reach = (self.size - 1) * self.window_dilation + 1
        return max(0, (spread + sum(self.pad) - reach) // self.stride + 1)


@dataclass(frozen=True)
class Shape:
    """The metadata, and what follows from it for arrays of given sizes."""

    image: Layout
    kernel: Layout
    result: Layout
    window: tuple[Along, ...]
    groups: int
    batch_groups: int

    @classmethod
    def of(cls, numbers: Sequence[int], kernel: Array, padding: Array) -> Shape:
        rank = kernel.ndim
        image, weights, result = (Layout.of(numbers[start : start + rank]) for start in (0, rank, 2 * rank))
        count = rank - 2
        strides, dilations = (numbers[3 * rank + i * count :][:count] for i in (0, 1))
        groups, batch_groups, *spread = numbers[5 * rank - 3 :] or (1, 1)
        window = tuple(
            Along(kernel.shape[dim], stride, (int(padding[i, 0]), int(padding[i, 1])), base, dilation)
            for i, (dim, stride, dilation, base) in enumerate(
                zip(weights.spatial, strides, dilations, spread or (1,) * count, strict=True)
            )
        )
        return cls(image, weights, result, window, groups, batch_groups)

    def check(self, image: Array, kernel: Array, out: Array) -> None:
        """raises DataError if the sizes do not fit"""
        sizes = f"no convolution of {list(image.shape)} with {list(kernel.shape)}"
        if image.shape[self.image.second] != kernel.shape[self.kernel.first] * self.groups:
            by = f" in {self.groups} groups" if self.groups != 1 else ""
            raise DataError(f"{sizes}{by}: the features differ", stage=STAGE)
        batch, outs = image.shape[self.image.first], kernel.shape[self.kernel.second]
        if outs % (self.groups * self.batch_groups) or batch % self.batch_groups:
            raise DataError(
                f"{sizes} in {self.groups} groups of features and {self.batch_groups} of the batch", stage=STAGE
            )
        places = [along.places(image.shape[dim]) for dim, along in zip(self.image.spatial, self.window, strict=True)]
        order = (self.result.first, self.result.second, *self.result.spatial)
        wanted = dict(zip(order, (batch // self.batch_groups, outs, *places), strict=True))
        check_result(out, tuple(wanted[dim] for dim in range(out.ndim)))

    def config(self, types: Sequence[str]) -> Mapping[str, Any]:
        """The configuration for `library`."""
        return {
            **CONVOLUTION,
            "labels": [self.image.label("bf"), self.kernel.label("io"), self.result.label("bf")],
            "window": [{**vars(along), "pad": list(along.pad), "reversed": False} for along in self.window],
            "types": list(types),
            "feature_groups": self.groups,
            "batch_groups": self.batch_groups,
        }

    def work(self, image: Array, kernel: Array, out: Array) -> ConvolutionWork | None:
        """The work on arrays of f32 or f64; None if machine code does not support so many dimensions."""
        missing = RANK - len(self.window)
        if missing < 0:
            return None
        count = max(self.groups, self.batch_groups)
        batch = out.shape[self.result.first]
        ins, outs = kernel.shape[self.kernel.first], kernel.shape[self.kernel.second] // count
        places = [out.shape[dim] for dim in self.result.spatial]
        columns, points = batch * prod(places), [along.size for along in self.window]
        products = out.size * ins * prod(points)
        features = _features(outs, count, columns, is_shared=products > SHARED)

        def steps(array: Array, *dims: int) -> Iterator[int]:
            return (array.strides[dim] // array.itemsize for dim in dims)

        def of_window(of: Callable[[Along], int], absent: int) -> Iterator[int]:
            yield from (absent,) * missing
            yield from map(of, self.window)

        none = (0,) * missing
        (out_batch, out_feature, *out_places), (image_batch, image_feature, *image_places) = (
            steps(array, layout.first, layout.second, *layout.spatial)
            for array, layout in ((out, self.result), (image, self.image))
        )
        kernel_in, kernel_out, *kernel_points = steps(
            kernel, self.kernel.first, self.kernel.second, *self.kernel.spatial
        )
        of_group = image_batch * batch if self.batch_groups > 1 else image_feature * ins
        sizes = (
            *(count, batch, ins, outs),
            *((1,) * missing + tuple(places)),
            *((1,) * missing + tuple(points)),
            *((1,) * missing + tuple(image.shape[dim] for dim in self.image.spatial)),
            *of_window(lambda along: along.stride, 1),
            *of_window(lambda along: along.window_dilation, 1),
            *of_window(lambda along: along.pad[0], 0),
            *of_window(lambda along: along.base_dilation, 1),
            *(out_feature * outs, out_batch, out_feature, *none, *out_places),
            *(of_group, image_batch, image_feature, *none, *image_places),
            *(kernel_out * outs, kernel_out, kernel_in, *none, *kernel_points),
        )
        rows = 0
        if (
            self.groups == self.batch_groups == out_feature == image_feature == kernel_out == 1
            and (image_places[-1], kernel_points[-1]) == (ins, kernel_in * ins)
            and outs >= FEW_FEATURES
            and places[-1] >= FEW_PLACES
            and self.window[-1].window_dilation == 1
            and all(along.base_dilation == 1 for along in self.window)
        ):
            rows = batch * prod(places[:-1])
        return ConvolutionWork(
            (out, image, kernel), features, count * -(-outs // features), columns, products > SHARED, sizes, rows
        )


def _features(outs: int, groups: int, columns: int, *, is_shared: bool) -> int:
    """How many features of a group a thread computes at once.

    A thread packs the windows' values once for all its features: fewer features only where threads would otherwise have no work.
    """
    features = min(MOST_FEATURES, max(1, outs))
    while is_shared and features > FEWEST_FEATURES and groups * -(-outs // features) * columns < FEWEST_COLUMNS:
        features = -(-features // 16) * 8
    return features


class Convolution:
    """A convolution of given element types; see the file's head.

    types    HLO's names of the element types: image, kernel, padding, result
    element  that of all arrays, if there is machine code for it; else None
    """

    def __init__(self, types: Sequence[str]) -> None:
        self._types = list(types)
        image, kernel, _, result = types
        self.element = result if image == kernel == result and result in BY_CODE else None

    def __call__(
        self,
        ctx: Call,
        stream: None,
        image: Array,
        kernel: Array,
        padding: Array,
        out: Array,
        numbers: tuple[int, ...],
    ) -> None:
        """Writes the convolution into `out`. raises DataError if the sizes do not fit"""
        shape = Shape.of(numbers, kernel, padding)
        shape.check(image, kernel, out)
        if (
            ctx.is_on_host
            and ctx.context.kernels is not None
            and self._by_code(ctx.context.kernels, shape, image, kernel, out)
        ):
            return
        ctx.compute([out], "convolution", shape.config(self._types[:2]), [image, kernel], self._types[3:])

    def _by_code(self, kernels: Kernels, shape: Shape, image: Array, kernel: Array, out: Array) -> bool:
        """Computes it by machine code; returns False if there is none."""
        if self.element is None:
            return False
        work = shape.work(image, kernel, out)
        return work is not None and kernels.convolve(self.element, work)


CONVOLUTION: Mapping[str, Any] = {
    "operands": ["image", "kernel"],
    "outputs": ["result"],
    "kind": "forward",
    "scale": 1,
    "side_scale": 0,
    "activation": "none",
    "slope": 0,
}
"""The configuration of a plain convolution for `library`."""
