"""Convolution, forwards and to the gradients of image and kernel; with cuDNN's epilogue: scale, side input, bias, activation.

For each point k of the kernel and each position p of the window, with at(p, k) = p * stride + k * dilation - padding:

    forward           result[n, p, o] += image[n, at(p, k), i] * kernel[k, i, o]       a matrix product over n p, i, o
    backward_filter   kernel[k, i, o]  = image[n, at(p, k), i] * result[n, p, o]       summed over n p
    backward_input    image[n, at(p, k), i] += result[n, p, o] * kernel[k, i, o]

    y = activation(scale * result + side_scale * side + bias)                          rounded once

Base dilation puts zeros between the image's elements first; a reversed dimension flips the kernel. Groups of features read their own
features only; groups of batches compute their own features of the result. Labels are those of the forward convolution.
A dimension's label in the configuration: b, f of image and result, i, o of the kernel, digits for spatial ones.
Source: docs/reference/1 3.6, 6.8 "convolution"; NVIDIA's cuDNN documentation, convolution and its activations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from xla_emitters.library.arguments import Array, LibraryArguments, element_name
from xla_emitters.library.gemm import held_type
from xla_emitters.memory_limit import refuse_beyond_limit

PATCHES = 1 << 22
"""Most elements of a copy of all windows, for which one matrix product is used instead of one per point of the kernel."""
Points: TypeAlias = Sequence[tuple[tuple[int, ...], tuple[slice, ...]]]
"""(index of a point of the kernel, slices of the image's elements that it is multiplied with) for all points."""


def convolution(arguments: LibraryArguments) -> list[Array]:
    """One result per role in `outputs`: image, kernel or result; and a workspace."""
    config = arguments.config
    output = config["outputs"][0]
    held = held_type(arguments.results[0][0])
    orders = dict(zip(("image", "kernel", "result"), map(dims_in_order, config["labels"]), strict=True))
    given = {
        name: arguments.wide(i).astype(held).transpose(orders[name])
        for i, name in enumerate(config["operands"])
        if name in orders
    }
    shape = arguments.results[0][1]
    window = Window(config["window"])
    sizes = {name: array.shape for name, array in given.items()} | {output: tuple(shape[dim] for dim in orders[output])}
    value = _grouped(config, window, given, sizes, held)
    if output == "result":
        value = _after(arguments, value, held, orders["result"])
    value = value.transpose(np.argsort(orders[output]))
    return [arguments.result(0, value), *(arguments.zeros(i) for i in range(1, len(config["outputs"])))]


def dims_in_order(label: str) -> list[int]:
    """The dimensions in the order [b, spatial ..., f], of a kernel [spatial ..., i, o]."""
    spatial = [label.index(digit) for digit in sorted(set(label) - set("bfio"))]
    if "b" in label:
        return [label.index("b"), *spatial, label.index("f")]
    return [*spatial, label.index("i"), label.index("o")]


class Window:
    """The window along the spatial dimensions."""

    def __init__(self, dims: Sequence[Mapping[str, Any]]) -> None:
        self.dims = dims

    def padded_sizes(self, sizes: Sequence[int]) -> list[int]:
        """The image's sizes with dilation and padding."""
        return [
            max(0, sum(dim["pad"]) + (0 if size == 0 else (size - 1) * dim["base_dilation"] + 1))
            for dim, size in zip(self.dims, sizes, strict=True)
        ]

    def padding(self, batch: int, sizes: Sequence[int], features: int, kind: np.dtype[Any]) -> Array:
        """Zeros for images with dilation and padding. raises DataError beyond the limit of a run's memory"""
        shape = batch, *self.padded_sizes(sizes), features
        refuse_beyond_limit(shape, kind.itemsize, element_name(kind), "the image of a convolution with its padding")
        return np.zeros(shape, kind)

    def inside(self, sizes: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The slices of the padded image that hold the image's elements, and which elements these are: negative padding omits some."""
        there, here = list[slice](), list[slice]()
        for dim, size, padded in zip(self.dims, sizes, self.padded_sizes(sizes), strict=True):
            low, step = dim["pad"][0], dim["base_dilation"]
            first = max(0, -(low // step))
            last = min(size, -(-(padded - low) // step))
            here.append(slice(first, max(first, last)))
            begin = low + first * step
            there.append(slice(begin, max(begin, low + (last - 1) * step + 1), step))
        return tuple(there), tuple(here)

    def points(self, places: Sequence[int]) -> Points:
        """For each point of the kernel: its index, and the elements of the padded image at all positions of the window."""
        found = list[tuple[tuple[int, ...], tuple[slice, ...]]]()
        for point in product(*(range(dim["size"]) for dim in self.dims)):
            kernel = tuple(
                dim["size"] - 1 - k if dim["reversed"] else k for k, dim in zip(point, self.dims, strict=True)
            )
            at = tuple(
                slice(
                    k * dim["window_dilation"],
                    k * dim["window_dilation"] + (count - 1) * dim["stride"] + 1,
                    dim["stride"],
                )
                for k, dim, count in zip(point, self.dims, places, strict=True)
            )
            found.append((kernel, at))
        return found


def _grouped(
    config: Mapping[str, Any],
    window: Window,
    given: Mapping[str, Array],
    sizes: Mapping[str, tuple[int, ...]],
    held: np.dtype[Any],
) -> Array:
    """The missing one of image, kernel and result, in the order of `dims_in_order`."""
    groups, batches = config["feature_groups"], config["batch_groups"]
    count = max(groups, batches)
    of = {
        "image": _part(-1, groups) if batches == 1 else _part(0, batches),
        "kernel": _part(-1, count),
        "result": _part(-1, count),
    }
    output = config["outputs"][0]
    found = np.zeros(sizes[output], held)
    for group in range(count):
        parts = {name: array[of[name](group, array.shape)] for name, array in given.items()}
        at = of[output](group, found.shape)
        found[at] = _COMPUTED[config["kind"]](window, parts, found[at].shape)
    return found


def _part(axis: int, count: int) -> Any:
    """(group, shape) -> the index of one of `count` groups along one dimension."""

    def part(group: int, shape: Sequence[int]) -> tuple[slice, ...]:
        size = shape[axis] // count
        along = slice(group * size, (group + 1) * size)
        return (along, *(slice(None),) * (len(shape) - 1)) if axis == 0 else (*(slice(None),) * (len(shape) - 1), along)

    return part


def _forward(window: Window, parts: Mapping[str, Array], shape: Sequence[int]) -> Array:
    image, kernel = parts["image"], parts["kernel"]
    padded, found, points = _padded(window, image), np.zeros(shape, image.dtype), window.points(shape[1:-1])
    if found.size and points and len(points) * math.prod(shape[:-1]) * image.shape[-1] <= PATCHES:
        # All elements of a window, one point after the other, as the terms of one sum.
        seen = np.concatenate([padded[:, *at] for _, at in points], axis=-1)
        weights = np.concatenate([kernel[point] for point, _ in points])
        return _times(seen.reshape(math.prod(shape[:-1]), seen.shape[-1]), weights).reshape(shape)
    if found.size:
        for point, at in points:
            found += _times(padded[:, *at], kernel[point])
    return found


def _backward_filter(window: Window, parts: Mapping[str, Array], shape: Sequence[int]) -> Array:
    image, result = parts["image"], parts["result"]
    padded, found = _padded(window, image), np.zeros(shape, image.dtype)
    if result.size and found.size:
        for point, at in window.points(result.shape[1:-1]):
            left = padded[:, *at].reshape(-1, image.shape[-1])
            found[point] = _times(left.T, result.reshape(-1, result.shape[-1]))
    return found


def _backward_input(window: Window, parts: Mapping[str, Array], shape: Sequence[int]) -> Array:
    result, kernel = parts["result"], parts["kernel"]
    spatial = shape[1:-1]
    padded = window.padding(shape[0], spatial, shape[-1], result.dtype)
    if result.size:
        for point, at in window.points(result.shape[1:-1]):
            padded[:, *at] += _times(result, kernel[point].T)
    found, (there, here) = np.zeros(shape, result.dtype), window.inside(spatial)
    found[:, *here] = padded[:, *there]
    return found


_COMPUTED = {"forward": _forward, "backward_filter": _backward_filter, "backward_input": _backward_input}


def _times(left: Array, right: Array) -> Array:
    if left.dtype.kind == "b":
        return left.astype(np.float32) @ right.astype(np.float32) > 0
    return left @ right


def _padded(window: Window, image: Array) -> Array:
    spatial = image.shape[1:-1]
    found = window.padding(image.shape[0], spatial, image.shape[-1], image.dtype)
    there, here = window.inside(spatial)
    found[:, *there] = image[:, *here]
    return found


def _after(arguments: LibraryArguments, value: Array, held: np.dtype[Any], order: Sequence[int]) -> Array:
    config = arguments.config
    role = {name: i for i, name in enumerate(config["operands"])}
    if config["scale"] != 1:
        value = (value * held.type(config["scale"])).astype(held)
    if "side" in role:
        value = value + arguments.wide(role["side"]).astype(held).transpose(order) * held.type(config["side_scale"])
    if "bias" in role:
        value = value + arguments.wide(role["bias"]).astype(held)
    zero, one = held.type(0), held.type(1)
    match config["activation"]:
        case "relu":
            return np.maximum(value, zero)
        case "relu6":
            return np.clip(value, zero, held.type(6))
        case "elu":
            return np.where(value > 0, value, np.exp(np.minimum(value, zero)) - one)
        case "leaky_relu":
            return np.where(value > 0, value, value * held.type(config["slope"]))
        case _:
            return value
