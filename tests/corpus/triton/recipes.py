"""JAX programs of which XLA:GPU gives parts to Triton: `python recipes.py DIR` writes each as HLO before optimization.

The files beside this one are what XLA:GPU (jaxlib 0.10.2, for an H200, all passes on, default flags) makes of them; the fingerprint among
the module's attributes is left out. It needs JAX, the tests do not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

f32, bf16, f16, s8, s4, f8 = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int8, jnp.int4, jnp.float8_e4m3fn


def array(dtype: Any, *shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def layer_norm(x, g, b):
    x = x.astype(f32)
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return ((x - mean) * lax.rsqrt(variance + 1e-5) * g + b).astype(bf16)


def rms_norm(x, g):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def scan_rms_norm(x, g):
    return lax.scan(lambda carry, _: (rms_norm(carry, g) + carry, None), x, None, length=4)[0]


def cross_entropy(x, y):
    return -(jax.nn.log_softmax(x, -1) * y).sum(-1)


def attention(q, k, v):
    scores = jnp.einsum("bqd,bkd->bqk", q, k) * 0.125
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores.astype(f32), -1).astype(q.dtype), v)


def gemm(x, w):
    return x @ w


def gemm_bias_gelu(x, w, b):
    return jax.nn.gelu(jnp.dot(x, w, preferred_element_type=f32) + b).astype(bf16)


RECIPES = {
    "softmax_f32": (softmax, array(f32, 512, 2048)),
    "softmax_bf16": (softmax, array(bf16, 512, 2048)),
    "softmax_small": (softmax, array(f32, 8, 128)),
    "layer_norm": (layer_norm, array(bf16, 512, 1024), array(f32, 1024), array(f32, 1024)),
    "rms_norm": (rms_norm, array(f32, 512, 1024), array(f32, 1024)),
    "scan_rms_norm": (scan_rms_norm, array(f32, 64, 256), array(f32, 256)),
    "cross_entropy": (cross_entropy, array(f32, 256, 1024), array(f32, 256, 1024)),
    "attention": (attention, *3 * (array(bf16, 2, 128, 64),)),
    "softmax_of_gemm": (
        lambda x, w: softmax(jnp.dot(x, w, preferred_element_type=f32)),
        array(bf16, 128, 64),
        array(bf16, 64, 128),
    ),
    "gemm_f32": (gemm, array(f32, 512, 64), array(f32, 64, 512)),
    "gemm_split_k": (gemm, array(bf16, 16, 8192), array(bf16, 8192, 16)),
    "gemm_batched": (lambda x, w: jnp.einsum("bij,bjk->bik", x, w), array(f16, 4, 128, 64), array(f16, 4, 64, 128)),
    "gemm_bias_gelu": (gemm_bias_gelu, array(bf16, 512, 64), array(bf16, 64, 512), array(f32, 512)),
    "gemm_residual": (
        lambda x, w, b, r: jnp.dot(x, w) + b + r,
        array(f16, 512, 64),
        array(f16, 64, 512),
        array(f16, 512),
        array(f16, 512, 512),
    ),
    "gemm_concatenated": (
        lambda x, v, w: x @ jnp.concatenate([v, w], 1),
        array(bf16, 128, 64),
        array(bf16, 64, 128),
        array(bf16, 64, 128),
    ),
    "gemm_mixed": (lambda x, w: jnp.dot(x, w.astype(f32)), array(f32, 256, 64), array(bf16, 64, 256)),
    "gemm_s8": (
        lambda x, w, s: jnp.dot(x, w.astype(bf16) * s),
        array(bf16, 256, 64),
        array(s8, 64, 256),
        array(bf16, 256),
    ),
    "gemm_s4": (lambda x, w: jnp.dot(x, w.astype(bf16)), array(bf16, 256, 64), array(s4, 64, 256)),
    "gemm_f8": (
        lambda x, w: jnp.dot(x, w, preferred_element_type=f32).astype(bf16),
        array(f8, 256, 64),
        array(f8, 64, 256),
    ),
}

if __name__ == "__main__":
    for name, (function, *arguments) in RECIPES.items():
        hlo = jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text()
        (Path(sys.argv[1]) / f"{name}.hlo").write_text(hlo)
