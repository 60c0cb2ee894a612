"""Convolutions on the CPU: products of patches and the kernel, by BLAS.

    convolve = convolution_of(config, "f32", (2, 14, 14, 8), (3, 3, 8, 16), (2, 14, 14, 16))
    convolve(image, kernel, result)

    patches [places, points of the kernel x features]  x  kernel [points x features, features of the result]

The image is copied with its padding, features last. A chunk of places at a time is copied as patches, which fit a core's cache, and
multiplied into the result; threads share the chunks of a large one, or, where there are few places, the features of the result. A kernel of
one point needs no patches; one with a single feature in each group is a sum of elementwise products.
A dilated image is not spread: `library.convolution.phases_of`.
Source: docs/reference/1 6.8 "convolution"; the configuration is that of `library.convolution`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xla_emitters.dtypes import Array, dtype
from xla_emitters.library.arguments import pointer
from xla_emitters.library.convolution import Phase, SpatialWindow, dims_in_order, phases_of
from xla_emitters.runtime.block_threads import share, thread_count
from xla_emitters.runtime.cpu.blas import PIECES, multiply

PATCHES = 1 << 19
"""Most elements of a chunk's patches, unless one row of places has more."""
SHARED_WORK = 1 << 22
"""Multiplications from which on threads of Python share a convolution: below, waking one takes longer."""
LEAST_PLACES, LEAST_FEATURES = 64, 32
"""Of a chunk that threads share: below, a product mostly rearranges its other operand."""
Convolve: TypeAlias = Callable[[Array, Array, Array], None]
"""(image, kernel, result)"""


def convolution_of(
    config: Mapping[str, Any], element: str, image: Sequence[int], kernel: Sequence[int], result: Sequence[int]
) -> Convolve | None:
    """See the file's head. None for groups of batches, empty arrays, and images without spatial dimensions, which `library` computes.

    raises  DataError if the padded image is beyond the limit of a run's memory
    """
    if config["batch_groups"] != 1 or not config["window"] or not prod(image) or not prod(kernel) or not prod(result):
        return None
    if any(dim["base_dilation"] != 1 for dim in config["window"]):
        phases = phases_of(config, image, kernel, result)
        made = [(each, convolution_of(each.config, element, image, each.kernel, each.result)) for each in phases]
        return partial(_by_phases, made)
    made = _Convolution(config, element, image, kernel, result)
    if made.features == 1 and made.groups == made.outputs:
        return made.by_elements
    return made.by_products


def _by_phases(made: Sequence[tuple[Phase, Convolve | None]], image: Array, kernel: Array, result: Array) -> None:
    for phase, convolve in made:
        if convolve is None:  # its places meet no point of the kernel
            result[phase.places] = 0
        else:
            part = np.empty(phase.result, result.dtype)
            convolve(image, kernel[phase.points], part)
            result[phase.places] = part


@dataclass
class _Scratch:
    """Memory that a thread fills with patches."""

    patches: Array
    address: int


