"""Makes the files of `tests/corpus/devices`: JAX programs over a mesh, which the real XLA:GPU partitions and optimizes without a GPU.

    PYTHONPATH=tests python -m runtime.device_programs              # all; in an environment with the extras [jax,ptxas]
    PYTHONPATH=tests python -m runtime.device_programs ring_loop    # these

NAME.hlo is XLA's module. NAME.npz holds the whole arguments p0, p1 ..., and for each device what JAX computes on as many virtual CPU
devices: r0@0, r0@1 ...
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from xla_emitters.explore.optimize import optimize
from xla_emitters.program import ArraySpec
from xla_emitters.runtime.arrays import save_named

FILES = Path(__file__).parents[1] / "corpus" / "devices"


def mesh(*sizes: int) -> Any:
    return jax.make_mesh(sizes, ("x", "y")[: len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))


M8, M4, M24 = mesh(8), mesh(4), mesh(2, 4)
M2 = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])


@dataclass(frozen=True)
class MeshProgram:
    """specs, out  shardings of arguments and results;  shapes, types  of the whole arguments"""

    function: Callable[..., Any]
    mesh: Any
    specs: Sequence[Any]
    shapes: Sequence[tuple[int, ...]]
    out: Any
    types: Sequence[str] = ()


def mapped(function: Callable[..., Any], over: Any, specs: Any, out: Any) -> Callable[..., Any]:
    """A function of each device's own part."""
    return jax.shard_map(function, mesh=over, in_specs=specs, out_specs=out, check_vma=False)


def ring(count: int) -> list[tuple[int, int]]:
    return [(device, (device + 1) % count) for device in range(count)]


def loss(w: Any, x: Any, y: Any) -> Any:
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4.0
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def experts(x: Any, gate: Any, w: Any) -> Any:
    return jnp.einsum("te,td,edf->tf", jax.nn.softmax(x @ gate, -1), x, w)


def block(x: Any, wq: Any, wo: Any, w1: Any, w2: Any) -> Any:
    heads = jnp.einsum("btd,dhk->bthk", x, wq)
    weights = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", heads, heads), -1)
    x = x + jnp.einsum("bhts,bshk,hkd->btd", weights, heads, wo)
    return (x + jax.nn.gelu(x @ w1) @ w2).sum()


def pipeline(x: Any, w: Any) -> Any:
    stage = lax.axis_index("x")

    def step(_: Any, held: Any) -> Any:
        return lax.ppermute(jnp.tanh(jnp.where(stage == 0, x, held) @ w[0]), "x", ring(4))

    return lax.psum(lax.fori_loop(0, 4, step, jnp.zeros_like(x)), "x")


def recurrent(x: Any, w: Any) -> Any:
    step = lambda h, t: (jnp.tanh(t + h @ w), h)  # noqa: E731
    return lax.scan(step, jnp.zeros((4, 8)), x.swapaxes(0, 1))[0]


