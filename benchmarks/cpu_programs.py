"""JAX functions at sizes that people run, for `benchmarks.cpu`: each takes JAX 0.2 ms or more on one core of a server.

The functions are ours; the models are those of examples/models.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

MODELS = Path(__file__).parents[1] / "examples" / "models"


@dataclass(frozen=True)
class Work:
    """A function, and where it is called.

    shapes  of its arguments, as jax.export takes them: the unknown sizes by name
    sizes   at which it is called
    inputs  at these sizes
    constraints  on the unknown sizes
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[str, ...]
    sizes: dict[str, int]
    inputs: tuple[Any, ...]
    constraints: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return " ".join((self.name, *(f"{symbol}={size}" for symbol, size in self.sizes.items())))

    def exported(self) -> Any:
        """The function as jax.export makes it, with symbolic sizes."""
        specs = export.symbolic_args_specs(self.inputs, self.shapes, constraints=self.constraints)
        return export.export(jax.jit(self.function), platforms=["cuda"])(*specs)


def layer(x: Any, w1: Any, w2: Any, scale: Any, bias: Any) -> Any:
    b, s, d = x.shape
    q = (x @ w1).reshape(b, s, 4, d // 4).transpose(0, 2, 1, 3)
    weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, q) / jnp.sqrt(d / 4), axis=-1)
    x = x + jnp.einsum("bhst,bhtd->bhsd", weights, q).transpose(0, 2, 1, 3).reshape(b, s, d)
    return jax.nn.gelu(norm(x, scale, bias) @ w2)


def norm(x: Any, scale: Any, bias: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
    places = jnp.arange(q.shape[2])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(places[:, None] >= places[None, :], scores, -1e9)), v)


def rope(x: Any, cosine: Any, sine: Any) -> Any:
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)


def training_step(x: Any, w: Any, up: Any, target: Any) -> Any:
    def loss(w: Any, up: Any) -> Any:
        return ((jax.nn.silu(x @ w) @ up - target) ** 2).mean()

    value, gradients = jax.value_and_grad(loss, argnums=(0, 1))(w, up)
    return value, w - 0.1 * gradients[0], up - 0.1 * gradients[1]


def decoder_step(x: Any, keys: Any, values: Any, weights: Any) -> Any:
    """One token of eight heads against a cache."""
    b, _, d = x.shape
    q = (x @ weights).reshape(b, 8, 1, d // 8)
    scores = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, keys) / 8.0)
    return x + jnp.einsum("bhqk,bhkd->bhqd", scores, values).reshape(b, 1, d)


def recurrent(x: Any, state: Any, w: Any) -> Any:
    """A scan over time."""

    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(row + state @ w)
        return state, state

    return lax.scan(step, state, x)


def mandelbrot(x: Any, y: Any) -> Any:
    def step(_: Any, z: Any) -> Any:
        a, b = z
        return a * a - b * b + x, 2 * a * b + y

    return lax.fori_loop(0, 16, step, (x, y))[0]


def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean((0, 1, 2))
    variance = (x * x).mean((0, 1, 2)) - mean * mean
    return jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def convolution(x: Any, kernel: Any) -> Any:
    return jax.nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


