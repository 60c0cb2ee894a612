"""The functions, one row each, and `call`.

    >>> gemm = {"types": ["f32", "f32"], "operands": ["lhs", "rhs"], "outputs": ["d"], "lhs_batch": [], "rhs_batch": [],
    ...         "lhs_contracting": [1], "rhs_contracting": [0], "alpha": [1, 0], "beta": 0, "epilogue": "DEFAULT"}
    >>> call("gemm", gemm, [np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)], [("f32", (2, 4))])[0][0]
    array([3., 3., 3., 3.], dtype=float32)

`dialects/hlo/library_calls.py` finds the row and the configuration of an op of HLO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, LibraryArguments, OnElements, Result, checked_results


@dataclass(frozen=True)
class LibraryFunction:
    """One function.

    compute  computes its value
    library  the library that computes it on a GPU, through CuPy
    is_own   whether it belongs to this package and so to bundles
    lacks    why it is not available on a GPU through CuPy; "" if it is
    """

    name: str
    compute: Callable[[LibraryArguments], list[Array]]
    library: str = "CuPy"
    lacks: str = ""
    is_own: bool = True


def _of(file: str, name: str) -> Callable[[LibraryArguments], list[Array]]:
    """The function of a file of this folder, which is loaded when the function is called first: a program calls few."""
    found = cache(lambda: getattr(import_module(f"{__package__}.{file}"), name))

    def compute(arguments: LibraryArguments) -> list[Array]:
        return found()(arguments)

    compute.__module__ = f"{__package__}.{file}"
    return compute


_ROWS: tuple[LibraryFunction, ...] = (
    LibraryFunction("gemm", _of("gemm", "gemm"), "cuBLAS"),
    LibraryFunction("sort", _of("sort", "sort")),
    LibraryFunction("top_k", _of("sort", "top_k")),
    LibraryFunction("convolution", _of("convolution", "convolution"), "cuBLAS"),
    LibraryFunction("random_bits", _of("random_bits", "random_bits")),
    LibraryFunction("random_numbers", _of("random_bits", "random_numbers")),
    LibraryFunction("random_state", _of("random_bits", "random_state")),
    LibraryFunction("fft", _of("fft", "fft"), "cuFFT"),
    LibraryFunction("cholesky", _of("linear_algebra", "cholesky"), "cuSOLVER"),
    LibraryFunction("triangular_solve", _of("linear_algebra", "triangular_solve"), "cuBLAS"),
    LibraryFunction("lu", _of("linear_algebra", "lu"), "cuSOLVER"),
    LibraryFunction("permutation_of_pivots", _of("linear_algebra", "permutation_of_pivots")),
    LibraryFunction("qr", _of("linear_algebra", "qr"), "cuSOLVER"),
    LibraryFunction("householder_product", _of("linear_algebra", "householder_product"), "cuBLAS"),
    LibraryFunction("tridiagonal_solve", _of("linear_algebra", "tridiagonal_solve")),
    LibraryFunction(
        "eig",
        _of("linear_algebra", "eig"),
        "LAPACK",
        lacks="CuPy before 14 has no eigenvalues of matrices that are not Hermitian",
    ),
    LibraryFunction("eigh", _of("linear_algebra", "eigh"), "cuSOLVER"),
    LibraryFunction("svd", _of("linear_algebra", "svd"), "cuSOLVER"),
    LibraryFunction("pass_through", _of("moves", "pass_through")),
    LibraryFunction("allocate", _of("moves", "allocate")),
    LibraryFunction("expect", _of("expect", "expect"), "NumPy"),
    *(
        LibraryFunction(name, _of("collective_calls", name.removeprefix("collective_")), "NCCL")
        for name in (
            *("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "ragged_all_to_all"),
            *("collective_broadcast", "collective_permute", "send", "receive", "wait", "device_id"),
        )
    ),
)

FUNCTIONS: dict[str, LibraryFunction] = {row.name: row for row in _ROWS}
"""All functions by name; `dialects/hlo/custom_calls.register_library_call` adds those of plugins."""


def call(
    name: str,
    config: Mapping[str, Any],
    operands: Sequence[Array],
    results: Sequence[Result],
    xp: Any = np,
    on_elements: OnElements | None = None,
    into: Sequence[Array] | None = None,
) -> list[Array]:
    """Calls the function `name`; returns one logical, row-major array per entry of `results`.

    operands     logical, row-major arrays; on a GPU bit patterns for types that CuPy lacks (see `arguments`)
    results      (HLO's type, shape) of each
    xp           numpy, or cupy
    on_elements  evaluates a computation of scalars given as HLO text: needed by a sort with a comparator without keys
    into         arrays that results may be written to, which are then returned
    raises       Unsupported for a function that is unknown, or that the platform lacks
    """
    row = FUNCTIONS.get(name)
    if row is None:
        raise Unsupported(f"no library function '{name}'", stage="library", help=f"one of: {', '.join(FUNCTIONS)}")
    if xp is not np and row.lacks:
        raise Unsupported(f"no library function '{name}' on a GPU: {row.lacks}", stage="library")
    arguments = LibraryArguments(config, operands, results, xp, on_elements, into)
    with np.errstate(all="ignore"):
        return checked_results(row.compute(arguments), arguments, name)
