"""A CuPy whose kernels do nothing: the kit's own code runs to its end on a machine without a GPU, and every number in it is worthless.

make gpu-rehearsal                                      all programs
make gpu-rehearsal REHEARSE="2*fusion function:rope"    of the kit's other cases
"""

import ctypes
import importlib.util
import operator
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as _np

_path = Path(os.environ["GPU_PROJECT"]) / "tests/unit/runtime/fake_cupy/cupy.py"
_spec = importlib.util.spec_from_file_location("_fake_cupy", _path)
assert _spec is not None
assert _spec.loader is not None
_fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fake)
sys.modules["_fake_cupy"] = _fake

from_dlpack, ascontiguousarray = _fake.from_dlpack, _fake.ascontiguousarray


class _Pointer:
    __slots__ = ("ptr",)

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


_DATA = 16
"""Offset in bytes of the address of the elements in an array object of NumPy."""


class ndarray(_fake.ndarray):  # type: ignore[misc]
    """As cheap to make and to ask as CuPy's: what is timed on this stand-in is the project's own code."""

    data: Any = None

    def __init__(self, host: Any) -> None:
        self.host, self.data = host, _Pointer(ctypes.c_size_t.from_address(id(host) + _DATA).value)

    dtype = property(operator.attrgetter("host.dtype"))
    shape = property(operator.attrgetter("host.shape"))
    size = property(operator.attrgetter("host.size"))
    nbytes = property(operator.attrgetter("host.nbytes"))
    flags = property(operator.attrgetter("host.flags"))
    strides = property(operator.attrgetter("host.strides"))

    def fill(self, value: Any) -> None:
        self.host.fill(value)

    def __dlpack__(self, **_: Any) -> Any:
        return self.host.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.host.__dlpack_device__()


_fake.ndarray = ndarray


def _aligned(host: Any) -> ndarray:
    """Memory at an address that 16 divides, as NumPy's is where it is large."""
    made = _np.empty(host.nbytes + 16, _np.uint8)
    start = -made.ctypes.data % 16
    held = made[start : start + host.nbytes].view(host.dtype).reshape(host.shape)
    held[...] = host
    return ndarray(held)


def asarray(array: Any, dtype: Any = None) -> ndarray:
    return _aligned(_np.asarray(array.host if isinstance(array, ndarray) else array, dtype))


def asnumpy(array: ndarray) -> Any:
    return array.host.copy()


decides = 0
"""What bytes of new memory are, among them a program's temporaries: predicates that data decide. 0: such loops end at once."""


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Garbage, but for bytes: so each run takes the same steps."""
    is_bytes = dtype in (_np.uint8, _np.bool_)
    return ndarray(_np.full(shape, decides, dtype) if is_bytes else _np.empty(shape, dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    return _aligned(_np.full(shape, fill_value, dtype))


def matmul(one: ndarray, other: ndarray, out: ndarray | None = None) -> ndarray:
    """Multiplies nothing."""
    if out is not None:
        return out
    batch = max(one.shape[:-2], other.shape[:-2], key=len)
    return empty((*batch, *one.shape[-2:-1], other.shape[-1]), one.dtype)


__version__ = "0-rehearsal"


class RawModule:
    def __init__(self, *, path: str) -> None:
        Path(path).read_text()

    def get_function(self, name: str) -> Any:
        def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            assert len(grid) == len(block) == 3 or len(grid) == len(block) == 1
            assert isinstance(arguments, tuple)

        launch.kernel = SimpleNamespace(ptr=1)  # type: ignore[attr-defined]
        launch.attributes = {"num_regs": 1, "local_size_bytes": 0, "shared_size_bytes": 0}  # type: ignore[attr-defined]
        return launch


class _Stream:
    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None: ...
    def __enter__(self) -> Self:
        _Stream.current = self
        return self

    def __exit__(self, *_: object) -> None: ...
    def synchronize(self) -> None: ...
    def begin_capture(self, mode: int = 0) -> None: ...
    def end_capture(self) -> Any:
        return SimpleNamespace(launch=lambda stream=None: None)


_Stream.current = _Stream()  # type: ignore[attr-defined]


class _Event:
    def record(self, stream: Any = None) -> None: ...
    def synchronize(self) -> None: ...


class _RandomState:
    def __init__(self, seed: int) -> None:
        self._own = _np.random.RandomState(seed)

    def uniform(self, low: float, high: float, size: int) -> Any:
        return asarray(self._own.uniform(low, high, size))

    def randint(self, low: int, high: int, size: int) -> Any:
        return asarray(self._own.randint(low, high, size))


random = SimpleNamespace(RandomState=_RandomState)
cuda = SimpleNamespace(**vars(_fake.cuda))
cuda.Event, cuda.Stream, cuda.get_current_stream = _Event, _Stream, lambda: _Stream.current  # type: ignore[attr-defined]


def _copy(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    if (
        kind == 2
    ):  # to the host: numbers that decide which steps run; device memory is garbage, of which copies are not worth their time
        ctypes.memmove(dst, src, size)


cuda.runtime.streamCaptureModeRelaxed, cuda.runtime.memcpyAsync = 2, _copy
cuda.driver = SimpleNamespace(**{**vars(_fake.cuda.driver), "launchKernel": lambda *arguments: None})


# Neither multiplied nor solved: numbers here are worthless, and memory is not the fake's.
_fake.neighbours["cupy_backends.cuda.libs.cublas"].gemmStridedBatchedEx = lambda *arguments: None
sys.modules.update(_fake.neighbours)


def get_default_memory_pool() -> Any:
    return SimpleNamespace(free_all_blocks=lambda: None)


def __getattr__(name: str) -> Any:
    return getattr(_fake, name)
