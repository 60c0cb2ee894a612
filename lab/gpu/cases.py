"""JAX functions at real sizes, 0.25 to 1 GB of traffic each."""

import os
from typing import Any

import jax
import jax.numpy as jnp

SMALL = os.environ.get("GPU_SMALL")
f32, bf16, s32 = jnp.float32, jnp.bfloat16, jnp.int32


def softmax(x):
    return jax.nn.softmax(x, -1)


def layer_norm(x, g, b):
    y = x.astype(f32)
    m = y.mean(-1, keepdims=True)
    v = ((y - m) ** 2).mean(-1, keepdims=True)
    return ((y - m) * jax.lax.rsqrt(v + 1e-5) * g + b).astype(x.dtype)


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def batch_norm(x, g, b):
    m = x.mean((0, 1, 2))
    v = (x * x).mean((0, 1, 2)) - m * m
    return (x - m) * jax.lax.rsqrt(v + 1e-5) * g + b


def rope(x, c, s):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


N = 1 << (14 if SMALL else 26)
S = 1 << (7 if SMALL else 13)
T = S * 2
# name: (function, [(shape, dtype, highest integer or None)], symbolic shapes for the program of any size or None)
CASES: dict[str, tuple[Any, list[tuple[tuple[int, ...], Any, int | None]], tuple[str, ...] | None]] = {
    "gelu_f32": (lambda x: jax.nn.gelu(x), [((N,), f32, None)], ("n",)),
    "gelu_bf16": (lambda x: jax.nn.gelu(x), [((N,), bf16, None)], ("n",)),
    "bias_silu_residual": (
        lambda x, b, r: jax.nn.silu(x + b) + r,
        [((S, S), bf16, None), ((S,), bf16, None), ((S, S), bf16, None)],
        ("m, n", "n", "m, n"),
    ),
    "adam": (adam, [((N // 2,), f32, None)] * 4, ("n",) * 4),
    "softmax_8k": (softmax, [((S, S), f32, None)], ("m, n",)),
    "softmax_1k_bf16": (softmax, [((S * 8, S // 8), bf16, None)], ("m, n",)),
    "layer_norm_bf16": (
        layer_norm,
        [((T, S // 2), bf16, None), ((S // 2,), f32, None), ((S // 2,), f32, None)],
        ("m, n", "n", "n"),
    ),
    "sum_rows": (lambda x: x.sum(-1), [((S, S), f32, None)], ("m, n",)),
    "sum_columns": (lambda x: x.sum(0), [((S, S), f32, None)], ("m, n",)),
    "sum_narrow_columns": (lambda x: x.sum(0), [((N // 128, 128), f32, None)], ("m, n",)),
    "sum_all": (lambda x: x.sum(), [((N,), f32, None)], ("n",)),
    "sum_and_max": (lambda x: (x.sum(-1), x.max(-1), (x * x).sum(-1)), [((S, S), f32, None)], ("m, n",)),
    "argmax_rows": (lambda x: jnp.argmax(x, -1), [((S, S), f32, None)], ("m, n",)),
    "norm_bf16": (lambda x: jnp.sqrt((x.astype(f32) ** 2).sum()), [((N,), bf16, None)], None),
    "transpose_f32": (lambda x: x.T + 0, [((S, S), f32, None)], ("m, n",)),
    "transpose_bf16_gelu": (lambda x: jax.nn.gelu(x.T), [((S, S), bf16, None)], ("m, n",)),
    "transpose_and_sum": (lambda x: (x.T * 2, x.sum()), [((S, S), f32, None)], None),
    "concat_minor": (lambda *x: jnp.concatenate(x, -1), [((S, S // 4), f32, None)] * 4, None),
    "concat_major": (lambda *x: jnp.concatenate([jnp.exp(t) for t in x], 0), [((S // 4, S), f32, None)] * 4, None),
    "rope": (
        rope,
        [((8, S // 4, S // 256, 128), bf16, None), ((S // 4, 1, 64), bf16, None), ((S // 4, 1, 64), bf16, None)],
        None,
    ),
    "scatter_add": (
        lambda w, i, u: w.at[i].add(u),
        [((50000 if not SMALL else 500, 512), f32, None), ((T,), s32, 499), ((T, 512), f32, None)],
        None,
    ),
    "gather_rows": (lambda w, i: w[i], [((50000 if not SMALL else 500, 1024), f32, None), ((T * 2,), s32, 499)], None),
    "cumsum": (lambda x: jnp.cumsum(x, -1), [((S, S // 2), f32, None)], None),
    "pad_reflect": (
        lambda x: jnp.pad(x, ((0, 0), (3, 3), (3, 3), (0, 0)), mode="reflect"),
        [((S // 128, 112, 112, 64), f32, None)],
        None,
    ),
    "dequant": (lambda x, s: x.astype(bf16) * s, [((S, S), jnp.int8, 100), ((S, 1), bf16, None)], ("m, n", "m, 1")),
    "batch_norm_nhwc": (
        batch_norm,
        [((S // 128, 56, 56, 256), f32, None), ((256,), f32, None), ((256,), f32, None)],
        None,
    ),
    "stencil": (
        lambda x: x[1:-1, 1:-1] * -4 + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:],
        [((S, S), f32, None)],
        None,
    ),
    "mandelbrot": (
        lambda x, y: jax.lax.fori_loop(
            0, 16, lambda i, z: (z[0] * z[0] - z[1] * z[1] + x, 2 * z[0] * z[1] + y), (x, y)
        )[0],
        [((S, S // 4), f32, None)] * 2,
        None,
    ),
}