class _Convolution:
    """A convolution at fixed sizes.

    order     of the dimensions of image, kernel and result: batch, spatial ..., features; spatial ..., in, out
    features  of the image in a group
    outputs   features of the result
    places    of the result, one number a spatial dimension
    points    of the kernel
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        element: str,
        image: Sequence[int],
        kernel: Sequence[int],
        result: Sequence[int],
    ) -> None:
        self.orders = [dims_in_order(label) for label in config["labels"]]
        self.groups, self._element, self._kind = config["feature_groups"], element, dtype(element).numpy
        sizes, points, places = (
            [shape[dim] for dim in order]
            for shape, order in zip((image, kernel, result), self.orders, strict=True)
        )  # fmt: skip
        self.batch, self.places, self.outputs = places[0], tuple(places[1:-1]), places[-1]
        self.points, self.features = tuple(points[:-2]), points[-2]
        window = SpatialWindow(config["window"])
        self._there, self._here = window.inside(sizes[1:-1])
        padded = (self.batch, *window.padded_sizes(sizes[1:-1]), sizes[-1])
        dims = config["window"]
        is_moved = any(any(dim["pad"]) for dim in dims)
        self._is_padded = is_moved or self.orders[0] != list(range(len(image)))
        self._padded = (
            window.padding([self.batch], sizes[1:-1], sizes[-1], self._kind)
            if self._is_padded
            else np.empty(0, self._kind)
        )
        strides = np.zeros((), self._kind).itemsize * np.array([prod(padded[dim + 1 :]) for dim in range(len(padded))])
        self._steps = [int(strides[dim + 1]) * dims[dim]["stride"] for dim in range(len(dims))]
        self._point_steps = [int(strides[dim + 1]) * dims[dim]["window_dilation"] for dim in range(len(dims))]
        self._batch_step, self._feature_step = int(strides[0]), int(strides[-1])
        self._flips = tuple(slice(None, None, -1 if dim["reversed"] else None) for dim in dims)
        self._is_flipped = any(dim["reversed"] for dim in dims)
        is_result_in_order, last = self.orders[2] == list(range(len(result))), len(result) - 1
        self._is_channels_first = self.orders[2] == [0, *range(2, last + 1), 1]
        self._is_direct = is_result_in_order or self._is_channels_first
        self._result = np.empty((0,) if self._is_direct else (self.batch, *self.places, self.outputs), self._kind)
        self._shares = self.batch * prod(self.places) * prod(kernel) // self.groups >= SHARED_WORK
        self._is_pointwise = (
            prod(self.points) == self.groups == 1
            and not self._is_padded
            and all(dim["stride"] == 1 for dim in dims)
        )  # fmt: skip
        self._free = list[_Scratch]()
        self._weights = np.empty((*self.points, self.features, self.outputs), self._kind)
        self._chunks = self._cut()

    def _cut(self) -> list[tuple[int, int, int, int, int, int]]:
        """(first image, last, first row of places, last, first feature of a group's result, last): several images, or rows of one."""
        inner, rows, each = prod(self.places[1:]), self.places[0], self.outputs // self.groups
        most = max(1, PATCHES // max(1, inner * prod(self.points) * self.features))
        wanted = PIECES * thread_count() if self._shares else 1
        if wanted > 1:
            most = min(most, max(-(-self.batch * rows // wanted), -(-LEAST_PLACES // inner)))
        if most >= rows and not self._is_channels_first:
            images = most // rows
            places = [(n, min(n + images, self.batch), 0, rows) for n in range(0, self.batch, images)]
        else:
            places = [
                (n, n + 1, first, min(first + most, rows)) for n in range(self.batch) for first in range(0, rows, most)
            ]
        parts = max(1, min(wanted // (len(places) * self.groups), each // LEAST_FEATURES))
        ends = [each * part // parts for part in range(parts + 1)]
        return [(*chunk, *features) for chunk in places for features in pairwise(ends)]

    # ------------------------------------------------------------------------------------------------------- operands

    def _image(self, image: Array) -> Array:
        """With features last and padding."""
        if not self._is_padded:
            return image
        ordered = image.transpose(self.orders[0])
        self._padded[:, *self._there] = ordered[:, *self._here]
        return self._padded

    def _kernel(self, kernel: Array) -> Array:
        ordered = kernel.transpose(self.orders[1])
        if self._is_flipped:
            ordered = ordered[self._flips]
        if ordered.flags.c_contiguous:
            return ordered
        np.copyto(self._weights, ordered)
        return self._weights

    # ------------------------------------------------------------------------------------------------------- products

    def by_products(self, image: Array, kernel: Array, result: Array) -> None:
        """The convolution by BLAS."""
        held, weights = self._image(image), self._kernel(kernel)
        out = result if self._is_direct else self._result
        shape = (self.batch, *self.places, *self.points, self.features)
        steps = (self._batch_step, *self._steps, *self._point_steps, self._feature_step)

        def work(first: int, last: int) -> None:
            scratch = self._scratch()
            for chunk in self._chunks[first:last]:
                for group in range(self.groups):
                    there = held if self.groups == 1 else held[..., group * self.features :]
                    windows = there if self._is_pointwise else as_strided(there, shape, steps, writeable=False)
                    self._multiply(windows, weights, out, scratch, chunk, group)
            self._free.append(scratch)

        share(work, len(self._chunks), thread_count() if self._shares else 1)
        if out is self._result:
            result.transpose(self.orders[2])[...] = out

    def _scratch(self) -> _Scratch:
        try:
            return self._free.pop()
        except IndexError:
            n, last, first_row, last_row, *_ = self._chunks[0]
            places = (last - n) * (last_row - first_row) * prod(self.places[1:])
            patches = np.empty(0 if self._is_pointwise else places * prod(self.points) * self.features, self._kind)
            return _Scratch(patches, pointer(patches))

    def _multiply(
        self, windows: Array, weights: Array, out: Array, scratch: _Scratch, chunk: tuple[int, ...], group: int
    ) -> None:
        first, last, first_row, last_row, first_feature, last_feature = chunk
        count = (last - first) * (last_row - first_row) * prod(self.places[1:])
        terms, size = prod(self.points) * self.features, self._kind.itemsize
        feature, each = group * (self.outputs // self.groups) + first_feature, last_feature - first_feature
        before = first_row * prod(self.places[1:])
        if self._is_pointwise:
            left = pointer(windows) + (first * prod(self.places) + before) * terms * size
        else:
            part = windows[first:last, first_row:last_row]
            np.copyto(scratch.patches[: part.size].reshape(part.shape), part)
            left = scratch.address
        kernel = pointer(weights) + feature * size
        address = pointer(out)
        if self._is_channels_first:
            places = prod(self.places)
            address += ((first * self.outputs + feature) * places + before) * size
            addresses, leading = (kernel, left, address), (self.outputs, terms, places)
            multiply(self._element, (True, True), (each, count, terms), addresses, leading)
        else:
            address += ((first * prod(self.places) + before) * self.outputs + feature) * size
            addresses, leading = (left, kernel, address), (terms, self.outputs, self.outputs)
            multiply(self._element, (False, False), (count, each, terms), addresses, leading)

    # ------------------------------------------------------------------------------------------------ one feature each

    def by_elements(self, image: Array, kernel: Array, result: Array) -> None:
        """The convolution where a group has one feature, and makes one."""
        held, weights = self._image(image), self._kernel(kernel)
        out = result.transpose(self.orders[2])
        for number, point in enumerate(np.ndindex(*self.points)):
            at = sum(index * step for index, step in zip(point, self._point_steps, strict=True)) // self._kind.itemsize
            seen = as_strided(
                held.reshape(-1)[at:],
                out.shape,
                (self._batch_step, *self._steps, self._feature_step),
                writeable=False,
            )
            if number:
                out += seen * weights[(*point, 0)]
            else:
                np.multiply(seen, weights[(*point, 0)], out=out)