def normed(x: Any, gain: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain


def microbatches(x: Any, w: Any) -> Any:
    """Three microbatches through two stages, each on a device: what a stage has done goes on while the next microbatch comes in."""
    stage = lax.axis_index("x")

    def step(held: Any, at: Any) -> Any:
        done = jnp.tanh(jnp.where(stage == 0, x[jnp.minimum(at, 2)], held) @ w[0])
        return lax.ppermute(done, "x", ring(2)), done

    steps = lax.scan(step, jnp.zeros_like(x[0]), jnp.arange(4))[1]
    return lax.psum(jnp.where(stage == 1, steps[1:], 0.0), "x")


def ring_attention(q: Any, k: Any, v: Any) -> Any:
    """Keys and values go around the ring; the softmax is kept as its maximum, its sum and the weighted values so far."""

    def step(_: Any, held: Any) -> Any:
        k, v, most, total, values = held
        scores = q @ k.T / 4.0
        larger = jnp.maximum(most, scores.max(-1))
        weights, faded = jnp.exp(scores - larger[:, None]), jnp.exp(most - larger)
        total, values = total * faded + weights.sum(-1), values * faded[:, None] + weights @ v
        return lax.ppermute(k, "x", ring(4)), lax.ppermute(v, "x", ring(4)), larger, total, values

    start = k, v, jnp.full(q.shape[:1], -1e30), jnp.zeros(q.shape[:1]), jnp.zeros_like(q)
    found = lax.fori_loop(0, 4, step, start)
    return found[4] / found[3][:, None]


def routed(x: Any, w: Any) -> Any:
    """Each device has one expert; token i of a device is for expert i % 4."""
    sent = lax.all_to_all(x.reshape(-1, 4, x.shape[-1]), "x", 1, 0, tiled=True)
    done = jax.nn.relu(sent @ w[0])
    return lax.all_to_all(done, "x", 0, 1, tiled=True).reshape(x.shape)


def cross_entropy(x: Any, table: Any, words: Any) -> Any:
    """Of logits whose vocabulary is divided."""
    logits, first = x @ table, lax.axis_index("x") * table.shape[1]
    most = lax.pmax(lax.stop_gradient(logits.max(-1)), "x")
    total = lax.psum(jnp.exp(logits - most[:, None]).sum(-1), "x")
    inside = (words >= first) & (words < first + table.shape[1])
    own = jnp.take_along_axis(logits, jnp.where(inside, words - first, 0)[:, None], 1)[:, 0]
    return jnp.log(total) + most - lax.psum(jnp.where(inside, own, 0.0), "x")


def adam(w: Any, m: Any, v: Any, x: Any, y: Any) -> Any:
    g = jax.grad(loss)(w, x, y)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.01 * m / (jnp.sqrt(jnp.abs(v)) + 1e-3), m, v


def layers(x: Any, w: Any, u: Any) -> Any:
    step = lambda h, parts: (h + jax.nn.gelu(h @ parts[0]) @ parts[1], None)  # noqa: E731
    return lax.scan(step, x, (0.2 * w, 0.2 * u))[0]


def decoded(keys: Any, values: Any, q: Any, k: Any, v: Any, at: Any) -> Any:
    keys, values = (lax.dynamic_update_index_in_dim(c, n, at[0], 2) for c, n in ((keys, k), (values, v)))
    scores = jnp.where(jnp.arange(keys.shape[2]) <= at[0], jnp.einsum("bhd,bhkd->bhk", q, keys) / 4.0, -1e30)
    return jnp.einsum("bhk,bhkd->bhd", jax.nn.softmax(scores, -1), values), keys, values


X, S = P("x"), P()
BLOCK = (P("x"), P(None, "y"), P("y"), P(None, "y"), P("y"))
PROGRAMS: dict[str, MeshProgram] = {
    "psum": MeshProgram(mapped(lambda a: lax.psum(a, "x"), M8, X, S), M8, (X,), ((16, 8),), S),
    "psum_of_integers": MeshProgram(mapped(lambda a: lax.psum(a, "x"), M8, X, S), M8, (X,), ((16, 4),), S, ("int32",)),
    "mean_and_max": MeshProgram(
        mapped(lambda a: (lax.pmean(a, "x"), lax.pmax(a, "x")), M8, X, (S, S)), M8, (X,), ((16, 8),), (S, S)
    ),
    "all_gather": MeshProgram(mapped(lambda a: lax.all_gather(a, "x", tiled=True), M8, X, S), M8, (X,), ((16, 8),), S),
    "psum_scatter": MeshProgram(
        mapped(lambda a: lax.psum_scatter(a * (1 + lax.axis_index("x")), "x", tiled=True), M4, S, X),
        M4,
        (S,),
        ((8, 8),),
        X,
    ),
    "all_to_all": MeshProgram(
        mapped(lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), M4, X, X), M4, (X,), ((8, 16),), X
    ),
    "ring": MeshProgram(mapped(lambda a: lax.ppermute(a, "x", ring(8)), M8, X, X), M8, (X,), ((16, 4),), X),
    "permute_of_some": MeshProgram(
        mapped(lambda a: lax.ppermute(a, "x", [(0, 1), (1, 2)]), M4, X, X), M4, (X,), ((8, 4),), X
    ),
    "own_number": MeshProgram(mapped(lambda a: a * lax.axis_index("x"), M8, X, X), M8, (X,), ((16, 4),), X),
    "ring_loop": MeshProgram(
        mapped(lambda a: lax.fori_loop(0, 4, lambda _, s: lax.ppermute(s, "x", ring(4)) + a, a), M4, X, X),
        M4,
        (X,),
        ((8, 4),),
        X,
    ),
    "pipeline": MeshProgram(mapped(pipeline, M4, (S, X), S), M4, (S, X), ((4, 8), (4, 8, 8)), S),
    "mlp": MeshProgram(
        lambda a, b, c: jax.nn.gelu(a @ b) @ c, M24, (X, P(None, "y"), P("y")), ((16, 32), (32, 64), (64, 32)), X
    ),
    "sum_of_squares": MeshProgram(lambda a: (a * a).sum(), M24, (P("x", "y"),), ((16, 16),), S),
    "softmax_of_parts": MeshProgram(
        lambda a: jax.nn.softmax(a, -1), M24, (P(None, ("x", "y")),), ((8, 64),), P(None, ("x", "y"))
    ),
    "layer_norm": MeshProgram(normed, M8, (X, S), ((16, 32), (32,)), X),
    "gradient_by_data": MeshProgram(
        lambda x, w, y: jax.grad(loss)(w, x, y), M8, (X, S, X), ((16, 8), (8, 4), (16, 4)), S
    ),
    "sharded_weights": MeshProgram(
        lambda x, w, y: w - 0.1 * jax.grad(loss)(w, x, y), M8, (X, X, X), ((16, 8), (8, 4), (16, 4)), X
    ),
    "transpose": MeshProgram(lambda a: a.T, M8, (X,), ((16, 8),), X),
    "reshard": MeshProgram(lambda a: a + 1, M24, (P("x", "y"),), ((16, 16),), P("y", "x")),
    "cumsum": MeshProgram(lambda a: jnp.cumsum(a, 0), M4, (X,), ((16, 4),), X),
    "argmax": MeshProgram(lambda a: jnp.argmax(a, -1), M4, (P(None, "x"),), ((4, 16),), S),
    "sort": MeshProgram(lambda a: jnp.sort(a, -1), M4, (X,), ((8, 16),), X),
    "embedding": MeshProgram(lambda t, i: t[i % 16], M4, (X, S), ((16, 8), (12,)), S, ("float32", "int32")),
    "product_of_bfloat": MeshProgram(
        lambda a, b: a @ b, M4, (P(None, "x"), X), ((8, 32), (32, 8)), S, ("bfloat16", "bfloat16")
    ),
    "attention_by_heads": MeshProgram(attention, M24, (P("x", "y"),) * 3, ((2, 4, 8, 16),) * 3, P("x", "y")),
    "attention_by_sequence": MeshProgram(
        attention, M24, (P("x", None, "y"),) * 3, ((2, 4, 8, 16),) * 3, P("x", None, "y")
    ),
    "experts": MeshProgram(experts, M4, (S, S, X), ((8, 16), (16, 4), (4, 16, 16)), S),
    "transformer_gradients": MeshProgram(
        lambda *given: jax.grad(block, argnums=(1, 2, 3, 4))(*(0.3 * part for part in given)),
        M24,
        BLOCK,
        ((4, 8, 16), (16, 4, 8), (4, 8, 16), (16, 32), (32, 16)),
        BLOCK[1:],
    ),
    "convolution": MeshProgram(
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        M4,
        (P(None, None, "x"), S),
        ((1, 2, 16, 8), (3, 2, 3, 3)),
        P(None, None, "x"),
    ),
    "recurrent": MeshProgram(recurrent, M4, (X, S), ((4, 6, 8), (8, 8)), X),
    "while_of_data": MeshProgram(
        lambda a: lax.while_loop(lambda s: (s * s).sum() > 1.0, lambda s: s * 0.5, a), M4, (X,), ((8, 4),), X
    ),
}
PROGRAMS |= {
    "two_devices": MeshProgram(lambda x, w: jax.nn.relu(x @ w).sum(0), M2, (X, S), ((8, 16), (16, 8)), S),
    "microbatches": MeshProgram(mapped(microbatches, M2, (S, X), S), M2, (S, X), ((3, 4, 8), (2, 8, 8)), S),
    "ring_attention": MeshProgram(mapped(ring_attention, M4, (X,) * 3, X), M4, (X,) * 3, ((16, 8),) * 3, X),
    "routed_experts": MeshProgram(mapped(routed, M4, (X, X), X), M4, (X, X), ((32, 8), (4, 8, 8)), X),
    "cross_entropy": MeshProgram(
        mapped(cross_entropy, M8, (S, P(None, "x"), S), S),
        M8,
        (S, P(None, "x"), S),
        ((8, 16), (16, 32), (8,)),
        S,
        ("float32", "float32", "int32"),
    ),
    "adam_on_parts": MeshProgram(adam, M8, (X, X, X, X, X), ((8, 4), (8, 4), (8, 4), (16, 8), (16, 4)), (X, X, X)),
    "layers": MeshProgram(layers, M24, (X, P(None, None, "y"), P(None, "y")), ((4, 16), (3, 16, 32), (3, 32, 16)), X),
    "decoded_word": MeshProgram(
        decoded,
        M24,
        (P("x", "y"),) * 5 + (S,),
        ((2, 4, 8, 16),) * 2 + ((2, 4, 16),) * 3 + ((1,),),
        (P("x", "y"),) * 3,
        ("float32",) * 5 + ("int32",),
    ),
    "gradient_of_table": MeshProgram(
        lambda t, i: jax.grad(lambda t: jnp.sin(t[i % 16]).sum())(t),
        M8,
        (X, X),
        ((16, 8), (24,)),
        X,
        ("float32", "int32"),
    ),
    "gradient_of_convolution": MeshProgram(
        lambda w, x: jax.grad(lambda w: jnp.tanh(lax.conv_general_dilated(x, w, (1, 1), "SAME")).sum())(w),
        M4,
        (S, X),
        ((3, 2, 3, 3), (8, 2, 6, 6)),
        S,
    ),
}
NAMES = {"float32": "f32", "int32": "s32", "bfloat16": "bf16"}


