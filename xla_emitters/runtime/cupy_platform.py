"""Steps on an NVIDIA GPU, through CuPy: it launches kernels, calls library functions, copies arrays. The only file that imports cupy.

    buffers["parameter", 0]   a flat CuPy array, elements in memory order: numbers of a type that CuPy has, bit patterns of one
                              that it lacks (bf16, f8 ...), bytes of packed elements for types below eight bits

The in-process launcher and the script of a bundle both use it. A bundle holds this file and all that it imports (`bundle.FILES`), so it
imports only NumPy, ml_dtypes and files that need no more than those.

All kernels of a program are one PTX module, which the driver assembles once for each device. A kernel that writes to a parameter's memory
gets a copy of the parameter, unless the caller's buffers are copies already.
Source: docs/reference/contracts "Arrays"; CuPy's documentation, RawModule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from xla_emitters import library
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.library.arguments import Array, numpy_type, pattern_type
from xla_emitters.program.arrays import ArraySpec, Slot
from xla_emitters.program.steps import Kernel, LibraryCall
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES, packed_bytes, unpacked_elements
from xla_emitters.runtime.steps import Platform

Buffers: TypeAlias = dict[tuple[str, int], Any]
"""Kind and index of a slot -> its flat array on the device."""

Functions: TypeAlias = Mapping[tuple[str, str], Any]
"""PTX and name of a kernel -> the loaded function."""


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


@dataclass(frozen=True)
class CupyPlatform(Platform):
    """The current device and stream.

    array      returns the array in a slot
    functions  of all kernels that will be launched (`load_functions`)
    buffers    memory of parameters and results; of temporaries while they are allocated
    """

    cupy: Any
    array: Callable[[Slot], ArraySpec]
    functions: Functions
    buffers: Buffers

    def launch(self, kernel: Kernel) -> None:
        pointers: list[Any] = []
        by_slice: dict[int, Any] = {}
        for argument in kernel.arguments:
            buffer = self.buffers[argument.kind, argument.index]
            source = by_slice.get(argument.slice_index)
            if source is not None and source is not buffer:
                # The result shares a parameter's memory: the kernel writes to a copy of the caller's array.
                buffer[...] = source.view(buffer.dtype)
                pointers = [buffer if pointer is source else pointer for pointer in pointers]
            elif not argument.written and buffer.size and buffer.data.ptr % argument.alignment:
                buffer = buffer.copy()
            by_slice[argument.slice_index] = buffer
            pointers.append(buffer)
        if _writes_elements(kernel):
            launch = kernel.launch
            self.functions[kernel.ptx, kernel.name](launch.grid, launch.block, tuple(pointers))

    def call(self, call: LibraryCall) -> None:
        if reason := refusal(call):
            raise Unsupported(reason, stage="launch")
        operands = [logical(self.buffers[o.slot.kind, o.slot.index], o.array) for o in call.operands]
        wanted = [(result.array.dtype, result.array.shape) for result in call.results]
        try:
            made = library.call(call.name, call.config, operands, wanted, self.cupy)
        except ImportError as error:
            needs = library.FUNCTIONS[call.name].library
            raise ToolError(
                f"'{call.instruction}' calls '{call.name}', which needs {needs}: {error}",
                stage="launch",
                help="CuPy's wheels find NVIDIA's libraries in the CUDA toolkit, or in NVIDIA's own wheels",
            ) from error
        for result, array in zip(call.results, made, strict=True):
            physical = array.transpose(_major_to_minor(result.array))
            buffer = self.buffers[result.slot.kind, result.slot.index]
            buffer[...] = self.cupy.ascontiguousarray(physical).reshape(-1).view(buffer.dtype)

    def allocate(self, slot: Slot) -> None:
        self.buffers[slot.kind, slot.index] = empty(self.cupy, self.array(slot))

    def release(self, slot: Slot) -> None:
        del self.buffers[slot.kind, slot.index]

    def copy(self, source: Slot, target: Slot) -> None:
        buffer = self.buffers[target.kind, target.index]
        buffer[...] = self.buffers[source.kind, source.index].view(buffer.dtype)

    def read(self, slot: Slot) -> int:
        return int(self.cupy.asnumpy(self.buffers[slot.kind, slot.index])[0])

    def is_predicate(self, slot: Slot) -> bool:
        return self.array(slot).dtype == "pred"


def refusal(call: LibraryCall) -> str:
    """Why no GPU runs the call through CuPy, as far as known before it runs; "" if no reason is known."""
    row = library.FUNCTIONS.get(call.name)
    if row is not None and row.lacks:
        return f"no library function '{call.name}' on a GPU, which '{call.instruction}' calls: {row.lacks}"
    for part in (*call.operands, *call.results):
        if part.array.dtype in BITS_IN_SHARED_BYTES:
            return (
                f"no library function for {part.array.dtype} on a GPU: '{call.instruction}' calls '{call.name}' with it"
            )
    return ""


# ---- kernels ----------------------------------------------------------------------------------------------------------------------------


def load_functions(cupy: Any, kernels: Iterable[Kernel]) -> Functions:
    """The kernels on the current device. raises ToolError where the driver rejects their PTX."""
    modules: dict[tuple[str, str], dict[str, None]] = {}
    for kernel in kernels:
        if _writes_elements(kernel):
            modules.setdefault((kernel.ptx, kernel.architecture), {})[kernel.name] = None
    device = cupy.cuda.Device().id
    loaded = {
        (ptx, made_for): load_module(ptx, tuple(names), made_for, device) for (ptx, made_for), names in modules.items()
    }
    return {(ptx, name): function for (ptx, _), found in loaded.items() for name, function in found.items()}


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


def _writes_elements(kernel: Kernel) -> bool:
    """Whether there is anything to launch: false if all written arrays are empty."""
    return any(argument.written and argument.array.elements for argument in kernel.arguments)


# ---- arrays -----------------------------------------------------------------------------------------------------------------------------


def length_of(spec: ArraySpec) -> int:
    """Elements of the flat device array: for a type below eight bits, its packed bytes."""
    bits = BITS_IN_SHARED_BYTES.get(spec.dtype, 8)
    return -(-prod(spec.shape) * bits // 8)


def bytes_of(spec: ArraySpec) -> int:
    """Bytes of the array on the device."""
    return length_of(spec) * pattern_type(spec.dtype).itemsize


def empty(cupy: Any, spec: ArraySpec) -> Any:
    """Uninitialized memory for an array."""
    return cupy.empty(length_of(spec), dtype=pattern_type(spec.dtype))


def to_device(cupy: Any, array: Array, spec: ArraySpec) -> Any:
    """A device copy of a logical NumPy array."""
    host = np.ascontiguousarray(array.transpose(_major_to_minor(spec))).reshape(-1)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        return cupy.asarray(packed_bytes(host.view(np.uint8), BITS_IN_SHARED_BYTES[spec.dtype]))
    return cupy.asarray(host.view(pattern_type(spec.dtype)))


def to_host(cupy: Any, buffer: Any, spec: ArraySpec) -> Array:
    """The logical NumPy array that a device buffer holds."""
    host = cupy.asnumpy(buffer)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        host = unpacked_elements(host, BITS_IN_SHARED_BYTES[spec.dtype])[: prod(spec.shape)]
    return logical(host.view(numpy_type(spec.dtype)), spec)


def logical(buffer: Any, spec: ArraySpec) -> Any:
    """A view of a flat, unpacked buffer as the logical array that it holds."""
    physical = _major_to_minor(spec)
    shape = tuple(spec.shape[dim] for dim in physical)
    return buffer.reshape(shape).transpose([physical.index(dim) for dim in range(len(physical))])


def _major_to_minor(spec: ArraySpec) -> tuple[int, ...]:
    return tuple(reversed(spec.minor_to_major))
