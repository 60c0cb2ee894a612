"""Matrix products of narrow floats on tensor cores: cuBLAS's gemmStridedBatchedEx, through CuPy, with sums in float32.

CuPy's own `matmul` has no bf16 and no 8-bit floats, and rounds f16 at its end. Here factors are f16 or bf16, as bit patterns; those of 8
bits become f16, which represents each of their values; the product is float32.
cuBLAS is column major: row-major [rows, columns] = left @ right is its right^T @ left^T without any transposition.
This file is not run without a GPU. Source: NVIDIA's cuBLAS documentation, cublasGemmStridedBatchedEx; CuPy's `cupy.cublas`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, numpy_type, widened

_HALF, _BFLOAT, _FLOAT = 2, 14, 0
"""cudaDataType: CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F."""
_SUMS_IN_FLOAT32 = 68
"""cublasComputeType: CUBLAS_COMPUTE_32F."""
_ANY_ALGORITHM = -1


def factor(array: Array, name: str, xp: Any) -> Array:
    """A factor in f16, or bf16 as bit patterns. raises Unsupported for a type that f16 cannot represent."""
    if name in ("f16", "bf16"):
        return array
    if numpy_type(name).itemsize == 1 and name != "f8e8m0fnu":
        return widened(array, name, xp).astype(xp.float16)
    raise Unsupported(f"no product of {name} matrices on a GPU", stage="library")


def product(left: Array, right: Array, names: Sequence[str], xp: Any) -> Array:
    """left [batch, rows, terms] @ right [batch, terms, columns] in float32."""
    if "bf16" in names and names[0] != names[1]:
        raise Unsupported(f"no product of {' and '.join(names)} matrices on a GPU", stage="library")
    kind = _BFLOAT if names[0] == "bf16" else _HALF
    batch, rows, terms = left.shape
    columns = right.shape[2]
    # Allocated by CuPy: `data.ptr`.
    lhs: Any = xp.ascontiguousarray(left)
    rhs: Any = xp.ascontiguousarray(right)
    found: Any = xp.zeros((batch, rows, columns), xp.float32)
    if not found.size or not terms:
        return found
    cublas: Any = import_module("cupy_backends.cuda.libs.cublas")
    one, zero = (np.array(value, np.float32) for value in (1, 0))
    handle = xp.cuda.device.get_cublas_handle()
    cublas.gemmStridedBatchedEx(
        *(handle, 0, 0, columns, rows, terms, one.ctypes.data),
        *(rhs.data.ptr, kind, columns, terms * columns),
        *(lhs.data.ptr, kind, terms, rows * terms),
        *(zero.ctypes.data, found.data.ptr, _FLOAT, columns, rows * columns),
        *(batch, _SUMS_IN_FLOAT32, _ANY_ALGORITHM),
    )
    return found
