"""Steps on an NVIDIA GPU, through CuPy: it launches kernels and calls library functions. The only file that imports cupy.

    frame.arrays[0]    a flat CuPy array, elements in memory order: numbers of a type that CuPy has, bit patterns of one that it lacks
                       (bf16, f8 ...), bytes of packed elements for types below eight bits

The in-process launcher and the script of a bundle both use it. A bundle holds this file and all that it imports (`bundle.FILES`), so it
imports only NumPy, ml_dtypes and files that need no more than those.

All kernels of a program are one PTX module, which the driver assembles once for each device.
Source: docs/reference/contracts "Arrays"; CuPy's documentation, RawModule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from xla_emitters import library
from xla_emitters.errors import ToolError, Unsupported
from xla_emitters.library.arguments import Array, numpy_type, pattern_type
from xla_emitters.memory_limit import allowed_memory
from xla_emitters.program.arrays import ArraySpec
from xla_emitters.program.callees import Kernel, LibraryCall
from xla_emitters.program.sized import Launch, Place
from xla_emitters.runtime.flat_platform import FlatPlatform, logical, major_to_minor
from xla_emitters.runtime.numpy_calls import BufferFunction
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES, packed_bytes, unpacked_elements
from xla_emitters.runtime.walk import ARGUMENT_ALIGNMENT, Frame, HostMemory, Run


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


class FlatMemory(HostMemory):
    """Device memory for flat arrays: see the file's head.

    fill  a byte with which arrays begin; None: uninitialized
    """

    def __init__(self, cupy: Any, fill: int | None = None) -> None:
        super().__init__()
        self._cupy, self._fill = cupy, fill

    def limit(self) -> int | None:
        return allowed_memory()

    def arena(self, count: int) -> Any:
        made = self._cupy.empty((count,), dtype=np.dtype(np.uint8))
        if self._fill is not None:
            made[...] = self._fill
        return made

    def empty(self, place: Place, shape: tuple[int, ...]) -> Any:
        return self.placed(self.arena(_bytes(place, shape)), 0, place, shape)

    def placed(self, arena: Any, start: int, place: Place, shape: tuple[int, ...]) -> Any:
        return arena[start : start + _bytes(place, shape)].view(pattern_type(place.dtype))

    def argument(self, place: Place, array: Any) -> Any:
        return array.copy() if array.size and array.data.ptr % ARGUMENT_ALIGNMENT else array


class CupyPlatform(FlatPlatform):
    """The current device and stream.

    kernels  that steps launch
    calls, donated  as for `FlatPlatform`
    raises   ToolError where the driver rejects their PTX
    """

    def __init__(
        self,
        cupy: Any,
        kernels: Sequence[Kernel],
        calls: Sequence[LibraryCall],
        donated: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(cupy, calls, {kernel.name: kernel.arguments for kernel in kernels}, None, donated)
        self._functions = load_functions(cupy, kernels)

    def launch(self, frame: Frame, step: Launch) -> Run:
        operands, grid, block = self.operands(frame, step), frame.values(step.grid), frame.values(step.block)
        function = self._functions.get(step.kernel)
        if function is None:
            return lambda: None
        return lambda: function(grid(), block(), tuple(operands()))

    def function_for(self, number: int) -> BufferFunction:
        call, function = self.calls[number], super().function_for(number)
        reason = refusal(call)

        def run(*buffers: Any) -> None:
            if reason:
                raise Unsupported(reason, stage="launch")
            try:
                function(*buffers)
            except ImportError as error:
                needs = library.FUNCTIONS[call.name].library
                raise ToolError(
                    f"'{call.instruction}' calls '{call.name}', which needs {needs}: {error}",
                    stage="launch",
                    help="CuPy's wheels find NVIDIA's libraries in the CUDA toolkit, or in NVIDIA's own wheels",
                ) from error

        return run


def refusal(call: LibraryCall) -> str:
    """Why no GPU runs the call through CuPy, as far as known before it runs; "" if no reason is known."""
    row = library.FUNCTIONS.get(call.name)
    if row is not None and row.lacks:
        return f"no library function '{call.name}' on a GPU, which '{call.instruction}' calls: {row.lacks}"
    for spec in (*call.operands, *call.results):
        if spec.dtype in BITS_IN_SHARED_BYTES:
            return f"no library function for {spec.dtype} on a GPU: '{call.instruction}' calls '{call.name}' with it"
    return ""


# ---- kernels ----------------------------------------------------------------------------------------------------------------------------


def load_functions(cupy: Any, kernels: Iterable[Kernel]) -> Mapping[str, Any]:
    """Name -> the kernel on the current device, of those that write anything. raises ToolError where the driver rejects their PTX."""
    modules: dict[tuple[str, str], dict[str, None]] = {}
    for kernel in kernels:
        if _writes_elements(kernel):
            modules.setdefault((kernel.ptx, kernel.architecture), {})[kernel.name] = None
    device = cupy.cuda.Device().id
    found = dict[str, Any]()
    for (ptx, made_for), names in modules.items():
        found |= load_module(ptx, tuple(names), made_for, device)
    return found


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


def to_device(cupy: Any, array: Array, spec: ArraySpec) -> Any:
    """A device copy of a logical NumPy array."""
    host = np.ascontiguousarray(array.transpose(major_to_minor(spec))).reshape(-1)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        return cupy.asarray(packed_bytes(host.view(np.uint8), BITS_IN_SHARED_BYTES[spec.dtype]))
    return cupy.asarray(host.view(pattern_type(spec.dtype)))


def to_host(cupy: Any, buffer: Any, spec: ArraySpec) -> Array:
    """The logical NumPy array that a device buffer holds."""
    host = cupy.asnumpy(buffer)
    if spec.dtype in BITS_IN_SHARED_BYTES:
        host = unpacked_elements(host, BITS_IN_SHARED_BYTES[spec.dtype])[: prod(spec.shape)]
    return logical(host.view(numpy_type(spec.dtype)), spec)


def _bytes(place: Place, shape: tuple[int, ...]) -> int:
    """Bytes of a place's array on the device."""
    return -(-prod(shape) * BITS_IN_SHARED_BYTES.get(place.dtype, 8) // 8) * pattern_type(place.dtype).itemsize
