"""Softmax, norms and their gradients as JAX programs: `python recipes.py DIR` writes each as HLO before optimization.

The files beside this one are what XLA:GPU (jaxlib 0.10.2, for an H200, all passes on, default flags) makes of them; the fingerprint among
the module's attributes is left out. Each array of activations has at least 128 MiB. It needs JAX; `benchmarks.rows` does not.
"""

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

f32, bf16, f16 = jnp.float32, jnp.bfloat16, jnp.float16


def array(dtype: Any, *shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def masked_softmax(x):
    """Of the scores of causal attention."""
    mask = jnp.tril(jnp.ones(x.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(mask, x, -1e9), axis=-1)


def layer_norm(x, g, b):
    wide = x.astype(f32)
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return ((wide - mean) * lax.rsqrt(variance + 1e-5) * g + b).astype(x.dtype)


def rms_norm(x, g):
    wide = x.astype(f32)
    return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6) * g).astype(x.dtype)


def by_input(function):
    """The gradient of a function by its first argument; the gradient of its result comes last."""

    def gradient(x, *rest):
        *weights, of_result = rest
        return jax.vjp(lambda x: function(x, *weights), x)[1](of_result)[0]

    return gradient


RECIPES = {
    "softmax_f32": (softmax, array(f32, 16384, 2048)),
    "softmax_bf16": (softmax, array(bf16, 32768, 2048)),
    "softmax_f16": (softmax, array(f16, 65536, 1024)),
    "masked_softmax": (masked_softmax, array(f32, 8, 16, 512, 512)),
    "log_softmax": (jax.nn.log_softmax, array(f32, 4096, 8192)),
    "layer_norm": (layer_norm, array(bf16, 16384, 4096), array(f32, 4096), array(f32, 4096)),
    "rms_norm": (rms_norm, array(bf16, 16384, 4096), array(f32, 4096)),
    "softmax_gradient": (by_input(softmax), array(f32, 16384, 2048), array(f32, 16384, 2048)),
    "layer_norm_gradient": (
        by_input(layer_norm),
        array(bf16, 16384, 4096),
        array(f32, 4096),
        array(f32, 4096),
        array(bf16, 16384, 4096),
    ),
    "rms_norm_gradient": (
        by_input(rms_norm),
        array(bf16, 16384, 4096),
        array(f32, 4096),
        array(bf16, 16384, 4096),
    ),
}

if __name__ == "__main__":
    for name, (function, *arguments) in RECIPES.items():
        hlo = jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text()
        (Path(sys.argv[1]) / f"{name}.hlo").write_text(hlo)
