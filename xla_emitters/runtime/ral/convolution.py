"""Convolutions: the implementation of `ral_conv`.

    convolution = Convolution(["f32", "f32", "s32", "f32"])
    convolution(ctx, stream, image, kernel, padding, out, numbers)

`numbers` is the metadata: the positions of the dimensions (batch, features, spatial ...) in image, kernel (input features first) and
result; strides; dilations of the kernel; whether the kernel is a constant; then, if there are any, the groups of features and of the batch;
and last, if there are any, the dilations of the image.

The package `library` computes it.
Source: docs/reference/4 1.3, 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xla_emitters.errors import DataError
from xla_emitters.library.arguments import Array
from xla_emitters.runtime.ral.context import STAGE, Call, check_result


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


class Convolution:
    """A convolution of given element types; see the file's head.

    types    HLO's names of the element types: image, kernel, padding, result
    """

    def __init__(self, types: Sequence[str]) -> None:
        self._types = list(types)

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
        ctx.compute([out], "convolution", shape.config(self._types[:2]), [image, kernel], self._types[3:])


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
