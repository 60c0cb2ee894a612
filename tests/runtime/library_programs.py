"""The programs of tests/corpus/library: convolutions in all layouts, sorts, the largest elements, random bits; with JAX's results.

    python tests/runtime/library_programs.py              in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python tests/runtime/library_programs.py sorts ...    of these

As `stablehlo_programs`, whose `Case` says what a program takes; `tolerance=0` means JAX's bits. The functions are ours.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.stablehlo_programs import Case, write_case

CORPUS = Path(__file__).parents[1] / "corpus" / "library"

BS = ({"b": 1, "s": 1}, {"b": 2, "s": 7}, {"b": 3, "s": 40})
IMAGES = ({"b": 1, "s": 2}, {"b": 2, "s": 5})
CONVOLUTIONS: dict[str, Case] = {
    "channels_last": Case(("f32[b,s+3,s+3,3]", "f32[3,3,3,4]"), IMAGES),
    "channels_first": Case(("f32[b,3,s+3,s+3]", "f32[4,3,3,3]"), IMAGES),
    "half_channels_last": Case(("f16[b,s+3,s+3,3]", "f16[3,3,3,4]"), IMAGES, tolerance=4e-3),
    "half_channels_first": Case(("f16[b,3,s+3,s+3]", "f16[4,3,3,3]"), IMAGES, tolerance=4e-3),
    "residual": Case(("f32[b,s+3,s+3,3]", "f32[3,3,3,4]", "f32[4]", "f32[3,3,4,4]"), IMAGES),
    "grouped": Case(("f32[b,s+3,s+3,4]", "f32[3,3,1,8]"), IMAGES),
    "spread_image": Case(("f32[b,s+3,s+3,4]", "f32[3,3,4,2]"), IMAGES),
    "gradients": Case(("f32[b,s+3,s+3,3]", "f32[3,3,3,4]"), IMAGES),
    "one_dimension": Case(("f32[b,s+3,3]", "f32[3,3,4]"), IMAGES),
    "three_dimensions": Case(("f32[b,s,s,s,2]", "f32[2,2,2,2,3]"), IMAGES),
}
BITS: dict[str, Case] = {
    "sorts": Case(("f32[b,s]",), BS, tolerance=0.0),
    "sorts_of_halves": Case(("f16[b,s]", "bf16[b,s]"), BS, tolerance=0.0),
    "sorts_of_integers": Case(("s32[b,s]<7",), BS, tolerance=0.0),
    "sorts_by_two_keys": Case(("s32[s]<3", "f32[s]"), BS, tolerance=0.0),
    "largest": Case(("f32[b,s+4]",), BS, tolerance=0.0),
    "largest_of_halves": Case(("bf16[b,s+4]", "f16[b,s+4]"), BS, tolerance=0.0),
    "largest_of_integers": Case(("s32[b,s+4]<5",), BS, tolerance=0.0),
    "all_the_largest": Case(("f32[b,s]",), BS, tolerance=0.0),
    "threefry": Case(("u32[2]<4294967295", "f32[b,s]"), BS, tolerance=0.0),
    "permutations": Case(("u32[2]<4294967295", "f32[b,s]"), BS, tolerance=0.0),
    "generators": Case(("u32[4]<4294967295", "f32[b,s]"), BS, tolerance=0.0),
    "generators_of_threefry": Case(("u32[2]<4294967295",), tolerance=0.0),
}
CASES = {**CONVOLUTIONS, **BITS}


def functions() -> dict[str, Callable[..., Any]]:
    """The programs; needs JAX."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    last, first = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")

    def conv(x: Any, w: Any, layout: Any = last, pad: Any = "SAME", stride: int = 1, **more: Any) -> Any:
        return lax.conv_general_dilated(x, w, (stride, stride), pad, dimension_numbers=layout, **more)

    def channels_last(x: Any, w: Any) -> Any:
        return conv(x, w, pad=((1, 2), (0, 1)))

    def channels_first(x: Any, w: Any) -> Any:
        return conv(x, w, first, pad=((1, 2), (0, 1)))

    def half_channels_last(x: Any, w: Any) -> Any:
        return conv(x, w)

    def half_channels_first(x: Any, w: Any) -> Any:
        return conv(x, w, first, stride=2)

    def residual(x: Any, w: Any, bias: Any, v: Any) -> Any:
        y = jax.nn.relu(conv(x, w) + bias)
        z = conv(jax.nn.relu(conv(y, v) + bias + y), v, pad=((0, 1), (1, 1)), stride=2)
        return conv(lax.reduce_window(z, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "SAME"), v).mean((1, 2))

    def grouped(x: Any, w: Any) -> Any:
        return conv(x, w, feature_group_count=4)

    def spread_image(x: Any, w: Any) -> Any:
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=last)

    def gradients(x: Any, w: Any) -> Any:
        return jax.grad(lambda x, w: (conv(x, w, pad=((1, 1), (0, 1))) ** 2).sum() * 0.01, (0, 1))(x, w)

    def one_dimension(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (2,), ((1, 2),), rhs_dilation=(2,), dimension_numbers=("NHC", "HIO", "NHC")
        )

    def three_dimensions(x: Any, w: Any) -> Any:
        layout = ("NDHWC", "DHWIO", "NDHWC")
        return lax.conv_general_dilated(x, w, (1, 1, 1), ((0, 1), (1, 0), (1, 1)), dimension_numbers=layout)

    def odd(x: Any) -> Any:
        """NaN, both zeros, both infinities and equal elements, wherever x is."""
        y = jnp.where(x > 1.2, jnp.nan, jnp.where(x < -1.5, -0.0, jnp.where(jnp.abs(x) < 0.2, 0.0, jnp.round(x))))
        return jnp.where((x > 0.9) & (x < 1.0), jnp.inf, jnp.where((x < -0.9) & (x > -1.0), -jnp.inf, y)).astype(
            x.dtype
        )

    def bits(x: Any) -> Any:
        return lax.bitcast_convert_type(x, {2: jnp.uint16, 4: jnp.uint32}[x.dtype.itemsize])

    def sorts(x: Any) -> Any:
        x = odd(x)
        places = jnp.argsort(x, 1), jnp.argsort(x, 1, descending=True)
        return bits(jnp.sort(x, 1)), bits(jnp.sort(x, 0)), *places

    def sorts_of_halves(x: Any, y: Any) -> Any:
        return tuple(found for z in map(odd, (x, y)) for found in (bits(jnp.sort(z, 1)), jnp.argsort(z, 1)))

    def sorts_of_integers(x: Any) -> Any:
        return jnp.sort(x, 1), jnp.argsort(x, 1), jnp.argsort(x, 1, descending=True), jnp.argsort(x > 3, 1)

    def sorts_by_two_keys(a: Any, x: Any) -> Any:
        a_sorted, x_sorted, places = lax.sort((a, odd(x), jnp.arange(a.shape[0])), num_keys=2)
        return jnp.lexsort((odd(x), a)), a_sorted, bits(x_sorted), places

    def top(x: Any, count: Any) -> Any:
        values, places = lax.top_k(x, count)
        return (bits(values) if x.dtype.kind != "i" else values), places

    def largest(x: Any) -> Any:
        return *top(odd(x), 3), *top(odd(x).T, 1)

    def largest_of_halves(x: Any, y: Any) -> Any:
        return *top(odd(x), 3), *top(odd(y), 4)

    def largest_of_integers(x: Any) -> Any:
        return top(x, 4)

    def all_the_largest(x: Any) -> Any:
        return top(odd(x), x.shape[1])

    def threefry(key: Any, x: Any) -> Any:
        one, two = jax.random.split(jax.random.wrap_key_data(key))
        integers = jax.random.bits(one, x.shape, jnp.uint8), jax.random.randint(two, x.shape, 0, 17)
        return bits(jax.random.uniform(one, x.shape)), *integers, jax.random.bernoulli(two, 0.3, x.shape)

    def permutations(key: Any, x: Any) -> Any:
        key = jax.random.wrap_key_data(key)
        chosen = jax.random.choice(key, 11, (5,), replace=False)
        return jax.random.categorical(key, x), jax.random.permutation(key, 16), chosen

    def generators(key: Any, x: Any) -> Any:
        return tuple(
            array
            for algorithm in (lax.RandomAlgorithm.RNG_PHILOX, lax.RandomAlgorithm.RNG_DEFAULT)
            for kind in (jnp.uint32, jnp.uint8, jnp.uint16)
            for array in lax.rng_bit_generator(key, x.shape, dtype=kind, algorithm=algorithm)
        )

    def generators_of_threefry(key: Any) -> Any:
        state, algorithm = jnp.concatenate([key, key]), lax.RandomAlgorithm.RNG_THREE_FRY
        return tuple(
            array
            for kind in (jnp.uint32, jnp.uint8)
            for shape in ((3,), (5, 7), (16, 16))
            for array in lax.rng_bit_generator(state, shape, dtype=kind, algorithm=algorithm)
        )

    own = dict(locals())
    return {name: own[name] for name in CASES}


if __name__ == "__main__":
    made = functions()
    CORPUS.mkdir(exist_ok=True)
    for each in sys.argv[1:] or CASES:
        write_case(CORPUS, each, CASES[each], made[each])
