"""Launches a program's kernels on an NVIDIA GPU through CuPy. The only file that imports cupy, and only when it is used.

    NumPy arrays in            -> copied to the device, results copied back
    CuPy or DLPack arrays in   -> used in place, on the caller's current stream; the results are CuPy arrays

A parameter is used in place when it is contiguous and has the alignment that the kernel assumes; else it is copied. An array of a type
that CuPy lacks (bf16, f8 ...) is passed as its bit patterns. Of a type below eight bits the caller's arrays hold one element per byte, and
the host packs them for the kernel. Source: docs/reference/contracts "Arrays".
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from xla_emitters import library
from xla_emitters.device import device_running
from xla_emitters.dtypes import Array, NumpyType, dtype
from xla_emitters.errors import DataError, ToolError, Unsupported
from xla_emitters.extras import install_command
from xla_emitters.program import ArraySpec, Kernel, LibraryCall, Program, Slot
from xla_emitters.runtime.arrays import checked, from_buffer, to_buffer
from xla_emitters.runtime.packing import packed_bytes, unpacked_elements
from xla_emitters.runtime.steps import Platform, run_steps

HELP = f"{install_command(extras='cuda12')} (or cuda13); without a GPU: --platform cpu"


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
    """What to compile for on the current device: its own architecture, e.g. "sm_90", or the newest known one before it."""
    cupy: Any = _cupy()
    return device_running(f"sm_{cupy.cuda.Device().compute_capability}").architecture


def describe_gpu() -> str:
    """`NVIDIA H200, sm_90, driver 12.8, CuPy 13.4.0`: the current device. raises ToolError without CuPy or a device."""
    cupy: Any = _cupy()
    runtime = cupy.cuda.runtime
    device = cupy.cuda.Device()
    name = runtime.getDeviceProperties(device.id)["name"].decode()
    major, minor = divmod(runtime.driverGetVersion() // 10, 100)
    return f"{name}, sm_{device.compute_capability}, driver {major}.{minor}, CuPy {cupy.__version__}"


def launch_program(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """Runs all kernels in order; returns one array per result: NumPy's if all inputs are, else CuPy's.

    inputs   one array per parameter, of the shapes in `program.parameters`
    raises   DataError for a wrong number, shape or type, ToolError without CuPy or a device, or when the driver rejects the PTX
    """
    cupy: Any = _cupy()
    on_host = all(isinstance(array, np.ndarray) for array in inputs)
    if len(inputs) != len(program.parameters):
        raise DataError(
            f"{program.name} takes {len(program.parameters)} arrays, {len(inputs)} were given", stage="launch"
        )
    buffers: dict[tuple[str, int], Any] = {}
    for number, (array, spec) in enumerate(zip(inputs, program.parameters, strict=True)):
        buffers["parameter", number] = _parameter(cupy, array, spec, number)
    for number, spec in enumerate(program.results):
        buffers["result", number] = _empty(cupy, spec)
    run_steps(program.steps, Gpu(cupy, program, buffers))
    results: list[Any] = []
    for number, spec in enumerate(program.results):
        buffer = buffers["result", number]
        if (bits := dtype(spec.dtype).bits) < 8:
            elements = unpacked_elements(cupy.asnumpy(buffer), bits)[: spec.elements]
            buffer = elements if on_host else cupy.asarray(elements)
        elif on_host:
            buffer = cupy.asnumpy(buffer)
        results.append(from_buffer(buffer.view(dtype(spec.dtype).numpy) if on_host else buffer, spec))
    return results


@dataclass(frozen=True)
class Gpu(Platform):
    """The current device and stream: kernels are launched, arrays are CuPy's."""

    cupy: Any
    program: Program
    buffers: dict[tuple[str, int], Any]

    def launch(self, kernel: Kernel) -> None:
        _launch(self.cupy, kernel, self.buffers)

    def call(self, call: LibraryCall) -> None:
        operands = [_logical(self.buffers[o.slot.kind, o.slot.index], o.array) for o in call.operands]
        wanted = [(result.array.dtype, result.array.shape) for result in call.results]
        made = library.call(call.name, call.config, operands, wanted, self.cupy)
        for result, array in zip(call.results, made, strict=True):
            physical = array.transpose(tuple(reversed(result.array.minor_to_major)))
            buffer = self.buffers[result.slot.kind, result.slot.index]
            buffer[...] = self.cupy.ascontiguousarray(physical).reshape(-1).view(buffer.dtype)

    def allocate(self, slot: Slot) -> None:
        self.buffers[slot.kind, slot.index] = _empty(self.cupy, self.program.array(slot))

    def release(self, slot: Slot) -> None:
        del self.buffers[slot.kind, slot.index]

    def copy(self, source: Slot, target: Slot) -> None:
        buffer = self.buffers[target.kind, target.index]
        buffer[...] = self.buffers[source.kind, source.index].view(buffer.dtype)

    def read(self, slot: Slot) -> int:
        return int(self.cupy.asnumpy(self.buffers[slot.kind, slot.index])[0])

    def is_predicate(self, slot: Slot) -> bool:
        return self.program.array(slot).dtype == "pred"


