"""Ops of StableHLO that become others: einsum, unary_einsum, torch_index_select, broadcast; with sizes known and unknown."""

import re
from typing import Any

import numpy as np
import pytest

from xla_emitters.dynamic.sizes import sizes_of
from xla_emitters.errors import Unsupported, VerifyError, XlaEmittersError
from xla_emitters.graph.entry import entry_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.stablehlo import parse_stablehlo


def type_of(shape: tuple[int, ...], unknown: bool, element: str = "f32") -> str:
    return f"tensor<{''.join('?x' if unknown else f'{size}x' for size in shape)}{element}>"


def run(op: str, arrays: list[np.ndarray], shape: tuple[int, ...], unknown: bool, *, generic: bool = False) -> Any:
    types = [type_of(x.shape, unknown, "i32" if x.dtype == np.int32 else "f32") for x in arrays]
    result = type_of(shape, unknown)
    listed = ", ".join(f"%x{i}: {ir_type}" for i, ir_type in enumerate(types))
    operands, (name, rest) = ", ".join(f"%x{i}" for i in range(len(arrays))), op.split(" ", 1)
    line = f"stablehlo.{name} {operands}, {rest}"
    if generic:
        line = f'"stablehlo.{name}"({operands}) <{{{rest}}}>'
    text = f"func.func @main({listed}) -> {result} {{\n%r = {line} : ({', '.join(types)}) -> {result}\nreturn %r : {result}\n}}"
    module = parse_stablehlo(text, "f.mlir")
    assert not sizes_of(module).unresolved
    return evaluate(entry_of(module), arrays)[0]


SIZES = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 0, "f": 5}
EINSUMS = [
    "ab,bc->ac", "ab,bc->ca", "fab,fbc->fac", "abf,cbf->fca", "a,b->ba", "ab,ab->", "ab,ab->ab", "abc,cd->d", "ab,c->a",
    "ae,eb->ab", "...ab,...bc->...ac", "f...a,ab->...fb",
]  # fmt: skip


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("config", [*EINSUMS, "ab->ba", "abc->b", "ab->", "a->a", "f...->..."])
def test_einsum_is_numpys(config: str, unknown: bool) -> None:
    draws = np.random.default_rng(0)
    rows = config.partition("->")[0].split(",")
    shapes = [tuple(SIZES[label] for label in row.replace("...", "cd")) for row in rows]
    arrays = [draws.standard_normal(shape).astype(np.float32) for shape in shapes]
    wanted = np.einsum(config, *arrays)
    name = "einsum" if len(rows) == 2 else "unary_einsum"
    found = run(f'{name} config = "{config}"', arrays, wanted.shape, unknown)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    again = run(f'{name} einsum_config = "{config}"', arrays, wanted.shape, unknown, generic=True)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize(
    ("config", "kind", "said"),
    [
        ("ab,bc", VerifyError, "is not the form"),
        ("abc,bc->a", VerifyError, "has 3 labels for 2 dimensions"),
        ("aa,ab->ab", Unsupported, "diagonals"),
        ("ab,bc->ad", VerifyError, "'d' only in its result"),
    ],
)
def test_a_wrong_einsum_is_refused(config: str, kind: type[XlaEmittersError], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)) as found:
        run(f'einsum config = "{config}"', [np.ones((2, 2), np.float32)] * 2, (2, 2), unknown=False)
    assert found.value.place is not None


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(("dim", "batch"), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1)])
def test_index_select_is_numpys_take(dim: int, batch: int, unknown: bool) -> None:
    draws = np.random.default_rng(1)
    x = draws.standard_normal((3, 4, 5)).astype(np.float32)
    index = draws.integers(0, x.shape[dim], (3, 2)).astype(np.int32)
    if batch:
        wanted = np.stack([np.take(row, its, axis=dim - 1) for row, its in zip(x, index, strict=True)])
    else:
        wanted = np.take(x, index, axis=dim)
    found = run(f"torch_index_select dim = {dim}, batch_dims = {batch}", [x, index], wanted.shape, unknown)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
def test_broadcast_adds_dimensions_before_unknown_ones(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = run("broadcast sizes = [2, 4]", [x], (2, 4, *shape), unknown=True)
    np.testing.assert_array_equal(found, np.broadcast_to(x, (2, 4, *shape)))
