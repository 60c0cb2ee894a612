"""Arrays in the memories of the host and of a device, as a program with unknown sizes has them: NumPy's and CuPy's.

A device array of a type that CuPy lacks (bf16, f8 ...) has bit patterns as elements. Bundles contain this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

from xla_emitters.errors import Unsupported
from xla_emitters.library.arguments import Array, numpy_type
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES
from xla_emitters.program.bind import STAGE
from xla_emitters.program.step_values import ALIGN_ALLOCATED


def refuse_packed(names: Iterable[str]) -> None:
    """raises Unsupported for an element type with several elements per byte"""
    if packed := next((name for name in names if name in BITS_IN_SHARED_BYTES), None):
        raise Unsupported(
            f"no buffers of {packed} on a GPU: several of its elements are in a byte there",
            stage=STAGE,
            help="--platform cpu",
        )


def is_numpy(array: Any) -> TypeGuard[Array]:
    """Whether an array is in the host's memory."""
    return isinstance(array, np.ndarray)


def is_exchanged(array: Any) -> bool:
    """Whether an argument is an array of CuPy or of another library, which hands its memory over by DLPack; else NumPy takes it."""
    of_numpy = isinstance(array, np.ndarray | np.generic)
    return not of_numpy and (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__"))


def to_cupy(cupy: Any, array: Array) -> Any:
    """A copy on the device; of a type that CuPy lacks, the bit patterns."""
    is_of_numpy = array.dtype.type.__module__ == "numpy"
    return cupy.asarray(array.view(array.dtype.type if is_of_numpy else np.dtype(f"u{array.dtype.itemsize}")))


def to_numpy(cupy: Any, array: Any, name: str) -> Array:
    """An array of HLO's type `name` on the host: the array itself, or a copy."""
    return array if is_numpy(array) else cupy.asnumpy(array).view(numpy_type(name))


def is_free(arrays: Sequence[Any], number: int) -> bool:
    """Whether a run may take the memory of an argument on the device: it is aligned like allocated memory, and no other argument's."""
    own = arrays[number]
    start, end = own.data.ptr, own.data.ptr + own.nbytes
    others = (each for n, each in enumerate(arrays) if n != number and not is_numpy(each))
    return start % ALIGN_ALLOCATED == 0 and all(
        each.data.ptr + each.nbytes <= start or each.data.ptr >= end for each in others
    )


def assign(cupy: Any, target: Any, source: Any) -> None:
    """Copies between arrays in any memories, bit by bit."""
    if is_numpy(target):
        held: Array = target
        held[...] = source if is_numpy(source) else cupy.asnumpy(source).view(held.dtype)
    else:
        target[...] = to_cupy(cupy, source) if is_numpy(source) else source