def _logical(buffer: Any, spec: ArraySpec) -> Any:
    """A flat buffer as the array that it holds. raises Unsupported for elements below eight bits."""
    if dtype(spec.dtype).bits < 8:
        raise Unsupported(f"no library function for {spec.dtype} on a GPU", stage="launch")
    physical = tuple(reversed(spec.minor_to_major))
    shape = tuple(spec.shape[dim] for dim in physical)
    return buffer.reshape(shape).transpose([physical.index(dim) for dim in range(len(physical))])


def _empty(cupy: Any, spec: ArraySpec) -> Any:
    """An uninitialised flat buffer for an array; elements below eight bits are packed."""
    row = dtype(spec.dtype)
    size = spec.elements if row.bits >= 8 else row.size_bytes(spec.elements)
    return cupy.empty(size, dtype=_device_type(spec))


def _device_type(spec: ArraySpec) -> NumpyType:
    """The element type on the device: the type itself, or an unsigned integer for the bit patterns of a type that CuPy lacks."""
    row = dtype(spec.dtype)
    return row.numpy if row.numpy.isbuiltin == 1 else np.dtype(f"u{row.bytes}")


def _parameter(cupy: Any, array: Any, spec: ArraySpec, number: int) -> Any:
    """The buffer of a parameter: a flat array on the device in memory order, copied only if `array` is not that already."""
    wanted, bits = _device_type(spec), dtype(spec.dtype).bits
    if isinstance(array, np.ndarray):
        host = to_buffer(checked(cast(Array, array), spec, f"parameter {number}"), spec).view(wanted)
        return cupy.asarray(packed_bytes(host, bits) if bits < 8 else host)
    on_device = array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)
    if tuple(on_device.shape) != spec.shape or on_device.dtype not in (wanted, dtype(spec.dtype).numpy):
        raise DataError(
            f"parameter {number} is {on_device.dtype}{list(on_device.shape)}, but {spec} is wanted ({wanted})",
            stage="launch",
        )
    buffer = cupy.ascontiguousarray(on_device.transpose(tuple(reversed(spec.minor_to_major)))).reshape(-1)
    return cupy.asarray(packed_bytes(cupy.asnumpy(buffer.view(wanted)), bits)) if bits < 8 else buffer


def _launch(cupy: Any, kernel: Kernel, buffers: dict[tuple[str, int], Any]) -> None:
    """Launches one kernel on the current stream."""
    pointers: list[Any] = []
    by_slice: dict[int, Any] = {}
    for argument in kernel.arguments:
        buffer = buffers[argument.kind, argument.index]
        if argument.slice_index in by_slice:
            # A result that shares a parameter's memory: the kernel writes to a copy of the caller's array.
            source = by_slice[argument.slice_index]
            buffer[...] = source.view(buffer.dtype)
            pointers = [buffer if pointer is source else pointer for pointer in pointers]
        elif not argument.written and buffer.size and buffer.data.ptr % argument.alignment:
            buffer = buffer.copy()
        by_slice[argument.slice_index] = buffer
        pointers.append(buffer)
    if any(argument.written and argument.array.elements for argument in kernel.arguments):
        function = _function(kernel, cupy.cuda.Device().id)
        launch = kernel.launch.at({})
        function(launch.grid, launch.block, tuple(pointers))


def _cupy() -> Any:
    if reason := cuda_reason_missing():
        raise ToolError(reason, stage="launch", help=HELP)
    return import_module("cupy")


@lru_cache(maxsize=256)
def _function(kernel: Kernel, device: int) -> Any:
    """The loaded kernel on the current device, whose number is `device`; the driver assembles its PTX once."""
    cupy: Any = _cupy()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{kernel.name}.ptx"
        path.write_text(kernel.ptx, "utf-8")
        try:
            return cupy.RawModule(path=str(path)).get_function(kernel.name)
        except cupy.cuda.driver.CUDADriverError as error:
            raise ToolError(
                f"the driver rejects the PTX of {kernel.name} for {kernel.architecture}: {error}",
                stage="launch",
                help="PTX 8.6 needs a driver for CUDA 12.7 or newer",
            ) from error
