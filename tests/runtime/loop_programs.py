"""The programs of tests/corpus/loops: loops and branches that update what they carry, donated arguments; with JAX's results at three sizes.

    python tests/runtime/loop_programs.py               in an environment with jax 0.10.2: writes NAME.mlir and NAME.npz of all
    python tests/runtime/loop_programs.py nested ...    of these

As `stablehlo_programs`, whose `Case` says what a program takes. The functions are ours.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.stablehlo_programs import Case, write_case

CORPUS = Path(__file__).parents[1] / "corpus" / "loops"

BS = ({"b": 1, "s": 1}, {"b": 2, "s": 5}, {"b": 3, "s": 8})
CASES: dict[str, Case] = {
    "cache": Case(("f32[b,s,4]", "f32[b,4]"), BS),
    "cache_of_two": Case(("f32[b,2*s,4]", "f32[b,2*s,4]", "f32[b,4]", "f32[4]"), BS),
    "cache_by_index": Case(("f32[b,s,4]", "f32[b,4]"), BS),
    "cache_by_rows": Case(("f32[b,s,4]", "s32[b]<9"), BS),
    "old_value_carried": Case(("f32[b,s]",), BS),
    "old_value_returned": Case(("f32[b,s]",), BS),
    "updated_or_kept": Case(("f32[b,s]", "s32[]<7"), BS),
    "updated_or_chosen": Case(("f32[b,s]", "s32[]<7"), BS),
    "two_choices_deep": Case(("f32[b,s]", "s32[]<7"), BS),
    "swapped": Case(("f32[b,s]",), BS),
    "carried_twice": Case(("f32[b,s]",), BS),
    "loop_in_loop": Case(("f32[b,s]",), BS),
    "no_trips": Case(("f32[b,s]",), BS),
    "ends_early": Case(("f32[b,s]",), BS),
    "scan_of_layers": Case(("f32[s,b,4]", "f32[b,4]", "f32[4,4]"), BS),
    "branch_not_taken": Case(("f32[b,s]",), BS),
    "constants_around": Case(("f32[b,s]",), BS),
    "constant_carried": Case(("f32[b,s]",), BS),
    "index_from_data": Case(("f32[b,s]", "s32[]<100"), BS),
    "reshaped_argument": Case(("f32[b,s]",), BS),
    "read_under_another_name": Case(("f32[b,s]",), BS),
    "chosen_beside_another_name": Case(("f32[b,s]", "s32[]<100"), BS),
    "captured_and_chosen": Case(("f32[b,s]", "f32[b*s]"), BS),
    "donated_under_two_names": Case(("f32[b,s]",), BS, donated=(0,)),
    "donated_step": Case(("f32[b,s,4]", "f32[b,4]", "s32[]<100"), BS, donated=(0,)),
    "donated_moments": Case(("f32[b,s]", "f32[b,s]"), BS, donated=(0, 1)),
    "donated_and_not_read": Case(("f32[b,s]", "f32[b,s]"), BS, donated=(0,)),
    "donated_and_returned": Case(("f32[b,s]",), BS, donated=(0,)),
    "donated_to_a_loop": Case(("f32[b,s]", "s32[]<5"), BS, donated=(0,)),
    "donated_and_read_later": Case(("f32[b,s]",), BS, donated=(0,)),
}


def functions() -> dict[str, Callable[..., Any]]:
    """The programs; needs JAX."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    put = lax.dynamic_update_slice

    def cache(kept: Any, x: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            kept, x = carried
            key = jnp.tanh(x * 2 + i)
            kept = put(kept, key[:, None, :], (0, i, 0))
            weights = jax.nn.softmax(jnp.einsum("bsd,bd->bs", kept, key), -1)
            return kept, jnp.einsum("bs,bsd->bd", weights, kept)

        return lax.fori_loop(0, kept.shape[1], step, (kept, x))

    def cache_of_two(keys: Any, values: Any, x: Any, scale: Any) -> Any:
        def norm(x: Any) -> Any:
            return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale

        def step(i: Any, carried: Any) -> Any:
            keys, values, x = carried
            keys = put(keys, norm(x)[:, None, :], (0, i + 1, 0))
            values = put(values, (x + 1)[:, None, :], (0, i + 1, 0))
            weights = jax.nn.softmax(
                jnp.where(jnp.arange(keys.shape[1]) <= i, (keys * x[:, None, :]).sum(-1), -1e9), -1
            )
            return keys, values, (weights[..., None] * values).sum(1)

        return lax.fori_loop(0, keys.shape[1] // 2, step, (keys, values, x))

    def cache_by_index(kept: Any, x: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            kept, x = carried
            kept = kept.at[:, i].set(x)
            return kept, kept.mean(1)

        return lax.fori_loop(0, kept.shape[1], step, (kept, x))

    def cache_by_rows(kept: Any, places: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            kept, places = carried
            return kept.at[jnp.arange(kept.shape[0]), places].add(1.0 + i), (places + 1) % kept.shape[1]

        return lax.fori_loop(0, 3, step, (kept, places % kept.shape[1]))

    def old_value_carried(x: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            a, total = carried
            return put(a, a[:, :1] * 2 + 1, (0, i)), total + a

        return lax.fori_loop(0, x.shape[1], step, (x, jnp.zeros_like(x)))

    def old_value_returned(x: Any) -> Any:
        y = x * 2
        return y, put(y, jnp.ones((1, 1), x.dtype), (0, 0))

    def updated_or_kept(x: Any, n: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return lax.cond(i % 2 == 0, lambda x: put(x, x[:1, :1] + 1, (i % x.shape[0], 0)), lambda x: x, x)

        return lax.fori_loop(0, n, step, x)

    def updated_or_chosen(x: Any, n: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            branches = (
                lambda a, row: (a.at[0].set(row), row),
                lambda a, row: (a, row + 1),
                lambda a, row: (a * 2, row),
            )
            return lax.switch(i % 3, branches, *carried)

        return lax.fori_loop(0, n, step, (x, x[0]))

    def two_choices_deep(x: Any, n: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            def even(x: Any) -> Any:
                return lax.cond(x.sum() > 3, lambda x: put(x, x[-1:, :1] - 2, (0, 0)), lambda x: x, x)

            return lax.cond(i % 2 == 0, even, lambda x: put(x, x[:1, :1] * 3, (0, i % x.shape[1])), x)

        return lax.fori_loop(0, n, step, x)

    def swapped(x: Any) -> Any:
        return lax.fori_loop(0, x.shape[1], lambda i, c: (c[1], put(c[0], c[1][:, :1], (0, i))), (x, x + 1))

    def carried_twice(x: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            new = put(carried[0], carried[1][:, :1] + 1, (0, i))
            return new, new

        return lax.fori_loop(0, x.shape[1], step, (x, x))

    def loop_in_loop(x: Any) -> Any:
        def outer(i: Any, x: Any) -> Any:
            return lax.fori_loop(0, x.shape[1], lambda j, x: put(x, x[:1, :1] * 0.5 + j + i, (i, j)), x)

        return lax.fori_loop(0, x.shape[0], outer, x)

    def no_trips(x: Any) -> Any:
        return lax.fori_loop(jnp.int32(4), x.shape[0], lambda i, x: put(x, x[:1, :1] + 1, (0, 0)), x)

    def ends_early(x: Any) -> Any:
        def more(carried: Any) -> Any:
            return (carried[0] < 100) & (carried[1].sum() < 50)

        def step(carried: Any) -> Any:
            i, x = carried
            return i + 1, put(x, x[:1, :1] + 3, (i % x.shape[0], 0))

        return lax.while_loop(more, step, (0, x))

    def scan_of_layers(xs: Any, start: Any, w: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = jnp.tanh(x @ w + state)
            return state, (state * 2, state.sum(-1))

        return lax.scan(step, start, xs)

    def branch_not_taken(x: Any) -> Any:
        return lax.cond(jnp.array(x.shape[0]) > 1000, lambda x: jnp.sort(x, 1), lambda x: x + 1, x)

    def constants_around(x: Any) -> Any:
        table = jnp.arange(12.0).reshape(3, 4)
        return lax.fori_loop(0, x.shape[1], lambda i, x: x + table[i % 3, i % 4], x)

    def constant_carried(x: Any) -> Any:
        table = jnp.arange(8.0)
        return lax.fori_loop(0, x.shape[1], lambda i, c: put(c, x[:1, 0] + i, (i % 8,)), table), table

    def index_from_data(x: Any, n: Any) -> Any:
        def step(i: Any, carried: Any) -> Any:
            x, j = carried
            j = (jnp.argmax(x[0]) + n).astype(jnp.int32) % x.shape[1]
            x = put(x, x[:1, :1] - 1, (0, j))
            return x + lax.dynamic_slice(x, (0, j), (x.shape[0], 1)) * 0.1, j

        return lax.fori_loop(0, 5, step, (x, jnp.int32(0)))

    def fill_flat(c: Any, count: Any) -> Any:
        return lax.fori_loop(0, count, lambda i, c: put(c, c[:1] + 1, (i,)), c)

    def reshaped_argument(x: Any) -> Any:
        return fill_flat(x.reshape(-1), x.shape[1]), x.sum()

    def read_under_another_name(x: Any) -> Any:
        a = jnp.tanh(x)
        flat = a.reshape(-1)
        return lax.fori_loop(0, x.shape[1], lambda i, c: put(c, c[:1, :1] + 1, (0, i)), a), flat * 2, fill_flat(flat, 1)

    def chosen_beside_another_name(x: Any, n: Any) -> Any:
        a = jnp.sort(jnp.tanh(x), 1)
        flat = a.reshape(-1)
        chosen = lax.cond(n > 40, lambda a: a, lambda a: a.at[0, 0].set(3.0), a)
        return put(chosen, chosen[:1, :1] + 1, (0, 0)), flat + 1

    def captured_and_chosen(x: Any, w: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            return lax.cond(i == 2, lambda c: w.reshape(-1) * 1.0, lambda c: c, put(c, c[:1] * 2, (i,)))

        return lax.fori_loop(0, 5, step, x.reshape(-1)), w

    def donated_under_two_names(x: Any) -> Any:
        flat = x.reshape(-1)
        return put(x, x[:1, :1] + 1, (0, 0)), flat * 3, put(flat, flat[:1] - 1, (0,))

    def donated_step(kept: Any, x: Any, i: Any) -> Any:
        kept = put(kept, jnp.tanh(x)[:, None, :], (0, i % kept.shape[1], 0))
        return kept, kept.sum(1)

    def donated_moments(p: Any, m: Any) -> Any:
        m = m * 0.9 + p * 0.1
        return p - m, m

    def donated_and_not_read(p: Any, m: Any) -> Any:
        return m * 2

    def donated_and_returned(p: Any) -> Any:
        return p, p + 1

    def donated_to_a_loop(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: put(c, c[:1, :1] + 1, (0, i % c.shape[1])), x)

    def donated_and_read_later(x: Any) -> Any:
        return put(x, x[:1, :1] + 1, (0, 0)), x * 3

    own = dict(locals())
    return {name: own[name] for name in CASES}


if __name__ == "__main__":
    made = functions()
    CORPUS.mkdir(exist_ok=True)
    for each in sys.argv[1:] or CASES:
        write_case(CORPUS, each, CASES[each], made[each])
