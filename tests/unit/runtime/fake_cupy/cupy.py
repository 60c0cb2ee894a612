"""A stand-in for CuPy: its device is the CPU executor, and what it takes for PTX is the text of a kernel's LLVM dialect.

Put this folder on the path, or this module into `sys.modules["cupy"]`. Only what the launchers use is here, with CuPy's own signatures
and manners: its arrays are no NumPy arrays, a kernel gets untyped pointers, and a file is read when the function is looked up.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import XlaEmittersError
from xla_emitters.program import Launch
from xla_emitters.runtime.simt.execute import execute

__version__ = "0-fake"
launches: list[str] = []
"""Names of the kernels that were launched, in order."""
loads: list[str] = []
"""Names of the kernels that were loaded, in order."""
state = SimpleNamespace(devices=1, capability="75", device=0)
"""What the machine has; a test may change it."""


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class ndarray:
    """Device memory. `data.ptr` is its address; allocations are aligned to 256 bytes, as a pool's are."""

    def __init__(self, host: np.ndarray[Any, Any]):
        self.host = host

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.host.shape

    @property
    def size(self) -> int:
        return self.host.size

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.host.ctypes.data)

    def view(self, dtype: Any) -> ndarray:
        return ndarray(self.host.view(dtype))

    def reshape(self, *shape: Any) -> ndarray:
        return ndarray(self.host.reshape(*shape))

    def transpose(self, *axes: Any) -> ndarray:
        if not all(isinstance(axis, int) for axis in (axes[0] if len(axes) == 1 else axes)):
            raise TypeError("axes must be integers")
        return ndarray(self.host.transpose(*axes))

    def copy(self) -> ndarray:
        return ndarray(_aligned(self.host))

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(self.host[key])

    def __setitem__(self, key: Any, value: ndarray) -> None:
        self.host[key] = value.host

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


def _aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous copy at an address that 256 divides."""
    memory = np.empty(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def asarray(array: np.ndarray[Any, Any]) -> ndarray:
    if array.dtype.isbuiltin != 1:
        raise ValueError(f"Unsupported dtype {array.dtype}")
    return ndarray(_aligned(array))


def asnumpy(array: ndarray) -> np.ndarray[Any, Any]:
    return array.host.copy()


def empty(shape: Any, dtype: Any = float) -> ndarray:
    return ndarray(_aligned(np.empty(shape, dtype)))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    return ndarray(_aligned(np.full(shape, fill_value, dtype)))


def ascontiguousarray(array: ndarray) -> ndarray:
    return array if array.host.flags.c_contiguous else array.copy()


def from_dlpack(array: Any) -> ndarray:
    return ndarray(_aligned(np.from_dlpack(array)))


class RawModule:
    def __init__(self, *, path: str):
        self.path = path

    def get_function(self, name: str) -> Any:
        text = Path(self.path).read_text()
        try:
            module = parse_ir(text, self.path)
        except XlaEmittersError as error:
            raise CUDADriverError("CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed") from error
        loads.append(name)

        def launch(grid: tuple[int, int, int], block: tuple[int, int, int], pointers: tuple[ndarray, ...]) -> None:
            launches.append(name)
            arrays = [pointer.host.view(np.uint8) for pointer in pointers]
            execute(module, arrays, results=1, launch=Launch(tuple(grid), tuple(block)))

        return launch


class _Device:
    id = property(lambda self: state.device)
    compute_capability = property(lambda self: state.capability)

    def synchronize(self) -> None:
        pass


class _Event:
    def record(self) -> None:
        pass

    def synchronize(self) -> None:
        pass


cuda = SimpleNamespace(
    Device=_Device,
    Event=_Event,
    get_elapsed_time=lambda start, end: 0.25,
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: state.devices,
        getDeviceProperties=lambda device: {"name": b"Fake", "l2CacheSize": 4096},
        driverGetVersion=lambda: 12080,
    ),
)
