"""A layer of a mixture of experts as a plain JAX function: each token is computed by its two best experts, as far as they have room.

    mix(config, parameters, x f32[b,s,d]) -> y f32[b,s,d], tokens of each expert s32[experts]

Batch and length are unknown when it is compiled, and so is an expert's room: 1.25 times its share of all choices. A scatter writes tokens
to their experts' rows and drops what has no row; a gather reads the results.
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
    width: int = 256
    hidden: int = 512
    experts: int = 8
    chosen: int = 2


SMALL = Config(width=8, hidden=12, experts=4)
SHAPES = ("...", "b, s, ...")
SIZES = tuple({"b": b, "s": s} for b, s in ((1, 1), (2, 7), (3, 64), (8, 128)))
SMALL_SIZES = tuple({"b": b, "s": s} for b, s in ((1, 1), (2, 5), (3, 8)))


def parameters(config: Config, draw: Any) -> Any:
    d = config.width
    return {
        "route": draw(d, config.experts),
        "up": draw(config.experts, d, config.hidden),
        "gate": draw(config.experts, d, config.hidden),
        "down": draw(config.experts, config.hidden, d),
    }


def inputs(config: Config, sizes: dict[str, int], random: np.random.Generator) -> tuple[Any, ...]:
    return (random.standard_normal((sizes["b"], sizes["s"], config.width), np.float32),)


def mix(config: Config, weights: Any, x: Any) -> Any:
    b, s, d = x.shape
    tokens, choices = b * s, b * s * config.chosen
    room = (5 * choices) // (4 * config.experts) + 1
    rows = x.reshape(tokens, d)

    shares, experts = lax.top_k(jax.nn.softmax(rows @ weights["route"], -1), config.chosen)
    shares = (shares / shares.sum(-1, keepdims=True)).reshape(choices)
    experts = experts.reshape(choices)

    # The place of a choice among those of its expert.
    taken = jnp.cumsum(jax.nn.one_hot(experts, config.experts, dtype=jnp.int32), 0)
    place = jnp.take_along_axis(taken, experts[:, None], 1)[:, 0] - 1
    token = jnp.arange(choices) // config.chosen

    given = jnp.zeros((config.experts, room, d)).at[experts, place].set(rows[token], mode="drop")
    hidden = jax.nn.silu(jnp.einsum("erd,edh->erh", given, weights["gate"])) * jnp.einsum(
        "erd,edh->erh", given, weights["up"]
    )
    made = jnp.einsum("erh,ehd->erd", hidden, weights["down"])

    share = jnp.where(place < room, shares, 0.0)
    found = made[experts, jnp.minimum(place, room - 1)] * share[:, None]
    return found.reshape(tokens, config.chosen, d).sum(1).reshape(b, s, d), taken[-1]
