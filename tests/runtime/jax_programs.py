"""Sixty JAX functions with the shapes of their arguments: models, losses, loops, bit tricks, random numbers, sorts, and odd sizes.

    @program("f32[12,40]")
    def softmax(x): ...

An argument is written as `modules.draw` reads it, or is a tree of such words. Each function is small enough to run quickly on a CPU.
Results that HLO leaves open (the order of equal keys in an unstable sort, NaN bits) are avoided, so that every machine must agree.
"""

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


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v


@program(
    "f32[2,8,24]",
    {"qkv": "f32[3,24,24]", "out": "f32[24,24]", "up": "f32[24,48]", "down": "f32[48,24]"},
    atol=1e-2,
    rtol=1e-3,
)
def transformer_block(x, weights):
    heads = [(normalized(x) @ w).reshape(2, 8, 3, 8).swapaxes(1, 2) for w in weights["qkv"]]
    x = x + attention(*heads).swapaxes(1, 2).reshape(2, 8, 24) @ weights["out"]
    return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"]


@program("f32[32,6]", "s32[32] 0..3", "f32[6]", "f32[6]")
def batch_norm_training(x, groups, mean, variance):
    batch_mean, batch_variance = x.mean(0), x.var(0)
    normal = (x - batch_mean) * lax.rsqrt(batch_variance + 1e-5)
    return normal + groups[:, None], 0.9 * mean + 0.1 * batch_mean, 0.9 * variance + 0.1 * batch_variance


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


@program("f32[20]", "pred[20]")
def focal_loss_gradient(logits, labels):
    def loss(logits):
        probability = jax.nn.sigmoid(jnp.where(labels, logits, -logits))
        return -(((1 - probability) ** 2) * jnp.log(probability)).sum()

    return jax.value_and_grad(loss)(logits)


@program("f32[2,7,8]", "f32[2,9,8]", "f32[2,9,8]", atol=1e-4)
def attention_gradient(q, k, v):
    return jax.grad(lambda *qkv: (attention(*qkv) ** 2).sum(), argnums=(0, 1, 2))(q, k, v)


@program("f32[24,6]", "f32[6]", "f32[6]", atol=1e-4)
def batch_norm_gradient(x, scale, shift):
    def loss(x, scale, shift):
        normal = (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5)
        return jnp.sin(normal * scale + shift).sum()

    return jax.grad(loss, argnums=(0, 1, 2))(x, scale, shift)


@program("f32[5]", atol=1e-4)
def hessian_of_a_chain(x):
    return jax.hessian(lambda x: (jnp.tanh(x[1:] * x[:-1]) ** 2).sum() + jnp.exp(-x @ x))(x)


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


@program({"w": "f32[9,4]", "b": "f32[4]"}, {"w": "f32[9,4]", "b": "f32[4]"}, "f32[] 0.1..0.2", donated=(0,))
def clip_by_global_norm(parameters, gradients, rate):
    norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradients)))
    scale = rate * jnp.minimum(1.0, 1.0 / norm)
    return jax.tree.map(lambda p, g: p - scale * g, parameters, gradients), norm


@program("f32[40,3]", "f32[4,3]", atol=1e-4)
def kmeans_step(points, centers):
    nearest = ((points[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
    chosen = jax.nn.one_hot(nearest, 4)
    return nearest, chosen.T @ points / jnp.maximum(chosen.sum(0)[:, None], 1)


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


@program("f32[6,2,5]", "f32[2,4]", {"gates": "f32[9,8]", "next": "f32[9,4]"})
def gru(inputs, state, weights):
    def step(state, x):
        update, reset = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, state], 1) @ weights["gates"]), 2, 1)
        new = jnp.tanh(jnp.concatenate([x, reset * state], 1) @ weights["next"])
        return update * state + (1 - update) * new, update

    return lax.scan(step, state, inputs, reverse=True)


@program("f32[3,17]", "s32[19] -9..9", atol=1e-4)
def cumulative(x, n):
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1, reverse=True), jnp.cumsum(n), lax.cumlogsumexp(x, 1)


@program("f32[16,3] 0.1..0.9", "f32[16,3]")
def associative_recurrence(decay, x):
    """The linear recurrence y[t] = decay[t] * y[t-1] + x[t] in a logarithmic number of steps."""

    def combine(one, other):
        return one[0] * other[0], one[1] * other[0] + other[1]

    return lax.associative_scan(combine, (decay, x))[1]


