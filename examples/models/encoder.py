"""An encoder as BERT has it, as a plain JAX function: 12 layers, token, place and segment embeddings, a mask, a pooled result.

    encode(config, parameters, tokens s32[b,s], segments s32[b,s], mask s32[b,s]) -> states f32[b,s,d], pooled f32[b,d]

Batch and length are unknown when it is compiled; the table of places has 512 rows, so that JAX is told s <= 512.
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
    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    vocabulary: int = 30522
    places: int = 512


SMALL = Config(layers=2, width=8, heads=2, hidden=16, vocabulary=20)
SHAPES = ("...", "b, s", "b, s", "b, s")
CONSTRAINTS = ("s <= 512",)
SIZES = tuple({"b": b, "s": s} for b, s in ((1, 1), (1, 19), (2, 33), (4, 64)))
SMALL_SIZES = tuple({"b": b, "s": s} for b, s in ((1, 1), (2, 7), (3, 4)))


def parameters(config: Config, draw: Any) -> Any:
    d = config.width
    layer_shapes = {
        **{name: (d, d) for name in ("query", "key", "value", "out")},
        **{f"{name}_bias": (d,) for name in ("query", "key", "value", "out", "down")},
        "up": (d, config.hidden),
        "up_bias": (config.hidden,),
        "down": (config.hidden, d),
        **{f"{name}_{of}": (d,) for name in ("attention_norm", "hidden_norm") for of in ("scale", "bias")},
    }
    return {
        "tokens": draw(config.vocabulary, d),
        "places": draw(config.places, d),
        "segments": draw(2, d),
        "norm_scale": draw(d),
        "norm_bias": draw(d),
        "layers": [{name: draw(*shape) for name, shape in layer_shapes.items()} for _ in range(config.layers)],
        "pool": draw(d, d),
        "pool_bias": draw(d),
    }


def inputs(config: Config, sizes: dict[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    b, s = sizes["b"], sizes["s"]
    lengths = random.integers(1, s + 1, (b, 1))
    mask = (np.arange(s) < lengths).astype(np.int32)
    tokens = random.integers(0, config.vocabulary, (b, s), np.int32)
    return tokens, (np.arange(s) >= lengths // 2).astype(np.int32), mask


def encode(config: Config, weights: Any, tokens: Any, segments: Any, mask: Any) -> Any:
    s = tokens.shape[1]
    x = weights["tokens"][tokens] + weights["places"][:s] + weights["segments"][segments]
    x = layer_norm(x, weights["norm_scale"], weights["norm_bias"])
    hidden = jnp.where(mask[:, None, None, :] > 0, 0.0, -1e9)
    for layer in weights["layers"]:
        mixed = attend(config, layer, x, hidden)
        x = layer_norm(x + mixed, layer["attention_norm_scale"], layer["attention_norm_bias"])
        y = jax.nn.gelu(x @ layer["up"] + layer["up_bias"], approximate=False) @ layer["down"] + layer["down_bias"]
        x = layer_norm(x + y, layer["hidden_norm_scale"], layer["hidden_norm_bias"])
    return x, jnp.tanh(x[:, 0] @ weights["pool"] + weights["pool_bias"])


def attend(config: Config, layer: Any, x: Any, hidden: Any) -> Any:
    b, s, d = x.shape
    query, key, value = (
        (x @ layer[name] + layer[f"{name}_bias"]).reshape(b, s, config.heads, d // config.heads)
        for name in ("query", "key", "value")
    )
    scores = jnp.einsum("bshd,bthd->bhst", query, key) / np.float32(d // config.heads) ** 0.5 + hidden
    mixed = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores, -1), value).reshape(b, s, d)
    return mixed @ layer["out"] + layer["out_bias"]


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-12) * scale + bias