def make(name: str, program: MeshProgram) -> None:
    """Writes the files of one program."""
    draws = np.random.default_rng(list(name.encode()))
    types = program.types or ("float32",) * len(program.shapes)
    given = [
        draws.integers(0, 16, shape).astype(kind)
        if "int" in kind
        else draws.standard_normal(shape).astype(jnp.dtype(kind))
        for shape, kind in zip(program.shapes, types, strict=True)
    ]
    placed = lambda spec: NamedSharding(program.mesh, spec)  # noqa: E731
    out = jax.tree.map(placed, program.out, is_leaf=lambda spec: isinstance(spec, P))
    function = jax.jit(
        program.function, in_shardings=tuple(map(placed, program.specs)), out_shardings=out, keep_unused=True
    )
    results = jax.tree.leaves(function(*given))
    (FILES / f"{name}.hlo").write_text(optimize(function.lower(*given).as_text(), name=name))
    arrays = {f"p{number}": array for number, array in enumerate(given)}
    for number, result in enumerate(results):
        for shard in result.addressable_shards:
            arrays[f"r{number}@{shard.device.id}"] = np.asarray(shard.data)
    specs = [
        ArraySpec(NAMES[array.dtype.name], array.shape, tuple(reversed(range(array.ndim)))) for array in arrays.values()
    ]
    save_named(FILES / f"{name}.npz", list(arrays), list(arrays.values()), specs)


def main(names: list[str]) -> None:
    FILES.mkdir(exist_ok=True)
    for name in names or PROGRAMS:
        make(name, PROGRAMS[name])
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
