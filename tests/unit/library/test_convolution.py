"""Convolutions against nested loops over HLO's definition, one scalar product at a time."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.library import call


def window(
    size: int, stride: int = 1, pad: tuple[int, int] = (0, 0), base: int = 1, dilation: int = 1, flip: bool = False
) -> dict[str, Any]:
    return {
        "size": size,
        "stride": stride,
        "pad": list(pad),
        "base_dilation": base,
        "window_dilation": dilation,
        "reversed": flip,
    }


def places(size: int, dim: dict[str, Any]) -> int:
    padded = sum(dim["pad"]) + (size - 1) * dim["base_dilation"] + 1
    return (padded - (dim["size"] - 1) * dim["window_dilation"] - 1) // dim["stride"] + 1


def by_loops(image: Any, kernel: Any, dims: list[dict[str, Any]], groups: int, batches: int) -> tuple[Any, list[Any]]:
    """The result [b, ..., f] of image [b, ..., f] and kernel [..., i, o]; and all (image, kernel, result) places that are multiplied."""
    spatial = [places(size, dim) for size, dim in zip(image.shape[1:-1], dims, strict=True)]
    outputs, taken, rows = kernel.shape[-1], kernel.shape[-2], image.shape[0] // batches
    result = np.zeros((rows, *spatial, outputs))
    terms = []
    for n, p, o, k, i in product(
        range(rows), np.ndindex(*spatial), range(outputs), np.ndindex(*kernel.shape[:-2]), range(taken)
    ):
        at = []
        for place, point, dim, size in zip(p, k, dims, image.shape[1:-1], strict=True):
            point = dim["size"] - 1 - point if dim["reversed"] else point
            found = place * dim["stride"] + point * dim["window_dilation"] - dim["pad"][0]
            if found % dim["base_dilation"] or not 0 <= found // dim["base_dilation"] < size:
                break
            at.append(found // dim["base_dilation"])
        else:
            row = n + o // (outputs // batches) * rows if batches > 1 else n
            feature = i + o // (outputs // groups) * taken if groups > 1 else i
            here = (row, *at, feature), (*k, i, o), (n, *p, o)
            result[here[2]] += float(image[here[0]]) * float(kernel[here[1]])
            terms.append(here)
    return result, terms


CASES: list[Any] = [
    ((2, 5, 3), (3, 3, 4), [window(3, pad=(1, 1))], 1, 1),
    ((1, 7, 6, 2), (3, 2, 2, 3), [window(3, 2, (1, 0)), window(2, 1, (0, 2), dilation=3)], 1, 1),
    ((2, 4, 4), (3, 2, 6), [window(3, pad=(2, -1), base=2)], 2, 1),
    ((4, 5, 2), (2, 2, 6), [window(2, 2, (-1, 1))], 1, 2),
    ((2, 5, 3), (3, 3, 2), [window(3, pad=(1, 1), flip=True)], 1, 1),
    ((1, 6, 3), (2, 1, 3), [window(2, 3)], 3, 1),
    ((2, 3), (3, 4), [], 1, 1),
    ((2, 5, 0), (3, 0, 4), [window(3)], 1, 1),
]


def config(
    kind: str, operands: list[str], output: str, dims: list[dict[str, Any]], groups: int, batches: int, **more: Any
) -> dict[str, Any]:
    """Labels that are not in the order of computation: the image [f, b, ...], the kernel [o, ..., i], the result [..., f, b]."""
    digits = "".join(map(str, range(len(dims))))
    rest = {"scale": 1, "side_scale": 0, "activation": "none", "slope": 0, "types": ["f32"] * len(operands)}
    labels = [f"fb{digits}", f"o{digits}i", f"{digits}fb"]
    named = {"operands": operands, "outputs": [output], "kind": kind, "labels": labels, "window": dims}
    return {**named, "feature_groups": groups, "batch_groups": batches, **rest, **more}


def in_order(array: Any, what: str) -> Any:
    """From [b, ..., f] or [..., i, o] to the labels' order."""
    rank = array.ndim
    if what == "kernel":
        return np.ascontiguousarray(array.transpose([rank - 1, *range(rank - 2), rank - 2]))
    if what == "image":
        return np.ascontiguousarray(array.transpose([rank - 1, 0, *range(1, rank - 1)]))
    return np.ascontiguousarray(array.transpose([*range(1, rank - 1), rank - 1, 0]))


@pytest.mark.parametrize(("image_shape", "kernel_shape", "dims", "groups", "batches"), CASES)
def test_forward_and_both_gradients(image_shape: Any, kernel_shape: Any, dims: Any, groups: int, batches: int) -> None:
    """The gradients are sums over the same terms, collected at the other two places of each."""
    random = np.random.default_rng(0)
    image, kernel = (random.normal(size=shape).astype(np.float32) for shape in (image_shape, kernel_shape))
    result, terms = by_loops(image, kernel, dims, groups, batches)
    arrays = {"image": image, "kernel": kernel, "result": random.normal(size=result.shape).astype(np.float32)}
    wanted = {"result": result, "image": np.zeros(image_shape), "kernel": np.zeros(kernel_shape)}
    for in_image, in_kernel, in_result in terms:
        wanted["image"][in_image] += float(kernel[in_kernel]) * float(arrays["result"][in_result])
        wanted["kernel"][in_kernel] += float(image[in_image]) * float(arrays["result"][in_result])
    for kind, output in (("forward", "result"), ("backward_input", "image"), ("backward_filter", "kernel")):
        operands = [name for name in ("image", "result", "kernel") if name != output]
        given = [in_order(arrays[name], name) for name in operands]
        expected = in_order(wanted[output], output)
        (got,) = call(
            "convolution", config(kind, operands, output, dims, groups, batches), given, [("f32", expected.shape)]
        )
        assert np.allclose(got, expected, rtol=1e-5, atol=1e-5), kind


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda y: np.maximum(y, 0)),
        ("relu6", lambda y: np.clip(y, 0, 6)),
        ("elu", lambda y: np.where(y > 0, y, np.exp(y) - 1)),
        ("leaky_relu", lambda y: np.where(y > 0, y, 0.25 * y)),
    ],
)
def test_what_follows_a_convolution(activation: str, formula: Any) -> None:
    random = np.random.default_rng(0)
    image, kernel = random.normal(size=(2, 5, 3)).astype(np.float32), random.normal(size=(3, 3, 4)).astype(np.float32)
    dims = [window(3)]
    result, _ = by_loops(image, kernel, dims, 1, 1)
    bias, side = random.normal(size=4).astype(np.float32), random.normal(size=result.shape).astype(np.float32)
    more = {"scale": 2, "side_scale": -1.5, "activation": activation, "slope": 0.25}
    names = ["image", "kernel", "bias", "side"]
    given = [in_order(image, "image"), in_order(kernel, "kernel"), bias, in_order(side, "result")]
    wanted = in_order(formula(2 * result - 1.5 * side + bias), "result")
    (got,) = call("convolution", config("forward", names, "result", dims, 1, 1, **more), given, [("f32", wanted.shape)])
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-5)
