"""CuPy, its modules, and flat arrays in its memory. The only file that imports cupy.

A bundle holds this file and all that it imports (`bundle.FILES`), so it imports only NumPy, ml_dtypes and files that need no more than
those. All kernels of a program are one PTX module, which the driver assembles once for each device.
Source: docs/reference/contracts "Arrays"; CuPy's documentation, RawModule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters.errors import ToolError
from xla_emitters.library.arguments import Array, numpy_type, pattern_type
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES, packed_bytes, unpacked_elements
from xla_emitters.program.step_values import ArraySpec
from xla_emitters.runtime.layouts import from_buffer, to_buffer


def find_cupy() -> tuple[Any, str]:
    """CuPy and "" where it has a device, else None and the reason."""
    try:
        cupy: Any = import_module("cupy")
    except ImportError:
        return None, "CuPy is not installed"
    try:
        return (cupy, "") if cupy.cuda.runtime.getDeviceCount() else (None, "no CUDA device")
    except Exception as error:  # without a driver CuPy raises classes that depend on its version
        return None, f"no CUDA device ({error})"


# ---- kernels ----------------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def load_module(ptx: str, names: tuple[str, ...], architecture: str, device: int) -> Mapping[str, Any]:
    """Functions of one PTX module, by name. raises ToolError where the driver rejects it.

    device  the current device's number: a module is loaded on each device
    """
    cupy: Any = import_module("cupy")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "kernels.ptx"
        path.write_text(ptx, "utf-8")
        try:
            module = cupy.RawModule(path=str(path))
            return {name: module.get_function(name) for name in names}
        except cupy.cuda.driver.CUDADriverError as error:
            first, *others = names
            rest = f" and {len(others)} more" if others else ""
            raise ToolError(
                f"the driver rejects the PTX of {first}{rest} for {architecture}: {error}",
                stage="launch",
                help="PTX 8.6 needs a driver for CUDA 12.7 or newer",
            ) from error


# ---- arrays -----------------------------------------------------------------------------------------------------------------------------


def stored_shape(element: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of an array as memory has them: of a type below eight bits, its packed bytes."""
    bits = BITS_IN_SHARED_BYTES.get(element)
    return shape if bits is None else (-(-prod(shape) * bits // 8),)


def length_of(spec: ArraySpec) -> int:
    """Elements of the flat device array: for a type below eight bits, its packed bytes."""
    return prod(stored_shape(spec.dtype, spec.shape))


def bytes_of(spec: ArraySpec) -> int:
    """Bytes of the array on the device."""
    return length_of(spec) * pattern_type(spec.dtype).itemsize


def to_device(cupy: Any, array: Array, spec: ArraySpec) -> Any:
    """A device copy of a logical NumPy array."""
    host: Array = to_buffer(array, spec)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        return cupy.asarray(packed_bytes(host.view(np.uint8), BITS_IN_SHARED_BYTES[spec.dtype]))
    return cupy.asarray(host.view(pattern_type(spec.dtype)))


def to_host(cupy: Any, buffer: Any, spec: ArraySpec) -> Array:
    """The logical NumPy array that a device buffer holds."""
    host = cupy.asnumpy(buffer)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        host = unpacked_elements(host, BITS_IN_SHARED_BYTES[spec.dtype])[: prod(spec.shape)]
    return from_buffer(host.view(numpy_type(spec.dtype)), spec)
