"""Matrix products on tensor cores: cuBLAS's gemmStridedBatchedEx, through CuPy, with sums in float32.

CuPy's own `matmul` has no bf16 and no 8-bit floats, rounds f16 at its end, and does not round f32 to TF32. Here factors are f16, bf16 as
bit patterns, or f32, which is rounded to TF32; those of 8 bits become f16, which represents each of their values; the product is float32.
cuBLAS is column major: row-major [rows, columns] = left @ right is its right^T @ left^T without any transposition.
This file is not run without a GPU. Source: NVIDIA's cuBLAS documentation, cublasGemmStridedBatchedEx; CuPy's `cupy.cublas`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, numpy_type, pointer, widened

_HALF, _BFLOAT, _FLOAT = 2, 14, 0
"""cudaDataType: CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F."""
_SUMS_IN_FLOAT32 = 68
"""cublasComputeType: CUBLAS_COMPUTE_32F."""
_TF32 = 77
"""cublasComputeType: CUBLAS_COMPUTE_32F_FAST_TF32; on chips without TF32, float32."""
_ANY_ALGORITHM = -1
_ONE, _ZERO = np.array(1, np.float32), np.array(0, np.float32)


def rounds_to_tf32(config: Mapping[str, Any]) -> bool:
    """Whether tensor cores may round f32 factors to TF32, as XLA's calls do unless a module asks for more.

    JAX's default precision, and "high", allow it; "highest" and the algorithms that name f32 do not. Only a GPU rounds.
    Source: XLA, stream_executor/gpu/gpu_blas_lt.cc, GetBlasComputationType; JAX's documentation, "Matmul precision".

    >>> [rounds_to_tf32({"precision": asked}) for asked in ("default", "high", "highest", "dot_tf32_tf32_f32", "dot_f32_f32_f32")]
    [True, True, False, True, False]
    """
    return config.get("precision", "highest") in ("default", "high", "dot_tf32_tf32_f32")


def factor(array: Array, name: str, xp: Any) -> Array:
    """A factor in f32 or f16, or bf16 as bit patterns. raises Unsupported for a type that f16 cannot represent."""
    if name in ("f16", "bf16", "f32"):
        return array
    if numpy_type(name).itemsize == 1 and name != "f8e8m0fnu":
        return widened(array, name, xp).astype(xp.float16)
    raise Unsupported(f"no product of {name} matrices on a GPU", stage="library")


def product(left: Array, right: Array, names: Sequence[str], xp: Any, out: Any = None) -> Array:
    """left [batch ..., rows, terms] @ right [batch ..., terms, columns] in float32, in `out` if that is given."""
    if "bf16" in names and names[0] != names[1]:
        raise Unsupported(f"no product of {' and '.join(names)} matrices on a GPU", stage="library")
    kind = {"bf16": _BFLOAT, "f32": _FLOAT}.get(names[0], _HALF)
    found: Any = xp.zeros((*left.shape[:-1], right.shape[-1]), xp.float32) if out is None else out
    if not found.size or not left.shape[-1]:
        found[...] = 0
        return found
    lhs, rhs = _Batch.of(left, xp), _Batch.of(right, xp)
    _gemm(lhs, rhs, kind, xp)(lhs.array.data.ptr, rhs.array.data.ptr, found.data.ptr)
    return found


class RepeatedProduct:
    """`product` of f32 matrices, which in each call have the shapes and strides of the first: only their addresses are read again."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._gemm: Callable[[int, int, int], None] | None = None

    def __call__(self, left: Any, right: Any, out: Any) -> None:
        if self._gemm is not None:
            self._gemm(left.data.ptr, right.data.ptr, out.data.ptr)
            return
        product(left, right, ("f32", "f32"), self._xp, out)
        lhs, rhs = _Batch.of(left, self._xp), _Batch.of(right, self._xp)
        is_whole = bool(out.size and left.shape[-1])
        if is_whole and (lhs.array.data.ptr, rhs.array.data.ptr) == (left.data.ptr, right.data.ptr):  # no copies
            self._gemm = _gemm(lhs, rhs, _FLOAT, self._xp)


def _gemm(lhs: _Batch, rhs: _Batch, kind: int, xp: Any) -> Callable[[int, int, int], None]:
    """Multiplies matrices of these shapes at the addresses of left, right and result."""
    call, handle = (
        import_module("cupy_backends.cuda.libs.cublas").gemmStridedBatchedEx,
        xp.cuda.device.get_cublas_handle,
    )
    rows, terms, columns = lhs.rows, rhs.rows, rhs.columns
    one, zero = pointer(_ONE), pointer(_ZERO)
    sizes = rhs.transposed, lhs.transposed, columns, rows, terms, one
    right, left = (kind, rhs.leading, terms * columns), (kind, lhs.leading, rows * terms)
    rest = _FLOAT, columns, rows * columns, lhs.matrices, _TF32 if kind == _FLOAT else _SUMS_IN_FLOAT32, _ANY_ALGORITHM

    def run(of_left: int, of_right: int, result: int) -> None:
        call(handle(), *sizes, of_right, *right, of_left, *left, zero, result, *rest)

    return run


class _Batch(NamedTuple):
    """Matrices behind each other in memory, by rows, or by columns if `transposed` is 1."""

    array: Any
    transposed: int
    leading: int
    matrices: int
    rows: int
    columns: int

    @staticmethod
    def of(array: Any, xp: Any) -> _Batch:
        """The matrices themselves, or a copy by rows."""
        (*batch, rows, columns), (*above, last, end) = array.shape, range(array.ndim)
        sizes = prod(batch), rows, columns
        if array.flags.c_contiguous:
            return _Batch(array, 0, columns, *sizes)
        if (other := array.transpose(*above, end, last)).flags.c_contiguous:
            return _Batch(other, 1, rows, *sizes)
        return _Batch(xp.ascontiguousarray(array), 0, columns, *sizes)
