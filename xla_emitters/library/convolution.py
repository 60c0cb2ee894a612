"""Convolution, forwards and to the gradients of image and kernel; with cuDNN's epilogue: scale, side input, bias, activation.

For each point k of the kernel and each position p of the window, with at(p, k) = p * stride + k * dilation - padding:

    forward           result[n, p, o] += image[n, at(p, k), i] * kernel[k, i, o]       a matrix product over n p, i, o
    backward_filter   kernel[k, i, o]  = image[n, at(p, k), i] * result[n, p, o]       summed over n p
    backward_input    image[n, at(p, k), i] += result[n, p, o] * kernel[k, i, o]

    y = activation(scale * result + side_scale * side + bias)                          rounded once

Each of image, kernel and result is [groups, ...]: groups of features, or of batches, are a batch of products. On a GPU cuBLAS multiplies
them, unless cuDNN is installed and has the convolution (`cudnn`).

Base dilation puts zeros between the image's elements first: the places of the result that meet the same points of the kernel are a
convolution of the image as it is (`phases_of`). A reversed dimension flips the kernel. Groups of features read their own
features only; groups of batches compute their own features of the result. Labels are those of the forward convolution.
A dimension's label in the configuration: b, f of image and result, i, o of the kernel, digits for spatial ones.
Source: docs/reference/1 3.6, 6.8 "convolution"; NVIDIA's cuDNN documentation, convolution and its activations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xla_emitters.library import cudnn
from xla_emitters.library.arguments import Array, LibraryArguments, element_name
from xla_emitters.library.gemm import held_type
from xla_emitters.support.limits import refuse_beyond_limit

PATCHES, PATCHES_ON_GPU = 1 << 22, 1 << 27
"""Most elements of a copy of all windows, for which one matrix product is used instead of one per point of the kernel."""
NO_CUDNN = (
    "no cuDNN for a convolution (the extra [cudnn] is not installed, or it has no engine for it): products of patches by cuBLAS, "
    "which are slower"
)
Points: TypeAlias = Sequence[tuple[tuple[int, ...], tuple[slice, ...]]]
"""(index of a point of the kernel, slices of the image's elements that it is multiplied with) for all points."""


def convolution(arguments: LibraryArguments) -> list[Array]:
    """One result per role in `outputs`: image, kernel or result; and a workspace."""
    config, xp = arguments.config, arguments.xp
    output = config["outputs"][0]
    held = held_type(arguments.results[0][0])
    orders = dict(zip(("image", "kernel", "result"), map(dims_in_order, config["labels"]), strict=True))
    roles: list[str] = config["operands"]
    shapes = {name: arguments.operands[i].shape for i, name in enumerate(roles)} | {output: arguments.results[0][1]}
    sizes = {name: tuple(shapes[name][dim] for dim in order) for name, order in orders.items()}
    window = _window(arguments, sizes["kernel"])
    workspaces = [arguments.zeros(i) for i in range(1, len(config["outputs"]))]
    is_plain = roles[2:] in ([], ["padding"]) and config["activation"] == "none" and config["scale"] == 1
    if output == "result" and is_plain and any(dim["base_dilation"] != 1 for dim in window.dims):
        return [_by_phases(arguments, window), *workspaces]
    value: Array | None = None
    if arguments.on_gpu:
        if (found := cudnn.convolution(arguments, window.dims)) is not None:
            return [found, *workspaces]
        value = _without_epilogue(arguments, window, held)
    if value is None:
        if arguments.on_gpu:
            warnings.warn(NO_CUDNN, stacklevel=1)  # Python shows it once
        given = {
            name: arguments.wide(i).astype(held).transpose(orders[name])
            for i, name in enumerate(roles)
            if name in orders
        }
        value = _computed(config, window, given, sizes[output], xp)
    if output == "result":
        value = _after(arguments, value, held, orders["result"])
    value = value.transpose([orders[output].index(dim) for dim in range(len(shapes[output]))])
    return [arguments.result(0, value), *workspaces]


def _without_epilogue(arguments: LibraryArguments, window: SpatialWindow, held: np.dtype[Any]) -> Array | None:
    """cuDNN's convolution in the held type, in the order of `dims_in_order`, where it lacks the convolution together with its epilogue."""
    config = arguments.config
    has_epilogue = len(arguments.operands) > 2 or config["activation"] != "none" or config["scale"] != 1
    if config["outputs"][0] != "result" or not has_epilogue:
        return None
    plain = {**config, "operands": config["operands"][:2], "outputs": ["result"], "activation": "none", "scale": 1}
    result = element_name(held), arguments.results[0][1]
    alone = LibraryArguments(plain, arguments.operands[:2], [result], arguments.xp)
    found = cudnn.convolution(alone, window.dims)
    return None if found is None else found.transpose(dims_in_order(config["labels"][2]))


class Phase(NamedTuple):
    """Places of the result that meet the same points of the kernel, and so are a convolution of an image without dilation.

    places, points   which, as indices of result and kernel
    kernel, result   their shapes; no point: the places meet zeros alone
    config           of the convolution
    """

    places: tuple[slice, ...]
    points: tuple[slice, ...]
    kernel: tuple[int, ...]
    result: tuple[int, ...]
    config: Mapping[str, Any]


def phases_of(
    config: Mapping[str, Any], image: Sequence[int], kernel: Sequence[int], result: Sequence[int]
) -> list[Phase]:
    """The convolutions that make up one of a dilated image, of these shapes, in which all places of the result are.

    image  a 0 b 0 c       kernel  p q r          places 0, 2 ...: a p + b r ...         places 1, 3 ...: b q ...
    """
    orders = list(map(dims_in_order, config["labels"]))
    spatial = orders[0][1:-1], orders[1][:-2], orders[2][1:-1]
    along = [
        _phases_along(dim, image[here], result[there])
        for dim, here, there in zip(config["window"], spatial[0], spatial[2], strict=True)
    ]
    found = list[Phase]()
    for combined in product(*along):
        places, points, of_result, of_kernel = (
            [slice(None)] * len(result),
            [slice(None)] * len(kernel),
            [*result],
            [*kernel],
        )
        for (place, count, point, window), in_kernel, in_result in zip(combined, *spatial[1:], strict=True):
            places[in_result], of_result[in_result] = place, count
            points[in_kernel], of_kernel[in_kernel] = point, window["size"]
        own = {**config, "window": [window for *_, window in combined]}
        found.append(Phase(tuple(places), tuple(points), tuple(of_kernel), tuple(of_result), own))
    return found


def _phases_along(dim: Mapping[str, Any], size: int, places: int) -> list[tuple[slice, int, slice, Mapping[str, Any]]]:
    """(places of the result, how many, points of the kernel, window) along one dimension.

    Place o and point k meet element (o * stride + k * window_dilation - low) / base_dilation of the image, if that is whole.
    """
    (low, _), spread, stride, dilation = dim["pad"], dim["base_dilation"], dim["stride"], dim["window_dilation"]
    next_place, next_point = spread // math.gcd(stride, spread), spread // math.gcd(dilation, spread)
    found = list[tuple[slice, int, slice, Mapping[str, Any]]]()
    for first in range(min(next_place, places)):
        count = len(range(first, places, next_place))
        meets = (k for k in range(min(next_point, dim["size"])) if (first * stride + k * dilation - low) % spread == 0)
        point = next(meets, dim["size"])
        window = {
            "size": len(range(point, dim["size"], next_point)),
            "stride": next_place * stride // spread,
            "window_dilation": next_point * dilation // spread,
            "base_dilation": 1,
            "reversed": False,
        }
        before = (low - first * stride - point * dilation) // spread
        extent = (count - 1) * window["stride"] + (window["size"] - 1) * window["window_dilation"] + 1
        window["pad"] = [before, extent - size - before]
        last = dim["size"] - 1 - point
        points = slice(last, None, -next_point) if dim["reversed"] and last >= 0 else slice(point, None, next_point)
        found.append((slice(first, None, next_place), count, points, window))
    return found


def _by_phases(arguments: LibraryArguments, window: SpatialWindow) -> Array:
    """The convolution of a dilated image."""
    (image, kernel), (element, shape) = arguments.operands[:2], arguments.results[0]
    roles = arguments.config["operands"][:2]
    config = {**arguments.config, "operands": roles, "outputs": ["result"], "window": window.dims}
    whole = arguments.zeros(0)
    for phase in phases_of(config, image.shape, kernel.shape, shape):
        if math.prod(phase.kernel):
            padded, own = (
                _evenly_padded(image, phase.config, arguments.xp) if arguments.on_gpu else (image, phase.config)
            )
            part = LibraryArguments(own, (padded, kernel[phase.points]), [(element, phase.result)], arguments.xp)
            (whole[phase.places],) = convolution(part)
    return whole


def _evenly_padded(image: Array, config: Mapping[str, Any], xp: Any) -> tuple[Array, Mapping[str, Any]]:
    """An image, and the configuration of its convolution: with the same padding, not negative, on both sides, as cuDNN wants it."""
    dims, order, shape = config["window"], dims_in_order(config["labels"][0]), [*image.shape]
    common = [max(min(dim["pad"]), 0) for dim in dims]
    rest = [{**dim, "pad": [end - both for end in dim["pad"]]} for dim, both in zip(dims, common, strict=True)]
    even = {**config, "window": [{**dim, "pad": [both, both]} for dim, both in zip(dims, common, strict=True)]}
    if not any(any(dim["pad"]) for dim in rest):
        return image, even
    window, places = SpatialWindow(rest), order[1:-1]
    there, here = ([slice(None)] * len(shape) for _ in range(2))
    sizes = [shape[axis] for axis in places]
    for axis, size, target, source in zip(places, window.padded_sizes(sizes), *window.inside(sizes), strict=True):
        shape[axis], there[axis], here[axis] = size, target, source
    refuse_beyond_limit(
        shape, image.dtype.itemsize, element_name(image.dtype), "the image of a convolution with its padding"
    )
    padded = xp.zeros(shape, image.dtype)
    padded[tuple(there)] = image[tuple(here)]
    return padded, even


def _window(arguments: LibraryArguments, kernel: Sequence[int]) -> SpatialWindow:
    """The window, as large as the kernel; with padding from an operand of the host, the numbers before and behind each dimension."""
    config = arguments.config
    dims = [{**dim, "size": size} for dim, size in zip(config["window"], kernel[:-2], strict=True)]
    roles: list[str] = config["operands"]
    if "padding" in roles:
        padding = arguments.operands[roles.index("padding")]
        numbers = list(map(int, padding.reshape(-1)))
        dims = [{**dim, "pad": numbers[2 * number :][:2]} for number, dim in enumerate(dims)]
    return SpatialWindow(dims)


def dims_in_order(label: str) -> list[int]:
    """The dimensions in the order [b, spatial ..., f], of a kernel [spatial ..., i, o]."""
    spatial = [label.index(digit) for digit in sorted(set(label) - set("bfio"))]
    if "b" in label:
        return [label.index("b"), *spatial, label.index("f")]
    return [*spatial, label.index("i"), label.index("o")]


class SpatialWindow:
    """The window along the spatial dimensions."""

    def __init__(self, dims: Sequence[Mapping[str, Any]]) -> None:
        self.dims = dims

    def padded_sizes(self, sizes: Sequence[int]) -> list[int]:
        """The image's sizes with dilation and padding."""
        return [
            max(0, sum(dim["pad"]) + (0 if size == 0 else (size - 1) * dim["base_dilation"] + 1))
            for dim, size in zip(self.dims, sizes, strict=True)
        ]

    def padding(
        self, batches: Sequence[int], sizes: Sequence[int], features: int, kind: np.dtype[Any], xp: Any = np
    ) -> Array:
        """Zeros for images with dilation and padding. raises DataError beyond the limit of a run's memory"""
        shape = *batches, *self.padded_sizes(sizes), features
        refuse_beyond_limit(shape, kind.itemsize, element_name(kind), "the image of a convolution with its padding")
        return xp.zeros(shape, kind)

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


def _computed(
    config: Mapping[str, Any], window: SpatialWindow, given: Mapping[str, Array], shape: Sequence[int], xp: Any
) -> Array:
    """The missing one of image, kernel and result, in the order of `dims_in_order`."""
    batches = config["batch_groups"]
    groups = max(config["feature_groups"], batches)
    parts = {name: _by_group(array, groups, by_batch=name == "image" and batches > 1) for name, array in given.items()}
    by_batch = config["outputs"][0] == "image" and batches > 1
    of_group = (shape[0] // groups, *shape[1:]) if by_batch else (*shape[:-1], shape[-1] // groups)
    found = _COMPUTED[config["kind"]](window, parts, (groups, *of_group), xp)
    return found.reshape(shape) if by_batch else xp.moveaxis(found, 0, -2).reshape(shape)


def _by_group(array: Array, groups: int, *, by_batch: bool) -> Array:
    """The groups of one of its dimensions, the first or the last, as a dimension before the others."""
    shape = array.shape
    if by_batch:
        return array.reshape((groups, shape[0] // groups, *shape[1:]))
    count = len(shape)
    return array.reshape((*shape[:-1], groups, shape[-1] // groups)).transpose([count - 1, *range(count - 1), count])


def _forward(window: SpatialWindow, parts: Mapping[str, Array], shape: Sequence[int], xp: Any) -> Array:
    image, kernel = parts["image"], parts["kernel"]
    padded, points = _padded(window, image, xp), window.points(shape[2:-1])
    found = xp.zeros(shape, image.dtype)
    groups, places, features = shape[0], math.prod(shape[1:-1]), image.shape[-1]
    most = PATCHES if xp is np else PATCHES_ON_GPU
    if found.size and points and len(points) * groups * places * features <= most:
        # All elements of a window, one point after the other, as the terms of one sum.
        seen = xp.concatenate([padded[_at(at)] for _, at in points], axis=-1)
        weights = xp.concatenate([kernel[(slice(None), *point)] for point, _ in points], axis=1)
        return _times(seen.reshape(groups, places, seen.shape[-1]), weights, xp).reshape(shape)
    if found.size:
        for point, at in points:
            seen = padded[_at(at)].reshape(groups, places, features)
            found += _times(seen, kernel[(slice(None), *point)], xp).reshape(shape)
    return found


def _backward_filter(window: SpatialWindow, parts: Mapping[str, Array], shape: Sequence[int], xp: Any) -> Array:
    image, result = parts["image"], parts["result"]
    padded, found = _padded(window, image, xp), xp.zeros(shape, image.dtype)
    if result.size and found.size:
        right = result.reshape(shape[0], -1, result.shape[-1])
        for point, at in window.points(result.shape[2:-1]):
            left = padded[_at(at)].reshape(shape[0], -1, image.shape[-1])
            found[(slice(None), *point)] = _times(xp.swapaxes(left, -1, -2), right, xp)
    return found


def _backward_input(window: SpatialWindow, parts: Mapping[str, Array], shape: Sequence[int], xp: Any) -> Array:
    result, kernel = parts["result"], parts["kernel"]
    spatial = shape[2:-1]
    padded = window.padding(shape[:2], spatial, shape[-1], result.dtype, xp)
    if result.size:
        left = result.reshape(shape[0], -1, result.shape[-1])
        for point, at in window.points(result.shape[2:-1]):
            made = _times(left, xp.swapaxes(kernel[(slice(None), *point)], -1, -2), xp)
            padded[_at(at)] = padded[_at(at)] + made.reshape((*result.shape[:-1], shape[-1]))
    found, (there, here) = xp.zeros(shape, result.dtype), window.inside(spatial)
    found[_at(here)] = padded[_at(there)]
    return found


_COMPUTED: Mapping[str, Callable[[SpatialWindow, Mapping[str, Array], Sequence[int], Any], Array]] = {
    "forward": _forward,
    "backward_filter": _backward_filter,
    "backward_input": _backward_input,
}


def _at(places: Sequence[slice]) -> tuple[slice, ...]:
    """These places of all groups and batches."""
    return slice(None), slice(None), *places


def _times(left: Array, right: Array, xp: Any) -> Array:
    if left.dtype.kind == "b":
        return xp.matmul(left.astype(np.float32), right.astype(np.float32)) > 0
    return xp.matmul(left, right)


def _padded(window: SpatialWindow, image: Array, xp: Any) -> Array:
    spatial = image.shape[2:-1]
    found = window.padding(image.shape[:2], spatial, image.shape[-1], image.dtype, xp)
    there, here = window.inside(spatial)
    found[_at(there)] = image[_at(here)]
    return found


def _after(arguments: LibraryArguments, value: Array, held: np.dtype[Any], order: Sequence[int]) -> Array:
    config, xp = arguments.config, arguments.xp
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
            return xp.maximum(value, zero)
        case "relu6":
            return xp.clip(value, zero, held.type(6))
        case "elu":
            return xp.where(value > 0, value, xp.exp(xp.minimum(value, zero)) - one)
        case "leaky_relu":
            return xp.where(value > 0, value, value * held.type(config["slope"]))
        case _:
            return value
