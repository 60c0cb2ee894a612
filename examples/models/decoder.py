"""A decoder as a plain JAX function: rope, grouped-query attention, a key-value cache, greedy decoding in a loop.

    generate(config, parameters, prompt s32[b,s], room s32[b,n]) -> tokens s32[b,n], steps s32[]

Batch, prompt length and number of steps are unknown when it is compiled. The prompt fills the cache in one pass; then a while loop makes
one token a step until there is no room, or every sequence has ended. The cache has s + n places from the start.
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
    """Of a model; `cached_heads` are those of keys and values, `hidden` is the width between gate and `down`, `end` ends a sequence."""

    layers: int = 4
    width: int = 256
    heads: int = 8
    cached_heads: int = 2
    hidden: int = 512
    vocabulary: int = 1000
    end: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


SMALL = Config(layers=2, width=16, heads=4, hidden=24, vocabulary=20)
SHAPES = ("...", "b, s", "b, n")
SIZES = tuple({"b": b, "s": s, "n": n} for b, s, n in ((1, 1, 4), (2, 7, 16), (4, 33, 24), (8, 128, 32)))
SMALL_SIZES = tuple({"b": b, "s": s, "n": n} for b, s, n in ((1, 1, 1), (2, 5, 4), (3, 2, 9)))


def parameters(config: Config, draw: Any) -> Any:
    """Random weights; `draw(*shape)` gives an array."""
    d, kv = config.width, config.cached_heads * config.head
    layer_shapes = {
        "attention_norm": (d,),
        "query": (d, d),
        "key": (d, kv),
        "value": (d, kv),
        "out": (d, d),
        "hidden_norm": (d,),
        "gate": (d, config.hidden),
        "up": (d, config.hidden),
        "down": (config.hidden, d),
    }
    return {
        "embedding": draw(config.vocabulary, d),
        "layers": [{name: draw(*shape) for name, shape in layer_shapes.items()} for _ in range(config.layers)],
        "norm": draw(d),
    }


def inputs(config: Config, sizes: dict[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    prompt = random.integers(1, config.vocabulary, (sizes["b"], sizes["s"]), np.int32)
    return prompt, np.zeros((sizes["b"], sizes["n"]), np.int32)


def generate(config: Config, weights: Any, prompt: Any, room: Any) -> Any:
    (b, s), n = prompt.shape, room.shape[1]
    empty = jnp.zeros((b, s + n, config.cached_heads, config.head))
    logits, caches = forward(config, weights, prompt, [(empty, empty)] * config.layers, 0)

    def is_unfinished(carried: Any) -> Any:
        step, _, _, ended, _ = carried
        return (step < n) & ~ended.all()

    def step(carried: Any) -> Any:
        step, token, tokens, ended, caches = carried
        tokens = lax.dynamic_update_slice(tokens, token[:, None], (0, step))
        ended = ended | (token == config.end)
        logits, caches = forward(config, weights, token[:, None], caches, s + step)
        return step + 1, greedy(logits, ended, config.end), tokens, ended, caches

    ended = jnp.zeros(b, bool)
    steps, _, tokens, _, _ = lax.while_loop(
        is_unfinished, step, (jnp.int32(0), greedy(logits, ended, config.end), room, ended, caches)
    )
    return tokens, steps


def greedy(logits: Any, ended: Any, end: int) -> Any:
    return jnp.where(ended, end, jnp.argmax(logits, -1).astype(jnp.int32))


def forward(config: Config, weights: Any, tokens: Any, caches: Any, start: Any) -> Any:
    """Logits after the last of `tokens`, which are at the places `start`, `start + 1` ..., and the caches with them."""
    x, found = weights["embedding"][tokens], []
    places = start + jnp.arange(tokens.shape[1])
    for layer, cache in zip(weights["layers"], caches, strict=True):
        mixed, cache = attend(config, layer, rms_norm(x, layer["attention_norm"]), cache, start, places)
        x = x + mixed
        y = rms_norm(x, layer["hidden_norm"])
        x = x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
        found.append(cache)
    return rms_norm(x[:, -1], weights["norm"]) @ weights["embedding"].T, found


def attend(config: Config, layer: Any, x: Any, cache: Any, start: Any, places: Any) -> Any:
    b, t, _ = x.shape
    groups = config.heads // config.cached_heads
    query = rope((x @ layer["query"]).reshape(b, t, config.heads, config.head), places)
    key = rope((x @ layer["key"]).reshape(b, t, config.cached_heads, config.head), places)
    value = (x @ layer["value"]).reshape(b, t, config.cached_heads, config.head)
    keys, values = (lax.dynamic_update_slice(old, new, (0, start, 0, 0)) for old, new in zip(cache, (key, value)))  # noqa: B905
    query = query.reshape(b, t, config.cached_heads, groups, config.head)
    scores = jnp.einsum("btkgd,bukd->bkgtu", query, keys) / np.float32(config.head) ** 0.5
    is_past = jnp.arange(keys.shape[1])[None, :] <= places[:, None]
    shares = jax.nn.softmax(jnp.where(is_past, scores, -1e9), -1)
    mixed = jnp.einsum("bkgtu,bukd->btkgd", shares, values).reshape(b, t, config.width)
    return mixed @ layer["out"], (keys, values)


def rope(x: Any, places: Any) -> Any:
    half = x.shape[-1] // 2
    angles = places[:, None, None] / 10000.0 ** (jnp.arange(half) / half)
    left, right, cos, sin = x[..., :half], x[..., half:], jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


def rms_norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