# ruff: noqa: E501
FUNCTIONS: Sequence[tuple[str, Callable[..., Any], tuple[str, ...], tuple[str, ...], dict[str, int]]] = (
    ("layer", layer, ("b, s, 32", *["..."] * 4), ("b,s,32", "32,32 weight", "32,64 weight", "32", "32"), {"b": 8, "s": 128}),
    ("layer", layer, ("b, s, 32", *["..."] * 4), ("b,s,32", "32,32 weight", "32,64 weight", "32", "32"), {"b": 16, "s": 512}),
    ("softmax", jax.nn.softmax, ("m, n",), ("m,n",), {"m": 1024, "n": 1024}),
    ("layer_norm", norm, ("m, n", "n", "n"), ("m,n", "n", "n"), {"m": 1024, "n": 768}),
    ("cross_entropy", cross_entropy, ("m, n", "m"), ("m,n", "m s32 1000"), {"m": 512, "n": 4096}),
    ("attention", attention, ("b, 8, s, 64",) * 3, ("b,8,s,64",) * 3, {"b": 2, "s": 256}),
    ("gelu", jax.nn.gelu, ("n",), ("n",), {"n": 1 << 20}),
    ("rope", rope, ("b, s, 8, 128", "s, 1, 64", "s, 1, 64"), ("b,s,8,128", "s,1,64", "s,1,64"), {"b": 4, "s": 512}),
    ("adam", adam, ("n",) * 4, ("n", "n", "n", "n weight"), {"n": 1 << 20}),
    ("batch_norm", batch_norm, ("b, h, w, 64", "...", "..."), ("b,h,w,64", "64", "64"), {"b": 4, "h": 56, "w": 56}),
    ("sum_columns", lambda x: x.sum(0), ("m, n",), ("m,n",), {"m": 4096, "n": 512}),
    ("cumsum", lambda x: jnp.cumsum(x, -1), ("m, n",), ("m,n",), {"m": 1024, "n": 1024}),
    ("argmax", lambda x: jnp.argmax(x, -1), ("m, n",), ("m,n",), {"m": 1024, "n": 2048}),
    ("transpose", lambda x: jax.nn.relu(x.T), ("m, n",), ("m,n",), {"m": 2048, "n": 1024}),
    ("embedding", lambda t, i: t[i].mean(1), ("v, d", "b, s"), ("v,d", "b,s s32 30000"), {"v": 30000, "d": 256, "b": 32, "s": 128}),
    ("scatter_add", lambda w, i, u: w.at[i].add(u), ("v, d", "n", "n, d"), ("v,d", "n s32 5000", "n,d"), {"v": 5000, "d": 256, "n": 4096}),
    ("sort", lambda x: jnp.sort(x, -1), ("m, n",), ("m,n",), {"m": 64, "n": 4096}),
    ("top_k", lambda x: lax.top_k(x, 8), ("m, n + 8",), ("m,n",), {"m": 64, "n": 30000}),
    ("training_step", training_step, ("b, d", "d, h", "h, d", "b, d"), ("b,d", "d,h weight", "h,d weight", "b,d"), {"b": 128, "d": 256, "h": 512}),
    ("decoder_step", decoder_step, ("b, 1, 512", "b, 8, s, 64", "b, 8, s, 64", "..."), ("b,1,512", "b,8,s,64", "b,8,s,64", "512,512 weight"), {"b": 4, "s": 512}),
    ("recurrent", recurrent, ("t, b, d", "b, d", "d, d"), ("t,b,d", "b,d", "d,d weight"), {"t": 64, "b": 32, "d": 256}),
    ("mandelbrot", mandelbrot, ("m, n", "m, n"), ("m,n weight", "m,n weight"), {"m": 512, "n": 512}),
    ("convolution", convolution, ("b, h, w, 64", "..."), ("b,h,w,64", "3,3,64,64 weight"), {"b": 1, "h": 56, "w": 56}),
    ("pool", pool, ("b, h, w, 64",), ("b,h,w,64",), {"b": 2, "h": 112, "w": 112}),
    ("dropout", lambda key, x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape), x / 0.9, 0.0), ("...", "m, n"), ("2 u32 100", "m,n"), {"m": 512, "n": 512}),
)  # fmt: skip
"""(name, function, shapes for jax.export, arguments: sizes, "weight" for positive numbers that keep the magnitude of what they
multiply, or an integer type and its limit; sizes)"""

OF_MODELS = (("encoder", -1), ("decoder", 2), ("resnet", -1), ("unet", -1), ("mixture", 2))
"""(model of examples/models, number of its sizes)"""


def works(names: Sequence[str] = ()) -> Iterator[Work]:
    """The rows of the table, of all names or of these; each is made when it is asked for."""
    for name, function, shapes, arguments, sizes in FUNCTIONS:
        if not names or name in names:
            random = np.random.default_rng([*name.encode(), *sizes.values()])
            yield Work(name, function, shapes, sizes, tuple(_drawn(text, sizes, random) for text in arguments))
    sys.path.insert(0, str(MODELS))
    for name, choice in OF_MODELS:
        if not names or name in names:
            model = import_module("run").model(name, full=True)
            sizes = dict(model.sizes[choice])
            yield Work(
                name, model.function, model.shapes, sizes, (model.weights, *model.inputs(sizes)), model.constraints
            )


def layer_at(b: int, s: int) -> Work:
    """The layer at these sizes."""
    _, function, shapes, arguments, _ = FUNCTIONS[0]
    sizes, random = {"b": b, "s": s}, np.random.default_rng([b, s])
    return Work("layer", function, shapes, sizes, tuple(_drawn(text, sizes, random) for text in arguments))


def _drawn(text: str, sizes: dict[str, int], random: np.random.Generator) -> Any:
    shape, *kind = text.split(" ")
    extents = tuple(sizes[part] if part in sizes else int(part) for part in shape.split(","))
    match kind:
        case []:
            return random.standard_normal(extents, np.float32)
        case ["weight"]:
            return np.abs(random.standard_normal(extents, np.float32)) / np.float32(np.prod(extents[:-1]))
        case [name, limit]:
            return random.integers(0, int(limit), extents).astype(np.int32 if name == "s32" else np.uint32)
        case _:
            raise ValueError(text)
