"""A CuPy whose kernels do nothing: the kit's own code runs to its end on a machine without a GPU, and every number in it is worthless.

make gpu-rehearsal                                      all programs
make gpu-rehearsal REHEARSE="2*fusion function:rope"    of the kit's other cases
"""

from __future__ import annotations

import importlib.util
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

ndarray, asarray, asnumpy, empty, from_dlpack, full = (
    _fake.ndarray,
    _fake.asarray,
    _fake.asnumpy,
    _fake.empty,
    _fake.from_dlpack,
    _fake.full,
)
ascontiguousarray = _fake.ascontiguousarray
ndarray.fill = lambda self, value: self.host.fill(value)  # type: ignore[attr-defined]
ndarray.__dlpack__ = lambda self, **_: self.host.__dlpack__()  # type: ignore[attr-defined]
ndarray.__dlpack_device__ = lambda self: self.host.__dlpack_device__()  # type: ignore[attr-defined]
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
cuda.runtime.streamCaptureModeRelaxed = 2
cuda.driver = SimpleNamespace(**{**vars(_fake.cuda.driver), "launchKernel": lambda *arguments: None})


def get_default_memory_pool() -> Any:
    return SimpleNamespace(free_all_blocks=lambda: None)


def __getattr__(name: str) -> Any:
    return getattr(_fake, name)
