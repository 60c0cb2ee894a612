"""Launches a program's kernels on an NVIDIA GPU through CuPy. The only file that imports cupy, and only when it is used.

    NumPy arrays in            -> copied to the device, results copied back
    CuPy or DLPack arrays in   -> used where they lie, on the caller's current stream; results of the same family

A parameter is used in place when it is contiguous and as aligned as the kernel promises; else it is copied. Types that CuPy lacks (bf16,
f8 ...) are arrays of their bit pattern on the device. Source: design.md 4 "Arrays".
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import DataError, ToolError, Unsupported
from xla_emitters.runtime.arrays import bit_pattern, checked, from_buffer, to_buffer
from xla_emitters.runtime.kernel import Kernel, Program

HELP = "pip install 'xla-emitters[cuda12]' (or [cuda13]); without a GPU: --platform cpu"


def cuda_reason_missing() -> str | None:
    """Why no kernel can be launched here, or None when one can."""
    try:
        cupy: Any = import_module("cupy")
    except ImportError:
        return "CuPy is not installed"
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return "no CUDA device"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device ({error})"
    return None


def device_architecture() -> str:
    """What ptxas calls the current device, e.g. "sm_90"."""
    cupy: Any = _cupy()
    return f"sm_{cupy.cuda.Device().compute_capability}"


def launch_program(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """Runs all kernels in order; returns one array per result, of the inputs' family.

    inputs   one array per parameter, shaped as the program says
    raises   DataError for a wrong shape or type, ToolError without CuPy or a device
    """
    cupy: Any = _cupy()
    on_host = all(isinstance(array, np.ndarray) for array in inputs)
    if len(inputs) != len(program.parameters):
        raise DataError(
            f"{program.name} takes {len(program.parameters)} arrays, {len(inputs)} were given", stage="launch"
        )
    buffers: dict[tuple[str, int], Any] = {}
    for number, (array, spec) in enumerate(zip(inputs, program.parameters, strict=True)):
        row = dtype(spec.dtype)
        if row.bits < 8:
            raise Unsupported(f"parameter {number} is {spec}: sub-byte arrays are not launched yet", stage="launch")
        if isinstance(array, np.ndarray):
            host = checked(cast(Array, array), spec, f"parameter {number}")
            buffers["parameter", number] = cupy.asarray(bit_pattern(to_buffer(host, spec)))
        else:
            on_device = array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)
            if tuple(on_device.shape) != spec.shape or on_device.dtype.itemsize != row.bytes:
                raise DataError(
                    f"parameter {number} is {on_device.dtype}{list(on_device.shape)}, but {spec} is wanted",
                    stage="launch",
                )
            major_to_minor = tuple(reversed(spec.minor_to_major))
            buffers["parameter", number] = cupy.ascontiguousarray(on_device.transpose(major_to_minor)).reshape(-1)
    for kind, specs in (("result", program.results), ("temporary", program.temporaries)):
        for number, spec in enumerate(specs):
            row = dtype(spec.dtype)
            buffers[kind, number] = cupy.empty(spec.elements, dtype=f"u{row.bytes}")
    for kernel in program.kernels:
        pointers: list[Any] = []
        by_slice: dict[int, Any] = {}
        for argument in kernel.arguments:
            buffer = buffers[argument.kind, argument.index]
            if argument.slice_index in by_slice:
                # A result in the place of a parameter: the kernel writes a copy of the caller's array.
                source = by_slice[argument.slice_index]
                buffer[...] = source.view(buffer.dtype)
                pointers = [buffer if pointer is source else pointer for pointer in pointers]
            if buffer.size and buffer.data.ptr % argument.alignment:
                buffer = buffer.copy()
            by_slice[argument.slice_index] = buffer
            pointers.append(buffer)
        if any(argument.written and argument.array.elements for argument in kernel.arguments):
            _function(kernel)(kernel.launch.grid, kernel.launch.block, tuple(pointers))
    results: list[Any] = []
    for number, spec in enumerate(program.results):
        buffer = buffers["result", number]
        row = dtype(spec.dtype)
        if on_host:
            results.append(from_buffer(cupy.asnumpy(buffer).view(row.numpy), spec))
        else:
            native = row.numpy.isbuiltin == 1
            results.append(from_buffer(buffer.view(row.numpy) if native else buffer, spec))
    return results


def _cupy() -> Any:
    if reason := cuda_reason_missing():
        raise ToolError(reason, stage="launch", help=HELP)
    return import_module("cupy")


@lru_cache(maxsize=256)
def _function(kernel: Kernel) -> Any:
    """The loaded kernel; the driver assembles its PTX once."""
    cupy: Any = _cupy()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{kernel.name}.ptx"
        path.write_text(kernel.ptx)
        module = cupy.RawModule(path=str(path))
        return module.get_function(kernel.name)
