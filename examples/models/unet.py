"""A level of a diffusion U-Net as a plain JAX function: down, attention in the middle, and up again beside what was skipped.

    denoise(config, parameters, x f32[b,2*h,2*w,4], time f32[b]) -> f32[b,2*h,2*w,4]

Batch and image size are unknown when it is compiled; an image is even, so that what comes up fits what was skipped. Group norms see the
rows of an image as one dimension, attention all its pixels: sizes are products.
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
    channels: int = 4
    width: int = 64
    groups: int = 8
    heads: int = 4


SMALL = Config(width=8, groups=2, heads=2)
SHAPES = ("...", "b, 2*h, 2*w, 4", "b")
SIZES = tuple({"b": b, "h": h, "w": w} for b, h, w in ((1, 1, 1), (1, 8, 8), (2, 9, 14), (2, 16, 16)))
SMALL_SIZES = tuple({"b": b, "h": h, "w": w} for b, h, w in ((1, 1, 1), (2, 3, 2), (1, 4, 5)))


def parameters(config: Config, draw: Any) -> Any:
    d = config.width

    def block(width: int, out: int) -> Any:
        found = {
            "first_norm": (draw(width), draw(width)),
            "first": draw(3, 3, width, out),
            "time": draw(4 * d, out),
            "second_norm": (draw(out), draw(out)),
            "second": draw(3, 3, out, out),
        }
        return found | ({"skip": draw(1, 1, width, out)} if width != out else {})

    return {
        "time": [draw(d, 4 * d), draw(4 * d, 4 * d)],
        "in": draw(3, 3, config.channels, d),
        "down": block(d, d),
        "halve": draw(3, 3, d, d),
        "middle": block(d, 2 * d),
        "attention_norm": (draw(2 * d), draw(2 * d)),
        "attention": {name: draw(2 * d, 2 * d) for name in ("query", "key", "value", "out")},
        "double": draw(3, 3, 2 * d, d),
        "up": block(2 * d, d),
        "out_norm": (draw(d), draw(d)),
        "out": draw(3, 3, d, config.channels),
    }


def inputs(config: Config, sizes: dict[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    b, h, w = sizes["b"], sizes["h"], sizes["w"]
    return random.standard_normal((b, 2 * h, 2 * w, config.channels), np.float32), random.uniform(0, 1000, b).astype(
        np.float32
    )


def denoise(config: Config, weights: Any, x: Any, time: Any) -> Any:
    first, second = weights["time"]
    moment = jax.nn.silu(jax.nn.silu(sinusoids(time, config.width) @ first) @ second)
    x = convolve(x, weights["in"])
    skipped = residual(config, weights["down"], x, moment)
    x = convolve(skipped, weights["halve"], 2)
    x = residual(config, weights["middle"], x, moment)
    x = x + attend(config, weights["attention"], group_norm(config, x, weights["attention_norm"]))
    x = convolve(doubled(x), weights["double"])
    x = residual(config, weights["up"], jnp.concatenate([x, skipped], -1), moment)
    return convolve(jax.nn.silu(group_norm(config, x, weights["out_norm"])), weights["out"])


def residual(config: Config, layer: Any, x: Any, moment: Any) -> Any:
    y = convolve(jax.nn.silu(group_norm(config, x, layer["first_norm"])), layer["first"])
    y = y + (moment @ layer["time"])[:, None, None, :]
    y = convolve(jax.nn.silu(group_norm(config, y, layer["second_norm"])), layer["second"])
    return y + (convolve(x, layer["skip"]) if "skip" in layer else x)


def attend(config: Config, layer: Any, x: Any) -> Any:
    b, h, w, d = x.shape
    query, key, value = (
        (x @ layer[name]).reshape(b, h * w, config.heads, d // config.heads) for name in ("query", "key", "value")
    )
    shares = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", query, key) / np.float32(d // config.heads) ** 0.5, -1)
    return jnp.einsum("bhst,bthd->bshd", shares, value).reshape(b, h, w, d) @ layer["out"]


def group_norm(config: Config, x: Any, weights: Any) -> Any:
    b, h, w, d = x.shape
    scale, bias = weights
    groups = x.reshape(b, h * w, config.groups, d // config.groups)
    centered = groups - groups.mean((1, 3), keepdims=True)
    normal = centered * lax.rsqrt((centered * centered).mean((1, 3), keepdims=True) + 1e-5)
    return normal.reshape(b, h, w, d) * scale + bias


def convolve(x: Any, kernel: Any, stride: int = 1) -> Any:
    around = kernel.shape[0] // 2
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), ((around, around),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def doubled(x: Any) -> Any:
    """Each pixel as two by two."""
    b, h, w, d = x.shape
    return jnp.broadcast_to(x[:, :, None, :, None, :], (b, h, 2, w, 2, d)).reshape(b, 2 * h, 2 * w, d)


def sinusoids(time: Any, width: int) -> Any:
    half = width // 2
    angles = time[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)
