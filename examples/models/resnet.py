"""ResNet-18 as a plain JAX function, as it runs after training: batch norms with fixed means and variances.

    classify(config, parameters, images f32[b,h,w,3]) -> scores f32[b,classes]

Batch, height and width are unknown when it is compiled. A convolution of stride 2 makes (h - 1) // 2 + 1 rows of h: sizes inside are
quotients, five of them nested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...] = (64, 128, 256, 512)
    blocks: int = 2
    classes: int = 1000


SMALL = Config(widths=(2, 4, 6), blocks=1, classes=5)
SHAPES = ("...", "b, h, w, 3")
SIZES = tuple({"b": b, "h": h, "w": w} for b, h, w in ((1, 32, 32), (2, 65, 47), (1, 224, 224)))
SMALL_SIZES = tuple({"b": b, "h": h, "w": w} for b, h, w in ((1, 1, 1), (2, 33, 20), (1, 16, 37)))


def parameters(config: Config, draw: Any) -> Any:
    first = config.widths[0]
    found: Any = {"stem": convolution(draw, 7, 3, first), "stages": []}
    width = first
    for out in config.widths:
        stage = []
        for number in range(config.blocks):
            block = {"first": convolution(draw, 3, width, out), "second": convolution(draw, 3, out, out)}
            if number == 0 and out != first:
                block["shortcut"] = convolution(draw, 1, width, out)
            stage.append(block)
            width = out
        found["stages"].append(stage)
    return found | {"classes": draw(width, config.classes), "bias": draw(config.classes)}


def convolution(draw: Any, size: int, width: int, out: int) -> Any:
    """A kernel, and the scale, bias, mean and variance of the batch norm after it."""
    norm = {"scale": draw(out), "bias": draw(out), "mean": draw(out), "variance": abs(draw(out)) + np.float32(0.5)}
    return {"kernel": draw(size, size, width, out), **norm}


def inputs(config: Config, sizes: dict[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    return (random.standard_normal((sizes["b"], sizes["h"], sizes["w"], 3), np.float32),)


def classify(config: Config, weights: Any, images: Any) -> Any:
    x = jax.nn.relu(convolve(images, weights["stem"], 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for number, stage in enumerate(weights["stages"]):
        for position, block in enumerate(stage):
            stride = 2 if number > 0 and position == 0 else 1
            y = jax.nn.relu(convolve(x, block["first"], stride))
            y = convolve(y, block["second"], 1)
            x = jax.nn.relu(y + (convolve(x, block["shortcut"], stride) if "shortcut" in block else x))
    return x.mean((1, 2)) @ weights["classes"] + weights["bias"]


def convolve(x: Any, layer: Any, stride: int) -> Any:
    around = layer["kernel"].shape[0] // 2
    x = lax.conv_general_dilated(
        x, layer["kernel"], (stride, stride), ((around, around),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return (x - layer["mean"]) * (lax.rsqrt(layer["variance"] + 1e-5) * layer["scale"]) + layer["bias"]
