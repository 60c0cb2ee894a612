"""Ten models, partitioned by the real XLA for 8 GPUs: what is listed, compiled and run of each.

    make lab NAME=partitioned_models                 the table
    make lab NAME="partitioned_models llama dlrm"    these

Each is a small version, written here in JAX after the published model: four layers for `list` and `compile` (to PTX, or LLVM's dialect
without tools), and one layer, smaller, that runs on all 8 devices on the CPU and is compared with JAX's own result on one.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

import xla_emitters as xe
from xla_emitters.explore.listing import list_module
from xla_emitters.lowering.toolchain.tools import ptx_reason_missing
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.settings import read_settings

Shapes = Mapping[str, tuple[tuple[int, ...], Any]]
"""Name of a parameter -> its shape, and its sharding; of each layer."""


@dataclass(frozen=True)
class Model:
    """layer  (parameters of one, x) -> x;  weights  of one layer for a width;  given  shape of x for a width, and its sharding"""

    how: str
    layer: Callable[[Any, Any], Any]
    weights: Callable[[int], Shapes]
    given: Callable[[int], tuple[int, ...]]
    spec: Any
    wide: int = 512
    small: int = 64
    mesh: Mapping[str, int] | None = None


def norm(x: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attended(w: Any, x: Any, causal: bool = True, context: Any = None) -> Any:
    q = jnp.einsum("bsd,dhk->bhsk", x, w["q"])
    k, v = (jnp.einsum("bsd,dhk->bhsk", x if context is None else context, w[name]) for name in "kv")
    scores = jnp.einsum("bhsk,bhtk->bhst", q, k) / math.sqrt(q.shape[-1])
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
    return jnp.einsum("bhst,bhtk,hkd->bsd", jax.nn.softmax(scores, -1), v, w["o"])


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1)


def llama(w: Any, x: Any) -> Any:
    x = x + attended(w, rotated(norm(x)))
    y = norm(x)
    return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


def gpt(w: Any, x: Any) -> Any:
    x = x + attended(w, norm(x))
    return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]


def bert(w: Any, x: Any) -> Any:
    x = norm(x + attended(w, x, causal=False))
    return norm(x + jax.nn.gelu(x @ w["up"], approximate=False) @ w["down"])


def t5(w: Any, x: Any) -> Any:
    x = x + attended(w, norm(x))
    x = x + attended({name: w[f"c{name}"] for name in "qkvo"}, norm(x), causal=False, context=jnp.flip(x, 1))
    return x + jax.nn.relu(norm(x) @ w["up"]) @ w["down"]


def mixtral(w: Any, x: Any) -> Any:
    x = x + attended(w, norm(x))
    scores = jax.nn.softmax(norm(x) @ w["router"], -1)
    best = lax.top_k(scores, 2)[0][..., 1:]
    kept = jnp.where(scores >= best, scores, 0.0)
    done = jnp.einsum("bsd,edf->ebsf", norm(x), w["eup"])
    return x + jnp.einsum("bse,ebsf,efd->bsd", kept, jax.nn.silu(done), w["edown"])


def mamba(w: Any, x: Any) -> Any:
    u = jax.nn.silu(norm(x) @ w["in"])
    step = jax.nn.softplus(norm(x) @ w["step"])
    decay, push = jnp.exp(-step), step * u

    def joined(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    return x + (lax.associative_scan(joined, (decay, push), axis=1)[1] * u) @ w["out"]


def convolved(x: Any, w: Any, strides: tuple[int, int] = (1, 1)) -> Any:
    return lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resnet(w: Any, x: Any) -> Any:
    def normed(y: Any) -> Any:
        return (y - y.mean((0, 1, 2))) * lax.rsqrt(y.var((0, 1, 2)) + 1e-5)

    y = jax.nn.relu(normed(convolved(x, w["a"])))
    return jax.nn.relu(x + normed(convolved(y, w["b"])))


def unet(w: Any, x: Any) -> Any:
    down = jax.nn.silu(convolved(x, w["a"], (2, 2)))
    flat = down.reshape(down.shape[0], -1, down.shape[-1])
    flat = flat + attended(w, norm(flat), causal=False)
    up = jnp.repeat(jnp.repeat(flat.reshape(down.shape), 2, 1), 2, 2)
    return x + convolved(jnp.concatenate([x, up], -1), w["b"])


def dlrm(w: Any, x: Any) -> Any:
    rows = (jnp.abs(x[..., :8]) * 997).astype(jnp.int32) % w["tables"].shape[1]
    found = w["tables"][jnp.arange(8)[None, :], rows]
    dense = jax.nn.relu(x @ w["bottom"])
    both = jnp.concatenate([found, dense[:, None, :]], 1)
    pairs = jnp.einsum("bik,bjk->bij", both, both).reshape(x.shape[0], -1)
    return x + jnp.tanh(jax.nn.relu(pairs @ w["top"]) @ w["last"])


ATTENTION = {"q": P(None, "y"), "k": P(None, "y"), "v": P(None, "y"), "o": P("y")}


def attention(d: int, prefix: str = "") -> Shapes:
    heads, size = 8, d // 8
    shapes = {name: (d, heads, size) if name in "qkv" else (heads, size, d) for name in "qkvo"}
    return {f"{prefix}{name}": (shape, ATTENTION[name]) for name, shape in shapes.items()}


def mlp(d: int, *wide: str) -> Shapes:
    return {**{name: ((d, 4 * d), P(None, "y")) for name in wide}, "down": ((4 * d, d), P("y"))}


SEQUENCE = (lambda d: (4, 32, d)), P("x")
M24, M8 = {"x": 2, "y": 4}, {"x": 8}
MODELS = {
    "llama": Model("2 data x 4 tensor", llama, lambda d: {**attention(d), **mlp(d, "gate", "up")}, *SEQUENCE),
    "gpt": Model("2 data x 4 tensor", gpt, lambda d: {**attention(d), **mlp(d, "up")}, *SEQUENCE),
    "bert": Model("2 data x 4 tensor", bert, lambda d: {**attention(d), **mlp(d, "up")}, *SEQUENCE),
    "vit": Model("2 data x 4 sequence", bert, lambda d: {**attention(d), **mlp(d, "up")}, SEQUENCE[0], P("x", "y")),
    "t5": Model("2 data x 4 tensor", t5, lambda d: {**attention(d), **attention(d, "c"), **mlp(d, "up")}, *SEQUENCE),
    "mixtral": Model(
        "2 data x 4 experts",
        mixtral,
        lambda d: {
            **attention(d),
            "router": ((d, 8), P()),
            "eup": ((8, d, 2 * d), P("y")),
            "edown": ((8, 2 * d, d), P("y")),
        },
        *SEQUENCE,
    ),
    "mamba": Model(
        "2 data x 4 channels",
        mamba,
        lambda d: {"in": ((d, d), P(None, "y")), "step": ((d, d), P(None, "y")), "out": ((d, d), P("y"))},
        *SEQUENCE,
    ),
    "resnet": Model(
        "8 data, statistics of all",
        resnet,
        lambda d: {"a": ((3, 3, d // 8, d // 8), P()), "b": ((3, 3, d // 8, d // 8), P())},
        lambda d: (8, 14, 14, d // 8),
        P("x"),
        mesh=M8,
    ),
    "unet": Model(
        "2 data x 4 tensor",
        unet,
        lambda d: {
            "a": ((3, 3, d // 4, d // 4), P(None, None, None, "y")),
            "b": ((3, 3, d // 2, d // 4), P(None, None, "y")),
            **attention(d // 4),
        },
        lambda d: (2, 8, 8, d // 4),
        P("x"),
    ),
    "dlrm": Model(
        "8 tables x data",
        dlrm,
        lambda d: {
            "tables": ((8, 4 * d, d // 4), P("x")),
            "bottom": ((d, d // 4), P()),
            "top": ((81, d), P()),
            "last": ((d, d), P()),
        },
        lambda d: (16, d),
        P("x"),
        mesh=M8,
    ),
}


def stacked(model: Model, width: int, layers: int) -> tuple[Callable[..., Any], list[Any], tuple[Any, ...]]:
    """A function of ({name: one for each layer}, x), its arguments, and their shardings."""
    draws = np.random.default_rng(0)
    weights = {
        name: [(draws.standard_normal(shape) / math.sqrt(max(shape))).astype(np.float32) for _ in range(layers)]
        for name, (shape, _) in model.weights(width).items()
    }
    specs = {name: [spec] * layers for name, (_, spec) in model.weights(width).items()}
    x = draws.standard_normal(model.given(width)).astype(np.float32)

    def function(weights: Any, x: Any) -> Any:
        for number in range(layers):
            x = model.layer({name: each[number] for name, each in weights.items()}, x)
        return x

    return function, [weights, x], (specs, model.spec)


def row(name: str, model: Model) -> tuple[str, ...]:
    mesh = model.mesh or M24
    stage = "llvm-dialect" if ptx_reason_missing(read_settings().toolchain) else "ptx"
    function, arguments, specs = stacked(model, model.wide, 4)
    start = time.process_time()
    how = {"mesh": mesh, "in_shardings": specs, "out_shardings": model.spec}
    program = xe.from_jax(function, *arguments, stage=stage, record="none", **how)
    seconds = time.process_time() - start
    listed = list_module(read_module(program.hlo), CompileOptions())
    supported = sum(each.supported for each in (*listed.kernels, *listed.library_calls))
    total = len(listed.kernels) + len(listed.library_calls)
    collectives = program.compilation.communications()
    sent = sum(each.sent for each in collectives)
    function, arguments, specs = stacked(replace(model), model.small, 1)
    layer = xe.from_jax(
        function, *arguments, stage="llvm-dialect", mesh=mesh, in_shardings=specs, out_shardings=model.spec
    )
    wanted = np.asarray(function(*jax.tree.map(jnp.asarray, arguments)))
    found = layer(*arguments)
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    cells = name, model.how, f"{supported} of {total}", f"{len(program.kernels)}", f"{len(collectives)}"
    return (*cells, f"{sent / 1e6:.2f} MB", f"{seconds:.0f} s", f"{error:.1e}")


COLUMNS = ("model", "devices", "listed", "kernels", "collectives", "sent by each", "CPU time", "one layer, against JAX")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*MODELS])
    names = parser.parse_args().names
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    wrong = 0
    for name in names:
        cells = row(name, MODELS[name])
        wrong += float(cells[-1]) > 2e-5
        print("| " + " | ".join(cells) + " |", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
