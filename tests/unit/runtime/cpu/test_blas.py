"""Products by BLAS at drawn dimension numbers, against NumPy's einsum."""

import ctypes
import random
from string import ascii_letters
from typing import Any

import numpy as np
import pytest
from long_lists import every

from xla_emitters.library.arguments import LETTERS, pointer
from xla_emitters.lowering.cpu.blas_calls import blas_calls
from xla_emitters.lowering.cpu.cpu_code import CpuCode
from xla_emitters.lowering.cpu.cpu_steps import ENTRY
from xla_emitters.lowering.cpu.cpu_target import cpu_target
from xla_emitters.runtime.cpu import blas
from xla_emitters.runtime.cpu.blas import gemm_of

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}

pytestmark = pytest.mark.skipif(blas.library() is None, reason="scipy-openblas32 is not installed")


def drawn(draw: random.Random, numbers: np.random.Generator, dims: list[str], sizes: dict[str, int], kind: Any) -> Any:
    array = numbers.standard_normal([sizes[dim] for dim in dims])
    if np.dtype(kind).kind == "c":
        array = array + 1j * numbers.standard_normal(array.shape)
    return np.ascontiguousarray(array.astype(kind))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("seed", every(3, range(60)))
def test_any_dimension_numbers(element: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    letters = iter(ascii_letters)
    batch, rows, columns, terms = ([next(letters) for _ in range(draw.randint(0, 2))] for _ in range(4))
    choices = {"batch": [1, 2, 3], "free": [1, 2, 5, 70], "terms": [1, 2, 7]}
    sizes = {dim: draw.choice(choices["batch"]) for dim in batch} | {
        dim: draw.choice(choices["terms"]) for dim in terms
    }
    sizes |= {dim: draw.choice(choices["free"]) for dim in (*rows, *columns)}
    left, right = [*batch, *rows, *terms], [*batch, *columns, *terms]
    draw.shuffle(left)
    draw.shuffle(right)
    monkeypatch.setattr(blas, "SHARED_WORK", draw.choice([1, 1 << 22]))
    x, y = (drawn(draw, numbers, dims, sizes, TYPES[element]) for dims in (left, right))
    out = [*batch, *(dim for dim in left if dim in rows), *(dim for dim in right if dim in columns)]
    wanted = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)

    pairs = [tuple([dims.index(dim) for dim in group] for dims in (left, right)) for group in (batch, terms)]
    gemm = gemm_of(x.shape, y.shape, (pairs[0][0], pairs[0][1]), (pairs[1][0], pairs[1][1]))
    operands = [
        array if factor.order is None else np.ascontiguousarray(array.transpose(factor.order))
        for array, factor in ((x, gemm.left), (y, gemm.right))
    ]
    found = np.full(wanted.shape, np.nan, TYPES[element])
    code = CpuCode(blas_calls(LETTERS[element]), cpu_target("native"))
    products = gemm.calls(element, draw.choice([1, 2, 5]), lambda name: code.address(f"{name}{ENTRY}"))
    for operand, array in enumerate((*operands, found)):
        products.point(operand, pointer(array))
    half = len(products) // 2
    run = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64)(products.code)
    run(products.address, half, len(products))
    run(products.address, 0, half)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_sizes_that_differ_have_no_product() -> None:
    assert gemm_of((2, 3), (4, 5), ((), ()), ((1,), (0,))) is None
    assert gemm_of((2, 0), (0, 5), ((), ()), ((1,), (0,))) is None


PLAIN = ((), ()), ((1,), (0,))
BATCH_INSIDE = ((1,), (0,)), ((2,), (1,))


@pytest.mark.parametrize(
    ("left", "right", "dims", "limit"),
    [
        ((None, 1), (1, 2), PLAIN, 1 << 31),
        ((2, 1), (1, None), PLAIN, 1 << 31),
        ((2, None), (None, 2), PLAIN, 1 << 31),
        (
            (2, 1 << 11, None),
            (1 << 11, None, 2),
            BATCH_INSIDE,
            1 << 20,
        ),  # 2^31 elements between the rows of the left operand
        ((2, None, 3), (None, 3, 2), BATCH_INSIDE, 4097),  # matrices
    ],
    ids=["m", "n", "k", "stride", "matrices"],
)
def test_what_does_not_fit_32_bits_and_too_many_matrices_have_none(
    left: tuple[int | None, ...], right: tuple[int | None, ...], dims: Any, limit: int
) -> None:
    def product(size: int) -> Any:
        return gemm_of(*([size if dim is None else dim for dim in shape] for shape in (left, right)), *dims)

    assert product(limit - 1) is not None
    assert product(limit) is None