@program("s32[4] 5..30", **EXACT)
def collatz_steps(starts):
    """A loop of unknown length inside a loop over elements."""

    def length(n):
        def step(state):
            n, steps = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

    return lax.map(length, starts)


@program("f32[5,4]", "f32[4]", atol=1e-4)
def nested_loops(rows, start):
    def outer(state, row):
        def inner(index, value):
            return value + jnp.sin(row[index % 4] + value)

        return lax.fori_loop(0, 3, inner, state), state.sum()

    return lax.scan(outer, start, rows)


@program("pred[]", {"a": "f32[3,4]", "b": "s32[5] 0..9"})
def cond_of_trees(which, tree):
    def grown(tree):
        return {"a": tree["a"] * 2, "b": tree["b"] + 1}

    def turned(tree):
        return {"a": tree["a"][::-1], "b": jnp.cumsum(tree["b"])}

    return lax.cond(which, grown, turned, tree)


@program("f32[4] 0.5..1.5", "f32[4]", "s32[] 9..9")
def runge_kutta(position, velocity, steps):
    """A pendulum; the number of steps is an argument."""

    def slope(state):
        return jnp.stack([state[1], -jnp.sin(state[0])])

    def step(_, state):
        a = slope(state)
        b = slope(state + 0.05 * a)
        c = slope(state + 0.05 * b)
        d = slope(state + 0.1 * c)
        return state + 0.1 / 6 * (a + 2 * b + 2 * c + d)

    return lax.fori_loop(0, steps, step, jnp.stack([position, velocity]))


@program("s32[7] 0..4", "s32[9] 0..4", **EXACT)
def edit_distance(one, other):
    def row(previous, letter):
        def cell(left, entries):
            above, diagonal, changed = entries
            best = jnp.minimum(jnp.minimum(above, left) + 1, diagonal + changed)
            return best, best

        first = previous[0] + 1
        changed = (other != letter).astype(jnp.int32)
        rest = lax.scan(cell, first, (previous[1:], previous[:-1], changed))[1]
        return jnp.concatenate([first[None], rest]), None

    return lax.scan(row, jnp.arange(10), one)[0][-1]


# ---- convolutions


@program("f32[2,9,9,3]", "f32[3,3,3,4]", atol=1e-4)
def conv_net(image, kernel):
    features = lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(features).mean((1, 2))


@program("f32[2,3,20]", "f32[5,3,4]", "f32[5]", atol=1e-4)
def conv1d_strided(signal, kernel, bias):
    return lax.conv_general_dilated(signal, kernel, (2,), ((1, 2),), rhs_dilation=(2,)) + bias[:, None]


@program("f32[1,8,8,6]", "f32[3,3,1,6]", atol=1e-4)
def conv_depthwise(image, kernel):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(image, kernel, (1, 1), "VALID", dimension_numbers=layout, feature_group_count=6)


