"""Sixty JAX functions with the shapes of their arguments: models, losses, loops, bit tricks, random numbers, sorts, and odd sizes.

    @program("f32[12,40]")
    def softmax(x): ...

An argument is written as `modules.draw` reads it, or is a tree of such words. Each function is small enough to run in a moment on a CPU.
Results that HLO leaves open (the order of equal keys in an unstable sort, NaN bits) are avoided, so that every machine must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


@dataclass(frozen=True)
class JaxProgram:
    """A function, a draw for each leaf of its arguments, and how close another machine must come.

    arguments   trees of words
    donated     numbers of the arguments whose memory the results may take
    wide        whether JAX's 64-bit types are on
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...]
    wide: bool
    atol: float
    rtol: float


PROGRAMS: dict[str, JaxProgram] = {}


def program(
    *arguments: Any, donated: tuple[int, ...] = (), wide: bool = False, atol: float = 1e-5, rtol: float = 1e-5
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the function under its name to `PROGRAMS`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = JaxProgram(function, arguments, donated, wide, atol, rtol)
        return function

    return add


EXACT: dict[str, float] = {"atol": 0.0, "rtol": 0.0}

# ---- norms, activations, attention, layers


@program("f32[12,40]")
def softmax(x):
    return jax.nn.softmax(x)


@program("f32[6,5,48]", "f32[48]", "f32[48]")
def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + shift


@program("bf16[10,96]", "bf16[96]", atol=0.03, rtol=0.02)
def rms_norm_bf16(x, scale):
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(jnp.bfloat16) * scale


@program("f32[2,3,10,8]", "f32[2,3,10,8]", "f32[2,3,10,8]")
def causal_attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8**0.5
    scores = jnp.where(jnp.tril(jnp.ones((10, 10), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@program("f32[9,20]", {"w": ["f32[20,32]", "f32[32,7]"], "b": ["f32[32]", "f32[7]"]}, atol=1e-4)
def mlp(x, parameters):
    hidden = jax.nn.relu(x @ parameters["w"][0] + parameters["b"][0])
    return hidden @ parameters["w"][1] + parameters["b"][1]


@program("bf16[16,32]", "bf16[32,64]", "bf16[64,32]", atol=1.0, rtol=0.05)
def gelu_mlp_bf16(x, up, down):
    return jax.nn.gelu(x @ up) @ down


# ---- losses and gradients


@program("f32[14,10]", "s32[14] 0..9")
def cross_entropy_gradient(logits, labels):
    def loss(logits):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.value_and_grad(loss)(logits)


@program("f32[9,20]", {"w": "f32[20,6]", "b": "f32[6]"}, "f32[9,6]", atol=1e-4)
def huber_gradient(x, parameters, target):
    def loss(parameters):
        error = jnp.tanh(x @ parameters["w"] + parameters["b"]) - target
        small = jnp.minimum(jnp.abs(error), 1.0)
        return (0.5 * small**2 + jnp.abs(error) - small).mean()

    return jax.value_and_grad(loss)(parameters)


# ---- optimizers


@program(
    {"w": "f32[13,7]", "b": "f32[7]"},
    {"w": "f32[13,7]", "b": "f32[7]"},
    {"w": "f32[13,7]", "b": "f32[7]"},
    {"w": "f32[13,7] 0..1", "b": "f32[7] 0..1"},
    "s32[] 3..3",
    donated=(0, 2, 3),
)
def adam_step(parameters, gradients, first, second, count):
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    steps = (count + 1).astype(jnp.float32)

    def moved(p, m, v):
        return p - 0.01 * (m / (1 - 0.9**steps)) / (jnp.sqrt(v / (1 - 0.999**steps)) + 1e-8)

    return jax.tree.map(moved, parameters, first, second), first, second, count + 1


# ---- loops and branches


@program("f32[7,3,8]", "f32[3,8]", "f32[16,8]")
def rnn(inputs, state, weights):
    def step(state, x):
        state = jnp.tanh(jnp.concatenate([x, state], 1) @ weights)
        return state, state

    return lax.scan(step, state, inputs)


@program("f32[6,2,4]", "f32[2,4]", donated=(1,))
def scan_with_cache(queries, start):
    cache = jnp.zeros((6, 2, 4))

    def step(carry, x):
        cache, position = carry
        cache = lax.dynamic_update_slice(cache, (x + start)[None], (position, 0, 0))
        return (cache, position + 1), (cache * x).sum((0, 2))

    return lax.scan(step, (cache, 0), queries)


@program("f32[] 50..90")
def while_newton_root(x):
    def wrong(state):
        return jnp.abs(state[0] * state[0] - x) > 1e-3

    return lax.while_loop(wrong, lambda state: (0.5 * (state[0] + x / state[0]), state[1] + 1), (x, 0))


@program("f32[8,8]", atol=1e-4)
def fori_power_iteration(matrix):
    matrix = matrix @ matrix.T

    def step(_, vector):
        vector = matrix @ vector
        return vector / jnp.linalg.norm(vector)

    vector = lax.fori_loop(0, 12, step, jnp.ones(8) / 8**0.5)
    return vector @ matrix @ vector


@program("s32[] 2..2", "f32[5,6]")
def switch_of_three(which, x):
    return lax.switch(which, [lambda x: x.sum(0), lambda x: jnp.sort(x, 0)[0], lambda x: jnp.cumsum(x, 0)[-1] * 2], x)


# ---- convolutions


@program("f32[2,9,9,3]", "f32[3,3,3,4]", atol=1e-4)
def conv_net(image, kernel):
    features = lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(features).mean((1, 2))


# ---- integers


@program("u32[50] any", **EXACT)
def murmur_finalizer(x):
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


# ---- sorts


@program("f32[6,21]", **EXACT)
def sort_and_argsort(x):
    return jnp.sort(x, 1), jnp.argsort(x, 1)


@program("f32[5,40]", **EXACT)
def top_k(x):
    return lax.top_k(x, 6)


# ---- random numbers


@program("u32[2] any")
def random_normal(key):
    return jax.random.normal(jax.random.wrap_key_data(key), (3, 17))


# ---- gather, scatter, segments


@program("f32[30,4]", "s32[30] 0..6")
def segment_sums(x, segments):
    sums = jax.ops.segment_sum(x, segments, 7)
    return sums, sums[segments]
