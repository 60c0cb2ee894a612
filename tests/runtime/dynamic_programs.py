"""The programs of tests/corpus/programs: JAX functions with symbolic sizes, exported, with JAX's results on the CPU at six sizes each.

    python tests/runtime/dynamic_programs.py            in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python tests/runtime/dynamic_programs.py rope ...   of these

Like `stablehlo_programs`, whose `Case` documents the fields. These are the kinds of programs that users export: masks and positions
computed from sizes, 2*b, s+1, s//2, concatenations of unknown sizes, loops of unknown length, a decoder, convolutional nets, gathers and
scatters, integers, booleans, narrow and wide floats, sizes 0 and 1. The functions are ours.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from runtime.stablehlo_programs import Case, write_case

CORPUS = Path(__file__).parents[1] / "corpus" / "programs"

BS: tuple[Mapping[str, int], ...] = tuple(
    {"b": b, "s": s} for b, s in ((1, 1), (1, 7), (2, 5), (3, 8), (5, 2), (4, 16))
)
IMAGES: tuple[Mapping[str, int], ...] = tuple(
    {"b": b, "s": s} for b, s in ((1, 1), (1, 4), (2, 3), (3, 6), (5, 2), (2, 9))
)
CASES: dict[str, Case] = {
    "causal_attention": Case(("f32[b,s,8]", "f32[8,8]"), BS),
    "sinusoids": Case(("f32[b,s,6]",), BS),
    "doubled_batch": Case(("f32[b,s]", "f32[2*b]"), BS),
    "one_more": Case(("f32[b,s]", "f32[s+1,3]"), BS),
    "first_half": Case(("f32[s+1,b]",), BS),
    "concatenated": Case(("f32[b,4]", "f32[s,4]", "f32[b,4]"), BS),
    "rope": Case(("f32[b,s,2,8]",), BS),
    "decoder": Case(("f32[b,6]", "f32[6,9]", "f32[9,6]", "f32[s]"), BS, is_evaluated=False),
    "until_large": Case(("f32[b,s]", "f32[]"), BS, is_evaluated=False),
    "recurrent": Case(("f32[s,b,4]", "f32[b,5]", "f32[4,5]", "f32[5,5]"), BS, is_evaluated=False),
    "scan_reversed": Case(("f32[s,b]",), BS, is_evaluated=False),
    "nested_loops": Case(("f32[b,s]",), BS, is_evaluated=False),
    "convnet": Case(("f32[b,s+3,s+3,3]", "f32[3,3,3,4]", "f32[4,5]"), IMAGES),
    "depthwise": Case(("f32[b,s+2,s+2,4]", "f32[3,3,1,4]"), IMAGES),
    "average_pool": Case(("f32[b,s+1,s+1,2]",), IMAGES),
    "batch_norm": Case(("f32[b,s,s,3]", "f32[3]", "f32[3]"), IMAGES),
    "last_token": Case(("f32[b,9,3]", "s32[b]<9"), BS),
    "one_hot": Case(("s32[b,s]<7", "f32[7,3]"), BS),
    "histogram": Case(("s32[b,s]<8",), BS, tolerance=0.0),
    "segments": Case(("f32[s,3]", "s32[s]<4", "f32[b]"), BS),
    "scatter_set": Case(("f32[9,b]", "f32[3,b]", "s32[3]<9", "f32[s]"), BS),
    "integer_division": Case(("s32[b,s]<1000", "s32[s]<9"), BS, tolerance=0.0),
    "logic": Case(("pred[b,s]", "pred[s]"), BS, tolerance=0.0),
    "half_norm": Case(("f16[b,s,8]", "f16[8]"), BS, tolerance=4e-3),
    "bfloat_softmax": Case(("bf16[b,s]", "bf16[s,4]"), BS, tolerance=2e-2),
    "double_layer": Case(("f64[b,s]", "f64[s,3]"), BS, tolerance=1e-13),
    "maybe_empty": Case(("f32[b-1,s]", "f32[2,s]"), BS),
    "ones": Case(("f32[b,1,s]", "f32[1,s]"), BS),
    "similarity": Case(("f32[b,8]", "f32[s,8]"), BS),
    "largest_two": Case(("f32[b,s+1]",), BS, is_evaluated=False),
    "ordered": Case(("f32[b,s]",), BS, is_evaluated=False),
    "log_sums": Case(("f32[b,s]",), BS),
    "cross_entropy": Case(("f32[b,s,5]", "s32[b,s]<5"), BS),
    "tiled": Case(("f32[b,s]",), BS),
    "rolled": Case(("f32[b,s]",), BS),
    "padded_by_remainder": Case(("f32[b,s]",), BS),
    "masked_mean": Case(("f32[b,s,3]", "s32[b]<6"), BS),
    "three_factors": Case(("f32[b,s,4]", "f32[b,4,s]", "f32[b,s]"), BS),
    "triangles": Case(("f32[b,s,s]",), BS),
    "image_bytes": Case(("u8[b,s,s,3]<256",), IMAGES),
    "sizes_as_data": Case(("f32[b,s]",), BS),
    "mixture": Case(("f32[b,s,4]", "f32[4,3]", "f32[3,4,4]"), BS),
    "given_trips": Case(("f32[b,s]", "s32[]<6"), BS, is_evaluated=False),
    "dropout": Case(("f32[b,s]", "u32[2]<4000000000"), BS),
    "generator": Case(("f32[b,s]", "u32[4]<4000000000"), BS),
    "from_the_argument": Case(("f32[s,3]", "s32[b]<1000"), BS, tolerance=0.0),
    "batched_windows": Case(("f32[b,3,s]", "f32[b,s,4]"), BS),
}


def inputs_of(name: str, sizes: Mapping[str, int]) -> list[Any]:
    """The arrays of a run, like `stablehlo_programs.inputs_of`."""
    from runtime.stablehlo_programs import inputs_of as drawn

    return drawn(name, sizes, CASES[name])


def functions() -> dict[str, Callable[..., Any]]:
    """The programs; needs JAX."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def causal_attention(x: Any, w: Any) -> Any:
        q, s = x @ w, x.shape[1]
        mask = jnp.arange(s)[:, None] >= jnp.arange(s)[None, :]
        weights = jax.nn.softmax(jnp.where(mask, jnp.einsum("bsd,btd->bst", q, x) / np.float32(8) ** 0.5, -1e9), -1)
        return jnp.einsum("bst,btd->bsd", weights, x)

    def sinusoids(x: Any) -> Any:
        angles = jnp.arange(x.shape[1])[:, None] / 10 ** (jnp.arange(3) / 3)
        return x + jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)

    def doubled_batch(x: Any, y: Any) -> Any:
        return jnp.concatenate([x, x * 2], 0) * y[:, None], y.reshape(2, -1)

    def one_more(x: Any, y: Any) -> Any:
        return jnp.concatenate([jnp.ones((x.shape[0], 1)), x], 1) @ y

    def first_half(x: Any) -> Any:
        half = x.shape[0] // 2
        return x[:half] * 2, x[half:], x[:half].sum(0)

    def concatenated(x: Any, y: Any, z: Any) -> Any:
        return jnp.concatenate([x, y, z, y], 0), jnp.stack([x, z], 1)

    def rope(x: Any) -> Any:
        angles = jnp.arange(x.shape[1])[:, None, None] * 0.1 ** jnp.arange(4)
        left, right = x[..., :4], x[..., 4:]
        return jnp.concatenate(
            [left * jnp.cos(angles) - right * jnp.sin(angles), right * jnp.cos(angles) + left * jnp.sin(angles)], -1
        )

    def decoder(state: Any, w: Any, table: Any, steps: Any) -> Any:
        length = steps.shape[0]

        def step(i: Any, carried: Any) -> Any:
            state, out = carried
            token = jnp.argmax(state @ w, -1)
            return jnp.tanh(state + table[token] * steps[i]), lax.dynamic_update_slice(out, token[:, None], (0, i))

        return lax.fori_loop(0, length, step, (state, jnp.zeros((state.shape[0], length), jnp.int32)))

    def until_large(x: Any, start: Any) -> Any:
        more, grow = lambda c: (c[0] < 100) & (c[1] < 50), lambda c: (c[0] + jnp.abs(x).sum() + 0.5, c[1] + 1)
        return lax.while_loop(more, grow, (start, jnp.int32(0)))

    def recurrent(x: Any, start: Any, w: Any, u: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            gate = jax.nn.sigmoid(row @ w + h @ u)
            h = gate * h + (1 - gate) * jnp.tanh(row @ w)
            return h, h.sum(-1)

        return lax.scan(step, start, x)

    def scan_reversed(x: Any) -> Any:
        return lax.scan(lambda c, row: (c * 0.5 + row, c), jnp.zeros(x.shape[1]), x, reverse=True)

    def nested_loops(x: Any) -> Any:
        def inner(i: Any, total: Any) -> Any:
            return lax.fori_loop(0, x.shape[1], lambda j, t: t + x[i, j] * (i + j), total)

        return lax.fori_loop(0, x.shape[0], inner, jnp.float32(0))

    def convnet(x: Any, kernel: Any, w: Any) -> Any:
        x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.mean((1, 2)) @ w

    def depthwise(x: Any, kernel: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=4)

    def average_pool(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4

    def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + bias, mean

    def last_token(x: Any, lengths: Any) -> Any:
        return x[jnp.arange(x.shape[0]), jnp.maximum(lengths - 1, 0)]

    def one_hot(tokens: Any, table: Any) -> Any:
        return jax.nn.one_hot(tokens, 7) @ table

    def histogram(tokens: Any) -> Any:
        return jnp.zeros(8, jnp.int32).at[tokens.reshape(-1)].add(1)

    def segments(x: Any, which: Any, like: Any) -> Any:
        return jax.ops.segment_sum(x, which, num_segments=like.shape[0]), like * 2

    def scatter_set(x: Any, updates: Any, rows: Any, y: Any) -> Any:
        return x.at[rows].multiply(updates), x[::2] + y.sum()

    def integer_division(x: Any, y: Any) -> Any:
        return x // (y + 1), x % (y + 1), (x - 500) // 7, lax.rem(x - 500, jnp.full_like(x, 7)), x.shape[0] * x

    def logic(x: Any, y: Any) -> Any:
        return x ^ y, x & ~y, jnp.any(x ^ y, 0), jnp.all(x | y), x.sum(1), jnp.argmax(x, 1)

    def half_norm(x: Any, scale: Any) -> Any:
        wide = x.astype(jnp.float32)
        return ((wide - wide.mean(-1, keepdims=True)) / (wide.std(-1, keepdims=True) + 1)).astype(x.dtype) * scale

    def bfloat_softmax(x: Any, w: Any) -> Any:
        return jax.nn.softmax(x @ w, -1), jnp.exp(-x * x)

    def double_layer(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w), jax.nn.softplus(x).sum(1), jnp.log1p(jnp.abs(x))

    def maybe_empty(x: Any, y: Any) -> Any:
        return x.sum(0), jnp.concatenate([x, y], 0), x * 2, jnp.max(x, axis=0, initial=-3.0)

    def ones(x: Any, y: Any) -> Any:
        return x + y, x.squeeze(1) * y, jnp.broadcast_to(y, (x.shape[0], y.shape[1]))

    def similarity(x: Any, y: Any) -> Any:
        def unit(z: Any) -> Any:
            return z / jnp.sqrt((z * z).sum(-1, keepdims=True) + 1e-6)

        return unit(x) @ unit(y).T

    def largest_two(x: Any) -> Any:
        return lax.top_k(x, 2)

    def ordered(x: Any) -> Any:
        return jnp.argsort(x, 1), jnp.sort(x, 0)

    def log_sums(x: Any) -> Any:
        return jax.nn.logsumexp(x, 1), jnp.cumsum(x[:, ::-1], 1), jnp.cumprod(x, 0)

    def cross_entropy(x: Any, labels: Any) -> Any:
        def loss(x: Any) -> Any:
            return -(jax.nn.log_softmax(x) * jax.nn.one_hot(labels, 5)).sum() / (x.shape[0] * x.shape[1])

        return jax.value_and_grad(loss)(x)

    def tiled(x: Any) -> Any:
        return jnp.tile(x, (2, 3)), jnp.repeat(x, 2, axis=1)

    def rolled(x: Any) -> Any:
        return jnp.roll(x, 1, 1), jnp.roll(x, -2, 0), jnp.flip(x, (0, 1))

    def padded_by_remainder(x: Any) -> Any:
        b, s = x.shape
        return jnp.pad(x, ((0, 0), (0, -s % 4))).sum(1), x.sum() * (s % 4) + b // 3

    def masked_mean(x: Any, lengths: Any) -> Any:
        mask = (jnp.arange(x.shape[1]) < lengths[:, None])[..., None]
        return (x * mask).sum(1) / jnp.maximum(mask.sum(1), 1)

    def three_factors(x: Any, y: Any, z: Any) -> Any:
        return jnp.einsum("bsd,bdt,bt->bs", x, y, z)

    def triangles(x: Any) -> Any:
        return jnp.tril(x), jnp.triu(x, 1), jnp.trace(x, axis1=1, axis2=2)

    def image_bytes(x: Any) -> Any:
        return (x.astype(jnp.float32) / 255 - 0.5).mean((1, 2)), x.max(), x.astype(jnp.int32).sum(0)

    def sizes_as_data(x: Any) -> Any:
        b, s = x.shape
        return x / (b * s), jnp.float32(s) ** 0.5, jnp.arange(b + s), jnp.full((b,), s // 2), x * (2 * b - s)

    def mixture(x: Any, gate: Any, experts: Any) -> Any:
        return jnp.einsum("bse,bsd,edf->bsf", jax.nn.softmax(x @ gate), x, experts)

    def given_trips(x: Any, n: Any) -> Any:
        def outer(i: Any, total: Any) -> Any:
            return lax.fori_loop(i, n, lambda j, c: c + x[j % x.shape[0]].sum(), total)

        return lax.fori_loop(0, n, outer, jnp.float32(0)), lax.fori_loop(
            0, n, lambda i, c: c + i, jnp.zeros(x.shape[0])
        )

    def dropout(x: Any, key: Any) -> Any:
        keys = jax.random.split(jax.random.wrap_key_data(key))
        return jnp.where(jax.random.bernoulli(keys[0], 0.9, x.shape), x / 0.9, 0), jax.random.normal(keys[1], x.shape)

    def generator(x: Any, key: Any) -> Any:
        return x + jax.random.uniform(jax.random.wrap_key_data(key, impl="rbg"), x.shape), lax.rng_bit_generator(
            key, x.shape
        )

    def from_the_argument(x: Any, places: Any) -> Any:
        filled = jnp.take(x, places, axis=0, mode="fill", fill_value=-1.0)
        return x[places % x.shape[0]], jnp.take(x, places, axis=0, mode="clip"), filled

    def batched_windows(x: Any, y: Any) -> Any:
        return jnp.einsum("bis,bsj->ij", x, y), jnp.einsum("bis,csj->bcij", x, y), jax.vmap(jnp.outer)(x[:, 0], y[:, 0])

    own = dict(locals())
    return {name: own[name] for name in CASES}


if __name__ == "__main__":
    made = functions()
    for each in sys.argv[1:] or CASES:
        try:
            write_case(CORPUS, each, CASES[each], made[each])
        except Exception as error:  # the other programs are still written
            print(f"{each}: {type(error).__name__}: {error}", file=sys.stderr)
