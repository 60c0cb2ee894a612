"""Convolutions by BLAS at drawn windows, layouts and groups, against those of `library` on images without dilation, in NumPy."""

import random
from typing import Any

import numpy as np
import pytest
from long_lists import every

from xla_emitters.library import call
from xla_emitters.library.convolution import SpatialWindow
from xla_emitters.runtime.cpu import blas, convolutions
from xla_emitters.runtime.cpu.convolutions import convolution_of

pytestmark = pytest.mark.skipif(blas.library() is None, reason="scipy-openblas32 is not installed")


def drawn_window(draw: random.Random) -> list[dict[str, Any]]:
    if draw.random() < 0.15:
        plain = {"size": 1, "stride": 1, "pad": [0, 0], "base_dilation": 1, "window_dilation": 1, "reversed": False}
        return [dict(plain) for _ in range(draw.randint(1, 3))]
    return [
        {
            "size": draw.choice([1, 2, 3]),
            "stride": draw.choice([1, 1, 2]),
            "pad": [draw.choice([0, 0, 1, -1, 2]), draw.choice([0, 0, 1, -1])],
            "base_dilation": draw.choice([1, 1, 2]),
            "window_dilation": draw.choice([1, 1, 2]),
            "reversed": draw.random() < 0.2,
        }
        for _ in range(draw.randint(1, 3))
    ]


def drawn_label(draw: random.Random, first: str, last: str, spatial: int) -> str:
    digits = "".join(map(str, range(spatial)))
    return draw.choice([first + digits + last, first + last + digits, digits + first + last, last + digits + first])


def spread(image: np.ndarray, label: str, window: list[dict[str, Any]]) -> np.ndarray:
    """With zeros between the elements of a dilated image."""
    steps = [window[int(letter)]["base_dilation"] if letter.isdigit() else 1 for letter in label]
    found = np.zeros([(size - 1) * step + 1 for size, step in zip(image.shape, steps, strict=True)], image.dtype)
    found[tuple(slice(None, None, step) for step in steps)] = image
    return found


@pytest.mark.parametrize("seed", every(3, range(150)))
def test_any_window_layout_and_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    window, groups = drawn_window(draw), draw.choice([1, 1, 2, 3])
    features, outputs, batch = draw.choice([1, 2, 3, 16, 17]), draw.choice([1, 2, 4]), draw.choice([1, 2, 3])
    image = [draw.choice([3, 5, 8]) for _ in window]
    extents = [(dim["size"] - 1) * dim["window_dilation"] + 1 for dim in window]
    padded = SpatialWindow(window).padded_sizes(image)
    places = [
        max(0, (size - extent) // dim["stride"] + 1)
        for size, extent, dim in zip(padded, extents, window, strict=True)
    ]  # fmt: skip
    labels = [drawn_label(draw, *ends, len(window)) for ends in ("bf", "io", "bf")]
    held = [
        {"b": batch, "f": features * groups, **{str(i): size for i, size in enumerate(image)}},
        {"i": features, "o": outputs * groups, **{str(i): dim["size"] for i, dim in enumerate(window)}},
        {"b": batch, "f": outputs * groups, **{str(i): size for i, size in enumerate(places)}},
    ]
    shapes = [tuple(sizes[letter] for letter in label) for sizes, label in zip(held, labels, strict=True)]
    config = {
        "types": ["f64", "f64"], "operands": ["image", "kernel"], "outputs": ["result"], "kind": "forward",
        "labels": labels, "window": window, "feature_groups": groups, "batch_groups": 1, "scale": 1, "side_scale": 0,
        "activation": "none", "slope": 0, "precision": "",
    }  # fmt: skip
    monkeypatch.setattr(convolutions, "PATCHES", draw.choice([1, 50, 1 << 17]))
    monkeypatch.setattr(convolutions, "SHARED_WORK", draw.choice([1, 1 << 30]))
    x, kernel = (numbers.standard_normal(shape) for shape in shapes[:2])
    convolve = convolution_of(config, "f64", *shapes)
    if convolve is None:
        assert not np.prod(shapes[2])
        return
    plain = {**config, "window": [{**dim, "base_dilation": 1} for dim in window]}
    (wanted,) = call("convolution", plain, [spread(x, labels[0], window), kernel], [("f64", shapes[2])])
    for _ in range(2):  # the second call finds the scratch memory of the first
        found = np.full(shapes[2], np.nan)
        convolve(x, kernel, found)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
