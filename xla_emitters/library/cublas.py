"""Matrix products on tensor cores: cuBLAS's gemmStridedBatchedEx, through CuPy, with sums in float32.

CuPy's own `matmul` has no bf16 and no 8-bit floats, rounds f16 at its end, and does not round f32 to TF32. Here factors are f16, bf16 as
bit patterns, or f32, which is rounded to TF32; those of 8 bits become f16, which represents each of their values; the product is float32.
cuBLAS is column major: row-major [rows, columns] = left @ right is its right^T @ left^T without any transposition.
This file is not run without a GPU. Source: NVIDIA's cuBLAS documentation, cublasGemmStridedBatchedEx; CuPy's `cupy.cublas`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, numpy_type, widened

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
    (*above, rows, terms), columns = left.shape, right.shape[-1]
    found: Any = xp.zeros((*above, rows, columns), xp.float32) if out is None else out
    if not found.size or not terms:
        found[...] = 0
        return found
    cublas: Any = import_module("cupy_backends.cuda.libs.cublas")
    lhs, rhs = _Batch.of(left, xp), _Batch.of(right, xp)
    cublas.gemmStridedBatchedEx(
        *(xp.cuda.device.get_cublas_handle(), rhs.transposed, lhs.transposed, columns, rows, terms, _ONE.ctypes.data),
        *(rhs.array.data.ptr, kind, rhs.leading, terms * columns),
        *(lhs.array.data.ptr, kind, lhs.leading, rows * terms),
        *(_ZERO.ctypes.data, found.data.ptr, _FLOAT, columns, rows * columns),
        *(found.size // (rows * columns), _TF32 if kind == _FLOAT else _SUMS_IN_FLOAT32, _ANY_ALGORITHM),
    )
    return found


class _Batch(NamedTuple):
    """Matrices behind each other in memory, by rows, or by columns if `transposed` is 1."""

    array: Any
    transposed: int
    leading: int

    @staticmethod
    def of(array: Any, xp: Any) -> _Batch:
        """The matrices themselves, or a copy by rows."""
        if array.flags.c_contiguous:
            return _Batch(array, 0, array.shape[-1])
        *above, rows, columns = range(array.ndim)
        if (other := array.transpose(*above, columns, rows)).flags.c_contiguous:
            return _Batch(other, 1, array.shape[-2])
        return _Batch(xp.ascontiguousarray(array), 0, array.shape[-1])