@program("f32[1,4,5,3]", "f32[3,3,3,2]", atol=1e-4)
def conv_transposed(image, kernel):
    return lax.conv_transpose(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program("f32[2,2,7,7]", "f32[3,2,3,3]", atol=1e-3)
def conv_gradient(image, kernel):
    def loss(image, kernel):
        return (lax.conv_general_dilated(image, kernel, (2, 2), "SAME") ** 2).sum()

    return jax.grad(loss, argnums=(0, 1))(image, kernel)


@program("f32[2,8,8,3]")
def pooling(image):
    window, stride = (1, 2, 2, 1), (1, 2, 2, 1)
    largest = lax.reduce_window(image, -jnp.inf, lax.max, (1, 3, 3, 1), stride, "SAME")
    return largest, lax.reduce_window(image, 0.0, lax.add, window, stride, "VALID") / 4


@program("f32[2,6,6]")
def max_pool_gradient(image):
    def loss(image):
        return (lax.reduce_window(image, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") ** 2).sum()

    return jax.grad(loss)(image)


# ---- integers


@program("u32[50] any", **EXACT)
def murmur_finalizer(x):
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


@program("u32[40] any", "s16[33] -9999..9999", **EXACT)
def bit_tricks(x, y):
    reversed_bits = jnp.zeros_like(x)
    for bit in range(32):
        reversed_bits |= ((x >> bit) & 1) << (31 - bit)
    gray = y ^ (y >> 1)
    return lax.population_count(x), lax.clz(x), reversed_bits, gray, ~y & -y, lax.population_count(gray) % 2 == 1


@program("u8[24] any", **EXACT)
def crc32(message):
    table = jnp.arange(256, dtype=jnp.uint32)
    for _ in range(8):
        table = jnp.where(table & 1, (table >> 1) ^ jnp.uint32(0xEDB88320), table >> 1)

    def step(crc, byte):
        return (crc >> 8) ^ table[(crc ^ byte) & 0xFF], None

    return ~lax.scan(step, jnp.uint32(0xFFFFFFFF), message.astype(jnp.uint32))[0]


@program("s8[16,32] -128..127", "s8[32,16] -128..127", "f32[16] 0.001..0.01", atol=1e-4)
def int8_matmul(x, w, scale):
    total = lax.dot(x, w, preferred_element_type=jnp.int32)
    return total, jnp.clip(jnp.round(total * scale), -128, 127).astype(jnp.int8)


@program("pred[12,14]", **EXACT)
def game_of_life(alive):
    def step(_, alive):
        turns = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        neighbours = sum(jnp.roll(alive, turn, (0, 1)).astype(jnp.int32) for turn in turns)
        return (neighbours == 3) | (alive & (neighbours == 2))

    return lax.fori_loop(0, 5, step, alive)


@program("s64[20] -999999999999..999999999999", "s64[20] 1..99999", wide=True, **EXACT)
def wide_division(x, y):
    return x // y, x % y, lax.div(x, y), lax.rem(x, y), jnp.sign(x) * y, jnp.gcd(x, y)


# ---- sorts


@program("f32[6,21]", **EXACT)
def sort_and_argsort(x):
    return jnp.sort(x, 1), jnp.argsort(x, 1)


@program("f32[5,40]", **EXACT)
def top_k(x):
    return lax.top_k(x, 6)


@program("s32[30] 0..3", "f32[30]", "s32[30] 0..2", **EXACT)
def lexsort_of_three(first, second, third):
    return jnp.lexsort((second, third, first))


@program("f32[5,21]", atol=1e-6)
def median_and_quantiles(x):
    return jnp.median(x, 1), jnp.quantile(x, jnp.array([0.1, 0.75]), axis=1)


@program("s32[25] 0..9", **EXACT)
def unique_values(x):
    return jnp.unique(x, return_counts=True, size=12, fill_value=-1)


@program("bf16[4,33]", "s8[50] -128..127", **EXACT)
def sorts_of_narrow_types(x, n):
    return jnp.sort(x, 1, descending=True), jnp.sort(n), jnp.argmax(x, 1), jnp.argmin(n)


@program("f32[3,12]", "f32[3,7]", **EXACT)
def search_sorted(table, values):
    return jax.vmap(jnp.searchsorted)(jnp.sort(table, 1), values)


# ---- random numbers


@program("u32[2] any")
def random_normal(key):
    return jax.random.normal(jax.random.wrap_key_data(key), (3, 17))


@program("u32[2] any")
def random_choices(key):
    keys = jax.random.split(jax.random.wrap_key_data(key), 3)
    logits = jnp.log(jnp.array([0.1, 0.2, 0.3, 0.4]))
    return (
        jax.random.bernoulli(keys[0], 0.3, (29,)),
        jax.random.categorical(keys[1], logits, shape=(13,)),
        jax.random.randint(keys[2], (5, 3), -10, 10),
    )


@program("u32[2] any", **EXACT)
def random_permutation(key):
    return jax.random.permutation(jax.random.wrap_key_data(key), 23)


@program("u32[4] any", "u32[4] any", **EXACT)
def bit_generators(philox, three_fry):
    return (
        lax.rng_bit_generator(philox, (19,), jnp.uint32, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
        lax.rng_bit_generator(three_fry, (7, 3), jnp.uint32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY),
    )


@program("f32[4,30]", "u32[2] any", atol=1e-4)
def dropout_and_dense(x, key):
    kept = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.8, x.shape)
    return jnp.where(kept, x / 0.8, 0) @ jnp.ones((30, 5))


# ---- gather, scatter, segments


@program("f32[30,4]", "s32[30] 0..6")
def segment_sums(x, segments):
    sums = jax.ops.segment_sum(x, segments, 7)
    return sums, sums[segments]


@program("f32[9,4]", "s32[6] 0..8", "f32[6,4]", "s32[40] 0..10")
def scatters(x, rows, updates, bins):
    places = x.at[rows]
    return (
        places.max(updates),
        places.min(updates),
        x.at[jnp.arange(6), jnp.arange(6) % 4].multiply(2.0),
        jnp.zeros(11, jnp.int32).at[bins].add(1),
    )


@program("f32[6,7,2]", "f32[15] 0..4.9", "f32[15] 0..5.9")
def bilinear_interpolation(image, y, x):
    top, left = y.astype(jnp.int32), x.astype(jnp.int32)
    down, right = (y - top)[:, None], (x - left)[:, None]
    upper = image[top, left] * (1 - right) + image[top, left + 1] * right
    lower = image[top + 1, left] * (1 - right) + image[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


@program("f32[10,6]", "s32[] 3..3", "s32[] 90..90", "f32[2,3]", donated=(0,), **EXACT)
def dynamic_slices(x, row, far, update):
    """The second start is out of range: slices are moved back into the array."""
    part = lax.dynamic_slice(x, (row, far), (4, 2))
    return lax.dynamic_update_slice(x, update, (far, row)), part, lax.dynamic_index_in_dim(x, row, 0, keepdims=False)


@program("f32[12,5]", "s32[3,4] 0..11", atol=1e-4)
def embedding_gradient(table, tokens):
    return jax.value_and_grad(lambda table: (jnp.tanh(table[tokens]).sum(1) ** 2).sum())(table)


# ---- linear algebra


@program("f32[4,6]", "f32[6,5,4]", "f32[4,4]", "f32[4,5]", atol=1e-4)
def einsums(a, b, c, d):
    return (
        jnp.einsum("ij,jkl->ikl", a, b),
        jnp.einsum("ii->i", c),
        jnp.einsum("jkl,lk->j", b, d),
        jnp.einsum("ij,jkl,lk->i", a, b, d),
        jnp.einsum("ik,lk->il", d, d).trace(),
    )


@program("f32[5,5]", "f32[5,3]", atol=1e-3, rtol=1e-3)
def cholesky_solve(x, b):
    matrix = x @ x.T + 5 * jnp.eye(5)
    factor = jnp.linalg.cholesky(matrix)
    return factor, jax.scipy.linalg.cho_solve((factor, True), b)


@program("f32[2,6,6] 0.5..1.5", "f32[2,6,3]", atol=1e-3, rtol=1e-3)
def triangular_solve(matrix, b):
    matrix = matrix + 5 * jnp.eye(6)
    return lax.linalg.triangular_solve(matrix, b, left_side=True, lower=True, transpose_a=True)


@program("f32[3,32]", atol=1e-4)
def fft_filter(signal):
    spectrum = jnp.fft.rfft(signal)
    return jnp.fft.irfft(spectrum * (jnp.arange(17) < 6)), jnp.abs(jnp.fft.fft2(signal[:, :8]))


@program("f8e4m3fn[16,32]", "f8e4m3fn[32,16]", "f32[] 0.5..0.6", "f32[] 1.5..1.6", atol=0.3, rtol=0.02)
def fp8_matmul(x, w, x_scale, w_scale):
    wide = [(part.astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)) for part, scale in ((x, x_scale), (w, w_scale))]
    return wide[0] @ wide[1]


@program("f64[6,4]", "f64[4,6]", wide=True, atol=1e-12, rtol=1e-12)
def wide_matmul_and_statistics(x, y):
    product = x @ y
    return product, product.std(0), jax.nn.logsumexp(product), jnp.linalg.norm(x)


# ---- number types and odd sizes


@program("c64[5,7]", "c64[7,5]", atol=1e-4, rtol=1e-4)
def complex_arithmetic(x, y):
    product = x * y.T / (1.5 + jnp.abs(y.T))
    return product.conj(), jnp.angle(product), jnp.exp(1j * product.real), (x @ y).imag


@program("f16[7,19]", "f16[19]", atol=0.02, rtol=0.01)
def half_polynomial(x, c):
    value = ((x * c + 1) * x - 0.5) * x
    return value, value.sum(0), (value.astype(jnp.float32) ** 2).mean()


@program("f32[0,4]", "f32[1]", "s32[] -3..3", {"nested": ["f32[2]", {"deep": "f32[1,1]"}]})
def empty_tiny_and_nested(empty, one, number, tree):
    tree = jax.tree.map(lambda leaf: leaf * number, tree)
    return jnp.concatenate([empty, empty]), empty.sum(), one + number, (tree, [number, one]), empty.sum(0)


@program("f32[6,4]", "f32[6,4]", donated=(0, 1))
def swap_of_donated(x, y):
    return y, x, x + y
